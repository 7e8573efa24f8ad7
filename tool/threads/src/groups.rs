//! Threads that stand in the same place, in the same way.

use rustc_hash::FxHashMap;

use super::{Dump, Frame, Kind, State, Thread, ThreadIndex, WaitKind};

/// Threads with equal stacks that hold and want locks of the same classes in the same frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// In the dump's order; there is one at least.
    pub threads: Vec<ThreadIndex>,
    /// What they used of the processors in the window before the dump.
    pub recent_cpu_ns: u64,
}

#[derive(PartialEq, Eq, Hash)]
struct Place<'a> {
    kind: Kind,
    state: State,
    pinned: bool,
    stack: &'a [Frame],
    wait: Option<(WaitKind, usize, Option<&'a str>)>,
    owned: Vec<(Option<usize>, &'a str)>,
    /// Of threads without a stack: the name up to its number.
    family: Option<&'a str>,
}

/// The groups: those that used most first, then the largest.
pub fn groups(dump: &Dump) -> Vec<Group> {
    let mut places: FxHashMap<Place<'_>, usize> = FxHashMap::default();
    let mut groups: Vec<Group> = Vec::new();
    for (at, thread) in dump.threads.iter().enumerate() {
        let group = *places.entry(place(dump, thread)).or_insert_with(|| {
            groups.push(Group { threads: Vec::new(), recent_cpu_ns: 0 });
            groups.len() - 1
        });
        groups[group].threads.push(ThreadIndex(at));
        groups[group].recent_cpu_ns += thread.recent_cpu_ns.unwrap_or(0);
    }
    groups.sort_by_key(|group| std::cmp::Reverse((group.recent_cpu_ns, group.threads.len())));
    groups
}

fn place<'a>(dump: &'a Dump, thread: &'a Thread) -> Place<'a> {
    let wait = thread.wait.map(|wait| (wait.kind, wait.frame, wait.lock.map(|lock| dump.locks[lock].class.as_str())));
    Place {
        kind: thread.kind,
        state: thread.state,
        pinned: thread.is_pinned(),
        stack: &thread.stack,
        wait,
        owned: thread.owned.iter().map(|owned| (owned.frame, dump.locks[owned.lock].class.as_str())).collect(),
        family: thread.stack.is_empty().then(|| family(&thread.name)),
    }
}

/// A name without the number at its end, and what stands before that: `GC Thread` of `GC Thread#3`.
pub fn family(name: &str) -> &str {
    let digits = |c: char| c.is_ascii_digit();
    let stem = name.trim_end_matches(digits);
    if stem.len() == name.len() {
        return name;
    }
    let stem = stem.trim_end_matches(['#', '-', '_', ' ', ':', '.']);
    if stem.is_empty() { name } else { stem }
}
