//! A session with a JVM: commands, one after the other, from a prompt or from a script.
//!
//! [`command`] reads them, [`Console`] executes them on a [`live`](crate::profiling::live) profile, [`prompt`] asks a user for them.
//! Between commands and while one waits the target is served ([`Console::serve_until`]). What the commands do is in the modules
//! below: with the connection, the profile, or what is asked of them.

use std::io::{self, Write};
use std::time::Duration;

use tokio::time::Instant;

use crate::jvm::Jvm;
use crate::pattern::ClassPattern;
use crate::profile::Profile;
use crate::profiling::live::{Attached, Live};
use crate::profiling::{Ending, ProfileError};
use crate::report::View;
use crate::request::output::{Origin, Output};
use crate::request::progress::Progress;
use crate::roots::RootsError;
use crate::thread_dump::{DumpOptions, Owners};

mod asking;
pub mod command;
pub mod complete;
pub mod condition;
mod connection;
mod counting;
mod events;
pub mod line;
pub mod prompt;
mod recording;
mod show;
mod waiting;

use command::{Command, Statement};

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

    /// The user wanted an end before the command had come to its own.
    pub(crate) fn interrupted() -> Failure {
        Failure::new(1, "interrupted")
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Failure {
        Failure::new(error.exit_code(), error.to_string())
    }
}

impl From<RootsError> for Failure {
    fn from(error: RootsError) -> Failure {
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
pub enum ConsoleEvent {
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
    /// What `locks` found last in this JVM.
    locks: Option<Profile>,
    /// What `sample` saw last of it.
    sampled: Option<Profile>,
    include: Vec<ClassPattern>,
    exclude: Vec<ClassPattern>,
    progress: Progress,
    /// When `status` was asked for last, and how many events there were: for the rate.
    looked: Option<(Instant, u64)>,
    /// Events of this JVM.
    happening: events::Happening,
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
            locks: None,
            sampled: None,
            include: Vec::new(),
            exclude: Vec::new(),
            progress,
            looked: None,
            happening: events::Happening::default(),
            classes: Vec::new(),
        }
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
            Statement::Expect(expectation) if expectation.is_of_threads() => {
                let wanted = DumpOptions { window: Duration::ZERO, owners: Owners::Auto };
                let taken = self.all_threads(wanted, interrupt).await?;
                let checked = expectation.check_count(taken.deadlocks.len());
                checked.map_err(|message| Failure::new(1, message))?;
            }
            Statement::Expect(expectation) if expectation.is_of_samples() => {
                let sampled = self.sampled.as_ref().ok_or_else(|| Failure::new(1, NO_SAMPLES))?;
                expectation.check(sampled).map_err(|message| Failure::new(1, message))?;
            }
            Statement::Expect(expectation) if expectation.is_of_locks() && self.locks.is_some() => {
                let found = self.locks.as_ref().map_or(Ok(()), |profile| expectation.check(profile));
                found.map_err(|message| Failure::new(1, message))?;
            }
            Statement::Expect(expectation) if expectation.is_of_events() => {
                let summary = self.what_happened().await.ok_or_else(|| Failure::new(1, NO_EVENTS))?;
                expectation.check_events(&summary).map_err(|message| Failure::new(1, message))?;
            }
            Statement::Expect(expectation) => {
                let profile = self.profile_so_far().await?;
                if expectation.is_of_locks() && profile.contention.is_none() {
                    return Err(Failure::new(1, NO_LOCKS));
                }
                expectation.check(&profile).map_err(|message| Failure::new(1, message))?;
            }
            Statement::Command(command) => return self.command(*command, interrupt).await,
        }
        Ok(Flow::Continue)
    }

    async fn command(&mut self, command: Command, interrupt: impl Future<Output = ()>) -> Result<Flow, Failure> {
        match command {
            Command::Attach { target } => self.attach(&target, interrupt).await?,
            Command::Profile { roots, await_root, options } => {
                self.detach_profile().await?;
                let settings = self.settings(&options, roots, await_root);
                tokio::select! {
                    started = self.start(settings) => started?,
                    () = interrupt => return Err(ProfileError::Interrupted.into()),
                }
            }
            Command::Region(timing) => self.region(&timing, interrupt).await?,
            Command::Roots => self.roots().await?,
            Command::Status => self.status().await?,
            Command::Tree(output) => self.report(&output).await?,
            Command::Flat(output) => self.report(&output.showing(View::Flat, None)).await?,
            Command::Callers { method, output } => self.report(&output.showing(View::Callers, method)).await?,
            Command::Explain(explaining) => self.explain(&explaining).await?,
            Command::Snapshot { file } => {
                let profile = self.profile_so_far().await?;
                Output::to_file(file.clone()).write(&profile, Origin::Recording)?;
                self.progress.say(&format!("written to {}", file.display()));
            }
            Command::Threads => show::threads(&self.profile_so_far().await?, &mut io::stdout().lock())?,
            Command::ThreadDump(showing) => {
                let taken = self.all_threads(showing.wanted(), interrupt).await?;
                showing.write(&taken).or_else(is_broken_pipe)?;
            }
            Command::Sample(sampling) => self.sample(&sampling, interrupt).await?,
            Command::Candidates(choosing) => self.candidates(&choosing, interrupt).await?,
            Command::Locks(waiting) => self.contended(&waiting, interrupt).await?,
            Command::Watch { targets, all, watching } => self.watch(&targets, all, &watching, interrupt).await?,
            Command::Events(telling) => self.events(&telling, interrupt).await?,
            Command::Count(switching) => self.count(&switching, interrupt).await?,
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
}

const NOTHING_RECORDED: &str = "no profile is being recorded; `profile METHOD` begins";

const NO_LOCKS: &str = "no contended locks are known; `locks` records them";

const NO_SAMPLES: &str = "nothing has been sampled; `sample` does that";

const NO_EVENTS: &str = "no events are told of; `events on` begins";

fn not_attached() -> Failure {
    Failure::new(1, "not attached; `attach TARGET` does that")
}

/// The reader has seen enough.
fn is_broken_pipe(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }
}
