//! Dumps of real JVMs, as HotSpot wrote them: their programs are `tests/targets/Stuck.java` with the scenarios that the names tell.

use super::blockers::{Blocker, End, blockers};
use super::deadlocks::{Deadlock, deadlocks};
use super::doing::doing;
use super::groups::{family, groups};
use super::waits::{Certainty, Supertypes, WaitGraph, uninitialised};
use super::*;

const JDK_11: &str = include_str!("tests/jdk11.txt");
const JDK_17: &str = include_str!("tests/jdk17.txt");
const JDK_21: (&str, &str) = (include_str!("tests/jdk21.txt"), include_str!("tests/jdk21.json"));
const JDK_25: (&str, &str) = (include_str!("tests/jdk25.txt"), include_str!("tests/jdk25.json"));
const HOSTILE: &str = include_str!("tests/hostile.txt");

fn with_virtual((text, json): (&str, &str)) -> Dump {
    let mut dump = read::read(text);
    virtual_threads::add(&mut dump, json.as_bytes()).expect("the JVM's JSON");
    dump
}

fn thread<'a>(dump: &'a Dump, name: &str) -> &'a Thread {
    dump.threads.iter().find(|thread| thread.name == name).unwrap_or_else(|| panic!("{name}"))
}

/// The deadlocks of a dump: the names in each, and whether it is certain.
fn circles(dump: &Dump, supertypes: &Supertypes) -> Vec<(Vec<String>, bool)> {
    let found = deadlocks(&WaitGraph::of(dump, supertypes));
    let names = |deadlock: &Deadlock| deadlock.waits.iter().map(|edge| dump[edge.from].name.clone()).collect();
    let mut circles: Vec<(Vec<String>, bool)> =
        found.iter().map(|deadlock| (names(deadlock), deadlock.certainty == Certainty::Certain)).collect();
    circles.sort();
    circles
}

fn circle(names: &[&str], certain: bool) -> (Vec<String>, bool) {
    (names.iter().map(|name| (*name).to_owned()).collect(), certain)
}

fn ends(dump: &Dump) -> (Vec<Blocker>, Vec<Deadlock>) {
    let graph = WaitGraph::of(dump, &Supertypes::new());
    let deadlocks = deadlocks(&graph);
    (blockers(&graph, &deadlocks), deadlocks)
}

#[test]
fn a_deadlock_of_threads_without_names_is_no_panic() {
    let of = |lines: &str| {
        read::read(&format!("Found one Java-level deadlock:\n=============================\n{lines}\n")).found
    };
    assert_eq!(of("\":"), Vec::<Vec<FoundWait>>::new());
    assert_eq!(of("\"\":\n  waiting to lock monitor 0x1 (object 0x2, a X),")[0][0].name, "");
}

#[test]
fn every_thread_of_every_version_is_read_and_nothing_is_left_over() {
    for (text, vm, first) in [
        (JDK_11, "OpenJDK 64-Bit Server VM (11.0.13+8 mixed mode)", 1),
        (JDK_17, "OpenJDK 64-Bit Server VM (17.0.15", 1),
        (JDK_21.0, "OpenJDK 64-Bit Server VM (21.0.8", 1),
        (JDK_25.0, "OpenJDK 64-Bit Server VM (25.0.3", 3),
    ] {
        let dump = read::read(text);
        let count = |kind| dump.threads.iter().filter(|thread| thread.kind == kind).count();
        assert!(dump.vm.starts_with(vm), "{}", dump.vm);
        let declared = text.split_once(" length=").expect("the JVM's list").1.split(',').next().expect("a number");
        assert_eq!((count(Kind::Java).to_string().as_str(), count(Kind::Vm)), (declared, 7), "{vm}");
        assert!(dump.is_whole && dump.unread.is_empty(), "{vm}: {:?}", dump.unread);
        let main = thread(&dump, "main");
        assert_eq!((main.java_id, main.daemon, main.state), (Some(first), false, State::Runnable), "{vm}");
        assert!(main.os_id.is_some() && main.cpu_ns.is_some_and(|ns| ns > 1_000_000), "{main:?}");
        assert_eq!(main.stack.last().map(ToString::to_string).as_deref(), Some("Stuck.main(Stuck.java:435)"), "{vm}");
        let compiler = thread(&dump, "C2 CompilerThread0");
        assert_eq!((compiler.notes.as_slice(), compiler.stack.len()), (["No compile task".to_owned()].as_slice(), 0));
    }
}

