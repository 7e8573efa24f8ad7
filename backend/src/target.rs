//! What all work of a session rests on: the JVM as it is known, and the way to the tool.

use crate::classes::Classes;
use crate::connection::Connection;
use crate::hotspot::HotSpot;
use crate::hotspot::invocations::Invocations;
use crate::jvmti::Jvmti;
use crate::runtime::Runtime;

/// The JVM, while a tool visits it.
#[derive(Debug)]
pub struct Target {
    /// The session's own JVMTI environment; it is disposed at the end.
    pub jvmti: Jvmti,
    /// The socket.
    pub connection: Connection,
    /// The classes' numbers.
    pub classes: Classes,
    /// What is known of this JVM beyond its documented interfaces.
    pub hotspot: HotSpot,
    /// The Java side.
    pub runtime: &'static Runtime,
}

impl Target {
    /// How often methods have been called, if the JVM tells.
    pub fn invocations(&self) -> Option<&Invocations> {
        self.hotspot.invocations.as_ref()
    }
}
