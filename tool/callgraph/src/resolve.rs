//! From calls to the methods that they can run: class hierarchy analysis over the loaded classes (JFluid 6.2), and its
//! application to classes that come later.

use std::sync::Arc;

use headwater_protocol::{LoaderId, MethodId};
use headwater_terms::Scheme;
use headwater_terms::reach::Obstacle;
use rustc_hash::{FxHashMap, FxHashSet};

use super::CallGraph;
use super::cause::Cause;
use super::filter::Caller;
use super::known::{Known, Target};
use super::likely::of_target;
use super::mirror::{CLINIT, ClassKey, Declared, Signature};
use super::policy::{INITIALIZER, LEAST_SHARE, LOADED_LATER};
use super::reachable::{Applied, Reachable, Reached};
use super::receivers::Spare;
use super::record::{Callee, PatternIndex};
use super::source::{Called, Source, target};

impl Known {
    /// The classes that declare what a virtual call runs on objects of a class.
    pub(super) fn places_of(&mut self, class: ClassKey, signature: Signature, caller: Caller) -> Vec<ClassKey> {
        let (mut places, mut unknown) = (Vec::new(), Vec::new());
        self.selection(class, signature, caller, &mut places, &mut unknown);
        unknown.into_iter().for_each(|class| self.need(class));
        places
    }

    /// The method that a virtual call runs on objects of a class (JVMS 5.4.6): the nearest up the superclasses, which may
    /// be one that is no subtype of the call's owner, and any above it that only classes of another package could have overridden; else the
    /// superinterfaces' defaults, all of them. Of `unknown` classes the methods would have to be known.
    pub(super) fn selection(
        &self,
        class: ClassKey,
        signature: Signature,
        caller: Caller,
        places: &mut Vec<ClassKey>,
        unknown: &mut Vec<ClassKey>,
    ) {
        // What is above one of the JDK's is the JDK's, too.
        if self.mirrors.get(class).loader.is_jdk() && !self.options.admits_jdk(caller) {
            return;
        }
        let mut at = Some(class);
        let mut nearest = None;
        while let Some(key) = at {
            let mirror = self.mirrors.get(key);
            if !self.options.admits_class(&mirror.name, mirror.loader, caller) {
                // Above a class that is not instrumented there is none that is.
                break;
            }
            at = mirror.super_class;
            match self.mirrors.methods(key) {
                None => unknown.push(key),
                Some(methods) => {
                    let found = methods.get(&signature).filter(|method| !method.is_static() && !method.is_abstract());
                    let is_another = |method: &&Declared| {
                        nearest
                            .is_none_or(|nearest| method.is_of_package() && !self.mirrors.share_package(key, nearest))
                    };
                    if found.filter(is_another).is_some() {
                        places.push(key);
                        nearest = nearest.or(Some(key));
                    }
                }
            }
        }
        if nearest.is_some() {
            return;
        }
        for key in self.mirrors.supertypes(class) {
            let mirror = self.mirrors.get(key);
            if !mirror.is_interface() || !self.options.admits_class(&mirror.name, mirror.loader, caller) {
                continue;
            }
            match self.mirrors.methods(key) {
                None => unknown.push(key),
                Some(methods) => {
                    if methods.get(&signature).is_some_and(|method| !method.is_static() && method.has_code())
                        && !places.contains(&key)
                    {
                        places.push(key);
                    }
                }
            }
        }
    }

    /// The supertypes of a class that is being loaded; `None` when some are not loaded.
    pub(super) fn known_supertypes(&self, class: ClassKey) -> Option<Vec<ClassKey>> {
        let mirror = self.mirrors.get(class);
        let mut found = Vec::new();
        let mut known = FxHashSet::default();
        for name in &mirror.super_names {
            let direct = self.mirrors.visible(name, mirror.loader);
            let linked: Vec<ClassKey> = direct.into_iter().filter(|key| self.mirrors.get(*key).linked).collect();
            if linked.is_empty() {
                return None;
            }
            for key in linked {
                found.extend(self.mirrors.supertypes(key).into_iter().filter(|key| known.insert(*key)));
            }
        }
        Some(found)
    }
}

impl Reachable {
    pub(super) fn virtual_calls_on(&self, owner: ClassKey) -> Vec<Called> {
        let reached = self.virtual_on.get(&owner).into_iter().flatten();
        reached.map(|((signature, caller), reached)| called(*signature, *caller, reached.cause)).collect()
    }
}

