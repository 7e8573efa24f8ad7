//! Calls that leave the filter, and whether they take objects along that may be called back.

use headwater_protocol::LoaderId;
use headwater_rewriter::{CallKind, CallSite, DynamicSite, descriptor_classes, parameters, returned};

use super::escape::Escape;
use super::filter::Caller;
use super::guards::Guards;
use super::known::{Known, Target};
use super::methods::Methods;
use super::mirror::{ClassKey, OBJECT, Signature, VERY_MANY};
use super::reachable::Reachable;

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

/// Methods of `System` that call nobody.
const SYSTEM: [&str; 5] = ["nanoTime", "currentTimeMillis", "arraycopy", "identityHashCode", "lineSeparator"];

/// What leaves the filter by a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    Nothing,
    /// The thread alone: what it comes to may call objects that were there before.
    Control,
    /// Objects as well, that can be called.
    Objects,
}

/// What the names of the JDK's classes begin with.
const JDK_NAMES: [&str; 12] = [
    "java/",
    "javax/",
    "jdk/",
    "sun/",
    "com/sun/",
    "com/oracle/",
    "oracle/",
    "netscape/",
    "org/ietf/",
    "org/jcp/",
    "org/w3c/",
    "org/xml/",
];

/// What makes lambdas: objects are handed to the lambda's body by it, or to what a method reference stands for, and these are calls
/// of their own.
const LAMBDAS: &str = "java/lang/invoke/LambdaMetafactory";
/// What makes strings: `toString` is called.
const STRINGS: &str = "java/lang/invoke/StringConcatFactory";

/// Whether the code that the JVM makes up for a dynamic call site may call methods of what it is given.
pub(super) fn calls_what_it_is_given(site: &DynamicSite) -> bool {
    match &*site.bootstrap {
        LAMBDAS => false,
        STRINGS => takes_along(&site.descriptor),
        _ => true,
    }
}

/// Whether anything can be called by what a method of this descriptor is given.
fn takes_along(descriptor: &str) -> bool {
    descriptor_classes(parameters(descriptor)).any(|class| !HARMLESS.contains(&class))
}

/// Whether a class that is not loaded yet may be one of the JDK's.
fn may_be_of_jdk(class: &str) -> bool {
    JDK_NAMES.iter().any(|beginning| class.starts_with(beginning))
}

impl Known {
    /// Whether a virtual call on objects of a class runs a method that a superclass outside the filter has. That may implement an
    /// interface which its own class knows nothing of.
    pub(super) fn inherits_from_outside(&self, class: ClassKey, signature: Signature, caller: Caller) -> bool {
        // No object is of an interface itself.
        let mut at = Some(class).filter(|class| !self.mirrors.get(*class).is_interface());
        let mut outside = false;
        while let Some(key) = at {
            let mirror = self.mirrors.get(key);
            outside |= !self.options.admits_class(&mirror.name, mirror.loader, caller);
            at = mirror.super_class;
            let Some(methods) = self.mirrors.methods(key) else {
                self.need(key);
                return false;
            };
            if methods.get(&signature).is_some_and(|method| method.is_virtual() && !method.is_abstract()) {
                return outside;
            }
        }
        false
    }

    /// Whether what a call on a class runs may be what it inherits from outside the filter: nothing inside is known to declare it.
    pub(super) fn may_inherit_from_outside(&self, owner: ClassKey, (signature, caller): Target) -> bool {
        let declares = |key: ClassKey| {
            self.is_inside(key, caller) && self.mirrors.methods(key).is_none_or(|it| it.contains_key(&signature))
        };
        !self.mirrors.supertypes(owner).into_iter().any(declares)
    }
}

impl Reachable {
    /// Whether a virtual call on a class of this name leaves the filter on some of these owners, which may be the latest of very many.
    pub(super) fn leaves(&self, name: &str, owners: &[ClassKey], target: Target) -> bool {
        if owners.len() >= VERY_MANY {
            return self.leaving.get(name).is_some_and(|targets| targets.contains(&target));
        }
        let on = |owner| self.virtual_on.get(owner)?.get(&target);
        owners.iter().any(|owner| on(owner).is_some_and(|reached| reached.leaves))
    }

    /// A class has come on whose objects a virtual call leaves the filter; whether it did on none before.
    pub(super) fn begin_to_leave(&mut self, known: &Known, owner: ClassKey, target: Target) -> bool {
        let reached = self.virtual_on.get_mut(&owner).and_then(|on| on.get_mut(&target));
        let Some(reached) = reached.filter(|reached| !reached.leaves) else { return false };
        reached.leaves = true;
        let name = known.mirrors.get(owner).name.clone();
        self.leaving.entry(name).or_default().insert(target);
        true
    }

