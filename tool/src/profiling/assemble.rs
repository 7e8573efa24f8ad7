//! From what a session has found and recorded to a profile.
//!
//! [`Facts`] are taken from the session, which is quick; [`profile`] then works through the trees without it, so that the
//! session can go on serving the target meanwhile.

use std::borrow::Cow;
use std::time::Duration;

use headwater_protocol::message::{Calibration, Internal, Standing};
use headwater_protocol::word::PauseReason;
use headwater_protocol::{MethodId, ThreadId};
use rustc_hash::FxHashMap;

use super::budget::Compared;
use super::facts::Facts;
use super::history::History;
use super::missing::{at_least, called, unseen, warnings};
use super::named::Things;
use super::{Undisturbed, budget, counters, objects};
use crate::budget::{Governor, Limit, Probes, in_place};
use crate::cct::{Cct, NodeId};
use crate::correction::{
    Lost, MIN_CONTROLS, Names, Placed, Reference, RootCalls, Waiting, Wholes, correct, coverage, divided, grown,
    placed_on_all, root_calls, untimed, wholes,
};
use crate::decode::{Decoder, FOLDED, Invocations, PairCost, Scheduled, Summary};
use crate::profile::{
    Basis, Clock, ClockMode, ClockSource, Control, ControlKind, Environment, Events, Hotswap, JvmInternal, MethodIndex,
    MethodStatistics, Node, OpenCalls, Profile, Root, Target, ThreadProfile, Tree,
};
use crate::report::units::time;
use crate::timing::{RootTimes, Timed};

/// What the probes cost by themselves, and what a call that is timed as a whole is to be freed of.
pub(crate) fn probes(mode: ClockMode, uses_tsc: bool, calibration: Calibration) -> Probes {
    let clock = Clock {
        mode,
        source: match mode {
            ClockMode::Tick(_) => ClockSource::Coarse,
            ClockMode::Cpu => ClockSource::ThreadCpu,
            ClockMode::Exact if uses_tsc => ClockSource::Tsc,
            ClockMode::Exact => ClockSource::NanoTime,
        },
        inner_ns: calibration.inner_ns.max(0.0),
        inner_spread_ns: calibration.inner_spread_ns,
        outer_ns: calibration.outer_ns.max(0.0),
        outer_spread_ns: calibration.outer_spread_ns,
        object_ns: calibration.object_ns.max(0.0),
        step_ns: None,
        queued: None,
        drift: None,
    };
    Probes { clock, idle_ns: calibration.outside_ns, timing_ns: calibration.control_ns }
}

