//! What a probe pair costs where it is, by the calls of the roots that were timed as wholes: after the profile, or as control
//! invocations. What calibration says of an empty method in a loop is then mainly how it divides between method and caller.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use crate::cct::{Below, Cct, NodeId};
use crate::decode::{Controls, Partial};
use crate::profile::Clock;

/// Fewer invocations that were timed as wholes say nothing.
pub const MIN_CONTROLS: u64 = 3;
/// How far a probe pair's cost in place is expected to be from the calibrated one: half as much, or half as much again, and
/// half a nanosecond at least.
const PLACES: f64 = 0.5;
/// More than this many times its calibrated cost, which is of compiled code, no probe pair takes in place, unless the interpreter runs it.
const IMPLAUSIBLE: f64 = 40.0;
/// The most that a probe pair takes in the interpreter, in ns: 1,000 to 5,000 under `-Xint`, by what the time is read from.
pub const MOST_OF_A_PAIR_NS: f64 = 5_000.0;
/// So far a difference must be from chance before it is believed to be something else.
const STANDARD_ERRORS: f64 = 3.0;
/// How far it is expected to differ between places of one program.
const BETWEEN_PLACES: f64 = 0.1;
/// How far a machine's speed is expected to change between recorded calls and those timed as wholes.
const DRIFT: f64 = 0.02;

/// Of what is anywhere between nothing and one, the variance.
const BETWEEN_NOTHING_AND_ONE: f64 = 1.0 / 12.0;

/// A root's recorded calls, with everything below them.
#[derive(Clone, Copy, Debug)]
pub struct RootCalls {
    /// The root.
    pub method: MethodId,
    /// How often it was called; of a call that is not known from its beginning to its end, the part that is.
    pub calls: f64,
    /// Of that number: there are such calls.
    pub calls_variance: f64,
    /// These calls and all below.
    pub pairs: f64,
    /// Time as measured, probes included.
    pub measured_ns: f64,
}

impl RootCalls {
    /// What one call took by this clock, without the probes; `None` without calls.
    pub fn charged_ns(&self, clock: &Clock) -> Option<f64> {
        let probes = self.pairs * clock.inner_ns + (self.pairs - self.calls) * clock.outer_ns;
        (self.calls > 0.0).then(|| ((self.measured_ns - probes) / self.calls).max(0.0))
    }
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

/// The roots' recorded calls, as far as they can be compared with those of the reference.
///
/// A call that began before recording counts as much as it has calls below it, where the others have so many; unless its time
/// is not that of its probes: it may have waited for hours. Then nothing of it is taken, nor of one that has not returned.
pub fn root_calls(
    cct: &Cct,
    partial: &FxHashMap<MethodId, Partial>,
    clock: &Clock,
    reference: Reference<'_>,
) -> Vec<RootCalls> {
    let most_ns = Calibrated::of(clock).most_ns();
    let comparable = |(id, below): (NodeId, Below)| {
        let node = cct.node(id);
        let Partial { ended, ended_below, open_below, unfinished } =
            partial.get(&node.method()).copied().unwrap_or_default();
        let whole = below.since(open_below).since(ended_below);
        let mut root = RootCalls {
            method: node.method(),
            calls: node.calls as f64 - 0.5 * unfinished as f64,
            calls_variance: BETWEEN_NOTHING_AND_ONE * unfinished as f64,
            pairs: whole.calls as f64,
            measured_ns: whole.measured_ns as f64,
        };
        if ended > 0 && root.calls > 0.0 && root.pairs > 0.0 {
            let pairs = ended_below.calls as f64;
            let pairs_a_call = root.pairs / root.calls;
            let worth = (pairs / pairs_a_call).min(ended as f64);
            let (bare_ns, _) = reference.bare_ns(node.method(), pairs_a_call)?;
            let measured_ns = ended_below.measured_ns as f64;
            if measured_ns - worth * bare_ns <= most_ns * pairs {
                root.calls += worth;
                root.calls_variance += BETWEEN_NOTHING_AND_ONE * ended as f64;
                root.pairs += pairs;
                root.measured_ns += measured_ns;
            }
        }
        (root.calls > 0.0).then_some(root)
    };
    cct.roots().into_iter().filter_map(comparable).collect()
}

/// What calibration says of a probe pair.
struct Calibrated {
    pair_ns: f64,
    inner_part: f64,
    /// How far its cost in place may be from that.
    doubt_ns: f64,
}

impl Calibrated {
    fn of(clock: &Clock) -> Calibrated {
        // A noisy machine may calibrate next to nothing, or less.
        let (inner, outer) = (clock.inner_ns.max(0.0), clock.outer_ns.max(0.0));
        let pair_ns = inner + outer;
        Calibrated {
            pair_ns,
            inner_part: if pair_ns > 0.0 { inner / pair_ns } else { 0.5 },
            doubt_ns: (PLACES * pair_ns).max(clock.inner_spread_ns + clock.outer_spread_ns).max(PLACES),
        }
    }

