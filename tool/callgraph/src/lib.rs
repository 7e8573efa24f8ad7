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

use headwater_protocol::message::{ClassInfo, MethodInfo};
use headwater_protocol::{ClassId, MethodId};
use headwater_terms::Scheme;
use headwater_terms::reach::Trigger;

mod ahead;
mod callbacks;
mod cause;
mod code_store;
mod dropping;
mod escape;
mod expansion;
mod filter;
mod foresee;
mod guards;
mod handover;
mod hidden;
mod known;
mod lambdas;
mod late;
mod likely;
mod lines;
mod mentions;
mod methods;
mod mirror;
mod natives;
mod opaque;
mod open_calls;
mod origins;
mod outward;
mod passed_over;
mod plan;
mod policy;
mod reachable;
mod receivers;
mod record;
mod reflection;
mod requests;
mod resolve;
mod roots;
mod select;
mod sites;
mod source;
mod suggestions;
#[cfg(test)]
mod tests;
mod unlinked;
mod waits;
mod watched;

pub use cause::Moment;
pub use filter::{JdkMethods, Options};
pub use guards::Guarded;
pub use late::Unseen;
pub use lines::Lines;
pub use open_calls::OpenThread;
pub use origins::{Fate, Origin, Unselected};
pub use policy::{Mechanism, NoMechanism, Without};
pub use record::{MethodRecord, Missed, PatternIndex};
pub use reflection::Invoker;
pub use requests::{Occasion, Requests};
pub use roots::{LeftAlone, RootMatch};

use escape::Escape;
use known::Known;
use likely::Likely;
use methods::Methods;
use mirror::{ClassKey, Signature};
use open_calls::OnStacks;
use plan::Plan;
use reachable::Reachable;
use source::Source;

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
    /// In these classes.
    Roots(Vec<ClassKey>),
    FirstCalls(Vec<MethodId>),
    Linked(Vec<ClassKey>),
    /// Methods that are being executed.
    Open(OnStacks),
    /// Methods that were seen to run.
    Seen,
    /// A method that is called by reflection.
    Reflected(ClassKey, Signature),
    /// A virtual call is made on an object of a class, for the first time.
    Received(u32, ClassKey),
    /// Methods that were watched.
    HaveRun(Vec<(ClassKey, Signature, Source)>),
    Rest,
}

/// The state machine: its parts, each of which knows those above it by what it is given.
#[derive(Debug)]
pub struct CallGraph {
    known: Known,
    methods: Methods,
    likely: Likely,
    reachable: Reachable,
    escape: Escape,
    plan: Plan,
    work: Option<Work>,
}

impl CallGraph {
    /// Knows nothing but what is wanted.
    pub fn new(options: Options) -> CallGraph {
        CallGraph {
            known: Known::new(options),
            methods: Methods::default(),
            likely: Likely::default(),
            reachable: Reachable::default(),
            escape: Escape::default(),
            plan: Plan::default(),
            work: None,
        }
    }

    /// The classes that are loaded at the beginning.
    pub fn add_classes(&mut self, infos: Vec<ClassInfo>) {
        infos.into_iter().for_each(|info| self.known.mirrors.found(info));
    }

    /// The methods that a class declares; none when the target cannot tell.
    pub fn add_methods(&mut self, class: ClassId, mut methods: Vec<MethodInfo>) {
        if self.known.options.without.has(Mechanism::Counters) {
            methods.iter_mut().for_each(|method| method.calls = None);
        }
        self.likely.knows_calls |= methods.iter().any(|method| method.calls.is_some());
        self.escape.opaque.asked.clear();
        self.known.mirrors.set_methods(class, methods);
    }

    /// Changes what is wanted, before [`CallGraph::start`].
    pub fn set_options(&mut self, options: Options) {
        self.known.roots_only = options.only_roots;
        self.known.options = options;
    }

    /// The linked classes, with their internal names.
    pub fn classes(&self) -> impl Iterator<Item = (ClassId, &Arc<str>)> {
        self.known.mirrors.keys().filter_map(|key| {
            let mirror = self.known.mirrors.get(key);
            mirror.id.filter(|_| mirror.linked).map(|id| (id, &mirror.name))
        })
    }

    /// The file of a class that was needed.
    pub fn add_code(&mut self, class: ClassId, bytes: Option<Vec<u8>>) {
        if let Some(key) = self.known.mirrors.by_id(class) {
            self.known.code.add(key, bytes);
        }
    }

