//! What of a tree is shown.

use rustc_hash::FxHashMap;

use super::Options;
use super::chosen::Chosen;
use crate::profile::{Amounts, Extent, MethodIndex, Metric, NodeIndex, Profile, Tree};

/// Which of a profile's methods the options focus on; all, without a focus.
pub(super) fn focused(profile: &Profile, options: &Options) -> Vec<bool> {
    let is_meant = |machine: &str| options.focus.as_ref().is_none_or(|focus| focus.matches(machine));
    profile.methods.iter().map(|method| is_meant(&method.machine)).collect()
}

/// Which of a profile's methods are asked for by their names.
fn named(profile: &Profile, options: &Options) -> Vec<bool> {
    let is_named = |machine: &str| options.focus.as_ref().is_some_and(|focus| focus.names(machine));
    profile.methods.iter().map(|method| is_named(&method.machine)).collect()
}

/// Which nodes are shown, each with all those above it. A method that is asked for by its name is shown once at least, however small it is.
pub(super) fn shown_nodes(profile: &Profile, tree: &Tree, focused: &[bool], options: &Options) -> Vec<bool> {
    let chosen = Chosen::of(profile, options);
    let columns = profile.columns(tree);
    let floor = chosen.floor();
    let whole = floor.whole(tree, &columns);
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
    let totals: Vec<u64> = floor.metric().values(tree, &columns).iter().map(|amount| amount.total).collect();
    let weights = weights(tree, floor.metric(), &totals);
    let is_large = |index: usize| floor.is_reached(weights[index], whole);
    let kept = kept(profile, tree, options, &weights, is_large);
    let mut levels: Vec<usize> = Vec::with_capacity(nodes.len());
    for index in 0..nodes.len() {
        let parent = above(index);
        let level = parent.map_or(1, |parent| levels[parent] + 1);
        levels.push(level);
        let too_deep = options.max_depth.is_some_and(|deepest| level > deepest);
        let too_small = level > 1 && !kept[index] && !is_large(index);
        shown[index] &= !too_deep && !too_small && parent.is_none_or(|parent| shown[parent]);
    }
    shown
}

/// What each node is shown for: what it has of a metric, and what lies below it and is no part of that.
fn weights(tree: &Tree, metric: &Metric, totals: &[u64]) -> Vec<u64> {
    let nodes = &tree.nodes;
    let mut weights = totals.to_vec();
    for index in (0..nodes.len()).rev() {
        let Some(NodeIndex(parent)) = nodes[index].parent else { continue };
        if !metric.is_additive {
            // A quotient is large for itself: what leads to it is shown for its sake.
            weights[parent] = weights[parent].max(weights[index]);
            continue;
        }
        // What was handed over may take longer than what it hangs on. Of a metric without totals, all that lies below counts.
        let is_beside = nodes[index].link.is_some() || metric.extent == Extent::Own;
        let handed = if is_beside { weights[index] } else { weights[index] - totals[index] };
        weights[parent] = weights[parent].saturating_add(handed);
    }
    weights
}

/// Of each method that is asked for by its name, and has no large node, the largest one and all those above it.
fn kept(
    profile: &Profile,
    tree: &Tree,
    options: &Options,
    weights: &[u64],
    is_large: impl Fn(usize) -> bool,
) -> Vec<bool> {
    let named = named(profile, options);
    let mut largest: FxHashMap<&str, Option<usize>> = FxHashMap::default();
    for (index, node) in tree.nodes.iter().enumerate().filter(|(_, node)| named[node.method.0]) {
        let known = largest.entry(&profile.method_of(node).machine).or_insert(Some(index));
        *known = known.filter(|_| !is_large(index)).map(|at| if weights[index] > weights[at] { index } else { at });
    }
    let mut kept = vec![false; tree.nodes.len()];
    for index in largest.into_values().flatten() {
        let mut at = Some(NodeIndex(index));
        while let Some(NodeIndex(index)) = at {
            kept[index] = true;
            at = tree.nodes[index].parent;
        }
    }
    kept
}

/// Which methods have a line or a stanza of their own.
pub(super) struct ShownMethods<'a> {
    focused: Vec<bool>,
    named: Vec<bool>,
    chosen: &'a Chosen,
    whole: u64,
}

impl<'a> ShownMethods<'a> {
    /// Of a tree of a profile.
    pub(super) fn of(profile: &Profile, tree: &Tree, options: &Options, chosen: &'a Chosen) -> ShownMethods<'a> {
        let whole = chosen.floor().whole(tree, &profile.columns(tree));
        ShownMethods { focused: focused(profile, options), named: named(profile, options), chosen, whole }
    }

    /// Whether a method does that takes so much.
    pub(super) fn has(&self, method: MethodIndex, amounts: &Amounts) -> bool {
        let floor = self.chosen.floor();
        let is_large = || floor.is_reached(floor.amount(amounts).total, self.whole);
        self.named[method.0] || self.focused[method.0] && is_large()
    }
}
