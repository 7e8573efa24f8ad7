//! Methods that the user's filters hide.
//!
//! They are not instrumented, so no first call tells when theirs come. They are looked through instead: what they call is selected
//! along with what their callers call, and hangs on the nearest shown ancestor in the tree. Code of the JDK is not
//! looked through, for nearly everything is reachable there; see [`callbacks`](super::callbacks).

use headwater_protocol::MethodId;
use rustc_hash::FxHashSet;

use super::CallGraph;
use super::ahead::{Callee, LOADED_LATER, Probability};
use super::mirror::{ClassKey, Signature};

/// A hidden method that shown code comes to.
#[derive(Clone, Copy, Debug)]
struct Due {
    key: ClassKey,
    signature: Signature,
    /// The nearest shown caller, if it is known.
    by: Option<MethodId>,
    /// Of being called when that is.
    probability: Probability,
}

/// The hidden methods that are reachable.
#[derive(Debug, Default)]
pub(super) struct Hidden {
    due: Vec<Due>,
    seen: FxHashSet<(ClassKey, Signature)>,
    by: Option<MethodId>,
    base: Probability,
    probability: Probability,
}

impl Hidden {
    /// What is pushed from now on is called by this method, or by one that it comes to with this probability.
    pub(super) fn begin(&mut self, by: Option<MethodId>, base: Probability) {
        self.by = by;
        self.base = base;
    }

    /// ... and from a place that is come to with this probability.
    pub(super) fn set_probability(&mut self, probability: Probability) {
        self.probability = self.base * probability;
    }

    /// No caller is known any more.
    pub(super) fn end(&mut self) {
        self.begin(None, LOADED_LATER);
        self.set_probability(1.0);
    }

    /// A hidden method is reachable.
    pub(super) fn push(&mut self, key: ClassKey, signature: Signature) {
        if self.seen.insert((key, signature)) {
            self.due.push(Due { key, signature, by: self.by, probability: self.probability });
        }
    }
}

impl CallGraph {
    /// Selects what hidden methods call; whether any could be looked through.
    pub(super) fn look_through(&mut self) -> bool {
        let mut progress = false;
        for due in std::mem::take(&mut self.hidden.due) {
            if !self.has_code(due.key) {
                if !self.code.is_missing(due.key) {
                    self.hidden.due.push(due);
                }
                continue;
            }
            let (name, descriptor) = self.mirrors.signature(due.signature).clone();
            let Some(sites) = self.code.sites(due.key, &name, &descriptor) else { continue };
            let needs_before = self.needs;
            let callees = self.select_callees(&sites, due.key, due.by, due.probability);
            if self.needs != needs_before {
                self.hidden.due.push(due);
                continue;
            }
            progress = true;
            let callers = due.by.and_then(|by| self.record(by)).map_or(1.0, |by| by.probability);
            for callee in callees {
                let probability = due.probability * self.weigh(due.by, callee);
                self.raise(callee.method, callers * probability);
                if let Some(by) = due.by.and_then(|by| self.record_mut(by)) {
                    by.callees.push(Callee { probability, ..callee });
                }
            }
        }
        progress
    }
}
