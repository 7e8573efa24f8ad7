//! Who holds others up: the last thread of each chain of waits, or a deadlock, with all that wait for it, be it by way of others.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::deadlocks::Deadlock;
use super::waits::WaitGraph;
use super::{LockIndex, ThreadIndex, WaitKind};

/// What a chain of waits ends at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum End {
    /// A thread that waits for none.
    Thread(ThreadIndex),
    /// A deadlock, by its place in the list of them.
    Deadlock(usize),
}

/// Somebody whom others wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocker {
    /// Who.
    pub end: End,
    /// Who waits, in the dump's order; threads of the deadlock itself are not among them.
    pub waiting: Vec<ThreadIndex>,
    /// For what they wait: whose it is, what it is, how many threads. The most wanted first.
    pub wanted: Vec<HeldLock>,
}

/// What threads wait for that another one holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLock {
    /// Who holds it.
    pub owner: ThreadIndex,
    /// What it is; `None` if the JVM does not say.
    pub lock: Option<LockIndex>,
    /// How it is waited for.
    pub kind: WaitKind,
    /// How many threads wait for it.
    pub waiting: usize,
}

/// All of them, who holds up the most first.
pub fn blockers(graph: &WaitGraph, deadlocks: &[Deadlock]) -> Vec<Blocker> {
    let mut ends: Vec<Option<End>> = vec![None; graph.len()];
    let mut in_deadlock = vec![false; graph.len()];
    for (at, deadlock) in deadlocks.iter().enumerate() {
        for edge in &deadlock.waits {
            ends[edge.from.0] = Some(End::Deadlock(at));
            in_deadlock[edge.from.0] = true;
        }
    }
    let mut by_end: BTreeMap<End, Vec<ThreadIndex>> = BTreeMap::new();
    for (begin, in_deadlock) in in_deadlock.into_iter().enumerate() {
        let begin = ThreadIndex(begin);
        let end = end_of(graph, begin, &mut ends);
        if !in_deadlock && end != End::Thread(begin) {
            by_end.entry(end).or_default().push(begin);
        }
    }
    let mut blockers: Vec<Blocker> = by_end
        .into_iter()
        .map(|(end, waiting)| {
            let wanted = wanted(graph, &waiting);
            Blocker { end, waiting, wanted }
        })
        .collect();
    blockers.sort_by_key(|blocker| Reverse(blocker.waiting.len()));
    blockers
}

/// Where a thread's chain ends; every thread on the way is told too.
fn end_of(graph: &WaitGraph, begin: ThreadIndex, ends: &mut [Option<End>]) -> End {
    let mut way = Vec::new();
    let mut at = begin;
    let end = loop {
        if let Some(end) = ends[at.0] {
            break end;
        }
        way.push(at);
        match graph.blocker(at) {
            Some(edge) => at = edge.to,
            None => break End::Thread(at),
        }
    };
    for thread in way {
        ends[thread.0] = Some(end);
    }
    end
}

fn wanted(graph: &WaitGraph, waiting: &[ThreadIndex]) -> Vec<HeldLock> {
    let mut places: FxHashMap<(ThreadIndex, Option<LockIndex>), usize> = FxHashMap::default();
    let mut wanted: Vec<HeldLock> = Vec::new();
    for edge in waiting.iter().filter_map(|thread| graph.blocker(*thread)) {
        let place = *places.entry((edge.to, edge.lock)).or_insert_with(|| {
            wanted.push(HeldLock { owner: edge.to, lock: edge.lock, kind: edge.kind, waiting: 0 });
            wanted.len() - 1
        });
        wanted[place].waiting += 1;
    }
    wanted.sort_by_key(|wanted| Reverse(wanted.waiting));
    wanted
}
