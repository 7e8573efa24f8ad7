//! A profile of a real program, kept in a snapshot: every view of it agrees with every other, and with the program.

use std::collections::BTreeMap;
use std::path::Path;

use headwater_tests::{
    Jdk, Process, Scratch, calls_by_method, compile, counts_of_target, java, profile, read_report, run_headwater,
};
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        the_views_agree_with_each_other_and_with_the_program,
        two_runs_of_the_same_work_pass_the_gate,
    }
}

fn record(target: &mut Process, file: &Path) {
    let file = file.to_string_lossy().into_owned();
    let tool = profile(target, &["--root", "Counting::root", "--calls", "2", "--exclude", "Counter", "-o", &file]);
    ["go", "go!"].iter().for_each(|line| target.say(line));
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    assert_eq!(tool.stdout, Vec::<String>::new());
    let said = tool.stderr.iter().skip_while(|line| !line.ends_with("is written")).collect::<Vec<_>>();
    assert!(said[0].contains(&file) && said[1].starts_with("times"), "{:#?}", tool.stderr);
    assert!(said.iter().any(|line| line.contains("root Counting::root: entered 2 times")), "{said:#?}");
}

fn report(snapshot: &Path, view: &str) -> Value {
    let json = snapshot.with_extension(format!("{view}.json"));
    let [snapshot, file] = [snapshot, &json].map(|path| path.to_string_lossy().into_owned());
    let output = run_headwater(&["report", &snapshot, "--view", view, "-o", &file]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    read_report(&json)
}

fn number(row: &Value, field: &str) -> u64 {
    row[field].as_u64().unwrap_or_else(|| panic!("{field} in {row}"))
}

fn text<'a>(row: &'a Value, field: &str) -> &'a str {
    row[field].as_str().unwrap_or_else(|| panic!("{field} in {row}"))
}

fn rows<'a>(report: &'a Value, field: &str) -> &'a [Value] {
    report[field].as_array().unwrap_or_else(|| panic!("{field} in {report}"))
}

/// Calls, self time, and total time of the outermost calls of each method, from the tree view.
fn by_method(tree: &Value) -> BTreeMap<String, [u64; 3]> {
    let nodes = rows(tree, "nodes");
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut pending = Vec::new();
    for (index, node) in nodes.iter().enumerate() {
        match node["parent"].as_u64() {
            Some(parent) => children[parent as usize].push(index),
            None => pending.push((index, false)),
        }
    }
    let mut sums: BTreeMap<String, [u64; 3]> = BTreeMap::new();
    let mut open: BTreeMap<&str, usize> = BTreeMap::new();
    while let Some((index, is_left)) = pending.pop() {
        let (node, method) = (&nodes[index], text(&nodes[index], "method"));
        let open = open.entry(method).or_default();
        if is_left {
            *open -= 1;
            continue;
        }
        let [calls, own, total] = sums.entry(method.to_owned()).or_default();
        *calls += number(node, "calls");
        *own += number(node, "self_ns");
        *total += if *open == 0 { number(node, "total_ns") } else { 0 };
        *open += 1;
        pending.push((index, true));
        pending.extend(children[index].iter().map(|child| (*child, false)));
    }
    sums
}

fn the_views_agree_with_each_other_and_with_the_program(jdk: &Jdk) {
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let mut target = java(jdk, &classes, &[], &["Counting"]);
    target.await_line("READY");
    let scratch = Scratch::new("snapshot");
    let file = scratch.file("run.hw");
    record(&mut target, &file);
    target.say("quit");
    let theirs = counts_of_target(&target.finish().stdout);

    let tree = report(&file, "tree");
    let ours = calls_by_method(&tree);
    let comparable: BTreeMap<String, u64> =
        theirs.keys().map(|method| (method.clone(), ours.get(method).copied().unwrap_or(0))).collect();
    assert_eq!(comparable, theirs, "JDK {}", jdk.version);
    assert_eq!(text(&tree["environment"], "headwater"), env!("CARGO_PKG_VERSION"));

    let expected = by_method(&tree);
    let flat = report(&file, "flat");
    let found: BTreeMap<String, [u64; 3]> = rows(&flat, "flat")
        .iter()
        .map(|row| (text(row, "method").to_owned(), ["calls", "self_ns", "total_ns"].map(|field| number(row, field))))
        .collect();
    assert_eq!(found, expected, "JDK {}", jdk.version);

    let callers = report(&file, "callers");
    let mut recursive = 0;
    for stanza in rows(&callers, "stanzas") {
        let own = &stanza["self"];
        let [calls, base, cum] = ["calls", "base_ns", "cum_ns"].map(|field| number(own, field));
        assert_eq!([calls, base, cum], expected[text(own, "method")]);
        let sum = |side: &str, field: &str| rows(stanza, side).iter().map(|row| number(row, field)).sum::<u64>();
        assert_eq!(["calls", "base_ns", "cum_ns"].map(|field| sum("parents", field)), [calls, base, cum], "{stanza}");
        assert_eq!(sum("children", "cum_ns"), cum - base, "{stanza}");
        recursive += usize::from(rows(stanza, "parents").iter().any(|row| row["method"] == own["method"]));
    }
    assert_eq!(rows(&callers, "stanzas").len(), expected.len());
    assert!(recursive > 0, "the program has recursion");
}

fn two_runs_of_the_same_work_pass_the_gate(jdk: &Jdk) {
    let classes = compile(jdk, &["Counter.java", "Counting.java"]);
    let mut target = java(jdk, &classes, &[], &["Counting"]);
    target.await_line("READY");
    let scratch = Scratch::new("gate");
    let [before, after] = ["before.hw", "after.hw"].map(|name| scratch.file(name));
    record(&mut target, &before);
    record(&mut target, &after);
    target.say("quit");
    assert!(target.finish().status.success());
    let [before, after] = [&before, &after].map(|path| path.to_string_lossy().into_owned());
    let gate = |condition: &str| run_headwater(&["diff", &before, &after, "--fail-if", condition]);
    let passed = gate("calls(Counting.root) > 0");
    assert!(passed.status.success(), "{}", String::from_utf8_lossy(&passed.stderr));
    let unchanged = gate("calls(Counting.root) >= 0");
    assert!(unchanged.status.success(), "no change is no change, whatever is asked of it");
    let failed = gate("calls(Counting.neverThere) > 0");
    assert_eq!(failed.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&failed.stderr).contains("no method that was called on either side matches"));
}
