//! `headwater detach`: what a lost tool left behind is removed.

use std::io::{self, Write};
use std::process::ExitCode;

use super::fail;
use crate::jvm;
use crate::leftovers;
use crate::profiling;
use crate::request::interrupted;

pub(super) async fn run(target: &str) -> ExitCode {
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    let detached = profiling::unless(interrupted(), profiling::detach(&jvm)).await;
    // Also of targets that are gone.
    super::say_removed(&leftovers::remove_here());
    match detached {
        Ok(report) => {
            let _ = writeln!(io::stdout(), "{}: {report}", jvm.pid);
            if report.contains("not ended") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => fail(error.exit_code(), &error.to_string()),
    }
}
