//! The profile as one JSON object, schema `headwater/1`; docs/REFERENCE.md describes it field by field.

use std::cmp::Reverse;
use std::io::{self, Write};
use std::time::Duration;

use headwater_protocol::message::Reveal;
use serde::Serialize;

use super::belief::{Belief, known_shares};
use super::chosen::Chosen;
use super::names::Names;
use super::prune::{ShownMethods, focused};
use super::{Options, View};
use crate::profile::parts::{Parts, TimePart};
use crate::profile::{self, ControlKind, Drift, MethodIndex, Metric, Profile, Track};
use headwater_terms::Scheme;

mod budget;
mod locks;
mod origin;
mod rows;
mod tracks;

use budget::Budget;
use locks::Locks;
use origin::{RecordedIn, Target};
use rows::{FlatRow, Known, NodeRows, Stanza, Statistics};
use tracks::Collections;

/// What only recordings below roots have is left out of other tools' profiles: it is not known, and not zero.
#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    target: Target<'a>,
    roots: Vec<Root<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scheme: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reveal: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    clock: Option<Clock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    times: Option<Times<'a>>,
    controls: Vec<Control<'a>>,
    duration_ns: u64,
    methods: Methods<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    events: Option<Events>,
    /// Of the roots of which calls without the profile were timed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lengthened: Vec<Lengthened<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    budget: Option<Budget<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hotswap: Option<Hotswap>,
    waits: Vec<Wait<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locks: Option<Locks<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collections: Option<Collections<'a>>,
    /// What happened to the whole JVM, and when.
    #[serde(skip_serializing_if = "<[Track]>::is_empty")]
    tracks: &'a [Track],
    threads: Vec<Thread<'a>>,
    /// The format that it was read from, if another tool made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    notes: &'a [String],
    /// What rows have.
    metrics: Vec<Metric>,
    /// What self times divide into, where waits were counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<TimePart>,
    #[serde(flatten)]
    calls: Option<Arranged<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statistics: Vec<Statistics<'a>>,
    environment: Option<RecordedIn<'a>>,
    warnings: &'a [String],
}

/// The calls in a view.
#[derive(Serialize)]
struct Arranged<'a> {
    view: &'static str,
    /// Not of the views of locks and tracks.
    #[serde(flatten)]
    calls: Option<Calls<'a>>,
}

/// The calls, in the view's arrangement.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Calls<'a> {
    Nodes(Box<NodeRows<'a>>),
    Stanzas(Vec<Stanza<'a>>),
    Flat(Vec<FlatRow<'a>>),
}

#[derive(Serialize)]
struct Root<'a> {
    pattern: &'a str,
    methods: Vec<&'a str>,
    calls: u64,
    open: OpenCalls,
}

#[derive(Serialize)]
struct OpenCalls {
    threads: usize,
    still_open: usize,
    error_ns: u64,
}

#[derive(Serialize)]
struct Clock {
    mode: &'static str,
    source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    period_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    queued: Option<f64>,
    inner_ns: f64,
    outer_ns: f64,
    inner_spread_ns: f64,
    outer_spread_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    object_ns: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    drift: Option<Drift>,
}

/// What times are good for, and from what.
#[derive(Serialize)]
struct Times<'a> {
    /// Of the roots' totals, as a part; `null` where they are not known.
    good_to: Option<f64>,
    /// Of shares, from 0 to 1.
    shares_good_to: Option<f64>,
    held_out_calls: u64,
    samples: u64,
    unseen_samples: u64,
    cut_samples: u64,
    settled: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unsampled: Option<&'a str>,
}

impl Times<'_> {
    fn of(profile: &Profile) -> Times<'_> {
        let belief = Belief::of(profile);
        Times {
            good_to: belief.filter(Belief::is_known).map(|belief| belief.good_to()),
            shares_good_to: belief.and_then(|_| known_shares(profile)).map(|shares| shares.deviation),
            held_out_calls: belief.map_or(0, |belief| belief.held_out),
            samples: profile.basis.samples,
            unseen_samples: profile.basis.unseen,
            cut_samples: profile.basis.cut,
            settled: profile.basis.is_settled,
            unsampled: profile.basis.unsampled.as_deref(),
        }
    }
}

