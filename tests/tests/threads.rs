//! `headwater threads`: deadlocks of every kind are found, and nothing else is taken for one; who holds up whom; CPU times as the
//! operating system has them; and the target goes on, with nothing of ours in it.

use std::fs;

use headwater_tests::{Jdk, Process, Scratch, await_that, compile, headwater, java, read_report, run_headwater};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        deadlocks_of_all_kinds_are_named_thread_by_thread,
        owners_in_deadlocks_are_known_without_a_look_at_the_heap,
        seventeen_threads_wait_for_one_that_waits_for_a_socket,
        a_busy_program_has_no_deadlock_and_the_cpu_times_of_proc,
        a_deadlock_is_found_among_two_thousand_threads,
        a_hostile_name_is_a_name_and_does_not_reach_the_terminal,
        nothing_of_ours_is_left_and_nothing_is_loaded,
        a_session_has_threads_and_deadlocks_too,
    }
    since(21) {
        virtual_threads_are_counted_and_their_monitors_are_known,
    }
    first_jdk {
        ctrl_c_ends_it_before_the_target_is_asked,
    }
    once {
        what_cannot_be_asked_is_said,
    }
}

/// A program with these scenarios, where they stay.
struct Stuck {
    target: Process,
    _classes: Scratch,
}

impl Stuck {
    fn start(jdk: &Jdk, scenarios: &[&str]) -> Stuck {
        let classes = compile(jdk, &["Stuck.java"]);
        let mut target = java(jdk, &classes, &["-Xss512k"], &[&["Stuck"], scenarios].concat());
        target.await_line("READY");
        Stuck { target, _classes: classes }
    }

    /// The report, as JSON, and the exit code; meanwhile the program works.
    fn threads(&mut self, options: &[&str]) -> (Value, Option<i32>) {
        let scratch = Scratch::new("threads");
        let file = scratch.file("threads.json");
        let mut command = headwater();
        command.arg("threads").arg(self.target.pid().to_string()).args(options).arg("-o").arg(&file);
        let tool = Process::spawn(&mut command);
        self.works();
        let finished = tool.finish();
        assert!(file.exists(), "{:#?}", finished.stderr);
        self.works();
        let report = read_report(&file);
        assert_eq!(report["schema"], "headwater-threads/1");
        assert_eq!(report["unread"], Value::Array(Vec::new()), "every line of the JVM's is understood");
        (report, finished.status.code())
    }

    /// The same when it is as it is to be: a thread that is to wait for a class or a socket may not have come there yet.
    fn threads_once(&mut self, options: &[&str], is_so: impl Fn(&Value) -> bool) -> (Value, Option<i32>) {
        for _ in 0..50 {
            let (report, code) = self.threads(options);
            if is_so(&report) {
                return (report, code);
            }
        }
        self.threads(options)
    }

    /// What it shows to people.
    fn text(&self, options: &[&str]) -> String {
        let pid = self.target.pid().to_string();
        let output = run_headwater(&[&["threads", &pid, "--window", "0"], options].concat());
        String::from_utf8(output.stdout).expect("UTF-8")
    }

    fn works(&mut self) {
        self.target.say("go");
        self.target.await_line("RESULT");
    }

    /// It ends as it would, having said what it would: no thread that was stuck has come free.
    fn end(self) {
        let finished = self.target.finish();
        assert!(finished.status.success(), "{:#?}", finished.stderr);
        assert!(!finished.stdout.iter().any(|line| line == "FREE"));
    }
}

fn array<'a>(value: &'a Value, field: &str) -> &'a Vec<Value> {
    value[field].as_array().unwrap_or_else(|| panic!("{field}: {value}"))
}

fn thread<'a>(report: &'a Value, id: &Value) -> &'a Value {
    &report["threads"][id.as_u64().expect("a thread's number") as usize]
}

fn named<'a>(report: &'a Value, name: &str) -> &'a Value {
    array(report, "threads")
        .iter()
        .find(|thread| thread["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {report:#}"))
}

