//! The control messages.
//!
//! The agent connects to the tool, sends [`Greeting`], and receives the segment's file descriptor with [`Welcome`]. From
//! then on each side sends [`ToAgent`] or [`ToTool`] frames. A `request` number names the question that a reply
//! answers; each side numbers its own.

use serde::{Deserialize, Serialize};

use crate::word::Counting;
use crate::{ClassId, LoaderId, MethodId, ThreadId};

mod bytes;
mod compiled;
pub mod events;
mod greeting;
mod optional_bytes;
mod stacks;

pub use compiled::{CompiledCode, CompiledPiece};
pub use greeting::{Greeting, Internal, Standing, Welcome};
pub use stacks::{Frame, RunningCall, SampledCall, StackSamples, ThreadStack, Walked, WalkedThread};

/// Request numbers; each side counts its own.
pub type RequestId = u64;

/// Tool to agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// A question.
    Command {
        /// Its number.
        request: RequestId,
        /// What to do.
        command: Command,
    },
    /// The answer to an [`Upcall`].
    Answer {
        /// The upcall's number.
        request: RequestId,
        /// The answer.
        answer: Answer,
    },
}

/// Agent to tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum ToTool {
    /// The answer to a [`Command`].
    Reply {
        /// The command's number.
        request: RequestId,
        /// The answer, or what went wrong.
        reply: Result<Reply, String>,
    },
    /// A thread of the target waits for an [`Answer`].
    Upcall {
        /// Its number.
        request: RequestId,
        /// The thread that waits, by its number in the operating system; `None` for the agent's own.
        thread: Option<ThreadId>,
        /// What happened.
        upcall: Upcall,
    },
    /// Something happened; nobody waits.
    Notice(Notice),
}

/// Whether threads of the target wait for what they reveal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Reveal {
    /// At a method's first call and while a class is loaded a thread asks by an [`Upcall`], and waits.
    #[default]
    Blocking,
    /// It tells by a [`Notice`] and goes on; what it calls next is instrumented a little later.
    Background,
}

/// How long each thread of the target waits for the tool, all its waits together; beyond that it tells by a [`Notice`] what it reveals, and
/// goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// At any moment, and so in any one call, in ms.
    pub most_ms: u32,
    /// In the long run, in thousandths of the time.
    pub per_mille: u32,
}

/// What the agent does not do, to measure what it is worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Omitted {
    /// Safepoints after hotswaps.
    pub settling: bool,
    /// Resetting stale type profiles.
    pub profiles: bool,
    /// Holding threads at detach.
    pub holding: bool,
}

