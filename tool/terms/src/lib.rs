//! What people and the tool name things by: method patterns and names, how text of others is shown, the schemes of discovery, how methods
//! are reached; where threads wait.

pub mod pattern;
pub mod printable;
pub mod reach;
mod scheme;
pub mod waiting;

pub use scheme::Scheme;
