//! What is known of each node of a tree: metrics, and the columns that hold them.
//!
//! Views, exports, comparisons and snapshots go over [`Profile::metrics`] and know none by its name. How one is added: docs/ARCHITECTURE.md.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::column::{Errors, cpu_time};
use super::derived::{ONE, Ratio, derived};
use super::{ClockMode, Column, Columns, Node, NodeIndex, Profile, Span, Tree};
use crate::profile::Amounts;

/// Id of the metric of bytes that were allocated, whoever tells of them.
pub const ALLOCATED: &str = "alloc";
/// Id of the metric of self time that no wait is known of, where waits are counted.
pub const RUNNING: &str = "running";
/// Id of the metric of time in which threads could have run, and had no processor.
pub const READY: &str = "ready";
/// Id of the metric of self time in which the JVM was stopped for collections.
pub const STOPPED: &str = "stopped";
/// Id of the metric of self time in which threads were seen waiting, and nothing tells in what.
pub const OTHER_WAITS: &str = "other-waits";

/// What a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// Things.
    Count,
    /// Time.
    Nanoseconds,
    /// Memory.
    Bytes,
    /// Work.
    Bytecodes,
    /// A quotient, in millionths. No file has it: such metrics follow from others.
    Share,
}

impl Unit {
    /// As formats for machines have it.
    pub fn name(self) -> &'static str {
        match self {
            Unit::Count => "count",
            Unit::Nanoseconds => "nanoseconds",
            Unit::Bytes => "bytes",
            Unit::Bytecodes => "bytecodes",
            // As people write it: no format has one.
            Unit::Share => "per cent",
        }
    }

    /// What a quotient or number of one is written as.
    pub fn one(self) -> f64 {
        if self == Unit::Share { ONE as f64 } else { 1.0 }
    }

    /// In what limits of it are given.
    pub fn of_limits(self) -> Unit {
        if self == Unit::Bytecodes { Unit::Count } else { self }
    }

    /// What names of fields end in: `self_ns`, `self_bytes`.
    pub fn suffix(self) -> &'static str {
        match self {
            Unit::Count => "",
            Unit::Nanoseconds => "_ns",
            Unit::Bytes => "_bytes",
            Unit::Bytecodes => "_bytecodes",
            Unit::Share => "_millionths",
        }
    }
}

/// Of what a metric can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Of a method itself.
    Own,
    /// Also of it with what it calls.
    OwnAndTotal,
}

/// What is counted or measured at each node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metric {
    /// Its name for machines, of lower-case letters, digits and hyphens: `wall`.
    pub id: Cow<'static, str>,
    /// Its name for people: `wall time`.
    pub title: Cow<'static, str>,
    /// What it counts.
    pub unit: Unit,
    /// Of what it can be told.
    pub extent: Extent,
    /// Whether nodes' values add up to their method's, and threads' to the program's.
    pub is_additive: bool,
    /// Whether each value has an uncertainty.
    pub is_uncertain: bool,
    /// Of one by samples, what each stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grain: Option<u64>,
    /// What it means, in one sentence.
    pub about: Cow<'static, str>,
    /// When it was counted, if not all the time: it was switched on or off while the profile was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spans: Vec<Span>,
    /// Where its values are.
    #[serde(skip)]
    source: Source,
}

/// Where the values of a metric are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Source {
    Calls,
    Thrown,
    Time,
    /// Among [`Profile::columns`] of a tree.
    #[default]
    Unknown,
    Column(usize),
    /// They follow from those of others.
    Ratio(Box<Ratio>),
}

/// A value of a metric, of one method or node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// The method's own.
    pub own: u64,
    /// With what it calls.
    pub total: u64,
    /// Uncertainty of `own`: a standard deviation.
    pub own_error: u64,
    /// Uncertainty of `total`, at most.
    pub total_error: u64,
}

impl Amount {
    /// Adds another's.
    pub fn add(&mut self, other: Amount) {
        self.add_own(other);
        self.add_total(other);
    }

    /// Adds what another has itself.
    pub(crate) fn add_own(&mut self, other: Amount) {
        add_up!(self += other: own, own_error);
    }

    /// Adds what another has with what it calls.
    pub(crate) fn add_total(&mut self, other: Amount) {
        add_up!(self += other: total, total_error);
    }
}

impl Metric {
    /// A metric whose values are in trees' columns.
    pub fn counted(id: &'static str, title: &'static str, unit: Unit, extent: Extent, about: &'static str) -> Metric {
        Metric::told(id.into(), title.into(), unit, extent, about.into())
    }

    /// A metric of another tool's, whose values are in trees' columns.
    pub(crate) fn imported(id: String, title: String, unit: Unit, extent: Extent) -> Metric {
        let about = format!("What the file calls {title}.");
        Metric::told(id.into(), title.into(), unit, extent, about.into())
    }

