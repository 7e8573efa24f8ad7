//! Taking the instrumentation's own cost out of measured times (JFluid 5.3).
//!
//! Of each of a node's n calls, the inner time t_I of its probe pair lies between its own two timestamps; of each of the m calls that
//! it makes, the outer time t_O lies between its timestamps and its callee's. So
//! `t_exact = t_meas - n * t_I - m * t_O`, and its uncertainty is `n * s_I + m * s_O` with the spreads of both: the calibration errs in one
//! direction for all calls alike, so errors add up.
//!
//! The cost of a probe differs from place to place, so some nodes come out below zero, and others too high by as much. A subtree's
//! time is the sum of its nodes' as they came out, which evens that out; nodes below zero are then set to zero, and the
//! others of the subtree give what that took. What was moved is part of the uncertainty.
//!
//! Where calls of the roots were timed as wholes, after the profile or as control invocations, the cost of a probe pair is
//! fitted to these ([`in_place`]): what calibration says of an empty method in a loop is then mainly how it divides between
//! method and caller.
//!
//! Times by a coarse clock are samples: of a time t with steps of p, `sqrt(t * p)` is one standard deviation.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use crate::cct::{Cct, NodeId};
use crate::decode::Controls;
use crate::profile::{Clock, Link, MethodIndex, Node, NodeIndex, Tree};

/// Fewer invocations that were timed as wholes say nothing.
pub const MIN_CONTROLS: u64 = 3;
/// How far a probe pair's cost in place is expected to be from the calibrated one: half as much, or half as much again, and
/// half a nanosecond at least.
const PLACES: f64 = 0.5;
/// More than this many times its calibrated cost no probe pair takes in place: some 20 times is what the interpreter needs, where the
/// calibration ran compiled.
const IMPLAUSIBLE: f64 = 40.0;
/// So far a difference must be from chance before it is believed to be something else.
const STANDARD_ERRORS: f64 = 3.0;
/// How far it is expected to differ between places of one program.
const BETWEEN_PLACES: f64 = 0.1;
/// How far a machine's speed is expected to change between recorded calls and those timed as wholes.
const DRIFT: f64 = 0.02;

/// A root's recorded calls, with everything below them.
#[derive(Clone, Copy, Debug)]
pub struct RootCalls {
    /// The root.
    pub method: MethodId,
    /// How often it was called.
    pub calls: f64,
    /// These calls and all below.
    pub pairs: f64,
    /// Time as measured, probes included.
    pub measured_ns: f64,
}

/// Calls of roots that were timed as wholes, and what of their time is not the program's.
#[derive(Clone, Copy, Debug)]
pub struct Reference<'a> {
    /// The calls.
    pub times: &'a FxHashMap<MethodId, Controls>,
    /// What a probe pair below the root cost while nothing was recorded, in ns.
    pub idle_ns: f64,
    /// What timing one call adds to it, in ns.
    pub timing_ns: f64,
}

impl Reference<'_> {
    /// What a root's call takes without probes, if there are such calls; and its standard error. In ns.
    pub fn bare_ns(&self, root: MethodId, pairs_a_call: f64) -> Option<(f64, f64)> {
        let times = self.times.get(&root).filter(|times| times.count > 0)?;
        let bare = times.mean_ns() - self.timing_ns - self.idle_ns * pairs_a_call;
        Some((bare.max(0.0), times.error_ns()))
    }
}

/// The clock with the probes' cost as it is in place: what the recorded calls of the roots took longer than those timed as
/// wholes is what their probes cost. `None` where there are none of these, or too few; and where the difference is more than
/// probes can cost, so that something else differed: mostly that the recorded calls were not compiled yet.
///
/// The fit is weighted against the calibration: where probes are a small part of the time, the difference is mostly noise.
pub fn in_place(cct: &Cct, clock: &Clock, reference: Reference<'_>) -> Option<Clock> {
    let roots = cct.roots().into_iter().map(|(id, below)| RootCalls {
        method: cct.node(id).method,
        calls: cct.node(id).calls as f64,
        pairs: below.calls as f64,
        measured_ns: below.measured_ns as f64,
    });
    in_place_of(roots, clock, reference)
}

