//! Session scripts: those that are shipped, and how scripts fail.

use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_tests::{Jdk, Process, Scratch, calls_by_method, compile, headwater, java, read_report};
use rustix::process::Signal;

headwater_tests::trials! {
    each_jdk {
        the_shipped_report_shows_and_keeps_what_a_time_brings,
        the_shipped_steady_measures_after_the_warm_up_only,
        the_shipped_gate_passes_and_fails_by_its_budget,
        a_script_times_regions_before_and_beside_a_profile,
        the_first_failure_says_where_it_is_and_decides_the_exit_code,
        a_target_that_ends_fails_the_script,
    }
    first_jdk {
        a_script_attaches_by_itself_and_is_read_from_standard_input,
    }
    once {
        shipped_scripts_are_checked_without_a_target_and_have_no_mistakes,
        a_script_is_checked_without_the_target_that_it_will_be_given,
    }
}

const ROOT: &str = "Steps::root";

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts").join(name)
}

/// A target whose root is left when it is told to.
struct Target {
    _classes: Scratch,
    process: Process,
}

impl Target {
    fn start(jdk: &Jdk) -> Target {
        let classes = compile(jdk, &["Steps.java"]);
        let mut process = java(jdk, &classes, &[], &["Steps"]);
        process.await_line("READY");
        Target { _classes: classes, process }
    }

    /// Calls the root.
    fn call(&mut self) {
        self.process.say("enter");
        self.process.say("leave");
        self.process.await_line("OUTSIDE");
    }

    /// Starts a session with it.
    fn session(&self, script: &Path, settings: &[&str]) -> Process {
        let mut command = headwater();
        command.arg("session").arg(script).arg(self.process.pid().to_string());
        for setting in settings {
            command.args(["--set", setting]);
        }
        Process::spawn(&mut command)
    }

    fn quit(mut self) {
        self.process.say("quit");
        assert!(self.process.finish().status.success());
    }
}

fn the_shipped_report_shows_and_keeps_what_a_time_brings(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("out");
    let file = out.file("report.json");
    let set = [format!("ROOT={ROOT}"), "TIME=1ms".to_owned(), format!("OUT={}", file.display())];
    let mut tool = target.session(&shipped("report.hws"), &set.each_ref().map(String::as_str));
    tool.await_error_line("waiting for entry");
    target.call();
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
    assert!(tool.stdout.iter().any(|line| line.ends_with("Steps.root()")), "{:#?}", tool.stdout);
    assert!(tool.stdout.iter().any(|line| line.ends_with("  main")), "{:#?}", tool.stdout);
    assert_eq!(calls_by_method(&read_report(&file))["Steps.root()V"], 1);
    target.quit();
}

fn the_shipped_steady_measures_after_the_warm_up_only(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("out");
    let file = out.file("steady.json");
    let set = [format!("ROOT={ROOT}"), "WARM=3".into(), "CALLS=2".into(), format!("OUT={}", file.display())];
    let mut tool = target.session(&shipped("steady.hws"), &set.each_ref().map(String::as_str));
    tool.await_line("warming up");
    (0..3).for_each(|_| target.call());
    tool.await_line("measuring");
    (0..2).for_each(|_| target.call());
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
    assert_eq!(calls_by_method(&read_report(&file))["Steps.root()V"], 2);
    target.quit();
}

fn the_shipped_gate_passes_and_fails_by_its_budget(jdk: &Jdk) {
    for (budget, code) in [("1h", 0), ("1ns", 1)] {
        let mut target = Target::start(jdk);
        let out = Scratch::new("out");
        let file = out.file("gate.json");
        let set = [
            format!("ROOT={ROOT}"),
            "CALLS=2".to_owned(),
            format!("BUDGET={budget}"),
            format!("OUT={}", file.display()),
        ];
        let mut tool = target.session(&shipped("gate.hws"), &set.each_ref().map(String::as_str));
        tool.await_error_line("waiting for entry");
        (0..3).for_each(|_| target.call());
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(code), "{:#?}", tool.stderr);
        let failed = tool.stderr.iter().any(|line| line.contains("expected total(Steps::root) < 1ns, but it is "));
        assert_eq!(failed, code == 1, "{:#?}", tool.stderr);
        assert_eq!(calls_by_method(&read_report(&file))["Steps.root()V"], 2);
        target.quit();
    }
}

