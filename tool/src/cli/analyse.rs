//! `headwater analyse`: the analyses that come with the tool.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use tokio::sync::mpsc::{Sender, channel};

use super::{complain, fail};
use crate::analyses::Analysis;
use crate::analyses::reliability::Reliability;
use crate::analyses::still::{Still, StillOptions};
use crate::request::duration;
use crate::traces::TraceEvent;
use crate::traces::recording::{self, End};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater watch shop --analysis 'headwater analyse still --for 30s'
  headwater watch --all --analysis 'headwater analyse reliability > paths.txt'
  headwater analyse still night.hwr";

/// Which, and of what.
#[derive(Debug, Args)]
pub(super) struct AnalyseArgs {
    #[command(subcommand)]
    which: Which,
}

#[derive(Debug, Subcommand)]
enum Which {
    /// Threads whose stacks never move: which have not run, or run in one place all the time
    Still {
        /// What `headwater watch` recorded, or gives to programs; - is standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Tell of those that have not moved for so long
        #[arg(long = "for", value_name = "TIME", default_value = "10s", value_parser = duration)]
        after: Duration,
        /// Tell of those too that wait for work, or sleep
        #[arg(long)]
        idle: bool,
    },
    /// How likely a program is to do what it was never seen doing, by paths that are seen for the first time
    Reliability {
        /// What `headwater watch` recorded, or gives to programs; - is standard input
        #[arg(default_value = "-")]
        file: PathBuf,
        /// Say an estimate once in this time
        #[arg(long, value_name = "TIME", default_value = "10s", value_parser = duration)]
        every: Duration,
    },
}

pub(super) async fn run(arguments: &AnalyseArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let (mut analysis, file): (Box<dyn Analysis>, _) = match &arguments.which {
        Which::Still { file, after, idle } => {
            (Box::new(Still::new(StillOptions { after: *after, idle: *idle })), file.clone())
        }
        Which::Reliability { file, every } => (Box::new(Reliability::new(*every)), file.clone()),
    };
    match analyse(&mut *analysis, file, interrupt).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Unwritable(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Failure::Unwritable(error)) => fail(1, &format!("cannot write: {error}")),
        Err(Failure::Unreadable(message)) => fail(1, &message),
    }
}

enum Failure {
    Unwritable(io::Error),
    Unreadable(String),
}

async fn analyse(
    analysis: &mut dyn Analysis,
    file: PathBuf,
    interrupt: impl Future<Output = ()>,
) -> Result<(), Failure> {
    let (sender, mut events) = channel(64);
    let mut reading = tokio::task::spawn_blocking(move || read(&file, &sender));
    let mut interrupt = std::pin::pin!(interrupt);
    loop {
        let event = tokio::select! {
            event = events.recv() => event,
            // What was seen up to now is what there is.
            () = interrupt.as_mut() => return say(analysis.end()),
        };
        let Some(event) = event else { break };
        say(analysis.next(&event))?;
    }
    let read = (&mut reading).await.unwrap_or_else(|error| Err(error.to_string()));
    say(analysis.end())?;
    match read {
        Ok(End::Whole) => Ok(()),
        Ok(End::Cut) => {
            complain("the last record is cut, and left out");
            Ok(())
        }
        Err(message) => Err(Failure::Unreadable(message)),
    }
}

fn say(lines: Vec<String>) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let written = lines.iter().try_for_each(|line| writeln!(out, "{line}")).and_then(|()| out.flush());
    written.map_err(Failure::Unwritable)
}

fn read(file: &Path, events: &Sender<TraceEvent>) -> Result<End, String> {
    if file == Path::new("-") {
        return send("standard input", &mut io::stdin().lock(), events);
    }
    let name = file.display().to_string();
    let opened = File::open(file).map_err(|error| format!("cannot open {name}: {error}"))?;
    send(&name, &mut BufReader::with_capacity(1 << 16, opened), events)
}

fn send(name: &str, input: &mut impl BufRead, events: &Sender<TraceEvent>) -> Result<End, String> {
    // Nobody listens any more when it was interrupted.
    let each = |event| drop(events.blocking_send(event));
    recording::read(input, each).map_err(|error| format!("cannot read {name}: {error}"))
}
