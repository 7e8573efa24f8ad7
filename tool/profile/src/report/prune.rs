//! What of a tree is shown.

use rustc_hash::FxHashMap;

use super::chosen::Chosen;
use super::{Options, share};
use crate::profile::{Amounts, Extent, MethodIndex, NodeIndex, Profile, Tree};

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
    let whole = chosen.lead().whole(tree, &columns);
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
    let totals: Vec<u64> = chosen.lead().values(tree, &columns).iter().map(|amount| amount.total).collect();
    let mut weights = totals.clone();
    for index in (0..nodes.len()).rev() {
        // Of a metric without totals, all that lies below counts.
        let is_beside = nodes[index].link.is_some() || chosen.lead().extent == Extent::Own;
        let handed = if is_beside { weights[index] } else { weights[index] - totals[index] };
        if let Some(parent) = above(index) {
            weights[parent] = weights[parent].saturating_add(handed);
        }
    }
    let is_large = |index: usize| share(weights[index], whole) >= options.min_share;
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
    options: &'a Options,
    chosen: &'a Chosen,
    whole: u64,
}

impl<'a> ShownMethods<'a> {
    /// Of a tree of a profile.
    pub(super) fn of(profile: &Profile, tree: &Tree, options: &'a Options, chosen: &'a Chosen) -> ShownMethods<'a> {
        let whole = chosen.lead().whole(tree, &profile.columns(tree));
        ShownMethods { focused: focused(profile, options), named: named(profile, options), options, chosen, whole }
    }

    /// Whether a method does that takes so much.
    pub(super) fn has(&self, method: MethodIndex, amounts: &Amounts) -> bool {
        let part = self.chosen.amount(amounts).total;
        self.named[method.0] || self.focused[method.0] && share(part, self.whole) >= self.options.min_share
    }
}