/// The names in each deadlock, in order, and whether it is certain.
fn deadlocks(report: &Value) -> Vec<(Vec<String>, bool)> {
    let names = |deadlock: &Value| {
        let name = |wait: &Value| thread(report, &wait["thread"])["name"].as_str().expect("a name").to_owned();
        array(deadlock, "waits").iter().map(name).collect()
    };
    let of = |deadlock: &Value| (names(deadlock), deadlock["certain"].as_bool().expect("certain"));
    let mut found: Vec<(Vec<String>, bool)> = array(report, "deadlocks").iter().map(of).collect();
    found.sort();
    found
}

fn circle(names: &[&str], certain: bool) -> (Vec<String>, bool) {
    (names.iter().map(|name| (*name).to_owned()).collect(), certain)
}

fn deadlocks_of_all_kinds_are_named_thread_by_thread(jdk: &Jdk) {
    // Which class a thread waits for is said since JDK 17 only.
    let named = jdk.version >= 17;
    let mut scenarios = vec!["monitors", "three", "locks", "mixed", "loaders", "init"];
    let mut expected = vec![
        circle(&["left", "right"], named),
        circle(&["loader-0", "loader-1"], true),
        circle(&["lock-0", "lock-1"], true),
        circle(&["mixed-0", "mixed-1"], true),
        circle(&["monitor-0", "monitor-1"], true),
        circle(&["three-0", "three-1", "three-2"], true),
    ];
    if named {
        scenarios.extend(["superinit", "initmonitor"]);
        expected.extend([circle(&["base", "derived"], false), circle(&["initialiser", "holder"], true)]);
        expected.sort();
    }
    let mut stuck = Stuck::start(jdk, &scenarios);
    let (report, code) = stuck.threads_once(&["--window", "0"], |report| deadlocks(report).len() == expected.len());
    assert_eq!(deadlocks(&report), expected, "JDK {}", jdk.version);
    assert_eq!(code, Some(6), "JDK {}", jdk.version);
    let text = stuck.text(&[]);
    assert!(text.contains("\n  \"lock-0\" #") && text.contains("\n      held by \"lock-1\" #"), "{text}");
    // Each thread's place is said.
    assert!(text.contains("\n      at Stuck.enter(Stuck.java:"), "{text}");
    stuck.end();
}

fn owners_in_deadlocks_are_known_without_a_look_at_the_heap(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["locks", "mixed", "pool"]);
    let (report, code) = stuck.threads(&["--window", "0", "--owners", "off"]);
    let expected = [circle(&["lock-0", "lock-1"], true), circle(&["mixed-0", "mixed-1"], true)];
    assert_eq!((deadlocks(&report).as_slice(), code), (&expected[..], Some(6)), "JDK {}", jdk.version);
    let warnings = array(&report, "warnings");
    assert!(
        warnings.iter().any(|it| it.as_str().is_some_and(|it| it.starts_with("who holds 1 java.util.concurrent lock"))),
        "the pool's is not: {warnings:?}"
    );
    stuck.end();
}

fn seventeen_threads_wait_for_one_that_waits_for_a_socket(jdk: &Jdk) {
    for scenario in ["pool", "monitorpool"] {
        let mut stuck = Stuck::start(jdk, &[scenario]);
        let is_reading = |report: &Value| named(report, "owner")["doing"] == "waits for a socket";
        let (report, code) = stuck.threads_once(&["--window", "0"], is_reading);
        assert_eq!(code, Some(0), "JDK {}, {scenario}", jdk.version);
        let blocker = &array(&report, "blockers")[0];
        assert_eq!(thread(&report, &blocker["thread"])["name"], "owner", "JDK {}, {scenario}", jdk.version);
        assert_eq!((array(blocker, "waiting").len(), &blocker["doing"]), (17, &Value::from("waits for a socket")));
        let group = array(&report, "groups").iter().find(|group| array(group, "threads").len() == 17);
        assert!(group.is_some(), "JDK {}, {scenario}: their stacks are one", jdk.version);
        let text = stuck.text(&[]);
        let id = named(&report, "owner")["java_id"].as_u64().expect("a number");
        let sentence = format!("17 threads wait for \"owner\" #{id}, which waits for a socket");
        assert!(text.contains(&sentence), "JDK {}, {scenario}: {text}", jdk.version);
        stuck.end();
    }
}

