//! Contended locks: who waited, how often and how long, and who held what, against what the program knows itself.

use std::path::Path;

use headwater_tests::{Jdk, Launched, Process, Profile, Scratch, headwater, read_report, run_headwater};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        waits_for_locks_of_a_whole_jvm_are_those_of_the_program,
        waits_below_a_root_are_in_its_profile,
    }
    since(21) {
        waits_of_virtual_threads_are_said_to_be_missing,
    }
    first_jdk {
        a_session_has_locks_and_expects_something_of_them,
        locks_are_switched_off_and_on_beside_a_profile,
        what_was_recorded_is_told_when_the_target_ends,
        a_target_that_is_killed_is_known_to_have_ended_whatever_it_leaves,
    }
}

fn launched(jdk: &Jdk) -> Launched {
    Launched::of_files(jdk, &["Contended.java"], &[], &["Contended"])
}

/// What the program says of its waits: how many, and for how long at least and at most.
fn told(target: &mut Launched, kind: &str) -> [u64; 3] {
    let line = target.await_line(kind);
    let numbers: Vec<u64> = line.split(' ').skip(1).map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("three numbers")
}

/// A tool that records all waits into a file, and what the program says of them when it has been told to do something.
fn recording(target: &mut Launched, what: &str, file: &Path) -> (Process, [[u64; 3]; 2]) {
    let mut command = headwater();
    command.arg("locks").arg(target.pid().to_string()).args(["-d", "1h", "-o"]).arg(file);
    let mut tool = Process::spawn(&mut command);
    tool.await_error_line("recording waits for locks");
    target.say(what);
    let told = ["MONITOR", "LOCK"].map(|kind| told(target, kind));
    target.await_line("DONE");
    (tool, told)
}

/// The report of all waits from now on until it has been told to do something.
fn recorded(target: &mut Launched, what: &str) -> (Value, [[u64; 3]; 2]) {
    let scratch = Scratch::new("locks");
    let file = scratch.file("locks.json");
    let (tool, told) = recording(target, what, &file);
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    (read_report(&file), told)
}

fn array<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value[field].as_array().unwrap_or_else(|| panic!("{field}: {value}"))
}

fn has(stack: &Value, method: &str) -> bool {
    stack.as_array().expect("a stack").iter().any(|frame| frame.as_str().expect("a name").starts_with(method))
}

/// The only place in which a method waits for such a lock.
fn place<'a>(report: &'a Value, kind: &str, class: &str, method: &str) -> &'a Value {
    let mut locks = array(&report["locks"], "contended").iter();
    let lock = locks.find(|lock| lock["kind"] == kind && lock["class"] == class);
    let lock = lock.unwrap_or_else(|| panic!("{class}: {:#}", report["locks"]));
    let mut places = array(lock, "places").iter().filter(|place| has(&place["stack"], method));
    let (place, more) = (places.next().expect(method), places.next());
    assert!(more.is_none(), "{lock:#}");
    place
}

/// As often and as long as the program says; its clock and the recorder's differ a little.
fn is_told(place: &Value, [times, least, most]: [u64; 3]) {
    assert_eq!(place["waits"], times, "{place:#}");
    let blocked = place["blocked_ns"].as_u64().expect("a time");
    assert!((least - least / 100..=most + most / 100).contains(&blocked), "{least} to {most}: {place:#}");
    let longest = place["longest_ns"].as_u64().expect("a time");
    assert!(longest >= blocked / times && longest <= blocked, "{place:#}");
}

const SYNC: &str = "java.util.concurrent.locks.ReentrantLock$NonfairSync";

