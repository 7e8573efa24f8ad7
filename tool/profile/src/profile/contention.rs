//! Contended locks: who waited for which, how long, where, and for whom.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::{MethodName, Tree};

/// What kind of lock it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum LockKind {
    /// An object's monitor: `synchronized`.
    Monitor,
    /// A lock of `java.util.concurrent`, or what a program has built on its queues.
    Concurrent,
}

impl LockKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            LockKind::Monitor => "monitor",
            LockKind::Concurrent => "java.util.concurrent",
        }
    }
}

/// Times that threads waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocked {
    /// How often.
    pub count: u64,
    /// For how long altogether.
    pub total_ns: u64,
    /// For how long at most.
    pub longest_ns: u64,
}

impl Blocked {
    /// One more.
    pub fn add(&mut self, ns: u64) {
        *self = self.and(Blocked { count: 1, total_ns: ns, longest_ns: ns });
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Blocked) -> Blocked {
        Blocked {
            count: self.count.saturating_add(other.count),
            total_ns: self.total_ns.saturating_add(other.total_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

/// A thread that left a monitor which another then entered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leaver {
    /// Its name.
    pub thread: String,
    /// The waits that ended so.
    pub blocked: Blocked,
}

/// Where a lock was held while others waited for it, by looks at all threads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Who held it.
    pub thread: String,
    /// Where, the innermost frame first: `a.b.C.m(C.java:12)`.
    pub stack: Vec<String>,
    /// How often that was seen.
    pub seen: u64,
}

/// Waits for one lock in one place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitPlace {
    /// The methods on the waiting threads' stacks, the outermost first: indices into [`Contention::methods`].
    pub stack: Vec<usize>,
    /// Outer frames are missing.
    pub is_cut: bool,
    /// The node of the tree of all threads in which they waited.
    pub node: Option<usize>,
    /// The waits.
    pub blocked: Blocked,
    /// Which threads waited here, each by a number of its own in all places; virtual threads are one.
    pub threads: BTreeSet<u32>,
    /// Of a monitor: who left it before those that waited entered it. The longest waited for comes first.
    pub left_by: Vec<Leaver>,
    /// Looks during these waits that asked who held it.
    pub seen: u64,
    /// Who held it meanwhile, as far as that was seen, the most often seen first.
    pub holders: Vec<Holder>,
}

/// A lock that threads waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ContendedLock {
    /// Of what kind.
    pub kind: LockKind,
    /// The class of the object.
    pub class: String,
    /// What tells it from others of its class: of a monitor the address of the JVM's structure, else that of the object.
    pub address: u64,
    /// Where it was waited for, the longest first.
    pub waits: Vec<WaitPlace>,
}

impl WaitPlace {
    /// Adds waits in the same place.
    fn add(&mut self, other: WaitPlace) {
        self.blocked = self.blocked.and(other.blocked);
        self.threads.extend(other.threads);
        self.seen += other.seen;
        for leaver in other.left_by {
            match self.left_by.iter_mut().find(|known| known.thread == leaver.thread) {
                Some(known) => known.blocked = known.blocked.and(leaver.blocked),
                None => self.left_by.push(leaver),
            }
        }
        for holder in other.holders {
            match self.holders.iter_mut().find(|known| (&known.thread, &known.stack) == (&holder.thread, &holder.stack))
            {
                Some(known) => known.seen += holder.seen,
                None => self.holders.push(holder),
            }
        }
    }
}

impl ContendedLock {
    /// Makes one of those places that have the same stack.
    fn join_equal(&mut self) {
        let mut places: FxHashMap<(Vec<usize>, bool), usize> = FxHashMap::default();
        let mut joined: Vec<WaitPlace> = Vec::new();
        for wait in self.waits.drain(..) {
            match places.entry((wait.stack.clone(), wait.is_cut)) {
                Entry::Occupied(known) => joined[*known.get()].add(wait),
                Entry::Vacant(new) => {
                    new.insert(joined.len());
                    joined.push(wait);
                }
            }
        }
        self.waits = joined;
    }

    /// All waits for it.
    pub fn blocked(&self) -> Blocked {
        self.waits.iter().map(|wait| wait.blocked).fold(Blocked::default(), Blocked::and)
    }
}

