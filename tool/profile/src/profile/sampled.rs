//! Which nodes of a tree samples of the undisturbed code were in.
//!
//! What samples say of each of a thousand nodes of one method is uncertain by a sample or so, and of the method as a whole by little more: chance does not err in one
//! direction. So where nodes make one row, that part of their uncertainties is the row's own, by its samples; and so is what is not known of the root, if there is one, by which
//! part of that the row is. The rest adds up. But where nothing but samples says how
//! time divides, and they tell of all that ran, a row is no more uncertain than by chance, or by how far their halves differ, and by how far it is from what they say: waits
//! are not in them, and roots with hardly any divide as was measured.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use super::{Node, NodeIndex, Tree};

/// The samples of a tree's nodes; nothing where its times rest on none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sampled {
    roots: Vec<SampledRoot>,
    /// Nodes, in ascending order, and how many samples were in each of them itself.
    own: Vec<(NodeIndex, u32)>,
    /// The same of those from the second half of the phase, where samples alone say how time divides, and tell of all that ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    late: Option<Vec<(NodeIndex, u32)>>,
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
    /// By so much it may be wrong because its code had not settled; a part p of it by p (1 - p) times that, all of which may have settled before the rest.
    #[serde(default)]
    pub unsettled_ns: u64,
    /// So much of it was somewhere, and nobody knows where: a part p of it may be wrong by the root of p (1 - p) times that.
    #[serde(default)]
    pub unplaced_ns: u64,
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

/// The standard deviation of what samples say: by chance; or what their halves say apart from it, if these have enough, and it is clearly more. By less they differ by chance
/// too, and of many small nodes each would be wrong by that, and all of one method by the sum.
pub fn by_halves(chance: f64, apart: f64, halves: [u64; 2]) -> f64 {
    /// Fewer samples of a half say nothing of how it differs.
    const ENOUGH: u64 = 30;
    /// In standard deviations.
    const CLEARLY: f64 = 2.0;
    let is_apart = halves.iter().all(|half| *half >= ENOUGH) && apart > CLEARLY * chance;
    if is_apart { apart } else { chance }
}

/// What a row's samples say of its own time, and of that with what it calls: not in its uncertainties yet.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct BySamples {
    pub(super) own: Said,
    pub(super) total: Said,
}

impl AddAssign for BySamples {
    fn add_assign(&mut self, other: BySamples) {
        self.own += other.own;
        self.total += other.total;
    }
}

/// What samples say of a time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Said {
    /// What they stand for, squared, in ns².
    pub(super) square: u128,
    /// How much of the roots' time there were, by all samples, and by those of each half, in ns.
    all_ns: f64,
    halves_ns: [f64; 2],
}

impl AddAssign for Said {
    fn add_assign(&mut self, other: Said) {
        self.square = self.square.saturating_add(other.square);
        self.all_ns += other.all_ns;
        self.halves_ns = [0, 1].map(|half: usize| self.halves_ns[half] + other.halves_ns[half]);
    }
}

impl Sampled {
    /// Of these roots, and of nodes in ascending order.
    pub fn of(roots: Vec<SampledRoot>, own: impl IntoIterator<Item = (NodeIndex, u32)>) -> Sampled {
        Sampled { roots, own: any(own), late: None }
    }

    /// The same, where nothing else says how time divides, and they tell of all that ran; so many of each node's are from the second half of the phase.
    pub fn alone(self, late: impl IntoIterator<Item = (NodeIndex, u32)>) -> Sampled {
        Sampled { late: Some(any(late)), ..self }
    }

    /// Whether nothing was sampled.
    pub fn is_empty(&self) -> bool {
        self.roots.is_empty()
    }

    /// The same of a tree in which the nodes have these places.
    pub(crate) fn placed(&self, place_of: &[usize]) -> Sampled {
        let place = |node: NodeIndex| NodeIndex(place_of[node.0]);
        let roots = self.roots.iter().map(|root| SampledRoot { node: place(root.node), ..*root }).collect();
        let samples = |of: &Vec<(NodeIndex, u32)>| {
            let mut own: Vec<(NodeIndex, u32)> = of.iter().map(|(node, samples)| (place(*node), *samples)).collect();
            own.sort_unstable();
            own.dedup_by(|of, before| {
                let is_same = of.0 == before.0;
                before.1 = if is_same { before.1.saturating_add(of.1) } else { before.1 };
                is_same
            });
            own
        };
        Sampled { roots, own: samples(&self.own), late: self.late.as_ref().map(samples) }
    }

