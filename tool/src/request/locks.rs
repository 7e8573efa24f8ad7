//! What is wanted of contended locks, on the command line and in a session.

use std::time::Duration;

use clap::{Args, ValueEnum};

use super::output::Output;
use super::values::duration;
use crate::locks::{DEPTH, LockOptions};
use crate::report::View;
use crate::thread_dump::Owners;

/// How long is recorded, what is left out, and where it goes.
#[derive(Clone, Debug, Args)]
pub struct Waiting {
    /// For how long; Ctrl-C ends it before
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// Leave out waits that are shorter; 0: none
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = duration)]
    over: Duration,
    /// Look who holds locks, again and again: at a safepoint, and of java.util.concurrent locks through the heap
    #[arg(long, value_enum, default_value_t = Held::Auto)]
    owners: Held,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Held {
    /// Monitors; java.util.concurrent locks where the heap is small
    Auto,
    /// All of them
    On,
    /// None, so that the JVM is never stopped for it
    Off,
}

impl Waiting {
    /// What the JVM is asked for.
    pub(crate) fn wanted(&self) -> LockOptions {
        let owners = match self.owners {
            Held::Auto => Owners::Auto,
            Held::On => Owners::On,
            Held::Off => Owners::Off,
        };
        LockOptions { duration: self.duration, over: self.over, owners, depth: DEPTH }
    }

    /// The report.
    pub(crate) fn output(&self) -> Output {
        self.output.clone().preferring(View::Locks)
    }
}
