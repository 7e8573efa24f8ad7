//! Keeping to the overhead budget: the governor's decisions, executed.

use headwater_protocol::{ClassId, MethodId};
use tokio::sync::watch;

use super::gentle::KNOWN;
use super::{Session, SessionError};
use crate::budget::{Governor, Tally};

/// A budget that is kept to.
#[derive(Debug)]
pub(super) struct Budget {
    pub(super) governor: Governor,
    /// None any more, once the draining thread has ended.
    tallies: Option<watch::Receiver<Tally>>,
    /// What is to be dropped, if it is worth it.
    chosen: Vec<MethodId>,
}

/// Returns when there is a new tally: never, where there is no budget.
pub(super) async fn tallied(budget: Option<&mut Budget>) {
    if let Some(Budget { tallies, .. }) = budget
        && let Some(receiver) = tallies
    {
        if receiver.changed().await.is_ok() {
            return;
        }
        *tallies = None;
    }
    std::future::pending().await
}

impl Budget {
    /// Whether there is a tally that nobody has looked at.
    fn is_told_more(&self) -> bool {
        self.tallies.as_ref().is_some_and(|tallies| tallies.has_changed().unwrap_or(false))
    }
}

impl Session {
    /// From now on methods are dropped as the governor says.
    pub fn keep_to(&mut self, governor: Governor, tallies: watch::Receiver<Tally>) {
        self.budget = Some(Budget { governor, tallies: Some(tallies), chosen: Vec::new() });
    }

    /// Who decides what is dropped, if there is a budget.
    pub fn governor(&self) -> Option<&Governor> {
        self.budget.as_ref().map(|budget| &budget.governor)
    }

    pub(super) fn governor_mut(&mut self) -> Option<&mut Governor> {
        self.budget.as_mut().map(|budget| &mut budget.governor)
    }

    /// Results are forgotten, and recording goes on.
    pub fn cleared(&mut self) {
        self.recorded.clear();
        if let Some(governor) = self.governor_mut() {
            governor.clear();
        }
    }

    /// There is a new tally. What is to be dropped has its turn next.
    pub(super) fn tallied(&mut self) {
        let now = self.recorded.elapsed();
        let Some(Budget { governor, tallies: Some(tallies), chosen }) = &mut self.budget else { return };
        governor.observe(tallies.borrow_and_update().clone(), now);
        if self.stopping || self.recorded.is_interrupted() {
            return;
        }
        let graph = &self.graph;
        chosen.extend(governor.decide(now, self.cost.fixed(), |method| graph.can_drop(method)));
    }

    /// Whether something is to be dropped.
    pub(super) fn has_chosen(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| !budget.chosen.is_empty())
    }

    /// Drops what was chosen, if the program does not lose more by that than it gets back.
    async fn drop_chosen(&mut self) -> Result<(), SessionError> {
        if !self.has_chosen() {
            return Ok(());
        }
        self.learn_what_is_compiled(KNOWN).await?;
        let now = self.recorded.elapsed();
        let Some(Budget { governor, chosen, .. }) = &mut self.budget else { return Ok(()) };
        let chosen = std::mem::take(chosen);
        if let Some(allowance) = &self.allowance {
            let classes = chosen.iter().filter_map(|method| Some(self.graph.reference(*method)?.class));
            let (compiling, lost) = allowance.takes(self.graph.discarded(&classes.collect::<Vec<ClassId>>()));
            let gain = governor.gain(now, compiling);
            log::debug!(
                "a drop brings {gain:.1?}, compilers take {compiling:.1?} for it, and the program loses {lost:.1?}"
            );
            if gain.is_some_and(|gain| lost > gain) {
                governor.is_not_worth_it(now);
                return Ok(());
            }
        }
        self.losing.extend(self.graph.drop_methods(&chosen));
        Ok(())
    }

    /// Looks whether something is to be dropped, in the midst of other work.
    pub(super) fn look_at_tally(&mut self) {
        if self.budget.as_ref().is_some_and(Budget::is_told_more) {
            self.tallied();
        }
    }

    /// Restores what is to be dropped: whatever pauses are allowed, for that takes less of the target's time than what it ends.
    pub(super) async fn drop_due(&mut self) -> Result<(), SessionError> {
        self.drop_chosen().await?;
        let mut classes = std::mem::take(&mut self.losing);
        while !classes.is_empty() {
            self.let_hotswap_end().await?;
            // What does not go into a batch would wait with everything else until pauses are allowed.
            let rest = classes.split_off(self.cost.most_classes().min(classes.len()));
            self.hotswap_batch(classes).await?;
            classes = rest;
        }
        Ok(())
    }

    /// A hotswap is over: what was dropped by it.
    pub(super) fn note_drops(&mut self) {
        let now = self.recorded.elapsed();
        let ended = self.graph.take_drops();
        let Some(governor) = self.governor_mut() else { return };
        for (method, is_dropped) in ended {
            log::debug!("{method:?} {}", if is_dropped { "has lost its probes" } else { "keeps its probes" });
            if is_dropped {
                governor.dropped(method, now);
            } else {
                governor.stays(method);
            }
        }
    }
}
