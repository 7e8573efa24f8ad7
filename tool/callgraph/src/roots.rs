//! The roots: which methods a pattern names, those included that are loaded later.

use headwater_protocol::message::MethodRef;
use headwater_protocol::{ClassId, MethodId};
use headwater_terms::Scheme;
use headwater_terms::pattern::MethodPattern;

use super::filter::{Caller, JdkMethods, Options};
use super::known::Known;
use super::likely::Likely;
use super::lines::Lines;
use super::methods::Methods;
use super::mirror::{ClassKey, Signature};
use super::policy::{AGAIN, MOST_LISTED};
use super::reachable::Reachable;
use super::record::{MethodRecord, PatternIndex};
use super::source::Source;

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

impl Known {
    /// The classes whose methods should be known before any is selected, for what has been called tells what will be; first those that
    /// may have roots.
    pub(super) fn worth_listing(&self) -> Vec<ClassId> {
        if !self.options.look_ahead || self.options.scheme != Scheme::Lazy || self.roots_only {
            return Vec::new();
        }
        let unlisted = self.mirrors.keys().map(|key| (key, self.mirrors.get(key))).filter(|(key, mirror)| {
            let is_admitted = self.options.admits_class(&mirror.name, mirror.loader, Caller::Application);
            mirror.linked && is_admitted && self.mirrors.methods(*key).is_none()
        });
        let may_have_roots = |name: &str| self.options.roots.iter().any(|root| root.matches_class(name));
        let (with_roots, others): (Vec<_>, Vec<_>) =
            unlisted.map(|(_, mirror)| mirror).partition(|mirror| may_have_roots(&mirror.name));
        with_roots.into_iter().chain(others).filter_map(|mirror| mirror.id).take(MOST_LISTED).collect()
    }

    /// The loaded classes that have methods which are roots, and how often these have been called, as far as it is known.
    pub(super) fn calls_of_roots(&self) -> (Vec<ClassId>, u32) {
        let (mut classes, mut calls) = (Vec::new(), 0_u32);
        for (class, _, count) in self.loaded_roots() {
            calls = calls.saturating_add(count);
            classes.push(class);
        }
        classes.sort_unstable();
        classes.dedup();
        (classes, calls)
    }

    /// Whether each root that is loaded has been called so often that it will be called again.
    pub(super) fn each_root_is_called_again(&self) -> bool {
        self.loaded_roots().into_iter().all(|(_, _, calls)| calls >= AGAIN)
    }

    /// The methods that are roots, as the target names them: before they are instrumented, as far as their classes' methods are known.
    pub(super) fn root_methods(&self) -> Vec<MethodRef> {
        let named = |(class, signature, _): (ClassId, Signature, u32)| {
            let (name, descriptor) = self.mirrors.signature(signature);
            MethodRef { class, name: name.to_string(), descriptor: descriptor.to_string() }
        };
        self.loaded_roots().into_iter().map(named).collect()
    }

    /// Of each root: its class, and how often it has been called, if that is known.
    pub(super) fn loaded_roots(&self) -> Vec<(ClassId, Signature, u32)> {
        let mut found = Vec::new();
        for key in self.mirrors.keys() {
            let mirror = self.mirrors.get(key);
            let patterns = self.options.roots.iter().filter(|pattern| pattern.matches_class(&mirror.name));
            let Some(methods) = self.mirrors.methods(key) else { continue };
            for pattern in patterns {
                let roots = methods.iter().filter(|(signature, _)| {
                    let (name, descriptor) = self.mirrors.signature(**signature);
                    pattern.matches_method(name, descriptor)
                });
                let Some(class) = mirror.id else { continue };
                found.extend(roots.map(|(signature, root)| (class, *signature, root.calls.unwrap_or(0))));
            }
        }
        found
    }

    /// The linked classes whose names root patterns match.
    pub(super) fn with_roots(&self) -> Vec<ClassKey> {
        let is_named = |key: &ClassKey| {
            let mirror = self.mirrors.get(*key);
            mirror.linked && self.options.roots.iter().any(|pattern| pattern.matches_class(&mirror.name))
        };
        self.mirrors.keys().filter(is_named).collect()
    }

    /// A class with methods that a root pattern names, in which a thread runs a loop.
    pub(super) fn looping(&self, pattern: &MethodPattern) -> Option<String> {
        let mut named = self.mirrors.keys().filter(|key| {
            let mirror = self.mirrors.get(*key);
            let may_have_method = self.mirrors.methods(*key).is_none() || self.has_method(*key, pattern);
            mirror.looping && pattern.matches_class(&mirror.name) && may_have_method
        });
        named.next().map(|key| self.mirrors.get(key).name.replace('/', "."))
    }

    /// A linked class with methods that a root pattern names, which must not contain probes.
    pub(super) fn left_alone(&self, pattern: &MethodPattern) -> Option<LeftAlone> {
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
}

impl Methods {
    /// A method is a root by this pattern.
    pub(super) fn mark_root(&mut self, known: &Known, likely: &mut Likely, id: MethodId, pattern: PatternIndex) {
        let Some(record) = self.record_mut(id) else { return };
        let first = record.root_of.is_empty();
        if !record.root_of.contains(&pattern) {
            record.root_of.push(pattern);
        }
        if first {
            self.is_root_now(id);
            likely.learn_of_root(known, self, id);
        }
    }

