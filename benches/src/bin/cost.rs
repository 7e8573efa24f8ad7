//! What a profile costs and how true it is. A pair of probes by itself (`pairs`); and on three workloads: nanoseconds added to each call, against two reads of the JVM's own clock; and
//! the root's charged time against what it takes bare. In one JVM process each, whose own timing is believed.

use std::process::Command;

use headwater_benches::workload::Target;
use headwater_benches::{compile, headwater, median, pairs};
use headwater_tests::{Jdk, Scratch, jdks};
use serde_json::Value;

/// Half-second rounds of warm-up and of each measurement.
const WARM_UP: usize = 10;
const ROUNDS: usize = 8;
/// How long a profile runs, in two rounds a second; its second half is measured.
const PROFILE_SECONDS: u64 = 8;

fn main() {
    let clocks: Vec<String> = std::env::args().skip(1).collect();
    let clocks = if clocks.is_empty() { ["exact", "tick"].map(str::to_owned).to_vec() } else { clocks };
    pairs::run();
    println!();
    println!(
        "| JDK | clock | workload | calls | bare ns | added ns a call | 2 nanoTime | ratio | charged / bare | after / bare |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for jdk in jdks() {
        let classes = compile(&jdk, "Workload.java");
        for clock in &clocks {
            for workload in ["dense", "polymorphic", "coarse"] {
                measure(&jdk, &classes, clock, workload);
            }
        }
    }
}

/// `exact` or `tick`; `tick+10` with a control invocation in ten calls.
fn clock_arguments(clock: &str) -> Vec<&str> {
    match clock.split_once('+') {
        Some((clock, control)) => vec!["--clock", clock, "--control", control],
        None => vec!["--clock", clock],
    }
}

fn measure(jdk: &Jdk, classes: &Scratch, clock: &str, workload: &str) {
    let mut target = Target::start(jdk, classes, workload);
    target.rounds(WARM_UP);
    let bare = median(target.rounds(ROUNDS));
    let report = classes.file("report.json");
    let root = format!("Workload::{workload}");
    let seconds = format!("{PROFILE_SECONDS}s");
    target.pending();
    let output = Command::new(headwater())
        .args(["profile", &target.process.pid().to_string(), "--root", &root, "-d", &seconds])
        .args(clock_arguments(clock))
        .args(["--format", "json", "-o"])
        .arg(&report)
        .output()
        .expect("headwater starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // The second half of the profile; after it come the calls that are timed without one.
    let during = target.pending().into_iter().skip(PROFILE_SECONDS as usize).take(PROFILE_SECONDS as usize - 2);
    let profiled = median(during.collect());
    target.rounds(4);
    let after = median(target.rounds(ROUNDS));
    let report: Value =
        serde_json::from_slice(&std::fs::read(&report).expect("the report")).expect("the report is JSON");
    let nodes = report["nodes"].as_array().expect("nodes");
    let roots = nodes.iter().filter(|node| node["parent"].is_null());
    let (mut calls, mut total) = (0, 0);
    for root in roots {
        calls += root["calls"].as_u64().expect("calls");
        total += root["total_ns"].as_u64().expect("total");
    }
    let all: u64 = nodes.iter().map(|node| node["calls"].as_u64().expect("calls")).sum();
    let per_root = all as f64 / calls as f64;
    let added = (profiled - bare) / per_root;
    println!(
        "| {} | {clock} | {workload} | {per_root:.0} | {bare:.0} | {added:.1} | {:.1} | {:.2} | {:.2} | {:.2} |",
        jdk.version,
        target.clock_pair,
        added / target.clock_pair,
        total as f64 / calls as f64 / bare,
        after / bare,
    );
}
