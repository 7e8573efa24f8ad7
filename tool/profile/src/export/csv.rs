//! Comma-separated values (RFC 4180): a header, then one row a node, parents before their children.

use std::io::{self, Write};

use serde::Serialize;

use super::ExportedTree;
use crate::profile::{Amount, Extent, Metric, NodeIndex, Profile};

/// What every profile has.
#[derive(Serialize)]
struct Row<'a> {
    id: usize,
    parent: Option<usize>,
    thread_id: Option<u64>,
    thread: Option<&'a str>,
    level: usize,
    name: &'a str,
    method: &'a str,
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
    cpu_samples: u32,
    cpu_share: Option<f64>,
    /// Calls may be missing.
    at_least: bool,
    /// So many of its callees never were instrumented.
    unseen_callees: usize,
}

const HEADINGS: &str = "id,parent,thread_id,thread,level,name,method";
const OF_RECORDINGS: &str = "calls,thrown,self_ns,total_ns,error_ns,total_error_ns,cpu_samples,cpu_share,at_least,\
                             unseen_callees";

/// A field of a metric: what comes behind its name, and where its value is.
type Field = (&'static str, fn(&Amount) -> u64);

fn fields(metric: &Metric) -> Vec<Field> {
    let mut fields: Vec<Field> = vec![("self", |amount| amount.own)];
    let has_total = metric.extent == Extent::OwnAndTotal;
    if has_total {
        fields.push(("total", |amount| amount.total));
    }
    if metric.is_uncertain {
        fields.push(("error", |amount| amount.own_error));
    }
    if metric.is_uncertain && has_total {
        fields.push(("total_error", |amount| amount.total_error));
    }
    fields
}

/// The metrics that have no fields of their own.
fn columns(profile: &Profile) -> Vec<Metric> {
    profile.metrics().into_iter().filter(Metric::is_column).collect()
}

fn headings(profile: &Profile, metrics: &[Metric]) -> Vec<String> {
    let of_metric = |metric: &Metric| {
        let name = format!("{}_", super::identifier(metric));
        let suffix = metric.unit.suffix();
        fields(metric).into_iter().map(|(part, _)| format!("{name}{part}{suffix}")).collect::<Vec<_>>()
    };
    let recorded = profile.imported.is_none().then(|| OF_RECORDINGS.split(',')).into_iter().flatten();
    HEADINGS.split(',').chain(recorded).map(str::to_owned).chain(metrics.iter().flat_map(of_metric)).collect()
}

pub(super) fn write(profile: &Profile, parts: &[ExportedTree<'_>], out: &mut impl Write) -> io::Result<()> {
    if parts.iter().all(|part| part.tree.nodes.is_empty()) {
        return write!(out, "{}\r\n", headings(profile, &columns(profile)).join(","));
    }
    let metrics = columns(profile);
    let mut writer = csv::WriterBuilder::new().terminator(csv::Terminator::CRLF).has_headers(false).from_writer(out);
    writer.write_record(headings(profile, &metrics))?;
    let unseen = profile.unseen_callees();
    let mut first = 0;
    for part in parts {
        let mut levels = Vec::with_capacity(part.tree.nodes.len());
        let incomplete = profile.incomplete_nodes(part.tree);
        for (index, node) in part.tree.nodes.iter().enumerate() {
            let level = node.parent.map_or(1, |parent| levels[parent.0] + 1);
            levels.push(level);
            let names = profile.method_of(node);
            let row = Row {
                id: first + index,
                parent: node.parent.map(|parent| first + parent.0),
                thread_id: part.thread.map(|thread| thread.id.0),
                thread: part.thread.map(|thread| thread.name.as_str()),
                level,
                name: &names.display,
                method: &names.machine,
            };
            let recorded = Recorded {
                calls: node.calls,
                thrown: node.thrown,
                self_ns: node.self_ns,
                total_ns: node.total_ns,
                error_ns: node.error_ns,
                total_error_ns: node.total_error_ns,
                cpu_samples: node.cpu.samples,
                cpu_share: node.cpu.share(),
                at_least: incomplete[index],
                unseen_callees: unseen.get(names.machine.as_str()).copied().unwrap_or(0),
            };
            let of_metric = |metric: &Metric| {
                let amount = part.amount(metric, NodeIndex(index));
                fields(metric).into_iter().map(move |(_, value)| value(&amount))
            };
            let values: Vec<u64> = metrics.iter().flat_map(of_metric).collect();
            match profile.imported {
                None => writer.serialize((row, recorded, values))?,
                Some(_) => writer.serialize((row, values))?,
            }
        }
        first += part.tree.nodes.len();
    }
    writer.flush()
}
