//! `count` in a session: what is counted beside calls is switched while a thread is in the root.

use std::path::Path;

use headwater_tests::{Jdk, Launched, Process, Scratch, headwater, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    since(17) {
        each_metric_counts_what_happens_while_it_is_on_and_nothing_else,
    }
}

/// What the target does of each, each time.
const TIMES: u64 = 10;
/// What an array of a thousand bytes takes.
const ARRAY: u64 = 1_016;

/// A session with a target.
struct Session {
    target: Launched,
    tool: Process,
}

impl Session {
    fn start(jdk: &Jdk) -> Session {
        let mut target = Launched::of_files(jdk, &["Switched.java"], &[], &["Switched"]);
        let mut command = headwater();
        command.arg("attach").arg(target.pid().to_string());
        let mut tool = Process::spawn(&mut command);
        tool.await_error_line("attached to ");
        tool.say("profile Switched::root --gentle off --bare off");
        tool.await_error_line("root Switched::root");
        // In the root from here on.
        target.say("go");
        let mut session = Session { target, tool };
        session.works(1);
        session
    }

    fn works(&mut self, times: u64) {
        for _ in 0..times {
            self.target.say("go");
            self.target.await_line("DONE");
        }
    }

    fn says(&mut self, line: &str, answer: &str) {
        self.tool.say(line);
        self.tool.await_error_line(answer);
    }

    /// The tree so far, once what was said before has been done.
    fn tree(&mut self, file: &Path) -> Value {
        self.tool.say(&format!("tree > {}", file.display()));
        self.tool.say("echo WRITTEN");
        self.tool.await_line("WRITTEN");
        read_report(file)
    }
}

/// A metric of all nodes of a method, or of what was counted by a name below it.
fn of(report: &Value, name: &str, metric: &str) -> u64 {
    let nodes = report["nodes"].as_array().expect("nodes");
    let is_one = |node: &&Value| node["method"].as_str().is_some_and(|method| method.starts_with(name));
    nodes.iter().filter(is_one).map(|node| node["metrics"][metric]["self"].as_u64().unwrap_or_default()).sum()
}

fn calls(report: &Value, name: &str) -> u64 {
    let nodes = report["nodes"].as_array().expect("nodes");
    let is_one = |node: &&Value| node["method"].as_str().is_some_and(|method| method.starts_with(name));
    nodes.iter().filter(is_one).map(|node| node["calls"].as_u64().expect("calls")).sum()
}

/// What was counted of so many times.
fn check(report: &Value, times: u64) {
    for (name, metric, each) in [
        ("Switched.allocate()", "alloc", TIMES * ARRAY),
        ("byte[]@Switched:", "objects", TIMES),
        ("byte[]@Switched:", "object-bytes", TIMES * ARRAY),
        // Each time round three instructions for the condition, five for the array and the loop; three around it, and the condition once more.
        ("Switched.allocate()", "bytecodes", TIMES * 8 + 6),
        ("java.lang.IllegalStateException", "exceptions", TIMES),
        ("Switched.park()", "parks", TIMES),
        ("Switched.block()", "blocks", 1),
        ("Switched$Copy", "loads", 1),
    ] {
        assert_eq!(of(report, name, metric), times * each, "{metric} of {name}: {report:#}");
    }
    let collections = of(report, "Switched.collect()", "collections");
    assert!(collections >= times, "{collections} collections in {times} times");
}

fn each_metric_counts_what_happens_while_it_is_on_and_nothing_else(jdk: &Jdk) {
    let scratch = Scratch::new("switched");
    let mut session = Session::start(jdk);
    session.says(
        "count waits classes exceptions bytecodes alloc alloc-sites gc on",
        "counting waits, classes, exceptions, bytecodes, alloc, alloc-sites, gc",
    );
    session.works(2);
    session.says("count off", "counting nothing but calls");
    session.works(3);
    let report = session.tree(&scratch.file("part.json"));
    assert_eq!(calls(&report, "Switched.work()"), 6);
    check(&report, 2);
    let metrics = report["metrics"].as_array().expect("metrics");
    for id in ["alloc", "objects", "exceptions", "parks", "blocks", "loads", "bytecodes", "gc"] {
        let metric = metrics.iter().find(|metric| metric["id"] == id).unwrap_or_else(|| panic!("no {id}"));
        let spans = metric["spans"].as_array().unwrap_or_else(|| panic!("{metric:#}"));
        let ns = |end: &str| spans[0][end].as_u64().expect("a time");
        assert!(spans.len() == 1 && ns("from_ns") < ns("to_ns"), "{metric:#}");
        assert!(ns("to_ns") <= report["duration_ns"].as_u64().expect("a time"), "{metric:#}");
    }
    assert!(report["parts"].is_null(), "what waits leave is not known");
    session.says("flat --metric alloc-per-call", "the profile has no metric alloc-per-call");

    session.tool.say(&format!("snapshot {}", scratch.file("part.hw").display()));
    session.says("count alloc on", "counting alloc");
    session.says("count exceptions gc on", "counting exceptions, alloc, gc");
    session.tool.say("clear");
    session.tree(&scratch.file("cleared.json"));
    session.works(2);
    session.tool.say(&format!("expect alloc-per-call(Switched::allocate) == {}B", TIMES * ARRAY));
    session.tool.say("expect exceptions.total(Switched::fail) == 20");
    session.tool.say(&format!("snapshot {}", scratch.file("whole.hw").display()));
    session.says("stop", "the target has its original code back");
    session.target.say("return");
    session.target.await_line("RETURNED");
    session.tool.say("quit");
    let tool = session.tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    assert!(!tool.stderr.iter().any(|line| line.contains("expected ")), "{:#?}", tool.stderr);
    session.target.quit();
    let [part, whole] = ["part.hw", "whole.hw"].map(|name| scratch.file(name).display().to_string());
    let shown = |file: &str| {
        let shown = run_headwater(&["report", file, "--view", "flat", "--metric", "alloc,exceptions"]);
        String::from_utf8_lossy(&shown.stdout).into_owned()
    };
    let in_part = "; nothing a call and no share of the time follows";
    assert!(shown(&part).contains(in_part), "{}", shown(&part));
    assert!(!shown(&whole).contains(in_part), "{}", shown(&whole));
    let compared = run_headwater(&["diff", &part, &whole]);
    let compared = String::from_utf8_lossy(&compared.stdout).into_owned();
    assert!(compared.contains(" before: counted from ") && compared.contains(", and so not compared"), "{compared}");
}
