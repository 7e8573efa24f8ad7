//! One JVM that is profiled again and again: what it has of everything before, after some, and at the end, and how fast it is beside one that nobody
//! profiles.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use std::{fmt, fs};

use headwater_tests::Jdk;
use rustix::process::Signal;

use super::plan::Place;
use super::target::{Compiled, Target};
use crate::class_tree;

/// What is settled by then, as the flight recorder and the JIT compilers, is the program's own.
const WARM: Duration = Duration::from_secs(20);
/// Speeds are compared over so long, side by side,
const SPAN: Duration = Duration::from_secs(10);
/// so often.
const ROUNDS: usize = 5;
/// After so many cycles it is looked first: what comes once has come.
const FIRST: u64 = 10;
/// And then so often.
const ROWS: u64 = 10;
/// What a tool says whom the agent has given up, on a machine that is busy.
const STOOD_STILL: &str = "this process did not run for too long";
const PROFILE: [&str; 7] = ["--root", "Chaos::root", "-d", "100ms", "--bare", "off", "-o"];

/// What a JVM has.
#[derive(Clone, Copy, Debug)]
struct Has {
    cycles: u64,
    threads: u64,
    descriptors: u64,
    /// In KiB, after a full collection.
    heap: u64,
    classes: u64,
    metaspace: u64,
    code: u64,
    resident: u64,
    address_space: u64,
}

/// Profiles one JVM so often; a table, of which each row is printed when it is there, and what stands below it.
pub(super) fn run(jdk: &Jdk, compiled: &Compiled, binary: &Path, logs: &Path, cycles: u64) -> Result<String, String> {
    let directory = logs.join("cycles");
    class_tree::empty(&directory)?;
    let start = || Target::start(jdk, compiled, (Place::Here, &[]), &directory);
    let (mut target, mut other) = (start()?, start()?);
    std::thread::sleep(WARM);
    for target in [&mut target, &mut other] {
        // Its first start is the program's.
        target.ask("record", "RECORDED")?;
    }
    let before = ratio(&mut target, &mut other)?;
    println!("{}", head(jdk));
    println!("{}", has(jdk, &mut target, 0)?);
    let mut given_up = 0;
    let report = directory.join("profile.hw");
    // It is needed for comparison alone, and takes as much of the machine as the one that is profiled.
    other.signal(Signal::STOP);
    for cycle in 1..=cycles {
        let mut profile = Command::new(binary);
        profile.arg("profile").arg(target.pid().to_string()).args(PROFILE).arg(&report);
        let done = profile.output().map_err(|error| error.to_string())?;
        let said = String::from_utf8_lossy(&done.stderr);
        if said.contains(STOOD_STILL) {
            given_up += 1;
        } else if !done.status.success() {
            return Err(format!("cycle {cycle}: {said}"));
        }
        if cycle == FIRST.min(cycles) || cycle.is_multiple_of((cycles / ROWS).max(1)) {
            println!("{}", has(jdk, &mut target, cycle)?);
        }
    }
    other.signal(Signal::CONT);
    let after = ratio(&mut target, &mut other)?;
    for target in [&mut target, &mut other] {
        let wrong = target.ask("quit", "WRONG")?;
        if wrong != "0" {
            return Err(format!("wrong results: {wrong}"));
        }
    }
    Ok(format!(
        "\nSpeed, by that of a JVM that nobody profiles: {before:.3} before, {after:.3} after.\n\
         Cycles that the agent ended, as the tool had no processor: {given_up}.\n"
    ))
}

/// How fast the one is beside the other: the median of some rounds.
fn ratio(target: &mut Target, other: &mut Target) -> Result<f64, String> {
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let (speeds, others) = std::thread::scope(|scope| {
            let speeds = scope.spawn(|| target.speed(SPAN));
            let others = other.speed(SPAN);
            (speeds.join(), others)
        });
        let (speed, _) = speeds.map_err(|_| "it could not be asked".to_owned())??;
        ratios.push(speed / others?.0);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(ratios[ROUNDS / 2])
}

fn has(jdk: &Jdk, target: &mut Target, cycles: u64) -> Result<Has, String> {
    let pid = target.pid().to_string();
    let jcmd = |command: &str| -> Result<String, String> {
        let answer = Command::new(jdk.program("jcmd")).args([&pid, command]).output().map_err(|it| it.to_string())?;
        Ok(String::from_utf8_lossy(&answer.stdout).into_owned())
    };
    jcmd("GC.run")?;
    let (heap, code) = (jcmd("GC.heap_info")?, jcmd("Compiler.codecache")?);
    // Of JDK 25 the heap's no longer tells of it.
    let metaspace = jcmd("VM.metaspace")?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(|error| error.to_string())?;
    let of = |line: &str| status.lines().find_map(|it| it.strip_prefix(line)).and_then(first_number).unwrap_or(0);
    let used = |text: &str, line: &str, mark: &str| -> u64 {
        let lines = text.lines().filter(|it| it.contains(line));
        lines.filter_map(|it| it.split_once(mark).and_then(|(_, rest)| first_number(rest))).sum()
    };
    Ok(Has {
        cycles,
        threads: target.count("task"),
        descriptors: target.count("fd"),
        heap: used(&heap, "heap", " used "),
        classes: used(&metaspace, "Total Usage", " loaders, "),
        metaspace: used(&heap, "Metaspace", " used ").max(used(&metaspace, "Metaspace", " used ")),
        code: used(&code, "CodeHeap", " used="),
        resident: of("VmRSS:"),
        address_space: of("VmSize:"),
    })
}

/// `12345K` and `  12345 kB`.
fn first_number(text: &str) -> Option<u64> {
    let digits: String = text.trim_start().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

fn head(jdk: &Jdk) -> String {
    format!(
        "JDK {}\n\n| cycles | threads | descriptors | heap, KiB | classes | metaspace, KiB | code, KiB | resident, MiB | address space, MiB |\n\
         |--:|--:|--:|--:|--:|--:|--:|--:|--:|",
        jdk.version
    )
}

impl fmt::Display for Has {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Has { cycles, threads, descriptors, heap, classes, metaspace, code, resident, address_space } = self;
        let (resident, address_space) = (resident >> 10, address_space >> 10);
        write!(
            f,
            "| {cycles} | {threads} | {descriptors} | {heap} | {classes} | {metaspace} | {code} | {resident} | {address_space} |"
        )
    }
}
