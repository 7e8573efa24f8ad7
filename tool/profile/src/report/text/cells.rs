//! The columns of numbers in a view.

use crate::profile::parts::Parts;
use crate::profile::{Amount, Amounts, CpuSamples, Extent, Metric, NodeAmounts, NodeIndex, Profile, Sum, Tree, Unit};
use crate::report::belief::{Belief, Shares};
use crate::report::chosen::Chosen;
use crate::report::units::{self, count};
use crate::report::{View, bounded, share};

/// A column.
enum Cell {
    /// The part of the whole that the leading metric has.
    Share,
    /// A metric of the method itself.
    Own(usize),
    /// A metric of it with what it calls.
    Total(usize),
    /// The part of the time in which threads ran.
    CpuShare,
    /// What the largest part of the self time is, and how large.
    Waits,
}

/// The columns of a view of a tree.
pub(super) struct Cells {
    cells: Vec<Cell>,
    metrics: Vec<Metric>,
    parts: Option<Parts>,
    /// Of the tree, each metric's.
    wholes: Vec<u64>,
    /// What has shares, and the whole of it.
    weight: (Metric, u64),
    /// How well the shares of its times are known.
    shares: Shares,
    /// Whether times are known at all: else they are so long at most.
    are_times_known: bool,
    view: View,
    is_percent: bool,
    has_many: bool,
}

impl Cells {
    pub(super) fn of(profile: &Profile, tree: &Tree, chosen: &Chosen, view: View, is_percent: bool) -> Cells {
        let mut metrics = chosen.metrics().to_vec();
        let columns = profile.columns(tree);
        let mut cells = vec![Cell::Share];
        for (at, metric) in metrics.iter().enumerate() {
            let is_share_shown = chosen.is_usual() && metric.is_time() && profile.merged.has_cpu_samples();
            let cpu = || is_share_shown.then_some(Cell::CpuShare);
            match (metric.extent, view) {
                (Extent::Own, _) => cells.push(Cell::Own(at)),
                // One number of a quotient is enough: that of what the view is about.
                (Extent::OwnAndTotal, View::Flat) if !metric.is_additive => cells.push(Cell::Own(at)),
                (Extent::OwnAndTotal, _) if !metric.is_additive => cells.push(Cell::Total(at)),
                (Extent::OwnAndTotal, View::Flat) => {
                    cells.push(Cell::Own(at));
                    cells.extend(cpu());
                    cells.push(Cell::Total(at));
                }
                (Extent::OwnAndTotal, View::Tree | View::Locks | View::Tracks) => {
                    cells.push(Cell::Total(at));
                    cells.extend(cpu());
                    cells.push(Cell::Own(at));
                }
                (Extent::OwnAndTotal, View::Callers) => {
                    cells.extend([Cell::Total(at), Cell::Own(at)]);
                    cells.extend(cpu());
                }
            }
        }
        let parts = if chosen.is_usual() { Parts::of(profile) } else { None };
        cells.extend(parts.as_ref().map(|_| Cell::Waits));
        if view == View::Flat && chosen.is_usual() {
            let is_time_a_call = |metric: &Metric| metric.per_call().is_some_and(Metric::is_time);
            let a_call = profile.derived().into_iter().find(is_time_a_call);
            cells.extend(a_call.as_ref().map(|_| Cell::Own(metrics.len())));
            metrics.extend(a_call);
        }
        let wholes = metrics.iter().map(|metric| metric.whole(tree, &columns)).collect();
        let has_totals = |metric: &&Metric| metric.is_additive && metric.extent == Extent::OwnAndTotal;
        let has_many = metrics.iter().filter(has_totals).count() > 1;
        let weight = (chosen.weight().clone(), chosen.weight().whole(tree, &columns));
        let are_times_known = Belief::of(profile).is_none_or(|belief| belief.is_known());
        Cells {
            cells,
            metrics,
            parts,
            wholes,
            weight,
            shares: Shares::of(tree),
            are_times_known,
            view,
            is_percent,
            has_many,
        }
    }

    /// What has shares, of the whole tree.
    pub(super) fn whole(&self) -> u64 {
        self.weight.1
    }

