//! `cargo xtask chaos`: a program that checks itself, profiled again and again, and each time something goes wrong with the tool, the program
//! or what is around them. What it does to the program is nothing.

use std::num::NonZeroU64;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Args;
use headwater_tests::jdks;

use crate::pinned;
use crate::zoo;

mod cycles;
mod disk;
mod draw;
mod place;
mod plan;
mod record;
mod run;
mod target;
mod tool;

use plan::{COLLECTORS, Plan};
use record::Record;
use run::Bench;
use target::Compiled;

/// For CI: a tool that is killed, and one that is stopped, killed or interrupted.
const SHORT: Arguments =
    Arguments { minutes: NonZeroU64::MAX, seed: 1, jdk: None, only: None, runs: Some(2), cycles: None };

/// What is run.
#[derive(Clone, Debug, Args)]
pub(crate) struct Arguments {
    /// How long, on each JDK
    #[arg(long, value_name = "N", default_value = "10")]
    minutes: NonZeroU64,
    /// What goes wrong, and when, is drawn from this
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Only on JDKs of this feature version
    #[arg(long, value_name = "VERSION")]
    jdk: Option<u32>,
    /// Only the run of this number
    #[arg(long, value_name = "RUN")]
    only: Option<u64>,
    /// At most so many runs
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// Nothing goes wrong: one JVM is profiled so often, and what it has before and after is told
    #[arg(long, value_name = "N", conflicts_with_all = ["only", "runs"])]
    cycles: Option<u64>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), String> {
    arguments.run_with(&zoo::binary()?)
}

/// The short form, with a tool that is built.
pub(crate) fn run_short(binary: &Path) -> Result<(), String> {
    SHORT.run_with(binary)
}

impl Arguments {
    fn run_with(&self, binary: &Path) -> Result<(), String> {
        let mut record = Record::default();
        for jdk in jdks().iter().filter(|jdk| self.jdk.is_none_or(|version| version == jdk.version)) {
            let logs = pinned::target()?.join(format!("chaos/jdk{}-seed{}", jdk.version, self.seed));
            let compiled = Compiled::new(jdk, &logs.join("program"))?;
            if let Some(cycles) = self.cycles {
                println!("{}", cycles::run(jdk, &compiled, binary, &logs, cycles)?);
                continue;
            }
            let has = |option: &&str| {
                let java = Command::new(jdk.program("java")).args([option, "-version"]).output();
                java.is_ok_and(|java| java.status.success())
            };
            let collectors = COLLECTORS.into_iter().filter(has).collect();
            let bench = Bench { jdk, compiled: &compiled, collectors, binary, logs: &logs };
            let limit = Duration::from_secs(self.minutes.get().saturating_mul(60));
            let began = Instant::now();
            let numbers = match self.only {
                Some(run) => run..run + 1,
                None => 0..self.runs.unwrap_or(u64::MAX),
            };
            for number in numbers {
                if began.elapsed() >= limit {
                    break;
                }
                let plan = Plan::draw(self.seed, number);
                let outcome = bench.run(number, &plan)?;
                let again = format!(
                    "cargo xtask chaos --jdk {} --seed {} --only {number}; logs: {}",
                    jdk.version,
                    self.seed,
                    logs.join(format!("run-{number}")).display()
                );
                eprintln!("chaos: JDK {}, run {number}: {plan}: {outcome:?}", jdk.version);
                record.add(&plan, &outcome, &again);
            }
        }
        if self.cycles.is_some() {
            return Ok(());
        }
        println!("{}", record.render());
        record.verdict()
    }
}
