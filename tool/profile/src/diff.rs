//! Profiles compared, one or several a side: what changed, by calling context and by method, and by more than is uncertain.
//!
//! Runs are seldom of the same length, so quantities are compared per root call where all profiles have root calls. Of several runs a
//! side the mean counts, and each run as much as any other; what was not called in one has nothing there.
//!
//! How uncertain a difference is follows from what the profiles state of their times, and from how far the runs of a side differ
//! ([`estimate`]): a change that is not larger is none. Of single runs only the former is known. Calls are exact in each run.

use rustc_hash::FxHashMap;

use crate::profile::{
    Amount, Amounts, Link, MethodName, Metric, NodeAmounts, NodeIndex, Part, Profile, Quantity, Sampled, Unit, derived,
};
use crate::report::belief::Belief;
use crate::report::flat::flat;
pub(crate) use estimate::NORMAL;
use estimate::{Estimate, Stated};
use names::Signatures;
use rows::Rows;
pub use rows::{Pair, Presence};
pub use shares::shares;

pub mod condition;
mod estimate;
pub mod json;
mod names;
mod notes;
mod rows;
mod shares;
pub mod text;

#[cfg(test)]
mod tests;

/// To what quantities refer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Per {
    /// One root call, on average.
    RootCall,
    /// All that was recorded.
    Run,
}

/// A quantity on both sides: calls, or nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Change {
    /// In the first, on average.
    pub before: f64,
    /// In the second, on average.
    pub after: f64,
    /// Uncertainty of each.
    pub errors: [f64; 2],
    /// That of the difference: of 100 pairs that do not differ, 95 seem to by no more. Infinite of times that are not known.
    pub error: f64,
    /// Of calls: whether some may be missing on each side, so that there are at least so many.
    pub at_least: [bool; 2],
}

impl Change {
    /// The difference.
    pub fn change(&self) -> f64 {
        self.after - self.before
    }

    /// The difference as a part of what it was before; infinite where it was nothing.
    pub fn relative(&self) -> f64 {
        if self.change() == 0.0 { 0.0 } else { self.change() / self.before }
    }

    /// Whether the difference is larger than its uncertainty, and not such as missing calls can have made.
    pub fn is_real(&self) -> bool {
        self.change().abs() > self.error && !self.may_be_missing()
    }

    /// Whether calls that are missing on the side that has fewer may be all the difference.
    pub fn may_be_missing(&self) -> bool {
        let [before, after] = self.at_least;
        before && self.change() > 0.0 || after && self.change() < 0.0
    }

    /// Whether anything can be said of the difference.
    pub fn is_known(&self) -> bool {
        self.error.is_finite()
    }

    fn between(before: Estimate, after: Estimate) -> Change {
        /// Means of the same number of calls, of other numbers of runs, may differ in their last bits.
        const ROUNDING: f64 = 1e-12;
        let is_same = (after.mean - before.mean).abs() <= ROUNDING * before.mean;
        Change {
            before: before.mean,
            after: if is_same { before.mean } else { after.mean },
            errors: [before.error(), after.error()],
            error: before.error_to(&after),
            at_least: [false; 2],
        }
    }
}

/// A method in one calling context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiffNode {
    /// The caller, or where it was handed over: an index into [`Comparison::nodes`]; callers come before their callees.
    pub parent: Option<usize>,
    /// Of a node that its parent did not call.
    pub link: Option<Link>,
    /// The method: an index into [`Comparison::names`].
    pub name: usize,
}

/// A profile, and the file that it is from.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// The file's name.
    pub file: &'a str,
    /// What is in it.
    pub profile: &'a Profile,
}

/// A comparison.
#[derive(Debug)]
pub struct Comparison<'a> {
    /// The runs of the first side.
    pub before: Vec<Run<'a>>,
    /// Those of the second.
    pub after: Vec<Run<'a>>,
    /// To what quantities refer.
    pub per: Per,
    /// The methods of all runs, each name once.
    pub names: Vec<&'a MethodName>,
    /// The metrics that all runs have, as the first has them.
    pub metrics: Vec<Metric>,
    /// What follows from them.
    pub derived: Vec<Metric>,
    /// The trees of all threads of all runs, one laid upon the other.
    pub nodes: Vec<DiffNode>,
    /// Where in these the samples of each run were, those before first.
    pub(crate) sampled: Vec<Sampled>,
    /// What each method took, in the order of `names`; those that were called in none have nothing.
    of_methods: Rows,
    /// What each node took.
    of_nodes: Rows,
    /// All roots together: one row.
    of_roots: Rows,
    /// How the numbers of each run are to be taken: those of the first side come first.
    scales: Vec<Scale>,
    /// `metrics`, and behind them what follows from them, as each run has them.
    of_runs: Vec<Vec<Metric>>,
}

