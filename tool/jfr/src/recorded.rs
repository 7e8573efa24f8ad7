//! What a recording tells.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

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
    /// It was in native code: it may have waited there.
    pub is_native: bool,
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Machine names, `a.b.C.m(ILjava/lang/String;)V`, each once.
    pub methods: Vec<String>,
    /// In no particular order.
    pub stacks: Vec<Sample>,
}

impl Samples {
    /// Those of both.
    pub fn and(mut self, other: &Samples) -> Samples {
        let known: FxHashMap<&str, usize> =
            self.methods.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        let mut methods = Vec::new();
        let index = |name: &String| {
            known.get(name.as_str()).copied().unwrap_or_else(|| {
                methods.push(name.clone());
                known.len() + methods.len() - 1
            })
        };
        let indices: Vec<FrameIndex> = other.methods.iter().map(index).map(|index| FrameIndex(index as u32)).collect();
        let frames = |frames: &[FrameIndex]| frames.iter().map(|frame| indices[frame.0 as usize]).collect();
        self.stacks.extend(other.stacks.iter().map(|sample| Sample { frames: frames(&sample.frames), ..*sample }));
        self.methods.extend(methods);
        self
    }
}

/// A stack: an index into [`Recorded::stacks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StackIndex(pub u32);

/// A thread: an index into [`Recorded::threads`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
pub struct RecordedEvent {
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
    /// What was waited for; of an allocation its class.
    pub lock: Option<LockIndex>,
    /// Of a monitor: the thread that left it before this one entered.
    pub previous_owner: Option<ThreadIndex>,
}

/// A collection of garbage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collection {
    /// The JVM's number of it.
    pub number: i64,
    /// When it began, in ns since 1970.
    pub at_ns: i64,
    /// For how long it went on, beside the program for a part of that, in ns.
    pub duration_ns: u64,
    /// For how long it stopped the program altogether, in ns.
    pub pauses_ns: u64,
    /// For how long at most at once, in ns.
    pub longest_ns: u64,
    /// Why.
    pub cause: String,
    /// By which of the JVM's collectors: `G1New`.
    pub collector: String,
    /// How many bytes of the heap were in use before and after it, where that is told.
    pub heap: [Option<u64>; 2],
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

/// What a thread had allocated at some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// When, in ns since 1970.
    pub at_ns: i64,
    /// Which.
    pub thread: ThreadIndex,
    /// Since its start.
    pub bytes: u64,
}

/// What a recording tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// Machine names, `a.b.C.m(ILjava/lang/String;)V`, each once; an empty one of what has none. What is not Java's has its symbol.
    pub methods: Vec<String>,
    /// Where lines are asked for, that of each of these, which are there once for each line then; 0 where it is not known.
    pub lines: Vec<u32>,
    /// Each once.
    pub threads: Vec<Thread>,
    /// Each once.
    pub stacks: Vec<Stack>,
    /// Each once.
    pub locks: Vec<Lock>,
    /// In no particular order.
    pub events: Vec<RecordedEvent>,
    /// When the first chunk begins, in ns since 1970: what was before has been thrown away.
    pub begins_ns: Option<i64>,
    /// Bytes of events that were lost.
    pub lost_bytes: u64,
    /// Samples of CPU time, which the JVM had no room for.
    pub lost_samples: u64,
    /// Collections of garbage, in no particular order.
    pub collections: Vec<Collection>,
    /// How the events were recorded, each once.
    pub settings: Vec<Setting>,
    /// What threads had allocated, in no particular order.
    pub allocated: Vec<Allocated>,
    /// Which JVM.
    pub jvm: Option<JvmInformation>,
}

impl Recorded {
    /// The time of the last event that has a place, in ns since 1970.
    pub fn last_ns(&self) -> Option<i64> {
        self.events.iter().map(|event| event.at_ns).max()
    }

    /// Adds what was read later of the same recording, and may have parts of this again: events up to `since_ns` are known.
    pub fn add(&mut self, later: Recorded, since_ns: i64) {
        let methods = joined(&mut self.methods, later.methods, &mut self.lines, later.lines);
        let threads: Vec<u32> = places(&mut self.threads, later.threads);
        let frame = |frame: &FrameIndex| FrameIndex(methods[frame.0 as usize]);
        let stack = |stack: Stack| Stack { frames: stack.frames.iter().map(frame).collect(), ..stack };
        let stacks = places(&mut self.stacks, later.stacks.into_iter().map(stack));
        let locks = places(&mut self.locks, later.locks);
        let thread = |index: ThreadIndex| ThreadIndex(threads[index.0 as usize]);
        let new = later.events.into_iter().filter(|event| event.at_ns > since_ns);
        self.events.extend(new.map(|event| RecordedEvent {
            thread: thread(event.thread),
            stack: StackIndex(stacks[event.stack.0 as usize]),
            lock: event.lock.map(|lock| LockIndex(locks[lock.0 as usize])),
            previous_owner: event.previous_owner.map(thread),
            ..event
        }));
        self.allocated
            .extend(later.allocated.into_iter().map(|told| Allocated { thread: thread(told.thread), ..told }));
        // One may have been told of already, and another that began long ago just now.
        let key = |collection: &Collection| (collection.number, collection.at_ns);
        let known: FxHashSet<(i64, i64)> = self.collections.iter().map(key).collect();
        self.collections.extend(later.collections.into_iter().filter(|collection| !known.contains(&key(collection))));
        self.keep_first_and_last();
        self.lost_bytes = self.lost_bytes.saturating_add(later.lost_bytes);
        self.lost_samples = self.lost_samples.saturating_add(later.lost_samples);
        self.begins_ns = self.begins_ns.or(later.begins_ns);
        self.jvm = self.jvm.take().or(later.jvm);
    }

