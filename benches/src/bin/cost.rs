//! What a profile costs and how true it is, on seven workloads: nanoseconds added to each call, against two reads of the JVM's own clock;
//! and the root's charged time against what it takes bare, as the workload itself times it and as the profile does. In one JVM process
//! each. Bare is the time of many calls; that of single ones may be another, because the JIT compiler makes other code of them: what it is
//! in a JVM whose own code reads the clock around each call is in the last columns. Arguments pick from all rows: versions of JDKs, clocks
//! (with what is counted besides), workloads.

use std::collections::HashMap;
use std::process::Command;
use std::time::Instant;

use headwater_benches::workload::Target;
use headwater_benches::{compile, headwater, is_chosen, median};
use headwater_tests::{Jdk, Scratch, jdks};
use serde_json::Value;

const CLOCKS: [&str; 2] = ["exact", "tick"];

/// A root, and how many half-second rounds everything takes.
struct Workload {
    name: &'static str,
    /// Until the JIT compiler is done with it; before the profile, and after it.
    warm_up: usize,
    /// Measured, before and after.
    rounds: usize,
    /// How long the profile runs; its middle is measured.
    profile_seconds: usize,
}

const WORKLOADS: [Workload; 7] = [
    Workload { name: "dense", warm_up: 10, rounds: 8, profile_seconds: 8 },
    Workload { name: "million", warm_up: 10, rounds: 8, profile_seconds: 8 },
    Workload { name: "polymorphic", warm_up: 10, rounds: 8, profile_seconds: 8 },
    Workload { name: "javac", warm_up: 50, rounds: 12, profile_seconds: 40 },
    Workload { name: "coarse", warm_up: 10, rounds: 8, profile_seconds: 8 },
    Workload { name: "streams", warm_up: 10, rounds: 8, profile_seconds: 8 },
    Workload { name: "comparators", warm_up: 10, rounds: 8, profile_seconds: 8 },
];

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| JDK | clock | workload | calls | bare ns | added ns a call | 2 nanoTime | ratio | charged / bare | control / bare | after / before | each / bare | charged / each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    let jdks = jdks();
    let versions: Vec<String> = jdks.iter().map(|jdk| jdk.version.to_string()).collect();
    let own_clocks: Vec<&str> = chosen.iter().map(String::as_str).filter(|choice| is_clock(choice)).collect();
    let clocks = if own_clocks.is_empty() { CLOCKS.to_vec() } else { own_clocks };
    for (jdk, _) in jdks.iter().zip(&versions).filter(|(_, version)| is_chosen(&chosen, &versions, version)) {
        let classes = compile(jdk, "Workload.java");
        let mut each = HashMap::new();
        for clock in &clocks {
            let names = WORKLOADS.map(|workload| workload.name);
            for workload in WORKLOADS.iter().filter(|workload| is_chosen(&chosen, &names, workload.name)) {
                let each = *each.entry(workload.name).or_insert_with(|| time_each(jdk, &classes, workload));
                measure(jdk, &classes, clock, workload, each);
            }
        }
    }
}

/// `exact` or `tick`; `tick+10` with a control invocation in ten calls, `exact+alloc` with what `--count` calls so.
fn is_clock(choice: &str) -> bool {
    CLOCKS.iter().any(|clock| choice.split('+').next() == Some(clock))
}

fn clock_arguments(clock: &str) -> Vec<&str> {
    match clock.split_once('+') {
        Some((clock, with)) if with.parse::<u32>().is_ok() => vec!["--clock", clock, "--control", with],
        Some((clock, with)) => vec!["--clock", clock, "--count", with],
        None => vec!["--clock", clock],
    }
}

/// What a call takes where the program itself reads the clock before and after it, without the half of a pair that is in between.
fn time_each(jdk: &Jdk, classes: &Scratch, workload: &Workload) -> f64 {
    let mut target = Target::start_timing_each(jdk, classes, workload.name);
    target.rounds(workload.warm_up);
    median(target.rounds(workload.rounds)) - target.clock_pair / 2.0
}

fn measure(jdk: &Jdk, classes: &Scratch, clock: &str, workload: &Workload, each: f64) {
    let mut target = Target::start(jdk, classes, workload.name);
    target.rounds(workload.warm_up);
    let before = target.rounds(workload.rounds);
    let report = classes.file("report.json");
    let root = format!("Workload::{}", workload.name);
    let seconds = format!("{}s", workload.profile_seconds);
    target.pending();
    let start = Instant::now();
    let output = Command::new(headwater())
        .args(["profile", &target.process.pid().to_string(), "--root", &root, "-d", &seconds])
        .args(clock_arguments(clock))
        // Limits would drop what is to be measured.
        .args(["--gentle", "off"])
        .args(["--format", "json", "-o"])
        .arg(&report)
        .output()
        .expect("headwater starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // Behind the profile come the calls that are timed without one.
    let during = target.pending();
    let profile_rounds = workload.profile_seconds as f64 / start.elapsed().as_secs_f64() * during.len() as f64;
    let profiled = median(during[(0.4 * profile_rounds) as usize..(0.9 * profile_rounds) as usize].to_vec());
    target.rounds(workload.warm_up);
    let after = target.rounds(workload.rounds);
    let after_before = median(after.clone()) / median(before.clone());
    // Both, because a machine that others use changes its speed.
    let bare = median([before, after].concat());
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
    let control = report["controls"][0]["control_ns"].as_f64().unwrap_or(f64::NAN);
    let charged = total as f64 / calls as f64;
    println!(
        "| {} | {clock} | {} | {per_root:.0} | {bare:.0} | {added:.1} | {:.1} | {:.2} | {:.2} | {:.2} | {after_before:.2} | {:.2} | {:.2} |",
        jdk.version,
        workload.name,
        target.clock_pair,
        added / target.clock_pair,
        charged / bare,
        control / bare,
        each / bare,
        charged / each,
    );
}