impl CallGraph {
    /// A virtual or interface call: every method that it runs on some loaded subtype; or but those that are spared because the
    /// call is told what it is made on.
    pub(super) fn reach_virtual(
        &mut self,
        owner: &str,
        loader: LoaderId,
        (signature, from): Called,
        spare: Spare,
        callees: &mut Vec<Callee>,
    ) {
        let caller = from.caller;
        self.reachable.virtual_anywhere.insert(signature, from);
        let what = Applied::Virtual((signature, caller), spare);
        let owners = self.still_to_apply(owner, loader, &what);
        let may_come = self.known.mirrors.may_come(&owners, loader);
        if may_come {
            let pending = self.reachable.virtual_pending.entry(owner.into()).or_default();
            pending.entry((signature, caller)).or_insert(from.cause);
        }
        let (name, needs_at_first) = (owner, self.known.needs);
        for owner in owners {
            let known = self.reachable.virtual_on.get(&owner).and_then(|on| on.get(&(signature, caller)));
            if let Some(known) = known.filter(|known| known.spared == Spare::Nothing || known.spared == spare) {
                callees.extend(known.methods.iter());
                continue;
            }
            let from = from.through(owner);
            let needs_before = self.known.needs;
            let (mut selected, mut leaves) = (Vec::new(), false);
            // A private method is the one that runs, whatever the object's class declares (JVMS 5.4.6).
            let runs_own =
                self.known.mirrors.method(owner, signature).is_some_and(|it| it.is_private() && !it.is_static());
            if runs_own {
                self.select_at(vec![owner], signature, from, &mut selected);
            }
            for subtype in self.known.mirrors.subtypes(owner).into_iter().filter(|_| !runs_own) {
                if !self.known.mirrors.get(subtype).is_abstract_class() {
                    let mut places = self.known.places_of(subtype, signature, caller);
                    match spare {
                        Spare::Nothing => {}
                        Spare::Idle => self.spare_idle(&mut places, signature, from),
                        Spare::Watched => places.retain(|place| {
                            !self.reachable.watched.is_watched(
                                &self.known,
                                &self.methods,
                                &self.likely,
                                *place,
                                signature,
                                from,
                            )
                        }),
                    }
                    self.select_at(places, signature, from, &mut selected);
                    leaves = leaves || self.known.inherits_from_outside(subtype, signature, caller);
                }
            }
            selected.sort_unstable();
            let classes = selected.len();
            let methods: Arc<[Callee]> = selected
                .chunk_by(PartialEq::eq)
                .map(|same| Callee { method: same[0], probability: of_target(same.len(), classes) })
                .collect();
            callees.extend(methods.iter());
            if self.known.needs == needs_before {
                if leaves {
                    self.reachable.leaving.entry(name.into()).or_default().insert((signature, caller));
                }
                let reached = Reached { methods, spared: spare, leaves, cause: from.cause };
                self.pass_over_named(owner, signature, from);
                self.reachable.virtual_on.entry(owner).or_default().insert((signature, caller), reached);
            }
        }
        if may_come && self.known.needs == needs_at_first {
            self.has_applied(name, loader, what);
        }
    }

    /// Leaves out what has never run: the call is told what it is made on.
    fn spare_idle(&mut self, places: &mut Vec<ClassKey>, signature: Signature, from: Source) {
        places.retain(|place| {
            let is_idle = self.likely.is_idle(&self.known, &self.methods, *place, signature);
            if is_idle {
                self.methods.passed_over.add(*place, signature, Obstacle::Spared, from.cause);
            }
            !is_idle
        });
    }

    /// Selects what a virtual call runs on objects of a class.
    pub(super) fn select_for(
        &mut self,
        class: ClassKey,
        signature: Signature,
        from: Source,
        selected: &mut Vec<MethodId>,
    ) {
        let places = self.known.places_of(class, signature, from.caller);
        self.select_at(places, signature, from, selected);
    }

    pub(super) fn select_at(
        &mut self,
        places: Vec<ClassKey>,
        signature: Signature,
        from: Source,
        selected: &mut Vec<MethodId>,
    ) {
        selected.extend(places.into_iter().filter_map(|place| self.select(place, signature, from)));
    }

