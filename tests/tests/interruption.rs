//! Ctrl-C before anything is recorded, and in a script.

use std::path::Path;

use headwater_tests::appearing::{self, Appearing};
use headwater_tests::counting::root_calls;
use headwater_tests::{
    Jdk, Patience, Process, Scratch, await_that, compile, headwater, java, profile, read_report, run_headwater,
};
use rustix::process::Signal;

headwater_tests::trials! {
    each_jdk {
        a_tool_that_is_interrupted_at_once_says_so_or_what_it_has,
        further_interruptions_do_not_cost_the_profile,
        a_script_goes_no_further_when_its_region_is_interrupted,
    }
    once {
        a_program_is_ended_that_was_started_for_a_profile_that_nobody_wants_any_more,
    }
}

fn a_tool_that_is_interrupted_at_once_says_so_or_what_it_has(jdk: &Jdk) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, &[], &["Steps"]);
    target.await_line("READY");
    let tool = Process::spawn(headwater().arg("profile").arg(target.pid().to_string()).args(["--root", "Steps::root"]));
    // A signal is lost whose handler is there and does not know yet what to do with it. This one's is installed last.
    await_that("handlers of signals", || catches(&tool, Signal::HUP));
    tool.signal(Signal::INT);
    let tool = tool.finish();
    // Whichever it was doing.
    assert!(matches!(tool.status.code(), Some(0 | 130)), "JDK {}: {:?}", jdk.version, tool.status);
    // It is made in the target's directory, which is ours.
    assert!(!Path::new(&format!(".attach_pid{}", target.pid())).exists(), "JDK {}", jdk.version);
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
}

/// Whatever it is doing after the first Ctrl-C: restoring code, calibrating, timing calls, writing.
fn further_interruptions_do_not_cost_the_profile(jdk: &Jdk) {
    let classes = appearing::classes(jdk);
    let mut target = Appearing::start(jdk, &classes);
    let out = Scratch::new("out");
    let (snapshot, json) = (out.file("profile.hw"), out.file("profile.json"));
    for (file, bare) in [(&snapshot, "off"), (&json, "auto")] {
        let options = ["--root", appearing::ROOT, "--bare", bare, "-o", &file.to_string_lossy()];
        let mut tool = profile(&target.process, &options);
        target.await_rounds(20);
        let mut patience = Patience::default();
        while tool.is_alive() {
            assert!(patience.lasts(), "it goes on however often it is interrupted");
            tool.signal(Signal::INT);
            std::thread::yield_now();
        }
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
    }
    assert!(root_calls(&read_report(&json)) > 0);
    let (snapshot, again) = (snapshot.to_string_lossy(), out.file("again.json"));
    let report = run_headwater(&["report", &snapshot, "-o", &again.to_string_lossy()]);
    assert!(report.status.success(), "{}", String::from_utf8_lossy(&report.stderr));
    assert!(root_calls(&read_report(&again)) > 0);
    target.quit();
}

fn a_script_goes_no_further_when_its_region_is_interrupted(jdk: &Jdk) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, &[], &["Steps"]);
    target.await_line("READY");
    let out = Scratch::new("out");
    let (script, times) = (out.file("region.hws"), out.file("times.json"));
    std::fs::write(&script, format!("region Steps::root -d 1h > {}\necho went on\n", times.display())).unwrap();
    let mut tool = Process::spawn(headwater().arg("session").arg(&script).arg(target.pid().to_string()));
    tool.await_error_line("waiting for entry");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(1), "JDK {}: {:#?}", jdk.version, tool.stderr);
    assert!(tool.stderr.iter().any(|line| line.ends_with("region.hws:1:1: interrupted")), "{:#?}", tool.stderr);
    assert_eq!(tool.stdout, Vec::<String>::new());
    assert!(times.exists(), "JDK {}: what was timed is written", jdk.version);
    target.say("quit");
    assert!(target.finish().status.success());
}

fn a_program_is_ended_that_was_started_for_a_profile_that_nobody_wants_any_more() {
    // It is no JVM yet, and ends by itself when its input does.
    let program = ["--", "sh", "-c", "echo READY; read line"];
    let mut tool = Process::spawn(headwater().args(["run", "--root", "Main::main"]).args(program));
    tool.await_line("READY");
    tool.signal(Signal::INT);
    tool.await_error_line("interrupted before anything was recorded");
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(130), "{:?}", tool.status);
}

/// Whether a process has a handler for a signal.
fn catches(process: &Process, signal: Signal) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", process.pid())).expect("it runs");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a line of it");
    let caught = u64::from_str_radix(caught.trim(), 16).expect("a number");
    caught & (1 << (signal.as_raw() - 1)) != 0
}
