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
    /// The threads that made them.
    pub threads: f64,
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
        let mut sums = Sums::default();
        for (_, tree) in decoder.threads() {
            sums.add(tree);
        }
        Tally {
            roots: sums.roots.into_iter().map(|root| (root.method, root.tally())).collect(),
            waited_ns: decoder.pauses(PauseReason::Buffer).duration_ns as f64,
            controls: decoder.controls().clone(),
        }
    }
}

/// No program has so many methods instrumented: what has a larger number is none of them.
const MOST_METHODS: usize = 1 << 20;

/// What is being added up. A tree may have millions of nodes, so methods are found by their numbers.
#[derive(Default)]
struct Sums {
    roots: Vec<RootSums>,
    /// Where in `roots` each root is.
    of_root: FxHashMap<MethodId, usize>,
    /// The same for each node's root, in the tree that is being added.
    of_node: Vec<usize>,
}

struct RootSums {
    method: MethodId,
    all: RootTally,
    /// By the methods' numbers.
    methods: Vec<MethodTally>,
    none: MethodTally,
}

impl Sums {
    fn add(&mut self, tree: &Cct) {
        self.of_node.clear();
        self.of_node.resize(tree.len(), 0);
        // Parents come before their children.
        for (id, node) in tree.nodes().skip(1) {
            let parent = tree.parent(id).unwrap_or(NodeId::TOP);
            let at = if parent == NodeId::TOP { self.root(node.method()) } else { self.of_node[parent.index()] };
            self.of_node[id.index()] = at;
            let root = &mut self.roots[at];
            if parent == NodeId::TOP {
                root.all.calls += node.calls as f64;
                root.all.threads += 1.0;
            }
            root.all.pairs += node.calls as f64;
            root.all.measured_ns += node.self_measured_ns as f64;
            let method = root.method(node.method());
            method.calls += node.calls as f64;
            method.self_ns += node.self_measured_ns as f64;
            // What was handed over is entered beside everybody's clock.
            if parent != NodeId::TOP && !node.is_handed() {
                root.method(tree.node(parent).method()).calls_made += node.calls as f64;
            }
        }
    }

    fn root(&mut self, method: MethodId) -> usize {
        *self.of_root.entry(method).or_insert_with(|| {
            self.roots.push(RootSums {
                method,
                all: RootTally::default(),
                methods: Vec::new(),
                none: MethodTally::default(),
            });
            self.roots.len() - 1
        })
    }
}

impl RootSums {
    fn method(&mut self, method: MethodId) -> &mut MethodTally {
        let at = method.0 as usize;
        if at >= MOST_METHODS {
            return &mut self.none;
        }
        if at >= self.methods.len() {
            self.methods.resize(at + 1, MethodTally::default());
        }
        &mut self.methods[at]
    }

    fn tally(self) -> RootTally {
        let numbered = self.methods.into_iter().enumerate().map(|(at, sums)| (MethodId(at as u32), sums));
        RootTally { methods: numbered.filter(|(_, sums)| *sums != MethodTally::default()).collect(), ..self.all }
    }
}

impl RootTally {
    /// Adds another's calls and times, so many times.
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