/// A root's charged time against calls that were held out, or its control invocations'.
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
    /// What part of all calls may be missing for that.
    missing: f64,
    /// May have been called, and never were instrumented.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    unseen: Vec<Unseen<'a>>,
    /// Left alone, as the user wants it.
    trivial: usize,
    skipped: Vec<Skipped<'a>>,
}

#[derive(Serialize)]
struct Unseen<'a> {
    method: &'a str,
    callers: Vec<UnseenCaller<'a>>,
}

#[derive(Serialize)]
struct UnseenCaller<'a> {
    method: &'a str,
    /// How often one of its calls is expected to make the call.
    expected: f64,
}

impl<'a> Unseen<'a> {
    fn of(profile: &'a Profile, unseen: &profile::Unseen) -> Unseen<'a> {
        let name = |method: MethodIndex| profile.methods[method.0].machine.as_str();
        let caller =
            |(method, expected): &(MethodIndex, f64)| UnseenCaller { method: name(*method), expected: *expected };
        Unseen { method: name(unseen.method), callers: unseen.callers.iter().map(caller).collect() }
    }
}

/// How much longer a root's calls were.
#[derive(Serialize)]
struct Lengthened<'a> {
    root: &'a str,
    /// Of the time that they take undisturbed.
    part: f64,
    recorded_ns: f64,
    bare_ns: f64,
    error_ns: f64,
    calls: u64,
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
struct Wait<'a> {
    reason: &'a str,
    count: u64,
    duration_ns: u64,
}

#[derive(Serialize)]
struct Thread<'a> {
    id: u64,
    name: &'a str,
}

/// Writes the object and a line feed.
pub fn write(profile: &Profile, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let view = match options.view {
        View::Tree => "tree",
        View::Callers => "callers",
        View::Flat => "flat",
        View::Locks => "locks",
        View::Tracks => "tracks",
    };
    let arranged = Arranged { view, calls: calls(profile, options) };
    let derived = Chosen::of(profile, options).derived().cloned().collect();
    serde_json::to_writer(&mut *out, &report(profile, derived, Some(arranged)))?;
    writeln!(out)
}

/// The object without its calls.
pub(crate) fn facts(profile: &Profile) -> impl Serialize {
    report(profile, Vec::new(), None)
}

