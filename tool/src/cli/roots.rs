//! `headwater roots`: which method to name.

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;

use clap::Args;

use super::{fail, fail_at, say_price};
use crate::jvm;
use crate::request::progress::{Progress, Shown};
use crate::roots;
use crate::roots::choosing::{self, Choosing};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater roots 4711
  headwater roots shop.jar -d 30s
  headwater roots shop.jar --by wait
  headwater roots shop.jar --try 1
  headwater roots shop.jar -o roots.json

Exit codes: 0 done, 1 failed, or nothing was seen at work, 2 usage, 3 no such target or no permission, 5 the target ended,
130 Ctrl-C before anything was known.";

/// Which JVM, and how it is looked at.
#[derive(Debug, Args)]
pub(super) struct RootsArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    #[command(flatten)]
    choosing: Choosing,
}

pub(super) async fn run(arguments: &RootsArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let RootsArgs { target, choosing } = arguments;
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = choosing.check() {
        return fail(2, &error);
    }
    let progress = Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let looking = choosing.looking();
    say_price(&jvm, looking.recorder);
    progress.live("sampling all threads");
    let found = roots::find(&jvm, looking, pin!(interrupt), &|stage| choosing::observe(stage, &progress)).await;
    progress.clear();
    let found = match found {
        Ok(found) => found,
        Err(error) => return fail_at(jvm.pid, error.exit_code(), &error.to_string()),
    };
    match choosing.write(&found) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the result could not be written: {error}")),
    }
}