fn waits_for_locks_of_a_whole_jvm_are_those_of_the_program(jdk: &Jdk) {
    let mut target = launched(jdk);
    target.say("stick");
    target.await_line("STUCK");
    let (report, [monitor, lock]) = recorded(&mut target, "go");
    assert_eq!((&report["view"], &report["imported"]), (&"locks".into(), &"waits for locks".into()));
    let entered = place(&report, "monitor", "Contended$Guard", "Contended.enterMonitor");
    is_told(entered, monitor);
    let left_by = array(entered, "left_by");
    assert_eq!((left_by.len(), &left_by[0]["thread"]), (1, &"main".into()), "{entered:#}");
    assert_eq!(left_by[0]["waits"], monitor[0]);
    let locked = place(&report, "java.util.concurrent", SYNC, "Contended.enterLock");
    is_told(locked, lock);
    // Who is seen to hold it is where the program holds it.
    for (place, method) in [(entered, "Contended.holdMonitor("), (locked, "Contended.holdLock(")] {
        for holder in array(place, "holders") {
            assert!(holder["thread"] == "main" && has(&holder["stack"], method), "{holder:#}");
        }
    }
    let unfinished = array(&report["locks"], "unfinished");
    let stuck = unfinished.iter().find(|wait| wait["thread"] == "stuck").expect("it still waits");
    assert!(has(&stuck["stack"], "Contended.enterForGood("), "{stuck:#}");
    assert_eq!(stuck["holder"]["thread"], "keeper");
    assert!(has(&stuck["holder"]["stack"], "Contended.keepForGood("), "{stuck:#}");
    target.quit();
}

/// A profile of the two root calls of this; what the program says.
fn below_root(jdk: &Jdk, what: &str) -> (Value, [[u64; 3]; 2]) {
    let mut target = launched(jdk);
    let options = ["--root", "Contended::root", "--count", "locks", "--calls", "2", "--bare", "off"];
    let profile = Profile::start(&target, &options);
    target.say(what);
    let told = ["MONITOR", "LOCK"].map(|kind| told(&mut target, kind));
    let report = profile.report();
    target.quit();
    (report, told)
}

fn waits_below_a_root_are_in_its_profile(jdk: &Jdk) {
    let (report, [monitor, lock]) = below_root(jdk, "go");
    let expected = [
        ("monitor", "Contended$Guard", "Contended.enterMonitor()V", monitor),
        ("java.util.concurrent", SYNC, "Contended.enterLock()V", lock),
    ];
    for (kind, class, method, told) in expected {
        let place = place(&report, kind, class, method);
        is_told(place, told);
        let node = &report["nodes"][place["node"].as_u64().expect("a node") as usize];
        assert_eq!((&place["method"], &node["method"]), (&method.into(), &method.into()), "{place:#}");
        // What is above the root is not of it.
        let outermost = array(place, "stack").last().expect("a frame");
        assert_eq!(outermost, "Contended.root(Z)V", "{place:#}");
    }
    assert_eq!(array(&report["locks"], "contended").len(), 2, "{:#}", report["locks"]);
}

fn waits_of_virtual_threads_are_said_to_be_missing(jdk: &Jdk) {
    let mut target = launched(jdk);
    let (report, _) = recorded(&mut target, "go virtual");
    let limits = array(&report["locks"], "limits");
    assert!(limits.iter().any(|limit| limit.as_str().is_some_and(|it| it.contains("virtual threads"))), "{limits:?}");
    target.quit();
    // Below a root JVMTI counts what the recorder does not tell.
    let (report, [monitor, _]) = below_root(jdk, "go virtual");
    let told = report["locks"]["contended"].as_array().expect("locks").iter().filter(|lock| lock["kind"] == "monitor");
    let told: u64 = told.filter_map(|lock| lock["waits"].as_u64()).sum();
    let limits = report["locks"]["limits"].to_string();
    let counted = format!("JVMTI counted {} waits for monitors", monitor[0]);
    assert!(told == monitor[0] || limits.contains(&counted), "{told}: {limits}");
}

