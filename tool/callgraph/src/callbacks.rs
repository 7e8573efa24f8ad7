//! Methods that only code outside the filter calls.
//!
//! `Collections.sort(list, comparator)` runs `compare`; `map.put(key, value)` runs `hashCode`; `new Thread(task).run()` runs `run`.
//! The JDK's code is not instrumented by default, so its callees are not revealed by its first calls, and analysing it would
//! find nearly everything reachable. Instead: an object that code outside the filter can call must have escaped to
//! it, by a method of the graph, whose code then mentions a type of the object's: in a `new`, a cast, the descriptor of a call or a
//! field, their generic signatures, or as its own class. It may be there already: a queue that was filled before calls `compareTo` of what
//! the graph takes out of it. So when a method that calls out is entered for the first time, for every type T that it mentions,
//!
//! * if T passes the filter, its subtypes' implementations of whatever types outside the filter declare are reachable (a key's
//!   `hashCode`, a list's `get`);
//! * if T is outside the filter (`Comparator`), its subtypes' implementations of what T and its supertypes declare are
//!   reachable, but not those of `Object`'s methods, which every class has.
//!
//! A method that does not call out may pass an object on: by a type that passes the filter, whose subtypes it is among when the method
//! that gets it mentions that type; or by one that does not, an `Object` say, and then it can leave by a method that mentions
//! nothing of it. So of such a method the same holds for every T that is a subtype of a type outside the filter as which it
//! passes objects on or keeps them, or of what it returns to those who call it by a method handle, as a lambda's body.
//!
//! This says what is likely. Objects may also be within others, and come from outside the graph: [`opaque`](super::opaque) has those.

use std::sync::Arc;

use headwater_protocol::MethodId;
use headwater_rewriter::{CallSites, descriptor_classes, parameters, returned};
use headwater_terms::reach::Way;
use rustc_hash::FxHashSet;

use super::escape::Escape;
use super::known::Known;
use super::likely::Ground;
use super::methods::Methods;
use super::mirror::{ClassKey, OBJECT, Signature};
use super::outward::{Leaving, calls_what_it_is_given};
use super::policy::{CALLED_BACK, HANDED_OVER, Probability};
use super::reachable::{Applied, Reachable};
use super::source::{Named, Source};

/// Types outside the filter that are mentioned everywhere and say nothing about who may be called.
const SAY_NOTHING: [&str; 10] = [
    OBJECT,
    "java/lang/String",
    "java/lang/Comparable",
    "java/lang/CharSequence",
    "java/lang/Cloneable",
    "java/lang/Enum",
    "java/lang/Record",
    "java/lang/Number",
    "java/lang/Class",
    "java/io/Serializable",
];

/// What executors and threads call.
const TASKS: [(&str, &str); 2] = [("run", "()V"), ("call", "()Ljava/lang/Object;")];

/// As what objects leave a method's code, to be called from outside the filter, now or later.
#[derive(Debug)]
pub(super) struct WaysOut {
    /// By whom they leave it.
    from: Source,
    /// The thread leaves it as well.
    pub(super) open: bool,
    /// As objects of any class.
    any: bool,
    /// As objects of these.
    types: FxHashSet<ClassKey>,
}

impl WaysOut {
    /// Whether anything leaves it that could be called.
    pub(super) fn lead_out(&self) -> bool {
        self.any || !self.types.is_empty()
    }

    /// Whether objects of a type do.
    fn lead_out_of(&self, key: ClassKey) -> bool {
        self.any || self.types.contains(&key)
    }

    /// The same for the same ways.
    fn key(&self) -> Arc<[ClassKey]> {
        let mut types: Vec<ClassKey> = self.types.iter().copied().collect();
        types.sort_unstable();
        types.into()
    }
}

impl Methods {
    /// The probability that code outside the filter calls a method because an object that has it escaped.
    pub(super) fn of_callback(&self, known: &Known, method: MethodId) -> Probability {
        let is_task = self.record(method).is_some_and(|it| TASKS.contains(&(&*it.name, &*it.descriptor)));
        if is_task && !known.options.follow_threads { HANDED_OVER } else { CALLED_BACK }
    }

    /// Such objects have these methods.
    fn are_called_back(&mut self, known: &Known, methods: Vec<MethodId>) {
        methods.into_iter().for_each(|method| self.raise(method, self.of_callback(known, method)));
    }
}

impl Escape {
    /// As what objects leave a method with these call sites.
    pub(super) fn ways_out(
        &mut self,
        known: &Known,
        reachable: &Reachable,
        sites: &CallSites,
        (key, signature): (ClassKey, Signature),
        from: Source,
    ) -> WaysOut {
        let loader = known.mirrors.get(key).loader;
        let mut any = sites.dynamic.iter().any(calls_what_it_is_given);
        // Of these only what the filter does not admit.
        let mut passed_on: FxHashSet<&str> = sites.kept.iter().map(String::as_str).collect();
        let mut open = any;
        let is_constructor = &*known.mirrors.signature(signature).0 == "<init>";
        for call in &sites.calls {
            let leaving = self.leaving_by(known, reachable, call, is_constructor, loader);
            any |= leaving == Leaving::Objects;
            open |= leaving != Leaving::Nothing;
            passed_on.extend(descriptor_classes(parameters(&call.descriptor)));
        }
        if !open {
            for call in &sites.calls {
                let called = known.mirrors.intern_signature(&call.name, &call.descriptor);
                self.staying.entry(called).or_default().insert((key, signature));
            }
        }
        let results = descriptor_classes(returned(&known.mirrors.signature(signature).1));
        let mut given: FxHashSet<&str> = FxHashSet::default();
        // Whoever has a handle gets the result.
        if reachable.by_handle.contains(&signature) { &mut given } else { &mut passed_on }.extend(results);
        any |= given.contains(OBJECT) || passed_on.contains(OBJECT);
        // Of very many only the latest would be among the types.
        any |= given.iter().any(|name| known.mirrors.meant(name, loader).is_very_many());
        if any {
            return WaysOut { from, open, any, types: FxHashSet::default() };
        }
        let mut types: FxHashSet<ClassKey> =
            given.into_iter().flat_map(|name| known.mirrors.visible(name, loader)).collect();
        let passed_on = passed_on.into_iter().flat_map(|name| known.mirrors.visible(name, loader));
        types.extend(passed_on.filter(|key| !known.is_inside(*key, from.caller)));
        WaysOut { from, open, any, types }
    }

