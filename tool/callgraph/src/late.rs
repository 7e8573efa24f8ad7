//! Methods that may have been called before they were instrumented, because nobody waited for that.
//!
//! What an entered method calls is instrumented before the call if its thread waits. If the thread goes on instead, the first calls are not
//! seen, and what they call in turn is not either, unless it is instrumented already. So of each such method it is known from when to when its
//! calls may be missing; its counts are true from then on, and at least so large in all. Of what never was instrumented it is known who calls it.
//!
//! Why so, and at what cost: docs/decisions/limits.md.

use std::collections::BinaryHeap;

use headwater_protocol::{ClassId, MethodId};
use headwater_terms::reach::{MOST_REACHED, Trigger};
use rustc_hash::{FxHashMap, FxHashSet};

use super::known::Known;
use super::methods::Methods;
use super::plan::Plan;
use super::policy::{ALL_COUNTED, LOADED_LATER};
use super::record::{Callee, MethodRecord, Missed};

/// What a call makes less often, through methods that are not instrumented, it is not told of. Where ten thousand are not, nearly every one leads to
/// nearly every other somehow.
const LEAST_LIKELY: f64 = 0.01;

/// A method that may have been called and is not instrumented, or was too late for its calls: none was seen.
#[derive(Clone, Debug, PartialEq)]
pub struct Unseen {
    /// The method.
    pub method: MethodId,
    /// It is instrumented by now.
    pub is_instrumented: bool,
    /// Instrumented methods that call it, and how often a call of theirs is expected to; be it through others that are not, where that is likely. None
    /// where other code calls it.
    pub callers: Vec<(MethodId, f64)>,
    /// No more calls than that were missed, if the JVM has counted so few.
    pub most: Option<u32>,
}

impl Methods {
    /// Those of them that are not instrumented, or have not been entered since they were, and who calls them.
    pub(super) fn unseen(&self) -> Vec<Unseen> {
        let is_unseen = |record: &MethodRecord| !record.in_place || record.missed.is_some() && !record.entered;
        let missed = self.missed().filter_map(|(method, _)| self.record(method));
        let mut callers: FxHashMap<MethodId, Vec<(MethodId, f64)>> =
            missed.filter(|record| is_unseen(record)).map(|record| (record.id, Vec::new())).collect();
        if callers.is_empty() {
            return Vec::new();
        }
        // A method whose class came when its caller had been looked at is not among what that calls, nor is any while something of it is not known.
        let mut later: FxHashMap<MethodId, Vec<Callee>> = FxHashMap::default();
        for record in self.all().iter().filter(|record| is_unseen(record)) {
            let by = record.history.cause.by.and_then(|by| self.record(by));
            if let Some(by) = by.filter(|by| record.history.trigger == Trigger::Loaded || !by.expanded) {
                later.entry(by.id).or_default().push(Callee { method: record.id, probability: LOADED_LATER });
            }
        }
        let callees = |record: &MethodRecord| {
            let later = later.get(&record.id).into_iter().flatten();
            record.callees.iter().chain(later).copied().collect::<Vec<Callee>>()
        };
        let (unprobed, probed): (Vec<&MethodRecord>, Vec<&MethodRecord>) =
            self.all().iter().partition(|record| is_unseen(record));
        let mut unprobed = Unprobed::of(unprobed.into_iter().map(|record| (record.id, callees(record))));
        for caller in probed {
            for (method, calls) in unprobed.reached(&callees(caller)) {
                if let Some(callers) = callers.get_mut(&method) {
                    callers.push((caller.id, calls));
                }
            }
        }
        let of = |(method, callers)| {
            let record = self.record(method);
            let most = record.and_then(|record| record.missed?.most);
            Unseen { method, is_instrumented: record.is_some_and(|record| record.in_place), callers, most }
        };
        let mut unseen: Vec<Unseen> = callers.into_iter().map(of).collect();
        unseen.sort_unstable_by_key(|unseen| unseen.method);
        unseen
    }

