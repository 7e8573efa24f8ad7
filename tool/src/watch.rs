//! Many JVMs at once: stack traces at an interval, shown, recorded, and given to programs.
//!
//! The [`collector`] asks each JVM in a task of its own and sends what it hears to [`run`], which hands it on: to standard output,
//! to recordings, to each [`analysis`]. None of them holds up another ([`outlet`](crate::outlet)).
//!
//! Why so: docs/decisions/watch.md.

use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use rustc_hash::FxHashSet;
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, channel, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use crate::outlet::{Closed, Given, Lines, Outlet, Weight};
use crate::profile::Environment;
use crate::report::units::plural;
use crate::request::output::{Origin, Output};
use crate::top::search::Query;
use crate::traces::recording::Writer;
use crate::traces::seen::Seen;
use crate::traces::{Disconnected, Process, Reason, Said, Schema, TraceEvent};

mod analysis;
pub(crate) mod collector;
mod lines;
mod screen;
pub(crate) mod source;
mod traces;
pub(crate) mod view;
pub(crate) mod watching;

use analysis::{Analysis, Heard, ended};
use collector::{Collector, JvmSelector, News, Pace, now_ms};
use lines::TextLines;
use screen::Screen;
use source::Source;
use view::View;

/// How long analyses may take to end when nothing more comes, unless they are interrupted.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// How long those may take that are ended.
const KILLED: Duration = Duration::from_secs(2);
/// How long a recording may take to be finished, and standard output to be read.
const LAST_WRITES: Duration = Duration::from_secs(10);
const LAST_LINES: Duration = Duration::from_secs(1);

/// What is done.
pub(crate) struct Plan {
    /// Which JVMs.
    pub(crate) wanted: JvmSelector,
    /// How often they are asked.
    pub(crate) pace: Pace,
    /// It ends after this time.
    pub(crate) duration: Option<Duration>,
    /// How it is shown.
    pub(crate) shape: Shape,
    /// Files that record everything.
    pub(crate) recordings: Vec<PathBuf>,
    /// What is written at the end of all that was seen.
    pub(crate) profiles: Vec<Output>,
    /// Commands of analyses.
    pub(crate) analyses: Vec<String>,
}

/// How what happens is shown.
#[derive(Debug)]
pub(crate) enum Shape {
    /// On the whole screen.
    View(Box<View>),
    /// Lines to be read; of threads that are in certain methods only, if they are given.
    Text(Option<Query>),
    /// All events, one object a line.
    Json,
}

/// What is said of a watch whose end was [`Ending::Gone`].
pub(crate) const GONE: &str = "all targets ended before anything was seen of them";

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// As it should.
    Done,
    /// It was interrupted before anything was seen.
    Nothing,
    /// All that was to be watched was gone before anything was seen.
    Gone,
    /// Something could not be written.
    Failed,
}

/// Watches until all have ended, the time is over, or `interrupt` is ready. `say` is told what is to be said on standard error.
///
/// # Errors
///
/// If a recording cannot be begun, an analysis not be started, or the terminal not be drawn on: a sentence.
pub(crate) async fn run(
    mut plan: Plan,
    source: Arc<dyn Source>,
    interrupt: impl Future<Output = ()>,
    say: &dyn Fn(&str),
) -> Result<Ending, String> {
    let (news, received) = channel(64);
    let (hearing, heard) = channel(64);
    let (quit, left) = unbounded_channel();
    let mut outputs = Outputs::begin(&mut plan, say)?;
    for command in &plan.analyses {
        let started = Analysis::start(command, outputs.analyses.len(), hearing.clone());
        outputs.analyses.push(started.map_err(|error| format!("the analysis `{command}` cannot be started: {error}"))?);
    }
    drop(hearing);
    if let Shown::Nowhere(view) = &mut outputs.shown
        && let Some(view) = view.take()
    {
        let screen = Screen::open(*view, quit).map_err(|error| format!("the terminal cannot be drawn on: {error}"))?;
        outputs.shown = Shown::Screen(screen);
    }
    let host = Environment::here(Duration::ZERO).host;
    let collector = Collector { source, wanted: plan.wanted, pace: plan.pace, host, news };
    let collecting = tokio::spawn(collector.run());
    let mut interrupt = std::pin::pin!(interrupt);
    let deadline = plan.duration.map(|duration| Instant::now() + duration);
    let mut watch = Watch { outputs, received, heard, left, seen: 0, connected: FxHashSet::default() };
    let why = watch.serve(interrupt.as_mut(), deadline).await;
    // Whatever it still asks is given up.
    collecting.abort();
    watch.finish(interrupt).await;
    Ok(match (watch.outputs.has_failed, watch.seen, why) {
        (true, ..) => Ending::Failed,
        (false, 0, Why::Interrupted) => Ending::Nothing,
        (false, 0, Why::Over) => Ending::Gone,
        _ => Ending::Done,
    })
}

