//! A profile that has everything that is hard to export, and what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use headwater_profile::profile::{
    Clock, ClockMode, ClockSource, CpuSamples, Environment, Events, Hotswap, MethodIndex, MethodName, Node, NodeIndex,
    OpenCalls, Profile, Root, Target, ThreadProfile, Tree,
};
use headwater_protocol::ThreadId;

/// Names for machines and for people.
const METHODS: [(&str, &str); 13] = [
    ("com.acme.Shop.checkout(Lcom/acme/Cart;)Z", "com.acme.Shop.checkout(Cart)"),
    ("com.acme.Fib.fib(I)J", "com.acme.Fib.fib(int)"),
    ("com.acme.Shop.<init>(ILjava/lang/String;)V", "com.acme.Shop.<init>(int, String)"),
    ("com.acme.Shop.<clinit>()V", "com.acme.Shop.<clinit>()"),
    ("com.acme.Shop.lambda$checkout$0(I)I", "com.acme.Shop.lambda$checkout$0(int)"),
    ("com.acme.Shop$$Lambda.0x00007f12a4.applyAsInt(I)I", "com.acme.Shop$$Lambda.0x00007f12a4.applyAsInt(int)"),
    // Two overloads that look alike to people.
    ("com.acme.Shop.pay(La/Money;)V", "com.acme.Shop.pay(Money)"),
    ("com.acme.Shop.pay(Lb/Money;)V", "com.acme.Shop.pay(Money)"),
    // One class, loaded twice.
    ("com.acme.Item.price()J", "com.acme.Item.price()"),
    ("com.acme.Item.price()J", "com.acme.Item.price()"),
    // The unnamed package.
    ("Main.main([Ljava/lang/String;)V", "Main.main(String[])"),
    ("日本.クラス.メソッド()V", "日本.クラス.メソッド()"),
    (
        "odd.\"Näme\".it's; <b>&amp;</b> {a=\"b\",} \\ \u{1}\t#x(D)V",
        "odd.\"Näme\".it's; <b>&amp;</b> {a=\"b\",} \\ \u{1}\t#x(double)",
    ),
];

/// Level, method, calls, self time: in the order of first calls.
type Row = (usize, usize, u64, u64);

const WORKER: [Row; 12] = [
    (0, 0, 12, 1_000_000),
    // Too narrow for a flame graph.
    (1, 2, 3, 300),
    (1, 3, 1, 0),
    (1, 1, 24, 300_000),
    (2, 1, 48, 200_000),
    (3, 1, 96, 100_000),
    (3, 8, 9_007_199_254_740_993, 70_000),
    (2, 8, 7, 0),
    (1, 6, 2, 10_000),
    (2, 7, 2, 20_000),
    (1, 12, 5, 400_000),
    (0, 10, 1, 100_000),
];

const OTHER: [Row; 10] = [
    (0, 10, 1, 50_000),
    (1, 11, 9, 600_000),
    (2, 0, 4, 40_000),
    (3, 11, 8, 80_000),
    (4, 0, 2, 30_000),
    (1, 4, 1_000_000, 500_000),
    (2, 5, 1_000_000, 400_000),
    (3, 9, 3, 60_000),
    (3, 8, 3, 40_000),
    (1, 2, 1, 0),
];

const THREAD_NAMES: [(u64, &str); 2] = [(31, "worker-1"), (32, "pool \"a\\b\"; <x>\n\t& 12")];