/// A wait that had not ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unfinished {
    /// Of what kind.
    pub kind: LockKind,
    /// Which lock, in words.
    pub lock: String,
    /// Who waits.
    pub thread: String,
    /// Where, the innermost frame first.
    pub stack: Vec<String>,
    /// For so long it was seen waiting at each look, the last one included.
    pub seen_ns: u64,
    /// Who holds it, if that is known.
    pub holder: Option<Holder>,
}

/// What is known of contended locks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contention {
    /// Shorter waits are not in it.
    pub over_ns: u64,
    /// The methods on stacks.
    pub methods: Vec<MethodName>,
    /// The locks, the one most waited for first.
    pub locks: Vec<ContendedLock>,
    /// Waits that had not ended when recording did.
    pub unfinished: Vec<Unfinished>,
    /// How often all threads were looked at.
    pub looks: u64,
    /// Threads that were parked for something else than a lock: in queues, for results.
    pub other_parks: Blocked,
    /// What is not known.
    pub limits: Vec<String>,
}

impl Contention {
    /// All waits.
    pub fn blocked(&self) -> Blocked {
        self.locks.iter().map(ContendedLock::blocked).fold(Blocked::default(), Blocked::and)
    }

    /// Adds what a later recording of the same JVM has found. Threads have other numbers there: those that waited in both count twice.
    pub fn add(&mut self, later: Contention) {
        let mut known: FxHashMap<String, usize> =
            self.methods.iter().enumerate().map(|(at, method)| (method.machine.clone(), at)).collect();
        let numbers: Vec<usize> = later
            .methods
            .into_iter()
            .map(|method| {
                *known.entry(method.machine.clone()).or_insert_with(|| {
                    self.methods.push(method);
                    self.methods.len() - 1
                })
            })
            .collect();
        let threads = self.locks.iter().flat_map(|lock| &lock.waits).flat_map(|wait| &wait.threads);
        let first = threads.max().map_or(0, |last| last + 1);
        for mut lock in later.locks {
            for wait in &mut lock.waits {
                wait.stack.iter_mut().for_each(|method| *method = numbers[*method]);
                wait.threads = wait.threads.iter().map(|thread| first + thread).collect();
            }
            let identity = (lock.kind, &lock.class, lock.address);
            match self.locks.iter_mut().find(|known| (known.kind, &known.class, known.address) == identity) {
                Some(known) => {
                    known.waits.append(&mut lock.waits);
                    known.join_equal();
                }
                None => self.locks.push(lock),
            }
        }
        self.unfinished = later.unfinished;
        self.looks += later.looks;
        self.other_parks = self.other_parks.and(later.other_parks);
        let others = "locks were switched off and on: threads that waited before and afterwards count twice".to_owned();
        for limit in later.limits.into_iter().chain([others]) {
            if !self.limits.contains(&limit) {
                self.limits.push(limit);
            }
        }
    }

    /// The longest first, everywhere.
    pub fn sort(&mut self) {
        let longer = |a: Blocked, b: Blocked| (b.total_ns, b.count).cmp(&(a.total_ns, a.count));
        for lock in &mut self.locks {
            for wait in &mut lock.waits {
                wait.left_by.sort_by(|a, b| longer(a.blocked, b.blocked).then_with(|| a.thread.cmp(&b.thread)));
                wait.holders.sort_by(|a, b| b.seen.cmp(&a.seen).then_with(|| a.stack.cmp(&b.stack)));
            }
            lock.waits.sort_by(|a, b| longer(a.blocked, b.blocked).then_with(|| a.stack.cmp(&b.stack)));
        }
        let name = |lock: &ContendedLock| (lock.class.clone(), lock.address);
        self.locks.sort_by(|a, b| longer(a.blocked(), b.blocked()).then_with(|| name(a).cmp(&name(b))));
    }

