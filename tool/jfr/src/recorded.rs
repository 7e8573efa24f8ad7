//! What a recording tells.

use std::sync::Arc;

use super::EventKind;

/// A method of the samples: an index into [`Samples::methods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameIndex(pub u32);

/// A thread's stack at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, in ns since 1970.
    pub at_ns: i64,
    /// The operating system's number of the thread, as the JVM knows it.
    pub thread: u32,
    /// The methods on it, the outermost first. Equal stacks share them.
    pub frames: Arc<[FrameIndex]>,
    /// Outer frames are missing: it was deeper than stacks are kept.
    pub is_cut: bool,
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Machine names, `a.b.C.m(ILjava/lang/String;)V`, each once.
    pub methods: Vec<String>,
    /// In no particular order.
    pub stacks: Vec<Sample>,
}

/// A stack: an index into [`Recorded::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackIndex(pub u32);

/// A thread: an index into [`Recorded::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadIndex(pub u32);

/// What was waited for: an index into [`Recorded::locks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LockIndex(pub u32);

/// What a thread waited for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lock {
    /// The class of the object, `a.b.C`.
    pub class: String,
    /// What tells it from others: of a monitor the address of the JVM's structure, of an object that a thread was parked for its own at that moment.
    pub address: u64,
}

/// The methods on a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stack {
    /// The outermost first; none where the event has no stack.
    pub frames: Arc<[FrameIndex]>,
    /// Outer frames are missing: it was deeper than stacks are kept.
    pub is_cut: bool,
}

/// A thread of a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread {
    /// The operating system's number, as the JVM knows it.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Whether it has no thread of the operating system's of its own.
    pub is_virtual: bool,
}

/// Something that happened at a place in the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// When it began, in ns since 1970.
    pub at_ns: i64,
    /// For how long it went on, in ns.
    pub duration_ns: u64,
    /// How much it is of: ns, bytes or samples, as its kind has it.
    pub amount: u64,
    /// In which thread.
    pub thread: ThreadIndex,
    /// Where.
    pub stack: StackIndex,
    /// What was waited for.
    pub lock: Option<LockIndex>,
    /// Of a monitor: the thread that left it before this one entered.
    pub previous_owner: Option<ThreadIndex>,
}

/// A collection of garbage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Collection {
    /// For how long it stopped the program altogether, in ns.
    pub pauses_ns: u64,
    /// For how long at most at once, in ns.
    pub longest_ns: u64,
}

/// How a kind of events was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The kind.
    pub kind: EventKind,
    /// Which setting.
    pub name: String,
    /// Its value: `20 ms`, `100/s`.
    pub value: String,
}

/// The JVM that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JvmInformation {
    /// Its process.
    pub pid: u32,
    /// Its version, in HotSpot's words.
    pub version: String,
    /// Main class or jar, and the program's arguments.
    pub java_arguments: String,
}

/// What a recording tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Machine names, `a.b.C.m(ILjava/lang/String;)V`, each once; an empty one of what has none. What is not Java's has its symbol.
    pub methods: Vec<String>,
    /// Each once.
    pub threads: Vec<Thread>,
    /// Each once.
    pub stacks: Vec<Stack>,
    /// Each once.
    pub locks: Vec<Lock>,
    /// In no particular order.
    pub events: Vec<Event>,
    /// When the first chunk begins, in ns since 1970: what was before has been thrown away.
    pub begins_ns: Option<i64>,
    /// Bytes of events that were lost.
    pub lost_bytes: u64,
    /// Collections of garbage.
    pub collections: Vec<Collection>,
    /// How the events were recorded, each once.
    pub settings: Vec<Setting>,
    /// Which JVM.
    pub jvm: Option<JvmInformation>,
}
