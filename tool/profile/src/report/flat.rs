//! The flat view: what each method took altogether (arcflow's xprof).

use super::names::Names;
use crate::profile::walk::{Children, Step};
use crate::profile::{Amounts, MethodIndex, NodeAmounts, Profile, Sum, Tree};

/// A method and what it took.
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// The same with names that are known already.
pub fn rows(profile: &Profile, names: &Names, tree: &Tree) -> Vec<FlatRow> {
    let children = Children::called(tree);
    let nodes = NodeAmounts::of(profile, tree);
    let mut all: Vec<Option<Sum>> = vec![None; names.len()];
    let mut open = vec![0_usize; names.len()];
    for step in children.depth_first() {
        match step {
            Step::Enter(index) => {
                let method = names.first(tree.nodes[index.0].method).0;
                let sum = all[method].get_or_insert_default();
                nodes.add_own(index, sum);
                if open[method] == 0 {
                    nodes.add_total(index, sum);
                }
                open[method] += 1;
            }
            Step::Leave(index) => open[names.first(tree.nodes[index.0].method).0] -= 1,
        }
    }
    let row = |(index, sum): (usize, Option<Sum>)| {
        sum.map(|sum| FlatRow { method: MethodIndex(index), amounts: nodes.row(sum) })
    };
    all.into_iter().enumerate().filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile_of, random_tree, with_links};
    use crate::profile::{Node, NodeIndex};

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
