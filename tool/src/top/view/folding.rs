//! What is folded, and the selection along with it.

use rustc_hash::FxHashMap;

use super::View;
use crate::profile::NodeIndex;
use crate::report::{View as Shape, share};
use crate::top::column::Sort;
use crate::top::rows::{Folds, Shown, UNFOLDED};

impl View {
    pub(in crate::top) fn is_open(&self, node: NodeIndex) -> bool {
        let open = |shown: &Shown| self.folds.known.get(&shown.forest.key(node)).copied();
        self.shown.as_ref().and_then(open).unwrap_or(false)
    }

    pub(super) fn fold(&mut self, node: NodeIndex, is_to_be_folded: bool) {
        if let Some(shown) = &self.shown
            && shown.forest.has_children(node)
        {
            self.folds.known.insert(shown.forest.key(node), !is_to_be_folded);
            self.rebuild();
        }
    }

    pub(super) fn step_in(&mut self) {
        let (Some(node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        if !shown.forest.has_children(node) {
            return;
        }
        if self.is_open(node) {
            self.choose(self.cursor().row + 1);
        } else {
            self.fold(node, false);
        }
    }

    pub(super) fn step_out(&mut self) {
        let (Some(node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        if self.is_open(node) && shown.forest.has_children(node) {
            self.fold(node, true);
        } else if let Some(parent) = shown.forest.parent(&shown.profile, node) {
            self.choose_key(shown.forest.key(parent));
        }
    }

    pub(super) fn unfold_all(&mut self) {
        let (Some(node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        let keys = shown.forest.subtree(node).into_iter().map(|node| (shown.forest.key(node), true));
        self.folds.known.extend(keys);
        self.rebuild();
    }

    pub(super) fn fold_all(&mut self) {
        self.folds = Folds { known: FxHashMap::default(), is_settled: true };
        // The root above it is what stays of a selected node.
        if let (Some(mut node), Some(shown)) = (self.selected_node(), &self.shown) {
            while let Some(parent) = shown.forest.parent(&shown.profile, node) {
                node = parent;
            }
            self.cursors[Shape::Tree as usize].key = Some(shown.forest.key(node));
        }
        self.rebuild();
    }

    pub(super) fn unfold_hot_path(&mut self) {
        let (Some(mut node), Some(shown)) = (self.selected_node(), &self.shown) else { return };
        let hottest = |node| shown.forest.below(&shown.profile, Some(node), Sort::usual(Shape::Tree)).first().copied();
        while let Some(next) = hottest(node) {
            let (part, whole) = (shown.forest.amounts(&shown.profile, next), shown.forest.lead().whole);
            if share(part.total_ns, whole) < UNFOLDED {
                break;
            }
            self.folds.known.insert(shown.forest.key(node), true);
            node = next;
        }
        let key = shown.forest.key(node);
        self.rebuild();
        self.choose_key(key);
    }
}
