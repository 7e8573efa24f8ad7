//! The reports of a small profile, compared with golden files. `HEADWATER_GOLDEN=write cargo test` writes them again.

use std::time::Duration;

use headwater_profile::profile::{
    AtLeast, Budget, Control, ControlKind, CpuSamples, DroppedMethod, Hotswap, Lengthened, Link, MethodIndex,
    MethodStatistics, Node, Profile, Quantity, Slice, ThreadProfile, Track, Tree, Unseen,
};
use headwater_profile::report::text::Style;
use headwater_profile::report::{Options, SortBy, Trees, View, json, text};
use headwater_protocol::ThreadId;

mod support;

use support::{check, node, profile, recursive};

/// Where the golden files are.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

fn options() -> Options {
    Options { min_share: 0.005, ..Options::default() }
}

fn as_text(profile: &Profile, options: &Options, style: &Style) -> String {
    let mut out = Vec::new();
    text::write(profile, options, style, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

fn as_json(profile: &Profile, options: &Options) -> String {
    let mut out = Vec::new();
    json::write(profile, options, &mut out).expect("memory takes it");
    let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    format!("{value:#}\n")
}

/// Only what a view puts between the header and the footer.
fn body(report: &str) -> String {
    let body = report.split("\n\nevents ").next().unwrap_or_default();
    body.lines().skip_while(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_text_report() {
    check("profile.txt", &as_text(&profile(), &options(), &Style::default()));
}

#[test]
fn the_text_report_by_thread_and_depth() {
    let options = Options { trees: Trees::PerThread, max_depth: Some(2), ..options() };
    check("threads.txt", &as_text(&profile(), &options, &Style::default()));
}

#[test]
fn the_text_report_on_a_narrow_terminal() {
    let style = Style { width: Some(60), color: true, ..Style::default() };
    check("narrow.txt", &as_text(&profile(), &options(), &style));
}

#[test]
fn the_text_report_of_a_saved_profile() {
    check("saved.txt", &as_text(&profile(), &options(), &Style { provenance: true, ..Style::default() }));
}

#[test]
fn the_json_report() {
    check("profile.json", &as_json(&profile(), &Options::default()));
    check("threads.json", &as_json(&profile(), &Options { trees: Trees::PerThread, ..Options::default() }));
}

#[test]
fn the_views() {
    for (name, view) in [("tree", View::Tree), ("callers", View::Callers), ("flat", View::Flat)] {
        check(&format!("{name}.txt"), &as_text(&recursive(), &Options { view, ..options() }, &Style::default()));
        check(&format!("{name}.json"), &as_json(&recursive(), &Options { view, ..Options::default() }));
        let style = Style { width: Some(72), color: true, percent: true, ..Style::default() };
        check(&format!("{name}-narrow.txt"), &body(&as_text(&recursive(), &Options { view, ..options() }, &style)));
    }
}

#[test]
fn what_other_threads_did_in_the_views() {
    for (name, view) in [("tree", View::Tree), ("callers", View::Callers), ("flat", View::Flat)] {
        let text = as_text(&started(), &Options { view, ..options() }, &Style::default());
        check(&format!("started-{name}.txt"), &body(&text));
    }
    check("started.json", &as_json(&started(), &Options::default()));
    // What is small is shown for the sake of what it started.
    let large = Options { min_share: 0.5, ..options() };
    check("started-large.txt", &body(&as_text(&started(), &large, &Style::default())));
}

#[test]
fn invocations_in_the_flat_view() {
    let statistics = |method| MethodStatistics {
        method: MethodIndex(method),
        count: 140,
        total_ns: 1_898_000,
        min_ns: 3_700,
        max_ns: 49_950,
        mean_ns: 13_557.14,
        sd_ns: 1_234.5,
        p50_ns: 12_000,
        p90_ns: 20_000,
        p99_ns: 41_000,
    };
    let profile = Profile { statistics: vec![statistics(3), statistics(1)], ..recursive() };
    let flat = Options { view: View::Flat, ..options() };
    check("statistics.txt", &body(&as_text(&profile, &flat, &Style::default())));
    let focused = Options { focus: Some("com.acme.Shop.log".parse().expect("a method")), ..flat };
    check("statistics-focus.txt", &body(&as_text(&profile, &focused, &Style::default())));
    let json: serde_json::Value = serde_json::from_str(&as_json(&profile, &focused)).expect("JSON");
    assert_eq!(json["statistics"][1]["method"], "com.acme.Cart.total()J");
    assert_eq!(json["statistics"][1]["p99_ns"], 41_000);
}

#[test]
fn pruning_leaves_lines_out_and_changes_no_number() {
    let pattern = |text: &str| Some(text.parse().expect("a pattern"));
    let thread = |text: &str| vec![text.parse().expect("a thread")];
    let tree = Options::default();
    let callers = Options { view: View::Callers, ..Options::default() };
    for (name, options) in [
        ("focus-tree", Options { focus: pattern("com.acme.Item"), ..tree.clone() }),
        ("focus-callers", Options { focus: pattern("com.acme.Item.price"), ..callers.clone() }),
        ("min-tree", Options { min_share: 0.35, ..tree.clone() }),
        ("min-callers", Options { min_share: 0.5, ..callers }),
        ("sort-calls", Options { sort: Some(SortBy::Quantity(Quantity::CALLS)), max_depth: Some(3), ..tree.clone() }),
        ("one-thread", Options { threads: thread("32"), ..tree.clone() }),
        ("some-threads", Options { threads: thread("worker-*"), ..tree }),
    ] {
        check(&format!("{name}.txt"), &body(&as_text(&recursive(), &options, &Style::default())));
    }
    let json = |options| -> serde_json::Value { serde_json::from_str(&as_json(&recursive(), &options)).expect("JSON") };
    let pruned = json(Options { max_depth: Some(3), min_share: 0.2, ..Options::default() });
    let nodes: Vec<(u64, Option<u64>, u64)> = pruned["nodes"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| (row["id"].as_u64().expect("id"), row["parent"].as_u64(), row["total_ns"].as_u64().expect("time")))
        .collect();
    assert_eq!(nodes, [(0, None, 1_000_000), (1, Some(0), 999_000), (2, Some(1), 599_000), (3, Some(1), 300_000)]);
    let thread = json(Options { threads: thread("main"), ..Options::default() });
    assert_eq!(thread["nodes"].as_array().map(Vec::len), Some(1));
    assert_eq!(thread["nodes"][0]["thread"], 40);
}

#[test]
fn what_is_asked_for_by_its_name_is_shown_however_small_it_is() {
    for view in [View::Tree, View::Callers, View::Flat] {
        let shown = |focus: &str| {
            let focus = Some(focus.parse().expect("a pattern"));
            // More than anything has.
            let options = Options { view, focus, min_share: 1.1, ..Options::default() };
            let rows: serde_json::Value = serde_json::from_str(&as_json(&recursive(), &options)).expect("JSON");
            let text = as_text(&recursive(), &options, &Style::default());
            (
                text,
                rows["nodes"].as_array().or(rows["stanzas"].as_array()).or(rows["flat"].as_array()).map_or(0, Vec::len),
            )
        };
        for name in ["com.acme.Item.price", "com.acme.Item::price(int)", "price"] {
            let (text, rows) = shown(name);
            assert!(text.contains("com.acme.Item.price(int)"), "{view:?}, {name}: {text}");
            assert!(rows > 0, "{view:?}, {name}");
        }
        let (text, _) = shown("com.acme.Item.*");
        assert!(!text.contains("com.acme.Item.price(int)"), "{view:?}: {text}");
    }
}

#[test]
fn what_got_no_probes_is_told_with_its_callers_and_how_much_longer_calls_were() {
    let unseen = vec![Unseen { method: MethodIndex(4), callers: vec![(MethodIndex(0), 0.5), (MethodIndex(3), 1.0)] }];
    let lengthened = vec![Lengthened { root: MethodIndex(0), recorded_ns: 4e6, bare_ns: 1e6, error_ns: 1e4, calls: 7 }];
    let profile = Profile { unseen, lengthened, ..profile() };
    for view in [View::Tree, View::Callers, View::Flat] {
        let text = as_text(&profile, &Options { view, ..options() }, &Style::default());
        for part in [
            "com.acme.Shop.checkout(Cart) (1 callee not seen)\n",
            "\nnot seen  1 method that may have been called and got no probes, and what only these call: com.acme.Shop.refund()\n",
            "\noverhead  com.acme.Shop.checkout(Cart): a call was 4.0 times as long as undisturbed (4.000 ms, 1.000 ms), waits",
            "\n          --budget 100% leaves out the methods whose probes cost most",
        ] {
            assert!(text.contains(part), "{view:?}, {part}: {text}");
        }
        let rows: serde_json::Value =
            serde_json::from_str(&as_json(&profile, &Options { view, ..options() })).expect("JSON");
        assert!(rows.to_string().contains("\"unseen_callees\":1"), "{view:?}: {rows:#}");
        assert_eq!(rows["methods"]["unseen"][0]["callers"][0]["expected"], 0.5);
        assert_eq!(rows["lengthened"][0]["part"], 3.0);
    }
}

#[test]
fn what_a_large_program_has_many_of_takes_few_lines() {
    const MANY: usize = 1_700;
    let mut profile = profile();
    let dropped = |at: usize| DroppedMethod {
        method: MethodIndex(at % 2),
        calls: 12_345,
        self_ns: 67,
        error_ns: 8,
        overhead: at as f64 / 1e3,
        at: Duration::from_millis(2_100),
    };
    profile.budget = Some(Budget {
        limit: "5%".parse().expect("a percentage"),
        roots: Vec::new(),
        dropped: (0..MANY).map(dropped).collect(),
        batches: 1,
        pause_ns: 1_500_000,
        pauses: 6e-4,
    });
    let control = Control {
        root: MethodIndex(0),
        kind: ControlKind::After,
        charged_ns: 120.0,
        control_ns: 100.0,
        error_ns: 3.0,
        calls: 1_234,
    };
    profile.controls = vec![control; MANY];
    let lengthened =
        Lengthened { root: MethodIndex(0), recorded_ns: 350.0, bare_ns: 100.0, error_ns: 3.0, calls: 1_234 };
    profile.lengthened = vec![lengthened; MANY];
    let lines = |verbose| {
        let text = as_text(&profile, &options(), &Style { verbose, ..Style::default() });
        (text.lines().count(), text)
    };
    let (few, text) = lines(false);
    assert!(few < 70, "{few} lines: {text}");
    assert_eq!(text.matches("          and 1,695 others (--verbose)\n").count(), 3, "{text}");
    let dearest = text.lines().find(|line| line.contains("its probes cost")).expect("the dearest");
    assert!(dearest.contains("cost 169.9%"), "{dearest}");
    let (all, text) = lines(true);
    assert!(all > 3 * MANY && !text.contains("--verbose)"), "{all} lines");
}

#[test]
fn no_name_is_obeyed_by_a_terminal_or_ends_a_line() {
    const NAME: &str = "x\u{1b}[2J\u{9b}31m\u{202e}\r\ny";
    let mut hostile = profile();
    hostile.target.main = NAME.into();
    hostile.roots[0].pattern = NAME.into();
    hostile.warnings.push(NAME.into());
    hostile.skipped[0].method = NAME.into();
    hostile.threads.iter_mut().for_each(|thread| thread.name = NAME.into());
    hostile.methods.iter_mut().for_each(|method| method.display = format!("{NAME}.{}", method.display));
    let slice = Slice { label: NAME.into(), ..Slice::default() };
    hostile.tracks = vec![Track::of_collections(vec![slice], 0)];
    for view in [View::Tree, View::Callers, View::Flat, View::Tracks] {
        for trees in [Trees::Merged, Trees::PerThread] {
            let options = Options { view, trees, ..Options::default() };
            let text = as_text(&hostile, &options, &Style { provenance: true, verbose: true, ..Style::default() });
            let obeyed: Vec<char> = text.chars().filter(|c| c.is_control() && *c != '\n' || *c == '\u{202e}').collect();
            assert_eq!(obeyed, [], "{text}");
            let begun: Vec<&str> = text.lines().filter(|line| line.starts_with('y')).collect();
            // A warning may have lines.
            assert!(begun.len() <= 2, "{text}");
            assert!(text.contains("x\\u001b[2J\\u009b31m\\u202e\\u000d"), "{text}");
        }
    }
}

#[test]
fn calls_that_may_be_missing_are_marked_in_every_view() {
    let mut incomplete = recursive();
    let method = incomplete.methods.iter().position(|method| method.display == "com.acme.Cart.total()").expect("there");
    let second = std::time::Duration::from_secs(1);
    incomplete.at_least =
        vec![AtLeast { method: MethodIndex(method), since: second / 4, until: second, callers: Vec::new() }];
    for view in [View::Tree, View::Callers, View::Flat] {
        let text = as_text(&incomplete, &Options { view, ..Options::default() }, &Style::default());
        // What a method calls too seldom, or its callers do, are calls of another.
        let rows = || text.lines().filter(|line| !line.starts_with("parent") && !line.starts_with("child"));
        let marked = |name: &str| rows().any(|line| line.contains(name) && line.contains(">="));
        assert!(marked("com.acme.Cart.total()"), "{view:?}: {text}");
        // What it calls is called too seldom with it.
        assert!(marked("com.acme.Item.price(int)"), "{view:?}: {text}");
        assert!(!marked("com.acme.Shop.checkout"), "{view:?}: {text}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&as_json(&incomplete, &Options { view: View::Flat, ..Options::default() })).expect("JSON");
    let marked = json["flat"].as_array().expect("rows").iter().filter(|row| row["at_least"] == true).count();
    assert!(marked >= 2, "{json:#}");
}

#[test]
fn what_is_not_there_is_said_with_what_is() {
    let absent = |options: Options| options.check(&recursive()).expect_err("absent").to_string();
    assert_eq!(
        absent(Options { threads: vec!["http-*".parse().expect("a thread")], ..Options::default() }),
        "no thread of the profile is http-*. It has 31 \"worker-1\", 32 \"worker-2\", 40 \"main\""
    );
    let focus = |text: &str| Options { focus: Some(text.parse().expect("a pattern")), ..Options::default() };
    assert_eq!(
        absent(focus("com.acme.Crat.total")),
        "no method that was called matches com.acme.Crat.total. Did you mean com.acme.Cart.total()?"
    );
    assert_eq!(absent(focus("org.other.*")), "no method that was called matches org.other.*");
    assert_eq!(
        absent(focus("com.acme.Shop.refund")),
        "no method that was called matches com.acme.Shop.refund",
        "it is known, but was never called"
    );
    assert_eq!(focus("com.acme.Cart").check(&recursive()), Ok(()));
}

#[test]
fn a_deep_recursion_stays_readable() {
    const LEVELS: usize = 50_000;
    let mut deep = profile();
    deep.merged.nodes =
        (0..LEVELS).map(|level| node(level.checked_sub(1), 1, 1, 1, (LEVELS - level) as u64, 0)).collect();
    let report = as_text(&deep, &Options::default(), &Style::default());
    assert!(report.contains("[50000] com.acme.Cart.total()"));
    assert!(report.lines().all(|line| line.chars().count() < 150));
    let flat = as_text(&deep, &Options { view: View::Flat, ..Options::default() }, &Style::default());
    assert!(flat.contains("100.0%   50.00 us    50.00 us         50,000"), "{flat}");
    let callers = as_text(&deep, &Options { view: View::Callers, ..Options::default() }, &Style::default());
    assert!(callers.contains("parent    0.0%       0 ns    50.00 us         49,999"), "{callers}");
}

#[test]
fn a_call_that_took_longer_than_the_recording_is_no_reason_to_take_another_root() {
    let mut long = profile();
    long.roots.iter_mut().for_each(|root| root.calls = 0);
    let report = as_text(&long, &options(), &Style::default());
    assert!(report.contains("in a call that began before recording, not entered since"), "{report}");
}

#[test]
fn an_empty_profile_says_that_nothing_was_entered() {
    let mut empty = profile();
    (empty.merged, empty.threads) = (Tree::default(), Vec::new());
    empty.roots.iter_mut().for_each(|root| root.calls = 0);
    let report = as_text(&empty, &options(), &Style::default());
    assert!(report.contains("never entered") && !report.contains("share"), "{report}");
    assert_eq!(report.matches("called seldom?").count(), 1, "advice for both roots is given once:\n{report}");
}

#[test]
fn one_of_a_kind_is_singular() {
    let mut one = profile();
    one.hotswap = Hotswap { batches: 1, classes: 1, ..one.hotswap };
    one.events.healed = 1;
    one.waits[0].count = 1;
    one.roots[0].calls = 1;
    one.roots[1].methods.clear();
    one.controls.iter_mut().for_each(|control| control.calls = 1);
    one.environment.processors = 1;
    let style = Style { provenance: true, ..Style::default() };
    check("one.txt", &as_text(&one, &options(), &style));
}

#[test]
fn computing_is_told_from_waiting_where_there_are_enough_samples() {
    let mut profile = profile();
    for (node, (samples, running)) in profile.merged.nodes.iter_mut().zip([(5, 0), (90, 45), (10, 10), (9, 9)]) {
        node.cpu = CpuSamples { samples, running };
    }
    for (name, view) in [("tree", View::Tree), ("callers", View::Callers), ("flat", View::Flat)] {
        let text = as_text(&profile, &Options { view, ..options() }, &Style::default());
        check(&format!("cpu-{name}.txt"), &body(&text));
    }
    let json: serde_json::Value = serde_json::from_str(&as_json(&profile, &Options::default())).expect("JSON");
    let of = |node: usize| (json["nodes"][node]["cpu_samples"].as_u64(), json["nodes"][node]["cpu_share"].as_f64());
    assert_eq!([of(0), of(1), of(4)], [(Some(5), Some(0.0)), (Some(90), Some(0.5)), (Some(0), None)]);
}

/// A method hands work to other threads, and calls the same itself; one of them hands over more.
fn started() -> Profile {
    let started = |node| Node { link: Some(Link::Thread), ..node };
    let merged = Tree::of(vec![
        node(None, 0, 10, 1_000, 201_000, 10),
        node(Some(0), 1, 20, 100_000, 200_000, 10),
        started(node(Some(1), 2, 40, 600_000, 700_000, 10)),
        node(Some(2), 3, 40, 100_000, 100_000, 10),
        node(Some(1), 2, 4, 100_000, 100_000, 10),
        started(node(Some(3), 3, 5, 99_000, 99_000, 10)),
    ]);
    let worker = |id, name: &str, tree: Tree| ThreadProfile { id: ThreadId(id), name: name.into(), tree };
    let main = Tree::of([0, 1, 4].map(|node: usize| merged.nodes[node]).to_vec());
    let threads = vec![worker(31, "main", main)];
    Profile { merged, threads, ..profile() }
}
