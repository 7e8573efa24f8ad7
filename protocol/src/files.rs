//! What the tool puts into the target's file system for a moment: a directory, and these files in it.

/// What the directories' names begin with.
pub const DIRECTORY_PREFIX: &str = "headwater-";
/// The agent's library.
pub const LIBRARY: &str = "agent.so";
/// The control socket beside it.
pub const SOCKET: &str = "control";
