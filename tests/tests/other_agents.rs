//! Programs with another agent, which redefines and retransforms classes: they run what it has made of them, whatever we do.

use std::process::Command;

use headwater_tests::{
    Jdk, Process, Scratch, calls_by_method, compile, compile_directory, compile_text, java, javac, profile,
    read_report, run,
};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        a_debugger_that_stops_at_exceptions_is_given_none,
        a_class_that_was_redefined_between_two_profiles_runs_its_new_code_during_the_second_and_behind_it,
        so_does_one_whose_instructions_are_the_same_and_only_what_they_are_linked_with_and_its_handlers_are_others,
        a_class_that_is_redefined_during_a_profile_is_profiled_on_and_keeps_its_new_code,
        one_that_is_redefined_with_what_it_has_of_ours_is_counted_once_and_left_alone_afterwards,
        a_redefinition_that_the_jvm_refuses_changes_nothing,
        parameters_keep_their_names_when_another_agent_retransforms_a_class_during_a_profile,
        a_root_that_runs_since_before_is_found_after_another_agent_has_retransformed_its_class,
        a_lock_that_a_transformer_takes_does_not_hold_the_program_and_the_report_says_that_somebody_waited_in_vain,
    }
}

/// The JDKs from which on a class is what it was redefined to, for the JVM too.
const FOLLOWING: u32 = 20;

/// A program with the agent in it, and the second version of its class `Hot`.
struct Others {
    target: Process,
    redefined: Scratch,
    classes: Scratch,
}

impl Others {
    fn start(jdk: &Jdk) -> Others {
        let classes = compile_directory(jdk, "others");
        let manifest = classes.file("manifest");
        let may = "Can-Redefine-Classes: true\nCan-Retransform-Classes: true";
        std::fs::write(&manifest, format!("Premain-Class: Others\nAgent-Class: Others\n{may}\n")).expect("a file");
        let jar = classes.file("agent.jar");
        let mut archiver = Command::new(jdk.program("jar"));
        archiver.args(["--create", "--file"]).arg(&jar).arg("--manifest").arg(&manifest);
        assert!(run(&mut archiver).status.success());
        let agent = format!("-javaagent:{}", jar.display());
        let mut target = java(jdk, &classes, &[&agent, "-Djdk.attach.allowAttachSelf=true"], &["Others"]);
        target.await_line("READY");
        Others { target, redefined: compile_directory(jdk, "others-redefined"), classes }
    }

    /// What it answers.
    fn told(&mut self, command: &str) -> String {
        self.target.say(command);
        let result = self.target.await_line("RESULT");
        result.trim_start_matches("RESULT").trim().to_owned()
    }

    fn redefine(&mut self) {
        let file = self.redefined.file("Hot.class");
        assert_eq!(self.told(&format!("redefine {}", file.display())), "redefined");
    }

    /// The report of a profile of its calls, while something is done.
    fn profiled(&mut self, during: impl FnOnce(&mut Others)) -> Value {
        self.profiled_from(&["Others::call", "Others::inside", "Others::outside"], during)
    }

    /// The same, with these roots.
    fn profiled_from(&mut self, roots: &[&str], during: impl FnOnce(&mut Others)) -> Value {
        let out = Scratch::new("report");
        let file = out.file("profile.json");
        let roots: Vec<&str> = roots.iter().flat_map(|root| ["--root", root]).collect();
        let file_name = file.to_string_lossy();
        let tool = profile(&self.target, &[&roots[..], &["-o", &file_name]].concat());
        during(self);
        tool.signal(Signal::INT);
        let tool = tool.finish();
        assert!(tool.status.success(), "{:#?}", tool.stderr);
        read_report(&file)
    }

    fn end(self) {
        assert!(self.target.finish().status.success());
    }
}

/// How many calls of `Hot`'s method a report has, and why it has none.
fn of_hot(report: &Value) -> (Option<u64>, String) {
    let calls = calls_by_method(report).get("Hot.answer(I)I").copied();
    let skipped = report["methods"]["skipped"].as_array().expect("skipped methods");
    let reasons = skipped.iter().filter(|it| it["method"].as_str().is_some_and(|name| name.starts_with("Hot.")));
    (calls, reasons.filter_map(|it| it["reason"].as_str()).collect())
}

