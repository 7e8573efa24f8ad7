//! What is likely to be entered, by what is known of it.
//!
//! The odds come from the calls' places in the code ([`headwater_rewriter::Likelihood`]) and from how many methods a virtual call can
//! run; along a chain of calls probabilities are multiplied. And then there is evidence, which outweighs all that: the JVM counts calls, so
//! it is known which methods have run before, and what has run before will again. Where it does not tell, there is less of it: what
//! the JIT compiler has compiled, and which classes have been initialised.

use std::cell::RefCell;
use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_rewriter::{CallSite, Likelihood};
use headwater_terms::Scheme;
use headwater_terms::pattern::MethodPattern;
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Known;
use super::methods::Methods;
use super::mirror::{CLINIT, ClassKey, Signature};
use super::policy::{
    BLIND_FOR_RIGHT, BLIND_GUESSES, CERTAIN, CHEAP_BATCH, COUNTED, EXPECTED_METHODS, FEW_NEW, IF_ALIVE, IF_CALLED,
    IF_COMPILED, IF_DORMANT, IF_ONLY_CALLER_CALLED, IF_ONLY_CALLER_COMPILED, LEAST_ODDS, LEAST_SHARE, LOADED_LATER,
    MANY_LINKED, MANY_LOADED, MOST_ODDS, Mechanism, ODDS_FOR_A_MILLISECOND, OFTEN, PART_NEW, POSSIBLE, Probability,
    RARE, SELDOM, STARTING_LEAST_ODDS, STARTING_ODDS_FOR_A_MILLISECOND, USEFUL, WITHIN,
};
use super::record::{Callee, Guess, MethodRecord};

/// What is known about how methods and classes have been used before.
#[derive(Debug, Default)]
pub(super) struct Likely {
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
    /// How many batches there were because a class was linked.
    pub(super) link_batches: usize,
    /// How many classes that can be instrumented were loaded on behalf of the graph.
    pub(super) loaded_by_graph: usize,
    never_run: RefCell<NeverRun>,
}

/// Whether nothing that a call can run has run: by its owner, its signature and whether it is virtual.
#[derive(Debug, Default)]
struct NeverRun {
    /// It holds as long as no more is known: the generation of the mirrors, whether it is warm, calls of roots, and compiled methods.
    known: (u64, bool, u32, usize),
    found: FxHashMap<(ClassKey, Signature, bool), bool>,
}

/// What decisions go by.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading<'a> {
    pub(super) known: &'a Known,
    pub(super) methods: &'a Methods,
    pub(super) likely: &'a Likely,
}

/// What selection stands on: it asks for what is not known yet, and adds methods.
#[derive(Debug)]
pub(super) struct Ground<'a> {
    pub(super) known: &'a Known,
    pub(super) methods: &'a mut Methods,
    pub(super) likely: &'a Likely,
}

impl Ground<'_> {
    /// For who decides.
    pub(super) fn reading(&self) -> Reading<'_> {
        Reading { known: self.known, methods: self.methods, likely: self.likely }
    }
}