    /// The classes of methods that may have been called and are not instrumented: told their methods once more, with how often they have
    /// been called, it knows which have not, or seldom ([`Methods::acquit_idle`]).
    pub(super) fn classes_of_unseen(&self, known: &Known) -> Vec<ClassId> {
        let methods = self.missed().filter(|(_, missed)| missed.until.is_none());
        let classes = methods.filter_map(|(id, _)| known.mirrors.get(self.record(id)?.key).id);
        let classes: FxHashSet<ClassId> = classes.collect();
        classes.into_iter().collect()
    }

    /// Those classes' methods have just been told: what has never run was not missed, and what has run seldom not more often than that.
    pub(super) fn acquit_idle(&mut self, known: &Known) {
        let missed = self.missed().filter(|(_, missed)| missed.until.is_none());
        // A class that is redefined is counted from the beginning.
        let is_redefined =
            |class| self.in_class(class).iter().any(|id| self.record(*id).is_some_and(|it| it.submitted));
        let seldom = |(id, missed): (MethodId, Missed)| {
            let record = self.record(id)?;
            if self.has_never_run_here(known, record.key, record.signature) {
                return Some((id, None));
            }
            let calls = known.mirrors.method(record.key, record.signature)?.calls?;
            let all_counted = calls < ALL_COUNTED && !is_redefined(record.key);
            all_counted.then_some((id, Some(Missed { most: Some(calls), ..missed })))
        };
        let seldom: Vec<(MethodId, Option<Missed>)> = missed.filter_map(seldom).collect();
        for (method, missed) in seldom {
            if let Some(record) = self.record_mut(method) {
                record.missed = missed;
            }
        }
    }

    /// Nobody waits until these classes are hotswapped, from now on.
    pub(super) fn went_on(&mut self, known: &Known, classes: &[ClassId]) {
        let keys = classes.iter().filter_map(|class| known.mirrors.by_id(*class));
        let methods = keys.flat_map(|key| self.in_class(key)).copied();
        let is_called = |method: &MethodId| self.record(*method).is_some_and(|record| record.called_next);
        let called: Vec<MethodId> = methods.filter(is_called).collect();
        self.miss(called);
    }
}

impl Plan {
    /// Roots first, then those classes in whose code threads were seen below them, then those whose methods are the likeliest to be called, and not
    /// instrumented: what the caller has been entered of before the others.
    pub(super) fn sort_by_urgency(&self, known: &Known, methods: &Methods, classes: &mut [ClassId]) {
        let urgency = |class: &ClassId| {
            let key = known.mirrors.by_id(*class);
            let its = key.map_or(&[][..], |key| methods.in_class(key)).iter();
            let waiting = its.filter_map(|method| methods.record(*method)).filter(|record| !record.in_place);
            let of_method = |record: &MethodRecord| {
                (!record.root_of.is_empty(), record.called_next, (record.probability * 1e6) as u32)
            };
            // Whoever has no methods of its own is probed for the sake of others.
            let (is_root, is_next, probability) = waiting.map(of_method).max().unwrap_or((false, true, 1_000_000));
            let seen = key.map_or(0, |key| self.ran.stacks(key));
            (is_root, seen, is_next, probability)
        };
        classes.sort_by_cached_key(|class| std::cmp::Reverse(urgency(class)));
    }
}

/// Methods that are not instrumented, and what they are likely to call of each other: by their places in a list.
#[derive(Debug)]
struct Unprobed {
    places: FxHashMap<MethodId, u32>,
    methods: Vec<(MethodId, Vec<(u32, f64)>)>,
    /// How often the likeliest way to each that is known so far leads to it: 0 if none is, infinite once it has been told. All are 0 between two questions.
    likeliest: Vec<f64>,
}