/// How a run's numbers are to be taken.
#[derive(Clone, Copy, Debug)]
struct Scale {
    /// How much of what quantities refer to the run has.
    divisor: f64,
    /// No time of it is known better than to this part; infinite where times are not known.
    doubt: f64,
}

impl Scale {
    fn of(profile: &Profile, per: Per) -> Scale {
        let divisor = match per {
            Per::RootCall => profile.root_calls() as f64,
            Per::Run => 1.0,
        };
        let doubt = match Belief::of(profile) {
            // Where nothing was called, nothing took any time.
            None => 0.0,
            Some(belief) if belief.is_known() => belief.totals,
            Some(_) => f64::INFINITY,
        };
        Scale { divisor, doubt }
    }

    fn stated(self, metric: &Metric, value: u64, error: u64) -> Stated {
        let is_of_time = metric.unit == Unit::Nanoseconds || metric.is_of_time();
        let doubt = match metric.unit {
            _ if is_of_time && self.doubt.is_infinite() => f64::INFINITY,
            Unit::Nanoseconds => self.doubt * value as f64,
            // Of a part of a time, both are wrong by the same.
            _ => 0.0,
        };
        // A quotient is the same of one root call and of all.
        let divisor = if metric.is_additive { self.divisor } else { 1.0 };
        Stated { value: value as f64 / divisor, deviation: (error as f64).max(doubt) / divisor }
    }
}

