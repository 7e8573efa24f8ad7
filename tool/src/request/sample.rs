//! What is wanted of samples of all threads, on the command line and in a session.

use std::time::Duration;

use clap::Args;
use headwater_jfr::Lines;

use super::output::Output;
use super::values::{duration, sample_period};
use crate::sampling::{Classes, SampleOptions, Waits};
use crate::whole_jvm::Recorder;

/// How long and how often threads are looked at, what is told apart, and where it goes.
#[derive(Clone, Debug, Args)]
pub struct Sampling {
    /// For how long; Ctrl-C ends it before
    #[arg(short, long, value_name = "TIME", default_value = "10s", value_parser = duration)]
    duration: Duration,
    /// How often threads that run Java code are looked at, 1ms to 1s
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = sample_period)]
    every: Duration,
    /// Tell lines apart: each node is a line of a method
    #[arg(long)]
    lines: bool,
    /// Tell classes of what is allocated apart: a node of each below the method that allocates it, by the recorder's samples
    #[arg(long)]
    alloc: bool,
    /// Look at threads that wait
    #[arg(long, value_enum, default_value_t = Waits::On)]
    waits: Waits,
    /// Use the JVM's flight recorder; in a JVM up to 22 its first start discards compiled code
    #[arg(long, value_enum, default_value_t = Recorder::On)]
    recorder: Recorder,
    #[command(flatten)]
    output: Output,
}

impl Sampling {
    /// What the JVM is asked for.
    pub(crate) fn wanted(&self, live: Option<Duration>) -> SampleOptions {
        SampleOptions {
            duration: self.duration,
            every: self.every,
            lines: if self.lines { Lines::Known } else { Lines::Unknown },
            classes: if self.alloc { Classes::Apart } else { Classes::Together },
            recorder: self.recorder,
            waits: self.waits,
            live,
        }
    }

    /// The report.
    pub(crate) fn output(&self) -> &Output {
        &self.output
    }
}
