//! Which nodes of a tree samples of the undisturbed code were in.
//!
//! What samples say of each of a thousand nodes of one method is uncertain by a sample or so, and of the method as a whole by little more: chance does not err in one
//! direction. So where nodes make one row, that part of their uncertainties is the row's own, by its samples; the rest adds up.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Node, NodeIndex, Tree};

/// The samples of a tree's nodes; nothing where its times rest on none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    roots: Vec<SampledRoot>,
    /// Nodes, in ascending order, and how many samples were in each of them itself.
    own: Vec<(NodeIndex, u32)>,
}

/// A root that was sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampledRoot {
    /// Its node.
    pub node: NodeIndex,
    /// Samples in it and below.
    pub samples: u64,
    /// The time that a sample stands for, times the root of how many say together what one by itself would say.
    pub chance_ns: u64,
}

impl SampledRoot {
    fn square(&self) -> u128 {
        u128::from(self.chance_ns).pow(2)
    }

    /// The variance of what so many of its samples say, in ns².
    fn variance(&self, samples: u32) -> f64 {
        variance(f64::from(samples) * self.square() as f64, self.square() as f64, self.whole())
    }

    fn whole(&self) -> f64 {
        (self.samples as f64 + 1.0) * self.square() as f64
    }
}

/// As if one sample more were there and one not, so that what was never seen is not known to be nothing.
fn variance(seen: f64, square: f64, whole: f64) -> f64 {
    let seen = seen + 0.5 * square;
    // Of a root that never ran, samples stand for nothing.
    if whole > 0.0 { seen * (1.0 - seen / whole).max(0.0) } else { 0.0 }
}

/// What a row's samples stand for, squared: in ns², not in its uncertainties yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BySamples {
    pub(super) own: u128,
    pub(super) total: u128,
}

impl AddAssign for BySamples {
    fn add_assign(&mut self, other: BySamples) {
        self.own = self.own.saturating_add(other.own);
        self.total = self.total.saturating_add(other.total);
    }
}

impl Sampled {
    /// Of these roots, and of nodes in ascending order.
    pub fn of(roots: Vec<SampledRoot>, own: impl IntoIterator<Item = (NodeIndex, u32)>) -> Sampled {
        Sampled { roots, own: own.into_iter().filter(|(_, samples)| *samples > 0).collect() }
    }

    /// Whether nothing was sampled.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The same of a tree in which the nodes have these places.
    pub(crate) fn placed(&self, place_of: &[usize]) -> Sampled {
        let place = |node: NodeIndex| NodeIndex(place_of[node.0]);
        let roots = self.roots.iter().map(|root| SampledRoot { node: place(root.node), ..*root }).collect();
        let mut own: Vec<(NodeIndex, u32)> = self.own.iter().map(|(node, samples)| (place(*node), *samples)).collect();
        own.sort_unstable();
        own.dedup_by(|of, before| {
            let is_same = of.0 == before.0;
            before.1 = if is_same { before.1.saturating_add(of.1) } else { before.1 };
            is_same
        });
        Sampled { roots, own }
    }

    /// Whether all that it speaks of is in a tree of so many nodes.
    pub(crate) fn holds(&self, nodes: usize) -> bool {
        let ascends = self.own.windows(2).all(|two| two[0].0 < two[1].0);
        let mut all = self.own.iter().map(|(node, _)| node).chain(self.roots.iter().map(|root| &root.node));
        ascends && all.all(|node| node.0 < nodes)
    }
}

impl Tree {
    /// Whether both have the same nodes with the same numbers, wherever samples were.
    pub(crate) fn has_the_same(&self, other: &Tree) -> bool {
        self.nodes == other.nodes && self.counted == other.counted
    }
}

/// The samples of each node, with those of what it calls.
pub(super) struct Chances<'a> {
    roots: &'a [SampledRoot],
    own: Vec<u32>,
    total: Vec<u32>,
    /// Of each node, where in `roots` its root is; or nowhere.
    root: Vec<u32>,
}

