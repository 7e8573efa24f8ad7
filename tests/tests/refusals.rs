//! What is not done: targets, roots and command lines that are refused.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use headwater_tests::counting::{Target, root_calls, undisturbed};
use headwater_tests::{Jdk, Process, Scratch, headwater, javac, profile, run, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        a_jvm_that_has_another_versions_classes_is_left_alone,
        a_second_tool_is_turned_away_and_the_first_goes_on,
        a_root_that_matches_nothing_is_refused_with_suggestions,
        a_root_that_must_not_be_changed_is_refused_with_the_reason,
    }
    first_jdk {
        another_users_jvm_is_refused,
    }
    once {
        what_is_no_jvm_is_refused,
        bad_usage_is_refused,
    }
}

fn a_jvm_that_has_another_versions_classes_is_left_alone(jdk: &Jdk) {
    let others = Scratch::new("others");
    let source = others.file("HeadwaterV1.java");
    std::fs::write(&source, "package java.lang; public class HeadwaterV1 { static void enter(int id) { } }").unwrap();
    let patch = format!("--patch-module=java.base={}", others.path().display());
    javac(jdk, &[&patch], &[&source], others.path());
    let mut target = Target::start_with(jdk, &[&patch], "LeftBehind");
    let tool = run_headwater(&["profile", &target.process.pid().to_string(), "--root", "Counting::root"]);
    let errors = String::from_utf8_lossy(&tool.stderr);
    assert_eq!(tool.status.code(), Some(1), "JDK {}: {errors}", jdk.version);
    assert!(errors.contains("the classes of another Headwater version"), "JDK {}: {errors}", jdk.version);
    assert_eq!(vec![target.go()], undisturbed(jdk, 1), "JDK {}", jdk.version);
    target.quit();
}

/// These roots are refused, with these words, and the target goes on.
fn check_roots(jdk: &Jdk, roots: &[(&str, &str)]) {
    let mut target = Target::start(jdk);
    let pid = target.process.pid().to_string();
    for (root, words) in roots {
        let output = run_headwater(&["profile", &pid, "--root", root]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(4), "{errors}");
        assert!(errors.contains(words), "{errors}");
        assert!(output.stdout.is_empty());
    }
    target.go();
    target.quit();
}

fn a_root_that_matches_nothing_is_refused_with_suggestions(jdk: &Jdk) {
    check_roots(jdk, &[("Counting::rooot", "Counting::root"), ("Countin::root", "Counting")]);
}

fn a_root_that_must_not_be_changed_is_refused_with_the_reason(jdk: &Jdk) {
    let (never, because_of_clock) = ("never instruments", "Say --jdk edge or --jdk all");
    check_roots(jdk, &[("java.lang.Object::toString", never), ("java.lang.Math::max", because_of_clock)]);
}

fn what_is_no_jvm_is_refused() {
    let not_java = Process::spawn(&mut Command::new("cat"));
    for target in [not_java.pid().to_string(), "999999999".into(), "no.such.program.here".into()] {
        for command in [vec!["profile", &target, "--root", "A::b"], vec!["detach", &target]] {
            let output = run_headwater(&command);
            let errors = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(3), "{command:?}: {errors}");
            assert!(errors.starts_with("headwater: "), "{errors}");
        }
    }
    assert!(not_java.finish().status.success());
}

fn bad_usage_is_refused() {
    for arguments in [
        &["profile"][..],
        &["profile", "1"],
        &["profile", "1", "--root", "((("],
        &["profile", "1", "--root", "A::b", "-d", "soon"],
        &["frobnicate"],
    ] {
        assert_eq!(run_headwater(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

fn another_users_jvm_is_refused(jdk: &Jdk) {
    if !rustix::process::geteuid().is_root() {
        // Without root there is no other user to be.
        return;
    }
    const NOBODY: u32 = 65534;
    let mut target = Target::start(jdk);
    let place = Scratch::new("binary");
    std::fs::set_permissions(place.path(), PermissionsExt::from_mode(0o755)).expect("our own directory");
    let binary = place.file("headwater");
    std::fs::copy(headwater().get_program(), &binary).expect("the binary");
    let output = run(Command::new(&binary)
        .args(["profile", &target.process.pid().to_string(), "--root", "Counting::root"])
        .uid(NOBODY)
        .gid(NOBODY)
        .current_dir("/"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{errors}");
    assert!(errors.contains("user"), "{errors}");
    target.go();
    target.quit();
}

fn a_second_tool_is_turned_away_and_the_first_goes_on(jdk: &Jdk) {
    let mut target = Target::start(jdk);
    let first = profile(&target.process, &["--root", "Counting::root", "--calls", "1", "--format", "json"]);
    let second = run_headwater(&["profile", &target.process.pid().to_string(), "--root", "Counting::root"]);
    let errors = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{errors}");
    assert!(errors.contains("another"), "{errors}");
    target.go();
    let first = first.finish();
    assert!(first.status.success(), "{:#?}", first.stderr);
    let report: Value = serde_json::from_str(&first.stdout.join("\n")).expect("JSON");
    assert_eq!(root_calls(&report), 1);
    target.quit();
}
