//! Gives a reader of foreign bytes changed samples, and looks that it says no or understands: it does not panic, takes memory in proportion to
//! what it is given, and comes back. `cargo xtask fuzz` builds and calls it.
//!
//! An input is made from the seed and its number alone, so that one is repeated by `--only`.

use std::alloc::System;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use clap::{Args, Parser};
use headwater_tests::random::Random;
use rustix::process::{Resource, Rlimit, setrlimit};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

mod mutation;
mod readers;
mod watch;

use watch::Watch;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// As threads of the tool have it.
const STACK_BYTES: usize = 2 << 20;
/// Whoever asks for more than that gets nothing, and dies.
const MOST_MEMORY: u64 = 8 << 30;
/// A reading that takes longer is not linear; CPU time, on a machine however busy.
const LONGEST: Duration = Duration::from_secs(5);
/// So many different findings are told of.
const MOST_FINDINGS: usize = 20;

/// What is done.
#[derive(Debug, Parser)]
enum Command {
    /// Names the readers, a line each
    Readers,
    /// Gives one of them its inputs
    Read(Arguments),
}

/// What it is given.
#[derive(Debug, Args)]
struct Arguments {
    /// Which reader
    reader: String,
    /// How many inputs
    #[arg(long, default_value_t = 10_000)]
    inputs: u64,
    /// What they are drawn from
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only the input of this number
    #[arg(long)]
    only: Option<u64>,
    /// Where samples are: a directory for each reader that needs some
    #[arg(long)]
    samples: PathBuf,
    /// Where inputs are kept that show something
    #[arg(long)]
    found: PathBuf,
}

fn main() -> ExitCode {
    let arguments = match Command::parse() {
        Command::Readers => {
            println!("{}", readers::NAMES.join("\n"));
            return ExitCode::SUCCESS;
        }
        Command::Read(arguments) => arguments,
    };
    // A dump of its memory would say nothing that the input does not.
    let limits = [(Resource::As, MOST_MEMORY), (Resource::Core, 0)];
    for (resource, most) in limits {
        // A machine that has less has it already.
        let _ = setrlimit(resource, Rlimit { current: Some(most), maximum: None });
    }
    let run = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run(&arguments));
    match run.map(std::thread::JoinHandle::join) {
        Ok(Ok(true)) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    }
}

/// What was found at one place.
#[derive(Debug)]
struct Finding {
    first: u64,
    times: u64,
    what: String,
}

/// Whether nothing was found.
fn run(arguments: &Arguments) -> bool {
    let name = arguments.reader.as_str();
    let Some(mut reader) = readers::named(name, &arguments.samples) else {
        eprintln!("{name} is no reader: give one of {}", readers::NAMES.join(", "));
        return false;
    };
    std::fs::create_dir_all(&arguments.found).expect("a place for what is found");
    let panicked = Arc::new(Mutex::new(String::new()));
    let told = Arc::clone(&panicked);
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        *told.lock().unwrap_or_else(PoisonError::into_inner) = format!("panic at {place}: {panic}");
    }));
    let at = std::fs::File::create(arguments.found.join(format!("{name}.at"))).expect("a file");
    let watch = Watch::start(LONGEST * 4);
    let mut findings: BTreeMap<String, Finding> = BTreeMap::new();
    let (mut understood, mut most_bytes, mut most_part, mut longest) = (0_u64, 0, 0.0_f64, Duration::ZERO);
    let numbers = arguments.only.map_or(0..arguments.inputs, |only| only..only + 1);
    let count = numbers.end - numbers.start;
    for number in numbers {
        let mut random = Random(seed(arguments.seed, number));
        let input = reader.input(&mut random);
        // Where it dies, it is known at what.
        at.write_all_at(&number.to_le_bytes(), 0).expect("a file can be written");
        watch.begin(number);
        let region = Region::new(ALLOCATOR);
        let outcome = catch_unwind(AssertUnwindSafe(|| reader.read(&input)));
        let allocated = region.change().bytes_allocated;
        let took = watch.end();
        longest = longest.max(took);
        most_bytes = most_bytes.max(allocated);
        most_part = most_part.max(allocated as f64 / (input.len() + 4096) as f64);
        let what = match outcome {
            Err(_) => Some(panicked.lock().unwrap_or_else(PoisonError::into_inner).clone()),
            Ok(_) if allocated > reader.most_bytes(input.len()) => {
                Some(format!("memory: {allocated} bytes for an input of {}", input.len()))
            }
            Ok(_) if took > LONGEST => Some(format!("time: {took:?} for an input of {} bytes", input.len())),
            Ok(is_understood) => {
                understood += u64::from(is_understood);
                None
            }
        };
        let Some(what) = what else { continue };
        // One place, one finding.
        let key = what.split(": ").next().unwrap_or_default().to_owned();
        if findings.len() < MOST_FINDINGS && !findings.contains_key(&key) {
            let file = arguments.found.join(format!("{name}-{}-{number}", arguments.seed));
            std::fs::write(&file, &input).expect("a file can be written");
        }
        findings.entry(key).or_insert(Finding { first: number, times: 0, what }).times += 1;
    }
    println!(
        "{name}: {count} inputs, {understood} understood; most memory {most_bytes} bytes, {most_part:.1} a byte; \
         longest {longest:.1?}; findings: {}",
        findings.len()
    );
    for Finding { first, times, what } in findings.values() {
        println!("  {times} times, first by --seed {} --only {first}: {what}", arguments.seed);
    }
    findings.is_empty()
}

/// Of one input: splitmix64, never zero.
fn seed(seed: u64, number: u64) -> u64 {
    let mut mixed = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(number.wrapping_mul(0xD1B5_4A32_D192_ED03));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31).max(1)
}
