//! `headwater profile` and `headwater run`.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use tokio::sync::Notify;

use super::{complain, either, fail, fail_at, write_so_far};
use crate::jvm;
use crate::profile::Profile;
use crate::profiling::{self, Ending, Outcome, Stage};
use crate::report::text;
use crate::request::output::{Origin, Output};
use crate::request::profile::OneProfile;
use crate::request::progress::{self, Progress, Shown};

pub(super) async fn attached(
    target: &str,
    arguments: &OneProfile,
    await_root: bool,
    interrupt: impl Future<Output = ()>,
) -> ExitCode {
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    let progress = Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let settings = arguments.settings(await_root);
    let enough = Notify::new();
    let observer = |stage| observe(stage, &progress, &arguments.output, &enough);
    let result = profiling::attach(&jvm, &settings, either(interrupt, &enough), &observer).await;
    progress.clear();
    match result {
        Ok(outcome) => conclude(outcome, &arguments.output),
        Err(error) => fail_at(jvm.pid, error.exit_code(), &error.to_string()),
    }
}

pub(super) async fn started(
    arguments: &OneProfile,
    command: &[String],
    interrupt: impl Future<Output = ()>,
) -> ExitCode {
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    // The program writes to the same terminal: no live line there.
    let progress = Progress::new(Shown::Milestones);
    let settings = arguments.settings(true);
    let enough = Notify::new();
    let observer = |stage| observe(stage, &progress, &arguments.output, &enough);
    match profiling::run(command, &settings, either(interrupt, &enough), &observer).await {
        Ok((mut outcome, status)) => {
            if !status.success() {
                outcome.profile.warnings.push(format!("the program ended with {status}"));
            }
            conclude(outcome, &arguments.output)
        }
        Err(error) => fail(error.exit_code(), &error.to_string()),
    }
}

/// Shows what goes on. A report that cannot be shown now is tried again at the end, where it is an error.
fn observe(stage: Stage, progress: &Progress, output: &Output, enough: &Notify) {
    match stage {
        Stage::SoFar(profile) => {
            progress.clear();
            let _ = write_so_far(output, &profile, enough);
        }
        Stage::Attached(spent) if output.is_verbose() => progress.say(&progress::spent(&spent)),
        other => progress.show(other),
    }
}

/// Writes the report, and says how it ended.
pub(super) fn conclude(outcome: Outcome, output: &Output) -> ExitCode {
    if let Err(nothing) = output.check_selection(&outcome.profile) {
        // What was recorded must not be lost to a wrong name.
        complain(&nothing.to_string());
    }
    match output.write(&outcome.profile, Origin::Recording) {
        Ok(()) => {
            if let Some(gist) = output.gist(&outcome.profile) {
                complain(&gist);
            }
        }
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => {
            let code = fail(1, &format!("the report could not be written: {error}"));
            // What was recorded cannot be had a second time.
            if output.is_file() {
                let _ = writeln!(io::stderr(), "headwater: so that it is not lost, here it is as text");
                let _ = output.write_as_text(&outcome.profile);
            }
            return code;
        }
    }
    verdict(&outcome, output)
}

/// The exit code of a profile, and why it is not 0.
pub(super) fn verdict(outcome: &Outcome, output: &Output) -> ExitCode {
    match (outcome.ending, outcome.nothing_matched()) {
        (Ending::Broken, _) => {
            fail(1, outcome.profile.warnings.last().map_or("the profile ended early", String::as_str))
        }
        (_, Some(nothing)) => fail(4, &nothing),
        (ending, None) => {
            if !output.is_read_at_once() {
                not_entered(&outcome.profile);
            }
            if ending == Ending::TargetEnded { fail(5, profiling::TARGET_ENDED) } else { ExitCode::SUCCESS }
        }
    }
}

/// Says of each root that was never entered what a text says in its first lines.
fn not_entered(profile: &Profile) {
    for root in &profile.roots {
        if let Some(advice) = text::advice(profile, root) {
            complain(&format!("root {}: {}\n{advice}", root.pattern, text::state(profile, root)));
        }
    }
}
