//! Classes by name.
//!
//! A name means one class in nearly every program. But a server that loads its applications anew, or a script engine, has a loader for each, and
//! thousands of classes of one name. So the class of a loader is found without looking through the others; and where a loader has none of its own, and any
//! of so many may be meant, they are a *crowd*, of which more is said in [`crowds`](super::crowds).

use std::sync::Arc;

use headwater_protocol::LoaderId;
use rustc_hash::FxHashMap;

use super::mirror::ClassKey;

/// So many classes of a name are looked through.
const FEW: usize = 8;
/// More than these are a crowd.
pub(super) const MOST_MEANT: usize = 32;

/// What a name may mean in a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Visible {
    /// One of these; that which the class's own loader defines, if it does.
    These(Vec<ClassKey>),
    /// Any of very many, all that there are.
    Crowd,
}

impl Visible {
    /// The classes, if they are no crowd.
    pub(super) fn few(self) -> Option<Vec<ClassKey>> {
        match self {
            Visible::These(classes) => Some(classes),
            Visible::Crowd => None,
        }
    }
}

/// All classes of one name.
#[derive(Debug, Default)]
struct Named {
    all: Vec<ClassKey>,
    loaders: Vec<LoaderId>,
    /// The first of each loader, where they are more than a few.
    by_loader: FxHashMap<LoaderId, ClassKey>,
    /// The first of the JDK's own.
    of_jdk: Option<ClassKey>,
}

/// All classes by name.
#[derive(Debug, Default)]
pub(super) struct Names {
    named: FxHashMap<Arc<str>, Named>,
    /// Those whose loading has begun, and not ended.
    being_loaded: FxHashMap<(LoaderId, Arc<str>), ClassKey>,
    /// How many classes were looked at so far.
    #[cfg(test)]
    pub(super) looks: std::cell::Cell<usize>,
}

impl Names {
    /// A class has this name.
    pub(super) fn add(&mut self, name: Arc<str>, loader: LoaderId, key: ClassKey) {
        let named = self.named.entry(name).or_default();
        named.all.push(key);
        named.loaders.push(loader);
        if named.all.len() == FEW + 1 {
            let both = named.loaders.iter().zip(&named.all).rev();
            named.by_loader = both.map(|(loader, key)| (*loader, *key)).collect();
        } else if named.all.len() > FEW {
            named.by_loader.entry(loader).or_insert(key);
        }
        if loader.is_jdk() {
            named.of_jdk.get_or_insert(key);
        }
    }

    /// All classes of a name.
    pub(super) fn all(&self, name: &str) -> &[ClassKey] {
        let all: &[ClassKey] = self.named.get(name).map_or(&[], |named| &named.all);
        self.count(all.len());
        all
    }

    /// The class of this name that a loader defines.
    pub(super) fn own(&self, name: &str, loader: LoaderId) -> Option<ClassKey> {
        let named = self.named.get(name)?;
        self.count(named.all.len().min(FEW));
        if named.all.len() > FEW {
            return named.by_loader.get(&loader).copied();
        }
        let at = named.loaders.iter().position(|other| *other == loader)?;
        Some(named.all[at])
    }

    /// The first class of this name that is the JDK's.
    pub(super) fn of_jdk(&self, name: &str) -> Option<ClassKey> {
        self.named.get(name)?.of_jdk
    }

    /// The classes that a name may mean in a class of this loader.
    pub(super) fn visible(&self, name: &str, from: LoaderId) -> Visible {
        if let Some(own) = self.own(name, from) {
            return Visible::These(vec![own]);
        }
        if self.named.get(name).is_some_and(|named| named.all.len() > MOST_MEANT) {
            return Visible::Crowd;
        }
        Visible::These(self.all(name).to_vec())
    }

    /// The loading of a class has begun.
    pub(super) fn begin_loading(&mut self, name: Arc<str>, loader: LoaderId, key: ClassKey) {
        self.being_loaded.insert((loader, name), key);
    }

    /// It has ended.
    pub(super) fn end_loading(&mut self, name: Arc<str>, loader: LoaderId) {
        self.being_loaded.remove(&(loader, name));
    }

    /// A class whose loading has begun, and not ended.
    pub(super) fn being_loaded(&self, name: Arc<str>, loader: LoaderId) -> Option<ClassKey> {
        self.being_loaded.get(&(loader, name)).copied()
    }

    #[cfg(test)]
    fn count(&self, classes: usize) {
        self.looks.set(self.looks.get() + classes);
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "tests count")]
    fn count(&self, _classes: usize) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name of so many classes, each of a loader of its own.
    fn of_loaders(count: u64) -> Names {
        let mut names = Names::default();
        for loader in 0..count {
            names.add("Plugin".into(), LoaderId(10 + loader), ClassKey::of_number(loader as u32));
        }
        names
    }

    #[test]
    fn a_loaders_own_class_is_meant_however_many_others_have_the_name() {
        for count in [1, FEW as u64, FEW as u64 + 1, 1_000] {
            let names = of_loaders(count);
            for loader in 0..count {
                let own = ClassKey::of_number(loader as u32);
                assert_eq!(names.visible("Plugin", LoaderId(10 + loader)), Visible::These(vec![own]), "of {count}");
            }
        }
    }

    #[test]
    fn the_first_of_a_loaders_classes_is_meant() {
        let mut names = of_loaders(FEW as u64);
        names.add("Plugin".into(), LoaderId(10), ClassKey::of_number(99));
        names.add("Plugin".into(), LoaderId(11), ClassKey::of_number(100));
        assert_eq!(names.own("Plugin", LoaderId(10)), Some(ClassKey::of_number(0)));
        assert_eq!(names.own("Plugin", LoaderId(11)), Some(ClassKey::of_number(1)));
    }

    #[test]
    fn where_a_loader_has_none_any_may_be_meant_and_very_many_are_a_crowd() {
        let elsewhere = LoaderId(5);
        let few = of_loaders(MOST_MEANT as u64).visible("Plugin", elsewhere);
        assert_eq!(few.few().map(|classes| classes.len()), Some(MOST_MEANT));
        assert_eq!(of_loaders(MOST_MEANT as u64 + 1).visible("Plugin", elsewhere), Visible::Crowd);
        assert_eq!(of_loaders(3).visible("Other", elsewhere), Visible::These(Vec::new()));
    }

    #[test]
    fn a_look_up_takes_no_longer_where_there_are_more_loaders() {
        let looks = |count: u64| {
            let names = of_loaders(count);
            (0..count).for_each(|loader| drop(names.visible("Plugin", LoaderId(10 + loader))));
            (0..count).for_each(|_| drop(names.visible("Plugin", LoaderId(5))));
            names.looks.get() as u64 / count
        };
        assert_eq!(looks(100_000), looks(1_000));
        assert!(looks(1_000) <= 2 * FEW as u64);
    }
}
