//! Methods that only code outside the filter calls.
//!
//! `Collections.sort(list, comparator)` runs `compare`; `map.put(key, value)` runs `hashCode`; `new Thread(task).run()` runs `run`.
//! The JDK's code is not instrumented by default, so its callees are not revealed by its first calls, and analysing it would
//! find nearly everything reachable. Instead: an object that code outside the filter can call must have been handed out to
//! it, by a method of the graph, whose code then mentions a type of the object's: in a `new`, a cast, the descriptor of a call or a
//! field, or as its own class. So when a method that calls out is entered for the first time, for every type T that it
//! mentions,
//!
//! * if T passes the filter, its subtypes' implementations of whatever types outside the filter declare are reachable (a key's
//!   `hashCode`, a list's `get`);
//! * if T is outside the filter (`Comparator`), its subtypes' implementations of what T and its supertypes declare are
//!   reachable, but not those of `Object`'s methods, which every class has.
//!
//! What can still be missed is an object whose types nobody in the graph mentions: a key that came in as an `Object` and is only
//! ever passed on as one.

use headwater_protocol::{LoaderId, MethodId};
use headwater_rewriter::{CallKind, CallSite, CallSites};

use super::CallGraph;
use super::ahead::{CALLED_BACK, Callee};
use super::filter::Caller;
use super::mirror::ClassKey;

/// Types outside the filter that are mentioned everywhere and say nothing about who may be called.
const SAY_NOTHING: [&str; 10] = [
    "java/lang/Object",
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

/// Final classes through which nothing can be called back.
const HARMLESS: [&str; 13] = [
    "java/lang/String",
    "java/lang/StringBuilder",
    "java/lang/StringBuffer",
    "java/lang/Class",
    "java/lang/Boolean",
    "java/lang/Byte",
    "java/lang/Character",
    "java/lang/Short",
    "java/lang/Integer",
    "java/lang/Long",
    "java/lang/Float",
    "java/lang/Double",
    "java/lang/Math",
];

impl CallGraph {
    /// Selects what code outside the filter may call when a method with these call sites runs.
    pub(super) fn hand_out(
        &mut self,
        sites: &CallSites,
        own_class: ClassKey,
        loader: LoaderId,
        caller: Caller,
        callees: &mut Vec<Callee>,
    ) {
        let calls_out = sites.has_invokedynamic || sites.calls.iter().any(|call| self.calls_out(call, loader, caller));
        if !calls_out {
            return;
        }
        let mut selected = Vec::new();
        self.hand_out_type(own_class, caller, &mut selected);
        for name in &sites.types {
            if SAY_NOTHING.contains(&name.as_str()) {
                continue;
            }
            let types = self.mirrors.visible(name, loader);
            if types.iter().all(|key| !self.mirrors.get(*key).linked) {
                self.reachable.handed_out_pending.insert(name.as_str().into(), caller);
            }
            for key in types {
                self.hand_out_type(key, caller, &mut selected);
            }
        }
        callees.extend(selected.into_iter().map(|method| Callee { method, probability: CALLED_BACK }));
    }

    /// Whether a call leaves the filter and takes something along that can be called.
    fn calls_out(&self, call: &CallSite, loader: LoaderId, caller: Caller) -> bool {
        let owners = self.mirrors.visible(&call.owner, loader);
        let stays = owners.iter().any(|key| {
            let mirror = self.mirrors.get(*key);
            self.options.admits(&mirror.name, mirror.loader, &call.name, caller)
        });
        if stays || &*call.owner == "java/lang/Object" && &*call.name == "<init>" {
            return false;
        }
        let has_receiver = !matches!(call.kind, CallKind::Static | CallKind::HandleStatic | CallKind::HandleNew);
        has_receiver && !HARMLESS.contains(&&*call.owner)
            || parameter_classes(&call.descriptor).any(|class| !HARMLESS.contains(&class))
    }

    fn hand_out_type(&mut self, key: ClassKey, caller: Caller, selected: &mut Vec<MethodId>) {
        if self.reachable.handed_out.contains_key(&key) {
            return;
        }
        let needs_before = self.needs;
        for subtype in self.mirrors.subtypes(key) {
            if !self.mirrors.get(subtype).is_abstract_class() {
                self.expose(subtype, key, caller, selected);
            }
        }
        if self.needs == needs_before {
            self.reachable.handed_out.insert(key, caller);
            self.hidden.release(key);
        }
    }

    /// A class has come below a type: what that type's being handed out means for it.
    pub(super) fn hand_out_again(&mut self, class: ClassKey, supertype: ClassKey) {
        let name = &self.mirrors.get(supertype).name;
        let pending = self.reachable.handed_out_pending.get(name).copied();
        if let Some(caller) = self.reachable.handed_out.get(&supertype).copied().or(pending) {
            let mut selected = Vec::new();
            self.expose(class, supertype, caller, &mut selected);
            selected.into_iter().for_each(|method| self.raise(method, CALLED_BACK));
        }
    }

    /// Objects of `class` are called from outside the filter, by way of the type that was handed out.
    fn expose(&mut self, class: ClassKey, handed_out: ClassKey, caller: Caller, selected: &mut Vec<MethodId>) {
        if !self.is_inside(class, caller) {
            return;
        }
        let by_own_type = self.is_inside(handed_out, caller);
        if !by_own_type && self.mirrors.get(handed_out).is_final() {
            return;
        }
        let seen_from = if by_own_type { class } else { handed_out };
        for supertype in self.mirrors.supertypes(seen_from) {
            let is_object = &*self.mirrors.get(supertype).name == "java/lang/Object";
            if self.is_inside(supertype, caller) || is_object && !by_own_type {
                continue;
            }
            let Some(methods) = self.mirrors.methods(supertype) else {
                self.need(supertype);
                continue;
            };
            let signatures: Vec<_> =
                methods.iter().filter(|(_, method)| method.is_virtual()).map(|(signature, _)| *signature).collect();
            for signature in signatures {
                let name = &self.mirrors.signature(signature).0;
                // Constructors are called by name, finalizers on a thread of their own.
                if !matches!(&**name, "<init>" | "finalize") {
                    self.hidden.set_exposing(true);
                    self.select_for(class, signature, caller, selected);
                    self.hidden.set_exposing(false);
                }
            }
        }
    }

    fn is_inside(&self, key: ClassKey, caller: Caller) -> bool {
        let mirror = self.mirrors.get(key);
        self.options.admits_class(&mirror.name, mirror.loader, caller)
    }
}

/// The class names among a method descriptor's parameters, arrays' elements included.
fn parameter_classes(descriptor: &str) -> impl Iterator<Item = &str> {
    let parameters = descriptor.split(')').next().unwrap_or_default();
    parameters.split(';').filter_map(|part| part.find('L').map(|start| &part[start + 1..]))
}
