//! Stacks of a tree.

use std::io;

use crate::profile::walk::{Children, Step};
use crate::profile::{NodeIndex, Tree};

/// Stacks are listed up to this depth. Lists of stacks grow with the square of a recursion's depth, and consumers have such limits
/// themselves (Pyroscope's default is the same).
pub(super) const DEEPEST: usize = 1000;

/// Visits every node with its stack, the root first. Of stacks that are too deep, the levels right above the node are left out: its
/// own counts and times stay true, and so do those of the upper levels.
pub(super) fn stacks(tree: &Tree, mut visit: impl FnMut(&[NodeIndex], NodeIndex) -> io::Result<()>) -> io::Result<()> {
    let mut path = Vec::new();
    for step in Children::of(tree).depth_first() {
        match step {
            Step::Enter(index) if path.len() >= DEEPEST => {
                let hidden = std::mem::replace(&mut path[DEEPEST - 1], index);
                visit(&path[..DEEPEST], index)?;
                path[DEEPEST - 1] = hidden;
                path.push(index);
            }
            Step::Enter(index) => {
                path.push(index);
                visit(&path, index)?;
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
    use crate::profile::{CpuSamples, MethodIndex, Node};

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
        Tree::of(parents.iter().map(node).collect())
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