/// The profile of what was decoded; `facts` must not be older than the decoder, which is of no more use.
pub(crate) fn profile(
    facts: Facts,
    decoder: &mut Decoder,
    target: Target,
    mode: ClockMode,
    calibration: Calibration,
    undisturbed: &Undisturbed,
    duration: Duration,
) -> Profile {
    let meaningless = decoder.unknown().saturating_add(decoder.forget_unknown(facts.methods.len()));
    let decoder = &*decoder;
    let Probes { clock, timing_ns, .. } = probes(mode, facts.uses_tsc, calibration);
    let clock = Clock { step_ns: facts.step_ns, queued: undisturbed.queued(decoder.scheduled()), ..clock };
    let mut all = Cct::new();
    let mut threads: Vec<_> = decoder.threads().map(|(id, tree)| (id, tree, tree.merge_into(&mut all))).collect();
    let timed = Calls::of(&undisturbed.timed);
    let references = [
        (undisturbed.kind(), Reference { times: &timed.used, idle_ns: 0.0, timing_ns }),
        (ControlKind::During, Reference { times: decoder.controls(), idle_ns: calibration.outside_ns, timing_ns }),
    ];
    let partial = decoder.partial();
    let references =
        references.map(|(kind, reference)| Compared { kind, reference, roots: root_calls(&all, &partial, reference) });
    let mut known = Wholes::default();
    for Compared { reference, roots, .. } in &references {
        for (root, whole) in wholes(&all, &clock, roots, *reference) {
            known.entry(root).or_insert(whole);
        }
    }
    if let Some(part) = undisturbed.unsettled {
        // What a root takes while code is interpreted, that was not timed without probes, is not what it takes.
        known.extend(untimed(&all, &clock, &known));
        // Where some samples are from before the profile, what those from after it differ by is in the error.
        let are_samples_settled = undisturbed.is_sampled_before || undisturbed.parted.is_some();
        known.values_mut().for_each(|whole| whole.unsettle(part, !are_samples_settled));
    }
    let known_nodes = all.len();
    let Sampled { basis, placed, uncalled } = sampled(&mut all, &facts, undisturbed, decoder.is_partial());
    let lost = Lost::of(&all, placed.as_ref());
    let threads: Vec<_> = threads
        .iter_mut()
        .map(|(id, tree, places)| (*id, grown(&all, known_nodes, &lost, tree, places), std::mem::take(places)))
        .collect();
    // CPU time does not wait.
    let waiting = placed.as_ref().filter(|_| mode != ClockMode::Cpu);
    let waiting =
        waiting.and_then(|placed| placed.waiting(&undisturbed.wanted, &undisturbed.timed, undisturbed.wanted_over));
    if let Some(Waiting { part, unclear }) = waiting {
        let [part, unclear] = [part, unclear].map(|part| 100.0 * part);
        log::debug!("roots wait for {part:.0} % of their time, which is not clear of {unclear:.0} %");
    }
    let merged = correct(&all, &clock, &known, placed.as_ref(), waiting);
    let held_out = Reference { times: &timed.held_out, idle_ns: 0.0, timing_ns };
    let controls = controls(&merged, &references, held_out);
    let mut warnings = warnings(&facts, decoder, meaningless);
    warnings.extend(basis.warnings().into_iter().chain(uncalled));
    warnings.extend(known.values().any(|whole| whole.is_timed).then(|| handed_over(&merged)).flatten());
    let lengthened = budget::lengthened(&references, waited_ns(decoder), clock.queued, undisturbed.unsettled);
    let budget = facts.governor.as_ref().map(|governor| {
        // What a pair costs in the mean, by how much longer the roots' calls took.
        let in_place = |it: &Compared<'_>| in_place(it.roots.iter().copied(), &clock, it.reference);
        let clock = references.iter().find_map(in_place).unwrap_or(clock);
        budget::kept(governor, &clock, &lengthened, duration)
    });
    // Nobody asked for the limit that did not matter.
    let budget = budget.filter(|budget| matches!(budget.limit, Limit::Part(_)) || !budget.dropped.is_empty());
    warnings.extend(budget.iter().flat_map(|budget| budget::warnings(budget, &clock, &facts.methods)));
    let mut things = Things::new(&facts.methods, &facts.classes, &facts.sites);
    let threads = thread_profiles(&facts, decoder, (&merged, &clock, &lost), threads, &mut things);
    let mut profile = Profile {
        imported: None,
        contention: None,
        notes: Vec::new(),
        counted: counters::metrics(&facts.history, duration, clock.queued),
        tracks: super::tracks::of(&facts, decoder, mode),
        target: tested(target, &facts.history),
        environment: Environment::here(duration),
        roots: roots(&facts, &merged, decoder),
        duration,
        instrumented: facts.instrumented,
        called: called(facts.methods.len(), &merged),
        discovery: facts.discovery,
        at_least: at_least(&facts, &merged),
        unseen: unseen(&facts.unseen, &merged),
        events: Events { recorded: decoder.events(), lost: facts.lost, healed: decoder.healed() },
        lengthened,
        budget,
        hotswap: Hotswap {
            batches: facts.hotswap.batches,
            classes: facts.hotswap.classes,
            pause_ns_total: facts.hotswap.pause_ns_total,
            pause_ns_max: facts.hotswap.pause_ns_max,
        },
        waits: counters::waits(decoder),
        threads,
        controls,
        statistics: statistics(&facts, decoder, &merged, &clock),
        merged,
        basis,
        clock,
        warnings,
        methods: Vec::new(),
        skipped: facts.skipped,
        reach: Some(facts.remembered.reach()),
    };
    // From here on trees have nodes that are no methods'.
    counters::count(&mut profile.merged, &all, &facts.history, profile.clock.queued, &mut things);
    objects::describe(&mut profile);
    let names = things.into_names();
    profile.methods = facts.methods;
    profile.methods.extend(names);
    budget::tell_amounts(&mut profile);
    profile
}

