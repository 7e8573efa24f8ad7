//! Random profiles for tests, the same for the same seed.

use std::time::Duration;

use headwater_protocol::ThreadId;

use super::*;

/// xorshift64*.
pub struct Random(u64);

impl Random {
    /// The same numbers for the same seed.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// Any number.
    pub fn draw(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// One below this.
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.draw() >> 33) % limit
    }
}

/// A tree of at most `size` nodes, in no particular order but parents first. With few methods there is much recursion, direct and
/// through others. Totals are sums, as they always are.
pub fn random_tree(seed: u64, size: usize, methods: usize) -> Tree {
    let mut random = Random::new(seed);
    let mut tree = Tree::default();
    let size = random.below(size as u64 + 1) as usize;
    for index in 0..size {
        // Mostly below a recent node, so that chains get long.
        let parent = match random.below(8) {
            _ if index == 0 => None,
            0 => None,
            1..=4 => Some(NodeIndex(index - 1 - random.below(index.min(3) as u64) as usize)),
            _ => Some(NodeIndex(random.below(index as u64) as usize)),
        };
        let method = MethodIndex(random.below(methods as u64) as usize);
        let is_twin = |node: &Node| node.parent == parent && node.method == method;
        if tree.nodes.iter().any(is_twin) {
            continue;
        }
        let self_ns = random.below(1_000);
        let (error_ns, total_error_ns) = (random.below(100), random.below(500));
        let (calls, thrown) = (1 + random.below(50), random.below(2));
        let samples = random.below(40) as u32;
        let cpu = CpuSamples { samples, running: random.below(u64::from(samples) + 1) as u32 };
        tree.nodes.push(Node {
            parent: parent.filter(|parent| parent.0 < tree.nodes.len()),
            link: None,
            method,
            calls,
            thrown,
            self_ns,
            total_ns: self_ns,
            error_ns,
            total_error_ns,
            cpu,
        });
    }
    for index in (0..tree.nodes.len()).rev() {
        let Node { parent, total_ns, .. } = tree.nodes[index];
        if let Some(parent) = parent {
            tree.nodes[parent.0].total_ns += total_ns;
        }
    }
    tree
}

/// The same tree with every so many-th node handed over, not called.
pub fn with_links(mut tree: Tree, every: usize) -> Tree {
    for (index, node) in tree.nodes.iter_mut().enumerate() {
        node.link = node.parent.filter(|_| index % every == 0).map(|_| Link::Thread);
        node.total_ns = node.self_ns;
    }
    for index in (0..tree.nodes.len()).rev() {
        let node = tree.nodes[index];
        if let Some(caller) = node.caller() {
            tree.nodes[caller.0].total_ns += node.total_ns;
        }
    }
    tree
}

fn tracks() -> Vec<Track> {
    let slice = |start_ns, duration_ns, label: &str, amounts: [Option<u64>; 2]| Slice {
        start_ns,
        duration_ns,
        label: label.into(),
        by: if label.is_empty() { String::new() } else { "G1 young collection".into() },
        amounts: amounts.to_vec(),
    };
    let collections = vec![
        slice(5_000, 1_200_000, "G1 Evacuation Pause", [Some(300 << 20), Some(40 << 20)]),
        slice(9_000_000, 300_000, "", [None, None]),
    ];
    let hotswaps = vec![slice(-400_000_000, 62_000_000, "", [Some(31_000_000), Some(12)])];
    vec![Track::of_collections(collections, 2), Track::of_hotswaps(hotswaps, 0)]
}

