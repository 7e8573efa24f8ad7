//! Roots that match nothing, are never entered, or are not called often enough: what is said of them, and the exit code.

use headwater_tests::{Jdk, Process, Scratch, compile, headwater, java, read_report};
use rustix::process::Signal;

headwater_tests::trials! {
    each_jdk {
        a_misspelt_root_of_a_started_program_gets_suggestions_when_it_ends,
        a_root_that_is_awaited_in_vain_is_an_error,
        a_root_that_was_never_entered_is_said_first_with_what_to_do,
        fewer_calls_than_were_wanted_are_a_warning,
    }
    first_jdk {
        a_script_that_awaits_a_root_in_vain_fails_by_its_end_at_the_latest,
        of_a_program_that_does_nothing_no_root_is_proposed_and_it_is_said_why,
        a_session_finds_candidates_between_two_profiles,
    }
}

/// A target that calls nothing of its own until it is told to.
fn waiting(jdk: &Jdk) -> (Scratch, Process) {
    let classes = compile(jdk, &["Steps.java"]);
    let mut target = java(jdk, &classes, &[], &["Steps"]);
    target.await_line("READY");
    (classes, target)
}

fn quit(mut target: Process) {
    target.say("quit");
    assert!(target.finish().status.success());
}

#[track_caller]
fn assert_said(said: &[String], lines: &[&str]) {
    for wanted in lines {
        assert!(said.iter().any(|line| line.contains(wanted)), "{wanted:?} is not in {said:#?}");
    }
}

fn a_misspelt_root_of_a_started_program_gets_suggestions_when_it_ends(jdk: &Jdk) {
    let classes = compile(jdk, &["Steps.java"]);
    for (root, near) in [("Steps::rot", "  Steps::root"), ("Stepz::root", "  Steps"), ("steps::root", "  Steps")] {
        let mut command = headwater();
        command.args(["run", "--root", root, "--"]).arg(jdk.home.join("bin/java"));
        let mut tool = Process::spawn(command.arg("-cp").arg(classes.path()).arg("Steps"));
        tool.say("quit");
        let tool = tool.finish();
        assert_eq!(tool.status.code(), Some(4), "JDK {}, {root}: {:#?}", jdk.version, tool.stderr);
        let nothing = format!("nothing that matches {root} was loaded while this was recorded");
        assert_said(&tool.stderr, &[&nothing, "Did you mean one of these?", near]);
        assert_said(&tool.stdout, &[&format!("root {root}: no such method was loaded"), "misspelt?"]);
    }
}

fn a_root_that_is_awaited_in_vain_is_an_error(jdk: &Jdk) {
    let (_classes, target) = waiting(jdk);
    let pid = target.pid().to_string();
    let profile = ["profile", &pid, "--root", "Steps::rot", "--await-root", "-d", "1ms"];
    let region = ["region", &pid, "Stepz:3-9", "--await-region", "-d", "1ms"];
    for (arguments, near) in [(&profile[..], "  Steps::root"), (&region[..], "  Steps:3-9")] {
        let tool = Process::spawn(headwater().args(arguments)).finish();
        assert_eq!(tool.status.code(), Some(4), "JDK {}: {:#?}", jdk.version, tool.stderr);
        assert_said(&tool.stderr, &["was loaded while this was recorded", "Did you mean one of these?", near]);
    }
    quit(target);
}

fn a_script_that_awaits_a_root_in_vain_fails_by_its_end_at_the_latest(jdk: &Jdk) {
    let (_classes, target) = waiting(jdk);
    let scratch = Scratch::new("script");
    let script = scratch.file("s.hws");
    let profile = "profile Steps::rot --await-root";
    for (text, place) in [
        (format!("{profile}\nstop\necho on\n"), "s.hws:2:1: nothing that matches Steps::rot was loaded"),
        (format!("{profile} -d 1ms\nwait done 60s\necho on\n"), "s.hws:2:1: nothing that matches Steps::rot"),
        (format!("{profile}\n"), "s.hws:1:1: nothing that matches Steps::rot was loaded"),
    ] {
        std::fs::write(&script, &text).expect("a script");
        let tool = Process::spawn(headwater().arg("session").arg(&script).arg(target.pid().to_string())).finish();
        assert_eq!(tool.status.code(), Some(4), "{text}: {:#?}", tool.stderr);
        assert_said(&tool.stderr, &[place, "  Steps::root"]);
        assert!(tool.stdout.is_empty(), "{text}: {:#?}", tool.stdout);
    }
    quit(target);
}