    /// How many classes are loaded and linked.
    pub fn loaded_classes(&self) -> usize {
        self.known.mirrors.keys().filter(|key| self.known.mirrors.get(*key).linked).count()
    }

    /// Selects the roots among the loaded classes.
    pub fn start(&mut self) -> Step {
        let classes = self.known.with_roots();
        self.begin(Work::Roots(classes))
    }

    /// An instrumented method is about to run for the first time, or a call that was not expected.
    pub fn first_call(&mut self, method: MethodId) -> Step {
        self.first_calls(vec![method])
    }

    /// The same of several, which is one step: what it needs is asked for at once.
    pub fn first_calls(&mut self, methods: Vec<MethodId>) -> Step {
        self.begin(Work::FirstCalls(methods))
    }

    /// From now on nothing but the roots is instrumented; the classes to be retransformed for that.
    pub fn keep_only_roots(&mut self) -> Vec<ClassId> {
        self.known.roots_only = true;
        self.plan.to_hotswap.clear();
        let is_other = |method: &&MethodRecord| {
            method.submitted && method.refused.is_none() && !method.is_native && method.root_of.is_empty()
        };
        let others = self.methods.all().iter().filter(is_other).map(|method| method.key);
        let others = others.chain(self.plan.reflection.probed.iter().copied()).chain(self.plan.natives.probed());
        let others = others.chain(self.plan.passed()).chain(self.plan.sites.probed());
        let mut classes: Vec<ClassId> = others.filter_map(|key| self.known.mirrors.get(key).id).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    /// Whether only roots are put into class files for the time being; what is selected stays so.
    pub fn hold_back_others(&mut self, are_held_back: bool) {
        self.known.roots_only = are_held_back || self.known.options.only_roots;
    }

    /// Whether a class has a root.
    pub fn has_root(&self, class: ClassId) -> bool {
        let methods = self.known.mirrors.by_id(class).map_or(&[][..], |key| self.methods.in_class(key)).iter();
        methods.filter_map(|id| self.methods.record(*id)).any(|method| !method.root_of.is_empty())
    }

    /// A class has been linked; none of its code has run yet.
    pub fn class_prepared(&mut self, info: ClassInfo) -> Step {
        self.classes_prepared(vec![info])
    }

    /// The same of several, in the order in which they were linked: supertypes come first. It is one step, too.
    pub fn classes_prepared(&mut self, infos: Vec<ClassInfo>) -> Step {
        let mut keys = Vec::with_capacity(infos.len());
        for info in infos {
            self.reachable.unlinked.remove(&info.name);
            let probed = info.probed;
            let key = self.known.mirrors.linked(info);
            self.came(key, probed);
            keys.push(key);
        }
        self.begin(Work::Linked(keys))
    }

    /// A hotswap is over, and what HotSpot refused has been told: the code of what was instrumented by it is known now.
    pub fn hotswapped(&mut self) -> Step {
        for id in std::mem::take(&mut self.plan.submitted) {
            self.methods.is_in_place(id);
        }
        self.drops_accepted();
        self.begin(Work::Rest)
    }

    /// Goes on after methods were added.
    pub fn resume(&mut self) -> Step {
        match self.work.take() {
            Some(work) => self.begin(work),
            None => Step::Hotswap(self.plan.hotswap(&mut self.known)),
        }
    }

    fn begin(&mut self, work: Work) -> Step {
        let known = self.methods.all().len();
        self.methods.set_trigger(self.trigger_of(&work));
        self.escape.opaque.asked.clear();
        match &work {
            Work::Roots(classes) => {
                classes.iter().for_each(|key| self.select_roots_in(*key));
                if !self.known.roots_only {
                    self.plan.reflection.probe_invokers(&self.known, &mut self.plan.to_hotswap);
                    self.plan.probe_passages(&self.known);
                }
                if self.known.options.scheme == Scheme::Total {
                    self.known.mirrors.keys().for_each(|key| self.select_all_in(key));
                }
            }
            Work::FirstCalls(_) if self.known.roots_only => {}
            Work::FirstCalls(methods) => methods.iter().for_each(|method| self.come_to(*method)),
            Work::Linked(keys) => keys.iter().for_each(|key| self.apply_to(*key)),
            Work::Reflected(..) if self.known.roots_only => {}
            Work::Reflected(key, signature) => self.reach_reflected(*key, *signature),
            Work::Received(..) if self.known.roots_only => {}
            Work::Received(call, key) => self.receive(*call, *key),
            Work::HaveRun(_) if self.known.roots_only => {}
            Work::HaveRun(methods) => self.select_run(methods),
            Work::Open(methods) => self.enter_open(methods),
            Work::Seen if self.known.roots_only => {}
            Work::Seen => self.expect_seen(),
            Work::Rest => {}
        }
        self.reach_inherited_later();
        for key in self.reachable.unlinked.linked_ahead() {
            self.apply_to(key);
        }
        if matches!(work, Work::Linked(_) | Work::Reflected(..)) {
            self.methods.expect_from(known);
        }
        if !self.known.roots_only {
            self.look_at_idle_again();
            self.expand_due();
        }
        if !self.known.roots_only && self.known.is_complete() && self.plan.wants_hotswap(&self.known) {
            self.look_ahead();
        }
        if !self.known.roots_only {
            self.plan.natives.find(&mut self.known, &mut self.methods, &mut self.plan.to_hotswap);
        }
        let needed: Vec<ClassId> = self.known.needed.drain().filter_map(|key| self.known.mirrors.get(key).id).collect();
        if !needed.is_empty() {
            self.work = Some(work);
            return Step::NeedMethods(needed);
        }
        if self.escape.mentions.take_wanted() {
            self.work = Some(work);
            return Step::NeedMentions;
        }
        let missing = self.known.code.take_needed();
        let missing: Vec<ClassId> = missing.into_iter().filter_map(|key| self.known.mirrors.get(key).id).collect();
        if !missing.is_empty() {
            self.work = Some(work);
            return Step::NeedCode(missing);
        }
        let links = self.links_ahead();
        if !links.is_empty() {
            self.work = Some(work);
            return Step::NeedLinks(links);
        }
        self.reachable.unlinked.settled();
        let classes = self.plan.hotswap(&mut self.known);
        if matches!(work, Work::Linked(_)) && !classes.is_empty() {
            self.likely.link_batches += 1;
        }
        Step::Hotswap(classes)
    }

    /// What methods are found upon by a piece of work.
    fn trigger_of(&self, work: &Work) -> Trigger {
        match work {
            Work::Roots(_) => Trigger::Start,
            Work::FirstCalls(methods) if methods.iter().all(|method| self.is_guard(*method)) => Trigger::Passed,
            Work::FirstCalls(_) => Trigger::Entered,
            Work::Linked(_) => Trigger::Loaded,
            Work::Reflected(..) | Work::Received(..) => Trigger::Used,
            Work::Open(_) => Trigger::Open,
            Work::HaveRun(_) | Work::Seen => Trigger::Seen,
            Work::Rest => Trigger::Later,
        }
    }

    /// Whether this stands for a call that was not expected.
    pub fn is_guard(&self, method: MethodId) -> bool {
        self.plan.guards.is_guard(method)
    }

    fn come_to(&mut self, method: MethodId) {
        if self.is_guard(method) {
            self.plan.guards.come_to(&mut self.reachable.due, method);
        } else {
            self.enter(method);
        }
    }

    /// A method is entered for the first time: under scheme B its callees are to be selected now.
    fn enter(&mut self, method: MethodId) {
        let Some(record) = self.methods.record_mut(method) else { return };
        if !std::mem::replace(&mut record.entered, true) {
            let (key, is_constructor) = (record.key, &*record.name == "<init>");
            for key in self.known.mirrors.supertypes(key) {
                self.known.mirrors.get_mut(key).dormant = false;
            }
            if is_constructor {
                self.likely.come_alive(&mut self.known, &mut self.methods, key);
            }
            self.methods.raise(method, 1.0);
            self.likely.learn(&self.known, &mut self.methods, method);
            self.methods.expect_callees(method);
        }
        if self.known.options.scheme == Scheme::Lazy {
            self.reachable.due.push(method);
        }
    }

    /// All methods that were selected.
    pub fn methods(&self) -> &[MethodRecord] {
        self.methods.all()
    }

    /// What is left out, to measure what it is worth.
    pub fn without(&self) -> Without {
        self.known.options.without
    }

    /// How methods are found.
    pub fn scheme(&self) -> Scheme {
        self.known.options.scheme
    }

    /// How many methods are left alone because they are trivial.
    pub fn trivial(&self) -> usize {
        self.methods.trivial().len()
    }

    /// How many methods are instrumented.
    pub fn instrumented(&self) -> usize {
        self.methods.all().iter().filter(|method| method.submitted && method.refused.is_none()).count()
    }

    /// Methods that should be instrumented and are not, with the reason.
    pub fn skipped(&self) -> &[(String, String)] {
        self.methods.skipped()
    }
}
