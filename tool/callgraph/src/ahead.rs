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

use std::time::Duration;

use headwater_protocol::ClassId;
use headwater_protocol::message::{MethodInfo, MethodRef};
use headwater_terms::reach::Trigger;

use super::CallGraph;
use super::likely::Pace;
use super::policy::{Mechanism, Probability, SURER};
use super::record::Guess;

impl CallGraph {
    /// Methods that the target's JIT compiler has found worth compiling.
    pub fn add_compiled(&mut self, class: ClassId, methods: Vec<MethodInfo>) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        for method in methods {
            let signature = self.known.mirrors.intern_signature(&method.name, &method.descriptor);
            self.likely.compiled(key, signature);
        }
    }

    /// What it costs to hotswap one class.
    pub fn set_batch_cost(&mut self, batch: Duration) {
        self.likely.set_batch_cost(batch);
    }

    /// Whether the roots have been called so often that a call of them that is open is soon over.
    pub fn roots_return_soon(&self) -> bool {
        self.likely.roots_return_soon()
    }

    /// Whether each of them is called again and again: none is called once, for as long as the program runs.
    pub fn each_root_is_called_again(&self) -> bool {
        self.likely.knows_calls && self.known.each_root_is_called_again()
    }

    /// Whether the JVM has told which methods have been called.
    pub fn knows_what_was_called(&self) -> bool {
        self.likely.knows_calls
    }

    /// The classes whose methods should be known before any is selected, for what has been called tells what will be; first those that
    /// may have roots.
    pub fn worth_listing(&self) -> Vec<ClassId> {
        self.known.worth_listing()
    }

    /// The loaded classes that have methods which are roots, and how often these have been called, as far as it is known.
    pub fn calls_of_roots(&self) -> (Vec<ClassId>, u32) {
        self.known.calls_of_roots()
    }

    /// The methods that are roots, as the target names them: before they are instrumented, as far as their classes' methods are known.
    pub fn root_methods(&self) -> Vec<MethodRef> {
        self.known.root_methods()
    }

    /// Methods that had run, and did not while the roots were called: they are not expected to, any more than what never has.
    pub fn add_stale(&mut self, class: ClassId, methods: &[MethodInfo]) {
        let Some(key) = self.known.mirrors.by_id(class) else { return };
        for method in methods {
            let signature = self.known.mirrors.intern_signature(&method.name, &method.descriptor);
            self.known.mirrors.is_stale(key, signature);
        }
    }

    /// So many classes more can be hotswapped soon; as many as there are, if it is not said. What is likely beyond them is looked at when it is entered.
    pub fn set_room(&mut self, classes: Option<usize>) {
        self.plan.room = classes;
    }

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
            for method in self.likely.take_frontier(&self.methods) {
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
                self.likely.push(method);
            }
            if !expanded {
                return;
            }
        }
    }
}
