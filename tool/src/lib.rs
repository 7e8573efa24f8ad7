//! Headwater's tool process as a library: everything the `headwater` binary does, testable without it.
//!
//! The parts, in the order of a session: [`jvm`] finds the target, [`attach`] loads the [`agent`] into it, [`connection`] is the
//! socket to it, [`session`] holds the conversation, [`callgraph`] decides which methods to instrument, [`drain`] reads
//! events from shared memory, [`decode`] turns them into a [`cct`], [`profile`] is the corrected result, [`report`] shows it,
//! [`export`] hands it to other tools, [`page`] to a browser, [`snapshot`] keeps it, [`import`] reads those of others, and [`diff`] compares some. [`profiling`] leads through all of them,
//! [`cli`] is the command line.

pub use headwater_agent as agent;
pub use headwater_analysis::{budget, cct, correction, cpu_share, decode, timing};
pub use headwater_attach::{attach, flight_recorder, jvm, leftovers};
pub use headwater_callgraph as callgraph;
pub use headwater_profile::{diff, export, import, page, profile, report, snapshot, traces, whole_file};
pub use headwater_terms::{Scheme, pattern, printable};
pub use headwater_threads as threads;

pub mod analyses;
pub mod cli;
pub mod clock_source;
pub mod connection;
pub(crate) mod console;
pub(crate) mod doctor;
pub mod drain;
pub(crate) mod events;
pub mod foreign;
pub mod locks;
mod logging;
pub(crate) mod outlet;
pub mod profiling;
pub mod pulse;
pub(crate) mod request;
pub mod roots;
pub mod sampling;
mod script;
pub mod session;
pub mod thread_dump;
pub mod ticker;
pub mod top;
pub(crate) mod watch;
pub mod whole_jvm;