    /// What it takes in no place.
    fn most_ns(&self) -> f64 {
        (IMPLAUSIBLE * (self.pair_ns + self.doubt_ns)).max(MOST_OF_A_PAIR_NS)
    }
}

/// The clock with the probes' cost as it is in place: what the recorded calls of the roots took longer than those timed as
/// wholes is what their probes cost. `None` where there are none of these, or too few; and where the difference is more than
/// probes can cost, in the interpreter too, so that something else differed: the recorded calls had other work, or ran for long in code
/// of their own that was not compiled yet.
///
/// The fit is weighted against the calibration: where probes are a small part of the time, the difference is mostly noise.
pub fn in_place(roots: impl IntoIterator<Item = RootCalls>, clock: &Clock, reference: Reference<'_>) -> Option<Clock> {
    let before = Calibrated::of(clock);
    let Calibrated { pair_ns: calibrated, inner_part, doubt_ns: doubt } = before;
    let (mut excess, mut all_pairs, mut variance) = (0.0, 0.0, 0.0);
    for RootCalls { method, calls, calls_variance, pairs, measured_ns } in roots {
        if reference.times.get(&method).is_none_or(|times| times.count < MIN_CONTROLS) {
            continue;
        }
        let Some((bare, error)) = reference.bare_ns(method, pairs / calls) else { continue };
        excess += measured_ns - bare * calls;
        variance += (error * calls).powi(2) + (DRIFT * bare * calls).powi(2) + bare * bare * calls_variance;
        // A root's own outer time lies outside the root.
        all_pairs += pairs - calls * (1.0 - inner_part);
    }
    if all_pairs <= 0.0 {
        return None;
    }
    let (found, found_variance) = (excess / all_pairs, variance / (all_pairs * all_pairs));
    if found - STANDARD_ERRORS * found_variance.sqrt() > before.most_ns() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::correction::tests::CLOCK;
    use crate::correction::{Known, correct};

    /// The cost in place where all calls are known from their beginning to their end.
    fn in_place(cct: &Cct, clock: &Clock, reference: Reference<'_>) -> Option<Clock> {
        super::in_place(root_calls(cct, &FxHashMap::default(), clock, reference), clock, reference)
    }

    /// A root that was called so often, with so many calls below it.
    fn tree(calls: u64, below: u64, measured_ns: u64) -> Cct {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let callee = cct.child(root, MethodId(2));
        cct.node_mut(root).calls = calls;
        cct.node_mut(callee).calls = below;
        cct.node_mut(callee).self_measured_ns = measured_ns;
        cct
    }

    #[test]
    fn a_call_that_began_before_recording_counts_as_far_as_it_is_known() {
        // Ten calls with 100 pairs each, of 50 ns; and two fifths of another one, which took as long.
        let cct = tree(10, 1_030, 10 * 6_000 + 2 * 3_000);
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[1_000, 1_000, 1_000]))]);
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let ended_below = Below { measured_ns: 6_000, calls: 40 };
        let partial = FxHashMap::from_iter([(MethodId(1), Partial { ended: 1, ended_below, ..Partial::default() })]);
        let [root] = root_calls(&cct, &partial, &CLOCK, reference)[..] else { panic!("one root") };
        assert!((root.calls - 10.4).abs() < 1e-9 && root.pairs == 1_030.0 + 10.0, "{root:?}");
        let clock = super::in_place([root], &CLOCK, reference).expect("enough");
        let charged_ns = root.charged_ns(&clock).expect("calls");
        assert!((charged_ns - 1_000.0).abs() < 40.0, "what it takes bare, not {charged_ns}");
    }

    #[test]
    fn a_call_that_began_before_recording_counts_though_the_interpreter_ran_it() {
        let coarse = Clock { inner_ns: 2.5, outer_ns: 2.5, inner_spread_ns: 0.1, outer_spread_ns: 0.1, ..CLOCK };
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[1_000, 1_000, 1_000]))]);
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        // Ten calls with 100 pairs each, of 60 ns; half of one that began before, whose pairs take 1,500 ns.
        let ended_below = Below { measured_ns: 75_000, calls: 50 };
        let cct = tree(10, 990 + 50, 60_000 + 75_000);
        let partial = FxHashMap::from_iter([(MethodId(1), Partial { ended: 1, ended_below, ..Partial::default() })]);
        let [root] = root_calls(&cct, &partial, &coarse, reference)[..] else { panic!("one root") };
        assert!((root.calls - 10.5).abs() < 1e-9, "{root:?}");
        let clock = super::in_place([root], &coarse, reference).expect("enough");
        let charged_ns = root.charged_ns(&clock).expect("calls");
        assert!((charged_ns - 1_000.0).abs() < 50.0, "what it takes bare, not {charged_ns}");
    }

    #[test]
    fn a_call_that_waited_since_before_recording_says_nothing() {
        let waited_ns = 60_000_000_000;
        let cct = tree(10, 1_030, 10 * 6_000 + waited_ns);
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[1_000, 1_000, 1_000]))]);
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let waited = Below { measured_ns: waited_ns, calls: 40 };
        let ended = Partial { ended: 1, ended_below: waited, ..Partial::default() };
        let open = Partial { open_below: waited, ..Partial::default() };
        for partial in [ended, open] {
            let partial = FxHashMap::from_iter([(MethodId(1), partial)]);
            let [root] = root_calls(&cct, &partial, &CLOCK, reference)[..] else { panic!("one root") };
            assert_eq!((root.calls, root.pairs, root.measured_ns), (10.0, 1_000.0, 60_000.0));
        }
    }

    #[test]
    fn of_a_call_that_has_not_returned_a_half_is_expected() {
        let cct = tree(10, 990, 60_000);
        let times = FxHashMap::default();
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let partial = FxHashMap::from_iter([(MethodId(1), Partial { unfinished: 2, ..Partial::default() })]);
        assert_eq!(root_calls(&cct, &partial, &CLOCK, reference)[0].calls, 9.0);
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
        let charged = correct(&cct, &clock, Known::InPlace { division_ns: 0.0 }).nodes[0].total_ns as f64 / 10.0;
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
        assert_eq!(
            correct(&cct, &clock, Known::InPlace { division_ns: 0.0 }).nodes[0].total_ns / 1_000,
            100,
            "{clock:?}"
        );
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
}
