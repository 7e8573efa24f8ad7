//! `--count bytecodes`: each node has the instructions that its calls executed, to the last one, and a gate closes on one more.

use headwater_tests::{Jdk, Scratch, compile, java, profile, read_report, run_headwater};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        every_instruction_is_counted_where_it_is_executed,
    }
    since(21) {
        so_are_those_of_virtual_threads,
    }
}

/// What each method executes in a root call with so many rounds of the loop, by all nodes of it. An exception of an instruction's own
/// counts all of its block.
fn expected(rounds: u64) -> [(&'static str, u64); 13] {
    [
        ("Bytecodes.root(I)V", 74),
        // Four before the loop, three to look, six a round, two to return.
        ("Bytecodes.loop(I)I", 4 + 3 * (rounds + 1) + 6 * rounds + 2),
        ("Bytecodes.nested(II)I", 2 + 3 * (2 + 3 * 5 + 3 * 4 + 3) + 2),
        ("Bytecodes.dense(I)I", 4 + 5 + 4),
        ("Bytecodes.sparse(I)I", 4 + 4),
        ("Bytecodes.caught([I)I", 4 + (4 + 3)),
        ("Bytecodes.outer(Z)I", 4 + (2 + 3)),
        ("Bytecodes.thrower(Z)V", 2 * (3 + 4)),
        ("Bytecodes.last(Z)I", 3 + 2 + (2 + 5 + 2)),
        ("Bytecodes.through(Z)V", 7 + 1 + (2 + 7)),
        // Eight calls that end the recursion, seven that go on.
        ("Bytecodes.fibonacci(I)I", 8 * (3 + 2 + 1) + 7 * (3 + 9 + 1)),
        ("Bytecodes$Point.<init>(I)V", 6),
        ("Bytecodes.lambda$static$0(I)I", 4),
    ]
}

/// A profile of one root call: where it is, and as JSON.
fn counted(jdk: &Jdk, arguments: &[&str], rounds: u64, out: &Scratch) -> (String, Value) {
    let classes = compile(jdk, &["Bytecodes.java"]);
    let main: Vec<&str> = [&["Bytecodes"], arguments].concat();
    let mut target = java(jdk, &classes, &[], &main);
    target.await_line("READY");
    let file = out.file(&format!("{rounds}.hw")).to_string_lossy().into_owned();
    let fixed = ["--root", "Bytecodes::root", "--calls", "1", "--bare", "off", "--count", "bytecodes", "-o", &file];
    let tool = profile(&target, &fixed);
    target.say(&rounds.to_string());
    target.await_line("DONE");
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success());
    let json = out.file(&format!("{rounds}.json"));
    let written = run_headwater(&["report", &file, "-o", &json.to_string_lossy()]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    (file, read_report(&json))
}

fn check(report: &Value, rounds: u64) {
    let nodes = report["nodes"].as_array().expect("nodes");
    let of = |node: &Value, part: &str| node["metrics"]["bytecodes"][part].as_u64().expect("a number");
    let mut sum = 0;
    for (method, expected) in expected(rounds) {
        let own: u64 = nodes.iter().filter(|node| node["method"] == method).map(|node| of(node, "self")).sum();
        assert_eq!(own, expected, "{method}");
        sum += own;
    }
    let root = nodes.iter().find(|node| node["method"] == "Bytecodes.root(I)V").expect("the root");
    assert_eq!(of(root, "total"), sum, "nothing else was counted");
}

/// Whether a condition holds between two profiles.
fn gate(before: &str, after: &str) -> Option<i32> {
    run_headwater(&["diff", before, after, "--fail-if", "bytecodes(Bytecodes.*) > +0.5%"]).status.code()
}

fn every_instruction_is_counted_where_it_is_executed(jdk: &Jdk) {
    let out = Scratch::new("report");
    let (rounds, more) = (100, 101);
    let (before, report) = counted(jdk, &[], rounds, &out);
    check(&report, rounds);
    let (after, report) = counted(jdk, &[], more, &out);
    check(&report, more);
    assert_eq!(gate(&before, &before), Some(0), "nothing has changed");
    assert_eq!(gate(&before, &after), Some(1), "one round more is seen");
}

fn so_are_those_of_virtual_threads(jdk: &Jdk) {
    let out = Scratch::new("report");
    // More than an int holds.
    let rounds = 300_000_000;
    let (_, report) = counted(jdk, &["virtual"], rounds, &out);
    check(&report, rounds);
}
