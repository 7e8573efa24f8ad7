//! The metrics that a report shows, and what lines are ordered and left out by.

use super::least::{Least, Limit};
use super::{NothingSelected, Options, SortBy, View, share};
use crate::profile::{Amount, Amounts, Columns, Extent, Metric, Part, Profile, Quantity, Tree, Unit};

/// A file of another tool may count so much that its columns fill the screen: so many of them are shown.
pub(super) const MOST_USUAL: usize = 4;

/// The metrics that a report shows, the leading one first: by it lines are ordered.
pub(crate) struct Chosen {
    metrics: Vec<Metric>,
    /// Whether nobody has chosen.
    is_usual: bool,
    /// The first of them that adds up: of it lines have shares.
    weight: Metric,
    /// What lines are ordered by, if not by the leading metric.
    order: Option<(Metric, Part)>,
    floor: Floor,
}

/// Below what lines are left out.
pub(crate) struct Floor {
    metric: Metric,
    limit: Limit,
}

impl Chosen {
    /// Those that the options name, or the usual ones; of those that the profile does not have there are none.
    pub(crate) fn of(profile: &Profile, options: &Options) -> Chosen {
        let mut metrics: Vec<Metric> = options.metrics.iter().filter_map(|id| profile.metric(id)).collect();
        let is_usual = metrics.is_empty();
        if is_usual {
            metrics = profile.metrics();
            let is_usual = |metric: &Metric| profile.imported.is_some() || metric.is_time() || metric.is_calls();
            metrics.retain(is_usual);
            metrics.truncate(MOST_USUAL);
        }
        let adds_up = metrics.iter().find(|metric| metric.is_additive);
        let weight = adds_up.cloned().unwrap_or_else(|| profile.time_metric());
        let order = match &options.sort {
            Some(SortBy::Quantity(Quantity { id, part })) => profile.metric(id).map(|metric| (metric, *part)),
            _ => None,
        };
        let floor = Floor::of(profile, options, &weight);
        Chosen { metrics, is_usual, weight, order, floor }
    }

    /// Fails if a metric that was asked for is not in the profile, or does not have that part or unit.
    pub(super) fn check(profile: &Profile, options: &Options) -> Result<(), NothingSelected> {
        let order = match &options.sort {
            Some(SortBy::Quantity(quantity)) => Some(quantity),
            _ => None,
        };
        let least = options.least.as_ref();
        let shown = options.metrics.iter().map(String::as_str);
        let others = order.map(|order| &*order.id).into_iter().chain(least.map(|least| least.metric.as_str()));
        if let Some(absent) = shown.chain(others).find(|id| profile.metric(id).is_none()) {
            let ids = |metrics: Vec<Metric>| metrics.into_iter().map(|metric| metric.id.into_owned()).collect();
            return Err(NothingSelected::Metric {
                id: absent.to_owned(),
                ids: ids(profile.metrics()),
                derived: ids(profile.derived()),
            });
        }
        let has_totals = |id: &str| profile.metric(id).is_some_and(|metric| metric.extent == Extent::OwnAndTotal);
        if let Some(order) = order.filter(|order| order.part == Part::Total && !has_totals(&order.id)) {
            return Err(NothingSelected::Total { id: order.id.clone() });
        }
        match least.and_then(|least| Some((least, profile.metric(&least.metric)?))) {
            Some((Least { limit: Limit::Value(_, unit), .. }, metric)) if *unit != metric.unit.of_limits() => {
                Err(NothingSelected::Unit { id: metric.id.into_owned(), unit: metric.unit.name() })
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    /// Those of them that follow from others.
    pub(crate) fn derived(&self) -> impl Iterator<Item = &Metric> {
        self.metrics.iter().filter(|metric| metric.quotient().is_some())
    }

    pub(crate) fn is_usual(&self) -> bool {
        self.is_usual
    }

    /// The leading metric.
    pub(crate) fn lead(&self) -> &Metric {
        &self.metrics[0]
    }

    /// The metric of which lines have shares.
    pub(crate) fn weight(&self) -> &Metric {
        &self.weight
    }

    /// Below what lines are left out.
    pub(crate) fn floor(&self) -> &Floor {
        &self.floor
    }

    /// What lines are ordered by, the largest first.
    pub(crate) fn rank(&self, options: &Options, amounts: &Amounts) -> u64 {
        let of = |metric: &Metric, part: Part| {
            let amount = metric.of(amounts);
            if part == Part::Own || metric.extent == Extent::Own { amount.own } else { amount.total }
        };
        if let Some((metric, part)) = &self.order {
            return of(metric, *part);
        }
        match (&options.sort, options.view) {
            (Some(SortBy::Own), _) | (None, View::Flat) => of(self.lead(), Part::Own),
            _ => of(self.lead(), Part::Total),
        }
    }
}

impl Floor {
    fn of(profile: &Profile, options: &Options, weight: &Metric) -> Floor {
        let named = options.least.as_ref().and_then(|least| Some((profile.metric(&least.metric)?, least.limit)));
        let (metric, limit) = named.unwrap_or_else(|| (weight.clone(), Limit::Share(options.min_share)));
        // A share is written as one: no part of another is meant.
        let limit = match limit {
            Limit::Share(share) if metric.unit == Unit::Share => Limit::Value(share * metric.unit.one(), Unit::Share),
            limit => limit,
        };
        Floor { metric, limit }
    }

    /// The metric that decides.
    pub(crate) fn metric(&self) -> &Metric {
        &self.metric
    }

    /// What a whole tree has of it.
    pub(crate) fn whole(&self, tree: &Tree, columns: &Columns<'_>) -> u64 {
        self.metric.whole(tree, columns)
    }

    /// Whether so much is shown, beside a whole.
    pub(crate) fn is_reached(&self, value: u64, whole: u64) -> bool {
        match self.limit {
            Limit::Share(least) => share(value, whole) >= least,
            Limit::Value(least, _) => value as f64 >= least,
        }
    }

    /// A row's value.
    pub(crate) fn amount(&self, amounts: &Amounts) -> Amount {
        self.metric.of(amounts)
    }
}
