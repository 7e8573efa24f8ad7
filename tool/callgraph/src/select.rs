//! Selection: what a method can call next, and whether a method is instrumented.

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::{CallSite, CallSites};
use headwater_terms::Scheme;
use headwater_terms::reach::{Obstacle, Way};

use super::filter::Caller;
use super::hidden::Code;
use super::known::Known;
use super::likely::Ground;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::policy::{CALLED_BACK, INITIALIZER, Mechanism, Probability, UNNAMED};
use super::reachable::Reachable;
use super::record::Callee;
use super::reflection::initializes_any;
use super::source::{Called, Named, Source, Spare, way_of};
use super::{CallGraph, likely};

/// Why a class is left alone that would be far slower for good.
const LOOP: &str = "a thread runs a loop in its class, which would be interpreted for as long as it goes on (--gentle off instruments it)";

impl Reachable {
    /// Has a method with code instrumented; its id, if it can be.
    pub(super) fn select(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        key: ClassKey,
        signature: Signature,
        from: Source,
    ) -> Option<MethodId> {
        let (caller, cause) = (from.caller, from.cause);
        if let Some(id) = methods.of(key, signature) {
            // A native root would be seen where the graph calls it, and nowhere else.
            let is_native = methods.record(id).is_some_and(|record| record.is_native);
            if caller != Caller::Root || !is_native {
                methods.is_reached_again(id, cause);
                return Some(id);
            }
        }
        let mirror = known.mirrors.get(key);
        let (name, descriptor) = known.mirrors.signature(signature);
        if !known.options.admits_class(&mirror.name, mirror.loader, caller) {
            return None;
        }
        if mirror.lambda_host().is_some() {
            self.reach_lambda(known, methods, key, signature, cause);
            return None;
        }
        if !known.options.shows(&mirror.name, mirror.loader, name, caller) {
            let has_code = known.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && known.options.scheme != Scheme::Total {
                self.hidden.push(key, signature, cause);
            }
            methods.passed_over.add(key, signature, Obstacle::Filtered, cause);
            return None;
        }
        if known.options.skip_trivial && caller != Caller::Root {
            let has_code = known.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && !known.has_code(key) && !known.code.is_complete() {
                known.lack();
                return None;
            }
            if known.code.is_trivial(key, name, descriptor) {
                methods.leave_trivial(key, signature);
                methods.passed_over.add(key, signature, Obstacle::Trivial, cause);
                return None;
            }
        }
        let mirror = known.mirrors.get(key);
        let refusal = if known.mirrors.method(key, signature).is_some_and(|method| method.is_native()) {
            if known.options.natives && caller != Caller::Root {
                methods.passed_over.add(key, signature, Obstacle::Native, cause);
                return None;
            }
            Some((Obstacle::Native, "it is native (--natives shows the calls of it)"))
        } else if known.mirrors.method(key, signature).is_some_and(|method| !method.has_code()) {
            return None;
        } else if !mirror.modifiable {
            // A hidden class: it calls others all the same.
            self.hidden.push(key, signature, cause);
            Some((Obstacle::Unmodifiable, "the JVM does not let its class be changed"))
        } else if mirror.looping {
            Some((Obstacle::Refused, LOOP))
        } else if mirror.refused {
            Some((Obstacle::Refused, "its class was refused before"))
        } else if methods.are_full() {
            Some((Obstacle::Numbers, "there are no more method numbers"))
        } else {
            None
        };
        if let Some((why, reason)) = refusal {
            methods.passed_over.add(key, signature, why, cause);
            if !mirror.is_made_for_code() {
                methods.skip_once(known, key, signature, reason);
            }
            return None;
        }
        let id = methods.add(known, key, signature, None, cause);
        match known.options.scheme {
            Scheme::Lazy => self.frontier.push(id),
            Scheme::Eager => self.due.push(id),
            Scheme::Total => {}
        }
        Some(id)
    }

    /// The same in each of these classes.
    pub(super) fn select_at(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        places: Vec<ClassKey>,
        (signature, from): Called,
        selected: &mut Vec<MethodId>,
    ) {
        selected.extend(places.into_iter().filter_map(|place| self.select(known, methods, place, signature, from)));
    }

    /// Selects what a virtual call runs on objects of a class.
    pub(super) fn select_for(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        class: ClassKey,
        (signature, from): Called,
        selected: &mut Vec<MethodId>,
    ) {
        let places = known.places_of(class, signature, from.caller);
        self.select_at(known, methods, places, (signature, from), selected);
    }

    /// The same of a call that is about to be made.
    pub(super) fn select_received(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        class: ClassKey,
        (signature, from): Called,
    ) {
        let mut selected = Vec::new();
        self.select_for(known, methods, class, (signature, from.through(class)), &mut selected);
        selected.into_iter().for_each(|method| methods.raise(method, 1.0));
    }

    /// The same if code outside the filter makes it, on an object that was given away.
    pub(super) fn select_exposed(
        &mut self,
        ground: &mut Ground<'_>,
        class: ClassKey,
        (signature, from): Called,
        selected: &mut Vec<MethodId>,
    ) {
        self.hidden.set_exposing(true);
        let mut places = ground.known.places_of(class, signature, from.caller);
        places.retain(|place| !self.watched.is_watched(ground.reading(), *place, signature, from));
        self.select_at(ground.known, ground.methods, places, (signature, from), selected);
        self.hidden.set_exposing(false);
    }

