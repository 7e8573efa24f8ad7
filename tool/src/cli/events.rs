//! `headwater events`: what happens in a JVM, as it happens.

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use headwater_protocol::message::events::{Kind, Kinds};

use super::{complain, fail, fail_at};
use crate::events::{self, Ending};
use crate::jvm;
use crate::outlet::Lines;
use crate::request::duration;
use crate::request::events::Destination;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater events 4711
  headwater events shop.jar --gc -d 1m
  headwater events shop.jar --classes --threads --format json | ./mine.py
  headwater events shop.jar --monitors -o waits.jsonl

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 5 the target ended before the time was over,
130 Ctrl-C before anything was told.";

/// Of which JVM, what, for how long, and where it goes.
#[derive(Debug, Args)]
pub(super) struct EventsArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
    /// Collections of garbage: when, why, how long, and how much of each pool was in use before and after
    #[arg(long)]
    gc: bool,
    /// Classes loaded, by whom and where, and unloaded
    #[arg(long)]
    classes: bool,
    /// Platform threads started and ended
    #[arg(long)]
    threads: bool,
    /// Waits for monitors: who, where, how long, and sometimes for whom
    #[arg(long)]
    monitors: bool,
    /// Methods compiled, and compiled code discarded
    #[arg(long)]
    compile: bool,
    /// For how long [default: until the target ends, or Ctrl-C]
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,
    #[command(flatten)]
    destination: Destination,
}

impl EventsArgs {
    /// What is named, or all.
    fn kinds(&self) -> Kinds {
        let named = [
            (self.gc, Kind::Gc),
            (self.classes, Kind::Classes),
            (self.threads, Kind::Threads),
            (self.monitors, Kind::Monitors),
            (self.compile, Kind::Compile),
        ];
        let kinds: Kinds = named.into_iter().filter(|(is_named, _)| *is_named).map(|(_, kind)| kind).collect();
        if kinds.is_empty() { Kinds::all() } else { kinds }
    }
}

pub(super) async fn run(arguments: &EventsArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let EventsArgs { target, duration, destination, .. } = arguments;
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = destination.check() {
        return fail(2, &error);
    }
    let teller = match destination.teller(jvm.pid, Box::new(Lines(io::stdout()))) {
        Ok(teller) => teller,
        Err(error) => return fail(1, &format!("the events cannot be written: {error}")),
    };
    match events::run(&jvm, arguments.kinds(), *duration, teller, &complain, interrupt).await {
        Ok(Ending::Done) => ExitCode::SUCCESS,
        Ok(Ending::TargetEnded) => fail(5, "the target ended before the time was over"),
        Ok(Ending::Failed) => ExitCode::FAILURE,
        Err(error) => fail_at(jvm.pid, error.exit_code(), &error.to_string()),
    }
}
