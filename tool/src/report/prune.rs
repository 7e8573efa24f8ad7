//! What of a tree is shown.

use super::{Options, share};
use crate::profile::{MethodIndex, Profile, Tree};

/// Which of a profile's methods the options focus on; all, without a focus.
pub(super) fn focused(profile: &Profile, options: &Options) -> Vec<bool> {
    let is_meant = |machine: &str| options.focus.as_ref().is_none_or(|focus| focus.matches(machine));
    profile.methods.iter().map(|method| is_meant(&method.machine)).collect()
}

/// Which nodes are shown, each with all those above it.
pub(super) fn shown_nodes(tree: &Tree, focused: &[bool], options: &Options) -> Vec<bool> {
    let whole_ns = tree.total_ns();
    let nodes = &tree.nodes;
    let above = |index: usize| nodes[index].parent.map(|parent| parent.0);
    // Below the focus first; then above it: parents come before their children.
    let mut shown: Vec<bool> = Vec::with_capacity(nodes.len());
    for (index, node) in nodes.iter().enumerate() {
        let is_below = above(index).is_some_and(|parent| shown[parent]);
        shown.push(is_below || focused[node.method.0]);
    }
    for index in (0..nodes.len()).rev() {
        if let Some(parent) = above(index) {
            shown[parent] |= shown[index];
        }
    }
    // What was handed over may take longer than what it hangs on, which is shown for its sake.
    let mut weights: Vec<u64> = nodes.iter().map(|node| node.total_ns).collect();
    for index in (0..nodes.len()).rev() {
        let handed = if nodes[index].link.is_some() { weights[index] } else { weights[index] - nodes[index].total_ns };
        if let Some(parent) = above(index) {
            weights[parent] += handed;
        }
    }
    let mut levels: Vec<usize> = Vec::with_capacity(nodes.len());
    for index in 0..nodes.len() {
        let parent = above(index);
        let level = parent.map_or(1, |parent| levels[parent] + 1);
        levels.push(level);
        let too_deep = options.max_depth.is_some_and(|deepest| level > deepest);
        let too_small = level > 1 && share(weights[index], whole_ns) < options.min_share;
        shown[index] &= !too_deep && !too_small && parent.is_none_or(|parent| shown[parent]);
    }
    shown
}

/// Whether a method has a line or a stanza of its own.
pub(super) fn is_method_shown(
    method: MethodIndex,
    part_ns: u64,
    whole_ns: u64,
    focused: &[bool],
    options: &Options,
) -> bool {
    focused[method.0] && share(part_ns, whole_ns) >= options.min_share
}
