//! What the JDK calls on objects that the graph's code does not name, and by reflection of its own: counted like what is instrumented from the
//! beginning.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, calls_by_method, compile, java, jdks, profile_while_told};

const LINES: [&str; 10] =
    ["elements", "within", "hooks", "reference", "cause", "enum", "stream", "initialiser", "failing", "loader"];

/// The calls by method below the root, which had been called so often before.
fn calls(jdk: &Jdk, warm: &str, scheme: &str) -> BTreeMap<String, u64> {
    let classes = compile(jdk, &["Unnamed.java"]);
    let target = java(jdk, &classes, &[], &["Unnamed", warm]);
    // Its loaders are asked for the probes' class besides.
    let options = ["--root", "Unnamed$Start::root", "--scheme", scheme, "--exclude", "Unnamed$Plugins"];
    let mut calls = calls_by_method(&profile_while_told(target, &options, &LINES));
    // What the JDK makes up for its reflection.
    calls.retain(|method, calls| *calls > 0 && method.starts_with("Unnamed"));
    calls
}

fn check(warm: &str) {
    for jdk in jdks() {
        let (found, all) = (calls(&jdk, warm, "b"), calls(&jdk, warm, "total"));
        assert!(all.len() > 50, "JDK {}: {all:#?}", jdk.version);
        let missed: Vec<_> = all.iter().filter(|(method, calls)| found.get(*method) != Some(calls)).collect();
        assert!(missed.is_empty(), "JDK {}, after {warm} calls: {missed:#?}", jdk.version);
        assert_eq!(found.len(), all.len(), "JDK {}: {found:#?}", jdk.version);
    }
}

#[test]
fn what_the_graph_does_not_name_is_counted() {
    check("0");
}

#[test]
fn what_the_graph_does_not_name_and_never_ran_is_counted_in_a_program_that_has_run_for_long() {
    check("300");
}
