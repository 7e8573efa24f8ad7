//! The rows of each view.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};

use super::{is_false, is_zero, nanoseconds};
use crate::profile::parts::Parts;
use crate::profile::{
    Amount, Amounts, CpuSamples, Extent, Link, MethodStatistics, Metric, Node, NodeAmounts, NodeIndex, Profile,
    ThreadProfile, Tree,
};
use crate::report::Options;
use crate::report::arcs;
use crate::report::belief::Shares;
use crate::report::flat;
use crate::report::prune::shown_nodes;

/// The rows of the tree view, each made as it is written: there may be millions.
pub(super) struct NodeRows<'a> {
    pub(super) profile: &'a Profile,
    pub(super) options: &'a Options,
    pub(super) sections: Vec<(Option<&'a ThreadProfile>, Cow<'a, Tree>)>,
    pub(super) focused: Vec<bool>,
    pub(super) known: Known<'a>,
}

impl Serialize for NodeRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut rows = serializer.serialize_seq(None)?;
        let mut next = 0;
        for (thread, tree) in &self.sections {
            let thread = thread.map(|thread| thread.id.0);
            let shown = shown_nodes(self.profile, tree, &self.focused, self.options);
            let amounts = NodeAmounts::of(self.profile, tree);
            let mut ids: Vec<usize> = Vec::with_capacity(tree.nodes.len());
            for (index, is_shown) in shown.into_iter().enumerate() {
                ids.push(next);
                if is_shown {
                    let node = &tree.nodes[index];
                    let parent = node.parent.map(|NodeIndex(parent)| ids[parent]);
                    let amounts = amounts.at(NodeIndex(index));
                    rows.serialize_element(&NodeRow::of(&self.known, node, &amounts, next, parent, thread))?;
                    next += 1;
                }
            }
        }
        rows.end()
    }
}

/// What the rows of a profile can say.
pub(super) struct Known<'a> {
    profile: &'a Profile,
    /// [`Profile::unseen_callees`].
    unseen: FxHashMap<&'a str, usize>,
    /// Calls and times were recorded.
    has_calls: bool,
    /// Threads were seen running or waiting.
    has_cpu: bool,
    /// What is first where nobody says.
    first: Metric,
    /// Metrics that have no fields of their own.
    columns: Vec<Metric>,
    /// What self times divide into.
    parts: Option<Parts>,
    shares: Shares,
}

impl<'a> Known<'a> {
    /// Of a profile, with these metrics that follow from others.
    pub(super) fn of(profile: &'a Profile, derived: impl Iterator<Item = Metric>) -> Known<'a> {
        let columns = profile.metrics().into_iter().filter(Metric::is_column).chain(derived).collect();
        let (unseen, shares) = (profile.unseen_callees(), Shares::of(&profile.merged));
        let (has_calls, first, parts) = (profile.imported.is_none(), profile.time_metric(), Parts::of(profile));
        Known { profile, unseen, has_calls, has_cpu: profile.merged.has_cpu_samples(), first, columns, parts, shares }
    }

    fn unseen_callees(&self, method: &str) -> usize {
        self.unseen.get(method).copied().unwrap_or(0)
    }

    fn metrics(&self, amounts: &Amounts) -> BTreeMap<String, Value> {
        let value = |metric: &Metric| (metric.id.clone().into_owned(), Value::of(metric, metric.of(amounts)));
        self.columns.iter().map(value).collect()
    }

    /// Of a row's self time.
    fn parts(&self, amounts: &Amounts) -> BTreeMap<&'static str, u64> {
        let of = |parts: &Parts| parts.parts().map(|it| it.part).zip(parts.divide(amounts)).collect();
        self.parts.as_ref().map(of).unwrap_or_default()
    }
}

/// A metric's value in a row.
#[derive(Serialize)]
struct Value {
    #[serde(rename = "self")]
    own: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_error: Option<u64>,
}

