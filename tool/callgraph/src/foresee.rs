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

use headwater_rewriter::CallKind;
use headwater_terms::reach::{Trigger, Way};

use super::known::Known;
use super::likely::Likely;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::policy::{HOTSWAPPED_AGAIN, INITIALIZER, LOADED_FOR_USE, Mechanism, Probability, REMEMBERED};
use super::reachable::Reachable;
use super::source::{Source, Spare, way_of};
use super::{CallGraph, likely};

impl Likely {
    /// A class is being loaded on behalf of the graph: its supertypes, if its constructors are to be selected, and what overrides methods of these.
    pub(super) fn foresees_instances(&mut self, known: &Known, class: ClassKey) -> Option<Vec<ClassKey>> {
        let mirror = known.mirrors.get(class);
        let loader = mirror.loader;
        let caller = known.options.caller(loader);
        if !known.is_foreseeing() || !known.options.admits_class(&mirror.name, loader, caller) {
            return None;
        }
        self.loaded_by_graph += 1;
        if !self.loads_much() || known.options.without.has(Mechanism::Loaded) {
            return None;
        }
        let mut names = mirror.super_names.clone();
        let mut supertypes = Vec::new();
        // They are loaded before it, and linked after it perhaps.
        while let Some(name) = names.pop() {
            for key in known.mirrors.visible(&name, loader) {
                if !supertypes.contains(&key) {
                    supertypes.push(key);
                    names.extend(known.mirrors.get(key).super_names.iter().cloned());
                }
            }
        }
        Some(supertypes)
    }

    /// A loaded class is hotswapped: its supertypes, if that is so often that it will be again, and what overrides methods of these is to be selected.
    pub(super) fn foresees_overrides(&self, known: &Known, class: ClassKey) -> Option<Vec<ClassKey>> {
        let is_again = known.mirrors.get(class).hotswaps >= HOTSWAPPED_AGAIN;
        let is_left_out = known.options.without.has(Mechanism::Loaded);
        if !is_again || is_left_out || !known.is_foreseeing() || !self.is_starting() {
            return None;
        }
        let mut supertypes = known.mirrors.supertypes(class);
        supertypes.retain(|key| *key != class);
        Some(supertypes)
    }

    /// How likely a method of a class is entered by a call in the class itself that is made with this probability; `None` if less than `least`, or
    /// where it is not expected to be.
    fn of_own_call(
        &self,
        known: &Known,
        kind: CallKind,
        (class, signature): (ClassKey, Signature),
        made: Probability,
        least: Probability,
    ) -> Option<Probability> {
        let method = known.mirrors.method(class, signature).filter(|method| method.has_code())?;
        let is_dispatched = kind == CallKind::Virtual && method.is_virtual() && !method.is_final();
        let classes = if is_dispatched { known.mirrors.subtypes(class).len() } else { 1 };
        let probability = made * likely::of_target(1, classes);
        let is_expected = probability >= least && self.has_run(known, class, signature) != Some(false);
        is_expected.then_some(probability)
    }
}

impl Reachable {
    fn foresee_initializer(&mut self, known: &Known, initialized: &str, class: ClassKey, from: Source) {
        if known.is_still_to_come(initialized, class) {
            self.initializers.insert(initialized.into(), from);
        }
    }

    /// Selects a class's methods that override those of the supertypes that are known, and its constructors if they are wanted.
    pub(super) fn foresee_used(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        class: ClassKey,
        supertypes: &[ClassKey],
        constructors: bool,
    ) {
        let caller = known.options.caller(known.mirrors.get(class).loader);
        let declared: Vec<Signature> =
            known.mirrors.methods(class).into_iter().flat_map(|methods| methods.keys().copied()).collect();
        for signature in declared {
            let has_code = known.mirrors.method(class, signature).is_some_and(|method| method.has_code());
            let (mirror, name) = (known.mirrors.get(class), &*known.mirrors.signature(signature).0);
            let mut overridden = supertypes.iter().filter_map(|key| known.mirrors.method(*key, signature));
            let is_used = match name {
                "<init>" => constructors,
                _ => overridden.any(|method| method.is_virtual()),
            };
            // What is hidden is looked through when something calls it.
            if has_code
                && is_used
                && known.options.shows(&mirror.name, mirror.loader, name, caller)
                && let Some(method) =
                    self.select(known, methods, class, signature, Source::new(caller, None, Way::Override))
            {
                methods.raise(method, LOADED_FOR_USE);
            }
        }
        known.ask_later();
    }
}

impl CallGraph {
    /// Of a class whose file is being rewritten, selects what its methods will probably call in it.
    pub(super) fn foresee_in(&mut self, class: ClassKey) {
        if !self.known.is_foreseeing() || self.known.options.without.has(Mechanism::Foresee) {
            return;
        }
        let least = self.likely.threshold_within(&self.known);
        self.methods.set_trigger(Trigger::Foreseen);
        let loader = self.known.mirrors.get(class).loader;
        let caller = self.known.options.caller(loader);
        let mut at = 0;
        while let Some(method) = self.methods.in_class(class).get(at).copied() {
            at += 1;
            let Some(record) = self.methods.record(method) else { continue };
            let (signature, probability) = (record.signature, record.probability);
            if record.expanded || record.refused.is_some() || record.lines.is_some() || probability < REMEMBERED {
                continue;
            }
            let (name, descriptor) = self.known.mirrors.signature(signature);
            let Some(sites) = self.known.code.sites(class, name, descriptor) else { continue };
            for call in &sites.calls {
                let from_here = probability * likely::of_call(call.likelihood);
                let from = Source::new(caller, Some(method), way_of(call.kind));
                let called = self.known.mirrors.intern_signature(&call.name, &call.descriptor);
                let CallGraph { known, methods, likely, reachable, .. } = self;
                if call.owner == known.mirrors.get(class).name {
                    let entered = likely.of_own_call(known, call.kind, (class, called), from_here, least);
                    if let Some(probability) = entered
                        && let Some(method) = reachable.select(known, methods, class, called, from.through(class))
                    {
                        methods.raise(method, probability);
                    }
                } else if from_here >= REMEMBERED && known.is_still_to_come(&call.owner, class) {
                    // It is only remembered: there is no class that it could be selected in.
                    self.reach_call(call, loader, from, Spare::Nothing, &mut Vec::new());
                }
            }
            if probability * INITIALIZER >= REMEMBERED {
                let from = Source::new(caller, Some(method), Way::Initializer);
                for initialized in &sites.initialized {
                    self.reachable.foresee_initializer(&self.known, initialized, class, from);
                }
            }
        }
        self.known.ask_later();
    }
}
