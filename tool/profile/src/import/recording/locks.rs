//! Contended locks, by a recording's events.

use headwater_jfr::{EventKind, FrameIndex, LockIndex, Recorded, RecordedEvent, StackIndex};
use rustc_hash::FxHashMap;

use super::{CUT, VIRTUAL, display_name};
use crate::profile::{Blocked, ContendedLock, Contention, Leaver, LockKind, MethodName, WaitPlace};

/// What is above a lock's own code on the stack of who is parked for it.
const PARKING: [&str; 5] = [
    "jdk.internal.misc.Unsafe.",
    "sun.misc.Unsafe.",
    "java.util.concurrent.locks.LockSupport.",
    "java.lang.VirtualThread.",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.parkAndCheckInterrupt",
];
/// Where threads wait for locks. In a condition's or a queue's own code they wait for something else.
const ACQUIRING: [&str; 6] = [
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire",
    "java.util.concurrent.locks.AbstractQueuedSynchronizer.doAcquire",
    "java.util.concurrent.locks.AbstractQueuedLongSynchronizer.acquire",
    "java.util.concurrent.locks.AbstractQueuedLongSynchronizer.doAcquire",
    "java.util.concurrent.locks.StampedLock.acquire",
    "java.util.concurrent.locks.StampedLock.tryAcquire",
];
const LATCH: &str = "java.util.concurrent.CountDownLatch$Sync";

/// Where an event's wait is in a [`Contention`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitIndex {
    /// Of its locks.
    pub lock: usize,
    /// Of that one's places.
    pub wait: usize,
}

/// What a recording says of locks, unsorted; and of each event, where it is, if it is a wait for a lock.
pub fn contention(recorded: &Recorded) -> (Contention, Vec<Option<WaitIndex>>) {
    let name = |machine: &String| MethodName { machine: machine.clone(), display: display_name(machine) };
    let mut contention = Contention { methods: recorded.methods.iter().map(name).collect(), ..Contention::default() };
    let cut = contention.methods.len();
    contention.methods.push(MethodName { machine: CUT.to_owned(), display: CUT.to_owned() });
    let is_lock: Vec<bool> = recorded.stacks.iter().map(|stack| is_acquiring(recorded, &stack.frames)).collect();
    let mut locks: FxHashMap<LockIndex, usize> = FxHashMap::default();
    let mut waits: FxHashMap<(LockIndex, StackIndex), usize> = FxHashMap::default();
    let mut leavers: FxHashMap<(usize, usize, u32), Blocked> = FxHashMap::default();
    let mut place = |event: &RecordedEvent, contention: &mut Contention| {
        let kind = match event.kind {
            EventKind::MonitorEnter => LockKind::Monitor,
            EventKind::Park => LockKind::Concurrent,
            _ => return None,
        };
        let lock = event.lock.map(|lock| (lock, &recorded.locks[lock.0 as usize]));
        let is_lock = lock.is_some_and(|(_, lock)| !is_latch(&lock.class)) && is_lock[event.stack.0 as usize];
        let Some((index, lock)) = lock.filter(|_| kind == LockKind::Monitor || is_lock) else {
            if kind == LockKind::Concurrent {
                contention.other_parks.add(event.duration_ns);
            }
            return None;
        };
        let lock = *locks.entry(index).or_insert_with(|| {
            let waits = Vec::new();
            contention.locks.push(ContendedLock { kind, class: lock.class.clone(), address: lock.address, waits });
            contention.locks.len() - 1
        });
        let of_lock = &mut contention.locks[lock].waits;
        let wait = *waits.entry((index, event.stack)).or_insert_with(|| {
            let stack = &recorded.stacks[event.stack.0 as usize];
            let frames = stack.frames.iter().map(|frame| frame.0 as usize);
            let frames = stack.is_cut.then_some(cut).into_iter().chain(frames).collect();
            of_lock.push(WaitPlace { stack: frames, is_cut: stack.is_cut, ..WaitPlace::default() });
            of_lock.len() - 1
        });
        of_lock[wait].blocked.add(event.duration_ns);
        of_lock[wait].threads.insert(event.thread.0);
        if let Some(owner) = event.previous_owner {
            leavers.entry((lock, wait, owner.0)).or_default().add(event.duration_ns);
        }
        Some(WaitIndex { lock, wait })
    };
    let places = recorded.events.iter().map(|event| place(event, &mut contention)).collect();
    for ((lock, wait, owner), blocked) in leavers {
        let left_by = &mut contention.locks[lock].waits[wait].left_by;
        let thread = thread_name(recorded, owner);
        match left_by.iter_mut().find(|leaver| leaver.thread == thread) {
            Some(known) => known.blocked = known.blocked.and(blocked),
            None => left_by.push(Leaver { thread, blocked }),
        }
    }
    (contention, places)
}

/// A thread's name, as it is shown.
fn thread_name(recorded: &Recorded, thread: u32) -> String {
    let thread = &recorded.threads[thread as usize];
    match (thread.is_virtual, thread.name.as_str()) {
        (true, "") => VIRTUAL.to_owned(),
        (false, "") => format!("tid={}", thread.number),
        (_, name) => name.to_owned(),
    }
}

fn is_acquiring(recorded: &Recorded, frames: &[FrameIndex]) -> bool {
    is_acquired(frames.iter().rev().map(|frame| recorded.methods[frame.0 as usize].as_str()))
}

