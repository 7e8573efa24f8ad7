//! `headwater threads`: all threads of a JVM at one moment, and who waits for whom.

use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::output::{parent_exists, terminal_width, wants_color};
use super::{complain, duration, fail};
use crate::jvm;
use crate::report::text::Style;
use crate::report::units::plural;
use crate::thread_dump::{self, Owners, Wanted};
use crate::threads::Taken;
use crate::threads::report::json::write_json;
use crate::threads::report::{Depth, write_text};
use crate::whole_file::write_whole;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater threads 4711
  headwater threads shop.jar --depth 10
  headwater threads shop.jar -o threads.json || [ $? -ne 6 ] || page-somebody

Exit codes: 0 done and no deadlock, 6 done and there is a deadlock, 1 failed, 2 usage,
3 no such target or no permission, 130 Ctrl-C before the threads were known.";

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

/// What is found out about threads, and where it goes: for `threads` on the command line and `thread-dump` in a session.
#[derive(Clone, Debug, Args)]
pub struct Showing {
    /// Measure CPU times for so long before the dump; 0: not at all
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    window: Duration,
    /// Find owners of java.util.concurrent locks, for which the JVM stands still while it looks through its heap
    #[arg(long, value_enum, default_value_t = OwnersChoice::Auto)]
    owners: OwnersChoice,
    /// Show at most so many frames of a stack; as text
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    /// Write the result to a file, as JSON if its name ends in .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The result's format [default: of the file's extension, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OwnersChoice {
    /// Where the heap is small
    Auto,
    /// Always
    On,
    /// Never; those in deadlocks that the JVM finds by itself are known all the same
    Off,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// To be read
    Text,
    /// One object to be processed
    Json,
}

impl Showing {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.output.as_deref().map_or(Ok(()), parent_exists)
    }

    /// What the JVM is asked for.
    pub(crate) fn wanted(&self) -> Wanted {
        let owners = match self.owners {
            OwnersChoice::Auto => Owners::Auto,
            OwnersChoice::On => Owners::On,
            OwnersChoice::Off => Owners::Off,
        };
        Wanted { window: self.window, owners }
    }

    fn is_json(&self) -> bool {
        let extension = self.output.as_ref().and_then(|path| path.extension());
        self.format.map_or_else(|| extension.is_some_and(|it| it == "json"), |format| format == Format::Json)
    }

    /// Writes them: to the file, whole or not at all, or to standard output.
    pub(crate) fn write(&self, taken: &Taken) -> io::Result<()> {
        let Some(path) = &self.output else {
            let stdout = io::stdout();
            let terminal = stdout.is_terminal();
            let width = if terminal { terminal_width(&stdout) } else { None };
            return self.write_to(taken, width, terminal && wants_color(), &mut io::BufWriter::new(stdout.lock()));
        };
        write_whole(path, |out| self.write_to(taken, None, false, out))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    fn write_to(&self, taken: &Taken, width: Option<usize>, color: bool, out: &mut impl Write) -> io::Result<()> {
        if self.is_json() {
            write_json(taken, out)?;
        } else {
            let style = Style { width, color, percent: false, provenance: false, verbose: false };
            write_text(taken, Depth(self.depth), &style, out)?;
        }
        out.flush()
    }
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
    let taken = match thread_dump::take_unless(jvm, showing.wanted(), interrupt).await {
        Ok(taken) => taken,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    match showing.write(&taken) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return fail(1, &format!("the result could not be written: {error}")),
    }
    if showing.output.is_some() {
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
