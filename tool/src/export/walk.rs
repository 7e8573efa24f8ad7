//! Trees from top to bottom and back, without recursion: a tree may be as deep as a stack.

use std::io;

use crate::profile::{Node, NodeIndex, Tree};

/// Stacks are listed up to this depth. Lists of stacks grow with the square of a recursion's depth, and consumers have such limits
/// themselves (Pyroscope's default is the same).
pub(super) const DEEPEST: usize = 1000;

/// A step of a walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Enter(NodeIndex),
    Leave(NodeIndex),
}

/// Walks a tree, callees in the order of their numbers, which is that of their first calls.
#[derive(Debug)]
pub(super) struct Walk {
    /// A node's children are `children[first[node]..first[node + 1]]`; those of the last are the roots.
    first: Vec<usize>,
    children: Vec<NodeIndex>,
    /// Nodes that were entered, and which of their children is next.
    path: Vec<(NodeIndex, usize)>,
}

impl Walk {
    pub(super) fn of(tree: &Tree) -> Walk {
        Walk::by(tree, |node| node.parent)
    }

    /// Through calls only: what was handed over stands beside the roots.
    pub(super) fn of_calls(tree: &Tree) -> Walk {
        Walk::by(tree, Node::caller)
    }

    fn by(tree: &Tree, parent: impl Fn(&Node) -> Option<NodeIndex>) -> Walk {
        let top = tree.nodes.len();
        let above = |node: &Node| parent(node).map_or(top, |parent| parent.0);
        let mut first = vec![0; top + 2];
        for node in &tree.nodes {
            first[above(node) + 1] += 1;
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut next = first.clone();
        let mut children = vec![NodeIndex(0); top];
        for (index, node) in tree.nodes.iter().enumerate() {
            let place = &mut next[above(node)];
            children[*place] = NodeIndex(index);
            *place += 1;
        }
        let path = vec![(NodeIndex(top), first[top])];
        Walk { first, children, path }
    }
}

impl Iterator for Walk {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let (node, next) = self.path.last_mut()?;
        let node = *node;
        if *next < self.first[node.0 + 1] {
            let child = self.children[*next];
            *next += 1;
            self.path.push((child, self.first[child.0]));
            return Some(Step::Enter(child));
        }
        self.path.pop();
        // The last to be popped stands above the roots.
        (!self.path.is_empty()).then_some(Step::Leave(node))
    }
}

/// Visits every node with its stack, the root first. Of stacks that are too deep, the levels right above the node are left out: its
/// own counts and times stay true, and so do those of the upper levels.
pub(super) fn stacks(tree: &Tree, mut visit: impl FnMut(&[NodeIndex], &Node) -> io::Result<()>) -> io::Result<()> {
    let mut path = Vec::new();
    for step in Walk::of(tree) {
        match step {
            Step::Enter(index) if path.len() >= DEEPEST => {
                let hidden = std::mem::replace(&mut path[DEEPEST - 1], index);
                visit(&path[..DEEPEST], &tree.nodes[index.0])?;
                path[DEEPEST - 1] = hidden;
                path.push(index);
            }
            Step::Enter(index) => {
                path.push(index);
                visit(&path, &tree.nodes[index.0])?;
            }
            Step::Leave(_) => {
                path.pop();
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{CpuSamples, MethodIndex};

    fn tree(parents: &[Option<usize>]) -> Tree {
        let node = |parent: &Option<usize>| Node {
            parent: parent.map(NodeIndex),
            link: None,
            method: MethodIndex(0),
            calls: 1,
            thrown: 0,
            self_ns: 1,
            total_ns: 1,
            error_ns: 0,
            total_error_ns: 0,
            cpu: CpuSamples::default(),
        };
        Tree { nodes: parents.iter().map(node).collect() }
    }

    #[test]
    fn every_node_is_entered_after_its_parent_and_left_after_its_children() {
        use Step::{Enter, Leave};
        let steps: Vec<Step> = Walk::of(&tree(&[None, Some(0), None, Some(0), Some(1)])).collect();
        let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(NodeIndex);
        let expected =
            [Enter(a), Enter(b), Enter(e), Leave(e), Leave(b), Enter(d), Leave(d), Leave(a), Enter(c), Leave(c)];
        assert_eq!(steps, expected);
        assert_eq!(Walk::of(&Tree::default()).next(), None);
    }

    #[test]
    fn too_deep_a_stack_keeps_its_root_and_its_own_node() {
        const LEVELS: usize = DEEPEST + 5;
        let parents: Vec<Option<usize>> = (0..LEVELS).map(|level: usize| level.checked_sub(1)).collect();
        let mut visited = 0;
        stacks(&tree(&parents), |stack, _| {
            assert_eq!(stack.len(), DEEPEST.min(visited + 1));
            assert_eq!((stack[0], stack[stack.len() - 1]), (NodeIndex(0), NodeIndex(visited)));
            assert!(visited == 0 || stack[stack.len() - 2] == NodeIndex((visited - 1).min(DEEPEST - 2)));
            visited += 1;
            Ok(())
        })
        .expect("nothing is written");
        assert_eq!(visited, LEVELS);
    }
}