    /// Whether all that it speaks of is in a tree of so many nodes.
    pub(crate) fn holds(&self, nodes: usize) -> bool {
        let samples = || [Some(&self.own), self.late.as_ref()].into_iter().flatten();
        let ascends = samples().all(|own| own.windows(2).all(|two| two[0].0 < two[1].0));
        let mut all = samples().flatten().map(|(node, _)| node).chain(self.roots.iter().map(|root| &root.node));
        ascends && all.all(|node| node.0 < nodes)
    }
}

fn any(own: impl IntoIterator<Item = (NodeIndex, u32)>) -> Vec<(NodeIndex, u32)> {
    own.into_iter().filter(|(_, samples)| *samples > 0).collect()
}

impl Tree {
    /// Whether both have the same nodes with the same numbers, wherever samples were.
    pub(crate) fn has_the_same(&self, other: &Tree) -> bool {
        self.nodes == other.nodes && self.counted == other.counted
    }
}

/// The samples of each node, with those of what it calls.
pub(super) struct Chances<'a> {
    nodes: &'a [Node],
    roots: &'a [SampledRoot],
    /// What one sample of a root stands for, among all and among those of each half, in ns.
    each_ns: Vec<(f64, [f64; 2])>,
    /// How wrong the root is that is known best, as a part of it.
    of_roots: f64,
    /// There is one root, and its doubts are a row's by its part of it; of several, which are not all wrong by as much, they add up.
    is_one: bool,
    /// How many there are in each half; nothing where others say how time divides, too.
    halves: Option<[u64; 2]>,
    own: Vec<[u32; 2]>,
    total: Vec<[u32; 2]>,
    /// Of each node, where in `roots` its root is; or nowhere.
    root: Vec<u32>,
}

