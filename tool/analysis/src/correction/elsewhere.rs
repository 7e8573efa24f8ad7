//! How methods divide among themselves and their callees, by samples in all of their nodes.
//!
//! A method in a thousand contexts has a sample in this one and none in that. What was measured of a context says little of dense code: where it decided each of them, a
//! method that recurses kept 42 % of what had 77, and its callers the rest. In other contexts it may divide otherwise, but not so much.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use crate::cct::Cct;

/// Samples of all nodes of each method.
pub(super) struct Elsewhere {
    /// In the method itself.
    own: FxHashMap<MethodId, f64>,
    /// In a method that it calls, by both.
    callees: FxHashMap<(MethodId, MethodId), f64>,
    nodes: Vec<Node>,
}

/// What is known of a node.
struct Node {
    method: MethodId,
    caller: MethodId,
    /// How many samples its method has, anywhere, in the parts that this node has.
    known: f64,
    /// In the node itself, and with what it calls.
    own: f64,
    total: f64,
}

impl Elsewhere {
    pub(super) fn of(cct: &Cct, callers: &[usize], own: &[[u32; 2]], total: &[[u32; 2]]) -> Elsewhere {
        let in_all = |samples: [u32; 2]| f64::from(samples[0] + samples[1]);
        let methods: Vec<MethodId> = cct.nodes().map(|(_, node)| node.method()).collect();
        let node = |index: usize| Node {
            method: methods[index],
            caller: methods[callers[index]],
            known: 0.0,
            own: in_all(own[index]),
            total: in_all(total[index]),
        };
        let nodes: Vec<Node> = (0..methods.len()).map(node).collect();
        let mut all = Elsewhere { own: FxHashMap::default(), callees: FxHashMap::default(), nodes };
        for node in all.nodes.iter().skip(1) {
            *all.own.entry(node.method).or_default() += node.own;
            *all.callees.entry((node.caller, node.method)).or_default() += node.total;
        }
        for (index, above) in callers.iter().enumerate().skip(1) {
            let Node { method, caller, .. } = all.nodes[index];
            all.nodes[index].known += all.own[&method];
            all.nodes[*above].known += all.callees[&(caller, method)];
        }
        all
    }

    /// Of the samples in other nodes of a node's caller's method, in parts that this one has too: how many were in such a callee, of how many.
    pub(super) fn callee(&self, caller: usize, index: usize) -> (f64, f64) {
        let node = &self.nodes[index];
        (self.callees[&(node.caller, node.method)] - node.total, self.others(caller))
    }

    /// The same of what a node has itself.
    pub(super) fn own(&self, index: usize) -> (f64, f64) {
        let node = &self.nodes[index];
        (self.own[&node.method] - node.own, self.others(index))
    }

    fn others(&self, index: usize) -> f64 {
        self.nodes[index].known - self.nodes[index].total
    }
}
