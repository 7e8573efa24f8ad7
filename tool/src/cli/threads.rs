//! `headwater threads`: all threads of a JVM at one moment, and who waits for whom.

use std::io;
use std::process::ExitCode;

use clap::Args;

use super::{complain, fail, fail_at};
use crate::jvm;
use crate::report::units::plural;
use crate::request::threads::Showing;
use crate::thread_dump;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater threads 4711
  headwater threads shop.jar --depth 10
  headwater threads shop.jar -o threads.json || [ $? -ne 6 ] || page-somebody

Exit codes: 0 done and no deadlock, 6 done and there is a deadlock, 1 failed, 2 usage,
3 no such target or no permission, 5 the target ended first, 130 Ctrl-C before the threads were known.";

/// There is a deadlock.
const DEADLOCK: u8 = 6;

/// Of which JVM, and how they are shown.
#[derive(Debug, Args)]
pub(super) struct ThreadsArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    #[command(flatten)]
    showing: Showing,
}

pub(super) async fn run(arguments: &ThreadsArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let ThreadsArgs { target, showing } = arguments;
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = showing.check() {
        return fail(2, &error);
    }
    let pid = jvm.pid;
    let taken = match thread_dump::take_unless(jvm, showing.wanted(), interrupt).await {
        Ok(taken) => taken,
        Err(error) => return fail_at(pid, error.exit_code(), &error.to_string()),
    };
    match showing.write(&taken) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return fail(1, &format!("the result could not be written: {error}")),
    }
    if showing.is_to_file() {
        taken.warnings.iter().for_each(|warning| complain(warning));
    }
    match taken.deadlocks.len() {
        0 => ExitCode::SUCCESS,
        count => {
            let found = plural(count as u64, "deadlock", "deadlocks");
            fail(DEADLOCK, &format!("{found} found: those threads wait for each other"))
        }
    }
}
