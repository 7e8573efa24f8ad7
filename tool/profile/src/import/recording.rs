//! Recordings of the JDK's flight recorder, and those that async-profiler writes in its format: each kind of events has metrics of its own
//! ([`measures`]), on one tree a thread.

use std::time::Duration;

use headwater_jfr::{Collection, EventKind, FrameIndex, Recorded, RecordedEvent, Setting, Stack, StackIndex};
use headwater_terms::pattern;
use rustc_hash::FxHashMap;

use super::Builder;
use crate::build::{MetricIndex, NO_STACK, ThreadIndex};
use crate::profile::{MethodIndex, NodeIndex, Slice, Track};
use crate::report::units::{bytes, plural};
use measures::{MEASURES, Measure, Sum};

pub mod locks;
mod measures;

/// Threads may share stacks, so that their trees take more room than the recording: so many nodes for each of its bytes at most.
const NODES_A_BYTE: usize = 8;
/// What is above a stack that is cut.
const CUT: &str = "[deeper than was recorded]";
/// Virtual threads are too many to be told apart.
const VIRTUAL: &str = "virtual threads";

pub(super) fn read(bytes: &[u8]) -> Result<Builder, String> {
    let recorded = headwater_jfr::recorded(bytes).map_err(|error| error.to_string())?;
    if recorded.events.is_empty() {
        return Err("it has no events with stacks that are understood: samples, allocations, waits, input and output"
            .to_owned());
    }
    let mut builder = build(&recorded, &[], NODES_A_BYTE * bytes.len())?;
    builder.notes.extend(lost(&recorded));
    if recorded.events.iter().any(|event| event.kind == EventKind::MonitorEnter || event.kind == EventKind::Park) {
        builder.contention = Some(locks::contention(&recorded).0);
    }
    Ok(builder)
}

/// The profile of what was recorded, of so many nodes at most. Metrics of kinds that were `asked_for` are there also if there were none.
pub fn build(recorded: &Recorded, asked_for: &[EventKind], most_nodes: usize) -> Result<Builder, String> {
    let mut sums: FxHashMap<Kinds, Sum> = FxHashMap::default();
    let mut wholes: FxHashMap<EventKind, Sum> = FxHashMap::default();
    for event in &recorded.events {
        let RecordedEvent { kind, thread, stack, .. } = *event;
        sums.entry(Kinds { thread: thread.0, stack, kind }).or_default().add(event);
        wholes.entry(kind).or_default().add(event);
    }
    let mut builder = Builder::default();
    let mut metrics: Vec<(&Measure, MetricIndex)> = Vec::new();
    for measure in MEASURES {
        let whole = measure.kinds.iter().filter_map(|kind| wholes.get(kind)).copied().reduce(Sum::and);
        let is_asked_for = measure.kinds.iter().any(|kind| asked_for.contains(kind));
        let whole = whole.or_else(|| is_asked_for.then(Sum::default));
        if let Some(whole) = whole.filter(|whole| is_asked_for || measure.of(whole) > 0) {
            let index = builder.described(measure.metric(|kind| wholes.contains_key(&kind)));
            if measure.is_sampled {
                builder.grain(index, (measure.of(&whole) / whole.count.max(1)).max(1));
            }
            metrics.push((measure, index));
        }
    }
    let mut trees = Trees::of(&mut builder, recorded, most_nodes);
    let mut sums: Vec<(Kinds, Sum)> = sums.into_iter().collect();
    // Whatever reads the file again finds the same tree.
    sums.sort_unstable_by_key(|(Kinds { thread, stack, kind }, _)| (*thread, stack.0, *kind));
    for (Kinds { thread, stack, kind }, sum) in sums {
        let (thread, node) = trees.node(&mut builder, thread, stack)?;
        for (measure, metric) in metrics.iter().filter(|(measure, _)| measure.kinds.contains(&kind)) {
            builder.add(thread, node, *metric, measure.of(&sum));
        }
    }
    builder.recorded = span(&recorded.events);
    let begin_ns = recorded.events.iter().map(|event| event.at_ns).min().unwrap_or(0);
    builder.tracks.extend((!recorded.collections.is_empty()).then(|| collections(recorded, begin_ns)));
    builder.notes = notes(recorded, &wholes);
    if let Some(jvm) = &recorded.jvm {
        builder.target.pid = jvm.pid;
        builder.target.main = jvm.java_arguments.split_whitespace().next().unwrap_or_default().to_owned();
        builder.target.jdk = version(&jvm.version).to_owned();
    }
    Ok(builder)
}

