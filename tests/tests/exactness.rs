//! Every call is counted: targets that count their own calls agree with the profile, method by method.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Scratch, calls_by_method, compile, counts_of_target, java, jdks, profile, read_report};

/// What the target says without a profiler, for the same commands.
fn undisturbed(jdk: &Jdk, classes: &Scratch) -> Vec<String> {
    let mut target = java(jdk, classes, &[], &["Counting"]);
    target.await_line("READY");
    for line in ["go", "go!", "quit"] {
        target.say(line);
    }
    let finished = target.finish();
    assert!(finished.status.success());
    finished.stdout
}

/// Our counts of the methods that count themselves.
fn comparable(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    theirs.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect()
}

#[test]
fn calls_equal_the_programs_own_count() {
    for jdk in jdks() {
        let classes = compile(&jdk, &["Counter.java", "Counting.java"]);
        let expected_output = undisturbed(&jdk, &classes);

        let mut target = java(&jdk, &classes, &[], &["Counting"]);
        target.await_line("READY");
        let out = Scratch::new("report");
        let file = out.file("profile.json");
        let arguments =
            ["--root", "Counting::root", "--calls", "2", "--exclude", "Counter", "-o", &file.to_string_lossy()];
        let tool = profile(&target, &arguments);
        target.say("go");
        target.say("go!");
        let tool = tool.finish();
        assert!(tool.status.success(), "{:#?}", tool.stderr);
        target.say("quit");
        let target = target.finish();
        assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
        assert_eq!(target.stdout, expected_output, "JDK {}: the program's own output", jdk.version);

        let report = read_report(&file);
        let ours = calls_by_method(&report);
        let theirs = counts_of_target(&target.stdout);
        assert_eq!(comparable(&ours, &theirs), theirs, "JDK {}", jdk.version);
        assert_eq!(report["events"]["lost"], 0);
        assert!(
            ours.keys().all(|method| !method.contains("Worker.run")),
            "another thread's work is not below the root"
        );
    }
}
