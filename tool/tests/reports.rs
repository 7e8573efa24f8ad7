//! The reports of a small profile, compared with golden files. `HEADWATER_GOLDEN=write cargo test` writes them again.

use std::path::Path;
use std::time::Duration;

use headwater::profile::{
    Clock, ClockMode, Control, ControlKind, Discovery, Events, Hotswap, MethodIndex, MethodName, Node, NodeIndex,
    Profile, Root, Skipped, Target, ThreadProfile, Tree, Wait,
};
use headwater::report::text::TextOptions;
use headwater::report::{Trees, json, text};
use headwater_protocol::ThreadId;

fn node(parent: Option<usize>, method: usize, calls: u64, self_ns: u64, total_ns: u64, error_ns: u64) -> Node {
    let parent = parent.map(NodeIndex);
    let method = MethodIndex(method);
    Node { parent, method, calls, thrown: calls / 10, self_ns, total_ns, error_ns, total_error_ns: error_ns * 2 }
}

fn profile() -> Profile {
    let method = |machine: &str, display: &str| MethodName { machine: machine.into(), display: display.into() };
    let merged = Tree {
        nodes: vec![
            node(None, 0, 12, 1_000_000, 12_345_678, 500),
            node(Some(0), 1, 24, 9_000_000, 11_000_000, 1_000),
            node(Some(1), 2, 1_234_567, 2_000_000, 2_000_000, 2_500_000),
            node(Some(0), 2, 3, 345_678, 345_678, 10),
            node(Some(0), 3, 1, 900, 900, 10),
        ],
    };
    Profile {
        target: Target { pid: 4711, main: "com.acme.Shop".into(), jdk: "25.0.1".into() },
        roots: vec![
            Root { pattern: "com.acme.Shop::checkout".into(), methods: vec![MethodIndex(0)], calls: 12 },
            Root { pattern: "com.acme.Shop::refund".into(), methods: vec![MethodIndex(4)], calls: 0 },
        ],
        controls: vec![Control {
            kind: ControlKind::After,
            root: MethodIndex(0),
            charged_ns: 1_028_806.5,
            control_ns: 1_000_000.25,
            error_ns: 12_500.0,
            calls: 3,
        }],
        clock: Clock {
            mode: ClockMode::Exact,
            inner_ns: 24.25,
            inner_spread_ns: 0.125,
            outer_ns: 26.5,
            outer_spread_ns: 0.25,
        },
        duration: Duration::from_millis(2_500),
        methods: vec![
            method("com.acme.Shop.checkout(Lcom/acme/Cart;)Z", "com.acme.Shop.checkout(Cart)"),
            method("com.acme.Cart.total()J", "com.acme.Cart.total()"),
            method("com.acme.Item.price(I)J", "com.acme.Item.price(int)"),
            method("com.acme.Shop.log(Ljava/lang/String;)V", "com.acme.Shop.log(String)"),
            method("com.acme.Shop.refund()V", "com.acme.Shop.refund()"),
        ],
        instrumented: 5,
        called: 4,
        discovery: Discovery::default(),
        skipped: vec![Skipped {
            method: "com.acme.Old.run()V".into(),
            reason: "its code would grow past 65,535 bytes".into(),
        }],
        events: Events { recorded: 2_469_214, lost: 0, healed: 1 },
        hotswap: Hotswap { batches: 4, classes: 9, pause_ns_total: 31_000_000, pause_ns_max: 12_000_000 },
        waits: vec![Wait { reason: "hotswap", count: 4, duration_ns: 40_000_000 }],
        threads: vec![ThreadProfile { id: ThreadId(31), name: "worker-1".into(), tree: merged.clone() }],
        merged,
        warnings: vec!["the target ended before the profile did".into()],
    }
}

const PLAIN: TextOptions =
    TextOptions { width: None, color: false, min_share: 0.005, max_depth: None, trees: Trees::Merged };

fn as_text(profile: &Profile, options: &TextOptions) -> String {
    let mut out = Vec::new();
    text::write(profile, options, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

fn check(name: &str, found: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("HEADWATER_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&file, found).expect("the golden file");
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(found == golden, "{name} differs:\n{found}");
}

#[test]
fn the_text_report() {
    check("profile.txt", &as_text(&profile(), &PLAIN));
}

#[test]
fn the_text_report_by_thread_and_depth() {
    let options = TextOptions { trees: Trees::PerThread, max_depth: Some(2), ..PLAIN };
    check("threads.txt", &as_text(&profile(), &options));
}

#[test]
fn the_text_report_on_a_narrow_terminal() {
    check("narrow.txt", &as_text(&profile(), &TextOptions { width: Some(60), color: true, ..PLAIN }));
}

#[test]
fn the_json_report() {
    for (name, trees) in [("profile.json", Trees::Merged), ("threads.json", Trees::PerThread)] {
        let mut out = Vec::new();
        json::write(&profile(), trees, &mut out).expect("memory takes it");
        let value: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        check(name, &format!("{value:#}\n"));
    }
}

#[test]
fn a_deep_recursion_stays_readable() {
    const LEVELS: usize = 50_000;
    let mut deep = profile();
    deep.merged.nodes =
        (0..LEVELS).map(|level| node(level.checked_sub(1), 1, 1, 1, (LEVELS - level) as u64, 0)).collect();
    let report = as_text(&deep, &TextOptions { min_share: 0.0, ..PLAIN });
    assert!(report.contains("[50000] com.acme.Cart.total()"));
    assert!(report.lines().all(|line| line.chars().count() < 150));
}

#[test]
fn an_empty_profile_says_that_nothing_was_entered() {
    let mut empty = profile();
    (empty.merged, empty.threads) = (Tree::default(), Vec::new());
    empty.roots.iter_mut().for_each(|root| root.calls = 0);
    let report = as_text(&empty, &PLAIN);
    assert!(report.contains("waiting for entry") && !report.contains("share"), "{report}");
}
