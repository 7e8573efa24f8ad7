//! How JVMs are watched, and where that goes, on the command line and in a session.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::collector::{JvmSelector, Pace};
use super::{Plan, Shape};
use crate::jvm::{self, Jvm, TargetError};
use crate::request::duration;
use crate::request::output::{Output, parent_exists};
use crate::request::values::live_period;
use crate::top::search::Query;
use crate::traces::recording;

/// How often JVMs are asked, for how long, and what becomes of it: for `watch` on the command line and in a session.
#[derive(Clone, Debug, Args)]
pub struct Watching {
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
    /// Lines to be read, or one JSON object a line [default: the whole screen where a command line has one, else lines]
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

impl Watching {
    /// Finds out before the work what would be found out after it.
    ///
    /// # Errors
    ///
    /// A sentence about what cannot be had.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.find.is_some() && self.format == Some(Format::Json) {
            return Err("--find is for lines to be read: JSON has all stacks".to_owned());
        }
        self.recordings().iter().try_for_each(|path| parent_exists(path))?;
        if let Some(path) = self.output.iter().find(|path| extension(path).is_none()) {
            return Err(format!("{}: a recording's name ends in .{}", path.display(), recording::EXTENSION));
        }
        self.profiles().iter().try_for_each(Output::check)
    }

    /// Whether it ends although nobody interrupts it and its JVMs go on.
    pub(crate) fn ends(&self) -> bool {
        self.duration.is_some()
    }

    /// What is to be done with these JVMs.
    pub(crate) fn plan(&self, wanted: JvmSelector, shape: Shape) -> Plan {
        Plan {
            wanted,
            pace: Pace { every: self.every, deadline: self.deadline, look: Duration::from_secs(1) },
            duration: self.duration,
            shape,
            recordings: self.recordings(),
            profiles: self.profiles(),
            analyses: self.analysis.clone(),
        }
    }

    /// As lines, if they are asked for or `otherwise` is none.
    pub(crate) fn shape(&self, otherwise: impl FnOnce(Query) -> Option<Shape>) -> Shape {
        let query = self.find.as_deref().map(Query::new);
        match self.format {
            Some(Format::Json) => Shape::Json,
            Some(Format::Text) => Shape::Text(query),
            None => otherwise(query.clone().unwrap_or_default()).unwrap_or(Shape::Text(query)),
        }
    }

    fn recordings(&self) -> Vec<PathBuf> {
        self.output.iter().filter(|path| extension(path) == Some(recording::EXTENSION)).cloned().collect()
    }

    fn profiles(&self) -> Vec<Output> {
        let written = self.output.iter().filter_map(|path| match extension(path)? {
            recording::EXTENSION => None,
            "svg" | "dot" | "gv" => Some(Output::call_graph(path.clone())),
            _ => Some(Output::to_file(path.clone())),
        });
        written.collect()
    }
}

fn extension(path: &Path) -> Option<&str> {
    path.extension().and_then(|extension| extension.to_str())
}

/// The JVMs of these pids, and those that have these names, now or later; `say` is told which have none yet.
///
/// # Errors
///
/// If there is no such process, or it is nobody's to watch.
pub(crate) fn selected(targets: &[String], say: &dyn Fn(&str)) -> Result<JvmSelector, TargetError> {
    let mut wanted = JvmSelector::default();
    let mut running: Option<Vec<Jvm>> = None;
    for target in targets {
        if target.bytes().all(|byte| byte.is_ascii_digit()) {
            let jvm = jvm::resolve(target)?;
            if !wanted.jvms.contains(&jvm) {
                wanted.jvms.push(jvm);
            }
            continue;
        }
        if !running.get_or_insert_with(jvm::list).iter().any(|jvm| jvm.is_called(target)) {
            say(&format!("no running JVM has `{target}` in its name yet: it is waited for"));
        }
        wanted.names.push(target.clone());
    }
    Ok(wanted)
}