fn a_busy_program_has_no_deadlock_and_the_cpu_times_of_proc(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["busy", "burner"]);
    // How long a thread has run, by the kernel.
    let ran = |id: u64, pid: u32| -> u64 {
        let text = fs::read_to_string(format!("/proc/{pid}/task/{id}/schedstat")).expect("scheduling statistics");
        text.split(' ').next().expect("a time").parse().expect("a number")
    };
    let pid = stuck.target.pid();
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let before: Vec<(u64, u64)> = tasks
        .filter_map(|task| task.expect("an entry").file_name().to_str()?.parse().ok())
        .map(|id| (id, ran(id, pid)))
        .collect();
    for _ in 0..3 {
        let (report, code) = stuck.threads(&["--window", "100ms"]);
        assert_eq!((deadlocks(&report).len(), code), (0, Some(0)), "JDK {}", jdk.version);
        let burner = named(&report, "burner");
        let (id, cpu) = (burner["os_id"].as_u64().expect("a number"), burner["cpu_ns"].as_u64().expect("a time"));
        let begun = before.iter().find(|(task, _)| *task == id).expect("it was there").1;
        assert!((begun..=ran(id, pid)).contains(&cpu), "JDK {}: {burner}", jdk.version);
        assert!(burner["recent_cpu_ns"].as_u64().is_some_and(|recent| recent <= cpu));
        // Every thread of the process has a row, and what it used is in it.
        let rows = array(&report, "threads");
        let sum = |field: &str| rows.iter().filter_map(|row| row[field].as_u64()).sum::<u64>();
        assert_eq!(sum("cpu_ns"), report["cpu"]["threads_ns"].as_u64().expect("a sum"), "JDK {}", jdk.version);
        assert_eq!(sum("recent_cpu_ns"), report["cpu"]["recent_ns"].as_u64().expect("a sum"));
        assert!(before.iter().all(|(id, _)| rows.iter().any(|row| row["os_id"] == *id)), "JDK {}", jdk.version);
    }
    stuck.end();
}

fn virtual_threads_are_counted_and_their_monitors_are_known(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["parked", "pinned"]);
    let (report, code) = stuck.threads(&["--window", "0"]);
    let counts = &report["virtual_threads"];
    assert_eq!((&counts["count"], &counts["parked"], &counts["pinned"]), (&21.into(), &20.into(), &1.into()));
    assert_eq!(code, Some(0), "JDK {}", jdk.version);
    assert_eq!(named(&report, "pinned")["pinned"], true);
    // Two tools that ask at once do not get in each other's way.
    let pid = stuck.target.pid().to_string();
    let both: Vec<Process> =
        (0..2).map(|_| Process::spawn(headwater().args(["threads", &pid, "--window", "0"]))).collect();
    for tool in both {
        let said = tool.finish().stdout;
        assert!(said.iter().any(|line| line.ends_with("21 virtual threads: 20 parked, 1 pinned")), "{said:#?}");
    }
    let parked = array(&report, "groups").iter().find(|group| array(group, "threads").len() == 20).expect("one stack");
    let is_place = |frame: &Value| frame.as_str().is_some_and(|frame| frame.starts_with("Stuck.parkForever("));
    assert!(array(parked, "stack").iter().any(is_place));
    stuck.end();

    // Before, the JVM says nothing of virtual threads' locks.
    if jdk.version >= 25 {
        let mut stuck = Stuck::start(jdk, &["vmonitors", "monitors", "vmixed"]);
        let (report, code) = stuck.threads(&["--window", "0"]);
        let expected = [circle(&["monitor-0", "monitor-1"], true), circle(&["vmonitor-0", "vmonitor-1"], true)];
        assert_eq!((deadlocks(&report).as_slice(), code), (&expected[..], Some(6)), "JDK {}", jdk.version);
        // A platform thread waits for a virtual one.
        let holder = thread(&report, &named(&report, "vmixed-0")["wait"]["holder"]);
        assert_eq!((&holder["name"], &holder["kind"]), (&"vmixed-1".into(), &"virtual".into()));
        stuck.end();
    }
}

