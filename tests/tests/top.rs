//! `headwater top` in a pseudo-terminal: what it shows, and that it leaves the terminal as it found it.

use headwater_tests::terminal::{Modes, Terminal};
use headwater_tests::{Jdk, Process, Scratch, calls_by_method, compile, headwater, java, read_report, run_headwater};
use rustix::process::Signal;

headwater_tests::trials! {
    each_jdk {
        calls_appear_as_they_are_made_on_a_terminal_that_changes_its_size,
        when_the_target_is_killed_its_last_results_stay_and_are_written,
    }
    first_jdk {
        signals_and_ctrl_c_leave_the_terminal_and_the_target_as_they_were,
        recording_is_paused_cleared_and_gone_on_with_and_results_are_frozen_and_saved,
        a_profile_that_is_complete_stays_on_the_screen_and_is_reported_when_it_is_left,
        a_second_is_enough_for_little_output,
        without_a_terminal_another_way_is_named,
        a_root_that_matches_nothing_and_a_target_that_is_none_never_take_the_terminal,
    }
}

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 60);

/// A target whose root is left only when it is told to, and the view of it.
struct Watched {
    _classes: Scratch,
    target: Process,
    terminal: Terminal,
    /// How the terminal was before.
    before: Modes,
}

impl Watched {
    fn start(jdk: &Jdk, (columns, rows): (u16, u16), arguments: &[&str]) -> Watched {
        let classes = compile(jdk, &["Steps.java"]);
        let mut target = java(jdk, &classes, &[], &["Steps"]);
        target.await_line("READY");
        let mut command = headwater();
        command.arg("top").arg(target.pid().to_string());
        command.args(["--root", "Steps::root", "--exclude", "Steps::next", "--period", "100ms"]).args(arguments);
        // The modes are known before the program may change them.
        let before = Terminal::spawn(std::process::Command::new("true").env("LC_ALL", "C.UTF-8")).modes();
        let terminal = Terminal::sized(command.env("LC_ALL", "C.UTF-8"), columns, rows);
        let mut watched = Watched { _classes: classes, target, terminal, before };
        watched.terminal.await_text("Nothing recorded yet");
        assert!(watched.terminal.screen().alternate_screen() && watched.terminal.screen().hide_cursor());
        assert_ne!(watched.terminal.modes(), watched.before, "keys come one by one");
        watched
    }

    /// Executes a line of the target, up to its answer.
    fn go(&mut self, line: &str, answer: &str) {
        self.target.say(line);
        self.target.await_line(answer);
    }

    /// Waits for a row of the table with so many calls.
    fn await_calls(&mut self, method: &str, calls: u64) -> Vec<String> {
        let is_row = |line: &String| {
            let mut words = line.split_whitespace().rev();
            let name = words.next() == Some(method);
            name && words.find(|word| !matches!(*word, "▾" | "▸")) == Some(&calls.to_string())
        };
        self.terminal.await_screen(&format!("{calls} calls of {method}"), |lines| lines.iter().any(is_row))
    }

    /// The terminal is as it was, and so is the target.
    fn assert_restored(&mut self) {
        let screen = self.terminal.screen();
        assert!(!screen.alternate_screen(), "the alternate screen is left");
        assert!(!screen.hide_cursor(), "the cursor is to be seen");
        assert_eq!(self.terminal.modes(), self.before);
    }

    fn leave_target(mut self) {
        let left = run_headwater(&["detach", &self.target.pid().to_string()]);
        assert!(String::from_utf8_lossy(&left.stdout).contains("nothing to detach"), "{left:?}");
        self.target.say("leave");
        self.target.say("quit");
        assert!(self.target.finish().status.success());
    }
}

fn calls_appear_as_they_are_made_on_a_terminal_that_changes_its_size(jdk: &Jdk) {
    for (size, other) in [(SMALL, LARGE), (LARGE, SMALL)] {
        let mut watched = Watched::start(jdk, size, &[]);
        watched.terminal.await_text("root      Steps::root: waiting for entry");
        watched.go("enter", "INSIDE");
        watched.await_calls("Steps.step()", 3);
        watched.terminal.await_text("root      Steps::root: entered once");
        watched.terminal.resize(other.0, other.1);
        watched.go("step", "STEP");
        let lines = watched.await_calls("Steps.inside()", 1);
        // The keys stand in the last line, whichever that is.
        let (last, width) = (usize::from(other.1) - 1, usize::from(other.0));
        watched.terminal.await_screen("the keys below", |lines| lines[last].starts_with("? help  q quit"));
        assert!(lines.iter().all(|line| line.chars().count() <= width));
        watched.terminal.press("\t");
        watched.await_calls("Steps.step()", 4);
        watched.terminal.press("q");
        let status = watched.terminal.await_end();
        assert_eq!(status.code(), Some(0), "JDK {}: {:#?}", jdk.version, watched.terminal.lines());
        watched.assert_restored();
        watched.leave_target();
    }
}

fn when_the_target_is_killed_its_last_results_stay_and_are_written(jdk: &Jdk) {
    let scratch = Scratch::new("top");
    let file = scratch.file("last.json");
    let mut watched = Watched::start(jdk, SMALL, &["-o", &file.to_string_lossy()]);
    watched.go("enter", "INSIDE");
    watched.await_calls("Steps.step()", 3);
    watched.target.signal(Signal::KILL);
    watched.terminal.await_text("The target has ended. These are the last results");
    watched.terminal.await_text("ENDED after");
    watched.await_calls("Steps.step()", 3);
    watched.terminal.press("/inside\r");
    watched.terminal.await_text("1 match");
    watched.terminal.press("q");
    assert_eq!(watched.terminal.await_end().code(), Some(5), "JDK {}", jdk.version);
    watched.assert_restored();
    assert_eq!(calls_by_method(&read_report(&file))["Steps.step()V"], 3);
}

