//! Small profiles, and golden files. `HEADWATER_GOLDEN=write cargo test` writes them again.

use std::path::Path;
use std::time::Duration;

use headwater_profile::profile::{
    Basis, Clock, ClockMode, ClockSource, Control, ControlKind, CpuSamples, Drift, Environment, Events, Hotswap,
    MethodIndex, MethodName, Node, NodeIndex, OpenCalls, Profile, Root, Skipped, Target, ThreadProfile, Tree, Wait,
};
use headwater_protocol::ThreadId;

/// A node with a number of exceptional exits and a total uncertainty to match.
pub fn node(parent: Option<usize>, method: usize, calls: u64, self_ns: u64, total_ns: u64, error_ns: u64) -> Node {
    let parent = parent.map(NodeIndex);
    let method = MethodIndex(method);
    let cpu = CpuSamples::default();
    Node {
        parent,
        link: None,
        method,
        calls,
        thrown: calls / 10,
        self_ns,
        total_ns,
        error_ns,
        total_error_ns: error_ns * 2,
        cpu,
    }
}

/// A profile in which everything occurs.
pub fn profile() -> Profile {
    let method = |machine: &str, display: &str| MethodName { machine: machine.into(), display: display.into() };
    let merged = Tree::of(vec![
        node(None, 0, 12, 1_000_000, 12_345_678, 500),
        node(Some(0), 1, 24, 9_000_000, 11_000_000, 1_000),
        node(Some(1), 2, 1_234_567, 2_000_000, 2_000_000, 2_500_000),
        node(Some(0), 2, 3, 345_678, 345_678, 10),
        node(Some(0), 3, 1, 900, 900, 10),
    ]);
    Profile {
        target: Target { pid: 4711, main: "com.acme.Shop".into(), jdk: "25.0.1".into(), ..Target::default() },
        environment: Environment {
            headwater: "0.1.0".into(),
            host: "shop-1".into(),
            processors: 2,
            command: ["headwater", "profile", "4711", "--root", "com.acme.Shop::*"].map(str::to_owned).to_vec(),
            started_s: 1_800_000_000,
        },
        roots: vec![
            Root {
                pattern: "com.acme.Shop::checkout".into(),
                methods: vec![MethodIndex(0)],
                calls: 12,
                open: OpenCalls::default(),
            },
            Root {
                pattern: "com.acme.Shop::refund".into(),
                methods: vec![MethodIndex(4)],
                calls: 0,
                open: OpenCalls::default(),
            },
        ],
        basis: Basis::default(),
        controls: vec![Control {
            root: MethodIndex(0),
            kind: ControlKind::After,
            charged_ns: 1_028_806.5,
            control_ns: 1_000_000.25,
            error_ns: 12_500.0,
            calls: 3,
        }],
        clock: Clock {
            mode: ClockMode::Exact,
            source: ClockSource::Tsc,
            inner_ns: 24.25,
            inner_spread_ns: 0.125,
            outer_ns: 26.5,
            outer_spread_ns: 0.25,
            object_ns: 0.0,
            step_ns: None,
            queued: None,
            drift: Some(Drift { before_ns: 49.5, after_ns: 52.0 }),
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
        skipped: vec![Skipped {
            method: "com.acme.Old.run()V".into(),
            reason: "its code would grow past 65,535 bytes".into(),
        }],
        events: Events { recorded: 2_469_214, lost: 0, healed: 1 },
        hotswap: Hotswap { batches: 4, classes: 9, pause_ns_total: 31_000_000, pause_ns_max: 12_000_000 },
        waits: vec![Wait { reason: "hotswap".into(), count: 4, duration_ns: 40_000_000 }],
        threads: vec![ThreadProfile { id: ThreadId(31), name: "worker-1".into(), tree: merged.clone() }],
        merged,
        warnings: vec!["the target ended before the profile did".into()],
        ..Profile::default()
    }
}

/// A method that calls itself, and two that call each other.
pub fn recursive() -> Profile {
    let merged = Tree::of(vec![
        node(None, 0, 10, 1_000, 1_000_000, 10),
        node(Some(0), 1, 20, 100_000, 999_000, 10),
        node(Some(1), 1, 40, 200_000, 599_000, 10),
        node(Some(2), 2, 40, 99_000, 399_000, 10),
        node(Some(3), 1, 80, 300_000, 300_000, 10),
        node(Some(1), 3, 20, 300_000, 300_000, 10),
    ]);
    let worker = |id, name: &str, nodes: &[Node]| ThreadProfile {
        id: ThreadId(id),
        name: name.into(),
        tree: Tree::of(nodes.to_vec()),
    };
    let threads = vec![
        worker(31, "worker-1", &merged.nodes[..1]),
        worker(32, "worker-2", &merged.nodes[..2]),
        worker(40, "main", &merged.nodes[..1]),
    ];
    Profile { merged, threads, controls: Vec::new(), warnings: Vec::new(), ..profile() }
}

/// Compares with a golden file, or writes it.
pub fn check(name: &str, found: &str) {
    let file = Path::new(crate::GOLDEN).join(name);
    if std::env::var_os("HEADWATER_GOLDEN").is_some_and(|value| value == "write") {
        std::fs::write(&file, found).expect("the golden file");
    }
    let golden = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(found == golden, "{name} differs:\n{found}");
}
