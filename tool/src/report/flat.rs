//! The flat view: what each method took altogether (arcflow's xprof).

use super::names::Names;
use super::walk::{Children, Step};
use crate::profile::{CpuSamples, MethodIndex, Node, Profile, Tree};

/// What a method, or one of its callers or callees on its account, took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Entries.
    pub calls: u64,
    /// How many of them an exception left.
    pub thrown: u64,
    /// Time in the method itself: arcflow's base.
    pub self_ns: u64,
    /// Its own and its callees' time, where it is recursive only that of the outermost calls: arcflow's cum.
    pub total_ns: u64,
    /// Uncertainty of `self_ns`.
    pub error_ns: u64,
    /// Uncertainty of `total_ns`, at most.
    pub total_error_ns: u64,
    /// Whether the self time was spent running or waiting.
    pub cpu: CpuSamples,
    /// Calls may be missing: there are at least so many.
    pub at_least: bool,
}

impl Amounts {
    /// A single node's, and whether calls of it may be missing.
    pub(crate) fn of(node: &Node, at_least: bool) -> Amounts {
        let Node { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu, .. } = *node;
        Amounts { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu, at_least }
    }

    pub(crate) fn add(&mut self, other: &Amounts) {
        self.calls += other.calls;
        self.thrown += other.thrown;
        self.self_ns += other.self_ns;
        self.total_ns += other.total_ns;
        self.error_ns += other.error_ns;
        self.total_error_ns += other.total_error_ns;
        self.cpu.add(other.cpu);
        self.at_least |= other.at_least;
    }
}

/// A method and what it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlatRow {
    /// The first method of its name.
    pub method: MethodIndex,
    /// What it took.
    pub amounts: Amounts,
}

/// Every method of a tree of this profile, in the order of their numbers.
///
/// All self times add up to the roots' total time.
pub fn flat(profile: &Profile, tree: &Tree) -> Vec<FlatRow> {
    rows(profile, &Names::of(profile), tree)
}

pub(crate) fn rows(profile: &Profile, names: &Names, tree: &Tree) -> Vec<FlatRow> {
    let children = Children::called(tree);
    let incomplete = profile.incomplete_nodes(tree);
    let mut all: Vec<Option<Amounts>> = vec![None; names.len()];
    let mut open = vec![0_usize; names.len()];
    for step in children.depth_first() {
        match step {
            Step::Enter(index) => {
                let node = &tree.nodes[index.0];
                let method = names.first(node.method).0;
                let amounts = all[method].get_or_insert_default();
                amounts.calls += node.calls;
                amounts.thrown += node.thrown;
                amounts.self_ns += node.self_ns;
                amounts.error_ns += node.error_ns;
                amounts.cpu.add(node.cpu);
                amounts.at_least |= incomplete[index.0];
                if open[method] == 0 {
                    amounts.total_ns += node.total_ns;
                    amounts.total_error_ns += node.total_error_ns;
                }
                open[method] += 1;
            }
            Step::Leave(index) => open[names.first(tree.nodes[index.0].method).0] -= 1,
        }
    }
    let row = |(index, amounts): (usize, Option<Amounts>)| {
        amounts.map(|amounts| FlatRow { method: MethodIndex(index), amounts })
    };
    all.into_iter().enumerate().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::NodeIndex;
    use crate::profile::testing::{profile_of, random_tree, with_links};

    /// Whether no call of the same method encloses this one.
    fn is_outermost(tree: &Tree, node: &Node) -> bool {
        let mut above = node.caller();
        while let Some(NodeIndex(at)) = above {
            if tree.nodes[at].method == node.method {
                return false;
            }
            above = tree.nodes[at].caller();
        }
        true
    }

    #[test]
    fn self_times_add_up_to_the_whole_and_recursion_counts_once() {
        for seed in 0..200 {
            let tree = with_links(random_tree(seed, 120, 6), 2 + seed as usize);
            let rows = flat(&profile_of(tree.clone(), Vec::new(), 6), &tree);
            assert_eq!(rows.iter().map(|row| row.amounts.self_ns).sum::<u64>(), tree.total_ns());
            assert_eq!(rows.iter().map(|row| row.amounts.calls).sum::<u64>(), tree.calls());
            for row in rows {
                let outermost = tree.nodes.iter().filter(|node| node.method == row.method && is_outermost(&tree, node));
                assert_eq!(row.amounts.total_ns, outermost.map(|node| node.total_ns).sum::<u64>());
                assert!(row.amounts.total_ns <= tree.total_ns());
            }
        }
    }
}
