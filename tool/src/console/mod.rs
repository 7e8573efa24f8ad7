//! A session with a JVM: commands, one after the other, from a prompt or from a script.
//!
//! [`command`] reads them, [`Console`] executes them on the live [`engine`](crate::engine), [`prompt`] asks a user for them.
//! Between commands and while one waits the target is served ([`Console::serve_until`]).

use std::io::{self, Write};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::Instant;

use crate::cli::ProfileArgs;
use crate::cli::output::{Origin, Output};
use crate::cli::progress::Progress;
use crate::engine::{self, Attached, Live};
use crate::jvm::{self, Jvm};
use crate::pattern::{ClassPattern, MethodPattern};
use crate::profile::{Profile, Target};
use crate::profiling::{self, Ending, ProfileError, Settings};
use crate::report::View;
use crate::session::{Session, SessionError};

pub mod command;
pub mod complete;
pub mod condition;
pub mod line;
pub mod prompt;
mod show;

use command::{Command, FilterChange, Statement};
use condition::{Wait, WaitCommand};

/// How often it is looked whether what is waited for has come.
const POLL: Duration = Duration::from_millis(10);
/// How often it is looked whether a target is still there that nobody talks with.
const ALIVE_POLL: Duration = Duration::from_millis(200);

/// A command that could not be executed, or whose expectation does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The exit code of the contract.
    pub code: u8,
    /// What happened, why, and what to do next.
    pub message: String,
}

impl Failure {
    fn new(code: u8, message: impl Into<String>) -> Failure {
        Failure { code, message: message.into() }
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Failure {
        Failure::new(error.exit_code(), error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::new(1, format!("cannot write: {error}"))
    }
}

/// What follows a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next one.
    Continue,
    /// The end of the session.
    Quit,
}

/// Something that happened by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The profile has reached its own end.
    Complete(String),
    /// The target is gone, or somebody else has ended the conversation.
    Lost(Failure),
}

#[derive(Debug, Default)]
enum State {
    /// Not attached.
    #[default]
    Detached,
    /// Attached, nothing instrumented.
    Attached(Box<Attached>),
    /// A profile is being recorded.
    Live {
        live: Box<Live>,
        /// When it ends by itself.
        deadline: Option<Instant>,
    },
}

/// A session.
#[derive(Debug)]
pub struct Console {
    state: State,
    /// The JVM, from `attach` to `detach`, or to its end.
    jvm: Option<Jvm>,
    /// The profile that ended last.
    last: Option<Profile>,
    include: Vec<ClassPattern>,
    exclude: Vec<ClassPattern>,
    progress: Progress,
    /// When `status` was asked for last, and how many events there were: for the rate.
    looked: Option<(Instant, u64)>,
    /// Names of the classes that were loaded when the target was last asked, for completion.
    classes: Vec<String>,
}

impl Console {
    /// Not attached to anything.
    pub fn new(progress: Progress) -> Console {
        Console {
            state: State::Detached,
            jvm: None,
            last: None,
            include: Vec::new(),
            exclude: Vec::new(),
            progress,
            looked: None,
            classes: Vec::new(),
        }
    }

    /// Attaches to a JVM, named as on the command line.
    pub async fn attach(&mut self, target: &str) -> Result<(), Failure> {
        self.detach().await?;
        let jvm = jvm::resolve(target).map_err(|error| Failure::new(error.exit_code(), error.to_string()))?;
        self.last = None;
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

    fn session(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            State::Detached => None,
            State::Attached(attached) => Some(attached.session()),
            State::Live { live, .. } => Some(live.session()),
        }
    }

