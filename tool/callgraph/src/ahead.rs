//! Looking ahead: what is likely to be entered next goes into the same batch.
//!
//! A redefinition costs nearly the same for one class as for a hundred, and the more, the more classes are loaded. So when one is due
//! anyway, the callees of methods that will probably be entered are selected too; a method whose callees are selected
//! costs no redefinition when it is entered. What is selected so for a method that is never entered is what that costs: precision.
//! Hence a method's callees are selected ahead of time if its odds of being entered outweigh what a batch costs here.
//!
//! The odds come from the calls' places in the code ([`headwater_rewriter::Likelihood`]) and from how many methods a virtual call can
//! run; along a chain of calls probabilities are multiplied. And then there is evidence, which outweighs all that: the JVM counts calls, so
//! it is known which methods have run before, and what has run before will again. Where it does not tell, there is less of it: what
//! the JIT compiler has compiled, and which classes have been initialised.
//!
//! Why so, and at what cost: docs/decisions/look-ahead.md.

use std::time::Duration;

use headwater_protocol::message::{MethodInfo, MethodRef};
use headwater_protocol::{ClassId, MethodId};
use headwater_rewriter::Likelihood;
use rustc_hash::FxHashSet;

use super::CallGraph;
use super::filter::Caller;
use super::mirror::{ClassKey, Signature};
use super::policy::{
    BLIND_FOR_RIGHT, BLIND_GUESSES, CERTAIN, CHEAP_BATCH, COUNTED, EXPECTED_METHODS, FEW_NEW, IF_ALIVE, IF_CALLED,
    IF_COMPILED, IF_DORMANT, IF_ONLY_CALLER_CALLED, IF_ONLY_CALLER_COMPILED, LEAST_ODDS, LEAST_SHARE, LOADED_LATER,
    MOST_LISTED, MOST_ODDS, Mechanism, ODDS_FOR_A_MILLISECOND, OFTEN, PART_NEW, POSSIBLE, Probability, RARE, SELDOM,
    STARTING_LEAST_ODDS, STARTING_ODDS_FOR_A_MILLISECOND, USEFUL, WITHIN,
};
use super::record::MethodRecord;
use super::roots::pattern_is_broad;
use headwater_terms::Scheme;

/// A method that a call can run, and how likely it then does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Callee {
    pub(super) method: MethodId,
    pub(super) probability: Probability,
}

/// What is known about how methods and classes have been used before.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// The JVM tells which methods have been called.
    pub(super) knows_calls: bool,
    /// How often a root had run before, at least: only if it had, it says something of a method that that had not.
    root_calls: u32,
    /// Methods that had run before we came and have been entered, as far as it is known.
    old: usize,
    /// Those that had not, or seldom, and have all the same.
    new: usize,
    /// Methods that are compiled, or a part of compiled methods.
    compiled: FxHashSet<(ClassKey, Signature)>,
    /// The same, whatever the class.
    compiled_anywhere: FxHashSet<Signature>,
    /// Selected methods whose callees are not, yet.
    frontier: Vec<MethodId>,
    /// What a batch of one class costs.
    batch: Duration,
    /// Methods whose callees were selected ahead of time, and one of whose callers has been entered since.
    tried: u32,
    /// Those of them that have been entered.
    right: u32,
    /// Guesses at methods that have not been seen to run, of which nothing has been seen yet.
    blind: u32,
    /// Those that were right.
    blind_right: u32,
}

impl Ahead {
    pub(super) fn push(&mut self, method: MethodId) {
        self.frontier.push(method);
    }

    /// Whether it is known what has never run, and that it is not expected to.
    pub(super) fn knows_what_is_idle(&self) -> bool {
        self.knows_calls && self.is_warm()
    }

    /// As if the roots had never run.
    #[cfg(test)]
    pub(super) fn forget(&mut self) {
        self.root_calls = 0;
    }

    /// Whether what has not run yet is not expected to.
    fn is_warm(&self) -> bool {
        self.root_calls > 0 && self.new < FEW_NEW.max((self.old + self.new) / PART_NEW)
    }

    pub(super) fn compiled(&mut self, class: ClassKey, signature: Signature) {
        self.compiled.insert((class, signature));
        self.compiled_anywhere.insert(signature);
    }

    pub(super) fn is_compiled_anywhere(&self, signature: Signature) -> bool {
        self.compiled_anywhere.contains(&signature)
    }

    pub(super) fn set_batch_cost(&mut self, batch: Duration) {
        self.batch = batch;
    }

    /// Whether a batch more may be risked for a few methods less.
    pub(super) fn batches_are_cheap(&self) -> bool {
        self.batch < CHEAP_BATCH
    }

