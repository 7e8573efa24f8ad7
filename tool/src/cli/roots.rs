//! `headwater roots`: which method to name.

use std::io::{self, IsTerminal};
use std::pin::pin;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{fail, fail_at, say_price};
use crate::jvm;
use crate::profiling::Stage;
use crate::request::destination::{Destination, Shape};
use crate::request::duration;
use crate::request::progress::{Progress, Shown};
use crate::roots::held::By;
use crate::roots::{self, Looking, show};
use crate::whole_jvm::Recorder;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater roots 4711
  headwater roots shop.jar -d 30s
  headwater roots shop.jar --by wait
  headwater roots shop.jar --try 1
  headwater roots shop.jar -o roots.json

Exit codes: 0 done, 1 failed, or nothing was seen at work, 2 usage, 3 no such target or no permission, 5 the target ended,
130 Ctrl-C before anything was known.";

/// Which JVM, and how long it is looked at.
#[derive(Debug, Args)]
pub(super) struct RootsArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    /// Sample all threads for so long
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// Then time the calls of some methods for so long, or up to five times as long where they are long
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    timing: Duration,
    /// What methods are to hold much of
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::All)]
    by: By,
    /// Profile the first N exactly, for a second each, to say what that costs rather than what it is likely to
    #[arg(long = "try", value_name = "N", default_value_t = 0)]
    tried: usize,
    /// Use the JVM's flight recorder; in a JVM up to 22 its first start discards compiled code
    #[arg(long, value_enum, default_value_t = Recorder::On)]
    recorder: Recorder,
    #[command(flatten)]
    destination: Destination,
}

pub(super) async fn run(arguments: &RootsArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let RootsArgs { target, duration, timing, by, tried, recorder, destination } = arguments;
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = destination.check() {
        return fail(2, &error);
    }
    let progress = Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let observer = |stage| match stage {
        // They are not the user's.
        Stage::RootsInstrumented(_) => {}
        other => progress.show(other),
    };
    let looking = Looking { sampling: *duration, timing: *timing, by: *by, tried: *tried, recorder: *recorder };
    say_price(&jvm, *recorder);
    progress.live("sampling all threads");
    let found = roots::find(&jvm, looking, pin!(interrupt), &observer).await;
    progress.clear();
    let found = match found {
        Ok(found) => found,
        Err(error) => return fail_at(jvm.pid, error.exit_code(), &error.to_string()),
    };
    let written = destination.write(&mut |shape, out| match shape {
        Shape::Json => show::write_json(&found, out),
        Shape::Text(_) => show::write_text(&found, out),
    });
    match written {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("the result could not be written: {error}")),
    }
}