/// The same, of roots' recorded calls that were added up.
pub fn in_place_of(roots: impl Iterator<Item = RootCalls>, clock: &Clock, reference: Reference<'_>) -> Option<Clock> {
    // A noisy machine may calibrate next to nothing, or less.
    let (inner, outer) = (clock.inner_ns.max(0.0), clock.outer_ns.max(0.0));
    let calibrated = inner + outer;
    let inner_part = if calibrated > 0.0 { inner / calibrated } else { 0.5 };
    let doubt = (PLACES * calibrated).max(clock.inner_spread_ns + clock.outer_spread_ns).max(PLACES);
    let (mut excess, mut all_pairs, mut variance) = (0.0, 0.0, 0.0);
    for RootCalls { method, calls, pairs, measured_ns } in roots {
        if reference.times.get(&method).is_none_or(|times| times.count < MIN_CONTROLS) {
            continue;
        }
        if calls == 0.0 {
            // Open when results were forgotten: its calls were before.
            continue;
        }
        let Some((bare, error)) = reference.bare_ns(method, pairs / calls) else { continue };
        excess += measured_ns - bare * calls;
        variance += (error * calls).powi(2) + (DRIFT * bare * calls).powi(2);
        // A root's own outer time lies outside the root.
        all_pairs += pairs - calls * (1.0 - inner_part);
    }
    if all_pairs <= 0.0 {
        return None;
    }
    let (found, found_variance) = (excess / all_pairs, variance / (all_pairs * all_pairs));
    if found - STANDARD_ERRORS * found_variance.sqrt() > IMPLAUSIBLE * (calibrated + doubt) {
        return None;
    }
    // What is found so far from what was expected that chance does not explain it says how little that was worth.
    let surprise = (found - calibrated).powi(2) - STANDARD_ERRORS.powi(2) * found_variance;
    let doubt = doubt.max(surprise.max(0.0).sqrt());
    // The mean of both, weighted by their variances.
    let weight = doubt * doubt / (doubt * doubt + found_variance);
    let pair = (calibrated + weight * (found - calibrated)).max(0.0);
    // The doubt that is left, and that places still differ from each other; as far as calibration scattered, but what was
    // a disturbance then is none now.
    let spread = |calibrated_ns: f64, part: f64| {
        part * doubt * (1.0 - weight).sqrt() + calibrated_ns.min(BETWEEN_PLACES * pair * part)
    };
    Some(Clock {
        inner_ns: pair * inner_part,
        outer_ns: pair * (1.0 - inner_part),
        inner_spread_ns: spread(clock.inner_spread_ns, inner_part),
        outer_spread_ns: spread(clock.outer_spread_ns, 1.0 - inner_part),
        ..*clock
    })
}

/// What is known of a node, or of a subtree, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Corrected; may be below zero.
    exact: f64,
    measured: f64,
    spread: f64,
    /// How far nodes are below zero.
    missing: f64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.exact += other.exact;
        self.measured += other.measured;
        self.spread += other.spread;
        self.missing += other.missing;
    }
}

/// A tree's corrected times.
pub fn correct(cct: &Cct, clock: &Clock) -> Tree {
    let mut calls_made = vec![0_u64; cct.len()];
    for (id, node) in cct.nodes() {
        // What was handed over is entered beside everybody's clock.
        if let Some(parent) = cct.parent(id).filter(|_| !node.handed) {
            calls_made[parent.index()] += node.calls;
        }
    }
    let own = |(id, node): (NodeId, &crate::cct::Node)| {
        let (n, m) = (node.calls as f64, calls_made[id.index()] as f64);
        let measured = node.self_measured_ns as f64;
        let exact = measured - n * clock.inner_ns - m * clock.outer_ns;
        let spread = n * clock.inner_spread_ns + m * clock.outer_spread_ns;
        Sum { exact, measured, spread, missing: (-exact).max(0.0) }
    };
    let selfs: Vec<Sum> = cct.nodes().map(own).collect();
    // Above what was handed over nothing takes part in its time.
    let caller = |(id, node): (NodeId, &crate::cct::Node)| cct.parent(id).filter(|_| !node.handed);
    let parents: Vec<usize> = cct.nodes().map(|node| caller(node).map_or(0, NodeId::index)).collect();
    // Children come after their parents.
    let mut totals = selfs.clone();
    totals[0] = Sum::default();
    for index in (1..totals.len()).rev() {
        let total = totals[index];
        totals[parents[index]].add(total);
    }
    let given = give(&selfs, &totals, &parents);

    let sampling = |ns: f64| clock.mode.period().map_or(0.0, |period| (ns * period.as_nanos() as f64).sqrt());
    let mut nodes: Vec<Node> = Vec::with_capacity(cct.len() - 1);
    for (id, node) in cct.nodes().skip(1) {
        let (own, total) = (selfs[id.index()], totals[id.index()]);
        let self_ns = given[id.index()];
        nodes.push(Node {
            parent: cct.parent(id).filter(|parent| *parent != NodeId::TOP).map(|parent| NodeIndex(parent.index() - 1)),
            link: node.handed.then_some(Link::Thread),
            method: MethodIndex(node.method.0 as usize - 1),
            calls: node.calls,
            thrown: node.thrown,
            self_ns,
            total_ns: self_ns,
            error_ns: (own.spread + (self_ns as f64 - own.exact).abs() + sampling(own.measured)).round() as u64,
            total_error_ns: (total.spread + total.missing + sampling(total.measured)).round() as u64,
            cpu: cct.cpu(id),
        });
    }
    for index in (0..nodes.len()).rev() {
        let node = nodes[index];
        if let Some(caller) = node.caller() {
            nodes[caller.0].total_ns += node.total_ns;
        }
    }
    Tree { nodes }
}

