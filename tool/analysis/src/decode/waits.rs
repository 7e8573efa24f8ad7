//! Waits of which both ends are told. Time is counted for them where it passes, whatever is called meanwhile, so it is always a part of what methods have
//! themselves.

use headwater_protocol::word::{Counter, Wait};

use super::Decoder;
use super::thread::Thread;
use crate::cct::{Cct, NodeId};

/// A wait that has begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenWait {
    wait: Wait,
    /// Whose method it began in: it is over when that is left.
    node: NodeId,
    /// Other waits that have begun within, and are a part of it.
    inner: u32,
    /// What was waited for monitors since the latest event: that counts as such.
    monitors_ns: u64,
}

impl Thread {
    /// So much has passed with this method on top.
    pub(super) fn count_wait(&mut self, elapsed: u64) {
        if let Some(open) = &mut self.wait {
            let waited = elapsed.saturating_sub(std::mem::take(&mut open.monitors_ns));
            self.tree.add_count(self.top, open.wait.time(), waited);
        }
    }

    /// All calls on top are left, up to this one.
    pub(super) fn leave_wait(&mut self, left: NodeId) {
        let Some(open) = &self.wait else { return };
        let mut at = Some(self.top);
        while let Some(node) = at {
            if node == open.node {
                self.wait = None;
                return;
            }
            at = self.tree.parent(node).filter(|_| node != left);
        }
    }

    /// The simulated stack has new nodes, in another tree.
    pub(super) fn move_wait(&mut self, old: &Cct, nodes: &[NodeId]) {
        self.wait = self.wait.take().and_then(|open| {
            let node = nodes.get((old.depth(open.node) as usize).checked_sub(1)?)?;
            Some(OpenWait { node: *node, ..open })
        });
    }
}

impl Decoder {
    #[cold]
    pub(super) fn wait(&mut self, index: usize, wait: Wait, begins: bool, now_ns: i64) {
        let thread = &mut self.threads[index];
        if thread.skipping || thread.is_outside() {
            return;
        }
        match (&mut thread.wait, begins) {
            (Some(open), true) => open.inner += 1,
            (Some(open), false) if open.inner > 0 => open.inner -= 1,
            (None, true) => {
                thread.close_returned(now_ns);
                thread.advance(now_ns);
                thread.tree.add_count(thread.top, wait.times(), 1);
                thread.wait = Some(OpenWait { wait, node: thread.top, inner: 0, monitors_ns: 0 });
            }
            (Some(_), false) => {
                thread.advance(now_ns);
                thread.wait = None;
            }
            // Of one that began outside.
            (None, false) => {}
        }
    }

    /// The thread has waited for a monitor.
    pub(super) fn wait_for_monitor(&mut self, index: usize, counter: Counter, value: u64) {
        if let (Some(open), Counter::BlockedNs | Counter::WaitedNs) = (&mut self.threads[index].wait, counter) {
            open.monitors_ns = open.monitors_ns.saturating_add(value);
        }
    }
}