    /// The instrumented methods that a root pattern stands for.
    pub(super) fn roots_of(&self, pattern: PatternIndex) -> impl Iterator<Item = &MethodRecord> {
        self.all().iter().filter(move |method| method.refused.is_none() && method.root_of.contains(&pattern))
    }

    /// What each root pattern matches, in their order.
    pub(super) fn root_matches(&self, known: &Known) -> Vec<RootMatch> {
        let matches = |(index, pattern): (usize, &MethodPattern)| {
            let classes = known.mirrors.keys().filter(|key| {
                let mirror = known.mirrors.get(*key);
                mirror.linked && pattern.matches_class(&mirror.name)
            });
            RootMatch { classes: classes.count(), methods: self.roots_of(PatternIndex(index)).count() }
        };
        known.options.roots.iter().enumerate().map(matches).collect()
    }

    /// Selects the lines of all methods of a class: which of them have any is known when they are rewritten.
    pub(super) fn select_lines_in(
        &mut self,
        known: &Known,
        likely: &mut Likely,
        key: ClassKey,
        pattern: PatternIndex,
        lines: Lines,
    ) {
        let mirror = known.mirrors.get(key);
        if !known.options.admits_class(&mirror.name, mirror.loader, Caller::Root)
            || !mirror.modifiable
            || mirror.refused
            || mirror.looping
        {
            return;
        }
        let Some(methods) = known.mirrors.methods(key) else {
            known.need(key);
            return;
        };
        let with_code = methods.iter().filter(|(_, method)| method.has_code()).map(|(signature, _)| *signature);
        for signature in with_code.collect::<Vec<Signature>>() {
            let mut others = self.lines_of(key, signature).iter().filter_map(|id| self.record(*id));
            if others.any(|it| it.lines == Some(lines)) || self.are_full() {
                continue;
            }
            let id = self.add(known, key, signature, Some(lines), Source::ROOT.cause);
            self.mark_root(known, likely, id, pattern);
        }
    }
}

impl Reachable {
    /// Selects the methods that a linked class declares and a root pattern names.
    pub(super) fn select_roots_in(&mut self, known: &Known, methods: &mut Methods, likely: &mut Likely, key: ClassKey) {
        if !known.mirrors.get(key).linked {
            return;
        }
        let name = &known.mirrors.get(key).name;
        for (index, pattern) in known.options.roots.iter().enumerate() {
            if !pattern.matches_class(name) {
                continue;
            }
            if let Some(lines) = known.options.lines_of(PatternIndex(index)) {
                methods.select_lines_in(known, likely, key, PatternIndex(index), lines);
                continue;
            }
            let Some(declared) = known.mirrors.methods(key) else {
                known.need(key);
                continue;
            };
            let matching: Vec<(Signature, bool)> = declared
                .iter()
                .filter(|(signature, _)| {
                    let (name, descriptor) = known.mirrors.signature(**signature);
                    pattern.matches_method(name, descriptor)
                })
                .map(|(signature, method)| (*signature, method.is_abstract()))
                .collect();
            for (signature, is_abstract) in matching {
                if is_abstract {
                    self.select_implementations(known, methods, likely, key, (signature, PatternIndex(index)));
                } else if let Some(id) = self.select(known, methods, key, signature, Source::ROOT) {
                    methods.mark_root(known, likely, id, PatternIndex(index));
                    methods.raise(id, likely.of_root(known));
                }
            }
        }
    }

    /// An abstract root stands for its implementations, those that are loaded later included.
    fn select_implementations(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        likely: &mut Likely,
        key: ClassKey,
        root: (Signature, PatternIndex),
    ) {
        for subtype in known.mirrors.subtypes(key) {
            self.select_implementation(known, methods, likely, subtype, root);
        }
        self.abstract_roots.entry(key).or_default().insert(root);
    }

    fn select_implementation(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        likely: &mut Likely,
        class: ClassKey,
        (signature, pattern): (Signature, PatternIndex),
    ) {
        for place in known.places_of(class, signature, Caller::Root) {
            if let Some(id) = self.select(known, methods, place, signature, Source::ROOT) {
                methods.mark_root(known, likely, id, pattern);
            }
        }
    }

    /// Selects the roots in a class that has come, those included that implement others.
    pub(super) fn select_roots_by(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        likely: &mut Likely,
        class: ClassKey,
    ) {
        self.select_roots_in(known, methods, likely, class);
        for supertype in known.mirrors.supertypes(class) {
            let abstract_roots = self.abstract_roots.get(&supertype).cloned();
            for root in abstract_roots.into_iter().flatten() {
                self.select_implementation(known, methods, likely, class, root);
            }
        }
    }

    /// Selects the roots in a class whose loading has begun, by the methods that it declares.
    pub(super) fn select_roots_while_loading(
        &mut self,
        known: &Known,
        methods: &mut Methods,
        likely: &mut Likely,
        class: ClassKey,
        name: &str,
    ) {
        for (index, pattern) in known.options.roots.iter().enumerate() {
            let pattern_index = PatternIndex(index);
            if let Some(lines) = known.options.lines_of(pattern_index).filter(|_| pattern.matches_class(name)) {
                methods.select_lines_in(known, likely, class, pattern_index, lines);
            } else if pattern.matches_class(name) {
                let roots = known.declared(class, |signature| {
                    let (name, descriptor) = known.mirrors.signature(signature);
                    pattern.matches_method(name, descriptor).then_some(Source::ROOT)
                });
                for root in self.select_declared(known, methods, class, roots) {
                    methods.mark_root(known, likely, root, pattern_index);
                }
            }
        }
    }
}