/// The selfs, none below zero, that add up to each root's total.
fn give(selfs: &[Sum], totals: &[Sum], parents: &[usize]) -> Vec<u64> {
    // What a node and its children would get, if those below zero got nothing and the others gave nothing.
    let mut wanted: Vec<f64> = selfs.iter().map(|own| own.exact.max(0.0)).collect();
    for index in 1..totals.len() {
        wanted[parents[index]] += totals[index].exact.max(0.0);
    }
    let mut share = vec![0.0; totals.len()];
    let mut given = vec![0; totals.len()];
    for index in 1..totals.len() {
        let parent = parents[index];
        let before = totals[index].exact.max(0.0);
        let total = if parent == 0 { before } else { before * share[parent] };
        share[index] = if wanted[index] > 0.0 { total / wanted[index] } else { 0.0 };
        given[index] = (selfs[index].exact.max(0.0) * share[index]).round() as u64;
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{ClockMode, ClockSource};

    const CLOCK: Clock = Clock {
        mode: ClockMode::Exact,
        source: ClockSource::NanoTime,
        inner_ns: 10.0,
        inner_spread_ns: 1.0,
        outer_ns: 20.0,
        outer_spread_ns: 0.5,
        drift: None,
    };

    /// A root that calls one method; calls and measured self time of each.
    fn corrected(root: (u64, u64), callee: (u64, u64)) -> Tree {
        let mut cct = Cct::new();
        let outer = cct.child(NodeId::TOP, MethodId(1));
        let inner = cct.child(outer, MethodId(2));
        for (id, (calls, measured)) in [(outer, root), (inner, callee)] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        correct(&cct, &CLOCK)
    }

    #[test]
    fn control_invocations_say_what_a_pair_costs_in_place() {
        let mut cct = Cct::new();
        let outer = cct.child(NodeId::TOP, MethodId(1));
        let inner = cct.child(outer, MethodId(2));
        for (id, calls, measured) in [(outer, 10, 60_000), (inner, 990, 60_000)] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        // A call with 100 pairs took 12,000 ns recorded and 2,350 otherwise, of which 3 for each idle pair and 50 for timing.
        let mut times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[2_350, 2_350]))]);
        let fitted = |times: &_| in_place(&cct, &CLOCK, Reference { times, idle_ns: 3.0, timing_ns: 50.0 });
        assert_eq!(fitted(&times), None, "two are too few");
        times.insert(MethodId(1), Controls::of(&[2_350, 2_340, 2_360]));
        let clock = fitted(&times).expect("enough");
        assert!((clock.outer_ns / clock.inner_ns - 2.0).abs() < 1e-9, "they keep their proportion");
        let charged = correct(&cct, &clock).nodes[0].total_ns as f64 / 10.0;
        assert!((charged - 2_000.0).abs() < 20.0, "the root is charged what it takes bare, not {charged}");
        assert!(clock.inner_spread_ns < 1.2, "nothing is left of the doubt about the place: {clock:?}");
    }

    #[test]
    fn a_root_whose_calls_were_forgotten_says_nothing_about_the_probes() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let below = cct.child(root, MethodId(2));
        cct.node_mut(below).calls = 5;
        cct.node_mut(below).self_measured_ns = 5_000;
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[100, 100, 100]))]);
        assert_eq!(in_place(&cct, &CLOCK, Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 }), None);
    }

    #[test]
    fn a_calibration_that_went_wrong_is_made_good() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        cct.node_mut(root).calls = 1_000;
        cct.node_mut(root).self_measured_ns = 1_000 * 120;
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[100, 100, 100]))]);
        let noisy = Clock { inner_ns: -22.0, inner_spread_ns: 66.0, outer_ns: 0.0, ..CLOCK };
        let clock = in_place(&cct, &noisy, Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 }).expect("enough");
        assert_eq!(correct(&cct, &clock).nodes[0].total_ns / 1_000, 100, "{clock:?}");
    }

    #[test]
    fn calls_that_were_recorded_before_they_were_compiled_say_nothing_about_the_probes() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let below = cct.child(root, MethodId(2));
        for (id, calls, measured) in [(root, 50, 20_000_000), (below, 3_800, 90_000_000)] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[70_000, 72_000, 75_000]))]);
        assert_eq!(in_place(&cct, &CLOCK, Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 }), None);
    }

    #[test]
    fn a_cost_in_place_that_chance_does_not_explain_is_believed_on_a_noisy_machine() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let below = cct.child(root, MethodId(2));
        for (id, calls, measured) in [(root, 1_000, 16_000_000), (below, 99_000, 15_000_000)] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        // A call takes 31,000 ns with 100 pairs, 1,000 without, give or take 866.
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[0, 4_000, 0, 0]))]);
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let clock = in_place(&cct, &CLOCK, reference).expect("enough");
        let pair_ns = clock.inner_ns + clock.outer_ns;
        assert!((pair_ns - 300.0).abs() < 5.0, "calibration said 30, and {pair_ns} is not between both");
        // Where chance explains it, calibration is right.
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[0, 0, 0, 104_000]))]);
        let clock = in_place(&cct, &CLOCK, Reference { times: &times, ..reference }).expect("enough");
        assert!((clock.inner_ns + clock.outer_ns - 30.0).abs() < 5.0, "{clock:?}");
    }

    #[test]
    fn probes_that_cost_next_to_nothing_keep_their_calibrated_cost() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        cct.node_mut(root).calls = 100;
        cct.node_mut(root).self_measured_ns = 100 * 1_000_000;
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[990_000, 1_000_000, 1_000_000]))]);
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let clock = in_place(&cct, &CLOCK, reference).expect("enough");
        assert!((clock.inner_ns - CLOCK.inner_ns).abs() < 0.1, "{clock:?}");
    }

    #[test]
    fn inner_time_is_the_callees_outer_time_the_callers() {
        let tree = corrected((1, 1_000), (5, 500));
        let [root, callee] = tree.nodes[..] else { panic!("two nodes") };
        assert_eq!((root.self_ns, callee.self_ns), (1_000 - 10 - 5 * 20, 500 - 5 * 10));
        assert_eq!(root.total_ns, root.self_ns + callee.self_ns);
        assert_eq!((root.parent, callee.parent), (None, Some(NodeIndex(0))));
    }

    #[test]
    fn what_was_handed_over_takes_a_time_of_its_own() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let handed = cct.handed_child(root, MethodId(2));
        let called = cct.child(handed, MethodId(3));
        for (id, (calls, measured)) in [(root, (1, 1_000)), (handed, (5, 5_000)), (called, (5, 500))] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        let tree = correct(&cct, &CLOCK);
        let totals: Vec<u64> = tree.nodes.iter().map(|node| node.total_ns).collect();
        assert_eq!(
            totals,
            [990, 5_000 - 5 * 10 - 5 * 20 + 450, 450],
            "probes of what it hands over cost the root nothing"
        );
        assert_eq!(tree.nodes[1].link, Some(Link::Thread));
        assert_eq!(tree.total_ns(), 990 + totals[1]);
    }

    #[test]
    fn uncertainty_grows_with_the_calls() {
        let tree = corrected((1, 1_000), (100, 5_000));
        // The root came out 1,010 below zero: its callee gives that.
        assert_eq!((tree.nodes[0].self_ns, tree.nodes[1].self_ns), (0, 4_000 - 1_010));
        assert_eq!((tree.nodes[1].error_ns, tree.nodes[0].total_error_ns), (100 + 1_010, 1 + 50 + 100 + 1_010));
    }

    #[test]
    fn a_time_is_never_negative_and_what_is_missing_is_uncertain() {
        let tree = corrected((1, 10_000), (10, 30));
        assert_eq!((tree.nodes[1].self_ns, tree.nodes[1].error_ns), (0, 70 + 10));
    }
}