    /// From this probability on a method's callees are selected with it.
    fn threshold(&self, pace: Pace) -> Probability {
        let cost_ms = (self.batch.as_secs_f32() * 1e3).max(1e-3);
        let odds = match pace {
            Pace::Starting => (STARTING_ODDS_FOR_A_MILLISECOND / cost_ms).clamp(STARTING_LEAST_ODDS, MOST_ODDS),
            Pace::Steady => {
                let useful = (USEFUL * EXPECTED_METHODS + self.right as f32) / (EXPECTED_METHODS + self.tried as f32);
                // Who was wrong more often than he thought is to be surer.
                let caution = (USEFUL / useful).powi(2);
                (caution * ODDS_FOR_A_MILLISECOND / cost_ms).clamp(LEAST_ODDS, MOST_ODDS)
            }
        };
        odds / (1.0 + odds)
    }

    /// Whether one guess more without evidence is allowed.
    fn may_guess(&self, pace: Pace) -> bool {
        pace == Pace::Starting || self.blind < BLIND_GUESSES + BLIND_FOR_RIGHT * self.blind_right
    }
}

/// How much of what the program does is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// It has loaded many classes for the graph, and come to much that had never run.
    Starting,
    /// Anything else.
    Steady,
}

/// What became of a method whose callees were selected before it was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Guess {
    /// They were not.
    #[default]
    None,
    /// None of its callers has been entered yet.
    Open,
    /// One has.
    Tried,
    /// It has been itself.
    Right,
}

/// The probability that a call is made when its method runs.
pub(super) fn of_call(likelihood: Likelihood) -> Probability {
    match likelihood {
        Likelihood::Certain => CERTAIN,
        Likelihood::Possible => POSSIBLE,
        Likelihood::Rare => RARE,
    }
}

/// The probability that a virtual call runs a method that so many of the receiver's possible classes have.
pub(super) fn of_target(classes_with_it: usize, classes: usize) -> Probability {
    LEAST_SHARE + (1.0 - LEAST_SHARE) * classes_with_it as f32 / classes.max(1) as f32
}

/// A probability whose odds are so many times as good.
fn with_odds_times(probability: Probability, factor: f32) -> Probability {
    let odds = factor * probability / (1.0 - probability).max(1e-3);
    odds / (1.0 + odds)
}

