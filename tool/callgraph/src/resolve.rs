//! From calls to the methods that they can run: class hierarchy analysis over the loaded classes (JFluid 6.2).

use std::sync::Arc;

use headwater_protocol::MethodId;
use headwater_terms::reach::{Obstacle, Way};
use rustc_hash::FxHashSet;

use super::filter::Caller;
use super::known::Known;
use super::likely::{Ground, Likely, Reading, of_target};
use super::methods::Methods;
use super::mirror::{CLINIT, ClassKey, Declared, Signature};
use super::policy::{BY_NAME, INITIALIZER, LOADED_LATER};
use super::reachable::{Applied, Reachable, Reached};
use super::record::Callee;
use super::source::{Called, Named, Source, Spare};

impl Known {
    /// The classes that declare what a virtual call runs on objects of a class.
    pub(super) fn places_of(&self, class: ClassKey, signature: Signature, caller: Caller) -> Vec<ClassKey> {
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

    /// Those of a class's methods that somebody reaches, each with who.
    pub(super) fn declared(
        &self,
        class: ClassKey,
        wanted: impl Fn(Signature) -> Option<Source>,
    ) -> Vec<(Signature, Source)> {
        let declared = self.mirrors.methods(class).into_iter().flat_map(|methods| methods.keys().copied());
        declared.filter_map(|signature| Some((signature, wanted(signature)?))).collect()
    }
}

impl Methods {
    /// Leaves out what has never run: the call is told what it is made on.
    fn spare_idle(&mut self, known: &Known, likely: &Likely, places: &mut Vec<ClassKey>, (signature, from): Called) {
        places.retain(|place| {
            let is_idle = likely.is_idle(known, self, *place, signature);
            if is_idle {
                self.passed_over.add(*place, signature, Obstacle::Spared, from.cause);
            }
            !is_idle
        });
    }
}

impl Reachable {
    /// A virtual or interface call: every method that it runs on some loaded subtype; or but those that are spared because the
    /// call is told what it is made on.
    pub(super) fn reach_virtual(
        &mut self,
        ground: &mut Ground<'_>,
        named: Named<'_>,
        (signature, from): Called,
        spare: Spare,
        callees: &mut Vec<Callee>,
    ) {
        let caller = from.caller;
        self.virtual_anywhere.insert(signature, from);
        let what = Applied::Virtual((signature, caller), spare);
        let owners = self.still_to_apply(ground.known, named, &what);
        let may_come = ground.known.mirrors.may_come(&owners, named.loader);
        if may_come {
            let pending = self.virtual_pending.entry(named.name.into()).or_default();
            pending.entry((signature, caller)).or_insert(from.cause);
        }
        let needs_at_first = ground.known.needs();
        for owner in owners {
            let known = self.virtual_on.get(&owner).and_then(|on| on.get(&(signature, caller)));
            if let Some(known) = known.filter(|known| known.spared == Spare::Nothing || known.spared == spare) {
                callees.extend(known.methods.iter());
                continue;
            }
            let called = (signature, from.through(owner));
            let needs_before = ground.known.needs();
            let (methods, leaves) = self.select_on(ground, owner, called, spare);
            callees.extend(methods.iter());
            if ground.known.needs() == needs_before {
                if leaves {
                    self.leaving.entry(named.name.into()).or_default().insert((signature, caller));
                }
                ground.methods.pass_over_named(ground.known, owner, called);
                let reached = Reached { methods, spared: spare, leaves, cause: called.1.cause };
                self.virtual_on.entry(owner).or_default().insert((signature, caller), reached);
            }
        }
        if may_come && ground.known.needs() == needs_at_first {
            self.has_applied(ground.known, named, what);
        }
    }

    /// Selects what a virtual call on a class can run; and whether it leaves the filter on objects of some.
    fn select_on(
        &mut self,
        ground: &mut Ground<'_>,
        owner: ClassKey,
        (signature, from): Called,
        spare: Spare,
    ) -> (Arc<[Callee]>, bool) {
        let Ground { known, methods, likely } = ground;
        let (mut selected, mut leaves) = (Vec::new(), false);
        // A private method is the one that runs, whatever the object's class declares (JVMS 5.4.6).
        let runs_own = known.mirrors.method(owner, signature).is_some_and(|it| it.is_private() && !it.is_static());
        if runs_own {
            self.select_at(known, methods, vec![owner], (signature, from), &mut selected);
        }
        for subtype in known.mirrors.subtypes(owner).into_iter().filter(|_| !runs_own) {
            if !known.mirrors.get(subtype).is_abstract_class() {
                let mut places = known.places_of(subtype, signature, from.caller);
                match spare {
                    Spare::Nothing => {}
                    Spare::Idle => methods.spare_idle(known, likely, &mut places, (signature, from)),
                    Spare::Watched => places.retain(|place| {
                        let reading = Reading { known, methods, likely };
                        !self.watched.is_watched(reading, *place, signature, from)
                    }),
                }
                self.select_at(known, methods, places, (signature, from), &mut selected);
                leaves = leaves || known.inherits_from_outside(subtype, signature, from.caller);
            }
        }
        selected.sort_unstable();
        let classes = selected.len();
        let methods = selected
            .chunk_by(PartialEq::eq)
            .map(|same| Callee { method: same[0], probability: of_target(same.len(), classes) })
            .collect();
        (methods, leaves)
    }

