//! A format of another tool, by the file's name: what is in it is what the program has done.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Scratch, compile, counts_of_target, java, profile, run_headwater};

headwater_tests::trials! {
    each_jdk {
        a_file_name_chooses_the_format_and_the_counts_in_it_equal_the_programs_own,
    }
    once {
        a_name_of_no_format_is_refused_before_the_program_is_started,
    }
}

fn a_file_name_chooses_the_format_and_the_counts_in_it_equal_the_programs_own(jdk: &Jdk) {
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let mut target = java(jdk, &classes, &[], &["Counting"]);
    target.await_line("READY");
    let out = Scratch::new("export");
    let file = out.file("metrics.om");
    let path = file.to_str().expect("a path in UTF-8");
    let arguments = ["--root", "Counting::root", "--calls", "2", "--exclude", "Counter", "-o", path];
    let tool = profile(&target, &arguments);
    ["go", "go!"].iter().for_each(|line| target.say(line));
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    let theirs = counts_of_target(&target.finish().stdout);

    let text = std::fs::read_to_string(&file).expect("the export");
    let ours: BTreeMap<String, u64> = text
        .lines()
        .filter_map(|line| line.strip_prefix("headwater_method_calls_total{method=\""))
        .filter_map(|line| line.split_once("\"} "))
        .map(|(method, calls)| (method.to_owned(), calls.parse().expect("a number")))
        .filter(|(method, _)| theirs.contains_key(method))
        .collect();
    assert!(theirs.len() > 20, "{theirs:#?}");
    assert_eq!(ours, theirs, "JDK {}", jdk.version);
}

fn a_name_of_no_format_is_refused_before_the_program_is_started() {
    let scratch = Scratch::new("export");
    let started = scratch.file("started");
    let touch = ["touch", started.to_str().expect("a path in UTF-8")];
    let arguments = ["run", "--root", "a.B::c", "-o", "profile.xyz", "--"];
    let output = run_headwater(&[&arguments[..], &touch].concat());
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("profile.xyz: its extension names no format") && errors.contains(".pb.gz"), "{errors}");
    let directory = scratch.path().to_str().expect("a path in UTF-8");
    let output =
        run_headwater(&[&["run", "--root", "a.B::c", "--format", "json", "-o", directory, "--"], &touch[..]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is a directory"));
    assert!(!started.exists());
}