fn report<'a>(profile: &'a Profile, derived: Vec<Metric>, calls: Option<Arranged<'a>>) -> Report<'a> {
    let clock = &profile.clock;
    let is_recording = profile.imported.is_none();
    Report {
        schema: "headwater/1",
        target: Target::of(&profile.target),
        roots: profile
            .roots
            .iter()
            .map(|root| Root {
                pattern: &root.pattern,
                methods: profile.root_names(root),
                calls: root.calls,
                open: OpenCalls {
                    threads: root.open.threads,
                    still_open: root.open.still,
                    error_ns: root.open.error_ns,
                },
            })
            .collect(),
        scheme: is_recording.then_some(match profile.discovery.scheme {
            Scheme::Eager => "a",
            Scheme::Lazy => "b",
            Scheme::Total => "total",
        }),
        reveal: is_recording.then_some(match profile.discovery.reveal {
            Reveal::Blocking => "blocking",
            Reveal::Background => "background",
        }),
        clock: is_recording.then(|| Clock {
            mode: clock.mode.name(),
            source: clock.source.name(),
            period_ns: clock.mode.period().map(nanoseconds),
            step_ns: clock.step_ns,
            queued: clock.queued,
            inner_ns: clock.inner_ns,
            outer_ns: clock.outer_ns,
            inner_spread_ns: clock.inner_spread_ns,
            outer_spread_ns: clock.outer_spread_ns,
            object_ns: Some(clock.object_ns).filter(|ns| *ns > 0.0),
            drift: clock.drift,
        }),
        times: is_recording.then(|| Times::of(profile)),
        controls: profile
            .controls
            .iter()
            .map(|control| Control {
                root: &profile.methods[control.root.0].machine,
                kind: match control.kind {
                    ControlKind::During => "during",
                    ControlKind::After => "after",
                    ControlKind::Before => "before",
                },
                charged_ns: control.charged_ns,
                control_ns: control.control_ns,
                error_ns: control.error_ns,
                calls: control.calls,
            })
            .collect(),
        duration_ns: nanoseconds(profile.duration),
        methods: Methods {
            instrumented: profile.instrumented,
            called: profile.called,
            late: profile.discovery.late,
            missing: profile.missing_share(),
            unseen: profile.unseen.iter().map(|unseen| Unseen::of(profile, unseen)).collect(),
            trivial: profile.discovery.trivial,
            skipped: profile
                .skipped
                .iter()
                .map(|skipped| Skipped { method: &skipped.method, reason: &skipped.reason })
                .collect(),
        },
        events: is_recording.then(|| Events {
            recorded: profile.events.recorded,
            lost: profile.events.lost,
            healed: profile.events.healed,
            calls: profile.merged.calls(),
        }),
        lengthened: profile
            .lengthened
            .iter()
            .map(|it| Lengthened {
                root: &profile.methods[it.root.0].machine,
                part: it.part(),
                recorded_ns: it.recorded_ns,
                bare_ns: it.bare_ns,
                error_ns: it.error_ns,
                calls: it.calls,
            })
            .collect(),
        budget: profile.budget.as_ref().map(|budget| Budget::of(profile, budget)),
        hotswap: is_recording.then(|| Hotswap {
            batches: profile.hotswap.batches,
            classes: profile.hotswap.classes,
            pause_ns_total: profile.hotswap.pause_ns_total,
            pause_ns_max: profile.hotswap.pause_ns_max,
            quiet_after_ns: profile.discovery.quiet_after.map(nanoseconds),
        }),
        waits: profile
            .waits
            .iter()
            .map(|wait| Wait { reason: &wait.reason, count: wait.count, duration_ns: wait.duration_ns })
            .collect(),
        locks: profile.contention.as_ref().map(|contention| Locks::of(profile, contention)),
        collections: Collections::of(profile),
        tracks: &profile.tracks,
        threads: profile.threads.iter().map(|thread| Thread { id: thread.id.0, name: &thread.name }).collect(),
        imported: profile.imported.as_deref(),
        notes: &profile.notes,
        metrics: profile.metrics().into_iter().chain(derived).collect(),
        parts: Parts::of(profile).iter().flat_map(Parts::parts).collect(),
        calls,
        statistics: profile.statistics.iter().map(|statistics| Statistics::of(profile, statistics)).collect(),
        environment: RecordedIn::of(&profile.environment),
        warnings: &profile.warnings,
    }
}

/// For fields that are left out as a rule.
pub(crate) fn is_false(value: &bool) -> bool {
    !value
}

/// The same of numbers.
pub(crate) fn is_zero(value: &usize) -> bool {
    *value == 0
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

fn calls<'a>(profile: &'a Profile, options: &'a Options) -> Option<Calls<'a>> {
    let chosen = Chosen::of(profile, options);
    let known = Known::of(profile, chosen.derived().cloned());
    // Rows of a single tree need no thread, unless one was asked for.
    let sections = options.sections(profile);
    let numbered = sections.iter().map(|(thread, tree)| (thread.map(|thread| thread.id.0), tree.as_ref()));
    Some(match options.view {
        View::Locks | View::Tracks => return None,
        View::Tree => {
            let focused = focused(profile, options);
            Calls::Nodes(Box::new(NodeRows { profile, options, sections, focused, known }))
        }
        View::Callers => {
            let mut rows = Vec::new();
            for (thread, tree) in numbered {
                let methods = ShownMethods::of(profile, tree, options, &chosen);
                let mut stanzas = super::arcs::stanzas(profile, tree);
                stanzas.retain(|row| methods.has(row.method, &row.own));
                stanzas.sort_by_key(|stanza| Reverse(chosen.rank(options, &stanza.own)));
                rows.extend(stanzas.into_iter().map(|stanza| Stanza::of(&known, &stanza, thread)));
            }
            Calls::Stanzas(rows)
        }
        View::Flat => {
            let names = Names::of(profile);
            let mut rows = Vec::new();
            for (thread, tree) in numbered {
                let methods = ShownMethods::of(profile, tree, options, &chosen);
                let mut flat = super::flat::rows(profile, &names, tree);
                flat.retain(|row| methods.has(row.method, &row.amounts));
                flat.sort_by_key(|row| Reverse(chosen.rank(options, &row.amounts)));
                rows.extend(flat.into_iter().map(|row| FlatRow::of(&known, row, thread)));
            }
            Calls::Flat(rows)
        }
    })
}
