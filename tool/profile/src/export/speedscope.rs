//! speedscope: an evented profile a tree and metric, by its `file-format-schema.json`.
//!
//! Calls of one context lie side by side as one: a node opens, has its self time, then its callees' times, and closes.

use std::io::{self, Write};

use serde::{Serialize, Serializer};

use super::functions::Functions;
use super::{ExportedTree, creator, shortcomings, title};
use crate::profile::walk::{Children, Step};
use crate::profile::{Metric, Profile, Unit};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: String,
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Evented<'a>>,
    /// Those of the profiles, each of which has one for each tree: for [`import`](crate::import), which has no other way to know them.
    metrics: Vec<Named<'a>>,
}

#[derive(Serialize)]
struct Named<'a> {
    id: &'a str,
    title: &'a str,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Evented<'a> {
    r#type: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    events: Events<'a>,
}

#[derive(Serialize)]
struct Event {
    r#type: char,
    frame: usize,
    at: u64,
}

/// A tree's events, made as they are written.
struct Events<'a> {
    part: &'a ExportedTree<'a>,
    metric: &'a Metric,
    functions: &'a Functions,
}

impl Serialize for Events<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut now = 0;
        let nodes = &self.part.tree.nodes;
        serializer.collect_seq(Children::of(self.part.tree).depth_first().map(|step| {
            let (r#type, index) = match step {
                Step::Enter(index) => ('O', index),
                Step::Leave(index) => ('C', index),
            };
            let node = &nodes[index.0];
            let at = now;
            if r#type == 'O' {
                now += self.part.amount(self.metric, index).own;
            }
            Event { r#type, frame: self.functions.index_of(node.method).0, at }
        }))
    }
}

pub(super) fn write(
    profile: &Profile,
    metrics: &[Metric],
    parts: &[ExportedTree<'_>],
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: creator(),
        name: [title(profile)].into_iter().chain(shortcomings(profile)).collect::<Vec<_>>().join("; "),
        active_profile_index: 0,
        shared: Shared { frames: functions.all.iter().map(|function| Frame { name: &function.label }).collect() },
        profiles: metrics
            .iter()
            .flat_map(|metric| parts.iter().map(move |part| (metric, part)))
            .map(|(metric, part)| Evented {
                r#type: "evented",
                name: match metric.is_time() {
                    true => part.title(),
                    false => format!("{}: {}", part.title(), metric.title),
                },
                unit: match metric.unit {
                    Unit::Nanoseconds => "nanoseconds",
                    Unit::Bytes => "bytes",
                    Unit::Count | Unit::Bytecodes | Unit::Share => "none",
                },
                start_value: 0,
                end_value: part.whole(metric),
                events: Events { part, metric, functions: &functions },
            })
            .collect(),
        metrics: metrics.iter().map(|metric| Named { id: &metric.id, title: &metric.title }).collect(),
    };
    serde_json::to_writer(&mut *out, &file)?;
    writeln!(out)
}
