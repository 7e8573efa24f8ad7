//! The call graph: which methods of the target are to be instrumented, and when.
//!
//! A pure state machine. It is told what happens in the target (classes listed, loaded and linked, methods entered for the first
//! time) and answers with a [`Step`]: the classes whose methods it needs to know first, or the classes to hotswap. It does no
//! I/O and knows no JVM.
//!
//! Scheme B (JFluid 6.2): when an instrumented method is entered for the first time, its callees are selected, before they can
//! be called. Callees are found by class hierarchy analysis over *loaded* classes ([`resolve`]); what classes that come later
//! add to the answer is remembered ([`reachable`]) and applied when they come. Methods that only code outside the filter
//! calls are found by the types that are handed out to it ([`callbacks`]).
//!
//! The rule is: selecting too much costs precision, selecting too little is a bug.

use std::sync::Arc;

use headwater_protocol::message::{ClassInfo, MethodInfo};
use headwater_protocol::{ClassId, LoaderId, MethodId};
use headwater_rewriter::{CallKind, CallSites, ClassFile};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::pattern::{self, MethodPattern};

mod ahead;
mod callbacks;
mod filter;
mod mirror;
mod reachable;
mod resolve;
#[cfg(test)]
mod tests;

pub use filter::{JdkMethods, Options};

use ahead::Ahead;
use filter::Caller;
use mirror::{ClassKey, Mirrors, Signature};
use reachable::Reachable;

/// Names the class initialiser.
const CLINIT: (&str, &str) = ("<clinit>", "()V");

/// What the call graph wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Tell it the methods that these classes declare ([`CallGraph::add_methods`], for each of them), then
    /// [`CallGraph::resume`].
    NeedMethods(Vec<ClassId>),
    /// Have these classes retransformed; there may be none.
    Hotswap(Vec<ClassId>),
}

/// A method to be instrumented in a class file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selected {
    /// In the class file's order.
    pub method_index: usize,
    /// The id that its probes carry.
    pub id: MethodId,
}

/// One of [`Options::roots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternIndex(pub usize);

/// A method that was selected for instrumentation.
#[derive(Clone, Debug)]
pub struct MethodRecord {
    /// Its number.
    pub id: MethodId,
    /// Internal name of its class.
    pub class: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its descriptor.
    pub descriptor: Arc<str>,
    /// The root patterns that it stands for; none, when it is not a root.
    pub root_of: Vec<PatternIndex>,
    /// Why it is not instrumented after all.
    pub refused: Option<String>,
    key: ClassKey,
    /// From when its code is known until its callees are selected.
    sites: Option<CallSites>,
    /// Its callees are selected.
    expanded: bool,
    /// HotSpot has accepted its instrumented code.
    in_place: bool,
}

impl MethodRecord {
    /// `a.b.C.m(I)V`.
    pub fn java_name(&self) -> String {
        pattern::java_name(&self.class, &self.name, &self.descriptor)
    }
}

/// What a root pattern matches among the loaded classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RootMatch {
    /// Classes that match its class part.
    pub classes: usize,
    /// Methods that match it and can be instrumented.
    pub methods: usize,
}

/// A piece of work that may need to know methods first. Doing it again is harmless.
#[derive(Clone, Debug)]
enum Work {
    Roots,
    FirstCall(MethodId),
    Linked(ClassKey),
    Ahead,
}

/// The state machine.
#[derive(Debug)]
pub struct CallGraph {
    options: Options,
    mirrors: Mirrors,
    reachable: Reachable,
    methods: Vec<MethodRecord>,
    by_signature: FxHashMap<(ClassKey, Signature), MethodId>,
    by_class: FxHashMap<ClassKey, Vec<MethodId>>,
    new_roots: Vec<MethodId>,
    /// Classes with methods that were selected and are not instrumented yet.
    to_hotswap: FxHashSet<ClassKey>,
    /// Classes whose methods the current work needs.
    needed: FxHashSet<ClassKey>,
    /// How often methods were needed and not known: unchanged, a step is complete.
    needs: u64,
    work: Option<Work>,
    ahead: Ahead,
    /// Methods whose instrumented code has been handed out, and not been accepted by HotSpot yet.
    handed_out: Vec<MethodId>,
    skipped: Vec<(String, String)>,
    skipped_before: FxHashSet<(ClassKey, Signature)>,
    /// Only roots are handed out any more.
    roots_only: bool,
}

impl CallGraph {
    /// Knows nothing but what is wanted.
    pub fn new(options: Options) -> CallGraph {
        CallGraph {
            options,
            mirrors: Mirrors::default(),
            reachable: Reachable::default(),
            methods: Vec::new(),
            by_signature: FxHashMap::default(),
            by_class: FxHashMap::default(),
            new_roots: Vec::new(),
            to_hotswap: FxHashSet::default(),
            needed: FxHashSet::default(),
            needs: 0,
            work: None,
            ahead: Ahead::default(),
            handed_out: Vec::new(),
            skipped: Vec::new(),
            skipped_before: FxHashSet::default(),
            roots_only: false,
        }
    }

