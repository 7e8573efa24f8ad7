//! The interactive session, in a pseudo-terminal and from a pipe.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use headwater_tests::terminal::Terminal;
use headwater_tests::{
    Jdk, Process, Scratch, await_that, calls_by_method, compile, counts_of_target, headwater, java, read_report,
};
use rustix::process::Signal;

headwater_tests::trials! {
    each_jdk {
        results_up_to_now_equal_the_programs_own_count,
        open_methods_are_there_and_results_can_be_forgotten_interrupted_and_gone_on_with,
        calls_from_before_an_interruption_are_not_ended_behind_it,
        regions_are_timed_until_their_end_or_ctrl_c_and_the_profile_before_stays,
        a_target_that_dies_is_announced_at_once_and_its_results_stay,
        commands_may_come_from_a_pipe,
    }
    first_jdk {
        ctrl_c_stops_a_command_and_not_the_session,
        the_end_of_input_detaches,
        commands_classes_and_methods_are_completed,
        lines_are_remembered_from_session_to_session,
        mistakes_are_explained_and_do_no_harm,
    }
    once {
        what_cannot_be_attached_to_is_an_error,
    }
}

const PROMPT: &str = "headwater> ";

/// A target, and a session with it at its first prompt.
struct Session {
    _classes: Scratch,
    home: Scratch,
    target: Process,
    terminal: Terminal,
}

impl Session {
    fn start(jdk: &Jdk, main: &str) -> Session {
        let classes = compile(jdk, &["Counter.java", &format!("{main}.java")]);
        let mut target = java(jdk, &classes, &[], &[main]);
        target.await_line("READY");
        let home = Scratch::new("home");
        let mut command = headwater();
        command.arg("attach").arg(target.pid().to_string()).env("XDG_STATE_HOME", home.path());
        let mut terminal = Terminal::spawn(&command);
        terminal.expect("attached to ");
        terminal.expect(PROMPT);
        Session { _classes: classes, home, target, terminal }
    }

    /// Executes a command; what it says.
    fn run(&mut self, command: &str) -> String {
        self.terminal.say(command);
        // The editor shows the line, and again as it was accepted; then comes what it says.
        self.terminal.expect("\n");
        self.terminal.expect(PROMPT)
    }

    /// Executes a line of the target, up to its answer.
    fn go(&mut self, line: &str, answer: &str) {
        self.target.say(line);
        self.target.await_line(answer);
    }

    /// Calls by method, up to now.
    fn calls(&mut self, name: &str) -> BTreeMap<String, u64> {
        let file = self.home.file(name);
        let said = self.run(&format!("tree > {}", file.display()));
        assert!(file.exists(), "{said}");
        calls_by_method(&read_report(&file))
    }

    /// The end of both, well.
    fn quit(mut self) -> Vec<String> {
        self.terminal.say("quit");
        let (status, rest) = self.terminal.finish();
        assert_eq!(status.code(), Some(0), "{rest}");
        quit_target(self.target)
    }
}

fn quit_target(mut target: Process) -> Vec<String> {
    target.say("quit");
    let finished = target.finish();
    assert!(finished.status.success(), "{:#?}", finished.stderr);
    assert!(finished.stdout.iter().any(|line| line == "BYE"));
    finished.stdout
}

#[track_caller]
fn assert_says(said: &str, part: &str) {
    assert!(said.contains(part), "{part:?} is not in:\n{said}");
}

fn counts(calls: &[(&str, u64)]) -> BTreeMap<String, u64> {
    calls.iter().map(|(method, calls)| ((*method).to_owned(), *calls)).collect()
}

fn results_up_to_now_equal_the_programs_own_count(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Counting");
    assert_says(
        &session.run("profile Counting::root --exclude Counter --gentle off"),
        "instrumented, waiting for entry",
    );
    assert_says(&session.run("roots"), "Counting::root  waiting for entry");
    for entered in ["entered once", "entered 2 times"] {
        session.go("go", "RESULT ");
        assert_says(&session.run("status"), entered);
    }
    let ours = session.calls("so-far.json");
    let theirs = counts_of_target(&session.quit());
    assert!(theirs.len() > 20, "{theirs:#?}");
    for (method, calls) in &theirs {
        assert_eq!(ours.get(method), Some(calls), "JDK {}: {method}", jdk.version);
    }
}