#[test]
fn threads_that_have_just_ended_are_listed_and_are_none() {
    let ended =
        "}\n_to_delete_list=0x00007fad781edc30, length=2, elements={\n0x00007fad7802aad0, 0x00007fad781687d0\n}\n\n";
    let (text, plain) = (JDK_17.replacen("}\n\n", ended, 1), read::read(JDK_17));
    assert_ne!(text, JDK_17);
    let dump = read::read(&text);
    assert_eq!((dump.unread.as_slice(), dump.threads.len()), (&[][..], plain.threads.len()));
}

#[test]
fn deadlocks_of_locks_and_of_both_kinds_are_found() {
    let locks = circle(&["lock-0", "lock-1"], true);
    let mixed = circle(&["mixed-0", "mixed-1"], true);
    // JDK 11 does not say which class is waited for.
    let left = circle(&["left", "right"], false);
    assert_eq!(circles(&read::read(JDK_11), &Supertypes::new()), [left, locks.clone(), mixed.clone()]);

    let dump = read::read(JDK_17);
    let expected = [
        circle(&["initialiser", "holder"], true),
        circle(&["left", "right"], true),
        locks,
        mixed,
        circle(&["three-0", "three-1", "three-2"], true),
    ];
    assert_eq!(circles(&dump, &Supertypes::new()), expected);
}

/// A dump of threads of which each has a state, what it waits for in its innermost frame, and the monitors that its callers seem to have.
fn of_threads(threads: &[(&str, &str, &str, &[u64])]) -> Dump {
    let mut text = "Full thread dump OpenJDK 64-Bit Server VM (17.0.15 mixed mode):\n\n".to_owned();
    for (at, (name, state, waits, locked)) in threads.iter().enumerate() {
        text += &format!(
            "\"{name}\" #{} prio=5 os_prio=0 cpu=1.0ms elapsed=1.0s tid=0x{at}f nid=0x{at}f in Object.wait() [0x1]\n",
            at + 20
        );
        text += &format!("   java.lang.Thread.State: {state}\n\tat A.inner(A.java:1)\n");
        text += &if waits.is_empty() { String::new() } else { format!("\t- {waits}\n") };
        for (line, lock) in locked.iter().enumerate() {
            text += &format!("\tat A.outer{line}(A.java:9)\n\t- locked <0x{lock}> (a A)\n");
        }
        text.push('\n');
    }
    read::read(&(text + "JNI global refs: 1, weak refs: 0\n\n"))
}

#[test]
fn who_waits_at_what_the_jvm_cannot_name_is_not_taken_for_its_owner() {
    const NAMELESS: &str = "waiting on <no object reference available>";
    let enter = |lock: u64| format!("waiting to lock <0x{lock}> (a A)");
    let dump = of_threads(&[
        // Waits at 1, which the owner has.
        ("waiter", "WAITING (on object monitor)", NAMELESS, &[1]),
        ("owner", "TIMED_WAITING (sleeping)", "", &[1]),
        ("wants", "BLOCKED (on object monitor)", &enter(1), &[]),
        // Has 2, and is to enter 3 again, which the other has, who wants 2.
        ("again", "BLOCKED (on object monitor)", NAMELESS, &[3, 2]),
        ("other", "BLOCKED (on object monitor)", &enter(2), &[3]),
        // Has either 4 or 5.
        ("either", "WAITING (on object monitor)", NAMELESS, &[4, 5]),
        ("wants 5", "BLOCKED (on object monitor)", &enter(5), &[]),
    ]);
    let graph = WaitGraph::of(&dump, &Supertypes::new());
    let blocker = |name: &str| {
        let at = dump.threads.iter().position(|thread| thread.name == name).expect("it is there");
        graph.blocker(ThreadIndex(at)).map(|edge| (dump[edge.to].name.as_str(), edge.certainty))
    };
    assert_eq!(blocker("wants"), Some(("owner", Certainty::Certain)));
    assert_eq!(blocker("waiter"), None, "it has not been notified");
    assert_eq!(blocker("wants 5"), Some(("either", Certainty::Likely)));
    assert_eq!(circles(&dump, &Supertypes::new()), [circle(&["again", "other"], true)]);
    let owned: Vec<usize> = dump.threads.iter().map(|thread| thread.owned.len()).collect();
    assert_eq!(owned, [0, 1, 0, 1, 1, 2, 0]);
}

