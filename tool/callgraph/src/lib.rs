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

use headwater_protocol::message::{ClassInfo, MethodRef, ThreadStack};
use headwater_protocol::{ClassId, MethodId};
use headwater_terms::Scheme;
use headwater_terms::reach::Trigger;

mod ahead;
mod asked;
mod callbacks;
mod cause;
mod code_store;
mod coming;
mod compiled;
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
mod told;
mod unlinked;
mod waits;
mod watched;

pub use cause::Moment;
pub use compiled::Discarded;
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
use guards::Guards;
use known::Known;
use likely::{Ground, Likely};
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

impl Work {
    /// What methods are found upon by it.
    fn trigger(&self, guards: &Guards) -> Trigger {
        match self {
            Work::Roots(_) => Trigger::Start,
            Work::FirstCalls(methods) if methods.iter().all(|method| guards.is_guard(*method)) => Trigger::Passed,
            Work::FirstCalls(_) => Trigger::Entered,
            Work::Linked(_) => Trigger::Loaded,
            Work::Reflected(..) | Work::Received(..) => Trigger::Used,
            Work::Open(_) => Trigger::Open,
            Work::HaveRun(_) | Work::Seen => Trigger::Seen,
            Work::Rest => Trigger::Later,
        }
    }
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

    /// A class has been linked; none of its code has run yet.
    pub fn class_prepared(&mut self, info: ClassInfo) -> Step {
        self.classes_prepared(vec![info])
    }

    /// The same of several, in the order in which they were linked: supertypes come first. It is one step, too.
    pub fn classes_prepared(&mut self, infos: Vec<ClassInfo>) -> Step {
        let keys = infos.into_iter().map(|info| self.came(info)).collect();
        self.begin(Work::Linked(keys))
    }

    /// Classes have been linked, for the current work or meanwhile; goes on with it.
    pub fn add_linked(&mut self, classes: Vec<ClassInfo>) -> Step {
        for info in classes {
            let key = self.came(info);
            self.reachable.unlinked.is_linked(key);
        }
        self.resume()
    }

    /// A thread in the graph is about to call a method, or one that overrides it, by reflection or a handle.
    pub fn reflected(&mut self, method: &MethodRef) -> Step {
        let Some(key) = self.known.mirrors.by_id(method.class) else { return self.begin(Work::Rest) };
        let signature = self.known.mirrors.intern_signature(&method.name, &method.descriptor);
        self.begin(Work::Reflected(key, signature))
    }

    /// A virtual call is about to be made on an object of a class, for the first time.
    pub fn received(&mut self, call: u32, class: ClassId) -> Step {
        let Some(key) = self.known.mirrors.by_id(class) else { return Step::Hotswap(Vec::new()) };
        self.plan.guards.receivers.saw(call, key);
        self.begin(Work::Received(call, key))
    }

    /// Methods that were watched have run.
    pub fn have_run(&mut self, methods: &[MethodRef]) -> Step {
        let run = self.reachable.watched.have_run(&mut self.known, methods);
        self.begin(Work::HaveRun(run))
    }

    /// These threads are inside roots already.
    pub fn open_calls(&mut self, stacks: &[ThreadStack]) -> Step {
        let methods = OnStacks::of(&self.known, stacks);
        self.begin(Work::Open(methods))
    }

    /// Selects what was seen, if it is not selected yet.
    pub fn select_seen(&mut self) -> Step {
        self.begin(Work::Seen)
    }

    /// A hotswap is over, and what HotSpot refused has been told: the code of what was instrumented by it is known now.
    pub fn hotswapped(&mut self) -> Step {
        for id in std::mem::take(&mut self.plan.submitted) {
            self.methods.is_in_place(id);
        }
        self.plan.drops_accepted(&mut self.methods);
        self.plan.reflection.hotswapped(&self.methods);
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
        let known_before = self.methods.all().len();
        self.methods.set_trigger(work.trigger(&self.plan.guards));
        self.escape.opaque.ask_again();
        self.apply(&work);
        let CallGraph { known, methods, likely, reachable, .. } = self;
        reachable.reach_inherited_later(&mut Ground { known, methods, likely });
        for key in self.reachable.unlinked.linked_ahead() {
            self.apply_to(key);
        }
        if matches!(work, Work::Linked(_) | Work::Reflected(..)) {
            self.methods.expect_from(known_before);
        }
        if !self.known.roots_only {
            let CallGraph { known, methods, likely, reachable, escape, .. } = self;
            let ground = &mut Ground { known, methods, likely };
            escape.opaque.look_at_idle_again(ground, reachable, &mut escape.mentions);
            self.expand_due();
        }
        self.plan.take_up(&self.known, &self.methods);
        if !self.known.roots_only && self.known.is_complete() && self.plan.wants_hotswap(&self.known) {
            self.look_ahead();
            self.plan.take_up(&self.known, &self.methods);
        }
        if !self.known.roots_only {
            self.plan.natives.find(&self.known, &mut self.methods, &mut self.plan.to_hotswap);
        }
        if let Some(question) = self.question() {
            self.work = Some(work);
            return question;
        }
        self.reachable.unlinked.settled();
        let classes = self.plan.hotswap(&mut self.known);
        if matches!(work, Work::Linked(_)) && !classes.is_empty() {
            self.likely.link_batches += 1;
        }
        Step::Hotswap(classes)
    }

