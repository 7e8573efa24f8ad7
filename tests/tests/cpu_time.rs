//! Threads' CPU time: as a clock, and as a share of wall time that tells waiting from computing.

use headwater_tests::{Jdk, calls_by_method, compile, java, profile, read_report};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        by_the_cpu_clock_waiting_takes_no_time,
        by_wall_time_waiting_and_computing_are_told_apart,
    }
    since(21) {
        virtual_threads_that_wait_and_that_compute_are_told_apart,
        by_the_cpu_clock_virtual_threads_keep_their_counts,
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// A call of `Waiting.root`, profiled; the report, and the CPU time that its thread had used in the end.
fn waiting(jdk: &Jdk, arguments: &[&str], options: &[&str]) -> (Value, u64) {
    let classes = compile(jdk, &["Waiting.java"]);
    let mut target = java(jdk, &classes, &[], &[&["Waiting"], arguments].concat());
    target.await_line("READY");
    let file = classes.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let mut arguments = vec!["--root", "Waiting::root", "--calls", "1", "--min", "0", "-o", &file_name];
    arguments.extend(options);
    let tool = profile(&target, &arguments);
    target.say("go");
    let used = target.await_line("CPU ")["CPU ".len()..].parse().expect("ns");
    let tool = tool.finish();
    assert!(tool.status.success(), "JDK {}: {:#?}", jdk.version, tool.stderr);
    target.say("quit");
    let target = target.finish();
    assert!(target.status.success(), "JDK {}: {:#?}", jdk.version, target.stderr);
    (read_report(&file), used)
}

fn node<'a>(report: &'a Value, method: &str) -> &'a Value {
    let nodes = report["nodes"].as_array().expect("nodes");
    nodes.iter().find(|node| node["method"] == method).unwrap_or_else(|| panic!("{method}: {nodes:#?}"))
}

fn ns(value: &Value) -> u64 {
    value.as_u64().expect("a time, not below zero")
}

fn by_the_cpu_clock_waiting_takes_no_time(jdk: &Jdk) {
    let (report, used) = waiting(jdk, &[], &["--clock", "cpu"]);
    let context = format!("JDK {}: {report:#}", jdk.version);
    assert_eq!((&report["clock"]["mode"], &report["clock"]["source"]), (&"cpu".into(), &"threadCpu".into()));
    let [waits, root] = ["Waiting.waits(J)V", "Waiting.root()V"].map(|method| node(&report, method));
    assert_eq!((&waits["calls"], &root["calls"]), (&1.into(), &1.into()), "{context}");
    assert!(ns(&waits["self_ns"]) < SECOND_NS, "it waits for two seconds: {context}");
    let computes = ns(&node(&report, "Waiting.computes(J)V")["total_ns"]);
    assert!(computes > SECOND_NS / 2, "it computes for a second, less what the profiler used of it: {context}");
    assert!(ns(&root["total_ns"]) <= used, "no more than the thread has used, {used}: {context}");
    assert_eq!((ns(&report["events"]["lost"]), ns(&report["events"]["healed"])), (0, 0), "{context}");
}

fn by_wall_time_waiting_and_computing_are_told_apart(jdk: &Jdk) {
    for clock in ["exact", "tick"] {
        let (report, _) = waiting(jdk, &[], &["--clock", clock]);
        check_that_they_are_told_apart(&report, &format!("JDK {}, {clock}: {report:#}", jdk.version));
    }
}

fn virtual_threads_that_wait_and_that_compute_are_told_apart(jdk: &Jdk) {
    let (report, _) = waiting(jdk, &["virtual"], &[]);
    check_that_they_are_told_apart(&report, &format!("JDK {}: {report:#}", jdk.version));
}

fn check_that_they_are_told_apart(report: &Value, context: &str) {
    let waits = node(report, "Waiting.waits(J)V");
    let steps = node(report, "Waiting.step(I)J");
    let [waits_share, steps_share] = [waits, steps].map(|node| node["cpu_share"].as_f64().expect("a share"));
    // Of samples that are taken a hundred times a second, when the tool gets to it.
    assert!(ns(&waits["cpu_samples"]) > 10 && ns(&steps["cpu_samples"]) > 10, "{context}");
    assert!(waits_share < 0.5 && steps_share > 0.5, "{context}");
    assert!(ns(&waits["self_ns"]) > SECOND_NS, "{context}");
}

fn by_the_cpu_clock_virtual_threads_keep_their_counts(jdk: &Jdk) {
    const THREADS: u64 = 500;
    const LEAVES: u64 = 21;
    let classes = compile(jdk, &["Storm.java"]);
    let arguments = ["Storm", "virtual", &THREADS.to_string(), &LEAVES.to_string()];
    let mut target = java(jdk, &classes, &[], &arguments);
    target.await_line("READY");
    let file = classes.file("profile.json");
    let file_name = file.to_string_lossy().into_owned();
    let options = ["--root", "Storm::root", "--bare", "off", "--clock", "cpu", "--min", "0", "-o", &file_name];
    let tool = profile(&target, &options);
    target.say("go");
    target.await_line("ROUND ");
    tool.signal(Signal::INT);
    let tool = tool.finish();
    assert!(tool.status.success(), "{:#?}", tool.stderr);
    target.say("quit");
    assert!(target.finish().status.success());
    let report = read_report(&file);
    let calls = calls_by_method(&report);
    let counts = ["Storm.root(I)J", "Storm.some(I)J", "Storm.leaf(I)J"].map(|method| calls[method]);
    assert_eq!(counts, [THREADS, 2 * THREADS, LEAVES * THREADS], "JDK {}", jdk.version);
    assert_eq!((ns(&report["events"]["lost"]), ns(&report["events"]["healed"])), (0, 0), "JDK {}", jdk.version);
}