fn a_class_that_was_redefined_between_two_profiles_runs_its_new_code_during_the_second_and_behind_it(jdk: &Jdk) {
    let mut others = Others::start(jdk);
    let report = others.profiled(|others| assert_eq!(others.told("call"), "1"));
    assert_eq!(of_hot(&report), (Some(1), String::new()), "JDK {}", jdk.version);
    others.redefine();
    assert_eq!(others.told("call"), "42");
    let report = others.profiled(|others| assert_eq!(others.told("call"), "42", "JDK {}: during", jdk.version));
    assert_eq!(others.told("call"), "42", "JDK {}: behind", jdk.version);
    let (calls, reason) = of_hot(&report);
    if jdk.version < FOLLOWING {
        assert!(reason.contains("somebody else has redefined it"), "JDK {}: {reason}", jdk.version);
    } else {
        assert_eq!((calls, reason), (Some(1), String::new()), "JDK {}", jdk.version);
    }
    others.end();
}

fn so_does_one_whose_instructions_are_the_same_and_only_what_they_are_linked_with_and_its_handlers_are_others(
    jdk: &Jdk,
) {
    const SAID: &str = include_str!("../targets/others/Said.java");
    for (old, new, said) in [
        ("\"asked \" +", "\"told \" +", "told 1"),
        ("Math::abs", "Math::negateExact", "asked -1"),
        ("catch (NumberFormatException", "catch (ArithmeticException", "other 1"),
    ] {
        assert_eq!(SAID.matches(old).count(), 1, "{old}");
        let mut others = Others::start(jdk);
        let profiled = |others: &mut Others, expected: &str| {
            let report = others.profiled_from(&["Others::said"], |others| assert_eq!(others.told("said"), expected));
            let skipped = report["methods"]["skipped"].as_array().expect("skipped methods").clone();
            skipped.iter().filter_map(|it| it["reason"].as_str()).collect::<String>()
        };
        assert_eq!(profiled(&mut others, "asked 1"), "", "JDK {}", jdk.version);
        let redefined = compile_text(jdk, &SAID.replace(old, new));
        let file = redefined.file("Said.class");
        assert_eq!(others.told(&format!("redefine {}", file.display())), "redefined");
        let reasons = profiled(&mut others, said);
        assert_eq!(others.told("said"), said, "JDK {}: behind", jdk.version);
        let is_left_alone = reasons.contains("somebody else has redefined it");
        assert_eq!(is_left_alone, jdk.version < FOLLOWING, "JDK {}: {reasons}", jdk.version);
        others.end();
    }
}

fn a_class_that_is_redefined_during_a_profile_is_profiled_on_and_keeps_its_new_code(jdk: &Jdk) {
    let mut others = Others::start(jdk);
    for _ in 0..2 {
        let report = others.profiled(|others| {
            others.told("call");
            others.redefine();
            assert_eq!(others.told("call"), "42", "JDK {}: during", jdk.version);
            others.told("retransform");
            assert!(!others.told("call").is_empty());
        });
        let (calls, reason) = of_hot(&report);
        assert!(calls == Some(3) || !reason.is_empty(), "JDK {}: {calls:?} {reason}", jdk.version);
        assert_eq!(others.told("names"), "int asked", "JDK {}", jdk.version);
    }
    others.end();
}

fn one_that_is_redefined_with_what_it_has_of_ours_is_counted_once_and_left_alone_afterwards(jdk: &Jdk) {
    let mut others = Others::start(jdk);
    let during = |others: &mut Others| {
        assert_eq!(others.told("call"), "1");
        let jar = others.classes.file("agent.jar");
        assert_eq!(others.told(&format!("attach {}", jar.display())), "attached");
        assert_eq!(others.told("shown"), "redefined");
        assert_eq!(others.told("call"), "1");
    };
    let (calls, reason) = of_hot(&others.profiled(during));
    assert_eq!((calls, reason), (Some(2), String::new()), "JDK {}", jdk.version);
    let (calls, reason) = of_hot(&others.profiled(|others| assert_eq!(others.told("call"), "1")));
    if jdk.version < FOLLOWING {
        assert_eq!((calls, reason), (Some(1), String::new()), "JDK {}", jdk.version);
    } else {
        assert!(reason.contains("what he was shown while it had probes"), "JDK {}: {calls:?} {reason}", jdk.version);
    }
    others.end();
}

