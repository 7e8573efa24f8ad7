//! From what a session has found and recorded to a profile.

use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_protocol::message::{Calibration, Reveal};
use headwater_protocol::word::PauseReason;
use rustc_hash::FxHashMap;

use super::Settings;
use crate::callgraph::{CallGraph, PatternIndex};
use crate::cct::Cct;
use crate::correction::{Reference, correct, in_place};
use crate::decode::Decoder;
use crate::pattern;
use crate::profile::{
    Clock, ClockMode, ClockSource, Control, ControlKind, Discovery, Environment, Events, Hotswap, MethodIndex,
    MethodName, Profile, Root, Skipped, Target, ThreadProfile, Tree, Wait,
};
use crate::session::Session;
use crate::ticker::clock_read_ns;
use crate::timing::RootTimes;

pub(super) fn profile(
    session: &Session,
    decoder: &Decoder,
    target: Target,
    settings: &Settings,
    calibration: Calibration,
    bare: &RootTimes,
    duration: Duration,
) -> Profile {
    let graph = session.graph();
    let clock = Clock {
        mode: settings.clock,
        source: match settings.clock {
            ClockMode::Tick(_) => ClockSource::Coarse,
            ClockMode::Exact if session.uses_tsc() => ClockSource::Tsc,
            ClockMode::Exact => ClockSource::NanoTime,
        },
        inner_ns: calibration.inner_ns.max(0.0),
        inner_spread_ns: calibration.inner_spread_ns,
        outer_ns: calibration.outer_ns.max(0.0),
        outer_spread_ns: calibration.outer_spread_ns,
    };
    let mut all = Cct::new();
    for (_, tree) in decoder.threads() {
        tree.merge_into(&mut all);
    }
    let timing_ns = clock_read_ns();
    let references = [
        (ControlKind::After, Reference { times: bare, idle_ns: 0.0, timing_ns }),
        (ControlKind::During, Reference { times: decoder.controls(), idle_ns: calibration.outside_ns, timing_ns }),
    ];
    let clock = fitted(&all, clock, &references);
    let merged = correct(&all, &clock);
    let totals = session.hotswap_totals();
    Profile {
        target,
        environment: Environment::here(duration),
        roots: roots(graph, settings, &merged),
        duration,
        methods: graph
            .methods()
            .iter()
            .map(|method| MethodName {
                machine: method.java_name(),
                display: pattern::display_name(&method.class, &method.name, &method.descriptor),
            })
            .collect(),
        instrumented: graph.instrumented(),
        called: called(graph, &merged),
        discovery: Discovery {
            scheme: graph.scheme(),
            reveal: settings.reveal,
            late: if settings.reveal == Reveal::Background { graph.late() } else { 0 },
            trivial: graph.trivial(),
            quiet_after: session.quiet_after(),
        },
        skipped: graph
            .skipped()
            .iter()
            .map(|(method, reason)| Skipped { method: method.clone(), reason: reason.clone() })
            .collect(),
        events: Events { recorded: decoder.events(), lost: session.lost(), healed: decoder.healed() },
        hotswap: Hotswap {
            batches: totals.batches,
            classes: totals.classes,
            pause_ns_total: totals.pause_ns_total,
            pause_ns_max: totals.pause_ns_max,
        },
        waits: waits(decoder),
        threads: threads(session, decoder, &clock),
        controls: controls(&merged, &references),
        merged,
        statistics: Vec::new(),
        clock,
        warnings: warnings(session, decoder, settings),
    }
}

