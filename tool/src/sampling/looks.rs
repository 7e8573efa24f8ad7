//! Looks at all threads: what each does and where, at a safepoint.
//!
//! What a thread waits in is in no execution sample. A dump of the JVM's own has it, and the stacks of threads in native code.

use std::time::{Duration, Instant};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::attach::{self, TargetHost};
use crate::thread_dump::pace::{Pace, longest_pause};
use crate::threads::activity::{Activity, activity};
use crate::threads::{Dump, Kind, Thread, read};

/// Between two looks, at least.
const EVERY: Duration = Duration::from_millis(100);

/// A thread that was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SeenThread {
    /// As the program calls it.
    pub(super) name: String,
    /// It has no Java stack: a collector, a compiler.
    pub(super) is_jvms: bool,
}

/// The pool that a thread of this name is of.
fn pool(thread: &str) -> Option<&str> {
    thread.split_once("-worker-").map(|(pool, _)| pool)
}

/// What a thread did at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Glimpse {
    /// In ns since 1970.
    pub(super) at_ns: i64,
    /// The operating system's number, as the JVM knows it.
    pub(super) thread: u32,
    /// What it did.
    pub(super) activity: Activity,
    /// Where: an index into [`Looks::stacks`].
    pub(super) stack: usize,
}

/// All looks.
#[derive(Debug, Default)]
pub(super) struct Looks {
    /// Methods without parameters, and lines; 0 where it is not known.
    pub(super) frames: Vec<(String, u32)>,
    known_frames: FxHashMap<(String, u32), usize>,
    /// Indices into `frames`, the outermost first. Each once.
    pub(super) stacks: Vec<Vec<usize>>,
    known_stacks: FxHashMap<Vec<usize>, usize>,
    pub(super) glimpses: Vec<Glimpse>,
    /// When each was, in ns since 1970.
    pub(super) at_ns: Vec<i64>,
    /// For how long the JVM was stopped, each time, at most.
    pub(super) pauses: Vec<Duration>,
    /// By their numbers.
    pub(super) threads: FxHashMap<u32, SeenThread>,
    /// Pools whose threads were seen to run virtual threads.
    carriers: FxHashSet<String>,
    /// Why there are no more.
    pub(super) failed: Option<String>,
}

impl Looks {
    /// Adds what is to be seen of a JVM's threads.
    pub(super) fn add(&mut self, dump: &Dump, at_ns: i64) {
        self.at_ns.push(at_ns);
        self.name(&dump.threads);
        let carried: FxHashMap<u64, &Thread> = dump
            .threads
            .iter()
            .filter(|thread| thread.kind == Kind::Virtual && !thread.stack.is_empty())
            .filter_map(|thread| Some((thread.mount?, thread)))
            .collect();
        for thread in dump.threads.iter().filter(|thread| thread.kind == Kind::Java) {
            let Some(number) = thread.os_id else { continue };
            let at_work = thread.java_id.and_then(|id| carried.get(&id).copied()).unwrap_or(thread);
            if at_work.stack.is_empty() {
                continue;
            }
            let stack = self.stack(at_work);
            let activity = activity(at_work);
            self.glimpses.push(Glimpse { at_ns, thread: number, activity, stack });
        }
    }

    /// Learns what threads are called.
    pub(super) fn name(&mut self, threads: &[Thread]) {
        for thread in threads.iter().filter(|thread| thread.kind != Kind::Virtual) {
            let Some(number) = thread.os_id else { continue };
            // Compilers are Java threads to the JVM, without a stack. The program's have none while they begin and end.
            let had_stack = self.threads.get(&number).is_some_and(|known| known.name == thread.name && !known.is_jvms);
            let is_jvms = thread.kind != Kind::Java || thread.stack.is_empty() && !had_stack;
            self.threads.insert(number, SeenThread { name: thread.name.clone(), is_jvms });
            if let Some(pool) = pool(&thread.name).filter(|_| thread.mount.is_some()) {
                self.carriers.insert(pool.to_owned());
            }
        }
    }

    /// Whether a thread runs virtual threads: one of its pool was seen to, or, where none was, it is of the pool that comes first.
    pub(super) fn is_carrier(&self, number: u32) -> bool {
        let pool = self.threads.get(&number).and_then(|known| pool(&known.name));
        pool.is_some_and(|pool| match self.carriers.is_empty() {
            true => pool == "ForkJoinPool-1",
            false => self.carriers.contains(pool),
        })
    }

    fn stack(&mut self, thread: &Thread) -> usize {
        let frame = |frame: &crate::threads::Frame| {
            let line = frame.source.rsplit_once(':').and_then(|(_, line)| line.parse().ok()).unwrap_or(0);
            (frame.method.clone(), line)
        };
        let frames: Vec<(String, u32)> = thread.stack.iter().rev().map(frame).collect();
        let stack: Vec<usize> = frames.into_iter().map(|frame| self.frame(frame)).collect();
        let next = self.stacks.len();
        *self.known_stacks.entry(stack).or_insert_with_key(|stack| {
            self.stacks.push(stack.clone());
            next
        })
    }

    fn frame(&mut self, frame: (String, u32)) -> usize {
        let next = self.frames.len();
        *self.known_frames.entry(frame).or_insert_with_key(|frame| {
            self.frames.push(frame.clone());
            next
        })
    }

    /// How long the JVM was stopped for a look: in the median, and at most.
    pub(super) fn pauses(&self) -> Option<[Duration; 2]> {
        let mut pauses = self.pauses.clone();
        pauses.sort_unstable();
        Some([*pauses.get(pauses.len() / 2)?, *pauses.last()?])
    }
}

/// Looks that go on.
pub(super) struct Looking {
    pace: Pace,
    pub(super) looks: Looks,
}

impl Looking {
    pub(super) fn begin() -> Looking {
        Looking { pace: Pace::of(EVERY), looks: Looks::default() }
    }

    /// Looks, if it is time.
    pub(super) fn look(&mut self, host: &TargetHost) {
        let begin = Instant::now();
        if self.looks.failed.is_some() || !self.pace.is_due(begin) {
            return;
        }
        match attach::thread_dump(host, "-e") {
            Ok(text) => {
                let pause = longest_pause(&text, begin.elapsed());
                self.pace.looked(pause);
                self.looks.pauses.push(pause);
                self.looks.add(&read::read(&text), crate::locks::now_ns());
            }
            Err(error) => self.looks.failed = Some(error.to_string()),
        }
    }
}
