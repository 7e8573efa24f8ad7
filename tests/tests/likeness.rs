//! A class stays what it is: what reflection, traces and stack walkers say of it is the same before, while it is profiled, and after.

use std::collections::BTreeSet;

use headwater_tests::{Jdk, Process, Scratch, compile_directory, java, profile, run_headwater};
use rustix::process::Signal;

headwater_tests::trials! {
    since(17) {
        all_that_reflection_says_of_a_class_is_the_same_before_during_and_after_profiles,
        all_that_reflection_says_of_the_jdks_classes_is_the_same_during_and_after_a_profile,
    }
}

/// Roots that have all classes of the target instrumented, in two ways: with other methods in each, so that other constants are
/// appended to the same class in the second profile.
const ROOTS: [&[&str]; 2] = [
    &[
        "Work::*",
        "Everything*::*",
        "Circle::*",
        "Annotated::text",
        "Generic::*",
        "Kind*::*",
        "Shape*::*",
        "Redefined::*",
    ],
    &["Redefined::walk", "Generic::hashCode", "Circle::*", "Annotated::*", "Everything::*", "Shape*::*"],
];

/// What the target says of classes when it is told `what`: `own FILE`, without the file.
fn described(target: &mut Process, out: &Scratch, what: &str) -> Vec<String> {
    let file = out.file("classes.txt");
    let (command, rest) = what.split_once(' ').unwrap_or((what, ""));
    target.say(format!("{command} {} {rest}", file.display()).trim());
    target.await_line("RESULT");
    let text = std::fs::read_to_string(&file).expect("a description");
    text.lines().map(str::to_owned).collect()
}

fn is_same(before: &[String], now: &[String], when: &str) {
    let differing: Vec<_> = before.iter().zip(now).filter(|(before, now)| before != now).take(10).collect();
    assert!(differing.is_empty(), "{when}: {differing:#?}");
    assert_eq!(before.len(), now.len(), "{when}");
}

/// Profiles these roots while something is done with the target.
fn profiled(target: &mut Process, roots: &[&str], during: impl FnOnce(&mut Process)) -> Vec<String> {
    let roots: Vec<&str> = roots.iter().flat_map(|root| ["--root", root]).collect();
    let tool = profile(target, &roots);
    during(target);
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    tool.stderr
}

fn all_that_reflection_says_of_a_class_is_the_same_before_during_and_after_profiles(jdk: &Jdk) {
    let classes = compile_directory(jdk, "likeness");
    let out = Scratch::new("described");
    let mut target = java(jdk, &classes, &[], &["Likeness"]);
    target.await_line("READY");
    target.say("work");
    target.await_line("RESULT");
    let before = described(&mut target, &out, "own");
    assert!(before.iter().any(|line| line.contains("parameter: int named true")), "names of parameters are told");
    for roots in ROOTS {
        profiled(&mut target, roots, |target| {
            target.say("work");
            target.await_line("RESULT");
            is_same(&before, &described(target, &out, "own"), &format!("JDK {} during {roots:?}", jdk.version));
        });
        is_same(&before, &described(&mut target, &out, "own"), &format!("JDK {} after {roots:?}", jdk.version));
    }
    target.say("work");
    target.await_line("RESULT");
    let region = run_headwater(&["region", &target.pid().to_string(), "Everything::both", "-d", "100ms"]);
    assert!(matches!(region.status.code(), Some(0 | 1)), "{region:?}");
    is_same(&before, &described(&mut target, &out, "own"), &format!("JDK {} after a region", jdk.version));
    assert!(target.finish().status.success());
}

fn all_that_reflection_says_of_the_jdks_classes_is_the_same_during_and_after_a_profile(jdk: &Jdk) {
    const PACKAGES: [&str; 3] = ["java.time", "sun.nio.ch", "sun.security.pkcs"];
    let classes = compile_directory(jdk, "likeness");
    let out = Scratch::new("described");
    let mut target = java(jdk, &classes, &[], &["Likeness"]);
    target.await_line("READY");
    let all = |target: &mut Process| -> Vec<String> {
        PACKAGES.iter().flat_map(|package| described(target, &out, &format!("jdk {package}"))).collect()
    };
    let before = all(&mut target);
    let described: BTreeSet<&str> = before.iter().filter_map(|line| line.split([':', ' ']).next()).collect();
    assert!(described.len() > 300, "JDK {}: {}", jdk.version, described.len());
    profiled(&mut target, &["java.time.**::*", "sun.nio.ch.**::*", "sun.security.pkcs.**::*"], |target| {
        is_same(&before, &all(target), &format!("JDK {} during", jdk.version));
    });
    is_same(&before, &all(&mut target), &format!("JDK {} after", jdk.version));
    assert!(target.finish().status.success());
}
