//! Expansion: a method's callees are selected, once what has to be known for that is.

use headwater_protocol::MethodId;

use super::CallGraph;
use super::hidden::Code;
use super::mirror::{ClassKey, Signature};
use super::record::Callee;

impl CallGraph {
    /// Selects the callees of all methods that are due, and what the methods call that the filters hide. What cannot be
    /// decided yet stays due: classes' methods or code are asked for first.
    pub(super) fn expand_due(&mut self) {
        loop {
            let mut waiting = Vec::new();
            while let Some(method) = self.reachable.due.pop() {
                if self.plan.guards.is_guard(method) {
                    if !self.expand_guard(method) {
                        waiting.push(method);
                    }
                    continue;
                }
                let Some(record) = self.methods.record(method) else { continue };
                if record.expanded || record.refused.is_some() {
                    continue;
                }
                let key = record.key;
                // Without its code a method is asked for again when its class file is rewritten.
                if !self.known.has_code(key) || !self.expand(method) {
                    waiting.push(method);
                }
            }
            self.reachable.due = waiting;
            let has_exposed = self.expose_released();
            if !self.look_through() && !has_exposed {
                return;
            }
        }
    }

    /// Selects a method's callees; whether all that had to be known for that was.
    pub(super) fn expand(&mut self, method: MethodId) -> bool {
        let Some(record) = self.methods.record(method) else { return false };
        let (key, signature, probability) = (record.key, record.signature, record.probability);
        let (name, descriptor) = self.known.mirrors.signature(signature).clone();
        // A method whose code cannot be read is refused by the rewriter, with the reason.
        let Some(sites) = self.known.code.sites(key, &name, &descriptor) else { return false };
        let sites = self.unguarded(method, sites);
        let needs_before = self.known.needs;
        let callees = self.select_callees(&sites, (key, signature), Some(method), Code::Own, 1.0);
        if self.known.needs != needs_before {
            return false;
        }
        self.reachable.unlinked.want(&self.known, &sites, probability);
        let callees: Vec<Callee> = callees
            .into_iter()
            .map(|callee| Callee {
                probability: self.likely.weigh(&self.known, &self.methods, Some(method), callee),
                ..callee
            })
            .collect();
        for callee in &callees {
            self.methods.raise(callee.method, probability * callee.probability);
        }
        if let Some(record) = self.methods.record_mut(method) {
            record.expanded = true;
            record.callees.extend(callees);
        }
        self.methods.expect_callees(method);
        true
    }

    /// Selects once more what a method calls, shown or hidden: by something that has come since, it may be more.
    pub(super) fn expand_again(&mut self, key: ClassKey, signature: Signature) {
        let Some(method) = self.methods.of(key, signature) else {
            self.reachable.hidden.push_again(key, signature);
            return;
        };
        self.plan.guards.expand_guards_again(&mut self.reachable.due, method);
        if let Some(record) = self.methods.record_mut(method).filter(|record| record.expanded) {
            record.expanded = false;
            record.callees.clear();
            self.reachable.due.push(method);
        }
    }
}
