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

use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::CallSite;
use headwater_runtime_java::RECEIVING_CALLS;
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Target;
use super::mirror::ClassKey;
use super::policy::{MOST_SEEN, Mechanism};
use super::source::{Called, Source, target};
use super::{CallGraph, Step, Work};

/// What of a virtual call's methods is not selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Spare {
    Nothing,
    /// What has never run: the call is told what it is made on.
    Idle,
    /// What has never run and is watched: nobody can be told of the call.
    Watched,
}

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
}

impl CallGraph {
    /// A virtual call is about to be made on an object of a class, for the first time.
    pub fn received(&mut self, call: u32, class: ClassId) -> Step {
        match self.known.mirrors.by_id(class) {
            Some(key) => {
                self.plan.guards.receivers.seen.insert((call, key));
                self.begin(Work::Received(call, key))
            }
            None => Step::Hotswap(Vec::new()),
        }
    }

    /// Selects what a call runs on objects of a class.
    pub(super) fn receive(&mut self, call: u32, class: ClassKey) {
        let Some((signature, from)) = self.plan.guards.receivers.targets.get(call as usize).copied() else { return };
        let mut selected = Vec::new();
        self.select_for(class, signature, from.through(class), &mut selected);
        selected.into_iter().for_each(|method| self.methods.raise(method, 1.0));
    }

    /// The number of a call that is to be told what it is made on, because that spares so many methods.
    pub(super) fn number_of_receiving(
        &mut self,
        call: &CallSite,
        loader: LoaderId,
        from: Source,
        least: usize,
    ) -> Option<u32> {
        let is_virtual = call.kind.is_virtual() && !call.kind.is_handle();
        if !is_virtual || !self.likely.knows_what_is_idle() || self.known.options.without.has(Mechanism::Receivers) {
            return None;
        }
        let called = (self.known.mirrors.known_signature(&call.name, &call.descriptor)?, from);
        let owners = self.known.mirrors.visible(&call.owner, loader);
        let all_linked = owners.iter().all(|owner| self.known.mirrors.get(*owner).linked);
        let spares = all_linked && owners.into_iter().any(|owner| self.idle_on(owner, target(called)) >= least);
        if spares { self.plan.guards.receivers.number(called) } else { None }
    }

    /// How many idle methods a call on a type can run.
    fn idle_on(&mut self, owner: ClassKey, target: Target) -> usize {
        if self
            .reachable
            .virtual_on
            .get(&owner)
            .and_then(|on| on.get(&target))
            .is_some_and(|reached| reached.spared == Spare::Nothing)
        {
            return 0;
        }
        if let Some(known) = self.plan.guards.receivers.idle.get(&(owner, target)) {
            return *known;
        }
        let (signature, caller) = target;
        let (mut places, mut unknown) = (Vec::new(), Vec::new());
        for class in self.known.mirrors.subtypes(owner) {
            if !self.known.mirrors.get(class).is_abstract_class() {
                self.known.selection(class, signature, caller, &mut places, &mut unknown);
            }
        }
        places.sort_unstable();
        places.dedup();
        let idle = places
            .into_iter()
            .filter(|place| self.likely.is_idle(&self.known, &self.methods, *place, signature))
            .count();
        self.plan.guards.receivers.idle.insert((owner, target), idle);
        idle
    }
}
