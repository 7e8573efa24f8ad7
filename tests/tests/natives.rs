//! Native methods are nodes where the user wants them, and every call of them that an instrumented method makes is counted.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, compile, compile_library, counts_of_target};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        calls_of_native_methods_equal_the_programs_own_count,
        those_of_the_jdk_are_left_to_its_filter,
        without_being_asked_for_they_are_listed_as_skipped,
        with_all_of_the_jdk_every_call_of_a_native_method_is_probed,
        what_native_code_calls_back_is_found,
    }
}

/// How often the root runs.
const ROOTS: u64 = 3;
const COPY: &str = "java.lang.System.arraycopy(Ljava/lang/Object;ILjava/lang/Object;II)V";
/// Its class is loaded within the method that calls it, which then goes on as it is: the one call that this makes is not seen.
const LATE: &str = "Natives$Late.nothing()V";

/// Profiles the target: the report, our counts of what it counts, and its own.
fn profiled(jdk: &Jdk, options: &[&str]) -> (Value, BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let context = format!("JDK {}, {options:?}", jdk.version);
    let mut target = Launched::of_files(jdk, &["Counter.java", "Natives.java"], &[], &["Natives"]);
    let calls = ROOTS.to_string();
    let fixed = ["--root", "Natives::root", "--exclude", "Counter", "--calls", &calls];
    let profile = Profile::start(&target, &[&fixed, options].concat());
    (0..ROOTS).for_each(|_| target.say("go"));
    let report = profile.report();
    let target = target.quit();
    assert_eq!(report["events"]["healed"], 0, "{context}");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{context}: {}", report["warnings"]);
    let mut theirs = counts_of_target(&target.stdout);
    theirs.remove("unseen");
    if let Some(late) = theirs.get_mut(LATE) {
        *late -= 1;
    }
    let ours = calls_by_method(&report);
    let ours = theirs.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect();
    (report, ours, theirs)
}

fn calls_of_native_methods_equal_the_programs_own_count(jdk: &Jdk) {
    for scheme in ["b", "a", "total"] {
        let (report, ours, theirs) = profiled(jdk, &["--natives", "--jdk", "edge", "--scheme", scheme]);
        assert_eq!(ours, theirs, "JDK {}, scheme {scheme}", jdk.version);
        assert_eq!(theirs[COPY], ROOTS * 5 * 5);
        let nodes = report["nodes"].as_array().expect("nodes");
        let of = |method: &'static str| nodes.iter().filter(move |node| node["method"] == method);
        let thrown: u64 = of(COPY).filter_map(|node| node["thrown"].as_u64()).sum();
        assert_eq!(thrown, ROOTS * 5, "one of the copies of each round fails");
        let skipped = report["methods"]["skipped"].to_string();
        assert!(skipped.contains(LATE), "what was not seen is told: {skipped}");
    }
}

fn those_of_the_jdk_are_left_to_its_filter(jdk: &Jdk) {
    let (_, mut ours, mut theirs) = profiled(jdk, &["--natives"]);
    let jdks = |method: &String, _: &mut u64| method.starts_with("java.lang.");
    assert!(ours.extract_if(.., jdks).all(|(_, count)| count == 0), "JDK {}", jdk.version);
    theirs.retain(|method, _| !method.starts_with("java.lang."));
    assert_eq!(ours, theirs, "JDK {}", jdk.version);
}

fn without_being_asked_for_they_are_listed_as_skipped(jdk: &Jdk) {
    let (report, ours, theirs) = profiled(jdk, &[]);
    for (method, count) in &theirs {
        let is_native = ["nothing(", "always(", "java.lang."].iter().any(|part| method.contains(part));
        assert_eq!(ours[method], if is_native { 0 } else { *count }, "JDK {}: {method}", jdk.version);
    }
    assert!(report["methods"]["skipped"].to_string().contains("it is native (--natives"), "{}", report["methods"]);
}

fn with_all_of_the_jdk_every_call_of_a_native_method_is_probed(jdk: &Jdk) {
    let (report, ours, theirs) = profiled(jdk, &["--natives", "--jdk", "all"]);
    // The JDK copies arrays, too.
    for (method, count) in &theirs {
        let exact = !method.starts_with("java.lang.");
        assert!(ours[method] == *count || !exact && ours[method] > *count, "JDK {}: {method}", jdk.version);
    }
    assert!(report["methods"]["called"].as_u64().is_some_and(|called| called > 20), "{}", report["methods"]);
}

/// What a native method calls back through JNI.
fn what_native_code_calls_back_is_found(jdk: &Jdk) {
    for (options, natives) in [(&[][..], false), (&["--natives"][..], true)] {
        let context = format!("JDK {}, {options:?}", jdk.version);
        let classes = compile(jdk, &["Counter.java", "Jni.java"]);
        compile_library(jdk, "jni.c", &classes.file("libjni.so"));
        let path = format!("-Djava.library.path={}", classes.path().display());
        let mut target = Launched::of_classes(jdk, classes, &[&path], &["Jni"]);
        let fixed = ["--root", "Jni::root", "--exclude", "Counter", "--calls", "2"];
        let profile = Profile::start(&target, &[&fixed, options].concat());
        (0..2).for_each(|_| target.say("go"));
        let report = profile.report();
        let target = target.quit();
        let (ours, theirs) = (calls_by_method(&report), counts_of_target(&target.stdout));
        for (method, count) in &theirs {
            let expected = if method.starts_with("Jni.each") && !natives { 0 } else { *count };
            assert_eq!(ours.get(method).copied().unwrap_or(0), expected, "{context}: {method}");
        }
        // Who called it, in the tree.
        let nodes = report["nodes"].as_array().expect("nodes");
        let job = nodes.iter().find(|node| node["method"] == "Jni$Job.run()V").expect("it is called");
        let parent = &nodes[job["parent"].as_u64().expect("a parent") as usize];
        let expected = if natives { "Jni.each(Ljava/lang/Runnable;I)I" } else { "Jni.work()V" };
        assert_eq!(parent["method"], expected, "{context}");
    }
}
