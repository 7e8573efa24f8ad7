//! Expansion: a method's callees are selected, once what has to be known for that is; so are those of hidden methods, and of lambdas.

use headwater_protocol::MethodId;
use headwater_rewriter::{CallSites, Lambda, Likelihood};
use headwater_terms::reach::Way;

use super::cause::Cause;
use super::hidden::{Code, Due};
use super::likely::{Ground, Reading};
use super::mirror::ClassKey;
use super::outward::Leaving;
use super::record::Callee;
use super::source::{Source, Spare};
use super::{CallGraph, likely};

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
            let CallGraph { known, methods, likely, reachable, escape, .. } = self;
            let has_exposed = escape.expose_released(&mut Ground { known, methods, likely }, reachable);
            if !self.look_through() && !has_exposed {
                return;
            }
        }
    }

    /// Selects a method's callees; whether all that had to be known for that was.
    pub(super) fn expand(&mut self, method: MethodId) -> bool {
        let Some(record) = self.methods.record(method) else { return false };
        let (key, signature, probability) = (record.key, record.signature, record.probability);
        let (name, descriptor) = self.known.mirrors.signature(signature);
        // A method whose code cannot be read is refused by the rewriter, with the reason.
        let Some(sites) = self.known.code.sites(key, name, descriptor) else { return false };
        let CallGraph { known, methods, likely, reachable, plan, .. } = self;
        let sites = plan.guards.unguarded(Reading { known, methods, likely }, reachable, method, sites);
        let needs_before = self.known.needs();
        let callees = self.select_callees(&sites, (key, signature), Some(method), Code::Own, 1.0);
        if self.known.needs() != needs_before {
            return false;
        }
        self.reachable.unlinked.want(&self.known, &sites, probability);
        let callees = self.likely.weigh_all(&self.known, &self.methods, Some(method), callees);
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

    /// Selects what the calls behind a guard can run; whether all that had to be known for that was.
    fn expand_guard(&mut self, guard: MethodId) -> bool {
        let Some(behind) = self.plan.guards.behind(guard) else { return true };
        let method = behind.method;
        let Some(record) = self.methods.record(method).filter(|record| record.refused.is_none()) else { return true };
        let (key, signature) = (record.key, record.signature);
        if !self.known.has_code(key) {
            return false;
        }
        let (name, descriptor) = self.known.mirrors.signature(signature);
        let Some(mut sites) = self.known.code.sites(key, name, descriptor) else { return false };
        sites.calls.retain(|call| behind.called.is_of(call));
        if behind.is_certain {
            sites.calls.iter_mut().for_each(|call| call.likelihood = Likelihood::Certain);
        }
        let needs_before = self.known.needs();
        // Objects that the method mentions may leave by these calls.
        let only_calls = CallSites { calls: sites.calls, types: sites.types, ..CallSites::default() };
        let callees = self.select_callees(&only_calls, (key, signature), Some(method), Code::Own, 1.0);
        if self.known.needs() != needs_before {
            return false;
        }
        let caller = Some(method).filter(|_| !behind.is_certain);
        let callees = self.likely.weigh_all(&self.known, &self.methods, caller, callees);
        callees.iter().for_each(|callee| self.methods.raise(callee.method, callee.probability));
        if let Some(record) = self.methods.record_mut(method) {
            record.callees.extend(callees);
        }
        self.plan.guards.is_selected(guard);
        self.methods.expect_callees(method);
        true
    }

    /// Selects what hidden methods call; whether any could be looked through.
    fn look_through(&mut self) -> bool {
        let mut progress = false;
        for due in self.reachable.hidden.take_due() {
            let Some(home) = self.known.home(due.key) else { continue };
            if !self.known.has_code(home) {
                if !self.known.code.is_missing(home) {
                    self.reachable.hidden.put_off(due);
                }
                continue;
            }
            let needs_before = self.known.needs();
            let callees = if home == due.key {
                let (name, descriptor) = self.known.mirrors.signature(due.signature);
                let Some(sites) = self.known.code.sites(home, name, descriptor) else { continue };
                self.select_callees(&sites, (home, due.signature), due.by, Code::Hidden(due.cause), due.probability)
            } else {
                self.select_lambdas(&due, home)
            };
            if self.known.needs() != needs_before {
                self.reachable.hidden.put_off(due);
                continue;
            }
            progress = true;
            let callers = due.by.and_then(|by| self.methods.record(by)).map_or(1.0, |by| by.probability);
            for callee in callees {
                let probability = due.probability * self.likely.weigh(&self.known, &self.methods, due.by, callee);
                self.methods.raise(callee.method, callers * probability);
                if let Some(by) = due.by.and_then(|by| self.methods.record_mut(by)) {
                    by.callees.push(Callee { probability, ..callee });
                }
            }
        }
        progress
    }

    /// Selects the lambdas of a class that one of its lambda classes may stand for.
    fn select_lambdas(&mut self, due: &Due, host: ClassKey) -> Vec<Callee> {
        let loader = self.known.mirrors.get(host).loader;
        let caller = self.known.options.caller(loader);
        let lambdas = self.methods.lambdas_of(&self.known, due, host);
        let CallGraph { known, reachable, escape, .. } = self;
        // What a reference stands for may be a method outside the filter.
        let leaves = |it: &Lambda| escape.leaving_by(known, reachable, &it.body, false, loader) != Leaving::Nothing;
        if lambdas.iter().any(leaves) {
            self.open_up(Source { caller, cause: due.cause }.via(Way::Unnamed));
        }
        // The class stands for one of them.
        let share = likely::of_target(1, lambdas.len());
        let mut callees: Vec<Callee> = Vec::new();
        self.reachable.hidden.begin(due.by, due.probability);
        self.reachable.hidden.set_probability(share);
        // By whom the lambda is called says more than that it is one.
        let is_called_back = matches!(due.cause.way, Way::Callback | Way::Unnamed | Way::Mentioned);
        let cause = if is_called_back { due.cause } else { Cause { way: Way::Lambda, ..due.cause } };
        for lambda in &lambdas {
            self.reach_call(&lambda.body, loader, Source { caller, cause }, Spare::Watched, &mut callees);
        }
        self.reachable.hidden.end();
        callees.iter_mut().for_each(|callee| callee.probability *= share);
        callees
    }
}
