//! How far profiles of the same work agree: a root's calls, so many of them, profiled several times in one JVM. The trees with their
//! counts must be identical, and the ten methods that take most time must take the same part of it, but for a few percent. And how far such
//! short profiles charge what the root took by the program's own clock before: each is recorded in code that has just been compiled, and
//! so is what follows it. Arguments pick from all rows: versions of JDKs, clocks, workloads.

use std::collections::BTreeMap;
use std::process::Command;

use headwater_benches::workload::Target;
use headwater_benches::{compile, headwater, is_chosen, median};
use headwater_tests::{Jdk, jdks, tree};
use serde_json::Value;

const RUNS: usize = 5;
const TOP: usize = 10;
/// Half-second rounds of warm-up, before each profile.
const WARM_UP: usize = 10;
/// And those that say what a call takes.
const BARE: usize = 6;
const CLOCKS: [&str; 2] = ["exact", "tick"];
/// Roots, and how many calls a profile is of: of the short ones half a second's worth, and ten times that.
const WORKLOADS: [(&str, &str); 6] = [
    ("dense", "100000"),
    ("dense", "1000000"),
    ("polymorphic", "100000"),
    ("polymorphic", "1000000"),
    ("mixed", "5000"),
    ("javac", "100"),
];

fn main() {
    println!(
        "| JDK | clock | workload | calls | profiles | nodes | trees and counts | top ten: part of the time | differ by at most | charged / bare |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let jdks = jdks();
    let versions: Vec<String> = jdks.iter().map(|jdk| jdk.version.to_string()).collect();
    let workloads = WORKLOADS.map(|(workload, _)| workload);
    for (jdk, _) in jdks.iter().zip(&versions).filter(|(_, version)| is_chosen(&chosen, &versions, version)) {
        for clock in CLOCKS.into_iter().filter(|clock| is_chosen(&chosen, &CLOCKS, clock)) {
            for (workload, calls) in
                WORKLOADS.into_iter().filter(|(workload, _)| is_chosen(&chosen, &workloads, workload))
            {
                measure(jdk, clock, workload, calls);
            }
        }
    }
}

fn measure(jdk: &Jdk, clock: &str, workload: &str, calls: &str) {
    let classes = compile(jdk, "Workload.java");
    let mut target = Target::start(jdk, &classes, workload);
    // The first profile is warm-up too: code with probes is compiled anew.
    let (ratios, profiles): (Vec<f64>, Vec<Value>) = (0..=RUNS)
        .map(|_| {
            target.pending();
            target.rounds(WARM_UP);
            let bare_ns = median(target.rounds(BARE));
            let report = classes.file("report.json");
            let output = Command::new(headwater())
                .args(["profile", &target.process.pid().to_string(), "--root", &format!("Workload::{workload}")])
                .args(["--calls", calls, "--clock", clock, "-o"])
                .arg(&report)
                .output()
                .expect("headwater starts");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let report: Value =
                serde_json::from_slice(&std::fs::read(&report).expect("the report")).expect("the report is JSON");
            (charged_ns(&report) / bare_ns, report)
        })
        .skip(1)
        .unzip();
    let trees: Vec<_> = profiles.iter().map(tree).collect();
    let differing = trees.iter().filter(|tree| **tree != trees[0]).count();
    let shares: Vec<_> = profiles.iter().map(shares).collect();
    let mut top: Vec<(&String, &f64)> = shares[0].iter().collect();
    top.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    top.truncate(TOP);
    let of = |shares: &BTreeMap<String, f64>, method: &str| shares.get(method).copied().unwrap_or(0.0);
    let spread = |method: &str| {
        let all = shares.iter().map(|shares| of(shares, method));
        all.clone().fold(0.0, f64::max) - all.fold(1.0, f64::min)
    };
    println!(
        "| {} | {clock} | {workload} | {calls} | {RUNS} | {} | {} | {:.0} % | {:.1} % of the whole | {:.2} to {:.2} |",
        jdk.version,
        trees[0].len(),
        if differing == 0 { "identical".to_owned() } else { format!("{differing} differ from the first") },
        top.iter().map(|(_, share)| **share).sum::<f64>() * 100.0,
        top.iter().map(|(method, _)| spread(method)).fold(0.0, f64::max) * 100.0,
        ratios.iter().copied().fold(f64::INFINITY, f64::min),
        ratios.iter().copied().fold(0.0, f64::max),
    );
}

/// What a call of the root takes, all below it included.
fn charged_ns(report: &Value) -> f64 {
    let root = &report["nodes"][0];
    root["total_ns"].as_f64().expect("time") / root["calls"].as_f64().expect("calls")
}

/// Part of the whole time that each method takes by itself.
fn shares(report: &Value) -> BTreeMap<String, f64> {
    let nodes = report["nodes"].as_array().expect("nodes");
    let own = |node: &Value| node["self_ns"].as_f64().expect("self time");
    let whole: f64 = nodes.iter().map(own).sum();
    let mut shares = BTreeMap::new();
    for node in nodes {
        *shares.entry(node["method"].as_str().expect("a method").to_owned()).or_default() += own(node) / whole;
    }
    shares
}
