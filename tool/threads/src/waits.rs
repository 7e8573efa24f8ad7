//! Who waits for whom.
//!
//! A thread waits for one thing at a time, and what can be held by one thread has one owner. So each thread has one that it waits for at
//! most. Where the JVM does not say who initialises a class, it is inferred, and that is said ([`Certainty::Likely`]).

use std::collections::BTreeMap;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Dump, LockIndex, LockKey, ThreadIndex, Wait, WaitKind};

/// How well something is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// The JVM says so.
    Certain,
    /// It follows from where the threads are.
    Likely,
}

/// A thread that waits for another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// Who waits.
    pub from: ThreadIndex,
    /// For whom.
    pub to: ThreadIndex,
    /// How.
    pub kind: WaitKind,
    /// For what; `None` if the JVM does not say.
    pub lock: Option<LockIndex>,
    /// How well it is known.
    pub certainty: Certainty,
}

/// By a class's name, the names of its superclasses and interfaces, of all levels.
pub type Supertypes = BTreeMap<String, FxHashSet<String>>;

/// Who waits for whom.
#[derive(Debug)]
pub struct WaitGraph {
    /// By thread.
    blocker: Vec<Option<Edge>>,
}

impl WaitGraph {
    /// Of a dump; with the supertypes of [`uninitialised`] classes, as far as they are known.
    pub fn of(dump: &Dump, supertypes: &Supertypes) -> WaitGraph {
        let owners = owners(dump);
        let found = found_owners(dump);
        let initialisers = Initialisers::of(dump, supertypes);
        let edge = |(at, thread): (usize, &super::Thread)| {
            let from = ThreadIndex(at);
            let wait = thread.wait?;
            let (to, certainty) = match wait.kind {
                WaitKind::Notification => return None,
                WaitKind::Initialisation => initialisers.of_wait(dump, from, wait)?,
                WaitKind::Enter | WaitKind::Reenter | WaitKind::Park => {
                    let lock = wait.lock?;
                    let owner = owners.get(&lock).or_else(|| found.get(&lock)).copied()?;
                    let may_have_left = dump[owner].waits_at_something();
                    (owner, if may_have_left { Certainty::Likely } else { Certainty::Certain })
                }
            };
            (to != from).then_some(Edge { from, to, kind: wait.kind, lock: wait.lock, certainty })
        };
        WaitGraph { blocker: dump.threads.iter().enumerate().map(edge).collect() }
    }

    /// Whom a thread waits for.
    pub fn blocker(&self, thread: ThreadIndex) -> Option<Edge> {
        self.blocker[thread.0]
    }

    /// How many threads there are.
    pub fn len(&self) -> usize {
        self.blocker.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.blocker.is_empty()
    }

    /// All waits for others.
    pub fn edges(&self) -> impl Iterator<Item = &Edge> {
        self.blocker.iter().flatten()
    }
}

/// Who holds each lock, as far as that is known: classes are held by who initialises them.
pub fn holders(dump: &Dump, waits: &WaitGraph) -> FxHashMap<LockIndex, ThreadIndex> {
    let mut holders = owners(dump);
    for edge in waits.edges() {
        if let Some(lock) = edge.lock {
            holders.entry(lock).or_insert(edge.to);
        }
    }
    holders
}

/// Who is told to hold each lock. Who waits at one that is not known may not have it any more, so others come first.
fn owners(dump: &Dump) -> FxHashMap<LockIndex, ThreadIndex> {
    let mut owners = FxHashMap::default();
    for waits_at_something in [false, true] {
        let threads = dump.threads.iter().enumerate();
        for (at, thread) in threads.filter(|(_, thread)| thread.waits_at_something() == waits_at_something) {
            for owned in &thread.owned {
                owners.entry(owned.lock).or_insert(ThreadIndex(at));
            }
        }
    }
    owners
}

/// What a deadlock that the JVM has found says of owners: each thread holds what the one before it waits for.
fn found_owners(dump: &Dump) -> FxHashMap<LockIndex, ThreadIndex> {
    let mut owners = FxHashMap::default();
    if dump.found.is_empty() {
        return owners;
    }
    let mut waiting: FxHashMap<(&str, LockIndex), Option<ThreadIndex>> = FxHashMap::default();
    for (at, thread) in dump.threads.iter().enumerate() {
        if let Some(lock) = thread.wait.and_then(|wait| wait.lock) {
            // Two of one name that wait for one thing cannot be told apart.
            let unique = waiting.entry((&thread.name, lock));
            unique.and_modify(|it| *it = None).or_insert(Some(ThreadIndex(at)));
        }
    }
    for cycle in &dump.found {
        let place = |wait: &super::FoundWait| {
            let lock = dump.locks.find(&LockKey::Address(wait.address?))?;
            Some((lock, (*waiting.get(&(wait.name.as_str(), lock))?)?))
        };
        let places: Vec<_> = cycle.iter().map(place).collect();
        for (at, place) in places.iter().enumerate() {
            if let (Some((lock, _)), Some((_, next))) = (place, places[(at + 1) % places.len()]) {
                owners.entry(*lock).or_insert(next);
            }
        }
    }
    owners
}

