//! The overhead budget: what costs more than it tells is given up, and the profile says so.

use headwater_tests::{
    Jdk, Patience, Process, Scratch, calls_by_method, compile, counts_of_target, headwater, java, profile, read_report,
    run_headwater,
};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        a_tiny_method_is_given_up_its_calls_stop_there_and_all_others_go_on,
        with_a_number_of_calls_those_of_all_others_are_exact_and_the_programs_own_count_is_larger,
        results_can_be_forgotten_and_interrupted_and_the_prompt_says_what_was_dropped,
        unasked_a_call_is_not_made_longer_by_many_times_a_tenth_of_a_second,
        a_root_that_is_too_short_stays_and_the_report_says_that_the_budget_cannot_be_held,
    }
    once {
        a_budget_that_is_none_is_explained,
    }
}

const ROOT: &str = "Dense.root(I)I";
const MIDDLE: &str = "Dense.middle(I)I";
const TINY: &str = "Dense.tiny(I)I";
const RARE: &str = "Dense.rare(I)I";
/// Calls of each method a call of the root.
const MIDDLE_CALLS: u64 = 200;
const TINY_CALLS: u64 = 200 * 50;
const RARE_CALLS: u64 = 200 + 1;

/// A target that calls its root all the time, and a session with it that takes commands from a pipe.
struct Session {
    target: Process,
    tool: Process,
    scratch: Scratch,
    reports: usize,
}

impl Session {
    fn start(jdk: &Jdk) -> Session {
        Session::with(jdk, &["Dense"])
    }

    fn with(jdk: &Jdk, program: &[&str]) -> Session {
        let classes = compile(jdk, &["Dense.java"]);
        let mut target = java(jdk, &classes, &[], program);
        target.await_line("READY");
        let mut command = headwater();
        command.arg("attach").arg(target.pid().to_string());
        command.env("XDG_STATE_HOME", classes.path());
        let tool = Process::spawn(&mut command);
        Session { target, tool, scratch: classes, reports: 0 }
    }

    /// The report so far.
    fn report(&mut self) -> Value {
        self.reports += 1;
        let file = self.scratch.file(&format!("{}.json", self.reports));
        self.tool.say(&format!("tree > {}", file.display()));
        self.tool.say(&format!("echo written-{}", self.reports));
        self.tool.await_line(&format!("written-{}", self.reports));
        read_report(&file)
    }

    /// The first report that this holds for.
    fn await_report(&mut self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let mut patience = Patience::default();
        loop {
            let report = self.report();
            if is_so(&report) {
                return report;
            }
            assert!(patience.lasts(), "{what} never came: {report:#}");
        }
    }

    fn await_calls(&mut self, more: u64) -> Value {
        let calls = |report: &Value| calls_by_method(report).get(ROOT).copied().unwrap_or(0);
        let before = calls(&self.report());
        self.await_report("more calls of the root", |report| calls(report) >= before + more)
    }

    fn quit(mut self) {
        self.tool.say("quit");
        let tool = self.tool.finish();
        assert!(tool.status.success(), "{:#?}", tool.stderr);
        quit(self.target);
    }
}

/// The target's end; what it has counted.
fn quit(mut target: Process) -> std::collections::BTreeMap<String, u64> {
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "{:#?}", target.stderr);
    assert!(target.stdout.iter().any(|line| line == "WRONG 0"), "{:#?}", target.stdout);
    counts_of_target(&target.stdout)
}

fn dropped(report: &Value) -> Vec<&str> {
    let dropped = report["budget"]["dropped"].as_array().expect("a budget");
    dropped.iter().map(|dropped| dropped["method"].as_str().expect("a name")).collect()
}

fn nodes<'a>(report: &'a Value, method: &'a str) -> impl Iterator<Item = &'a Value> {
    report["nodes"].as_array().expect("nodes").iter().filter(move |node| node["method"] == method)
}