impl<'a> Chances<'a> {
    /// `None` where nothing was sampled.
    pub(super) fn of(nodes: &[Node], sampled: &'a Sampled) -> Option<Chances<'a>> {
        if sampled.is_empty() || !sampled.holds(nodes.len()) {
            return None;
        }
        let mut own = vec![0; nodes.len()];
        sampled.own.iter().for_each(|(node, samples)| own[node.0] = *samples);
        let mut total = own.clone();
        for (index, node) in nodes.iter().enumerate().rev() {
            if let Some(caller) = node.caller() {
                total[caller.0] = total[caller.0].saturating_add(total[index]);
            }
        }
        let mut root = vec![u32::MAX; nodes.len()];
        sampled.roots.iter().enumerate().for_each(|(at, of)| root[of.node.0] = at as u32);
        for (index, node) in nodes.iter().enumerate() {
            if let Some(caller) = node.caller() {
                root[index] = root[caller.0];
            }
        }
        Some(Chances { roots: &sampled.roots, own, total, root })
    }

    fn root_of(&self, node: NodeIndex) -> Option<&SampledRoot> {
        self.roots.get(self.root[node.0] as usize)
    }

    /// What of the uncertainty of a node's own time is not chance, and what its samples stand for.
    pub(super) fn own(&self, node: NodeIndex, error_ns: u64) -> (u64, u128) {
        self.parted(node, error_ns, self.own[node.0])
    }

    /// The same with what it calls.
    pub(super) fn total(&self, node: NodeIndex, error_ns: u64) -> (u64, u128) {
        self.parted(node, error_ns, self.total[node.0])
    }

    fn parted(&self, node: NodeIndex, error_ns: u64, samples: u32) -> (u64, u128) {
        let Some(root) = self.root_of(node) else { return (error_ns, 0) };
        let rest = (error_ns as f64).powi(2) - root.variance(samples);
        (rest.max(0.0).sqrt() as u64, root.square().saturating_mul(u128::from(samples)))
    }

    /// A row's uncertainty: the sum of what is not chance, and what its samples stand for.
    pub(super) fn joined(&self, rest_ns: u64, seen: u128) -> u64 {
        let square = self.roots.iter().map(SampledRoot::square).max().unwrap_or_default() as f64;
        let whole = self.roots.iter().map(SampledRoot::whole).sum();
        (rest_ns as f64).hypot(variance(seen as f64, square, whole).sqrt()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::MethodIndex;

    /// A root with 200 samples, each of which stands for 1,000 ns; below it a thousand nodes of one method, twenty with a sample.
    fn tree() -> Tree {
        let node = |parent, error_ns| Node { parent, error_ns, ..Node::empty(MethodIndex(0)) };
        let mut nodes = vec![node(None, 0)];
        nodes.extend((0..1_000).map(|_| node(Some(NodeIndex(0)), 750)));
        let root = SampledRoot { node: NodeIndex(0), samples: 200, chance_ns: 1_000 };
        let own = (0..20).map(|place| (NodeIndex(1 + 50 * place), 1));
        Tree { sampled: Sampled::of(vec![root], own), ..Tree::of(nodes) }
    }

    #[test]
    fn many_nodes_are_together_as_uncertain_as_their_samples() {
        let tree = tree();
        let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
        let (mut rest, mut seen) = (0, 0);
        for (index, node) in tree.nodes.iter().enumerate().skip(1) {
            let parted = chances.own(NodeIndex(index), node.error_ns);
            (rest, seen) = (rest + parted.0, seen + parted.1);
        }
        // Each of those that were not sampled has 706 of 750 by chance, which leaves 252.
        assert_eq!((rest / 980, seen), (252, 20_000_000));
        let by_chance = chances.joined(0, seen);
        assert!((4_200..4_400).contains(&by_chance), "20 of 200: {by_chance}");
        assert_eq!(chances.joined(rest, seen), (rest as f64).hypot(by_chance as f64) as u64);
    }

    #[test]
    fn a_single_node_is_as_uncertain_as_it_was() {
        let tree = tree();
        let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
        for (node, error_ns) in [(1, 5_000), (2, 900)] {
            let (rest, seen) = chances.own(NodeIndex(node), error_ns);
            assert!(chances.joined(rest, seen).abs_diff(error_ns) <= 1);
        }
        assert_eq!(chances.total(NodeIndex(0), 77).1, 20_000_000);
    }

    #[test]
    fn what_never_ran_is_as_uncertain_as_it_was() {
        let root = SampledRoot { node: NodeIndex(0), samples: 3, chance_ns: 0 };
        let tree = Tree { sampled: Sampled::of(vec![root], [(NodeIndex(1), 3)]), ..tree() };
        let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
        let (rest, seen) = chances.own(NodeIndex(1), 750);
        assert_eq!((rest, seen, chances.joined(rest, seen)), (750, 0, 750));
    }

    #[test]
    fn what_is_not_in_the_tree_is_not_looked_for() {
        let tree = tree();
        assert!(tree.sampled.holds(1_001) && !tree.sampled.holds(900));
        assert!(Chances::of(&tree.nodes[..900], &tree.sampled).is_none());
        assert!(Chances::of(&tree.nodes, &Sampled::default()).is_none());
    }
}
