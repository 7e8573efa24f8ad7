use std::collections::BTreeMap;
use std::sync::Arc;

use super::places::shares;
use super::*;
use crate::decode::Scheduled;
use crate::profile::NodeIndex;
use crate::threads::{Frame, Kind, Thread, read};
use headwater_jfr::{Allocated, FrameIndex, RecordedEvent, Stack, StackIndex, ThreadIndex};
use headwater_profile::build::jvms_own;

const SECOND_NS: i64 = 1_000_000_000;

fn reading(at_ns: i64, threads: &[(u32, u64)], process_ns: u64) -> Reading {
    let scheduled = |(thread, ran_ns): &(u32, u64)| (*thread, Scheduled { ran_ns: *ran_ns, queued_ns: 0 });
    Reading { at_ns, threads: threads.iter().map(scheduled).collect(), process_ns }
}

fn thread(name: &str, kind: Kind, os_id: u32) -> Thread {
    // Compilers have no stacks.
    let frame = Frame { method: "a.C.run".to_owned(), source: "C.java:1".to_owned() };
    let stack = if name.starts_with("C2") { Vec::new() } else { vec![frame] };
    Thread { os_id: Some(os_id), stack, ..Thread::named(name, kind) }
}

/// A recording of some samples, each with its time, thread and methods; the thread 0 is a virtual one.
fn recorded(events: &[(EventKind, i64, u32, &[u32], u64)]) -> Recorded {
    let mut recorded = Recorded {
        methods: ["a.C.run()V", "a.C.hot(I)V", "a.C.cold()V"].map(str::to_owned).to_vec(),
        ..Recorded::default()
    };
    for (kind, at_ns, number, frames, amount) in events {
        let thread = ThreadIndex(recorded.threads.len() as u32);
        let is_virtual = *number == 0;
        recorded.threads.push(headwater_jfr::Thread { number: *number, name: String::new(), is_virtual });
        let stack = StackIndex(recorded.stacks.len() as u32);
        let frames: Arc<[FrameIndex]> = frames.iter().map(|frame| FrameIndex(*frame)).collect();
        recorded.stacks.push(Stack { frames, is_cut: false });
        recorded.events.push(RecordedEvent {
            kind: *kind,
            at_ns: *at_ns,
            duration_ns: 0,
            amount: *amount,
            thread,
            stack,
            lock: None,
            previous_owner: None,
        });
    }
    recorded
}

fn samples(all: &[(i64, u32, &[u32])]) -> Recorded {
    let samples: Vec<_> =
        all.iter().map(|(at_ns, thread, frames)| (EventKind::ExecutionSample, *at_ns, *thread, *frames, 0)).collect();
    recorded(&samples)
}

fn sampled(readings: Vec<Reading>, recorded: Recorded, threads: Vec<Thread>) -> Sampled {
    let mut looks = Looks::default();
    looks.name(&threads);
    Sampled {
        duration: Duration::from_secs(2),
        every: Duration::from_millis(50),
        began_s: 0,
        others: 0,
        readings,
        recorded,
        looks,
        lines: Lines::Unknown,
        classes: Classes::Together,
        unrecorded: None,
        target_ended: false,
    }
}

fn profile(sampled: &Sampled) -> Profile {
    sampled.profile(&Jvm {
        pid: 4711,
        main: "shop.jar".to_owned(),
        arguments: String::new(),
        java_version: Some("25".to_owned()),
        uid: 0,
        vm_pid: 4711,
    })
}

/// What each method has itself of a metric, by its name.
fn own_of(profile: &Profile, id: &str) -> BTreeMap<String, u64> {
    let columns = profile.columns(&profile.merged);
    let metric = profile.metric(id).unwrap_or_else(|| panic!("{id}: {:?}", profile.metrics()));
    let mut all: BTreeMap<String, u64> = BTreeMap::new();
    for (index, node) in profile.merged.nodes.iter().enumerate() {
        let own = metric.at_node(&profile.merged, &columns, NodeIndex(index)).own;
        *all.entry(profile.method_of(node).display.clone()).or_default() += own;
    }
    all.retain(|_, own| *own != 0);
    all
}

