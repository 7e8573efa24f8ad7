//! The clocks: which one is read, and that the times of a thread never run backwards and are those of the system's clock.

use std::collections::HashMap;
use std::fs::File;
use std::time::Duration;

use headwater_protocol::segment::{ChunkView, Segment};
use headwater_protocol::word::Event;
use headwater_tests::{
    Jdk, Launched, Patience, Process, Profile, Scratch, calls_by_method, compile, java, profile, read_report,
    run_headwater,
};
use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

headwater_tests::trials! {
    each_jdk {
        times_never_run_backwards_across_processors_and_compilers,
        the_clock_is_chosen_by_what_kernel_and_jvm_can_do,
        what_a_read_of_the_counter_runs_is_not_instrumented,
        a_stack_overflow_in_a_probe_loses_nothing_but_its_event,
    }
}

/// The first JDK of all later ones that can read the time stamp counter fast; and one before.
const FIRST_WITH_TSC: u32 = 21;
const EARLIER_WITH_TSC: u32 = 17;
/// How far times may be from those of the system's clock: chunks are tied to it, and run for seconds at most.
const TOLERANCE_NS: i64 = 1_000_000;

/// Threads stay on a processor for so long: no longer than they take for a chunk.
const TURN: Duration = Duration::from_micros(200);

/// Whether the kernel itself reads the time stamp counter.
fn is_trusted() -> bool {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    source.is_ok_and(|source| source.trim() == "tsc")
        && processors.contains(" constant_tsc ")
        && processors.contains(" nonstop_tsc ")
}

/// What exact times are read from, by itself.
fn expected_source(jdk: &Jdk) -> &'static str {
    if (jdk.version >= FIRST_WITH_TSC || jdk.version == EARLIER_WITH_TSC) && is_trusted() { "tsc" } else { "nanoTime" }
}

fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The event buffer of a running tool.
fn segment_of(tool: &Process) -> Segment {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", tool.pid())).expect("the tool's descriptors");
    let file = descriptors
        .flatten()
        .map(|entry| entry.path())
        .find(|path| std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("/memfd:headwater")))
        .or_else(|| mapped_segment(tool));
    let file = file.expect("the tool has the buffer's file open or mapped");
    Segment::open(&File::options().read(true).write(true).open(file).expect("a memory file")).expect("a segment")
}

/// The same, when the tool has closed the file: through its mapping.
fn mapped_segment(tool: &Process) -> Option<std::path::PathBuf> {
    let directory = format!("/proc/{}/map_files", tool.pid());
    std::fs::read_dir(directory)
        .ok()?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| std::fs::read_link(path).is_ok_and(|link| link.to_string_lossy().starts_with("/memfd:headwater")))
}

/// Whether all of a process's threads are stopped.
fn is_stopped(process: &Process) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid())).expect("its threads");
    tasks.flatten().all(|task| {
        let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
        stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('T'))
    })
}

/// Moves a process's threads from one processor to the next, by turns, until something has come to pass.
fn migrate_until(target: &Process, mut done: impl FnMut() -> bool) {
    let allowed = sched_getaffinity(None).expect("our own processors");
    let processors: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    let mut patience = Patience::default();
    let mut turn = 0;
    while !done() {
        assert!(patience.lasts(), "the target does not get on");
        turn += 1;
        let tasks = std::fs::read_dir(format!("/proc/{}/task", target.pid())).expect("the target's threads");
        for (number, task) in tasks.flatten().enumerate() {
            let mut processor = CpuSet::new();
            processor.set(processors[(turn + number) % processors.len()]);
            let tid = task.file_name().to_string_lossy().parse().ok().and_then(Pid::from_raw);
            // One that has just ended needs no processor.
            let _ = sched_setaffinity(tid, &processor);
        }
        // The processors are for the threads that are moved.
        std::thread::sleep(TURN);
    }
}

/// Checks the times of all words that are in the buffer; how many there are.
fn check_times(segment: &Segment, began_ns: i64, context: &str) -> usize {
    let mut chunks: Vec<ChunkView> = Vec::new();
    let mut latest: HashMap<u64, i64> = HashMap::new();
    let (mut words, mut count) = (Vec::new(), 0);
    segment.claimed(&mut chunks);
    for chunk in chunks {
        words.clear();
        segment.read_words(chunk.index, 0, &mut words);
        let mut thread = chunk.thread.0;
        for word in &words {
            let time_ns = match Event::decode(*word).expect("a word that means something") {
                Event::Enter { time_ns, .. } | Event::Exit { time_ns, .. } | Event::Wait { time_ns, .. } => time_ns,
                Event::Thread { thread: other, .. } => {
                    thread = other.0;
                    continue;
                }
                Event::Pause { .. } | Event::Count { .. } | Event::Control { .. } | Event::Handover { .. } => continue,
            };
            let now_ns = chunk.base_ns + time_ns as i64;
            let before = latest.insert(thread, now_ns).unwrap_or(i64::MIN);
            assert!(now_ns >= before, "{context}: thread {thread} went back by {} ns", before - now_ns);
            let late = now_ns - monotonic_ns();
            assert!(late < TOLERANCE_NS, "{context}: an event of the future, by {late} ns");
            let early = began_ns - now_ns;
            assert!(early < TOLERANCE_NS, "{context}: an event of {early} ns before the program began");
            count += 1;
        }
    }
    count
}

