//! Root calls of which only a part was recorded: those that had begun before, and those that have not returned.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::Thread;
use crate::cct::{Below, NodeId};
use crate::decode::Decoder;

/// What was recorded of a root's calls without all of it being recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Partial {
    /// Calls that began before and have returned.
    pub ended: u64,
    /// What was recorded of these.
    pub ended_below: Below,
    /// What was recorded of calls that began before and have not returned.
    pub open_below: Below,
    /// Calls that were counted and have not returned.
    pub unfinished: u64,
}

/// A thread's root call that began before recording, or before results were forgotten.
#[derive(Clone, Copy, Debug)]
pub(in crate::decode) struct Began {
    root: NodeId,
    /// What was known of the root then.
    before: Below,
}

/// How much of a root call that is over was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::decode) enum Recorded {
    /// All of it.
    Whole,
    /// It had begun before.
    Part,
}

/// Such a call that has returned.
#[derive(Clone, Copy, Debug)]
pub(in crate::decode) struct Ended {
    method: MethodId,
    below: Below,
}

impl Began {
    /// The same where nodes are in other places; `None` where its root is not any more.
    pub(in crate::decode) fn moved(self, place: impl FnOnce(NodeId) -> Option<NodeId>) -> Option<Began> {
        Some(Began { root: place(self.root)?, ..self })
    }
}

impl Ended {
    pub(in crate::decode) fn method(self) -> MethodId {
        self.method
    }
}

impl Thread {
    /// The root call that the thread is in began before.
    pub(in crate::decode) fn begin_part(&mut self) {
        let mut root = self.top;
        while let Some(above) = self.tree.parent(root).filter(|above| *above != NodeId::TOP) {
            root = above;
        }
        self.began = Some(Began { root, before: self.tree.below(root) });
    }

    /// The thread is outside the roots, or not in the same call of one any more; how much of that was recorded.
    pub(in crate::decode) fn end_call(&mut self) -> Recorded {
        let Some(began) = self.began.take() else { return Recorded::Whole };
        let method = self.tree.node(began.root).method();
        self.ended.push(Ended { method, below: self.tree.below(began.root).since(began.before) });
        Recorded::Part
    }
}

impl Decoder {
    /// What the trees have of calls that were not recorded from their beginning to their end, for each root.
    pub fn partial(&self) -> FxHashMap<MethodId, Partial> {
        let mut roots: FxHashMap<MethodId, Partial> = FxHashMap::default();
        for thread in &self.threads {
            for Ended { method, below } in &thread.ended {
                let partial = roots.entry(*method).or_default();
                partial.ended += 1;
                partial.ended_below += *below;
            }
            if let Some(began) = thread.began {
                let partial = roots.entry(thread.tree.node(began.root).method()).or_default();
                partial.open_below += thread.tree.below(began.root).since(began.before);
            } else if thread.base == NodeId::TOP
                && let Some((root, _)) = thread.tree.path(thread.top).first()
            {
                roots.entry(*root).or_default().unfinished += 1;
            }
        }
        roots
    }
}
