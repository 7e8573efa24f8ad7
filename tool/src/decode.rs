//! From event words to calling context trees: the simulated stacks of the target's threads.
//!
//! Entering a callee stops its caller's clock (JFluid 5.3): the time between two events of a thread belongs to the method that
//! is on top of its stack between them, less the pauses that lie there.
//!
//! The simulated stack heals where words are missing: an exit closes all frames above its method's (a super constructor
//! that threw has left no exit of its own; nor has a method that a detach tore), an exit of a method that is not on the stack is ignored,
//! and a root that is entered from outside finds the stack empty. How often that happened is counted.

use headwater_protocol::word::{Event, PauseReason};
use headwater_protocol::{MethodId, ThreadId};
use rustc_hash::FxHashMap;

use crate::cct::{Cct, NodeId};

#[cfg(test)]
mod tests;

/// How to decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOptions {
    /// Count only so many root invocations, the first ones, and nothing of the others.
    pub root_limit: Option<u64>,
}

/// How far a chunk has been decoded: its current thread and its time base.
#[derive(Clone, Debug)]
pub struct ChunkCursor {
    thread: ThreadId,
    base_ns: i64,
}

impl ChunkCursor {
    /// At a chunk's first word.
    pub fn new(thread: ThreadId, base_ns: i64) -> ChunkCursor {
        ChunkCursor { thread, base_ns }
    }
}

/// Time that threads stood still on our account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseTotal {
    /// How often.
    pub count: u64,
    /// How long altogether.
    pub duration_ns: u64,
}

/// Builds a tree for each thread.
#[derive(Debug)]
pub struct Decoder {
    options: DecodeOptions,
    threads: Vec<Thread>,
    by_id: FxHashMap<ThreadId, usize>,
    latest: usize,
    events: u64,
    healed: u64,
    unknown: u64,
    roots_entered: u64,
    roots_completed: u64,
    pauses: [PauseTotal; PauseReason::ALL.len()],
}

#[derive(Debug)]
struct Thread {
    id: ThreadId,
    tree: Cct,
    stack: Vec<NodeId>,
    /// Time of the latest event, on the thread's clock.
    last_ns: i64,
    /// Pauses since then.
    paused_ns: u64,
    /// Inside a root invocation that is beyond the limit.
    skipping: bool,
}

impl Thread {
    /// Gives the time since the latest event to the method that had it.
    #[inline]
    fn advance(&mut self, now_ns: i64) {
        if let Some(top) = self.stack.last() {
            let elapsed = u64::try_from(now_ns - self.last_ns).unwrap_or(0);
            self.tree.node_mut(*top).self_measured_ns += elapsed.saturating_sub(self.paused_ns);
        }
        self.paused_ns = 0;
        self.last_ns = now_ns;
    }
}

impl Decoder {
    /// Nothing decoded yet.
    pub fn new(options: DecodeOptions) -> Decoder {
        Decoder {
            options,
            threads: Vec::new(),
            by_id: FxHashMap::default(),
            latest: 0,
            events: 0,
            healed: 0,
            unknown: 0,
            roots_entered: 0,
            roots_completed: 0,
            pauses: Default::default(),
        }
    }

    /// Decodes words of a chunk, from where the cursor stands. A thread's chunks must come in the order of their claims.
    pub fn words(&mut self, cursor: &mut ChunkCursor, words: &[u64]) {
        let mut index = self.thread_index(cursor.thread);
        for &word in words {
            let at = |time_ns: u64| cursor.base_ns.wrapping_add(time_ns as i64);
            match Event::decode(word) {
                Some(Event::Enter { method, time_ns, root: false }) => self.enter(index, method, at(time_ns)),
                Some(Event::Exit { method, time_ns, thrown }) => self.exit(index, method, at(time_ns), thrown),
                Some(Event::Enter { method, time_ns, root: true }) => self.root(index, method, at(time_ns)),
                Some(Event::Pause { reason, duration_ns }) => self.pause(index, reason, duration_ns),
                Some(Event::Thread { thread }) => {
                    cursor.thread = thread;
                    index = self.thread_index(thread);
                }
                None => self.unknown += 1,
            }
        }
    }

