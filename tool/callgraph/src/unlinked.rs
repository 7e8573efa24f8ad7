//! Classes that were loaded when we came, and not linked.
//!
//! The verifier loads classes long before anybody uses them. Of such a class neither methods nor supertypes are known, so what is called
//! in it is selected when it is linked, which takes a batch; in a javac that has just started, two of five batches were of that kind, most of them of
//! one class. So what a batch is about to call there is linked before, as the program would soon, and goes into the same batch.
//!
//! Only in a program that starts, where little else is as dear; and only classes of the JDK's application class loader: to link a class may load
//! others, which runs the code of its loader, and that must not be the application's.
//!
//! Some are never linked, though they are called: a static method is inherited, and its call initialises the class that declares it, not the
//! one that is named (JVMS 5.5). All of Kotlin's library is called that way (`CollectionsKt`). So of such classes it is remembered what they extend.
//!
//! Why so, and at what cost: docs/decisions/unlinked-classes.md.

use std::sync::Arc;

use headwater_protocol::message::{ClassInfo, UnlinkedClass};
use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::CallSites;
use rustc_hash::{FxHashMap, FxHashSet};

use super::filter::JdkMethods;
use super::known::Known;
use super::mirror::ClassKey;
use super::policy::{LINKED_AHEAD, LOADED_LATER, Mechanism, Probability};
use super::receivers::Spare;
use super::record::Callee;
use super::source::{Called, Source};
use super::{CallGraph, Step, likely};

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Unlinked {
    /// What such classes extend, by name.
    extends: FxHashMap<Arc<str>, Vec<Super>>,
    /// The names of those that may be extended.
    names: FxHashMap<ClassId, Arc<str>>,
    /// Those of the JDK's application class loader, by name.
    classes: FxHashMap<Arc<str>, ClassId>,
    /// Those of them that are probably used soon.
    wanted: FxHashSet<ClassId>,
    /// Static calls that may be of what such classes inherit, by their names.
    inherited: Vec<(Arc<str>, Called)>,
    /// Those that were linked for the current work.
    linked: Vec<ClassKey>,
    /// ... and are not instrumented yet.
    bare: Vec<ClassKey>,
    /// Methods of such classes that may have been called before they were.
    late: usize,
}

/// A class that one that is not linked extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Super {
    Loaded(ClassId),
    /// By its name, as a class of this loader names it.
    Named(Arc<str>, LoaderId),
}

impl Unlinked {
    /// A class is being loaded.
    pub(super) fn loading(&mut self, name: Arc<str>, super_name: Arc<str>, loader: LoaderId) {
        let extends = self.extends.entry(name).or_default();
        let super_class = Super::Named(super_name, loader);
        if !extends.contains(&super_class) {
            extends.push(super_class);
        }
    }

    /// A class is linked now.
    pub(super) fn remove(&mut self, name: &str) {
        self.extends.remove(name);
        if let Some(class) = self.classes.remove(name) {
            self.wanted.remove(&class);
        }
    }

    /// To which the call graph has to be applied until the current work is done.
    pub(super) fn linked_ahead(&self) -> Vec<ClassKey> {
        self.linked.clone()
    }

    /// The current work is done.
    pub(super) fn settled(&mut self) {
        self.linked.clear();
        self.inherited.clear();
    }

    /// A method is about to call this: what it uses for that is worth linking.
    pub(super) fn want(&mut self, known: &Known, sites: &CallSites, probability: Probability) {
        if self.classes.is_empty() || known.options.without.has(Mechanism::Unlinked) {
            return;
        }
        for call in &sites.calls {
            if probability * likely::of_call(call.likelihood) >= LINKED_AHEAD
                && let Some(class) = self.classes.get(&*call.owner)
            {
                self.wanted.insert(*class);
            }
        }
    }
}

impl CallGraph {
    /// Classes that are loaded, and not linked; some of them may be linked ahead, if threads wait for that.
    pub fn add_unlinked(&mut self, classes: Vec<UnlinkedClass>, may_link: bool) {
        for UnlinkedClass { id, name, super_class, is_of_class_path } in classes {
            let name: Arc<str> = name.into();
            self.reachable.unlinked.names.insert(id, name.clone());
            if let Some(super_class) = super_class {
                self.reachable.unlinked.extends.entry(name.clone()).or_default().push(Super::Loaded(super_class));
            }
            if is_of_class_path && may_link {
                self.reachable.unlinked.classes.insert(name, id);
            }
        }
    }

