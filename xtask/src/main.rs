//! The project's chores, executable.
fn main() {}