/// What was handed over to other threads is beside the roots' time: nobody has timed it without probes.
fn handed_over(merged: &Tree) -> Option<String> {
    /// Of so much of what roots take there is to be said something.
    const MUCH: f64 = 0.1;
    let handed_ns: u64 = merged.nodes.iter().filter(|node| node.link.is_some()).map(|node| node.total_ns).sum();
    let roots_ns: u64 = merged.nodes.iter().filter(|node| node.parent.is_none()).map(|node| node.total_ns).sum();
    (handed_ns as f64 > MUCH * roots_ns as f64).then(|| {
        let [handed, roots] = [handed_ns, roots_ns].map(time);
        format!(
            "{handed} was handed over to other threads, beside {roots} in the roots: it is as measured, with its probes, and may be too much; \
             what is said of times is of the roots alone"
        )
    })
}

/// The target as it was found to be while it was recorded: where bytes were counted, how they are read has been tried.
fn tested(mut target: Target, history: &History) -> Target {
    let is_tested = |internal: &&mut JvmInternal| internal.name == Internal::AllocatedBytes.name();
    if history.ever().alloc
        && let Some(internal) = target.internals.iter_mut().find(is_tested)
    {
        Standing::Holds.name().clone_into(&mut internal.standing);
    }
    target
}

/// Calls without probes: where there are too few for holding some out, all are used.
struct Calls {
    used: RootTimes,
    held_out: RootTimes,
}

impl Calls {
    fn of(timed: &Timed) -> Calls {
        let mut calls = Calls { used: RootTimes::default(), held_out: RootTimes::default() };
        for (root, used) in &timed.used {
            let held_out = timed.held_out.get(root).copied().unwrap_or_default();
            if used.count < MIN_CONTROLS || held_out.count < MIN_CONTROLS {
                calls.used.insert(*root, used.and(&held_out));
            } else {
                calls.used.insert(*root, *used);
                calls.held_out.insert(*root, held_out);
            }
        }
        calls
    }
}

/// Samples, and what is to be said of them.
#[derive(Default)]
struct Sampled {
    basis: Basis,
    placed: Option<Placed>,
    /// That some of them are in calls that the recording has not come to.
    uncalled: Option<String>,
}

/// The samples on the tree; if there are many, also in calls of which the recording has none: what the undisturbed program is seen to do, it does.
fn sampled(all: &mut Cct, facts: &Facts, undisturbed: &Undisturbed, is_partial: bool) -> Sampled {
    let mut basis = Basis {
        is_settled: undisturbed.unsettled.map(|part| part == 0.0),
        other_recordings: undisturbed.other_recordings,
        ..Basis::default()
    };
    let samples = match &undisturbed.samples {
        None => return Sampled { basis, ..Sampled::default() },
        Some(Err(reason)) => {
            basis.unsampled = Some(reason.clone());
            return Sampled { basis, ..Sampled::default() };
        }
        Some(Ok(samples)) => samples,
    };
    let names = facts.methods.iter().map(|method| method.machine.as_str());
    let names = Names::of(names, samples, undisturbed.counted).parted_at(undisturbed.parted);
    let missed = facts.missed.iter().map(|(method, _)| MethodId(method.0 as u32 + 1));
    let dropped = || facts.governor.iter().flat_map(Governor::all_dropped).map(|dropped| dropped.method);
    let missed = missed.chain(dropped()).collect();
    let never = facts.never_instrumented().map(|method| MethodId(method.0 as u32 + 1));
    let (placed, uncalled) = placed_on_all(all, &names, &missed);
    let percent = 100.0 * uncalled;
    let uncalled = match (uncalled > 0.0, is_partial) {
        (false, _) => None,
        (true, true) => Some(format!(
            "no call of a root was recorded from its beginning to its end, and {percent:.0} % of the samples of the undisturbed code were in calls that the \
             recording has not come to: those have times, and 0 calls. Record for longer"
        )),
        (true, false) => Some(format!(
            "{percent:.0} % of the samples of the undisturbed code were in calls that the recording has not come to: those have times, and 0 calls. Record \
             for longer"
        )),
    };
    (basis.samples, basis.unseen, basis.cut) = (placed.inside, placed.unseen, placed.cut());
    basis.absent = placed.absent;
    // Later samples have chosen nothing.
    if undisturbed.is_sampled_before {
        basis.by_chance = placed.once(all).filter(|method| facts.by_chance.contains(method)).count() as u64;
    }
    // Samples of two phases are of no one's time.
    let over = undisturbed.wanted_over.filter(|_| undisturbed.parted.is_none());
    let covered = coverage(&placed, &names, &undisturbed.wanted, over);
    let (inside, alike) = (placed.inside, placed.alike());
    log::debug!(
        "{inside} samples in roots, {alike:.1} of them as one, tell of {:.0} % of what threads ran",
        100.0 * covered
    );
    let queued = undisturbed.queued(Scheduled::default()).unwrap_or(0.0);
    let placed = placed.queued(queued).covering(covered).without_probes_of(dropped().chain(never).collect());
    Sampled { basis, placed: Some(placed), uncalled }
}

