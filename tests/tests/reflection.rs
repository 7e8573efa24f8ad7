//! What is called by reflection and by method handles below the root is found, and every call of it counted.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, counts_of_target};

headwater_tests::trials! {
    each_jdk {
        calls_by_reflection_equal_the_programs_own_count,
        calls_by_method_handles_equal_the_programs_own_count,
        calls_of_what_compiled_code_has_inlined_by_a_handle_are_all_counted,
        calls_by_method_handles_are_found_where_all_is_interpreted_and_where_the_jdk_is_instrumented,
    }
}

/// How often the root runs.
const ROOTS: usize = 3;

/// Profiles a target that counts its own calls, and compares.
fn check(jdk: &Jdk, program: &str, java_options: &[&str], options: &[&str]) {
    let context = format!("{program}, JDK {}, {java_options:?}, {options:?}", jdk.version);
    let sources = ["Counter.java", &format!("{program}.java")];
    let mut target = Launched::of_files(jdk, &sources, java_options, &[program]);
    let (root, calls) = (format!("{program}::root"), ROOTS.to_string());
    let fixed = ["--root", &root, "--exclude", "Counter", "--calls", &calls];
    let profile = Profile::start(&target, &[&fixed, options].concat());
    (0..ROOTS).for_each(|_| target.say("go"));
    let report = profile.report();
    let target = target.quit();
    let (ours, theirs) = (calls_by_method(&report), counts_of_target(&target.stdout));
    if !options.contains(&"--jdk") {
        let of_the_jdk: Vec<&String> = ours.keys().filter(|method| method.starts_with("jdk.internal.")).collect();
        assert!(of_the_jdk.is_empty(), "{context}: {of_the_jdk:?}");
    }
    assert!(theirs.len() > 10, "{theirs:#?}");
    let ours: BTreeMap<String, u64> =
        theirs.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect();
    assert_eq!(ours, theirs, "{context}");
    assert_eq!(report["events"]["healed"], 0, "{context}");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{context}: {}", report["warnings"]);
}

fn calls_by_reflection_equal_the_programs_own_count(jdk: &Jdk) {
    check(jdk, "Reflecting", &[], &[]);
    check(jdk, "Reflecting", &[], &["--scheme", "a"]);
    // Up to JDK 17 each method gets a class that calls it, in its own loader.
    check(jdk, "Reflecting", &["-Dsun.reflect.noInflation=true"], &[]);
}

fn calls_by_method_handles_equal_the_programs_own_count(jdk: &Jdk) {
    check(jdk, "Handles", &[], &[]);
    check(jdk, "Handles", &[], &["--scheme", "a"]);
}

fn calls_by_method_handles_are_found_where_all_is_interpreted_and_where_the_jdk_is_instrumented(jdk: &Jdk) {
    check(jdk, "Handles", &["-Xint"], &[]);
    check(jdk, "Handles", &[], &["--jdk", "all"]);
}

/// C1 does not note that its code depends on what it has inlined by a handle: what was compiled between two hotswaps would go on without probes.
fn calls_of_what_compiled_code_has_inlined_by_a_handle_are_all_counted(jdk: &Jdk) {
    let java_options = ["-XX:TieredStopAtLevel=1", "-Xbatch"];
    let mut target = Launched::of_files(jdk, &["Accessors.java"], &java_options, &["Accessors"]);
    let profile = Profile::start(&target, &["--root", "Accessors::root", "--calls", &ROOTS.to_string()]);
    (0..ROOTS).for_each(|_| target.say("go"));
    let calls = calls_by_method(&profile.report());
    let target = target.quit();
    assert_eq!(target.stdout.iter().filter(|line| *line == "SUM 42").count(), ROOTS, "{:?}", target.stdout);
    for method in ["<init>(I)V", "id()I"] {
        let counted = calls.get(&format!("Accessors$Order.{method}"));
        assert_eq!(counted, Some(&(2 * ROOTS as u64)), "JDK {}, {method}: {calls:#?}", jdk.version);
    }
}
