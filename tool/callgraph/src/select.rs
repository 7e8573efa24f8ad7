//! Selection: what a method can call next, and whether a method is instrumented.

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::{CallSite, CallSites};
use headwater_terms::Scheme;
use headwater_terms::reach::{Obstacle, Way};

use super::filter::Caller;
use super::hidden::Code;
use super::mirror::{ClassKey, Signature};
use super::policy::{CALLED_BACK, INITIALIZER, Probability};
use super::receivers::Spare;
use super::record::Callee;
use super::source::{Source, way_of};
use super::{CallGraph, likely};

impl CallGraph {
    /// Has a method with code instrumented; its id, if it can be.
    pub(super) fn select(&mut self, key: ClassKey, signature: Signature, from: Source) -> Option<MethodId> {
        let (caller, cause) = (from.caller, from.cause);
        if let Some(id) = self.methods.of(key, signature) {
            // A native root would be seen where the graph calls it, and nowhere else.
            let is_native = self.methods.record(id).is_some_and(|record| record.is_native);
            if caller != Caller::Root || !is_native {
                self.methods.is_reached_again(id, cause);
                return Some(id);
            }
        }
        let mirror = self.known.mirrors.get(key);
        let (name, descriptor) = self.known.mirrors.signature(signature);
        if !self.known.options.admits_class(&mirror.name, mirror.loader, caller) {
            return None;
        }
        if mirror.lambda_host().is_some() {
            self.reach_lambda(key, signature, cause);
            return None;
        }
        if !self.known.options.shows(&mirror.name, mirror.loader, name, caller) {
            let has_code = self.known.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && self.known.options.scheme != Scheme::Total {
                self.reachable.hidden.push(key, signature, cause);
            }
            self.methods.passed_over.add(key, signature, Obstacle::Filtered, cause);
            return None;
        }
        if self.known.options.skip_trivial && caller != Caller::Root {
            let (name, descriptor) = (name.clone(), descriptor.clone());
            let has_code = self.known.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && !self.known.has_code(key) && !self.known.code.is_complete() {
                self.known.needs += 1;
                return None;
            }
            if self.known.code.is_trivial(key, &name, &descriptor) {
                self.methods.leave_trivial(key, signature);
                self.methods.passed_over.add(key, signature, Obstacle::Trivial, cause);
                return None;
            }
        }
        let mirror = self.known.mirrors.get(key);
        let refusal = if self.known.mirrors.method(key, signature).is_some_and(|method| method.is_native()) {
            if self.known.options.natives && caller != Caller::Root {
                self.methods.passed_over.add(key, signature, Obstacle::Native, cause);
                return None;
            }
            Some((Obstacle::Native, "it is native (--natives shows the calls of it)"))
        } else if self.known.mirrors.method(key, signature).is_some_and(|method| !method.has_code()) {
            return None;
        } else if !mirror.modifiable {
            // A hidden class: it calls others all the same.
            self.reachable.hidden.push(key, signature, cause);
            Some((Obstacle::Unmodifiable, "the JVM does not let its class be changed"))
        } else if mirror.refused {
            Some((Obstacle::Refused, "its class was refused before"))
        } else if self.methods.are_full() {
            Some((Obstacle::Numbers, "there are no more method numbers"))
        } else {
            None
        };
        if let Some((why, reason)) = refusal {
            self.methods.passed_over.add(key, signature, why, cause);
            if !mirror.is_made_for_code() {
                self.methods.skip_once(&self.known, key, signature, reason);
            }
            return None;
        }
        let id = self.plan.add_record(&self.known, &mut self.methods, key, signature, None, cause);
        match self.known.options.scheme {
            Scheme::Lazy => self.likely.push(id),
            Scheme::Eager => self.reachable.due.push(id),
            Scheme::Total => {}
        }
        Some(id)
    }

    /// Selects every method of a class that the filters admit.
    pub(super) fn select_all_in(&mut self, key: ClassKey) {
        let mirror = self.known.mirrors.get(key);
        let known = mirror.linked || mirror.id.is_none();
        if !known || !self.known.options.admits_class(&mirror.name, mirror.loader, Caller::Application) {
            return;
        }
        let Some(methods) = self.known.mirrors.methods(key) else {
            self.known.need(key);
            return;
        };
        for signature in methods.keys().copied().collect::<Vec<_>>() {
            self.select(key, signature, Source::new(Caller::Application, None, Way::Total));
        }
    }

    /// Selects what a method can call next.
    pub(super) fn select_callees(
        &mut self,
        sites: &CallSites,
        (key, signature): (ClassKey, Signature),
        by: Option<MethodId>,
        code: Code,
        base: Probability,
    ) -> Vec<Callee> {
        let mut callees = Vec::new();
        let loader = self.known.mirrors.get(key).loader;
        let caller = self.known.options.caller(loader);
        let from = |way| match code {
            Code::Own => Source::new(caller, by, way),
            Code::Hidden(cause) => Source::new(caller, cause.by, Way::Hidden).through(key),
        };
        self.reachable.hidden.begin(by, base);
        if !sites.bootstraps.is_empty() {
            self.plan.reflection.watch_bootstraps(&self.known, &mut self.plan.to_hotswap);
        }
        let calls = sites.calls.iter().map(|call| (call, way_of(call.kind)));
        for (call, way) in calls.chain(sites.bootstraps.iter().map(|call| (call, Way::Bootstrap))) {
            self.watch_reflection(&call.owner, &call.name, from(Way::Initializer));
            let first = callees.len();
            self.reachable.hidden.set_probability(likely::of_call(call.likelihood));
            let is_guarded = code == Code::Own && by.is_some_and(|by| self.plan.guards.has_receiver_guard(by, call));
            let spare = match is_guarded {
                true => Spare::Idle,
                // Who is given the handle calls it, if anybody does.
                false if call.kind.is_handle() => Spare::Watched,
                false => Spare::Nothing,
            };
            self.reach_call(call, loader, from(way), spare, &mut callees);
            for callee in &mut callees[first..] {
                callee.probability *= likely::of_call(call.likelihood);
            }
        }
        self.reachable.hidden.set_probability(INITIALIZER);
        for class in &sites.initialized {
            self.reach_initializer(class, loader, from(Way::Initializer), &mut callees);
        }
        self.reachable.hidden.set_probability(CALLED_BACK);
        self.escape_through(sites, (key, signature), loader, from(Way::Callback), &mut callees);
        self.reachable.hidden.end();
        callees
    }

    /// Selects what a call can run.
    pub(super) fn reach_call(
        &mut self,
        call: &CallSite,
        loader: LoaderId,
        from: Source,
        spare: Spare,
        callees: &mut Vec<Callee>,
    ) {
        let signature = self.known.mirrors.intern_signature(&call.name, &call.descriptor);
        if call.kind.is_handle() && self.reachable.by_handle.insert(signature) {
            self.give_results_out(signature);
        }
        if call.kind.is_virtual() {
            self.reach_virtual(&call.owner, loader, (signature, from), spare, callees);
        } else {
            self.reach_direct(&call.owner, loader, (signature, from), spare, callees);
        }
    }
}