/// The methods that a method's nodes hang on.
fn parents<'a>(report: &'a Value, method: &'a str) -> Vec<&'a str> {
    let parent = |node: &'a Value| {
        let id = node["parent"].as_u64().expect("a parent") as usize;
        report["nodes"][id]["method"].as_str().expect("a name")
    };
    nodes(report, method).map(parent).collect()
}

fn a_tiny_method_is_given_up_its_calls_stop_there_and_all_others_go_on(jdk: &Jdk) {
    for clock in ["exact", "tick"] {
        let context = format!("JDK {}, {clock}", jdk.version);
        let mut session = Session::start(jdk);
        // A budget that a dense program cannot keep to by chance, however slow this machine is just now.
        session.tool.say(&format!("profile Dense::root --budget 1% --clock {clock}"));
        let first = session.await_report("a drop", |report| dropped(report).contains(&TINY));
        let entry = first["budget"]["dropped"].as_array().and_then(|all| all.iter().find(|one| one["method"] == TINY));
        let entry = entry.expect("it is there").clone();
        let later = session.await_calls(20);
        let [before, after] = [&first, &later].map(calls_by_method);
        assert_eq!(before[TINY], after[TINY], "{context}: no event of it comes any more");
        assert!(after[TINY] > 0 && after[TINY] < after[ROOT] * TINY_CALLS, "{context}: {after:?}");
        assert!(after[ROOT] >= before[ROOT] + 20, "{context}");
        assert_eq!(entry["calls"], before[TINY], "{context}");
        let until = entry["at_ns"].as_u64().expect("a time");
        assert!(until > 0 && Some(until) <= first["duration_ns"].as_u64(), "{context}");
        assert!(nodes(&later, TINY).all(|node| node["until_ns"] == until), "{context}: every node of it is marked");
        assert!(nodes(&later, ROOT).all(|node| node.get("until_ns").is_none()), "{context}");
        // What it called hangs on its caller now.
        let methods = dropped(&later);
        if !methods.contains(&RARE) && !methods.contains(&MIDDLE) {
            assert!(parents(&later, RARE).contains(&MIDDLE), "{context}: {later:#}");
        }
        assert!(!methods.contains(&ROOT), "{context}");
        assert_eq!(later["events"]["healed"], 0, "{context}: open calls end by themselves");
        assert_eq!(later["events"]["lost"], 0, "{context}");
        session.quit();
    }
}

fn unasked_a_call_is_not_made_longer_by_many_times_a_tenth_of_a_second(jdk: &Jdk) {
    const PLAIN: &str = "Dense.plain(I)I";
    const STEP: &str = "Dense.step(I)I";
    const LAST: &str = "Dense.last(I)I";
    let mut session = Session::with(jdk, &["Dense", "long"]);
    session.tool.say("profile Dense::plain");
    let is_dropped = |report: &Value| report.get("budget").is_some_and(|_| dropped(report).contains(&STEP));
    let first = session.await_report("a drop", is_dropped);
    let calls = |report: &Value, method: &str| calls_by_method(report).get(method).copied().unwrap_or(0);
    let later = session.await_report("more calls", |report| calls(report, PLAIN) >= calls(&first, PLAIN) + 20);
    let context = format!("JDK {}: {later:#}", jdk.version);
    assert_eq!(dropped(&later), [STEP], "{context}");
    // The thread may have been in the old method still, before its probe.
    assert!(calls(&later, STEP) <= calls(&first, STEP) + 1, "{context}");
    // It may be in a call, before its last callee; a call that was open at the beginning is not counted, what it called after that is.
    let open = later["roots"][0]["open"]["threads"].as_u64().expect("threads that were inside");
    let (entered, last) = (calls(&later, PLAIN), calls(&later, LAST));
    assert!(last <= entered + open && last + 1 >= entered, "{last} of {entered}, {open}; {context}");
    let warnings = later["warnings"].to_string();
    let says = |part: &str| assert!(warnings.contains(part), "{context}");
    ["calls of a root were made longer by more than ", ": 1 method was dropped"].into_iter().for_each(says);
    session.quit();
}

