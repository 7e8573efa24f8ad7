//! The call graph: which methods of the target are to be instrumented, and when.
//!
//! A pure state machine. It is told what happens in the target (classes listed, loaded and linked, methods entered for the first
//! time) and answers with a [`Step`]: the classes whose methods it needs to know first, or the classes to hotswap. It does no
//! I/O and knows no JVM.
//!
//! Scheme B (JFluid 6.2): when an instrumented method is entered for the first time, its callees are selected, before they can
//! be called. Callees are found by class hierarchy analysis over *loaded* classes ([`resolve`]); what classes that come later
//! add to the answer is remembered ([`reachable`]) and applied when they come. Methods that only code outside the filter
//! calls are found by the types that escape to it ([`callbacks`]).
//!
//! The rule is: selecting too much costs precision, selecting too little is a bug.
//!
//! Why so, and at what cost: docs/decisions/discovery.md.

use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::message::{ClassInfo, MethodInfo};
use headwater_protocol::{ClassId, MethodId};
use headwater_terms::Scheme;
use rustc_hash::{FxHashMap, FxHashSet};

use headwater_terms::pattern::MethodPattern;

mod ahead;
mod callbacks;
mod code_store;
mod dropping;
mod expansion;
mod filter;
mod foresee;
mod guards;
mod handing_out;
mod handover;
mod hidden;
mod lambdas;
mod late;
mod lines;
mod mentions;
mod mirror;
mod natives;
mod opaque;
mod open_calls;
mod outward;
mod policy;
mod reachable;
mod receivers;
mod record;
mod reflection;
mod resolve;
mod roots;
mod select;
mod suggestions;
#[cfg(test)]
mod tests;
mod unlinked;
mod watched;

pub use filter::{JdkMethods, Options};
pub use guards::{Guarded, Told};
pub use handing_out::{Occasion, Selected};
pub use handover::Passage;
pub use late::{Missed, Unseen};
pub use lines::Lines;
pub use natives::NativeCall;
pub use open_calls::OpenThread;
pub use policy::{Mechanism, NoMechanism, Without};
pub use record::{MethodRecord, PatternIndex};
pub use reflection::Invoker;
pub use roots::{LeftAlone, RootMatch};

use ahead::Ahead;
use code_store::CodeStore;
use filter::Caller;
use guards::Guards;
use hidden::Hidden;
use mentions::Mentions;
use mirror::{ClassKey, Mirrors, Signature};
use natives::Natives;
use reachable::Reachable;
use reflection::Reflection;
use unlinked::Unlinked;
use watched::Watched;

/// Names the class initialiser.
const CLINIT: (&str, &str) = ("<clinit>", "()V");

