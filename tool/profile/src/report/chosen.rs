//! The metrics that a report shows.

use super::{NothingSelected, Options, SortBy, View};
use crate::profile::{Amount, Amounts, Extent, Metric, Profile};

/// A file of another tool may count so much that its columns fill the screen: so many of them are shown.
pub(super) const MOST_USUAL: usize = 4;

/// The metrics that a report shows, the leading one first: by it lines are ordered and left out, and of it they have shares.
pub(crate) struct Chosen {
    metrics: Vec<Metric>,
    /// Whether nobody has chosen.
    is_usual: bool,
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
        Chosen { metrics, is_usual }
    }

    /// Fails if a metric that was asked for is not in the profile.
    pub(super) fn check(profile: &Profile, options: &Options) -> Result<(), NothingSelected> {
        match options.metrics.iter().find(|id| profile.metric(id).is_none()) {
            None => Ok(()),
            Some(absent) => Err(NothingSelected::Metric {
                id: absent.clone(),
                ids: profile.metrics().iter().map(|metric| metric.id.clone().into_owned()).collect(),
            }),
        }
    }

    pub(crate) fn metrics(&self) -> &[Metric] {
        &self.metrics
    }

    pub(crate) fn is_usual(&self) -> bool {
        self.is_usual
    }

    /// The leading metric.
    pub(crate) fn lead(&self) -> &Metric {
        &self.metrics[0]
    }

    /// A row's value of it.
    pub(crate) fn amount(&self, amounts: &Amounts) -> Amount {
        self.lead().of(amounts)
    }

    /// What lines are ordered by, the largest first.
    pub(crate) fn rank(&self, options: &Options, amounts: &Amounts) -> u64 {
        let amount = self.amount(amounts);
        match (options.sort, options.view) {
            (Some(SortBy::Calls), _) => amounts.calls,
            _ if self.lead().extent == Extent::Own => amount.own,
            (Some(SortBy::SelfTime), _) | (None, View::Flat) => amount.own,
            (Some(SortBy::Total), _) | (None, View::Tree | View::Callers | View::Locks) => amount.total,
        }
    }
}