    /// The line above the columns.
    pub(super) fn heading(&self) -> String {
        let cells = self.cells.iter().map(|cell| match cell {
            Cell::Share => format!("{:>7} ", "share"),
            Cell::CpuShare => "   cpu ".to_owned(),
            Cell::Waits => format!("{:>13} ", "waits"),
            Cell::Own(at) | Cell::Total(at) => {
                format!("{:>width$} ", self.name(cell, *at), width = self.width(cell, *at))
            }
        });
        cells.collect::<String>() + " "
    }

    /// What stands above a column of a metric.
    fn name(&self, cell: &Cell, at: usize) -> String {
        let metric = &self.metrics[at];
        match metric.per_call() {
            Some(of) => format!("{}/call", self.name_of(cell, of)),
            None => self.name_of(cell, metric),
        }
    }

    fn name_of(&self, cell: &Cell, metric: &Metric) -> String {
        let (own, total) = if self.view == View::Callers { ("base", "cum") } else { ("self", "total") };
        let part = if matches!(cell, Cell::Own(_)) { own } else { total };
        match (metric.extent, self.has_many || !metric.is_time()) {
            (Extent::Own, _) => metric.id.clone().into_owned(),
            (Extent::OwnAndTotal, false) => part.to_owned(),
            (Extent::OwnAndTotal, true) => format!("{} {part}", metric.id),
        }
    }

    fn width(&self, cell: &Cell, at: usize) -> usize {
        let least = match self.metrics[at].unit {
            Unit::Nanoseconds | Unit::Bytes | Unit::Share => 11,
            Unit::Count | Unit::Bytecodes => 13,
        };
        self.name(cell, at).len().max(least)
    }

    /// A value in its column, and a space.
    fn padded(&self, cell: &Cell, at: usize, text: &str) -> String {
        let width = self.width(cell, at);
        match self.metrics[at].unit {
            // Their unit stands apart from what follows.
            Unit::Nanoseconds | Unit::Bytes => format!("{text:>width$}  ", width = width - 1),
            Unit::Count | Unit::Bytecodes | Unit::Share => format!("{text:>width$} "),
        }
    }

    /// A row's numbers, and two spaces.
    pub(super) fn row(&self, amounts: &Amounts) -> String {
        self.numbers(amounts, true)
    }

    /// The numbers of a row that stands for several: only those that add up.
    pub(super) fn sum(&self, amounts: &Amounts) -> String {
        self.numbers(amounts, false)
    }

    fn numbers(&self, amounts: &Amounts, is_single: bool) -> String {
        // A sum of hidden lines has what the view is about.
        let is_own_shown = is_single || self.view == View::Flat;
        let is_total_shown = is_single || self.view == View::Tree;
        let cells = self.cells.iter().map(|cell| match *cell {
            Cell::Share => format!("{:>7} ", self.share(amounts, is_single)),
            Cell::CpuShare => match amounts.cpu.share() {
                Some(share) if is_single && amounts.cpu.samples >= CpuSamples::ENOUGH => {
                    format!("{:>5.0}% ", 100.0 * share)
                }
                _ => format!("{:7}", ""),
            },
            Cell::Waits => {
                let largest = self.parts.as_ref().and_then(|parts| parts.largest(amounts)).filter(|_| is_own_shown);
                let text = largest.map(|(part, share)| format!("{part} {:.0}%", 100.0 * share));
                format!("{:>13} ", text.unwrap_or_default())
            }
            // A sum of quotients is none.
            Cell::Own(at) | Cell::Total(at) if !is_single && !self.metrics[at].is_additive => self.padded(cell, at, ""),
            Cell::Own(at) => {
                let (metric, amount) = (&self.metrics[at], self.metrics[at].of(amounts));
                let error = if is_single { amount.own_error } else { 0 };
                let text = match metric.is_calls() && amounts.at_least {
                    true => format!(">={}", count(amount.own)),
                    false => self.value(at, amount.own, error),
                };
                self.padded(cell, at, if is_own_shown || metric.extent == Extent::Own { &text } else { "" })
            }
            Cell::Total(at) => {
                let amount = self.metrics[at].of(amounts);
                let error = if is_single { amount.total_error } else { 0 };
                self.padded(cell, at, &if is_total_shown { self.value(at, amount.total, error) } else { String::new() })
            }
        });
        cells.collect::<String>() + " "
    }

