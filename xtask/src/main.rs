//! The project's chores, executable: `cargo xtask demo | test | runtime`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

mod demo;
mod machine;
mod runtime;
mod test;

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
        /// Passed on to `cargo test`
        #[arg(last = true)]
        arguments: Vec<String>,
    },
    /// Compile the Java runtime classes again, after a change to their sources
    Runtime,
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Demo { root, seconds } => demo::run(&root, seconds),
        Command::Test { arguments } => test::run(&arguments),
        Command::Runtime => runtime::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