    fn told(
        id: Cow<'static, str>,
        title: Cow<'static, str>,
        unit: Unit,
        extent: Extent,
        about: Cow<'static, str>,
    ) -> Metric {
        Metric {
            id,
            title,
            unit,
            extent,
            is_additive: true,
            is_uncertain: false,
            grain: None,
            about,
            spans: Vec::new(),
            source: Source::Unknown,
        }
    }

    /// The same, of which each value has an uncertainty.
    pub fn uncertain(self) -> Metric {
        Metric { is_uncertain: true, ..self }
    }

    /// The same by samples, each of which stands for so much.
    pub fn sampled(self, grain: u64) -> Metric {
        Metric { grain: Some(grain), ..self.uncertain() }
    }

    /// The same, counted at these times alone.
    pub fn during(self, spans: Vec<Span>) -> Metric {
        Metric { spans, ..self }
    }

    /// Whether it was counted in a part of the recording alone: nothing is to be divided by what all of it has.
    pub fn is_of_part(&self) -> bool {
        !self.spans.is_empty()
    }

    fn at(self, source: Source) -> Metric {
        Metric { source, ..self }
    }

    /// One that follows from others.
    pub(super) fn ratio(id: String, title: String, unit: Unit, about: String, ratio: Ratio) -> Metric {
        let (extent, is_uncertain) = (ratio.of.extent, ratio.of.is_uncertain || ratio.by.is_uncertain);
        let (id, title, about) = (id.into(), title.into(), about.into());
        let source = Source::Ratio(ratio.into());
        Metric { source, is_additive: false, is_uncertain, ..Metric::told(id, title, unit, extent, about) }
    }

    /// Its value, of something that has these of the metrics that add up.
    pub fn over(&self, value: &dyn Fn(&Metric) -> Amount) -> Amount {
        match &self.source {
            Source::Ratio(ratio) => ratio.divide(value),
            _ => value(self),
        }
    }

    /// Its value, of all that is known of a method or node.
    pub fn of(&self, amounts: &Amounts) -> Amount {
        let exactly = |own| Amount { own, total: own, own_error: 0, total_error: 0 };
        match &self.source {
            Source::Calls => exactly(amounts.calls),
            Source::Thrown => exactly(amounts.thrown),
            Source::Time => Amount {
                own: amounts.self_ns,
                total: amounts.total_ns,
                own_error: amounts.error_ns,
                total_error: amounts.total_error_ns,
            },
            Source::Column(at) => amounts.columns.get(*at).copied().unwrap_or_default(),
            Source::Ratio(ratio) => ratio.divide(&|metric| metric.of(amounts)),
            Source::Unknown => Amount::default(),
        }
    }

    /// Its value at a node of a tree with these columns.
    pub fn at_node(&self, tree: &Tree, columns: &Columns<'_>, index: NodeIndex) -> Amount {
        match &self.source {
            Source::Column(at) => columns.get(*at).map(|column| column.at(index)).unwrap_or_default(),
            Source::Ratio(ratio) => ratio.divide(&|metric| metric.at_node(tree, columns, index)),
            _ => self.of(&Amounts::of(&tree.nodes[index.0], false)),
        }
    }

    /// Its value at each node of a tree with these columns.
    pub fn values(&self, tree: &Tree, columns: &Columns<'_>) -> Vec<Amount> {
        (0..tree.nodes.len()).map(|index| self.at_node(tree, columns, NodeIndex(index))).collect()
    }

    /// Its value of a whole tree with these columns.
    pub fn whole(&self, tree: &Tree, columns: &Columns<'_>) -> u64 {
        self.over(&|metric| metric.sum_of(tree, columns)).total
    }

    /// Of one that adds up, what a whole tree has: in its roots, or, of one without totals, in all nodes.
    fn sum_of(&self, tree: &Tree, columns: &Columns<'_>) -> Amount {
        let nodes = tree.nodes.iter().enumerate();
        let values = nodes.map(|(index, node)| (node, self.at_node(tree, columns, NodeIndex(index))));
        let whole = match self.extent {
            Extent::Own => values.map(|(_, amount)| amount.own).sum(),
            Extent::OwnAndTotal => {
                values.filter(|(node, _)| node.caller().is_none()).map(|(_, amount)| amount.total).sum()
            }
        };
        Amount { own: whole, total: whole, ..Amount::default() }
    }

    /// Whether it is what [`Node`] calls its time.
    pub fn is_time(&self) -> bool {
        self.source == Source::Time
    }

    /// Whether it rests on [`Node`]'s time, and is no better known than that.
    pub fn is_of_time(&self) -> bool {
        match &self.source {
            Source::Ratio(ratio) => ratio.of.is_time() || ratio.by.is_time(),
            _ => self.is_time(),
        }
    }

    /// Of one that is so much a call: of what.
    pub fn per_call(&self) -> Option<&Metric> {
        self.quotient().filter(|ratio| ratio.by.is_calls()).map(|ratio| &ratio.of)
    }

