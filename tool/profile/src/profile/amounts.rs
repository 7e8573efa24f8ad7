//! Everything that is known of a method, or of a node: one row of a report.

use super::column::{Errors, PartOfTime};
use super::sampled::{BySamples, Chances, Said};
use super::{Amount, Columns, CpuSamples, MethodIndex, Metric, Node, NodeIndex, Profile, Tree};

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

/// A row that is being added up of nodes: its uncertainties are without what samples leave to chance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum {
    pub(crate) amounts: Amounts,
    by_samples: BySamples,
    /// Of parts of the time, by column, which variances they have besides, in ns²: of own values, and of totals.
    besides: Vec<(f64, f64)>,
}

impl Sum {
    pub(crate) fn add(&mut self, other: &Sum) {
        self.amounts.add(&other.amounts);
        self.by_samples += other.by_samples;
        self.add_besides(other.besides.iter().copied());
    }

    fn add_besides(&mut self, others: impl ExactSizeIterator<Item = (f64, f64)>) {
        if self.besides.len() < others.len() {
            self.besides.resize(others.len(), (0.0, 0.0));
        }
        for ((own, total), other) in self.besides.iter_mut().zip(others) {
            (*own, *total) = (*own + other.0, *total + other.1);
        }
    }
}

/// The rows of a tree's nodes.
pub(crate) struct NodeAmounts<'a> {
    tree: &'a Tree,
    columns: Columns<'a>,
    incomplete: Vec<bool>,
    chances: Option<Chances<'a>>,
}

impl<'a> NodeAmounts<'a> {
    pub(crate) fn of(profile: &Profile, tree: &'a Tree) -> NodeAmounts<'a> {
        let chances = Chances::of(&tree.nodes, &tree.sampled);
        NodeAmounts { tree, columns: profile.columns(tree), incomplete: profile.incomplete_nodes(tree), chances }
    }

    /// A node's row.
    pub(crate) fn at(&self, index: NodeIndex) -> Amounts {
        let columns = self.columns.iter().map(|column| column.at(index)).collect();
        Amounts { columns, ..Amounts::of(&self.tree.nodes[index.0], self.incomplete[index.0]) }
    }

    /// Adds what a node has itself.
    pub(crate) fn add_own(&self, index: NodeIndex, sum: &mut Sum) {
        let (node, row) = (&self.tree.nodes[index.0], &mut sum.amounts);
        add_up!(row += node: calls, thrown, self_ns);
        let (error_ns, own) = self.parted(node.error_ns, |chances, error_ns| chances.own(index, error_ns));
        row.error_ns = row.error_ns.saturating_add(error_ns);
        row.cpu.add(node.cpu);
        row.at_least |= self.incomplete[index.0];
        row.add_columns(self.columns.iter().map(|column| column.at(index)), Amount::add_own);
        sum.by_samples += BySamples { own, ..BySamples::default() };
        sum.add_besides(self.besides(index, |node, amount| (PartOfTime::own(node, amount).besides(), 0.0)));
    }

    /// Adds what a node has with what it calls.
    pub(crate) fn add_total(&self, index: NodeIndex, sum: &mut Sum) {
        let (node, row) = (&self.tree.nodes[index.0], &mut sum.amounts);
        add_up!(row += node: total_ns);
        let (error_ns, total) = self.parted(node.total_error_ns, |chances, error_ns| chances.total(index, error_ns));
        row.total_error_ns = row.total_error_ns.saturating_add(error_ns);
        row.add_columns(self.columns.iter().map(|column| column.at(index)), Amount::add_total);
        sum.by_samples += BySamples { total, ..BySamples::default() };
        sum.add_besides(self.besides(index, |node, amount| (0.0, PartOfTime::total(node, amount).besides())));
    }

    /// Takes away what a node has with what it calls, uncertainties left alone.
    pub(crate) fn take_total(&self, index: NodeIndex, sum: &mut Sum) {
        let row = &mut sum.amounts;
        row.total_ns = row.total_ns.saturating_sub(self.tree.nodes[index.0].total_ns);
        row.add_columns(self.columns.iter().map(|column| column.at(index)), |own, other| {
            own.total = own.total.saturating_sub(other.total);
        });
    }

    fn parted(&self, error_ns: u64, part: impl FnOnce(&Chances<'_>, u64) -> (u64, Said)) -> (u64, Said) {
        self.chances.as_ref().map_or((error_ns, Said::default()), |chances| part(chances, error_ns))
    }

    /// Of each column of parts of the time.
    fn besides(
        &self,
        index: NodeIndex,
        of: impl Fn(&Node, &Amount) -> (f64, f64),
    ) -> impl ExactSizeIterator<Item = (f64, f64)> {
        let node = &self.tree.nodes[index.0];
        self.columns
            .iter()
            .map(move |column| if column.errors() == Errors::OfTime { of(node, &column.at(index)) } else { (0.0, 0.0) })
    }

    /// The row, to which all is added: what its samples say is as uncertain as they are together, and so are parts of the time.
    pub(crate) fn row(&self, sum: Sum) -> Amounts {
        let Sum { mut amounts, by_samples: BySamples { own, total }, besides } = sum;
        if let Some(chances) = &self.chances {
            amounts.error_ns = chances.joined(amounts.error_ns, amounts.self_ns, own);
            amounts.total_error_ns = chances.joined(amounts.total_error_ns, amounts.total_ns, total);
        }
        let Amounts { self_ns, total_ns, error_ns, total_error_ns, .. } = amounts;
        for ((column, amount), (own, total)) in self.columns.iter().zip(&mut amounts.columns).zip(besides) {
            match column.errors() {
                Errors::Added => {}
                Errors::OfTime => {
                    let part =
                        |ns, error_ns, time_ns, time_error_ns| PartOfTime { ns, error_ns, time_ns, time_error_ns };
                    amount.own_error = part(amount.own, amount.own_error, self_ns, error_ns).joined(own);
                    amount.total_error = part(amount.total, amount.total_error, total_ns, total_error_ns).joined(total);
                }
                Errors::OfSamples(grain) => {
                    amount.own_error = Errors::of_samples(amount.own, grain);
                    amount.total_error = Errors::of_samples(amount.total, grain);
                }
            }
        }
        amounts
    }
}

impl Profile {
    /// What these methods took altogether, in the same order: calls and own time, all threads together.
    pub fn own_amounts(&self, methods: &[MethodIndex]) -> Vec<Amounts> {
        let nodes = NodeAmounts::of(self, &self.merged);
        let mut places: Vec<Option<usize>> = vec![None; self.methods.len()];
        methods.iter().enumerate().for_each(|(place, method)| places[method.0] = Some(place));
        let mut all = vec![Sum::default(); methods.len()];
        for (index, node) in self.merged.nodes.iter().enumerate() {
            if let Some(place) = places[node.method.0] {
                nodes.add_own(NodeIndex(index), &mut all[place]);
            }
        }
        all.into_iter().map(|sum| nodes.row(sum)).collect()
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
