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
use super::likely::{self, Likely};
use super::methods::Methods;
use super::mirror::ClassKey;
use super::policy::{LINKED_AHEAD, Mechanism, Probability};
use super::source::Called;

/// What is known of them.
#[derive(Debug, Default)]
pub(super) struct Unlinked {
    /// What such classes extend, by name: those of each loader that has one.
    extends: FxHashMap<Arc<str>, Vec<(Whose, Super)>>,
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

/// Which class of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whose {
    Loaded(ClassId),
    /// The one that this loader was loading.
    Loading(LoaderId),
}

/// A class that one that is not linked extends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Super {
    Loaded(ClassId),
    /// By its name, as a class of this loader names it.
    Named(Arc<str>, LoaderId),
}

impl Unlinked {
    /// Classes that are loaded, and not linked; some of them may be linked ahead, if threads wait for that.
    pub(super) fn add(&mut self, classes: Vec<UnlinkedClass>, may_link: bool) {
        for UnlinkedClass { id, name, super_class, is_of_class_path } in classes {
            let name: Arc<str> = name.into();
            self.names.insert(id, name.clone());
            if let Some(super_class) = super_class {
                self.extend(name.clone(), (Whose::Loaded(id), Super::Loaded(super_class)));
            }
            if is_of_class_path && may_link {
                self.classes.insert(name, id);
            }
        }
    }

    /// A class is being loaded.
    pub(super) fn loading(&mut self, name: Arc<str>, super_name: Arc<str>, loader: LoaderId) {
        self.extend(name, (Whose::Loading(loader), Super::Named(super_name, loader)));
    }

    /// Being told twice is harmless.
    fn extend(&mut self, name: Arc<str>, own: (Whose, Super)) {
        let extends = self.extends.entry(name).or_default();
        if !extends.contains(&own) {
            extends.push(own);
        }
    }

    /// A class is linked now; others of its name need not be.
    pub(super) fn remove(&mut self, class: &ClassInfo) {
        let own = [Whose::Loaded(class.id), Whose::Loading(class.loader)];
        if let Some(extends) = self.extends.get_mut(&*class.name) {
            extends.retain(|(whose, _)| !own.contains(whose));
        }
        if self.classes.get(&*class.name) == Some(&class.id) {
            self.classes.remove(&*class.name);
            self.wanted.remove(&class.id);
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

    /// What such a class of this name extends: each as code names it.
    pub(super) fn extended_by(&self, known: &Known, name: &str) -> Vec<(Arc<str>, LoaderId)> {
        let named = |(_, super_class): &(Whose, Super)| match super_class {
            Super::Named(name, loader) => Some((name.clone(), *loader)),
            Super::Loaded(class) => {
                let mirror = known.mirrors.by_id(*class).map(|key| known.mirrors.get(key));
                match mirror.filter(|mirror| mirror.linked) {
                    Some(mirror) => Some((mirror.name.clone(), mirror.loader)),
                    // Whose loader does not matter: nothing of the name is linked.
                    None => self.names.get(class).map(|name| (name.clone(), LoaderId::BOOT)),
                }
            }
        };
        self.extends.get(name).into_iter().flatten().filter_map(named).collect()
    }

    /// What has been called on a name may be inherited, and is looked for when methods may be asked for.
    pub(super) fn call_later(&mut self, name: &Arc<str>, called: impl Iterator<Item = Called>) {
        self.inherited.extend(called.map(|called| (name.clone(), called)));
    }

    /// What is to be looked for until the current work is done.
    pub(super) fn called(&self) -> Vec<(Arc<str>, Called)> {
        self.inherited.clone()
    }

    /// Whether something is to be linked before a batch, if one is due.
    pub(super) fn are_wanted(&self, known: &Known, likely: &Likely) -> bool {
        // Where the JDK's code is instrumented, linking would run it.
        let may_link = known.options.jdk == JdkMethods::None && !known.roots_only && likely.is_starting();
        !self.wanted.is_empty() && may_link
    }

    /// What is.
    pub(super) fn take_wanted(&mut self) -> Vec<ClassId> {
        let wanted = std::mem::take(&mut self.wanted);
        // What cannot be linked is not asked for again.
        self.classes.retain(|_, class| !wanted.contains(class));
        let mut links: Vec<ClassId> = wanted.into_iter().collect();
        links.sort_unstable();
        links
    }

    /// A class has been linked for the current work, or meanwhile.
    pub(super) fn is_linked(&mut self, class: ClassKey) {
        self.linked.push(class);
        self.bare.push(class);
    }

    /// A batch is over, and so many threads had been in the graph then: another than the one that linked classes for it may have called
    /// them before.
    pub(super) fn instrumented(&mut self, methods: &Methods, threads: u32) {
        for class in std::mem::take(&mut self.bare) {
            let records = || methods.in_class(class).iter().filter_map(|method| methods.record(*method));
            if records().any(|record| !record.submitted && record.refused.is_none()) {
                // It comes in the next batch.
                self.bare.push(class);
            } else if threads > 1 {
                self.late += records().filter(|record| record.refused.is_none()).count();
            }
        }
    }

    /// How many methods they may have called.
    pub(super) fn late(&self) -> usize {
        self.late
    }
}

#[cfg(test)]
mod tests {
    use super::super::filter::Options;
    use super::*;

    #[test]
    fn what_a_class_extends_is_known_until_it_is_linked_and_not_another_of_its_name() {
        let class = |id, super_class| UnlinkedClass {
            id: ClassId(id),
            name: ["", "Facade", "Part"][id as usize].to_owned(),
            super_class,
            is_of_class_path: true,
        };
        let linked = |id, loader| ClassInfo {
            id: ClassId(id),
            name: "Facade".to_owned(),
            loader: LoaderId(loader),
            super_class: None,
            interfaces: Vec::new(),
            access: 0,
            initialized: false,
            modifiable: true,
            probed: false,
        };
        let mut unlinked = Unlinked::default();
        unlinked.add(vec![class(1, Some(ClassId(2))), class(2, None)], true);
        unlinked.loading("Facade".into(), "Late".into(), LoaderId(7));
        let known = Known::new(Options::default());
        let extended = |unlinked: &Unlinked| {
            unlinked.extended_by(&known, "Facade").into_iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>()
        };
        unlinked.remove(&linked(9, 8));
        assert_eq!(extended(&unlinked), ["Part", "Late"], "another loader's was linked");
        assert_eq!(unlinked.classes.len(), 2);
        unlinked.remove(&linked(1, 3));
        assert_eq!((extended(&unlinked), unlinked.classes.len()), (vec!["Late".to_owned()], 1));
        unlinked.remove(&linked(5, 7));
        assert!(extended(&unlinked).is_empty());
    }
}
