//! How a probe pair's cost divides between the method that is called and its caller, where the pair's cost is known from the roots'
//! own calls.
//!
//! Calibration says it of an empty method in a loop. In place it is somewhat different, and where methods take less than their probes,
//! that decides what is left to whom: half a nanosecond more on the one side is one less on the other. But nobody takes less than
//! nothing, which often leaves little room. So every division is weighted by how far it is from the calibrated one, and by how much time
//! it would take from methods that do not have it; the mean is used, and the deviation from it is what remains uncertain.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::calls_made;
use crate::cct::Cct;
use crate::profile::Clock;

/// How far the division in place is expected to be from the calibrated one, as a part of the pair.
const DOUBT: f64 = 0.1;
/// So much of the probes' time may be missing in methods because their places differ.
const TOLERATED: f64 = 0.01;
/// Divisions that are looked at.
const STEPS: usize = 400;

/// A method's calls, those that it makes, and its own time, probes included.
#[derive(Clone, Copy, Debug, Default)]
struct Own {
    calls: f64,
    made: f64,
    measured_ns: f64,
}

/// The clock with its pair's cost divided anew, and how uncertain that is, in ns.
pub fn divided(cct: &Cct, clock: Clock) -> (Clock, f64) {
    let pair_ns = clock.inner_ns + clock.outer_ns;
    let made = calls_made(cct);
    let mut methods: FxHashMap<MethodId, Own> = FxHashMap::default();
    for (id, node) in cct.nodes().skip(1) {
        let own = methods.entry(node.method()).or_default();
        own.calls += node.calls as f64;
        own.made += made[id.index()] as f64;
        own.measured_ns += node.self_measured_ns as f64;
    }
    let probes_ns = pair_ns * methods.values().map(|own| own.calls).sum::<f64>();
    if probes_ns <= 0.0 {
        return (clock, 0.0);
    }
    let missing = |inner_ns: f64| {
        let left = |own: &Own| own.measured_ns - own.calls * inner_ns - own.made * (pair_ns - inner_ns);
        methods.values().map(|own| (-left(own)).max(0.0)).sum::<f64>()
    };
    let weighed: Vec<(f64, f64)> = (0..=STEPS)
        .map(|step| {
            let inner_ns = pair_ns * step as f64 / STEPS as f64;
            let off = (inner_ns - clock.inner_ns) / (DOUBT * pair_ns);
            (inner_ns, -0.5 * off * off - missing(inner_ns) / (TOLERATED * probes_ns))
        })
        .collect();
    let most = weighed.iter().fold(f64::NEG_INFINITY, |most, (_, logarithm)| logarithm.max(most));
    let (mut weights, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for (inner_ns, logarithm) in weighed {
        let weight = (logarithm - most).exp();
        weights += weight;
        sum += weight * inner_ns;
        squares += weight * inner_ns * inner_ns;
    }
    let inner_ns = sum / weights;
    let deviation = (squares / weights - inner_ns * inner_ns).max(0.0).sqrt();
    (Clock { inner_ns, outer_ns: pair_ns - inner_ns, ..clock }, deviation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cct::NodeId;
    use crate::correction::tests::CLOCK;

    /// A root that makes a thousand calls of a method; own times, without probes that cost 12 and 18 ns.
    fn tree(root_ns: f64, callee_ns: f64) -> Cct {
        const CALLS: u64 = 1_000;
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let callee = cct.child(root, MethodId(2));
        for (id, calls, measured) in
            [(root, 1, root_ns + CALLS as f64 * 18.0), (callee, CALLS, CALLS as f64 * (callee_ns + 12.0))]
        {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured as u64;
        }
        cct
    }

    fn inner_ns(cct: &Cct, calibrated_ns: f64) -> f64 {
        let (clock, _) = divided(cct, Clock { inner_ns: calibrated_ns, outer_ns: 30.0 - calibrated_ns, ..CLOCK });
        assert!((clock.inner_ns + clock.outer_ns - 30.0).abs() < 1e-6, "the sum is known: {clock:?}");
        clock.inner_ns
    }

    #[test]
    fn where_nothing_is_left_the_division_does_not_depend_on_calibration() {
        // Each call has 1 ns of its own, and its caller 1 ns for it: between 11 and 13 there is room.
        let cct = tree(1_000.0, 1.0);
        for calibrated in [9.0, 11.0, 12.0, 13.0, 15.0] {
            let inner = inner_ns(&cct, calibrated);
            assert!((11.0..=13.0).contains(&inner), "{inner} of {calibrated}");
        }
        let apart = inner_ns(&cct, 13.0) - inner_ns(&cct, 11.0);
        assert!((0.0..0.5).contains(&apart), "{apart}");
    }

    #[test]
    fn where_methods_take_long_calibration_is_all_there_is() {
        let cct = tree(100_000.0, 100.0);
        for calibrated in [9.0, 15.0] {
            assert!((inner_ns(&cct, calibrated) - calibrated).abs() < 0.05);
        }
    }

    #[test]
    fn where_there_is_room_the_division_is_uncertain() {
        let (_, narrow) = divided(&tree(1_000.0, 1.0), CLOCK);
        let (_, wide) = divided(&tree(100_000.0, 100.0), CLOCK);
        assert!((0.3..1.0).contains(&narrow) && (2.9..3.1).contains(&wide), "{narrow} {wide}");
        assert_eq!(divided(&Cct::new(), CLOCK), (CLOCK, 0.0), "without calls there is nothing to divide");
    }
}
