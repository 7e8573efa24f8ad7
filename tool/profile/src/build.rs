//! Stacks with weights become trees.

use std::time::Duration;

use headwater_protocol::ThreadId;
use rustc_hash::FxHashMap;

use crate::profile::{
    Contention, Extent, MethodIndex, MethodName, Metric, Node, NodeIndex, Profile, Target, ThreadProfile, Track, Tree,
    Unit, tell_apart, walk,
};
use headwater_terms::pattern::stable_name;
use headwater_terms::printable::printable;

/// Where samples are that have no stack.
pub(crate) const NO_STACK: &str = "[no stack]";
/// What samples are called whose number says how uncertain it is.
pub const SAMPLES: &str = "samples";

/// A tree that is being made.
#[derive(Default)]
struct Growing {
    nodes: Vec<Node>,
    places: FxHashMap<(Option<NodeIndex>, MethodIndex), NodeIndex>,
    /// Of each metric, what each node has itself.
    own: Vec<Vec<u64>>,
}

impl Growing {
    fn child(&mut self, parent: Option<NodeIndex>, method: MethodIndex) -> NodeIndex {
        *self.places.entry((parent, method)).or_insert_with(|| {
            self.nodes.push(Node { parent, ..Node::empty(method) });
            NodeIndex(self.nodes.len() - 1)
        })
    }

    fn add(&mut self, node: NodeIndex, metric: usize, value: u64) {
        if self.own.len() <= metric {
            self.own.resize(metric + 1, Vec::new());
        }
        let own = &mut self.own[metric];
        if own.len() <= node.0 {
            own.resize(node.0 + 1, 0);
        }
        own[node.0] = own[node.0].saturating_add(value);
    }

    fn finish(self, metrics: &[Metric]) -> Tree {
        let of = |(at, metric): (usize, &Metric)| {
            let own = self.own.get(at).map(Vec::as_slice).unwrap_or_default();
            metric.column_of(&self.nodes, own.iter().map(|own| (*own, 0)))
        };
        let counted = metrics.iter().enumerate().map(of).collect();
        Tree { counted, ..Tree::of(self.nodes) }
    }
}

/// What stands for a thread of the JVM's own among methods, by its name without the number: `GC Thread#3` and `C2 CompilerThread0` are many.
pub fn jvms_own(thread: &str) -> String {
    format!("[JVM: {}]", thread.trim_end_matches(|c: char| c.is_ascii_digit() || c == '#' || c == '-'))
}

/// A metric of a profile that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MetricIndex(usize);

/// A thread of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ThreadIndex(usize);

/// A profile that is being made.
#[derive(Default)]
pub struct Builder {
    methods: Vec<MethodName>,
    known: FxHashMap<String, MethodIndex>,
    metrics: Vec<Metric>,
    threads: Vec<(String, Growing)>,
    by_thread: FxHashMap<String, ThreadIndex>,
    /// When it was recorded, in seconds since 1970, and how long.
    pub recorded: (u64, Duration),
    /// Whether threads are told apart.
    has_threads: bool,
    /// The JVM, if that is known.
    pub(crate) target: Target,
    /// Contended locks.
    pub contention: Option<Contention>,
    /// What happened to the whole JVM.
    pub tracks: Vec<Track>,
    /// What else is known.
    pub(crate) notes: Vec<String>,
}

impl Builder {
    /// A method by its name for machines, or what stands for that, and its name for people; that of a hidden class is [the same in every run](stable_name).
    pub fn method(&mut self, machine: &str, display: &str) -> MethodIndex {
        let machine = stable_name(machine);
        if let Some(known) = self.known.get(&*machine) {
            return *known;
        }
        let method = MethodIndex(self.methods.len());
        self.methods.push(MethodName { machine: machine.to_string(), display: stable_name(display).into_owned() });
        self.known.insert(machine.into_owned(), method);
        method
    }

    /// A metric by its name.
    pub fn metric(&mut self, title: &str, unit: Unit) -> MetricIndex {
        self.metric_called(&Builder::id(title), title, unit)
    }

    /// A metric by its name, with such an id, if that is free.
    pub fn metric_called(&mut self, id: &str, title: &str, unit: Unit) -> MetricIndex {
        if let Some(known) = self.metrics.iter().position(|metric| metric.title == title && metric.unit == unit) {
            return MetricIndex(known);
        }
        let is_taken = |id: &str| self.metrics.iter().any(|metric| metric.id == id);
        let numbered = (2..).map(|number| format!("{id}-{number}"));
        let id = std::iter::once(id.to_owned()).chain(numbered).find(|id| !is_taken(id)).unwrap_or_default();
        let metric = Metric::imported(id, title.to_owned(), unit, Extent::OwnAndTotal);
        let is_of_samples = unit == Unit::Count && title == SAMPLES;
        self.metrics.push(if is_of_samples { metric.sampled(1) } else { metric });
        MetricIndex(self.metrics.len() - 1)
    }

    /// A metric that says itself what it is, with an id that no other one has.
    pub fn described(&mut self, metric: Metric) -> MetricIndex {
        self.metrics.push(metric);
        MetricIndex(self.metrics.len() - 1)
    }

    /// An id that is made of a title.
    fn id(title: &str) -> String {
        const LONGEST: usize = 32;
        let letters = title.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let id: String = letters.take(LONGEST).collect();
        let id = id.trim_matches('-').to_owned();
        if id.is_empty() { "weight".to_owned() } else { id }
    }

