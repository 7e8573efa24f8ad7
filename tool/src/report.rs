//! What a profile looks like: for people ([`text`]) and for programs ([`json`]).

pub mod json;
pub mod text;

/// Which trees a report shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trees {
    /// One for all threads.
    Merged,
    /// One a thread.
    PerThread,
}