    /// A static or special call: the method that the name resolves to (JVMS 5.4.3.3).
    pub(super) fn reach_direct(
        &mut self,
        ground: &mut Ground<'_>,
        named: Named<'_>,
        (signature, from): Called,
        spare: Spare,
        callees: &mut Vec<Callee>,
    ) {
        let caller = from.caller;
        let what = Applied::Direct((signature, caller), spare);
        let owners = self.still_to_apply(ground.known, named, &what);
        let may_come = ground.known.mirrors.may_come(&owners, named.loader);
        if may_come {
            let pending = self.direct_pending.entry(named.name.into()).or_default();
            pending.entry((signature, caller)).or_insert(from.cause);
            // It may be here already, and extend what is above it.
            self.reach_inherited(ground, named.name, (signature, from), callees);
        }
        let (needs_at_first, mut spares) = (ground.known.needs(), false);
        for owner in owners {
            if let Some(known) = self.direct_done.get(&(owner, signature, caller)) {
                callees.extend(known.map(|method| Callee { method, probability: 1.0 }));
                continue;
            }
            let needs_before = ground.known.needs();
            let (mut selected, mut spared) = (None, false);
            // Superclasses come before superinterfaces where both are on the way up: `supertypes` goes level by level, so
            // the nearest declaration is found first; a second one, of an interface, does no harm.
            for key in ground.known.mirrors.supertypes(owner) {
                let mirror = ground.known.mirrors.get(key);
                if !ground.known.options.admits_class(&mirror.name, mirror.loader, caller) {
                    continue;
                }
                match ground.known.mirrors.method(key, signature) {
                    Some(method) if method.has_code() || method.is_native() => {
                        spared =
                            spare == Spare::Watched && self.watched.is_watched(ground.reading(), key, signature, from);
                        selected = match spared {
                            true => None,
                            false => self.select(ground.known, ground.methods, key, signature, from),
                        };
                        break;
                    }
                    Some(_) => {}
                    None if ground.known.mirrors.methods(key).is_none() => {
                        ground.known.need(key);
                    }
                    None => {}
                }
            }
            callees.extend(selected.map(|method| Callee { method, probability: 1.0 }));
            // Before it is linked, what is above it is not known.
            if ground.known.needs() == needs_before && ground.known.mirrors.get(owner).linked && !spared {
                ground.methods.pass_over_named(ground.known, owner, (signature, from));
                self.direct_done.insert((owner, signature, caller), selected);
            }
            spares |= spared;
        }
        if may_come && !spares && ground.known.needs() == needs_at_first {
            self.has_applied(ground.known, named, what);
        }
    }

    /// A static method that a class inherits, which may never be linked: it is looked for from its superclass on.
    fn reach_inherited(&mut self, ground: &mut Ground<'_>, owner: &str, called: Called, callees: &mut Vec<Callee>) {
        for (name, loader) in self.unlinked.extended_by(ground.known, owner) {
            let super_class = Named { name: &name, loader };
            self.reach_direct(ground, super_class, called, Spare::Nothing, callees);
        }
    }

    /// A class is being loaded: what has been called on its name may be inherited, and is looked for when methods may be asked for.
    pub(super) fn reach_what_it_inherits(&mut self, known: &Known, class: ClassKey, name: &Arc<str>) {
        let mirror = known.mirrors.get(class);
        let (Some(super_name), loader) = (mirror.super_names.first().cloned(), mirror.loader) else { return };
        let targets = self.direct_pending.get(name).into_iter().flatten();
        let inherited = targets.filter(|((signature, _), _)| known.mirrors.method(class, *signature).is_none());
        let called = inherited.map(|(&(signature, caller), &cause)| (signature, Source { caller, cause }));
        self.unlinked.call_later(name, called);
        self.unlinked.loading(name.clone(), super_name, loader);
    }

