//! Work that is handed from thread to thread: what a thread calls while it runs such work hangs, marked, on the node that
//! handed it over.
//!
//! A thread's tree then has the path down to that node, without calls or time of its own: these are in the tree of the thread that
//! handed over. Added up, the trees are one.
//!
//! When a thread begins to run something, the word that hands it over is in memory already, but in another thread's chunk, which may
//! be read later: then what follows waits for it. When all chunks have been read some more times and it has not come, it was lost.

use std::collections::VecDeque;

use headwater_protocol::word::Handover;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Thread;
use crate::cct::{Cct, NodeId};
use crate::decode::Decoder;

/// Work that was handed over and not run yet is remembered up to this number: what is never run does not tell.
const MOST: usize = 1 << 22;
/// Passes over all chunks after which a word that has not come will not come. One would do; the thread that wrote it may be waiting
/// itself.
const PATIENCE: u64 = 3;

/// Where work was handed over.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// In this context.
    Context(NodeId),
    /// In a root invocation that does not count.
    Skipped,
}

/// What was handed over.
#[derive(Clone, Debug, Default)]
pub(in crate::decode) struct Handovers {
    /// All calling contexts in which something was handed over.
    contexts: Cct,
    origins: FxHashMap<u64, Origin>,
    /// What will not be run, and was not known yet when that was told.
    dropped: FxHashSet<u64>,
    /// Threads that wait for a word of another's.
    pub(in crate::decode) waiting: Vec<usize>,
    /// Tasks whose origin is not known.
    pub(in crate::decode) lost: u64,
}

/// Words that wait until it is known where they belong.
#[derive(Clone, Debug)]
pub(in crate::decode) struct Waiting {
    link: u64,
    /// When it began.
    since: u64,
    pieces: VecDeque<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    restarts: bool,
    base_ns: i64,
    words: Vec<u64>,
}

/// What a thread was in before it began to run something that was handed to it.
#[derive(Clone, Copy, Debug)]
pub(in crate::decode) struct Before {
    pub(in crate::decode) base: NodeId,
    skipping: bool,
}

#[cfg(test)]
impl Handovers {
    /// How much it remembers.
    pub(in crate::decode) fn remembered(&self) -> usize {
        self.origins.len() + self.dropped.len()
    }
}

impl Thread {
    /// Keeps words for later, if the thread waits for a word of another's.
    pub(in crate::decode) fn keep(&mut self, base_ns: i64, words: &[u64]) -> bool {
        let restarts = self.restarts;
        let Some(waiting) = &mut self.waiting else { return false };
        self.restarts = false;
        waiting.pieces.push_back(Piece { restarts, base_ns, words: words.to_vec() });
        true
    }

    /// Closes the frames that are open in what the thread runs now; how many.
    fn close(&mut self) -> u64 {
        let torn = self.depth();
        self.open.heal(torn);
        self.waits.clear();
        self.top = self.base;
        torn
    }

    fn begin(&mut self, base: NodeId, skipping: bool) {
        self.outer.push(Before { base: self.base, skipping: self.skipping });
        (self.base, self.top, self.skipping) = (base, base, skipping);
    }

    fn end(&mut self) {
        if let Some(Before { base, skipping }) = self.outer.pop() {
            (self.base, self.top, self.skipping) = (base, base, skipping);
        }
    }

    /// The thread has left everything.
    pub(in crate::decode) fn leave_all(&mut self) -> u64 {
        let torn = self.close();
        self.end_call();
        self.outer.clear();
        (self.base, self.top) = (NodeId::TOP, NodeId::TOP);
        torn
    }
}

impl Decoder {
    /// A thread hands work over, or runs it; `false` if its further words must wait.
    pub(in crate::decode) fn hand_over(&mut self, index: usize, what: Handover, link: u64) -> bool {
        match what {
            Handover::Submit => self.submit(index, link),
            Handover::Drop => {
                if self.handovers.origins.remove(&link).is_none() && self.handovers.dropped.len() < MOST {
                    self.handovers.dropped.insert(link);
                }
            }
            Handover::Run if link == 0 => {
                self.healed += self.threads[index].close();
                self.threads[index].begin(NodeId::TOP, false);
            }
            Handover::Run if self.handovers.origins.contains_key(&link) => self.run(index, link),
            Handover::Run => {
                self.threads[index].waiting = Some(Waiting { link, since: self.pass, pieces: VecDeque::new() });
                self.handovers.waiting.push(index);
                return false;
            }
            Handover::End => {
                self.healed += self.threads[index].close();
                self.threads[index].end();
            }
        }
        true
    }

    fn submit(&mut self, index: usize, link: u64) {
        let (thread, handovers) = (&self.threads[index], &mut self.handovers);
        if handovers.dropped.remove(&link) || handovers.origins.len() >= MOST {
            return;
        }
        let origin = if thread.skipping {
            Origin::Skipped
        } else if thread.top == NodeId::TOP {
            // Its own entries were lost.
            return;
        } else {
            Origin::Context(handovers.contexts.follow(&thread.tree.path(thread.top)))
        };
        handovers.origins.insert(link, origin);
    }

    fn run(&mut self, index: usize, link: u64) {
        let thread = &mut self.threads[index];
        self.healed += thread.close();
        match self.handovers.origins.remove(&link) {
            Some(Origin::Context(context)) => {
                let base = thread.tree.follow(&self.handovers.contexts.path(context));
                thread.begin(base, false);
            }
            Some(Origin::Skipped) => thread.begin(NodeId::TOP, true),
            None => {
                self.handovers.lost += 1;
                // What has no place in the tree is left out.
                thread.begin(NodeId::TOP, true);
            }
        }
    }

    /// Goes on with threads that waited for another's word, as far as it has come, or will not come any more; at the `end`, none will.
    pub(in crate::decode) fn follow_waiting(&mut self, end: bool) {
        let mut patience = PATIENCE;
        loop {
            let mut progress = false;
            for index in std::mem::take(&mut self.handovers.waiting) {
                let known = |waiting: &mut Waiting| {
                    self.handovers.origins.contains_key(&waiting.link) || waiting.since + patience <= self.pass
                };
                match self.threads[index].waiting.take_if(known) {
                    Some(waiting) => {
                        progress = true;
                        self.go_on(index, waiting);
                    }
                    None => self.handovers.waiting.push(index),
                }
            }
            if progress {
                continue;
            }
            if !end || patience == 0 {
                return;
            }
            patience = 0;
        }
    }

    fn go_on(&mut self, index: usize, waiting: Waiting) {
        self.run(index, waiting.link);
        for piece in waiting.pieces {
            self.threads[index].restarts |= piece.restarts;
            self.decode(index, piece.base_ns, &piece.words);
        }
    }

    /// Where everything was handed over is forgotten with the session that it was handed over in.
    pub(in crate::decode) fn forget_handovers(&mut self) {
        let lost = self.handovers.lost;
        self.handovers = Handovers { lost, ..Handovers::default() };
    }

    /// Tasks of which it is not known where they were handed over: they are in no tree.
    pub fn lost_handovers(&self) -> u64 {
        self.handovers.lost
    }
}
