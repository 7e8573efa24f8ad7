//! Ways through trees. None recurses: a tree may be as deep as a thread's stack.

use rustc_hash::FxHashMap;

use super::column::Errors;
use super::{Column, Link, MethodIndex, Node, NodeIndex, Tree};

/// Each node's children.
pub struct Children {
    /// Of all nodes, one after the other; the roots first.
    nodes: Vec<NodeIndex>,
    /// Where the roots end, and then each node's children.
    ends: Vec<usize>,
}

impl Children {
    /// Of all nodes, what was handed over included.
    pub fn of(tree: &Tree) -> Children {
        Children::by(tree, |node| node.parent)
    }

    /// Only of nodes that called them: what was handed over stands beside the roots.
    pub(crate) fn called(tree: &Tree) -> Children {
        Children::by(tree, Node::caller)
    }

    fn by(tree: &Tree, above: impl Fn(&Node) -> Option<NodeIndex>) -> Children {
        let place = |node: &Node| above(node).map_or(0, |above| above.0 + 1);
        let mut ends = vec![0; tree.nodes.len() + 1];
        tree.nodes.iter().for_each(|node| ends[place(node)] += 1);
        let mut end = 0;
        for count in &mut ends {
            end += std::mem::replace(count, end);
        }
        // Now where each one's children begin; each child that is put there moves it on, at last to the end.
        let mut nodes = vec![NodeIndex(0); tree.nodes.len()];
        for (index, node) in tree.nodes.iter().enumerate() {
            let next = &mut ends[place(node)];
            nodes[*next] = NodeIndex(index);
            *next += 1;
        }
        Children { nodes, ends }
    }

    /// A node's children, or the roots.
    pub fn below(&self, node: Option<NodeIndex>) -> &[NodeIndex] {
        let place = node.map_or(0, |node| node.0 + 1);
        let start = if place == 0 { 0 } else { self.ends[place - 1] };
        &self.nodes[start..self.ends[place]]
    }

    /// All nodes: each is entered, then its children, then it is left.
    pub(crate) fn depth_first(&self) -> DepthFirst<'_> {
        DepthFirst { children: self, open: vec![(None, 0)] }
    }
}

/// A step on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Enter(NodeIndex),
    Leave(NodeIndex),
}

pub(crate) struct DepthFirst<'a> {
    children: &'a Children,
    /// From the top: each node, and how many of its children have been entered.
    open: Vec<(Option<NodeIndex>, usize)>,
}

impl Iterator for DepthFirst<'_> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (node, entered) = self.open.last_mut()?;
        match self.children.below(*node).get(*entered) {
            Some(&child) => {
                *entered += 1;
                self.open.push((Some(child), 0));
                Some(Step::Enter(child))
            }
            None => {
                let left = *node;
                self.open.pop();
                left.map(Step::Leave)
            }
        }
    }
}

/// Several trees as one: what was called by the same chain of calls is added up.
pub(crate) fn sum<'a>(trees: impl Iterator<Item = &'a Tree>) -> Tree {
    let mut all = Tree::default();
    // Of each column, what each node has itself.
    let mut counted: Vec<(Errors, Vec<(u64, u64)>)> = Vec::new();
    let mut places: FxHashMap<(Option<NodeIndex>, Option<Link>, MethodIndex), NodeIndex> = FxHashMap::default();
    for tree in trees {
        let mut place_of = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let parent = node.parent.map(|parent: NodeIndex| place_of[parent.0]);
            let place = *places.entry((parent, node.link, node.method)).or_insert_with(|| {
                all.nodes.push(Node { parent, link: node.link, ..Node::empty(node.method) });
                NodeIndex(all.nodes.len() - 1)
            });
            place_of.push(place);
            all.nodes[place.0].add(node);
        }
        counted.resize(counted.len().max(tree.counted.len()), (Errors::Added, Vec::new()));
        for ((errors, sums), column) in counted.iter_mut().zip(&tree.counted) {
            *errors = column.errors();
            sums.resize(all.nodes.len(), (0, 0));
            for (place, amount) in place_of.iter().zip(column.amounts()) {
                let (own, error) = &mut sums[place.0];
                (*own, *error) = (own.saturating_add(amount.own), error.saturating_add(amount.own_error));
            }
        }
    }
    let column = |(errors, own)| Column::with(errors, &all.nodes, own);
    all.counted = counted.into_iter().map(column).collect();
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::random_tree;

    #[test]
    fn every_node_is_entered_and_left_between_its_parents_steps() {
        for seed in 0..50 {
            let tree = random_tree(seed, 200, 5);
            let mut open = Vec::new();
            let mut entered = 0;
            for step in Children::of(&tree).depth_first() {
                match step {
                    Step::Enter(node) => {
                        assert_eq!(open.last().copied(), tree.nodes[node.0].parent);
                        open.push(node);
                        entered += 1;
                    }
                    Step::Leave(node) => assert_eq!(open.pop(), Some(node)),
                }
            }
            assert_eq!((entered, open.len()), (tree.nodes.len(), 0));
        }
    }

    #[test]
    fn the_sum_of_a_tree_and_itself_has_the_same_shape_and_twice_the_numbers() {
        for seed in 0..20 {
            let one = sum(std::iter::once(&random_tree(seed, 100, 5)));
            let two = sum([&one, &one].into_iter());
            assert_eq!(two.nodes.len(), one.nodes.len());
            assert_eq!((two.calls(), two.total_ns()), (2 * one.calls(), 2 * one.total_ns()));
        }
    }
}
