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
use std::time::Duration;

use headwater_protocol::message::{ClassInfo, MethodInfo};
use headwater_protocol::{ClassId, LoaderId, MethodId};
use headwater_rewriter::{CallKind, CallSites, ClassFile};
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};

use crate::pattern::{self, MethodPattern};

mod ahead;
mod callbacks;
mod code_store;
mod filter;
mod hidden;
mod lines;
mod mirror;
mod open_calls;
mod reachable;
mod reflection;
mod resolve;
mod suggestions;
#[cfg(test)]
mod tests;

pub use filter::{JdkMethods, Options};
pub use lines::Lines;
pub use open_calls::OpenThread;
pub use reflection::Invoker;

use ahead::{Ahead, Callee, Guess, Probability};
use code_store::CodeStore;
use filter::Caller;
use hidden::Hidden;
use mirror::{ClassKey, Mirrors, Signature};
use reachable::Reachable;
use reflection::Reflection;

/// Whether a root may stand for more than the overloads of one method.
fn pattern_is_broad(pattern: &MethodPattern) -> bool {
    pattern.class_text().contains('*') || pattern.method_text().contains('*')
}

/// Names the class initialiser.
const CLINIT: (&str, &str) = ("<clinit>", "()V");

/// When a method's callees are instrumented.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Scheme {
    /// When it is entered for the first time (JFluid's scheme B).
    #[default]
    Lazy,
    /// As soon as it is instrumented itself, and its callees' classes are loaded (JFluid's scheme A).
    Eager,
    /// Every method that the filters admit is instrumented, called by a root or not.
    Total,
}

/// What the call graph wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Tell it the methods that these classes declare ([`CallGraph::add_methods`], for each of them), then
    /// [`CallGraph::resume`].
    NeedMethods(Vec<ClassId>),
    /// Tell it these classes' files ([`CallGraph::add_code`], for each of them; `None` where they cannot be had), then
    /// [`CallGraph::resume`].
    NeedCode(Vec<ClassId>),
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
    /// Only these lines of it.
    pub lines: Option<Lines>,
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
    /// The lines that it is instrumented at; all of it, when there are none.
    pub lines: Option<Lines>,
    /// The root patterns that it stands for; none, when it is not a root.
    pub root_of: Vec<PatternIndex>,
    /// Why it is not instrumented after all.
    pub refused: Option<String>,
    key: ClassKey,
    signature: Signature,
    /// Its callees are selected: these, by what was known then.
    expanded: bool,
    callees: Vec<Callee>,
    /// Of being entered.
    probability: Probability,
    /// It has been.
    entered: bool,
    guess: Guess,
    /// It may have been called before it was instrumented.
    late: bool,
    /// HotSpot has accepted its instrumented code.
    in_place: bool,
}

impl MethodRecord {
    /// `a.b.C.m(I)V`; of lines, `a.b.C.m(I)V:120-148`.
    pub fn java_name(&self) -> String {
        self.with_lines(pattern::java_name(&self.class, &self.name, &self.descriptor))
    }

    /// `a.b.C.m(int)`; of lines, `a.b.C.m(int):120-148`.
    pub fn display_name(&self) -> String {
        self.with_lines(pattern::display_name(&self.class, &self.name, &self.descriptor))
    }

