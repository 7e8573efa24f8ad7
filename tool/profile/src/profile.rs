//! A profile: the one model that all reports are made from.
//!
//! All times are nanoseconds, of wall time or, where the clock was [`ClockMode::Cpu`], of CPU time, and corrected: without the
//! probes' own cost, and without the time that threads were stopped on our account.
//!
//! Everything but the trees is kept in a [`snapshot`](crate::snapshot) under its field's name. So a field that is renamed, or added
//! without `#[serde(default)]`, makes older snapshots unreadable.

use std::borrow::Cow;
use std::time::Duration;

use headwater_protocol::ThreadId;
use headwater_protocol::message::Reveal;
use serde::{Deserialize, Serialize};

use headwater_terms::Scheme;
use headwater_terms::printable::printable;

/// Adds another's numbers to one's own. What no clock has does not overflow.
macro_rules! add_up {
    ($own:ident += $other:ident: $($number:ident),+) => {
        $($own.$number = $own.$number.saturating_add($other.$number);)+
    };
}

mod amount;
mod amounts;
mod basis;
mod budget;
mod clock;
pub(crate) mod column;
mod completeness;
mod contention;
mod derived;
mod environment;
mod measured;
mod metric;
mod names;
pub(crate) mod parts;
mod quantity;
pub mod reach;
mod sampled;
mod span;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod track;
pub mod walk;

pub use amount::Amount;
pub use amounts::Amounts;
pub(crate) use amounts::{NodeAmounts, Sum};
pub use basis::Basis;
pub use budget::{Budget, DroppedMethod, Lengthened, Limit, LimitError, RootOverhead};
pub use clock::{Clock, ClockMode, ClockSource, Drift};
pub use column::{Column, Columns};
pub use completeness::{AtLeast, OPEN_CALLS, Unseen, are_open_calls_in_part};
pub use contention::{Blocked, ContendedLock, Contention, Holder, Leaver, LockKind, Unfinished, WaitPlace};
pub(crate) use derived::derived;
pub use environment::Environment;
pub use metric::{ALLOCATED, Extent, Metric, OTHER_WAITS, READY, RUNNING, STOPPED, Unit};
pub(crate) use metric::{How, Ratio};
pub use names::tell_apart;
pub use quantity::{Part, Quantity};
pub use sampled::{Sampled, SampledRoot, by_halves};
pub use span::Span;
pub use track::{COLLECTIONS, Slice, SliceAmount, Track};

/// The profiled JVM.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// Its process id, as this process sees it.
    pub pid: u32,
    /// Its main class or jar.
    pub main: String,
    /// Its Java version.
    pub jdk: String,
    /// What was read of it beyond its documented interfaces, as far as that is known.
    #[serde(default)]
    pub internals: Vec<JvmInternal>,
}

/// Something of the JVM's that no interface documents. Counts rest on none of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JvmInternal {
    /// Which, as JSON has it: `invocation-counters`.
    pub name: String,
    /// How it stands in this JVM: `holds`, `not needed`, `failed` a test there, `unknown JDK` and so not tried.
    pub standing: String,
}

/// A method of the profile: an index into [`Profile::methods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MethodIndex(pub usize);

/// A node of a tree: an index into [`Tree::nodes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct NodeIndex(pub usize);

/// A method's names.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MethodName {
    /// For machines: `a.b.C.m(ILjava/lang/String;)V`.
    pub machine: String,
    /// For people, and fit to be shown: `a.b.C.m(int, String)`.
    pub display: String,
}

/// What a root pattern came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Root {
    /// As the user gave it.
    pub pattern: String,
    /// The methods that were instrumented for it.
    pub methods: Vec<MethodIndex>,
    /// How often they were entered from outside the call graph.
    pub calls: u64,
    /// Threads that were in it when recording began.
    #[serde(default)]
    pub open: OpenCalls,
}

/// Threads that were in a root when recording began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCalls {
    /// How many.
    pub threads: usize,
    /// How many of them were still in that call when recording ended.
    pub still: usize,
    /// The others returned so much earlier or later than is told, at most, in ns.
    pub error_ns: u64,
}

/// When calls of a root were timed as wholes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ControlKind {
    /// While the profile ran, with all probes in place but idle: control invocations.
    During,
    /// After the profile, without any probe below the root.
    After,
    /// The same, before it.
    Before,
}

/// How a root's charged time compares with that of calls which were timed as wholes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// The root.
    pub root: MethodIndex,
    /// When these calls were made.
    pub kind: ControlKind,
    /// Its total, a call, as reported.
    pub charged_ns: f64,
    /// What such a call took, less what timing it and idle probes cost.
    pub control_ns: f64,
    /// Its standard error.
    pub error_ns: f64,
    /// How many there were.
    pub calls: u64,
}

/// A method that should have been instrumented and was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// Its machine name.
    pub method: String,
    /// Why.
    pub reason: String,
}