/// What the tool asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    /// Time the probes. Answered by [`Reply::Calibration`].
    Calibrate,
    /// Turn the class hooks on and list all loaded classes. Answered by [`Reply::Classes`].
    ListClasses {
        /// What threads of the target do from now on when something is revealed.
        reveal: Reveal,
        /// How long each may wait for one answer from now on.
        deadline_ms: u32,
        /// If they wait, how long in all; `None` where each wait has its deadline and that is all.
        patience: Option<Patience>,
    },
    /// Do without these. Answered by [`Reply::Done`].
    Omit(Omitted),
    /// What threads of the target do from now on when something is revealed. Answered by [`Reply::Done`].
    Reveal(Reveal),
    /// Of the methods that have been listed, those that are not compiled and have not run since, though they had. They are remembered from
    /// [`Command::ListClasses`] with a [`Patience`] on, and forgotten now. Answered by [`Reply::Methods`].
    ListStale,
    /// Tell when one of these methods has run ([`Notice::HasRun`]). Answered by [`Reply::Done`].
    Watch {
        /// Which methods, beside those that are watched already.
        methods: Vec<MethodRef>,
    },
    /// The methods that classes declare. Answered by [`Reply::Methods`].
    ListMethods {
        /// Of which classes.
        classes: Vec<ClassId>,
    },
    /// The class files of classes, as the hooks would get them. Answered by [`Reply::ClassFiles`].
    ReadClasses {
        /// Of which classes.
        classes: Vec<ClassId>,
    },
    /// What the constant pools of the JDK's loaded classes name. Answered by [`Reply::Mentions`].
    ListMentions,
    /// What the JIT compilers have found worth compiling. Answered by [`Reply::Compiled`].
    ListCompiled,
    /// Have these classes retransformed in one go, on the agent's own thread. Answered by [`Reply::Hotswapped`].
    Hotswap {
        /// Which classes.
        classes: Vec<ClassId>,
    },
    /// Have profiles of the JIT compilers forgotten that remember lambdas whose code is gone. Answered by [`Reply::Hotswapped`], which counts no
    /// classes: none gets another code.
    ForgetLambdas,
    /// From now on, beside calls, count these too. Answered by [`Reply::Done`].
    Count(Counting),
    /// Let instrumented methods record. Answered by [`Reply::Done`].
    Record,
    /// The stacks of threads that are inside the code that one of these methods had before it was instrumented. Answered by
    /// [`Reply::Stacks`].
    ListStacks {
        /// Which methods.
        roots: Vec<MethodRef>,
    },
    /// The calls that all threads are in. Answered by [`Reply::Calls`].
    ListCalls,
    /// What threads run below one of these methods, by their stacks. Answered by [`Reply::Sampled`].
    Sample {
        /// Which methods.
        roots: Vec<MethodRef>,
        /// How often the stacks of all threads are looked at.
        looks: u32,
    },
    /// From now on, and for so long at most, look where threads run, so often in the mean. Answered by [`Reply::Done`].
    Walk {
        /// In us.
        period_us: u32,
        /// In ms.
        longest_ms: u32,
    },
    /// What was seen since then: it is not looked any more. Answered by [`Reply::Walked`].
    EndWalk,
    /// These threads are inside calls that began before recording: what they call from there is to be recorded, and their
    /// returns told ([`Notice::FramesLeft`]). Answered by [`Reply::Done`].
    FollowOpen {
        /// The methods of those calls.
        methods: Vec<(MethodId, MethodRef)>,
        /// The threads, with their open calls, the outermost first.
        threads: Vec<(ThreadId, Vec<MethodId>)>,
    },
    /// Stop recording; what is written stays readable. Answered by [`Reply::Stopped`].
    Stop,
    /// In start-up mode: let the program's `main` begin. Answered by [`Reply::Done`].
    Release,
    /// Tell of these kinds of events from now on, and of no others. Answered by [`Reply::Telling`].
    Tell(events::Kinds),
    /// Give every class its original code back, turn everything off, and close the connection after
    /// [`Reply::Detached`].
    Detach,
}

/// What the agent answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// Done, nothing to tell.
    Done,
    /// To [`Command::Calibrate`].
    Calibration(Calibration),
    /// To [`Command::ListClasses`].
    Classes {
        /// Those that are linked.
        linked: Vec<ClassInfo>,
        /// Those that are not.
        unlinked: Vec<UnlinkedClass>,
    },
    /// To [`Command::ListMethods`]: classes that have been unloaded, or are not linked yet, are missing.
    Methods(Vec<(ClassId, Vec<MethodInfo>)>),
    /// To [`Command::ReadClasses`]: classes whose file cannot be had are missing.
    ClassFiles(Vec<ClassFileBytes>),
    /// To [`Command::ListMentions`]: each name and descriptor once, by its [`mention`], and each text, by [`mention_by_text`].
    Mentions(Vec<u64>),
    /// To [`Command::ListCompiled`].
    Compiled(CompiledCode),
    /// To [`Command::Hotswap`] and [`Command::ForgetLambdas`].
    Hotswapped(HotswapResult),
    /// To [`Command::ListCalls`]: each thread's, the outermost first.
    Calls(Vec<(ThreadId, Vec<RunningCall>)>),
    /// To [`Command::ListStacks`].
    Stacks(Vec<ThreadStack>),
    /// To [`Command::Sample`].
    Sampled(StackSamples),
    /// To [`Command::EndWalk`].
    Walked(Walked),
    /// To [`Command::Stop`].
    Stopped {
        /// `System.nanoTime()` when recording ended.
        time_ns: i64,
    },
    /// To [`Command::Tell`].
    Telling(events::Telling),
    /// To [`Command::Detach`].
    Detached {
        /// How long it took to give the original code back.
        hotswap: HotswapResult,
    },
}

