//! `headwater watch`: stack traces of many JVMs.

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::top::glyphs;
use super::{complain, fail};
use crate::request::output::wants_color;
use crate::top::search::Query;
use crate::top::view::Palette;
use crate::watch::collector::JvmSelector;
use crate::watch::source::Here;
use crate::watch::view::View;
use crate::watch::watching::{Watching, selected};
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
    #[command(flatten)]
    watching: Watching,
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
        Ok(Ending::Gone) => fail(5, watch::GONE),
        Err(error) => fail(1, &error),
    }
}

fn plan(arguments: &WatchArgs) -> Result<Plan, (u8, String)> {
    let WatchArgs { targets, all, watching } = arguments;
    watching.check().map_err(|message| (2, message))?;
    let selected = selected(targets, &complain).map_err(|error| (error.exit_code(), error.to_string()))?;
    Ok(watching.plan(JvmSelector { all: *all, ..selected }, watching.shape(screen)))
}

/// The whole screen, if there is one.
fn screen(query: Query) -> Option<Shape> {
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    is_terminal.then(|| {
        let palette = if wants_color() { Palette::Color } else { Palette::Monochrome };
        let glyphs = glyphs(&|name| std::env::var(name).ok());
        Shape::View(Box::new(View::new(query, glyphs, palette)))
    })
}
