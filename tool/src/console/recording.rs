//! The profile of a session: begun, looked at, interrupted, ended.

use tokio::time::Instant;

use super::{Console, Failure, NOTHING_RECORDED, State, is_broken_pipe, not_attached};
use crate::pattern::MethodPattern;
use crate::profile::Profile;
use crate::profiling::{self, Ending, Outcome, Settings};
use crate::report::units::plural;
use crate::request::timing::{self, Timing};
use crate::request::{ProfileArgs, interrupted};
use crate::roots;
use crate::roots::choosing::{self, Choosing};
use crate::session::SessionError;

impl Console {
    pub(super) fn settings(&self, options: &ProfileArgs, roots: Vec<MethodPattern>, await_roots: bool) -> Settings {
        let mut settings = Settings { await_roots, ..options.settings(roots) };
        settings.subgraph.include.extend(self.include.iter().cloned());
        settings.subgraph.exclude.extend(self.exclude.iter().cloned());
        settings
    }

    pub(super) async fn start(&mut self, settings: Settings) -> Result<(), Failure> {
        let attached = self.attached_for(&settings).await?;
        let deadline = settings.duration;
        let progress = &self.progress;
        let started = attached.record(settings, &|stage| progress.show(stage), profiling::Start::Running).await;
        self.progress.clear();
        self.looked = None;
        match started {
            Ok(live) => {
                let deadline = deadline.map(|duration| Instant::now() + duration);
                self.state = State::Live { live: Box::new(live), deadline };
                Ok(())
            }
            Err(error) => Err(self.not_begun(error).await),
        }
    }

    /// Nothing is recorded; the session stays attached where there is something left to be attached to.
    async fn not_begun(&mut self, error: impl Into<Failure>) -> Failure {
        let failure = error.into();
        if failure.code == 5 {
            self.jvm = None;
        } else {
            self.connect_again().await;
        }
        failure
    }

    /// `region`: a recording of its own, from beginning to end. The profile that ended last stays.
    pub(super) async fn region(&mut self, timing: &Timing, interrupt: impl Future<Output = ()>) -> Result<(), Failure> {
        self.detach_profile().await?;
        let settings = timing.settings(&self.progress);
        let attached = self.attached_for(&settings).await?;
        let progress = &self.progress;
        let observer = |stage| timing::observe(stage, progress);
        let recorded = profiling::conduct(*attached, &settings, interrupt, &observer, profiling::Start::Running).await;
        self.progress.clear();
        let outcome = match recorded {
            Ok(outcome) => outcome,
            Err(error) => return Err(self.not_begun(error).await),
        };
        let nothing = outcome.nothing_matched();
        let Outcome { profile, ending, .. } = outcome;
        let written = timing.write(&profile).or_else(is_broken_pipe);
        match ending {
            Ending::TargetEnded => {
                let pid = self.jvm.take().map_or(0, |jvm| jvm.pid);
                return Err(Failure::new(5, format!("the target {pid} ended; the results up to then are kept")));
            }
            Ending::Broken => {
                self.connect_again().await;
                return Err(Failure::new(1, profile.warnings.last().cloned().unwrap_or_default()));
            }
            Ending::Complete | Ending::Interrupted => self.connect_again().await,
        }
        written?;
        nothing.map_or(Ok(()), |nothing| Err(Failure::new(4, nothing)))
    }

    /// `candidates`: whoever looks makes connections of their own, one after the other. The profile that ended last stays.
    pub(super) async fn candidates(
        &mut self,
        choosing: &Choosing,
        interrupt: impl Future<Output = ()>,
    ) -> Result<(), Failure> {
        self.detach_profile().await?;
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        let looking = choosing.looking();
        self.say_price(&jvm, looking.recorder);
        self.let_go().await;
        let progress = &self.progress;
        let observer = |stage| choosing::observe(stage, progress);
        let found = roots::find(&jvm, looking, std::pin::pin!(interrupt), &observer).await;
        self.progress.clear();
        match found {
            Ok(found) => {
                self.connect_again().await;
                Ok(choosing.write(&found).or_else(is_broken_pipe)?)
            }
            Err(error) => Err(self.not_begun(error).await),
        }
    }

    /// Ends a profile that is being recorded, if there is one.
    pub(super) async fn detach_profile(&mut self) -> Result<(), Failure> {
        if matches!(self.state, State::Live { .. }) {
            match self.end_profile(Ending::Interrupted).await {
                Ok(message) => self.progress.say(&message),
                // That its root matched nothing is the other profile's affair.
                Err(failure) if failure.code == 4 => self.progress.say(&failure.message),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Ends the profile, and says so; the session stays attached.
    pub(super) async fn end_profile(&mut self, ending: Ending) -> Result<String, Failure> {
        let State::Live { live, .. } = std::mem::take(&mut self.state) else {
            return Err(Failure::new(1, NOTHING_RECORDED));
        };
        let progress = &self.progress;
        let outcome = live.finish(Ok(ending), interrupted(), &|stage| progress.show(stage)).await;
        self.progress.clear();
        let calls: u64 = outcome.profile.roots.iter().map(|root| root.calls).sum();
        let warning = outcome.profile.warnings.last().cloned().unwrap_or_default();
        let nothing = outcome.nothing_matched();
        self.last = Some(outcome.profile);
        match outcome.ending {
            Ending::TargetEnded => {
                let pid = self.jvm.take().map_or(0, |jvm| jvm.pid);
                Err(Failure::new(5, format!("the target {pid} ended; the results up to then are kept")))
            }
            Ending::Broken => {
                self.connect_again().await;
                Err(Failure::new(1, warning))
            }
            Ending::Complete | Ending::Interrupted => {
                self.connect_again().await;
                if let Some(nothing) = nothing {
                    return Err(Failure::new(4, nothing));
                }
                let calls = plural(calls, "root call", "root calls");
                Ok(format!("the profile ended with {calls}; the target has its original code back"))
            }
        }
    }

    /// The profile up to now, or the one that ended last.
    pub(super) async fn profile_so_far(&mut self) -> Result<Profile, Failure> {
        if let State::Live { live, .. } = &mut self.state {
            match live.profile().await {
                Ok(profile) => return Ok(profile),
                Err(error) => {
                    let failure = self.lost(error).await;
                    self.progress.say(&failure.message);
                }
            }
        }
        self.last.clone().ok_or_else(|| Failure::new(1, "nothing has been profiled yet; `profile METHOD` begins"))
    }

    pub(super) async fn clear(&mut self) -> Result<(), Failure> {
        let State::Live { live, .. } = &mut self.state else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let cleared = live.clear().await;
        self.looked = None;
        self.unless_lost(cleared).await
    }

    pub(super) async fn pause(&mut self) -> Result<(), Failure> {
        let State::Live { live, .. } = &mut self.state else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let paused = live.pause().await;
        self.unless_lost(paused).await
    }

    pub(super) async fn resume(&mut self) -> Result<(), Failure> {
        let State::Live { live, .. } = &mut self.state else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let resumed = live.resume().await;
        self.looked = None;
        self.unless_lost(resumed).await
    }

    async fn unless_lost<T>(&mut self, result: Result<T, SessionError>) -> Result<T, Failure> {
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.lost(error).await),
        }
    }
}