    /// Selects what a piece of work comes to.
    fn apply(&mut self, work: &Work) {
        let CallGraph { known, methods, likely, reachable, plan, .. } = self;
        match work {
            Work::Roots(classes) => {
                for key in classes {
                    reachable.select_roots_in(known, methods, likely, *key);
                }
                if !known.roots_only {
                    plan.reflection.probe_invokers(known, &mut plan.to_hotswap);
                    plan.probe_passages(known);
                }
                plan.reflection.discard_inlined_roots(known, methods, &mut plan.to_hotswap);
                if known.options.scheme == Scheme::Total {
                    known.mirrors.keys().for_each(|key| reachable.select_all_in(known, methods, key));
                }
            }
            Work::Linked(keys) => keys.iter().for_each(|key| self.apply_to(*key)),
            // Also where roots alone have probes: which of their calls are under way is known by it.
            Work::Open(on_stacks) => {
                for at in on_stacks.places() {
                    self.enter_open(on_stacks, at);
                }
            }
            Work::Rest => {}
            _ if known.roots_only => {}
            Work::FirstCalls(called) => called.iter().for_each(|method| self.come_to(*method)),
            Work::Reflected(key, signature) => {
                let called = reachable.reach_reflected(&mut Ground { known, methods, likely }, *key, *signature);
                let called: Vec<&MethodRecord> = called.into_iter().filter_map(|id| methods.record(id)).collect();
                plan.reflection.discard_inlined(known, &called, &mut plan.to_hotswap);
            }
            Work::Received(call, key) => {
                if let Some(called) = plan.guards.receivers.called(*call) {
                    reachable.select_received(known, methods, *key, called);
                }
            }
            Work::HaveRun(run) => reachable.select_run(known, methods, run),
            Work::Seen => plan.ran.expect_seen(known, methods, reachable),
        }
    }

    /// What has to be known before work goes on, if anything.
    fn question(&mut self) -> Option<Step> {
        let CallGraph { known, likely, reachable, escape, plan, .. } = self;
        let needed = known.take_needed();
        if !needed.is_empty() {
            return Some(Step::NeedMethods(needed));
        }
        if escape.mentions.take_wanted() {
            return Some(Step::NeedMentions);
        }
        let missing = known.code.take_needed();
        let missing: Vec<ClassId> = missing.into_iter().filter_map(|key| known.mirrors.get(key).id).collect();
        if !missing.is_empty() {
            return Some(Step::NeedCode(missing));
        }
        let are_links_wanted = reachable.unlinked.are_wanted(known, likely) && plan.wants_hotswap(known);
        let links = if are_links_wanted { reachable.unlinked.take_wanted() } else { Vec::new() };
        (!links.is_empty()).then_some(Step::NeedLinks(links))
    }

    /// A class has been linked: its key.
    fn came(&mut self, info: ClassInfo) -> ClassKey {
        self.reachable.unlinked.remove(&info);
        let probed = info.probed;
        let key = self.known.mirrors.linked(info);
        self.plan.came(&mut self.methods, key, probed);
        key
    }

    fn come_to(&mut self, method: MethodId) {
        if self.plan.guards.is_guard(method) {
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

    /// Selects a method that is being executed, and takes it for entered.
    fn enter_open(&mut self, on_stacks: &OnStacks, at: usize) {
        let CallGraph { known, methods, reachable, .. } = self;
        if let Some(id) = reachable.select_on_stack(known, methods, on_stacks, at) {
            methods.set_trigger(Trigger::Open);
            self.enter(id);
            // The code that is being executed has none.
            self.plan.guards.unguard(&mut self.reachable.due, id);
        }
    }
}
