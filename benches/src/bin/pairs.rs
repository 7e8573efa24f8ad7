//! What a pair of probes costs, against two reads of the JVM's clock: inside the root, outside it, and on several threads; by each clock, and with
//! each thing that is counted besides. Arguments pick from all rows: versions of JDKs, clocks, what is counted. All rows of a JDK are of one JVM
//! process, whose own timing is believed; in each round everything is timed once, pairs and reads of the clock in slices by turns, so that noise
//! meets all alike, and of all rounds the median counts, of their ratio too; outside the root the fastest.

use std::process::Command;

use headwater_benches::{compile, headwater, is_chosen, median};
use headwater_tests::{Jdk, Process, jdks};
use serde_json::Value;

/// Rounds of a tenth of a second and more, of warm-up and of measurement without a profile.
const WARM_UP: usize = 8;
const ROUNDS: usize = 12;
/// How long a profile runs; its third quarter is measured: before it code is still being compiled, after it the profile may have
/// stopped recording.
const PROFILE_SECONDS: u64 = 8;
/// What the rows are called, and what makes the tool profile so.
const ROWS: [(&str, &[&str]); 11] = [
    ("nanotime", &["--clock-source", "nanotime"]),
    ("exact", &[]),
    ("tick", &["--clock", "tick"]),
    ("alloc", &["--count", "alloc"]),
    ("alloc-sites", &["--count", "alloc-sites"]),
    ("waits", &["--count", "waits"]),
    ("locks", &["--count", "locks"]),
    ("gc", &["--count", "gc"]),
    ("classes", &["--count", "classes"]),
    ("exceptions", &["--count", "exceptions"]),
    ("bytecodes", &["--count", "bytecodes"]),
];

fn main() {
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    println!(
        "| JDK | row | clock | 2 nanoTime | pair | ratio | outside: never inside | been inside | Mcalls/s on 1 thread | a core each | 8 threads | of a core each |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    let jdks = jdks();
    let versions: Vec<String> = jdks.iter().map(|jdk| jdk.version.to_string()).collect();
    for (jdk, _) in jdks.iter().zip(&versions).filter(|(_, version)| is_chosen(&chosen, &versions, version)) {
        measure(jdk, &chosen);
    }
}

fn measure(jdk: &Jdk, chosen: &[String]) {
    let classes = compile(jdk, "Pairs.java");
    let mut java = Command::new(jdk.program("java"));
    java.args(["-XX:+UseSerialGC", "-cp"]).arg(classes.path()).arg("Pairs");
    let mut target = Process::spawn(&mut java);
    let bare = {
        rounds(&mut target, WARM_UP);
        Round::of(&rounds(&mut target, ROUNDS))
    };
    let mut measured: Vec<String> = Vec::new();
    let names = ROWS.map(|(name, _)| name);
    for (row, options) in ROWS.iter().filter(|(name, _)| is_chosen(chosen, &names, name)) {
        target.pending_lines();
        let seconds = format!("{PROFILE_SECONDS}s");
        let output = Command::new(headwater())
            .args(["profile", &target.pid().to_string(), "--root", "Pairs::root", "-d", &seconds, "--bare", "off"])
            // Limits would drop what is to be measured.
            .args(["--gentle", "off"])
            .args(*options)
            .args(["--format", "json"])
            .output()
            .expect("headwater starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut during: Vec<Round> = target.pending_lines().iter().filter_map(|line| Round::read(line)).collect();
        during.drain(..during.len() / 2);
        during.truncate(during.len().div_ceil(2));
        let round = Round::of(&during);
        let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
        let source = report["clock"]["source"].as_str().expect("a source").to_owned();
        if *row == "exact" && measured.contains(&source) {
            continue;
        }
        let Round([inside, never, been, clock, one, cores, crowd]) = round;
        let Round([bare_inside, bare_never, bare_been, ..]) = bare;
        let ratio =
            median(during.iter().map(|Round([inside, _, _, clock, ..])| (inside - bare_inside) / clock).collect());
        println!(
            "| {} | {row} | {source} | {clock:.1} | {:.1} | {ratio:.2} | {:.1} | {:.1} | {:.0} | {:.0} | {:.0} | {:.2} |",
            jdk.version,
            inside - bare_inside,
            never - bare_never,
            been - bare_been,
            one * 1e3,
            cores * 1e3,
            crowd * 1e3,
            crowd / cores,
        );
        measured.push(source);
    }
}

/// What the target says of a round: ns of a call inside the root, and outside it on a thread that never was and one that has been
/// inside; ns of two clock reads; calls a ns of one thread, as many as there are processors, and 8.
#[derive(Clone, Copy)]
struct Round([f64; 7]);

/// The columns of calls outside the root.
const OUTSIDE: [usize; 2] = [1, 2];

impl Round {
    fn read(line: &str) -> Option<Round> {
        let numbers = line.strip_prefix("ROUND ")?.split(' ').map(str::parse);
        let numbers: Vec<f64> = numbers.collect::<Result<_, _>>().ok()?;
        Some(Round(numbers.try_into().ok()?))
    }

    /// What all rounds say together.
    fn of(rounds: &[Round]) -> Round {
        Round(std::array::from_fn(|column| {
            let values = rounds.iter().map(|round| round.0[column]);
            if OUTSIDE.contains(&column) { values.fold(f64::INFINITY, f64::min) } else { median(values.collect()) }
        }))
    }
}

fn rounds(target: &mut Process, count: usize) -> Vec<Round> {
    (0..count).filter_map(|_| Round::read(&target.await_line("ROUND "))).collect()
}