    /// Selects what code outside the filter may call on objects that leave a class's method in these ways, by the types that it mentions.
    pub(super) fn expose_mentioned(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        sites: &CallSites,
        class: ClassKey,
        ways: &WaysOut,
    ) -> Vec<MethodId> {
        let mut selected = Vec::new();
        let loader = ground.known.mirrors.get(class).loader;
        self.escape_type(ground, reachable, class, ways, &mut selected);
        let what = Applied::Escaped(ways.from.caller, ways.key());
        for name in &sites.types {
            if SAY_NOTHING.contains(&name.as_str()) {
                continue;
            }
            let named = Named { name, loader };
            let types = reachable.still_to_apply(ground.known, named, &what);
            let may_come = ground.known.mirrors.may_come(&types, loader);
            if may_come {
                self.pending_types.insert(name.as_str().into(), ways.from);
            }
            let needs_before = ground.known.needs();
            for key in types {
                self.escape_type(ground, reachable, key, ways, &mut selected);
            }
            if may_come && ground.known.needs() == needs_before {
                reachable.has_applied(ground.known, named, what.clone());
            }
        }
        selected
    }

    fn escape_type(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        key: ClassKey,
        ways: &WaysOut,
        selected: &mut Vec<MethodId>,
    ) {
        reachable.mentioned.insert(key);
        let leaves = |key: &ClassKey| ways.lead_out_of(*key);
        if self.types.contains_key(&key) || !ground.known.mirrors.supertypes(key).iter().any(leaves) {
            return;
        }
        let needs_before = ground.known.needs();
        for subtype in ground.known.mirrors.subtypes(key) {
            if !ground.known.mirrors.get(subtype).is_abstract_class() {
                self.expose(ground, reachable, subtype, (key, ways.from), selected);
            }
        }
        if ground.known.needs() == needs_before {
            self.types.insert(key, ways.from);
        }
    }

    /// A class has come below a type: what that type's escape means for it.
    pub(super) fn escape_again(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        class: ClassKey,
        supertype: ClassKey,
    ) {
        let name = &ground.known.mirrors.get(supertype).name;
        let pending = self.pending_types.get(name).copied();
        if let Some(from) = self.types.get(&supertype).copied().or(pending) {
            let mut selected = Vec::new();
            self.expose(ground, reachable, class, (supertype, from), &mut selected);
            ground.methods.are_called_back(ground.known, selected);
        }
    }

    /// Objects of `class` are called from outside the filter, by way of the type that escaped.
    fn expose(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        class: ClassKey,
        (escaped, from): (ClassKey, Source),
        selected: &mut Vec<MethodId>,
    ) {
        let (caller, from) = (from.caller, from.through(escaped));
        if !ground.known.is_inside(class, caller) {
            return;
        }
        let by_own_type = ground.known.is_inside(escaped, caller);
        if !by_own_type && ground.known.mirrors.get(escaped).is_final() {
            return;
        }
        let seen_from = if by_own_type { class } else { escaped };
        for supertype in ground.known.mirrors.supertypes(seen_from) {
            let is_object = &*ground.known.mirrors.get(supertype).name == "java/lang/Object";
            if ground.known.is_inside(supertype, caller) || is_object && !by_own_type {
                continue;
            }
            let Some(methods) = ground.known.mirrors.methods(supertype) else {
                ground.known.need(supertype);
                continue;
            };
            let signatures: Vec<_> =
                methods.iter().filter(|(_, method)| method.is_virtual()).map(|(signature, _)| *signature).collect();
            for signature in signatures {
                let name = &ground.known.mirrors.signature(signature).0;
                // Constructors are called by name, finalizers on a thread of their own.
                if !matches!(&**name, "<init>" | "finalize") && !self.mentions.withholds(ground, class, signature, from)
                {
                    reachable.select_exposed(ground, class, (signature, from), selected);
                }
            }
        }
    }

    /// Selects what is no longer withheld: code outside the filter can call it after all. Whether there was any; that for which more has to
    /// be known stays.
    pub(super) fn expose_released(&mut self, ground: &mut Ground<'_>, reachable: &mut Reachable) -> bool {
        let mut has_exposed = false;
        for (class, signature, from) in self.mentions.take_released() {
            let needs_before = ground.known.needs();
            let mut selected = Vec::new();
            reachable.select_exposed(ground, class, (signature, from.via(Way::Mentioned)), &mut selected);
            ground.methods.are_called_back(ground.known, selected);
            if ground.known.needs() == needs_before {
                has_exposed = true;
            } else {
                self.mentions.put_off((class, signature, from));
            }
        }
        has_exposed
    }
}
