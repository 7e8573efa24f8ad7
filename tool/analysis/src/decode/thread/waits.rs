//! Waits of which both ends are told, and time in class loaders, which is told of in the same way. Time is counted for them where it passes, whatever is
//! called meanwhile, so it is always a part of what methods have themselves.

use headwater_protocol::word::{Counter, ProbedWait};

use super::Thread;
use crate::cct::{Cct, NodeId};
use crate::decode::Decoder;

/// A wait that has begun.
#[derive(Clone, Copy, Debug)]
struct OpenWait {
    wait: ProbedWait,
    /// Whose method it began in: it is over when that is left.
    node: NodeId,
    /// Others of its kind that have begun within, and are a part of it.
    inner: u32,
    /// What was waited for monitors since the latest event: that counts as such.
    monitors_ns: u64,
}

/// What a thread is in, of each kind: waits, of which no two pass at once, and class loading, in which there may be waits.
#[derive(Clone, Debug, Default)]
pub(in crate::decode) struct OpenWaits {
    wait: Option<OpenWait>,
    loading: Option<OpenWait>,
}

impl OpenWaits {
    /// Whether there is one.
    #[inline]
    pub(in crate::decode) fn is_any(&self) -> bool {
        self.wait.is_some() || self.loading.is_some()
    }

    /// Whether time is counted as waiting.
    pub(in crate::decode) fn has_wait(&self) -> bool {
        self.wait.is_some()
    }

    /// They are over, or nobody knows when they were.
    pub(in crate::decode) fn clear(&mut self) {
        *self = OpenWaits::default();
    }

    /// That of a kind.
    fn of(&mut self, wait: ProbedWait) -> &mut Option<OpenWait> {
        if wait == ProbedWait::Loading { &mut self.loading } else { &mut self.wait }
    }

    fn kinds(&mut self) -> [&mut Option<OpenWait>; 2] {
        [&mut self.wait, &mut self.loading]
    }
}

impl Thread {
    /// So much has passed with this method on top.
    pub(in crate::decode) fn count_waits(&mut self, elapsed: u64) {
        for open in self.waits.kinds().into_iter().flatten() {
            let passed = elapsed.saturating_sub(std::mem::take(&mut open.monitors_ns));
            self.tree.add_count(self.top, open.wait.time(), passed);
        }
    }

    /// All calls on top are left, up to this one.
    pub(in crate::decode) fn leave_waits(&mut self, left: NodeId) {
        for kind in self.waits.kinds() {
            let Some(open) = kind else { continue };
            let mut at = Some(self.top);
            while let Some(node) = at {
                if node == open.node {
                    *kind = None;
                    break;
                }
                at = self.tree.parent(node).filter(|_| node != left);
            }
        }
    }

    /// The simulated stack has new nodes, in another tree.
    pub(in crate::decode) fn move_waits(&mut self, old: &Cct, nodes: &[NodeId]) {
        for kind in self.waits.kinds() {
            *kind = kind.take().and_then(|open| {
                let node = nodes.get((old.depth(open.node) as usize).checked_sub(1)?)?;
                Some(OpenWait { node: *node, ..open })
            });
        }
    }
}

impl Decoder {
    #[cold]
    pub(in crate::decode) fn wait(&mut self, index: usize, wait: ProbedWait, begins: bool, now_ns: i64) {
        let thread = &mut self.threads[index];
        if thread.skipping || thread.is_outside() {
            return;
        }
        match (thread.waits.of(wait), begins) {
            (Some(open), true) => open.inner += 1,
            (Some(open), false) if open.inner > 0 => open.inner -= 1,
            (None, true) => {
                thread.close_returned(now_ns);
                thread.advance(now_ns);
                if let Some(times) = wait.times() {
                    thread.tree.add_count(thread.top, times, 1);
                }
                *thread.waits.of(wait) = Some(OpenWait { wait, node: thread.top, inner: 0, monitors_ns: 0 });
            }
            (Some(_), false) => {
                thread.advance(now_ns);
                *thread.waits.of(wait) = None;
            }
            // Of one that began outside.
            (None, false) => {}
        }
    }

    /// The thread has waited for a monitor.
    pub(in crate::decode) fn wait_for_monitor(&mut self, index: usize, counter: Counter, value: u64) {
        if let (Some(open), Counter::BlockedNs | Counter::WaitedNs) = (&mut self.threads[index].waits.wait, counter) {
            open.monitors_ns = open.monitors_ns.saturating_add(value);
        }
    }
}
