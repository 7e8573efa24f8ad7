//! A metric's values at the nodes of a tree.

use std::borrow::Cow;

use serde::Serialize;

use super::{Amount, CpuSamples, Node, NodeIndex, Tree};

/// How uncertain values are together, of a metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Errors {
    /// Their uncertainties add up.
    #[default]
    Added,
    /// They are parts of the nodes' time.
    OfTime,
    /// Each is by samples, of which each stands for so much: their number scatters by its square root.
    OfSamples(u64),
}

impl Errors {
    /// Of a value by samples.
    pub(super) fn of_samples(value: u64, grain: u64) -> u64 {
        (u128::from(value) * u128::from(grain)).isqrt() as u64
    }
}

/// A metric's value at each node of a tree. Totals follow from what nodes have themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    amounts: Vec<Amount>,
    errors: Errors,
}

impl Column {
    /// Of a tree with these nodes: what each has itself, and the uncertainty of that, where it does not follow.
    pub(crate) fn with(errors: Errors, nodes: &[Node], own: impl IntoIterator<Item = (u64, u64)>) -> Column {
        match errors {
            Errors::Added => Column::of(nodes, own),
            Errors::OfTime => Column::of_time(nodes, own),
            Errors::OfSamples(grain) => Column::of_samples(nodes, own.into_iter().map(|(own, _)| own), grain),
        }
    }

    /// Of a tree with these nodes: what each has itself, and the uncertainty of that.
    pub fn of(nodes: &[Node], own: impl IntoIterator<Item = (u64, u64)>) -> Column {
        let own = own.into_iter().map(|(own, own_error)| Amount { own, total: own, own_error, total_error: own_error });
        let mut amounts: Vec<Amount> = own.chain(std::iter::repeat(Amount::default())).take(nodes.len()).collect();
        for index in (0..nodes.len()).rev() {
            if let Some(NodeIndex(caller)) = nodes[index].caller() {
                let amount = amounts[index];
                amounts[caller].add_total(amount);
            }
        }
        Column { amounts, errors: Errors::Added }
    }

    /// The same of parts of the nodes' time. Of what makes that wrong each part has its share, and in many nodes together no more than their time has; what they have
    /// besides is each one's own.
    pub fn of_time(nodes: &[Node], own: impl IntoIterator<Item = (u64, u64)>) -> Column {
        let Column { mut amounts, .. } = Column::of(nodes, own);
        let own = nodes.iter().zip(&amounts).map(|(node, amount)| PartOfTime::own(node, amount).besides());
        let mut besides: Vec<f64> = own.collect();
        for index in (0..nodes.len()).rev() {
            amounts[index].total_error = PartOfTime::total(&nodes[index], &amounts[index]).joined(besides[index]);
            if let Some(NodeIndex(caller)) = nodes[index].caller() {
                besides[caller] += besides[index];
            }
        }
        Column { amounts, errors: Errors::OfTime }
    }

    /// Of samples, each of which stands for so much: their number scatters by its square root.
    fn of_samples(nodes: &[Node], own: impl IntoIterator<Item = u64>, grain: u64) -> Column {
        let error = |value| Errors::of_samples(value, grain);
        let Column { mut amounts, .. } = Column::of(nodes, own.into_iter().map(|own| (own, error(own))));
        amounts.iter_mut().for_each(|amount| amount.total_error = error(amount.total));
        Column { amounts, errors: Errors::OfSamples(grain) }
    }

    /// Of what each node has, totals too.
    pub(crate) fn told(amounts: Vec<Amount>) -> Column {
        Column { amounts, errors: Errors::Added }
    }

    pub(crate) fn errors(&self) -> Errors {
        self.errors
    }

    /// A node's.
    pub fn at(&self, node: NodeIndex) -> Amount {
        self.amounts[node.0]
    }

    /// Every node's.
    pub fn amounts(&self) -> &[Amount] {
        &self.amounts
    }
}

/// All columns of a tree, in the order in which [`Profile::metrics`] has those metrics.
pub type Columns<'a> = Vec<Cow<'a, Column>>;

/// A part of a time, and how wrong both may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct PartOfTime {
    pub(super) ns: u64,
    pub(super) error_ns: u64,
    pub(super) time_ns: u64,
    pub(super) time_error_ns: u64,
}

impl PartOfTime {
    /// Of what a node has itself.
    pub(super) fn own(node: &Node, amount: &Amount) -> PartOfTime {
        PartOfTime { ns: amount.own, error_ns: amount.own_error, time_ns: node.self_ns, time_error_ns: node.error_ns }
    }

    /// Of what it has with what it calls.
    pub(super) fn total(node: &Node, amount: &Amount) -> PartOfTime {
        let (time_ns, time_error_ns) = (node.total_ns, node.total_error_ns);
        PartOfTime { ns: amount.total, error_ns: amount.total_error, time_ns, time_error_ns }
    }