impl Unprobed {
    /// Most of what a method may call is instrumented, or unlikely.
    fn of(methods: impl Iterator<Item = (MethodId, Vec<Callee>)>) -> Unprobed {
        let methods: Vec<(MethodId, Vec<Callee>)> = methods.collect();
        let places: FxHashMap<MethodId, u32> = methods.iter().map(|(method, _)| *method).zip(0..).collect();
        let likely = |callee: &Callee| {
            let calls = f64::from(callee.probability);
            places.get(&callee.method).filter(|_| calls >= LEAST_LIKELY).map(|place| (*place, calls))
        };
        let methods: Vec<(MethodId, Vec<(u32, f64)>)> =
            methods.iter().map(|(method, callees)| (*method, callees.iter().filter_map(likely).collect())).collect();
        Unprobed { likeliest: vec![0.0; methods.len()], places, methods }
    }

    /// Which of them a method with these callees calls, be it through others of them, with how often.
    fn reached(&mut self, first: &[Callee]) -> Vec<(MethodId, f64)> {
        let Unprobed { places, methods, likeliest } = self;
        // The likeliest comes first, so that each is reached in its likeliest way. Floats of one sign are ordered as their bits are.
        let mut pending: BinaryHeap<(u64, u32)> = BinaryHeap::new();
        let mut come_to = Vec::new();
        let mut reach = |(place, calls): (u32, f64), pending: &mut BinaryHeap<(u64, u32)>, likeliest: &mut [f64]| {
            let known = &mut likeliest[place as usize];
            if calls > *known {
                if *known == 0.0 {
                    come_to.push(place);
                }
                *known = calls;
                pending.push((calls.to_bits(), place));
            }
        };
        let directly = first.iter().filter_map(|callee| {
            let place = places.get(&callee.method)?;
            Some((*place, f64::from(callee.probability)))
        });
        directly.clone().for_each(|callee| reach(callee, &mut pending, likeliest));
        let mut reached = Vec::new();
        while let Some((calls, place)) = pending.pop().filter(|_| reached.len() < MOST_REACHED) {
            let calls = f64::from_bits(calls);
            if calls < likeliest[place as usize] {
                continue;
            }
            let (method, callees) = &methods[place as usize];
            reached.push((*method, calls));
            likeliest[place as usize] = f64::INFINITY;
            let through = callees.iter().map(|(callee, probability)| (*callee, calls * probability));
            through.filter(|(_, calls)| *calls >= LEAST_LIKELY).for_each(|it| reach(it, &mut pending, likeliest));
        }
        for (place, _) in directly {
            let calls = std::mem::replace(&mut likeliest[place as usize], f64::INFINITY);
            if calls.is_finite() {
                reached.push((methods[place as usize].0, calls));
                come_to.push(place);
            }
        }
        come_to.into_iter().for_each(|place| likeliest[place as usize] = 0.0);
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callee(method: usize, probability: f32) -> Callee {
        Callee { method: MethodId(method as u32), probability }
    }

    #[test]
    fn what_is_unlikely_or_far_is_not_told() {
        let graph = |callees: &[Vec<Callee>]| {
            Unprobed::of(callees.iter().cloned().zip(0..).map(|(callees, method)| (MethodId(method), callees)))
        };
        let chain: Vec<Vec<Callee>> = (0..5_000).map(|at| vec![callee(at + 1, 1.0)]).collect();
        let mut chain = graph(&chain);
        let first = [callee(0, 0.5), callee(4_000, 0.25), callee(4_999, 0.0)];
        let certain = chain.reached(&first);
        assert_eq!((certain.len(), certain[999]), (MOST_REACHED + 2, (MethodId(999), 0.5)));
        assert_eq!(certain[1_000], (MethodId(4_000), 0.25), "what is called itself is told however much there is");
        assert_eq!(chain.reached(&[callee(4_997, 1.0)]).len(), 3, "as if nothing had been asked before");
        let halves: Vec<Vec<Callee>> = (0..100).map(|at| vec![callee(at + 1, 0.5), callee(99, 0.001)]).collect();
        let likely = graph(&halves).reached(&[callee(0, 1.0), callee(99, 0.001)]);
        assert_eq!(likely.len(), 8, "seven of them above a hundredth, and one that is called itself: {likely:?}");
    }
}
