//! Half an hour at full rate of a program that is very large in all ways: whether memory grows, an event is lost, counts are exact, and
//! times are the program's own. Arguments: minutes, threads, classes, loaders.

use std::process::Command;
use std::time::{Duration, Instant};

use headwater_benches::{compile, headwater};
use headwater_tests::{Jdk, Process, calls_by_method, jdks};
use rustix::process::Signal;
use serde_json::Value;

const DEFAULTS: [u64; 4] = [30, 2_000, 50_000, 10_000];
/// What one thread does in a round: calls of the root, and of what each of them calls.
const ROOTS: u64 = 20;
const STEPS: u64 = 50;

fn main() {
    let given: Vec<u64> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let [minutes, threads, classes, loaders] = std::array::from_fn(|at| given.get(at).copied().unwrap_or(DEFAULTS[at]));
    println!("{threads} threads, {classes} classes, {loaders} loaders, {minutes} minutes");
    println!(
        "| JDK | rounds | root calls | events | lost | counts exact | tool, MiB: first, half, last | target, MiB | root's time, by the program's own |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for jdk in jdks() {
        load(&jdk, Duration::from_secs(60 * minutes), [threads, classes, loaders]);
    }
}

fn load(jdk: &Jdk, at_least: Duration, counts: [u64; 3]) {
    let classes = compile(jdk, "Load.java");
    let mut java = Command::new(jdk.program("java"));
    java.args(["-XX:+UseSerialGC", "-Xmx2g", "-cp"]).arg(classes.path()).arg("Load");
    let mut target = Process::spawn(java.args(counts.map(|count| count.to_string())));
    target.await_line("READY");
    let round = |target: &mut Process| -> f64 {
        target.say("go");
        let line = target.await_line("ROUND ");
        line.trim_start_matches("ROUND ").parse().expect("a time")
    };
    round(&mut target);
    let report = classes.file("report.json");
    let mut tool = Command::new(headwater());
    tool.args(["profile", &target.pid().to_string(), "--root", "Load::root", "--bare", "off", "-o"]).arg(&report);
    let mut tool = Process::spawn(&mut tool);
    tool.await_error_line("instrumented");
    let (mut own_ns, mut rounds, mut resident) = (0.0, 0, Vec::new());
    let start = Instant::now();
    while start.elapsed() < at_least || rounds < 3 {
        own_ns += round(&mut target);
        rounds += 1;
        resident.push([tool.pid(), target.pid()].map(resident_mib));
    }
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success());
    let report: Value =
        serde_json::from_slice(&std::fs::read(&report).expect("the report")).expect("the report is JSON");
    let calls = calls_by_method(&report);
    let roots = ROOTS * counts[0] * rounds;
    let of = |method: &str| calls.get(method).copied().unwrap_or(0);
    let exact = (of("Load.root(I)I"), of("Load.own(I)I")) == (roots, roots * STEPS);
    let at = |part: usize| resident[(resident.len() - 1) * part / 2];
    let grown = |which: usize| [0, 1, 2].map(|part| at(part)[which].to_string()).join(", ");
    let nodes = report["nodes"].as_array().expect("nodes").iter().filter(|node| node["method"] == "Load.root(I)I");
    let root_ns: f64 = nodes.filter_map(|node| node["total_ns"].as_f64()).sum();
    println!(
        "| {} | {rounds} | {roots} | {} | {} | {} | {} | {} | {:.4} |",
        jdk.version,
        report["events"]["recorded"],
        report["events"]["lost"],
        if exact { "yes" } else { "NO" },
        grown(0),
        grown(1),
        root_ns / own_ns,
    );
}

/// What a process has in memory.
fn resident_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0) >> 10
}
