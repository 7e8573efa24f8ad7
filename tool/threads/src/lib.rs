//! All threads of a JVM at one moment: where each is, which locks it holds, and who waits for whom.
//!
//! Pure: texts go in, a [`Dump`] comes out. [`read`] understands HotSpot's own dump, [`virtual_threads`] adds what the JVM tells of
//! virtual threads; [`waits`] finds who waits for whom, [`deadlocks`] who waits for himself, [`blockers`] who holds up many;
//! [`groups`] joins equal stacks, [`doing`] says in a few words what a thread does, [`activity`] in one. [`report`] shows it all.
//! Asking the JVM is others' work.

use std::fmt;

use rustc_hash::FxHashMap;

pub mod activity;
pub mod blockers;
pub mod deadlocks;
pub mod doing;
pub mod groups;
mod header;
pub mod read;
pub mod report;
mod taken;
pub mod virtual_threads;
pub mod waits;

pub use taken::{Cpu, Taken};

/// A thread of a [`Dump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadIndex(pub usize);

/// A lock of a [`Dump`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LockIndex(pub usize);

/// All threads of a JVM at one moment.
#[derive(Debug, Default)]
pub struct Dump {
    /// The JVM, in its own words: `OpenJDK 64-Bit Server VM (25.0.3+9-LTS mixed mode, sharing)`.
    pub vm: String,
    /// In the JVM's order; virtual threads behind the others.
    pub threads: Vec<Thread>,
    /// What is held or waited for.
    pub locks: Locks,
    /// Deadlocks that the JVM itself has found.
    pub found: Vec<Vec<FoundWait>>,
    /// What the JVM said that is of no kind known here; lines.
    pub unread: Vec<String>,
    /// The JVM's text had its end.
    pub is_whole: bool,
    /// How many virtual threads there are, if the JVM has told.
    pub virtual_threads: Option<usize>,
}

/// What a thread is to the JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// It runs Java code.
    Java,
    /// It is a virtual thread.
    Virtual,
    /// It is the JVM's own: a collector's, a compiler's is [`Kind::Java`] to the JVM.
    Vm,
    /// Only the operating system knows it.
    Native,
}

impl Kind {
    /// For machines.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Java => "java",
            Kind::Virtual => "virtual",
            Kind::Vm => "vm",
            Kind::Native => "native",
        }
    }
}

/// A Java thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// It has not begun.
    New,
    /// It runs, is ready to, or is in native code.
    Runnable,
    /// It wants to enter a monitor.
    Blocked,
    /// It waits.
    Waiting,
    /// It waits, for some time at most.
    TimedWaiting,
    /// It is over.
    Terminated,
    /// The JVM has not said.
    Unknown,
}

impl State {
    /// As `Thread.State` has it.
    pub fn name(self) -> &'static str {
        match self {
            State::New => "NEW",
            State::Runnable => "RUNNABLE",
            State::Blocked => "BLOCKED",
            State::Waiting => "WAITING",
            State::TimedWaiting => "TIMED_WAITING",
            State::Terminated => "TERMINATED",
            State::Unknown => "UNKNOWN",
        }
    }

    /// Whether it is one of waiting.
    fn waits(self) -> bool {
        matches!(self, State::Blocked | State::Waiting | State::TimedWaiting)
    }

    fn of(name: &str) -> State {
        match name {
            "NEW" => State::New,
            "RUNNABLE" => State::Runnable,
            "BLOCKED" => State::Blocked,
            "WAITING" => State::Waiting,
            "TIMED_WAITING" => State::TimedWaiting,
            "TERMINATED" => State::Terminated,
            _ => State::Unknown,
        }
    }
}

/// One thread.
#[derive(Debug)]
pub struct Thread {
    /// As the program has named it: anything.
    pub name: String,
    /// What it is to the JVM.
    pub kind: Kind,
    /// `Thread.threadId()`.
    pub java_id: Option<u64>,
    /// The operating system's number, as the JVM sees it.
    pub os_id: Option<u32>,
    /// It does not keep the JVM from ending.
    pub daemon: bool,
    /// The Java priority.
    pub priority: Option<i32>,
    /// CPU time since its start.
    pub cpu_ns: Option<u64>,
    /// CPU time in the window before the dump.
    pub recent_cpu_ns: Option<u64>,
    /// Since its start.
    pub elapsed_ns: Option<u64>,
    /// Bytes that it has allocated since its start.
    pub allocated_bytes: Option<u64>,
    /// Its state.
    pub state: State,
    /// What HotSpot says it does: `in Object.wait()`, `runnable`.
    pub doing: String,
    /// The innermost frame first.
    pub stack: Vec<Frame>,
    /// What it waits for.
    pub wait: Option<Wait>,
    /// What it holds.
    pub owned: Vec<Owned>,
    /// Of a carrier: the virtual thread on it. Of a virtual thread: its carrier. By [`Thread::java_id`].
    pub mount: Option<u64>,
    /// Lines about it that are of no kind known here.
    pub notes: Vec<String>,
}

impl Thread {
    /// One of which nothing is known yet but its name.
    pub fn named(name: impl Into<String>, kind: Kind) -> Thread {
        Thread {
            name: name.into(),
            kind,
            java_id: None,
            os_id: None,
            daemon: false,
            priority: None,
            cpu_ns: None,
            recent_cpu_ns: None,
            elapsed_ns: None,
            allocated_bytes: None,
            state: State::Unknown,
            doing: String::new(),
            stack: Vec::new(),
            wait: None,
            owned: Vec::new(),
            mount: None,
            notes: Vec::new(),
        }
    }