#[test]
fn a_class_whose_supertypes_are_initialised_first_has_a_likely_initialiser() {
    let dump = read::read(JDK_17);
    assert_eq!(uninitialised(&dump), ["Stuck$Derived"]);
    let of = |supertypes: &[&str]| {
        let names = supertypes.iter().map(|name| (*name).to_owned()).collect();
        circles(&dump, &Supertypes::from([("Stuck$Derived".to_owned(), names)]))
    };
    let expected = circle(&["base", "derived"], false);
    assert!(of(&["java.lang.Object", "Stuck$First", "Stuck$Base"]).contains(&expected));
    assert!(!of(&["java.lang.Object"]).contains(&expected), "nobody is at a supertype");
}

#[test]
fn virtual_threads_monitors_are_held_and_waited_for() {
    let dump = with_virtual(JDK_25);
    let expected = [
        circle(&["left", "right"], true),
        circle(&["monitor-0", "monitor-1"], true),
        circle(&["vmonitor-0", "vmonitor-1"], true),
    ];
    assert_eq!(circles(&dump, &Supertypes::new()), expected);
    assert_eq!(
        dump.virtual_threads,
        Some(24),
        "two deadlocked ones, a mixed one, twenty that are parked, a pinned one"
    );
    // The platform thread waits for what the virtual one holds, by address there and by identity here.
    let graph = WaitGraph::of(&dump, &Supertypes::new());
    let mixed = dump.threads.iter().position(|thread| thread.name == "vmixed-0").expect("there");
    let edge = graph.blocker(ThreadIndex(mixed)).expect("it waits");
    assert_eq!((dump[edge.to].name.as_str(), dump[edge.to].kind), ("vmixed-1", Kind::Virtual));
    assert!(matches!(dump.locks[edge.lock.expect("a monitor")].key, LockKey::Address(_)));
}

#[test]
fn parked_and_pinned_virtual_threads_are_told_apart() {
    for (jdk, parked) in [(JDK_21, 22), (JDK_25, 23)] {
        let dump = with_virtual(jdk);
        let count = |is: fn(&Thread) -> bool| dump.threads.iter().filter(|thread| is(thread)).count();
        assert_eq!((count(Thread::is_pinned), count(Thread::is_parked)), (1, parked), "{}", dump.vm);
        assert!(thread(&dump, "pinned").is_pinned(), "{}", dump.vm);
        let groups = groups(&dump);
        let twenty = groups.iter().find(|group| group.threads.len() == 20).expect("the parked ones have one stack");
        assert_eq!(family(&dump[twenty.threads[0]].name), "parked");
    }
    // On 21 it says so of carriers only.
    assert!(thread(&with_virtual(JDK_21), "pinned").mount.is_some());
    // On 25 the text has the stack of the one on a carrier, with a monitor.
    let dump = with_virtual(JDK_25);
    let pinned = thread(&dump, "pinned");
    assert_eq!((pinned.owned.len(), pinned.mount.is_some()), (1, true));
    assert!(dump.threads.iter().any(|thread| thread.mount == pinned.java_id && thread.kind == Kind::Java));
}

