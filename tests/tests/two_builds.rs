//! Two builds of Headwater in one JVM: one after the other, each finds what the other has left there; at once there is only one.

use std::collections::BTreeSet;
use std::io::BufRead;
use std::path::PathBuf;
use std::process::Command;

use headwater_tests::counting::{Target, root_calls};
use headwater_tests::{Jdk, Process, Scratch, calls_by_method, headwater, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        they_take_turns_without_a_word_on_the_targets_output,
        one_that_comes_while_the_other_profiles_is_refused,
        one_whose_tool_was_gone_leaves_nothing_in_the_way,
    }
}

fn they_take_turns_without_a_word_on_the_targets_output(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let directory = Scratch::new("other-build");
    let (own, other) = (PathBuf::from(headwater().get_program()), other_build(&directory));
    let pid = target.process.pid().to_string();
    let arguments = ["profile", &pid, "--root", "Counting::root", "--calls", "1", "--gentle", "off", "--bare", "off"];
    // Classes that it initialises are initialised once.
    target.go();
    let mut first = None;
    for tool in [&own, &other, &own] {
        let mut tool = Process::spawn(Command::new(tool).args(arguments).args(["--format", "json"]));
        tool.await_error_line("instrumented");
        target.process.say("go");
        let (said, _) = target.process.await_line_and_those_before("RESULT ");
        // The JVM warns of native methods that are bound to other code.
        assert_eq!(said, [""; 0], "JDK {}", jdk.version);
        let tool = tool.finish();
        assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
        let report: Value = serde_json::from_str(&tool.stdout.join("\n")).expect("JSON");
        // What is called is found by first calls, which one build must not tell the other.
        let called: BTreeSet<String> = calls_by_method(&report).into_keys().collect();
        assert_eq!(*first.get_or_insert_with(|| called.clone()), called, "JDK {}", jdk.version);
        assert_eq!(root_calls(&report), 1);
    }
    target.quit();
}

fn one_that_comes_while_the_other_profiles_is_refused(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let directory = Scratch::new("other-build");
    let pid = target.process.pid().to_string();
    let arguments = ["profile", &pid, "--root", "Counting::root", "--calls", "2", "--gentle", "off", "--bare", "off"];
    let mut first = Process::spawn(Command::new(other_build(&directory)).args(arguments).args(["--format", "json"]));
    first.await_error_line("instrumented");
    target.go();
    let second = run_headwater(&arguments);
    let said = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{said}");
    assert!(said.contains("another build of Headwater is attached to this JVM"), "{said}");
    // Its events can be told all the same.
    let events = run_headwater(&["events", &pid, "-d", "100ms"]);
    assert!(events.status.success(), "{}", String::from_utf8_lossy(&events.stderr));
    target.go();
    let first = first.finish();
    assert!(first.status.success(), "JDK {}: {:#?}", jdk.version, first.stderr);
    let report: Value = serde_json::from_str(&first.stdout.join("\n")).expect("JSON");
    assert_eq!(root_calls(&report), 2);
    target.quit();
}

/// Its agent has defined its classes, and its attach has failed: the JVM looks for no code in it.
fn one_whose_tool_was_gone_leaves_nothing_in_the_way(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let directory = Scratch::new("other-build");
    let (tool, agent) = (std::fs::read(headwater().get_program()).expect("the tool"), directory.file("agent.so"));
    std::fs::write(&agent, &tool[agent_in(&tool)..]).expect("an agent");
    let pid = target.process.pid().to_string();
    let nobody = directory.file("nobody");
    for _ in 0..2 {
        let loaded = Command::new(jdk.program("jcmd"))
            .args([&pid, "JVMTI.agent_load", &agent.to_string_lossy(), &nobody.to_string_lossy()])
            .output()
            .expect("jcmd");
        let said = String::from_utf8_lossy(&loaded.stdout).into_owned();
        assert!(said.contains("return code: 1") || said.contains("failed"), "JDK {}: {said}", jdk.version);
    }
    let arguments = ["profile", &pid, "--root", "Counting::root", "--calls", "1", "--gentle", "off", "--bare", "off"];
    let mut profile = Process::spawn(headwater().args(arguments).args(["--format", "json"]));
    profile.await_error_line("instrumented");
    target.go();
    let profile = profile.finish();
    assert!(profile.status.success(), "JDK {}: {:#?}", jdk.version, profile.stderr);
    let report: Value = serde_json::from_str(&profile.stdout.join("\n")).expect("JSON");
    assert_eq!(root_calls(&report), 1);
    target.quit();
}

/// The tool with an agent that is not the same, to the byte: where its sections are is nothing that a linker reads.
fn other_build(directory: &Scratch) -> PathBuf {
    const SECTIONS: usize = 40;
    let own = PathBuf::from(headwater().get_program());
    let mut bytes = std::fs::read(&own).expect("the tool");
    let agent = agent_in(&bytes);
    bytes[agent + SECTIONS] ^= 1;
    let other = directory.path().join("headwater");
    std::fs::write(&other, bytes).expect("another tool");
    std::fs::set_permissions(&other, std::fs::metadata(own).expect("the tool").permissions()).expect("it is a program");
    other
}

/// Where in the tool its agent begins.
fn agent_in(bytes: &[u8]) -> usize {
    const SHARED_LIBRARY: [u8; 2] = [3, 0];
    const KIND: usize = 16;
    let (mut rest, mut agents) = (&bytes[1..], Vec::new());
    while rest.skip_until(b'\x7f').expect("memory can be read") > 0 {
        let header = (bytes.len() - rest.len()).saturating_sub(1);
        let is_library = bytes[header..].get(KIND..).is_some_and(|kind| kind.starts_with(&SHARED_LIBRARY));
        if rest.starts_with(b"ELF\x02") && is_library {
            agents.push(header);
        }
    }
    assert_eq!(agents.len(), 1, "one library is in the tool");
    agents[0]
}