fn with_a_number_of_calls_those_of_all_others_are_exact_and_the_programs_own_count_is_larger(jdk: &Jdk) {
    const CALLS: &str = "3000";
    let classes = compile(jdk, &["Dense.java"]);
    let mut target = java(jdk, &classes, &[], &["Dense"]);
    target.await_line("READY");
    let file = classes.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let arguments = ["--root", "Dense::root", "--budget", "1%", "--calls", CALLS, "-o", &file_name];
    let tool = profile(&target, &arguments).finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    let theirs = quit(target);
    let report = read_report(&file);
    let ours = calls_by_method(&report);
    let methods = dropped(&report);
    assert_eq!(ours[ROOT].to_string(), CALLS);
    for (method, calls) in [(MIDDLE, MIDDLE_CALLS), (TINY, TINY_CALLS), (RARE, RARE_CALLS)] {
        let (ours, all) = (ours[method], calls * ours[ROOT]);
        if methods.contains(&method) {
            // All of them, if it was dropped when the last call was over.
            assert!(ours > 0 && ours <= all, "JDK {}: {method}", jdk.version);
        } else {
            assert_eq!(ours, all, "JDK {}: {method}", jdk.version);
        }
    }
    assert!(theirs[TINY] > ours[TINY] && theirs[ROOT] > ours[ROOT]);
    assert_eq!(report["events"]["healed"], 0, "JDK {}", jdk.version);
}

fn results_can_be_forgotten_and_interrupted_and_the_prompt_says_what_was_dropped(jdk: &Jdk) {
    let mut session = Session::start(jdk);
    session.tool.say("profile Dense::root --budget 1%");
    session.await_report("a drop", |report| dropped(report).contains(&TINY));
    session.tool.say("status");
    session.tool.await_line("budget    ");
    session.tool.await_line("dropped   ");
    session.tool.say("pause");
    session.tool.say("resume");
    session.tool.say("clear");
    let cleared = session.await_calls(20);
    assert_eq!(calls_by_method(&cleared).get(TINY).copied().unwrap_or(0), 0, "JDK {}", jdk.version);
    let entry = &cleared["budget"]["dropped"][0];
    assert_eq!((entry["calls"].as_u64(), entry["at_ns"].as_u64()), (Some(0), Some(0)), "JDK {}", jdk.version);
    // The next profile begins anew.
    session.tool.say("profile Dense::root --budget off");
    let anew = session.await_calls(5);
    assert!(anew.get("budget").is_none());
    assert!(calls_by_method(&anew)[TINY] > 0, "JDK {}", jdk.version);
    session.quit();
}

fn a_root_that_is_too_short_stays_and_the_report_says_that_the_budget_cannot_be_held(jdk: &Jdk) {
    let classes = compile(jdk, &["Dense.java"]);
    let mut target = java(jdk, &classes, &[], &["Dense"]);
    target.await_line("READY");
    let file = classes.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    // Nothing else is there to be dropped, after which measurement would begin anew; and so many calls that the budget sees them.
    let root = ["--root", "Dense::tiny", "--exclude", "Dense::rare", "--calls", "15000000"];
    let arguments = [&root[..], &["--budget", "1%", "-o", &file_name]].concat();
    let tool = profile(&target, &arguments).finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    quit(target);
    let report = read_report(&file);
    assert_eq!(calls_by_method(&report)[TINY], 15_000_000, "JDK {}", jdk.version);
    assert_eq!(report["budget"]["held"], false, "JDK {}: {}", jdk.version, report["budget"]);
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("the budget of 1% cannot be held"), "JDK {}: {warnings}", jdk.version);
}

fn a_budget_that_is_none_is_explained() {
    for (budget, part) in [("5", "in per cent, such as 5%"), ("0%", "more than 0%"), ("5000%", "at most 1000%")] {
        let output = run_headwater(&["profile", "1", "--root", "a.B::c", "--budget", budget]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && said.contains(part), "{budget}: {said}");
    }
}
