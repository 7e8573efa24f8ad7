//! What people and the tool name things by: method patterns and names, how text of others is shown, the schemes of discovery.

pub mod pattern;
pub mod printable;
mod scheme;

pub use scheme::Scheme;
