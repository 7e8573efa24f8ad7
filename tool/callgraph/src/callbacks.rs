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

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::{CallSites, descriptor_classes, parameters, returned};
use headwater_terms::reach::Way;
use rustc_hash::FxHashSet;

use super::CallGraph;
use super::known::Known;
use super::methods::Methods;
use super::mirror::{ClassKey, OBJECT, Signature};
use super::outward::{Leaving, calls_what_it_is_given};
use super::policy::{CALLED_BACK, HANDED_OVER, Mechanism, Probability};
use super::reachable::Applied;
use super::record::Callee;
use super::source::Source;

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
#[derive(Debug, Default)]
struct WaysOut {
    /// As objects of any class.
    any: bool,
    /// As objects of these.
    types: FxHashSet<ClassKey>,
}

impl WaysOut {
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
}

impl CallGraph {
    /// Selects what code outside the filter may call when a method with these call sites runs.
    pub(super) fn escape_through(
        &mut self,
        sites: &CallSites,
        method: (ClassKey, Signature),
        loader: LoaderId,
        from: Source,
        callees: &mut Vec<Callee>,
    ) {
        self.expose_loaders(from);
        let Some(ways) = self.ways_out(sites, method, loader, from) else { return };
        if self.known.options.without.has(Mechanism::Expected) {
            return;
        }
        let mut selected = Vec::new();
        self.escape_type(method.0, &ways, from, &mut selected);
        let what = Applied::Escaped(from.caller, ways.key());
        for name in &sites.types {
            if SAY_NOTHING.contains(&name.as_str()) {
                continue;
            }
            let types = self.still_to_apply(name, loader, &what);
            let may_come = self.known.mirrors.may_come(&types, loader);
            if may_come {
                self.escape.pending_types.insert(name.as_str().into(), from);
            }
            let needs_before = self.known.needs;
            for key in types {
                self.escape_type(key, &ways, from, &mut selected);
            }
            if may_come && self.known.needs == needs_before {
                self.has_applied(name, loader, what.clone());
            }
        }
        callees.extend(
            selected
                .into_iter()
                .map(|method| Callee { method, probability: self.methods.of_callback(&self.known, method) }),
        );
    }

    /// As what objects leave a method; `None` if nothing does that could be called. If its thread leaves the filter, that opens it.
    fn ways_out(
        &mut self,
        sites: &CallSites,
        (key, signature): (ClassKey, Signature),
        loader: LoaderId,
        from: Source,
    ) -> Option<WaysOut> {
        let caller = from.caller;
        let mut any = sites.dynamic.iter().any(calls_what_it_is_given);
        // Of these only what the filter does not admit.
        let mut passed_on: FxHashSet<&str> = sites.kept.iter().map(String::as_str).collect();
        let mut opens = any;
        let is_constructor = &*self.known.mirrors.signature(signature).0 == "<init>";
        for call in &sites.calls {
            let leaving =
                self.escape.leaving_by(&mut self.known, &self.reachable, call, is_constructor, loader, caller);
            any |= leaving == Leaving::Objects;
            opens |= leaving != Leaving::Nothing;
            passed_on.extend(descriptor_classes(parameters(&call.descriptor)));
        }
        if opens {
            self.open_up(from.via(Way::Unnamed));
        } else {
            for call in &sites.calls {
                let called = self.known.mirrors.intern_signature(&call.name, &call.descriptor);
                self.escape.staying.entry(called).or_default().insert((key, signature));
            }
        }
        let descriptor = self.known.mirrors.signature(signature).1.clone();
        let results = descriptor_classes(returned(&descriptor));
        let mut given: FxHashSet<&str> = FxHashSet::default();
        // Whoever has a handle gets the result.
        if self.reachable.by_handle.contains(&signature) { &mut given } else { &mut passed_on }.extend(results);
        any |= given.contains(OBJECT) || passed_on.contains(OBJECT);
        // Of very many only the latest would be among the types.
        any |= given.iter().any(|name| self.known.mirrors.meant(name, loader).is_very_many());
        if any {
            return Some(WaysOut { any, types: FxHashSet::default() });
        }
        let mut types: FxHashSet<ClassKey> =
            given.into_iter().flat_map(|name| self.known.mirrors.visible(name, loader)).collect();
        let passed_on = passed_on.into_iter().flat_map(|name| self.known.mirrors.visible(name, loader));
        types.extend(passed_on.filter(|key| !self.known.is_inside(*key, caller)));
        (!types.is_empty()).then_some(WaysOut { any, types })
    }