/// A profile with all parts, its trees as given.
pub fn profile_of(merged: Tree, threads: Vec<Tree>, methods: usize) -> Profile {
    let numbered =
        |(index, tree)| ThreadProfile { id: ThreadId(index as u64 + 1), name: format!("worker-{index}"), tree };
    Profile {
        contention: None,
        imported: None,
        notes: Vec::new(),
        counted: Vec::new(),
        tracks: tracks(),
        target: Target { pid: 4711, main: "com.acme.Shop".into(), jdk: "25.0.1".into(), ..Target::default() },
        environment: Environment {
            headwater: "0.1.0".into(),
            host: "shop-1".into(),
            processors: 2,
            command: vec!["headwater".into(), "profile".into(), "4711".into()],
            started_s: 1_800_000_000,
        },
        roots: vec![Root {
            pattern: "com.acme.Shop::m0".into(),
            methods: vec![MethodIndex(0)],
            calls: 3,
            open: OpenCalls::default(),
        }],
        clock: Clock {
            mode: ClockMode::Tick(Duration::from_micros(100)),
            source: ClockSource::Coarse,
            inner_ns: 24.1,
            inner_spread_ns: 0.1,
            outer_ns: f64::MIN_POSITIVE,
            outer_spread_ns: f64::INFINITY,
            object_ns: 3.5,
            step_ns: Some(117_000.5),
            queued: Some(0.1 + 0.2),
            drift: Some(Drift { before_ns: 48.5, after_ns: 1.0 / 3.0 }),
        },
        basis: Basis {
            samples: 2_213,
            absent: 0,
            by_chance: 0,
            unseen: 2,
            cut: 3,
            is_settled: Some(true),
            unsampled: Some("the JVM has none".into()),
            other_recordings: 1,
        },
        controls: vec![Control {
            root: MethodIndex(0),
            kind: ControlKind::During,
            charged_ns: 1.0 / 3.0,
            control_ns: 0.1 + 0.2,
            error_ns: 1e-300,
            calls: 7,
        }],
        duration: Duration::from_nanos(2_500_000_001),
        methods: (0..methods)
            .map(|index| MethodName {
                machine: format!("com.acme.Shop.m{index}(I)V"),
                display: format!("com.acme.Shop.m{index}(int)"),
            })
            .collect(),
        instrumented: methods,
        called: 2,
        discovery: Discovery::default(),
        at_least: vec![AtLeast {
            method: MethodIndex((methods - 1).min(1)),
            since: Duration::from_millis(250),
            until: Duration::from_secs(1),
            callers: Vec::new(),
        }],
        unseen: vec![Unseen { method: MethodIndex(methods - 1), callers: vec![(MethodIndex(0), 0.25)] }],
        reach: Some(reach::Reach {
            types: vec!["com.acme.Old".into()],
            methods: vec![reach::Reached { probed: Some(reach::Moment::default()), ..reach::Reached::default() }],
            others: vec![reach::Unprobed {
                machine: "com.acme.Old.run()V".into(),
                cause: reach::Cause { by: Some(MethodIndex(0)), through: Some(0), ..reach::Cause::default() },
                ..reach::Unprobed::default()
            }],
            ..reach::Reach::default()
        }),
        skipped: vec![Skipped { method: "com.acme.Old.run()V".into(), reason: "it is too large".into() }],
        events: Events { recorded: u64::MAX, lost: 1, healed: 2 },
        lengthened: vec![Lengthened {
            root: MethodIndex(0),
            recorded_ns: 3_000.0,
            bare_ns: 1_000.0,
            error_ns: 10.0,
            calls: 7,
        }],
        budget: Some(Budget {
            limit: "5%".parse().expect("a percentage"),
            roots: vec![RootOverhead {
                root: MethodIndex(0),
                overhead: 1.0 / 3.0,
                own: 0.01,
                bare_ns: 0.0,
                exhausted: true,
            }],
            dropped: vec![DroppedMethod {
                method: MethodIndex(methods - 1),
                calls: 12_345,
                self_ns: 67,
                error_ns: 8,
                overhead: 0.25,
                at: Duration::from_millis(2_100),
            }],
            batches: 1,
            pause_ns: 1_500_000,
            pauses: 6e-4,
        }),
        hotswap: Hotswap { batches: 4, classes: 9, pause_ns_total: 31, pause_ns_max: 12 },
        waits: vec![Wait { reason: "hotswap".into(), count: 4, duration_ns: 40 }],
        threads: threads.into_iter().enumerate().map(numbered).collect(),
        merged,
        statistics: vec![MethodStatistics {
            method: MethodIndex(0),
            count: 3,
            total_ns: 30,
            min_ns: 5,
            max_ns: 15,
            mean_ns: 10.0,
            sd_ns: 4.08,
            p50_ns: 10,
            p90_ns: 15,
            p99_ns: 15,
        }],
        warnings: vec!["naïve — but fine".into()],
    }
}
