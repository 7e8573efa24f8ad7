//! The connection of a session with its target: made, served, lost and left.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

use super::{Console, ConsoleEvent, Failure, State, not_attached};
use crate::jvm::process::has_program;
use crate::jvm::{self, Jvm};
use crate::profile::Target;
use crate::profiling::live::Attached;
use crate::profiling::{self, Ending, ProfileError, Settings};
use crate::request::ProfileArgs;
use crate::session::{Session, SessionError};

/// How often it is looked whether a target is still there that nobody talks with.
const ALIVE_POLL: Duration = Duration::from_millis(200);

impl Console {
    /// Attaches to a JVM, named as on the command line, and says so; unless `interrupt` is ready before that.
    pub async fn attach(&mut self, target: &str, interrupt: impl Future<Output = ()>) -> Result<(), Failure> {
        tokio::select! {
            biased;
            // What was begun is dropped, and with it the connection: the agent gives everything back by itself.
            () = interrupt => return Err(ProfileError::Interrupted.into()),
            attached = self.attach_to(target) => attached?,
        }
        self.announce();
        Ok(())
    }

    async fn attach_to(&mut self, target: &str) -> Result<(), Failure> {
        match self.detach().await {
            // That a root matched nothing is the affair of the target before.
            Err(failure) if failure.code == 4 => self.progress.say(&failure.message),
            detached => detached?,
        }
        let jvm = jvm::resolve(target).map_err(|error| Failure::new(error.exit_code(), error.to_string()))?;
        self.last = None;
        self.locks = None;
        self.sampled = None;
        self.happening.forget();
        self.connect(&jvm, &idle()).await?;
        self.jvm = Some(jvm);
        Ok(())
    }

    async fn connect(&mut self, jvm: &Jvm, settings: &Settings) -> Result<(), Failure> {
        self.progress.show(profiling::Stage::Attaching);
        let connected = async {
            let mut attached = profiling::connect(jvm, settings).await?;
            attached.list_classes().await?;
            Ok::<_, ProfileError>(attached)
        };
        let attached = connected.await;
        self.progress.clear();
        self.state = State::Attached(Box::new(attached?));
        self.remember_classes();
        Ok(())
    }

    fn remember_classes(&mut self) {
        if let Some(session) = self.session() {
            let names = session.graph().classes().map(|(_, name)| name.replace('/', "."));
            let mut names: Vec<String> = names.filter(|name| !name.contains("$$Lambda")).collect();
            names.sort_unstable();
            names.dedup();
            self.classes = names;
        }
    }

