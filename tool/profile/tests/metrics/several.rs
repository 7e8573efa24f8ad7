//! Several metrics side by side, and what follows from them: all of one snapshot, that `golden/several-metrics.hw` is.

use std::path::Path;
use std::sync::Once;

use headwater_profile::diff::condition::{Condition, Judgement, Verdict};
use headwater_profile::diff::{self, Run};
use headwater_profile::export::Format;
use headwater_profile::profile::{
    Column, CpuSamples, Extent, MethodName, Metric, Node, Part, Profile, Quantity, ThreadProfile, Tree, Unit,
};
use headwater_profile::report::least::Least;
use headwater_profile::report::text::Style;
use headwater_profile::report::{NothingSelected, Options, SortBy, View, json, text};
use headwater_profile::snapshot;

use crate::support::{check, node, profile};

const METHODS: [(&str, &str); 6] = [
    ("com.acme.Shop.checkout(Lcom/acme/Cart;)Z", "com.acme.Shop.checkout(Cart)"),
    ("com.acme.Stock.reserve(Lcom/acme/Item;)V", "com.acme.Stock.reserve(Item)"),
    ("com.acme.Bank.pay(Lcom/acme/Order;)V", "com.acme.Bank.pay(Order)"),
    ("com.acme.Cart.total()J", "com.acme.Cart.total()"),
    ("com.acme.Item.price(I)J", "com.acme.Item.price(int)"),
    ("com.acme.Log.write(Ljava/lang/String;)V", "com.acme.Log.write(String)"),
];

/// Of each node: caller, method, calls, and of itself its time, bytes, what it was parked and in sockets, and what it ran.
type Row = (Option<usize>, usize, u64, u64, u64, [u64; 3]);

const MS: u64 = 1_000_000;

/// A checkout that waits for stock and bank, and allocates where it adds up: there a method calls itself.
const ROWS: [Row; 8] = [
    (None, 0, 20, MS, 2 << 10, [0, 0, MS]),
    (Some(0), 1, 20, 1_313 * MS, 12 << 10, [1_300 * MS, 0, 13 * MS]),
    (Some(0), 2, 20, 831 * MS, 700 << 10, [0, 806 * MS, 25 * MS]),
    (Some(0), 3, 40, 40 * MS, 4 << 20, [0, 0, 40 * MS]),
    (Some(3), 4, 4_000_000, 80 * MS, 64 << 20, [0, 0, 80 * MS]),
    (Some(4), 3, 10, MS / 2, 40 << 10, [0, 0, MS / 2]),
    (Some(1), 4, 1_000, MS / 50, 64_000, [0, 0, MS / 50]),
    (Some(2), 5, 60, 3 * MS, 96 << 20, [MS, 0, MS]),
];

fn several() -> Profile {
    let mut nodes: Vec<Node> = ROWS
        .iter()
        .map(|&(parent, method, calls, self_ns, _, [_, _, running])| {
            let samples = (self_ns / MS) as u32;
            let running = (u64::from(samples) * running / self_ns.max(1)) as u32;
            Node {
                cpu: CpuSamples { samples, running },
                total_error_ns: 0,
                ..node(parent, method, calls, self_ns, self_ns, self_ns / 1_000)
            }
        })
        .collect();
    for at in (0..nodes.len()).rev() {
        nodes[at].total_error_ns += nodes[at].error_ns;
        let Node { total_ns, total_error_ns, .. } = nodes[at];
        if let Some(parent) = nodes[at].parent {
            nodes[parent.0].total_ns += total_ns;
            nodes[parent.0].total_error_ns += total_error_ns;
        }
    }
    let mut tree = Tree::of(nodes);
    let column = |of: &dyn Fn(&Row) -> (u64, u64)| Column::of(&tree.nodes, ROWS.iter().map(of));
    let nothing = || column(&|_| (0, 0));
    let waited = |row: &Row| row.5.iter().sum::<u64>();
    let counted = vec![
        nothing(),
        nothing(),
        column(&|row| (row.5[0], 0)),
        column(&|row| (row.5[0] / (10 * MS), 0)),
        nothing(),
        column(&|row| (row.5[1], 0)),
        nothing(),
        column(&|row| (row.5[2], row.5[2] / 50)),
        column(&|row| (row.3 - waited(row), row.3 / 1_000)),
        column(&|row| (row.4, 0)),
        column(&|row| (row.2 * 17, 0)),
    ];
    tree.counted = counted;
    let metric = |id, title, unit| Metric::counted(id, title, unit, Extent::OwnAndTotal, "What a test says.");
    let time = |id, title| metric(id, title, Unit::Nanoseconds);
    let name = |(machine, display): (&str, &str)| MethodName { machine: machine.into(), display: display.into() };
    let mut base = profile();
    base.controls.clear();
    base.roots.truncate(1);
    base.roots[0].calls = ROWS[0].2;
    Profile {
        counted: vec![
            time("blocked", "time blocked"),
            time("waited", "time in wait"),
            time("parked", "time parked"),
            metric("parks", "parks", Unit::Count),
            time("slept", "time asleep"),
            time("socket", "time in sockets"),
            time("file", "time in files"),
            time("running", "time running").uncertain(),
            time("other-waits", "time in other waits").uncertain(),
            metric("alloc", "allocated", Unit::Bytes),
            metric("bytecodes", "bytecodes executed", Unit::Bytecodes),
        ],
        methods: METHODS.map(name).to_vec(),
        threads: vec![ThreadProfile { tree: tree.clone(), ..base.threads.remove(0) }],
        merged: tree,
        ..base
    }
}