impl Likely {
    /// A method's callees have been selected before it was entered.
    pub(super) fn guessed(&mut self, is_blind: bool) {
        self.blind += u32::from(is_blind);
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
    pub(super) fn threshold(&self, pace: Pace) -> Probability {
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
    pub(super) fn may_guess(&self, pace: Pace) -> bool {
        pace == Pace::Starting || self.blind < BLIND_GUESSES + BLIND_FOR_RIGHT * self.blind_right
    }

    pub(super) fn pace(&self) -> Pace {
        // Where the JVM does not tell what has run, a program may have run for long.
        let is_new = self.knows_calls && !self.is_warm();
        if is_new && self.loads_much() { Pace::Starting } else { Pace::Steady }
    }

    pub(super) fn pace_of_guesses(&self, known: &Known) -> Pace {
        if known.options.without.has(Mechanism::Starting) { Pace::Steady } else { self.pace() }
    }

    /// The program has just started, by all that is known.
    pub(super) fn is_starting(&self) -> bool {
        self.pace() == Pace::Starting
    }

    /// From this probability on what a method calls is selected with it where that needs no batch: a batch is what it may save.
    pub(super) fn threshold_within(&self, known: &Known) -> Probability {
        self.threshold(self.pace_of_guesses(known)) * WITHIN
    }

    /// The probability of a root: a name is meant, a wildcard takes what there is.
    pub(super) fn of_root(&self, known: &Known) -> Probability {
        if known.options.roots.iter().any(pattern_is_broad) { LOADED_LATER } else { 1.0 }
    }

    /// What is known of a callee, and of its caller, makes a call more or less probable.
    pub(super) fn weigh(
        &self,
        known: &Known,
        methods: &Methods,
        caller: Option<MethodId>,
        callee: Callee,
    ) -> Probability {
        let Some(record) = methods.record(callee.method) else { return callee.probability };
        let caller = caller.and_then(|caller| methods.record(caller));
        let caller_has_run =
            caller.is_some_and(|caller| self.has_run(known, caller.key, caller.signature) == Some(true));
        let mut factor = match (self.has_run(known, record.key, record.signature), self.knows_calls) {
            (Some(true), true) => IF_CALLED,
            (Some(true), false) => IF_COMPILED,
            (Some(false), _) if caller_has_run => IF_ONLY_CALLER_CALLED,
            (None, false) if caller_has_run => IF_ONLY_CALLER_COMPILED,
            _ => 1.0,
        };
        let mirror = known.mirrors.get(record.key);
        if mirror.dormant && &*record.name != CLINIT.0 {
            factor *= IF_DORMANT;
        }
        if mirror.alive && self.is_helped_by_life(known, record) {
            factor *= IF_ALIVE;
        }
        with_odds_times(callee.probability, factor)
    }

    /// The same of several.
    pub(super) fn weigh_all(
        &self,
        known: &Known,
        methods: &Methods,
        caller: Option<MethodId>,
        callees: Vec<Callee>,
    ) -> Vec<Callee> {
        let weighed = |it: Callee| Callee { probability: self.weigh(known, methods, caller, it), ..it };
        callees.into_iter().map(weighed).collect()
    }

    /// Whether a method had run before we came, as far as it is known; what had run seldom, at the program's start perhaps, is not expected any
    /// more than what never had.
    pub(super) fn has_run(&self, known: &Known, key: ClassKey, signature: Signature) -> Option<bool> {
        let often = self.had_run(known, key, signature).filter(|often| *often || self.is_warm());
        often.or_else(|| self.compiled.contains(&(key, signature)).then_some(true))
    }

    /// The same by the JVM's counters alone, whatever that says of what comes.
    pub(super) fn had_run(&self, known: &Known, key: ClassKey, signature: Signature) -> Option<bool> {
        let calls = known.mirrors.method(key, signature)?.calls?;
        Some(calls > 0 && calls.saturating_mul(SELDOM) >= self.root_calls.min(COUNTED))
    }

    /// There are objects of a class: what may be called on them is likelier now.
    pub(super) fn come_alive(&self, known: &mut Known, methods: &mut Methods, class: ClassKey) {
        if std::mem::replace(&mut known.mirrors.get_mut(class).alive, true) {
            return;
        }
        let declared = methods.in_class(class).to_vec();
        let more = |method: MethodId| {
            let record =
                methods.record(method).filter(|record| !record.expanded && self.is_helped_by_life(known, record))?;
            Some((method, with_odds_times(record.probability, IF_ALIVE)))
        };
        let more: Vec<(MethodId, Probability)> = declared.into_iter().filter_map(more).collect();
        more.into_iter().for_each(|(method, probability)| methods.raise(method, probability));
    }

    /// Whether a method is called on objects, and nothing better is known of it.
    pub(super) fn is_helped_by_life(&self, known: &Known, record: &MethodRecord) -> bool {
        let is_virtual = known.mirrors.method(record.key, record.signature).is_some_and(|method| method.is_virtual());
        is_virtual && &*record.name != "<init>" && self.has_run(known, record.key, record.signature).is_none()
    }

    /// A root has been found.
    pub(super) fn learn_of_root(&mut self, known: &Known, methods: &Methods, root: MethodId) {
        let calls = methods.record(root).and_then(|root| known.mirrors.method(root.key, root.signature)?.calls);
        self.root_calls = self.root_calls.max(calls.unwrap_or(0));
    }

    /// Whether the roots have been called so often that a call of them that is open is soon over.
    pub(super) fn roots_return_soon(&self) -> bool {
        self.root_calls >= OFTEN
    }

    /// A method is entered: whether it was right to select its callees before is known now, and will be soon for those.
    pub(super) fn learn(&mut self, known: &Known, methods: &mut Methods, method: MethodId) {
        let is_blind = self.is_blind(known, methods, method);
        if let Some(record) = methods.record(method) {
            match self.had_run(known, record.key, record.signature) {
                Some(true) => self.old += 1,
                Some(false) => self.new += 1,
                None => {}
            }
        }
        let Some(record) = methods.record_mut(method) else { return };
        let guess = std::mem::replace(&mut record.guess, Guess::Right);
        if is_blind {
            self.blind = self.blind.saturating_sub(u32::from(guess == Guess::Open));
            self.blind_right += u32::from(matches!(guess, Guess::Open | Guess::Tried));
        }
        match guess {
            Guess::Open => (self.tried, self.right) = (self.tried + 1, self.right + 1),
            Guess::Tried => self.right += 1,
            Guess::None | Guess::Right => {}
        }
        let callees: Vec<MethodId> =
            methods.record(method).map_or(Vec::new(), |it| it.callees.iter().map(|it| it.method).collect());
        for callee in callees {
            let is_blind = self.is_blind(known, methods, callee);
            if let Some(callee) = methods.record_mut(callee).filter(|callee| callee.guess == Guess::Open) {
                callee.guess = Guess::Tried;
                self.tried += 1;
                self.blind = self.blind.saturating_sub(u32::from(is_blind));
            }
        }
    }

    /// Whether a guess that a method is entered has no evidence.
    pub(super) fn is_blind(&self, known: &Known, methods: &Methods, method: MethodId) -> bool {
        methods.record(method).is_some_and(|record| self.has_run(known, record.key, record.signature) != Some(true))
    }

    /// The graph has had many classes loaded, and hotswapped because they were linked.
    pub(super) fn loads_much(&self) -> bool {
        self.loaded_by_graph >= MANY_LOADED && self.link_batches >= MANY_LINKED
    }

    pub(super) fn is_unlikely(&self, known: &Known, call: &CallSite, by: ClassKey, caller_has_run: bool) -> bool {
        match call.likelihood {
            Likelihood::Certain => false,
            Likelihood::Rare => true,
            Likelihood::Possible if !caller_has_run => false,
            Likelihood::Possible => {
                let Some(signature) = known.mirrors.known_signature(&call.name, &call.descriptor) else { return true };
                if self.knows_calls {
                    self.has_never_run(known, call, by, signature)
                } else {
                    self.batches_are_cheap() && !self.is_compiled_anywhere(signature)
                }
            }
        }
    }

    /// Whether something that a call can run has run before, or may have.
    pub(super) fn can_run_what_has(&self, known: &Known, call: &CallSite, by: ClassKey) -> bool {
        let signature = known.mirrors.known_signature(&call.name, &call.descriptor);
        signature.is_some_and(|signature| !self.has_never_run(known, call, by, signature))
    }

    /// Whether nothing that a call can run has run before.
    pub(super) fn has_never_run(&self, known: &Known, call: &CallSite, by: ClassKey, signature: Signature) -> bool {
        let owners = known.mirrors.visible(&call.owner, known.mirrors.get(by).loader);
        let is_virtual = call.kind.is_virtual() && !call.kind.is_handle();
        let knowledge = (known.mirrors.generation, self.is_warm(), self.root_calls, self.compiled.len());
        let mut never_run = self.never_run.borrow_mut();
        if never_run.known != knowledge {
            *never_run = NeverRun { known: knowledge, found: FxHashMap::default() };
        }
        owners.into_iter().all(|owner| {
            let found = never_run.found.entry((owner, signature, is_virtual));
            *found.or_insert_with(|| self.have_never_run(known, owner, signature, is_virtual))
        })
    }

    /// The same of a call on a class.
    fn have_never_run(&self, known: &Known, owner: ClassKey, signature: Signature, is_virtual: bool) -> bool {
        let mut classes = known.mirrors.supertypes(owner);
        if is_virtual {
            classes.extend(known.mirrors.subtypes(owner));
        }
        classes.into_iter().all(|class| match known.mirrors.methods(class) {
            Some(methods) => methods
                .get(&signature)
                .is_none_or(|method| !method.has_code() || self.has_run(known, class, signature) == Some(false)),
            None => known.mirrors.get(class).loader.is_jdk(),
        })
    }

    /// Whether a method is known never to have run, and not instrumented.
    pub(super) fn is_idle(&self, known: &Known, methods: &Methods, class: ClassKey, signature: Signature) -> bool {
        self.has_run(known, class, signature) == Some(false)
            && known.mirrors.method(class, signature).is_some_and(|method| !method.is_private())
            && known.mirrors.get(class).lambda_host().is_none()
            && methods.of(class, signature).is_none()
    }

    /// Whether methods may be watched at all.
    pub(super) fn watches(&self, known: &Known) -> bool {
        known.options.watch_idle
            && !known.options.without.has(Mechanism::Watched)
            && known.options.look_ahead
            && known.options.scheme == Scheme::Lazy
            && self.roots_return_soon()
            && self.knows_calls
    }
}

/// How much of what the program does is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// It has loaded many classes for the graph, and come to much that had never run.
    Starting,
    /// Anything else.
    Steady,
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

/// Whether a root may stand for more than the overloads of one method.
fn pattern_is_broad(pattern: &MethodPattern) -> bool {
    pattern.class_text().contains('*') || pattern.method_text().contains('*')
}
