//! What people and the tool name things by: method patterns and names, how text of others is shown, the schemes of discovery, how methods
//! are reached; native methods that wait.

pub mod native;
pub mod pattern;
pub mod printable;
pub mod reach;
mod scheme;

pub use scheme::Scheme;
