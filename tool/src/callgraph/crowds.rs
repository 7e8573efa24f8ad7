//! Calls of a class of which very many have the name.
//!
//! Code of a loader that has not defined such a class may mean any of them: perhaps its loader asks another's. If each of so many loaders' code were
//! looked at with each of so many classes, a server that has been reloading its applications for a while could not be profiled at all. So what is
//! called there is selected in all of them the first time that somebody calls it, and not again; in those that come later, when they come. And it is
//! not remembered as what this caller or that calls, for that says next to nothing of any of them.

use std::sync::Arc;

use super::CallGraph;
use super::ahead::{Callee, LEAST_SHARE, Probability};
use super::filter::Caller;
use super::mirror::ClassKey;
use super::reachable::Target;

/// What may be done with the classes of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Reach {
    /// A static or special call.
    Direct(Target),
    /// A virtual one.
    Virtual(Target),
    /// They are initialised.
    Initializer(Caller),
    /// Objects of them are handed out.
    HandedOut(Caller),
}

impl CallGraph {
    /// Selects what is reached in all classes of a name, if it has not been before.
    pub(super) fn reach_crowd(
        &mut self,
        name: &str,
        reach: Reach,
        select: impl FnOnce(&mut CallGraph, Vec<ClassKey>, &mut Vec<Callee>),
    ) {
        let name: Arc<str> = name.into();
        if self.reachable.crowds.contains(&(name.clone(), reach)) {
            return;
        }
        let needs_before = self.needs;
        let classes = self.mirrors.named(&name).to_vec();
        let mut callees = Vec::new();
        select(self, classes, &mut callees);
        for callee in callees {
            let probability: Probability = callee.probability.min(LEAST_SHARE);
            self.raise(callee.method, self.weigh(None, Callee { probability, ..callee }));
            if let Some(record) = self.record_mut(callee.method) {
                record.called_next = true;
            }
        }
        if self.needs == needs_before {
            self.reachable.crowds.insert((name, reach));
        }
    }
}