    /// The same on an object that nobody names.
    pub(super) fn select_unnamed(
        &mut self,
        ground: &mut Ground<'_>,
        class: ClassKey,
        signature: Signature,
        from: Source,
    ) {
        if ground.known.mirrors.get(class).lambda_host().is_some() {
            self.hidden.push_unnamed(class, signature, from.cause);
            return;
        }
        let mut places = ground.known.places_of(class, signature, from.caller);
        places.retain(|place| {
            let is_left = ground.methods.is_left_running(ground.known, *place);
            if is_left {
                ground.methods.passed_over.add(*place, signature, Obstacle::Running, from.cause);
            }
            !is_left && !self.watched.is_watched(ground.reading(), *place, signature, from)
        });
        let mut selected: Vec<MethodId> = Vec::new();
        self.select_at(ground.known, ground.methods, places, (signature, from), &mut selected);
        selected.into_iter().for_each(|method| ground.methods.raise(method, UNNAMED));
    }

    /// Selects every method of a class that the filters admit.
    pub(super) fn select_all_in(&mut self, known: &Known, methods: &mut Methods, key: ClassKey) {
        let mirror = known.mirrors.get(key);
        let is_known = mirror.linked || mirror.id.is_none();
        if !is_known || !known.options.admits_class(&mirror.name, mirror.loader, Caller::Application) {
            return;
        }
        let Some(declared) = known.mirrors.methods(key) else {
            known.need(key);
            return;
        };
        for signature in declared.keys().copied().collect::<Vec<_>>() {
            self.select(known, methods, key, signature, Source::new(Caller::Application, None, Way::Total));
        }
    }

    /// Selects methods that were watched and have run: calls of them may be missing.
    pub(super) fn select_run(&mut self, known: &Known, methods: &mut Methods, run: &[(ClassKey, Signature, Source)]) {
        let mut selected = Vec::new();
        for (key, signature, from) in run {
            selected.extend(self.select(known, methods, *key, *signature, *from));
        }
        selected.iter().for_each(|method| methods.raise(*method, CALLED_BACK));
        methods.miss(selected);
    }
}

impl CallGraph {
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
            if initializes_any(call) {
                self.reachable.initialize_any(&self.known, &mut self.methods, from(Way::Initializer));
            }
            self.plan.reflection.watch(&self.known, &mut self.plan.to_hotswap, call);
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
        let (known, methods) = (&self.known, &mut self.methods);
        for name in &sites.initialized {
            let class = Named { name, loader };
            self.reachable.reach_initializer(known, methods, class, from(Way::Initializer), &mut callees);
        }
        self.reachable.hidden.set_probability(CALLED_BACK);
        self.escape_through(sites, (key, signature), from(Way::Callback), &mut callees);
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
        let CallGraph { known, methods, likely, reachable, plan, .. } = self;
        if call.kind.is_handle() && reachable.by_handle.insert(signature) {
            reachable.give_results_out(known, methods, &mut plan.guards, signature);
        }
        let ground = &mut Ground { known, methods, likely };
        let owner = Named { name: &call.owner, loader };
        if call.kind.is_virtual() {
            reachable.reach_virtual(ground, owner, (signature, from), spare, callees);
        } else {
            reachable.reach_direct(ground, owner, (signature, from), spare, callees);
        }
    }

    /// Selects what code outside the filter may call when a method with these call sites runs.
    fn escape_through(
        &mut self,
        sites: &CallSites,
        method: (ClassKey, Signature),
        from: Source,
        callees: &mut Vec<Callee>,
    ) {
        let CallGraph { known, methods, likely, reachable, escape, .. } = self;
        escape.opaque.expose_loaders(&mut Ground { known, methods, likely }, reachable, &mut escape.mentions, from);
        let ways = escape.ways_out(known, reachable, sites, method, from);
        if ways.open {
            self.open_up(from.via(Way::Unnamed));
        }
        if !ways.lead_out() || self.known.options.without.has(Mechanism::Expected) {
            return;
        }
        let CallGraph { known, methods, likely, reachable, escape, .. } = self;
        let ground = &mut Ground { known, methods, likely };
        let selected = escape.expose_mentioned(ground, reachable, sites, method.0, &ways);
        let of_callback = |method| Callee { method, probability: methods.of_callback(known, method) };
        callees.extend(selected.into_iter().map(of_callback));
    }

    /// A thread leaves the filter: there, it comes to any objects, and anything may be called by reflection.
    pub(super) fn open_up(&mut self, from: Source) {
        let CallGraph { known, methods, likely, reachable, escape, plan, .. } = self;
        if escape.opaque.is_opened(known, from.caller) {
            return;
        }
        plan.reflection.expect(known, &mut plan.to_hotswap);
        escape.opaque.open_up(&mut Ground { known, methods, likely }, reachable, &mut escape.mentions, from);
    }
}
