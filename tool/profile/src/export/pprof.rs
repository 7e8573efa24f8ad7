//! pprof: `profile.proto` of github.com/google/pprof, gzipped.
//!
//! Every node is a sample with two values: its calls, and its self time, which is the default. With a tree a thread, samples carry
//! the labels `thread` and `thread_id`. A sample whose calls may be missing has the label `calls`, `at least`; one of whose time only a
//! bound is known has that as `time_at_most`.

use std::io::{self, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use super::functions::Functions;
use super::{ExportedTree, remarks, signed, walk};
use crate::pprof as schema;
use crate::profile::{Metric, Profile, ThreadProfile};
use crate::report::is_doubtful;

/// Samples are encoded in groups: any cut of a message's repeated fields, one after the other, is that message. What they are of comes first, by which a
/// file is known.
const GROUP: usize = 4096;

pub(super) fn write(
    profile: &Profile,
    lead: &Metric,
    parts: &[ExportedTree<'_>],
    started: Option<SystemTime>,
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let mut metrics = super::additive(profile);
    // Calls come before time, as in other profilers' files.
    if metrics.len() > 1 && metrics[1].is_calls() {
        metrics.swap(0, 1);
    }
    let mut strings = Strings::default();
    let mut out = GzEncoder::new(out, Compression::default());

    let kind = |metric: &Metric, strings: &mut Strings| schema::ValueType {
        r#type: strings.get(&metric.id),
        unit: strings.get(metric.unit.name()),
    };
    let sample_type = metrics.iter().map(|metric| kind(metric, &mut strings)).collect();
    let mut group = schema::Profile { sample_type, ..Default::default() };
    for part in parts {
        let of_thread = part.thread.map(|thread| labels(thread, &mut strings)).unwrap_or_default();
        let incomplete = profile.incomplete_nodes(part.tree);
        walk::stacks(part.tree, |stack, index| {
            let node = &part.tree.nodes[index.0];
            let mut label = of_thread.clone();
            if incomplete[index.0] {
                label.push(schema::Label {
                    key: strings.get("calls"),
                    str: strings.get("at least"),
                    ..Default::default()
                });
            }
            if is_doubtful(node.self_ns, node.error_ns) {
                label.push(schema::Label {
                    key: strings.get("time_at_most"),
                    num: signed(node.self_ns.saturating_add(node.error_ns)),
                    num_unit: strings.get("nanoseconds"),
                    ..Default::default()
                });
            }
            group.sample.push(schema::Sample {
                // The leaf comes first.
                location_id: stack
                    .iter()
                    .rev()
                    .map(|index| functions.index_of(part.tree.nodes[index.0].method).0 as u64 + 1)
                    .collect(),
                value: metrics.iter().map(|metric| signed(part.amount(metric, index).own)).collect(),
                label,
            });
            if group.sample.len() == GROUP {
                out.write_all(&group.encode_to_vec())?;
                group.sample.clear();
                group.sample_type.clear();
            }
            Ok(())
        })?;
    }

    group.period_type = Some(kind(&profile.time_metric(), &mut strings));
    group.default_sample_type = kind(lead, &mut strings).r#type;
    group.period = 1;
    group.duration_nanos = nanos(profile.duration);
    group.time_nanos = started.and_then(|time| time.duration_since(UNIX_EPOCH).ok()).map_or(0, nanos);
    group.comment = remarks(profile).iter().map(|remark| strings.get(remark)).collect();
    for (id, function) in (1..).zip(&functions.all) {
        let name = strings.get(&function.label);
        let system_name = strings.get(&function.machine);
        group.function.push(schema::Function { id, name, system_name, filename: 0 });
        group.location.push(schema::Location { id, line: vec![schema::Line { function_id: id }] });
    }
    group.string_table = strings.all;
    out.write_all(&group.encode_to_vec())?;
    out.finish()?;
    Ok(())
}

fn labels(thread: &ThreadProfile, strings: &mut Strings) -> Vec<schema::Label> {
    vec![
        schema::Label { key: strings.get("thread"), str: strings.get(&thread.shown_name()), ..Default::default() },
        schema::Label { key: strings.get("thread_id"), num: signed(thread.id.0), ..Default::default() },
    ]
}

fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// The string table; its first entry must be empty.
struct Strings {
    all: Vec<String>,
    known: FxHashMap<String, i64>,
}

impl Default for Strings {
    fn default() -> Self {
        Strings { all: vec![String::new()], known: FxHashMap::from_iter([(String::new(), 0)]) }
    }
}

impl Strings {
    fn get(&mut self, text: &str) -> i64 {
        if let Some(known) = self.known.get(text) {
            return *known;
        }
        let index = signed(self.all.len() as u64);
        self.all.push(text.to_owned());
        self.known.insert(text.to_owned(), index);
        index
    }
}