    /// A metric is by samples, each of which stands for so much.
    pub fn grain(&mut self, metric: MetricIndex, grain: u64) {
        let metric = &mut self.metrics[metric.0];
        *metric = metric.clone().sampled(grain);
    }

    /// A thread by its name; `None` where threads are not told apart.
    pub fn thread(&mut self, name: Option<&str>) -> ThreadIndex {
        self.has_threads |= name.is_some();
        let name = name.unwrap_or_default();
        if let Some(known) = self.by_thread.get(name) {
            return *known;
        }
        let thread = ThreadIndex(self.threads.len());
        self.threads.push((name.to_owned(), Growing::default()));
        self.by_thread.insert(name.to_owned(), thread);
        thread
    }

    /// A node below another, or a root.
    pub(crate) fn child(&mut self, thread: ThreadIndex, parent: Option<NodeIndex>, method: MethodIndex) -> NodeIndex {
        self.threads[thread.0].1.child(parent, method)
    }

    /// Adds to what a node has itself.
    pub(crate) fn add(&mut self, thread: ThreadIndex, node: NodeIndex, metric: MetricIndex, value: u64) {
        self.threads[thread.0].1.add(node, metric.0, value);
    }

    /// Adds a whole stack, the root first; what has none has a place of its own.
    pub fn add_stack(
        &mut self,
        thread: ThreadIndex,
        stack: impl IntoIterator<Item = MethodIndex>,
        values: impl IntoIterator<Item = (MetricIndex, u64)>,
    ) {
        let mut at = None;
        for method in stack {
            at = Some(self.child(thread, at, method));
        }
        let node = at.unwrap_or_else(|| {
            let none = self.method(NO_STACK, NO_STACK);
            self.child(thread, None, none)
        });
        values.into_iter().for_each(|(metric, value)| self.add(thread, node, metric, value));
    }

    /// The profile of all that was added.
    pub fn finish(mut self, title: &str, format: &str) -> Profile {
        tell_apart(&mut self.methods);
        if self.metrics.is_empty() {
            // Who counts nothing has seen none of what others count.
            self.metric(SAMPLES, Unit::Count);
        }
        let metrics = self.metrics;
        let is_told_apart = self.has_threads;
        let threads: Vec<ThreadProfile> = self
            .threads
            .into_iter()
            .zip(1..)
            .map(|((name, growing), id)| ThreadProfile { id: ThreadId(id), name, tree: growing.finish(&metrics) })
            .collect();
        let merged = walk::sum(threads.iter().map(|thread| &thread.tree));
        let merged = if merged.nodes.is_empty() { Growing::default().finish(&metrics) } else { merged };
        let mut contention = self.contention;
        if let Some(contention) = &mut contention {
            contention.place(&self.methods, &merged);
            contention.sort();
        }
        let main = if self.target.main.is_empty() { title } else { &self.target.main };
        let main = printable(main).into_owned();
        let mut profile = Profile {
            target: Target { main, ..self.target },
            notes: self.notes,
            contention,
            tracks: self.tracks,
            imported: Some(format.to_owned()),
            duration: self.recorded.1,
            called: self.methods.len(),
            methods: self.methods,
            counted: metrics,
            threads: if is_told_apart { threads } else { Vec::new() },
            merged,
            ..Profile::default()
        };
        profile.environment.started_s = self.recorded.0;
        profile
    }
}

/// A unit of another tool, and how many of ours it is; `None` of one that is none of ours.
pub(crate) fn unit(name: &str) -> Option<(Unit, f64)> {
    Some(match name.to_ascii_lowercase().as_str() {
        "nanoseconds" | "nanosecond" | "ns" => (Unit::Nanoseconds, 1.0),
        "microseconds" | "microsecond" | "us" => (Unit::Nanoseconds, 1e3),
        "milliseconds" | "millisecond" | "ms" => (Unit::Nanoseconds, 1e6),
        "seconds" | "second" | "s" => (Unit::Nanoseconds, 1e9),
        "minutes" | "minute" | "min" => (Unit::Nanoseconds, 60e9),
        "hours" | "hour" | "h" => (Unit::Nanoseconds, 3_600e9),
        "bytes" | "byte" | "b" => (Unit::Bytes, 1.0),
        "kilobytes" | "kilobyte" | "kb" | "kib" => (Unit::Bytes, 1024.0),
        "megabytes" | "megabyte" | "mb" | "mib" => (Unit::Bytes, 1024.0 * 1024.0),
        "gigabytes" | "gigabyte" | "gb" | "gib" => (Unit::Bytes, 1024.0 * 1024.0 * 1024.0),
        "count" | "none" | "samples" | "objects" | "" => (Unit::Count, 1.0),
        _ => return None,
    })
}

/// Values as whole numbers: what is cut off of one is added to the next, so that their sum is as it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Whole {
    rest: f64,
}

impl Whole {
    /// The next value.
    pub(crate) fn of(&mut self, value: f64) -> u64 {
        let exact = value + self.rest;
        // Saturates, and makes nothing of what is no number.
        let whole = exact.round() as u64;
        let rest = exact - whole as f64;
        self.rest = if rest.abs() <= 1.0 { rest } else { 0.0 };
        whole
    }
}
