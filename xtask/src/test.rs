//! `cargo xtask test`: everything. The end-to-end tests need a JDK and Tomcat's libraries, and the tool's binary; the exports'
//! tests need their readers; of the corpus a sample is linked, and of the end-to-end tests some are run on JVMs that are not installed. Each reader is given some inputs by `cargo xtask fuzz`, and `cargo xtask chaos` makes a few runs.
//!
//! What takes long, or waits, is run beside the rest: end-to-end tests leave the processors idle for a part of their time.

use std::process::Command;

use clap::ValueEnum;

use crate::chaos;
use crate::consumers;
use crate::corpus::{self, Extent};
use crate::fuzz;
use crate::jvms;
use crate::libraries;
use crate::machine::{call, cargo, ensure_tomcat, jdk};
use crate::pinned;
use crate::rewriting::Pass;
use crate::semantics::Programs;

mod binaries;
mod steps;

use steps::{Output, Step};

/// Every n-th class of the corpus is linked.
const SAMPLE: usize = 10;
/// So many steps are run at a time: the end-to-end tests, and two others, as all of them wait for a part of their time.
const AT_A_TIME: usize = 3;
/// What takes longest, the longest first: nothing is to be waited for at the end.
const LONGEST: [&str; 6] = ["e2e", "jvms", "corpus", "html", "chaos", "attach"];

/// What is no test that cargo runs.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Part {
    /// Some changed inputs for every reader of foreign bytes
    Fuzz,
    /// Some profiles while tool and target fail
    Chaos,
    /// How chunks pass between target and tool, in every order that memory accesses can have
    Loom,
    /// All classes of JDKs and jars instrumented, and a sample of them linked
    Corpus,
    /// End-to-end tests on JREs that are not installed
    Jvms,
    /// Examples in documentation
    Doc,
}

/// Everything; or, if arguments pick tests, these alone.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    jdk()?;
    ensure_tomcat()?;
    consumers::ensure_installed()?;
    if arguments.is_empty() {
        libraries::ensure_installed()?;
        jvms::ensure_installed()?;
        return all();
    }
    call(cargo().args(["build", "--bin", "headwater"]))?;
    call(cargo().args(["test", "--no-fail-fast"]).args(arguments))
}

/// One part alone; what it needs of this project is built.
pub(crate) fn run_part(part: Part) -> Result<(), String> {
    match part {
        Part::Fuzz => fuzz::run_short(),
        Part::Chaos => chaos::run_short(&pinned::target()?.join("debug/headwater")),
        Part::Loom => {
            let model = [
                "test",
                "--package",
                "headwater-protocol",
                "--lib",
                "--profile",
                "loom",
                "--target-dir",
                "target/loom",
            ];
            call(cargo().args(model).args(["chunks"]).env("RUSTFLAGS", "--cfg loom"))
        }
        Part::Corpus => corpus::run(None, Extent { every: SAMPLE, programs: Programs::Javac, pass: Pass::Instrument }),
        Part::Jvms => jvms::run_most_different(),
        Part::Doc => call(cargo().args(["test", "--doc", "--no-fail-fast"])),
    }
}

fn all() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|error| format!("our own path: {error}"))?;
    let mut steps: Vec<Step> = binaries::build()?.into_iter().map(binaries::Binary::step).collect();
    for part in Part::value_variants() {
        let name = part.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut command = Command::new(&own);
        command.args(["test", "--part", &name]);
        steps.push(Step { name, command, output: Output::AtTheEnd });
    }
    let place = |step: &Step| LONGEST.iter().position(|name| *name == step.name).unwrap_or(LONGEST.len());
    steps.sort_by_key(place);
    steps::run(steps, AT_A_TIME)
}