    /// Methods that somebody has a handle of give their results to who knows whom.
    pub(super) fn give_results_out(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        guards: &mut Guards,
        signature: Signature,
    ) {
        if descriptor_classes(returned(&known.mirrors.signature(signature).1)).next().is_none() {
            return;
        }
        let expanded = methods.all().iter().filter(|method| method.signature == signature && method.expanded);
        let keys: Vec<ClassKey> = expanded.map(|method| method.key).chain(self.hidden.declarers(signature)).collect();
        keys.into_iter().for_each(|key| self.expand_again(methods, guards, key, signature));
    }

    /// Selects once more what a method calls, shown or hidden: by something that has come since, it may be more.
    fn expand_again(&mut self, methods: &mut Methods, guards: &mut Guards, key: ClassKey, signature: Signature) {
        let Some(method) = methods.of(key, signature) else {
            self.hidden.push_again(key, signature);
            return;
        };
        guards.expand_guards_again(&mut self.due, method);
        if let Some(record) = methods.record_mut(method).filter(|record| record.expanded) {
            record.expanded = false;
            record.callees.clear();
            self.due.push(method);
        }
    }
}

impl Escape {
    /// What leaves the filter by a call that a method of a class of this loader's makes.
    pub(super) fn leaving_by(
        &mut self,
        known: &Known,
        reachable: &Reachable,
        call: &CallSite,
        by_constructor: bool,
        loader: LoaderId,
    ) -> Leaving {
        let is_static = matches!(call.kind, CallKind::Static | CallKind::HandleStatic | CallKind::HandleNew);
        let is_construction = &*call.name == "<init>";
        // What is constructed is of a class outside, unless it is what a constructor constructs by its superclass's.
        let is_new = call.kind == CallKind::Special && is_construction && !by_constructor;
        let takes_receiver = !is_static && !is_new && !HARMLESS.contains(&&*call.owner);
        let calls_nobody = match &*call.owner {
            OBJECT => matches!(&*call.name, "<init>" | "getClass" | "wait" | "notify" | "notifyAll"),
            // Keeps what it is given; every `try` with resources has one, where exceptions go.
            "java/lang/Throwable" => &*call.name == "addSuppressed",
            "java/lang/System" => SYSTEM.contains(&&*call.name),
            _ => false,
        };
        let takes_along = takes_receiver || takes_along(&call.descriptor);
        // An exception keeps a text, and a value has nobody to call.
        let is_exception = call.owner.ends_with("Exception") || call.owner.ends_with("Error");
        let is_value = HARMLESS.contains(&&*call.owner) || is_construction && is_exception;
        if calls_nobody || is_value && !takes_along || !self.leads_outside(known, reachable, call, loader) {
            return Leaving::Nothing;
        }
        if takes_along { Leaving::Objects } else { Leaving::Control }
    }

    /// Whether a call runs code outside the filter.
    pub(super) fn leads_outside(
        &mut self,
        known: &Known,
        reachable: &Reachable,
        call: &CallSite,
        loader: LoaderId,
    ) -> bool {
        let caller = known.options.caller(loader);
        let signature = known.mirrors.intern_signature(&call.name, &call.descriptor);
        let owners = known.mirrors.visible(&call.owner, loader);
        if owners.is_empty() {
            return may_be_of_jdk(&call.owner);
        }
        if call.kind.is_virtual() && reachable.leaves(&call.owner, &owners, (signature, caller)) {
            return true;
        }
        let mut is_native = false;
        let stays = owners.into_iter().any(|owner| {
            known.mirrors.supertypes(owner).into_iter().any(|key| {
                let mirror = known.mirrors.get(key);
                if !known.options.admits_class(&mirror.name, mirror.loader, caller) {
                    return false;
                }
                if known.mirrors.methods(key).is_none() {
                    known.need(key);
                    return true;
                }
                // Whom a native method calls, nobody sees.
                let method = known.mirrors.method(key, signature);
                is_native |= method.is_some_and(|method| method.is_native());
                method.is_some_and(|method| !method.is_native())
            })
        });
        if is_native && !stays {
            self.mentions.stop_withholding();
        }
        !stays
    }

    /// What such a call runs may lie outside from now on: the methods that make it are looked at again.
    pub(super) fn no_longer_stays(
        &mut self,
        methods: &mut Methods,
        reachable: &mut Reachable,
        guards: &mut Guards,
        called: Signature,
    ) {
        let staying = self.staying.remove(&called).unwrap_or_default();
        staying.into_iter().for_each(|(key, signature)| reachable.expand_again(methods, guards, key, signature));
    }
}
