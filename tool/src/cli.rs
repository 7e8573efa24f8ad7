//! The command line: arguments, progress, exit codes. What the commands do is elsewhere.
//!
//! [`arguments`] has the commands, each in a module of its own below here; what they share with prompt and scripts is in [`request`](crate::request).

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;

mod analyse;
mod arguments;
mod default_options;
mod detach;
mod diff;
mod doctor;
mod events;
mod explain;
mod list;
mod locks;
mod profile;
mod region;
mod report;
mod roots;
mod sample;
mod session;
mod shell;
mod threads;
mod top;
mod watch;

use crate::jvm::process::has_program;
use crate::jvm::{self, Jvm};
use crate::logging;
use crate::printable::printable_lines;
use crate::profile::Profile;
use crate::request::interrupted;
use crate::request::output::{Origin, Output};
use crate::whole_jvm::{Recorder, Whole, price_of_recorder};
use arguments::{Cli, Command};
use default_options::{OPTIONS, with_defaults};

/// For so long an answer to a load request is waited for when nobody wants it any more.
const LAST_REQUEST: Duration = Duration::from_secs(1);

/// The whole program.
pub fn main() -> ExitCode {
    logging::begin();
    let options = std::env::var(OPTIONS).ok().filter(|options| !options.trim().is_empty());
    let cli = match with_defaults(std::env::args_os().collect(), options.as_deref()) {
        Ok(arguments) => Cli::try_parse_from(arguments),
        Err(error) => return fail(2, &error),
    };
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(options) = options.filter(|_| error.use_stderr()) {
                // It may be there that the mistake is.
                let _ = writeln!(io::stderr(), "headwater: {OPTIONS} is set to `{options}`");
            }
            error.exit()
        }
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("cannot start: {error}")),
    };
    let code = runtime.block_on(execute(cli.command));
    // What has been asked of a target is seen through, so that nothing of it stays in the file system; one that never answers must not keep
    // this process.
    runtime.shutdown_timeout(LAST_REQUEST);
    code
}

/// With a thread for what cannot be interrupted, which is there for good: tokio panics where it needs one and can start none, but has work wait for
/// one that there is.
fn runtime() -> io::Result<tokio::runtime::Runtime> {
    const FOR_GOOD: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    const FILE_SIZE: i32 = rustix::process::Signal::XFSZ.as_raw();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().thread_keep_alive(FOR_GOOD).build()?;
    // Whether there can be any is an error here, and a panic there.
    drop(std::thread::Builder::new().spawn(|| ())?.join());
    drop(runtime.spawn_blocking(|| ()));
    // A file that may not become larger is an error when it is written, not our end.
    drop(runtime.block_on(async { signal(SignalKind::from_raw(FILE_SIZE)) })?);
    Ok(runtime)
}

async fn execute(command: Command) -> ExitCode {
    match command {
        Command::List { format } => list::run(format),
        // What may change a target hears of a signal from its first moment on: here, before anything else is done.
        Command::Profile { target, profile, await_root } => {
            profile::attached(&target, &profile, await_root, interrupted()).await
        }
        Command::Run { profile, command } => profile::started(&profile, &command, interrupted()).await,
        Command::Attach { target } => session::at_prompt(&target).await,
        Command::Session { script, target, set, dry_run } => {
            let run = if dry_run { session::Run::Dry } else { session::Run::Real };
            session::script(&script, target.as_deref(), &set, run).await
        }
        Command::Completions { shell } => shell::completions(shell),
        Command::Man { directory } => shell::manual(&directory),
        Command::Doctor { target, format } => doctor::run(&target, format),
        Command::Region(arguments) => region::run(&arguments, interrupted()).await,
        Command::Roots(arguments) => roots::run(&arguments, interrupted()).await,
        Command::Events(arguments) => events::run(&arguments, interrupted()).await,
        Command::Locks(arguments) => locks::run(&arguments, interrupted()).await,
        Command::Sample(arguments) => sample::run(&arguments, interrupted()).await,
        Command::Threads(arguments) => threads::run(&arguments, interrupted()).await,
        Command::Top(arguments) => top::run(&arguments, interrupted()).await,
        Command::Analyse(arguments) => analyse::run(&arguments, interrupted()).await,
        Command::Watch(arguments) => watch::run(&arguments, interrupted()).await,
        Command::Report(arguments) => report::run(&arguments),
        Command::Explain(arguments) => explain::run(&arguments),
        Command::Diff(arguments) => diff::run(&arguments),
        Command::Detach { target } => detach::run(&target).await,
    }
}

/// Records something of a whole JVM, and writes what that shows. A recording that fails names its exit code.
async fn record_whole(
    target: &str,
    output: &Output,
    record: impl AsyncFnOnce(Jvm) -> Result<Whole, (u8, String)>,
) -> io::Result<ExitCode> {
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return Ok(fail(error.exit_code(), &error.to_string())),
    };
    if let Err(error) = output.check() {
        return Ok(fail(2, &error));
    }
    let pid = jvm.pid;
    match record(jvm).await {
        Ok(whole) => write_whole(&whole, output),
        Err((code, error)) => Ok(fail_at(pid, code, &error)),
    }
}

/// Writes it: what was recorded must not be lost to a wrong name, nor to a file that cannot be written.
fn write_whole(whole: &Whole, output: &Output) -> io::Result<ExitCode> {
    let Whole { profile, target_ended } = whole;
    let selection = output.check_selection(profile);
    if let Err(nothing) = &selection {
        complain(&nothing.to_string());
    }
    match output.write(profile, Origin::Recording) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            if output.is_file() {
                complain(&format!("{error}; so that it is not lost, here it is as text"));
                output.write_as_text(profile)?;
            }
            Err(error)
        }
        Ok(()) | Err(_) if *target_ended => Ok(fail(5, "the target ended before the time was over")),
        Ok(()) | Err(_) if selection.is_err() => Ok(ExitCode::FAILURE),
        Ok(()) | Err(_) => Ok(ExitCode::SUCCESS),
    }
}

/// Writes what there is so far. Who reads it may have seen enough, and gone: `enough` is told, and nothing is wrong.
fn write_so_far(output: &Output, profile: &Profile, enough: &Notify) -> io::Result<()> {
    match output.write_so_far(profile) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe && !output.is_file() => {
            enough.notify_one();
            Ok(())
        }
        written => written,
    }
}

/// Until the user wants an end, or has gone.
async fn either(interrupt: impl Future<Output = ()>, enough: &Notify) {
    tokio::select! {
        () = interrupt => {}
        () = enough.notified() => {}
    }
}

/// Says what the JVM pays for its recorder before it does.
fn say_price(jvm: &Jvm, recorder: Recorder) {
    if let Some(price) = price_of_recorder(jvm).filter(|_| recorder == Recorder::On) {
        complain(&format!("{price}; --recorder off leaves it alone"));
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    complain(message);
    ExitCode::from(code)
}

/// Of a target that was found. Where it has ended since, that is the reason, in whatever way it showed.
fn fail_at(pid: u32, code: u8, message: &str) -> ExitCode {
    if matches!(code, 1 | 3) && !has_program(pid) {
        return fail(5, &format!("the target ended: {message}"));
    }
    fail(code, message)
}

/// Files that a tool has left which is gone, and which have just been removed.
fn say_removed(files: &[String]) {
    for file in files {
        complain(&format!("removed {file}, which a headwater that is gone had left"));
    }
}

fn complain(message: &str) {
    // A standard error that went away is no reason to stop.
    let _ = writeln!(io::stderr(), "headwater: {}", printable_lines(message));
}
