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

use headwater_protocol::LoaderId;
use headwater_terms::reach::Way;
use rustc_hash::{FxHashMap, FxHashSet};

use super::filter::Caller;
use super::known::Known;
use super::likely::Ground;
use super::mentions::Mentions;
use super::methods::Methods;
use super::mirror::{ClassKey, OBJECT, Signature};
use super::policy::{MOST_CLASSES, Mechanism, UNNAMED};
use super::reachable::Reachable;
use super::source::Source;

/// Whose objects are called from outside the filter.
#[derive(Debug, Default)]
pub(super) struct Opaque {
    /// By whom they leave it, if any do.
    callers: Vec<Source>,
    /// The classes that have what may be called, by its signature.
    having: FxHashMap<Signature, FxHashSet<ClassKey>>,
    /// But for what has never run, of some.
    spares_idle: bool,
    /// The class loaders' are, at least.
    loaders: Option<Source>,
    /// Who leaves the filter, too, once classes' methods have been told that were asked for on that account.
    asked: Vec<Caller>,
}

const CLASS_LOADER: &str = "java/lang/ClassLoader";
const LOAD_CLASS: (&str, &str) = ("loadClass", "(Ljava/lang/String;)Ljava/lang/Class;");

impl Opaque {
    /// Whether code outside the filter may call a method by its signature, as far as it is known.
    pub(super) fn is_called_from_outside(&self, signature: Signature) -> Option<Source> {
        let from = self.callers.first().copied()?;
        self.having.get(&signature).filter(|classes| classes.len() <= MOST_CLASSES).map(|_| from)
    }

    /// What was asked for has been told, or may be asked for again.
    pub(super) fn ask_again(&mut self) {
        self.asked.clear();
    }

    /// The JVM has the application's class loaders load what code of the graph names.
    pub(super) fn expose_loaders(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        mentions: &mut Mentions,
        from: Source,
    ) {
        if self.loaders.is_some() {
            return;
        }
        let from = from.via(Way::Loader);
        let needs_before = ground.known.needs();
        let loaders = ground.known.mirrors.visible(CLASS_LOADER, LoaderId::BOOT);
        let classes: Vec<ClassKey> =
            loaders.into_iter().flat_map(|loader| ground.known.mirrors.subtypes(loader)).collect();
        for class in classes {
            self.expose_loader(ground, reachable, mentions, class, from);
        }
        self.loaders = (ground.known.needs() == needs_before).then_some(from);
    }

    fn expose_loader(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        mentions: &mut Mentions,
        class: ClassKey,
        from: Source,
    ) {
        self.expose_unnamed(ground, reachable, mentions, [class], from);
        let Ground { known, methods, .. } = ground;
        let mirror = known.mirrors.get(class);
        if mirror.linked && !mirror.is_abstract_class() && !mirror.loader.is_jdk() {
            // The JVM calls it, also where the JDK's code is instrumented.
            let signature = known.mirrors.intern_signature(LOAD_CLASS.0, LOAD_CLASS.1);
            let mut selected = Vec::new();
            reachable.select_for(known, methods, class, (signature, from), &mut selected);
            selected.into_iter().for_each(|method| methods.raise(method, UNNAMED));
        }
    }

    /// Whether such a caller has left the filter already, or cannot before more is known.
    pub(super) fn is_opened(&self, known: &Known, caller: Caller) -> bool {
        if self.callers.iter().any(|known| known.caller == caller) {
            return true;
        }
        let is_asked = self.asked.contains(&caller);
        if is_asked {
            // All classes would have to be looked at once more, for each method that leaves the filter, to find the same missing.
            known.lack();
        }
        is_asked
    }

    /// The thread leaves the filter, and comes to any objects there.
    pub(super) fn open_up(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        mentions: &mut Mentions,
        from: Source,
    ) {
        if ground.known.options.without.has(Mechanism::Opaque) {
            return;
        }
        let needs_before = ground.known.needs();
        self.spares_idle = ground.likely.knows_what_is_idle();
        let classes = ground.known.mirrors.keys();
        self.expose_unnamed(ground, reachable, mentions, classes, from);
        if ground.known.needs() == needs_before {
            self.callers.push(from);
        } else {
            self.asked.push(from.caller);
        }
    }

    /// What never ran may run now, if the program does something new.
    pub(super) fn look_at_idle_again(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        mentions: &mut Mentions,
    ) {
        if !self.spares_idle || ground.likely.knows_what_is_idle() {
            return;
        }
        let needs_before = ground.known.needs();
        for from in self.callers.clone() {
            let classes = ground.known.mirrors.keys();
            self.expose_unnamed(ground, reachable, mentions, classes, from);
        }
        self.spares_idle = ground.known.needs() != needs_before;
    }

    /// A class has come whose objects may be among those.
    pub(super) fn expose_if_open(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        mentions: &mut Mentions,
        class: ClassKey,
    ) {
        let mirrors = &ground.known.mirrors;
        let is_loader = |key: &ClassKey| &*mirrors.get(*key).name == CLASS_LOADER;
        let callers = self.callers.clone();
        if let Some(from) = self.loaders
            && mirrors.supertypes(class).iter().any(is_loader)
        {
            self.expose_loader(ground, reachable, mentions, class, from.from(Caller::Application));
        }
        for from in callers {
            self.expose_unnamed(ground, reachable, mentions, [class], from);
        }
    }

    /// Selects what classes have of what types outside the filter declare.
    fn expose_unnamed(
        &mut self,
        ground: &mut Ground<'_>,
        reachable: &mut Reachable,
        mentions: &mut Mentions,
        classes: impl IntoIterator<Item = ClassKey>,
        from: Source,
    ) {
        let mut found = Vec::new();
        for class in classes {
            for signature in ground.known.declared_outside(class, from.caller) {
                if !self.is_spared(ground, mentions, class, signature, from) {
                    found.push((class, signature));
                    self.having.entry(signature).or_default().insert(class);
                }
            }
        }
        for (class, signature) in found {
            if self.having[&signature].len() <= MOST_CLASSES {
                reachable.select_unnamed(ground, class, signature, from);
            }
        }
    }

    /// Whether a method is left alone on objects of a class that nobody names.
    fn is_spared(
        &self,
        ground: &mut Ground<'_>,
        mentions: &mut Mentions,
        class: ClassKey,
        signature: Signature,
        from: Source,
    ) -> bool {
        let Ground { known, methods, likely } = ground;
        if known.mirrors.get(class).lambda_host().is_some() {
            return known.home(class).is_none_or(|host| methods.is_left_running(known, host));
        }
        let places = methods.places_of_unnamed(known, class, signature, from.caller);
        let never_ran = |place: &ClassKey| methods.has_never_run_here(known, *place, signature);
        let spares_idle = self.spares_idle && likely.knows_what_is_idle();
        let is_idle = spares_idle && places.iter().all(never_ran);
        is_idle && (known.is_of_object(signature) || mentions.withholds(ground, class, signature, from))
    }
}

impl Known {
    /// What a class has of what types outside the filter declare.
    pub(super) fn declared_outside(&self, class: ClassKey, caller: Caller) -> Vec<Signature> {
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
        known: &Known,
        class: ClassKey,
        signature: Signature,
        caller: Caller,
    ) -> Vec<ClassKey> {
        let mut places = known.places_of(class, signature, caller);
        places.retain(|place| !self.is_left_running(known, *place));
        places
    }
}