/// A virtual thread that another one keeps from a class, as both dumps tell of it: of which carrier, in which state, and where that it waits.
fn initialising((of_carrier, of_virtual): (&str, &str), state: &str) -> Dump {
    let text = format!(
        "\"ForkJoinPool-1-worker-4\" #29 [7] daemon prio=5 os_prio=0 cpu=0.26ms elapsed=4.02s tid=0x000000000000001f  [0x9]\n   \
         Carrying virtual thread #32\n\tat jdk.internal.vm.Continuation.run(java.base@25/Continuation.java:251)\n{of_carrier}\n{of_virtual}\n\
         \"initialiser\" #34 prio=5 os_prio=0 cpu=0.10ms elapsed=3.42s tid=0x000000000000002f nid=8 runnable  [0x9]\n   \
         java.lang.Thread.State: RUNNABLE\n\tat A$Slow.<clinit>(A.java:1)\n\n"
    );
    let json = format!(
        r#"{{"threadDump":{{"threadContainers":[{{"threads":[{{"tid":"32","name":"waits",{state}
        "stack":["A.run(A.java:14)","java.base\/java.lang.VirtualThread.run(VirtualThread.java:460)"]}}]}}]}}}}"#
    );
    with_virtual((&text, &json))
}

#[test]
fn who_waits_for_a_class_keeps_its_carrier() {
    const WAITS: &str = "\t- waiting on the Class initialization monitor for A$Slow\n";
    let mounted = |waits| format!("   Mounted virtual thread #32\n\tat A.run(A.java:14)\n{waits}");
    let runnable = r#""virtual":true,"state":"RUNNABLE","carrier":"29","#;
    for (dump, is_waiting) in [
        (initialising(("", &mounted(WAITS)), runnable), true),
        (initialising(("", &mounted("")), runnable), false),
        // It has left its carrier since.
        (initialising(("", &mounted("")), r#""virtual":true,"state":"WAITING","#), false),
        // JDK 21 says it of the carrier, and no state.
        (initialising((WAITS, ""), ""), true),
    ] {
        let waits = thread(&dump, "waits");
        assert_eq!((waits.mount, waits.is_pinned(), waits.is_parked()), (Some(29), is_waiting, false), "{dump:#?}");
        let graph = WaitGraph::of(&dump, &Supertypes::new());
        let edges: Vec<_> = graph.edges().map(|edge| [&*dump[edge.from].name, &dump[edge.to].name]).collect();
        assert_eq!(edges, if is_waiting { vec![["waits", "initialiser"]] } else { Vec::new() }, "{dump:#?}");
    }
}

#[test]
fn seventeen_wait_for_one_that_waits_for_a_socket() {
    for text in [JDK_11, JDK_17] {
        let dump = read::read(text);
        let (blockers, deadlocks) = ends(&dump);
        let first = &blockers[0];
        let End::Thread(owner) = first.end else { panic!("{first:?}") };
        assert_eq!((dump[owner].name.as_str(), first.waiting.len()), ("owner", 17));
        assert_eq!(doing(&dump, &dump[owner]), "waits for a socket");
        assert_eq!(first.wanted.iter().map(|wanted| wanted.waiting).collect::<Vec<_>>(), [17]);
        let lock = first.wanted[0].lock.expect("the JVM says which");
        assert!(dump.locks[lock].class.ends_with("ReentrantLock$NonfairSync"));
        assert!(blockers[1..].is_empty() || deadlocks.len() > 3, "{blockers:#?}");
        let pool = groups(&dump).into_iter().find(|group| group.threads.len() == 17).expect("they have one stack");
        assert!(pool.threads.iter().all(|thread| first.waiting.contains(thread)));
    }
}

#[test]
fn what_is_waited_at_is_not_held() {
    let dump = read::read(JDK_17);
    let finalizer = thread(&dump, "Finalizer");
    assert_eq!(finalizer.wait.map(|wait| wait.kind), Some(WaitKind::Notification));
    assert!(finalizer.owned.is_empty(), "its monitor is free while it waits");
    assert_eq!(doing(&dump, finalizer), "waits for references");
    let old = read::read(JDK_11);
    let finalizer = thread(&old, "Finalizer");
    assert_eq!(finalizer.wait.map(|wait| wait.kind), Some(WaitKind::Notification), "JDK 11 says that it re-locks");
    assert!(finalizer.owned.is_empty());
}

#[test]
fn a_name_that_looks_like_a_thread_is_a_name() {
    let dump = read::read(HOSTILE);
    assert_eq!(dump.unread, [""; 0]);
    let hostile: Vec<&Thread> = dump.threads.iter().filter(|thread| thread.name.contains("tid=0x1")).collect();
    assert_eq!(hostile.len(), 1);
    let name =
        "a\n\"b\" #7 daemon prio=5 tid=0x1 nid=0x1 runnable\n\tat evil.Spoof.run(Spoof.java:1)\n\u{1b}[2J\u{202e}";
    assert_eq!((hostile[0].name.as_str(), hostile[0].state), (name, State::Waiting));
    assert!(!dump.threads.iter().any(|thread| thread.stack.iter().any(|frame| frame.method.starts_with("evil"))));
}

#[test]
fn a_deadlock_that_only_the_jvm_has_seen_is_one() {
    // Without `-l` the JVM lists no owners of `java.util.concurrent` locks, and finds these deadlocks all the same.
    let kept: Vec<&str> = JDK_17
        .split('\n')
        .filter(|line| !(line.starts_with("\t- <0x") || line.contains("Locked ownable") || *line == "\t- None"))
        .collect();
    let dump = read::read(&kept.join("\n"));
    let found = circles(&dump, &Supertypes::new());
    assert!(found.contains(&circle(&["lock-0", "lock-1"], true)), "{found:?}");
    assert!(found.contains(&circle(&["mixed-0", "mixed-1"], true)), "{found:?}");
}

#[test]
fn any_piece_of_a_dump_is_read_without_harm() {
    let text = JDK_17;
    for end in (0..text.len()).step_by(997).filter(|end| text.is_char_boundary(*end)) {
        let cut = read::read(&text[..end]);
        let tail = read::read(&text[end..]);
        assert!(!cut.is_whole || text[..end].contains("JNI global"), "{end}");
        for dump in [cut, tail] {
            groups(&dump);
            ends(&dump);
        }
    }
    assert_eq!(read::read("Something else\n\tat all\n").unread, ["Something else", "\tat all"]);
    let unknown = read::read(&JDK_17.replace("   Locked ownable synchronizers:", "   Something new: 7"));
    assert!(thread(&unknown, "main").notes.contains(&"Something new: 7".to_owned()), "unknown lines are kept");
}

#[test]
fn ten_thousand_threads_take_no_longer_each() {
    // In a chain: what walks every chain to its end would take a thousand times as long.
    let mut dump = Dump::default();
    for at in 0..10_000_u64 {
        let own = dump.locks.of(LockKey::Address(at), "java.lang.Object");
        let next = dump.locks.of(LockKey::Address(at + 1), "java.lang.Object");
        let mut thread = Thread::named(format!("t-{at}"), Kind::Java);
        thread.owned.push(Owned { lock: own, frame: Some(0) });
        thread.wait = Some(Wait { kind: WaitKind::Enter, lock: Some(next), frame: 0 });
        dump.threads.push(thread);
    }
    let (blockers, deadlocks) = ends(&dump);
    assert!(deadlocks.is_empty());
    assert_eq!((blockers.len(), blockers[0].waiting.len()), (1, 9_999));
    assert_eq!(blockers[0].end, End::Thread(ThreadIndex(9_999)));
    // And in one circle.
    let first = dump.locks.find(&LockKey::Address(0));
    dump.threads[9_999].wait = Some(Wait { kind: WaitKind::Enter, lock: first, frame: 0 });
    let (blockers, deadlocks) = ends(&dump);
    assert_eq!((deadlocks.len(), deadlocks[0].waits.len(), blockers.len()), (1, 10_000, 0));
}

#[test]
fn names_with_numbers_are_of_a_family() {
    for (name, stem) in [
        ("GC Thread#3", "GC Thread"),
        ("pool-1-thread-17", "pool-1-thread"),
        ("main", "main"),
        ("7", "7"),
        ("a7b", "a7b"),
    ] {
        assert_eq!(family(name), stem);
    }
}
