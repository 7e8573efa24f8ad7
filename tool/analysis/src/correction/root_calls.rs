//! The roots' recorded calls, and those that were timed as wholes, without recording.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use crate::cct::{Below, Cct, NodeId};
use crate::decode::{Controls, Partial};
use headwater_profile::profile::Clock;

/// Fewer invocations that were timed as wholes say nothing.
pub const MIN_CONTROLS: u64 = 3;
/// The most that a probe pair takes in the interpreter, in ns: 1,000 to 5,000 under `-Xint`, by what the time is read from.
pub const MOST_OF_A_PAIR_NS: f64 = 5_000.0;

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
pub fn root_calls(cct: &Cct, partial: &FxHashMap<MethodId, Partial>, reference: Reference<'_>) -> Vec<RootCalls> {
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
            if measured_ns - worth * bare_ns <= MOST_OF_A_PAIR_NS * pairs {
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

#[cfg(test)]
mod tests {
    use super::*;

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
        let [root] = root_calls(&cct, &partial, reference)[..] else { panic!("one root") };
        assert!((root.calls - 10.4).abs() < 1e-9 && root.pairs == 1_030.0 + 10.0, "{root:?}");
    }

    #[test]
    fn a_call_that_began_before_recording_counts_though_the_interpreter_ran_it() {
        let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[1_000, 1_000, 1_000]))]);
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        // Ten calls with 100 pairs each, of 60 ns; half of one that began before, whose pairs take 1,500 ns.
        let ended_below = Below { measured_ns: 75_000, calls: 50 };
        let cct = tree(10, 990 + 50, 60_000 + 75_000);
        let partial = FxHashMap::from_iter([(MethodId(1), Partial { ended: 1, ended_below, ..Partial::default() })]);
        let [root] = root_calls(&cct, &partial, reference)[..] else { panic!("one root") };
        assert!((root.calls - 10.5).abs() < 1e-9, "{root:?}");
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
            let [root] = root_calls(&cct, &partial, reference)[..] else { panic!("one root") };
            assert_eq!((root.calls, root.pairs, root.measured_ns), (10.0, 1_000.0, 60_000.0));
        }
    }

    #[test]
    fn of_a_call_that_has_not_returned_a_half_is_expected() {
        let cct = tree(10, 990, 60_000);
        let times = FxHashMap::default();
        let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
        let partial = FxHashMap::from_iter([(MethodId(1), Partial { unfinished: 2, ..Partial::default() })]);
        assert_eq!(root_calls(&cct, &partial, reference)[0].calls, 9.0);
    }
}