fn signals_and_ctrl_c_leave_the_terminal_and_the_target_as_they_were(jdk: &Jdk) {
    for signal in [None, Some(Signal::TERM), Some(Signal::HUP), Some(Signal::INT)] {
        let scratch = Scratch::new("top");
        let file = scratch.file("until-then.json");
        let mut watched = Watched::start(jdk, SMALL, &["-o", &file.to_string_lossy()]);
        watched.go("enter", "INSIDE");
        watched.await_calls("Steps.step()", 3);
        match signal {
            Some(signal) => watched.terminal.signal(signal),
            None => watched.terminal.press("\x03"),
        }
        assert_eq!(watched.terminal.await_end().code(), Some(0), "{signal:?}");
        watched.assert_restored();
        assert_eq!(calls_by_method(&read_report(&file))["Steps.step()V"], 3);
        watched.leave_target();
    }
}

fn recording_is_paused_cleared_and_gone_on_with_and_results_are_frozen_and_saved(jdk: &Jdk) {
    let scratch = Scratch::new("top");
    let mut watched = Watched::start(jdk, SMALL, &[]);
    watched.go("enter", "INSIDE");
    watched.await_calls("Steps.step()", 3);
    watched.terminal.press("f");
    watched.terminal.await_text("FROZEN");
    watched.go("step", "STEP");
    let file = scratch.file("frozen.json");
    watched.terminal.press(&format!("s\x15{}\r", file.display()));
    watched.terminal.await_text("saved to ");
    assert_eq!(calls_by_method(&read_report(&file))["Steps.step()V"], 3, "what is on the screen");
    watched.terminal.press("f");
    // Called from another place.
    watched.await_calls("Steps.step()", 1);
    watched.terminal.press("C");
    watched.await_calls("Steps.root()", 0);
    watched.go("leave", "OUTSIDE");
    watched.terminal.press("p");
    watched.terminal.await_text("PAUSED at");
    watched.go("enter", "INSIDE");
    watched.go("leave", "OUTSIDE");
    watched.terminal.press("p");
    watched.terminal.await_screen("recording again", |lines| lines[0].contains(" recording "));
    watched.go("enter", "INSIDE");
    watched.await_calls("Steps.step()", 3);
    watched.terminal.press("s\x15/no/such/directory/x.json\r");
    watched.terminal.await_text("not saved: ");
    watched.terminal.press("q");
    assert_eq!(watched.terminal.await_end().code(), Some(0));
    watched.assert_restored();
    watched.leave_target();
}

fn a_profile_that_is_complete_stays_on_the_screen_and_is_reported_when_it_is_left(jdk: &Jdk) {
    let mut watched = Watched::start(jdk, LARGE, &["--calls", "2", "--report"]);
    for _ in 0..2 {
        watched.go("enter", "INSIDE");
        watched.go("leave", "OUTSIDE");
    }
    watched.terminal.await_text("The profile is complete, and the target has its original code back");
    watched.await_calls("Steps.step()", 6);
    watched.terminal.press("q");
    assert_eq!(watched.terminal.await_end().code(), Some(0));
    watched.assert_restored();
    let lines = watched.terminal.lines();
    assert!(lines.iter().any(|line| line == "root Steps::root: entered 2 times"), "{lines:#?}");
    watched.leave_target();
}

fn a_second_is_enough_for_little_output(jdk: &Jdk) {
    let mut watched = Watched::start(jdk, LARGE, &[]);
    watched.go("enter", "INSIDE");
    watched.await_calls("Steps.step()", 3);
    watched.terminal.press("f");
    watched.terminal.await_text("FROZEN");
    let before = watched.terminal.received();
    watched.terminal.press("j");
    watched.terminal.press("k");
    watched.terminal.press("?");
    watched.terminal.await_text("this help");
    watched.terminal.press(" ");
    watched.terminal.await_text("FROZEN");
    let bytes = watched.terminal.received() - before;
    assert!(bytes < 12_000, "{bytes} bytes for four pictures, two of them of the help page, of 200 by 60 characters");
    watched.terminal.press("q");
    assert_eq!(watched.terminal.await_end().code(), Some(0));
    watched.leave_target();
}

fn without_a_terminal_another_way_is_named(jdk: &Jdk) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, &[], &["Steps"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    let refused = run_headwater(&["top", &pid, "--root", "Steps::root"]);
    assert_eq!(refused.status.code(), Some(2));
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains(&format!("headwater profile {pid} --root 'Steps::root' --live")), "{said}");
    target.say("quit");
    assert!(target.finish().status.success());
}

fn a_root_that_matches_nothing_and_a_target_that_is_none_never_take_the_terminal(jdk: &Jdk) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, &[], &["Steps"]);
    target.await_line("READY");
    let pid = target.pid().to_string();
    for (arguments, code, said) in [
        ([pid.as_str(), "--root", "Steps::rot"], 4, "Did you mean one of these?"),
        (["no-such-program", "--root", "Steps::root"], 3, "no-such-program"),
        ([pid.as_str(), "--root", "Steps::root(("], 2, "Steps::root(("),
    ] {
        let mut command = headwater();
        let mut terminal = Terminal::spawn(command.arg("top").args(arguments));
        assert_eq!(terminal.await_end().code(), Some(code));
        let lines = terminal.lines();
        assert!(lines.iter().any(|line| line.contains(said)), "{lines:#?}");
    }
    target.say("quit");
    assert!(target.finish().status.success());
}
