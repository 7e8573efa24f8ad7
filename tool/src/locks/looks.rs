//! Looks at all threads: who holds what others wait for.
//!
//! A look costs the JVM a safepoint, so it has a [pace](crate::thread_dump::pace). Owners of `java.util.concurrent` locks need a look through the heap, which has a rate
//! of its own, by all that they take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use headwater_jfr::{EventKind, Recorded, RecordedEvent};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{STEP, now_ns};
use crate::attach::{self, TargetHost, jcmd};
use crate::import::recording::locks::{WaitIndex, is_acquired, is_latch};
use crate::profile::{Contention, Holder, LockKind, Unfinished};
use crate::report::units::bytes;
use crate::thread_dump::pace::{Pace, longest_pause};
use crate::thread_dump::{MOST_HEAP, Owners, heap};
use crate::threads::waits::WaitGraph;
use crate::threads::{Dump, Kind, Thread, WaitKind, read};

/// Between two looks, at least.
const EVERY: Duration = Duration::from_millis(100);

/// All looks.
#[derive(Debug, Default)]
pub(super) struct Looks {
    looks: Vec<Look>,
    /// Threads that held what others waited for, each place once.
    holders: Vec<(String, Vec<String>)>,
    known: FxHashMap<(String, Vec<String>), usize>,
    /// The heap was looked through for owners.
    has_owners: bool,
    /// What of it was in use, where that is why it was not.
    heap: Option<u64>,
    has_virtual: bool,
    failed: Option<String>,
}

/// Who waited at a moment.
#[derive(Debug)]
struct Look {
    /// Between these times, in ns since 1970.
    from_ns: i64,
    to_ns: i64,
    asked: Asked,
    waits: Vec<Wait>,
}

/// Whose owners a look asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    /// Those of monitors, which cost nothing.
    Monitors,
    /// Those of `java.util.concurrent` locks too.
    All,
}

impl Asked {
    /// Whether it asks for the owner of such a lock.
    fn has(self, kind: LockKind) -> bool {
        self == Asked::All || kind == LockKind::Monitor
    }
}

#[derive(Clone, Debug)]
struct Wait {
    /// The operating system's number of who waits.
    thread: u32,
    name: String,
    kind: LockKind,
    class: String,
    lock: String,
    stack: Vec<String>,
    holder: Option<usize>,
}

/// How much a look may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Thoroughness {
    /// What is due; none if nothing is.
    Due,
    /// As much as can be.
    Best,
}

/// Looks that go on.
pub(super) struct Looking {
    host: TargetHost,
    looks: Looks,
    plain: Pace,
    thorough: Pace,
}

impl Looking {
    /// Finds out how thoroughly it can be looked.
    pub(super) fn begin(host: TargetHost, owners: Owners) -> Looking {
        let used = jcmd(&host, "GC.heap_info").ok().and_then(|info| heap::used_bytes(&info));
        let has_owners = owners == Owners::On || used.is_some_and(|used| used <= MOST_HEAP);
        let looks = Looks { has_owners, heap: used.filter(|_| !has_owners), ..Looks::default() };
        Looking { host, looks, plain: Pace::of(EVERY), thorough: Pace::of(EVERY) }
    }

    /// Looks once.
    pub(super) fn look(&mut self, thoroughness: Thoroughness) {
        let now = Instant::now();
        let is_due = |pace: &Pace| thoroughness == Thoroughness::Best || pace.is_due(now);
        let is_thorough = self.looks.has_owners && is_due(&self.thorough);
        if self.looks.failed.is_some() || !is_thorough && !is_due(&self.plain) {
            return;
        }
        let from_ns = now_ns();
        match attach::thread_dump(&self.host, if is_thorough { "-l -e" } else { "-e" }) {
            Ok(text) => {
                let (to_ns, took) = (now_ns(), now.elapsed());
                if is_thorough {
                    self.thorough.looked(took);
                }
                self.plain.looked(longest_pause(&text, took));
                let asked = if is_thorough { Asked::All } else { Asked::Monitors };
                self.looks.add(&read::read(&text), asked, [from_ns, to_ns]);
            }
            Err(error) => self.looks.failed = Some(error.to_string()),
        }
    }

