//! The comparison as one JSON object, schema `headwater-diff/1`; docs/REFERENCE.md describes it field by field.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::condition::{Condition, Judgement, Judgements, Verdict};
use super::rows::Presence;
use super::{Change, Comparison, Pair, Per, Run};
use crate::profile::{Extent, Link, Metric, Part, Quantity};
use crate::report::json::is_false;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    before: Side<'a>,
    after: Side<'a>,
    per: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Time>,
    /// What rows have.
    metrics: &'a [Metric],
    #[serde(flatten)]
    rows: Option<Rows<'a>>,
    times_known: bool,
    warnings: Vec<String>,
    notes: Vec<String>,
    conditions: Vec<ConditionRow>,
    failed: bool,
}

#[derive(Serialize)]
struct Rows<'a> {
    methods: Vec<MethodRow<'a>>,
    nodes: Vec<NodeRow<'a>>,
}

/// The first of its runs, and all.
#[derive(Serialize)]
struct Side<'a> {
    #[serde(flatten)]
    first: File<'a>,
    files: Vec<File<'a>>,
}

#[derive(Serialize)]
struct File<'a> {
    file: &'a str,
    main: &'a str,
    pid: u32,
    jdk: &'a str,
    host: &'a str,
    started: Option<String>,
    duration_ns: u64,
    root_calls: u64,
}

#[derive(Serialize)]
struct MethodRow<'a> {
    method: &'a str,
    presence: &'static str,
    #[serde(rename = "self", skip_serializing_if = "Option::is_none")]
    own: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<Count>,
    /// By their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<String, Parts>,
}

/// A metric of a method itself, and with what it calls.
#[derive(Serialize)]
struct Parts {
    #[serde(rename = "self")]
    own: Count,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<Count>,
}

#[derive(Serialize)]
struct NodeRow<'a> {
    id: usize,
    parent: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'static str>,
    #[serde(flatten)]
    row: MethodRow<'a>,
}

#[derive(Serialize)]
struct Time {
    before_ns: f64,
    after_ns: f64,
    change_ns: f64,
    /// Null, as the next two, if times are not known: JSON has no infinity.
    error_ns: f64,
    before_error_ns: f64,
    after_error_ns: f64,
    relative: Option<f64>,
    changed: bool,
}

#[derive(Serialize)]
struct Count {
    before: f64,
    after: f64,
    change: f64,
    error: f64,
    before_error: f64,
    after_error: f64,
    relative: Option<f64>,
    changed: bool,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    before_at_least: bool,
    #[serde(skip_serializing_if = "is_false")]
    after_at_least: bool,
}

#[derive(Serialize)]
struct ConditionRow {
    condition: String,
    verdict: &'static str,
    failed: bool,
    before: f64,
    after: f64,
    change: f64,
    error: f64,
    relative: Option<f64>,
}

/// Writes the object and a line feed: every method and every node, changed or not.
pub fn write(comparison: &Comparison<'_>, judgements: Judgements<'_>, out: &mut impl Write) -> io::Result<()> {
    let parts = |metric: &Metric, pair: Pair<'_>| {
        let of = |part| count(&comparison.change(pair, &Quantity::of(&metric.id, part)));
        let total = (metric.extent == Extent::OwnAndTotal).then(|| of(Part::Total));
        (metric.id.clone().into_owned(), Parts { own: of(Part::Own), total })
    };
    let row = |name: usize, pair: Pair<'_>| MethodRow {
        method: &comparison.names[name].machine,
        presence: match pair.presence() {
            Presence::Added => "added",
            Presence::Removed => "removed",
            Presence::Both | Presence::Never => "both",
        },
        own: time(comparison, pair, &Quantity::SELF_TIME),
        total: time(comparison, pair, &Quantity::TOTAL),
        calls: comparison.metric(&Quantity::CALLS).map(|_| count(&comparison.change(pair, &Quantity::CALLS))),
        metrics: comparison
            .metrics
            .iter()
            .filter(|metric| !metric.is_time() && !metric.is_calls())
            .map(|metric| parts(metric, pair))
            .collect(),
    };
    let nodes = comparison.nodes.iter().enumerate();
    let rows = Rows {
        methods: comparison.methods().map(|(name, pair)| row(name, pair)).collect(),
        nodes: nodes
            .map(|(id, node)| NodeRow {
                id,
                parent: node.parent,
                link: node.link.map(Link::name),
                row: row(node.name, comparison.node(id)),
            })
            .collect(),
    };
    serde_json::to_writer(&mut *out, &report(comparison, judgements, Some(rows)))?;
    writeln!(out)
}

