//! Which metrics a profile has, and their values at the nodes of its trees.

use std::borrow::Cow;

use super::amounts::Amounts;
use super::column::{Column, Columns, cpu_time};
use super::derived::derived;
use super::metric::Source;
use super::{Amount, ClockMode, Extent, Metric, NodeIndex, Profile, Tree, Unit};

impl Metric {
    /// Its value, of all that is known of a method or node.
    pub fn of(&self, amounts: &Amounts) -> Amount {
        let exactly = |own| Amount { own, total: own, own_error: 0, total_error: 0 };
        match &self.source {
            Source::Calls => exactly(amounts.calls),
            Source::Thrown => exactly(amounts.thrown),
            Source::Time => Amount {
                own: amounts.self_ns,
                total: amounts.total_ns,
                own_error: amounts.error_ns,
                total_error: amounts.total_error_ns,
            },
            Source::Column(at) => amounts.columns.get(*at).copied().unwrap_or_default(),
            Source::Ratio(ratio) => ratio.divide(&|metric| metric.of(amounts)),
            Source::Unknown => Amount::default(),
        }
    }

    /// Its value at a node of a tree with these columns.
    pub fn at_node(&self, tree: &Tree, columns: &Columns<'_>, index: NodeIndex) -> Amount {
        match &self.source {
            Source::Column(at) => columns.get(*at).map(|column| column.at(index)).unwrap_or_default(),
            Source::Ratio(ratio) => ratio.divide(&|metric| metric.at_node(tree, columns, index)),
            _ => self.of(&Amounts::of(&tree.nodes[index.0], false)),
        }
    }

    /// Its value at each node of a tree with these columns.
    pub fn values(&self, tree: &Tree, columns: &Columns<'_>) -> Vec<Amount> {
        (0..tree.nodes.len()).map(|index| self.at_node(tree, columns, NodeIndex(index))).collect()
    }

    /// Its value of a whole tree with these columns.
    pub fn whole(&self, tree: &Tree, columns: &Columns<'_>) -> u64 {
        self.over(&|metric| metric.sum_of(tree, columns)).total
    }

    /// Of one that adds up, what a whole tree has: in its roots, or, of one without totals, in all nodes.
    fn sum_of(&self, tree: &Tree, columns: &Columns<'_>) -> Amount {
        let nodes = tree.nodes.iter().enumerate();
        let values = nodes.map(|(index, node)| (node, self.at_node(tree, columns, NodeIndex(index))));
        let whole = match self.extent {
            Extent::Own => values.map(|(_, amount)| amount.own).sum(),
            Extent::OwnAndTotal => {
                values.filter(|(node, _)| node.caller().is_none()).map(|(_, amount)| amount.total).sum()
            }
        };
        Amount { own: whole, total: whole, ..Amount::default() }
    }
}

impl Profile {
    /// What is known of each node: time first, then calls, then what else there is.
    pub fn metrics(&self) -> Vec<Metric> {
        use Extent::{Own, OwnAndTotal};
        const NS: Unit = Unit::Nanoseconds;
        let time = match self.clock.mode {
            ClockMode::Cpu => {
                Metric::counted("cpu", "CPU time", NS, OwnAndTotal, "Time in which the thread had a processor.")
            }
            ClockMode::Exact | ClockMode::Tick(_) => Metric::counted(
                "wall",
                "wall time",
                NS,
                OwnAndTotal,
                "Time that passed, without the profiler's own cost.",
            ),
        };
        let in_column = |(at, metric): (usize, Metric)| metric.at(Source::Column(at));
        if self.imported.is_some() {
            return self.counted.iter().cloned().enumerate().map(in_column).collect();
        }
        let mut metrics = vec![
            time.uncertain().at(Source::Time),
            Metric::counted("calls", "calls", Unit::Count, Own, "How often the method was entered.").at(Source::Calls),
            Metric::counted("thrown", "exceptions", Unit::Count, Own, "How often an exception left the method.")
                .at(Source::Thrown),
        ];
        let mut columns = Vec::new();
        if self.has_sampled_cpu() {
            let about = "Time in which the thread ran or could have, by samples of its state.";
            columns.push(Metric::counted("cpu", "CPU time", NS, OwnAndTotal, about).uncertain());
        }
        columns.extend(self.counted.iter().cloned());
        metrics.extend(columns.into_iter().enumerate().map(in_column));
        metrics
    }

    /// What follows from the metrics: quotients of them, which do not add up.
    pub fn derived(&self) -> Vec<Metric> {
        derived(&self.metrics())
    }

    /// A metric by its id, be it one of its own or one that follows from others.
    pub fn metric(&self, id: &str) -> Option<Metric> {
        let metrics = self.metrics();
        let found = metrics.iter().find(|metric| metric.id == id).cloned();
        found.or_else(|| derived(&metrics).into_iter().find(|metric| metric.id == id))
    }

    /// The metric that is first where nobody says.
    pub fn time_metric(&self) -> Metric {
        self.metrics().swap_remove(0)
    }

    /// Columns of a tree of this profile.
    pub fn columns<'a>(&self, tree: &'a Tree) -> Columns<'a> {
        let cpu = self.has_sampled_cpu().then(|| Cow::Owned(cpu_time(tree)));
        let counted = (0..self.counted.len()).map(|at| match tree.counted.get(at) {
            Some(column) => Cow::Borrowed(column),
            None => Cow::Owned(Column::of(&tree.nodes, [])),
        });
        cpu.into_iter().chain(counted).collect()
    }

    /// Whether threads' states were sampled beside a wall clock.
    fn has_sampled_cpu(&self) -> bool {
        self.clock.mode != ClockMode::Cpu && self.merged.has_cpu_samples()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile_of, random_tree};

    #[test]
    fn ids_are_fit_for_names_of_fields_and_each_metric_has_its_own() {
        let mut profile = profile_of(random_tree(3, 100, 5), Vec::new(), 5);
        profile.counted = vec![Metric::counted("made-up", "made up", Unit::Bytes, Extent::OwnAndTotal, "Nothing.")];
        let metrics = profile.metrics();
        let mut ids: Vec<&str> = metrics.iter().map(|metric| &*metric.id).collect();
        assert_eq!(ids, ["wall", "calls", "thrown", "cpu", "made-up"]);
        let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(ids.iter().all(|id| id.chars().all(is_fit)));
        ids.dedup();
        assert_eq!(ids.len(), metrics.len());
    }
}