fn open_methods_are_there_and_results_can_be_forgotten_interrupted_and_gone_on_with(jdk: &Jdk) {
    const ROOT: &str = "Steps.root()V";
    const INSIDE: &str = "Steps.inside()V";
    const STEP: &str = "Steps.step()V";
    let mut session = Session::start(jdk, "Steps");
    // What waits for the next line is entered some time after its answer.
    session.run("filter exclude Steps::next");
    session.run("profile Steps::root --gentle off");
    session.go("enter", "INSIDE");
    assert_eq!(session.calls("a.json"), counts(&[(ROOT, 1), (INSIDE, 1), (STEP, 3)]), "inside");
    session.go("step", "STEP");
    assert_eq!(session.calls("b.json"), counts(&[(ROOT, 1), (INSIDE, 1), (STEP, 4)]), "in two places");
    session.run("clear");
    session.go("step", "STEP");
    assert_eq!(session.calls("c.json"), counts(&[(ROOT, 0), (INSIDE, 0), (STEP, 1)]), "cleared");
    session.go("leave", "OUTSIDE");
    session.run("pause");
    assert_says(&session.run("status"), "recording is interrupted");
    session.go("enter", "INSIDE");
    session.go("leave", "OUTSIDE");
    assert_eq!(session.calls("d.json"), counts(&[(ROOT, 0), (INSIDE, 0), (STEP, 1)]), "interrupted");
    session.run("resume");
    session.go("enter", "INSIDE");
    session.go("leave", "OUTSIDE");
    assert_eq!(session.calls("e.json"), counts(&[(ROOT, 1), (INSIDE, 1), (STEP, 4)]), "gone on");

    assert_says(&session.run("profile Steps::other --gentle off"), "the profile ended with 1 root call");
    session.go("enter", "INSIDE");
    session.go("leave", "OUTSIDE");
    session.go("other", "OTHER");
    assert_eq!(session.calls("f.json"), counts(&[("Steps.other()V", 1), (STEP, 1)]), "other roots");
    assert_says(&session.run("stop"), "the profile ended with 1 root call; the target has its original code back");
    session.go("other", "OTHER");
    assert_eq!(session.calls("g.json"), counts(&[("Steps.other()V", 1), (STEP, 1)]), "the results stay");
    let snapshot = session.home.file("snapshot.hw");
    assert_says(&session.run(&format!("snapshot {}", snapshot.display())), "written to");
    let report = headwater_tests::run(headwater().arg("report").arg(&snapshot).args(["--format", "json"]));
    let report = serde_json::from_slice(&report.stdout).expect("JSON");
    assert_eq!(calls_by_method(&report), counts(&[("Steps.other()V", 1), (STEP, 1)]), "a snapshot has them");
    session.quit();
}

fn calls_from_before_an_interruption_are_not_ended_behind_it(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    session.run("filter exclude Steps::next");
    session.run("profile Steps::root --gentle off");
    session.go("enter", "INSIDE");
    session.run("pause");
    session.run("resume");
    session.go("leave", "OUTSIDE");
    session.go("enter", "INSIDE");
    session.go("leave", "OUTSIDE");
    let expected = counts(&[("Steps.root()V", 2), ("Steps.inside()V", 2), ("Steps.step()V", 6)]);
    assert_eq!(session.calls("report.json"), expected, "JDK {}", jdk.version);
    let report = read_report(&session.home.file("report.json"));
    assert_eq!(report["events"]["healed"], 0, "JDK {}", jdk.version);
    session.quit();
}

fn ctrl_c_stops_a_command_and_not_the_session(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    session.terminal.say("wait 1h");
    session.terminal.expect("\n");
    // The line is accepted, and the terminal given back, before the wait begins: only then is Ctrl-C a signal.
    await_that("the terminal given back", || !session.terminal.is_raw());
    session.terminal.press("\x03");
    session.terminal.expect("interrupted");
    session.terminal.expect(PROMPT);
    session.terminal.press("not finished\x03");
    session.terminal.expect(PROMPT);
    assert_says(&session.run("status"), "attached; no profile is being recorded");
    session.quit();
}

fn regions_are_timed_until_their_end_or_ctrl_c_and_the_profile_before_stays(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Regions");
    session.run("profile Regions::elsewhere");
    session.go("go", "DONE");
    session.terminal.say("region Regions::outer --calls 30");
    session.terminal.expect("the profile ended with ");
    session.terminal.expect("instrumented, waiting for entry");
    (0..2).for_each(|_| session.go("go", "DONE"));
    session.terminal.expect("Regions.outer(int): 30 calls, ");
    session.terminal.expect(PROMPT);

    session.terminal.say("region Regions::outer Regions::inner");
    (0..2).for_each(|_| drop(session.terminal.expect("instrumented, waiting for entry")));
    session.go("go", "DONE");
    session.terminal.press("\x03");
    session.terminal.expect("Regions.outer(int): 20 calls, ");
    session.terminal.expect(PROMPT);

    assert_says(&session.run("region Regions::inner -d 1ms"), "Regions.inner(int): not called");
    assert_says(&session.run("region Regions::iner -d 1ms"), "Regions::inner");
    assert_says(&session.run("tree"), "Regions.elsewhere(");
    session.quit();
}

