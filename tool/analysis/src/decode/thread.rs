//! A thread's simulated stack.

use headwater_protocol::word::{Counter, ID_SHIFT, KIND_ENTER, KIND_EXIT, KIND_PAUSE, KIND_SHIFT, MAX_PAYLOAD, Run};
use headwater_protocol::{MethodId, ThreadId};

use super::Statistics;
use super::invocations::{OpenInvocations, Recorder};
use super::runs::HeldRun;
use crate::cct::{Cct, NodeId};
use handover::{Before, Waiting};
use headwater_profile::profile::CpuSamples;
use open_calls::OpenCalls;
use partial::{Began, Ended};
use waits::OpenWaits;

pub(super) mod handover;
pub(super) mod open_calls;
pub(super) mod partial;
mod waits;

/// A word that says how many instructions were executed, but for its payload.
const EXECUTED: u64 = KIND_PAUSE << (KIND_SHIFT - ID_SHIFT) | Counter::Bytecodes.number() as u64;

#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) id: ThreadId,
    pub(super) tree: Cct,
    /// Where the thread is: the path to this node is its simulated stack.
    pub(super) top: NodeId,
    /// Where what it runs now was handed over, if it was; else the tree's top.
    pub(super) base: NodeId,
    /// What it was in before it began to run that.
    pub(super) outer: Vec<Before>,
    /// It waits for another thread's word.
    pub(super) waiting: Option<Waiting>,
    /// Time of the latest event, on the thread's clock.
    pub(super) last_ns: i64,
    /// Pauses since then.
    pub(super) paused_ns: u64,
    /// Instructions whose call is about to be left.
    pub(super) bytecodes: u64,
    /// Inside a root invocation that is beyond the limit.
    pub(super) skipping: bool,
    /// Its open invocations, where invocations are recorded singly.
    pub(super) open: OpenInvocations,
    /// Of a virtual thread: the run that is being decoded.
    pub(super) run: Option<Run>,
    /// Of a virtual thread: the carrier that it wrote on last.
    pub(super) carrier: Option<ThreadId>,
    /// Its clock restarts at the next event.
    pub(super) restarts: bool,
    /// The latest sample: of which node, and whether the thread was running. It counts unless a pause of ours follows.
    pub(super) sampled: Option<(NodeId, bool)>,
    /// Later runs.
    pub(super) held: Vec<HeldRun>,
    /// Calls that began before recording.
    pub(super) before: OpenCalls,
    /// The root call that it is in, if that began before.
    pub(super) began: Option<Began>,
    /// Such calls that have returned.
    pub(super) ended: Vec<Ended>,
    /// How many collections it has come past.
    pub(super) collections: usize,
    /// What it is in of which the end is yet to be told.
    pub(super) waits: OpenWaits,
}

impl Thread {
    /// Outside, and nothing known of it.
    pub(super) fn new(id: ThreadId) -> Thread {
        Thread {
            id,
            tree: Cct::new(),
            top: NodeId::TOP,
            base: NodeId::TOP,
            outer: Vec::new(),
            waiting: None,
            last_ns: 0,
            paused_ns: 0,
            bytecodes: 0,
            skipping: false,
            open: OpenInvocations::default(),
            run: None,
            carrier: None,
            restarts: false,
            sampled: None,
            held: Vec::new(),
            before: OpenCalls::default(),
            began: None,
            ended: Vec::new(),
            collections: 0,
            waits: OpenWaits::default(),
        }
    }

    pub(super) fn is_outside(&self) -> bool {
        self.top == self.base
    }

