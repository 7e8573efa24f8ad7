//! Every call is counted: targets that count their own calls agree with the profile, method by method.

use std::collections::BTreeMap;

use headwater_tests::{
    Jdk, Launched, Profile, Scratch, calls_by_method, compile, counting, counts_of_target, java, tree,
};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        calls_equal_the_programs_own_count,
        calls_equal_the_programs_own_count_interpreted_and_fully_compiled,
        calls_equal_the_programs_own_count_by_a_coarse_clock,
        control_invocations_are_told_apart_from_recorded_ones,
        calls_equal_the_programs_own_count_with_all_of_the_jdk_instrumented,
        every_invocation_has_its_duration,
    }
    since(17) {
        what_invokedynamic_runs_and_what_comes_back_through_the_jdk_is_counted,
        the_same_work_gives_the_same_tree,
        calls_equal_the_programs_own_count_in_a_modern_program,
    }
    since(21) {
        what_pattern_switches_run_is_counted,
    }
}

/// Commands that make the root run.
const COMMANDS: [&str; 3] = ["go", "go!", "go"];

/// What the target says without a profiler, for the same commands.
fn undisturbed(jdk: &Jdk, classes: &Scratch, main: &str) -> Vec<String> {
    let mut target = java(jdk, classes, &[], &[main]);
    target.await_line("READY");
    COMMANDS.iter().chain(&["quit"]).for_each(|line| target.say(line));
    let finished = target.finish();
    assert!(finished.status.success());
    finished.stdout
}

/// Our counts of the methods that count themselves.
fn comparable(ours: &BTreeMap<String, u64>, theirs: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    theirs.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect()
}

/// Profiles a program on a JDK and compares all counts; the report.
fn check(jdk: &Jdk, program: &str, options: &[&str], tool_options: &[&str]) -> Value {
    let main = program.rsplit('/').next().unwrap_or(program);
    let context = format!("{main}, JDK {}, {options:?}, {tool_options:?}", jdk.version);
    let classes = compile(jdk, &["Counter.java", &format!("{program}.java")]);
    let expected_output = undisturbed(jdk, &classes, main);

    let mut target = Launched::of_classes(jdk, classes, options, &[main]);
    let (root, calls) = (format!("{main}::root"), COMMANDS.len().to_string());
    let fixed = ["--root", &root, "--calls", &calls, "--exclude", "Counter"];
    let profile = Profile::start(&target, &[&fixed, tool_options].concat());
    COMMANDS.iter().for_each(|line| target.say(line));
    let report = profile.report();
    let target = target.quit();
    assert_eq!(target.stdout, expected_output, "{context}: the program's own output");

    let ours = calls_by_method(&report);
    let theirs = counts_of_target(&target.stdout);
    assert!(theirs.len() > 10, "{context}: {theirs:#?}");
    assert_eq!(comparable(&ours, &theirs), theirs, "{context}");
    assert_eq!(report["events"]["lost"], 0, "{context}");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{context}: {}", report["warnings"]);
    report
}

fn calls_equal_the_programs_own_count(jdk: &Jdk) {
    let ours = calls_by_method(&check(jdk, "Counting", &[], &[]));
    assert!(ours.keys().all(|method| !method.contains("Worker.run")), "another thread's work is not below the root");
}

fn the_same_work_gives_the_same_tree(jdk: &Jdk) {
    let tree = |options: &[&str], tool_options: &[&str]| -> Vec<(usize, String, u64)> {
        let nodes = tree(&check(jdk, "Modern", options, tool_options)).into_iter();
        // How deep it gets until the stack is full depends on who compiled it.
        nodes.filter(|(_, method, _)| method != "Modern.endless(I)I").collect()
    };
    let first = tree(&[], &[]);
    for (options, tool_options) in [(&["-Xint"][..], &[][..]), (&[], &["--clock", "tick"])] {
        let other = tree(options, tool_options);
        let different = first.iter().zip(&other).find(|(first, other)| first != other);
        assert_eq!(different, None, "JDK {}, {options:?}, {tool_options:?}", jdk.version);
        assert_eq!(first.len(), other.len());
    }
}