    /// The classes that are loaded at the beginning.
    pub fn add_classes(&mut self, infos: Vec<ClassInfo>) {
        for info in infos {
            self.mirrors.linked(info);
        }
    }

    /// The methods that a class declares; none when the target cannot tell.
    pub fn add_methods(&mut self, class: ClassId, methods: Vec<MethodInfo>) {
        self.mirrors.set_methods(class, methods);
    }

    /// Changes what is wanted, before [`CallGraph::start`].
    pub fn set_options(&mut self, options: Options) {
        self.options = options;
    }

    /// The linked classes, with their internal names.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Arc<str>)> {
        self.mirrors.keys().filter_map(|key| {
            let mirror = self.mirrors.get(key);
            mirror.id.filter(|_| mirror.linked).map(|id| (id, &mirror.name))
        })
    }

    /// Selects the roots among the loaded classes.
    pub fn start(&mut self) -> Step {
        self.begin(Work::Roots)
    }

    /// An instrumented method is about to run for the first time.
    pub fn first_call(&mut self, method: MethodId) -> Step {
        self.begin(Work::FirstCall(method))
    }

    /// From now on nothing but the roots is instrumented; the classes to be retransformed for that.
    pub fn keep_only_roots(&mut self) -> Vec<ClassId> {
        self.roots_only = true;
        self.to_hotswap.clear();
        let others = self.methods.iter().filter(|method| method.refused.is_none() && method.root_of.is_empty());
        let mut classes: Vec<ClassId> = others.filter_map(|method| self.mirrors.get(method.key).id).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// A class has been linked; none of its code has run yet.
    pub fn class_prepared(&mut self, info: ClassInfo) -> Step {
        let key = self.mirrors.linked(info);
        self.begin(Work::Linked(key))
    }

    /// A hotswap is over, and what HotSpot refused has been told: the code of what was instrumented by it is known now.
    pub fn hotswapped(&mut self) -> Step {
        for id in std::mem::take(&mut self.handed_out) {
            if let Some(record) = self.record_mut(id) {
                record.in_place = true;
            }
        }
        self.begin(Work::Ahead)
    }

    /// Goes on after methods were added.
    pub fn resume(&mut self) -> Step {
        match self.work.take() {
            Some(work) => self.begin(work),
            None => Step::Hotswap(self.hotswap()),
        }
    }

    fn begin(&mut self, work: Work) -> Step {
        match &work {
            Work::Roots => self.select_roots(),
            Work::FirstCall(_) if self.roots_only => {}
            Work::FirstCall(method) => self.ahead.push(*method, self.options.levels_ahead),
            Work::Linked(key) => self.apply_to(*key),
            Work::Ahead => {}
        }
        if !self.roots_only {
            self.select_ahead();
        }
        let needed: Vec<ClassId> = self.needed.drain().filter_map(|key| self.mirrors.get(key).id).collect();
        if needed.is_empty() {
            return Step::Hotswap(self.hotswap());
        }
        self.work = Some(work);
        Step::NeedMethods(needed)
    }

    /// The loaded classes with methods to be instrumented; they count as being hotswapped from now on.
    fn hotswap(&mut self) -> Vec<ClassId> {
        let mut classes: Vec<ClassId> = Vec::new();
        // A class that is loaded but not linked yet stays until it is.
        let mirrors = &self.mirrors;
        self.to_hotswap.retain(|key| {
            let id = mirrors.get(*key).id.filter(|_| mirrors.get(*key).linked);
            classes.extend(id);
            id.is_none()
        });
        classes.sort_unstable();
        classes
    }

    fn need(&mut self, key: ClassKey) {
        self.needs += 1;
        self.needed.insert(key);
    }

    fn record_mut(&mut self, method: MethodId) -> Option<&mut MethodRecord> {
        self.methods.get_mut((method.0 as usize).checked_sub(1)?)
    }

    fn key_of(&self, method: MethodId) -> Option<ClassKey> {
        Some(self.methods.get((method.0 as usize).checked_sub(1)?)?.key)
    }

    fn select_roots(&mut self) {
        for key in self.mirrors.keys() {
            self.select_roots_in(key);
        }
    }

    /// Selects the methods that a linked class declares and a root pattern names.
    fn select_roots_in(&mut self, key: ClassKey) {
        if !self.mirrors.get(key).linked {
            return;
        }
        let name = self.mirrors.get(key).name.clone();
        for (index, pattern) in self.options.roots.clone().iter().enumerate() {
            if !pattern.matches_class(&name) {
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

    fn select_implementation(&mut self, class: ClassKey, signature: Signature, pattern: PatternIndex) {
        let mut places = Vec::new();
        self.selection(class, signature, Caller::Root, &mut places);
        for place in places {
            if let Some(id) = self.select(place, signature, Caller::Root) {
                self.mark_root(id, pattern);
            }
        }
    }

    fn mark_root(&mut self, id: MethodId, pattern: PatternIndex) {
        let Some(record) = self.record_mut(id) else { return };
        let first = record.root_of.is_empty();
        if !record.root_of.contains(&pattern) {
            record.root_of.push(pattern);
        }
        if first {
            self.new_roots.push(id);
        }
    }

    /// Has a method with code instrumented; its id, if it can be.
    fn select(&mut self, key: ClassKey, signature: Signature, caller: Caller) -> Option<MethodId> {
        if let Some(id) = self.by_signature.get(&(key, signature)) {
            return Some(*id);
        }
        let mirror = self.mirrors.get(key);
        let (name, descriptor) = self.mirrors.signature(signature);
        if !self.options.admits(&mirror.name, mirror.loader, name, caller) {
            return None;
        }
        let refusal = if self.mirrors.method(key, signature).is_some_and(|method| method.is_native()) {
            Some("it is native")
        } else if self.mirrors.method(key, signature).is_some_and(|method| !method.has_code()) {
            return None;
        } else if !mirror.modifiable {
            // A lambda's class only passes the call on to the lambda's body, which is followed by itself.
            if mirror.name.contains("$$Lambda") {
                return None;
            }
            Some("the JVM does not let its class be changed")
        } else if mirror.refused {
            Some("its class was refused before")
        } else if self.methods.len() >= MethodId::MAX.0 as usize {
            Some("there are no more method numbers")
        } else {
            None
        };
        if let Some(reason) = refusal {
            if self.skipped_before.insert((key, signature)) {
                let java_name = pattern::java_name(&self.mirrors.get(key).name, name, descriptor);
                self.skipped.push((java_name, reason.to_owned()));
            }
            return None;
        }
        let id = MethodId(self.methods.len() as u32 + 1);
        self.methods.push(MethodRecord {
            id,
            class: self.mirrors.get(key).name.clone(),
            name: name.clone(),
            descriptor: descriptor.clone(),
            root_of: Vec::new(),
            refused: None,
            key,
            sites: None,
            expanded: false,
            in_place: false,
        });
        self.by_signature.insert((key, signature), id);
        self.by_class.entry(key).or_default().push(id);
        self.to_hotswap.insert(key);
        Some(id)
    }

    /// Selects what a method can call next; those of them that it is likely to call.
    fn select_callees(&mut self, method: MethodId) -> Vec<MethodId> {
        let mut likely = Vec::new();
        let Some(record) = self.record_mut(method) else { return likely };
        // Put back below: the work may have to be done again.
        let Some(sites) = record.sites.take() else { return likely };
        let key = record.key;
        let caller = self.options.caller(self.mirrors.get(key).loader);
        let loader = self.mirrors.get(key).loader;
        for call in &sites.calls {
            let signature = self.mirrors.intern_signature(&call.name, &call.descriptor);
            match call.kind {
                CallKind::Virtual | CallKind::Interface | CallKind::HandleVirtual | CallKind::HandleInterface => {
                    self.reach_virtual(&call.owner, loader, signature, caller, &mut likely);
                }
                CallKind::Static
                | CallKind::Special
                | CallKind::HandleStatic
                | CallKind::HandleSpecial
                | CallKind::HandleNew => self.reach_direct(&call.owner, loader, signature, caller, &mut likely),
            }
        }
        for class in &sites.initialized {
            self.reach_initializer(class, loader, caller);
        }
        self.hand_out(&sites, key, loader, caller);
        if let Some(record) = self.record_mut(method) {
            record.sites = Some(sites);
        }
        likely
    }

    /// The methods to be instrumented in a class file: of a class that is being retransformed, or (without an id) loaded.
    pub fn class_bytes(&mut self, class: Option<ClassId>, loader: LoaderId, name: &str, bytes: &[u8]) -> Vec<Selected> {
        // A class that we cannot read is the JVM's to refuse, or to accept; either way we leave it alone.
        let Ok(file) = ClassFile::parse(bytes) else { return Vec::new() };
        let Some(id) = class else {
            let key = self.mirrors.loading(loader, name, &file);
            self.apply_while_loading(key, name);
            // Whatever was selected by now is instrumented right here.
            self.to_hotswap.remove(&key);
            return self.selected_in(key, &file);
        };
        let Some(key) = self.mirrors.by_id(id) else { return Vec::new() };
        let selected = self.selected_in(key, &file);
        self.handed_out.extend(selected.iter().map(|method| method.id));
        selected
    }

    fn selected_in(&mut self, key: ClassKey, file: &ClassFile<'_>) -> Vec<Selected> {
        let ids = self.by_class.get(&key).cloned().unwrap_or_default();
        if ids.is_empty() {
            return Vec::new();
        }
        let roots_only = self.roots_only;
        let mut selected = Vec::new();
        for method in file.methods() {
            let signature = self.mirrors.intern_signature(&method.name(), &method.descriptor());
            let Some(&id) = self.by_signature.get(&(key, signature)) else { continue };
            let Some(record) = self.record_mut(id) else { continue };
            if record.refused.is_some() || !method.has_code() || roots_only && record.root_of.is_empty() {
                continue;
            }
            if record.sites.is_none() && !record.expanded {
                // A method whose code cannot be read is refused by the rewriter, with the reason.
                record.sites = headwater_rewriter::call_sites(file, method.index).ok();
            }
            selected.push(Selected { method_index: method.index, id });
        }
        selected
    }

    /// The rewriter refuses a method.
    pub fn refused(&mut self, method: MethodId, reason: String) {
        let Some(record) = self.record_mut(method) else { return };
        if record.refused.is_none() {
            record.refused = Some(reason.clone());
            let name = record.java_name();
            self.skipped.push((name, reason));
        }
    }

    /// HotSpot refuses a class.
    pub fn class_refused(&mut self, class: ClassId, reason: String) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        self.mirrors.get_mut(key).refused = true;
        let (refused, others): (Vec<MethodId>, Vec<MethodId>) =
            std::mem::take(&mut self.handed_out).into_iter().partition(|id| self.key_of(*id) == Some(key));
        self.handed_out = others;
        // Those that were instrumented before stay so: a refused retransformation changes nothing.
        for id in refused {
            if self.record_mut(id).is_some_and(|record| !record.in_place) {
                self.refused(id, reason.clone());
            }
        }
    }

    /// A class has its original code again, because nobody said in time what else.
    pub fn hotswap_again(&mut self, class: ClassId) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        let mut handed_out = std::mem::take(&mut self.handed_out);
        handed_out.retain(|id| self.key_of(*id) != Some(key));
        self.handed_out = handed_out;
        self.to_hotswap.insert(key);
    }

    /// Roots that have become known since the last call.
    pub fn take_new_roots(&mut self) -> Vec<MethodId> {
        std::mem::take(&mut self.new_roots)
    }

    /// All methods that were selected.
    pub fn methods(&self) -> &[MethodRecord] {
        &self.methods
    }

    /// How many methods are instrumented.
    pub fn instrumented(&self) -> usize {
        self.methods.iter().filter(|method| method.refused.is_none()).count()
    }

    /// Methods that should be instrumented and are not, with the reason.
    pub fn skipped(&self) -> &[(String, String)] {
        &self.skipped
    }

    /// The instrumented methods that a root pattern stands for.
    pub fn roots_of(&self, pattern: PatternIndex) -> impl Iterator<Item = &MethodRecord> {
        self.methods.iter().filter(move |method| method.refused.is_none() && method.root_of.contains(&pattern))
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

    /// Names of classes or methods that are like what the user asked for.
    pub fn near_misses(&self, pattern: &MethodPattern) -> Vec<String> {
        const LIMIT: usize = 5;
        let matching: Vec<ClassKey> =
            self.mirrors.keys().filter(|key| pattern.matches_class(&self.mirrors.get(*key).name)).collect();
        if matching.is_empty() {
            let names: Vec<String> =
                self.mirrors.keys().map(|key| self.mirrors.get(key).name.replace('/', ".")).collect();
            let near = pattern::near_misses(pattern.class_text(), names.iter().map(String::as_str), LIMIT);
            return near.into_iter().map(str::to_owned).collect();
        }
        let mut names = Vec::new();
        for key in matching {
            for (signature, method) in self.mirrors.methods(key).into_iter().flatten() {
                if method.has_code() {
                    names.push((key, self.mirrors.signature(*signature).0.to_string()));
                }
            }
        }
        let texts = names.iter().map(|(_, name)| name.as_str());
        let near = pattern::near_misses(pattern.method_text(), texts, LIMIT);
        let mut found: Vec<String> = Vec::new();
        for wanted in near {
            for (key, _) in names.iter().filter(|(_, name)| name == wanted) {
                let text = format!("{}::{wanted}", self.mirrors.get(*key).name.replace('/', "."));
                if !found.contains(&text) && found.len() < LIMIT {
                    found.push(text);
                }
            }
        }
        found
    }
}
