//! The callgrind format (valgrind's manual, "Callgrind Format Specification"): self time by function, calls and inclusive time by
//! caller and callee.
//!
//! A function that is entered again while it runs is another function, `name'2`, as callgrind itself does with
//! `--separate-recs`: only so do inclusive times hold, which are sums over callers. Above the roots stands a function of no cost for
//! all threads, or for each: a consumer sums a function's inclusive time over its calls, so roots need a caller too.

use std::collections::BTreeMap;
use std::io::{self, Write};

use rustc_hash::FxHashMap;

use super::functions::{FunctionIndex, Functions, method_start};
use super::{ExportedTree, creator, one_line, remarks};
use crate::profile::{Metric, NodeIndex, Profile, Unit};

/// A function of the file. The order is that in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Caller {
    /// What stands above the roots of a part.
    Top(usize),
    /// A function that runs for the so many-th time at once.
    Level(FunctionIndex, usize),
}

/// What a function costs, by events.
#[derive(Debug, Default)]
struct Cost {
    own: Costs,
    calls: BTreeMap<Caller, Arc>,
}

/// Calls from one function to another.
#[derive(Clone, Debug, Default)]
struct Arc {
    calls: u64,
    inclusive: Costs,
}

/// A number for each event.
#[derive(Clone, Debug, Default)]
struct Costs(Vec<u64>);

impl Costs {
    fn add(&mut self, costs: impl ExactSizeIterator<Item = u64>) {
        self.0.resize(costs.len(), 0);
        self.0.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
    }

    /// As they are written; nothing was called where there are none.
    fn text(&self, events: usize) -> String {
        let of = |at: usize| self.0.get(at).copied().unwrap_or_default().to_string();
        (0..events).map(of).collect::<Vec<_>>().join(" ")
    }
}

pub(super) fn write(profile: &Profile, parts: &[ExportedTree<'_>], out: &mut impl Write) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let metrics = events(profile);
    let costs = costs(parts, &functions, &metrics);
    let mut whole = Costs::default();
    costs.values().filter(|cost| !cost.own.0.is_empty()).for_each(|cost| whole.add(cost.own.0.iter().copied()));
    let whole = whole.text(metrics.len());

    writeln!(out, "# callgrind format\nversion: 1\ncreator: {}", creator())?;
    writeln!(out, "pid: {}\ncmd: {}\npart: 1", profile.target.pid, one_line(&profile.target.main))?;
    for remark in remarks(profile) {
        writeln!(out, "desc: Headwater: {}", one_line(&remark))?;
    }
    writeln!(out, "positions: line")?;
    for metric in &metrics {
        writeln!(out, "event: {} : {}", event(metric), titled(metric))?;
    }
    let names: Vec<String> = metrics.iter().map(event).collect();
    writeln!(out, "events: {}\nsummary: {whole}\n\nfl=(1) ???", names.join(" "))?;

    let mut names = Names { functions: &functions, parts, numbers: FxHashMap::default(), packages: vec![] };
    for (caller, cost) in &costs {
        let name = names.reference(*caller, "");
        write!(out, "\n{name}0 {}\n", cost.own.text(metrics.len()))?;
        for (callee, arc) in &cost.calls {
            let name = names.reference(*callee, "c");
            // Without a count, consumers take the next line for a cost of the caller's own.
            let calls = arc.calls.max(1);
            write!(out, "{name}calls={calls} 0\n0 {}\n", arc.inclusive.text(metrics.len()))?;
        }
    }
    writeln!(out, "\ntotals: {whole}")
}

/// The metrics that are events: all but calls, which have a place of their own.
fn events(profile: &Profile) -> Vec<Metric> {
    super::additive(profile).into_iter().filter(|metric| !metric.is_calls()).collect()
}

/// What each node has with all that it calls, of one metric after the other: consumers add that up, whether or not a metric is told so.
fn inclusive(part: &ExportedTree<'_>, metrics: &[Metric]) -> Vec<u64> {
    let (nodes, count) = (&part.tree.nodes, metrics.len());
    let mut all: Vec<u64> = (0..nodes.len()).flat_map(|index| own(part, metrics, index)).collect();
    for index in (0..nodes.len()).rev() {
        let Some(NodeIndex(caller)) = nodes[index].caller() else { continue };
        (0..count).for_each(|metric| all[caller * count + metric] += all[index * count + metric]);
    }
    all
}

/// What a node has itself.
fn own<'p>(part: &'p ExportedTree<'_>, metrics: &'p [Metric], index: usize) -> impl ExactSizeIterator<Item = u64> + 'p {
    metrics.iter().map(move |metric| part.amount(metric, NodeIndex(index)).own)
}

