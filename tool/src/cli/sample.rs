//! `headwater sample`: where the time and the memory of a whole JVM go.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use headwater_jfr::Lines;

use super::{complain, fail, record_whole, say_price};
use crate::request::duration;
use crate::request::output::{Meanwhile, Output};
use crate::request::values::sample_period;
use crate::sampling::{self, Classes, Heard, Waits, Wanted};
use crate::whole_jvm::Recorder;

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater sample 4711
  headwater sample shop.jar -d 30s --metric wall,cpu,blocked,socket
  headwater sample shop.jar --lines --view flat
  headwater sample shop.jar --alloc --metric allocated --view flat
  headwater sample shop.jar -d 1h --live=10s
  headwater sample shop.jar -d 1m -o shop.html
  headwater sample shop.jar -o before.hw; headwater sample shop.jar -o after.hw; headwater diff before.hw after.hw

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 5 the target ended first (what was sampled is shown).";

/// Which JVM, for how long, and what is shown.
#[derive(Debug, Args)]
pub(super) struct SampleArgs {
    /// A pid, or a unique part of the main class or jar name
    target: String,
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
    meanwhile: Meanwhile,
    #[command(flatten)]
    output: Output,
}

impl SampleArgs {
    fn wanted(&self) -> Wanted {
        Wanted {
            duration: self.duration,
            every: self.every,
            lines: if self.lines { Lines::Known } else { Lines::Unknown },
            classes: if self.alloc { Classes::Apart } else { Classes::Together },
            recorder: self.recorder,
            waits: self.waits,
            live: self.meanwhile.live,
        }
    }
}

pub(super) async fn run(arguments: &SampleArgs, interrupt: impl Future<Output = ()>) -> ExitCode {
    let output = arguments.output.clone();
    let time = humantime::format_duration(arguments.duration).to_string();
    let tell = move |heard| match heard {
        Heard::Begun => complain(&format!("sampling all threads for {time} (Ctrl-C ends it)")),
        Heard::SoFar(profile) => {
            if let Err(error) = output.write_so_far(&profile) {
                complain(&format!("the samples could not be written: {error}"));
            }
        }
    };
    let take = async |jvm| {
        say_price(&jvm, arguments.recorder);
        let taken = sampling::take(jvm, arguments.wanted(), tell, interrupt).await;
        taken.map_err(|error| (error.exit_code(), error.to_string()))
    };
    let written = record_whole(&arguments.target, &arguments.output, take).await;
    written.unwrap_or_else(|error| fail(1, &format!("the samples could not be written: {error}")))
}
