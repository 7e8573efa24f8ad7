//! Newtypes for the numbers that both processes use as names.

use serde::{Deserialize, Serialize};

/// Bits of a method's id in an event word.
pub const ID_BITS: u32 = 20;

/// An instrumented method, numbered by the tool from 1; 0 is the calibration's own.
///
/// Never reused within a session, so that an old activation of a method that was instrumented twice still exits
/// under the number it entered with. At most [`MethodId::MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MethodId(pub u32);

impl MethodId {
    /// Largest id that fits an event word.
    pub const MAX: MethodId = MethodId((1 << ID_BITS) - 1);
    /// Not a method of the target: the probe pairs that calibration times.
    pub const CALIBRATION: MethodId = MethodId(0);
}

/// A loaded class, numbered by the agent from 1 (it is the JVMTI tag of the class object).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClassId(pub u64);

/// A class loader. The bootstrap loader is [`LoaderId::BOOT`], the platform loader [`LoaderId::PLATFORM`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LoaderId(pub u64);

impl LoaderId {
    /// The bootstrap class loader (`null` in Java).
    pub const BOOT: LoaderId = LoaderId(0);
    /// The platform class loader.
    pub const PLATFORM: LoaderId = LoaderId(1);

    /// Whether the classes of this loader belong to the JDK's core rather than to the application. The JDK's tools
    /// (javac, jshell, ...) are loaded by the application class loader and count as application.
    pub fn is_jdk(self) -> bool {
        self == Self::BOOT || self == Self::PLATFORM
    }
}

/// A Java thread: the JVM's own `Thread.threadId()`, which is never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ThreadId(pub u64);

impl ThreadId {
    /// Whether it stands for what a carrier writes for virtual threads, which is not under its own number but under the complement of that.
    pub fn is_carrier(self) -> bool {
        self.0.cast_signed() < 0
    }
}