impl<'a> Chances<'a> {
    /// `None` where nothing was sampled.
    pub(super) fn of(nodes: &'a [Node], sampled: &'a Sampled) -> Option<Chances<'a>> {
        if sampled.is_empty() || !sampled.holds(nodes.len()) {
            return None;
        }
        let mut own = vec![[0; 2]; nodes.len()];
        sampled.own.iter().for_each(|(node, samples)| own[node.0][0] = *samples);
        for (node, late) in sampled.late.iter().flatten() {
            let [all, _] = own[node.0];
            own[node.0] = [all.saturating_sub(*late), *late];
        }
        let mut total = own.clone();
        for (index, node) in nodes.iter().enumerate().rev() {
            if let Some(caller) = node.caller() {
                let callee = total[index];
                total[caller.0] = [0, 1].map(|half: usize| total[caller.0][half].saturating_add(callee[half]));
            }
        }
        let mut root = vec![u32::MAX; nodes.len()];
        sampled.roots.iter().enumerate().for_each(|(at, of)| root[of.node.0] = at as u32);
        for (index, node) in nodes.iter().enumerate() {
            if let Some(caller) = node.caller() {
                root[index] = root[caller.0];
            }
        }
        let each = |of: &SampledRoot| {
            let (ns, [early, late]) = (nodes[of.node.0].total_ns as f64, total[of.node.0].map(f64::from));
            (ns / (early + late).max(1.0), [ns / early.max(1.0), ns / late.max(1.0)])
        };
        let wrong = |of: &SampledRoot| {
            let root = &nodes[of.node.0];
            if root.total_ns > 0 { root.total_error_ns as f64 / root.total_ns as f64 } else { 0.0 }
        };
        let halves = sampled.late.as_ref().map(|_| {
            let of_roots = || sampled.roots.iter().map(|of| total[of.node.0]);
            [0, 1].map(|half: usize| of_roots().map(|samples| u64::from(samples[half])).sum())
        });
        Some(Chances {
            nodes,
            roots: &sampled.roots,
            each_ns: sampled.roots.iter().map(each).collect(),
            of_roots: sampled.roots.iter().map(wrong).reduce(f64::min).unwrap_or_default(),
            is_one: nodes.iter().filter(|node| node.caller().is_none()).count() == 1,
            halves,
            own,
            total,
            root,
        })
    }

    /// What of the uncertainty of a node's own time is not chance, and what its samples say.
    pub(super) fn own(&self, node: NodeIndex, error_ns: u64) -> (u64, Said) {
        self.parted(node, error_ns, (self.nodes[node.0].self_ns, self.own[node.0]))
    }

    /// The same with what it calls.
    pub(super) fn total(&self, node: NodeIndex, error_ns: u64) -> (u64, Said) {
        self.parted(node, error_ns, (self.nodes[node.0].total_ns, self.total[node.0]))
    }

    fn parted(&self, node: NodeIndex, error_ns: u64, (ns, samples): (u64, [u32; 2])) -> (u64, Said) {
        let Some(root) = self.roots.get(self.root[node.0] as usize) else { return (error_ns, Said::default()) };
        let (each_ns, of_half_ns) = self.each_ns[self.root[node.0] as usize];
        let all = samples[0].saturating_add(samples[1]);
        let rest = (error_ns as f64).powi(2) - root.variance(all) - self.doubt(ns);
        let said = Said {
            square: root.square().saturating_mul(u128::from(all)),
            all_ns: f64::from(all) * each_ns,
            halves_ns: [0, 1].map(|half: usize| f64::from(samples[half]) * of_half_ns[half]),
        };
        (rest.max(0.0).sqrt() as u64, said)
    }

    /// What is not known of the only root, of such a part of its time, in ns².
    fn doubt(&self, ns: u64) -> f64 {
        let Some(root) = self.roots.first().filter(|_| self.is_one) else { return 0.0 };
        let part = (ns as f64 / (self.nodes[root.node.0].total_ns as f64).max(1.0)).min(1.0);
        let spread = part * (1.0 - part);
        (root.unsettled_ns as f64 * spread).powi(2) + (root.unplaced_ns as f64).powi(2) * spread
    }

    /// A row's uncertainty, of so long a time: the sum of what is not chance, and what its samples say.
    pub(super) fn joined(&self, rest_ns: u64, ns: u64, said: Said) -> u64 {
        let square = self.roots.iter().map(SampledRoot::square).max().unwrap_or_default() as f64;
        let whole = self.roots.iter().map(SampledRoot::whole).sum();
        let chance = variance(said.square as f64, square, whole).sqrt();
        let doubt = self.doubt(ns);
        let added_up = ((rest_ns as f64).powi(2) + chance.powi(2) + doubt).sqrt();
        let Some(halves) = self.halves else { return added_up as u64 };
        let apart = (said.halves_ns[0] - said.halves_ns[1]).abs() / 2.0;
        let by_samples = by_halves(chance, apart, halves);
        let decided = (ns as f64 - said.all_ns).abs();
        let together = (by_samples.powi(2) + decided.powi(2) + (self.of_roots * ns as f64).powi(2) + doubt).sqrt();
        added_up.min(together) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::MethodIndex;

    const ROOT: SampledRoot =
        SampledRoot { node: NodeIndex(0), samples: 0, chance_ns: 0, unsettled_ns: 0, unplaced_ns: 0 };

    /// A root with 200 samples, each of which stands for 1,000 ns; below it a thousand nodes of one method, twenty with a sample.
    fn tree() -> Tree {
        let node = |parent, error_ns| Node { parent, error_ns, ..Node::empty(MethodIndex(0)) };
        let mut nodes = vec![node(None, 0)];
        nodes.extend((0..1_000).map(|_| node(Some(NodeIndex(0)), 750)));
        let root = SampledRoot { samples: 200, chance_ns: 1_000, ..ROOT };
        let own = (0..20).map(|place| (NodeIndex(1 + 50 * place), 1));
        Tree { sampled: Sampled::of(vec![root], own), ..Tree::of(nodes) }
    }

    /// A row of all its nodes but the root.
    fn row(tree: &Tree, chances: &Chances<'_>) -> (u64, Said) {
        let (mut rest, mut said) = (0, Said::default());
        for (index, node) in tree.nodes.iter().enumerate().skip(1) {
            let parted = chances.own(NodeIndex(index), node.error_ns);
            (rest, said) = (rest + parted.0, {
                said += parted.1;
                said
            });
        }
        (rest, said)
    }

    #[test]
    fn what_samples_alone_decide_is_as_wrong_as_it_is_from_what_they_say() {
        let row_of = |late: u32, ns: u64| {
            let mut tree = tree();
            tree.nodes[0].total_ns = 200_000;
            // 180 are the root's own, half of them in the second half; of the others so many.
            let own = [(NodeIndex(0), 180)].into_iter().chain(tree.sampled.own.clone());
            let late =
                [(NodeIndex(0), 90)].into_iter().chain((0..late as usize).map(|place| (NodeIndex(1 + 50 * place), 1)));
            tree.sampled = Sampled::of(tree.sampled.roots.clone(), own).alone(late);
            let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
            let (rest, said) = row(&tree, &chances);
            chances.joined(rest, ns, said)
        };
        let by_chance = row_of(10, 20_000);
        assert!((4_200..4_400).contains(&by_chance), "20 of 200, ten in each half: {by_chance}");
        assert_eq!(row_of(10, 30_000), (by_chance as f64).hypot(10_000.0) as u64, "what was measured decided");
        // All of them in one half, of 110 samples, and none in the other.
        let apart = row_of(20, 20_000);
        assert_eq!(apart, 200_000 * 20 / 110 / 2);
    }

    #[test]
    fn many_nodes_are_together_as_uncertain_as_their_samples() {
        let tree = tree();
        let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
        let (rest, said) = row(&tree, &chances);
        // Each of those that were not sampled has 706 of 750 by chance, which leaves 252.
        assert_eq!((rest / 980, said.square), (252, 20_000_000));
        let by_chance = chances.joined(0, 0, said);
        assert!((4_200..4_400).contains(&by_chance), "20 of 200: {by_chance}");
        assert_eq!(chances.joined(rest, 0, said), (rest as f64).hypot(by_chance as f64) as u64);
    }

    #[test]
    fn what_is_not_known_of_a_root_is_so_of_a_row_as_of_one_node() {
        let errors = |unsettled_ns: u64, unplaced_ns: u64| {
            let mut tree = tree();
            (tree.nodes[0].total_ns, tree.sampled.roots[0].chance_ns) = (1_000_000, 0);
            (tree.sampled.roots[0].unsettled_ns, tree.sampled.roots[0].unplaced_ns) = (unsettled_ns, unplaced_ns);
            for node in &mut tree.nodes[1..] {
                (node.self_ns, node.error_ns) =
                    (800, (0.00079 * unsettled_ns as f64).hypot(0.0282 * unplaced_ns as f64) as u64);
            }
            let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
            let (rest, said) = row(&tree, &chances);
            (rest, chances.joined(rest, 800_000, said))
        };
        // Of the thousand nodes, 0.8 of the root: 0.16 of what has not settled, and 0.4 of what may be anywhere.
        let (unsettled, unplaced) = (errors(100_000, 0), errors(0, 100_000));
        assert!(unsettled.0 == 0 && unsettled.1.abs_diff(16_000) <= 1, "{unsettled:?}");
        assert!(unplaced.0 == 0 && unplaced.1.abs_diff(40_000) <= 1, "{unplaced:?}");
    }

    #[test]
    fn a_single_node_is_as_uncertain_as_it_was() {
        let tree = tree();
        let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
        for (node, error_ns) in [(1, 5_000), (2, 900)] {
            let (rest, said) = chances.own(NodeIndex(node), error_ns);
            assert!(chances.joined(rest, 0, said).abs_diff(error_ns) <= 1);
        }
        assert_eq!(chances.total(NodeIndex(0), 77).1.square, 20_000_000);
    }

    #[test]
    fn what_never_ran_is_as_uncertain_as_it_was() {
        let root = SampledRoot { samples: 3, ..ROOT };
        let tree = Tree { sampled: Sampled::of(vec![root], [(NodeIndex(1), 3)]), ..tree() };
        let chances = Chances::of(&tree.nodes, &tree.sampled).expect("samples");
        let (rest, said) = chances.own(NodeIndex(1), 750);
        assert_eq!((rest, said.square, chances.joined(rest, 0, said)), (750, 0, 750));
    }

    #[test]
    fn what_is_not_in_the_tree_is_not_looked_for() {
        let tree = tree();
        assert!(tree.sampled.holds(1_001) && !tree.sampled.holds(900));
        assert!(Chances::of(&tree.nodes[..900], &tree.sampled).is_none());
        assert!(Chances::of(&tree.nodes, &Sampled::default()).is_none());
    }
}
