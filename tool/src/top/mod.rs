//! `headwater top`: the profile on the whole screen while it is being recorded.
//!
//! [`view`] is the state and what keys do to it, pure like `draw`; `screen` is the terminal, in a thread of its own. What is
//! here keeps the conversation with the target going on a [`live`](crate::profiling::live) profile, hands new results to the view once
//! a period, and does what the user asks for.

use std::cell::Cell;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, sleep_until};

use crate::profile::Profile;
use crate::profiling::live::{Live, Switched};
use crate::profiling::{Ending, Observer, Outcome, Stage, TARGET_ENDED};
use crate::report::Options;
use crate::request::count::{Switch, counting_in_words, probing_in_words};
use crate::request::output::{Origin, Output};
use crate::session::SessionError;

pub mod column;
pub(crate) mod draw;
mod forest;
mod keys;
mod rows;
pub(crate) mod samples;
pub(crate) mod screen;
pub(crate) mod search;
mod status;
pub mod view;

use screen::{Input, Screen};
use view::{Phase, Request, View};

/// Between two pictures at least so many times as long passes as it took to get the results: large trees are shown less often.
const REST: u32 = 3;

/// What is shown of each result, and how often there is a new one.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// How often.
    pub(crate) period: Duration,
    /// Which threads.
    pub(crate) options: Options,
}

