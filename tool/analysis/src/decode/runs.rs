//! Virtual threads' runs, which come in pieces: held back until those before them have been seen.

use headwater_protocol::ThreadId;
use headwater_protocol::word::Run;

use super::{ChunkCursor, Decoder, FOLD_AT, TimeBase};
use crate::cct::NodeId;

/// A virtual thread's run that was seen before it was known that all before it had been.
#[derive(Clone, Debug)]
pub(super) struct HeldRun {
    pub(super) run: Run,
    /// When it was seen first.
    pub(super) pass: u64,
    pub(super) base_ns: i64,
    pub(super) words: Vec<u64>,
}

impl Decoder {
    /// A virtual thread writes on a carrier.
    pub(super) fn ride(&mut self, thread: ThreadId, carrier: ThreadId) {
        self.carried.insert(carrier, thread);
        let index = self.thread_index(thread);
        self.threads[index].carrier = Some(carrier);
    }

    /// Whether a thread is known to be virtual.
    pub fn is_virtual(&self, thread: ThreadId) -> bool {
        self.by_id.get(&thread).is_some_and(|index| self.threads[*index].run.is_some())
    }

    /// All chunks have been read once since the last time: runs that were seen before have no predecessors any more that
    /// were not.
    pub fn pass_done(&mut self) {
        for index in std::mem::take(&mut self.waiting) {
            self.follow_runs(index, self.pass);
        }
        self.follow_waiting(false);
        self.pass += 1;
        if self.threads.len() > self.fold_at {
            self.fold();
        }
    }

    /// Adds up the trees of virtual threads that are outside the roots, most of which have ended, and forgets the threads: there
    /// may be millions of them.
    fn fold(&mut self) {
        let folded = &mut self.folded;
        self.threads.retain(|thread| {
            let is_somewhere = !thread.is_outside() || thread.base != NodeId::TOP || !thread.outer.is_empty();
            let stays = thread.run.is_none() || is_somewhere || !thread.held.is_empty() || thread.waiting.is_some();
            if !stays {
                thread.tree.merge_into(folded);
            }
            stays
        });
        self.by_id = self.threads.iter().enumerate().map(|(index, thread)| (thread.id, index)).collect();
        let held = self.threads.iter().enumerate().filter(|(_, thread)| !thread.held.is_empty());
        self.waiting = held.map(|(index, _)| index).collect();
        let waiting = self.threads.iter().enumerate().filter(|(_, thread)| thread.waiting.is_some());
        self.handovers.waiting = waiting.map(|(index, _)| index).collect();
        self.latest = 0;
        self.fold_at = FOLD_AT.max(2 * self.threads.len());
    }

    /// Decodes the runs that were seen in an earlier pass, and all before them.
    pub(super) fn follow_runs(&mut self, index: usize, pass: u64) {
        let mut held = std::mem::take(&mut self.threads[index].held);
        held.sort_by(|a, b| match () {
            () if a.run == b.run => std::cmp::Ordering::Equal,
            () if a.run.is_before(b.run) => std::cmp::Ordering::Less,
            () => std::cmp::Ordering::Greater,
        });
        let due = held.iter().rposition(|run| run.pass < pass).map_or(0, |last| last + 1);
        for run in held.drain(..due) {
            self.threads[index].run = Some(run.run);
            self.threads[index].restarts = self.options.time_base == TimeBase::Carrier;
            self.decode(index, run.base_ns, &run.words);
        }
        if !held.is_empty() {
            self.waiting.push(index);
        }
        self.threads[index].held = held;
    }

    /// Keeps words of a run that has its turn later.
    pub(super) fn hold(&mut self, index: usize, cursor: &ChunkCursor, words: &[u64]) {
        let Some(run) = cursor.run else { return };
        let (base_ns, pass) = (cursor.base_ns, self.pass);
        let held = &mut self.threads[index].held;
        if held.is_empty() {
            self.waiting.push(index);
        }
        match held.iter_mut().find(|held| held.run == run) {
            Some(held) => held.words.extend(words),
            None => held.push(HeldRun { run, pass, base_ns, words: words.to_vec() }),
        }
    }
}
