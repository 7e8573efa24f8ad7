//! `headwater watch`: stack traces of many JVMs.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::top::glyphs;
use super::{complain, fail};
use crate::jvm::{self, Jvm};
use crate::request::duration;
use crate::request::output::{Output, parent_exists, wants_color};
use crate::request::values::live_period;
use crate::top::search::Query;
use crate::top::view::Palette;
use crate::traces::recording;
use crate::watch::collector::{JvmSelector, Pace};
use crate::watch::source::Here;
use crate::watch::view::View;
use crate::watch::{self, Ending, Plan, Shape};

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater watch --all
  headwater watch shop billing 4711 --every 5s
  headwater watch --all --find Order.save
  headwater watch --all -d 10m -o night.hwr; headwater report night.hwr --view flat
  headwater watch shop -d 1m -o calls.svg
  headwater watch shop --analysis 'headwater analyse still' --analysis './mine.py > mine.txt'

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 5 all targets ended before anything was seen,
130 Ctrl-C before anything was seen.";

/// Which JVMs, and where it goes.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Pids, or parts of main classes or jar names: all JVMs that are called so, also those that come later
    #[arg(value_name = "TARGET", required_unless_present = "all")]
    targets: Vec<String>,
    /// All JVMs
    #[arg(long, conflicts_with = "targets")]
    all: bool,
    /// How often each is asked, 100ms or more; one that is slow to answer is asked less often
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = live_period)]
    every: Duration,
    /// An answer that takes longer is told of
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    deadline: Duration,
    /// End after this time [default: when all targets have ended, or at Ctrl-C]
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    /// Show the threads that have this in a frame of their stacks: Order.save
    #[arg(long, value_name = "TEXT")]
    find: Option<String>,
    /// Lines to be read, or one JSON object a line [default: the whole screen, if standard output is a terminal, else lines]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Record everything (.hwr), or write the call graph of what was seen (.dot, .svg), or it as a profile in another format
    /// (.html, .hw, .collapsed, ...) when it is over. May be repeated
    #[arg(short, long, value_name = "FILE")]
    output: Vec<PathBuf>,
    /// A program that gets what is seen, one JSON object a line, on its standard input; a shell runs it. May be repeated
    #[arg(long, value_name = "CMD")]
    analysis: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(super) async fn run(arguments: &WatchArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let plan = match plan(arguments) {
        Ok(plan) => plan,
        Err((code, message)) => return fail(code, &message),
    };
    match watch::run(plan, Arc::new(Here), interrupt, &complain).await {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::Failed) => ExitCode::from(1),
        Ok(Ending::Nothing) => fail(130, "interrupted before anything was seen"),
        Ok(Ending::Gone) => fail(5, "all targets ended before anything was seen of them"),
        Err(error) => fail(1, &error),
    }
}

fn plan(arguments: &WatchArgs) -> Result<Plan, (u8, String)> {
    let WatchArgs { every, deadline, duration, output, analysis, .. } = arguments;
    if arguments.find.is_some() && arguments.format == Some(Format::Json) {
        return Err((2, "--find is for lines to be read: JSON has all stacks".to_owned()));
    }
    let (mut recordings, mut profiles) = (Vec::new(), Vec::new());
    for path in output {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(recording::EXTENSION) => {
                parent_exists(path).map_err(|error| (2, error))?;
                recordings.push(path.clone());
            }
            None => {
                return Err((2, format!("{}: a recording's name ends in .{}", path.display(), recording::EXTENSION)));
            }
            Some("svg" | "dot" | "gv") => profiles.push(Output::call_graph(path.clone())),
            Some(_) => profiles.push(Output::to_file(path.clone())),
        }
    }
    for output in &profiles {
        output.check().map_err(|error| (2, error))?;
    }
    Ok(Plan {
        wanted: wanted(arguments)?,
        pace: Pace { every: *every, deadline: *deadline, look: Duration::from_secs(1) },
        duration: *duration,
        shape: shape(arguments),
        recordings,
        profiles,
        analyses: analysis.clone(),
    })
}

fn shape(arguments: &WatchArgs) -> Shape {
    let query = arguments.find.as_deref().map(Query::new);
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    match arguments.format {
        Some(Format::Json) => Shape::Json,
        None if is_terminal => {
            let palette = if wants_color() { Palette::Color } else { Palette::Monochrome };
            let glyphs = glyphs(&|name| std::env::var(name).ok());
            Shape::View(Box::new(View::new(query.unwrap_or_default(), glyphs, palette)))
        }
        _ => Shape::Text(query),
    }
}

fn wanted(arguments: &WatchArgs) -> Result<JvmSelector, (u8, String)> {
    let mut wanted = JvmSelector { all: arguments.all, ..JvmSelector::default() };
    let mut running: Option<Vec<Jvm>> = None;
    for target in &arguments.targets {
        if target.bytes().all(|byte| byte.is_ascii_digit()) {
            let jvm = jvm::resolve(target).map_err(|error| (error.exit_code(), error.to_string()))?;
            if !wanted.jvms.contains(&jvm) {
                wanted.jvms.push(jvm);
            }
            continue;
        }
        if !running.get_or_insert_with(jvm::list).iter().any(|jvm| jvm.is_called(target)) {
            complain(&format!("no running JVM has `{target}` in its name yet: it is waited for"));
        }
        wanted.names.push(target.clone());
    }
    Ok(wanted)
}
