//! `headwater doctor` on JVMs with something in the way, and on those without.

use headwater_tests::{Jdk, Process, compile, headwater, java, profile, run_headwater};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        nothing_is_in_the_way_of_an_ordinary_jvm,
        what_is_in_the_way_is_found_with_its_remedy,
        a_debugger_is_spoken_of_before_it_loses_its_breakpoints,
    }
    first_jdk {
        a_stopped_jvm_and_one_with_a_session_are_told,
    }
    once {
        who_is_no_jvm_is_told,
    }
}

/// The diagnosis of a process, and the exit code.
fn examine(target: &str) -> (Value, Option<i32>) {
    let output = run_headwater(&["doctor", target, "--format", "json"]);
    (serde_json::from_slice(&output.stdout).expect("JSON"), output.status.code())
}

fn check<'a>(diagnosis: &'a Value, name: &str) -> &'a Value {
    let checks = diagnosis["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).unwrap_or_else(|| panic!("{name}: {diagnosis:#}"))
}

fn start(jdk: &Jdk, options: &[&str]) -> (headwater_tests::Scratch, Process) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, options, &["Steps"]);
    target.await_line("READY");
    (classes, target)
}

fn nothing_is_in_the_way_of_an_ordinary_jvm(jdk: &Jdk) {
    let (_classes, target) = start(jdk, &[]);
    let (diagnosis, code) = examine(&target.pid().to_string());
    assert_eq!(code, Some(0), "{diagnosis:#}");
    assert_eq!(diagnosis["target"]["main"], "Steps");
    let quiet = if jdk.version >= 21 { "warning" } else { "ok" };
    let flushes = if jdk.version > 22 { "ok" } else { "warning" };
    for (name, verdict) in [
        ("permissions", "ok"),
        ("state", "ok"),
        ("namespaces", "ok"),
        ("attach", "ok"),
        ("threads", "ok"),
        ("temporary directory", "ok"),
        ("JVM version", "ok"),
        ("C library", "ok"),
        ("dynamic agent loading", quiet),
        ("other agents", "ok"),
        ("class archive", "ok"),
        ("other sessions", "ok"),
        ("compiled code", flushes),
        ("kernel counters", "ok"),
    ] {
        assert_eq!(check(&diagnosis, name)["verdict"], verdict, "JDK {}: {diagnosis:#}", jdk.version);
    }
}

fn what_is_in_the_way_is_found_with_its_remedy(jdk: &Jdk) {
    for (option, name, remedy) in [
        ("-XX:+DisableAttachMechanism", "attach", "restart it without that option"),
        ("-XX:-EnableDynamicAgentLoading", "dynamic agent loading", "start the program with -XX:+Enable"),
    ] {
        let (_classes, target) = start(jdk, &[option]);
        let (diagnosis, code) = examine(&target.pid().to_string());
        assert_eq!((code, &check(&diagnosis, name)["verdict"]), (Some(3), &Value::from("failure")), "{diagnosis:#}");
        assert!(check(&diagnosis, name)["remedy"].as_str().is_some_and(|text| text.contains(remedy)), "{diagnosis:#}");
    }
}

fn a_stopped_jvm_and_one_with_a_session_are_told(jdk: &Jdk) {
    let (_classes, target) = start(jdk, &[]);
    let pid = target.pid().to_string();
    let tool = profile(&target, &["--root", "Steps::root"]);
    let (diagnosis, code) = examine(&pid);
    assert_eq!((code, &check(&diagnosis, "other sessions")["verdict"]), (Some(3), &Value::from("failure")));
    tool.signal(Signal::INT);
    tool.finish();
    let (diagnosis, code) = examine(&pid);
    assert_eq!((code, &check(&diagnosis, "other sessions")["verdict"]), (Some(0), &Value::from("ok")), "{diagnosis:#}");
    assert_eq!(check(&diagnosis, "compiled code")["verdict"], "ok", "it has been flushed");

    target.stop();
    let (diagnosis, code) = examine(&pid);
    assert_eq!((code, &check(&diagnosis, "state")["verdict"]), (Some(3), &Value::from("failure")), "{diagnosis:#}");
    target.signal(Signal::CONT);
}

fn who_is_no_jvm_is_told() {
    let (diagnosis, code) = examine("no.such.Program");
    assert_eq!((code, &check(&diagnosis, "target")["verdict"]), (Some(3), &Value::from("failure")));
    let output = run_headwater(&["doctor", &std::process::id().to_string()]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("FAIL  target  process ") && text.contains("is not a JVM"), "{text}");
}

fn a_debugger_is_spoken_of_before_it_loses_its_breakpoints(jdk: &Jdk) {
    const JDWP: &str = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0";
    // A JRE may be without.
    if !jdk.home.join("lib/libjdwp.so").exists() {
        eprintln!("not tested: JDK {} has no debugger's agent", jdk.version);
        return;
    }
    let (_classes, target) = start(jdk, &[JDWP]);
    let (diagnosis, code) = examine(&target.pid().to_string());
    let agents = check(&diagnosis, "other agents");
    assert_eq!((code, &agents["verdict"]), (Some(0), &Value::from("warning")), "{diagnosis:#}");
    assert!(agents["remedy"].as_str().is_some_and(|text| text.contains("breakpoints")), "{diagnosis:#}");
    let arguments = ["profile", &target.pid().to_string(), "--root", "Steps::root"];
    let mut tool = Process::spawn(headwater().args(arguments));
    tool.await_error_line("the JVM clears its breakpoints");
    tool.await_error_line("instrumented");
    tool.signal(Signal::INT);
    tool.finish();
}
