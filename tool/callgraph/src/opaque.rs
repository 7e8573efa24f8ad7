//! Objects that the graph's code says nothing of.
//!
//! Who calls the JDK gives it objects, and these have others: a list its elements, a map its keys and their order, a stream the streams below it, a
//! task what it runs. They may have been put together long before, by code outside the graph, and no code of the graph need ever name their
//! types: `Collections.sort(list)`, in a method that is given the list, runs somebody's `compareTo`. Nor need any be given: a connection's address
//! comes to a driver that was registered at start-up. So as soon as a thread leaves the filter, whatever types outside it declare may be called on
//! objects of all classes, whoever made them.
//!
//! Where the JVM tells what has run, that is hardly more than what the types say that are mentioned ([`callbacks`](super::callbacks)): of
//! classes that nobody mentions, `hashCode`, `equals` and `toString` are left alone where they have never run in a program that had been running
//! for long. And classes are left alone in whose code a thread had been for a while when we came, unless they are in the graph: a worker's loop
//! would go on in the old code, interpreted, for as long as it lasts. So is what [hundreds](MOST_CLASSES) of classes have.
//!
//! Why so, and at what cost: docs/decisions/callbacks.md.

use headwater_protocol::{ClassId, LoaderId, MethodId};
use headwater_terms::Scheme;
use headwater_terms::reach::{Obstacle, Way};
use rustc_hash::{FxHashMap, FxHashSet};

use super::CallGraph;
use super::filter::{Caller, JdkMethods};
use super::known::Known;
use super::methods::Methods;
use super::mirror::{ClassKey, OBJECT, Signature};
use super::policy::{MOST_CLASSES, Mechanism, UNNAMED};
use super::source::Source;

/// Whose objects are called from outside the filter.
#[derive(Debug, Default)]
pub(super) struct Opaque {
    /// By whom they leave it, if any do.
    callers: Vec<Source>,
    /// The classes that have what may be called, by its signature.
    having: FxHashMap<Signature, FxHashSet<ClassKey>>,
    /// But for what has never run, of some.
    pub(super) spares_idle: bool,
    /// The class loaders' are, at least.
    loaders: Option<Source>,
    /// Who leaves the filter, too, once classes' methods have been told that were asked for on that account.
    pub(super) asked: Vec<Caller>,
}

const CLASS_LOADER: &str = "java/lang/ClassLoader";
const LOAD_CLASS: (&str, &str) = ("loadClass", "(Ljava/lang/String;)Ljava/lang/Class;");

impl Opaque {
    /// Whether code outside the filter may call a method by its signature, as far as it is known.
    pub(super) fn is_called_from_outside(&self, signature: Signature) -> Option<Source> {
        let from = self.callers.first().copied()?;
        self.having.get(&signature).filter(|classes| classes.len() <= MOST_CLASSES).map(|_| from)
    }
}

impl Known {
    /// What a class has of what types outside the filter declare.
    pub(super) fn declared_outside(&mut self, class: ClassKey, caller: Caller) -> Vec<Signature> {
        let mirror = self.mirrors.get(class);
        let is_lambda = mirror.lambda_host().is_some();
        let has_objects = !mirror.is_abstract_class() && !mirror.is_interface();
        if !has_objects || !self.options.admits_class(&mirror.name, mirror.loader, caller) {
            return Vec::new();
        }
        let supertypes = match mirror.linked {
            true => self.mirrors.supertypes(class),
            // It is just being loaded.
            false => self.known_supertypes(class).unwrap_or_default().into_iter().chain([class]).collect(),
        };
        let (inside, outside): (Vec<ClassKey>, Vec<ClassKey>) =
            supertypes.into_iter().partition(|key| self.is_inside(*key, caller));
        // Of a lambda's class it is known what it has: what its interface lacks.
        let own: &[ClassKey] = if is_lambda { &outside } else { &inside };
        let unknown: Vec<ClassKey> =
            own.iter().chain(&outside).copied().filter(|key| self.mirrors.methods(*key).is_none()).collect();
        unknown.into_iter().for_each(|key| self.need(key));
        let declared = own.iter().filter_map(|key| self.mirrors.methods(*key)).flatten();
        let mut overriding: Vec<Signature> = if is_lambda {
            declared.filter(|(_, method)| method.is_abstract()).map(|(signature, _)| *signature).collect()
        } else {
            let is_declared_outside = |signature: &Signature| {
                let methods = outside.iter().filter_map(|key| self.mirrors.method(*key, *signature));
                methods.into_iter().any(|method| method.is_virtual())
            };
            let methods = declared.filter(|(_, method)| method.is_virtual() && method.has_code());
            methods.map(|(signature, _)| *signature).filter(is_declared_outside).collect()
        };
        overriding.sort_unstable();
        overriding.dedup();
        // Constructors are called by name, finalizers on a thread of their own.
        overriding.retain(|signature| !matches!(&*self.mirrors.signature(*signature).0, "<init>" | "finalize"));
        overriding
    }

    /// Whether every object has such a method.
    pub(super) fn is_of_object(&self, signature: Signature) -> bool {
        let objects = self.mirrors.visible(OBJECT, LoaderId::BOOT);
        objects.into_iter().any(|object| self.mirrors.method(object, signature).is_some())
    }
}

impl Methods {
    pub(super) fn places_of_unnamed(
        &self,
        known: &mut Known,
        class: ClassKey,
        signature: Signature,
        caller: Caller,
    ) -> Vec<ClassKey> {
        let mut places = known.places_of(class, signature, caller);
        places.retain(|place| !self.is_left_running(known, *place));
        places
    }
}