impl Value {
    fn of(metric: &Metric, amount: Amount) -> Value {
        let has_total = metric.extent == Extent::OwnAndTotal;
        Value {
            own: amount.own,
            total: has_total.then_some(amount.total),
            error: metric.is_uncertain.then_some(amount.own_error),
            total_error: (metric.is_uncertain && has_total).then_some(amount.total_error),
        }
    }
}

/// Whether a time was spent running or waiting.
#[derive(Serialize)]
struct Cpu {
    cpu_samples: u32,
    /// Null without samples.
    cpu_share: Option<f64>,
}

impl Cpu {
    /// Nothing in a profile that has no samples at all.
    fn of(has_cpu: bool, samples: CpuSamples) -> Option<Cpu> {
        has_cpu.then(|| Cpu { cpu_samples: samples.samples, cpu_share: samples.share() })
    }
}

/// What recordings below roots have; other tools' profiles know nothing of it.
#[derive(Serialize)]
struct Recorded {
    calls: u64,
    thrown: u64,
    self_ns: u64,
    total_ns: u64,
    error_ns: u64,
    total_error_ns: u64,
    /// From where to where the total's share of the whole lies, 0 to 1, if no number of it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    share_range: Option<(f64, f64)>,
}

impl Recorded {
    fn of(known: &Known<'_>, amounts: &Amounts) -> Option<Recorded> {
        let Amounts { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, .. } = *amounts;
        let share_range = known.shares.range(total_ns, total_error_ns);
        known.has_calls.then_some(Recorded { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, share_range })
    }
}

/// The same of an arc, in arcflow's terms.
#[derive(Serialize)]
struct RecordedArc {
    calls: u64,
    thrown: u64,
    base_ns: u64,
    cum_ns: u64,
    base_error_ns: u64,
    cum_error_ns: u64,
}

/// A node of the tree view.
#[derive(Serialize)]
pub(super) struct NodeRow<'a> {
    id: usize,
    parent: Option<usize>,
    /// How it comes to be there, if its parent did not call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'static str>,
    method: &'a str,
    #[serde(flatten)]
    recorded: Option<Recorded>,
    /// Calls were recorded until then only.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    /// So many of its callees never were instrumented.
    #[serde(skip_serializing_if = "is_zero")]
    unseen_callees: usize,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    /// By their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<String, Value>,
    /// Of the self time, which they add up to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
}

impl<'a> NodeRow<'a> {
    pub(super) fn of(
        known: &Known<'a>,
        node: &Node,
        amounts: &Amounts,
        id: usize,
        parent: Option<usize>,
        thread: Option<u64>,
    ) -> NodeRow<'a> {
        NodeRow {
            id,
            parent,
            link: node.link.map(Link::name),
            method: &known.profile.method_of(node).machine,
            recorded: Recorded::of(known, amounts),
            until_ns: known.profile.recorded_until(node.method).map(nanoseconds),
            at_least: amounts.at_least,
            unseen_callees: known.unseen_callees(&known.profile.method_of(node).machine),
            cpu: Cpu::of(known.has_cpu, amounts.cpu),
            metrics: known.metrics(amounts),
            parts: known.parts(amounts),
            thread,
        }
    }
}

/// A method of the flat view.
#[derive(Serialize)]
pub(super) struct FlatRow<'a> {
    method: &'a str,
    #[serde(flatten)]
    recorded: Option<Recorded>,
    /// Calls were recorded until then only.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    /// So many of its callees never were instrumented.
    #[serde(skip_serializing_if = "is_zero")]
    unseen_callees: usize,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    /// By their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<String, Value>,
    /// Of the self time, which they add up to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
}