/// What each root's calls are charged, against calls that took no part in that: those that were held out, or control invocations.
fn controls(merged: &Tree, compared: &[Compared<'_>], held_out: Reference<'_>) -> Vec<Control> {
    let of_root = |compared: &Compared<'_>, root: &RootCalls| {
        let reference = match compared.kind {
            ControlKind::Before | ControlKind::After => held_out,
            ControlKind::During => compared.reference,
        };
        let (control_ns, error_ns) = reference.bare_ns(root.method, root.pairs / root.calls)?;
        let method = MethodIndex(root.method.0 as usize - 1);
        let of_root = |node: &&Node| node.parent.is_none() && node.method == method;
        let (total_ns, calls) = merged
            .nodes
            .iter()
            .filter(of_root)
            .fold((0, 0), |(total_ns, calls), node| (total_ns + node.total_ns, calls + node.calls));
        Some(Control {
            root: method,
            kind: compared.kind,
            charged_ns: total_ns as f64 / calls.max(1) as f64,
            control_ns,
            error_ns,
            calls: reference.times[&root.method].count,
        })
    };
    let mut controls: Vec<Control> = compared
        .iter()
        .flat_map(|compared| compared.roots.iter().filter_map(move |root| of_root(compared, root)))
        .collect();
    controls.sort_by_key(|control| control.root.0);
    controls
}

fn roots(facts: &Facts, tree: &Tree, decoder: &Decoder) -> Vec<Root> {
    let mut calls: FxHashMap<MethodIndex, u64> = FxHashMap::default();
    for node in tree.nodes.iter().filter(|node| node.parent.is_none()) {
        *calls.entry(node.method).or_default() += node.calls;
    }
    let root = |(pattern, methods): &(String, Vec<MethodIndex>)| {
        let calls = methods.iter().filter_map(|method| calls.get(method)).sum();
        Root { pattern: pattern.clone(), methods: methods.clone(), calls, open: open_calls(methods, decoder) }
    };
    facts.roots.iter().map(root).collect()
}

/// The threads that were in one of these methods when recording began.
fn open_calls(methods: &[MethodIndex], decoder: &Decoder) -> OpenCalls {
    let is_one = |method: &MethodId| methods.contains(&MethodIndex(method.0 as usize - 1));
    let mut open = OpenCalls::default();
    for (calls, still) in decoder.open_calls().filter(|(calls, _)| calls.iter().any(is_one)) {
        open.threads += 1;
        open.still += usize::from(calls[..still].iter().any(is_one));
    }
    open.error_ns = if open.still < open.threads { decoder.open_error_ns() } else { 0 };
    open
}