fn check(jdk: &Jdk, classes: &Scratch, options: &[&str], clock: &[&str], source: &str) {
    let context = format!("JDK {}, {options:?}, {clock:?}", jdk.version);
    let began_ns = monotonic_ns();
    let mut target = java(jdk, classes, options, &["Clocked", "3"]);
    target.await_line("READY");
    let out = Scratch::new("report");
    let file = out.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let mut arguments = vec!["--root", "Clocked::root", "--buffer", "1", "-o", &file_name];
    arguments.extend(clock);
    let tool = profile(&target, &arguments);
    let segment = segment_of(&tool);
    // Long enough for the code to have been interpreted and compiled, as far as it may be.
    let claims = segment.claims();
    migrate_until(&target, || segment.claims() > claims + 300);
    tool.stop();
    // The signal is on its way; a chunk that is recycled while it is looked at would have another's times.
    migrate_until(&target, || is_stopped(&tool) && !segment.has_free_chunk());
    let count = check_times(&segment, began_ns, &context);
    assert!(count > 50_000, "{context}: {count} events");
    tool.signal(Signal::CONT);
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{context}: {:#?}", tool.stderr);
    assert_eq!(read_report(&file)["clock"]["source"], source, "{context}");
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "{context}: {:#?}", target.stderr);
}

fn times_never_run_backwards_across_processors_and_compilers(jdk: &Jdk) {
    const COMPILERS: [&[&str]; 3] = [&[], &["-Xint"], &["-XX:TieredStopAtLevel=1"]];
    let classes = compile(jdk, &["Clocked.java"]);
    for options in COMPILERS {
        check(jdk, &classes, options, &["--clock-source", "nanotime"], "nanoTime");
        if expected_source(jdk) == "tsc" {
            check(jdk, &classes, options, &["--clock-source", "tsc"], "tsc");
        }
    }
    check(jdk, &classes, &[], &["--clock", "tick", "--tick-period", "20us"], "coarse");
}

fn the_clock_is_chosen_by_what_kernel_and_jvm_can_do(jdk: &Jdk) {
    let classes = compile(jdk, &["Clocked.java"]);
    let mut target = java(jdk, &classes, &[], &["Clocked", "1", "pausing"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    let report = |arguments: &[&str]| {
        let fixed = ["profile", &pid, "--root", "Clocked::root", "-d", "100ms", "--bare", "off", "--format", "json"];
        run_headwater(&[&fixed, arguments].concat())
    };
    let source = |arguments: &[&str]| {
        let output = report(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        report["clock"]["source"].as_str().expect("a source").to_owned()
    };
    assert_eq!(source(&[]), expected_source(jdk), "JDK {}", jdk.version);
    assert_eq!(source(&["--clock-source", "nanotime"]), "nanoTime");
    assert_eq!(source(&["--clock", "tick"]), "coarse");
    // The interpreter runs methods of the JDK to read the counter.
    assert_eq!(source(&["--jdk", "edge"]), "nanoTime");

    let forced = report(&["--clock-source", "tsc"]);
    let said = String::from_utf8_lossy(&forced.stderr).into_owned();
    if expected_source(jdk) == "tsc" {
        assert!(forced.status.success(), "{said}");
    } else {
        assert_eq!(forced.status.code(), Some(1));
        assert!(said.contains("time stamp counter") && said.contains("--clock-source tsc"), "{said}");
    }
    // After an error as after a profile the target is as it was.
    assert_eq!(source(&[]), expected_source(jdk), "JDK {}", jdk.version);
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "{:#?}", target.stderr);
}

fn what_a_read_of_the_counter_runs_is_not_instrumented(jdk: &Jdk) {
    let classes = compile(jdk, &["Clocked.java"]);
    let mut target = java(jdk, &classes, &["-Xint"], &["Clocked", "1", "pausing"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    let refused = run_headwater(&["profile", &pid, "--root", "java.util.Objects::requireNonNull", "-d", "1s"]);
    assert_eq!(refused.status.code(), Some(4), "{}", String::from_utf8_lossy(&refused.stderr));
    target.say("quit");
    assert!(target.finish().status.success());
}

fn a_stack_overflow_in_a_probe_loses_nothing_but_its_event(jdk: &Jdk) {
    let clocks = [("exact", expected_source(jdk)), ("cpu", "threadCpu")];
    let stacks = [&["-Xss300k"][..], &["-Xss300k", "-Xint"]];
    for (options, (clock, source)) in stacks.into_iter().flat_map(|options| clocks.map(|clock| (options, clock))) {
        let context = format!("JDK {}, {options:?}, {clock}", jdk.version);
        let mut target = Launched::of_files(jdk, &["Overflow.java"], options, &["Overflow"]);
        let fixed = ["--root", "Overflow::root", "--calls", "200"];
        let profile = Profile::start(&target, &[&fixed[..], &["--clock", clock]].concat());
        target.say("go");
        target.await_line("DONE");
        target.say("go");
        let report = profile.report();
        target.quit();
        let calls = calls_by_method(&report);
        // Every root call ended: the next one was seen as one from outside, and nothing in between was recorded.
        assert_eq!(calls["Overflow.root()V"], 200, "{context}");
        assert_eq!(calls["Overflow.settled()I"], 200, "{context}");
        assert_eq!(report["roots"][0]["calls"], 200, "{context}");
        assert_eq!(report["clock"]["source"], source, "{context}");
        assert_eq!(report["events"]["lost"], 0, "{context}");
    }
}