    fn escape_type(&mut self, key: ClassKey, ways: &WaysOut, from: Source, selected: &mut Vec<MethodId>) {
        self.escape.mentioned.insert(key);
        let leaves = |key: &ClassKey| ways.any || ways.types.contains(key);
        if self.escape.types.contains_key(&key) || !self.known.mirrors.supertypes(key).iter().any(leaves) {
            return;
        }
        let needs_before = self.known.needs;
        for subtype in self.known.mirrors.subtypes(key) {
            if !self.known.mirrors.get(subtype).is_abstract_class() {
                self.expose(subtype, key, from, selected);
            }
        }
        if self.known.needs == needs_before {
            self.escape.types.insert(key, from);
        }
    }

    /// A class has come below a type: what that type's escape means for it.
    pub(super) fn escape_again(&mut self, class: ClassKey, supertype: ClassKey) {
        let name = &self.known.mirrors.get(supertype).name;
        let pending = self.escape.pending_types.get(name).copied();
        if let Some(from) = self.escape.types.get(&supertype).copied().or(pending) {
            let mut selected = Vec::new();
            self.expose(class, supertype, from, &mut selected);
            selected
                .into_iter()
                .for_each(|method| self.methods.raise(method, self.methods.of_callback(&self.known, method)));
        }
    }

    /// Objects of `class` are called from outside the filter, by way of the type that escaped.
    fn expose(&mut self, class: ClassKey, escaped: ClassKey, from: Source, selected: &mut Vec<MethodId>) {
        let (caller, from) = (from.caller, from.through(escaped));
        if !self.known.is_inside(class, caller) {
            return;
        }
        let by_own_type = self.known.is_inside(escaped, caller);
        if !by_own_type && self.known.mirrors.get(escaped).is_final() {
            return;
        }
        let seen_from = if by_own_type { class } else { escaped };
        for supertype in self.known.mirrors.supertypes(seen_from) {
            let is_object = &*self.known.mirrors.get(supertype).name == "java/lang/Object";
            if self.known.is_inside(supertype, caller) || is_object && !by_own_type {
                continue;
            }
            let Some(methods) = self.known.mirrors.methods(supertype) else {
                self.known.need(supertype);
                continue;
            };
            let signatures: Vec<_> =
                methods.iter().filter(|(_, method)| method.is_virtual()).map(|(signature, _)| *signature).collect();
            for signature in signatures {
                let name = &self.known.mirrors.signature(signature).0;
                // Constructors are called by name, finalizers on a thread of their own.
                if !matches!(&**name, "<init>" | "finalize")
                    && !self.escape.mentions.withholds(
                        &mut self.known,
                        &mut self.methods,
                        &self.likely,
                        class,
                        signature,
                        from,
                    )
                {
                    self.select_exposed(class, signature, from, selected);
                }
            }
        }
    }

    fn select_exposed(&mut self, class: ClassKey, signature: Signature, from: Source, selected: &mut Vec<MethodId>) {
        self.reachable.hidden.set_exposing(true);
        let mut places = self.known.places_of(class, signature, from.caller);
        places.retain(|place| {
            !self.reachable.watched.is_watched(&self.known, &self.methods, &self.likely, *place, signature, from)
        });
        self.select_at(places, signature, from, selected);
        self.reachable.hidden.set_exposing(false);
    }

    /// Code outside the filter can call a method on objects of a class after all.
    pub(super) fn expose_method(&mut self, class: ClassKey, signature: Signature, from: Source) {
        let mut selected = Vec::new();
        self.select_exposed(class, signature, from, &mut selected);
        selected
            .into_iter()
            .for_each(|method| self.methods.raise(method, self.methods.of_callback(&self.known, method)));
    }
}
