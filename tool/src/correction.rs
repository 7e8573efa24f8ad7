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
//! Where roots had control invocations, the cost of a probe pair is fitted to these ([`in_place`]): what calibration says of
//! an empty method in a loop is then only how it divides between method and caller.
//!
//! Times by a coarse clock are samples: of a time t with steps of p, `sqrt(t * p)` is one standard deviation.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use crate::cct::{Cct, NodeId};
use crate::decode::Controls;
use crate::profile::{Clock, MethodIndex, Node, NodeIndex, Tree};

/// Fewer control invocations say nothing.
const MIN_CONTROLS: u64 = 3;

/// The clock with the probes' cost as it is in place, by the roots' control invocations: what the recorded calls of a root
/// took longer than its control invocations is what their probes cost. `None` where there are none, or too few.
pub fn in_place(cct: &Cct, clock: &Clock, controls: &FxHashMap<MethodId, Controls>, outside_ns: f64) -> Option<Clock> {
    let (mut excess, mut expected, mut pairs, mut variance) = (0.0, 0.0, 0.0, 0.0);
    let mut roots: FxHashMap<u32, (f64, f64)> = FxHashMap::default();
    let mut root_of = vec![0; cct.len()];
    for (id, node) in cct.nodes().skip(1) {
        let parent = cct.parent(id).map_or(0, NodeId::index);
        root_of[id.index()] = if parent == 0 { id.index() } else { root_of[parent] };
        let (measured, calls) = roots.entry(root_of[id.index()] as u32).or_default();
        *measured += node.self_measured_ns as f64;
        *calls += node.calls as f64;
    }
    for (id, node) in cct.nodes().filter(|(id, _)| cct.parent(*id) == Some(NodeId::TOP)) {
        let Some(control) = controls.get(&node.method).filter(|control| control.count >= MIN_CONTROLS) else {
            continue;
        };
        let Some((measured, calls)) = roots.get(&(id.index() as u32)) else { continue };
        let bare = bare_ns(control, outside_ns, *calls / node.calls as f64);
        excess += measured - bare * node.calls as f64;
        variance += (control.error_ns() * node.calls as f64).powi(2);
        // A root's own outer time lies outside the root.
        expected += calls * (clock.inner_ns + clock.outer_ns) - node.calls as f64 * clock.outer_ns;
        pairs += calls;
    }
    if expected <= 0.0 {
        return None;
    }
    let factor = (excess / expected).max(0.0);
    let spread = variance.sqrt() / pairs / 2.0;
    Some(Clock {
        inner_ns: clock.inner_ns * factor,
        outer_ns: clock.outer_ns * factor,
        inner_spread_ns: clock.inner_spread_ns + spread,
        outer_spread_ns: clock.outer_spread_ns + spread,
        ..*clock
    })
}

/// What a control invocation would have taken without idle probes in it.
pub fn bare_ns(control: &Controls, outside_ns: f64, calls_below: f64) -> f64 {
    (control.mean_ns() - outside_ns * calls_below).max(0.0)
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
        if let Some(parent) = cct.parent(id) {
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
    let parents: Vec<usize> = cct.nodes().map(|(id, _)| cct.parent(id).map_or(0, NodeId::index)).collect();
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
            method: MethodIndex(node.method.0 as usize - 1),
            calls: node.calls,
            thrown: node.thrown,
            self_ns,
            total_ns: self_ns,
            error_ns: (own.spread + (self_ns as f64 - own.exact).abs() + sampling(own.measured)).round() as u64,
            total_error_ns: (total.spread + total.missing + sampling(total.measured)).round() as u64,
        });
    }
    for index in (0..nodes.len()).rev() {
        let node = nodes[index];
        if let Some(parent) = node.parent {
            nodes[parent.0].total_ns += node.total_ns;
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
    use crate::profile::ClockMode;

    const CLOCK: Clock =
        Clock { mode: ClockMode::Exact, inner_ns: 10.0, inner_spread_ns: 1.0, outer_ns: 20.0, outer_spread_ns: 0.5 };

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
        // A call with 100 pairs took 12,000 ns recorded and 2,300 otherwise, of which 3 for each idle pair.
        let mut controls = FxHashMap::from_iter([(MethodId(1), Controls::of(&[2_300, 2_300]))]);
        assert_eq!(in_place(&cct, &CLOCK, &controls, 3.0), None, "two are too few");
        controls.insert(MethodId(1), Controls::of(&[2_300, 2_200, 2_400]));
        let clock = in_place(&cct, &CLOCK, &controls, 3.0).expect("enough");
        assert_eq!(clock.outer_ns, 2.0 * clock.inner_ns, "they keep their proportion");
        let tree = correct(&cct, &clock);
        assert_eq!(tree.nodes[0].total_ns, 10 * (2_300 - 3 * 100), "the root is charged what it takes bare");
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
