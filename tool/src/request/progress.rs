//! What goes on, on standard error: milestones always, and on a terminal a line that is replaced as it goes on.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::printable::{printable, printable_lines};
use crate::profiling::{InstrumentedRoot, Stage};
use crate::report::units::{count, plural, time};
use crate::session::{Estimate, Spent};

/// How much is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shown {
    /// What a log should have.
    Milestones,
    /// On a terminal: also the live line.
    Live,
}

/// How often a line shows that time passes.
const TICK: Duration = Duration::from_millis(250);

/// The line that is replaced as it goes on.
#[derive(Debug, Default)]
struct Line {
    /// What is waited for, and since when; while that takes longer, the line says how long.
    waiting: Option<(String, Instant)>,
    /// Somebody shows how the time passes.
    ticks: bool,
}

/// The progress; clones show the same line.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    line: Arc<Mutex<Line>>,
    shown: Shown,
    /// What a sentence begins with, so that it is known in a log who says it.
    prefix: &'static str,
}

impl Progress {
    pub(crate) fn new(shown: Shown) -> Progress {
        Progress { line: Arc::default(), shown, prefix: "headwater: " }
    }

    /// At a prompt, where it is clear who speaks.
    pub(crate) fn at_prompt() -> Progress {
        let shown = if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones };
        Progress { line: Arc::default(), shown, prefix: "" }
    }

    /// Says something once.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        // A standard error that went away is no reason to stop.
        let _ = writeln!(io::stderr(), "{}{}", self.prefix, printable_lines(text));
    }

    /// Shows a stage.
    pub(crate) fn show(&self, stage: Stage) {
        match stage {
            Stage::Attaching => self.wait("attaching ..."),
            Stage::Note(note) => self.say(&note),
            Stage::Preparing => self.wait("timing the probes and reading the classes ..."),
            Stage::Estimated(estimate, compiling) => self.say(&estimated(&estimate, compiling)),
            Stage::RootsInstrumented(roots) => {
                for root in roots {
                    self.say(&matched("root", &root));
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
            Stage::Detaching => self.wait("giving the original code back ..."),
            // The report itself is shown, not that it was made.
            Stage::SoFar(_) => {}
            // Told to who wants to know everything.
            Stage::Attached(_) => {}
            Stage::Detached(_) => self.live("detached"),
        }
    }

    /// Whether there is a line that is replaced.
    pub(crate) fn is_live(&self) -> bool {
        self.shown == Shown::Live
    }

    /// Replaces the live line.
    pub(crate) fn live(&self, text: &str) {
        self.replace(text, None);
    }

    /// The same for what may take a while, of which nothing is heard meanwhile: it is seen that time passes.
    fn wait(&self, text: &str) {
        self.replace(text, Some((text.to_owned(), Instant::now())));
    }

    fn replace(&self, text: &str, waiting: Option<(String, Instant)>) {
        if !self.is_live() {
            return;
        }
        let mut line = self.line.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = write_line(text);
        line.waiting = waiting;
        if line.waiting.is_some() && !line.ticks {
            let shared = Arc::downgrade(&self.line);
            // Without such a thread the line stands still.
            line.ticks = std::thread::Builder::new().name("progress".into()).spawn(move || tick(&shared)).is_ok();
        }
    }

    /// Removes the live line.
    pub(crate) fn clear(&self) {
        self.live("");
    }
}

fn write_line(text: &str) -> io::Result<()> {
    let mut out = io::stderr().lock();
    write!(out, "\r\x1b[K{}", printable(text)).and_then(|()| out.flush())
}

/// Shows how long is waited, as long as there is anything to wait for.
fn tick(shared: &Weak<Mutex<Line>>) {
    loop {
        std::thread::sleep(TICK);
        let Some(line) = shared.upgrade() else { return };
        let mut line = line.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((text, since)) = &line.waiting else {
            line.ticks = false;
            return;
        };
        let _ = write_line(&format!("{text} {:.1} s", since.elapsed().as_secs_f64()));
    }
}

/// To the millisecond.
fn span(time: Duration) -> humantime::FormattedDuration {
    humantime::format_duration(Duration::from_millis(time.as_millis() as u64))
}

/// `compiling` is what compilers have had of the processors so far, if they may want that again.
fn estimated(estimate: &Estimate, compiling: Option<Duration>) -> String {
    const WORTH_SAYING: Duration = Duration::from_secs(1);
    let Estimate { loaded, classes, methods, batches, pause, allowed, at_once } = *estimate;
    let nanoseconds = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let whole = pause.saturating_mul(u32::try_from(batches).unwrap_or(u32::MAX));
    let pauses = match batches {
        _ if at_once.is_some() => format!("each pause is {} or more", time(nanoseconds(pause))),
        0 | 1 => format!("with a pause of {} or more", time(nanoseconds(pause))),
        _ => format!(
            "with {batches} pauses of {} or more, {} together",
            time(nanoseconds(pause)),
            time(nanoseconds(whole))
        ),
    };
    let rest = match (at_once, allowed.filter(|allowed| *allowed < whole)) {
        (Some(at_once), _) => format!(
            "{} now at most, the rest, and what is found, in the background, as compilers catch up with what is discarded",
            count(at_once as u64)
        ),
        (None, None) => "more as it is found".to_owned(),
        (None, Some(allowed)) => {
            format!("{} of pauses now, the rest, and what is found, in the background", time(nanoseconds(allowed)))
        }
    };
    let compiling = compiling.filter(|compiling| *compiling >= WORTH_SAYING).map(|compiling| {
        let compiling = time(nanoseconds(compiling));
        format!("; compilers have had {compiling} of the processors so far, and may want as much again now, and when it is over")
    });
    format!(
        "{} of {} loaded are to be changed, {} in them, {pauses}: {rest}{}",
        plural(classes as u64, "class", "classes"),
        count(loaded as u64),
        plural(methods as u64, "method", "methods"),
        compiling.unwrap_or_default(),
    )
}

/// Of what took time until the roots were instrumented, what took longer than a blink.
pub(crate) fn spent(spent: &[Spent]) -> String {
    const BLINK: Duration = Duration::from_millis(5);
    let parts = spent.iter().filter(|spent| spent.time >= BLINK).map(|Spent { on, times, time }| {
        let times = if *times == 1 { String::new() } else { format!(" ({times} times)") };
        format!("{on}{times} {}", span(*time))
    });
    format!("what took time until now: {}", parts.collect::<Vec<_>>().join(", "))
}

/// What a pattern came to, which was given for `what`.
pub(crate) fn matched(what: &str, root: &InstrumentedRoot) -> String {
    let InstrumentedRoot { pattern, found, inside } = root;
    if found.methods == 0 {
        return format!("{what} {pattern}: no such method is loaded yet; it will be instrumented when it is");
    }
    let state = match inside {
        0 => "waiting for entry".to_owned(),
        n => plural(*n as u64, "thread is in it already", "threads are in it already"),
    };
    format!(
        "{what} {pattern}: {} in {} instrumented, {state}",
        plural(found.methods as u64, "method", "methods"),
        plural(found.classes as u64, "matching class", "matching classes")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_anything_is_changed_it_is_said_what_that_takes() {
        let pause = Duration::from_millis(40);
        let estimate = Estimate {
            loaded: 12_300,
            classes: 677,
            methods: 1_894,
            batches: 3,
            pause,
            allowed: Some(3 * pause),
            at_once: None,
        };
        assert_eq!(
            estimated(&estimate, Some(Duration::from_millis(15_070))),
            "677 classes of 12,300 loaded are to be changed, 1,894 methods in them, with 3 pauses of 40.00 ms or more, 120.0 ms together: more as \
             it is found; compilers have had 15.07 s of the processors so far, and may want as much again now, and when it is over"
        );
        let large = Estimate { at_once: Some(26), ..estimate };
        assert_eq!(
            estimated(&large, None),
            "677 classes of 12,300 loaded are to be changed, 1,894 methods in them, each pause is 40.00 ms or more: 26 now at most, the rest, and what is \
             found, in the background, as compilers catch up with what is discarded"
        );
        let little = Estimate { batches: 1, ..estimate };
        assert_eq!(
            estimated(&little, Some(pause)),
            "677 classes of 12,300 loaded are to be changed, 1,894 methods in them, with a pause of 40.00 ms or more: more as it is found"
        );
    }
}