/// Corrected so that each method's mean is what the tree says. Methods of the same name, of different loaders, are one to the reader.
fn statistics(facts: &Facts, decoder: &Decoder, merged: &Tree, clock: &Clock) -> Vec<MethodStatistics> {
    /// However many probes there are: at least this part of an invocation's time was none of theirs.
    const LEAST: f64 = 0.25;
    let mut by_name: FxHashMap<&str, (MethodIndex, Invocations)> = FxHashMap::default();
    for (method, invocations) in decoder.invocations() {
        let index = MethodIndex(method.0 as usize - 1);
        let Some(name) = facts.methods.get(index.0) else { continue };
        let (_, all) = by_name.entry(&name.machine).or_insert_with(|| (index, Invocations::new()));
        all.add(invocations);
    }
    if by_name.is_empty() {
        return Vec::new();
    }
    let mut totals: FxHashMap<&str, (u64, u64)> = FxHashMap::default();
    for node in &merged.nodes {
        let (total_ns, calls) = totals.entry(&facts.methods[node.method.0].machine).or_default();
        *total_ns += node.total_ns;
        *calls += node.calls;
    }
    let calibrated = PairCost { inner_ns: clock.inner_ns, outer_ns: clock.outer_ns, least: LEAST };
    let mut statistics: Vec<MethodStatistics> = by_name
        .into_iter()
        .filter_map(|(name, (method, invocations))| {
            let (total_ns, calls) = totals.get(name).copied().unwrap_or_default();
            let cost = match calls {
                0 => calibrated,
                calls => invocations.cost_in_place(calibrated, total_ns as f64 / calls as f64),
            };
            let Summary { count, total_ns, min_ns, max_ns, mean_ns, sd_ns, p50_ns, p90_ns, p99_ns } =
                invocations.summary(cost)?;
            Some(MethodStatistics { method, count, total_ns, min_ns, max_ns, mean_ns, sd_ns, p50_ns, p90_ns, p99_ns })
        })
        .collect();
    statistics.sort_by_key(|statistics| statistics.method);
    statistics
}

/// What threads inside the roots waited on account of the profile.
fn waited_ns(decoder: &Decoder) -> u64 {
    PauseReason::ALL.into_iter().map(|reason| decoder.pauses(reason).duration_ns).sum()
}

fn thread_profiles(
    facts: &Facts,
    decoder: &Decoder,
    (merged, clock, lost): (&Tree, &Clock, &Lost),
    mut threads: Vec<(ThreadId, Cow<'_, Cct>, Vec<NodeId>)>,
    things: &mut Things<'_>,
) -> Vec<ThreadProfile> {
    let ids: Vec<ThreadId> = threads.iter().map(|(id, ..)| *id).collect();
    let trees = threads.iter_mut().map(|(_, tree, places)| (&**tree, std::mem::take(places)));
    let trees: Vec<(&Cct, Vec<NodeId>)> = trees.collect();
    ids.into_iter()
        .zip(divided(merged, clock, lost, &trees).into_iter().zip(&trees))
        .map(|(id, (mut tree, (cct, _)))| {
            counters::count(&mut tree, cct, &facts.history, clock.queued, things);
            let name = facts.threads.get(&id).cloned().unwrap_or_else(|| match id {
                FOLDED => "virtual threads that are not told apart".to_owned(),
                // The agent tells of virtual threads only what they are called.
                ThreadId(number) if decoder.is_virtual(id) => format!("virtual thread #{number}"),
                ThreadId(number) => format!("thread #{number}"),
            });
            ThreadProfile { id, name, tree }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Link, NodeIndex};

    #[test]
    fn much_that_was_handed_over_is_told() {
        let said = |handed_ns: u64| {
            let node = |parent, link, total_ns| Node { parent, link, total_ns, ..Node::empty(MethodIndex(0)) };
            let handed = node(Some(NodeIndex(0)), Some(Link::Thread), handed_ns);
            handed_over(&Tree::of(vec![node(None, None, 1_000), handed]))
        };
        assert_eq!((said(0), said(100)), (None, None));
        assert!(said(101).is_some_and(|said| said.starts_with("101 ns was handed over")));
    }
}
