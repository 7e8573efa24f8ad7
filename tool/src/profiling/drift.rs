//! Whether the probes' cost has drifted: they are timed before recording, and again when it is over (JFluid 5.3 does so once).
//!
//! A machine's speed changes, and so does what the JIT compiler makes of the probes. Nobody knows when that was, so the mean of
//! both stands for all of the recording, and half of what lies between them is added to the uncertainty.
//!
//! Why so, and at what cost: docs/decisions/calibration.md.

use headwater_protocol::message::Calibration;

use crate::profile::Drift;

/// What the probes cost, by both timings; and how far they drifted, if by more than the first one scattered.
pub(crate) fn settled(before: Calibration, after: Calibration) -> (Calibration, Option<Drift>) {
    let pair_ns = |timed: &Calibration| timed.inner_ns + timed.outer_ns;
    let drift = Drift { before_ns: pair_ns(&before), after_ns: pair_ns(&after) };
    let spread_ns = before.inner_spread_ns + before.outer_spread_ns;
    // Not a number is no drift either.
    if (drift.after_ns - drift.before_ns).abs() > spread_ns {
        let mean = |of: fn(&Calibration) -> f64| (of(&before) + of(&after)) / 2.0;
        let spread = |of: fn(&Calibration) -> f64, own: fn(&Calibration) -> f64| {
            own(&before).max(own(&after)) + (of(&before) - of(&after)).abs() / 2.0
        };
        let settled = Calibration {
            inner_ns: mean(|timed| timed.inner_ns),
            outer_ns: mean(|timed| timed.outer_ns),
            outside_ns: mean(|timed| timed.outside_ns),
            control_ns: mean(|timed| timed.control_ns),
            inner_spread_ns: spread(|timed| timed.inner_ns, |timed| timed.inner_spread_ns),
            outer_spread_ns: spread(|timed| timed.outer_ns, |timed| timed.outer_spread_ns),
            object_ns: object_ns(&before, &after),
        };
        return (settled, Some(drift));
    }
    let object_ns = if before.object_ns > 0.0 { before.object_ns } else { after.object_ns };
    (Calibration { object_ns, ..before }, None)
}

/// What telling of an object costs, by both timings or by the one of a time when objects were counted.
fn object_ns(one: &Calibration, other: &Calibration) -> f64 {
    let timed: Vec<f64> = [one, other].iter().map(|timed| timed.object_ns).filter(|ns| *ns > 0.0).collect();
    timed.iter().sum::<f64>() / timed.len().max(1) as f64
}

/// What the probes cost in the mean, if a part of the recording (0 to 1) was made with others.
pub(crate) fn mixed(usual: Calibration, others: Calibration, part: f64) -> Calibration {
    let mean = |of: fn(&Calibration) -> f64| of(&usual) * (1.0 - part) + of(&others) * part;
    Calibration {
        inner_ns: mean(|timed| timed.inner_ns),
        outer_ns: mean(|timed| timed.outer_ns),
        outside_ns: mean(|timed| timed.outside_ns),
        control_ns: mean(|timed| timed.control_ns),
        inner_spread_ns: usual.inner_spread_ns.max(others.inner_spread_ns),
        outer_spread_ns: usual.outer_spread_ns.max(others.outer_spread_ns),
        object_ns: object_ns(&usual, &others),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(inner_ns: f64, outer_ns: f64, spread_ns: f64) -> Calibration {
        let spread_ns = spread_ns / 2.0;
        Calibration {
            inner_ns,
            outer_ns,
            outside_ns: 3.0,
            control_ns: 30.0,
            inner_spread_ns: spread_ns,
            outer_spread_ns: spread_ns,
            object_ns: spread_ns,
        }
    }

    #[test]
    fn within_the_spread_the_first_timing_counts() {
        let before = timed(24.0, 25.0, 1.0);
        assert_eq!(settled(before, timed(24.3, 25.4, 0.1)), (before, None));
        assert_eq!(settled(before, timed(23.0, 26.0, 0.1)), (before, None), "what moved within the pair is no drift");
    }

    #[test]
    fn beyond_the_spread_it_is_the_mean_and_the_doubt_grows() {
        let (settled, drift) = settled(timed(24.0, 25.0, 1.0), timed(28.0, 27.0, 2.0));
        assert_eq!(drift, Some(Drift { before_ns: 49.0, after_ns: 55.0 }));
        assert_eq!((settled.inner_ns, settled.outer_ns, settled.outside_ns), (26.0, 26.0, 3.0));
        assert_eq!((settled.inner_spread_ns, settled.outer_spread_ns), (1.0 + 2.0, 1.0 + 1.0));
        assert_eq!(settled.object_ns, 0.75);
    }

    #[test]
    fn probes_that_were_others_for_a_part_cost_the_mean_of_both() {
        let mixed = mixed(timed(20.0, 10.0, 1.0), timed(40.0, 30.0, 2.0), 0.25);
        assert_eq!((mixed.inner_ns, mixed.outer_ns, mixed.inner_spread_ns), (25.0, 15.0, 1.0));
    }

    #[test]
    fn what_an_object_costs_is_known_from_when_objects_were_counted() {
        let of = |object_ns| Calibration { object_ns, ..timed(24.0, 25.0, 1.0) };
        for (before, after) in [(0.0, 4.0), (4.0, 0.0)] {
            assert_eq!(settled(of(before), of(after)).0.object_ns, 4.0);
            assert_eq!(mixed(of(before), of(after), 0.1).object_ns, 4.0);
        }
        assert_eq!(mixed(of(3.0), of(4.0), 0.1).object_ns, 3.5);
    }

    #[test]
    fn a_timing_that_failed_is_no_drift() {
        let before = timed(24.0, 25.0, 1.0);
        assert_eq!(settled(before, timed(f64::NAN, 25.0, 1.0)), (before, None));
    }
}