/// How the methods were found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Discovery {
    /// When a method's callees were instrumented.
    pub scheme: Scheme,
    /// Whether the program waited for that.
    pub reveal: Reveal,
    /// Methods that may have been called before they were instrumented, because it did not.
    pub late: usize,
    /// Methods that were left alone because they are trivial.
    pub trivial: usize,
    /// How long after the first entry of a root the last method was found; `None` when none was entered.
    pub quiet_after: Option<Duration>,
}

/// How complete the record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Entries and exits that were recorded.
    pub recorded: u64,
    /// Entries and exits that were not, because the tool had fallen behind.
    pub lost: u64,
    /// Frames that were closed, and exits that were ignored, because their counterpart was missing.
    pub healed: u64,
}

/// What hotswapping cost. None of it is in the nodes' times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hotswap {
    /// Retransformations.
    pub batches: u64,
    /// Classes in them.
    pub classes: u64,
    /// Sum of the pauses.
    pub pause_ns_total: u64,
    /// The longest.
    pub pause_ns_max: u64,
}

/// Time that threads inside the root were held up on our account. None of it is in the nodes' times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// What for.
    pub reason: Cow<'static, str>,
    /// How often.
    pub count: u64,
    /// How long altogether.
    pub duration_ns: u64,
}

/// How often a method was seen on top of its thread's stack: about a hundred times a second of its self time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuSamples {
    /// How often at all.
    pub samples: u32,
    /// How often its thread was running then, or ready to run, and not waiting.
    pub running: u32,
}

impl CpuSamples {
    /// Fewer samples say nothing.
    pub const ENOUGH: u32 = 10;

    /// The part of the time in which the thread was running, 0 to 1; `None` without samples.
    pub fn share(self) -> Option<f64> {
        (self.samples > 0).then(|| f64::from(self.running) / f64::from(self.samples))
    }

    /// Adds others.
    pub fn add(&mut self, other: CpuSamples) {
        add_up!(self += other: samples, running);
    }
}

/// How a node comes to be below another that did not call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// That one had it run, by another thread as a rule: it started the thread, or handed the task to an executor.
    Thread,
}

impl Link {
    /// Its name in reports for machines.
    pub fn name(self) -> &'static str {
        match self {
            Link::Thread => "thread",
        }
    }
}

/// A method in one calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The caller, or where it was handed over; `None` for a root.
    pub parent: Option<NodeIndex>,
    /// Of a node that its parent did not call: it takes a time of its own, no part of the parent's total.
    pub link: Option<Link>,
    /// The method.
    pub method: MethodIndex,
    /// How often it was entered.
    pub calls: u64,
    /// How often an exception left it.
    pub thrown: u64,
    /// Time in the method itself and in whatever it calls that is not instrumented.
    pub self_ns: u64,
    /// Its own and its callees' time, without that of nodes with a link.
    pub total_ns: u64,
    /// Uncertainty of `self_ns`.
    pub error_ns: u64,
    /// Uncertainty of `total_ns`.
    pub total_error_ns: u64,
    /// Whether its self time was spent running or waiting, by samples.
    pub cpu: CpuSamples,
}

impl Node {
    /// A root that was never called.
    pub fn empty(method: MethodIndex) -> Node {
        let cpu = CpuSamples::default();
        let (parent, link) = (None, None);
        Node { parent, link, method, calls: 0, thrown: 0, self_ns: 0, total_ns: 0, error_ns: 0, total_error_ns: 0, cpu }
    }

    /// The node whose time this one's is part of: none of a root, or of what was handed over.
    pub fn caller(&self) -> Option<NodeIndex> {
        self.parent.filter(|_| self.link.is_none())
    }

    /// Adds another's numbers. Uncertainties add up too: the calibration errs in one direction for all.
    pub fn add(&mut self, other: &Node) {
        add_up!(self += other: calls, thrown, self_ns, total_ns, error_ns, total_error_ns);
        self.cpu.add(other.cpu);
    }
}

/// A calling context tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Parents come before their children.
    pub nodes: Vec<Node>,
    /// What is counted besides, in the order of [`Profile::counted`].
    pub counted: Vec<Column>,
    /// Which of its nodes samples of the undisturbed code were in; known of all threads together only.
    pub sampled: Sampled,
}

impl Tree {
    /// With nothing counted or sampled besides.
    pub fn of(nodes: Vec<Node>) -> Tree {
        Tree { nodes, counted: Vec::new(), sampled: Sampled::default() }
    }

    /// All calls.
    pub fn calls(&self) -> u64 {
        self.nodes.iter().map(|node| node.calls).sum()
    }

    /// Whether any node has samples of whether it was running.
    pub fn has_cpu_samples(&self) -> bool {
        self.nodes.iter().any(|node| node.cpu.samples > 0)
    }

    /// Each node's own samples and those of what it calls.
    pub fn total_cpu(&self) -> Vec<CpuSamples> {
        let mut totals: Vec<CpuSamples> = self.nodes.iter().map(|node| node.cpu).collect();
        for index in (0..totals.len()).rev() {
            let total = totals[index];
            if let Some(caller) = self.nodes[index].caller() {
                totals[caller.0].add(total);
            }
        }
        totals
    }

    /// Time of all roots together, and of all that was handed over.
    pub fn total_ns(&self) -> u64 {
        self.nodes.iter().filter(|node| node.caller().is_none()).map(|node| node.total_ns).sum()
    }
}