/// Shows a profile until the user has enough, or `interrupt` is ready. When it ends by itself its results stay on the screen until
/// then. `observer` is told what is done once the terminal is given back.
///
/// Fails when the terminal cannot be taken over; the profile is then given up. A terminal that goes away later ends the profile as
/// the user would.
pub(crate) async fn watch(
    live: Live,
    view: View,
    pace: Pace,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> io::Result<Outcome> {
    let mut interrupt = std::pin::pin!(interrupt);
    let (asking, requests) = unbounded_channel();
    let screen = match Screen::open(view, asking) {
        Ok(screen) => screen,
        Err(error) => {
            live.finish(Ok(Ending::Interrupted), std::future::pending(), observer).await;
            return Err(error);
        }
    };
    let deadline = live.settings().duration.map(|duration| Instant::now() + duration);
    let mut watched = Watched { live, screen: screen.inputs(), requests, pace, deadline, before: None };
    let recorded = watched.record(interrupt.as_mut()).await;
    let Watched { live, screen: told, mut requests, pace, .. } = watched;
    if let Ok(Ending::Interrupted) = recorded {
        screen.close();
        return Ok(live.finish(recorded, std::future::pending(), observer).await);
    }
    let tell = |input| drop(told.send(input));
    tell(Input::Phase(Phase::Ending("The profile has ended.".to_owned())));
    // Observers may be called from any thread, senders be used by one.
    let stages = std::sync::Mutex::new(told.clone());
    let has_left = Cell::new(false);
    let enough = async {
        leaves(&mut requests, interrupt.as_mut()).await;
        has_left.set(true);
    };
    let outcome = live.finish(recorded, enough, &|stage| tell_stage(&stages, &stage)).await;
    tell(Input::Results(narrowed(&pace.options, outcome.profile.clone()), None));
    tell(Input::Phase(Phase::Ended(ended(&outcome))));
    if !has_left.get() {
        leaves(&mut requests, interrupt).await;
    }
    screen.close();
    Ok(outcome)
}

/// The user leaves.
async fn leaves(requests: &mut UnboundedReceiver<Request>, mut interrupt: Pin<&mut impl Future<Output = ()>>) {
    loop {
        let request = tokio::select! {
            request = requests.recv() => request.unwrap_or(Request::Quit),
            () = interrupt.as_mut() => Request::Quit,
        };
        if let Request::Quit = request {
            return;
        }
    }
}

/// What the user is told while the profile is being ended.
fn tell_stage(told: &std::sync::Mutex<Sender<Input>>, stage: &Stage) {
    let text = match stage {
        Stage::TimingRoots { limit } => {
            format!(
                "The profile has ended; timing and sampling the root's calls without it, for {:.0} s at most (q ends it)",
                limit.as_secs_f64()
            )
        }
        Stage::Detaching => "The profile has ended; giving the original code back".to_owned(),
        _ => return,
    };
    if let Ok(told) = told.lock() {
        let _ = told.send(Input::Phase(Phase::Ending(text)));
    }
}

/// Why there is nothing new any more.
fn ended(outcome: &Outcome) -> String {
    match outcome.ending {
        Ending::TargetEnded => "The target has ended. These are the last results; s saves them, q leaves.".to_owned(),
        Ending::Broken => {
            let reason = outcome.profile.warnings.iter().rfind(|warning| *warning != TARGET_ENDED);
            reason.map_or("The profile ended early", String::as_str).to_owned()
        }
        Ending::Complete | Ending::Interrupted => {
            "The profile is complete, and the target has its original code back; s saves it, q leaves.".to_owned()
        }
    }
}

/// What is to be shown of a profile.
fn narrowed(options: &Options, profile: Profile) -> Arc<Profile> {
    if options.threads.is_empty() { Arc::new(profile) } else { Arc::new(options.narrowed(&profile).into_owned()) }
}

/// Writes a profile to a file, in the format of its extension.
fn write_to(file: &Path, profile: &Profile) -> io::Result<()> {
    let output = Output::to_file(file.to_owned());
    output.check().map_err(io::Error::other)?;
    output.write(profile, Origin::Recording)
}

/// A profile that is being recorded, and looked at.
struct Watched {
    live: Live,
    screen: Sender<Input>,
    requests: UnboundedReceiver<Request>,
    pace: Pace,
    /// When it ends by itself.
    deadline: Option<Instant>,
    /// When results were last handed on, and how many events there were: for the rate.
    before: Option<(Instant, u64)>,
}

/// What comes next.
enum Next {
    Refresh,
    Asked(Request),
    End(Ending),
}

impl Watched {
    /// Records until something ends it.
    async fn record(&mut self, mut interrupt: Pin<&mut impl Future<Output = ()>>) -> Result<Ending, SessionError> {
        let mut refresh = Instant::now();
        loop {
            let progress = Arc::clone(self.live.progress());
            let (requests, deadline) = (&mut self.requests, self.deadline);
            let next = async {
                tokio::select! {
                    // A view that is gone asks for nothing more.
                    request = requests.recv() => Next::Asked(request.unwrap_or(Request::Quit)),
                    () = interrupt.as_mut() => Next::End(Ending::Interrupted),
                    () = progress.enough() => Next::End(Ending::Complete),
                    () = sleep_until(deadline.unwrap_or(refresh)), if deadline.is_some() => Next::End(Ending::Complete),
                    () = sleep_until(refresh) => Next::Refresh,
                }
            };
            match self.live.serve_until(next).await? {
                Next::End(ending) => return Ok(ending),
                Next::Asked(Request::Quit) => return Ok(Ending::Interrupted),
                Next::Asked(request) => {
                    self.meet(request).await?;
                    refresh = Instant::now();
                }
                Next::Refresh => {
                    let begun = Instant::now();
                    self.refresh().await?;
                    refresh = (begun + self.pace.period).max(Instant::now() + begun.elapsed() * REST);
                }
            }
        }
    }

    async fn meet(&mut self, request: Request) -> Result<(), SessionError> {
        match request {
            Request::Pause => self.live.pause().await?,
            Request::Resume => self.live.resume().await?,
            Request::Clear => self.live.clear().await?,
            Request::Count(switch) => return self.count(&switch).await,
            // The view's own, and the end.
            Request::Save { .. } | Request::Redraw | Request::Quit | Request::Exact(_) => return Ok(()),
        }
        self.before = None;
        let phase = if self.live.is_paused() { Phase::Paused } else { Phase::Recording };
        self.tell(Input::Phase(phase));
        Ok(())
    }

    /// Counts more beside calls, or less, and says so.
    async fn count(&mut self, switch: &Switch) -> Result<(), SessionError> {
        let what = switch.of(self.live.counted().now(), self.live.settings().clock);
        let told = self.screen.clone();
        let announce = |classes| drop(told.send(Input::Say(probing_in_words(classes))));
        let said = match self.live.count(what, std::future::pending(), announce).await {
            Ok(Switched::Refused(why)) => why,
            Ok(Switched::Now | Switched::Interrupted) => counting_in_words(what),
            Err(error) if error.is_final() => return Err(error),
            Err(error) => error.to_string(),
        };
        self.tell(Input::Say(said));
        Ok(())
    }

    /// Hands the results up to now to the view.
    async fn refresh(&mut self) -> Result<(), SessionError> {
        let profile = self.live.profile().await?;
        let (now, events) = (Instant::now(), profile.events.recorded);
        let rate = self.before.filter(|_| !self.live.is_paused()).map(|(then, before)| {
            // Each call is an entry and an exit.
            events.saturating_sub(before) as f64 / 2.0 / (now - then).as_secs_f64().max(1e-3)
        });
        self.before = Some((now, events));
        self.tell(Input::Results(narrowed(&self.pace.options, profile), rate));
        Ok(())
    }

    fn tell(&self, input: Input) {
        // A view that is gone has closed the requests: that is noticed there.
        let _ = self.screen.send(input);
    }
}