    fn with_lines(&self, name: String) -> String {
        match self.lines {
            Some(lines) => format!("{name}:{lines}"),
            None => name,
        }
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
    /// Methods that are being executed.
    Open(Vec<(ClassKey, Signature, Caller)>),
    /// A method that is called by reflection.
    Reflected(ClassKey, Signature),
    Rest,
}

/// The state machine.
#[derive(Debug)]
pub struct CallGraph {
    options: Options,
    mirrors: Mirrors,
    reachable: Reachable,
    methods: Vec<MethodRecord>,
    by_signature: FxHashMap<(ClassKey, Signature), MethodId>,
    /// Of methods whose lines are roots.
    by_lines: FxHashMap<(ClassKey, Signature), Vec<MethodId>>,
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
    code: CodeStore,
    /// Methods whose callees must be selected.
    due: Vec<MethodId>,
    hidden: Hidden,
    reflection: Reflection,
    /// Methods that are too trivial to be instrumented, if the user wants that.
    trivial: FxHashSet<(ClassKey, Signature)>,
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
            roots_only: options.only_roots,
            options,
            mirrors: Mirrors::default(),
            reachable: Reachable::default(),
            methods: Vec::new(),
            by_signature: FxHashMap::default(),
            by_lines: FxHashMap::default(),
            by_class: FxHashMap::default(),
            new_roots: Vec::new(),
            to_hotswap: FxHashSet::default(),
            needed: FxHashSet::default(),
            needs: 0,
            work: None,
            ahead: Ahead::default(),
            code: CodeStore::default(),
            due: Vec::new(),
            hidden: Hidden::default(),
            reflection: Reflection::default(),
            trivial: FxHashSet::default(),
            handed_out: Vec::new(),
            skipped: Vec::new(),
            skipped_before: FxHashSet::default(),
        }
    }

    /// The classes that are loaded at the beginning.
    pub fn add_classes(&mut self, infos: Vec<ClassInfo>) {
        for info in infos {
            let dormant = !info.initialized;
            let key = self.mirrors.linked(info);
            self.mirrors.get_mut(key).dormant = dormant;
        }
    }

    /// The methods that a class declares; none when the target cannot tell.
    pub fn add_methods(&mut self, class: ClassId, methods: Vec<MethodInfo>) {
        self.mirrors.set_methods(class, methods);
    }

    /// Changes what is wanted, before [`CallGraph::start`].
    pub fn set_options(&mut self, options: Options) {
        self.roots_only = options.only_roots;
        self.options = options;
    }

    /// The linked classes, with their internal names.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Arc<str>)> {
        self.mirrors.keys().filter_map(|key| {
            let mirror = self.mirrors.get(key);
            mirror.id.filter(|_| mirror.linked).map(|id| (id, &mirror.name))
        })
    }

    /// The file of a class that was needed.
    pub fn add_code(&mut self, class: ClassId, bytes: Option<Vec<u8>>) {
        if let Some(key) = self.mirrors.by_id(class) {
            self.code.add(key, bytes);
        }
    }

    /// Methods that the target's JIT compiler has found worth compiling.
    pub fn add_compiled(&mut self, class: ClassId, methods: Vec<MethodInfo>) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        for method in methods {
            let signature = self.mirrors.intern_signature(&method.name, &method.descriptor);
            self.ahead.compiled(key, signature);
        }
    }

    /// What it costs to hotswap one class.
    pub fn set_batch_cost(&mut self, batch: Duration) {
        self.ahead.set_batch_cost(batch);
    }

    /// How many classes are loaded and linked.
    pub fn loaded_classes(&self) -> usize {
        self.mirrors.keys().filter(|key| self.mirrors.get(*key).linked).count()
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
        let others = others.map(|method| method.key).chain(self.reflection.probed.iter().copied());
        let mut classes: Vec<ClassId> = others.filter_map(|key| self.mirrors.get(key).id).collect();
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
        self.begin(Work::Rest)
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
            Work::Roots => {
                self.select_roots();
                if self.options.scheme == Scheme::Total {
                    self.mirrors.keys().for_each(|key| self.select_all_in(key));
                }
            }
            Work::FirstCall(_) if self.roots_only => {}
            Work::FirstCall(method) => self.enter(*method),
            Work::Linked(key) => self.apply_to(*key),
            Work::Reflected(..) if self.roots_only => {}
            Work::Reflected(key, signature) => self.reach_reflected(*key, *signature),
            Work::Open(methods) => self.enter_open(methods),
            Work::Rest => {}
        }
        if !self.roots_only {
            self.expand_due();
        }
        if !self.roots_only && self.needed.is_empty() && self.code.is_complete() && self.wants_hotswap() {
            self.look_ahead();
        }
        let needed: Vec<ClassId> = self.needed.drain().filter_map(|key| self.mirrors.get(key).id).collect();
        if !needed.is_empty() {
            self.work = Some(work);
            return Step::NeedMethods(needed);
        }
        let missing = self.code.take_needed();
        let missing: Vec<ClassId> = missing.into_iter().filter_map(|key| self.mirrors.get(key).id).collect();
        if !missing.is_empty() {
            self.work = Some(work);
            return Step::NeedCode(missing);
        }
        Step::Hotswap(self.hotswap())
    }

    /// A method is entered for the first time: under scheme B its callees are to be selected now.
    fn enter(&mut self, method: MethodId) {
        let Some(record) = self.record_mut(method) else { return };
        if !std::mem::replace(&mut record.entered, true) {
            let key = record.key;
            for key in self.mirrors.supertypes(key) {
                self.mirrors.get_mut(key).dormant = false;
            }
            self.raise(method, 1.0);
            self.learn(method);
            self.mark_late(method);
        }
        if self.options.scheme == Scheme::Lazy {
            self.due.push(method);
        }
    }

    /// Selects the callees of all methods that are due, and what the methods call that the filters hide. What cannot be
    /// decided yet stays due: classes' methods or code are asked for first.
    fn expand_due(&mut self) {
        loop {
            let mut waiting = Vec::new();
            while let Some(method) = self.due.pop() {
                let Some(record) = self.record(method) else { continue };
                if record.expanded || record.refused.is_some() {
                    continue;
                }
                let key = record.key;
                // Without its code a method is asked for again when it is handed out.
                if !self.has_code(key) || !self.expand(method) {
                    waiting.push(method);
                }
            }
            self.due = waiting;
            if !self.look_through() {
                return;
            }
        }
    }

    /// Whether a class's code is there; if not, it is asked for.
    fn has_code(&mut self, key: ClassKey) -> bool {
        let mirror = self.mirrors.get(key);
        self.code.has(key, mirror.linked && mirror.modifiable && mirror.id.is_some())
    }

    /// Selects a method's callees; whether all that had to be known for that was.
    fn expand(&mut self, method: MethodId) -> bool {
        let Some(record) = self.record(method) else { return false };
        let (key, signature, probability) = (record.key, record.signature, record.probability);
        let (name, descriptor) = self.mirrors.signature(signature).clone();
        // A method whose code cannot be read is refused by the rewriter, with the reason.
        let Some(sites) = self.code.sites(key, &name, &descriptor) else { return false };
        let needs_before = self.needs;
        let callees = self.select_callees(&sites, key, Some(method), 1.0);
        if self.needs != needs_before {
            return false;
        }
        let callees: Vec<Callee> = callees
            .into_iter()
            .map(|callee| Callee { probability: self.weigh(Some(method), callee), ..callee })
            .collect();
        for callee in &callees {
            self.raise(callee.method, probability * callee.probability);
        }
        if let Some(record) = self.record_mut(method) {
            record.expanded = true;
            record.callees.extend(callees);
        }
        self.mark_late(method);
        true
    }

    /// What an entered method calls and is not instrumented yet may be called without being seen.
    fn mark_late(&mut self, method: MethodId) {
        let Some(record) = self.record(method).filter(|record| record.entered) else { return };
        for callee in record.callees.clone() {
            if let Some(callee) = self.record_mut(callee.method) {
                callee.late |= !callee.in_place;
            }
        }
    }

    /// There are loaded classes with methods to be instrumented.
    fn wants_hotswap(&self) -> bool {
        self.to_hotswap.iter().any(|key| {
            let mirror = self.mirrors.get(*key);
            mirror.id.is_some() && mirror.linked
        })
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

    fn record(&self, method: MethodId) -> Option<&MethodRecord> {
        self.methods.get((method.0 as usize).checked_sub(1)?)
    }

    fn record_mut(&mut self, method: MethodId) -> Option<&mut MethodRecord> {
        self.methods.get_mut((method.0 as usize).checked_sub(1)?)
    }

    fn key_of(&self, method: MethodId) -> Option<ClassKey> {
        Some(self.record(method)?.key)
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
        if !self.options.admits_class(&mirror.name, mirror.loader, caller) {
            return None;
        }
        if !self.options.shows(&mirror.name, name, caller) {
            let has_code = self.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && self.options.scheme != Scheme::Total {
                self.hidden.push(key, signature);
            }
            return None;
        }
        if self.options.skip_trivial && caller != Caller::Root {
            let (name, descriptor) = (name.clone(), descriptor.clone());
            let has_code = self.mirrors.method(key, signature).is_some_and(|method| method.has_code());
            if has_code && !self.has_code(key) && !self.code.is_complete() {
                self.needs += 1;
                return None;
            }
            if self.code.is_trivial(key, &name, &descriptor) {
                self.trivial.insert((key, signature));
                return None;
            }
        }
        let mirror = self.mirrors.get(key);
        let (name, descriptor) = self.mirrors.signature(signature);
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
        let id = self.add_record(key, signature, None);
        self.by_signature.insert((key, signature), id);
        match self.options.scheme {
            Scheme::Lazy => self.ahead.push(id),
            Scheme::Eager => self.due.push(id),
            Scheme::Total => {}
        }
        Some(id)
    }

    /// A method that is to be instrumented from now on.
    fn add_record(&mut self, key: ClassKey, signature: Signature, lines: Option<Lines>) -> MethodId {
        let id = MethodId(self.methods.len() as u32 + 1);
        let (name, descriptor) = self.mirrors.signature(signature).clone();
        self.methods.push(MethodRecord {
            id,
            class: self.mirrors.get(key).name.clone(),
            name,
            descriptor,
            lines,
            root_of: Vec::new(),
            refused: None,
            key,
            signature,
            expanded: false,
            callees: Vec::new(),
            probability: 0.0,
            entered: false,
            guess: Guess::None,
            late: false,
            in_place: false,
        });
        self.by_class.entry(key).or_default().push(id);
        self.to_hotswap.insert(key);
        id
    }

    /// Selects every method of a class that the filters admit.
    fn select_all_in(&mut self, key: ClassKey) {
        let mirror = self.mirrors.get(key);
        let known = mirror.linked || mirror.id.is_none();
        if !known || !self.options.admits_class(&mirror.name, mirror.loader, Caller::Application) {
            return;
        }
        let Some(methods) = self.mirrors.methods(key) else {
            self.need(key);
            return;
        };
        for signature in methods.keys().copied().collect::<Vec<_>>() {
            self.select(key, signature, Caller::Application);
        }
    }

    /// Selects what a method can call next.
    fn select_callees(
        &mut self,
        sites: &CallSites,
        key: ClassKey,
        by: Option<MethodId>,
        base: Probability,
    ) -> Vec<Callee> {
        let mut callees = Vec::new();
        let loader = self.mirrors.get(key).loader;
        let caller = self.options.caller(loader);
        self.hidden.begin(by, base);
        for call in &sites.calls {
            let signature = self.mirrors.intern_signature(&call.name, &call.descriptor);
            self.watch_reflection(&call.owner, &call.name);
            let first = callees.len();
            self.hidden.set_probability(ahead::of_call(call.likelihood));
            match call.kind {
                CallKind::Virtual | CallKind::Interface | CallKind::HandleVirtual | CallKind::HandleInterface => {
                    self.reach_virtual(&call.owner, loader, signature, caller, &mut callees);
                }
                CallKind::Static
                | CallKind::Special
                | CallKind::HandleStatic
                | CallKind::HandleSpecial
                | CallKind::HandleNew => self.reach_direct(&call.owner, loader, signature, caller, &mut callees),
            }
            for callee in &mut callees[first..] {
                callee.probability *= ahead::of_call(call.likelihood);
            }
        }
        self.hidden.set_probability(ahead::INITIALIZER);
        for class in &sites.initialized {
            self.reach_initializer(class, loader, caller, &mut callees);
        }
        self.hidden.set_probability(ahead::CALLED_BACK);
        self.hand_out(sites, key, loader, caller, &mut callees);
        self.hidden.end();
        callees
    }

    /// The methods to be instrumented in a class file: of a class that is being retransformed, or (without an id) loaded.
    pub fn class_bytes(&mut self, class: Option<ClassId>, loader: LoaderId, name: &str, bytes: &[u8]) -> Vec<Selected> {
        // A class that we cannot read is the JVM's to refuse, or to accept; either way we leave it alone.
        let Ok(file) = ClassFile::parse(bytes) else { return Vec::new() };
        let Some(id) = class else {
            let key = self.mirrors.loading(loader, name, &file);
            self.code.add(key, Some(bytes.to_vec()));
            self.apply_while_loading(key, name);
            if self.options.scheme == Scheme::Total {
                self.select_all_in(key);
            }
            // Whatever was selected by now is instrumented right here.
            self.to_hotswap.remove(&key);
            return self.selected_in(key, &file);
        };
        let Some(key) = self.mirrors.by_id(id) else { return Vec::new() };
        self.code.add(key, Some(bytes.to_vec()));
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
            let whole = self.by_signature.get(&(key, signature)).into_iter();
            let ids = whole.chain(self.by_lines.get(&(key, signature)).into_iter().flatten());
            for record in ids.filter_map(|id| self.record(*id)) {
                if record.refused.is_some() || !method.has_code() || roots_only && record.root_of.is_empty() {
                    continue;
                }
                selected.push(Selected { method_index: method.index, id: record.id, lines: record.lines });
            }
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

    /// How methods are found.
    pub fn scheme(&self) -> Scheme {
        self.options.scheme
    }

    /// How many methods may have been called before they were instrumented, if nobody waited for that.
    pub fn late(&self) -> usize {
        self.methods.iter().filter(|method| method.refused.is_none() && method.late).count()
    }

    /// How many methods are left alone because they are trivial.
    pub fn trivial(&self) -> usize {
        self.trivial.len()
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
}