/// An event's name.
fn event(metric: &Metric) -> String {
    if metric.is_time() { "ns".to_owned() } else { super::identifier(metric) }
}

/// Its name for people: `Wall time (ns)`.
fn titled(metric: &Metric) -> String {
    let unit = match metric.unit {
        Unit::Nanoseconds => " (ns)",
        Unit::Bytes => " (bytes)",
        Unit::Count | Unit::Bytecodes | Unit::Share => "",
    };
    let mut letters = metric.title.chars();
    let first = letters.next().map(|first| first.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}{unit}", letters.as_str())
}

fn costs(parts: &[ExportedTree<'_>], functions: &Functions, metrics: &[Metric]) -> BTreeMap<Caller, Cost> {
    let mut costs: BTreeMap<Caller, Cost> = BTreeMap::new();
    for (number, part) in parts.iter().enumerate() {
        let nodes = &part.tree.nodes;
        let levels = functions.recursion_levels(part.tree);
        let all = inclusive(part, metrics);
        let caller = |index: usize| Caller::Level(functions.index_of(nodes[index].method), levels[index]);
        costs.entry(Caller::Top(number)).or_default();
        for (index, node) in nodes.iter().enumerate() {
            let callee = caller(index);
            costs.entry(callee).or_default().own.add(own(part, metrics, index));
            let above = node.caller().map_or(Caller::Top(number), |parent| caller(parent.0));
            let arc = costs.entry(above).or_default().calls.entry(callee).or_default();
            arc.calls += node.calls;
            arc.inclusive.add(all[index * metrics.len()..][..metrics.len()].iter().copied());
        }
    }
    costs
}

/// Names, each written once, and by its number from then on.
struct Names<'a> {
    functions: &'a Functions,
    parts: &'a [ExportedTree<'a>],
    numbers: FxHashMap<Caller, usize>,
    packages: Vec<&'a str>,
}

impl<'a> Names<'a> {
    /// The lines that name a function and its object, which is its package; with a prefix for callees.
    fn reference(&mut self, function: Caller, prefix: &str) -> String {
        let functions: &'a Functions = self.functions;
        let package = match function {
            Caller::Top(_) => "",
            Caller::Level(index, _) => functions.all[index.0].package.as_str(),
        };
        let object = match self.packages.iter().position(|known| *known == package) {
            Some(known) => format!("({})", known + 1),
            None => {
                self.packages.push(package);
                let name = if package.is_empty() { "???" } else { package };
                format!("({}) {name}", self.packages.len())
            }
        };
        let next = self.numbers.len() + 1;
        let number = *self.numbers.entry(function).or_insert(next);
        let name = if number == next { format!("({number}) {}", self.name(function)) } else { format!("({number})") };
        format!("{prefix}ob={object}\n{prefix}fn={name}\n")
    }

    fn name(&self, function: Caller) -> String {
        match function {
            Caller::Top(part) => one_line(&self.parts[part].title()),
            Caller::Level(index, 1) => with_class(&self.functions.all[index.0].label),
            Caller::Level(index, level) => format!("{}'{level}", with_class(&self.functions.all[index.0].label)),
        }
    }
}

/// KCachegrind groups functions by what comes before the `::` in their names.
fn with_class(label: &str) -> String {
    match method_start(label) {
        Some(start) => format!("{}::{}", &label[..start - 1], &label[start..]),
        None => label.to_owned(),
    }
}
