//! What a profile says of its overhead budget.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::budget::Governor;
use crate::profile::{Budget, Clock, ClockMode, DroppedMethod, MethodIndex, MethodName, RootOverhead, Tree};

/// What became of the budget, by the probes' cost as the profile found it.
pub(super) fn kept(governor: &Governor, clock: &Clock, merged: &Tree, duration: Duration) -> Budget {
    #[derive(Default)]
    struct Amounts {
        calls: u64,
        self_ns: u64,
        error_ns: u64,
    }
    let mut amounts: FxHashMap<MethodIndex, Amounts> = FxHashMap::default();
    let dropped = governor.all_dropped().iter();
    amounts.extend(dropped.clone().map(|dropped| (MethodIndex(dropped.method.0 as usize - 1), Amounts::default())));
    for node in &merged.nodes {
        if let Some(amounts) = amounts.get_mut(&node.method) {
            amounts.calls += node.calls;
            amounts.self_ns += node.self_ns;
            amounts.error_ns += node.error_ns;
        }
    }
    let mut roots: Vec<RootOverhead> = governor
        .roots()
        .iter()
        .map(|root| RootOverhead {
            root: MethodIndex(root.root.0 as usize - 1),
            overhead: root.overhead(clock),
            own: root.own_overhead(clock),
            exhausted: root.exhausted,
        })
        .collect();
    roots.sort_by(|a, b| b.overhead.total_cmp(&a.overhead).then(a.root.cmp(&b.root)));
    Budget {
        limit: governor.limit(),
        roots,
        dropped: dropped
            .map(|dropped| {
                let method = MethodIndex(dropped.method.0 as usize - 1);
                let Amounts { calls, self_ns, error_ns } = amounts[&method];
                DroppedMethod { method, calls, self_ns, error_ns, overhead: dropped.overhead, at: dropped.at }
            })
            .collect(),
        batches: governor.batches(),
        pause_ns: governor.paused_ns(),
        pauses: governor.paused_ns() as f64 / duration.as_nanos().max(1) as f64,
    }
}

/// What is to be said when the budget was not held.
pub(super) fn warning(budget: &Budget, clock: &Clock, methods: &[MethodName]) -> Option<String> {
    let root = budget.roots.first().filter(|_| budget.is_held() == Some(false))?;
    let name = &methods[root.root.0].display;
    let percent = |part: f64| format!("{:.1}%", 100.0 * part);
    let (limit, all, own) = (budget.limit, percent(root.overhead), percent(root.own));
    let dear = !matches!(clock.mode, ClockMode::Tick(_));
    let cheaper = if dear { ". --clock tick costs less" } else { "" };
    if root.own > budget.limit.part() {
        return Some(format!(
            "the budget of {limit} cannot be held: the calls of {name} take {all} longer for their probes, and for its own alone, which are \
             never given up, {own}: it takes too little time. Choose a root above it{cheaper}"
        ));
    }
    if root.exhausted {
        return Some(format!(
            "the budget of {limit} cannot be held: the calls of {name} take {all} longer for their probes, and no methods are left below \
             it that would save enough{cheaper}"
        ));
    }
    Some(format!(
        "the budget of {limit} was not held yet when the profile ended: the calls of {name} took {all} longer for their probes. Record \
         for longer: methods are dropped step by step"
    ))
}
