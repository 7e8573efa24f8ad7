//! `--count exceptions`: as many of each class at each node as the target has made and thrown.

use headwater_tests::{Jdk, Scratch, compile, java, profile, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    since(17) {
        exceptions_are_counted_where_they_are_made_and_thrown,
    }
    since(21) {
        so_are_those_of_virtual_threads,
    }
}

/// A profile of one root call, and what the target says: how often it does a thing, and how often another.
fn counted(jdk: &Jdk, arguments: &[&str], options: &[&str]) -> (Scratch, Value, [u64; 2]) {
    let classes = compile(jdk, &["Throwing.java"]);
    let mut target = java(jdk, &classes, &[], &[&["Throwing"], arguments].concat());
    target.await_line("READY");
    let out = Scratch::new("report");
    let (file, json) = (out.file("profile.hw"), out.file("profile.json"));
    let name = file.to_string_lossy().into_owned();
    let fixed = ["--root", "Throwing::root", "--calls", "1", "--bare", "off", "--count", "exceptions", "-o", &name];
    let tool = profile(&target, &[&fixed, options].concat());
    target.say("go");
    let done = target.await_line("DONE");
    let mut numbers = done.split(' ').skip(1).map(|number| number.parse().expect("a number"));
    let said = std::array::from_fn(|_| numbers.next().expect("a number"));
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success(), "JDK {}", jdk.version);
    let written = run_headwater(&["report", &name, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let report = read_report(&json);
    (out, report, said)
}

/// Methods, classes below them, and how many exceptions; of all contexts together.
fn thrown(report: &Value) -> Vec<(String, String, u64)> {
    let nodes = report["nodes"].as_array().expect("nodes");
    let mut found: Vec<(String, String, u64)> = Vec::new();
    for node in nodes {
        let times = node["metrics"]["exceptions"]["self"].as_u64().expect("it is counted");
        if times == 0 {
            continue;
        }
        assert_eq!((&node["calls"], &node["total_ns"]), (&0.into(), &0.into()), "it is no method: {node}");
        let parent = node["parent"].as_u64().expect("it is below one") as usize;
        let name = |node: &Value| node["method"].as_str().expect("a name").to_owned();
        let (method, class) = (name(&nodes[parent]), name(node));
        match found.iter_mut().find(|it| it.0 == method && it.1 == class) {
            Some((.., sum)) => *sum += times,
            None => found.push((method, class, times)),
        }
    }
    found.sort_unstable();
    found
}

fn check(jdk: &Jdk, report: &Value, [times, often]: [u64; 2]) {
    let line = |method: &str, class: &str, times| (format!("Throwing.{method}V"), class.to_owned(), times);
    let mut expected = vec![
        line("again()", "Throwing$Mine", often),
        line("deepest()", "Throwing$Mine", times),
        line("implicit(I)", "java.lang.ArrayIndexOutOfBoundsException", often),
        // Called by the root, and twice on the way of another exception.
        line("inside()", "Throwing$Mine", 3 * times),
        line("make(I)", "Throwing$Special", times),
        line("parse()", "java.lang.NumberFormatException", times),
        line("wrap()", "Throwing$Wrapped", times),
    ];
    expected.push(("Throwing.fail()Ljava/lang/Object;".to_owned(), "Throwing$Mine".to_owned(), times));
    expected.push(("Throwing.kept(I)Ljava/lang/Throwable;".to_owned(), "java.lang.Throwable".to_owned(), times));
    expected.sort_unstable();
    assert_eq!(thrown(report), expected, "JDK {}", jdk.version);
    let root = &report["nodes"][0]["metrics"]["exceptions"];
    let all: u64 = expected.iter().map(|(.., times)| times).sum();
    assert_eq!((root["self"].as_u64(), root["total"].as_u64()), (Some(0), Some(all)), "JDK {}", jdk.version);
}

fn exceptions_are_counted_where_they_are_made_and_thrown(jdk: &Jdk) {
    let (out, report, said) = counted(jdk, &[], &[]);
    check(jdk, &report, said);
    let file = out.file("profile.hw").to_string_lossy().into_owned();
    let shown = run_headwater(&["report", &file, "--view", "tree", "--metric", "exceptions", "--min", "0"]);
    let text = String::from_utf8_lossy(&shown.stdout).into_owned();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let at = lines.iter().position(|line| line.ends_with("Throwing.parse()")).unwrap_or_else(|| panic!("{text}"));
    assert!(lines[at + 1].ends_with(" java.lang.NumberFormatException"), "{text}");
}

fn so_are_those_of_virtual_threads(jdk: &Jdk) {
    let (_out, report, said) = counted(jdk, &["virtual"], &["--count", "bytecodes"]);
    check(jdk, &report, said);
}
