use std::time::Duration;

use crate::Dump;
use crate::deadlocks::Deadlock;
use crate::waits::WaitGraph;

/// All threads of a JVM, and what was found in them.
#[derive(Debug)]
pub struct Taken {
    /// Its process id, as this process sees it.
    pub pid: u32,
    /// Its main class or jar.
    pub main: String,
    /// Its threads, those included that only the operating system knows.
    pub dump: Dump,
    /// Who waits for whom.
    pub waits: WaitGraph,
    /// Who waits for himself.
    pub deadlocks: Vec<Deadlock>,
    /// What the processors did for it.
    pub cpu: Option<Cpu>,
    /// What could not be found out; sentences.
    pub warnings: Vec<String>,
}

/// What the process has used of the processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// In so long before the dump.
    pub window: Duration,
    /// By all threads that were there at its end.
    pub recent_ns: u64,
    /// By others, that have ended in it.
    pub ended_ns: u64,
    /// The same since their starts.
    pub threads_ns: u64,
    /// Since its start by the whole process, threads that have ended included.
    pub process_ns: u64,
}