/// What the snapshot has.
fn base() -> Profile {
    let mut written = Vec::new();
    snapshot::write(&several(), &mut written).expect("memory takes it");
    let file = Path::new(crate::GOLDEN).join("several-metrics.hw");
    if std::env::var_os("HEADWATER_GOLDEN").is_some_and(|value| value == "write") {
        static WRITTEN: Once = Once::new();
        WRITTEN.call_once(|| std::fs::write(&file, &written).expect("the golden file"));
    }
    let golden = std::fs::read(&file).expect("the golden file");
    assert!(golden == written, "several-metrics.hw is not what is written");
    snapshot::read(&mut &golden[..]).expect("readable")
}

fn options(view: View, metrics: &[&str]) -> Options {
    let metrics = metrics.iter().map(|id| (*id).to_owned()).collect();
    Options { view, metrics, min_share: 0.005, ..Options::default() }
}

fn report(options: &Options) -> String {
    let profile = base();
    options.check(&profile).expect("all of it is there");
    let mut out = Vec::new();
    text::write(&profile, options, &Style::default(), &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

/// The methods of the lines of a view, in their order.
fn methods(report: &str) -> Vec<&str> {
    let lines = report.lines().skip_while(|line| !line.trim_start().starts_with("share")).skip(1);
    let names = lines.take_while(|line| !line.is_empty()).filter_map(|line| line.rsplit_once("com.acme."));
    names.map(|(_, name)| name.split('(').next().unwrap_or(name)).collect()
}

const CHOSEN: [&str; 4] = ["wall", "alloc", "alloc-per-call", "wait-share"];

#[test]
fn metrics_stand_side_by_side_in_every_view() {
    for (view, name) in [(View::Tree, "tree"), (View::Flat, "flat"), (View::Callers, "callers")] {
        check(&format!("several-{name}.txt"), &report(&options(view, &CHOSEN)));
    }
    check("several-waits.txt", &report(&options(View::Tree, &[])));
}

#[test]
fn lines_are_ordered_by_any_of_them() {
    let sorted = |text: &str, view| {
        let sort = Some(SortBy::Quantity(Quantity::from(text)));
        report(&Options { sort, min_share: 0.0, ..options(view, &["wall", "alloc"]) })
    };
    let by_bytes = sorted("alloc", View::Flat);
    assert_eq!(methods(&by_bytes)[..3], ["Log.write", "Item.price", "Cart.total"], "{by_bytes}");
    let by_calls = sorted("calls", View::Flat);
    assert_eq!(methods(&by_calls)[..2], ["Item.price", "Log.write"], "{by_calls}");
    // Siblings by what is allocated below them, though it is not shown: the bank's log comes first.
    let tree = sorted("alloc.total", View::Tree);
    assert_eq!(methods(&tree)[..3], ["Shop.checkout", "Bank.pay", "Log.write"], "{tree}");
    let by_each = sorted("alloc-per-call", View::Flat);
    assert_eq!(methods(&by_each)[..3], ["Log.write", "Cart.total", "Bank.pay"], "{by_each}");
    // The first metric that is named leads, a quotient too.
    let led = report(&Options { min_share: 0.0, ..options(View::Flat, &["wait-share", "wall"]) });
    assert_eq!(methods(&led)[..3], ["Stock.reserve", "Bank.pay", "Log.write"], "{led}");
}

#[test]
fn lines_are_left_out_by_any_of_them() {
    let kept = |least: &str, view| {
        let least: Least = least.parse().expect("a limit");
        report(&Options { least: Some(least), ..options(view, &["wall", "alloc"]) })
    };
    let large = kept("alloc=10%", View::Flat);
    assert_eq!(methods(&large), ["Bank.pay", "Item.price", "Cart.total", "Log.write", "Shop.checkout"], "{large}");
    // What leads to a large quotient is shown for its sake.
    let tree = kept("alloc-per-call=1MiB", View::Tree);
    assert_eq!(methods(&tree), ["Shop.checkout", "Bank.pay", "Log.write", "Cart.total"], "{tree}");
    let waiting = kept("wait-share=95%", View::Flat);
    assert_eq!(methods(&waiting), ["Stock.reserve", "Bank.pay"], "{waiting}");
    let stanzas = kept("bytecodes=1000000", View::Callers);
    assert!(stanzas.contains("Item.price") && !stanzas.contains("Log.write"), "{stanzas}");
}

#[test]
fn what_cannot_be_is_refused() {
    let profile = base();
    let refused = |options: Options| options.check(&profile).expect_err("it cannot be").to_string();
    let least = |text: &str| Some(text.parse::<Least>().expect("a limit"));
    let unknown = refused(Options { least: least("acres=1%"), ..Options::default() });
    assert!(unknown.starts_with("the profile has no metric acres. It has wall, calls, "), "{unknown}");
    assert_eq!(
        refused(Options { least: least("alloc=1ms"), ..Options::default() }),
        "alloc is in bytes: its least cannot be in another unit"
    );
    let sort = Some(SortBy::Quantity(Quantity::of("thrown", Part::Total)));
    assert_eq!(
        refused(Options { sort, ..Options::default() }),
        "thrown is known of methods themselves only: there is no thrown.total"
    );
    // Sums over nodes are all that other tools can have.
    let quotient = Options { metrics: vec!["alloc-per-call".to_owned()], ..Options::default() };
    let refused = Format::Svg.check(&profile, &quotient).expect_err("it does not add up");
    assert!(matches!(refused, NothingSelected::Quotient { .. }));
    assert!(refused.to_string().starts_with("alloc-per-call does not add up, as svg needs it. wall, calls, "));
}

#[test]
fn json_has_what_follows_where_it_is_asked_for() {
    let rows = |metrics: &[&str]| {
        let mut out = Vec::new();
        let options = Options { min_share: 0.0, ..options(View::Flat, metrics) };
        json::write(&base(), &options, &mut out).expect("memory takes it");
        let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        json
    };
    let json = rows(&CHOSEN);
    let described = json["metrics"].as_array().expect("metrics").iter().find(|metric| metric["id"] == "wait-share");
    assert_eq!(described.expect("described")["unit"], "share");
    let flat = json["flat"].as_array().expect("rows");
    let log = flat.iter().find(|row| row["method"] == METHODS[5].0).expect("the log");
    assert_eq!(log["metrics"]["alloc-per-call"]["self"], (96 << 20) / 60);
    assert_eq!(log["metrics"]["wait-share"]["self"], 666_666);
    assert!(rows(&[])["flat"][0]["metrics"]["wait-share"].is_null());
}

#[test]
fn all_of_them_are_compared() {
    let (before, mut after) = (base(), base());
    // The log allocates a quarter less, the bank answers sooner.
    let tree = &mut after.merged;
    tree.counted[9] = Column::of(&tree.nodes, ROWS.iter().map(|row| (if row.1 == 5 { 72 << 20 } else { row.4 }, 0)));
    let faster = 400 * MS;
    for at in [0, 2] {
        tree.nodes[at].total_ns -= faster;
    }
    tree.nodes[2].self_ns -= faster;
    let run = |file, profile| [Run { file, profile }];
    let (before, after) = (run("before.hw", &before), run("after.hw", &after));
    let comparison = diff::compare(&before, &after, None);
    let judge = |text: &str| {
        let condition: Condition = text.parse().expect(text);
        let judgement: Judgement = condition.judge(&comparison);
        (condition, judgement)
    };
    for (text, verdict) in [
        ("alloc-per-call(com.acme.Log.write) < -20%", Verdict::Failed),
        ("alloc-per-call(com.acme.Log.write) < -100 KiB", Verdict::Failed),
        ("alloc-per-call.total(com.acme.Shop.checkout) > 0%", Verdict::Passed),
        ("alloc-per-call(com.acme.Cart.*) > 0%", Verdict::Passed),
        ("wait-share(com.acme.Bank.pay) < -1%", Verdict::Failed),
        ("wait-share(com.acme.Bank.pay) > 1ms", Verdict::NoSuchMetric),
        ("thrown-per-call.total(*) > 1%", Verdict::NoSuchMetric),
    ] {
        assert_eq!(judge(text).1.verdict, verdict, "{text}");
    }
    let selection = diff::text::Selection {
        metrics: ["alloc-per-call", "wall", "wait-share"].map(str::to_owned).to_vec(),
        min_share: 0.005,
        ..Default::default()
    };
    let judged = [judge("alloc-per-call(com.acme.Log.write) < -20%")];
    let mut out = Vec::new();
    diff::text::write(&comparison, &judged, &selection, &Style::default(), &mut out).expect("memory takes it");
    check("several-diff.txt", &String::from_utf8(out).expect("text"));
}

#[test]
fn a_quotient_is_that_of_one_root_call_and_of_all() {
    let (once, twice) = (base(), base());
    let run = |profile| [Run { file: "x.hw", profile }];
    let (once, twice) = (run(&once), run(&twice));
    for per in [diff::Per::RootCall, diff::Per::Run] {
        let comparison = diff::compare(&once, &twice, Some(per));
        let change = comparison.change(comparison.whole(), &Quantity::of("alloc-per-call", Part::Total));
        let [calls, bytes] = [ROWS[0].2, ROWS.iter().map(|row| row.4).sum::<u64>()];
        assert_eq!(change.before, (bytes / calls) as f64);
    }
}
