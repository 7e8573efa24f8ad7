//! `headwater locks`: who waits for which locks in a whole JVM, and who holds them.

use std::process::ExitCode;

use clap::Args;

use super::{complain, fail, record_whole};
use crate::locks::{self, LockOptions};
use crate::request::locks::Waiting;
use crate::whole_jvm::price_of_recorder;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater locks 4711
  headwater locks shop.jar -d 30s --over 1ms
  headwater locks shop.jar -o locks.json
  headwater locks shop.jar -o locks.hw; headwater report locks.hw --view tree

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 5 the target ended first (what was
recorded is shown), 130 Ctrl-C before anything was recorded.";

/// Of which JVM, for how long, and what is shown.
#[derive(Debug, Args)]
pub(super) struct LocksArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    #[command(flatten)]
    waiting: Waiting,
}

fn say_begun(wanted: LockOptions) {
    let time = humantime::format_duration(wanted.duration);
    complain(&format!("recording waits for locks for {time} (Ctrl-C ends it)"));
}

pub(super) async fn run(arguments: &LocksArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let LocksArgs { target, waiting } = arguments;
    let take = async |jvm| {
        if let Some(price) = price_of_recorder(&jvm) {
            complain(&format!("{price}; `headwater sample --recorder off` shows what threads wait for without it"));
        }
        let taken = locks::take(jvm, waiting.wanted(), say_begun, interrupt).await;
        taken.map_err(|error| (error.exit_code(), error.to_string()))
    };
    let written = record_whole(target, &waiting.output(), take).await;
    written.unwrap_or_else(|error| fail(1, &format!("the locks could not be written: {error}")))
}