/// The collections, from that time on, in ns since 1970.
pub fn collections(recorded: &Recorded, begin_ns: i64) -> Track {
    let slice = |it: &Collection| Slice {
        start_ns: it.at_ns.saturating_sub(begin_ns),
        duration_ns: it.duration_ns,
        label: it.cause.to_string(),
        by: it.collector.to_string(),
        amounts: vec![Some(it.pauses_ns), Some(it.longest_ns), it.heap[0], it.heap[1]],
    };
    let mut slices: Vec<Slice> = recorded.collections.iter().map(slice).collect();
    slices.sort_by_key(|slice| slice.start_ns);
    Track::of_whole_collections(slices)
}

/// What is added up.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Kinds {
    thread: u32,
    stack: StackIndex,
    kind: EventKind,
}

/// From the first to the end of the last: when, in seconds since 1970, and how long.
fn span(events: &[RecordedEvent]) -> (u64, Duration) {
    let first = events.iter().map(|event| event.at_ns).min().unwrap_or(0);
    let end = |event: &RecordedEvent| event.at_ns.saturating_add(i64::try_from(event.duration_ns).unwrap_or(i64::MAX));
    let last = events.iter().map(end).max().unwrap_or(0);
    let positive = |ns: i64| u64::try_from(ns).unwrap_or(0);
    (positive(first) / 1_000_000_000, Duration::from_nanos(positive(last.saturating_sub(first))))
}

/// Of `OpenJDK 64-Bit Server VM (25.0.3+9-LTS) for linux-amd64 JRE (25.0.3+9-LTS), built on ...`, the second one in parentheses.
fn version(told: &str) -> &str {
    let after = told.split_once("JRE (").map_or(told, |(_, after)| after);
    after.split([')', '+']).next().unwrap_or_default()
}

/// What else there is to say.
fn notes(recorded: &Recorded, wholes: &FxHashMap<EventKind, Sum>) -> Vec<String> {
    let mut notes = Vec::new();
    for (setting, is_none, what) in [
        ("threshold", "0", "events that took less are not in the recording"),
        ("throttle", "off", "events beyond that are not in the recording"),
        ("period", "", "the period of samples"),
    ] {
        let is_told = |one: &&Setting| {
            one.name == setting
                && one.value.split(' ').next() != Some(is_none)
                && one.kind.has_place()
                && wholes.contains_key(&one.kind)
                // By their weights, what is left out is in what is not.
                && !matches!(one.kind, EventKind::AllocationSample | EventKind::CpuTimeSample)
        };
        let mut told: Vec<(EventKind, &str)> =
            recorded.settings.iter().filter(is_told).map(|one| (one.kind, one.value.as_str())).collect();
        told.sort_unstable();
        let names: Vec<String> = told.iter().map(|(kind, value)| format!("{} {value}", kind.name())).collect();
        if !names.is_empty() {
            notes.push(format!("{what}: {}", names.join(", ")));
        }
    }
    notes
}

/// What is not in a recording, though it should be.
fn lost(recorded: &Recorded) -> impl Iterator<Item = String> {
    let events = || format!("the JVM lost {} of events, in full buffers", bytes(recorded.lost_bytes));
    let samples = || format!("the JVM lost {} of CPU time", plural(recorded.lost_samples, "sample", "samples"));
    let events = (recorded.lost_bytes > 0).then(events);
    events.into_iter().chain((recorded.lost_samples > 0).then(samples))
}

/// Nodes of threads' trees, by threads and stacks: each is looked up once.
struct Trees<'a> {
    recorded: &'a Recorded,
    methods: Vec<MethodIndex>,
    cut: MethodIndex,
    none: MethodIndex,
    /// Of each thread, which of the builder's it is.
    threads: Vec<Option<ThreadIndex>>,
    /// How many have each name.
    namesakes: FxHashMap<&'a str, usize>,
    /// All stacks in one tree: what is above, and the method.
    paths: Vec<(Option<usize>, MethodIndex)>,
    known_paths: FxHashMap<(Option<usize>, MethodIndex), usize>,
    /// Of each stack, its innermost.
    of_stack: Vec<Option<usize>>,
    nodes: FxHashMap<(ThreadIndex, usize), NodeIndex>,
    most_nodes: usize,
}