/// The object without its methods and nodes.
pub(crate) fn facts<'a>(comparison: &'a Comparison<'a>, judgements: Judgements<'a>) -> impl Serialize + use<'a> {
    report(comparison, judgements, None)
}

fn report<'a>(comparison: &'a Comparison<'_>, judgements: Judgements<'a>, rows: Option<Rows<'a>>) -> Report<'a> {
    Report {
        schema: "headwater-diff/1",
        before: side(&comparison.before),
        after: side(&comparison.after),
        per: match comparison.per {
            Per::RootCall => "root-call",
            Per::Run => "run",
        },
        total: time(comparison, comparison.whole(), &Quantity::TOTAL),
        metrics: &comparison.metrics,
        rows,
        times_known: comparison.knows_times(),
        warnings: comparison.warnings(),
        notes: comparison.notes(),
        conditions: judgements.iter().map(|(condition, judgement)| judged(condition, judgement)).collect(),
        failed: judgements.iter().any(|(_, judgement)| judgement.verdict.is_failure()),
    }
}

fn side<'a>(runs: &[Run<'a>]) -> Side<'a> {
    Side { first: file(&runs[0]), files: runs.iter().map(file).collect() }
}

fn file<'a>(run: &Run<'a>) -> File<'a> {
    let Run { file, profile } = *run;
    File {
        file,
        main: &profile.target.main,
        pid: profile.target.pid,
        jdk: &profile.target.jdk,
        host: &profile.environment.host,
        started: profile.environment.started(),
        duration_ns: u64::try_from(profile.duration.as_nanos()).unwrap_or(u64::MAX),
        root_calls: profile.root_calls(),
    }
}

/// JSON has no infinity: what was nothing before has no relative change.
fn relative(change: &Change) -> Option<f64> {
    Some(change.relative()).filter(|relative| relative.is_finite())
}

/// What other tools' profiles have first need be no time.
fn time(comparison: &Comparison<'_>, pair: Pair<'_>, quantity: &Quantity) -> Option<Time> {
    comparison.metric(quantity).filter(|metric| metric.is_time())?;
    let change = comparison.change(pair, quantity);
    Some(Time {
        before_ns: change.before,
        after_ns: change.after,
        change_ns: change.change(),
        error_ns: change.error,
        before_error_ns: change.errors[0],
        after_error_ns: change.errors[1],
        relative: relative(&change),
        changed: change.is_real(),
    })
}

fn count(change: &Change) -> Count {
    Count {
        before: change.before,
        after: change.after,
        change: change.change(),
        error: change.error,
        before_error: change.errors[0],
        after_error: change.errors[1],
        relative: relative(change),
        changed: change.is_real(),
        before_at_least: change.at_least[0],
        after_at_least: change.at_least[1],
    }
}

fn judged(condition: &Condition, judgement: &Judgement) -> ConditionRow {
    let Judgement { change, verdict } = judgement;
    ConditionRow {
        condition: condition.to_string(),
        verdict: match verdict {
            Verdict::Passed => "passed",
            Verdict::Uncertain => "uncertain",
            Verdict::Failed => "failed",
            Verdict::NothingMatched => "nothing matched",
            Verdict::NoSuchMetric => "no such metric",
        },
        failed: verdict.is_failure(),
        before: change.before,
        after: change.after,
        change: change.change(),
        error: change.error,
        relative: relative(change),
    }
}