fn a_redefinition_that_the_jvm_refuses_changes_nothing(jdk: &Jdk) {
    let mut others = Others::start(jdk);
    let other = Scratch::new("other");
    let source = other.file("Hot.java");
    std::fs::write(&source, "final class Hot { int answer(int asked) { return 7; } int more; }").expect("a file");
    javac(jdk, &[], &[&source], other.path());
    others.profiled(|others| {
        assert_eq!(others.told("call"), "1");
        assert_eq!(others.told(&format!("redefine {}", other.file("Hot.class").display())), "refused");
        assert_eq!(others.told("call"), "1", "JDK {}: during", jdk.version);
    });
    assert_eq!(others.told("call"), "1", "JDK {}: behind", jdk.version);
    others.end();
}

fn parameters_keep_their_names_when_another_agent_retransforms_a_class_during_a_profile(jdk: &Jdk) {
    let mut others = Others::start(jdk);
    others.profiled(|others| {
        others.told("call");
        assert_eq!(others.told("names"), "int asked", "JDK {}: instrumented", jdk.version);
        others.told("retransform");
        assert_eq!(others.told("names"), "int asked", "JDK {}: retransformed", jdk.version);
    });
    assert_eq!(others.told("names"), "int asked", "JDK {}: behind", jdk.version);
    others.end();
}

fn a_root_that_runs_since_before_is_found_after_another_agent_has_retransformed_its_class(jdk: &Jdk) {
    let mut others = Others::start(jdk);
    others.told("retransform");
    let report = others.profiled_from(&["Others::main"], |others| {
        others.told("call");
    });
    let root = &report["roots"][0];
    assert_eq!((&root["open"]["threads"], &root["calls"]), (&1.into(), &0.into()), "JDK {}", jdk.version);
    assert_eq!(calls_by_method(&report).get("Others.call()I"), Some(&1), "JDK {}", jdk.version);
    others.end();
}

/// How often, and for how long, the agent's own tests tell: `connection::tests`.
fn a_lock_that_a_transformer_takes_does_not_hold_the_program_and_the_report_says_that_somebody_waited_in_vain(
    jdk: &Jdk,
) {
    let mut others = Others::start(jdk);
    others.told("lock");
    let report = others.profiled(|others| {
        for round in 1..=3 {
            assert_eq!(others.told(&format!("held {round}")), "1", "round {round}");
        }
    });
    let warnings = report["warnings"].to_string();
    assert!(warnings.contains("went on without waiting any longer"), "{warnings}");
    others.end();
}

/// A debugger stops all threads at an exception that nobody catches, as it sees it: attaching throws none.
fn a_debugger_that_stops_at_exceptions_is_given_none(jdk: &Jdk) {
    let jdb = jdk.home.join("bin/jdb");
    if !jdb.exists() {
        eprintln!("not tested: JDK {} has no debugger", jdk.version);
        return;
    }
    let classes = compile(jdk, &["Beat.java"]);
    let option = "-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0";
    let mut target = java(jdk, &classes, &[option], &["Beat"]);
    let listening = target.await_line("Listening for transport");
    let port = listening.rsplit([':', ' ']).next().expect("an address").to_owned();
    target.await_line("READY");
    let mut command = Command::new(jdb);
    command.args(["-connect", &format!("com.sun.jdi.SocketAttach:hostname=127.0.0.1,port={port}")]);
    let mut debugger = Process::spawn(&mut command);
    debugger.await_line("Initializing jdb");
    let file = classes.file("profile.json");
    let tool = profile(&target, &["--root", "Beat::root", "--calls", "100", "-o", &file.to_string_lossy()]).finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    debugger.say("quit");
    let debugger = debugger.finish();
    let stops: Vec<&String> = debugger.stdout.iter().filter(|line| line.contains("Exception occurred")).collect();
    assert!(stops.is_empty(), "{stops:#?}");
    target.say("quit");
    let target = target.finish();
    assert!(target.stdout.contains(&"WRONG 0".to_owned()), "{:#?}", target.stdout);
}
