//! What is called by reflection below the root is found, and every call of it counted.

use std::collections::BTreeMap;

use headwater_tests::{Scratch, calls_by_method, compile, counts_of_target, java, jdks, profile, read_report};

/// How often the root runs.
const ROOTS: usize = 3;

#[test]
fn calls_by_reflection_equal_the_programs_own_count() {
    for jdk in jdks() {
        for options in [&[][..], &["--scheme", "a"]] {
            let classes = compile(&jdk, &["Counter.java", "Reflecting.java"]);
            let mut target = java(&jdk, &classes, &[], &["Reflecting"]);
            target.await_line("READY");
            let out = Scratch::new("report");
            let file = out.file("profile.json");
            let file_name = file.to_string_lossy().into_owned();
            let calls = ROOTS.to_string();
            let fixed = ["--root", "Reflecting::root", "--exclude", "Counter", "--calls", &calls, "-o", &file_name];
            let tool = profile(&target, &[&fixed, options].concat());
            (0..ROOTS).for_each(|_| target.say("go"));
            let tool = tool.finish();
            assert!(tool.status.success(), "JDK {}, {options:?}: {:#?}", jdk.version, tool.stderr);
            target.say("quit");
            let target = target.finish();
            assert!(target.status.success(), "JDK {}, {options:?}: {:#?}", jdk.version, target.stderr);
            let report = read_report(&file);
            let (ours, theirs) = (calls_by_method(&report), counts_of_target(&target.stdout));
            assert!(theirs.len() > 10, "{theirs:#?}");
            let ours: BTreeMap<String, u64> =
                theirs.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect();
            assert_eq!(ours, theirs, "JDK {}, {options:?}", jdk.version);
            assert_eq!(report["events"]["healed"], 0);
            assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{}", report["warnings"]);
        }
    }
}
