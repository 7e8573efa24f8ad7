//! `--count alloc-sites`: as many objects of each class in each line as the target makes, and as large as its JVM says.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Scratch, compile, java, profile, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        objects_are_counted_by_class_and_line_as_large_as_the_jvm_says,
        however_objects_are_laid_out,
    }
    since(21) {
        so_are_those_of_virtual_threads,
    }
}

/// By the mark of the line and the class: how many objects, and how large altogether.
type Made = BTreeMap<(String, String), (u64, u64)>;

/// What the target says it makes, and the profile of that.
fn recorded(jdk: &Jdk, options: &[&str], main: [&str; 2], more: &[&str], count: &str) -> (Scratch, Value, Made) {
    let classes = compile(jdk, &["Making.java"]);
    let mut target = java(jdk, &classes, options, &[&["Making"], &main[..], more].concat());
    let (said, _) = target.await_line_and_those_before("READY");
    let out = Scratch::new("report");
    let (file, json) = (out.file("profile.hw"), out.file("profile.json"));
    let name = file.to_string_lossy().into_owned();
    let tool = profile(&target, &["--root", "Making::root", "--calls", main[0], "--count", count, "-o", &name]);
    target.say("go");
    target.await_line("DONE");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {} {options:?}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {} {options:?}", jdk.version);
    let written = run_headwater(&["report", &name, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let said = said.iter().filter_map(|line| line.strip_prefix("SAID ")).map(|line| {
        let [site, class, objects, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let number = |text: &str| text.parse().expect("a number");
        ((site.to_owned(), class.to_owned()), (number(objects), number(bytes)))
    });
    let said = said.collect();
    (out, read_report(&json), said)
}

fn own(node: &Value, metric: &str) -> u64 {
    node["metrics"][metric]["self"].as_u64().unwrap_or_else(|| panic!("{metric} of {node}"))
}

/// What the report has.
fn made(report: &Value) -> Made {
    let marks: Vec<&str> =
        include_str!("../targets/Making.java").lines().map(|line| line.rsplit("; // ").next().unwrap_or("")).collect();
    let mut made = Made::new();
    for node in report["nodes"].as_array().expect("nodes").iter().filter(|node| own(node, "objects") > 0) {
        assert_eq!((&node["calls"], &node["total_ns"]), (&0.into(), &0.into()), "it is no method: {node}");
        let name = node["method"].as_str().expect("a name");
        let (class, line) = name.split_once("@Making:").unwrap_or_else(|| panic!("{name}"));
        let mark = marks[line.parse::<usize>().expect("a line") - 1].to_owned();
        let (objects, bytes) = made.entry((mark, class.to_owned())).or_default();
        *objects += own(node, "objects");
        *bytes += own(node, "object-bytes");
    }
    made
}

fn objects_are_counted_by_class_and_line_as_large_as_the_jvm_says(jdk: &Jdk) {
    let (out, report, said) = recorded(jdk, &[], ["4", "100000"], &[], "alloc-sites");
    assert_eq!(made(&report), said, "JDK {}", jdk.version);
    let (objects, bytes) = said.values().fold((0, 0), |(objects, bytes), it| (objects + it.0, bytes + it.1));
    let root = &report["nodes"][0]["metrics"];
    assert_eq!(
        (root["objects"]["total"].as_u64(), root["object-bytes"]["total"].as_u64()),
        (Some(objects), Some(bytes))
    );
    assert!(report["clock"]["object_ns"].as_f64().is_some_and(|ns| ns > 0.0), "{}", report["clock"]);
    let file = out.file("profile.hw").to_string_lossy().into_owned();
    let shown = run_headwater(&["report", &file, "--view", "flat", "--metric", "objects,object-bytes"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(text.lines().any(|line| line.contains(" Making$Point@Making:")), "{text}");
}

/// Nothing is left out by a compiler, so that each method has allocated what it makes.
fn however_objects_are_laid_out(jdk: &Jdk) {
    let compact: &[&str] = if jdk.version >= 25 { &["-XX:+UseCompactObjectHeaders"] } else { &[] };
    let options = [
        &["-Xint", "-XX:-UseCompressedOops", "-XX:-UseCompressedClassPointers"][..],
        &[&["-Xint", "-XX:ObjectAlignmentInBytes=32"], compact].concat(),
    ];
    for options in options {
        // What the JVM has allocated by a thread it says since JDK 14 as it is to be known here.
        let count = if jdk.version >= 17 { "alloc,alloc-sites" } else { "alloc-sites" };
        let (_out, report, said) = recorded(jdk, options, ["1", "100"], &[], count);
        assert_eq!(made(&report), said, "JDK {} {options:?}", jdk.version);
        if jdk.version < 17 {
            continue;
        }
        let nodes = report["nodes"].as_array().expect("nodes");
        for method in ["points(I)V", "pair(I)V", "arrays(I)V", "nested(I)V", "large()V", "fleeting(I)I"] {
            let is_it = |node: &&Value| node["method"].as_str() == Some(&format!("Making.{method}"));
            let node = nodes.iter().find(is_it).unwrap_or_else(|| panic!("{method}"));
            let total = node["metrics"]["object-bytes"]["total"].as_u64().expect("it is counted");
            assert_eq!(own(node, "alloc"), total, "JDK {} {options:?}: {method}", jdk.version);
        }
    }
}

fn so_are_those_of_virtual_threads(jdk: &Jdk) {
    let (_out, report, said) =
        recorded(jdk, &[], ["3", "1000"], &["virtual"], "alloc,alloc-sites,exceptions,bytecodes");
    assert_eq!(made(&report), said, "JDK {}", jdk.version);
}
