//! The project's chores, executable: `cargo xtask demo | test | jvms | bench | tutorial | runtime | web | rewrite | corpus | zoo | chaos | agents | fuzz`.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod agents;
mod bench;
mod chaos;
mod class_tree;
mod consumers;
mod corpus;
mod demo;
mod fuzz;
mod jar;
mod jvms;
mod libraries;
mod machine;
mod picture;
mod pinned;
mod probed_jdk;
mod process;
mod rewrite;
mod rewriting;
mod rewritten;
mod runtime;
mod semantics;
mod test;
mod tutorial;
mod verification;
mod web;
mod zoo;

/// The project's chores.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Profile javac at work in another JVM, and show that it is as fast afterwards as before
    Demo {
        /// Which method's calls to profile
        #[arg(long, default_value = "com.sun.tools.javac.main.JavaCompiler::compile")]
        root: String,
        /// How long to profile, in seconds
        #[arg(long, default_value_t = 30)]
        seconds: u32,
    },
    /// Run all tests: unit, golden, end-to-end
    Test {
        /// Only this, of what is no test that cargo runs
        #[arg(long, conflicts_with = "arguments")]
        part: Option<test::Part>,
        /// Passed on to `cargo test`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Run the end-to-end tests on JVMs that Debian has no packages of: JREs of JDK 11 and 21, which are installed by pip
    Jvms {
        /// Passed on to `cargo test`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Measure the rewriter's, the decoder's and snapshots' speed, what a profile costs, how true and how stable it is, and how a call
    /// graph is found
    Bench {
        /// Only this one: rewriter, decode, snapshot, top, pairs, cost, stability, soak, budget, subgraph, scale or mechanisms
        name: Option<String>,
        /// Passed on to it
        #[arg(last = true, requires = "name")]
        arguments: Vec<String>,
    },
    /// Go through docs/TUTORIAL.md and make its pictures again
    Tutorial,
    /// Compile the Java runtime classes again, after a change to their sources
    Runtime,
    /// Build the HTML report's page again, after a change to its sources
    Web,
    /// Instrument every method of a jar, a class file or a JDK
    Rewrite {
        /// x.jar, x.class or jrt:<home of a JDK>
        #[arg(value_name = "IN")]
        input: String,
        /// A file; for a JDK a directory, which gets one a module
        #[arg(value_name = "OUT")]
        output: PathBuf,
        /// Insert nothing: every class must come out the same
        #[arg(long)]
        identity: bool,
        /// Count the instructions that are executed
        #[arg(long, conflicts_with = "identity")]
        count: bool,
        /// List every refused method
        #[arg(long)]
        report: bool,
    },
    /// Instrument every class of every installed JDK and of the installed jars, and run them
    Corpus {
        /// Link every N-th class only; all are rewritten
        #[arg(long, value_name = "N")]
        sample: Option<NonZeroUsize>,
        /// One JDK instead of all
        #[arg(long, value_name = "HOME")]
        jdk: Option<PathBuf>,
        /// Run all programs also for a sample, instead of javac only
        #[arg(long)]
        semantics: bool,
        /// Count the instructions that are executed
        #[arg(long)]
        count: bool,
    },
    /// Profile real applications under load, and compare what the profiles say with the programs' own figures
    Zoo(zoo::Arguments),
    /// Profile a program that checks itself while tool, program and machine fail, and look that it is unharmed
    Chaos(chaos::Arguments),
    /// Profile a program with other agents in its JVM, which come and leave before us or after us, and look that nobody disturbs the others
    Agents(agents::Arguments),
    /// Give every reader of foreign bytes changed samples: none may panic, hang, or take memory out of proportion
    Fuzz(fuzz::Arguments),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo { root, seconds } => demo::run(&root, seconds),
        Command::Test { part: Some(part), .. } => test::run_part(part),
        Command::Test { part: None, arguments } => test::run(&arguments),
        Command::Jvms { arguments } => jvms::run(&arguments),
        Command::Bench { name, arguments } => bench::run(name.as_deref(), &arguments),
        Command::Tutorial => tutorial::run(),
        Command::Runtime => runtime::run(),
        Command::Web => web::run(),
        Command::Rewrite { input, output, identity, count, report } => {
            let pass = if identity { rewriting::Pass::Identity } else { rewriting::Pass::instrument(count) };
            rewrite::run(&input, &output, pass, report)
        }
        Command::Corpus { sample, jdk, semantics, count } => {
            let whole = sample.is_none() || semantics;
            let programs = if whole { semantics::Programs::All } else { semantics::Programs::Javac };
            let every = sample.map_or(1, NonZeroUsize::get);
            corpus::run(jdk.as_deref(), corpus::Extent { every, programs, pass: rewriting::Pass::instrument(count) })
        }
        Command::Zoo(arguments) => zoo::run(&arguments),
        Command::Chaos(arguments) => chaos::run(&arguments),
        Command::Agents(arguments) => agents::run(&arguments),
        Command::Fuzz(arguments) => fuzz::run(&arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
