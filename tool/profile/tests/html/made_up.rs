//! Profiles with everything that is hard to show.

use std::time::Duration;

use headwater_profile::import;
use headwater_profile::profile::{
    Basis, Blocked, Budget, Clock, ClockMode, ClockSource, ContendedLock, Contention, Control, ControlKind, CpuSamples,
    DroppedMethod, Environment, Events, Holder, Hotswap, Leaver, Link, LockKind, MethodIndex, MethodName,
    MethodStatistics, Node, NodeIndex, OpenCalls, Profile, Root, RootOverhead, Sampled, SampledRoot, Skipped, Slice,
    Target, ThreadProfile, Track, Tree, Unfinished, Wait, WaitPlace,
};
use headwater_profile::report::Options;
use headwater_protocol::ThreadId;

/// What no page may take for markup.
pub const HOSTILE: &str = "</script><img src=x onerror=alert(1)><!--";

/// Names for machines and for people.
const METHODS: [(&str, &str); 12] = [
    ("com.acme.Shop.checkout(Lcom/acme/Cart;)Z", "com.acme.Shop.checkout(Cart)"),
    ("com.acme.Cart.total()J", "com.acme.Cart.total()"),
    ("com.acme.Item.price(I)J", "com.acme.Item.price(int)"),
    ("com.acme.text.Parser.parse(Ljava/lang/String;)V", "com.acme.text.Parser.parse(String)"),
    ("com.acme.text.Parser.parseRow(I)V", "com.acme.text.Parser.parseRow(int)"),
    // One class, loaded twice.
    ("com.acme.Item.price(I)J", "com.acme.Item.price(int)"),
    ("</script><img src=x onerror=alert(1)><!--.m()V", "</script><img src=x onerror=alert(1)><!--.m()"),
    ("com.acme.Shop$$Lambda.0x00007f12a4.apply(I)I", "com.acme.Shop$$Lambda.0x00007f12a4.apply(int)"),
    ("Main.main([Ljava/lang/String;)V", "Main.main(String[])"),
    ("日本.クラス.メソッド()V", "日本.クラス.メソッド()"),
    ("com.acme.tax.Rates.of(I)D", "com.acme.tax.Rates.of(int)"),
    // Called only after the change.
    ("com.acme.duty.Duties.of(I)D", "com.acme.duty.Duties.of(int)"),
];

/// Level, method, calls, self time in ns: in the order of first calls.
type Row = (usize, usize, u64, u64);

const WORKER: [Row; 13] = [
    (0, 0, 12, 1_000_000),
    (1, 1, 24, 300_000),
    // A method that calls itself, and two that call each other.
    (2, 1, 48, 2_000_000),
    (3, 2, 96, 1_700_000),
    (4, 1, 7, 20_000),
    (1, 3, 3, 5_400_000),
    (2, 4, 3_000, 2_250_000),
    (2, 5, 3, 60_000),
    (1, 6, 5, 400_000),
    (1, 7, 11, 90),
    (2, 10, 1_234_567, 900_000),
    (1, 10, 2, 1_500_000),
    (0, 8, 1, 100_000),
];

const OTHER: [Row; 6] = [
    (0, 8, 1, 50_000),
    (1, 9, 9, 600_000),
    (2, 0, 4, 40_000),
    (3, 3, 2, 3_100_000),
    (4, 4, 800, 1_000_000),
    (3, 2, 8, 30_000),
];

fn tree(rows: &[Row]) -> Tree {
    let mut path: Vec<usize> = Vec::new();
    let mut nodes: Vec<Node> = Vec::new();
    for (index, &(level, method, calls, self_ns)) in rows.iter().enumerate() {
        path.truncate(level);
        let parent = path.last().map(|&above| NodeIndex(above));
        // The smallest times are smaller than their uncertainty.
        let error_ns = 100 + self_ns / 50;
        let samples = (self_ns / 100_000) as u32;
        let cpu = CpuSamples { samples, running: samples / 2 };
        let method = MethodIndex(method);
        let thrown = calls / 5;
        let node =
            Node { parent, link: None, method, calls, thrown, self_ns, total_ns: 0, error_ns, total_error_ns: 0, cpu };
        nodes.push(node);
        path.push(index);
    }
    add_totals(&mut nodes);
    Tree::of(nodes)
}

fn add_totals(nodes: &mut [Node]) {
    for index in (0..nodes.len()).rev() {
        nodes[index].total_ns += nodes[index].self_ns;
        nodes[index].total_error_ns += nodes[index].error_ns;
        let Node { total_ns, total_error_ns, .. } = nodes[index];
        if let Some(parent) = nodes[index].caller() {
            nodes[parent.0].total_ns += total_ns;
            nodes[parent.0].total_error_ns += total_error_ns;
        }
    }
}

/// Two threads, recursion, a class that was loaded twice, names that are markup, lost events, warnings.
pub fn profile() -> Profile {
    of(vec![
        (ThreadId(31), "worker-1".to_owned(), tree(&WORKER)),
        (ThreadId(32), format!("pool {HOSTILE}"), tree(&OTHER)),
    ])
}

