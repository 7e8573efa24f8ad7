//! Looking ahead: what is likely to be entered next goes into the same batch.
//!
//! A redefinition costs nearly the same for one class as for a hundred, and the more, the more classes are loaded. So when one is due
//! anyway, the callees of methods that will probably be entered are selected too; a method whose callees are selected
//! costs no redefinition when it is entered. What is selected so for a method that is never entered is what that costs: precision.
//! Hence a method's callees are selected ahead of time if its odds of being entered outweigh what a batch costs here.
//!
//! What is likely, and by what evidence: [`likely`](super::likely).
//!
//! Why so, and at what cost: docs/decisions/look-ahead.md.

use headwater_protocol::MethodId;
use headwater_terms::reach::Trigger;

use super::CallGraph;
use super::likely::Pace;
use super::methods::Methods;
use super::policy::{Mechanism, Probability, SURER};
use super::reachable::Reachable;
use super::record::Guess;

impl Reachable {
    /// Selected methods whose callees are not, the surest first: there may not be room for all.
    fn take_frontier(&mut self, methods: &Methods) -> Vec<MethodId> {
        let mut frontier = std::mem::take(&mut self.frontier);
        let probability = |method: &MethodId| methods.record(*method).map_or(0.0, |record| record.probability);
        frontier.sort_by(|one, other| probability(other).total_cmp(&probability(one)));
        frontier
    }
}

impl CallGraph {
    /// Selects the callees of methods that will probably be entered, if there is a batch to put them into: the surest first, as long as there is room.
    pub(super) fn look_ahead(&mut self) {
        if !self.known.options.look_ahead || self.known.options.without.has(Mechanism::LookAhead) {
            return;
        }
        let pace = self.likely.pace_of_guesses(&self.known);
        let threshold = self.likely.threshold(pace);
        let is_limited = self.plan.room.is_some();
        let surer = SURER.into_iter().filter(|surer| is_limited && *surer > threshold);
        let before = self.methods.set_trigger(Trigger::Ahead);
        for threshold in surer.chain([threshold]) {
            self.plan.take_up(&self.known, &self.methods);
            if self.plan.is_full(&self.known) {
                break;
            }
            self.select_callees_ahead(pace, threshold);
            // It may lead to more that is as sure.
            if !self.known.is_complete() {
                break;
            }
        }
        self.methods.set_trigger(before);
    }

    /// Selects the callees of methods that are entered with at least this probability.
    fn select_callees_ahead(&mut self, pace: Pace, threshold: Probability) {
        loop {
            let mut expanded = false;
            for method in self.reachable.take_frontier(&self.methods) {
                let Some(record) = self.methods.record(method) else { continue };
                if record.expanded || record.refused.is_some() {
                    continue;
                }
                let (key, probability, entered) = (record.key, record.probability, record.entered);
                let is_blind = !entered && self.likely.is_blind(&self.known, &self.methods, method);
                let is_allowed = !is_blind || self.likely.may_guess(pace);
                if probability >= threshold && is_allowed && self.known.has_code(key) {
                    expanded |= self.expand(method);
                    if let Some(record) = self.methods.record_mut(method).filter(|record| record.expanded) {
                        if !entered {
                            record.guess = Guess::Open;
                            self.likely.guessed(is_blind);
                        }
                        continue;
                    }
                }
                self.reachable.frontier.push(method);
            }
            if !expanded {
                return;
            }
        }
    }
}
