//! Finding rows by a part of their names, also where they are folded away.

use super::column::Sort;
use super::forest::{Forest, Subject, name};
use crate::profile::{NodeIndex, Profile};

/// Which way to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Next,
    Previous,
}

/// What is looked for. Capital letters matter if there are any in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(String);

impl Query {
    pub(crate) fn new(text: &str) -> Query {
        Query(text.to_owned())
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn matches(&self, name: &str) -> bool {
        !self.is_empty()
            && if self.heeds_case() { name.contains(&self.0) } else { name.to_lowercase().contains(&self.0) }
    }

    /// Where it is in a name, and how long, in bytes; `None` also where letters change their length with their case.
    pub(super) fn place_in(&self, name: &str) -> Option<(usize, usize)> {
        if self.is_empty() {
            return None;
        }
        let at = if self.heeds_case() {
            name.find(&self.0)?
        } else {
            let lower = name.to_lowercase();
            lower.find(&self.0).filter(|_| lower.len() == name.len())?
        };
        name.get(at..at + self.0.len()).map(|found| (at, found.len()))
    }

    fn heeds_case(&self) -> bool {
        self.0.chars().any(char::is_uppercase)
    }
}

/// Where in a forest a query's matches are.
pub(super) struct Matches<'a> {
    profile: &'a Profile,
    forest: &'a Forest,
    sort: Sort,
    is_match: Vec<bool>,
    /// In each node and below it.
    within: Vec<u32>,
}

impl<'a> Matches<'a> {
    pub(super) fn of(query: &Query, profile: &'a Profile, forest: &'a Forest, sort: Sort) -> Matches<'a> {
        let methods: Vec<bool> = profile.methods.iter().map(|method| query.matches(&method.display)).collect();
        let nodes = (0..forest.len()).map(NodeIndex);
        let is_match: Vec<bool> = nodes
            .map(|node| match forest.subject(profile, node) {
                Subject::Method(method) => methods[method.0],
                thread @ Subject::Thread(_) => query.matches(name(profile, thread)),
            })
            .collect();
        let mut within: Vec<u32> = is_match.iter().map(|is_match| u32::from(*is_match)).collect();
        for index in (0..within.len()).rev() {
            if let Some(parent) = forest.parent(profile, NodeIndex(index)) {
                within[parent.0] += within[index];
            }
        }
        Matches { profile, forest, sort, is_match, within }
    }

    pub(super) fn is_match(&self, node: NodeIndex) -> bool {
        self.is_match[node.0]
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.is_match.iter().filter(|is_match| **is_match).count()
    }

    /// The nearest match behind or before a node, in the order that everything unfolded is shown in; round the end, if need be.
    pub(super) fn from(&self, node: Option<NodeIndex>, direction: Direction) -> Option<NodeIndex> {
        let found = node.and_then(|node| match direction {
            Direction::Next => self.behind(node),
            Direction::Previous => self.before(node),
        });
        found.or_else(|| match direction {
            Direction::Next => self.first_of(self.siblings(None).into_iter()),
            Direction::Previous => self.last_of(self.siblings(None).into_iter().rev()),
        })
    }

    fn siblings(&self, above: Option<NodeIndex>) -> Vec<NodeIndex> {
        self.forest.below(self.profile, above, self.sort)
    }

    fn behind(&self, node: NodeIndex) -> Option<NodeIndex> {
        let mut found = self.first_of(self.siblings(Some(node)).into_iter());
        let mut at = Some(node);
        while let (None, Some(node)) = (found, at) {
            at = self.forest.parent(self.profile, node);
            let later = self.siblings(at).into_iter().skip_while(|sibling| *sibling != node).skip(1);
            found = self.first_of(later);
        }
        found
    }

    fn before(&self, node: NodeIndex) -> Option<NodeIndex> {
        let mut at = node;
        loop {
            let above = self.forest.parent(self.profile, at);
            let earlier = self.siblings(above).into_iter().rev().skip_while(|sibling| *sibling != at).skip(1);
            if let Some(found) = self.last_of(earlier) {
                return Some(found);
            }
            at = above?;
            if self.is_match(at) {
                return Some(at);
            }
        }
    }

    /// The first match in these nodes or below them.
    fn first_of(&self, mut nodes: impl Iterator<Item = NodeIndex>) -> Option<NodeIndex> {
        let mut node = nodes.find(|node| self.within[node.0] > 0)?;
        while !self.is_match(node) {
            node = self.siblings(Some(node)).into_iter().find(|node| self.within[node.0] > 0)?;
        }
        Some(node)
    }

    /// The last match in these nodes, given from the last on, or below them.
    fn last_of(&self, mut nodes: impl Iterator<Item = NodeIndex>) -> Option<NodeIndex> {
        let mut node = nodes.find(|node| self.within[node.0] > 0)?;
        while self.within[node.0] > u32::from(self.is_match(node)) {
            node = self.siblings(Some(node)).into_iter().rev().find(|node| self.within[node.0] > 0)?;
        }
        Some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile_of, random_tree};
    use crate::report::Trees;
    use crate::top::column::Column;

    /// All nodes as they are shown when nothing is folded.
    fn unfolded(profile: &Profile, forest: &Forest, sort: Sort) -> Vec<NodeIndex> {
        let mut order = Vec::new();
        let mut pending = forest.below(profile, None, sort);
        pending.reverse();
        while let Some(node) = pending.pop() {
            order.push(node);
            pending.extend(forest.below(profile, Some(node), sort).into_iter().rev());
        }
        order
    }

    #[test]
    fn next_and_previous_go_through_all_matches_in_the_order_of_the_rows_and_round() {
        for seed in 0..40 {
            let trees = vec![random_tree(seed, 60, 6), random_tree(seed + 100, 60, 6)];
            let profile = profile_of(random_tree(seed, 80, 6), trees, 6);
            for (trees, sort) in [(Trees::Merged, Sort::by(Column::Total)), (Trees::PerThread, Sort::by(Column::Name))]
            {
                let forest = Forest::of(&profile, trees, profile.time_metric());
                let matches = Matches::of(&Query::new("m3"), &profile, &forest, sort);
                let rows = unfolded(&profile, &forest, sort);
                let expected: Vec<NodeIndex> = rows.iter().copied().filter(|node| matches.is_match(*node)).collect();
                assert_eq!(expected.len(), matches.count());
                for (at, node) in rows.iter().enumerate() {
                    let behind = rows[at + 1..].iter().find(|node| matches.is_match(**node)).or(expected.first());
                    assert_eq!(matches.from(Some(*node), Direction::Next).as_ref(), behind);
                    let before = rows[..at].iter().rev().find(|node| matches.is_match(**node)).or(expected.last());
                    assert_eq!(matches.from(Some(*node), Direction::Previous).as_ref(), before);
                }
            }
        }
    }

    #[test]
    fn capital_letters_matter_if_there_are_any() {
        for (query, name, found) in [
            ("cart", "com.acme.Cart.total()", true),
            ("Cart", "com.acme.Cart.total()", true),
            ("Cart", "com.acme.cart.total()", false),
            ("", "com.acme.Cart.total()", false),
            ("übung", "de.Übung.start()", true),
        ] {
            assert_eq!(Query::new(query).matches(name), found, "{query}");
        }
    }
}