/// What the agent needs an answer to while a thread of the target waits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Upcall {
    /// The bytes of a class that is being loaded (`class` is `None`) or retransformed. Answered by
    /// [`Answer::Bytes`].
    ClassBytes {
        /// Which class, if it exists already.
        class: Option<ClassId>,
        /// Its defining loader.
        loader: LoaderId,
        /// Internal name (`a/b/C`).
        name: String,
        /// The class file.
        #[serde(with = "bytes")]
        bytes: Vec<u8>,
    },
    /// A class has been linked. Answered by [`Answer::Hotswap`].
    ClassPrepared(ClassInfo),
    /// An instrumented method was entered for the first time. Answered by [`Answer::Hotswap`].
    FirstCall(MethodId),
    /// A method is about to be called by reflection or a method handle, or one that overrides it: for the first time, in the call
    /// graph. Answered by [`Answer::Hotswap`].
    Reflected(MethodRef),
    /// A virtual call is about to be made, in the call graph, on an object of a class on which it was not before. Answered by
    /// [`Answer::Hotswap`].
    Received {
        /// Stands for the called method's name and descriptor.
        call: u32,
        /// The object's class.
        class: ClassId,
    },
    /// The hotswap that an [`Answer::Hotswap`] asked for is over. Answered by [`Answer::Hotswap`] again.
    Hotswapped(HotswapResult),
    /// What an [`Answer::Link`] asked for is done, as far as it could be. Answered as the question before would have been.
    Linked,
}

/// What the tool answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Answer {
    /// The class file to use instead; `None` leaves it as it is.
    Bytes(#[serde(with = "optional_bytes")] Option<Vec<u8>>),
    /// The waiting thread is to retransform these classes in one go and tell the result by [`Upcall::Hotswapped`];
    /// when there are none, it goes on.
    Hotswap {
        /// Which classes.
        classes: Vec<ClassId>,
    },
    /// The waiting thread is to link these classes if it is the only one that has been in the call graph, and to ask again by
    /// [`Upcall::Linked`]. Each class that is linked by it is told by [`Upcall::ClassPrepared`].
    Link {
        /// Which classes.
        classes: Vec<ClassId>,
    },
}

/// What the agent tells without waiting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Notice {
    /// A thread entered the call graph for the first time, or did something there for the first time if it was in it already.
    ThreadStarted {
        /// Its id.
        thread: ThreadId,
        /// Its name at that time; empty, if it has been listed with its stack ([`Reply::Stacks`]).
        name: String,
        /// The operating system's number of it, in the target's pid namespace; a virtual thread has none.
        os_thread: Option<u32>,
    },
    /// A thread of the target stopped waiting for an answer: some calls may be missing.
    DeadlinePassed {
        /// The upcall's number.
        request: RequestId,
        /// The upcall it waited for, in words.
        waited_for: String,
    },
    /// A thread of the target has waited long enough ([`Patience`]), and went on: some calls may be missing.
    OutOfPatience {
        /// The upcall's number.
        request: RequestId,
    },
    /// The kernel does not count for a thread what it was to be asked for.
    Uncounted {
        /// Why.
        reason: String,
    },
    /// An instrumented method was entered for the first time, by a thread that does not wait.
    FirstCall(MethodId),
    /// A method is about to be called by reflection or a method handle for the first time, by a thread that does not wait.
    Reflected(MethodRef),
    /// A virtual call is about to be made on an object of a class for the first time, by a thread that does not wait.
    Received {
        /// As in [`Upcall::Received`].
        call: u32,
        /// The object's class.
        class: ClassId,
    },
    /// A class has been linked, by a thread that does not wait.
    ClassPrepared(ClassInfo),
    /// Methods that are watched have run ([`Command::Watch`]), and are watched no longer.
    HasRun(Vec<MethodRef>),
    /// Calls that had been open since before recording have returned ([`Command::FollowOpen`]).
    FramesLeft {
        /// In this thread.
        thread: ThreadId,
        /// So many of them, the outermost, are still open.
        open: u32,
        /// When, as far as is known: in the middle between two looks at the stack (`System.nanoTime()`).
        time_ns: i64,
        /// Half of the time between these looks.
        error_ns: u64,
    },
    /// What has happened of what is to be told of ([`Command::Tell`]).
    Happened(events::Happened),
    /// The JVM is going down.
    VmDeath,
}

