//! `--count alloc` and `--count gc`: bytes as the JVM accounts for them, and how long it was stopped.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Scratch, compile, java, profile, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    since(17) {
        bytes_are_those_that_the_jvm_says,
        whatever_collects_and_however_objects_are_laid_out,
    }
    since(21) {
        virtual_threads_have_what_they_allocate_and_their_neighbours_do_not,
    }
}

/// Bytes that the JVM says were allocated: in each part of the root's calls before the profile, and, as `root`, in those that were profiled.
type Said = BTreeMap<String, u64>;

/// A root call in each of so many threads.
fn recorded(jdk: &Jdk, options: &[&str], main: &[&str], root: &str) -> (Scratch, Value, Said) {
    let classes = compile(jdk, &["Allocating.java"]);
    let mut target = java(jdk, &classes, options, &[&["Allocating"], main].concat());
    target.await_line("READY");
    let out = Scratch::new("report");
    let (file, json) = (out.file("profile.hw"), out.file("profile.json"));
    let name = file.to_string_lossy().into_owned();
    let root = format!("Allocating::{root}");
    // Everything is instrumented before the first call: what that takes is allocated by whoever makes the call.
    let fixed = ["--root", &root, "--calls", main[0], "--scheme", "total", "--bare", "off", "--count", "alloc,gc"];
    let tool = profile(&target, &[&fixed[..], &["-o", &name]].concat());
    target.say("go");
    target.await_line("DONE");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {} {options:?}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "JDK {} {options:?}: {target:#?}", jdk.version);
    let said = target.stdout.iter().filter_map(|line| line.split_once(' '));
    let said = said.map(|(part, bytes)| (part.to_owned(), bytes.parse().expect("a number"))).collect();
    let written = run_headwater(&["report", &name, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let report = read_report(&json);
    (out, report, said)
}

/// The sums of a metric over all nodes of a method that are not below others of it.
fn of(report: &Value, method: &str, metric: &str, part: &str) -> u64 {
    let nodes = report["nodes"].as_array().expect("nodes");
    let is_one =
        |node: &Value| node["method"].as_str().is_some_and(|name| name.starts_with(&format!("Allocating.{method}(")));
    let outermost = nodes.iter().filter(|node| {
        is_one(node)
            && (part == "self" || !node["parent"].as_u64().is_some_and(|parent| is_one(&nodes[parent as usize])))
    });
    outermost.map(|node| node["metrics"][metric][part].as_u64().unwrap_or_else(|| panic!("{metric} of {node}"))).sum()
}

/// Who has C2 compile a method allocates those string constants of its class that have not been read: of a few classes, each once.
const CONSTANTS: u64 = 4_096;

fn check(jdk: &Jdk, options: &[&str], threads: u64) -> (Scratch, Value) {
    let is_known_to_the_byte = options.iter().any(|option| ["-Xint", "-XX:TieredStopAtLevel=1"].contains(option));
    // What C2 is asked for is asked for before the profile, as far as that can be had.
    let options = [options, &["-Xbatch"]].concat();
    let (out, report, mut said) = recorded(jdk, &options, &[&threads.to_string()], "root");
    let in_profile = said.remove("root").expect("what the root's calls allocated");
    assert_eq!(said.len(), 6, "{said:?}");
    let ours: Said = said.keys().map(|part| (part.clone(), of(&report, part, "alloc", "total"))).collect();
    let root = of(&report, "root", "alloc", "total");
    if is_known_to_the_byte {
        assert_eq!(ours, said, "JDK {} {options:?}", jdk.version);
        assert_eq!(root, said.values().sum::<u64>(), "JDK {} {options:?}", jdk.version);
    }
    for (part, said) in &said {
        assert!((*said..said + CONSTANTS).contains(&ours[part]), "JDK {} {options:?}: {said:?}, {ours:?}", jdk.version);
    }
    assert!((0..CONSTANTS).contains(&(root - ours.values().sum::<u64>())), "JDK {} {options:?}: {root}", jdk.version);
    // The rest is what the profile has allocated.
    let own = in_profile.checked_sub(root).map(|own| own / threads);
    assert!(own.is_some_and(|own| own < 8_192), "JDK {} {options:?}: {in_profile}, {root}", jdk.version);
    (out, report)
}

fn bytes_are_those_that_the_jvm_says(jdk: &Jdk) {
    let (out, report) = check(jdk, &[], 1);
    // Three times it has the JVM collect; by itself it does so too.
    let own = |metric| of(&report, "collected", metric, "self");
    assert!(own("collections") >= 3 && own("gc") > 0, "JDK {}: {report}", jdk.version);
    assert_eq!(report["target"]["internals"]["allocated-bytes"], "holds", "JDK {}", jdk.version);
    let pauses = report["collections"]["pauses"].as_array().expect("pauses");
    assert!(pauses.iter().filter(|pause| pause["cause"] == "System.gc()").count() >= 3, "{pauses:?}");
    let tracks = report["tracks"].as_array().expect("tracks");
    let collections = tracks.iter().find(|track| track["id"] == "collections").expect("one of collections");
    let slices = collections["slices"].as_array().expect("slices");
    assert_eq!(slices.len(), pauses.len());
    for slice in slices.iter().filter(|slice| slice["label"] == "System.gc()") {
        let [Some(before), Some(after)] = [0, 1].map(|place| slice["amounts"][place].as_u64()) else {
            panic!("JDK {}: {slice}", jdk.version)
        };
        assert!(slice["by"].as_str().is_some_and(|by| by.contains("full collection")), "JDK {}: {slice}", jdk.version);
        // What was allocated beside eden since the last collection is not known before this one.
        assert!(after > 0 && before > 0, "JDK {}: {slice}", jdk.version);
    }
    let snapshot = out.file("profile.hw");
    let text = run_headwater(&["report", &snapshot.to_string_lossy(), "--metric", "alloc,gc"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("\ngc        ") && text.contains(" System.gc()"), "{text}");
    let text = run_headwater(&["report", &snapshot.to_string_lossy(), "--view", "tracks"]);
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for part in ["heap before", "\nhotswaps: ", "full collection, System.gc()\n"] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}

fn whatever_collects_and_however_objects_are_laid_out(jdk: &Jdk) {
    let kinds: [&[&str]; 4] = [
        &["-XX:+UseSerialGC", "-Xint"],
        &["-XX:+UseParallelGC", "-XX:-UseTLAB", "-XX:TieredStopAtLevel=1"],
        &["-XX:+UseG1GC", "-XX:-UseCompressedOops"],
        &["-XX:+UseZGC", "-XX:TieredStopAtLevel=1"],
    ];
    for options in kinds {
        let (_, report) = check(jdk, options, 16);
        let tracks = report["tracks"].as_array().expect("tracks");
        let slices = tracks.iter().find(|track| track["id"] == "collections").map(|track| &track["slices"]);
        let slices = slices.and_then(Value::as_array).expect("slices");
        assert!(slices.iter().all(|slice| slice["by"] != ""), "JDK {} {options:?}: {slices:#?}", jdk.version);
    }
}

fn virtual_threads_have_what_they_allocate_and_their_neighbours_do_not(jdk: &Jdk) {
    const THREADS: u64 = 8;
    let options = ["-Djdk.virtualThreadScheduler.parallelism=1", "-Djdk.virtualThreadScheduler.maxPoolSize=1"];
    let (_out, report, _) = recorded(jdk, &options, &[&THREADS.to_string(), "virtual"], "turns");
    let (calls, counted) = (50 * THREADS, of(&report, "turn", "alloc", "self"));
    // Three arrays, and what parking takes, which is less than one of the neighbour's.
    let a_call = counted / calls;
    assert!((3 * 1016..3 * 1016 + 1000).contains(&a_call), "JDK {}: {a_call} a call", jdk.version);
}