    /// What a thread had allocated at first and last is all that anybody asks for.
    fn keep_first_and_last(&mut self) {
        self.allocated.sort_unstable_by_key(|told| (told.thread, told.at_ns));
        let mut kept = Vec::new();
        for of_thread in self.allocated.chunk_by(|one, next| one.thread == next.thread) {
            kept.push(of_thread[0]);
            kept.extend(of_thread[1..].last());
        }
        self.allocated = kept;
    }
}

/// Where the later ones are among the former, from now on.
fn places<T: Clone + Eq + Hash>(all: &mut Vec<T>, later: impl IntoIterator<Item = T>) -> Vec<u32> {
    let mut known: FxHashMap<T, u32> = all.iter().cloned().zip(0..).collect();
    let place = |one: T| {
        *known.entry(one).or_insert_with_key(|one| {
            all.push(one.clone());
            (all.len() - 1) as u32
        })
    };
    later.into_iter().map(place).collect()
}

/// The same of methods with their lines, where lines are known.
fn joined(methods: &mut Vec<String>, later: Vec<String>, lines: &mut Vec<u32>, later_lines: Vec<u32>) -> Vec<u32> {
    let has_lines = !lines.is_empty() || !later_lines.is_empty();
    let with =
        |methods: Vec<String>, lines: Vec<u32>| methods.into_iter().zip(lines.into_iter().chain(std::iter::repeat(0)));
    let mut all: Vec<(String, u32)> = with(std::mem::take(methods), std::mem::take(lines)).collect();
    let places = places(&mut all, with(later, later_lines));
    for (method, line) in all {
        methods.push(method);
        if has_lines {
            lines.push(line);
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two samples of a thread.
    fn sampled(first_ns: i64, methods: [&str; 2], lines: &[u32]) -> Recorded {
        let event = |at: u32| RecordedEvent {
            kind: EventKind::ExecutionSample,
            at_ns: first_ns + i64::from(at),
            duration_ns: 0,
            amount: 0,
            thread: ThreadIndex(0),
            stack: StackIndex(at),
            lock: None,
            previous_owner: None,
        };
        let stack = |at: u32| Stack { frames: Arc::from([FrameIndex(at)]), is_cut: false };
        let told = |at_ns: i64| Allocated { at_ns, thread: ThreadIndex(0), bytes: at_ns as u64 };
        Recorded {
            methods: methods.map(str::to_owned).to_vec(),
            lines: lines.to_vec(),
            threads: vec![Thread { number: 7, ..Thread::default() }],
            stacks: vec![stack(0), stack(1)],
            events: vec![event(0), event(1)],
            allocated: vec![told(first_ns), told(first_ns + 9)],
            ..Recorded::default()
        }
    }

    /// When which methods were seen.
    fn seen(recorded: &Recorded) -> Vec<(i64, &str)> {
        let method = |event: &RecordedEvent| {
            let FrameIndex(frame) = recorded.stacks[event.stack.0 as usize].frames[0];
            (event.at_ns, recorded.methods[frame as usize].as_str())
        };
        recorded.events.iter().map(method).collect()
    }

    #[test]
    fn what_is_read_later_is_added_and_what_is_known_is_not() {
        let mut all = sampled(10, ["a.B.m()V", "a.B.n()V"], &[]);
        let last = all.last_ns().expect("events");
        assert_eq!(last, 11);
        all.add(sampled(11, ["a.B.n()V", "a.B.o()V"], &[]), last);
        assert_eq!(seen(&all), [(10, "a.B.m()V"), (11, "a.B.n()V"), (12, "a.B.o()V")]);
        assert_eq!((all.methods.len(), all.threads.len(), all.lines.len()), (3, 1, 0));
        // Of what was allocated the first and the last.
        assert_eq!(all.allocated.iter().map(|told| told.at_ns).collect::<Vec<_>>(), [10, 20]);
    }

    #[test]
    fn lines_stay_with_their_methods() {
        let mut all = Recorded::default();
        all.add(sampled(10, ["a.B.m()V", "a.B.m()V"], &[3, 4]), i64::MIN);
        all.add(sampled(20, ["a.B.m()V", "a.B.m()V"], &[4, 5]), 11);
        assert_eq!((all.methods.len(), &all.lines[..]), (3, &[3, 4, 5][..]));
    }
}