    /// A static or special call: the method that the name resolves to (JVMS 5.4.3.3).
    pub(super) fn reach_direct(
        &mut self,
        owner: &str,
        loader: LoaderId,
        (signature, from): Called,
        spare: Spare,
        callees: &mut Vec<Callee>,
    ) {
        let caller = from.caller;
        let what = Applied::Direct((signature, caller), spare);
        let owners = self.still_to_apply(owner, loader, &what);
        let may_come = self.known.mirrors.may_come(&owners, loader);
        if may_come {
            let pending = self.reachable.direct_pending.entry(owner.into()).or_default();
            pending.entry((signature, caller)).or_insert(from.cause);
            // It may be here already, and extend what is above it.
            self.reach_inherited(owner, (signature, from), callees);
        }
        let (name, needs_at_first, mut spares) = (owner, self.known.needs, false);
        for owner in owners {
            if let Some(known) = self.reachable.direct_done.get(&(owner, signature, caller)) {
                callees.extend(known.map(|method| Callee { method, probability: 1.0 }));
                continue;
            }
            let needs_before = self.known.needs;
            let (mut selected, mut spared) = (None, false);
            // Superclasses come before superinterfaces where both are on the way up: `supertypes` goes level by level, so
            // the nearest declaration is found first; a second one, of an interface, does no harm.
            for key in self.known.mirrors.supertypes(owner) {
                let mirror = self.known.mirrors.get(key);
                if !self.known.options.admits_class(&mirror.name, mirror.loader, caller) {
                    continue;
                }
                match self.known.mirrors.method(key, signature) {
                    Some(method) if method.has_code() || method.is_native() => {
                        spared = spare == Spare::Watched
                            && self.reachable.watched.is_watched(
                                &self.known,
                                &self.methods,
                                &self.likely,
                                key,
                                signature,
                                from,
                            );
                        selected = if spared { None } else { self.select(key, signature, from) };
                        break;
                    }
                    Some(_) => {}
                    None if self.known.mirrors.methods(key).is_none() => {
                        self.known.need(key);
                    }
                    None => {}
                }
            }
            callees.extend(selected.map(|method| Callee { method, probability: 1.0 }));
            // Before it is linked, what is above it is not known.
            if self.known.needs == needs_before && self.known.mirrors.get(owner).linked && !spared {
                self.pass_over_named(owner, signature, from);
                self.reachable.direct_done.insert((owner, signature, caller), selected);
            }
            spares |= spared;
        }
        if may_come && !spares && self.known.needs == needs_at_first {
            self.has_applied(name, loader, what);
        }
    }

    /// Code in the graph may initialise a class, and with it its supertypes (JVMS 5.5).
    pub(super) fn reach_initializer(&mut self, class: &str, loader: LoaderId, from: Source, callees: &mut Vec<Callee>) {
        let what = Applied::Initializer(from.caller);
        let classes = self.still_to_apply(class, loader, &what);
        let may_come = self.known.mirrors.may_come(&classes, loader);
        if may_come {
            self.reachable.initializers.insert(class.into(), from);
        }
        let needs_before = self.known.needs;
        for class in classes {
            self.select_initializers(class, from, callees);
        }
        if may_come && self.known.needs == needs_before {
            self.has_applied(class, loader, what);
        }
    }

    pub(super) fn select_initializers(&mut self, class: ClassKey, from: Source, callees: &mut Vec<Callee>) {
        let caller = from.caller;
        let signature = self.known.mirrors.intern_signature(CLINIT.0, CLINIT.1);
        for key in self.known.mirrors.supertypes(class) {
            let mirror = self.known.mirrors.get(key);
            if mirror.initialized || !self.known.options.admits_class(&mirror.name, mirror.loader, caller) {
                continue;
            }
            match self.known.mirrors.methods(key) {
                None => {
                    self.known.need(key);
                }
                Some(methods) if methods.contains_key(&signature) => {
                    let selected = self.select(key, signature, from);
                    callees.extend(selected.map(|method| Callee { method, probability: INITIALIZER }));
                }
                Some(_) => {}
            }
        }
    }

    /// Applies what is reachable already to a class that has been linked: all its supertypes are known.
    pub(super) fn apply_to(&mut self, class: ClassKey) {
        self.select_roots_in(class);
        for supertype in self.known.mirrors.supertypes(class) {
            let abstract_roots = self.reachable.abstract_roots.get(&supertype).cloned();
            for (signature, pattern) in abstract_roots.into_iter().flatten() {
                self.select_implementation(class, signature, pattern);
            }
        }
        if self.known.roots_only {
            return;
        }
        self.plan.reflection.probe_invokers(&self.known, &mut self.plan.to_hotswap);
        self.escape.mentions.look_for_blind_spots(&self.known, class);
        self.plan.natives.look_again(&self.known, class);
        self.plan.probe_passages(&self.known);
        let name = self.known.mirrors.get(class).name.clone();
        let loader = self.known.mirrors.get(class).loader;
        if self.known.options.scheme == Scheme::Total {
            self.select_all_in(class);
        }
        let mut callees = Vec::new();
        for called in pending(self.reachable.direct_pending.get(&name)) {
            self.reach_direct(&name, loader, called, Spare::Nothing, &mut callees);
            self.begin_to_leave_if_inherited(class, target(called));
        }
        for called in pending(self.reachable.virtual_pending.get(&name)) {
            self.reach_virtual(&name, loader, called, Spare::Nothing, &mut callees);
            self.begin_to_leave_if_inherited(class, target(called));
        }
        let by_reflection = self.plan.reflection.initializes;
        if let Some(from) = self.reachable.initializers.get(&name).copied().or(by_reflection) {
            self.select_initializers(class, from, &mut callees);
        }
        callees.into_iter().for_each(|callee| self.methods.raise(callee.method, callee.probability * LOADED_LATER));
        let is_abstract = self.known.mirrors.get(class).is_abstract_class();
        for supertype in self.known.mirrors.supertypes(class) {
            for (signature, from) in self.reachable.virtual_calls_on(supertype) {
                let mut selected = Vec::new();
                self.select_for(class, signature, from, &mut selected);
                selected.into_iter().for_each(|method| self.methods.raise(method, LEAST_SHARE));
                if !is_abstract && self.known.inherits_from_outside(class, signature, from.caller) {
                    self.begin_to_leave(supertype, (signature, from.caller));
                }
            }
            self.escape_again(class, supertype);
        }
        self.expose_if_open(class);
    }

