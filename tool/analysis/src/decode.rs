//! From event words to calling context trees: the simulated stacks of the target's threads.
//!
//! Entering a callee stops its caller's clock (JFluid 5.3): the time between two events of a thread belongs to the method that
//! is on top of its stack between them, less the pauses that lie there.
//!
//! The simulated stack heals where words are missing: an exit closes all frames above its method's (a super constructor
//! that threw has left no exit of its own; nor has a method that a detach tore), an exit of a method that is not on the stack is ignored,
//! and a root that is entered from outside finds the stack empty. How often that happened is counted.
//!
//! A virtual thread writes into the chunks of whatever carriers it runs on, so its words come in pieces, its *runs*, and not in
//! their order. When a run begins, all before it are complete in memory; when all chunks have been read once more after that, they
//! have been seen. So a run is held back until then.

use headwater_protocol::word::{Counter, Event, KIND_SHIFT, KIND_THREAD, PauseReason, Run};
use headwater_protocol::{MethodId, ThreadId};
use rustc_hash::FxHashMap;

use crate::cct::{Cct, NodeId};

mod controls;
mod counts;
mod invocations;
mod runs;
mod samples;
mod scheduled;
#[cfg(test)]
mod tests;
mod thread;
mod unknown;

pub use controls::Controls;
pub use counts::Load;
use counts::Loads;
pub use invocations::{Invocations, PairCost, Statistics, Summary};
pub use scheduled::Scheduled;
pub use thread::open_calls::Returned;
pub use thread::partial::Partial;

use counts::Collections;
use invocations::Recorder;
use thread::Thread;
use thread::handover::Handovers;
use thread::partial::Recorded;

/// How to decode.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecodeOptions {
    /// Count only so many root invocations, the first ones, and nothing of the others.
    pub root_limit: Option<u64>,
    /// Which invocations are recorded singly.
    pub statistics: Statistics,
    /// What events' times count from.
    pub time_base: TimeBase,
}

/// What events' times count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeBase {
    /// All of them from the same moment.
    #[default]
    System,
    /// A platform thread's own, as its CPU time is. A virtual thread's runs each have that of its carrier: what lies between two
    /// runs cannot be known, and is nobody's.
    Carrier,
}

/// How far a chunk has been decoded: its current thread and its time base.
#[derive(Clone, Debug)]
pub struct ChunkCursor {
    /// Whose chunk it is.
    owner: ThreadId,
    thread: ThreadId,
    run: Option<Run>,
    base_ns: i64,
}

impl ChunkCursor {
    /// At a chunk's first word.
    pub fn new(thread: ThreadId, base_ns: i64) -> ChunkCursor {
        ChunkCursor { owner: thread, thread, run: None, base_ns }
    }
}

/// Time that threads were held up on our account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PauseTotal {
    /// How often.
    pub count: u64,
    /// How long altogether.
    pub duration_ns: u64,
}

/// Builds a tree for each thread.
#[derive(Clone, Debug)]
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
    controls: FxHashMap<MethodId, Controls>,
    recorder: Recorder,
    handovers: Handovers,
    scheduled: Scheduled,
    collections: Collections,
    loads: Loads,
    /// How often all chunks have been read.
    pass: u64,
    /// Threads with runs that are held.
    waiting: Vec<usize>,
    /// By the numbers of carriers: the virtual thread that wrote last on each.
    carried: FxHashMap<ThreadId, ThreadId>,
    /// Of virtual threads that have been forgotten.
    folded: Cct,
    /// With more threads, virtual ones are forgotten.
    fold_at: usize,
}