    pub(super) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            State::Detached => None,
            State::Attached(attached) => Some(attached.session()),
            State::Live { live, .. } => Some(live.session()),
        }
    }

    /// Serves the target until something else is ready, or something has happened by itself.
    pub async fn serve_until<T>(&mut self, mut until: Pin<&mut impl Future<Output = T>>) -> Result<T, ConsoleEvent> {
        match &mut self.state {
            State::Live { live, deadline } => {
                let (deadline, progress) = (*deadline, live.progress().clone());
                let either = async {
                    tokio::select! {
                        done = &mut until => Some(done),
                        () = progress.enough() => None,
                        () = tokio::time::sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => None,
                    }
                };
                match live.serve_until(either).await {
                    Ok(Some(done)) => Ok(done),
                    Ok(None) => Err(match self.end_profile(Ending::Complete).await {
                        Ok(message) => ConsoleEvent::Complete(message),
                        Err(failure) => ConsoleEvent::Lost(failure),
                    }),
                    Err(error) => Err(ConsoleEvent::Lost(self.lost(error).await)),
                }
            }
            State::Attached(attached) => match attached.session().serve_until(until).await {
                Ok(done) => Ok(done),
                Err(error) => Err(ConsoleEvent::Lost(self.lost(error).await)),
            },
            State::Detached => {
                let Some(jvm) = self.jvm.clone() else { return Ok(until.await) };
                let gone = async {
                    while has_program(jvm.pid) {
                        tokio::time::sleep(ALIVE_POLL).await;
                    }
                };
                tokio::select! {
                    done = until => Ok(done),
                    () = gone => Err(ConsoleEvent::Lost(self.lost(SessionError::TargetEnded).await)),
                }
            }
        }
    }

    /// The conversation is over without our doing: what was recorded is kept.
    pub(super) async fn lost(&mut self, error: SessionError) -> Failure {
        let pid = self.jvm.as_ref().map_or(0, |jvm| jvm.pid);
        let state = std::mem::take(&mut self.state);
        let failure = match state {
            State::Live { live, .. } => {
                let outcome = live.finish(Err(error), pending(), &|_| ()).await;
                let warning = outcome.profile.warnings.last().cloned().unwrap_or_default();
                self.last = Some(outcome.profile);
                match outcome.ending {
                    Ending::TargetEnded => {
                        Failure::new(5, format!("the target {pid} ended; the results up to then are kept"))
                    }
                    _ => Failure::new(1, warning),
                }
            }
            _ if matches!(error, SessionError::TargetEnded) || !has_program(pid) => {
                Failure::new(5, format!("the target {pid} ended"))
            }
            _ if matches!(error, SessionError::GivenUp) => Failure::new(1, error.to_string()),
            _ => Failure::new(1, format!("the session was ended by somebody else (headwater detach): {error}")),
        };
        if failure.code == 5 {
            self.jvm = None;
        }
        failure
    }

    fn announce(&self) {
        if let (Some(jvm), State::Attached(attached)) = (&self.jvm, &self.state) {
            let target = attached.target();
            self.progress.say(&format!("attached to {} (pid {}, JDK {})", target.main, jvm.pid, target.jdk));
        }
    }

    /// Attached, with a connection made for the clock, the controls and the buffer of these settings.
    pub(super) async fn attached_for(&mut self, settings: &Settings) -> Result<Box<Attached>, Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        match std::mem::take(&mut self.state) {
            State::Attached(attached) if suits(&idle(), settings, attached.target()) => return Ok(attached),
            other => self.state = other,
        }
        self.let_go().await;
        self.connect(&jvm, settings).await?;
        match std::mem::take(&mut self.state) {
            State::Attached(attached) => Ok(attached),
            _ => Err(not_attached()),
        }
    }

    /// Leaves a target in which nothing is recorded to the next connection.
    pub(super) async fn let_go(&mut self) {
        if let State::Attached(_) = &self.state
            && let State::Attached(attached) = std::mem::take(&mut self.state)
        {
            // If the agent cannot be told to leave, it notices that we have.
            let _ = attached.detach().await;
        }
    }

    /// Makes the next connection, so that the target can be asked. That this fails matters to the next command only.
    pub(super) async fn connect_again(&mut self) {
        if let Some(jvm) = self.jvm.clone()
            && let Err(failure) = self.connect(&jvm, &idle()).await
        {
            self.progress.say(&failure.message);
        }
    }

    /// Gives everything back and leaves the target.
    pub async fn detach(&mut self) -> Result<(), Failure> {
        let told = self.leave_events().await;
        self.leave().await.and(told)
    }

    async fn leave(&mut self) -> Result<(), Failure> {
        match std::mem::take(&mut self.state) {
            State::Live { live, .. } => {
                let outcome = live.finish(Ok(Ending::Interrupted), pending(), &|_| ()).await;
                let warning = outcome.profile.warnings.last().cloned().unwrap_or_default();
                let nothing = outcome.nothing_matched();
                self.last = Some(outcome.profile);
                self.jvm = None;
                match (outcome.ending, nothing) {
                    (Ending::Broken, _) => Err(Failure::new(1, warning)),
                    (_, Some(nothing)) => Err(Failure::new(4, nothing)),
                    (_, None) => Ok(()),
                }
            }
            State::Attached(attached) => {
                self.jvm = None;
                // A target that has ended has nothing to give back.
                let _ = attached.detach().await;
                Ok(())
            }
            State::Detached => {
                self.jvm = None;
                Ok(())
            }
        }
    }
}

/// What a connection is made for as long as nobody has said what is to be profiled.
pub(super) fn idle() -> Settings {
    ProfileArgs::defaults().settings(Vec::new())
}

/// Whether what was agreed with the agent when it was welcomed is what a profile needs; the recorder, to tell of locks, is to be there before it.
fn suits(connected: &Settings, wanted: &Settings, target: &Target) -> bool {
    if wanted.counting.locks {
        return false;
    }
    let agreed = |settings| profiling::agreed(settings, &target.jdk);
    matches!((agreed(connected), agreed(wanted)), (Ok(connected), Ok(wanted)) if connected == wanted)
}
