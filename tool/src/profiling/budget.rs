//! What a profile says of its overhead, and of the budget for it.

use std::time::Duration;

use crate::budget::Governor;
use crate::correction::{MIN_CONTROLS, QUEUED, Reference, RootCalls};
use crate::profile::{
    Budget, Clock, ClockMode, ControlKind, DroppedMethod, Lengthened, Limit, MethodIndex, MethodName, Profile,
    RootOverhead,
};
use crate::report::units::{longer, plural, time};

/// Calls of the roots that were timed as wholes, and the recorded calls that these can be compared with.
pub(super) struct Compared<'a> {
    pub(super) kind: ControlKind,
    pub(super) reference: Reference<'a>,
    pub(super) roots: Vec<RootCalls>,
}

/// How much longer the roots' calls were, of those with calls to compare with. What threads inside the roots waited for the profile was taken
/// out of what was measured. Where threads stand in line for a processor for such a part of their time, calls of any other time may have stood there for longer, or less;
/// and where code had not settled by so much when they were timed, they would take another time later on.
pub(super) fn lengthened(
    compared: &[Compared<'_>],
    waited_ns: u64,
    queued: Option<f64>,
    unsettled: Option<f64>,
) -> Vec<Lengthened> {
    let mut all: Vec<Lengthened> = Vec::new();
    for Compared { reference, roots, .. } in compared {
        let measured_ns: f64 = roots.iter().map(|root| root.measured_ns).sum();
        for root in roots {
            let calls = reference.times.get(&root.method).map_or(0, |times| times.count);
            let index = MethodIndex(root.method.0 as usize - 1);
            if calls < MIN_CONTROLS || all.iter().any(|known| known.root == index) {
                continue;
            }
            let Some((bare_ns, error_ns)) = reference.bare_ns(root.method, root.pairs / root.calls) else { continue };
            let otherwise = (QUEUED * queued.unwrap_or(0.0)).hypot(unsettled.unwrap_or(0.0));
            let error_ns = error_ns.hypot(otherwise * bare_ns);
            let waited_ns = waited_ns as f64 * root.measured_ns / measured_ns.max(1.0);
            let recorded_ns = (root.measured_ns + waited_ns) / root.calls;
            all.push(Lengthened { root: index, recorded_ns, bare_ns, error_ns, calls });
        }
    }
    all.sort_by(|a, b| b.part().total_cmp(&a.part()).then(a.root.cmp(&b.root)));
    all
}

/// What the methods that were dropped took; the profile's times are known.
pub(super) fn tell_amounts(profile: &mut Profile) {
    let Some(budget) = &profile.budget else { return };
    let methods: Vec<MethodIndex> = budget.dropped.iter().map(|dropped| dropped.method).collect();
    let amounts = profile.own_amounts(&methods);
    for (dropped, amounts) in profile.budget.iter_mut().flat_map(|budget| &mut budget.dropped).zip(amounts) {
        *dropped =
            DroppedMethod { calls: amounts.calls, self_ns: amounts.self_ns, error_ns: amounts.error_ns, ..*dropped };
    }
}

/// What became of the budget, by the probes' cost as the profile found it, and by how long calls were since methods were dropped last, or all, where those are too few.
pub(super) fn kept(governor: &Governor, clock: &Clock, lengthened: &[Lengthened], duration: Duration) -> Budget {
    let dropped = governor.all_dropped().iter();
    let mut roots: Vec<RootOverhead> = governor
        .roots()
        .iter()
        .map(|sum| {
            let root = MethodIndex(sum.root.0 as usize - 1);
            let overhead = sum.overhead(clock);
            let overhead = match lengthened.iter().find(|it| it.root == root) {
                Some(all) => last_longer(overhead, (sum.calls, sum.measured_ns + sum.waited_ns), all),
                None => overhead,
            };
            RootOverhead {
                root,
                overhead,
                own: sum.own_overhead(clock).min(overhead),
                bare_ns: sum.bare_call_ns(clock),
                exhausted: sum.exhausted,
            }
        })
        .collect();
    roots.sort_by(|a, b| b.overhead.total_cmp(&a.overhead).then(a.root.cmp(&b.root)));
    Budget {
        limit: governor.limit(),
        roots,
        dropped: dropped
            .map(|dropped| {
                let method = MethodIndex(dropped.method.0 as usize - 1);
                let (overhead, at) = (dropped.overhead, dropped.at);
                DroppedMethod { method, calls: 0, self_ns: 0, error_ns: 0, overhead, at }
            })
            .collect(),
        batches: governor.batches(),
        pause_ns: governor.paused_ns(),
        pauses: governor.paused_ns() as f64 / duration.as_nanos().max(1) as f64,
    }
}

/// By which part a root's last calls were longer, of which there were so many, that took so long: by so much as their probes cost, as far as undisturbed calls allow for
/// that. Where they are too few, all that were recorded say it.
fn last_longer(by_probes: f64, (calls, last_ns): (f64, f64), all: &Lengthened) -> f64 {
    let is_known = calls >= MIN_CONTROLS as f64;
    let recorded_ns = if is_known { last_ns / calls } else { all.recorded_ns };
    let measured = Lengthened { recorded_ns, ..*all };
    // Calls that took nothing are longer by no part of it.
    let (least, most) = (measured.certain_part(), measured.possible_part());
    if all.bare_ns > 0.0 { by_probes.max(least).min(most) } else { by_probes }
}

/// What is to be said of the budget: that methods were dropped which nobody wanted dropped, and that it was not held.
pub(super) fn warnings(budget: &Budget, clock: &Clock, methods: &[MethodName]) -> Vec<String> {
    let mut warnings: Vec<String> = Vec::new();
    if let (Limit::Call { longer_ns }, Some(first)) = (budget.limit, budget.dropped.first()) {
        let dropped = plural(budget.dropped.len() as u64, "method was", "methods were");
        warnings.push(format!(
            "calls of a root were made longer by more than {}: {dropped} dropped, the first after {:.1} s, and counted until then only. To keep \
             all: --budget off; to disturb less: --budget 50%",
            time(longer_ns),
            first.at.as_secs_f64()
        ));
    }
    warnings.extend(not_held(budget, clock, methods));
    warnings
}

fn not_held(budget: &Budget, clock: &Clock, methods: &[MethodName]) -> Option<String> {
    let root = budget.exceeded()?;
    let name = &methods[root.root.0].display;
    let (limit, all, own) = (budget.limit, longer(root.overhead), longer(root.own));
    let dear = !matches!(clock.mode, ClockMode::Tick(_));
    let cheaper = if dear { ". --clock tick costs less" } else { "" };
    if root.own > limit.part_of(root.bare_ns) {
        return Some(format!(
            "the budget of {limit} cannot be held: the calls of {name} take {all}, and for its own probes alone, which are never \
             given up, {own}: it takes too little time. Choose a root above it{cheaper}"
        ));
    }
    if root.exhausted {
        return Some(format!(
            "the budget of {limit} cannot be held: the calls of {name} take {all}, and no methods are left below it that would save \
             enough{cheaper}"
        ));
    }
    Some(format!(
        "the budget of {limit} was not held yet when the profile ended: the calls of {name} took {all}. Record for longer: \
         methods are dropped step by step"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn undisturbed_calls_say_between_what_the_overhead_was() {
        let all = Lengthened { root: MethodIndex(0), recorded_ns: 8_200.0, bare_ns: 100.0, error_ns: 0.0, calls: 50 };
        let last = |by_probes: f64, calls: f64| (100.0 * last_longer(by_probes, (calls, 150.0 * calls), &all)).round();
        assert_eq!([10.0, 2.0, 0.0].map(|calls| last(0.1, calls)), [46.0, 8_096.0, 8_096.0]);
        assert_eq!([0.5, 40.0].map(|by_probes| last(by_probes, 10.0)), [50.0, 54.0], "the probes' cost is an estimate");
    }
}