/// Why no more is asked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Interrupted,
    /// All have ended.
    Over,
    /// The time is over, or standard output is closed.
    Enough,
}

struct Watch<'a> {
    outputs: Outputs<'a>,
    received: Receiver<News>,
    heard: Receiver<Heard>,
    /// The user has left the view.
    left: UnboundedReceiver<()>,
    /// How many traces.
    seen: u64,
    connected: FxHashSet<Process>,
}

impl Watch<'_> {
    async fn serve(&mut self, mut interrupt: Pin<&mut impl Future<Output = ()>>, deadline: Option<Instant>) -> Why {
        let over = deadline.unwrap_or_else(Instant::now);
        loop {
            tokio::select! {
                () = interrupt.as_mut() => return Why::Interrupted,
                _ = self.left.recv(), if self.outputs.has_screen() => return Why::Interrupted,
                () = sleep_until(over), if deadline.is_some() => return Why::Enough,
                heard = self.heard.recv(), if self.outputs.has_analyses() => {
                    if let Some(heard) = heard {
                        self.outputs.hear(heard);
                    }
                }
                news = self.received.recv() => match news {
                    Some(News::TraceEvent(event)) => self.event(event),
                    Some(News::Skipped { process, main, why }) => {
                        self.outputs.skip(process, &main, &why);
                    }
                    Some(News::Remark(remark)) => self.outputs.say(&remark),
                    Some(News::Over) | None => return Why::Over,
                },
            }
            if self.outputs.is_left() {
                return Why::Enough;
            }
        }
    }

    fn event(&mut self, event: TraceEvent) {
        match (&event, event.process()) {
            (TraceEvent::Connected(_), Some(process)) => drop(self.connected.insert(process)),
            (TraceEvent::Disconnected(_), Some(process)) => drop(self.connected.remove(&process)),
            (TraceEvent::Trace(_), _) => self.seen += 1,
            _ => {}
        }
        self.outputs.tell(&event);
    }

    /// Has everything written, and all analyses ended.
    async fn finish(&mut self, mut interrupt: Pin<&mut impl Future<Output = ()>>) {
        // What is said from here on belongs behind it.
        self.outputs.leave_screen();
        let mut left: Vec<Process> = self.connected.drain().collect();
        left.sort_unstable();
        for Process { host, pid } in left {
            let event = Disconnected { schema: Schema, time_ms: now_ms(), host, pid, reason: Reason::Left };
            self.outputs.tell(&TraceEvent::Disconnected(event));
        }
        self.outputs.analyses.iter().for_each(Analysis::close);
        let enough = Instant::now() + LAST_WORDS;
        while self.outputs.has_analyses() {
            tokio::select! {
                heard = self.heard.recv() => match heard {
                    Some(heard) => self.outputs.hear_last(heard),
                    None => break,
                },
                () = interrupt.as_mut() => break,
                () = sleep_until(enough) => break,
            }
        }
        self.outputs.kill_analyses();
        let enough = Instant::now() + KILLED;
        while self.outputs.has_analyses() {
            match tokio::time::timeout_at(enough, self.heard.recv()).await {
                Ok(Some(heard)) => self.outputs.hear_last(heard),
                _ => break,
            }
        }
        self.outputs.finish();
    }
}

