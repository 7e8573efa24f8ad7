//! A tool that is stopped, and does not come back before the target has gone on without it.

use headwater_tests::appearing::{self, Appearing, ROOT};
use headwater_tests::counting::root_calls;
use headwater_tests::{Jdk, Patience, Process, Scratch, compile, headwater, java, profile};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        the_target_goes_on_in_the_midst_of_discovery_gets_its_code_back_and_the_tool_says_what_it_has,
        who_finds_no_room_for_events_goes_on_and_a_tool_that_is_asked_nothing_is_given_up_too,
        a_tool_that_comes_back_soon_goes_on,
    }
}

const JSON: [&str; 4] = ["--bare", "off", "--format", "json"];

/// Profiles a target as soon as nobody else does: only then does it run its own code, and nothing else.
fn profile_when_free(target: &Process, arguments: &[&str]) -> Process {
    let pid = target.pid().to_string();
    let mut patience = Patience::default();
    loop {
        let mut tool = Process::spawn(headwater().args(["profile", &pid]).args(arguments).args(JSON));
        if !tool.await_error_line("headwater: ").contains("another Headwater is attached") {
            tool.await_error_line("instrumented");
            return tool;
        }
        assert!(patience.lasts(), "the other one is never given up");
    }
}

fn report(stdout: &[String]) -> Value {
    serde_json::from_str(&stdout.join("\n")).expect("JSON")
}

/// Continues a tool that has been given up: it says so, and what it has.
fn continued(tool: Process) -> Value {
    tool.signal(Signal::CONT);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(1), "{:#?}", tool.stderr);
    assert!(tool.stderr.iter().any(|line| line.contains("this process did not run")), "{:#?}", tool.stderr);
    report(&tool.stdout)
}

fn the_target_goes_on_in_the_midst_of_discovery_gets_its_code_back_and_the_tool_says_what_it_has(jdk: &Jdk) {
    let classes = appearing::classes(jdk);
    ["off", "on"].into_iter().for_each(|gentle| stop_in_discovery(jdk, &classes, gentle));
}

fn stop_in_discovery(jdk: &Jdk, classes: &Scratch, gentle: &str) {
    let mut target = Appearing::start(jdk, classes);
    let tool = profile(&target.process, &[&["--root", ROOT, "--gentle", gentle], &JSON[..]].concat());
    target.await_rounds(50);
    let (_, before) = target.rounds();
    tool.stop();
    // While there is a session.
    target.await_rounds(50);
    let second = profile_when_free(&target.process, &["--root", ROOT, "--calls", "5"]).finish();
    let (_, longest) = target.rounds();
    eprintln!("JDK {}, --gentle {gentle}: longest call {before} ms, with a stopped tool {longest} ms", jdk.version);
    assert!(second.status.success(), "JDK {}: {:#?}", jdk.version, second.stderr);
    assert_eq!(root_calls(&report(&second.stdout)), 5, "JDK {}", jdk.version);
    assert!(root_calls(&continued(tool)) > 0, "JDK {}", jdk.version);
    target.await_rounds(50);
    target.quit();
}

fn who_finds_no_room_for_events_goes_on_and_a_tool_that_is_asked_nothing_is_given_up_too(jdk: &Jdk) {
    let classes = compile(jdk, &["Storm.java"]);
    let mut target = java(jdk, &classes, &[], &["Storm", "platform", "16", "200000"]);
    target.await_line("READY");
    let go = |target: &mut Process| {
        target.say("go");
        target.await_line("ROUND ")
    };
    let expected = go(&mut target);
    // There is room for a small part of a round.
    let tool = profile(&target, &[&["--root", "Storm::root", "--buffer", "1"], &JSON[..]].concat());
    assert_eq!(go(&mut target), expected, "JDK {}", jdk.version);
    tool.stop();
    assert_eq!(go(&mut target), expected, "JDK {}", jdk.version);
    // Nobody asks anything any more.
    let second = profile_when_free(&target, &["--root", "Storm::root", "--calls", "16"]);
    assert_eq!(go(&mut target), expected, "JDK {}", jdk.version);
    let second = second.finish();
    assert!(second.status.success(), "JDK {}: {:#?}", jdk.version, second.stderr);
    assert_eq!(root_calls(&report(&second.stdout)), 16, "JDK {}", jdk.version);
    assert!(root_calls(&continued(tool)) >= 16, "JDK {}: what was written before is there", jdk.version);
    target.say("quit");
    assert!(target.finish().status.success());
}

fn a_tool_that_comes_back_soon_goes_on(jdk: &Jdk) {
    let classes = appearing::classes(jdk);
    let mut target = Appearing::start(jdk, &classes);
    let tool = profile(&target.process, &[&["--root", ROOT], &JSON[..]].concat());
    target.await_rounds(20);
    tool.stop();
    tool.signal(Signal::CONT);
    target.await_rounds(20);
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.quit();
}
