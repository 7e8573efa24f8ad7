//! `headwater sample`: where the CPU time of a whole JVM goes.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use super::{fail, record_whole};
use crate::request::duration;
use crate::request::output::Output;
use crate::request::values::sample_period;
use crate::sampling::{self, Wanted};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater sample 4711
  headwater sample shop.jar -d 30s --view flat
  headwater sample shop.jar -d 1m -o shop.html
  headwater sample shop.jar -o before.hw; headwater sample shop.jar -o after.hw; headwater diff before.hw after.hw

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission.";

/// Which JVM, for how long, and what is shown.
#[derive(Debug, Args)]
pub(super) struct SampleArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    /// For how long; Ctrl-C ends it before
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// How often threads that run Java code are looked at, 1ms to 1s
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = sample_period)]
    every: Duration,
    #[command(flatten)]
    output: Output,
}

pub(super) async fn run(arguments: &SampleArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let SampleArgs { target, duration, every, output } = arguments;
    let take = async |jvm| {
        let taken = sampling::take(jvm, Wanted { duration: *duration, every: *every }, interrupt).await;
        taken.map_err(|error| (error.exit_code(), error.to_string()))
    };
    let written = record_whole(target, output, take).await;
    written.unwrap_or_else(|error| fail(1, &format!("the samples could not be written: {error}")))
}