fn a_session_has_locks_and_expects_something_of_them(jdk: &Jdk) {
    let target = launched(jdk);
    let scratch = Scratch::new("locks");
    let script = scratch.file("locks.hws");
    let file = scratch.file("locks.json");
    let lines = [
        &format!("locks -d 1s --owners off > {}", file.display()),
        "expect lock-blocked < 10m",
        "expect contended-locks >= 1_000_000",
    ];
    std::fs::write(&script, lines.join("\n")).expect("a file");
    let output = run_headwater(&["session", &script.to_string_lossy(), &target.pid().to_string()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains(":3:") && said.contains("expected contended-locks >= 1_000_000"), "{said}");
    assert_eq!(read_report(&file)["locks"]["looks"], 0);
    target.quit();
}

fn locks_are_switched_off_and_on_beside_a_profile(jdk: &Jdk) {
    let mut target = launched(jdk);
    let scratch = Scratch::new("locks");
    let file = scratch.file("locks.json");
    let mut command = headwater();
    command.arg("attach").arg(target.pid().to_string());
    let mut tool = Process::spawn(&mut command);
    tool.await_error_line("attached to ");
    let mut does = |tool: &mut Process, line: &str, answer: &str| {
        tool.say(line);
        tool.await_error_line(answer);
        target.say("go");
        ["MONITOR", "LOCK"].map(|kind| told(&mut target, kind))
    };
    does(&mut tool, "profile Contended::root --bare off", "root Contended::root");
    let first = does(&mut tool, "count locks on", "counting locks");
    does(&mut tool, "count locks off", "counting nothing but calls");
    let last = does(&mut tool, "count locks on", "counting locks");
    tool.say("stop");
    tool.await_error_line("the target has its original code back");
    tool.say(&format!("tree > {}", file.display()));
    tool.say("quit");
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    let report = read_report(&file);
    // The JVM may have given a lock another identity meanwhile.
    let waits = |method: &str| -> u64 {
        let places = array(&report["locks"], "contended").iter().flat_map(|lock| array(lock, "places"));
        places.filter(|place| has(&place["stack"], method)).filter_map(|place| place["waits"].as_u64()).sum()
    };
    assert_eq!(waits("Contended.enterMonitor()V"), first[0][0] + last[0][0], "{:#}", report["locks"]);
    assert_eq!(waits("Contended.enterLock()V"), first[1][0] + last[1][0], "{:#}", report["locks"]);
    target.quit();
}

fn what_was_recorded_is_told_when_the_target_ends(jdk: &Jdk) {
    let mut target = launched(jdk);
    let scratch = Scratch::new("locks");
    let file = scratch.file("locks.json");
    let (tool, told) = recording(&mut target, "go", &file);
    target.quit();
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(5), "{:#?}", tool.stderr);
    let report = read_report(&file);
    is_told(place(&report, "monitor", "Contended$Guard", "Contended.enterMonitor"), told[0]);
    is_told(place(&report, "java.util.concurrent", SYNC, "Contended.enterLock"), told[1]);
}

/// What a JVM was just writing when it was killed need not be a recording.
fn a_target_that_is_killed_is_known_to_have_ended_whatever_it_leaves(jdk: &Jdk) {
    for (command, begun, name) in
        [("locks", "recording waits for locks", "locks"), ("sample", "sampling all threads", "samples")]
    {
        let target = launched(jdk);
        let pid = target.pid().to_string();
        let scratch = Scratch::new("locks");
        let file = scratch.file("locks.json");
        let alone = if command == "locks" { ["--owners", "off"] } else { ["--waits", "off"] };
        let mut tool = Process::spawn(headwater().args([command, &pid, "-d", "1h", "-o"]).arg(&file).args(alone));
        tool.await_error_line(begun);
        let left = std::env::temp_dir().join(format!("headwater-{name}-{pid}")).join("samples.jfr");
        std::fs::write(&left, "FLR").expect("it is there");
        target.signal(Signal::KILL);
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(5), "{command}: {:#?}", tool.stderr);
        let report = read_report(&file).to_string();
        assert!(report.contains("recording cannot be read"), "{report}");
    }
}
