//! Selection: what a method can call next, and whether a method is instrumented.

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::{CallSite, CallSites};

use super::ahead::{self, Callee, Guess};
use super::filter::Caller;
use super::mirror::{ClassKey, Signature};
use super::policy::{CALLED_BACK, INITIALIZER, Probability};
use super::receivers::Spare;
use super::record::{Drop, MethodRecord};
use super::{CallGraph, Lines};
use headwater_terms::Scheme;
use headwater_terms::pattern;

/// In whose code calls are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// In that of the method that makes them: it has that method's guards.
    Own,
    /// In that of a hidden one, which it comes to.
    Hidden,
}

impl CallGraph {
    /// Has a method with code instrumented; its id, if it can be.
    pub(super) fn select(&mut self, key: ClassKey, signature: Signature, caller: Caller) -> Option<MethodId> {
        if let Some(id) = self.by_signature.get(&(key, signature)) {
            // A native root would be seen where the graph calls it, and nowhere else.
            let is_native = self.record(*id).is_some_and(|record| record.is_native);
            if caller != Caller::Root || !is_native {
                return Some(*id);
            }
        }
        let mirror = self.mirrors.get(key);
        let (name, descriptor) = self.mirrors.signature(signature);
        if !self.options.admits_class(&mirror.name, mirror.loader, caller) {
            return None;
        }
        if mirror.lambda_host().is_some() {
            self.reach_lambda(key, signature);
            return None;
        }
        if !self.options.shows(&mirror.name, mirror.loader, name, caller) {
            let has_code = self.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && self.options.scheme != Scheme::Total {
                self.hidden.push(key, signature);
            }
            return None;
        }
        if self.options.skip_trivial && caller != Caller::Root {
            let (name, descriptor) = (name.clone(), descriptor.clone());
            let has_code = self.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && !self.has_code(key) && !self.code.is_complete() {
                self.needs += 1;
                return None;
            }
            if self.code.is_trivial(key, &name, &descriptor) {
                self.trivial.insert((key, signature));
                return None;
            }
        }
        let mirror = self.mirrors.get(key);
        let (name, descriptor) = self.mirrors.signature(signature);
        let refusal = if self.mirrors.method(key, signature).is_some_and(|method| method.is_native()) {
            if self.options.natives && caller != Caller::Root {
                return None;
            }
            Some("it is native (--natives shows the calls of it)")
        } else if self.mirrors.method(key, signature).is_some_and(|method| !method.has_code()) {
            return None;
        } else if !mirror.modifiable {
            // A hidden class: it calls others all the same.
            self.hidden.push(key, signature);
            Some("the JVM does not let its class be changed")
        } else if mirror.refused {
            Some("its class was refused before")
        } else if self.methods.len() >= MethodId::MAX.0 as usize {
            Some("there are no more method numbers")
        } else {
            None
        };
        if let Some(reason) = refusal {
            if !mirror.is_made_for_code() && self.skipped_before.insert((key, signature)) {
                let java_name = pattern::java_name(&self.mirrors.get(key).name, name, descriptor);
                self.skipped.push((java_name, reason.to_owned()));
            }
            return None;
        }
        let id = self.add_record(key, signature, None);
        self.by_signature.insert((key, signature), id);
        match self.options.scheme {
            Scheme::Lazy => self.ahead.push(id),
            Scheme::Eager => self.due.push(id),
            Scheme::Total => {}
        }
        Some(id)
    }

    /// A method that is to be instrumented from now on.
    pub(super) fn add_record(&mut self, key: ClassKey, signature: Signature, lines: Option<Lines>) -> MethodId {
        let id = self.new_record(key, signature, lines);
        self.by_class.entry(key).or_default().push(id);
        self.to_hotswap.insert(key);
        self.want_native_calls(key, signature);
        id
    }

    /// Gives a method a number.
    pub(super) fn new_record(&mut self, key: ClassKey, signature: Signature, lines: Option<Lines>) -> MethodId {
        let id = MethodId(self.methods.len() as u32 + 1);
        let (name, descriptor) = self.mirrors.signature(signature).clone();
        self.methods.push(MethodRecord {
            id,
            class: self.mirrors.get(key).name.clone(),
            name,
            descriptor,
            lines,
            root_of: Vec::new(),
            refused: None,
            is_native: false,
            key,
            signature,
            expanded: false,
            callees: Vec::new(),
            probability: 0.0,
            entered: false,
            guess: Guess::None,
            called_next: false,
            missed: None,
            handed_out: false,
            in_place: false,
            drop: Drop::No,
        });
        id
    }

    /// Selects every method of a class that the filters admit.
    pub(super) fn select_all_in(&mut self, key: ClassKey) {
        let mirror = self.mirrors.get(key);
        let known = mirror.linked || mirror.id.is_none();
        if !known || !self.options.admits_class(&mirror.name, mirror.loader, Caller::Application) {
            return;
        }
        let Some(methods) = self.mirrors.methods(key) else {
            self.need(key);
            return;
        };
        for signature in methods.keys().copied().collect::<Vec<_>>() {
            self.select(key, signature, Caller::Application);
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
        let loader = self.mirrors.get(key).loader;
        let caller = self.options.caller(loader);
        self.hidden.begin(by, base);
        if !sites.bootstraps.is_empty() {
            self.watch_bootstraps();
        }
        for call in sites.calls.iter().chain(&sites.bootstraps) {
            self.watch_reflection(&call.owner, &call.name, caller);
            let first = callees.len();
            self.hidden.set_probability(ahead::of_call(call.likelihood));
            let is_guarded = code == Code::Own && by.is_some_and(|by| self.has_receiver_guard(by, call));
            let spare = match is_guarded {
                true => Spare::Idle,
                // Who is given the handle calls it, if anybody does.
                false if call.kind.is_handle() => Spare::Watched,
                false => Spare::Nothing,
            };
            self.reach_call(call, loader, caller, spare, &mut callees);
            for callee in &mut callees[first..] {
                callee.probability *= ahead::of_call(call.likelihood);
            }
        }
        self.hidden.set_probability(INITIALIZER);
        for class in &sites.initialized {
            self.reach_initializer(class, loader, caller, &mut callees);
        }
        self.hidden.set_probability(CALLED_BACK);
        self.hand_out(sites, (key, signature), loader, caller, &mut callees);
        self.hidden.end();
        callees
    }

    /// Selects what a call can run.
    pub(super) fn reach_call(
        &mut self,
        call: &CallSite,
        loader: LoaderId,
        caller: Caller,
        spare: Spare,
        callees: &mut Vec<Callee>,
    ) {
        let signature = self.mirrors.intern_signature(&call.name, &call.descriptor);
        if call.kind.is_handle() && self.reachable.by_handle.insert(signature) {
            self.give_results_out(signature);
        }
        if call.kind.is_virtual() {
            self.reach_virtual(&call.owner, loader, (signature, caller), spare, callees);
        } else {
            self.reach_direct(&call.owner, loader, (signature, caller), spare, callees);
        }
    }
}
