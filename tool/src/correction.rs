//! Taking the instrumentation's own cost out of measured times (JFluid 5.3).
//!
//! Of each of a node's n calls, the inner time t_I of its probe pair lies between its own two timestamps; of each of the m calls that
//! it makes, the outer time t_O lies between its timestamps and its callee's. So
//! `t_exact = t_meas - n * t_I - m * t_O`, and its uncertainty is `n * s_I + m * s_O` with the spreads of both: the calibration errs in one
//! direction for all calls alike, so errors add up. What the correction would push below zero is set to zero and
//! added to the uncertainty.

use crate::cct::{Cct, NodeId};
use crate::profile::{Clock, MethodIndex, Node, NodeIndex, Tree};

/// A tree's corrected times.
pub fn correct(cct: &Cct, clock: &Clock) -> Tree {
    let mut calls_made = vec![0_u64; cct.len()];
    for (id, node) in cct.nodes() {
        if let Some(parent) = cct.parent(id) {
            calls_made[parent.index()] += node.calls;
        }
    }
    let mut nodes: Vec<Node> = Vec::with_capacity(cct.len() - 1);
    for (id, node) in cct.nodes().skip(1) {
        let (n, m) = (node.calls as f64, calls_made[id.index()] as f64);
        let exact_ns = node.self_measured_ns as f64 - n * clock.inner_ns - m * clock.outer_ns;
        let spread_ns = n * clock.inner_spread_ns + m * clock.outer_spread_ns;
        let self_ns = exact_ns.max(0.0).round() as u64;
        let error_ns = (spread_ns - exact_ns.min(0.0)).round() as u64;
        nodes.push(Node {
            parent: cct.parent(id).filter(|parent| *parent != NodeId::TOP).map(|parent| NodeIndex(parent.index() - 1)),
            method: MethodIndex(node.method.0 as usize - 1),
            calls: node.calls,
            thrown: node.thrown,
            self_ns,
            total_ns: self_ns,
            error_ns,
            total_error_ns: error_ns,
        });
    }
    // Children come after their parents: from the end, each node's total is complete when it is added to its parent's.
    for index in (0..nodes.len()).rev() {
        let node = nodes[index];
        if let Some(parent) = node.parent {
            nodes[parent.0].total_ns += node.total_ns;
            nodes[parent.0].total_error_ns += node.total_error_ns;
        }
    }
    Tree { nodes }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::MethodId;

    use super::*;

    const CLOCK: Clock = Clock { inner_ns: 10.0, inner_spread_ns: 1.0, outer_ns: 20.0, outer_spread_ns: 0.5 };

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
        assert_eq!((tree.nodes[1].error_ns, tree.nodes[0].total_error_ns), (100, 1 + 50 + 100 + 1_010));
    }

    #[test]
    fn a_time_is_never_negative_and_what_is_missing_is_uncertain() {
        let tree = corrected((1, 10_000), (10, 30));
        assert_eq!((tree.nodes[1].self_ns, tree.nodes[1].error_ns), (0, 70 + 10));
    }
}
