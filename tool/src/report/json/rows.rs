//! The rows of each view.

use serde::Serialize;

use super::{is_false, nanoseconds};
use crate::profile::{CpuSamples, Link, MethodStatistics, Node, Profile};
use crate::report::arcs;
use crate::report::flat::{self, Amounts};

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

/// A node of the tree view.
#[derive(Serialize)]
pub(super) struct NodeRow<'a> {
    id: usize,
    parent: Option<usize>,
    /// How it comes to be there, if its parent did not call it.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<&'static str>,
    method: &'a str,
    calls: u64,
    thrown: u64,
    self_ns: u64,
    total_ns: u64,
    error_ns: u64,
    total_error_ns: u64,
    /// Calls were recorded until then only.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
}

impl<'a> NodeRow<'a> {
    pub(super) fn of(
        profile: &'a Profile,
        node: &Node,
        id: usize,
        parent: Option<usize>,
        thread: Option<u64>,
        has_cpu: bool,
        at_least: bool,
    ) -> NodeRow<'a> {
        NodeRow {
            id,
            parent,
            link: node.link.map(Link::name),
            method: &profile.method_of(node).machine,
            calls: node.calls,
            thrown: node.thrown,
            self_ns: node.self_ns,
            total_ns: node.total_ns,
            error_ns: node.error_ns,
            total_error_ns: node.total_error_ns,
            until_ns: profile.recorded_until(node.method).map(nanoseconds),
            at_least,
            cpu: Cpu::of(has_cpu, node.cpu),
            thread,
        }
    }
}

/// A method of the flat view.
#[derive(Serialize)]
pub(super) struct FlatRow<'a> {
    method: &'a str,
    calls: u64,
    thrown: u64,
    self_ns: u64,
    total_ns: u64,
    error_ns: u64,
    total_error_ns: u64,
    /// Calls were recorded until then only.
    #[serde(skip_serializing_if = "Option::is_none")]
    until_ns: Option<u64>,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    #[serde(flatten)]
    cpu: Option<Cpu>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
}

impl<'a> FlatRow<'a> {
    pub(super) fn of(profile: &'a Profile, row: &flat::FlatRow, thread: Option<u64>, has_cpu: bool) -> FlatRow<'a> {
        let Amounts { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu, at_least } = row.amounts;
        let cpu = Cpu::of(has_cpu, cpu);
        let method = &profile.methods[row.method.0].machine;
        let until_ns = profile.any_recorded_until(method).map(nanoseconds);
        FlatRow { method, calls, thrown, self_ns, total_ns, error_ns, total_error_ns, until_ns, at_least, cpu, thread }
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
}

/// In arcflow's terms.
#[derive(Serialize)]
struct ArcRow<'a> {
    method: Option<&'a str>,
    calls: u64,
    thrown: u64,
    base_ns: u64,
    cum_ns: u64,
    base_error_ns: u64,
    cum_error_ns: u64,
    /// Calls may be missing.
    #[serde(skip_serializing_if = "is_false")]
    at_least: bool,
    #[serde(flatten)]
    cpu: Option<Cpu>,
}

impl<'a> ArcRow<'a> {
    fn of(has_cpu: bool, method: Option<&'a str>, amounts: &Amounts) -> ArcRow<'a> {
        ArcRow {
            method,
            calls: amounts.calls,
            thrown: amounts.thrown,
            base_ns: amounts.self_ns,
            cum_ns: amounts.total_ns,
            base_error_ns: amounts.error_ns,
            cum_error_ns: amounts.total_error_ns,
            at_least: amounts.at_least,
            cpu: Cpu::of(has_cpu, amounts.cpu),
        }
    }
}

impl<'a> Stanza<'a> {
    pub(super) fn of(profile: &'a Profile, stanza: &arcs::Stanza, thread: Option<u64>, has_cpu: bool) -> Stanza<'a> {
        let name = |arc: &arcs::Arc| arc.method.map(|method| profile.methods[method.0].machine.as_str());
        let side = |arcs: &[arcs::Arc]| {
            let mut rows: Vec<ArcRow<'a>> =
                arcs.iter().map(|arc| ArcRow::of(has_cpu, name(arc), &arc.amounts)).collect();
            rows.sort_by_key(|row| (std::cmp::Reverse(row.cum_ns), row.method));
            rows
        };
        Stanza {
            thread,
            parents: side(&stanza.parents),
            own: ArcRow::of(has_cpu, Some(&profile.methods[stanza.method.0].machine), &stanza.own),
            children: side(&stanza.children),
            until_ns: profile.any_recorded_until(&profile.methods[stanza.method.0].machine).map(nanoseconds),
            at_least: stanza.own.at_least,
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
