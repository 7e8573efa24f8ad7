//! What has been decoded so far, added up by root and by method: all that the budget is kept by.

use headwater_protocol::MethodId;
use headwater_protocol::word::PauseReason;
use rustc_hash::FxHashMap;

use crate::cct::{Cct, NodeId};
use crate::decode::{Controls, Decoder};

/// A method's calls below one root.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MethodTally {
    /// How often it was entered.
    pub calls: f64,
    /// How many instrumented calls it made.
    pub calls_made: f64,
    /// Its self time as measured, probes included.
    pub self_ns: f64,
}

/// A root's calls, and everything below them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RootTally {
    /// Its calls from outside.
    pub calls: f64,
    /// Its own calls and all below.
    pub pairs: f64,
    /// Time as measured, probes included.
    pub measured_ns: f64,
    /// What its threads waited because there was no room for their events; not in the measured time.
    pub waited_ns: f64,
    /// The methods below, and the root itself.
    pub methods: FxHashMap<MethodId, MethodTally>,
}

/// Everything, since recording began or was cleared.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By root.
    pub roots: FxHashMap<MethodId, RootTally>,
    /// What threads waited because there was no room for their events, below whatever root.
    pub waited_ns: f64,
    /// Calls of roots that were timed as wholes while recording went on.
    pub controls: FxHashMap<MethodId, Controls>,
}

impl Tally {
    /// Adds up what a decoder knows: all threads, all contexts.
    pub fn of(decoder: &Decoder) -> Tally {
        let mut tally = Tally {
            roots: FxHashMap::default(),
            waited_ns: decoder.pauses(PauseReason::Buffer).duration_ns as f64,
            controls: decoder.controls().clone(),
        };
        for (_, tree) in decoder.threads() {
            tally.add(tree);
        }
        tally
    }

    fn add(&mut self, tree: &Cct) {
        // Whose each node is: a place in `roots`. Parents come before their children.
        let mut roots: Vec<(MethodId, RootTally)> = Vec::new();
        let mut place = vec![0_usize; tree.len()];
        for (id, node) in tree.nodes().skip(1) {
            let parent = tree.parent(id).unwrap_or(NodeId::TOP);
            if parent == NodeId::TOP {
                place[id.index()] = roots.len();
                let root = RootTally { calls: node.calls as f64, ..RootTally::default() };
                roots.push((node.method(), root));
            } else {
                place[id.index()] = place[parent.index()];
            }
            let (_, root) = &mut roots[place[id.index()]];
            root.pairs += node.calls as f64;
            root.measured_ns += node.self_measured_ns as f64;
            let method = root.methods.entry(node.method()).or_default();
            method.calls += node.calls as f64;
            method.self_ns += node.self_measured_ns as f64;
            // What was handed over is entered beside everybody's clock.
            if parent != NodeId::TOP && !node.is_handed() {
                root.methods.entry(tree.node(parent).method()).or_default().calls_made += node.calls as f64;
            }
        }
        for (method, root) in roots {
            self.roots.entry(method).or_default().add(&root, 1.0);
        }
    }
}

impl RootTally {
    /// Adds another, so many times.
    pub(super) fn add(&mut self, other: &RootTally, times: f64) {
        self.calls += times * other.calls;
        self.pairs += times * other.pairs;
        self.measured_ns += times * other.measured_ns;
        self.waited_ns += times * other.waited_ns;
        for (method, theirs) in &other.methods {
            let ours = self.methods.entry(*method).or_default();
            ours.calls += times * theirs.calls;
            ours.calls_made += times * theirs.calls_made;
            ours.self_ns += times * theirs.self_ns;
        }
    }

    /// Makes what is known count less.
    pub(super) fn scale(&mut self, by: f64) {
        self.calls *= by;
        self.pairs *= by;
        self.measured_ns *= by;
        self.waited_ns *= by;
        for method in self.methods.values_mut() {
            method.calls *= by;
            method.calls_made *= by;
            method.self_ns *= by;
        }
    }
}