impl CallGraph {
    /// The JVM has the application's class loaders load what code of the graph names.
    pub(super) fn expose_loaders(&mut self, from: Source) {
        if self.escape.opaque.loaders.is_some() {
            return;
        }
        let from = from.via(Way::Loader);
        let needs_before = self.known.needs;
        let loaders = self.known.mirrors.visible(CLASS_LOADER, LoaderId::BOOT);
        let classes: Vec<ClassKey> =
            loaders.into_iter().flat_map(|loader| self.known.mirrors.subtypes(loader)).collect();
        classes.into_iter().for_each(|class| self.expose_loader(class, from));
        self.escape.opaque.loaders = (self.known.needs == needs_before).then_some(from);
    }

    fn expose_loader(&mut self, class: ClassKey, from: Source) {
        self.expose_unnamed([class], from);
        let mirror = self.known.mirrors.get(class);
        if mirror.linked && !mirror.is_abstract_class() && !mirror.loader.is_jdk() {
            // The JVM calls it, also where the JDK's code is instrumented.
            let signature = self.known.mirrors.intern_signature(LOAD_CLASS.0, LOAD_CLASS.1);
            let mut selected = Vec::new();
            self.select_for(class, signature, from, &mut selected);
            selected.into_iter().for_each(|method| self.methods.raise(method, UNNAMED));
        }
    }

    /// The thread leaves the filter, and comes to any objects there.
    pub(super) fn open_up(&mut self, from: Source) {
        let caller = from.caller;
        if self.escape.opaque.callers.iter().any(|known| known.caller == caller) {
            return;
        }
        if self.escape.opaque.asked.contains(&caller) {
            // All classes would have to be looked at once more, for each method that leaves the filter, to find the same missing.
            self.known.needs += 1;
            return;
        }
        self.plan.reflection.expect(&self.known, &mut self.plan.to_hotswap);
        if self.known.options.without.has(Mechanism::Opaque) {
            return;
        }
        let needs_before = self.known.needs;
        self.escape.opaque.spares_idle = self.likely.knows_what_is_idle();
        self.expose_unnamed(self.known.mirrors.keys(), from);
        let opaque = &mut self.escape.opaque;
        if self.known.needs == needs_before {
            opaque.callers.push(from);
        } else {
            opaque.asked.push(caller);
        }
    }

    /// What never ran may run now, if the program does something new.
    pub(super) fn look_at_idle_again(&mut self) {
        if !self.escape.opaque.spares_idle || self.likely.knows_what_is_idle() {
            return;
        }
        let needs_before = self.known.needs;
        for from in self.escape.opaque.callers.clone() {
            self.expose_unnamed(self.known.mirrors.keys(), from);
        }
        self.escape.opaque.spares_idle = self.known.needs != needs_before;
    }

    /// A class has come whose objects may be among those.
    pub(super) fn expose_if_open(&mut self, class: ClassKey) {
        let is_loader = |key: &ClassKey| &*self.known.mirrors.get(*key).name == CLASS_LOADER;
        let callers = self.escape.opaque.callers.clone();
        if let Some(from) = self.escape.opaque.loaders
            && self.known.mirrors.supertypes(class).iter().any(is_loader)
        {
            self.expose_loader(class, from.from(Caller::Application));
        }
        callers.into_iter().for_each(|from| self.expose_unnamed([class], from));
    }

    /// Selects what classes have of what types outside the filter declare.
    fn expose_unnamed(&mut self, classes: impl IntoIterator<Item = ClassKey>, from: Source) {
        let mut found = Vec::new();
        for class in classes {
            for signature in self.known.declared_outside(class, from.caller) {
                if !self.escape.is_spared(&mut self.known, &mut self.methods, &self.likely, class, signature, from) {
                    found.push((class, signature));
                    self.escape.opaque.having.entry(signature).or_default().insert(class);
                }
            }
        }
        for (class, signature) in found {
            if self.escape.opaque.having[&signature].len() <= MOST_CLASSES {
                self.expose_method_of_unnamed(class, signature, from);
            }
        }
    }

    fn expose_method_of_unnamed(&mut self, class: ClassKey, signature: Signature, from: Source) {
        if self.known.mirrors.get(class).lambda_host().is_some() {
            self.reachable.hidden.push_unnamed(class, signature, from.cause);
            return;
        }
        let mut places = self.known.places_of(class, signature, from.caller);
        places.retain(|place| {
            let is_left = self.methods.is_left_running(&self.known, *place);
            if is_left {
                self.methods.passed_over.add(*place, signature, Obstacle::Running, from.cause);
            }
            !is_left
                && !self.reachable.watched.is_watched(&self.known, &self.methods, &self.likely, *place, signature, from)
        });
        let mut selected: Vec<MethodId> = Vec::new();
        self.select_at(places, signature, from, &mut selected);
        selected.into_iter().for_each(|method| self.methods.raise(method, UNNAMED));
    }

    /// Whether classes may be changed because of objects that nobody names.
    pub fn changes_unnamed(&self) -> bool {
        !self.known.roots_only
            && self.known.options.scheme != Scheme::Total
            && self.known.options.jdk != JdkMethods::All
    }

    /// Whether a class is the application's, as far as it is known.
    pub fn is_of_application(&self, class: ClassId) -> bool {
        self.known.mirrors.by_id(class).is_some_and(|key| !self.known.mirrors.get(key).loader.is_jdk())
    }

    /// Threads are in these classes' code, and stay there: HotSpot would never compile it again for a loop that goes on in it, once the class
    /// is changed.
    pub fn set_running(&mut self, classes: Vec<ClassId>) {
        for key in classes.into_iter().filter_map(|class| self.known.mirrors.by_id(class)).collect::<Vec<_>>() {
            self.known.mirrors.get_mut(key).running = true;
        }
    }
}