/// Everything that is told what happens.
struct Outputs<'a> {
    shown: Shown,
    recordings: Vec<(PathBuf, Outlet)>,
    profiles: Vec<Output>,
    /// What they are made of, if there are any.
    gathered: Seen,
    analyses: Vec<Analysis>,
    has_failed: bool,
    say: &'a dyn Fn(&str),
}

/// Where what happens is shown.
enum Shown {
    /// Before all else has begun, and when the screen has been left; the view that is to be on it.
    Nowhere(Option<Box<View>>),
    Screen(Screen),
    Text(TextLines, Outlet),
    Json(Outlet),
}

impl Shown {
    fn outlet(&self) -> Option<&Outlet> {
        match self {
            Shown::Text(_, outlet) | Shown::Json(outlet) => Some(outlet),
            _ => None,
        }
    }
}

impl<'a> Outputs<'a> {
    fn begin(plan: &mut Plan, say: &'a dyn Fn(&str)) -> Result<Outputs<'a>, String> {
        let thread = |error: io::Error| format!("cannot start: {error}");
        let stdout = || Outlet::to(Lines(io::stdout())).map_err(thread);
        let shown = match std::mem::replace(&mut plan.shape, Shape::Json) {
            Shape::View(view) => Shown::Nowhere(Some(view)),
            Shape::Text(find) => Shown::Text(TextLines::new(find), stdout()?),
            Shape::Json => Shown::Json(stdout()?),
        };
        let record = |path: &PathBuf| -> Result<(PathBuf, Outlet), String> {
            let writer = Writer::create(path)
                .map_err(|error| format!("the recording {} cannot be begun: {error}", path.display()))?;
            Ok((path.clone(), Outlet::to(writer).map_err(thread)?))
        };
        Ok(Outputs {
            shown,
            recordings: plan.recordings.iter().map(record).collect::<Result<_, _>>()?,
            profiles: plan.profiles.clone(),
            gathered: Seen::default(),
            analyses: Vec::new(),
            has_failed: false,
            say,
        })
    }

    fn say(&self, text: &str) {
        match &self.shown {
            Shown::Screen(screen) => screen.change(|view| view.say(text)),
            _ => (self.say)(text),
        }
    }

    fn skip(&self, process: Process, main: &str, why: &str) {
        match &self.shown {
            Shown::Screen(screen) => screen.change(|view| view.skip(process, main, why)),
            _ => (self.say)(&format!("the JVM {} ({main}) is not watched: {why}", process.pid)),
        }
    }

    fn leave_screen(&mut self) {
        if self.has_screen()
            && let Shown::Screen(screen) = std::mem::replace(&mut self.shown, Shown::Nowhere(None))
        {
            screen.close();
        }
    }

    fn has_screen(&self) -> bool {
        matches!(self.shown, Shown::Screen(_))
    }

    fn has_analyses(&self) -> bool {
        self.analyses.iter().any(|analysis| !analysis.has_ended)
    }

    /// Whether who reads standard output has seen enough, and nobody else wants anything.
    fn is_left(&self) -> bool {
        self.shown.outlet().is_some_and(Outlet::is_broken)
            && self.recordings.is_empty()
            && self.profiles.is_empty()
            && !self.has_analyses()
    }

    fn tell(&mut self, event: &TraceEvent) {
        let weight = if matches!(event, TraceEvent::Trace(_)) { Weight::Passing } else { Weight::Needed };
        let json: Arc<str> = event.line().into();
        // What is said is not given to those who say it.
        if !matches!(event, TraceEvent::Said(_)) {
            let give = |analysis: &mut Analysis| analysis.give(Arc::clone(&json), weight);
            let said: Vec<String> = self.analyses.iter_mut().filter_map(give).collect();
            said.iter().for_each(|said| self.say(said));
        }
        let mut said = Vec::new();
        for (path, outlet) in &self.recordings {
            match outlet.give(Arc::clone(&json), weight) {
                Given::LeftOut { is_first: true } => {
                    said.push(format!("the recording {} cannot keep up: traces are left out of it", path.display()));
                }
                Given::Broken if !self.has_failed => {
                    self.has_failed = true;
                    said.push(format!("the recording {} has ended: it cannot be written", path.display()));
                }
                _ => {}
            }
        }
        said.iter().for_each(|said| self.say(said));
        if !self.profiles.is_empty() {
            self.gathered.add(event);
        }
        let lines: Vec<Arc<str>> = match &mut self.shown {
            Shown::Json(_) => vec![json],
            Shown::Text(lines, _) => lines.of(event).into_iter().map(Into::into).collect(),
            Shown::Screen(screen) => {
                screen.change(|view| view.hear(event));
                Vec::new()
            }
            // Of what is said at the end when there is no screen any more, nothing may be lost.
            Shown::Nowhere(_) => match event {
                TraceEvent::Said(said) => vec![format!("[{}] {}", said.analysis, said.line).into()],
                _ => Vec::new(),
            },
        };
        for line in lines {
            let Some(outlet) = self.shown.outlet() else {
                self.say(&line);
                continue;
            };
            if outlet.give(line, weight) == (Given::LeftOut { is_first: true }) {
                self.say("standard output is not read: lines are left out");
            }
        }
    }

    fn hear(&mut self, heard: Heard) {
        if let Heard::Ended { analysis, status } = &heard {
            let command = &self.analyses[*analysis].command;
            self.say(&format!("the analysis `{command}` has ended ({}), and is given nothing more", ended(status)));
        }
        self.hear_last(heard);
    }

    /// The same when it is no wonder that it has ended.
    fn hear_last(&mut self, heard: Heard) {
        match heard {
            Heard::Said { analysis, line } => {
                let analysis = self.analyses[analysis].command.clone();
                self.tell(&TraceEvent::Said(Said { schema: Schema, time_ms: now_ms(), analysis, line }));
            }
            Heard::Ended { analysis, .. } => self.analyses[analysis].has_ended = true,
        }
    }

    fn write_profiles(&mut self) {
        // Without a trace there is nothing that a file should be replaced by.
        if self.profiles.is_empty() || self.gathered.is_empty() {
            return;
        }
        let profile = std::mem::take(&mut self.gathered).finish("all that was watched");
        for output in std::mem::take(&mut self.profiles) {
            if let Err(error) = output.write(&profile, Origin::Recording) {
                self.has_failed = true;
                self.say(&format!("what was seen could not be written: {error}"));
            }
        }
    }

    fn kill_analyses(&mut self) {
        let late: Vec<String> = self
            .analyses
            .iter_mut()
            .filter(|analysis| !analysis.has_ended)
            .map(|analysis| {
                analysis.kill();
                format!("the analysis `{}` did not end by itself, and was killed", analysis.command)
            })
            .collect();
        late.iter().for_each(|late| self.say(late));
    }

    fn finish(&mut self) {
        for analysis in self.analyses.iter().filter(|analysis| analysis.left_out > 0) {
            let traces = plural(analysis.left_out, "trace", "traces");
            self.say(&format!(
                "{traces} were not given to the analysis `{}`, which did not read them",
                analysis.command
            ));
        }
        for (path, outlet) in std::mem::take(&mut self.recordings) {
            let path = path.display();
            let failed = match outlet.finish(LAST_WRITES) {
                Closed::Done { left_out: 0 } => continue,
                Closed::Done { left_out } => {
                    self.say(&format!("{} are not in the recording {path}", plural(left_out, "trace", "traces")));
                    continue;
                }
                Closed::Failed(error) => format!("the recording {path} could not be written: {error}"),
                Closed::Stuck => format!("the recording {path} could not be written to its end in time"),
            };
            self.has_failed = true;
            self.say(&failed);
        }
        self.write_profiles();
        match self.shown.outlet().map(|outlet| outlet.finish(LAST_LINES)) {
            // Who reads it has seen enough, or stands still.
            None | Some(Closed::Done { .. } | Closed::Stuck) => {}
            Some(Closed::Failed(error)) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Some(Closed::Failed(error)) => {
                self.has_failed = true;
                self.say(&format!("cannot write: {error}"));
            }
        }
    }
}