fn named(expected: &[(&str, u64)]) -> BTreeMap<String, u64> {
    expected.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn a_threads_cpu_time_of_a_second_is_divided_among_its_samples_of_that_second() {
    let profile = profile(&sampled(
        vec![reading(0, &[(7, 100)], 1_000), reading(10, &[(7, 200)], 1_100), reading(20, &[(7, 1_100)], 2_000)],
        samples(&[(1, 7, &[0, 1]), (2, 7, &[0, 1]), (3, 7, &[0, 2]), (15, 7, &[0, 2])]),
        vec![thread("main", Kind::Java, 7)],
    ));
    // 100 for three samples; 900 for one.
    assert_eq!(own_of(&profile, "cpu"), named(&[("a.C.cold()", 34 + 900), ("a.C.hot(int)", 66)]));
    assert_eq!(own_of(&profile, "samples"), named(&[("a.C.cold()", 2), ("a.C.hot(int)", 2)]));
    assert!(profile.notes[0].contains("100 % of it placed in Java code by 4 samples"), "{:?}", profile.notes);
    assert_eq!(profile.threads.iter().map(|thread| &*thread.name).collect::<Vec<_>>(), ["main"]);
    assert!(profile.metric("wall").is_none(), "nobody has looked");
}

#[test]
fn what_the_recorder_had_no_room_for_is_said() {
    const S: i64 = 1_000_000_000;
    let note = |begins_ns| {
        let recorded = Recorded { begins_ns, ..samples(&[(9 * S, 7, &[0, 1])]) };
        let readings = vec![reading(0, &[(7, 100)], 1_000), reading(10 * S, &[(7, 200)], 1_100)];
        let profile = profile(&sampled(readings, recorded, vec![thread("main", Kind::Java, 7)]));
        profile.notes.into_iter().find(|note| note.contains("no samples and no collections"))
    };
    assert!(note(Some(8 * S)).is_some_and(|note| note.starts_with("of the first 8.000 s ")));
    assert_eq!([note(Some(-S)), note(None)], [None, None]);
}

#[test]
fn all_that_the_process_took_is_somewhere() {
    let profile = profile(&sampled(
        vec![
            reading(0, &[(7, 0), (8, 0), (9, 50), (10, 0)], 0),
            reading(10, &[(7, 101), (8, 40), (9, 150), (10, 30)], 321),
            reading(20, &[(7, 102), (8, 80), (9, 350), (11, 5)], 550),
        ],
        samples(&[(1, 7, &[0, 1]), (2, 7, &[0, 2])]),
        vec![
            thread("worker", Kind::Java, 7),
            thread("in native code", Kind::Java, 8),
            thread("C2 CompilerThread0", Kind::Java, 9),
        ],
    ));
    let expected = [
        // A second in which it was not seen is where it was before.
        ("a.C.hot(int)", 50),
        ("a.C.cold()", 52),
        ("[no Java code seen]", 80),
        ("[JVM: C2 CompilerThread]", 300),
        // 30 and 5 of threads that the dump does not know any more, and 33 of those that nobody has seen.
        ("[threads that have ended]", 68),
    ];
    assert_eq!(own_of(&profile, "cpu"), named(&expected));
    assert!(profile.notes.iter().any(|note| note.contains("no Java code was seen")), "{:?}", profile.notes);
}

#[test]
fn threads_that_ended_between_two_readings_have_what_nobody_else_took() {
    let mut sampled = sampled(
        vec![
            reading(0, &[(7, 0), (8, 0)], 0),
            reading(SECOND_NS, &[(7, 100), (8, 0)], 700_000_100),
            reading(2 * SECOND_NS, &[(7, 200)], 900_000_200),
        ],
        samples(&[(1, 20, &[0, 1]), (2, 21, &[0, 1]), (3, 22, &[0, 2]), (SECOND_NS + 1, 23, &[0, 1])]),
        vec![thread("main", Kind::Java, 7), thread("waits", Kind::Java, 8)],
    );
    sampled.every = Duration::from_millis(250);
    let profile = profile(&sampled);
    let hot_ns = 700_000_000 / 3 * 2 + 200_000_000;
    let cpu = own_of(&profile, "cpu");
    assert!(cpu["a.C.hot(int)"].abs_diff(hot_ns) < 2 && cpu["a.C.cold()"].abs_diff(700_000_000 / 3) < 2, "{cpu:?}");
    // What was taken before by others is not theirs.
    let later = self::sampled(
        vec![reading(0, &[(7, 0)], 0), reading(10, &[(7, 0)], 500), reading(20, &[(7, 0)], 600)],
        samples(&[(15, 21, &[0, 1])]),
        vec![thread("main", Kind::Java, 7)],
    );
    let expected = [("a.C.hot(int)", 100), ("[threads that have ended]", 500)];
    assert_eq!(own_of(&self::profile(&later), "cpu"), named(&expected));
    // It was seen running, for as long as it ran, and has waited for nothing.
    let mut looked = waiting(samples(&[(1, 9, &[0, 1])]));
    looked.readings[1].process_ns += 50_000_000;
    let seen = ("handler", 9, RUNS.0, RUNS.1, HOT);
    looked.looks.add(&dump(&[seen]), 500);
    let profile = self::profile(&looked);
    assert_eq!(own_of(&profile, "other-waits"), named(&[]));
    assert_eq!(own_of(&profile, "cpu")["a.C.hot(int)"], 400_000_000 + 50_000_000);
}

#[test]
fn what_nobody_did_is_known_to_be_nothing() {
    let profile = profile(&waiting(samples(&[(1, 7, &[0, 1])])));
    for id in ["socket", "file", "waited", "slept", "other-waits"] {
        assert_eq!(own_of(&profile, id), named(&[]), "{id}");
    }
}

#[test]
fn what_carriers_took_is_their_virtual_threads() {
    let carrier = thread("ForkJoinPool-1-worker-1", Kind::Java, 5);
    let profile = profile(&sampled(
        vec![reading(0, &[(5, 0)], 0), reading(10, &[(5, 90)], 90)],
        samples(&[(1, 0, &[0, 1]), (2, 0, &[0, 1]), (3, 0, &[0, 2])]),
        vec![carrier],
    ));
    assert_eq!(own_of(&profile, "cpu"), named(&[("a.C.hot(int)", 60), ("a.C.cold()", 30)]));
}

#[test]
fn what_carriers_took_is_divided_among_all_that_was_seen_on_them() {
    // The first was seen in the scheduler once, and runs virtual threads all the time.
    let mut sampled = sampled(
        vec![reading(0, &[(5, 0), (6, 0), (7, 0)], 0), reading(10, &[(5, 60), (6, 20), (7, 9)], 89)],
        samples(&[(1, 0, &[0, 1]), (2, 0, &[0, 1]), (3, 0, &[0, 1]), (4, 5, &[0, 2]), (5, 7, &[0, 2])]),
        vec![thread("ForkJoinPool-1-worker-1", Kind::Java, 7)],
    );
    // The program's own pool was there before.
    let carrier = |number, mount| Thread {
        java_id: Some(u64::from(number)),
        mount,
        ..thread(&format!("ForkJoinPool-2-worker-{number}"), Kind::Java, number)
    };
    sampled.looks.name(&[carrier(5, Some(99)), carrier(6, None)]);
    sampled.looks.name(&[carrier(5, None), carrier(6, None)]);
    let profile = profile(&sampled);
    assert_eq!(own_of(&profile, "cpu"), named(&[("a.C.hot(int)", 60), ("a.C.cold()", 20 + 9)]));
}

#[test]
fn what_is_far_too_much_for_a_threads_samples_has_no_place() {
    let second = |all: &[(u32, u64)]| {
        let ns: Vec<(u32, u64)> = all.iter().map(|(thread, ms)| (*thread, ms * 1_000_000)).collect();
        reading(SECOND_NS, &ns, ns.iter().map(|(_, ns)| ns).sum())
    };
    let often: Vec<(i64, u32, &[u32])> = (0..30).map(|at| (at, 7, &[0, 1][..])).collect();
    let mut sampled = sampled(
        vec![reading(0, &[(7, 0), (8, 0), (9, 0)], 0), second(&[(7, 600), (8, 900), (9, 300)])],
        samples(&[&often[..], &[(1, 8, &[0, 2])]].concat()),
        [("hot", 7), ("cold", 8), ("waiting", 9)].map(|(name, number)| thread(name, Kind::Java, number)).into(),
    );
    sampled.every = Duration::from_millis(10);
    for at_ns in 0..20 {
        sampled.looks.add(&dump(&[("waiting", 9, WANTS.0, WANTS.1, ENTER)]), at_ns);
    }
    // 31 samples for 1.8 s: one stands for 160 ms at most; and a look, of which there are 20 in 2 s, for 1.6 s.
    let profile = profile(&sampled);
    let expected = [
        ("a.C.hot(int)", 600_000_000),
        ("a.C.cold()", 160_000_000),
        ("a.C.enter", 300_000_000),
        ("[place not known]", 740_000_000),
    ];
    assert_eq!(own_of(&profile, "cpu"), named(&expected));
    assert!(profile.notes.iter().any(|note| note.contains("far too rarely")), "{:?}", profile.notes);
    assert!(profile.notes[0].contains("59 % of it placed in Java code by 31 samples"), "{:?}", profile.notes);
}

/// What looks see of threads: the lines of a dump behind each name.
fn dump(threads: &[(&str, u32, &str, &str, &[&str])]) -> crate::threads::Dump {
    let thread = |(name, number, doing, state, stack): &(&str, u32, &str, &str, &[&str])| {
        let lines: String = stack.iter().map(|line| format!("\t{line}\n")).collect();
        format!(
            "\"{name}\" #{number} prio=5 os_prio=0 cpu=1.00ms elapsed=9.00s tid=0x{number:016x} nid={number} {doing}  [0x9]\n   \
             java.lang.Thread.State: {state}\n{lines}\n"
        )
    };
    read::read(&threads.iter().map(thread).collect::<String>())
}

const WANTS: (&str, &str) = ("waiting for monitor entry", "BLOCKED (on object monitor)");
const ENTER: &[&str] =
    &["at a.C.enter(C.java:7)", "- waiting to lock <0x0000000000000100> (a a.Guard)", "at a.C.run(C.java:3)"];
const RUNS: (&str, &str) = ("runnable", "RUNNABLE");
const HOT: &[&str] = &["at a.C.hot(C.java:9)", "at a.C.run(C.java:3)"];

/// A thread that runs for 0.4 s, stands in line for 0.1 s, and is seen waiting three of four times, and one without work.
fn waiting(recorded: Recorded) -> Sampled {
    let readings = vec![reading(0, &[(7, 0), (8, 0)], 0), {
        let mut last = reading(SECOND_NS, &[(7, 400_000_000), (8, 0)], 400_000_000);
        last.threads.entry(7).or_default().queued_ns = 100_000_000;
        last
    }];
    let mut sampled = sampled(readings, recorded, Vec::new());
    let idle: &[&str] = &["at java.util.concurrent.locks.LockSupport.park(LockSupport.java:1)"];
    for (at_ns, ((doing, state), stack)) in
        [(100, (WANTS, ENTER)), (200, (RUNS, HOT)), (300, (WANTS, ENTER)), (400, (WANTS, ENTER))]
    {
        let pool = ("pool", 8, "waiting on condition", "WAITING (parking)", idle);
        sampled.looks.add(&dump(&[("worker", 7, doing, state, stack), pool]), at_ns);
    }
    sampled
}

#[test]
fn a_threads_time_is_divided_by_what_it_did() {
    let profile = profile(&waiting(samples(&[(1, 7, &[0, 1]), (2, 7, &[0, 2])])));
    assert_eq!(own_of(&profile, "cpu"), named(&[("a.C.hot(int)", 200_000_000), ("a.C.cold()", 200_000_000)]));
    assert_eq!(own_of(&profile, "ready"), named(&[("a.C.hot(int)", 50_000_000), ("a.C.cold()", 50_000_000)]));
    assert_eq!(own_of(&profile, "blocked"), named(&[("a.C.enter", 500_000_000)]));
    let pool = "java.util.concurrent.locks.LockSupport.park";
    assert_eq!(own_of(&profile, "idle"), named(&[(pool, 1_000_000_000)]));
    let whole: u64 = own_of(&profile, "wall").values().sum();
    assert_eq!(whole, 1_000_000_000, "who waits for work is not at work");
    let note = profile.notes.iter().find(|note| note.contains("at work")).expect("a note");
    assert!(note.contains("running 400.0 ms, ready 100.0 ms, blocked 500.0 ms; and 1.000 s of waiting"), "{note}");
    let note = profile.notes.iter().find(|note| note.contains("longest waits")).expect("a note");
    assert!(note.contains("blocked 500.0 ms in a.C.enter") && note.contains("--metric blocked"), "{note}");
    // Both trees are one: `run` is the same method to the recorder and to looks.
    let roots: Vec<&str> = profile
        .merged
        .nodes
        .iter()
        .filter(|node| node.parent.is_none())
        .map(|node| &*profile.method_of(node).display)
        .collect();
    assert_eq!(roots, ["a.C.run()", pool]);
}

#[test]
fn without_the_recorder_threads_run_where_they_are_seen_running() {
    let mut sampled = waiting(Recorded::default());
    sampled.unrecorded = Some("--recorder off".to_owned());
    let profile = profile(&sampled);
    assert_eq!(own_of(&profile, "cpu"), named(&[("a.C.hot", 400_000_000)]));
    assert_eq!(own_of(&profile, "samples"), named(&[("a.C.hot", 1)]));
    assert!(profile.notes[1].contains("safepoints alone"), "{:?}", profile.notes);
}

#[test]
fn lines_are_places_of_their_own() {
    let mut recorded = samples(&[(1, 7, &[0, 1]), (2, 7, &[0, 2])]);
    // The second is another line of the first.
    recorded.methods[2] = recorded.methods[1].clone();
    recorded.lines = vec![3, 9, 12];
    let mut sampled = waiting(recorded);
    sampled.lines = Lines::Known;
    let profile = profile(&sampled);
    let expected = [("a.C.hot(int):9", 200_000_000), ("a.C.hot(int):12", 200_000_000)];
    assert_eq!(own_of(&profile, "cpu"), named(&expected));
    assert_eq!(own_of(&profile, "blocked"), named(&[("a.C.enter:7", 500_000_000)]));
}

#[test]
fn allocated_bytes_are_the_threads_own_and_samples_say_where() {
    let allocation = |at_ns, frames, weight| (EventKind::AllocationSample, at_ns, 7, frames, weight);
    let mut recorded = recorded(&[
        // The first one stands for all that there ever was.
        allocation(1, &[0, 1][..], 1_000_000),
        allocation(2, &[0, 1], 100),
        allocation(3, &[0, 2], 300),
        (EventKind::ExecutionSample, 4, 8, &[0, 2], 0),
    ]);
    let told = |at_ns, thread: u32, bytes| Allocated { at_ns, thread: ThreadIndex(thread), bytes };
    // Of the second thread samples tell nothing: it allocates where it runs. The first one has another name at the end.
    recorded.threads[1].name = "renamed".to_owned();
    recorded.allocated = vec![told(0, 0, 5_000), told(0, 3, 10), told(SECOND_NS, 1, 5_600), told(SECOND_NS, 3, 17)];
    let profile = profile(&sampled(
        vec![reading(0, &[(7, 0), (8, 0)], 0), reading(SECOND_NS, &[(7, 1), (8, 1)], 2)],
        recorded,
        vec![thread("worker", Kind::Java, 7), thread("other", Kind::Java, 8)],
    ));
    assert_eq!(own_of(&profile, "alloc"), named(&[("a.C.hot(int)", 300), ("a.C.cold()", 300 + 7)]));
}

#[test]
fn names_of_many_threads_are_one() {
    for (name, expected) in [
        ("GC Thread#3", "[JVM: GC Thread]"),
        ("C2 CompilerThread0", "[JVM: C2 CompilerThread]"),
        ("VM Thread", "[JVM: VM Thread]"),
    ] {
        assert_eq!(jvms_own(name), expected);
    }
    assert_eq!(shares(10, 3).collect::<Vec<_>>(), [3, 3, 4]);
    assert_eq!(shares(10, 0).count(), 0);
}