    /// The part of the whole; from where to where it lies, if no more is known.
    pub(super) fn share(&self, amounts: &Amounts, is_single: bool) -> String {
        let (weight, whole) = &self.weight;
        let amount = weight.of(amounts);
        let (part, error) = match self.view == View::Flat || weight.extent == Extent::Own {
            true => (amount.own, amount.own_error),
            false => (amount.total, amount.total_error),
        };
        let range = if is_single && weight.is_time() { self.shares.range(part, error) } else { None };
        match range {
            Some((from, to)) => format!("{:.0}-{:.0}%", 100.0 * from, 100.0 * to),
            None => units::percent(share(part, *whole)),
        }
    }

    /// What part of the whole a row with what it calls may well have: a standard deviation more than is shown.
    pub(super) fn may_have(&self, amounts: &Amounts) -> f64 {
        let (weight, whole) = &self.weight;
        let Amount { total, total_error, .. } = weight.of(amounts);
        let deviation = if weight.is_time() { self.shares.deviation(total, total_error) } else { 0.0 };
        share(total, *whole) + deviation
    }

    fn value(&self, at: usize, value: u64, error: u64) -> String {
        let (metric, whole) = (&self.metrics[at], self.wholes[at]);
        if self.is_percent && metric.is_additive && metric.unit != Unit::Count {
            return bounded(value, error, |value| format!("{:.2}%", 100.0 * share(value, whole)));
        }
        self.bounded(at, value, error)
    }

    /// A value, or what it is at most.
    fn bounded(&self, at: usize, value: u64, error: u64) -> String {
        let metric = &self.metrics[at];
        let is_bound = metric.is_of_time() && !self.are_times_known && value > 0;
        match is_bound {
            true => format!("<{}", units::value(metric.unit, value.saturating_add(error))),
            false => bounded(value, error, |value| units::value(metric.unit, value)),
        }
    }
}

/// The rows of a tree's nodes, with the samples of all that each calls.
pub(super) struct NodeRows<'a> {
    nodes: NodeAmounts<'a>,
    cpu: Vec<CpuSamples>,
}

impl<'a> NodeRows<'a> {
    pub(super) fn of(profile: &Profile, tree: &'a Tree) -> NodeRows<'a> {
        NodeRows { nodes: NodeAmounts::of(profile, tree), cpu: tree.total_cpu() }
    }

    pub(super) fn at(&self, node: NodeIndex) -> Amounts {
        Amounts { cpu: self.cpu[node.0], ..self.nodes.at(node) }
    }

    /// Of several nodes, none of which calls another, together.
    pub(super) fn sum(&self, nodes: &[NodeIndex]) -> Amounts {
        let (mut sum, mut cpu) = (Sum::default(), CpuSamples::default());
        for node in nodes {
            self.nodes.add_own(*node, &mut sum);
            self.nodes.add_total(*node, &mut sum);
            cpu.add(self.cpu[node.0]);
        }
        Amounts { cpu, ..self.nodes.row(sum) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{MethodIndex, Node, Profile};
    use crate::report::Options;

    fn row(total_error_ns: u64, is_percent: bool) -> String {
        let root = Node { calls: 4, self_ns: 1_000, total_ns: 1_000, total_error_ns, ..Node::empty(MethodIndex(0)) };
        let profile = Profile { controls: Vec::new(), ..profile_of(Tree::of(vec![root]), Vec::new(), 1) };
        let chosen = Chosen::of(&profile, &Options::default());
        let cells = Cells::of(&profile, &profile.merged, &chosen, View::Tree, is_percent);
        let rows = NodeRows::of(&profile, &profile.merged);
        cells.row(&rows.at(crate::profile::NodeIndex(0)))
    }

    #[test]
    fn times_that_are_not_known_are_bounds() {
        assert!(row(100, false).contains(" 1.000 us "), "{}", row(100, false));
        let unknown = row(700, false);
        assert!(unknown.contains("<1.700 us ") && unknown.contains("100.0%"), "{unknown}");
        assert!(row(700, true).contains(" 100.00% "), "shares do not depend on it: {}", row(700, true));
    }
}