    /// Finds the nodes in which threads waited: below a root, as deep as the stack and the tree go together. What is above a root is cut off.
    pub fn place(&mut self, methods: &[MethodName], tree: &Tree) {
        // Classes of one name, of different loaders, have nodes of their own: the first is as good as any.
        let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
        for (at, method) in methods.iter().enumerate() {
            numbers.entry(&method.machine).or_insert(at);
        }
        let number = |name: &MethodName| numbers.get(name.machine.as_str()).copied();
        let mut children: FxHashMap<(Option<usize>, usize), usize> = FxHashMap::default();
        // What was handed to other threads is below no root on their stacks.
        for (at, node) in tree.nodes.iter().enumerate().filter(|(_, node)| node.link.is_none()) {
            if let Some(method) = methods.get(node.method.0).and_then(number) {
                children.entry((node.parent.map(|above| above.0), method)).or_insert(at);
            }
        }
        let ours: Vec<Option<usize>> = self.methods.iter().map(number).collect();
        for wait in self.locks.iter_mut().flat_map(|lock| &mut lock.waits) {
            let of = |at, method: &usize| children.get(&(at, ours.get(*method).copied().flatten()?)).copied();
            if let Some(root) = wait.stack.iter().position(|method| of(None, method).is_some()) {
                wait.is_cut &= root == 0;
                wait.stack.drain(..root);
                wait.node = wait.stack.iter().fold(None, |at, method| of(at, method).or(at));
            }
        }
        self.locks.iter_mut().for_each(ContendedLock::join_equal);
    }

    /// Leaves only what is below a node. Of the others, those whose stacks are cut might be.
    pub fn keep_placed(&mut self) -> Blocked {
        let waits = self.locks.iter().flat_map(|lock| &lock.waits);
        let cut = waits.filter(|wait| wait.node.is_none() && wait.is_cut).map(|wait| wait.blocked);
        let cut = cut.fold(Blocked::default(), Blocked::and);
        self.locks.iter_mut().for_each(|lock| lock.waits.retain(|wait| wait.node.is_some()));
        self.locks.retain(|lock| !lock.waits.is_empty());
        cut
    }

    /// Leaves only those unfinished waits in which one of these methods is on the stack, by their names for machines.
    pub fn keep_unfinished_below(&mut self, roots: &[&str]) {
        let name = |text: &str| text.split('(').next().unwrap_or(text).to_owned();
        let roots: Vec<String> = roots.iter().map(|root| name(root)).collect();
        self.unfinished.retain(|wait| wait.stack.iter().any(|frame| roots.contains(&name(frame))));
    }

    /// Leaves no node where threads waited: of another tree.
    pub fn forget_nodes(&mut self) {
        self.locks.iter_mut().flat_map(|lock| &mut lock.waits).for_each(|wait| wait.node = None);
    }

    /// Whether it speaks only of methods and nodes that are there.
    pub fn holds(&self, tree: &Tree) -> bool {
        let mut waits = self.locks.iter().flat_map(|lock| &lock.waits);
        waits.all(|wait| {
            wait.stack.iter().all(|method| *method < self.methods.len())
                && wait.node.is_none_or(|node| node < tree.nodes.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lock with a wait of so long in a method.
    fn contention(method: &str, address: u64, ns: u64, thread: u32) -> Contention {
        let mut blocked = Blocked::default();
        blocked.add(ns);
        let wait = WaitPlace { stack: vec![0], blocked, threads: BTreeSet::from([thread]), ..WaitPlace::default() };
        let lock = ContendedLock { kind: LockKind::Monitor, class: "a.Lock".into(), address, waits: vec![wait] };
        let methods = vec![MethodName { machine: method.into(), display: method.into() }];
        Contention { methods, locks: vec![lock], looks: 2, limits: vec!["rough".into()], ..Contention::default() }
    }

    #[test]
    fn recordings_one_after_the_other_add_up() {
        let mut all = contention("a.B.m()V", 1, 5, 3);
        all.add(contention("a.B.n()V", 2, 7, 3));
        all.add(contention("a.B.m()V", 1, 20, 0));
        let names: Vec<&str> = all.methods.iter().map(|method| method.machine.as_str()).collect();
        assert_eq!(names, ["a.B.m()V", "a.B.n()V"]);
        let waits: Vec<(u64, usize, Blocked, usize)> = all
            .locks
            .iter()
            .flat_map(|lock| lock.waits.iter().map(|wait| (lock.address, wait)))
            .map(|(address, wait)| (address, wait.stack[0], wait.blocked, wait.threads.len()))
            .collect();
        let blocked = |count, total_ns, longest_ns| Blocked { count, total_ns, longest_ns };
        assert_eq!(waits, [(1, 0, blocked(2, 25, 20), 2), (2, 1, blocked(1, 7, 7), 1)]);
        assert_eq!((all.looks, all.limits.len()), (6, 2), "what is not known is said once");
    }
}
