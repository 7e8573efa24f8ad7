//! What the tool process and the in-JVM agent agree on.
//!
//! * [`message`]: the control messages that travel over the Unix socket, and [`wire`], their framing.
//! * [`word`]: the 8-byte event words that instrumented methods write.
//! * [`layout`]: where things are in the shared memory segment.
//! * [`files`]: what lies in the target's file system.
//! * [`segment`]: the shared memory itself, and [`chunks`], how it is read.
//! * [`collections`]: the JVM's, told of in it.
//! * [`pulse`]: what of it each process knows of the other by.
//!
//! The Java side (`runtime-java`) repeats the constants of [`word`] and [`layout`]; a test over there compares them.
#![deny(unsafe_code)]

pub mod chunks;
#[cfg(not(loom))]
pub mod collections;
pub mod files;
pub mod ids;
pub mod layout;
#[cfg(not(loom))]
#[allow(unsafe_code)] // DESIGN: the one module of this crate that touches shared memory
mod memory;
pub mod message;
#[cfg(loom)]
mod model;
#[cfg(not(loom))]
pub mod pulse;
pub mod segment;
pub mod wire;
pub mod word;

pub use ids::{ClassId, LoaderId, MethodId, ThreadId};

/// Version of everything in this crate. Tool and agent refuse each other when it differs.
pub const PROTOCOL_VERSION: u32 = 3;