    /// Applies what is reachable already to a class whose loading has begun. Its supertypes are perhaps not loaded yet: then
    /// the methods that override something by their signature are taken for reachable. That may be too many; it
    /// misses none, and saves a redefinition. What is inherited is left to [`CallGraph::apply_to`].
    pub(super) fn apply_while_loading(&mut self, class: ClassKey, name: &str) {
        for (index, pattern) in self.known.options.roots.clone().iter().enumerate() {
            if let Some(lines) =
                self.known.options.lines_of(PatternIndex(index)).filter(|_| pattern.matches_class(name))
            {
                self.select_lines_in(class, PatternIndex(index), lines);
            } else if pattern.matches_class(name) {
                let roots = self.select_declared(class, |graph, signature| {
                    let (name, descriptor) = graph.known.mirrors.signature(signature);
                    pattern.matches_method(name, descriptor).then_some(Source::ROOT)
                });
                roots.into_iter().for_each(|root| self.mark_root(root, PatternIndex(index)));
            }
        }
        if self.known.roots_only {
            return;
        }
        self.reach_what_it_inherits(class, name);
        let name: Arc<str> = name.into();
        let mut direct = pending(self.reachable.direct_pending.get(&name));
        direct.extend(pending(self.reachable.virtual_pending.get(&name)));
        self.select_declared(class, |_, signature| {
            direct.iter().find(|(wanted, _)| *wanted == signature).map(|(_, from)| *from)
        });
        let by_reflection = self.plan.reflection.initializes;
        if let Some(from) = self.reachable.initializers.get(&name).copied().or(by_reflection) {
            let initializer = self.known.mirrors.intern_signature(CLINIT.0, CLINIT.1);
            self.select_declared(class, |_, signature| (signature == initializer).then_some(from));
            // Loaded next, if they are not loaded yet, and initialised with it.
            for supertype in self.known.mirrors.get(class).super_names.clone() {
                self.reachable.initializers.insert(supertype, from);
            }
        }
        match self.known.known_supertypes(class) {
            Some(supertypes) => {
                for supertype in supertypes {
                    let targets = self.reachable.virtual_calls_on(supertype);
                    self.select_declared(class, |_, signature| {
                        targets.iter().find(|(wanted, _)| *wanted == signature).map(|(_, from)| *from)
                    });
                    self.escape_again(class, supertype);
                }
                self.expose_if_open(class);
                // What was not known is asked for when the class has been linked.
                self.known.needed.clear();
            }
            None => {
                self.select_declared(class, |graph, signature| {
                    let method = graph.known.mirrors.method(class, signature)?;
                    let called = graph.reachable.virtual_anywhere.get(&signature).copied();
                    called
                        .or_else(|| graph.escape.opaque.is_called_from_outside(signature))
                        .filter(|_| method.is_virtual())
                });
            }
        }
    }

    /// Selects declared methods with code, for whom `wanted` says who reaches them; their ids.
    fn select_declared(
        &mut self,
        class: ClassKey,
        wanted: impl Fn(&CallGraph, Signature) -> Option<Source>,
    ) -> Vec<MethodId> {
        let declared: Vec<Signature> =
            self.known.mirrors.methods(class).into_iter().flat_map(|m| m.keys().copied()).collect();
        let select = |signature| wanted(self, signature).and_then(|from| self.select(class, signature, from));
        let selected: Vec<MethodId> = declared.into_iter().filter_map(select).collect();
        selected.iter().for_each(|method| self.methods.raise(*method, LOADED_LATER));
        selected
    }
}

fn called(signature: Signature, caller: Caller, cause: Cause) -> Called {
    (signature, Source { caller, cause })
}

fn pending(targets: Option<&FxHashMap<Target, Cause>>) -> Vec<Called> {
    targets.into_iter().flatten().map(|((signature, caller), cause)| called(*signature, *caller, *cause)).collect()
}