/// Compares two sides, of one run each or of several; `per` root call unless a run has none, or as told.
pub fn compare<'a>(before: &[Run<'a>], after: &[Run<'a>], per: Option<Per>) -> Comparison<'a> {
    let runs = || before.iter().chain(after);
    let has_roots = runs().all(|run| run.profile.root_calls() > 0);
    let per = match per {
        Some(Per::RootCall) | None if has_roots => Per::RootCall,
        _ => Per::Run,
    };
    let rows = Rows::new([before.len(), after.len()]);
    let all: Vec<Vec<Metric>> = runs().map(|run| run.profile.metrics()).collect();
    let find = |id: &str, metrics: &[Metric]| metrics.iter().find(|metric| metric.id == id).cloned();
    // What was counted in a part of a run is so much of no root call, and of no run.
    let is_same = |other: Metric, metric: &Metric| other.unit == metric.unit && !other.is_of_part();
    let is_everywhere = |metric: &Metric| {
        all.iter().all(|metrics| find(&metric.id, metrics).is_some_and(|other| is_same(other, metric)))
    };
    // Time is first in each recording, whatever clock it is by.
    let has_time = all.iter().all(|metrics| metrics.first().is_some_and(Metric::is_time));
    let of_first = |metric: &&Metric| if has_time && metric.is_time() { true } else { is_everywhere(metric) };
    let metrics: Vec<Metric> = all.iter().take(1).flatten().filter(of_first).cloned().collect();
    let of_run = |of_run: &Vec<Metric>| {
        let same = |metric: &Metric| match has_time && metric.is_time() {
            true => of_run.first().cloned(),
            false => find(&metric.id, of_run),
        };
        let mut same: Vec<Metric> = metrics.iter().filter_map(same).collect();
        same.extend(derived(&same));
        same
    };
    let of_runs = all.iter().map(of_run).collect();
    let mut comparison = Comparison {
        before: before.to_vec(),
        after: after.to_vec(),
        per,
        names: Vec::new(),
        derived: derived(&metrics),
        metrics,
        of_runs,
        nodes: Vec::new(),
        sampled: Vec::new(),
        of_methods: rows.clone(),
        of_nodes: rows.clone(),
        of_roots: rows,
        scales: runs().map(|run| Scale::of(run.profile, per)).collect(),
    };
    let roots = comparison.of_roots.push();
    let signatures = Signatures::of(runs().map(|run| run.profile));
    let mut names: FxHashMap<&str, usize> = FxHashMap::default();
    let mut places: FxHashMap<(Option<usize>, Option<Link>, usize), usize> = FxHashMap::default();
    for (number, Run { profile, .. }) in runs().enumerate() {
        let mut name_of = Vec::with_capacity(profile.methods.len());
        for name in profile.methods.iter().map(|method| signatures.full(method)) {
            name_of.push(*names.entry(&name.machine).or_insert_with(|| {
                comparison.names.push(name);
                comparison.of_methods.push()
            }));
        }
        for row in flat(profile, &profile.merged) {
            comparison.of_methods.add(name_of[row.method.0], number, &row.amounts);
        }
        let rows = NodeAmounts::of(profile, &profile.merged);
        let mut place_of: Vec<usize> = Vec::with_capacity(profile.merged.nodes.len());
        for node in &profile.merged.nodes {
            let parent = node.parent.map(|NodeIndex(parent)| place_of[parent]);
            let name = name_of[node.method.0];
            let place = *places.entry((parent, node.link, name)).or_insert_with(|| {
                comparison.nodes.push(DiffNode { parent, link: node.link, name });
                comparison.of_nodes.push()
            });
            place_of.push(place);
            let amounts = rows.at(NodeIndex(place_of.len() - 1));
            comparison.of_nodes.add(place, number, &amounts);
            if node.caller().is_none() {
                comparison.of_roots.add(roots, number, &amounts);
            }
        }
        comparison.sampled.push(profile.merged.sampled.placed(&place_of));
    }
    comparison
}

impl<'a> Comparison<'a> {
    /// What a method of [`names`](Self::names) took.
    pub fn method(&self, name: usize) -> Pair<'_> {
        self.of_methods.pair(name)
    }

    /// Every method that was called, by its place in [`names`](Self::names).
    pub fn methods(&self) -> impl Iterator<Item = (usize, Pair<'_>)> {
        (0..self.names.len()).map(|name| (name, self.method(name))).filter(|(_, pair)| pair.is_known())
    }

    /// What a node took.
    pub fn node(&self, node: usize) -> Pair<'_> {
        self.of_nodes.pair(node)
    }

    /// What all roots took together.
    pub fn whole(&self) -> Pair<'_> {
        self.of_roots.pair(0)
    }

    /// Whether some runs are recordings below roots, and others of whole JVMs: what both count is not of the same.
    pub fn is_of_different_kinds(&self) -> bool {
        let is_below_roots = |run: &Run<'_>| run.profile.imported.is_none();
        self.runs().any(is_below_roots) && !self.runs().all(is_below_roots)
    }

    /// Whether all runs are recordings below roots.
    pub(crate) fn knows_what_roots_are(&self) -> bool {
        self.runs().all(|run| run.profile.imported.is_none())
    }

    /// Whether the times of all runs are known.
    pub fn knows_times(&self) -> bool {
        self.scales.iter().all(|scale| scale.doubt.is_finite())
    }

    /// All runs, those of the first side first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run<'a>> {
        self.before.iter().chain(&self.after)
    }

    /// How much of what quantities refer to each run has.
    pub(crate) fn divisors(&self) -> Vec<f64> {
        self.scales.iter().map(|scale| scale.divisor).collect()
    }

    /// To what part each run's times are known at best; infinite where they are not.
    pub(crate) fn doubts(&self) -> Vec<f64> {
        self.scales.iter().map(|scale| scale.doubt).collect()
    }

    /// The metric of a quantity, if all runs have it and can tell that part of it.
    pub fn metric(&self, quantity: &Quantity) -> Option<&Metric> {
        quantity.among(self.all_metrics()).and_then(|at| self.all_metrics().nth(at))
    }

    /// The metrics that all runs have, and what follows from them.
    pub fn all_metrics(&self) -> impl Iterator<Item = &Metric> {
        self.metrics.iter().chain(&self.derived)
    }

    /// A run's value of one of [`metrics`](Self::metrics).
    pub(crate) fn amount(&self, run: usize, metric: usize, amounts: &Amounts) -> Amount {
        self.metric_of(run, metric).of(amounts)
    }

    /// One of [`metrics`](Self::metrics), as a run has it.
    pub(crate) fn metric_of(&self, run: usize, metric: usize) -> &Metric {
        &self.of_runs[run][metric]
    }

    /// A quantity of a pair; nothing of what no run knows.
    pub fn change(&self, pair: Pair<'_>, quantity: &Quantity) -> Change {
        let Some(at) = quantity.among(self.all_metrics()) else { return Change::default() };
        let stated = |amounts: &Option<Amounts>, scale: &Scale, metrics: &Vec<Metric>| {
            let metric = &metrics[at];
            let amount = amounts.as_ref().map(|amounts| metric.of(amounts)).unwrap_or_default();
            match quantity.part {
                Part::Own => scale.stated(metric, amount.own, amount.own_error),
                Part::Total => scale.stated(metric, amount.total, amount.total_error),
            }
        };
        let sides = self.before.len();
        let estimate = |runs: &[Option<Amounts>], first: usize| {
            let told = self.scales[first..].iter().zip(&self.of_runs[first..]);
            Estimate::of(runs.iter().zip(told).map(|(amounts, (scale, metrics))| stated(amounts, scale, metrics)))
        };
        let change = Change::between(estimate(pair.before, 0), estimate(pair.after, sides));
        let at_least = |runs: &[Option<Amounts>]| runs.iter().flatten().any(|amounts| amounts.at_least);
        match self.of_runs[0][at].is_calls() {
            true => Change { at_least: [pair.before, pair.after].map(at_least), ..change },
            false => change,
        }
    }

    /// The same of what a change is large beside: of a metric with totals all roots, of others, and of quotients, the pair itself.
    pub(crate) fn whole_change(&self, pair: Pair<'_>, quantity: &Quantity) -> Change {
        let total = Quantity { id: quantity.id.clone(), part: Part::Total };
        match self.metric(&total) {
            Some(metric) if metric.is_additive => self.change(self.whole(), &total),
            _ => self.change(pair, quantity),
        }
    }
}
