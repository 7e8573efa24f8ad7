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
//! fitted to these ([`in_place`]), and divided between callee and caller with regard to what there is ([`divided`]). What the one has
//! too much by that division, the other has too little: that part of the uncertainty grows with the difference of n and m, and
//! of a subtree with its own n alone.
//!
//! Times by a coarse clock are samples: of a time t with steps of p, `sqrt(t * p)` is one standard deviation.

mod division;
mod in_place;

pub use division::divided;
pub use in_place::{MIN_CONTROLS, Reference, RootCalls, in_place, root_calls};

use crate::cct::{Cct, NodeId};
use crate::profile::{Clock, Link, MethodIndex, Node, NodeIndex, Tree};

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

/// Where a probe pair's cost is known from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// From an empty method.
    Calibrated,
    /// From the roots' own calls: how costs differ below a root says nothing of the root's total.
    InPlace {
        /// How uncertain the division between callee and caller is, in ns: what the one has too much, the other has too little.
        division_ns: f64,
    },
}

/// A tree's corrected times.
pub fn correct(cct: &Cct, clock: &Clock, known: Known) -> Tree {
    let calls_made = calls_made(cct);
    let own = |(id, node): (NodeId, &crate::cct::Node)| {
        let (n, m) = (node.calls as f64, calls_made[id.index()] as f64);
        let measured = node.self_measured_ns as f64;
        let exact = measured - n * clock.inner_ns - m * clock.outer_ns;
        let spread = n * clock.inner_spread_ns + m * clock.outer_spread_ns;
        Sum { exact, measured, spread, missing: (-exact).max(0.0) }
    };
    let selfs: Vec<Sum> = cct.nodes().map(own).collect();
    // Above what was handed over nothing takes part in its time.
    let caller = |(id, node): (NodeId, &crate::cct::Node)| cct.parent(id).filter(|_| !node.is_handed());
    let parents: Vec<usize> = cct.nodes().map(|node| caller(node).map_or(0, NodeId::index)).collect();
    // Children come after their parents.
    let mut totals = selfs.clone();
    totals[0] = Sum::default();
    for index in (1..totals.len()).rev() {
        let total = totals[index];
        totals[parents[index]].add(total);
    }
    let given = give(&selfs, &totals, &parents);

    let (is_in_place, division_ns) = match known {
        Known::Calibrated => (false, 0.0),
        Known::InPlace { division_ns } => (true, division_ns),
    };
    let moved = |id: NodeId, total: Sum| {
        let is_fitted = is_in_place && cct.parent(id) == Some(NodeId::TOP);
        if is_fitted { (-total.exact).max(0.0) } else { total.missing }
    };
    let sampling = |ns: f64| clock.mode.period().map_or(0.0, |period| (ns * period.as_nanos() as f64).sqrt());
    let mut nodes: Vec<Node> = Vec::with_capacity(cct.len() - 1);
    for (id, node) in cct.nodes().skip(1) {
        let (own, total) = (selfs[id.index()], totals[id.index()]);
        let self_ns = given[id.index()];
        // Below a node, what callees have too much their callers have too little.
        let self_spread = own.spread + node.calls.abs_diff(calls_made[id.index()]) as f64 * division_ns;
        let total_spread = total.spread + node.calls as f64 * division_ns;
        nodes.push(Node {
            parent: cct.parent(id).filter(|parent| *parent != NodeId::TOP).map(|parent| NodeIndex(parent.index() - 1)),
            link: node.is_handed().then_some(Link::Thread),
            method: MethodIndex(node.method().0 as usize - 1),
            calls: node.calls,
            thrown: cct.thrown(id),
            self_ns,
            total_ns: self_ns,
            error_ns: (self_spread + (self_ns as f64 - own.exact).abs() + sampling(own.measured)).round() as u64,
            total_error_ns: (total_spread + moved(id, total) + sampling(total.measured)).round() as u64,
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

/// How many calls each node makes.
fn calls_made(cct: &Cct) -> Vec<u64> {
    let mut made = vec![0; cct.len()];
    for (id, node) in cct.nodes() {
        // What was handed over is entered beside everybody's clock.
        if let Some(parent) = cct.parent(id).filter(|_| !node.is_handed()) {
            made[parent.index()] += node.calls;
        }
    }
    made
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
    use headwater_protocol::MethodId;

    use super::*;
    use crate::profile::{ClockMode, ClockSource};

    pub(super) const CLOCK: Clock = Clock {
        mode: ClockMode::Exact,
        source: ClockSource::NanoTime,
        inner_ns: 10.0,
        inner_spread_ns: 1.0,
        outer_ns: 20.0,
        outer_spread_ns: 0.5,
        drift: None,
    };

    /// A root that calls one method; calls and measured self time of each.
    fn called(root: (u64, u64), callee: (u64, u64)) -> Cct {
        let mut cct = Cct::new();
        let outer = cct.child(NodeId::TOP, MethodId(1));
        let inner = cct.child(outer, MethodId(2));
        for (id, (calls, measured)) in [(outer, root), (inner, callee)] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        cct
    }

    fn corrected(root: (u64, u64), callee: (u64, u64)) -> Tree {
        correct(&called(root, callee), &CLOCK, Known::Calibrated)
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
        let tree = correct(&cct, &CLOCK, Known::Calibrated);
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
        let tree = correct(&called((1, 1_000), (100, 5_000)), &CLOCK, Known::InPlace { division_ns: 0.0 });
        assert_eq!(tree.nodes[0].total_error_ns, 1 + 50 + 100, "the root's total is what was fitted");
        let tree = correct(&called((1, 9_000), (100, 5_000)), &CLOCK, Known::InPlace { division_ns: 0.5 });
        let errors: Vec<u64> = tree.nodes.iter().map(|node| node.error_ns).collect();
        assert_eq!((errors[1], tree.nodes[1].total_error_ns), (100 + 50, 100 + 50), "each of its calls");
        assert_eq!(tree.nodes[0].total_error_ns, 1 + 50 + 100 + 1, "between them it is no matter");
    }

    #[test]
    fn a_time_is_never_negative_and_what_is_missing_is_uncertain() {
        let tree = corrected((1, 10_000), (10, 30));
        assert_eq!((tree.nodes[1].self_ns, tree.nodes[1].error_ns), (0, 70 + 10));
    }
}