    /// Looks until it is over, and once more then.
    pub(super) fn until(mut self, is_over: &AtomicBool) -> Looks {
        while !is_over.load(Ordering::Acquire) {
            self.look(Thoroughness::Due);
            thread::sleep(STEP);
        }
        self.look(Thoroughness::Best);
        self.looks
    }
}

/// What a thread waits for that somebody may hold.
fn wanted(dump: &Dump, thread: &Thread) -> Option<(LockKind, String, String)> {
    let wait = thread.wait.filter(|_| thread.kind == Kind::Java)?;
    let lock = &dump.locks[wait.lock?];
    let kind = match wait.kind {
        WaitKind::Enter => LockKind::Monitor,
        WaitKind::Park if is_acquired(thread.stack.iter().map(|frame| frame.method.as_str())) => LockKind::Concurrent,
        _ => return None,
    };
    (!is_latch(&lock.class)).then(|| (kind, lock.class.clone(), lock.to_string()))
}

impl Looks {
    fn add(&mut self, dump: &Dump, asked: Asked, [from_ns, to_ns]: [i64; 2]) {
        let graph = WaitGraph::of(dump, &Default::default());
        let is_of_virtual =
            |thread: &Thread| thread.mount.is_some() || thread.name.starts_with("ForkJoinPool-1-worker-");
        self.has_virtual |= dump.threads.iter().any(is_of_virtual);
        let mut waits = Vec::new();
        for (at, thread) in dump.threads.iter().enumerate() {
            let (Some(number), Some((kind, class, lock))) = (thread.os_id, wanted(dump, thread)) else { continue };
            let edge = graph.blocker(crate::threads::ThreadIndex(at));
            let holder = edge.map(|edge| {
                let holder = &dump[edge.to];
                self.holder((holder.name.clone(), frames(holder)))
            });
            let (name, stack) = (thread.name.clone(), frames(thread));
            waits.push(Wait { thread: number, name, kind, class, lock, stack, holder });
        }
        self.looks.push(Look { from_ns, to_ns, asked, waits });
    }

    fn holder(&mut self, holder: (String, Vec<String>)) -> usize {
        if let Some(known) = self.known.get(&holder) {
            return *known;
        }
        self.holders.push(holder.clone());
        self.known.insert(holder, self.holders.len() - 1);
        self.holders.len() - 1
    }

    fn told(&self, holder: usize, seen: u64) -> Holder {
        let (thread, stack) = self.holders[holder].clone();
        Holder { thread, stack, seen }
    }

    /// Gives waits their holders, as far as they were seen, and finds those that have not ended.
    pub(super) fn join(&self, recorded: &Recorded, places: &[Option<WaitIndex>], contention: &mut Contention) {
        contention.looks = self.looks.len() as u64;
        let waits = Waits::of(recorded, places);
        let mut seen: FxHashMap<(usize, usize, usize), u64> = FxHashMap::default();
        let mut unfinished: FxHashMap<u32, (i64, &Wait)> = FxHashMap::default();
        for look in &self.looks {
            let mut going_on = FxHashMap::default();
            for wait in &look.waits {
                let found = waits.during(look, wait);
                // Several of one thread at once are in different places only if the clocks differ: then it is not known which.
                if let [place] = found[..]
                    && look.asked.has(wait.kind)
                {
                    contention.locks[place.lock].waits[place.wait].seen += 1;
                    if let Some(holder) = wait.holder {
                        *seen.entry((place.lock, place.wait, holder)).or_default() += 1;
                    }
                }
                if found.is_empty() {
                    let since = unfinished.get(&wait.thread).filter(|(_, before)| is_same(before, wait));
                    going_on.insert(wait.thread, (since.map_or(look.to_ns, |(since, _)| *since), wait));
                }
            }
            unfinished = going_on;
        }
        let end = self.looks.last().map_or(0, |look| look.from_ns);
        for (since, wait) in unfinished.into_values() {
            let seen_ns = u64::try_from(end - since).unwrap_or(0);
            // In one look alone, it may have been too short to be told.
            if seen_ns > contention.over_ns {
                let Wait { kind, lock, name: thread, stack, holder, .. } = wait.clone();
                let holder = holder.map(|holder| self.told(holder, 1));
                contention.unfinished.push(Unfinished { kind, lock, thread, stack, seen_ns, holder });
            }
        }
        contention.unfinished.sort_by(|a, b| b.seen_ns.cmp(&a.seen_ns).then_with(|| a.thread.cmp(&b.thread)));
        for ((lock, wait, holder), times) in seen {
            contention.locks[lock].waits[wait].holders.push(self.told(holder, times));
        }
    }

