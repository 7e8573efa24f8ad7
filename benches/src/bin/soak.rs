//! A minute of sixteen threads that do nothing but call, with `--on-overflow wait`: whether an event is lost, whether the counts are the
//! program's own, and how many events a second come through. Arguments: seconds and a clock, instead of 60 and both.

use std::process::Command;
use std::time::{Duration, Instant};

use headwater_benches::headwater;
use headwater_tests::{Jdk, Process, calls_by_method, compile, java, jdks};
use rustix::process::Signal;
use serde_json::Value;

const THREADS: u64 = 16;
/// Calls of the leaf by each thread, in a round: a few seconds.
const LEAVES: u64 = 5_000_000;
const MINUTE: u64 = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(MINUTE);
    let own_clock = arguments.iter().map(String::as_str).find(|argument| argument.parse::<u64>().is_err());
    println!("| JDK | clock | seconds | calls | Mevents/s | waits | waited s a thread | lost | counts exact |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for jdk in jdks() {
        for clock in own_clock.map_or(vec!["exact", "tick"], |clock| vec![clock]) {
            soak(&jdk, clock, Duration::from_secs(seconds));
        }
    }
}

fn soak(jdk: &Jdk, clock: &str, at_least: Duration) {
    let classes = compile(jdk, &["Storm.java"]);
    let mut target = java(jdk, &classes, &[], &["Storm", "platform", &THREADS.to_string(), &LEAVES.to_string()]);
    target.await_line("READY");
    let report = classes.file("report.json");
    let mut tool = Command::new(headwater());
    tool.args(["profile", &target.pid().to_string(), "--root", "Storm::root", "--bare", "off"]);
    tool.args(["--clock", clock, "--on-overflow", "wait", "-o"]).arg(&report);
    let mut tool = Process::spawn(&mut tool);
    tool.await_error_line("instrumented");
    let start = Instant::now();
    let mut rounds = 0;
    while start.elapsed() < at_least {
        target.say("go");
        target.await_line("ROUND ");
        rounds += 1;
    }
    let seconds = start.elapsed().as_secs_f64();
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success());
    let report: Value =
        serde_json::from_slice(&std::fs::read(&report).expect("the report")).expect("the report is JSON");
    let calls = calls_by_method(&report);
    let counts = ["Storm.root(I)J", "Storm.some(I)J", "Storm.leaf(I)J"].map(|method| calls[method]);
    let exact = counts == [1, 2, LEAVES].map(|calls| calls * THREADS * rounds);
    let waits = report["waits"].as_array().and_then(|waits| waits.iter().find(|wait| wait["reason"] == "buffer"));
    let wait = |field: &str| waits.and_then(|wait| wait[field].as_f64()).unwrap_or(0.0);
    println!(
        "| {} | {clock} | {seconds:.0} | {} | {:.1} | {} | {:.1} | {} | {} |",
        jdk.version,
        counts.iter().sum::<u64>(),
        report["events"]["recorded"].as_f64().expect("events") / seconds / 1e6,
        wait("count"),
        wait("duration_ns") / 1e9 / THREADS as f64,
        report["events"]["lost"],
        if exact { "yes" } else { "NO" },
    );
}
