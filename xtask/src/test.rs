//! `cargo xtask test`: everything. The end-to-end tests need a JDK and Tomcat's libraries, and the tool's binary; the exports'
//! tests need their readers; of the corpus a sample is linked, and of the end-to-end tests some are run on JVMs that are not installed. Each reader is given some inputs by `cargo xtask fuzz`, and `cargo xtask chaos` makes a few runs.

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

/// Every n-th class of the corpus is linked.
const SAMPLE: usize = 10;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    jdk()?;
    ensure_tomcat()?;
    consumers::ensure_installed()?;
    // Tests picked by arguments are run alone.
    let is_whole = arguments.is_empty();
    if is_whole {
        libraries::ensure_installed()?;
    }
    if !is_whole {
        call(cargo().args(["build", "--bin", "headwater"]))?;
    }
    call(cargo().args(["test", "--no-fail-fast"]).args(arguments))?;
    if is_whole {
        fuzz::run_short()?;
        chaos::run_short(&pinned::target()?.join("debug/headwater"))?;
        // How chunks pass between target and tool, in every order that memory accesses can have.
        let model = ["test", "--package", "headwater-protocol", "--lib", "--release", "--target-dir", "target/loom"];
        call(cargo().args(model).args(["chunks"]).env("RUSTFLAGS", "--cfg loom"))?;
        corpus::run(None, Extent { every: SAMPLE, programs: Programs::Javac, pass: Pass::Instrument })?;
        jvms::run_most_different()?;
    }
    Ok(())
}