    /// What was not seen.
    pub(super) fn limits(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(used) = self.heap {
            warnings.push(format!(
                "who holds java.util.concurrent locks was not looked at: for that the JVM is stopped while it looks through a heap of {}; \
                 --owners on has it do so",
                bytes(used)
            ));
        }
        if self.has_virtual {
            warnings.push(
                "the flight recorder does not tell when virtual threads wait for java.util.concurrent locks, nor, from JDK 24 on, for monitors: \
                 these waits are missing"
                    .to_owned(),
            );
        }
        if let Some(failed) = &self.failed {
            warnings.push(format!("who holds locks is known up to a moment only: {failed}"));
        }
        warnings
    }
}

/// Whether a thread still waits as it did.
fn is_same(before: &Wait, now: &Wait) -> bool {
    (before.kind, &before.class, &before.stack) == (now.kind, &now.class, &now.stack)
}

fn frames(thread: &Thread) -> Vec<String> {
    thread.stack.iter().map(ToString::to_string).collect()
}

/// Waits by thread, in the order of their beginnings: a thread has one at a time.
struct Waits<'a> {
    recorded: &'a Recorded,
    places: &'a [Option<WaitIndex>],
    of_thread: FxHashMap<u32, Vec<usize>>,
}

impl<'a> Waits<'a> {
    fn of(recorded: &'a Recorded, places: &'a [Option<WaitIndex>]) -> Waits<'a> {
        let mut of_thread: FxHashMap<u32, Vec<usize>> = FxHashMap::default();
        for (at, event) in recorded.events.iter().enumerate().filter(|(at, _)| places[*at].is_some()) {
            let thread = &recorded.threads[event.thread.0 as usize];
            if !thread.is_virtual {
                of_thread.entry(thread.number).or_default().push(at);
            }
        }
        of_thread.values_mut().for_each(|events| events.sort_by_key(|at| recorded.events[*at].at_ns));
        Waits { recorded, places, of_thread }
    }

    /// Where a thread was waiting at some time of a look, for such a lock: each place once.
    fn during(&self, look: &Look, wait: &Wait) -> Vec<WaitIndex> {
        let Some(events) = self.of_thread.get(&wait.thread) else { return Vec::new() };
        let event = |at: &usize| &self.recorded.events[*at];
        let end =
            |event: &RecordedEvent| event.at_ns.saturating_add(i64::try_from(event.duration_ns).unwrap_or(i64::MAX));
        let first = events.partition_point(|at| end(event(at)) < look.from_ns);
        let kind = if wait.kind == LockKind::Monitor { EventKind::MonitorEnter } else { EventKind::Park };
        let is_its = |at: &&usize| {
            let event = event(at);
            let class = event.lock.map(|lock| &self.recorded.locks[lock.0 as usize].class);
            event.kind == kind && class == Some(&wait.class)
        };
        let near = events[first..].iter().take_while(|at| event(at).at_ns <= look.to_ns);
        let mut known = FxHashSet::default();
        let places = near.filter(is_its).filter_map(|at| self.places[*at]);
        places.filter(|place| known.insert((place.lock, place.wait))).collect()
    }
}

#[cfg(test)]
mod tests {
    use headwater_tests::recording::{Happened, recording_of};

    use super::*;
    use crate::import::recording::locks;

    /// A thread that waits for a monitor, and who has it.
    const DUMP: &str = "\
\"waiter\" #20 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x0000000000000001 nid=7 waiting for monitor entry  [0x0000000000000009]
   java.lang.Thread.State: BLOCKED (on object monitor)
\tat a.b.C.enter(C.java:1)
\t- waiting to lock <0x0000000000000100> (a a.b.Guard)

\"owner\" #21 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x0000000000000002 nid=8 runnable  [0x0000000000000009]
   java.lang.Thread.State: RUNNABLE
\tat a.b.C.hold(C.java:2)
\t- locked <0x0000000000000100> (a a.b.Guard)
";

