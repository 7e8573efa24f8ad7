//! `headwater region`: how long single methods or lines take, and nothing else.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use clap::Args;

use super::{fail, fail_at};
use crate::jvm;
use crate::profiling::{self, Ending};
use crate::request::progress::{Progress, Shown};
use crate::request::timing::{Timing, observe};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater region 4711 com.acme.Shop::checkout -d 30s
  headwater region 4711 com.acme.Shop:120-148 --calls 10000
  headwater region shop.jar com.acme.Shop::checkout com.acme.Cart::total com.acme.Cart:55 -o times.json

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 4 a region matched nothing,
5 the target ended first (results are still written), 130 Ctrl-C before anything was recorded.";

/// Of which JVM, and what is timed there.
#[derive(Debug, Args)]
pub(super) struct RegionArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    #[command(flatten)]
    timing: Timing,
}

pub(super) async fn run(arguments: &RegionArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let RegionArgs { target, timing } = arguments;
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = timing.check() {
        return fail(2, &error);
    }
    let progress = Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let observer = |stage| observe(stage, &progress);
    let result = profiling::attach(&jvm, &timing.settings(&progress), interrupt, &observer).await;
    progress.clear();
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => return fail_at(jvm.pid, error.exit_code(), &error.to_string()),
    };
    match timing.write(&outcome.profile) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return fail(1, &format!("the result could not be written: {error}")),
    }
    match (outcome.ending, outcome.nothing_matched()) {
        (Ending::Broken, _) => fail(1, outcome.profile.warnings.last().map_or("it ended early", String::as_str)),
        (_, Some(nothing)) => fail(4, &nothing),
        (Ending::TargetEnded, None) => fail(5, profiling::TARGET_ENDED),
        (Ending::Complete | Ending::Interrupted, None) => ExitCode::SUCCESS,
    }
}