impl<'a> FlatRow<'a> {
    pub(super) fn of(known: &Known<'a>, row: flat::FlatRow, thread: Option<u64>) -> FlatRow<'a> {
        let (recorded, metrics) = (Recorded::of(known, &row.amounts), known.metrics(&row.amounts));
        let parts = known.parts(&row.amounts);
        let Amounts { cpu, at_least, .. } = row.amounts;
        let cpu = Cpu::of(known.has_cpu, cpu);
        let method = &known.profile.methods[row.method.0].machine;
        let until_ns = known.profile.any_recorded_until(method).map(nanoseconds);
        let unseen_callees = known.unseen_callees(method);
        FlatRow { method, recorded, until_ns, at_least, unseen_callees, cpu, metrics, parts, thread }
    }
}

/// A method of the callers view.
#[derive(Serialize)]
pub(super) struct Stanza<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
    parents: Vec<ArcRow<'a>>,
    #[serde(rename = "self")]
    own: ArcRow<'a>,
    children: Vec<ArcRow<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    /// So many of its callees never were instrumented.
    #[serde(skip_serializing_if = "is_zero")]
    unseen_callees: usize,
}

/// One caller or callee, or the method.
#[derive(Serialize)]
struct ArcRow<'a> {
    method: Option<&'a str>,
    #[serde(flatten)]
    recorded: Option<RecordedArc>,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    /// By their ids.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    metrics: BTreeMap<String, Value>,
    /// Of the self time, which they add up to.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    parts: BTreeMap<&'static str, u64>,
}

impl<'a> ArcRow<'a> {
    fn of(known: &Known<'a>, method: Option<&'a str>, amounts: &Amounts) -> ArcRow<'a> {
        let recorded = RecordedArc {
            calls: amounts.calls,
            thrown: amounts.thrown,
            base_ns: amounts.self_ns,
            cum_ns: amounts.total_ns,
            base_error_ns: amounts.error_ns,
            cum_error_ns: amounts.total_error_ns,
        };
        ArcRow {
            method,
            recorded: known.has_calls.then_some(recorded),
            at_least: amounts.at_least,
            cpu: Cpu::of(known.has_cpu, amounts.cpu),
            metrics: known.metrics(amounts),
            parts: known.parts(amounts),
        }
    }
}

impl<'a> Stanza<'a> {
    pub(super) fn of(known: &Known<'a>, stanza: &arcs::Stanza, thread: Option<u64>) -> Stanza<'a> {
        let profile = known.profile;
        let name = |arc: &arcs::Arc| arc.method.map(|method| profile.methods[method.0].machine.as_str());
        let side = |arcs: &[arcs::Arc]| {
            let mut arcs: Vec<&arcs::Arc> = arcs.iter().collect();
            arcs.sort_by_key(|arc| (std::cmp::Reverse(known.first.of(&arc.amounts).total), name(arc)));
            arcs.into_iter().map(|arc| ArcRow::of(known, name(arc), &arc.amounts)).collect()
        };
        Stanza {
            thread,
            parents: side(&stanza.parents),
            own: ArcRow::of(known, Some(&profile.methods[stanza.method.0].machine), &stanza.own),
            children: side(&stanza.children),
            until_ns: profile.any_recorded_until(&profile.methods[stanza.method.0].machine).map(nanoseconds),
            at_least: stanza.own.at_least,
            unseen_callees: known.unseen_callees(&profile.methods[stanza.method.0].machine),
        }
    }
}

/// How a method's invocations spread.
#[derive(Serialize)]
pub(super) struct Statistics<'a> {
    method: &'a str,
    count: u64,
    total_ns: u64,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    sd_ns: f64,
    p50_ns: u64,
    p90_ns: u64,
    p99_ns: u64,
}

impl<'a> Statistics<'a> {
    pub(super) fn of(profile: &'a Profile, statistics: &MethodStatistics) -> Statistics<'a> {
        let MethodStatistics { method, count, total_ns, min_ns, max_ns, mean_ns, sd_ns, p50_ns, p90_ns, p99_ns } =
            *statistics;
        let method = &profile.methods[method.0].machine;
        Statistics { method, count, total_ns, min_ns, max_ns, mean_ns, sd_ns, p50_ns, p90_ns, p99_ns }
    }
}
