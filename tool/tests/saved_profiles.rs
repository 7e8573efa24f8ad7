//! `headwater report` and `headwater diff` on snapshots, as a user runs them.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use headwater::profile::reach::{Cause, Moment, Reach, Reached};
use headwater::profile::{MethodIndex, Profile, Root};
use headwater::snapshot;
use headwater_terms::reach::Way;
use headwater_tests::Scratch;

#[path = "../profile/tests/support/mod.rs"]
mod support;

use support::{check, node, profile, recursive};

/// Where the golden files are.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/profile/tests/golden");

/// Two snapshots in a directory, and the binary run there.
struct Saved(Scratch);

impl Saved {
    fn new() -> Saved {
        let saved = Saved(Scratch::new("saved"));
        saved.save("before.hw", &recursive());
        saved.save("after.hw", &changed());
        saved
    }

    fn save(&self, name: &str, profile: &Profile) {
        snapshot::save(profile, &self.0.file(name)).expect("the snapshot is written");
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("headwater starts")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(arguments).current_dir(self.0.path()).stdin(Stdio::null());
        command
    }

    fn result(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
        assert_eq!(stderr(&output), "", "{arguments:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    fn failure(&self, arguments: &[&str], code: i32) -> String {
        let output = self.run(arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    }
}

#[test]
fn pages_are_written_by_their_extension_or_by_format() {
    let saved = Saved::new();
    for (arguments, kind) in [(&["report", "before.hw"][..], "profile"), (&["diff", "before.hw", "after.hw"], "diff")] {
        let file = format!("{kind}.html");
        assert_eq!(saved.result(&[arguments, &["-o", &file]].concat()), "");
        let page = std::fs::read_to_string(saved.0.file(&file)).expect("the page");
        assert!(page.starts_with("<!doctype html>") && page.contains("default-src 'none'"), "{kind}");
        assert_eq!(saved.result(&[arguments, &["--format", "html"]].concat()), page);
    }
    let complaint = saved.failure(&["report", "before.hw", "-o", "page.xml"], 2);
    assert!(complaint.contains(".html"), "{complaint}");
    let complaint = saved.failure(&["diff", "before.hw", "after.hw", "-o", "page.xml"], 2);
    assert!(complaint.contains(".html"), "{complaint}");
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Twice as many root calls. `Cart.total` got slower where `Shop.checkout` calls it, `Item.price` no longer calls it, `Shop.refund` is
/// new and logs, and `Shop.log` otherwise differs by less than it is uncertain.
fn changed() -> Profile {
    let mut changed = recursive();
    changed.merged.nodes = vec![
        node(None, 0, 20, 2_000, 2_000_000, 10),
        node(Some(0), 4, 20, 30_000, 40_000, 10),
        node(Some(0), 1, 40, 340_000, 1_958_000, 10),
        node(Some(2), 3, 40, 620_000, 620_000, 50_000),
        node(Some(2), 1, 80, 400_000, 998_000, 10),
        node(Some(4), 2, 80, 598_000, 598_000, 10),
        node(Some(1), 3, 20, 10_000, 10_000, 10),
    ];
    changed.roots[1] = Root { calls: 20, ..changed.roots[1].clone() };
    changed.target.jdk = "25.0.2".into();
    changed.environment.started_s += 3_600;
    changed
}

#[test]
fn a_snapshot_reports_what_the_profile_would_have() {
    let saved = Saved::new();
    for view in ["tree", "callers", "flat"] {
        check(
            &format!("{view}.json"),
            &pretty(&saved.result(&["report", "before.hw", "--view", view, "--format", "json"])),
        );
        let text = saved.result(&["report", "before.hw", "--view", view]);
        let without_provenance: String = text
            .lines()
            .filter(|line| !line.starts_with("recorded ") && !line.starts_with("command "))
            .map(|line| format!("{line}\n"))
            .collect();
        check(&format!("{view}.txt"), &without_provenance);
    }
    saved.save("whole.hw", &profile());
    check("saved.txt", &saved.result(&["report", "whole.hw"]));
}

fn pretty(json: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(json).expect("JSON");
    format!("{value:#}\n")
}

#[test]
fn a_report_goes_to_a_file_in_the_form_of_its_extension() {
    let saved = Saved::new();
    assert_eq!(saved.result(&["report", "before.hw", "-o", "x.txt"]), "");
    assert_eq!(saved.result(&["report", "before.hw", "-o", "x.json", "--view", "flat"]), "");
    assert_eq!(saved.result(&["report", "before.hw", "-o", "x.hw"]), "");
    let read = |name: &str| std::fs::read(saved.0.file(name)).expect("is there");
    assert!(read("x.txt").starts_with(b"com.acme.Shop (pid 4711"));
    check("flat.json", &pretty(&String::from_utf8(read("x.json")).expect("text")));
    assert!(read("x.hw") == read("before.hw"));
    let usage = saved.failure(&["report", "before.hw", "-o", "x.xyz"], 2);
    assert!(usage.starts_with("headwater: x.xyz: its extension names no format; .txt, .json, .html, .hw, "), "{usage}");
}

#[test]
fn a_snapshot_can_be_exported() {
    let saved = Saved::new();
    let collapsed = |arguments: &[&str]| {
        let mut all = vec!["report", "before.hw", "--format", "collapsed"];
        all.extend(arguments);
        let mut lines: Vec<String> = saved.result(&all).lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(collapsed(&[]).len(), recursive().merged.nodes.len());
    assert_eq!(
        collapsed(&["--thread", "worker-*"]),
        ["com.acme.Shop.checkout(Cart) 2000", "com.acme.Shop.checkout(Cart);com.acme.Cart.total() 100000"]
    );
}

#[test]
fn a_snapshot_can_come_from_standard_input() {
    let saved = Saved::new();
    let file = std::fs::File::open(saved.0.file("before.hw")).expect("is there");
    let output = saved.command(&["report", "-", "--view", "flat"]).stdin(file).output().expect("headwater starts");
    assert!(output.status.success() && output.stdout.starts_with(b"com.acme.Shop"), "{}", stderr(&output));
    let output = saved.run(&["report", "-"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).starts_with("headwater: standard input is no snapshot: it is empty."));
}

#[test]
fn pruning_and_sorting() {
    let saved = Saved::new();
    let tree = saved.result(&["report", "before.hw", "--min", "35%", "--depth", "3"]);
    assert!(tree.contains("... 1 more callee") && !tree.contains("Shop.log(String)"), "{tree}");
    let flat = saved.result(&["report", "before.hw", "--view", "flat", "--sort", "calls", "--percent"]);
    let methods: Vec<&str> = flat
        .lines()
        .filter(|line| line.contains("%") && !line.starts_with("times"))
        .filter_map(|line| line.split("  ").last())
        .map(str::trim)
        .collect();
    assert_eq!(
        methods,
        [
            "com.acme.Cart.total()",
            "com.acme.Item.price(int)",
            "com.acme.Shop.log(String)",
            "com.acme.Shop.checkout(Cart)"
        ]
    );
    let threads = saved.result(&["report", "before.hw", "--threads", "--thread", "worker-*"]);
    assert!(threads.contains("thread 31 \"worker-1\"") && threads.contains("thread 32 \"worker-2\""), "{threads}");
    assert!(!threads.contains("\"main\""), "{threads}");
    let focus = saved.failure(&["report", "before.hw", "--focus", "com.acme.Crat"], 1);
    assert!(focus.starts_with("headwater: no method that was called matches com.acme.Crat"), "{focus}");
    let thread = saved.failure(&["report", "before.hw", "--thread", "http"], 1);
    assert!(thread.starts_with("headwater: no thread of the profile is http. It has 31 \"worker-1\", "), "{thread}");
    assert!(saved.failure(&["report", "before.hw", "--min", "half"], 2).contains("give a number from 0 to 100"));
    assert!(saved.failure(&["report", "before.hw", "--focus", "com.acme.."], 2).contains("column 9"));
}

#[test]
fn what_is_no_snapshot_is_refused() {
    let saved = Saved::new();
    std::fs::write(saved.0.file("report.json"), "{}").expect("written");
    assert_eq!(
        saved.failure(&["report", "report.json"], 1),
        "headwater: report.json is no snapshot: it looks like JSON, and a report cannot be turned back into a profile. Snapshots are \
         written by `headwater profile ... -o run.hw`\n"
    );
    let bytes = std::fs::read(saved.0.file("before.hw")).expect("is there");
    std::fs::write(saved.0.file("cut.hw"), &bytes[..bytes.len() / 2]).expect("written");
    assert!(
        saved
            .failure(&["diff", "before.hw", "cut.hw"], 1)
            .starts_with("headwater: cut.hw is incomplete: it ends at byte ")
    );
    assert!(saved.failure(&["report", "gone.hw"], 1).starts_with("headwater: cannot open gone.hw: No such file"));
}

#[test]
fn the_first_layout_can_be_read_for_ever() {
    let file = Path::new(GOLDEN).join("layout-1.hw");
    if !file.exists() && std::env::var_os("HEADWATER_GOLDEN").is_some_and(|value| value == "write") {
        snapshot::save(&profile(), &file).expect("the golden file");
    }
    assert_eq!(snapshot::load(&file).expect("readable"), profile());
}

#[test]
fn the_differences() {
    let saved = Saved::new();
    check("diff.txt", &saved.result(&["diff", "before.hw", "after.hw"]));
    check("diff-back.txt", &saved.result(&["diff", "after.hw", "before.hw", "--min", "0"]));
    check("diff-same.txt", &saved.result(&["diff", "before.hw", "before.hw"]));
    check("diff-run.txt", &saved.result(&["diff", "before.hw", "after.hw", "--per", "run", "--by", "calls"]));
    check(
        "diff-focus.txt",
        &saved.result(&["diff", "before.hw", "after.hw", "--focus", "com.acme.Item", "--by", "total"]),
    );
    check("diff.json", &pretty(&saved.result(&["diff", "before.hw", "after.hw", "--format", "json"])));
}

/// Both have wall time, one of them of a whole JVM: they are laid side by side by shares, unless that is asked for by name.
#[test]
fn files_of_different_kinds_are_compared_by_shares() {
    let saved = Saved::new();
    saved.result(&["report", "before.hw", "--format", "speedscope", "-o", "jvm.json"]);
    let shares = saved.result(&["diff", "jvm.json", "after.hw"]);
    assert!(shares.contains("shares of wall time") && shares.contains("(share) before"), "{shares}");
    assert!(!shares.contains("calls"), "one of them has none: {shares}");
    let asked_for = saved.result(&["diff", "jvm.json", "after.hw", "--metric", "wall"]);
    assert!(asked_for.contains("(wall time) before") && !asked_for.contains("shares of"), "{asked_for}");
    assert!(saved.failure(&["diff", "jvm.json", "after.hw", "--by", "calls"], 1).contains("not all profiles have"));
}

#[test]
fn several_files_a_side() {
    let saved = Saved::new();
    // Slower in another method from run to run.
    let mut slower = recursive();
    slower.merged.nodes[2].self_ns += 3_000;
    for node in [0, 1, 2] {
        slower.merged.nodes[node].total_ns += 3_000;
    }
    saved.save("slower.hw", &slower);
    let sides = ["before.hw", "slower.hw", "before.hw", "--", "after.hw", "after.hw"];
    check("diff-several.txt", &saved.result(&[&["diff"], &sides[..]].concat()));
    let json = saved.result(&[&["diff", "--format", "json"], &sides[..]].concat());
    let object: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let files = |side: &str| object[side]["files"].as_array().map_or(0, Vec::len);
    assert_eq!((files("before"), files("after"), &object["times_known"]), (3, 2, &true.into()));
    // One and one are what they are without the dashes.
    assert_eq!(
        saved.result(&["diff", "before.hw", "--", "after.hw"]),
        saved.result(&["diff", "before.hw", "after.hw"])
    );
    let failed = saved.failure(&[&["diff", "--fail-if", "calls(refund) > 0"], &sides[..]].concat(), 1);
    assert!(failed.starts_with("headwater: FAILED calls(refund) > 0: 0 before, 1 after per root call"), "{failed}");
}

#[test]
fn a_saved_profile_explains_its_methods() {
    let saved = Saved::new();
    let cause = |by: Option<usize>, way| Cause { by: by.map(MethodIndex), way, through: None };
    let reached = |cause| Reached { cause, probed: Some(Moment::default()), ..Reached::default() };
    let methods = vec![reached(cause(None, Way::Root)), reached(cause(Some(0), Way::Direct))];
    saved.save("whole.hw", &Profile { reach: Some(Reach { methods, ..Reach::default() }), ..recursive() });
    let text = saved.result(&["explain", "whole.hw", "com.acme.Cart.total"]);
    assert!(text.starts_with("com.acme.Cart.total(): has probes, was called 140 times\n"), "{text}");
    assert!(
        text.contains("checkout(Cart): named by the root\n          > com.acme.Cart.total(): called directly\n"),
        "{text}"
    );
    assert_eq!(saved.result(&["explain", "whole.hw", "com.acme.Cart.total", "-o", "why.json"]), "");
    let json: serde_json::Value =
        serde_json::from_slice(&std::fs::read(saved.0.file("why.json")).expect("the file")).expect("JSON");
    assert_eq!((&json["schema"], &json["methods"][0]["calls"]), (&"headwater-explain/1".into(), &140.into()));

    let older = saved.result(&["explain", "before.hw", "com.acme.Cart.total"]);
    assert!(older.contains("how it was reached is not known"), "{older}");
    let unknown = saved.failure(&["explain", "whole.hw", "com.acme.Crat.total"], 1);
    assert!(unknown.contains("nothing that matches com.acme.Crat.total was reached"), "{unknown}");
    assert!(unknown.contains("Did you mean com.acme.Cart.total()?"), "{unknown}");
    assert!(saved.failure(&["explain", "nobody.hw", "total"], 1).starts_with("headwater: cannot open nobody.hw"));
    assert!(saved.failure(&["explain", "whole.hw", "a b.c"], 2).contains("column 2"));
}

#[test]
fn sides_that_cannot_be_told_apart_are_refused() {
    let saved = Saved::new();
    for (arguments, complaint) in [
        (
            &["before.hw"][..],
            "there is nothing to compare it with: give two snapshots, or several a side with -- between",
        ),
        (
            &["before.hw", "before.hw", "after.hw"],
            "which are before, and which after? Write -- between them: headwater diff a1.hw a2.hw -- b1.hw b2.hw",
        ),
        (
            &["before.hw", "--", "after.hw", "--fail-if", "self(m) > 5%"],
            "--fail-if: options come before the --, behind it are files",
        ),
        (&["before.hw", "-", "--", "after.hw", "-"], "standard input can be one of the snapshots, not more"),
        (
            &["-o", "page.html", "before.hw", "before.hw", "--", "after.hw"],
            "a page compares one profile with one; of several on a side there are text and JSON",
        ),
    ] {
        let found = saved.failure(&[&["diff"], arguments].concat(), 2);
        assert_eq!(found, format!("headwater: {complaint}\n"), "{arguments:?}");
    }
    assert!(saved.failure(&["diff"], 2).contains("<BEFORE>... -- <AFTER>..."));
}

#[test]
fn a_gate_for_regressions() {
    let saved = Saved::new();
    let gate = |conditions: &[&str]| {
        let mut arguments = vec!["diff", "before.hw", "after.hw"];
        conditions.iter().for_each(|condition| arguments.extend(["--fail-if", condition]));
        let output = saved.run(&arguments);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        let judged = stdout.lines().filter(|line| line.starts_with("FAILED ") || line.starts_with("passed "));
        (output.status.code(), judged.map(str::to_owned).collect::<Vec<_>>(), stderr(&output))
    };
    let (code, judged, errors) = gate(&["self(com.acme.Cart.*) > +50%", "calls(com.acme.Shop.checkout) > 0"]);
    assert_eq!((code, errors.as_str()), (Some(0), ""));
    assert_eq!(judged.len(), 2);

    let (code, judged, errors) = gate(&[
        "total(com.acme.Shop.log) > +1%",
        "self(com.acme.Item.price) > +5%",
        "calls(refund) > 0",
        "self(com.acme.Itme.price) > +5%",
    ]);
    assert_eq!(code, Some(1));
    assert_eq!(
        judged,
        [
            "passed total(com.acme.Shop.log) > +1%: 30.00 us before, 31.50 us after per root call: +1.500 us (±9.802 us), +5.0%: \
             not more than is uncertain",
            "FAILED self(com.acme.Item.price) > +5%: 9.900 us before, 29.90 us after per root call: +20.00 us (±2 ns), +202.0%",
            "FAILED calls(refund) > 0: 0 before, 1 after per root call: +1 (±0), new",
            "FAILED self(com.acme.Itme.price) > +5%: no method that was called on either side matches. Did you mean \
             com.acme.Item.price(int)?",
        ]
    );
    let failed: String = judged[1..].iter().map(|line| format!("headwater: {line}\n")).collect();
    assert_eq!(errors, failed);

    let (code, _, errors) = gate(&["self(com.acme.*) > +5 apples"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        errors,
        "headwater: --fail-if: column 23: a unit is needed here: %, ns, us, ms or s\n  self(com.acme.*) > +5 apples\n                        ^\n"
    );
}