    /// It has written what has not been decoded yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.held.is_empty()
    }

    /// How many calls are open.
    pub(super) fn depth(&self) -> u64 {
        // Of a target that lies the base may be beside the top.
        self.tree.depth(self.top).saturating_sub(self.tree.depth(self.base))
    }

    /// The innermost open call of a method, and how many calls are above it.
    pub(super) fn innermost(&self, method: MethodId) -> Option<(NodeId, u64)> {
        let mut at = self.top;
        let mut above = 0;
        loop {
            let parent = self.tree.parent(at).filter(|_| at != self.base)?;
            if self.tree.node(at).method() == method {
                return Some((at, above));
            }
            above += 1;
            at = parent;
        }
    }

    /// What has passed since the latest event, less the pauses.
    #[inline]
    pub(super) fn elapsed(&self, now_ns: i64) -> u64 {
        elapsed(self.last_ns, now_ns, self.paused_ns)
    }

    #[inline]
    pub(super) fn moved_to(&mut self, top: NodeId, now_ns: i64) {
        self.top = top;
        self.paused_ns = 0;
        self.last_ns = now_ns;
    }

    /// No pause has followed the latest sample.
    pub(super) fn count_sample(&mut self) {
        if let Some((node, running)) = self.sampled.take() {
            self.tree.add_cpu(node, CpuSamples { samples: 1, running: running.into() });
        }
    }

    /// Gives the time since the latest event to the method that had it.
    pub(super) fn advance(&mut self, now_ns: i64) {
        let elapsed = self.elapsed(now_ns);
        if !self.is_outside() {
            self.tree.node_mut(self.top).self_measured_ns += elapsed;
            self.open.advance(elapsed);
            self.count_waits(elapsed);
        }
        self.moved_to(self.top, now_ns);
    }

    /// Instructions of the call that the next word leaves.
    pub(super) fn execute(&mut self, bytecodes: u64) {
        self.bytecodes = self.bytecodes.saturating_add(bytecodes);
    }

    /// Follows entries and exits, and what is counted between them, as long as there is nothing unusual about them, up to a time; how many
    /// words, and how many entries and exits.
    pub(super) fn follow<const SINGLY: bool>(
        &mut self,
        (base_ns, until_ns): (i64, i64),
        words: &[u64],
        statistics: Statistics,
        recorder: &mut Recorder,
    ) -> (usize, u64) {
        if self.skipping || self.is_outside() || self.before.needs_care() || self.waits.is_any() {
            return (0, 0);
        }
        let (mut top, mut last_ns, mut paused_ns) = (self.top, self.last_ns, self.paused_ns);
        let mut bytecodes = self.bytecodes;
        let (mut followed, mut events) = (0, 0);
        for &word in words {
            if word >> ID_SHIFT == EXECUTED {
                bytecodes = bytecodes.saturating_add(word & MAX_PAYLOAD);
                followed += 1;
                continue;
            }
            let method = MethodId((word >> ID_SHIFT) as u32 & MethodId::MAX.0);
            if word >> KIND_SHIFT == KIND_PAUSE
                && let Some(counter) = Counter::of(method.0)
            {
                if counter == Counter::Loaded {
                    // It is told of with its time, too.
                    break;
                }
                self.tree.add_counted(top, counter, word & MAX_PAYLOAD);
                followed += 1;
                continue;
            }
            let now_ns = base_ns.wrapping_add((word & MAX_PAYLOAD) as i64);
            if now_ns > until_ns {
                break;
            }
            let elapsed = elapsed(last_ns, now_ns, paused_ns);
            let is_call = word >> KIND_SHIFT == KIND_ENTER;
            let next = match word >> KIND_SHIFT {
                KIND_ENTER => Some(self.tree.call(top, method, elapsed)),
                KIND_EXIT => self.tree.leave(top, method, elapsed),
                _ => None,
            };
            let Some(next) = next else { break };
            if bytecodes != 0 {
                if !is_call {
                    self.tree.add_count(top, Counter::Bytecodes, bytecodes);
                }
                bytecodes = 0;
            }
            if SINGLY {
                self.open.advance(elapsed);
                if is_call {
                    self.open.enter(method, statistics);
                } else if let Some(invocation) = self.open.leave(statistics) {
                    recorder.record(method, invocation);
                }
            }
            (top, last_ns, paused_ns) = (next, now_ns, 0);
            followed += 1;
            events += 1;
        }
        (self.top, self.last_ns, self.paused_ns) = (top, last_ns, paused_ns);
        self.bytecodes = bytecodes;
        (followed, events)
    }
}

/// What has passed between two events, less the pauses.
#[inline]
fn elapsed(last_ns: i64, now_ns: i64, paused_ns: u64) -> u64 {
    u64::try_from(now_ns.wrapping_sub(last_ns)).unwrap_or(0).saturating_sub(paused_ns)
}