/// The same with contended locks: one of a hostile name.
pub fn contended() -> Profile {
    let mut profile = profile();
    let blocked = |count, total_ns, longest_ns| Blocked { count, total_ns, longest_ns };
    let place = |stack: &[usize], node, of| WaitPlace {
        stack: stack.to_vec(),
        node: Some(node),
        blocked: of,
        threads: [1, 2].into(),
        left_by: vec![Leaver { thread: "worker-1".to_owned(), blocked: of }],
        seen: 3,
        holders: vec![Holder {
            thread: "worker-1".to_owned(),
            stack: vec!["com.acme.Cart.total(Cart.java:12)".to_owned()],
            seen: 2,
        }],
        ..WaitPlace::default()
    };
    let lock = |kind, class: &str, waits| ContendedLock { kind, class: class.to_owned(), address: 0x7f, waits };
    profile.contention = Some(Contention {
        methods: profile.methods.clone(),
        locks: vec![
            lock(LockKind::Monitor, "com.acme.Cart", vec![place(&[0, 1], 1, blocked(7, 9_000_000, 4_000_000))]),
            lock(LockKind::Concurrent, HOSTILE, vec![place(&[0], 0, blocked(1, 1_000, 1_000))]),
        ],
        unfinished: vec![Unfinished {
            kind: LockKind::Monitor,
            lock: "com.acme.Till <0x9>".to_owned(),
            thread: "worker-2".to_owned(),
            stack: vec!["com.acme.Shop.checkout(Shop.java:9)".to_owned()],
            seen_ns: 3_000_000_000,
            holder: None,
        }],
        looks: 12,
        limits: vec!["some waits are missing".to_owned()],
        ..Contention::default()
    });
    profile
}

/// The same with what happened to the whole JVM: once with a hostile label, once before it was recorded.
pub fn happened() -> Profile {
    let slice = |start_ns, duration_ns, label: &str, amounts: [Option<u64>; 2]| Slice {
        start_ns,
        duration_ns,
        label: label.to_owned(),
        by: String::new(),
        amounts: amounts.to_vec(),
    };
    let collections = vec![
        slice(5_000, 1_200_000, "G1 Evacuation Pause", [Some(300 << 20), Some(40 << 20)]),
        slice(9_000_000, 300_000, HOSTILE, [None, None]),
    ];
    let hotswaps = vec![slice(-400_000_000, 62_000_000, "", [Some(31_000_000), Some(12)])];
    let tracks = vec![Track::of_collections(collections, 2), Track::of_hotswaps(hotswaps, 0)];
    Profile { tracks, ..profile() }
}

/// The same, but what two nodes call is run by other threads: one of the two is below itself, by way of a method that it calls.
pub fn handed() -> Profile {
    let mut tree = tree(&WORKER);
    for node in [2, 6] {
        tree.nodes[node].link = Some(Link::Thread);
    }
    for node in &mut tree.nodes {
        (node.total_ns, node.total_error_ns) = (0, 0);
    }
    add_totals(&mut tree.nodes);
    of(vec![(ThreadId(31), "worker-1".to_owned(), tree)])
}

/// The same after a change: the parser is slower, the tax is gone, something is new, and the rest differs by less than is uncertain.
pub fn changed() -> Profile {
    const TAX: usize = 10;
    let untaxed: Vec<Row> = WORKER.into_iter().filter(|row| row.1 != TAX).collect();
    let mut worker = tree(&untaxed);
    for node in &mut worker.nodes {
        node.self_ns += if node.method == MethodIndex(3) { 4_000_000 } else { node.error_ns / 2 };
        (node.total_ns, node.total_error_ns) = (0, 0);
    }
    let parent = Some(NodeIndex(0));
    let cpu = CpuSamples::default();
    let new = Node {
        link: None,
        parent,
        method: MethodIndex(11),
        calls: 12,
        thrown: 0,
        self_ns: 2_500_000,
        total_ns: 0,
        error_ns: 1_000,
        total_error_ns: 0,
        cpu,
    };
    worker.nodes.push(new);
    add_totals(&mut worker.nodes);
    of(vec![(ThreadId(31), "worker-1".to_owned(), worker), (ThreadId(32), "pool".to_owned(), tree(&OTHER))])
}

