//! What a JVM tells as it happens, against a program that does these things one by one.

use headwater_tests::{Jdk, Launched, Patience, Process, Scratch, headwater, run_headwater};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        what_happens_is_told_when_and_where_it_does,
    }
    first_jdk {
        a_session_switches_kinds_on_and_off_beside_a_profile,
        a_tool_that_is_killed_leaves_the_target_to_another,
    }
}

fn launched(jdk: &Jdk) -> Launched {
    Launched::of_files(jdk, &["Happenings.java"], &[], &["Happenings"])
}

fn does(target: &mut Launched, what: &str) {
    target.say(what);
    target.await_line(&format!("DONE {what}"));
}

/// The tool, and what it has told.
struct Told {
    tool: Process,
    events: Vec<Value>,
}

impl Told {
    fn of(target: &Launched, options: &[&str]) -> Told {
        let mut command = headwater();
        command.arg("events").arg(target.pid().to_string()).args(["--format", "json"]).args(options);
        let mut tool = Process::spawn(&mut command);
        tool.await_error_line("telling of ");
        Told { tool, events: Vec::new() }
    }

    /// The next event of which this holds.
    fn await_event(&mut self, kind: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let mut patience = Patience::default();
        while patience.lasts() {
            let line = self.tool.await_line("");
            let event: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            self.events.push(event.clone());
            if event["event"] == kind && holds(&event) {
                return event;
            }
        }
        panic!("no such {kind}: {:#?}", self.events)
    }

    fn says(&mut self, line: &str, answer: &str) {
        self.tool.say(line);
        self.tool.await_error_line(answer);
    }
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no number"))
}

fn has(stack: &Value, method: &str) -> bool {
    stack.as_array().expect("a stack").iter().any(|frame| frame.as_str().expect("a name").starts_with(method))
}

fn what_happens_is_told_when_and_where_it_does(jdk: &Jdk) {
    let mut target = launched(jdk);
    let mut told = Told::of(&target, &[]);

    does(&mut target, "gc");
    let gc = told.await_event("gc", |event| event["cause"] == "System.gc()");
    assert!(number(&gc["duration_ns"]) > 0 && !gc["pools"].as_array().expect("pools").is_empty(), "{gc:#}");
    assert!(number(&gc["after_bytes"]) > 0 && gc["collector"].is_string(), "{gc:#}");

    does(&mut target, "late");
    let loaded = told.await_event("class-load", |event| event["class"] == "Happenings$Late");
    assert!(has(&loaded["stack"], "Happenings.useLate:"), "{loaded:#}");
    assert_eq!(loaded["thread"]["name"], "main");

    does(&mut target, "plugin");
    let loaded = told.await_event("class-load", |event| event["class"] == "Happenings$Plugin");
    assert!(loaded["loader"] == "Happenings$Plugins" && has(&loaded["stack"], "Happenings.plugIn:"), "{loaded:#}");
    told.await_event("class-unload", |event| event["class"] == "Happenings$Plugin");

    does(&mut target, "thread");
    let started = told.await_event("thread-start", |event| event["thread"]["name"] == "begun");
    assert_eq!(started["daemon"], true);
    let ended = told.await_event("thread-end", |event| event["thread"]["id"] == started["thread"]["id"]);
    let between =
        |from: &Value, to: &Value| to["nano_time"].as_i64().zip(from["nano_time"].as_i64()).map(|(to, from)| to - from);
    assert_eq!(between(&started, &ended), ended["lived_ns"].as_i64());

    let waited = loop {
        does(&mut target, "monitor");
        let waited = told.await_event("monitor", |event| event["class"] == "Happenings$Guard");
        // Other waits of the moment before may have used up what may be asked.
        if !waited["owner"].is_null() {
            break waited;
        }
    };
    assert!(waited["thread"]["name"] == "waiter" && has(&waited["stack"], "Happenings.enter:"), "{waited:#}");
    let owner = &waited["owner"];
    assert!(owner["thread"]["name"] == "main" && has(&owner["stack"], "Happenings.hold:"), "{waited:#}");
    // The owner sleeps for so long while it waits.
    assert!(number(&waited["duration_ns"]) >= 20_000_000, "{waited:#}");

    does(&mut target, "hot");
    let compiled = told.await_event("compile", |event| event["method"] == "Happenings.hot");
    assert!(number(&compiled["code_bytes"]) > 0);

    told.tool.signal(Signal::INT);
    let summary = told.await_event("summary", |_| true);
    let count = |kind: &str| told.events.iter().filter(|event| event["event"] == kind).count() as u64;
    if summary["left_out"] == 0 {
        assert_eq!(number(&summary["gc"]["collections"]), count("gc"));
        assert_eq!(number(&summary["classes"]["loaded"]), count("class-load"));
        assert_eq!(number(&summary["compile"]["compiled"]), count("compile"));
    }
    assert!(number(&summary["monitors"]["longest_ns"]) >= 20_000_000, "{summary:#}");
    let tool = told.tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.quit();
}