    /// Serves the target until something else is ready, or something has happened by itself.
    pub async fn serve_until<T>(&mut self, mut until: Pin<&mut impl Future<Output = T>>) -> Result<T, Event> {
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
                        Ok(message) => Event::Complete(message),
                        Err(failure) => Event::Lost(failure),
                    }),
                    Err(error) => Err(Event::Lost(self.lost(error).await)),
                }
            }
            State::Attached(attached) => match engine::serve_until(attached.session(), until).await {
                Ok(done) => Ok(done),
                Err(error) => Err(Event::Lost(self.lost(error).await)),
            },
            State::Detached => {
                let Some(jvm) = self.jvm.clone() else { return Ok(until.await) };
                let gone = async {
                    while profiling::is_alive(jvm.pid) {
                        tokio::time::sleep(ALIVE_POLL).await;
                    }
                };
                tokio::select! {
                    done = until => Ok(done),
                    () = gone => Err(Event::Lost(self.lost(SessionError::TargetEnded).await)),
                }
            }
        }
    }

    /// The conversation is over without our doing: what was recorded is kept.
    async fn lost(&mut self, error: SessionError) -> Failure {
        let pid = self.jvm.as_ref().map_or(0, |jvm| jvm.pid);
        let state = std::mem::take(&mut self.state);
        let failure = match state {
            State::Live { live, .. } => {
                let outcome = live.finish(Err(error), &|_| ()).await;
                let warning = outcome.profile.warnings.last().cloned().unwrap_or_default();
                self.last = Some(outcome.profile);
                match outcome.ending {
                    Ending::TargetEnded => {
                        Failure::new(5, format!("the target {pid} ended; the results up to then are kept"))
                    }
                    _ => Failure::new(1, warning),
                }
            }
            _ if matches!(error, SessionError::TargetEnded) || !profiling::is_alive(pid) => {
                Failure::new(5, format!("the target {pid} ended"))
            }
            _ => Failure::new(1, format!("the session was ended by somebody else (headwater detach): {error}")),
        };
        if failure.code == 5 {
            self.jvm = None;
        }
        failure
    }

    /// Executes a line's statement. When `interrupt` is ready, what waits stops.
    pub async fn execute(
        &mut self,
        statement: Statement,
        interrupt: impl Future<Output = ()>,
    ) -> Result<Flow, Failure> {
        match statement {
            Statement::Nothing => {}
            Statement::Help(text) => writeln!(io::stdout(), "{}", text.trim_end())?,
            Statement::Wait(wait) => self.wait(wait, interrupt).await?,
            Statement::Expect(expectation) => {
                let profile = self.profile_so_far().await?;
                expectation.check(&profile).map_err(|message| Failure::new(1, message))?;
            }
            Statement::Command(command) => return self.command(*command, interrupt).await,
        }
        Ok(Flow::Continue)
    }

    async fn command(&mut self, command: Command, interrupt: impl Future<Output = ()>) -> Result<Flow, Failure> {
        match command {
            Command::Attach { target } => {
                self.attach(&target).await?;
                self.announce()?;
            }
            Command::Profile { roots, await_root, options } => {
                self.detach_profile().await?;
                let settings = self.settings(&options, roots, await_root);
                tokio::select! {
                    started = self.start(settings) => started?,
                    // What was begun is dropped, and with it the connection: the agent gives everything back by itself.
                    () = interrupt => return Err(Failure::new(1, "interrupted: nothing is profiled")),
                }
            }
            Command::Roots => self.roots().await?,
            Command::Status => self.status().await?,
            Command::Tree(output) => self.report(&output).await?,
            Command::Flat(output) => self.report(&output.showing(View::Flat, None)).await?,
            Command::Callers { method, output } => self.report(&output.showing(View::Callers, method)).await?,
            Command::Snapshot { file } => {
                let profile = self.profile_so_far().await?;
                Output::to_file(file.clone()).write(&profile, Origin::Recording)?;
                self.progress.say(&format!("written to {}", file.display()));
            }
            Command::Threads => show::threads(&self.profile_so_far().await?, &mut io::stdout().lock())?,
            Command::Methods { pattern, limit } => self.methods(pattern, limit).await?,
            Command::Filter { change } => self.filter(change)?,
            Command::Clear => self.clear().await?,
            Command::Pause => self.pause().await?,
            Command::Resume => self.resume().await?,
            Command::Stop => {
                if !matches!(self.state, State::Live { .. }) && self.last.is_some() {
                    self.progress.say("the profile has ended already");
                    return Ok(Flow::Continue);
                }
                let message = self.end_profile(Ending::Interrupted).await?;
                self.progress.say(&message);
            }
            Command::Detach => {
                if self.jvm.is_none() {
                    return Err(not_attached());
                }
                self.detach().await?;
                self.progress.say("detached");
            }
            Command::Echo { words } => writeln!(io::stdout(), "{}", words.join(" "))?,
            Command::Quit => return Ok(Flow::Quit),
            // The parser has made statements of their own of them.
            Command::Wait { .. } | Command::Expect { .. } => {}
        }
        Ok(Flow::Continue)
    }

    /// Says what the session is attached to.
    pub fn announce(&self) -> Result<(), Failure> {
        if let (Some(jvm), State::Attached(attached)) = (&self.jvm, &self.state) {
            let target = attached.target();
            self.progress.say(&format!("attached to {} (pid {}, JDK {})", target.main, jvm.pid, target.jdk));
        }
        Ok(())
    }

    fn settings(&self, options: &ProfileArgs, roots: Vec<MethodPattern>, await_roots: bool) -> Settings {
        let mut settings = Settings { await_roots, ..options.settings(roots) };
        settings.include.extend(self.include.iter().cloned());
        settings.exclude.extend(self.exclude.iter().cloned());
        settings
    }

    /// Attached, with a connection made for the clock, the controls and the buffer of these settings.
    async fn attached_for(&mut self, settings: &Settings) -> Result<Box<Attached>, Failure> {
        let jvm = self.jvm.clone().ok_or_else(not_attached)?;
        match std::mem::take(&mut self.state) {
            State::Attached(attached) if suits(&idle(), settings, attached.target()) => return Ok(attached),
            State::Attached(attached) => {
                // If the agent cannot be told to leave, it notices that we have.
                let _ = attached.detach().await;
            }
            other => self.state = other,
        }
        self.connect(&jvm, settings).await?;
        match std::mem::take(&mut self.state) {
            State::Attached(attached) => Ok(attached),
            _ => Err(not_attached()),
        }
    }

    async fn start(&mut self, settings: Settings) -> Result<(), Failure> {
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
            Err(error) => {
                let failure = Failure::from(error);
                if failure.code == 5 {
                    self.jvm = None
                } else {
                    self.connect_again().await
                }
                Err(failure)
            }
        }
    }

    /// Ends a profile that is being recorded, if there is one.
    async fn detach_profile(&mut self) -> Result<(), Failure> {
        if matches!(self.state, State::Live { .. }) {
            let message = self.end_profile(Ending::Interrupted).await?;
            self.progress.say(&message);
        }
        Ok(())
    }

    /// Ends the profile, and says so; the session stays attached.
    async fn end_profile(&mut self, ending: Ending) -> Result<String, Failure> {
        let State::Live { live, .. } = std::mem::take(&mut self.state) else {
            return Err(Failure::new(1, NOTHING_RECORDED));
        };
        let progress = &self.progress;
        let outcome = live.finish(Ok(ending), &|stage| progress.show(stage)).await;
        self.progress.clear();
        let calls: u64 = outcome.profile.roots.iter().map(|root| root.calls).sum();
        let warning = outcome.profile.warnings.last().cloned().unwrap_or_default();
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
                Ok(format!("the profile ended with {calls} root calls; the target has its original code back"))
            }
        }
    }

    /// Makes the next connection, so that the target can be asked. That this fails matters to the next command only.
    async fn connect_again(&mut self) {
        if let Some(jvm) = self.jvm.clone()
            && let Err(failure) = self.connect(&jvm, &idle()).await
        {
            self.progress.say(&failure.message);
        }
    }

    /// Gives everything back and leaves the target.
    pub async fn detach(&mut self) -> Result<(), Failure> {
        match std::mem::take(&mut self.state) {
            State::Live { live, .. } => {
                let outcome = live.finish(Ok(Ending::Interrupted), &|_| ()).await;
                let warning = outcome.profile.warnings.last().cloned().unwrap_or_default();
                self.last = Some(outcome.profile);
                self.jvm = None;
                match outcome.ending {
                    Ending::Broken => Err(Failure::new(1, warning)),
                    _ => Ok(()),
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

    /// The profile up to now, or the one that ended last.
    async fn profile_so_far(&mut self) -> Result<Profile, Failure> {
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

    /// Writes a report of the profile up to now.
    async fn report(&mut self, output: &Output) -> Result<(), Failure> {
        let profile = self.profile_so_far().await?;
        output.check_selection(&profile).map_err(|nothing| Failure::new(1, nothing.to_string()))?;
        Ok(output.write(&profile, Origin::Recording).or_else(is_broken_pipe)?)
    }

    async fn wait(&mut self, wait: WaitCommand, interrupt: impl Future<Output = ()>) -> Result<(), Failure> {
        let progress = match (&self.state, wait.what) {
            (_, Wait::For(_)) => None,
            (State::Live { live, .. }, _) => Some(live.progress().clone()),
            _ => return self.has_come(wait.what),
        };
        let come = async {
            match (wait.what, &progress) {
                (Wait::For(time), _) => tokio::time::sleep(time).await,
                (Wait::Calls(calls), Some(progress)) => {
                    while progress.roots_completed() < calls {
                        tokio::time::sleep(POLL).await;
                    }
                }
                (Wait::RootEntered, Some(progress)) => {
                    while progress.roots_entered() == 0 {
                        tokio::time::sleep(POLL).await;
                    }
                }
                (Wait::Done | Wait::Calls(_) | Wait::RootEntered, _) => std::future::pending().await,
            }
        };
        let waited = async {
            tokio::select! {
                () = come => Ok(()),
                () = tokio::time::sleep(wait.at_most.unwrap_or_default()), if wait.at_most.is_some() => {
                    let at_most = wait.at_most.unwrap_or_default();
                    Err(Failure::new(1, format!("waited {at_most:?} in vain for {}", wait.what)))
                }
                () = interrupt => Err(Failure::new(1, "interrupted")),
            }
        };
        let mut waited = std::pin::pin!(waited);
        loop {
            match self.serve_until(waited.as_mut()).await {
                Ok(result) => return result,
                Err(Event::Lost(failure)) => return Err(failure),
                Err(Event::Complete(message)) => {
                    self.progress.say(&message);
                    if !matches!(wait.what, Wait::For(_)) {
                        return self.has_come(wait.what);
                    }
                }
            }
        }
    }

    /// Whether what is waited for had come before the profile ended.
    fn has_come(&self, what: Wait) -> Result<(), Failure> {
        let Some(last) = &self.last else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let calls: u64 = last.roots.iter().map(|root| root.calls).sum();
        match what {
            Wait::Calls(wanted) if calls < wanted => {}
            Wait::RootEntered if calls == 0 => {}
            _ => return Ok(()),
        }
        Err(Failure::new(1, format!("the profile ended, and {what} never came")))
    }

    async fn roots(&mut self) -> Result<(), Failure> {
        let profile = self.profile_so_far().await?;
        Ok(show::roots(&profile, &mut io::stdout().lock())?)
    }

    async fn status(&mut self) -> Result<(), Failure> {
        let what = match (&self.state, &self.jvm) {
            (State::Live { live, .. }, _) if live.is_paused() => "recording is interrupted",
            (State::Live { .. }, _) => "recording",
            (State::Attached(_), _) | (State::Detached, Some(_)) => "attached; no profile is being recorded",
            (State::Detached, None) => "not attached",
        };
        if self.last.is_none() && !matches!(self.state, State::Live { .. }) {
            return Ok(writeln!(io::stdout(), "status    {what}")?);
        }
        let profile = self.profile_so_far().await?;
        let now = Instant::now();
        let (since, events) = self.looked.unwrap_or((now - profile.duration, 0));
        let rate = profile.events.recorded.saturating_sub(events) as f64 / (now - since).as_secs_f64().max(1e-3) / 2.0;
        if let State::Live { live, .. } = &self.state {
            self.looked = Some((now, profile.events.recorded));
            let rate = (!live.is_paused()).then_some(rate);
            return Ok(show::status(&profile, what, rate, &mut io::stdout().lock())?);
        }
        Ok(show::status(&profile, what, None, &mut io::stdout().lock())?)
    }

    async fn methods(&mut self, pattern: Option<ClassPattern>, limit: usize) -> Result<(), Failure> {
        let names = match pattern {
            Some(pattern) => {
                let is_class = |class: &str| pattern.matches_class(class);
                let names = self.loaded_methods(&is_class, &|class, method| pattern.matches(class, method)).await?;
                if names.is_empty() {
                    return Err(Failure::new(4, format!("no method of a loaded class matches {pattern}")));
                }
                names
            }
            None => {
                let profile = self.profile_so_far().await?;
                let mut names: Vec<String> = profile.methods.iter().map(|method| method.display.clone()).collect();
                names.sort_unstable();
                names.dedup();
                names
            }
        };
        Ok(show::limited(&names, limit, &mut io::stdout().lock())?)
    }

    /// Methods of the target by class and name: asked for, so that also what is not instrumented is there.
    async fn loaded_methods(
        &mut self,
        is_class: &dyn Fn(&str) -> bool,
        is_wanted: &dyn Fn(&str, &str) -> bool,
    ) -> Result<Vec<String>, Failure> {
        /// Classes that are asked for at once.
        const BATCH: usize = 1_000;
        let Some(session) = self.session() else { return Err(not_attached()) };
        let known = session.graph().classes().filter(|(_, name)| is_class(name));
        let classes: Vec<_> = known.map(|(id, name)| (id, name.clone())).collect();
        let mut names = Vec::new();
        for batch in classes.chunks(BATCH) {
            let Some(session) = self.session() else { return Err(not_attached()) };
            let found = match session.methods_of(batch.iter().map(|(id, _)| *id).collect()).await {
                Ok(found) => found,
                Err(error) => return Err(self.lost(error).await),
            };
            for (id, methods) in found {
                let Some((_, class)) = batch.iter().find(|(known, _)| *known == id) else { continue };
                let wanted = methods.iter().filter(|method| is_wanted(class, &method.name));
                names
                    .extend(wanted.map(|method| crate::pattern::display_name(class, &method.name, &method.descriptor)));
            }
        }
        names.sort_unstable();
        names.dedup();
        Ok(names)
    }

    fn filter(&mut self, change: Option<FilterChange>) -> Result<(), Failure> {
        match change {
            None => {}
            Some(FilterChange::Include { patterns }) => self.include.extend(patterns),
            Some(FilterChange::Exclude { patterns }) => self.exclude.extend(patterns),
            Some(FilterChange::Clear) => {
                self.include.clear();
                self.exclude.clear();
            }
        }
        show::filters(&self.include, &self.exclude, &mut io::stdout().lock())?;
        if matches!(self.state, State::Live { .. }) {
            self.progress.say("the filters hold from the next `profile` on");
        }
        Ok(())
    }

    async fn clear(&mut self) -> Result<(), Failure> {
        let State::Live { live, .. } = &mut self.state else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let cleared = live.clear().await;
        self.looked = None;
        self.unless_lost(cleared).await
    }

    async fn pause(&mut self) -> Result<(), Failure> {
        let State::Live { live, .. } = &mut self.state else { return Err(Failure::new(1, NOTHING_RECORDED)) };
        let paused = live.pause().await;
        self.unless_lost(paused).await
    }

    async fn resume(&mut self) -> Result<(), Failure> {
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

const NOTHING_RECORDED: &str = "no profile is being recorded; `profile METHOD` begins";

fn not_attached() -> Failure {
    Failure::new(1, "not attached; `attach TARGET` does that")
}

/// What a connection is made for as long as nobody has said what is to be profiled.
fn idle() -> Settings {
    ProfileArgs::defaults().settings(Vec::new())
}

/// Whether what was agreed with the agent when it was welcomed is what a profile needs.
fn suits(connected: &Settings, wanted: &Settings, target: &Target) -> bool {
    let agreed = |settings| profiling::agreed(settings, &target.jdk);
    matches!((agreed(connected), agreed(wanted)), (Ok(connected), Ok(wanted)) if connected == wanted)
}

/// The reader has seen enough.
fn is_broken_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}