fn calls_equal_the_programs_own_count_in_a_modern_program(jdk: &Jdk) {
    check(jdk, "Modern", &[], &[]);
}

fn what_invokedynamic_runs_and_what_comes_back_through_the_jdk_is_counted(jdk: &Jdk) {
    check(jdk, "Dynamic", &[], &[]);
    check(jdk, "Dynamic", &[], &["--scheme", "a"]);
}

fn what_pattern_switches_run_is_counted(jdk: &Jdk) {
    check(jdk, "jdk21/Patterns", &[], &[]);
}

fn calls_equal_the_programs_own_count_interpreted_and_fully_compiled(jdk: &Jdk) {
    // Of the program and of what it calls in probes: compiling all of the JDK takes ten seconds of a processor.
    let compiled = ["Count*::*", "java.lang.HeadwaterV1*::*", "java.util.*::*"];
    let compiled = compiled.map(|methods| format!("-XX:CompileCommand=compileonly,{methods}"));
    let [program, probes, collections] = &compiled;
    for options in [&["-Xint"][..], &["-Xcomp", "-XX:CompileCommand=quiet", program, probes, collections]] {
        check(jdk, "Counting", options, &[]);
    }
}

fn calls_equal_the_programs_own_count_by_a_coarse_clock(jdk: &Jdk) {
    check(jdk, "Counting", &[], &["--clock", "tick", "--tick-period", "50us"]);
}

fn control_invocations_are_told_apart_from_recorded_ones(jdk: &Jdk) {
    // The first finds the graph; of each four that follow the last is a control invocation.
    let (report, _) = counting(jdk, &["--control", "4", "--calls", "7"], &["go"; 8]);
    let root = "Counting.root(I)V";
    assert_eq!(calls_by_method(&report).get(root), Some(&7), "JDK {}", jdk.version);
    assert_eq!(report["controls"][0]["root"], root);
    assert_eq!(report["controls"][0]["calls"], 1);
    assert_eq!(report["events"]["lost"], 0);
}

fn calls_equal_the_programs_own_count_with_all_of_the_jdk_instrumented(jdk: &Jdk) {
    let ours = calls_by_method(&check(jdk, "Counting", &[], &["--jdk", "all"]));
    assert!(ours.keys().any(|method| method.starts_with("java.util.ArrayList.")), "{ours:#?}");
}

fn every_invocation_has_its_duration(jdk: &Jdk) {
    let (report, theirs) = counting(jdk, &["--stats", "--calls", "3"], &COMMANDS);
    let statistics = report["statistics"].as_array().expect("statistics");
    let count = |row: &serde_json::Value| row["count"].as_u64().expect("a number");
    let ours: BTreeMap<String, u64> =
        statistics.iter().map(|row| (row["method"].as_str().expect("a name").to_owned(), count(row))).collect();
    // What leaves no exit has no duration: constructors whose superclass's constructor threw.
    let torn: u64 = theirs.iter().map(|(method, n)| n - comparable(&ours, &theirs)[method].min(*n)).sum();
    let differing: Vec<&String> = theirs.keys().filter(|method| ours.get(*method) != theirs.get(*method)).collect();
    assert!(differing.iter().all(|method| method.contains("<init>")), "JDK {}: {differing:?}", jdk.version);
    assert!(torn <= report["events"]["healed"].as_u64().expect("healed"), "JDK {}: {differing:?}", jdk.version);
    for row in statistics {
        let [min, median, nine_tenths, most, max] =
            ["min_ns", "p50_ns", "p90_ns", "p99_ns", "max_ns"].map(|field| row[field].as_u64().expect("a time"));
        assert!(min <= median && median <= nine_tenths && nine_tenths <= most && most <= max, "{row}");
        let (mean, total) = (row["mean_ns"].as_f64().expect("a time"), row["total_ns"].as_f64().expect("a time"));
        assert!(min as f64 <= mean && mean <= max as f64 && row["sd_ns"].as_f64() >= Some(0.0), "{row}");
        assert!((total - mean * count(row) as f64).abs() <= 1.0, "{row}");
    }
}