impl CallGraph {
    /// Methods that the target's JIT compiler has found worth compiling.
    pub fn add_compiled(&mut self, class: ClassId, methods: Vec<MethodInfo>) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        for method in methods {
            let signature = self.mirrors.intern_signature(&method.name, &method.descriptor);
            self.ahead.compiled(key, signature);
        }
    }

    /// What it costs to hotswap one class.
    pub fn set_batch_cost(&mut self, batch: Duration) {
        self.ahead.set_batch_cost(batch);
    }

    fn pace(&self) -> Pace {
        // Where the JVM does not tell what has run, a program may have run for long.
        let is_new = self.ahead.knows_calls && !self.ahead.is_warm();
        if is_new && self.loads_much() { Pace::Starting } else { Pace::Steady }
    }

    fn pace_of_guesses(&self) -> Pace {
        if self.options.without.has(Mechanism::Starting) { Pace::Steady } else { self.pace() }
    }

    /// The program has just started, by all that is known.
    pub(super) fn is_starting(&self) -> bool {
        self.pace() == Pace::Starting
    }

    /// From this probability on what a method calls is selected with it where that needs no batch: a batch is what it may save.
    pub(super) fn threshold_within(&self) -> Probability {
        self.ahead.threshold(self.pace_of_guesses()) * WITHIN
    }

    /// The probability of a root: a name is meant, a wildcard takes what there is.
    pub(super) fn of_root(&self) -> Probability {
        if self.options.roots.iter().any(pattern_is_broad) { LOADED_LATER } else { 1.0 }
    }

    /// What is known of a callee, and of its caller, makes a call more or less probable.
    pub(super) fn weigh(&self, caller: Option<MethodId>, callee: Callee) -> Probability {
        let Some(record) = self.record(callee.method) else { return callee.probability };
        let caller = caller.and_then(|caller| self.record(caller));
        let caller_has_run = caller.is_some_and(|caller| self.has_run(caller.key, caller.signature) == Some(true));
        let mut factor = match (self.has_run(record.key, record.signature), self.ahead.knows_calls) {
            (Some(true), true) => IF_CALLED,
            (Some(true), false) => IF_COMPILED,
            (Some(false), _) if caller_has_run => IF_ONLY_CALLER_CALLED,
            (None, false) if caller_has_run => IF_ONLY_CALLER_COMPILED,
            _ => 1.0,
        };
        let mirror = self.mirrors.get(record.key);
        if mirror.dormant && &*record.name != super::CLINIT.0 {
            factor *= IF_DORMANT;
        }
        if mirror.alive && self.is_helped_by_life(record) {
            factor *= IF_ALIVE;
        }
        with_odds_times(callee.probability, factor)
    }

    /// Whether a method had run before we came, as far as it is known; what had run seldom, at the program's start perhaps, is not expected any
    /// more than what never had.
    pub(super) fn has_run(&self, key: ClassKey, signature: Signature) -> Option<bool> {
        let often = self.had_run(key, signature).filter(|often| *often || self.ahead.is_warm());
        often.or_else(|| self.ahead.compiled.contains(&(key, signature)).then_some(true))
    }

    /// The same by the JVM's counters alone, whatever that says of what comes.
    fn had_run(&self, key: ClassKey, signature: Signature) -> Option<bool> {
        let calls = self.mirrors.method(key, signature)?.calls?;
        Some(calls > 0 && calls.saturating_mul(SELDOM) >= self.ahead.root_calls.min(COUNTED))
    }

    /// There are objects of a class: what may be called on them is likelier now.
    pub(super) fn come_alive(&mut self, class: ClassKey) {
        if std::mem::replace(&mut self.mirrors.get_mut(class).alive, true) {
            return;
        }
        let methods = self.by_class.get(&class).cloned().unwrap_or_default();
        let more = |method: MethodId| {
            let record = self.record(method).filter(|record| !record.expanded && self.is_helped_by_life(record))?;
            Some((method, with_odds_times(record.probability, IF_ALIVE)))
        };
        let more: Vec<(MethodId, Probability)> = methods.into_iter().filter_map(more).collect();
        more.into_iter().for_each(|(method, probability)| self.raise(method, probability));
    }

    /// Whether a method is called on objects, and nothing better is known of it.
    fn is_helped_by_life(&self, record: &MethodRecord) -> bool {
        let is_virtual = self.mirrors.method(record.key, record.signature).is_some_and(|method| method.is_virtual());
        is_virtual && &*record.name != "<init>" && self.has_run(record.key, record.signature).is_none()
    }

    /// A root has been found.
    pub(super) fn learn_of_root(&mut self, root: MethodId) {
        let calls = self.record(root).and_then(|root| self.mirrors.method(root.key, root.signature)?.calls);
        self.ahead.root_calls = self.ahead.root_calls.max(calls.unwrap_or(0));
    }

    /// Whether the roots have been called so often that a call of them that is open is soon over.
    pub fn roots_return_soon(&self) -> bool {
        self.ahead.root_calls >= OFTEN
    }

    /// Whether the JVM has told which methods have been called.
    pub fn knows_what_was_called(&self) -> bool {
        self.ahead.knows_calls
    }

    /// The classes whose methods should be known before any is selected, for what has been called tells what will be; first those that
    /// may have roots.
    pub fn worth_listing(&self) -> Vec<ClassId> {
        if !self.options.look_ahead || self.options.scheme != Scheme::Lazy || self.roots_only {
            return Vec::new();
        }
        let unlisted = self.mirrors.keys().map(|key| (key, self.mirrors.get(key))).filter(|(key, mirror)| {
            let is_admitted = self.options.admits_class(&mirror.name, mirror.loader, Caller::Application);
            mirror.linked && is_admitted && self.mirrors.methods(*key).is_none()
        });
        let may_have_roots = |name: &str| self.options.roots.iter().any(|root| root.matches_class(name));
        let (with_roots, others): (Vec<_>, Vec<_>) =
            unlisted.map(|(_, mirror)| mirror).partition(|mirror| may_have_roots(&mirror.name));
        with_roots.into_iter().chain(others).filter_map(|mirror| mirror.id).take(MOST_LISTED).collect()
    }

    /// The loaded classes that have methods which are roots, and how often these have been called, as far as it is known.
    pub fn calls_of_roots(&self) -> (Vec<ClassId>, u32) {
        let (mut classes, mut calls) = (Vec::new(), 0_u32);
        for (class, _, count) in self.loaded_roots() {
            calls = calls.saturating_add(count);
            classes.push(class);
        }
        classes.sort_unstable();
        classes.dedup();
        (classes, calls)
    }

    /// The methods that are roots, as the target names them: before they are instrumented, as far as their classes' methods are known.
    pub fn root_methods(&self) -> Vec<MethodRef> {
        let named = |(class, signature, _): (ClassId, Signature, u32)| {
            let (name, descriptor) = self.mirrors.signature(signature);
            MethodRef { class, name: name.to_string(), descriptor: descriptor.to_string() }
        };
        self.loaded_roots().into_iter().map(named).collect()
    }

    /// Of each root: its class, and how often it has been called, if that is known.
    fn loaded_roots(&self) -> Vec<(ClassId, Signature, u32)> {
        let mut found = Vec::new();
        for key in self.mirrors.keys() {
            let mirror = self.mirrors.get(key);
            let patterns = self.options.roots.iter().filter(|pattern| pattern.matches_class(&mirror.name));
            let Some(methods) = self.mirrors.methods(key) else { continue };
            for pattern in patterns {
                let roots = methods.iter().filter(|(signature, _)| {
                    let (name, descriptor) = self.mirrors.signature(**signature);
                    pattern.matches_method(name, descriptor)
                });
                let Some(class) = mirror.id else { continue };
                found.extend(roots.map(|(signature, root)| (class, *signature, root.calls.unwrap_or(0))));
            }
        }
        found
    }

    /// Methods that had run, and did not while the roots were called: they are not expected to, any more than what never has.
    pub fn add_stale(&mut self, class: ClassId, methods: &[MethodInfo]) {
        let Some(key) = self.mirrors.by_id(class) else { return };
        for method in methods {
            let signature = self.mirrors.intern_signature(&method.name, &method.descriptor);
            self.mirrors.is_stale(key, signature);
        }
    }

    /// A method is entered: whether it was right to select its callees before is known now, and will be soon for those.
    pub(super) fn learn(&mut self, method: MethodId) {
        let is_blind = self.is_blind(method);
        if let Some(record) = self.record(method) {
            match self.had_run(record.key, record.signature) {
                Some(true) => self.ahead.old += 1,
                Some(false) => self.ahead.new += 1,
                None => {}
            }
        }
        let Some(record) = self.record_mut(method) else { return };
        let guess = std::mem::replace(&mut record.guess, Guess::Right);
        if is_blind {
            self.ahead.blind = self.ahead.blind.saturating_sub(u32::from(guess == Guess::Open));
            self.ahead.blind_right += u32::from(matches!(guess, Guess::Open | Guess::Tried));
        }
        match guess {
            Guess::Open => (self.ahead.tried, self.ahead.right) = (self.ahead.tried + 1, self.ahead.right + 1),
            Guess::Tried => self.ahead.right += 1,
            Guess::None | Guess::Right => {}
        }
        let callees: Vec<MethodId> =
            self.record(method).map_or(Vec::new(), |it| it.callees.iter().map(|it| it.method).collect());
        for callee in callees {
            let is_blind = self.is_blind(callee);
            if let Some(callee) = self.record_mut(callee).filter(|callee| callee.guess == Guess::Open) {
                callee.guess = Guess::Tried;
                self.ahead.tried += 1;
                self.ahead.blind = self.ahead.blind.saturating_sub(u32::from(is_blind));
            }
        }
    }

    /// Whether a guess that a method is entered has no evidence.
    fn is_blind(&self, method: MethodId) -> bool {
        self.record(method).is_some_and(|record| self.has_run(record.key, record.signature) != Some(true))
    }

    /// A method's probability is at least so large; its callees' follow.
    pub(super) fn raise(&mut self, method: MethodId, probability: Probability) {
        let mut pending = vec![(method, probability)];
        while let Some((method, probability)) = pending.pop() {
            let Some(record) = self.record_mut(method) else { continue };
            // Small changes change no decision.
            if probability <= record.probability + 0.01 {
                continue;
            }
            record.probability = probability;
            pending.extend(record.callees.iter().map(|callee| (callee.method, probability * callee.probability)));
        }
    }

    /// Selects the callees of methods that will probably be entered, if there is a batch to put them into.
    pub(super) fn look_ahead(&mut self) {
        if !self.options.look_ahead || self.options.without.has(Mechanism::LookAhead) {
            return;
        }
        let pace = self.pace_of_guesses();
        let threshold = self.ahead.threshold(pace);
        loop {
            let mut expanded = false;
            let mut frontier = std::mem::take(&mut self.ahead.frontier);
            // The surest first: there may not be room for all.
            let probability = |method: &MethodId| self.record(*method).map_or(0.0, |record| record.probability);
            frontier.sort_by(|one, other| probability(other).total_cmp(&probability(one)));
            for method in frontier {
                let Some(record) = self.record(method) else { continue };
                if record.expanded || record.refused.is_some() {
                    continue;
                }
                let (key, probability, entered) = (record.key, record.probability, record.entered);
                let is_blind = !entered && self.is_blind(method);
                let is_allowed = !is_blind || self.ahead.may_guess(pace);
                if probability >= threshold && is_allowed && self.has_code(key) {
                    expanded |= self.expand(method);
                    if let Some(record) = self.record_mut(method).filter(|record| record.expanded) {
                        if !entered {
                            record.guess = Guess::Open;
                            self.ahead.blind += u32::from(is_blind);
                        }
                        continue;
                    }
                }
                self.ahead.frontier.push(method);
            }
            if !expanded {
                return;
            }
        }
    }
}
