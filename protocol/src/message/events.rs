//! What happens in a JVM, told as it happens ([`Command::Tell`](super::Command::Tell)).

use serde::{Deserialize, Serialize};

/// What is told of, or not, together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// Collections of garbage.
    Gc,
    /// Classes loaded and unloaded.
    Classes,
    /// Threads started and ended.
    Threads,
    /// Waits for monitors.
    Monitors,
    /// Methods compiled, and compiled code discarded.
    Compile,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 5] = [Kind::Gc, Kind::Classes, Kind::Threads, Kind::Monitors, Kind::Compile];
}

/// Some kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kinds(u8);

impl Kinds {
    /// All of them.
    pub fn all() -> Kinds {
        Kind::ALL.into_iter().fold(Kinds::default(), Kinds::with)
    }

    /// These, and this one.
    #[must_use]
    pub fn with(self, kind: Kind) -> Kinds {
        Kinds(self.0 | bit(kind))
    }

    /// These, but for this one.
    #[must_use]
    pub fn without(self, kind: Kind) -> Kinds {
        Kinds(self.0 & !bit(kind))
    }

    /// Whether this one is among them.
    pub fn has(self, kind: Kind) -> bool {
        self.0 & bit(kind) != 0
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn each(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.has(*kind))
    }
}

fn bit(kind: Kind) -> u8 {
    1 << kind as u8
}

impl FromIterator<Kind> for Kinds {
    fn from_iter<I: IntoIterator<Item = Kind>>(kinds: I) -> Kinds {
        kinds.into_iter().fold(Kinds::default(), Kinds::with)
    }
}

/// What an event is counted as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Sort {
    /// [`What::Collection`].
    Collection,
    /// [`What::ClassLoad`].
    ClassLoad,
    /// [`What::ClassUnload`].
    ClassUnload,
    /// [`What::ThreadStart`].
    ThreadStart,
    /// [`What::ThreadEnd`].
    ThreadEnd,
    /// [`What::Wait`].
    Wait,
    /// [`What::Compilation`].
    Compilation,
    /// [`What::Discard`].
    Discard,
}

impl Sort {
    /// All of them, each at the place of its number.
    pub const ALL: [Sort; 8] = [
        Sort::Collection,
        Sort::ClassLoad,
        Sort::ClassUnload,
        Sort::ThreadStart,
        Sort::ThreadEnd,
        Sort::Wait,
        Sort::Compilation,
        Sort::Discard,
    ];
}

/// What this JVM can tell of what has been switched on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Telling {
    /// `System.nanoTime()`, now.
    pub now_ns: i64,
    /// It tells of classes that are unloaded; so it does if classes are not on.
    pub has_unloads: bool,
    /// It says why it collects and how much is in use; so it does if collections are not on.
    pub has_pools: bool,
}

/// What has happened since the last time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Happened {
    /// The methods that the events name by their place here.
    pub methods: Vec<Named>,
    /// In order of time, as far as it is known by now.
    pub events: Vec<JvmEvent>,
    /// There was no room for so many others.
    pub left_out: Vec<(Sort, u64)>,
}

/// A method.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Named {
    /// Its class, as Java writes it; empty, if that is gone.
    pub class: String,
    /// Its name.
    pub name: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmEvent {
    /// When, or when it began, by `System.nanoTime()`.
    pub time_ns: i64,
    /// What happened.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// The JVM was stopped to collect garbage.
    Collection {
        /// For so long, without the time that threads took to stop.
        duration_ns: u64,
        /// Why, if the JVM says.
        cause: Option<String>,
        /// Which of its collectors it was, if it says.
        collector: Option<String>,
        /// What was in use.
        pools: Vec<Pool>,
    },
    /// A class was loaded.
    ClassLoad {
        /// As Java writes it.
        class: String,
        /// The class of its loader; `None`: the JVM's own.
        loader: Option<String>,
        /// Who loaded it.
        thread: Thread,
        /// Where.
        stack: Vec<StackFrame>,
    },
    /// A class was unloaded.
    ClassUnload {
        /// As Java writes it.
        class: String,
    },
    /// A platform thread began.
    ThreadStart {
        /// Which.
        thread: Thread,
        /// It does not keep the JVM from ending.
        is_daemon: bool,
    },
    /// It is about to end.
    ThreadEnd {
        /// Which.
        thread: Thread,
    },
    /// A thread has entered a monitor that it had to wait for.
    Wait {
        /// For so long.
        duration_ns: u64,
        /// The object's class.
        class: String,
        /// Who waited.
        thread: Thread,
        /// Where.
        stack: Vec<StackFrame>,
        /// Who had it when the wait began, if that was asked for.
        owner: Option<Owner>,
    },
    /// A method was compiled.
    Compilation {
        /// Which, by its place in [`Happened::methods`].
        method: u32,
        /// The size of its code.
        bytes: u32,
    },
    /// Compiled code was discarded.
    Discard {
        /// Of this method.
        method: u32,
    },
}

impl What {
    /// What it is counted as.
    pub fn sort(&self) -> Sort {
        match self {
            What::Collection { .. } => Sort::Collection,
            What::ClassLoad { .. } => Sort::ClassLoad,
            What::ClassUnload { .. } => Sort::ClassUnload,
            What::ThreadStart { .. } => Sort::ThreadStart,
            What::ThreadEnd { .. } => Sort::ThreadEnd,
            What::Wait { .. } => Sort::Wait,
            What::Compilation { .. } => Sort::Compilation,
            What::Discard { .. } => Sort::Discard,
        }
    }
}

/// A part of the heap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pool {
    /// As the JVM calls it.
    pub name: String,
    /// In use before, in bytes; `None` before the JVM has said so for the first time.
    pub before: Option<u64>,
    /// In use after, in bytes.
    pub after: u64,
}

/// A thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Thread {
    /// `Thread.threadId()`.
    pub id: i64,
    /// As the program has named it: anything.
    pub name: String,
}

/// Who has a monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The thread.
    pub thread: Thread,
    /// Where it was.
    pub stack: Vec<StackFrame>,
}

/// A call on a stack; the innermost is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// Of which method, by its place in [`Happened::methods`].
    pub method: u32,
    /// At which line, if that is known.
    pub line: Option<u16>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_a_set() {
        let some: Kinds = [Kind::Gc, Kind::Monitors].into_iter().collect();
        assert_eq!(some.each().collect::<Vec<_>>(), [Kind::Gc, Kind::Monitors]);
        assert_eq!(some.with(Kind::Gc), some);
        assert!(some.without(Kind::Gc).without(Kind::Monitors).is_empty());
        assert_eq!(Kind::ALL.into_iter().fold(Kinds::all(), Kinds::without), Kinds::default());
    }

    #[test]
    fn a_sort_is_at_the_place_of_its_number() {
        assert!(Sort::ALL.iter().enumerate().all(|(place, sort)| *sort as usize == place));
    }
}
