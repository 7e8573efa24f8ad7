//! Many threads, and more events than the buffer holds: all are there, or all that are missing are counted.

use std::collections::BTreeMap;

use headwater_tests::{Jdk, Launched, Profile, calls_by_method, run_headwater};
use rustix::process::Signal;
use serde_json::Value;

headwater_tests::trials! {
    each_jdk {
        thousands_of_short_threads_keep_their_calls_apart,
        threads_in_one_place_of_the_runtimes_table_are_told_apart,
        sixteen_threads_at_full_rate_wait_and_lose_nothing,
        what_is_dropped_is_counted,
    }
    since(21) {
        with_all_of_the_jdk_virtual_threads_keep_their_calls_and_are_no_roots_themselves,
        ten_thousand_virtual_threads_keep_their_calls_apart,
    }
}

/// A running `Storm`, or another target with its commands.
struct Storm(Launched);

impl Storm {
    fn start(jdk: &Jdk, kind: &str, threads: u64, leaves: u64) -> Storm {
        let main = ["Storm", kind, &threads.to_string(), &leaves.to_string()];
        Storm(Launched::of_files(jdk, &["Storm.java"], &[], &main))
    }

    fn profile(&self, options: &[&str]) -> Profile {
        self.profile_below("Storm::root", options)
    }

    fn profile_below(&self, root: &str, options: &[&str]) -> Profile {
        Profile::start(&self.0, &[&["--root", root], options].concat())
    }

    /// One round; the sum of the threads' results.
    fn go(&mut self) -> u64 {
        self.0.say("go");
        let line = self.0.await_line("ROUND ");
        line["ROUND ".len()..].parse().expect("a sum")
    }

    /// Ends the profile, then the target; the report.
    fn report(self, profile: Profile) -> Value {
        let report = profile.interrupted();
        self.0.quit();
        report
    }
}

/// What the leaves of one thread return together.
fn sum_of(leaves: u64) -> u64 {
    let some = |leaves: u64| (0..leaves).map(|leaf| leaf & 3).sum::<u64>();
    some(leaves / 2) + some(leaves - leaves / 2)
}

fn counts(report: &Value) -> [u64; 3] {
    let calls = calls_by_method(report);
    ["Storm.root(I)J", "Storm.some(I)J", "Storm.leaf(I)J"].map(|method| calls[method])
}

/// Every thread's own tree is complete.
fn check_threads(report: &Value, threads: u64, leaves: u64) {
    let mut roots = BTreeMap::<u64, u64>::new();
    let mut leaf_calls = BTreeMap::<u64, u64>::new();
    for node in report["nodes"].as_array().expect("nodes") {
        let thread = node["thread"].as_u64().expect("a thread");
        let calls = node["calls"].as_u64().expect("calls");
        match node["method"].as_str() {
            Some("Storm.root(I)J") => *roots.entry(thread).or_default() += calls,
            Some("Storm.leaf(I)J") => *leaf_calls.entry(thread).or_default() += calls,
            _ => {}
        }
    }
    assert_eq!(roots.len() as u64, threads);
    assert!(roots.values().all(|calls| *calls == 1), "each thread calls the root once");
    assert!(leaf_calls.values().all(|calls| *calls == leaves), "and has its leaves for itself");
    assert_eq!(leaf_calls.len() as u64, threads);
}

/// What makes a thread virtual is left alone, whatever else is instrumented: a target stood still with probes there.
fn with_all_of_the_jdk_virtual_threads_keep_their_calls_and_are_no_roots_themselves(jdk: &Jdk) {
    const THREADS: u64 = 200;
    const LEAVES: u64 = 21;
    let mut storm = Storm::start(jdk, "virtual", THREADS, LEAVES);
    // Their class is loaded.
    assert_eq!(storm.go(), THREADS * sum_of(LEAVES));
    let pid = storm.0.pid().to_string();
    let own = ["profile", &pid, "--jdk", "all", "--root", "java.lang.VirtualThread::mount"];
    let refused = run_headwater(&own);
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && errors.contains("VirtualThread::mount"), "JDK {}: {errors}", jdk.version);
    let profile = storm.profile(&["--jdk", "all"]);
    assert_eq!(storm.go(), THREADS * sum_of(LEAVES));
    let report = storm.report(profile);
    assert_eq!(counts(&report), [THREADS, 2 * THREADS, LEAVES * THREADS], "JDK {}", jdk.version);
    assert_eq!(report["events"]["lost"], 0, "JDK {}", jdk.version);
}

