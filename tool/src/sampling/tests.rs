use super::*;
use crate::profile::NodeIndex;
use crate::threads::Frame;
use headwater_jfr::FrameIndex;

fn reading(at_ns: i64, threads: &[(u32, u64)], process_ns: u64) -> Reading {
    Reading { at_ns, threads: threads.iter().copied().collect(), process_ns }
}

fn thread(name: &str, kind: Kind, os_id: u32) -> Thread {
    // Compilers have no stacks.
    let frame = Frame { method: "a.C.run".to_owned(), source: "C.java:1".to_owned() };
    let stack = if name.starts_with("C2") { Vec::new() } else { vec![frame] };
    Thread { os_id: Some(os_id), stack, ..Thread::named(name, kind) }
}

fn sampled(readings: Vec<Reading>, stacks: &[(i64, u32, &[u32])], threads: Vec<Thread>) -> Profile {
    let stacks = stacks.iter().map(|(at_ns, thread, frames)| Sample {
        at_ns: *at_ns,
        thread: *thread,
        frames: frames.iter().map(|frame| FrameIndex(*frame)).collect(),
        is_cut: false,
    });
    let methods = ["a.C.run()V", "a.C.hot(I)V", "a.C.cold()V"].map(str::to_owned).to_vec();
    let samples = Samples { methods, stacks: stacks.collect() };
    let jvm = Jvm {
        pid: 4711,
        main: "shop.jar".to_owned(),
        arguments: String::new(),
        java_version: Some("25".to_owned()),
        uid: 0,
        vm_pid: 4711,
    };
    Sampled { duration: Duration::from_secs(2), others: 0, readings, samples, threads }.profile(&jvm)
}

/// CPU time and samples of each method itself, by its name.
fn own(profile: &Profile) -> BTreeMap<String, (u64, u64)> {
    let columns = profile.columns(&profile.merged);
    let of =
        |id: &str, node: usize| profile.metric(id).expect(id).at_node(&profile.merged, &columns, NodeIndex(node)).own;
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (index, node) in profile.merged.nodes.iter().enumerate() {
        let sums = all.entry(profile.method_of(node).display.clone()).or_default();
        sums.0 += of("cpu", index);
        sums.1 += of("samples", index);
    }
    all.retain(|_, sums| *sums != (0, 0));
    all
}

#[test]
fn a_threads_cpu_time_of_a_second_is_divided_among_its_samples_of_that_second() {
    let profile = sampled(
        vec![reading(0, &[(7, 100)], 1_000), reading(10, &[(7, 200)], 1_100), reading(20, &[(7, 1_100)], 2_000)],
        &[(1, 7, &[0, 1]), (2, 7, &[0, 1]), (3, 7, &[0, 2]), (15, 7, &[0, 2])],
        vec![thread("main", Kind::Java, 7)],
    );
    // 100 for three samples; 900 for one.
    let expected = [("a.C.cold()", (34 + 900, 2)), ("a.C.hot(int)", (66, 2))];
    assert_eq!(own(&profile), expected.map(|(name, sums)| (name.to_owned(), sums)).into_iter().collect());
    assert!(profile.notes[0].contains("100 % of it placed in Java code by 4 samples"), "{:?}", profile.notes);
    assert_eq!(profile.threads.iter().map(|thread| &*thread.name).collect::<Vec<_>>(), ["main"]);
}

#[test]
fn all_that_the_process_took_is_somewhere() {
    let profile = sampled(
        vec![
            reading(0, &[(7, 0), (8, 0), (9, 50), (10, 0)], 0),
            reading(10, &[(7, 101), (8, 40), (9, 150), (10, 30)], 321),
            reading(20, &[(7, 102), (8, 80), (9, 350), (11, 5)], 550),
        ],
        &[(1, 7, &[0, 1]), (2, 7, &[0, 2])],
        vec![
            thread("worker", Kind::Java, 7),
            thread("in native code", Kind::Java, 8),
            thread("C2 CompilerThread0", Kind::Java, 9),
        ],
    );
    let own = own(&profile);
    assert_eq!(own.values().map(|(cpu, _)| cpu).sum::<u64>(), 550, "{own:?}");
    // A second in which it was not seen is where it was before.
    assert_eq!((own["a.C.hot(int)"].0, own["a.C.cold()"].0), (50, 52));
    assert_eq!((own["[no Java code seen]"].0, own["[JVM: C2 CompilerThread]"].0), (80, 300));
    // 30 and 5 of threads that the dump does not know any more, and 33 of those that nobody has seen.
    assert_eq!(own["[threads that have ended]"].0, 68);
    assert!(profile.notes.iter().any(|note| note.contains("no Java code was seen")), "{:?}", profile.notes);
}

#[test]
fn what_carriers_took_is_their_virtual_threads() {
    let carrier = thread("ForkJoinPool-1-worker-1", Kind::Java, 5);
    let profile = sampled(
        vec![reading(0, &[(5, 0)], 0), reading(10, &[(5, 90)], 90)],
        &[(1, 0, &[0, 1]), (2, 0, &[0, 1]), (3, 0, &[0, 2])],
        vec![carrier],
    );
    let own = own(&profile);
    assert_eq!((own["a.C.hot(int)"], own["a.C.cold()"]), ((60, 2), (30, 1)));
    assert_eq!(own.len(), 2);
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
