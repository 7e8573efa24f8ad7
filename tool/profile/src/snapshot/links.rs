//! Nodes that were handed over: few of all, so they are listed.

use crate::profile::{Link, Tree};

/// The numbers of the nodes with a link, each as how far it is behind the one before.
pub(super) fn differences(tree: &Tree) -> Vec<u64> {
    let linked = tree.nodes.iter().enumerate().filter(|(_, node)| node.link.is_some());
    let mut before = 0;
    linked.map(|(index, _)| index as u64 - std::mem::replace(&mut before, index as u64)).collect()
}

/// Marks these nodes; `false` if there are not so many, or if one hangs on nothing.
pub(super) fn mark(tree: &mut Tree, differences: &[u64]) -> bool {
    let mut at = 0_u64;
    differences.iter().all(|difference| {
        at = at.saturating_add(*difference);
        let node = usize::try_from(at).ok().and_then(|index| tree.nodes.get_mut(index));
        let Some(node) = node.filter(|node| node.parent.is_some()) else { return false };
        node.link = Some(Link::Thread);
        true
    })
}