fn of_a_program_that_does_nothing_no_root_is_proposed_and_it_is_said_why(jdk: &Jdk) {
    let (_classes, target) = waiting(jdk);
    let pid = target.pid().to_string();
    let tool = Process::spawn(headwater().args(["roots", &pid, "-d", "1s", "--recorder", "off"])).finish();
    assert_eq!(tool.status.code(), Some(1), "{:#?}", tool.stderr);
    assert_said(&tool.stderr, &["no method outside the JDK was seen at work in 1 s: "]);
    quit(target);
}

fn a_session_finds_candidates_between_two_profiles(jdk: &Jdk) {
    let classes = compile(jdk, &["Beat.java"]);
    let mut target = java(jdk, &classes, &[], &["Beat"]);
    target.await_line("READY");
    let scratch = Scratch::new("script");
    let (script, file) = (scratch.file("s.hws"), scratch.file("candidates.json"));
    let profile = "profile Beat::root\nwait calls 10 120s\n";
    let between = "candidates -d 2s --timing 200ms --recorder off > ${OUT}\nexpect root-calls >= 10\n";
    std::fs::write(&script, format!("{profile}{between}{profile}")).expect("a script");
    let mut command = headwater();
    command.arg("session").arg(&script).arg(target.pid().to_string());
    let tool = Process::spawn(command.arg("--set").arg(format!("OUT={}", file.display()))).finish();
    assert_eq!(tool.status.code(), Some(0), "{:#?}", tool.stderr);
    let candidates = &read_report(&file)["candidates"];
    let roots = candidates.as_array().expect("candidates").iter().map(|candidate| &candidate["root"]);
    assert!(roots.into_iter().any(|root| root == "Beat::root(int)" || root == "Beat::root"), "{candidates:#}");
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success() && target.stdout.iter().any(|line| line == "WRONG 0"), "{target:#?}");
}

fn a_root_that_was_never_entered_is_said_first_with_what_to_do(jdk: &Jdk) {
    let (_classes, target) = waiting(jdk);
    let scratch = Scratch::new("report");
    let file = scratch.file("report.json");
    let pid = target.pid().to_string();
    let mut command = headwater();
    command.args(["profile", &pid, "--root", "Steps::other", "-d", "1ms"]);
    let shown = Process::spawn(&mut command).finish();
    let kept = Process::spawn(command.arg("-o").arg(&file)).finish();
    let said = ["root Steps::other: instrumented, but never entered", "called seldom?", "not called here?"];
    for tool in [&shown, &kept] {
        assert_eq!(tool.status.code(), Some(0), "JDK {}: {:#?}", jdk.version, tool.stderr);
    }
    assert_said(&shown.stdout[1..6], &said);
    assert!(shown.stderr.iter().all(|line| !line.contains("never entered")), "it is said once: {:#?}", shown.stderr);
    assert_said(&kept.stderr, &said);
    quit(target);
}

fn fewer_calls_than_were_wanted_are_a_warning(jdk: &Jdk) {
    let (_classes, mut target) = waiting(jdk);
    let pid = target.pid().to_string();
    let mut tool = Process::spawn(headwater().args([
        "profile",
        &pid,
        "--root",
        "Steps::other",
        "--calls",
        "3",
        "--gentle",
        "off",
    ]));
    tool.await_error_line("waiting for entry");
    target.say("other");
    target.await_line("OTHER");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert_eq!(tool.status.code(), Some(0), "JDK {}: {:#?}", jdk.version, tool.stderr);
    let warning = "warning: --calls asks for 3 calls, and only 1 came before recording ended";
    assert_said(&tool.stdout, &["root Steps::other: entered once", warning]);
    quit(target);
}
