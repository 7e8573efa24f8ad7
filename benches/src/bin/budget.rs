//! What an overhead budget brings: how long a root's call takes without a profile, with one, and with one that has a budget, once it
//! has settled; what the profile then says of its overhead, and how many methods that took. In one JVM process for each row.

use std::process::Command;

use headwater_benches::workload::Target;
use headwater_benches::{compile, headwater, median};
use headwater_tests::{Jdk, Scratch, jdks};
use serde_json::Value;

/// Half-second rounds of warm-up and of each measurement.
const WARM_UP: usize = 10;
const ROUNDS: usize = 8;
/// How long a profile runs, in two rounds a second; its second half is measured.
const PROFILE_SECONDS: u64 = 12;

fn main() {
    println!(
        "| JDK | workload | budget | bare ns | profiled / bare | estimate | dropped | of methods | after / bare |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for jdk in jdks() {
        let classes = compile(&jdk, "Workload.java");
        for workload in ["dense", "polymorphic", "mixed", "coarse"] {
            for budget in [None, Some("20%"), Some("5%")] {
                measure(&jdk, &classes, workload, budget);
            }
        }
    }
}

fn measure(jdk: &Jdk, classes: &Scratch, workload: &str, budget: Option<&str>) {
    let mut target = Target::start(jdk, classes, workload);
    target.rounds(WARM_UP);
    let bare = median(target.rounds(ROUNDS));
    let report = classes.file("report.json");
    let (root, seconds) = (format!("Workload::{workload}"), format!("{PROFILE_SECONDS}s"));
    target.pending();
    let output = Command::new(headwater())
        .args(["profile", &target.process.pid().to_string(), "--root", &root, "-d", &seconds, "--bare", "off"])
        .args(["--budget", budget.unwrap_or("off")])
        .args(["--format", "json", "-o"])
        .arg(&report)
        .output()
        .expect("headwater starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let during = target.pending().into_iter().skip(PROFILE_SECONDS as usize).take(PROFILE_SECONDS as usize - 2);
    let profiled = median(during.collect());
    target.rounds(4);
    let after = median(target.rounds(ROUNDS));
    let report: Value =
        serde_json::from_slice(&std::fs::read(&report).expect("the report")).expect("the report is JSON");
    let estimate =
        report["budget"]["overhead"].as_f64().map_or_else(String::new, |part| format!("{:.1}%", 100.0 * part));
    let dropped = report["budget"]["dropped"].as_array().map_or(0, Vec::len);
    println!(
        "| {} | {workload} | {} | {bare:.0} | {:.2} | {estimate} | {dropped} | {} | {:.2} |",
        jdk.version,
        budget.unwrap_or("none"),
        profiled / bare,
        report["methods"]["called"],
        after / bare,
    );
}