/// Stands for all virtual threads that are not told apart any more. The JVM's numbers begin with 1.
pub const FOLDED: ThreadId = ThreadId(0);
/// So many threads are told apart, if there are so many.
const FOLD_AT: usize = 20_000;

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
            controls: FxHashMap::default(),
            recorder: Recorder::default(),
            handovers: Handovers::default(),
            scheduled: Scheduled::default(),
            collections: Collections::default(),
            loads: Loads::default(),
            pass: 0,
            waiting: Vec::new(),
            carried: FxHashMap::default(),
            folded: Cct::new(),
            fold_at: FOLD_AT,
        }
    }

    /// Takes words of a chunk, from where the cursor stands. A thread's own chunks must come in the order of their claims.
    pub fn words(&mut self, cursor: &mut ChunkCursor, words: &[u64]) {
        let mut rest = words;
        while !rest.is_empty() {
            let index = self.thread_index(cursor.thread);
            rest = if self.threads[index].run == cursor.run {
                self.decode(index, cursor.base_ns, rest)
            } else {
                let end = rest.iter().position(|word| word >> KIND_SHIFT == KIND_THREAD).unwrap_or(rest.len());
                let (held, behind) = rest.split_at(end);
                self.hold(index, cursor, held);
                behind
            };
            let Some((&word, behind)) = rest.split_first() else { return };
            if let Some(Event::Thread { thread, run }) = Event::decode(word) {
                (cursor.thread, cursor.run) = (thread, run);
                run.inspect(|_| self.ride(thread, cursor.owner));
            }
            rest = behind;
        }
    }

    /// Decodes a thread's words up to a change of the thread; what is left from there on.
    fn decode<'a>(&mut self, index: usize, base_ns: i64, words: &'a [u64]) -> &'a [u64] {
        if self.threads[index].waiting.is_some() {
            return self.keep(index, base_ns, words);
        }
        self.restart(index, base_ns, words);
        let mut rest = words;
        loop {
            let (thread, statistics) = (&mut self.threads[index], self.options.statistics);
            let times = (base_ns, self.collections.next_ns(thread.collections));
            let (followed, events) = match statistics {
                Statistics::Off => thread.follow::<false>(times, rest, statistics, &mut self.recorder),
                _ => thread.follow::<true>(times, rest, statistics, &mut self.recorder),
            };
            self.events += events;
            rest = &rest[followed..];
            let Some((&word, behind)) = rest.split_first() else { return rest };
            let at = |time_ns: u64| base_ns.wrapping_add(time_ns as i64);
            let event = Event::decode(word);
            if let Some(time_ns) = event.and_then(Event::time_ns) {
                self.pass_collections(index, at(time_ns));
            }
            match event {
                Some(Event::Enter { method, time_ns, root: false }) => self.enter(index, method, at(time_ns)),
                Some(Event::Exit { method, time_ns, thrown }) => self.exit(index, method, at(time_ns), thrown),
                Some(Event::Enter { method, time_ns, root: true }) => self.root(index, method, at(time_ns)),
                Some(Event::Pause { reason, duration_ns }) => self.pause(index, reason, duration_ns),
                Some(Event::Count { counter, value }) => self.count(index, counter, value),
                Some(Event::Wait { wait, begins, time_ns }) => self.wait(index, wait, begins, at(time_ns)),
                Some(Event::Control { method, duration_ns }) => self.control(method, duration_ns),
                Some(Event::Handover { what, link }) => {
                    if !self.hand_over(index, what, link) {
                        return self.keep(index, base_ns, behind);
                    }
                }
                Some(Event::Thread { .. }) => return rest,
                None => self.unknown += 1,
            }
            rest = behind;
        }
    }

    /// Keeps the words of a thread that waits; what is left from the next change of the thread on.
    fn keep<'a>(&mut self, index: usize, base_ns: i64, words: &'a [u64]) -> &'a [u64] {
        let end = words.iter().position(|word| word >> KIND_SHIFT == KIND_THREAD).unwrap_or(words.len());
        let (own, behind) = words.split_at(end);
        if !own.is_empty() {
            self.threads[index].keep(base_ns, own);
        }
        behind
    }

    /// Where a thread's clock is another one from here on, it restarts at its first event.
    fn restart(&mut self, index: usize, base_ns: i64, words: &[u64]) {
        let thread = &mut self.threads[index];
        if !thread.restarts {
            return;
        }
        let own = words.iter().take_while(|word| **word >> KIND_SHIFT != KIND_THREAD);
        if let Some(time_ns) = own.copied().filter_map(Event::decode).find_map(Event::time_ns) {
            thread.last_ns = base_ns.wrapping_add(time_ns as i64);
            thread.restarts = false;
        }
    }

    fn thread_index(&mut self, id: ThreadId) -> usize {
        if self.threads.get(self.latest).is_some_and(|thread| thread.id == id) {
            return self.latest;
        }
        self.latest = *self.by_id.entry(id).or_insert_with(|| {
            self.threads.push(Thread::new(id));
            self.threads.len() - 1
        });
        self.latest
    }

    fn enter(&mut self, index: usize, method: MethodId, now_ns: i64) {
        let thread = &mut self.threads[index];
        if thread.skipping {
            return;
        }
        self.events += 1;
        thread.bytecodes = 0;
        thread.close_returned(now_ns);
        let callee = if !thread.is_outside() {
            let elapsed = thread.elapsed(now_ns);
            thread.open.advance(elapsed);
            thread.count_waits(elapsed);
            thread.tree.call(thread.top, method, elapsed)
        } else if thread.base != NodeId::TOP {
            let callee = thread.tree.handed_child(thread.base, method);
            thread.tree.node_mut(callee).calls += 1;
            callee
        } else {
            // The root's own entry was lost. What is below an unknown caller has no place in the tree.
            self.healed += 1;
            return;
        };
        if self.options.statistics != Statistics::Off {
            thread.open.enter(method, self.options.statistics);
        }
        thread.moved_to(callee, now_ns);
    }

    fn root(&mut self, index: usize, method: MethodId, now_ns: i64) {
        let thread = &mut self.threads[index];
        thread.close_returned(now_ns);
        if thread.before.call_root() {
            return self.enter(index, method, now_ns);
        }
        thread.close_open(0, now_ns);
        if thread.base != NodeId::TOP {
            // The end of what it ran was lost.
            self.healed += thread.leave_all();
        } else if !thread.is_outside() {
            let torn = thread.depth();
            self.healed += torn;
            thread.open.heal(torn);
            thread.waits.clear();
            self.roots_completed += u64::from(thread.end_call() == Recorded::Whole);
            thread.top = NodeId::TOP;
        }
        thread.skipping = self.options.root_limit.is_some_and(|limit| self.roots_entered >= limit);
        if thread.skipping {
            return;
        }
        self.events += 1;
        thread.bytecodes = 0;
        self.roots_entered += 1;
        let called = thread.tree.child(NodeId::TOP, method);
        thread.tree.node_mut(called).calls += 1;
        if self.options.statistics != Statistics::Off {
            thread.open.enter(method, self.options.statistics);
        }
        thread.moved_to(called, now_ns);
    }

    fn exit(&mut self, index: usize, method: MethodId, now_ns: i64, thrown: bool) {
        let thread = &mut self.threads[index];
        if thread.skipping {
            return;
        }
        self.events += 1;
        let bytecodes = std::mem::take(&mut thread.bytecodes);
        thread.close_returned(now_ns);
        if thread.exit_open(method, now_ns) {
            return;
        }
        thread.advance(now_ns);
        let Some((left, above)) = thread.innermost(method) else {
            self.healed += 1;
            return;
        };
        // A constructor whose superclass's constructor threw has left no exit of its own; nor has what a detach tore.
        self.healed += above;
        thread.open.heal(above);
        if let Some(invocation) = thread.open.leave(self.options.statistics) {
            self.recorder.record(method, invocation);
        }
        if thrown {
            thread.tree.add_thrown(left);
        }
        thread.tree.add_count(left, Counter::Bytecodes, bytecodes);
        thread.leave_waits(left);
        thread.top = thread.tree.parent(left).unwrap_or(NodeId::TOP);
        if thread.top == NodeId::TOP {
            self.roots_completed += u64::from(thread.end_call() == Recorded::Whole);
            thread.begin_open(now_ns);
        }
    }

    #[cold]
    fn pause(&mut self, index: usize, reason: Option<PauseReason>, duration_ns: u64) {
        let thread = &mut self.threads[index];
        if thread.skipping {
            return;
        }
        thread.paused_ns += duration_ns;
        // It may have waited for us.
        thread.sampled = None;
        match reason {
            Some(reason) => {
                let total = &mut self.pauses[reason.number() as usize];
                total.count += 1;
                total.duration_ns += duration_ns;
            }
            None => self.unknown += 1,
        }
    }

    /// Recording ended at this time: methods that are still open get their time up to then, if that is on their clock.
    pub fn finish(&mut self, now_ns: i64) {
        // Everything has been read: there are no runs but those that are held.
        for index in std::mem::take(&mut self.waiting) {
            self.follow_runs(index, u64::MAX);
        }
        self.follow_waiting(true);
        for index in 0..self.threads.len() {
            self.pass_collections(index, now_ns);
        }
        for thread in &mut self.threads {
            thread.count_sample();
            if self.options.time_base == TimeBase::System {
                thread.close_returned(now_ns);
                thread.advance(now_ns);
            }
        }
    }

    /// Recording was interrupted at this time: open methods end here, and whoever comes back does so by a root.
    pub fn interrupt(&mut self, now_ns: i64) {
        self.finish(now_ns);
        for thread in &mut self.threads {
            thread.leave_all();
            thread.skipping = false;
            thread.before.interrupt();
        }
        self.forget_handovers();
    }

    /// Forgets all counts and times up to this one. Open methods stay open: they have time from now on, but their calls
    /// were before.
    pub fn clear(&mut self, now_ns: i64) {
        for thread in &mut self.threads {
            if self.options.time_base == TimeBase::System {
                // Words may be younger than the request to forget them.
                thread.advance(now_ns.max(thread.last_ns));
            }
            let old = std::mem::take(&mut thread.tree);
            thread.sampled = None;
            thread.collections = 0;
            thread.open.forget();
            let mut nodes = Vec::new();
            let path = old.path(thread.top);
            for length in 1..=path.len() {
                nodes.push(thread.tree.follow(&path[..length]));
            }
            thread.top = nodes.last().copied().unwrap_or(NodeId::TOP);
            thread.base = thread.tree.follow(&old.path(thread.base));
            for before in &mut thread.outer {
                before.base = thread.tree.follow(&old.path(before.base));
            }
            thread.move_waits(&old, &nodes);
            thread.before.moved(&nodes);
            thread.ended.clear();
            thread.began = None;
            if thread.base == NodeId::TOP && !thread.is_outside() {
                thread.begin_part();
            }
        }
        *self = Decoder {
            options: self.options,
            threads: std::mem::take(&mut self.threads),
            by_id: std::mem::take(&mut self.by_id),
            latest: self.latest,
            pass: self.pass,
            waiting: std::mem::take(&mut self.waiting),
            carried: std::mem::take(&mut self.carried),
            handovers: std::mem::take(&mut self.handovers),
            ..Decoder::new(self.options)
        };
    }

    /// The invocations of each method, if they are recorded singly; of all threads.
    pub fn invocations(&self) -> impl Iterator<Item = (MethodId, &Invocations)> {
        self.recorder.all()
    }

    /// The threads that were inside a root, with their trees.
    pub fn threads(&self) -> impl Iterator<Item = (ThreadId, &Cct)> {
        let single = self.threads.iter().map(|thread| (thread.id, &thread.tree));
        single.chain([(FOLDED, &self.folded)]).filter(|(_, tree)| !tree.is_empty())
    }

    /// Threads that are in a root, and calls that are open there.
    pub fn open_frames(&self) -> [u64; 2] {
        let depths = || self.threads.iter().map(Thread::depth).filter(|depth| *depth > 0);
        [depths().count() as u64, depths().sum()]
    }

    /// Root invocations that were counted.
    pub fn roots_entered(&self) -> u64 {
        self.roots_entered
    }

    /// Root invocations that are complete.
    pub fn roots_completed(&self) -> u64 {
        self.roots_completed
    }

    /// Whether no call of a root was recorded from its beginning to its end: what is not in the recording may only not have had its turn.
    pub fn is_partial(&self) -> bool {
        self.roots_completed == 0
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

    /// How long threads were held up for one reason.
    pub fn pauses(&self, reason: PauseReason) -> PauseTotal {
        self.pauses[reason.number() as usize]
    }
}
