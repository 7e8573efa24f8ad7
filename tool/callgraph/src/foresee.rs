//! What comes for nothing with a class that is rewritten anyway.
//!
//! A class that is being loaded is instrumented in its load hook without a redefinition, and one that is being hotswapped costs no further one:
//! but only what is selected by then. So of its methods that may be entered, what they call in the class itself is selected with them; and what
//! they call in classes that are not loaded yet is remembered, for those classes' load hooks. Each saves a batch when it is entered, or is
//! instrumented in vain: hence the odds for this are lower than for looking ahead into other classes ([`ahead`](super::ahead)).
//!
//! A class that is loaded on behalf of the graph is used next, or is needed by the verifier and used later: then most calls of it
//! become known after it was loaded, and it would be hotswapped when it is linked, hundreds of classes one by one in a program that
//! has just started. So in such a program its constructors are selected, and what it overrides; and of a loaded class that is hotswapped
//! a second time, what it overrides: visitors are, again and again, for each class that is visited.

use headwater_rewriter::{CallKind, CallSite};
use headwater_terms::reach::{Trigger, Way};

use super::known::Known;
use super::mirror::{ClassKey, Signature};
use super::policy::{HOTSWAPPED_AGAIN, INITIALIZER, LOADED_FOR_USE, Mechanism, Probability, REMEMBERED};
use super::reachable::Reachable;
use super::receivers::Spare;
use super::record::Callee;
use super::source::{Source, way_of};
use super::{CallGraph, likely};

impl Reachable {
    pub(super) fn foresee_initializer(&mut self, known: &Known, initialized: &str, class: ClassKey, from: Source) {
        if known.is_still_to_come(initialized, class) {
            self.initializers.insert(initialized.into(), from);
        }
    }
}

impl CallGraph {
    /// Of a class that is being loaded on behalf of the graph, selects its constructors, and what overrides methods of its supertypes.
    pub(super) fn foresee_instances(&mut self, class: ClassKey) {
        let mirror = self.known.mirrors.get(class);
        let loader = mirror.loader;
        let caller = self.known.options.caller(loader);
        if !self.known.is_foreseeing() || !self.known.options.admits_class(&mirror.name, loader, caller) {
            return;
        }
        self.likely.loaded_by_graph += 1;
        if !self.likely.loads_much() || self.known.options.without.has(Mechanism::Loaded) {
            return;
        }
        let mut names = mirror.super_names.clone();
        let mut supertypes = Vec::new();
        // They are loaded before it, and linked after it perhaps.
        while let Some(name) = names.pop() {
            for key in self.known.mirrors.visible(&name, loader) {
                if !supertypes.contains(&key) {
                    supertypes.push(key);
                    names.extend(self.known.mirrors.get(key).super_names.iter().cloned());
                }
            }
        }
        self.foresee_used(class, &supertypes, true);
    }

    /// Of a loaded class that is hotswapped so often that it will be again, selects what overrides methods of its supertypes.
    pub(super) fn foresee_overrides(&mut self, class: ClassKey) {
        let is_again = self.known.mirrors.get(class).hotswaps >= HOTSWAPPED_AGAIN;
        let is_left_out = self.known.options.without.has(Mechanism::Loaded);
        if !is_again || is_left_out || !self.known.is_foreseeing() || !self.likely.is_starting() {
            return;
        }
        let mut supertypes = self.known.mirrors.supertypes(class);
        supertypes.retain(|key| *key != class);
        self.foresee_used(class, &supertypes, false);
    }

    /// Selects a class's methods that override those of the supertypes that are known, and its constructors if they are wanted.
    fn foresee_used(&mut self, class: ClassKey, supertypes: &[ClassKey], constructors: bool) {
        let caller = self.known.options.caller(self.known.mirrors.get(class).loader);
        let overrides = |graph: &CallGraph, signature| {
            let mut overridden = supertypes.iter().filter_map(|key| graph.known.mirrors.method(*key, signature));
            overridden.any(|method| method.is_virtual())
        };
        let declared: Vec<Signature> =
            self.known.mirrors.methods(class).into_iter().flat_map(|methods| methods.keys().copied()).collect();
        for signature in declared {
            let has_code = self.known.mirrors.method(class, signature).is_some_and(|method| method.has_code());
            let (mirror, name) = (self.known.mirrors.get(class), &*self.known.mirrors.signature(signature).0);
            let is_used = if name == "<init>" { constructors } else { overrides(self, signature) };
            // What is hidden is looked through when something calls it.
            if has_code
                && is_used
                && self.known.options.shows(&mirror.name, mirror.loader, name, caller)
                && let Some(method) = self.select(class, signature, Source::new(caller, None, Way::Override))
            {
                self.methods.raise(method, LOADED_FOR_USE);
            }
        }
        // What was not known is asked for when it is needed.
        self.known.needed.clear();
    }

    /// Of a class whose file is being rewritten, selects what its methods will probably call in it.
    pub(super) fn foresee_in(&mut self, class: ClassKey) {
        if !self.known.is_foreseeing() || self.known.options.without.has(Mechanism::Foresee) {
            return;
        }
        let least = self.likely.threshold_within(&self.known);
        self.methods.set_trigger(Trigger::Foreseen);
        let mut at = 0;
        while let Some(method) = self.methods.in_class(class).get(at).copied() {
            at += 1;
            let Some(record) = self.methods.record(method) else { continue };
            let (signature, probability) = (record.signature, record.probability);
            if record.expanded || record.refused.is_some() || record.lines.is_some() || probability < REMEMBERED {
                continue;
            }
            let (name, descriptor) = self.known.mirrors.signature(signature).clone();
            let Some(sites) = self.known.code.sites(class, &name, &descriptor) else { continue };
            let caller = self.known.options.caller(self.known.mirrors.get(class).loader);
            for call in &sites.calls {
                let from_here = probability * likely::of_call(call.likelihood);
                let from = Source::new(caller, Some(method), way_of(call.kind));
                self.foresee(call, class, from, from_here, least);
            }
            if probability * INITIALIZER >= REMEMBERED {
                let from = Source::new(caller, Some(method), Way::Initializer);
                for initialized in &sites.initialized {
                    self.reachable.foresee_initializer(&self.known, initialized, class, from);
                }
            }
        }
        // What was not known is asked for when it is needed.
        self.known.needed.clear();
    }

    fn foresee(&mut self, call: &CallSite, class: ClassKey, from: Source, from_here: Probability, least: Probability) {
        let signature = self.known.mirrors.intern_signature(&call.name, &call.descriptor);
        let mirror = self.known.mirrors.get(class);
        let loader = mirror.loader;
        if call.owner == mirror.name {
            let Some(method) = self.known.mirrors.method(class, signature).filter(|method| method.has_code()) else {
                return;
            };
            let is_dispatched = call.kind == CallKind::Virtual && method.is_virtual() && !method.is_final();
            let classes = if is_dispatched { self.known.mirrors.subtypes(class).len() } else { 1 };
            let probability = from_here * likely::of_target(1, classes);
            if probability >= least
                && self.likely.has_run(&self.known, class, signature) != Some(false)
                && let Some(method) = self.select(class, signature, from.through(class))
            {
                self.methods.raise(method, probability);
            }
        } else if from_here >= REMEMBERED && self.known.is_still_to_come(&call.owner, class) {
            // It is only remembered: there is no class that it could be selected in.
            self.reach_call(call, loader, from, Spare::Nothing, &mut Vec::<Callee>::new());
        }
    }
}