    /// From what it follows, if from others.
    pub(crate) fn quotient(&self) -> Option<&Ratio> {
        match &self.source {
            Source::Ratio(ratio) => Some(ratio),
            _ => None,
        }
    }

    /// Whether it counts calls: what its fields in formats for machines are called is older than other metrics are.
    pub fn is_calls(&self) -> bool {
        self.source == Source::Calls
    }

    /// Its column of a tree, of what each node has itself, and the uncertainty of that.
    pub(crate) fn column_of(&self, nodes: &[Node], own: impl IntoIterator<Item = (u64, u64)>) -> Column {
        let errors = match self.grain {
            Some(grain) => Errors::OfSamples(grain),
            // What no clock has measured, and is uncertain, is a part of what one has.
            None if self.is_uncertain && self.unit == Unit::Nanoseconds => Errors::OfTime,
            None => Errors::Added,
        };
        Column::with(errors, nodes, own)
    }

    /// Whether its values are in columns, and not in fields of their own.
    pub fn is_column(&self) -> bool {
        self.column().is_some()
    }

    /// In which of the columns they are.
    pub fn column(&self) -> Option<usize> {
        match &self.source {
            Source::Column(at) => Some(*at),
            _ => None,
        }
    }
}

impl Profile {
    /// What is known of each node: time first, then calls, then what else there is.
    pub fn metrics(&self) -> Vec<Metric> {
        use Extent::{Own, OwnAndTotal};
        const NS: Unit = Unit::Nanoseconds;
        let time = match self.clock.mode {
            ClockMode::Cpu => {
                Metric::counted("cpu", "CPU time", NS, OwnAndTotal, "Time in which the thread had a processor.")
            }
            ClockMode::Exact | ClockMode::Tick(_) => Metric::counted(
                "wall",
                "wall time",
                NS,
                OwnAndTotal,
                "Time that passed, without the profiler's own cost.",
            ),
        };
        let in_column = |(at, metric): (usize, Metric)| metric.at(Source::Column(at));
        if self.imported.is_some() {
            return self.counted.iter().cloned().enumerate().map(in_column).collect();
        }
        let mut metrics = vec![
            time.uncertain().at(Source::Time),
            Metric::counted("calls", "calls", Unit::Count, Own, "How often the method was entered.").at(Source::Calls),
            Metric::counted("thrown", "exceptions", Unit::Count, Own, "How often an exception left the method.")
                .at(Source::Thrown),
        ];
        let mut columns = Vec::new();
        if self.has_sampled_cpu() {
            let about = "Time in which the thread ran or could have, by samples of its state.";
            columns.push(Metric::counted("cpu", "CPU time", NS, OwnAndTotal, about).uncertain());
        }
        columns.extend(self.counted.iter().cloned());
        metrics.extend(columns.into_iter().enumerate().map(in_column));
        metrics
    }

    /// What follows from the metrics: quotients of them, which do not add up.
    pub fn derived(&self) -> Vec<Metric> {
        derived(&self.metrics())
    }

    /// A metric by its id, be it one of its own or one that follows from others.
    pub fn metric(&self, id: &str) -> Option<Metric> {
        let metrics = self.metrics();
        let found = metrics.iter().find(|metric| metric.id == id).cloned();
        found.or_else(|| derived(&metrics).into_iter().find(|metric| metric.id == id))
    }

    /// The metric that is first where nobody says.
    pub fn time_metric(&self) -> Metric {
        self.metrics().swap_remove(0)
    }

    /// Columns of a tree of this profile.
    pub fn columns<'a>(&self, tree: &'a Tree) -> Columns<'a> {
        let cpu = self.has_sampled_cpu().then(|| Cow::Owned(cpu_time(tree)));
        let counted = (0..self.counted.len()).map(|at| match tree.counted.get(at) {
            Some(column) => Cow::Borrowed(column),
            None => Cow::Owned(Column::of(&tree.nodes, [])),
        });
        cpu.into_iter().chain(counted).collect()
    }

    /// Whether threads' states were sampled beside a wall clock.
    fn has_sampled_cpu(&self) -> bool {
        self.clock.mode != ClockMode::Cpu && self.merged.has_cpu_samples()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile_of, random_tree};

    #[test]
    fn ids_are_fit_for_names_of_fields_and_each_metric_has_its_own() {
        let mut profile = profile_of(random_tree(3, 100, 5), Vec::new(), 5);
        profile.counted = vec![Metric::counted("made-up", "made up", Unit::Bytes, Extent::OwnAndTotal, "Nothing.")];
        let metrics = profile.metrics();
        let mut ids: Vec<&str> = metrics.iter().map(|metric| &*metric.id).collect();
        assert_eq!(ids, ["wall", "calls", "thrown", "cpu", "made-up"]);
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(ids.iter().all(|id| id.chars().all(is_fit)));
        ids.dedup();
        assert_eq!(ids.len(), metrics.len());
    }
}
