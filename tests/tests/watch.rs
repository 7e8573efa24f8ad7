//! `headwater watch`: JVMs come and go, each analysis gets every event, none holds up another, and nothing is left behind.

use std::fs;
use std::path::Path;
use std::process::Command;

use headwater_tests::terminal::Terminal;
use headwater_tests::{
    Jdk, Process, Scratch, await_that, compile_text, headwater, java, read_report, run, run_headwater,
};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        jvms_come_and_go_and_each_analysis_gets_every_event,
    }
    first_jdk {
        a_jvm_that_stands_still_holds_up_no_other,
        jvms_threads_and_stacks_are_on_the_screen_and_the_terminal_is_given_back,
        a_session_watches_its_target_to_its_end_and_nothing_is_lost,
    }
    once {
        what_cannot_be_watched_is_said,
    }
}

/// A thread that waits in a method, until the input ends.
const PROGRAM: &str = r#"
class NAME {
    static class Order {
        static void save(Object lock) throws InterruptedException {
            synchronized (lock) { lock.wait(); }
        }
    }

    public static void main(String[] args) throws Exception {
        Thread keeper = new Thread(() -> {
            try { Order.save(new Object()); } catch (InterruptedException end) { }
        }, "keeper");
        keeper.setDaemon(true);
        keeper.start();
        while (keeper.getState() != Thread.State.WAITING) Thread.sleep(1);
        System.out.println("READY");
        while (System.in.read() >= 0) { }
    }
}
"#;

/// JVMs that are called like no others on this machine.
struct Programs<'a> {
    jdk: &'a Jdk,
    name: String,
    classes: Scratch,
}

impl Programs<'_> {
    fn new<'a>(jdk: &'a Jdk, what: &str) -> Programs<'a> {
        let name = format!("Watched{what}{}x{}", std::process::id(), jdk.version);
        Programs { jdk, classes: compile_text(jdk, &PROGRAM.replace("NAME", &name)), name }
    }

    fn start(&self) -> Process {
        let mut process = java(self.jdk, &self.classes, &[], &[&self.name]);
        process.await_line("READY");
        process
    }
}