    fn joined(looks: &[[i64; 2]], waits: &[[i64; 2]]) -> Contention {
        let mut all = Looks::default();
        looks.iter().for_each(|look| all.add(&read::read(DUMP), Asked::Monitors, *look));
        let wait = |[from, to]: &[i64; 2]| Happened {
            kind: "jdk.JavaMonitorEnter",
            at_ns: *from,
            duration_ns: to - from,
            amount: ("none", 0),
            stack: &[["a/b/C", "enter", "()V"]],
            lock: Some(("monitorClass", "a/b/Guard", 16)),
        };
        let recorded = headwater_jfr::waits(&recording_of(7, &waits.iter().map(wait).collect::<Vec<_>>()));
        let recorded = recorded.expect("a recording");
        let (mut contention, places) = locks::contention(&recorded);
        all.join(&recorded, &places, &mut contention);
        contention
    }

    #[test]
    fn who_is_seen_to_hold_a_lock_is_told_of_the_wait_that_was_going_on() {
        let contention = joined(&[[20_000, 21_000], [60_000, 61_000]], &[[10_000, 50_000]]);
        let wait = &contention.locks[0].waits[0];
        let stack = vec!["a.b.C.hold(C.java:2)".to_owned()];
        assert_eq!(wait.holders, [Holder { thread: "owner".to_owned(), stack, seen: 1 }]);
        assert_eq!((wait.seen, contention.looks), (1, 2));
        // Seen once, it may have been too short to be told.
        assert_eq!(contention.unfinished, []);
    }

    /// A thread that waits for a lock; the JVM says who has it if it is asked.
    const PARKED: &str = "\
\"waiter\" #20 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x0000000000000001 nid=7 waiting on condition  [0x0000000000000009]
   java.lang.Thread.State: WAITING (parking)
\tat java.util.concurrent.locks.LockSupport.park(java.base@17/LockSupport.java:211)
\t- parking to wait for  <0x0000000000000100> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
\tat java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire(java.base@17/AbstractQueuedSynchronizer.java:715)
\tat a.b.C.enter(C.java:1)
";
    const OWNER: &str = "
\"owner\" #21 prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x0000000000000002 nid=8 runnable  [0x0000000000000009]
   java.lang.Thread.State: RUNNABLE
\tat a.b.C.hold(C.java:2)

   Locked ownable synchronizers:
\t- <0x0000000000000100> (a java.util.concurrent.locks.ReentrantLock$NonfairSync)
";

    #[test]
    fn looks_that_do_not_ask_who_has_a_lock_have_not_looked() {
        let mut all = Looks::default();
        all.add(&read::read(PARKED), Asked::Monitors, [11_000, 12_000]);
        all.add(&read::read(&format!("{PARKED}{OWNER}")), Asked::All, [20_000, 21_000]);
        all.add(&read::read(PARKED), Asked::Monitors, [30_000, 31_000]);
        let wait = Happened {
            kind: "jdk.ThreadPark",
            at_ns: 10_000,
            duration_ns: 40_000,
            amount: ("none", 0),
            stack: &[
                ["java/util/concurrent/locks/LockSupport", "park", "(Ljava/lang/Object;)V"],
                ["java/util/concurrent/locks/AbstractQueuedSynchronizer", "acquire", "(I)V"],
                ["a/b/C", "enter", "()V"],
            ],
            lock: Some(("parkedClass", "java/util/concurrent/locks/ReentrantLock$NonfairSync", 256)),
        };
        let recorded = headwater_jfr::waits(&recording_of(7, &[wait])).expect("a recording");
        let (mut contention, places) = locks::contention(&recorded);
        all.join(&recorded, &places, &mut contention);
        let wait = &contention.locks[0].waits[0];
        assert_eq!((wait.seen, wait.holders.iter().map(|holder| holder.seen).collect::<Vec<_>>()), (1, vec![1]));
    }

    #[test]
    fn what_was_waited_for_at_two_looks_and_has_no_end_is_unfinished() {
        let contention = joined(&[[1_000, 2_000], [8_000, 9_000]], &[]);
        let [unfinished] = &contention.unfinished[..] else { panic!("one: {contention:#?}") };
        assert_eq!((unfinished.thread.as_str(), unfinished.seen_ns), ("waiter", 6_000));
        assert_eq!(unfinished.lock, "a.b.Guard <0x100>");
        assert_eq!(unfinished.holder.as_ref().map(|holder| holder.thread.as_str()), Some("owner"));
    }
}