    /// A static method that a class inherits, which may never be linked: it is looked for from its superclass on.
    pub(super) fn reach_inherited(&mut self, owner: &str, called: Called, callees: &mut Vec<Callee>) {
        for super_class in self.reachable.unlinked.extends.get(owner).cloned().unwrap_or_default() {
            let (name, loader) = match super_class {
                Super::Named(name, loader) => (name, loader),
                Super::Loaded(class) => {
                    match (self.known.mirrors.by_id(class), self.reachable.unlinked.names.get(&class)) {
                        (Some(key), _) if self.known.mirrors.get(key).linked => {
                            let mirror = self.known.mirrors.get(key);
                            (mirror.name.clone(), mirror.loader)
                        }
                        // Whose loader does not matter: nothing of the name is linked.
                        (_, Some(name)) => (name.clone(), LoaderId::BOOT),
                        _ => continue,
                    }
                }
            };
            self.reach_direct(&name, loader, called, Spare::Nothing, callees);
        }
    }

    /// A class is being loaded: what has been called on its name may be inherited, and is looked for when methods may be asked for.
    pub(super) fn reach_what_it_inherits(&mut self, class: ClassKey, name: &str) {
        let mirror = self.known.mirrors.get(class);
        let (Some(super_name), loader) = (mirror.super_names.first().cloned(), mirror.loader) else { return };
        let name: Arc<str> = name.into();
        let targets = self.reachable.direct_pending.get(&name).into_iter().flatten();
        let inherited = targets.filter(|((signature, _), _)| self.known.mirrors.method(class, *signature).is_none());
        let called = inherited.map(|(&(signature, caller), &cause)| (signature, Source { caller, cause }));
        self.reachable.unlinked.inherited.extend(called.map(|called| (name.clone(), called)));
        self.reachable.unlinked.loading(name, super_name, loader);
    }

    /// Goes on with what has been called by inheritance, until the current work is done.
    pub(super) fn reach_inherited_later(&mut self) {
        let mut callees = Vec::new();
        for (name, called) in self.reachable.unlinked.inherited.clone() {
            self.reach_inherited(&name, called, &mut callees);
        }
        callees.into_iter().for_each(|callee| self.methods.raise(callee.method, callee.probability * LOADED_LATER));
    }

    /// What is to be linked before a batch, if one is due.
    pub(super) fn links_ahead(&mut self) -> Vec<ClassId> {
        // Where the JDK's code is instrumented, linking would run it.
        let may_link =
            self.known.options.jdk == JdkMethods::None && !self.known.roots_only && self.likely.is_starting();
        if self.reachable.unlinked.wanted.is_empty() || !may_link || !self.plan.wants_hotswap(&self.known) {
            return Vec::new();
        }
        let wanted = std::mem::take(&mut self.reachable.unlinked.wanted);
        // What cannot be linked is not asked for again.
        self.reachable.unlinked.classes.retain(|_, class| !wanted.contains(class));
        let mut links: Vec<ClassId> = wanted.into_iter().collect();
        links.sort_unstable();
        links
    }

    /// Classes have been linked, for the current work or meanwhile; goes on with it.
    pub fn add_linked(&mut self, classes: Vec<ClassInfo>) -> Step {
        for info in classes {
            self.reachable.unlinked.remove(&info.name);
            let probed = info.probed;
            let key = self.known.mirrors.linked(info);
            self.came(key, probed);
            self.reachable.unlinked.linked.push(key);
            self.reachable.unlinked.bare.push(key);
        }
        self.resume()
    }

    /// A batch is over, and so many threads had been in the graph then: another than the one that linked classes for it may have called
    /// them before.
    pub fn instrumented_linked(&mut self, threads: u32) {
        for class in std::mem::take(&mut self.reachable.unlinked.bare) {
            let methods = self.methods.in_class(class);
            let records = || methods.iter().filter_map(|method| self.methods.record(*method));
            if records().any(|record| !record.submitted && record.refused.is_none()) {
                // It comes in the next batch.
                self.reachable.unlinked.bare.push(class);
            } else if threads > 1 {
                self.reachable.unlinked.late += records().filter(|record| record.refused.is_none()).count();
            }
        }
    }

    /// How many methods they may have called.
    pub fn linked_late(&self) -> usize {
        self.reachable.unlinked.late
    }
}
