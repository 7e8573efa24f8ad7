//! What is wanted of all threads, on the command line and in a session.

use std::io;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::destination::{Destination, Shape};
use super::values::duration;
use crate::thread_dump::{DumpOptions, Owners};
use crate::threads::Taken;
use crate::threads::report::json::write_json;
use crate::threads::report::page::write_page;
use crate::threads::report::{Depth, write_text};

/// What is found out about threads, and where it goes: for `threads` on the command line and `thread-dump` in a session.
#[derive(Clone, Debug, Args)]
pub struct Showing {
    /// Measure CPU times for so long before the dump; 0: not at all
    #[arg(long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    window: Duration,
    /// Find owners of java.util.concurrent locks, for which the JVM is stopped while it looks through its heap
    #[arg(long, value_enum, default_value_t = OwnersChoice::Auto)]
    owners: OwnersChoice,
    /// Show at most so many frames of a stack; as text
    #[arg(long, value_name = "N")]
    depth: Option<usize>,
    #[command(flatten)]
    destination: Destination,
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

impl Showing {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.destination.check_with_page()
    }

    /// What the JVM is asked for.
    pub(crate) fn wanted(&self) -> DumpOptions {
        let owners = match self.owners {
            OwnersChoice::Auto => Owners::Auto,
            OwnersChoice::On => Owners::On,
            OwnersChoice::Off => Owners::Off,
        };
        DumpOptions { window: self.window, owners }
    }

    /// Whether they go to a file.
    pub(crate) fn is_to_file(&self) -> bool {
        self.destination.is_file()
    }

    /// Writes them.
    pub(crate) fn write(&self, taken: &Taken) -> io::Result<()> {
        self.destination.write(&mut |shape, mut out| match shape {
            _ if self.destination.is_page() => write_page(taken, &mut out),
            Shape::Json => write_json(taken, &mut out),
            Shape::Text(style) => write_text(taken, Depth(self.depth), &style, &mut out),
        })
    }
}
