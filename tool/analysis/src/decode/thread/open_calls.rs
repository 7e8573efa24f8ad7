//! Calls that were open when recording began: no event tells that they return.
//!
//! They are the lowest frames of their thread's simulated stack from the beginning on, with time, but without a call: that was
//! before. They are closed by whichever comes first: an exit word that their thread writes when it enters an instrumented method and
//! finds them gone, or the agent's look at the stack.

use std::collections::VecDeque;

use headwater_protocol::{MethodId, ThreadId};

use super::Thread;
use crate::cct::NodeId;
use crate::decode::{Decoder, TimeBase};

/// Open calls were seen to have returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// In this thread.
    pub thread: ThreadId,
    /// So many, the outermost, are still open.
    pub open: usize,
    /// When, about.
    pub time_ns: i64,
    /// At most so much earlier or later.
    pub error_ns: u64,
}

/// What a thread knows of its open calls.
#[derive(Clone, Copy, Debug, Default)]
enum Knowledge {
    /// Nothing: what it enters as a root is called by them.
    #[default]
    None,
    /// It has been told, and may have been about to enter a root at that moment.
    Told,
    /// What it enters as a root is outside them.
    All,
}

/// A thread's open calls.
#[derive(Clone, Debug, Default)]
pub(in crate::decode) struct OpenCalls {
    /// All that there were, the outermost first.
    methods: Vec<MethodId>,
    /// They are to be entered when the thread leaves the root that it is in.
    waiting: bool,
    knowledge: Knowledge,
    /// Those that are open, the lowest frames of the simulated stack.
    nodes: Vec<NodeId>,
    /// How many the thread itself has not told to be closed.
    untold: usize,
    /// What is to be closed once the thread's events have come so far.
    returned: VecDeque<Returned>,
    error_ns: u64,
}

impl OpenCalls {
    /// An exit may be that of an open call other than a root's, or one may have to be closed before the next event.
    pub(in crate::decode) fn needs_care(&self) -> bool {
        self.nodes.len() > 1 || !self.returned.is_empty()
    }

    /// Whether the root that is being entered is called by an open call, because the thread did not know that it was in any.
    pub(in crate::decode) fn call_root(&mut self) -> bool {
        let are_unknown = !self.nodes.is_empty() && !matches!(self.knowledge, Knowledge::All);
        if let Knowledge::Told = self.knowledge {
            self.knowledge = Knowledge::All;
        }
        are_unknown
    }

    /// The thread has left everything.
    pub(in crate::decode) fn interrupt(&mut self) {
        self.nodes.clear();
        self.waiting = false;
        self.untold = 0;
    }

    /// The simulated stack has new nodes.
    pub(in crate::decode) fn moved(&mut self, stack: &[NodeId]) {
        let open = self.nodes.len().min(stack.len());
        self.nodes = stack[..open].to_vec();
    }
}

impl Thread {
    /// The open calls begin to have time.
    pub(in crate::decode) fn begin_open(&mut self, now_ns: i64) {
        if !std::mem::take(&mut self.before.waiting) {
            return;
        }
        let mut at = NodeId::TOP;
        for method in &self.before.methods {
            at = self.tree.child(at, *method);
            self.before.nodes.push(at);
        }
        self.before.untold = self.before.nodes.len();
        self.moved_to(at, now_ns);
        self.begin_part();
    }

    /// Whether the innermost open call is on top of the simulated stack.
    fn is_at_open(&self) -> bool {
        self.before.nodes.last() == Some(&self.top)
    }

    /// Of the open calls only so many are open any more. Nothing happens while one has a callee that was recorded: it cannot have
    /// returned then.
    pub(in crate::decode) fn close_open(&mut self, open: usize, now_ns: i64) {
        if open < self.before.nodes.len() && self.is_at_open() {
            self.advance(now_ns);
            self.before.nodes.truncate(open);
            self.top = self.before.nodes.last().copied().unwrap_or(NodeId::TOP);
            if self.top == NodeId::TOP {
                self.end_call();
            }
        }
    }

    /// Closes what was seen to have returned before this time.
    pub(in crate::decode) fn close_returned(&mut self, now_ns: i64) {
        while let Some(returned) = self.before.returned.pop_front_if(|returned| returned.time_ns <= now_ns) {
            if returned.open < self.before.nodes.len() && self.is_at_open() {
                self.before.error_ns = self.before.error_ns.max(returned.error_ns);
                self.close_open(returned.open, returned.time_ns.max(self.last_ns));
            }
        }
    }

    /// An exit that the thread wrote because it found an open call gone; `false` if it is another exit.
    pub(in crate::decode) fn exit_open(&mut self, method: MethodId, now_ns: i64) -> bool {
        let told = self.before.untold.checked_sub(1).filter(|last| self.before.methods[*last] == method);
        let is_base = self.top == NodeId::TOP || self.is_at_open();
        let Some(open) = told.filter(|_| is_base) else { return false };
        self.before.untold = open;
        self.close_open(open, now_ns);
        true
    }
}

impl Decoder {
    /// A thread is in calls of these methods, the outermost first, and none of its events since they were entered is recorded,
    /// unless it is in another root just now.
    pub fn open(&mut self, thread: ThreadId, methods: &[MethodId], now_ns: i64) {
        let index = self.thread_index(thread);
        let thread = &mut self.threads[index];
        // Its own clock is only known from its first event on.
        thread.restarts |= self.options.time_base == TimeBase::Carrier;
        thread.before = OpenCalls { methods: methods.to_vec(), waiting: true, ..OpenCalls::default() };
        if thread.is_outside() {
            thread.begin_open(now_ns);
        }
    }

    /// The threads with open calls have been told of them, and all that they wrote before is decoded.
    pub fn followed(&mut self) {
        self.threads.iter_mut().for_each(|thread| thread.before.knowledge = Knowledge::Told);
    }

    /// Open calls have been seen to have returned.
    pub fn returned(&mut self, returned: Returned) {
        let index = self.thread_index(returned.thread);
        if self.options.time_base == TimeBase::Carrier {
            // When that was on the thread's own clock, nobody knows; its events up to then have been seen.
            let last_ns = self.threads[index].last_ns;
            self.threads[index].close_open(returned.open, last_ns);
            return;
        }
        self.threads[index].before.returned.push_back(returned);
    }

    /// The threads with calls that were open when recording began: the methods of these calls, and how many of them still are.
    pub fn open_calls(&self) -> impl Iterator<Item = (&[MethodId], usize)> {
        let with_open = self.threads.iter().filter(|thread| !thread.before.methods.is_empty());
        with_open.map(|thread| (thread.before.methods.as_slice(), thread.before.nodes.len()))
    }

    /// How uncertain it is when open calls returned: at most so much earlier or later than their times say.
    pub fn open_error_ns(&self) -> u64 {
        self.threads.iter().map(|thread| thread.before.error_ns).max().unwrap_or(0)
    }
}