/// Whether who is parked waits for a lock, by the methods on the stack, the innermost first.
pub fn is_acquired<'a>(mut methods: impl Iterator<Item = &'a str>) -> bool {
    let above = methods.find(|name| !PARKING.iter().any(|parking| name.starts_with(parking)));
    above.is_some_and(|name| ACQUIRING.iter().any(|acquiring| name.starts_with(acquiring)))
}

/// Whether objects of a class are opened once, and held by nobody.
pub fn is_latch(class: &str) -> bool {
    class == LATCH
}

#[cfg(test)]
mod tests {
    use headwater_tests::recording::{Happened, recording_of};

    use super::*;

    const RUN: [&str; 3] = ["a/b/C", "run", "()V"];
    const PARK: [&str; 3] = ["java/util/concurrent/locks/LockSupport", "park", "(Ljava/lang/Object;)V"];
    const ACQUIRE: [&str; 3] = ["java/util/concurrent/locks/AbstractQueuedSynchronizer", "acquire", "(I)V"];
    const AWAIT: [&str; 3] = ["java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject", "await", "()V"];
    const SYNC: &str = "java/util/concurrent/locks/ReentrantLock$NonfairSync";

    fn contention_of(events: &[Happened<'_>]) -> (Contention, Vec<Option<WaitIndex>>) {
        let (mut contention, places) =
            contention(&headwater_jfr::waits(&recording_of(7, events)).expect("a recording"));
        contention.sort();
        (contention, places)
    }

    #[test]
    fn waits_are_of_a_lock_in_a_place_after_somebody() {
        let monitor = |duration_ns, address, stack| Happened {
            kind: "jdk.JavaMonitorEnter",
            at_ns: 5_000,
            duration_ns,
            amount: ("none", 0),
            stack,
            lock: Some(("monitorClass", "a/b/Guard", address)),
        };
        let events = [
            monitor(2_000, 16, &[RUN]),
            monitor(7_000, 16, &[RUN]),
            monitor(4_000, 32, &[RUN]),
            monitor(1_000, 16, &[ACQUIRE, RUN]),
        ];
        let (found, _) = contention_of(&events);
        let of = |lock: &ContendedLock| (lock.kind, lock.class.clone(), lock.address, lock.blocked());
        let blocked = |count, total_ns, longest_ns| Blocked { count, total_ns, longest_ns };
        let expected = [(16, blocked(3, 10_000, 7_000)), (32, blocked(1, 4_000, 4_000))];
        let expected = expected.map(|(address, of)| (LockKind::Monitor, "a.b.Guard".to_owned(), address, of));
        assert_eq!(found.locks.iter().map(of).collect::<Vec<_>>(), expected);
        let [first, second] = &found.locks[0].waits[..] else { panic!("two places: {found:#?}") };
        assert_eq!((first.blocked, second.blocked), (blocked(2, 9_000, 7_000), blocked(1, 1_000, 1_000)));
        let names: Vec<&str> = first.stack.iter().map(|method| found.methods[*method].machine.as_str()).collect();
        assert_eq!(names, ["a.b.C.run()V"]);
        assert_eq!(first.left_by, [Leaver { thread: "other".to_owned(), blocked: first.blocked }]);
    }

    #[test]
    fn who_is_parked_for_a_lock_waits_for_it_and_who_is_for_a_condition_does_not() {
        let park = |class, stack| Happened {
            kind: "jdk.ThreadPark",
            at_ns: 5_000,
            duration_ns: 3_000,
            amount: ("none", 0),
            stack,
            lock: Some(("parkedClass", class, 16)),
        };
        let condition = "java/util/concurrent/locks/AbstractQueuedSynchronizer$ConditionObject";
        let events = [
            park(SYNC, &[PARK, ACQUIRE, RUN]),
            park(condition, &[PARK, AWAIT, RUN]),
            park("java/util/concurrent/CountDownLatch$Sync", &[PARK, ACQUIRE, RUN]),
            park(SYNC, &[PARK, RUN]),
        ];
        let (found, places) = contention_of(&events);
        assert_eq!(places, [Some(WaitIndex { lock: 0, wait: 0 }), None, None, None]);
        assert_eq!((found.locks.len(), found.blocked().count, found.other_parks.count), (1, 1, 3));
        assert_eq!(found.locks[0].class, "java.util.concurrent.locks.ReentrantLock$NonfairSync");
    }

    #[test]
    fn whatever_a_recording_says_it_speaks_of_places_that_are_there() {
        let wait = Happened {
            kind: "jdk.JavaMonitorEnter",
            at_ns: 5_000,
            duration_ns: 3_000,
            amount: ("none", 0),
            stack: &[RUN],
            lock: Some(("monitorClass", "a/b/Guard", 16)),
        };
        let whole = recording_of(7, &[wait, Happened { kind: "jdk.ThreadPark", ..wait }]);
        for at in 68..whole.len() {
            for value in [0, 1, 0x7F, 0x80, 0xFF, whole[at] ^ 1] {
                let mut changed = whole.clone();
                changed[at] = value;
                if let Ok(recorded) = headwater_jfr::waits(&changed) {
                    let (found, places) = contention(&recorded);
                    assert!(places.len() == recorded.events.len() && found.holds(&Default::default()));
                }
            }
        }
    }
}