fn shipped_scripts_are_checked_without_a_target_and_have_no_mistakes() {
    for name in ["report.hws", "steady.hws", "gate.hws"] {
        let mut command = headwater();
        command.arg("session").arg(shipped(name)).args(["any", "--dry-run"]);
        command.args(["--set", "ROOT=a.B::c", "--set", "BUDGET=1s"]);
        let (code, errors) = run(&mut command);
        assert!(code == Some(0) && errors.contains("no mistake found"), "{name}: {errors}");
        let (code, errors) = run(headwater().arg("session").arg(shipped(name)).args(["any", "--dry-run"]));
        assert!(code == Some(2) && errors.contains(&format!("{name}:")), "{errors}");
        assert!(errors.contains("there is no variable ROOT; set it by --set ROOT=VALUE"), "{errors}");
    }
}

fn a_script_times_regions_before_and_beside_a_profile(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let out = Scratch::new("out");
    let script = out.file("s.hws");
    let text = "region Steps::root --calls 2 > ${OUT}\nregion Steps::other -d 1ms\nprofile Steps::root --calls 1\n\
                wait done 60s\nexpect root-calls == 1\n";
    std::fs::write(&script, text).expect("a script");
    let file = out.file("times.json");
    let mut tool = target.session(&script, &[&format!("OUT={}", file.display())]);
    tool.await_error_line("region Steps::root");
    (0..2).for_each(|_| target.call());
    tool.await_error_line("region Steps::other");
    tool.await_error_line("root Steps::root");
    target.call();
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
    assert!(tool.stdout.iter().any(|line| line == "Steps.other(): not called"), "{:#?}", tool.stdout);
    let report = read_report(&file);
    assert_eq!(report["regions"][0]["methods"][0]["count"], 2, "{report}");
    target.quit();
}

/// A script with the text, executed with a target.
fn fails(target: &Target, text: &str) -> (Option<i32>, String) {
    let directory = Scratch::new("script");
    let file = directory.file("s.hws");
    std::fs::write(&file, text).expect("a script");
    let tool = target.session(&file, &[]).finish();
    (tool.status.code(), tool.stderr.last().cloned().unwrap_or_default())
}

fn the_first_failure_says_where_it_is_and_decides_the_exit_code(jdk: &Jdk) {
    let target = Target::start(jdk);
    for (text, code, message) in [
        ("profile Steps::root\n  expect root-calls > 0\n", 1, "s.hws:2:3: expected root-calls > 0, but it is 0"),
        ("profile Steps::root\nwait root-entered 10ms\n", 1, "s.hws:2:1: waited 10ms in vain for a root to be entered"),
        ("profile Steps::root\nwait done\nexpekt\n", 2, "s.hws:3:1: there is no command 'expekt'"),
        ("attach no.such.Program\n", 3, "s.hws:1:1: no running JVM has `no.such.Program`"),
        ("\n\nprofile Steps::nothing --duration 1s\n", 4, "s.hws:3:1: the class of the root Steps::nothing is loaded"),
        ("echo 'fine' # and no more\n", 0, "attached to Steps"),
    ] {
        let (found, said) = fails(&target, text);
        assert_eq!(found, Some(code), "{text}: {said}");
        assert!(said.contains(message), "{text}: {said}");
    }
    target.quit();
}

fn a_target_that_ends_fails_the_script(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let directory = Scratch::new("script");
    let file = directory.file("s.hws");
    std::fs::write(&file, "profile Steps::root\nwait done\n").expect("a script");
    let mut tool = target.session(&file, &[]);
    tool.await_error_line("waiting for entry");
    target.call();
    target.process.signal(Signal::KILL);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(5), "{:#?}", tool.stderr);
    let said = tool.stderr.last().cloned().unwrap_or_default();
    assert!(said.contains("s.hws:2:1: the target ") && said.contains(" ended"), "{said}");
}

fn a_script_attaches_by_itself_and_is_read_from_standard_input(jdk: &Jdk) {
    let target = Target::start(jdk);
    let pid = target.process.pid();
    let mut tool = Process::spawn(headwater().args(["session", "-", "--set", &format!("PID={pid}")]));
    tool.say("attach ${PID}");
    tool.say("methods Steps::root");
    let tool = tool.finish();
    assert_eq!((tool.status.code(), tool.stdout), (Some(0), vec!["Steps.root()".to_owned()]), "{:#?}", tool.stderr);
    target.quit();
}

fn a_script_is_checked_without_the_target_that_it_will_be_given() {
    let scratch = Scratch::new("dry");
    let script = scratch.file("s.hws");
    std::fs::write(&script, "profile a.B::c\ntree\n").expect("written");
    let (code, said) = run(headwater().arg("session").arg(&script).arg("--dry-run"));
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = run(headwater().arg("session").arg(&script));
    assert!(code == Some(2) && said.contains("s.hws:1:1: there is no target yet"), "{said}");
}

fn run(command: &mut Command) -> (Option<i32>, String) {
    let output = headwater_tests::run(command);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}
