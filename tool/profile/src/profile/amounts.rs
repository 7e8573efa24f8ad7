//! Everything that is known of a method, or of a node: one row of a report.

use super::{Amount, Columns, CpuSamples, Metric, Node, NodeIndex, Profile, Tree};

/// What a method, or one of its callers or callees on its account, took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Entries.
    pub calls: u64,
    /// How many of them an exception left.
    pub thrown: u64,
    /// Time in the method itself: arcflow's base.
    pub self_ns: u64,
    /// Its own and its callees' time, where it is recursive only that of the outermost calls: arcflow's cum.
    pub total_ns: u64,
    /// Uncertainty of `self_ns`.
    pub error_ns: u64,
    /// Uncertainty of `total_ns`, at most.
    pub total_error_ns: u64,
    /// Whether the self time was spent running or waiting.
    pub cpu: CpuSamples,
    /// Calls may be missing: there are at least so many.
    pub at_least: bool,
    /// What else is known, in the order of [`Profile::columns`]; nothing stands for zeros.
    pub columns: Vec<Amount>,
}

impl Amounts {
    /// A single node's, without columns, and whether calls of it may be missing.
    pub fn of(node: &Node, at_least: bool) -> Amounts {
        let Node { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu, .. } = *node;
        Amounts { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu, at_least, columns: Vec::new() }
    }

    /// The same with a metric in the place of time.
    pub fn led_by(self, metric: &Metric) -> Amounts {
        let amount = metric.of(&self);
        self.led(amount)
    }

    /// The same with this amount in the place of time.
    pub fn led(self, amount: Amount) -> Amounts {
        let Amount { own, total, own_error, total_error } = amount;
        Amounts { self_ns: own, total_ns: total, error_ns: own_error, total_error_ns: total_error, ..self }
    }

    pub(crate) fn add(&mut self, other: &Amounts) {
        add_up!(self += other: calls, thrown, self_ns, total_ns, error_ns, total_error_ns);
        self.cpu.add(other.cpu);
        self.at_least |= other.at_least;
        self.add_columns(other.columns.iter().copied(), Amount::add);
    }

    fn add_columns(&mut self, others: impl ExactSizeIterator<Item = Amount>, add: fn(&mut Amount, Amount)) {
        if self.columns.len() < others.len() {
            self.columns.resize(others.len(), Amount::default());
        }
        self.columns.iter_mut().zip(others).for_each(|(own, other)| add(own, other));
    }
}

/// The rows of a tree's nodes.
pub(crate) struct NodeAmounts<'a> {
    tree: &'a Tree,
    columns: Columns<'a>,
    incomplete: Vec<bool>,
}

impl<'a> NodeAmounts<'a> {
    pub(crate) fn of(profile: &Profile, tree: &'a Tree) -> NodeAmounts<'a> {
        NodeAmounts { tree, columns: profile.columns(tree), incomplete: profile.incomplete_nodes(tree) }
    }

    /// A node's row.
    pub(crate) fn at(&self, index: NodeIndex) -> Amounts {
        let columns = self.columns.iter().map(|column| column.at(index)).collect();
        Amounts { columns, ..Amounts::of(&self.tree.nodes[index.0], self.incomplete[index.0]) }
    }

    /// Adds what a node has itself to a row.
    pub(crate) fn add_own(&self, index: NodeIndex, row: &mut Amounts) {
        let node = &self.tree.nodes[index.0];
        add_up!(row += node: calls, thrown, self_ns, error_ns);
        row.cpu.add(node.cpu);
        row.at_least |= self.incomplete[index.0];
        row.add_columns(self.columns.iter().map(|column| column.at(index)), Amount::add_own);
    }

    /// Adds what a node has with what it calls.
    pub(crate) fn add_total(&self, index: NodeIndex, row: &mut Amounts) {
        let node = &self.tree.nodes[index.0];
        add_up!(row += node: total_ns, total_error_ns);
        row.add_columns(self.columns.iter().map(|column| column.at(index)), Amount::add_total);
    }

    /// Takes away from a row what a node has with what it calls, uncertainties left alone.
    pub(crate) fn take_total(&self, index: NodeIndex, row: &mut Amounts) {
        row.total_ns = row.total_ns.saturating_sub(self.tree.nodes[index.0].total_ns);
        row.add_columns(self.columns.iter().map(|column| column.at(index)), |own, other| {
            own.total = own.total.saturating_sub(other.total);
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_what_no_clock_has_do_not_overflow() {
        let most = Amounts { calls: u64::MAX, self_ns: u64::MAX, total_ns: 7, ..Amounts::default() };
        let mut sum = most.clone();
        sum.add(&most);
        assert_eq!((sum.calls, sum.self_ns, sum.total_ns), (u64::MAX, u64::MAX, 14));
    }
}