/// The probes' cost in place, by the calls that say most about it: bare ones, else control invocations.
fn fitted(all: &Cct, clock: Clock, references: &[(ControlKind, Reference<'_>)]) -> Clock {
    references.iter().find_map(|(_, reference)| in_place(all, &clock, *reference)).unwrap_or(clock)
}

fn controls(tree: &Tree, references: &[(ControlKind, Reference<'_>)]) -> Vec<Control> {
    let mut calls_below = vec![0; tree.nodes.len()];
    for (index, node) in tree.nodes.iter().enumerate().rev() {
        calls_below[index] += node.calls;
        if let Some(parent) = node.parent {
            calls_below[parent.0] += calls_below[index];
        }
    }
    let roots = tree.nodes.iter().zip(&calls_below).filter(|(node, _)| node.parent.is_none());
    let mut controls: Vec<Control> = roots
        .flat_map(|(node, calls_below)| {
            let calls = node.calls as f64;
            let method = MethodId(node.method.0 as u32 + 1);
            references.iter().filter_map(move |(kind, reference)| {
                let (control_ns, error_ns) = reference.bare_ns(method, *calls_below as f64 / calls)?;
                Some(Control {
                    root: node.method,
                    kind: *kind,
                    charged_ns: node.total_ns as f64 / calls,
                    control_ns,
                    error_ns,
                    calls: reference.times[&method].count,
                })
            })
        })
        .collect();
    controls.sort_by_key(|control| control.root.0);
    controls
}

fn roots(graph: &CallGraph, settings: &Settings, tree: &Tree) -> Vec<Root> {
    let mut calls: FxHashMap<MethodIndex, u64> = FxHashMap::default();
    for node in tree.nodes.iter().filter(|node| node.parent.is_none()) {
        *calls.entry(node.method).or_default() += node.calls;
    }
    settings
        .roots
        .iter()
        .enumerate()
        .map(|(index, pattern)| {
            let methods: Vec<MethodIndex> =
                graph.roots_of(PatternIndex(index)).map(|method| MethodIndex(method.id.0 as usize - 1)).collect();
            let calls = methods.iter().filter_map(|method| calls.get(method)).sum();
            Root { pattern: pattern.to_string(), methods, calls }
        })
        .collect()
}

fn called(graph: &CallGraph, tree: &Tree) -> usize {
    let mut called = vec![false; graph.methods().len()];
    tree.nodes.iter().filter(|node| node.calls > 0).for_each(|node| called[node.method.0] = true);
    called.into_iter().filter(|called| *called).count()
}

fn waits(decoder: &Decoder) -> Vec<Wait> {
    let described = |reason| match reason {
        PauseReason::Hotswap => "hotswap",
        PauseReason::Buffer => "buffer",
        PauseReason::ClassLoad => "class load",
    };
    PauseReason::ALL
        .into_iter()
        .map(|reason| {
            let total = decoder.pauses(reason);
            Wait { reason: described(reason).into(), count: total.count, duration_ns: total.duration_ns }
        })
        .filter(|wait| wait.count > 0)
        .collect()
}

fn threads(session: &Session, decoder: &Decoder, clock: &Clock) -> Vec<ThreadProfile> {
    decoder
        .threads()
        .map(|(id, tree)| {
            let known = session.threads().iter().find(|(known, _)| *known == id);
            let name = known.map_or_else(|| format!("thread {}", id.0), |(_, name)| name.clone());
            ThreadProfile { id, name, tree: correct(tree, clock) }
        })
        .collect()
}

fn warnings(session: &Session, decoder: &Decoder, settings: &Settings) -> Vec<String> {
    let mut warnings = Vec::new();
    let late = session.graph().late();
    if settings.reveal == Reveal::Background && late > 0 {
        warnings.push(format!(
            "the program did not wait for instrumentation (--reveal background): the first calls of up to {late} methods may \
             be missing"
        ));
    }
    let mut missed: FxHashMap<&str, usize> = FxHashMap::default();
    for waited_for in session.deadlines_passed() {
        *missed.entry(waited_for).or_default() += 1;
    }
    for (waited_for, times) in missed {
        warnings.push(format!(
            "{times} times a thread of the target went on without waiting any longer for {waited_for}: calls may be missing"
        ));
    }
    for (class, reason) in session.unparsable() {
        warnings.push(format!("the class file of {class} could not be read: {reason}"));
    }
    if session.lost() > 0 {
        warnings.push(format!(
            "{} events were lost: calls and times are too low. A larger --buffer, or a root with fewer calls below it, helps",
            session.lost()
        ));
    }
    if decoder.unknown() > 0 {
        warnings.push(format!("{} event words had no meaning", decoder.unknown()));
    }
    warnings
}
