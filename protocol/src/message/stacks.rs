//! Threads' stacks.

use serde::{Deserialize, Serialize};

use super::MethodRef;
use crate::{ClassId, ThreadId};

/// A thread's stack at one moment, from the outermost call of a root on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadStack {
    /// The thread.
    pub thread: ThreadId,
    /// Its name.
    pub name: String,
    /// The calls, the outermost first.
    pub frames: Vec<Frame>,
}

/// A call that a thread is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningCall {
    /// Stands for the version of the method that it runs.
    pub version: u64,
    /// The method's class.
    pub class: ClassId,
    /// The method is native.
    pub is_native: bool,
}

/// A call on a thread's stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// Of this method.
    pub method: MethodRef,
    /// It runs code that has been replaced meanwhile, and so began before that.
    pub replaced: bool,
}

/// What threads run below roots, by some looks at their stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackSamples {
    /// On how many stacks a class was from the outermost call of a root on.
    pub classes: Vec<(ClassId, u32)>,
    /// The methods of the calls, each once.
    pub methods: Vec<MethodRef>,
    /// The calls from those of roots on, as a tree, each behind the one that made it. There may have been more.
    pub calls: Vec<SampledCall>,
    /// What the looks took.
    pub paused_ns: u64,
}

/// A call that threads were seen in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SampledCall {
    /// The place of the call that made it among all; `None` of the outermost call of a root.
    pub by: Option<u32>,
    /// The place of its method among the methods.
    pub method: u32,
}

/// Where threads ran, by looks at their stacks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Walked {
    /// The methods on them, each once.
    pub methods: Vec<MethodRef>,
    /// Different stacks, each by the places of its methods, the outermost call first.
    pub stacks: Vec<Vec<u32>>,
    /// The threads that were looked at, in that order.
    pub threads: Vec<WalkedThread>,
    /// How often it was looked,
    pub looks: u32,
    /// and what that took.
    pub took_ns: u64,
}

/// A thread that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WalkedThread {
    /// When, in ns since 1970.
    pub at_ns: i64,
    /// The place of its stack.
    pub stack: u32,
    /// Outer calls are missing.
    pub is_cut: bool,
    /// It was in native code, where it may have waited.
    pub is_native: bool,
    /// So many were there, of which one was looked at.
    pub stands_for: u16,
}