impl<'a> Trees<'a> {
    fn of(builder: &mut Builder, recorded: &'a Recorded, most_nodes: usize) -> Trees<'a> {
        let mut namesakes: FxHashMap<&str, usize> = FxHashMap::default();
        for thread in recorded.threads.iter().filter(|thread| !thread.is_virtual) {
            *namesakes.entry(&thread.name).or_default() += 1;
        }
        Trees {
            recorded,
            namesakes,
            methods: methods(builder, &recorded.methods),
            cut: cut(builder),
            none: builder.method(NO_STACK, NO_STACK),
            threads: vec![None; recorded.threads.len()],
            paths: Vec::new(),
            known_paths: FxHashMap::default(),
            of_stack: vec![None; recorded.stacks.len()],
            nodes: FxHashMap::default(),
            most_nodes,
        }
    }

    fn node(
        &mut self,
        builder: &mut Builder,
        thread: u32,
        stack: StackIndex,
    ) -> Result<(ThreadIndex, NodeIndex), String> {
        let thread = self.thread(builder, thread as usize);
        let path = self.path(stack);
        // Up to what is there, and down again.
        let mut missing = Vec::new();
        let mut at = Some(path);
        let mut parent = None;
        while let Some(path) = at {
            if let Some(node) = self.nodes.get(&(thread, path)) {
                parent = Some(*node);
                break;
            }
            missing.push(path);
            at = self.paths[path].0;
        }
        if self.nodes.len() + missing.len() > self.most_nodes {
            return Err("its trees would have far more nodes than it has bytes".to_owned());
        }
        for path in missing.into_iter().rev() {
            let node = builder.child(thread, parent, self.paths[path].1);
            self.nodes.insert((thread, path), node);
            parent = Some(node);
        }
        Ok((thread, parent.unwrap_or(NodeIndex(0))))
    }

    fn path(&mut self, stack: StackIndex) -> usize {
        if let Some(path) = self.of_stack[stack.0 as usize] {
            return path;
        }
        let Stack { frames, is_cut } = &self.recorded.stacks[stack.0 as usize];
        let above = match (is_cut, frames.is_empty()) {
            (true, _) => Some(self.cut),
            (false, true) => Some(self.none),
            (false, false) => None,
        };
        let mut at = None;
        for method in above.into_iter().chain(frames.iter().map(|FrameIndex(frame)| self.methods[*frame as usize])) {
            at = Some(*self.known_paths.entry((at, method)).or_insert_with(|| {
                self.paths.push((at, method));
                self.paths.len() - 1
            }));
        }
        let path = at.unwrap_or_default();
        self.of_stack[stack.0 as usize] = Some(path);
        path
    }

    fn thread(&mut self, builder: &mut Builder, thread: usize) -> ThreadIndex {
        if let Some(known) = self.threads[thread] {
            return known;
        }
        let headwater_jfr::Thread { number, name, is_virtual } = &self.recorded.threads[thread];
        let numbered = format!("tid={number}");
        let shown = match (is_virtual, name.as_str()) {
            (true, _) => VIRTUAL.to_owned(),
            (false, "") => numbered,
            // Each of those that share a name has its number.
            (false, name) if self.namesakes.get(name) == Some(&1) => name.to_owned(),
            (false, name) => format!("{name} {numbered}"),
        };
        let index = builder.thread(Some(&shown));
        self.threads[thread] = Some(index);
        index
    }
}

/// The methods of a recording, in their order.
pub fn methods(builder: &mut Builder, methods: &[String]) -> Vec<MethodIndex> {
    let method = |machine: &String| match machine.as_str() {
        "" => builder.method("[unknown]", "[unknown]"),
        machine => builder.method(machine, &display_name(machine)),
    };
    methods.iter().map(method).collect()
}

/// What is above a stack that is cut.
pub fn cut(builder: &mut Builder) -> MethodIndex {
    builder.method(CUT, CUT)
}

/// A method's name for people; that of a symbol of other code is its own.
pub fn display_name(machine: &str) -> String {
    let split = machine.find('(').map(|at| machine.split_at(at));
    let parts = split.and_then(|(name, descriptor)| Some((name.rsplit_once('.')?, descriptor)));
    match parts {
        Some(((class, method), descriptor)) => pattern::display_name(&class.replace('.', "/"), method, descriptor),
        None => machine.to_owned(),
    }
}