/// The cost of a probe pair in this JVM, compiled (JFluid 5.3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Inner time: what a pair adds between its own two timestamps.
    pub inner_ns: f64,
    /// Outer time: what it adds to its caller.
    pub outer_ns: f64,
    /// What a pair costs outside the root's context, where nothing is recorded.
    pub outside_ns: f64,
    /// What a control invocation of an empty method takes by its own account: what timing adds to each.
    pub control_ns: f64,
    /// Standard deviation of the inner time over the rounds.
    pub inner_spread_ns: f64,
    /// Standard deviation of the outer time over the rounds.
    pub outer_spread_ns: f64,
    /// What it takes to tell of an object that is made; 0 where these are not counted.
    pub object_ns: f64,
}

/// A loaded class.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassInfo {
    /// Its id.
    pub id: ClassId,
    /// Internal name (`a/b/C`; arrays are not listed).
    pub name: String,
    /// Its defining loader.
    pub loader: LoaderId,
    /// Its superclass; `None` for `java/lang/Object` and interfaces.
    pub super_class: Option<ClassId>,
    /// Its direct interfaces.
    pub interfaces: Vec<ClassId>,
    /// Access flags as in the class file (JVMS table 4.1-B).
    pub access: u16,
    /// Its static initialiser has been run, or needs not be.
    pub initialized: bool,
    /// HotSpot lets it be retransformed (hidden classes are not).
    pub modifiable: bool,
    /// It has the code that was answered when it was loaded, or retransformed.
    pub probed: bool,
}

/// A class that is loaded and not linked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnlinkedClass {
    /// Its id.
    pub id: ClassId,
    /// Internal name.
    pub name: String,
    /// Its superclass.
    pub super_class: Option<ClassId>,
    /// It is of the JDK's application class loader: what it needs can be loaded without any code of the program's.
    pub is_of_class_path: bool,
}

/// A class file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClassFileBytes {
    /// Of this class.
    pub class: ClassId,
    /// Its bytes.
    #[serde(with = "bytes")]
    pub bytes: Vec<u8>,
}

/// A declared method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodInfo {
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
    /// Access flags (JVMS table 4.6-A).
    pub access: u16,
    /// At least so often it has been called since its class was loaded, or changed; `None` where the JVM does not tell.
    pub calls: Option<u32>,
}

/// Stands for a name and a descriptor that a constant pool names together (FNV-1a). Two pairs that share one are taken for each other.
pub fn mention(name: &[u8], descriptor: &[u8]) -> u64 {
    let bytes = name.iter().chain(&[0]).chain(descriptor);
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// Stands for a text among a class's constants by which it may call a method of that name by reflection.
pub fn mention_by_text(text: &[u8]) -> Option<u64> {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | 0x80..);
    (!text.is_empty() && text.iter().all(is_of_name)).then(|| mention(text, b""))
}

/// Names a method of a loaded class.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct MethodRef {
    /// Its class.
    pub class: ClassId,
    /// Its name.
    pub name: String,
    /// Its descriptor.
    pub descriptor: String,
}

/// What a retransformation did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotswapResult {
    /// Classes that were retransformed.
    pub classes: u32,
    /// Classes that HotSpot refused, with the JVMTI error's name. The others of the batch were retransformed all the same.
    pub refused: Vec<(ClassId, String)>,
    /// Classes that were retransformed to their original code, because the tool did not say in time what else.
    pub unanswered: Vec<ClassId>,
    /// Wall time of the retransformation, waits for the tool included.
    pub total_ns: u64,
    /// How long the JVM was at a safepoint: by the JVM's own account, a garbage collection that fell in between included; where it keeps none, the part after
    /// the last class file was handed over, which is more.
    pub pause_ns: u64,
    /// How many threads had been in the call graph when it was over.
    pub threads: u32,
}

impl HotswapResult {
    /// Adds one that followed: the pauses do not add up, the longest counts.
    pub fn add(&mut self, other: HotswapResult) {
        self.classes += other.classes;
        self.refused.extend(other.refused);
        self.unanswered.extend(other.unanswered);
        self.total_ns += other.total_ns;
        self.pause_ns = self.pause_ns.max(other.pause_ns);
        self.threads = self.threads.max(other.threads);
    }
}
