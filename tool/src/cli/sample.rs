//! `headwater sample`: where the time and the memory of a whole JVM go.

use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;
use tokio::sync::Notify;

use super::{complain, either, fail, record_whole, say_price, write_so_far};
use crate::request::output::Meanwhile;
use crate::request::sample::Sampling;
use crate::sampling::{self, Heard};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater sample 4711
  headwater sample shop.jar -d 30s --metric wall,cpu,blocked,socket
  headwater sample shop.jar --lines --view flat
  headwater sample shop.jar --alloc --metric allocated --view flat
  headwater sample shop.jar -d 1h --live=10s
  headwater sample shop.jar -d 1m -o shop.html
  headwater sample shop.jar -o before.hw; headwater sample shop.jar -o after.hw; headwater diff before.hw after.hw

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 5 the target ended first (what was sampled is shown).";

/// Which JVM, for how long, and what is shown.
#[derive(Debug, Args)]
pub(super) struct SampleArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    #[command(flatten)]
    sampling: Sampling,
    #[command(flatten)]
    meanwhile: Meanwhile,
}

pub(super) async fn run(arguments: &SampleArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let SampleArgs { target, sampling, meanwhile } = arguments;
    let (wanted, output) = (sampling.wanted(meanwhile.live), sampling.output().clone());
    let time = humantime::format_duration(wanted.duration).to_string();
    let enough = Arc::new(Notify::new());
    let gone = Arc::clone(&enough);
    let tell = move |heard| match heard {
        Heard::Begun => complain(&format!("sampling all threads for {time} (Ctrl-C ends it)")),
        Heard::SoFar(profile) => {
            if let Err(error) = write_so_far(&output, &profile, &gone) {
                complain(&format!("the samples could not be written: {error}"));
            }
        }
    };
    let take = async |jvm| {
        say_price(&jvm, wanted.recorder);
        let taken = sampling::take(jvm, wanted, tell, either(interrupt, &enough)).await;
        taken.map_err(|error| (error.exit_code(), error.to_string()))
    };
    let written = record_whole(target, sampling.output(), take).await;
    written.unwrap_or_else(|error| fail(1, &format!("the samples could not be written: {error}")))
}