    /// Its share of what makes the time wrong. Of no time it may be all.
    fn shared(&self) -> f64 {
        let part = if self.time_ns > 0 { (self.ns as f64 / self.time_ns as f64).min(1.0) } else { 1.0 };
        part * self.time_error_ns as f64
    }

    /// Which variance it has besides, in ns².
    pub(super) fn besides(&self) -> f64 {
        ((self.error_ns as f64).powi(2) - self.shared().powi(2)).max(0.0)
    }

    /// Its uncertainty, if it has such a variance besides: no more than it would be if all of them added up.
    pub(super) fn joined(&self, besides: f64) -> u64 {
        ((self.shared().powi(2) + besides).sqrt().round() as u64).min(self.error_ns)
    }
}

/// What of each node's self time its thread was running in: by its own samples, or where they are too few by those of the smallest part of
/// the tree that it is in and that has enough, or of the whole.
pub(super) fn cpu_time(tree: &Tree) -> Column {
    let totals = tree.total_cpu();
    let mut whole = CpuSamples::default();
    tree.nodes.iter().for_each(|node| whole.add(node.cpu));
    let mut believed: Vec<CpuSamples> = Vec::with_capacity(tree.nodes.len());
    for (node, total) in tree.nodes.iter().zip(totals) {
        // Parents come before their children.
        let above = node.parent.map_or(whole, |NodeIndex(parent)| believed[parent]);
        believed.push(if total.samples >= CpuSamples::ENOUGH { total } else { above });
    }
    let own = tree.nodes.iter().zip(believed).map(|(node, believed)| {
        let samples = if node.cpu.samples >= CpuSamples::ENOUGH { node.cpu } else { believed };
        let Some(share) = samples.share() else { return (0, node.self_ns) };
        let deviation = (share * (1.0 - share) / f64::from(samples.samples)).sqrt();
        let error = (share * node.error_ns as f64).hypot(deviation * node.self_ns as f64);
        ((share * node.self_ns as f64) as u64, error as u64)
    });
    Column::of_time(&tree.nodes, own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::MethodIndex;
    use crate::profile::testing::{profile_of, random_tree, with_links};

    #[test]
    fn totals_follow_from_what_nodes_have_themselves() {
        for seed in 0..50 {
            let tree = with_links(random_tree(seed, 100, 5), 7);
            let column = Column::of(&tree.nodes, tree.nodes.iter().map(|node| (node.self_ns, node.error_ns)));
            for (node, amount) in tree.nodes.iter().zip(column.amounts()) {
                assert_eq!((amount.own, amount.total), (node.self_ns, node.total_ns));
            }
        }
    }

    #[test]
    fn cpu_time_is_a_part_of_wall_time_and_as_much_as_was_seen_running() {
        for seed in 0..50 {
            let profile = profile_of(random_tree(seed, 100, 5), Vec::new(), 5);
            let Some(cpu) = profile.metric("cpu") else { continue };
            let columns = profile.columns(&profile.merged);
            for (index, node) in profile.merged.nodes.iter().enumerate() {
                let amount = cpu.at_node(&profile.merged, &columns, NodeIndex(index));
                assert!(amount.own <= node.self_ns && amount.total <= node.total_ns);
                if node.cpu.samples >= CpuSamples::ENOUGH {
                    let expected = node.cpu.share().expect("samples") * node.self_ns as f64;
                    assert_eq!(amount.own, expected as u64);
                }
            }
        }
    }

    /// A call that makes a thousand others, of which chance has as much to say as of all of them together.
    #[test]
    fn parts_of_many_nodes_times_are_no_more_uncertain_than_these() {
        let node = |parent, self_ns, total_ns, total_error_ns| Node {
            parent,
            self_ns,
            total_ns,
            error_ns: 700,
            total_error_ns,
            ..Node::empty(MethodIndex(0))
        };
        let mut nodes = vec![node(None, 0, 10_000, 900)];
        nodes.extend((0..1_000).map(|_| node(Some(NodeIndex(0)), 10, 10, 700)));
        let half = |of: &Node| (of.self_ns / 2, of.error_ns / 2);
        let parts = Column::of_time(&nodes, nodes.iter().map(half));
        let root = parts.at(NodeIndex(0));
        assert_eq!((root.total, root.total_error), (5_000, 450));
        assert_eq!(parts.at(NodeIndex(7)), Amount { own: 5, total: 5, own_error: 350, total_error: 350 });
        // What is each one's own does not go away.
        let own = Column::of_time(&nodes, nodes.iter().map(|of| (of.self_ns / 2, of.error_ns)));
        let (root, by_chance) = (own.at(NodeIndex(0)).total_error, (0.75 * 700.0 * 700.0 * 1_000.0_f64).sqrt() as u64);
        assert!(root.abs_diff(by_chance) < 20, "{root}, {by_chance}");
        assert_eq!(Column::of(&nodes, nodes.iter().map(half)).at(NodeIndex(0)).total_error, 350_350);
    }
}
