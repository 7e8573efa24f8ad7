//! What virtual calls are made on.
//!
//! Class hierarchy analysis has a virtual call run every implementation there is. In a program that has run for a while most of
//! them never have, and most of these never will: an interface has hundreds of classes in an interpreter, and a script uses ten of them. But as
//! nothing is to be missed, all would have to be instrumented before the call. Instead such a call's own code is told what it is made on
//! ([`Guarded`](super::Guarded)): before it is made on an object of a class for the first time, the thread asks, and what runs there is instrumented.
//! So methods that have run are selected with the call, and the *idle* ones, that never have, are spared until an object asks for them.
//!
//! Only calls in code that has probes anyway can be guarded; for those in hidden methods, by method handles, or from outside the filter
//! everything is selected as ever. So are private methods: what a call of them runs is not for the object to say. A class that is
//! linked later has no idle methods: what it overrides is instrumented when it comes.
//!
//! Why so, and at what cost: docs/decisions/receivers.md.

use headwater_runtime_java::RECEIVING_CALLS;
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Target;
use super::likely::Reading;
use super::mirror::ClassKey;
use super::policy::{MOST_SEEN, Mechanism};
use super::reachable::Reachable;
use super::source::{Called, Named, Spare, target};

/// The calls that are told what they are made on.
#[derive(Debug, Default)]
pub(super) struct Receivers {
    numbers: FxHashMap<Target, u32>,
    /// In the order of the numbers, with who makes them first.
    targets: Vec<Called>,
    /// How many idle methods a call on a type can run.
    idle: FxHashMap<(ClassKey, Target), usize>,
    /// The pairs of a call and a class that have been asked for.
    seen: FxHashSet<(u32, ClassKey)>,
}

impl Receivers {
    /// A target's number; `None` when there are no more.
    fn number(&mut self, called: Called) -> Option<u32> {
        let target = target(called);
        if let Some(known) = self.numbers.get(&target) {
            return Some(*known);
        }
        let number = self.targets.len() as u32;
        if number >= RECEIVING_CALLS || self.seen.len() >= MOST_SEEN {
            return None;
        }
        self.numbers.insert(target, number);
        self.targets.push(called);
        Some(number)
    }

    /// A call is about to be made on an object of a class.
    pub(super) fn saw(&mut self, call: u32, class: ClassKey) {
        self.seen.insert((call, class));
    }

    /// What is called by it.
    pub(super) fn called(&self, call: u32) -> Option<Called> {
        self.targets.get(call as usize).copied()
    }

    /// The number of a virtual call that is to be told what it is made on, because that spares so many methods.
    pub(super) fn number_of(
        &mut self,
        reading: Reading<'_>,
        reachable: &Reachable,
        owner: Named<'_>,
        called: Called,
        least: usize,
    ) -> Option<u32> {
        let Reading { known, likely, .. } = reading;
        if !likely.knows_what_is_idle() || known.options.without.has(Mechanism::Receivers) {
            return None;
        }
        let owners = known.mirrors.visible(owner.name, owner.loader);
        let all_linked = owners.iter().all(|owner| known.mirrors.get(*owner).linked);
        let spares = |owner| self.idle_on(reading, reachable, owner, target(called)) >= least;
        let spares = all_linked && owners.into_iter().any(spares);
        if spares { self.number(called) } else { None }
    }

    /// How many idle methods a call on a type can run.
    fn idle_on(&mut self, reading: Reading<'_>, reachable: &Reachable, owner: ClassKey, target: Target) -> usize {
        let reached = reachable.virtual_on.get(&owner).and_then(|on| on.get(&target));
        if reached.is_some_and(|reached| reached.spared == Spare::Nothing) {
            return 0;
        }
        if let Some(known) = self.idle.get(&(owner, target)) {
            return *known;
        }
        let Reading { known, methods, likely } = reading;
        let (signature, caller) = target;
        let (mut places, mut unknown) = (Vec::new(), Vec::new());
        for class in known.mirrors.subtypes(owner) {
            if !known.mirrors.get(class).is_abstract_class() {
                known.selection(class, signature, caller, &mut places, &mut unknown);
            }
        }
        places.sort_unstable();
        places.dedup();
        let idle = places.into_iter().filter(|place| likely.is_idle(known, methods, *place, signature)).count();
        self.idle.insert((owner, target), idle);
        idle
    }
}