fn ten_thousand_virtual_threads_keep_their_calls_apart(jdk: &Jdk) {
    const THREADS: u64 = 10_000;
    const LEAVES: u64 = 21;
    let mut storm = Storm::start(jdk, "virtual", THREADS, LEAVES);
    let profile = storm.profile(&["--threads"]);
    assert_eq!(storm.go(), THREADS * sum_of(LEAVES));
    let report = storm.report(profile);
    assert_eq!(counts(&report), [THREADS, 2 * THREADS, LEAVES * THREADS], "JDK {}", jdk.version);
    assert_eq!(report["events"]["lost"], 0);
    assert_eq!(report["events"]["healed"], 0);
    check_threads(&report, THREADS, LEAVES);
    for thread in report["threads"].as_array().expect("threads") {
        assert_eq!(thread["name"], format!("virtual thread #{}", thread["id"]), "they have no names of their own");
    }
}

fn thousands_of_short_threads_keep_their_calls_apart(jdk: &Jdk) {
    const THREADS: u64 = 2_000;
    const LEAVES: u64 = 9;
    let mut storm = Storm::start(jdk, "platform", THREADS, LEAVES);
    let profile = storm.profile(&["--threads"]);
    assert_eq!(storm.go(), THREADS * sum_of(LEAVES));
    let report = storm.report(profile);
    assert_eq!(counts(&report), [THREADS, 2 * THREADS, LEAVES * THREADS], "JDK {}", jdk.version);
    check_threads(&report, THREADS, LEAVES);
}

/// Two of them call the root, the third only what the root calls. A fourth, of another place, takes a chunk behind them, so that both are
/// found by their numbers.
fn threads_in_one_place_of_the_runtimes_table_are_told_apart(jdk: &Jdk) {
    const TURNS: u64 = 500;
    let main = ["SamePlace", &TURNS.to_string()];
    let mut target = Storm(Launched::of_files(jdk, &["SamePlace.java"], &[], &main));
    let profile = target.profile_below("SamePlace::root", &["--threads"]);
    let sum = |turns: u64| (0..turns).map(|leaf| leaf & 3).sum::<u64>();
    assert_eq!(target.go(), 3 * (sum(TURNS) + sum(TURNS + 1)) + sum(TURNS));
    let report = target.report(profile);
    let mut calls = BTreeMap::<(u64, &str), u64>::new();
    for node in report["nodes"].as_array().expect("nodes") {
        let (thread, method) = (node["thread"].as_u64(), node["method"].as_str());
        *calls.entry((thread.expect("a thread"), method.expect("a method"))).or_default() +=
            node["calls"].as_u64().expect("calls");
    }
    let of = |name: &str| -> Vec<u64> {
        calls.iter().filter(|((_, method), _)| method.contains(name)).map(|(_, calls)| *calls).collect()
    };
    assert_eq!(of("root"), [TURNS; 3], "JDK {}: {calls:?}", jdk.version);
    assert_eq!(of("leaf"), [2 * TURNS; 3], "JDK {}: {calls:?}", jdk.version);
    let mut numbers: Vec<u64> = calls.keys().map(|(thread, _)| *thread).collect();
    numbers.dedup();
    let in_one_place = |number: &&u64| *number % 64 == numbers[0] % 64;
    assert_eq!(numbers.iter().filter(in_one_place).count(), 2, "{numbers:?}");
    assert_eq!(report["events"]["healed"], 0);
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(0), "{}", report["warnings"]);
}

fn sixteen_threads_at_full_rate_wait_and_lose_nothing(jdk: &Jdk) {
    const THREADS: u64 = 16;
    const LEAVES: u64 = 500_000;
    let mut storm = Storm::start(jdk, "platform", THREADS, LEAVES);
    // They write more than a hundred times as much as there is room.
    let profile = storm.profile(&["--buffer", "1"]);
    assert_eq!(storm.go(), THREADS * sum_of(LEAVES));
    let report = storm.report(profile);
    assert_eq!(counts(&report), [THREADS, 2 * THREADS, LEAVES * THREADS], "JDK {}", jdk.version);
    assert_eq!(report["events"]["lost"], 0);
    assert_eq!(report["warnings"], Value::Array(Vec::new()));
}

fn what_is_dropped_is_counted(jdk: &Jdk) {
    const THREADS: u64 = 4;
    const LEAVES: u64 = 100_000;
    let mut storm = Storm::start(jdk, "platform", THREADS, LEAVES);
    let profile = storm.profile(&["--buffer", "1", "--on-overflow", "drop"]);
    // The first round finds the graph; in the second nobody reads.
    storm.go();
    profile.tool.stop();
    assert_eq!(storm.go(), THREADS * sum_of(LEAVES));
    profile.tool.signal(Signal::CONT);
    let report = storm.report(profile);
    let [recorded, lost] = ["recorded", "lost"].map(|events| report["events"][events].as_u64().expect("a number"));
    let calls = 2 * THREADS * (1 + 2 + LEAVES);
    assert!(lost > 0, "JDK {}", jdk.version);
    assert_eq!(recorded + lost, 2 * calls, "each call has an entry and an exit, recorded or lost");
    assert!(report["warnings"].to_string().contains("events were lost"), "{}", report["warnings"]);
}