    /// A virtual thread that keeps its carrier although it does not run: below a native frame, say, or until a class is initialised.
    pub fn is_pinned(&self) -> bool {
        let is_at = |method: &str| self.stack.iter().take(4).any(|frame| frame.method == method);
        let waits = self.wait.is_some() || self.state.waits() || is_at("java.lang.Object.wait0");
        let keeps = self.mount.is_some() && waits;
        self.kind == Kind::Virtual && (keeps || is_at("java.lang.VirtualThread.parkOnCarrierThread"))
    }

    /// In `Object.wait`, at an object that is not known: of the monitors that it seems to hold one is not its own now.
    pub fn waits_at_something(&self) -> bool {
        matches!(self.wait, Some(Wait { kind: WaitKind::Notification | WaitKind::Reenter, lock: None, .. }))
    }

    /// A virtual thread that waits without a carrier.
    pub fn is_parked(&self) -> bool {
        let yielded = self.stack.first().is_some_and(|frame| frame.method.starts_with("java.lang.VirtualThread.park"));
        self.kind == Kind::Virtual && self.mount.is_none() && !self.is_pinned() && (self.state.waits() || yielded)
    }
}

/// One level of a stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Frame {
    /// `a.b.C.m`; of a hidden class without its address, which differs from run to run.
    pub method: String,
    /// `C.java:12`, `Native Method`, `Unknown Source`.
    pub source: String,
}

impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.method, self.source)
    }
}

impl Frame {
    /// The class that its method initialises, if that is what it does.
    pub fn initialises(&self) -> Option<&str> {
        self.method.strip_suffix(".<clinit>")
    }
}

/// What identifies a lock.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LockKey {
    /// An object's address at the moment of the dump.
    Address(u64),
    /// A class and an identity hash code, `a.b.C@1f2e`.
    Identity(String),
    /// The initialisation of a class.
    Initialisation(String),
}

/// What can be held and waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lock {
    /// What identifies it.
    pub key: LockKey,
    /// The object's class, or the class that is initialised.
    pub class: String,
}

impl fmt::Display for Lock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.key {
            LockKey::Address(address) => write!(f, "{} <0x{address:x}>", self.class),
            LockKey::Identity(identity) => write!(f, "{identity}"),
            LockKey::Initialisation(class) => write!(f, "the initialisation of {class}"),
        }
    }
}

/// All locks, each once.
#[derive(Debug, Default)]
pub struct Locks {
    locks: Vec<Lock>,
    by_key: FxHashMap<LockKey, LockIndex>,
}

impl Locks {
    /// The lock with this key.
    pub fn of(&mut self, key: LockKey, class: &str) -> LockIndex {
        if let Some(known) = self.by_key.get(&key) {
            return *known;
        }
        let index = LockIndex(self.locks.len());
        self.locks.push(Lock { key: key.clone(), class: class.to_owned() });
        self.by_key.insert(key, index);
        index
    }

    /// The lock with this key, if there is one.
    pub fn find(&self, key: &LockKey) -> Option<LockIndex> {
        self.by_key.get(key).copied()
    }

    /// Makes a key another name of a lock.
    pub(crate) fn alias(&mut self, key: LockKey, lock: LockIndex) {
        self.by_key.entry(key).or_insert(lock);
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.locks.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.locks.is_empty()
    }
}

impl std::ops::Index<LockIndex> for Locks {
    type Output = Lock;

    fn index(&self, index: LockIndex) -> &Lock {
        &self.locks[index.0]
    }
}

impl std::ops::Index<ThreadIndex> for Dump {
    type Output = Thread;

    fn index(&self, index: ThreadIndex) -> &Thread {
        &self.threads[index.0]
    }
}

/// How a thread holds a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Owned {
    /// What it holds.
    pub lock: LockIndex,
    /// In which frame it has entered the monitor; `None` of a `java.util.concurrent` lock.
    pub frame: Option<usize>,
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wait {
    /// How.
    pub kind: WaitKind,
    /// For which lock; `None` if the JVM does not say.
    pub lock: Option<LockIndex>,
    /// In which frame.
    pub frame: usize,
}

/// How a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// To enter a monitor.
    Enter,
    /// To enter a monitor again, behind `Object.wait`.
    Reenter,
    /// For a notification.
    Notification,
    /// For a `java.util.concurrent` lock, or anything else that threads park for.
    Park,
    /// Until another thread has initialised a class.
    Initialisation,
}

impl WaitKind {
    /// For machines.
    pub fn name(self) -> &'static str {
        match self {
            WaitKind::Enter => "monitor",
            WaitKind::Reenter => "monitor-after-wait",
            WaitKind::Notification => "notification",
            WaitKind::Park => "park",
            WaitKind::Initialisation => "class-initialisation",
        }
    }
}

/// A thread of a deadlock that the JVM has found. The next one of the list, or of its last the first, holds what it waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundWait {
    /// The thread's name.
    pub name: String,
    /// The address of what it waits for.
    pub address: Option<u64>,
}

#[cfg(test)]
mod tests;
