//! What is known of each node of a tree: metrics, and the columns that hold them.
//!
//! Views, exports, comparisons and snapshots go over [`Profile::metrics`] and know none by its name. How one is added: docs/ARCHITECTURE.md.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::column::Errors;
use super::{Amount, Column, Node, Span};

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

/// A share of one, in the numbers that metrics have: millionths.
pub(crate) const ONE: u64 = 1_000_000;

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
    pub(super) source: Source,
}

/// Where the values of a metric are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Source {
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

    pub(super) fn at(self, source: Source) -> Metric {
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

/// How the first of two metrics is to be taken that are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum How {
    /// As it is.
    Each,
    /// As a part of the second, which may be less: what was waited is as it was recorded, and time as it is without the profile.
    Part,
    /// What it leaves of the second.
    Rest,
}

/// A metric divided by another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ratio {
    pub(crate) of: Metric,
    pub(crate) by: Metric,
    /// How the first is to be taken.
    pub(crate) how: How,
    /// What a quotient of one is written as.
    pub(crate) one: u64,
}

impl Ratio {
    /// Of something that has these of the two.
    pub(super) fn divide(&self, value: &dyn Fn(&Metric) -> Amount) -> Amount {
        let (of, by) = (self.of.over(value), self.by.over(value));
        let (own, own_error) = self.quotient((of.own, of.own_error), (by.own, by.own_error));
        let (total, total_error) = self.quotient((of.total, of.total_error), (by.total, by.total_error));
        Amount { own, total, own_error, total_error }
    }

    /// With its uncertainty. Nothing of what the second has nothing of.
    pub(super) fn quotient(&self, (of, of_error): (u64, u64), (by, by_error): (u64, u64)) -> (u64, u64) {
        if by == 0 {
            return (0, 0);
        }
        // By as much as a part is more than the whole, one of the two is wrong.
        let (of, excess) = match self.how {
            How::Each => (of, 0),
            How::Part => (of.min(by), of.saturating_sub(by)),
            How::Rest => (by.saturating_sub(of), 0),
        };
        let part = |value: u64| {
            let quotient = u128::from(value) * u128::from(self.one) / u128::from(by);
            u64::try_from(quotient).unwrap_or(u64::MAX)
        };
        let error = match by_error {
            0 => of_error,
            _ => (of_error as f64).hypot(of as f64 / by as f64 * by_error as f64).round() as u64,
        };
        let error = error.max(excess);
        (part(of), part(error))
    }
}