/// Classes that are waited for, and that no thread's stack shows being initialised: it may be about their supertypes first.
pub fn uninitialised(dump: &Dump) -> Vec<&str> {
    let initialised: FxHashSet<&str> = initialising(dump).map(|(class, _)| class).collect();
    let waited = waiting(dump).map(|(class, _)| class);
    let mut classes: Vec<&str> = waited.filter(|class| !initialised.contains(class)).collect();
    classes.sort_unstable();
    classes.dedup();
    classes
}

/// The classes that threads initialise: a thread's innermost last.
fn initialising(dump: &Dump) -> impl Iterator<Item = (&str, ThreadIndex)> {
    dump.threads.iter().enumerate().flat_map(|(at, thread)| {
        let classes = thread.stack.iter().rev().filter_map(super::Frame::initialises);
        classes.map(move |class| (class, ThreadIndex(at)))
    })
}

/// The classes that threads wait for.
fn waiting(dump: &Dump) -> impl Iterator<Item = (&str, ThreadIndex)> {
    dump.threads.iter().enumerate().filter_map(|(at, thread)| {
        let wait = thread.wait.filter(|wait| wait.kind == WaitKind::Initialisation)?;
        Some((dump.locks[wait.lock?].class.as_str(), ThreadIndex(at)))
    })
}

struct Initialisers<'a> {
    /// Who initialises each class; `None` where several do, of classes of one name.
    by_class: FxHashMap<&'a str, Option<ThreadIndex>>,
    /// Of classes that no stack shows: threads that are at their supertypes.
    before: FxHashMap<&'a str, Vec<ThreadIndex>>,
}

impl<'a> Initialisers<'a> {
    fn of(dump: &'a Dump, supertypes: &'a Supertypes) -> Initialisers<'a> {
        let mut by_class: FxHashMap<&str, Option<ThreadIndex>> = FxHashMap::default();
        for (class, thread) in initialising(dump) {
            by_class.entry(class).and_modify(|it| *it = it.filter(|it| *it == thread)).or_insert(Some(thread));
        }
        // Who waits for a class, or initialises one.
        let mut involved: FxHashMap<&str, Vec<ThreadIndex>> = FxHashMap::default();
        for (class, thread) in initialising(dump).chain(waiting(dump)) {
            involved.entry(class).or_default().push(thread);
        }
        let at = |supertypes: &FxHashSet<String>| {
            let mut threads: Vec<ThreadIndex> =
                supertypes.iter().filter_map(|class| involved.get(class.as_str())).flatten().copied().collect();
            threads.sort_unstable();
            threads.dedup();
            threads
        };
        let before = supertypes.iter().map(|(class, supertypes)| (class.as_str(), at(supertypes))).collect();
        Initialisers { by_class, before }
    }

    /// Who initialises what a thread waits for.
    fn of_wait(&self, dump: &Dump, from: ThreadIndex, wait: Wait) -> Option<(ThreadIndex, Certainty)> {
        let Some(lock) = wait.lock else {
            // JDK 11 does not name the class. If only one other thread initialises any, it is that one's.
            let mut others = self.by_class.values().copied().filter(|other| *other != Some(from));
            let first = others.next()??;
            return others.all(|other| other == Some(first)).then_some((first, Certainty::Likely));
        };
        let class = dump.locks[lock].class.as_str();
        if let Some(initialiser) = self.by_class.get(class) {
            return initialiser.map(|initialiser| (initialiser, Certainty::Certain));
        }
        // Before a class's own initialiser runs, those of its supertypes do: its thread is in one, or waits for one.
        let others = self.before.get(class)?;
        let mut others = others.iter().copied().filter(|other| *other != from);
        let first = others.next()?;
        // If all that it can be wait for this one, it does not matter which it is.
        let waits_for_us = |other: ThreadIndex| {
            let lock = dump[other].wait.filter(|wait| wait.kind == WaitKind::Initialisation).and_then(|wait| wait.lock);
            lock.is_some_and(|lock| self.by_class.get(dump.locks[lock].class.as_str()) == Some(&Some(from)))
        };
        let mut others = others.peekable();
        let is_clear = others.peek().is_none() || (waits_for_us(first) && others.all(waits_for_us));
        is_clear.then_some((first, Certainty::Likely))
    }
}