/// A tree of nearly so many nodes: wide at the top, with recursion a thousand levels deep, and very many narrow nodes.
pub fn large(nodes: usize) -> Profile {
    const METHODS: usize = 5_000;
    let mut state = 1_u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % limit as u64) as usize
    };
    let mut tree = Tree::default();
    for index in 0..nodes {
        let parent = match index {
            0 => None,
            // A chain, then nodes below any of those before.
            1..1_000 => Some(index - 1),
            _ if below(3) == 0 => Some(below(index)),
            _ => Some(index - 1 - below(20.min(index - 1))),
        };
        let self_ns = (below(1_000) * below(1_000)) as u64;
        let (calls, cpu) = (1 + below(50) as u64, CpuSamples::default());
        // Nearly no siblings are of one method: they would be one node.
        let method = MethodIndex(index % METHODS);
        tree.nodes.push(Node {
            link: None,
            parent: parent.map(NodeIndex),
            method,
            calls,
            thrown: 0,
            self_ns,
            total_ns: 0,
            error_ns: self_ns / 100,
            total_error_ns: 0,
            cpu,
        });
    }
    add_totals(&mut tree.nodes);
    let methods = (0..METHODS).map(|index| {
        let name = format!("com.acme.part{}.Type{}.method{index}", index % 37, index % 411);
        MethodName { machine: format!("{name}(I)V"), display: format!("{name}(int)") }
    });
    let methods = methods.collect();
    let mut profile = Profile { methods, statistics: Vec::new(), ..of(vec![(ThreadId(1), "main".to_owned(), tree)]) };
    // There are never so many samples.
    profile.merged.sampled = Sampled::default();
    profile
}

fn of(threads: Vec<(ThreadId, String, Tree)>) -> Profile {
    let threads: Vec<ThreadProfile> =
        threads.into_iter().map(|(id, name, tree)| ThreadProfile { id, name, tree }).collect();
    let statistics = |method: usize| MethodStatistics {
        method: MethodIndex(method),
        count: 15,
        total_ns: 1_898_000,
        min_ns: 3_700,
        max_ns: 649_950,
        mean_ns: 126_533.3,
        sd_ns: 44_821.5,
        p50_ns: 12_000,
        p90_ns: 412_000,
        p99_ns: 649_950,
    };
    let mut profile = Profile {
        target: Target {
            pid: 4711,
            main: format!("com.acme.Shop {HOSTILE}"),
            jdk: "25.0.1".into(),
            ..Target::default()
        },
        environment: Environment {
            headwater: "0.1.0".into(),
            host: "shop-1".into(),
            processors: 2,
            command: ["headwater", "profile", "4711"].map(str::to_owned).to_vec(),
            started_s: 1_800_000_000,
        },
        roots: vec![Root {
            pattern: "com.acme.Shop::checkout".into(),
            methods: vec![MethodIndex(0)],
            calls: 12,
            open: OpenCalls { threads: 1, still: 0, error_ns: 12_500_000 },
        }],
        basis: Basis { samples: 2_213, is_settled: Some(true), ..Basis::default() },
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
            ..Clock::default()
        },
        duration: Duration::from_millis(2_500),
        methods: METHODS
            .iter()
            .map(|(machine, display)| MethodName { machine: (*machine).to_owned(), display: (*display).to_owned() })
            .collect(),
        instrumented: METHODS.len(),
        called: METHODS.len(),
        skipped: vec![Skipped { method: "com.acme.Old.run()V".into(), reason: "its code is too large".into() }],
        events: Events { recorded: 2_469_214, lost: 17, healed: 1 },
        budget: Some(Budget {
            limit: "5%".parse().expect("a percentage"),
            roots: vec![RootOverhead {
                root: MethodIndex(0),
                overhead: 0.03,
                own: 0.01,
                bare_ns: 0.0,
                exhausted: false,
            }],
            dropped: vec![DroppedMethod {
                method: MethodIndex(10),
                calls: 1_234_569,
                self_ns: 2_400_000,
                error_ns: 48_100,
                overhead: 0.25,
                at: Duration::from_millis(2_100),
            }],
            batches: 1,
            pause_ns: 1_500_000,
            pauses: 6e-4,
        }),
        hotswap: Hotswap { batches: 4, classes: 9, pause_ns_total: 31_000_000, pause_ns_max: 12_000_000 },
        waits: vec![Wait { reason: "hotswap".into(), count: 4, duration_ns: 40_000_000 }],
        threads,
        statistics: vec![statistics(3)],
        warnings: vec![format!("the target ended: {HOSTILE}")],
        ..Profile::default()
    };
    let everyone = Options { threads: vec!["*".parse().expect("a selector")], ..Options::default() };
    profile.merged = everyone.narrowed(&profile).merged.clone();
    profile.merged.sampled = sampled(&profile.merged.nodes);
    profile
}

/// As if samples had fallen where time is.
fn sampled(nodes: &[Node]) -> Sampled {
    let samples = |node: &Node| (node.self_ns / 30_000) as u32;
    let all = nodes.iter().map(samples).sum::<u32>().into();
    let root = |(node, _)| SampledRoot {
        node: NodeIndex(node),
        samples: all,
        chance_ns: 60,
        unsettled_ns: 90,
        unplaced_ns: 70,
    };
    let roots = nodes.iter().enumerate().filter(|(_, node)| node.caller().is_none()).map(root);
    Sampled::of(roots.collect(), nodes.iter().enumerate().map(|(index, node)| (NodeIndex(index), samples(node))))
}

/// Stacks of samples, some of one method in several contexts.
pub fn stacks_of_samples() -> Profile {
    let stacks =
        "[a tid=1];main;run;work 40\n[a tid=1];main;work 24\n[b tid=2];main;run;work 17\n[b tid=2];main;rest 9\n";
    import::read("sampled", &mut stacks.as_bytes()).expect("collapsed stacks")
}