/// What the call graph wants next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Tell it the methods that these classes declare ([`CallGraph::add_methods`], for each of them), then
    /// [`CallGraph::resume`].
    NeedMethods(Vec<ClassId>),
    /// Tell it these classes' files ([`CallGraph::add_code`], for each of them; `None` where they cannot be had), then
    /// [`CallGraph::resume`].
    NeedCode(Vec<ClassId>),
    /// Have these classes linked, if they can be, by the only thread of the graph; tell it of all that are linked then
    /// ([`CallGraph::add_linked`]).
    NeedLinks(Vec<ClassId>),
    /// Tell it what the JDK's loaded classes mention ([`CallGraph::add_mentions`]), then [`CallGraph::resume`].
    NeedMentions,
    /// Have these classes retransformed; there may be none.
    Hotswap(Vec<ClassId>),
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
    /// A virtual call is made on an object of a class, for the first time.
    Received(u32, ClassKey),
    /// Methods that were watched.
    HaveRun(Vec<(ClassKey, Signature, Caller)>),
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
    guards: Guards,
    reflection: Reflection,
    mentions: Mentions,
    natives: Natives,
    unlinked: Unlinked,
    watched: Watched,
    /// How long has been recorded.
    now: Duration,
    /// On how many stacks below roots classes were seen.
    ran: FxHashMap<ClassKey, u32>,
    /// The classes in which work passes from thread to thread, as far as they are probed.
    passed: FxHashSet<ClassKey>,
    /// Methods that are too trivial to be instrumented, if the user wants that.
    trivial: FxHashSet<(ClassKey, Signature)>,
    /// Methods whose instrumented code has been given to the JVM, and not been accepted by HotSpot yet.
    handed_out: Vec<MethodId>,
    /// How many batches there were because a class was linked.
    link_batches: usize,
    /// How many classes that can be instrumented were loaded on behalf of the graph.
    loaded_by_graph: usize,
    /// Methods that are to be dropped, or were since somebody asked.
    dropping: Vec<MethodId>,
    skipped: Vec<(String, String)>,
    skipped_before: FxHashSet<(ClassKey, Signature)>,
    /// Only roots are instrumented any more.
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
            guards: Guards::default(),
            reflection: Reflection::default(),
            mentions: Mentions::default(),
            natives: Natives::default(),
            unlinked: Unlinked::default(),
            watched: Watched::default(),
            now: Duration::ZERO,
            ran: FxHashMap::default(),
            passed: FxHashSet::default(),
            trivial: FxHashSet::default(),
            handed_out: Vec::new(),
            link_batches: 0,
            loaded_by_graph: 0,
            dropping: Vec::new(),
            skipped: Vec::new(),
            skipped_before: FxHashSet::default(),
        }
    }

    /// The classes that are loaded at the beginning.
    pub fn add_classes(&mut self, infos: Vec<ClassInfo>) {
        infos.into_iter().for_each(|info| self.mirrors.found(info));
    }

    /// The methods that a class declares; none when the target cannot tell.
    pub fn add_methods(&mut self, class: ClassId, mut methods: Vec<MethodInfo>) {
        if self.options.without.has(Mechanism::Counters) {
            methods.iter_mut().for_each(|method| method.calls = None);
        }
        self.ahead.knows_calls |= methods.iter().any(|method| method.calls.is_some());
        self.reachable.opaque.asked.clear();
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

    /// How many classes are loaded and linked.
    pub fn loaded_classes(&self) -> usize {
        self.mirrors.keys().filter(|key| self.mirrors.get(*key).linked).count()
    }

    /// Selects the roots among the loaded classes.
    pub fn start(&mut self) -> Step {
        self.begin(Work::Roots)
    }

    /// An instrumented method is about to run for the first time, or a call that was not expected.
    pub fn first_call(&mut self, method: MethodId) -> Step {
        self.begin(Work::FirstCall(method))
    }

    /// From now on nothing but the roots is instrumented; the classes to be retransformed for that.
    pub fn keep_only_roots(&mut self) -> Vec<ClassId> {
        self.roots_only = true;
        self.to_hotswap.clear();
        let is_other = |method: &&MethodRecord| {
            method.handed_out && method.refused.is_none() && !method.is_native && method.root_of.is_empty()
        };
        let others = self.methods.iter().filter(is_other).map(|method| method.key);
        let others = others.chain(self.reflection.probed.iter().copied()).chain(self.natives.probed());
        let others = others.chain(self.passed());
        let mut classes: Vec<ClassId> = others.filter_map(|key| self.mirrors.get(key).id).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Whether only roots are put into class files for the time being; what is selected stays so.
    pub fn hold_back_others(&mut self, are_held_back: bool) {
        self.roots_only = are_held_back || self.options.only_roots;
    }

    /// Whether a class has a root.
    pub fn has_root(&self, class: ClassId) -> bool {
        let methods = self.mirrors.by_id(class).and_then(|key| self.by_class.get(&key)).into_iter().flatten();
        methods.filter_map(|id| self.record(*id)).any(|method| !method.root_of.is_empty())
    }

    /// A class has been linked; none of its code has run yet.
    pub fn class_prepared(&mut self, info: ClassInfo) -> Step {
        self.unlinked.remove(&info.name);
        let key = self.mirrors.linked(info);
        self.begin(Work::Linked(key))
    }

    /// A hotswap is over, and what HotSpot refused has been told: the code of what was instrumented by it is known now.
    pub fn hotswapped(&mut self) -> Step {
        for id in std::mem::take(&mut self.handed_out) {
            if let Some(record) = self.record_mut(id) {
                record.in_place = true;
            }
            self.no_longer_missed(id);
        }
        self.drops_accepted();
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
        let known = self.methods.len();
        self.reachable.opaque.asked.clear();
        match &work {
            Work::Roots => {
                self.select_roots();
                if !self.roots_only {
                    self.probe_invokers();
                    self.probe_passages();
                }
                if self.options.scheme == Scheme::Total {
                    self.mirrors.keys().for_each(|key| self.select_all_in(key));
                }
            }
            Work::FirstCall(_) if self.roots_only => {}
            Work::FirstCall(guard) if self.guards.is_guard(*guard) => self.come_to(*guard),
            Work::FirstCall(method) => self.enter(*method),
            Work::Linked(key) => self.apply_to(*key),
            Work::Reflected(..) if self.roots_only => {}
            Work::Reflected(key, signature) => self.reach_reflected(*key, *signature),
            Work::Received(..) if self.roots_only => {}
            Work::Received(call, key) => self.receive(*call, *key),
            Work::HaveRun(_) if self.roots_only => {}
            Work::HaveRun(methods) => self.select_run(methods),
            Work::Open(methods) => self.enter_open(methods),
            Work::Rest => {}
        }
        self.reach_inherited_later();
        for key in self.unlinked.linked_ahead() {
            self.apply_to(key);
        }
        if matches!(work, Work::Linked(_) | Work::Reflected(..)) {
            self.expect_from(known);
        }
        if !self.roots_only {
            self.look_at_idle_again();
            self.expand_due();
        }
        if !self.roots_only && self.needed.is_empty() && self.code.is_complete() && self.wants_hotswap() {
            self.look_ahead();
        }
        if !self.roots_only {
            self.find_native_calls();
        }
        let needed: Vec<ClassId> = self.needed.drain().filter_map(|key| self.mirrors.get(key).id).collect();
        if !needed.is_empty() {
            self.work = Some(work);
            return Step::NeedMethods(needed);
        }
        if self.mentions.take_wanted() {
            self.work = Some(work);
            return Step::NeedMentions;
        }
        let missing = self.code.take_needed();
        let missing: Vec<ClassId> = missing.into_iter().filter_map(|key| self.mirrors.get(key).id).collect();
        if !missing.is_empty() {
            self.work = Some(work);
            return Step::NeedCode(missing);
        }
        let links = self.links_ahead();
        if !links.is_empty() {
            self.work = Some(work);
            return Step::NeedLinks(links);
        }
        self.unlinked.settled();
        let classes = self.hotswap();
        if matches!(work, Work::Linked(_)) && !classes.is_empty() {
            self.link_batches += 1;
        }
        Step::Hotswap(classes)
    }

    /// A method is entered for the first time: under scheme B its callees are to be selected now.
    fn enter(&mut self, method: MethodId) {
        let Some(record) = self.record_mut(method) else { return };
        if !std::mem::replace(&mut record.entered, true) {
            let (key, is_constructor) = (record.key, &*record.name == "<init>");
            for key in self.mirrors.supertypes(key) {
                self.mirrors.get_mut(key).dormant = false;
            }
            if is_constructor {
                self.come_alive(key);
            }
            self.raise(method, 1.0);
            self.learn(method);
            self.expect_callees(method);
        }
        if self.options.scheme == Scheme::Lazy {
            self.due.push(method);
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
        for id in &classes {
            if let Some(key) = self.mirrors.by_id(*id) {
                self.mirrors.get_mut(key).hotswaps += 1;
            }
        }
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

    /// All methods that were selected.
    pub fn methods(&self) -> &[MethodRecord] {
        &self.methods
    }

    /// What is left out, to measure what it is worth.
    pub fn without(&self) -> Without {
        self.options.without
    }

    /// How methods are found.
    pub fn scheme(&self) -> Scheme {
        self.options.scheme
    }

    /// How many methods are left alone because they are trivial.
    pub fn trivial(&self) -> usize {
        self.trivial.len()
    }

    /// How many methods are instrumented.
    pub fn instrumented(&self) -> usize {
        self.methods.iter().filter(|method| method.handed_out && method.refused.is_none()).count()
    }

    /// Methods that should be instrumented and are not, with the reason.
    pub fn skipped(&self) -> &[(String, String)] {
        &self.skipped
    }
}
