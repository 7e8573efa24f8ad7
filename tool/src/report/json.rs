//! The profile as one JSON object, schema `headwater/1`; docs/GUIDE.md describes it field by field.

use std::io::{self, Write};

use headwater_protocol::message::Reveal;
use serde::Serialize;

use super::Trees;
use crate::callgraph::Scheme;
use crate::profile::{ClockMode, ControlKind, Node, NodeIndex, Profile, ThreadProfile, Tree};

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    target: Target<'a>,
    roots: Vec<Root<'a>>,
    scheme: &'static str,
    reveal: &'static str,
    clock: Clock,
    controls: Vec<Control<'a>>,
    duration_ns: u64,
    methods: Methods<'a>,
    events: Events,
    hotswap: Hotswap,
    waits: Vec<Wait>,
    threads: Vec<Thread<'a>>,
    nodes: Vec<NodeRow<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Target<'a> {
    pid: u32,
    main: &'a str,
    jdk: &'a str,
}

#[derive(Serialize)]
struct Root<'a> {
    pattern: &'a str,
    methods: Vec<&'a str>,
    calls: u64,
}

#[derive(Serialize)]
struct Clock {
    mode: &'static str,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_ns: Option<u64>,
    inner_ns: f64,
    outer_ns: f64,
    inner_spread_ns: f64,
    outer_spread_ns: f64,
}

/// A root's charged time against its control invocations'.
#[derive(Serialize)]
struct Control<'a> {
    root: &'a str,
    kind: &'static str,
    charged_ns: f64,
    control_ns: f64,
    error_ns: f64,
    calls: u64,
}

#[derive(Serialize)]
struct Methods<'a> {
    instrumented: usize,
    called: usize,
    /// May have been called before they were instrumented.
    late: usize,
    /// Left alone, as the user wants it.
    trivial: usize,
    skipped: Vec<Skipped<'a>>,
}

#[derive(Serialize)]
struct Skipped<'a> {
    method: &'a str,
    reason: &'a str,
}

#[derive(Serialize)]
struct Events {
    recorded: u64,
    lost: u64,
    healed: u64,
    calls: u64,
}

#[derive(Serialize)]
struct Hotswap {
    batches: u64,
    classes: u64,
    pause_ns_total: u64,
    pause_ns_max: u64,
    /// From the first entry of a root to the last hotswap.
    quiet_after_ns: Option<u64>,
}

#[derive(Serialize)]
struct Wait {
    reason: &'static str,
    count: u64,
    duration_ns: u64,
}

#[derive(Serialize)]
struct Thread<'a> {
    id: u64,
    name: &'a str,
}

#[derive(Serialize)]
struct NodeRow<'a> {
    id: usize,
    parent: Option<usize>,
    method: &'a str,
    calls: u64,
    thrown: u64,
    self_ns: u64,
    total_ns: u64,
    error_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread: Option<u64>,
}

/// Writes the object and a line feed.
pub fn write(profile: &Profile, trees: Trees, out: &mut impl Write) -> io::Result<()> {
    let clock = &profile.clock;
    let report = Report {
        schema: "headwater/1",
        target: Target { pid: profile.target.pid, main: &profile.target.main, jdk: &profile.target.jdk },
        roots: profile
            .roots
            .iter()
            .map(|root| Root { pattern: &root.pattern, methods: profile.root_names(root), calls: root.calls })
            .collect(),
        scheme: match profile.discovery.scheme {
            Scheme::Eager => "a",
            Scheme::Lazy => "b",
            Scheme::Total => "total",
        },
        reveal: match profile.discovery.reveal {
            Reveal::Blocking => "blocking",
            Reveal::Background => "background",
        },
        clock: Clock {
            mode: if clock.mode == ClockMode::Exact { "exact" } else { "tick" },
            source: if clock.mode == ClockMode::Exact { "nanoTime" } else { "coarse" },
            period_ns: clock.mode.period().map(|period| u64::try_from(period.as_nanos()).unwrap_or(u64::MAX)),
            inner_ns: clock.inner_ns,
            outer_ns: clock.outer_ns,
            inner_spread_ns: clock.inner_spread_ns,
            outer_spread_ns: clock.outer_spread_ns,
        },
        controls: profile
            .controls
            .iter()
            .map(|control| Control {
                root: &profile.methods[control.root.0].machine,
                kind: match control.kind {
                    ControlKind::During => "during",
                    ControlKind::After => "after",
                },
                charged_ns: control.charged_ns,
                control_ns: control.control_ns,
                error_ns: control.error_ns,
                calls: control.calls,
            })
            .collect(),
        duration_ns: u64::try_from(profile.duration.as_nanos()).unwrap_or(u64::MAX),
        methods: Methods {
            instrumented: profile.instrumented,
            called: profile.called,
            late: profile.discovery.late,
            trivial: profile.discovery.trivial,
            skipped: profile
                .skipped
                .iter()
                .map(|skipped| Skipped { method: &skipped.method, reason: &skipped.reason })
                .collect(),
        },
        events: Events {
            recorded: profile.events.recorded,
            lost: profile.events.lost,
            healed: profile.events.healed,
            calls: profile.merged.calls(),
        },
        hotswap: Hotswap {
            batches: profile.hotswap.batches,
            classes: profile.hotswap.classes,
            pause_ns_total: profile.hotswap.pause_ns_total,
            pause_ns_max: profile.hotswap.pause_ns_max,
            quiet_after_ns: profile
                .discovery
                .quiet_after
                .map(|quiet| u64::try_from(quiet.as_nanos()).unwrap_or(u64::MAX)),
        },
        waits: profile
            .waits
            .iter()
            .map(|wait| Wait { reason: wait.reason, count: wait.count, duration_ns: wait.duration_ns })
            .collect(),
        threads: profile.threads.iter().map(|thread| Thread { id: thread.id.0, name: &thread.name }).collect(),
        nodes: match trees {
            Trees::Merged => rows(profile, &profile.merged, 0, None).collect(),
            Trees::PerThread => thread_rows(profile),
        },
        warnings: &profile.warnings,
    };
    serde_json::to_writer(&mut *out, &report)?;
    writeln!(out)
}

fn thread_rows(profile: &Profile) -> Vec<NodeRow<'_>> {
    let mut all = Vec::new();
    for thread in &profile.threads {
        let first = all.len();
        all.extend(rows(profile, &thread.tree, first, Some(thread)));
    }
    all
}

/// A tree's rows, numbered from `first`.
fn rows<'a>(
    profile: &'a Profile,
    tree: &'a Tree,
    first: usize,
    thread: Option<&'a ThreadProfile>,
) -> impl Iterator<Item = NodeRow<'a>> {
    tree.nodes.iter().enumerate().map(move |(index, node): (usize, &Node)| NodeRow {
        id: first + index,
        parent: node.parent.map(|NodeIndex(parent)| first + parent),
        method: &profile.method_of(node).machine,
        calls: node.calls,
        thrown: node.thrown,
        self_ns: node.self_ns,
        total_ns: node.total_ns,
        error_ns: node.error_ns,
        thread: thread.map(|thread| thread.id.0),
    })
}