fn a_deadlock_is_found_among_two_thousand_threads(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["crowd", "monitors"]);
    let (report, code) = stuck.threads(&["--window", "0"]);
    assert_eq!((deadlocks(&report), code), (vec![circle(&["monitor-0", "monitor-1"], true)], Some(6)));
    assert!(array(&report, "groups").iter().any(|group| array(group, "threads").len() == 2000), "JDK {}", jdk.version);
    let text = stuck.text(&["--depth", "2"]);
    assert!(text.contains("\n2,000 threads \"crowd\"\n") && text.contains(" more frame"), "{text}");
    assert!(text.lines().count() < 200, "equal stacks are shown once");
    stuck.end();
}

fn a_hostile_name_is_a_name_and_does_not_reach_the_terminal(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["hostile"]);
    let (report, code) = stuck.threads(&["--window", "0"]);
    assert_eq!(code, Some(0));
    let rows = array(&report, "threads");
    let hostile = rows.iter().filter(|row| row["name"].as_str().is_some_and(|name| name.starts_with("a\n\"b\" #7 ")));
    assert_eq!(hostile.count(), 1, "JDK {}", jdk.version);
    assert!(!rows.iter().any(|row| row["name"] == "b"));
    let text = stuck.text(&[]);
    assert!(text.contains("\\u001b[2J\\u202e"), "{text}");
    assert!(!text.contains(['\u{1b}', '\u{202e}']));
    stuck.end();
}

fn nothing_of_ours_is_left_and_nothing_is_loaded(jdk: &Jdk) {
    let scenarios: &[&str] = if jdk.version >= 21 { &["parked"] } else { &["monitors"] };
    let mut stuck = Stuck::start(jdk, scenarios);
    stuck.threads(&["--window", "0"]);
    let pid = stuck.target.pid();
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).expect("its memory map");
    assert!(!maps.contains("headwater"), "JDK {}", jdk.version);
    let begins = format!("headwater-threads-{pid}");
    let left = fs::read_dir("/tmp").expect("/tmp").flatten().map(|entry| entry.file_name());
    assert!(!left.into_iter().any(|name| name.to_string_lossy().starts_with(&begins)), "JDK {}", jdk.version);
    stuck.end();
}

fn a_session_has_threads_and_deadlocks_too(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["monitors"]);
    let pid = stuck.target.pid().to_string();
    let scratch = Scratch::new("script");
    let (script, dump) = (scratch.file("threads.hws"), scratch.file("threads.json"));
    let lines = "thread-dump --window 0 > ${OUT}\nexpect deadlocks == 1\nexpect deadlocks == 0\necho unreached\n";
    fs::write(&script, lines).expect("a script");
    let set = format!("OUT={}", dump.display());
    let output = run_headwater(&["session", &script.to_string_lossy(), &pid, "--set", &set]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "JDK {}: {said}", jdk.version);
    assert!(said.contains("threads.hws:3") && said.contains("expected deadlocks == 0, but it is 1"), "{said}");
    assert_eq!(deadlocks(&read_report(&dump)), [circle(&["monitor-0", "monitor-1"], true)]);
    stuck.works();
    stuck.end();
}

fn ctrl_c_ends_it_before_the_target_is_asked(jdk: &Jdk) {
    let mut stuck = Stuck::start(jdk, &["monitors"]);
    let pid = stuck.target.pid().to_string();
    let tool = Process::spawn(headwater().args(["threads", &pid, "--window", "1h"]));
    // It has a handler as soon as it measures.
    await_that("a handler of SIGINT", || has_handler(tool.pid()));
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert_eq!((tool.status.code(), tool.stdout.len()), (Some(130), 0), "{:#?}", tool.stderr);
    assert!(tool.stderr.iter().any(|line| line.contains("interrupted before the threads were known")));
    stuck.works();
    stuck.end();
}

/// Whether a process handles SIGINT, signal 2.
fn has_handler(pid: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("the mask of handled signals");
    u64::from_str_radix(mask.trim(), 16).expect("a mask") & 2 != 0
}

fn what_cannot_be_asked_is_said() {
    let output = run_headwater(&["threads", &std::process::id().to_string()]);
    assert_eq!(output.status.code(), Some(3));
    let output = run_headwater(&["threads", "1", "-o", "/nowhere/at/all.json"]);
    assert_eq!(output.status.code(), Some(3));
    let output = run_headwater(&["threads", "1", "--owners", "perhaps"]);
    assert_eq!(output.status.code(), Some(2));
}
