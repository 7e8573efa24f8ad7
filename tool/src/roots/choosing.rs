//! How a JVM is looked at for methods to name, on the command line and in a session.

use std::io;
use std::time::Duration;

use clap::Args;

use super::held::By;
use super::{Found, Looking, show};
use crate::profiling::Stage;
use crate::request::destination::{Destination, Shape};
use crate::request::duration;
use crate::request::progress::Progress;
use crate::whole_jvm::Recorder;

/// How long is looked, for what, and where it goes: for `roots` on the command line and `candidates` in a session.
#[derive(Clone, Debug, Args)]
pub struct Choosing {
    /// Sample all threads for so long
    #[arg(short, long, value_name = "TIME", default_value = "5s", value_parser = duration)]
    duration: Duration,
    /// Then time the calls of some methods for so long, or up to five times as long where they are long
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = duration)]
    timing: Duration,
    /// What methods are to hold much of
    #[arg(long, value_enum, value_name = "WHAT", default_value_t = By::All)]
    by: By,
    /// Profile the first N exactly, for a second each, to say what that costs rather than what it is likely to
    #[arg(long = "try", value_name = "N", default_value_t = 0)]
    tried: usize,
    /// Use the JVM's flight recorder; in a JVM up to 22 its first start discards compiled code
    #[arg(long, value_enum, default_value_t = Recorder::On)]
    recorder: Recorder,
    #[command(flatten)]
    destination: Destination,
}

impl Choosing {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.destination.check()
    }

    /// What is looked for.
    pub(crate) fn looking(&self) -> Looking {
        let Choosing { duration, timing, by, tried, recorder, .. } = *self;
        Looking { sampling: duration, timing, by, tried, recorder }
    }

    /// Writes what was found.
    pub(crate) fn write(&self, found: &Found) -> io::Result<()> {
        self.destination.write(&mut |shape, out| match shape {
            Shape::Json => show::write_json(found, out),
            Shape::Text(_) => show::write_text(found, out),
        })
    }
}

/// How far it has come.
pub(crate) fn observe(stage: Stage, progress: &Progress) {
    match stage {
        // They are not the user's.
        Stage::RootsInstrumented(_) => {}
        other => progress.show(other),
    }
}
