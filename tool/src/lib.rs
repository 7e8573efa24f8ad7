//! Headwater's tool process as a library: everything the `headwater` binary does, testable without it.
//!
//! The parts, in the order of a session: [`jvm`] finds the target, [`attach`] loads the agent into it, [`session`] holds
//! the conversation with the agent, [`callgraph`] decides which methods to instrument, [`drain`] reads events from shared
//! memory, [`decode`] turns them into a [`cct`], [`profile`] is the corrected result, and [`report`] shows it.

pub mod attach;
pub mod callgraph;
pub mod cct;
pub mod decode;
pub mod jvm;
pub mod pattern;
pub mod profile;
pub mod report;
