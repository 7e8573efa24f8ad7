//! `headwater profile --live`: reports while the profile is recorded.

use headwater_tests::terminal::Terminal;
use headwater_tests::{
    Jdk, Process, Scratch, await_that, calls_by_method, compile, counts_of_target, headwater, java, profile,
    read_report,
};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        reports_come_one_after_another_and_equal_the_programs_own_count,
    }
    first_jdk {
        a_file_has_the_report_so_far_and_at_the_end_the_whole_one,
        on_a_terminal_the_report_is_drawn_in_place,
    }
}

fn start(jdk: &headwater_tests::Jdk, main: &str) -> (Scratch, Process) {
    let classes = compile(jdk, &["Counter.java", &format!("{main}.java")]);
    let mut target = java(jdk, &classes, &[], &[main]);
    target.await_line("READY");
    (classes, target)
}

/// A report of what is recorded by now: the next one may have been begun before.
fn next_report(tool: &mut Process) -> Value {
    tool.pending_lines();
    tool.await_line("{");
    serde_json::from_str(&tool.await_line("{")).expect("a line a report")
}

fn reports_come_one_after_another_and_equal_the_programs_own_count(jdk: &Jdk) {
    let (_classes, mut target) = start(jdk, "Counting");
    let arguments = ["--root", "Counting::root", "--exclude", "Counter", "--live=100ms", "--format", "json"];
    let mut tool = profile(&target, &arguments);
    for calls in 1..=2 {
        target.say("go");
        target.await_line("RESULT ");
        assert_eq!(next_report(&mut tool)["roots"][0]["calls"], calls);
    }
    let ours = calls_by_method(&next_report(&mut tool));
    tool.signal(Signal::INT);
    assert!(tool.finish().status.success());
    target.say("quit");
    let theirs = counts_of_target(&target.finish().stdout);
    assert!(theirs.len() > 20, "{theirs:#?}");
    for (method, calls) in &theirs {
        assert_eq!(ours.get(method), Some(calls), "JDK {}: {method}", jdk.version);
    }
}

fn a_file_has_the_report_so_far_and_at_the_end_the_whole_one(jdk: &Jdk) {
    let (_classes, mut target) = start(jdk, "Steps");
    let out = Scratch::new("report");
    let file = out.file("live.json");
    let file_name = file.to_string_lossy().into_owned();
    let tool = profile(&target, &["--root", "Steps::root", "--live=100ms", "-o", &file_name]);
    await_that("the report so far", || file.exists());
    read_report(&file);
    target.say("enter");
    target.await_line("INSIDE");
    tool.signal(Signal::INT);
    assert!(tool.finish().status.success());
    assert_eq!(calls_by_method(&read_report(&file))["Steps.root()V"], 1);
    target.say("leave");
    target.say("quit");
    assert!(target.finish().status.success());
}

fn on_a_terminal_the_report_is_drawn_in_place(jdk: &Jdk) {
    let (_classes, mut target) = start(jdk, "Steps");
    let mut command = headwater();
    command.arg("profile").arg(target.pid().to_string()).args(["--root", "Steps::root", "--live=100ms"]);
    let mut terminal = Terminal::spawn(&command);
    terminal.expect("waiting for entry");
    target.say("enter");
    target.await_line("INSIDE");
    for _ in 0..2 {
        terminal.expect("Steps.root()");
        terminal.expect("Steps.inside()");
    }
    terminal.press("\x03");
    let (status, rest) = terminal.finish();
    assert!(status.success(), "{rest}");
    target.say("quit");
    assert!(target.finish().status.success());
}