    /// Goes on with what has been called by inheritance, until the current work is done.
    pub(super) fn reach_inherited_later(&mut self, ground: &mut Ground<'_>) {
        let mut callees = Vec::new();
        for (name, called) in self.unlinked.called() {
            self.reach_inherited(ground, &name, called, &mut callees);
        }
        callees.into_iter().for_each(|callee| ground.methods.raise(callee.method, callee.probability * LOADED_LATER));
    }

    /// Code in the graph may initialise a class, and with it its supertypes (JVMS 5.5).
    pub(super) fn reach_initializer(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        named: Named<'_>,
        from: Source,
        callees: &mut Vec<Callee>,
    ) {
        let what = Applied::Initializer(from.caller);
        let classes = self.still_to_apply(known, named, &what);
        let may_come = known.mirrors.may_come(&classes, named.loader);
        if may_come {
            self.initializers.insert(named.name.into(), from);
        }
        let needs_before = known.needs();
        for class in classes {
            self.select_initializers(known, methods, class, from, callees);
        }
        if may_come && known.needs() == needs_before {
            self.has_applied(known, named, what);
        }
    }

    pub(super) fn select_initializers(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        class: ClassKey,
        from: Source,
        callees: &mut Vec<Callee>,
    ) {
        let caller = from.caller;
        let signature = known.mirrors.intern_signature(CLINIT.0, CLINIT.1);
        for key in known.mirrors.supertypes(class) {
            let mirror = known.mirrors.get(key);
            if mirror.initialized || !known.options.admits_class(&mirror.name, mirror.loader, caller) {
                continue;
            }
            match known.mirrors.methods(key) {
                None => {
                    known.need(key);
                }
                Some(declared) if declared.contains_key(&signature) => {
                    let selected = self.select(known, methods, key, signature, from);
                    callees.extend(selected.map(|method| Callee { method, probability: INITIALIZER }));
                }
                Some(_) => {}
            }
        }
    }

    /// Code of the graph may initialise classes that it does not name: those that are loaded already, and those that come.
    pub(super) fn initialize_any(&mut self, known: &Known, methods: &mut Methods, from: Source) {
        if self.any_initializer.is_some() {
            return;
        }
        let needs_before = known.needs();
        let mut callees = Vec::new();
        for key in known.mirrors.keys() {
            self.select_initializers(known, methods, key, from, &mut callees);
        }
        callees.into_iter().for_each(|callee| methods.raise(callee.method, BY_NAME));
        self.any_initializer = (known.needs() == needs_before).then_some(from.from(Caller::Application));
    }

    /// Selects what a call by reflection or a handle may run, which names this class's method.
    pub(super) fn reach_reflected(
        &mut self,
        ground: &mut Ground<'_>,
        key: ClassKey,
        signature: Signature,
    ) -> Vec<MethodId> {
        if ground.known.mirrors.methods(key).is_none() {
            ground.known.need(key);
            return Vec::new();
        }
        // The JVM may name a class that only inherits the method, from an interface.
        let is_virtual = ground.known.mirrors.method(key, signature).is_none_or(|method| method.is_virtual());
        let is_constructor = &*ground.known.mirrors.signature(signature).0 == "<init>";
        let mirror = ground.known.mirrors.get(key);
        let class = Named { name: &mirror.name, loader: mirror.loader };
        let from = Source::new(Caller::Application, None, Way::Reflected);
        let mut callees = Vec::new();
        if is_virtual && !is_constructor {
            self.reach_virtual(ground, class, (signature, from), Spare::Nothing, &mut callees);
        }
        // A handle of an overridden method calls just that, if a lookup by `findSpecial` made it.
        self.reach_direct(ground, class, (signature, from), Spare::Nothing, &mut callees);
        self.reach_initializer(ground.known, ground.methods, class, from, &mut callees);
        callees.iter().for_each(|callee| ground.methods.raise(callee.method, callee.probability));
        callees.into_iter().map(|callee| callee.method).collect()
    }

    /// Selects declared methods with code, for each of which it is said who reaches it; their ids.
    pub(super) fn select_declared(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        class: ClassKey,
        wanted: Vec<(Signature, Source)>,
    ) -> Vec<MethodId> {
        let select = |(signature, from)| self.select(known, methods, class, signature, from);
        let selected: Vec<MethodId> = wanted.into_iter().filter_map(select).collect();
        selected.iter().for_each(|method| methods.raise(*method, LOADED_LATER));
        selected
    }
}