/// Whether a process is there, and more than an entry that somebody has still to wait for.
fn is_there(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

fn events<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<Value> {
    lines.into_iter().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

/// The kinds of events of a JVM, traces by their numbers.
fn of(events: &[Value], pid: u32) -> Vec<String> {
    let of = events.iter().filter(|event| event["pid"] == pid);
    of.map(|event| match event["event"].as_str().expect("a kind") {
        "trace" => format!("{}", event["number"]),
        "disconnected" => format!("disconnected: {}", event["reason"].as_str().expect("a reason")),
        other => other.to_owned(),
    })
    .collect()
}

/// It connected, was traced without a gap, and disconnected.
fn check_course(events: &[Value], pid: u32, reason: &str) {
    let seen = of(events, pid);
    let traces = seen.len() - 2;
    assert!(traces > 0, "{seen:?}");
    let expected: Vec<String> = std::iter::once("connected".to_owned())
        .chain((1..=traces).map(|number| number.to_string()))
        .chain([format!("disconnected: {reason}")])
        .collect();
    assert_eq!(seen, expected);
}

fn jvms_come_and_go_and_each_analysis_gets_every_event(jdk: &Jdk) {
    let programs = Programs::new(jdk, "Going");
    let scratch = Scratch::new("watch");
    let (given, recorded, numbers) = (scratch.file("given"), scratch.file("all.hwr"), scratch.file("numbers"));
    let graph = scratch.file("calls.dot");
    let first = programs.start();
    let first_pid = first.pid();
    let mut command = headwater();
    command.args(["watch", &programs.name, "--every", "100ms", "--format", "json", "-o"]).arg(&recorded);
    command.arg("-o").arg(&graph);
    let all = format!("cat > {}", given.display());
    // One that dies, and one that never reads and never ends.
    let stuck = format!("echo $$ > {}; exec sleep 1000", numbers.display());
    let analyses = ["head -n 2 > /dev/null; exit 7", &all, &stuck];
    let mut tool = Process::spawn(command.args(analyses.iter().flat_map(|analysis| ["--analysis", analysis])));
    tool.await_line("{\"event\":\"connected\"");
    let connected = tool.await_line("{\"event\":\"trace\"");
    tool.await_error_line("`head -n 2 > /dev/null; exit 7` has ended (exit status: 7), and is given nothing more");
    // One comes, one goes.
    let second = programs.start();
    let second_pid = second.pid();
    tool.await_line("{\"event\":\"connected\"");
    assert!(first.finish().status.success());
    let disconnected = tool.await_line("{\"event\":\"disconnected\"");
    assert!(disconnected.contains(&format!("\"pid\":{first_pid},\"reason\":\"ended\"")), "{disconnected}");
    tool.await_line("{\"event\":\"trace\"");
    tool.signal(Signal::INT);
    tool.await_line("{\"event\":\"disconnected\"");
    let last = "\"reason\":\"left\"}\n";
    await_that("the last event", || fs::read_to_string(&given).is_ok_and(|given| given.ends_with(last)));
    // The analysis that stays is waited for, unless we have had enough.
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
    assert!(
        tool.stderr.iter().any(|line| line.contains("did not end by itself, and was killed")),
        "{:#?}",
        tool.stderr
    );
    let stuck = fs::read_to_string(&numbers).expect("it wrote its number");
    assert!(!is_there(stuck.trim()), "no process is left");
    assert!(second.finish().status.success());

    let given = fs::read_to_string(&given).expect("it was given something");
    let given = events(given.lines());
    check_course(&given, first_pid, "ended");
    check_course(&given, second_pid, "left");
    for pid in [first_pid, second_pid] {
        // The second one may have been found before it had come so far.
        let is_trace = |event: &&Value| event["event"] == "trace" && event["pid"] == pid;
        let trace = given.iter().rfind(is_trace).expect("a trace");
        let threads = trace["threads"].as_array().expect("threads");
        let keeper = threads.iter().find(|thread| thread["name"] == "keeper").expect("its thread is there");
        let stack = &trace["stacks"][keeper["stack"].as_u64().expect("a stack") as usize];
        let is_place = |frame: &Value| frame.as_str().is_some_and(|frame| frame.contains("Order.save("));
        assert!(stack.as_array().expect("frames").iter().any(is_place), "{stack}");
        assert_eq!((&keeper["state"], &keeper["daemon"]), (&"WAITING".into(), &true.into()));
    }
    check_first(&connected, first_pid);
    // The recording has the same, and is whole.
    assert_eq!(events(unpacked(&recorded).lines()), given);
    // As a profile each JVM is a frame at the top.
    let report = scratch.file("report.json");
    let arguments = ["report", &recorded.to_string_lossy(), "-o", &report.to_string_lossy()].map(str::to_owned);
    assert!(run(headwater().args(arguments)).status.success());
    let report = read_report(&report);
    let nodes = report["nodes"].as_array().expect("nodes");
    let mut tops: Vec<&str> =
        nodes.iter().filter(|node| node["parent"].is_null()).filter_map(|node| node["method"].as_str()).collect();
    tops.sort_unstable();
    let mut expected = [first_pid, second_pid].map(|pid| format!("[{pid} {}]", programs.name));
    expected.sort_unstable();
    assert_eq!(tops, expected);
    let graph = fs::read_to_string(&graph).expect("it is written at the end");
    assert!(graph.starts_with("digraph calls {") && graph.contains("Order.save"), "{graph}");
    let analysed = run_headwater(&["analyse", "reliability", &recorded.to_string_lossy()]);
    let said = String::from_utf8_lossy(&analysed.stdout);
    assert!(said.starts_with(&format!("{}: ", programs.name)), "{said}");
}

/// A first trace has all that a reader needs to know of a moment.
fn check_first(trace: &str, pid: u32) {
    let trace = &events([trace])[0];
    assert_eq!((&trace["schema"], &trace["pid"]), (&"headwater-watch/1".into(), &pid.into()));
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    assert_eq!((&trace["host"], &trace["whole"]), (&host.trim().into(), &true.into()));
}

fn unpacked(recording: &Path) -> String {
    let output = run(Command::new("zcat").arg("-f").arg(recording));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn a_jvm_that_stands_still_holds_up_no_other(jdk: &Jdk) {
    let programs = Programs::new(jdk, "Standing");
    let (stopped, going) = (programs.start(), programs.start());
    let mut tool =
        Process::spawn(headwater().args(["watch", &stopped.pid().to_string(), &going.pid().to_string()]).args([
            "--every",
            "100ms",
            "--find",
            "order.save",
        ]));
    let in_save = |tool: &mut Process, of: &Process| {
        let begins = format!(" {} {}  \"keeper\" WAITING  ", of.pid(), programs.name);
        let mut line = String::new();
        await_that("who stands in it", || {
            line = tool.await_line("");
            line.contains(&begins)
        });
        assert!(line.contains("Order.save("), "{line}");
    };
    in_save(&mut tool, &stopped);
    stopped.stop();
    tool.await_error_line("does not answer, and is asked again: ");
    tool.pending_lines();
    in_save(&mut tool, &going);
    stopped.signal(Signal::CONT);
    tool.await_error_line("answers again");
    in_save(&mut tool, &stopped);
    assert!(stopped.finish().status.success() && going.finish().status.success());
    // All have ended, so nothing is left to be done.
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
}

fn a_session_watches_its_target_to_its_end_and_nothing_is_lost(jdk: &Jdk) {
    let programs = Programs::new(jdk, "Session");
    let target = programs.start();
    let pid = target.pid();
    let scratch = Scratch::new("script");
    let (script, recording) = (scratch.file("s.hws"), scratch.file("all.hwr"));
    let profile = format!("profile {}$Order::save --await-root\n", programs.name);
    fs::write(&script, format!("{profile}watch -d 10m --every 100ms --find order.save > ${{OUT}}\n"))
        .expect("a script");
    let mut command = headwater();
    command.arg("session").arg(&script).arg(pid.to_string()).arg("--set").arg(format!("OUT={}", recording.display()));
    let mut tool = Process::spawn(&mut command);
    await_that("its thread", || tool.await_line("").contains("Order.save("));
    assert!(target.finish().status.success());
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(5), "{:#?}", tool.stderr);
    check_course(&events(unpacked(&recording).lines()), pid, "ended");
}

fn jvms_threads_and_stacks_are_on_the_screen_and_the_terminal_is_given_back(jdk: &Jdk) {
    let programs = Programs::new(jdk, "Shown");
    let (first, second) = (programs.start(), programs.start());
    let before = Terminal::spawn(&Command::new("true")).modes();
    let scratch = Scratch::new("shown");
    let recording = scratch.file("shown.hwr");
    let mut command = headwater();
    command.args(["watch", &programs.name, "--every", "100ms", "-o"]).arg(&recording).env("LC_ALL", "C");
    let mut terminal = Terminal::spawn(&command);
    let rows = |lines: &[String]| lines.iter().filter(|line| line.ends_with(&programs.name)).count();
    terminal.await_screen("both JVMs", |lines| rows(lines) == 2);
    assert!(terminal.screen().alternate_screen());
    terminal.press("/Order.save");
    terminal.await_text("2 threads in 2 JVMs");
    terminal.press("\r\t\t");
    terminal.await_screen("the frame", |lines| {
        lines.iter().any(|line| line.starts_with("> at ") && line.contains("Order.save("))
    });
    terminal.press("p");
    let paused = terminal.await_text("PAUSED, as of ");
    assert!(second.finish().status.success());
    terminal.press("p");
    terminal.await_text("has ended (");
    assert_eq!(rows(&paused), 2, "{paused:#?}");
    terminal.press("q");
    assert!(terminal.await_end().success());
    assert!(!terminal.screen().alternate_screen() && !terminal.screen().hide_cursor());
    assert_eq!(terminal.modes(), before);
    let recorded = events(unpacked(&recording).lines());
    check_course(&recorded, first.pid(), "left");
    assert!(first.finish().status.success());
}

fn what_cannot_be_watched_is_said() {
    let own = std::process::id().to_string();
    for (arguments, code, said) in [
        (&["watch"][..], 2, "required arguments were not provided"),
        (&["watch", &own], 3, "is not a JVM"),
        (&["watch", "x", "-o", "a"], 2, "a recording's name ends in .hwr"),
        (&["watch", "x", "-o", "a.foo"], 2, "its extension names no format"),
        (&["watch", "x", "-o", "/nowhere/a.hwr"], 2, "there is no directory"),
        (&["watch", "x", "--find", "y", "--format", "json"], 2, "--find is for lines to be read"),
        (&["analyse", "still", "/nowhere/a.hwr"], 1, "cannot open /nowhere/a.hwr"),
    ] {
        let output = run_headwater(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(error.contains(said), "{arguments:?}: {error}");
    }
}