fn the_end_of_input_detaches(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    session.run("profile Steps::root --gentle off");
    session.terminal.press("\x04");
    let (status, rest) = session.terminal.finish();
    assert_eq!(status.code(), Some(0), "{rest}");
    let left = headwater_tests::run(headwater().arg("detach").arg(session.target.pid().to_string()));
    assert!(String::from_utf8_lossy(&left.stdout).contains("nothing to detach"), "{left:?}");
    quit_target(session.target);
}

fn a_target_that_dies_is_announced_at_once_and_its_results_stay(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    session.run("profile Steps::root --gentle off");
    session.go("enter", "INSIDE");
    session.target.signal(Signal::KILL);
    session.terminal.expect("ended; the results up to then are kept");
    session.terminal.expect(PROMPT);
    for report in ["tree", "flat", "callers Steps.inside"] {
        assert_says(&session.run(report), "Steps.inside()");
    }
    assert_says(&session.run("callers Steps.nothing"), "Steps.nothing");
    assert_says(&session.run("clear"), "no profile is being recorded");
    session.terminal.say("quit");
    let (status, rest) = session.terminal.finish();
    assert_eq!(status.code(), Some(5), "{rest}");
}

fn commands_classes_and_methods_are_completed(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    for (typed, completed) in
        [("prof\t", "profile "), ("St\t", "Steps::"), ("ro\t", "Steps::root "), ("--clock ti\t", "tick ")]
    {
        session.terminal.press(typed);
        session.terminal.expect(completed);
    }
    session.terminal.press("\r");
    session.terminal.expect("instrumented, waiting for entry");
    session.terminal.expect(PROMPT);
    session.quit();
}

fn lines_are_remembered_from_session_to_session(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    session.run("methods Steps::ot*");
    session.terminal.say("quit");
    session.terminal.finish();
    let mut command = headwater();
    command.arg("attach").arg(session.target.pid().to_string()).env("XDG_STATE_HOME", session.home.path());
    let mut again = Terminal::spawn(&command);
    again.expect(PROMPT);
    again.press("\x1b[A\x1b[A\r");
    again.expect("Steps.other()");
    again.say("quit");
    assert!(again.finish().0.success());
    quit_target(session.target);
}

fn mistakes_are_explained_and_do_no_harm(jdk: &Jdk) {
    let mut session = Session::start(jdk, "Steps");
    for (line, said) in [
        ("tre", "there is no command 'tre'"),
        ("tree", "nothing has been profiled yet; `profile METHOD` begins"),
        ("profile Steps::rot", "Did you mean one of these?\r\n  Steps::root"),
        ("profile Stepz::root", "no loaded class matches the root Stepz::root"),
        ("methods Steps::nothing", "no method of a loaded class matches Steps::nothing"),
        ("wait calls 3", "no profile is being recorded"),
        ("help wait", "Usage: wait"),
        ("# nothing", ""),
    ] {
        assert_says(&session.run(line), said);
    }
    session.run("profile Steps::root --gentle off");
    session.go("enter", "INSIDE");
    session.go("leave", "OUTSIDE");
    assert_says(&session.run("roots"), "entered once");
    session.quit();
}

fn commands_may_come_from_a_pipe(jdk: &Jdk) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, &[], &["Steps"]);
    target.await_line("READY");
    let mut tool = Process::spawn(headwater().arg("attach").arg(target.pid().to_string()));
    tool.say("profile Steps::root");
    tool.await_error_line("waiting for entry");
    target.say("enter");
    target.await_line("INSIDE");
    tool.say("wait root-entered 60s");
    tool.say("roots");
    tool.await_line("Steps::root  entered once");
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "{tool:#?}");
    target.say("leave");
    quit_target(target);
}

fn what_cannot_be_attached_to_is_an_error() {
    let output = run(headwater().args(["attach", "no.such.Program"]));
    assert_eq!(output.0, Some(3), "{}", output.1);
    assert_says(&output.1, "no running JVM has `no.such.Program` in the name");
    assert!(!Path::new("no.such.Program").exists());
}

fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = headwater_tests::run(command);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