/// The profile.
pub fn profile() -> Profile {
    let threads: Vec<ThreadProfile> = [&WORKER[..], &OTHER[..]]
        .into_iter()
        .zip(THREAD_NAMES)
        .map(|(rows, (id, name))| ThreadProfile { id: ThreadId(id), name: name.into(), tree: tree(rows) })
        .collect();
    Profile {
        target: Target { pid: 4711, main: "com.acme.Shop".into(), jdk: "25.0.1".into(), ..Target::default() },
        roots: vec![Root {
            pattern: "com.acme.Shop::checkout".into(),
            methods: vec![MethodIndex(0)],
            calls: 12,
            open: OpenCalls::default(),
        }],
        clock: Clock {
            mode: ClockMode::Exact,
            source: ClockSource::NanoTime,
            inner_ns: 24.25,
            inner_spread_ns: 0.125,
            outer_ns: 26.5,
            outer_spread_ns: 0.25,
            ..Clock::default()
        },
        environment: Environment { started_s: 1_700_000_000, ..Environment::default() },
        duration: Duration::from_millis(2_500),
        methods: METHODS
            .iter()
            .map(|(machine, display)| MethodName { machine: (*machine).into(), display: (*display).into() })
            .collect(),
        instrumented: METHODS.len(),
        called: METHODS.len(),
        events: Events { recorded: 2_469_214, lost: 0, healed: 1 },
        hotswap: Hotswap { batches: 4, classes: 9, pause_ns_total: 31_000_000, pause_ns_max: 12_000_000 },
        merged: merge(&threads),
        threads,
        warnings: vec!["the target ended before the profile did; \"early\"".into()],
        ..Profile::default()
    }
}

fn tree(rows: &[Row]) -> Tree {
    let mut nodes: Vec<Node> = Vec::new();
    let mut path: Vec<usize> = Vec::new();
    for (level, method, calls, self_ns) in rows {
        path.truncate(*level);
        nodes.push(Node {
            parent: path.last().map(|parent| NodeIndex(*parent)),
            link: None,
            method: MethodIndex(*method),
            calls: *calls,
            thrown: calls % 3,
            self_ns: *self_ns,
            total_ns: *self_ns,
            error_ns: calls % 7,
            total_error_ns: calls % 7,
            cpu: CpuSamples { samples: (calls % 200) as u32, running: (calls % 100) as u32 },
        });
        path.push(nodes.len() - 1);
    }
    add_totals(&mut nodes);
    Tree::of(nodes)
}

fn add_totals(nodes: &mut [Node]) {
    for index in (0..nodes.len()).rev() {
        if let Some(parent) = nodes[index].parent {
            nodes[parent.0].total_ns += nodes[index].total_ns;
            nodes[parent.0].total_error_ns += nodes[index].total_error_ns;
        }
    }
}

fn merge(threads: &[ThreadProfile]) -> Tree {
    let mut nodes: Vec<Node> = Vec::new();
    for thread in threads {
        let mut places: Vec<NodeIndex> = Vec::new();
        for node in &thread.tree.nodes {
            let parent = node.parent.map(|parent| places[parent.0]);
            let known = nodes.iter().position(|known| (known.parent, known.method) == (parent, node.method));
            let place = known.unwrap_or_else(|| {
                let zero =
                    Node { parent, calls: 0, thrown: 0, self_ns: 0, error_ns: 0, cpu: CpuSamples::default(), ..*node };
                nodes.push(Node { total_ns: 0, total_error_ns: 0, ..zero });
                nodes.len() - 1
            });
            let sum = &mut nodes[place];
            sum.calls += node.calls;
            sum.thrown += node.thrown;
            sum.self_ns += node.self_ns;
            sum.cpu.add(node.cpu);
            sum.error_ns += node.error_ns;
            sum.total_ns += node.self_ns;
            sum.total_error_ns += node.error_ns;
            places.push(NodeIndex(place));
        }
    }
    add_totals(&mut nodes);
    Tree::of(nodes)
}

/// Control characters as Java writes them.
pub fn one_line(text: &str) -> String {
    text.chars().map(|c| if c < ' ' { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() }).collect()
}

/// A method's name for machines.
pub fn machine(method: usize) -> String {
    one_line(METHODS[method].0)
}

/// A method's name for people, if it can be told by it.
pub fn label(method: usize) -> String {
    let (machine, display) = METHODS[method];
    one_line(if display == "com.acme.Shop.pay(Money)" { machine } else { display })
}