    fn thread_index(&mut self, id: ThreadId) -> usize {
        if self.threads.get(self.latest).is_some_and(|thread| thread.id == id) {
            return self.latest;
        }
        self.latest = *self.by_id.entry(id).or_insert_with(|| {
            self.threads.push(Thread {
                id,
                tree: Cct::new(),
                stack: Vec::new(),
                last_ns: 0,
                paused_ns: 0,
                skipping: false,
            });
            self.threads.len() - 1
        });
        self.latest
    }

    #[inline]
    fn enter(&mut self, index: usize, method: MethodId, now_ns: i64) {
        let thread = &mut self.threads[index];
        if thread.skipping {
            return;
        }
        self.events += 1;
        let Some(&top) = thread.stack.last() else {
            // The root's own entry was lost. What is below an unknown caller has no place in the tree.
            self.healed += 1;
            return;
        };
        thread.advance(now_ns);
        let node = thread.tree.child(top, method);
        thread.tree.node_mut(node).calls += 1;
        thread.stack.push(node);
    }

    fn root(&mut self, index: usize, method: MethodId, now_ns: i64) {
        let thread = &mut self.threads[index];
        if !thread.stack.is_empty() {
            self.healed += thread.stack.len() as u64;
            thread.stack.clear();
            self.roots_completed += 1;
        }
        thread.skipping = self.options.root_limit.is_some_and(|limit| self.roots_entered >= limit);
        if thread.skipping {
            return;
        }
        self.events += 1;
        self.roots_entered += 1;
        thread.paused_ns = 0;
        thread.last_ns = now_ns;
        let node = thread.tree.child(NodeId::TOP, method);
        thread.tree.node_mut(node).calls += 1;
        thread.stack.push(node);
    }

    #[inline]
    fn exit(&mut self, index: usize, method: MethodId, now_ns: i64, thrown: bool) {
        let thread = &mut self.threads[index];
        if thread.skipping {
            return;
        }
        self.events += 1;
        thread.advance(now_ns);
        let matches = thread.stack.last().is_some_and(|top| thread.tree.node(*top).method == method);
        if !matches && !self.heal(index, method) {
            return;
        }
        let thread = &mut self.threads[index];
        if let Some(node) = thread.stack.pop() {
            thread.tree.node_mut(node).thrown += u64::from(thrown);
        }
        if thread.stack.is_empty() {
            self.roots_completed += 1;
        }
    }

    /// Closes the frames above the method's latest; whether there is one.
    #[cold]
    fn heal(&mut self, index: usize, method: MethodId) -> bool {
        let thread = &mut self.threads[index];
        match thread.stack.iter().rposition(|node| thread.tree.node(*node).method == method) {
            Some(place) => {
                self.healed += (thread.stack.len() - place - 1) as u64;
                thread.stack.truncate(place + 1);
                true
            }
            None => {
                self.healed += 1;
                false
            }
        }
    }

    #[cold]
    fn pause(&mut self, index: usize, reason: Option<PauseReason>, duration_ns: u64) {
        let thread = &mut self.threads[index];
        if thread.skipping {
            return;
        }
        thread.paused_ns += duration_ns;
        match reason {
            Some(reason) => {
                let total = &mut self.pauses[reason.number() as usize];
                total.count += 1;
                total.duration_ns += duration_ns;
            }
            None => self.unknown += 1,
        }
    }

    /// Recording ended at this time: methods that are still open get their time up to then.
    pub fn finish(&mut self, now_ns: i64) {
        for thread in &mut self.threads {
            thread.advance(now_ns);
        }
    }

    /// The threads that were inside a root, with their trees.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &Cct)> {
        self.threads.iter().filter(|thread| !thread.tree.is_empty()).map(|thread| (thread.id, &thread.tree))
    }

    /// Frames that are open.
    pub fn open_frames(&self) -> u64 {
        self.threads.iter().map(|thread| thread.stack.len() as u64).sum()
    }

    /// Root invocations that were counted.
    pub fn roots_entered(&self) -> u64 {
        self.roots_entered
    }

    /// Root invocations that are complete.
    pub fn roots_completed(&self) -> u64 {
        self.roots_completed
    }

    /// Entries and exits that were counted.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Frames that had to be closed, and exits that had to be ignored, because their counterpart was missing.
    pub fn healed(&self) -> u64 {
        self.healed
    }

    /// Words that mean nothing.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// How long threads stood still for one reason.
    pub fn pauses(&self, reason: PauseReason) -> PauseTotal {
        self.pauses[reason.number() as usize]
    }
}