/// A thread that was inside a root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadProfile {
    /// The JVM's number.
    pub id: ThreadId,
    /// Its name, when it first entered a root.
    pub name: String,
    /// Its calls.
    #[serde(skip)]
    pub tree: Tree,
}

impl ThreadProfile {
    /// Its name, fit to be shown.
    pub fn shown_name(&self) -> Cow<'_, str> {
        printable(&self.name)
    }
}

/// How the durations of a method's invocations spread (JaViz, table 1): each with what it calls, in whatever context, inner ones of
/// a recursion too. Corrected as all times are.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MethodStatistics {
    /// The method.
    pub method: MethodIndex,
    /// How many invocations.
    pub count: u64,
    /// Sum of their durations; more than the method's total time where it is recursive.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Their standard deviation.
    pub sd_ns: f64,
    /// Their median.
    pub p50_ns: u64,
    /// Nine of ten are not longer.
    pub p90_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
}

/// A profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The JVM.
    pub target: Target,
    /// Where, when and how it was recorded.
    #[serde(default)]
    pub environment: Environment,
    /// The roots, in the order that the user gave.
    pub roots: Vec<Root>,
    /// How time was measured.
    pub clock: Clock,
    /// What times rest on.
    #[serde(default)]
    pub basis: Basis,
    /// How what roots are charged compares with calls that took no part in that.
    pub controls: Vec<Control>,
    /// How long was recorded.
    pub duration: Duration,
    /// All methods that were selected.
    pub methods: Vec<MethodName>,
    /// How many of them were instrumented.
    pub instrumented: usize,
    /// How many of those were called.
    pub called: usize,
    /// How they were found.
    #[serde(default)]
    pub discovery: Discovery,
    /// Those of them some of whose calls were not seen, in the order of the methods.
    #[serde(default)]
    pub at_least: Vec<AtLeast>,
    /// Those of them that may have been called and never were instrumented.
    #[serde(default)]
    pub unseen: Vec<Unseen>,
    /// Those that were not instrumented.
    pub skipped: Vec<Skipped>,
    /// How methods were reached, and why others have no probes; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach: Option<reach::Reach>,
    /// How complete the record is.
    pub events: Events,
    /// How much longer the roots' calls were for the profile, the most lengthened first; of those of which calls without it were timed.
    #[serde(default)]
    pub lengthened: Vec<Lengthened>,
    /// The overhead that was allowed, and what was given up for it.
    #[serde(default)]
    pub budget: Option<Budget>,
    /// What hotswapping cost.
    pub hotswap: Hotswap,
    /// What else was waited for.
    pub waits: Vec<Wait>,
    /// What happened to the whole JVM, and when.
    #[serde(default, alias = "collections", deserialize_with = "track::tracks", skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<Track>,
    /// The format that it was read from, if another tool made it: then it has the metrics of [`Profile::counted`] and no others.
    #[serde(default)]
    pub imported: Option<String>,
    /// What is counted at the nodes of all trees, besides what [`Node`] has.
    #[serde(default)]
    pub counted: Vec<Metric>,
    /// The threads that were inside a root.
    pub threads: Vec<ThreadProfile>,
    /// All threads' calls in one tree.
    #[serde(skip)]
    pub merged: Tree,
    /// How the invocations of single methods spread, where that was recorded: at most one for each method name.
    #[serde(default)]
    pub statistics: Vec<MethodStatistics>,
    /// Contended locks, where they were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contention: Option<Contention>,
    /// What else is known of it, for the top of a report.
    #[serde(default)]
    pub notes: Vec<String>,
    /// What the reader should know before trusting the numbers.
    pub warnings: Vec<String>,
}

impl Profile {
    /// The machine names of a root's methods, each once: classes of the same name, of different loaders, are one to the reader.
    pub fn root_names(&self, root: &Root) -> Vec<&str> {
        let mut names: Vec<&str> = root.methods.iter().map(|method| self.methods[method.0].machine.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Invocations of roots from outside the call graph.
    pub fn root_calls(&self) -> u64 {
        self.merged.nodes.iter().filter(|node| node.parent.is_none()).map(|node| node.calls).sum()
    }

    /// Until when a method's calls were recorded, if that was not to the end; zero if that was before anything else here.
    pub fn recorded_until(&self, method: MethodIndex) -> Option<Duration> {
        let budget = self.budget.as_ref()?;
        budget.dropped.iter().find(|dropped| dropped.method == method).map(|dropped| dropped.at)
    }

    /// The same, of any of the methods of this machine name: classes of the same name, of different loaders, are one to the reader.
    pub fn any_recorded_until(&self, machine: &str) -> Option<Duration> {
        let dropped = self.budget.iter().flat_map(|budget| &budget.dropped);
        dropped.filter(|dropped| self.methods[dropped.method.0].machine == machine).map(|dropped| dropped.at).min()
    }

    /// A node's method.
    pub fn method_of(&self, node: &Node) -> &MethodName {
        &self.methods[node.method.0]
    }
}