/// The methods that are in the trees.
pub fn used_methods(profile: &Profile) -> BTreeSet<usize> {
    profile.merged.nodes.iter().map(|node| node.method.0).collect()
}

/// The threads' trees, by the threads' names and numbers.
pub fn threads(profile: &Profile) -> Vec<(String, &Tree)> {
    profile
        .threads
        .iter()
        .map(|thread| (format!("[{} tid={}]", one_line(&thread.name), thread.id.0), &thread.tree))
        .collect()
}

/// What is known of a method, or of a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sums {
    pub calls: u64,
    pub thrown: u64,
    pub self_ns: u64,
    pub total_ns: u64,
    pub error_ns: u64,
    pub total_error_ns: u64,
}

impl Sums {
    fn add(&mut self, node: &Node) {
        self.calls += node.calls;
        self.thrown += node.thrown;
        self.self_ns += node.self_ns;
        self.error_ns += node.error_ns;
    }
}

fn stack(tree: &Tree, node: &Node) -> Vec<usize> {
    let mut stack = vec![node.method.0];
    let mut above = node.parent;
    while let Some(parent) = above {
        stack.push(tree.nodes[parent.0].method.0);
        above = tree.nodes[parent.0].parent;
    }
    stack.reverse();
    stack
}

/// A tree by its stacks.
pub fn by_stack(tree: &Tree, name: impl Fn(usize) -> String) -> BTreeMap<Vec<String>, Sums> {
    let mut found: BTreeMap<Vec<String>, Sums> = BTreeMap::new();
    for node in &tree.nodes {
        let sums = found.entry(stack(tree, node).into_iter().map(&name).collect()).or_default();
        sums.add(node);
        sums.total_ns += node.total_ns;
    }
    found
}

/// The flat profile, by machine names.
pub fn flat(tree: &Tree) -> BTreeMap<String, Sums> {
    let mut found: BTreeMap<String, Sums> = BTreeMap::new();
    for node in &tree.nodes {
        let (last, above) =
            stack(tree, node).split_last().map(|(last, above)| (*last, above.to_vec())).expect("a node");
        let sums = found.entry(machine(last)).or_default();
        sums.add(node);
        if above.iter().all(|method| machine(*method) != machine(last)) {
            sums.total_ns += node.total_ns;
            sums.total_error_ns += node.total_error_ns;
        }
    }
    found
}

/// What callgrind's functions cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Callgrind {
    pub self_ns: BTreeMap<String, u64>,
    pub inclusive_ns: BTreeMap<String, u64>,
    /// Calls and inclusive time by caller and callee.
    pub arcs: BTreeMap<(String, String), (u64, u64)>,
}

/// The same from the trees: each level of a recursion is a function, and so is what stands above a tree.
pub fn callgrind(parts: &[(String, &Tree)]) -> Callgrind {
    let mut found = Callgrind::default();
    for (top, tree) in parts {
        let top = one_line(top);
        found.inclusive_ns.insert(top.clone(), tree.total_ns());
        let names: Vec<String> = tree
            .nodes
            .iter()
            .map(|node| {
                let stack = stack(tree, node);
                let own = machine(node.method.0);
                let level = stack.iter().filter(|method| machine(**method) == own).count();
                let label = label(node.method.0);
                // The last dot before the parameters stands between class and method.
                let dot = label[..label.find('(').expect("parameters")].rfind('.').expect("a class");
                let name = format!("{}::{}", &label[..dot], &label[dot + 1..]);
                if level == 1 { name } else { format!("{name}'{level}") }
            })
            .collect();
        for (node, name) in tree.nodes.iter().zip(&names) {
            let caller = node.parent.map_or(&top, |parent| &names[parent.0]);
            *found.self_ns.entry(name.clone()).or_default() += node.self_ns;
            *found.inclusive_ns.entry(name.clone()).or_default() += node.total_ns;
            let (calls, inclusive_ns) = found.arcs.entry((caller.clone(), name.clone())).or_default();
            *calls += node.calls;
            *inclusive_ns += node.total_ns;
        }
    }
    found
}