fn a_session_switches_kinds_on_and_off_beside_a_profile(jdk: &Jdk) {
    let mut target = launched(jdk);
    let mut command = headwater();
    command.arg("attach").arg(target.pid().to_string());
    let mut told = Told { tool: Process::spawn(&mut command), events: Vec::new() };
    told.tool.await_error_line("attached to ");
    told.says("events", "no events are told of");
    told.says("profile Happenings::root", "root");
    told.says("events gc on --format json", "telling of gc");
    does(&mut target, "gc");
    told.await_event("gc", |_| true);
    told.says("events threads on", "telling of gc, threads");
    told.says("events gc off", "telling of threads");
    does(&mut target, "gc");
    does(&mut target, "thread");
    told.await_event("thread-end", |event| event["thread"]["name"] == "begun");
    let switched = told.events.iter().rposition(|event| event["event"] == "switched").expect("it was");
    assert_eq!(told.events[switched]["on"], serde_json::json!(["threads"]));
    assert!(told.events[switched..].iter().all(|event| event["event"] != "gc"), "{:#?}", told.events);
    told.tool.say("expect root-calls == 1");
    told.tool.say("expect threads-started >= 1");
    told.tool.say("expect collections == 1");
    told.tool.say("events off");
    let summary = told.await_event("summary", |_| true);
    assert!(summary["gc"]["collections"] == 1 && number(&summary["threads"]["started"]) >= 1, "{summary:#}");
    told.tool.say("quit");
    let tool = told.tool.finish();
    assert!(tool.status.success() && !tool.stderr.iter().any(|line| line.contains("expected")), "{:#?}", tool.stderr);
    target.quit();
}

fn a_tool_that_is_killed_leaves_the_target_to_another(jdk: &Jdk) {
    let mut target = launched(jdk);
    let mut told = Told::of(&target, &["--threads", "--classes"]);
    does(&mut target, "thread");
    told.await_event("thread-start", |event| event["thread"]["name"] == "begun");
    told.tool.signal(Signal::KILL);
    assert!(!told.tool.finish().status.success());
    does(&mut target, "thread");

    let scratch = Scratch::new("events");
    let file = scratch.file("gc.txt");
    let mut command = headwater();
    command.arg("events").arg(target.pid().to_string()).args(["--gc", "-o"]).arg(&file);
    let mut second = Process::spawn(&mut command);
    second.await_error_line("telling of gc");
    does(&mut target, "gc");
    // Only one at a time.
    let refused = run_headwater(&["events", &target.pid().to_string(), "-d", "1s"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.status.code() == Some(1) && said.contains("is told of this JVM's events already"), "{said}");
    // Somebody ends it.
    let detached = run_headwater(&["detach", &target.pid().to_string()]);
    assert!(String::from_utf8_lossy(&detached.stdout).contains("detached"), "{detached:?}");
    let second = second.finish();
    assert_eq!(second.status.code(), Some(1), "{:#?}", second.stderr);
    let lines = std::fs::read_to_string(&file).expect("a file");
    assert!(lines.lines().any(|line| line.contains("System.gc()")), "{lines}");
    does(&mut target, "gc");
    target.quit();
}
