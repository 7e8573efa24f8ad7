//! What goes on, on standard error: milestones always, and on a terminal a line that is replaced as it goes on.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crate::profiling::{InstrumentedRoot, Stage};
use crate::report::units::{count, plural, time};
use crate::session::Estimate;

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// What a log should have.
    Milestones,
    /// On a terminal: also the live line.
    Live,
}

/// The progress.
#[derive(Debug)]
pub(crate) struct Progress {
    shown: Shown,
    /// What a sentence begins with, so that it is known in a log who says it.
    prefix: &'static str,
}

impl Progress {
    pub(crate) fn new(shown: Shown) -> Progress {
        Progress { shown, prefix: "headwater: " }
    }

    /// At a prompt, where it is clear who speaks.
    pub(crate) fn at_prompt() -> Progress {
        let shown = if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones };
        Progress { shown, prefix: "" }
    }

    /// Says something once.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        // A standard error that went away is no reason to stop.
        let _ = writeln!(io::stderr(), "{}{text}", self.prefix);
    }

    /// Shows a stage.
    pub(crate) fn show(&self, stage: Stage) {
        match stage {
            Stage::Attaching => self.live("attaching ..."),
            Stage::Note(note) => self.say(&note),
            Stage::Preparing => self.live("timing the probes and reading the classes ..."),
            Stage::Estimated(estimate) => self.say(&estimated(&estimate)),
            Stage::RootsInstrumented(roots) => {
                for root in roots {
                    self.say(&matched(&root));
                }
            }
            Stage::Begins { undisturbed: Duration::ZERO, .. } => {}
            Stage::Begins { recording, undisturbed } => self.say(&format!(
                "recording for {}, then timing and sampling the root without probes, for {} at most",
                span(recording),
                span(undisturbed)
            )),
            Stage::Recording { root_calls: 0, events: 0, .. } => {
                self.live("waiting for entry into the root (Ctrl-C ends)")
            }
            Stage::Recording { root_calls, events, instrumented } => self.live(&format!(
                "{}, {}, {} instrumented (Ctrl-C ends and reports)",
                plural(root_calls, "root call", "root calls"),
                plural(events, "event", "events"),
                plural(instrumented as u64, "method", "methods")
            )),
            Stage::TimingRoots { limit } => self.say(&format!(
                "timing and sampling the root's calls without probes, for {} at most (Ctrl-C ends it)",
                span(limit)
            )),
            Stage::Detaching => self.live("giving the original code back ..."),
            // The report itself is shown, not that it was made.
            Stage::SoFar(_) => {}
            Stage::Detached(_) => self.live("detached"),
        }
    }

    /// Whether there is a line that is replaced.
    pub(super) fn is_live(&self) -> bool {
        self.shown == Shown::Live
    }

    /// Replaces the live line.
    pub(super) fn live(&self, text: &str) {
        if self.is_live() {
            let _ = write!(io::stderr(), "\r\x1b[K{text}").and_then(|()| io::stderr().flush());
        }
    }

    /// Removes the live line.
    pub(crate) fn clear(&self) {
        self.live("");
    }
}

/// To the millisecond.
fn span(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(time.as_millis() as u64))
}

fn estimated(estimate: &Estimate) -> String {
    let Estimate { loaded, classes, methods, pause } = *estimate;
    format!(
        "{} of {} loaded are to be changed first, {} in them, with pauses of about {}; more as it is found",
        plural(classes as u64, "class", "classes"),
        count(loaded as u64),
        plural(methods as u64, "method", "methods"),
        time(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX))
    )
}

fn matched(root: &InstrumentedRoot) -> String {
    let InstrumentedRoot { pattern, found, inside } = root;
    if found.methods == 0 {
        return format!("root {pattern}: no such method is loaded yet; it will be instrumented when it is");
    }
    let state = match inside {
        0 => "waiting for entry".to_owned(),
        n => plural(*n as u64, "thread is in it already", "threads are in it already"),
    };
    format!(
        "root {pattern}: {} in {} instrumented, {state}",
        plural(found.methods as u64, "method", "methods"),
        plural(found.classes as u64, "matching class", "matching classes")
    )
}
