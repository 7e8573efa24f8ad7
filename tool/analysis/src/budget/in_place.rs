//! What a probe pair costs where it is, in the mean over a root's calls, by how much longer these take than calls that were timed as wholes. What calibration says of
//! an empty method in a loop is then mainly how it divides between method and caller.

use crate::correction::{MIN_CONTROLS, MOST_OF_A_PAIR_NS, Reference, RootCalls};
use headwater_profile::profile::Clock;

/// How far a probe pair's cost in place is expected to be from the calibrated one: half as much, or half as much again, and
/// half a nanosecond at least.
const PLACES: f64 = 0.5;
/// More than this many times its calibrated cost, which is of compiled code, no probe pair takes in place, unless the interpreter runs it.
const IMPLAUSIBLE: f64 = 40.0;
/// So far a difference must be from chance before it is believed to be something else.
const STANDARD_ERRORS: f64 = 3.0;
/// How far it is expected to differ between places of one program.
const BETWEEN_PLACES: f64 = 0.1;
/// How far a machine's speed is expected to change between recorded calls and those timed as wholes.
const DRIFT: f64 = 0.02;

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
    use headwater_protocol::MethodId;
    use rustc_hash::FxHashMap;

    use super::*;
    use crate::cct::{Cct, NodeId};
    use crate::correction::root_calls;
    use crate::correction::tests::CLOCK;
    use crate::decode::Controls;

    /// The cost in place where all calls are known from their beginning to their end.
    fn in_place(cct: &Cct, clock: &Clock, reference: Reference<'_>) -> Option<Clock> {
        super::in_place(root_calls(cct, &FxHashMap::default(), reference), clock, reference)
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
        let reference = Reference { times: &times, idle_ns: 3.0, timing_ns: 50.0 };
        let charged = root_calls(&cct, &FxHashMap::default(), reference)[0].charged_ns(&clock).expect("calls");
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
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let charged = root_calls(&cct, &FxHashMap::default(), reference)[0].charged_ns(&clock).expect("calls");
        assert!((charged - 100.0).abs() < 1.0, "{charged} by {clock:?}");
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
