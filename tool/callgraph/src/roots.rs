//! The roots: which methods a pattern names, those included that are loaded later.

use headwater_protocol::MethodId;

use super::filter::{Caller, JdkMethods};
use super::mirror::{ClassKey, Signature};
use super::record::{MethodRecord, PatternIndex};
use super::{CallGraph, MethodPattern, Options};

/// Whether a root may stand for more than the overloads of one method.
pub(super) fn pattern_is_broad(pattern: &MethodPattern) -> bool {
    pattern.class_text().contains('*') || pattern.method_text().contains('*')
}

/// What a root pattern matches among the loaded classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootMatch {
    /// Classes that match its class part.
    pub classes: usize,
    /// Methods that match it and can be instrumented.
    pub methods: usize,
}

/// A class that is left as it is, though a root pattern names methods of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAlone {
    /// Its name, dotted.
    pub class: String,
    /// It would be instrumented if methods of the JDK were.
    pub unless_jdk: bool,
}

impl CallGraph {
    pub(super) fn select_roots(&mut self) {
        for key in self.mirrors.keys() {
            self.select_roots_in(key);
        }
    }

    /// Selects the methods that a linked class declares and a root pattern names.
    pub(super) fn select_roots_in(&mut self, key: ClassKey) {
        if !self.mirrors.get(key).linked {
            return;
        }
        let name = self.mirrors.get(key).name.clone();
        for (index, pattern) in self.options.roots.clone().iter().enumerate() {
            if !pattern.matches_class(&name) {
                continue;
            }
            if let Some(lines) = self.options.lines_of(PatternIndex(index)) {
                self.select_lines_in(key, PatternIndex(index), lines);
                continue;
            }
            let Some(methods) = self.mirrors.methods(key) else {
                self.need(key);
                continue;
            };
            let matching: Vec<(Signature, bool)> = methods
                .iter()
                .filter(|(signature, _)| {
                    let (name, descriptor) = self.mirrors.signature(**signature);
                    pattern.matches_method(name, descriptor)
                })
                .map(|(signature, method)| (*signature, method.is_abstract()))
                .collect();
            for (signature, is_abstract) in matching {
                if is_abstract {
                    self.select_implementations(key, signature, PatternIndex(index));
                } else if let Some(id) = self.select(key, signature, Caller::Root) {
                    self.mark_root(id, PatternIndex(index));
                    self.raise(id, self.of_root());
                }
            }
        }
    }

    /// An abstract root stands for its implementations, those that are loaded later included.
    fn select_implementations(&mut self, key: ClassKey, signature: Signature, pattern: PatternIndex) {
        for subtype in self.mirrors.subtypes(key) {
            self.select_implementation(subtype, signature, pattern);
        }
        self.reachable.abstract_roots.entry(key).or_default().insert((signature, pattern));
    }

    pub(super) fn select_implementation(&mut self, class: ClassKey, signature: Signature, pattern: PatternIndex) {
        let places = self.places_of(class, signature, Caller::Root);
        for place in places {
            if let Some(id) = self.select(place, signature, Caller::Root) {
                self.mark_root(id, pattern);
            }
        }
    }

    pub(super) fn mark_root(&mut self, id: MethodId, pattern: PatternIndex) {
        let Some(record) = self.record_mut(id) else { return };
        let first = record.root_of.is_empty();
        if !record.root_of.contains(&pattern) {
            record.root_of.push(pattern);
        }
        if first {
            self.new_roots.push(id);
            self.learn_of_root(id);
        }
    }

    /// Roots that have become known since the last call.
    pub fn take_new_roots(&mut self) -> Vec<MethodId> {
        std::mem::take(&mut self.new_roots)
    }

    /// The instrumented methods that a root pattern stands for.
    pub fn roots_of(&self, pattern: PatternIndex) -> impl Iterator<Item = &MethodRecord> {
        self.methods.iter().filter(move |method| method.refused.is_none() && method.root_of.contains(&pattern))
    }

    /// A linked class with methods that a root pattern names, which must not contain probes.
    pub fn left_alone(&self, pattern: &MethodPattern) -> Option<LeftAlone> {
        let is_left = |key: &ClassKey| {
            let mirror = self.mirrors.get(*key);
            mirror.linked
                && pattern.matches_class(&mirror.name)
                && !self.options.admits_class(&mirror.name, mirror.loader, Caller::Root)
                && self.has_method(*key, pattern)
        };
        let mirror = self.mirrors.get(self.mirrors.keys().find(is_left)?);
        let with_jdk = Options { jdk: JdkMethods::All, ..self.options.clone() };
        let unless_jdk = with_jdk.admits_class(&mirror.name, mirror.loader, Caller::Root);
        Some(LeftAlone { class: mirror.name.replace('/', "."), unless_jdk })
    }

    /// What each root pattern matches, in their order.
    pub fn root_matches(&self) -> Vec<RootMatch> {
        let matches = |(index, pattern): (usize, &MethodPattern)| {
            let classes = self.mirrors.keys().filter(|key| {
                let mirror = self.mirrors.get(*key);
                mirror.linked && pattern.matches_class(&mirror.name)
            });
            RootMatch { classes: classes.count(), methods: self.roots_of(PatternIndex(index)).count() }
        };
        self.options.roots.iter().enumerate().map(matches).collect()
    }
}
