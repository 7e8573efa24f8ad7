//! One profile from beginning to end: agent in, roots instrumented, events decoded, agent out, result corrected. What
//! happens in between is the [`engine`](crate::engine)'s.

use std::fmt;
use std::io;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::message::{Calibration, HotswapResult, Reveal, ToTool};
use headwater_protocol::segment::{Overflow, Recording, Segment, SegmentError, TimeSource};
use headwater_protocol::{MethodId, layout};

use crate::agent;
use crate::attach::{AttachError, SharedDir, TargetHost, load_agent};
use crate::callgraph::{JdkMethods, Lines, Options, PatternIndex, RootMatch, Scheme};
use crate::clock_source::{self, ClockChoice, ClockSourceError};
use crate::decode::{DecodeOptions, Decoder, Statistics, TimeBase};
use crate::drain::Drain;
use crate::engine::{Attached, Live};
use crate::jvm::Jvm;
use crate::link::{Caller, Link, LinkError, Listener};
use crate::pattern::{ClassPattern, MethodPattern};
use crate::profile::{ClockMode, Profile, Target};
use crate::report::units::{count, plural};
use crate::session::{Session, SessionError};
use crate::ticker::monotonic_ns;
use crate::timing::RootTimes;

pub(crate) mod assemble;
mod bare;
pub(crate) mod drift;

/// How long a thread of the target waits for this process before it goes on without.
const TARGET_DEADLINE: Duration = Duration::from_secs(3);
/// How long the agent may take from being loaded to its greeting, and a started program to its first sign.
const GREETING_DEADLINE: Duration = Duration::from_secs(20);
/// How long what an agent said before it failed may take to be seen here.
const LAST_WORDS_DEADLINE: Duration = Duration::from_secs(1);

/// What is to be profiled, and for how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The roots.
    pub roots: Vec<MethodPattern>,
    /// At a root's index: it stands for these lines of its class, not for the methods.
    pub lines: Vec<Option<Lines>>,
    /// Nothing but the roots is instrumented: their calls are timed as wholes.
    pub only_roots: bool,
    /// Only these (all, when empty).
    pub include: Vec<ClassPattern>,
    /// Not these.
    pub exclude: Vec<ClassPattern>,
    /// Which methods of the JDK.
    pub jdk: JdkMethods,
    /// When callees are instrumented.
    pub scheme: Scheme,
    /// Whether threads of the target wait for that.
    pub reveal: Reveal,
    /// Getters, setters and methods that do nothing are left alone.
    pub skip_trivial: bool,
    /// End after this time.
    pub duration: Option<Duration>,
    /// End when so many root invocations are complete; no others are counted.
    pub calls: Option<u64>,
    /// Where times come from.
    pub clock: ClockMode,
    /// What is read for an exact time.
    pub clock_source: ClockChoice,
    /// Every so many calls of a root by a thread, one is not recorded but timed as a whole.
    pub control: Option<NonZeroU32>,
    /// Which invocations are recorded singly.
    pub statistics: Statistics,
    /// Whether the roots' calls are timed without a profile, after it, and how long at most.
    pub bare: BareTiming,
    /// Size of the shared event buffer.
    pub buffer_bytes: usize,
    /// What happens when this process falls behind.
    pub overflow: Overflow,
    /// Wait for classes of roots that are not loaded yet, rather than fail.
    pub await_roots: bool,
    /// Tell the profile so far once in this time.
    pub live: Option<Duration>,
}

impl Settings {
    /// The roots as the user gave them.
    pub fn root_names(&self) -> impl Iterator<Item = String> {
        let lines = self.lines.iter().copied().chain(std::iter::repeat(None));
        self.roots.iter().zip(lines).map(|(pattern, lines)| match lines {
            Some(lines) => format!("{}:{lines}", pattern.class_text()),
            None => pattern.to_string(),
        })
    }
}

/// Whether the roots' calls are timed without a profile, after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BareTiming {
    /// When they are called often enough; up to a third of the profile's time, and ten seconds at most.
    #[default]
    Auto,
    /// No.
    Off,
    /// So long at most, until their times are steady.
    For(Duration),
}

/// What made a profile end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The time or the number of calls was reached.
    Complete,
    /// The user.
    Interrupted,
    /// The target went away.
    TargetEnded,
    /// Something broke, or somebody else ended the session; a warning of the profile says what.
    Broken,
}

/// A profile, and how it ended.
#[derive(Debug)]
pub struct Outcome {
    /// The result.
    pub profile: Profile,
    /// What ended it.
    pub ending: Ending,
    /// The roots that matched nothing to the end, if others or the end were waited for.
    pub unmatched: Vec<Unmatched>,
}

impl Outcome {
    /// What is wrong if no root matched anything, and so nothing can have been recorded.
    pub fn nothing_matched(&self) -> Option<String> {
        let lines: Vec<String> = self.unmatched.iter().map(ToString::to_string).collect();
        (!lines.is_empty() && lines.len() == self.profile.roots.len()).then(|| lines.join("\n"))
    }
}

/// A root that matched nothing to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// As the user gave it.
    pub pattern: String,
    /// What is like it among all that was loaded by then, best first.
    pub near: Vec<String>,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing that matches {} was loaded while this was recorded", self.pattern)?;
        f.write_str(&did_you_mean(&self.near))
    }
}

/// The suggestions, each on a line of its own behind what is wrong.
fn did_you_mean(near: &[String]) -> String {
    let mut text = String::new();
    if !near.is_empty() {
        text.push_str("\nDid you mean one of these?");
        near.iter().for_each(|name| text.push_str(&format!("\n  {name}")));
    }
    text
}

/// The roots that match nothing, with what is like them.
pub(crate) fn unmatched(session: &Session, settings: &Settings) -> Vec<Unmatched> {
    let graph = session.graph();
    let lines = settings.lines.iter().copied().chain(std::iter::repeat(None));
    let roots = settings.roots.iter().zip(settings.root_names()).zip(lines).zip(graph.root_matches());
    roots
        .filter(|(_, found)| found.methods == 0)
        .map(|(((root, pattern), lines), _)| {
            let near = graph.near_misses(root).into_iter();
            // What stands for lines is a pattern for all methods of the class.
            let near = near.map(|near| match lines {
                Some(lines) => format!("{}:{lines}", near.strip_suffix("::*").unwrap_or(&near)),
                None => near,
            });
            Unmatched { pattern, near: near.collect() }
        })
        .collect()
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The agent could not be brought into the target.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// The agent did not come up.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// The conversation broke down before there was anything to report.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The clock that was asked for cannot be had.
    #[error(transparent)]
    ClockSource(#[from] ClockSourceError),
    /// No shared memory.
    #[error(transparent)]
    Segment(#[from] SegmentError),
    /// A thread of ours could not be started.
    #[error("a thread could not be started: {0}")]
    Thread(io::Error),
    /// The agent was loaded and did not connect.
    #[error(
        "the agent was loaded but did not connect within {GREETING_DEADLINE:?}. Is the target stopped, or out of CPU time?"
    )]
    Silent,
    /// A root pattern matches no method.
    #[error("{}", no_root(pattern, classes, near))]
    NoRoot {
        /// As the user gave it.
        pattern: String,
        /// How many loaded classes match its class part.
        classes: usize,
        /// Names that are like it.
        near: Vec<String>,
    },
    /// A class has no code of the lines that are a root.
    #[error("{}", no_lines(region, *classes, reason.as_deref()))]
    NoLines {
        /// As the user gave it.
        region: String,
        /// How many loaded classes match its class part.
        classes: usize,
        /// Why they are not instrumented, if they are there.
        reason: Option<String>,
    },
    /// The program to be started cannot be.
    #[error("cannot start {command}: {error}")]
    Spawn {
        /// The program.
        command: String,
        /// The operating system's reason.
        error: io::Error,
    },
    /// The program ended without a sign of the agent.
    #[error("the program ended ({status}) before Headwater's agent came up. Is it a Java program, of JDK 11 or later?")]
    NoAgent {
        /// How it ended.
        status: String,
    },
}

impl ProfileError {
    /// The exit code of the contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            ProfileError::Attach(error) => error.exit_code(),
            ProfileError::NoRoot { .. } | ProfileError::NoLines { .. } => 4,
            ProfileError::Session(SessionError::TargetEnded) => 5,
            _ => 1,
        }
    }
}

fn no_root(pattern: &str, classes: &usize, near: &[String]) -> String {
    let text = match classes {
        0 => format!("no loaded class matches the root {pattern}. If its class is loaded only later, say --await-root"),
        1 => format!("the class of the root {pattern} is loaded, but has no such method with code"),
        n => format!("{n} loaded classes match the root {pattern}, but none has such a method with code"),
    };
    text + &did_you_mean(near)
}

fn no_lines(region: &str, classes: usize, reason: Option<&str>) -> String {
    match (classes, reason) {
        (0, _) => format!(
            "no loaded class matches the region {region}. Write a.b.C:120-148, with the class that has the lines"
        ),
        (_, Some(reason)) => format!("the region {region} cannot be timed: {reason}"),
        _ => format!(
            "the class of the region {region} has no code of these lines. Lines of a nested class are its own: \
             a.b.C$Nested:120-148. A class compiled with -g:none has none"
        ),
    }
}

/// A root that is instrumented.
#[derive(Clone, Debug)]
pub struct InstrumentedRoot {
    /// As the user gave it.
    pub pattern: String,
    /// What it matches.
    pub found: RootMatch,
    /// How many threads are in it already.
    pub inside: usize,
}

/// What goes on, for a progress line.
#[derive(Clone, Debug)]
pub enum Stage {
    /// The agent is being loaded.
    Attaching,
    /// The probes are being timed, the classes listed, the roots instrumented.
    Preparing,
    /// The roots are instrumented: what each pattern matches.
    RootsInstrumented(Vec<InstrumentedRoot>),
    /// Recording; told about once a second.
    Recording {
        /// Root invocations so far.
        root_calls: u64,
        /// Events so far.
        events: u64,
        /// Instrumented methods so far.
        instrumented: usize,
    },
    /// The roots' calls are being timed without a profile.
    TimingRoots {
        /// How long at most.
        limit: Duration,
    },
    /// What was recorded so far; told as often as [`Settings::live`] says.
    SoFar(Box<Profile>),
    /// The original code is being given back.
    Detaching,
    /// It has been.
    Detached(HotswapResult),
}

/// Told what goes on.
pub type Observer<'a> = &'a (dyn Fn(Stage) + Sync);

/// Attaches to a running JVM and profiles it until one of the ends of `settings`, or until `interrupt` is ready.
pub async fn attach(
    jvm: &Jvm,
    settings: &Settings,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<Outcome, ProfileError> {
    observer(Stage::Attaching);
    let attached = connect(jvm, settings).await?;
    conduct(attached, settings, interrupt, observer, Start::Running).await
}

/// Attaches to a running JVM, for profiles with the clock, the controls and the buffer of these settings.
pub async fn connect(jvm: &Jvm, settings: &Settings) -> Result<Attached, ProfileError> {
    let host = TargetHost::of(jvm)?;
    let directory = host.create_dir(&agent::directory(jvm.pid))?;
    directory.write_executable(agent::FILE, agent::LIBRARY)?;
    let listener = Listener::bind(&directory.here().join(agent::SOCKET))?;
    let (segment, link, java_version) = bring_in(host, &directory, &listener, settings).await?;
    // The agent is mapped and the socket connected: nothing of ours needs to stay in the file system.
    drop((listener, directory));
    let target = Target { pid: jvm.pid, main: jvm.main.clone(), jdk: java_version };
    Ok(Attached::new(link, segment, target))
}

async fn bring_in(
    host: TargetHost,
    directory: &SharedDir,
    listener: &Listener,
    settings: &Settings,
) -> Result<(Arc<Segment>, Link, String), ProfileError> {
    let path = format!("{}/{}", directory.there(), agent::FILE);
    let options = format!("{}/{}", directory.there(), agent::SOCKET);
    let loading = load(host, path, options);
    tokio::pin!(loading);
    let (caller, loaded) = caller(listener, loading.as_mut()).await?;
    let connected = welcome(caller, settings)?;
    // HotSpot looks for the runtime's native methods in the agents that it has finished loading.
    if !loaded {
        loading.await?;
    }
    Ok(connected)
}

/// Has the JVM load the agent, on a thread of its own: the JVM answers when the agent has begun.
async fn load(host: TargetHost, path: String, options: String) -> Result<(), ProfileError> {
    let loading = tokio::task::spawn_blocking(move || load_agent(&host, &path, &options));
    Ok(loading.await.map_err(|error| ProfileError::Thread(error.into()))??)
}

/// The agent's connection, and whether its loading has ended: an agent that connects is asked first, because it knows best
/// what is wrong.
async fn caller(
    listener: &Listener,
    loading: impl Future<Output = Result<(), ProfileError>>,
) -> Result<(Caller, bool), ProfileError> {
    let loaded = tokio::select! {
        biased;
        caller = listener.accept() => return Ok((caller?, false)),
        loaded = loading => loaded,
    };
    // The agent connects before it returns, but the JVM's answer may be the first that we see.
    let patience = match &loaded {
        Ok(()) => GREETING_DEADLINE,
        Err(ProfileError::Attach(AttachError::AgentFailed { .. })) => LAST_WORDS_DEADLINE,
        Err(_) => Duration::ZERO,
    };
    match tokio::time::timeout(patience, listener.accept()).await {
        Ok(caller) => Ok((caller?, true)),
        Err(_) => Err(loaded.err().unwrap_or(ProfileError::Silent)),
    }
}

/// What is settled with the agent when it is welcomed: the buffer's size in chunks, and how it is to record.
pub(crate) fn agreed(settings: &Settings, java_version: &str) -> Result<(usize, Recording), ClockSourceError> {
    let recording = Recording {
        clock_period: settings.clock.period(),
        source: if settings.clock == ClockMode::Cpu {
            TimeSource::ThreadCpu
        } else if clock_source::tsc(settings.clock_source, settings.clock, settings.jdk, java_version)? {
            TimeSource::Tsc
        } else {
            TimeSource::NanoTime
        },
        control_every: settings.control,
        overflow: settings.overflow,
    };
    Ok((layout::chunks_for(settings.buffer_bytes), recording))
}

fn welcome(mut caller: Caller, settings: &Settings) -> Result<(Arc<Segment>, Link, String), ProfileError> {
    let greeting = caller.greeting()?;
    let java_version = if greeting.java_version.is_empty() { greeting.vm_version } else { greeting.java_version };
    let (chunks, recording) = agreed(settings, &java_version)?;
    let (segment, file) = Segment::create(chunks, recording)?;
    let link = caller.welcome(&file, TARGET_DEADLINE)?;
    Ok((Arc::new(segment), link, java_version))
}

/// Starts a program with the agent in it and profiles it from its first instruction.
pub async fn run(
    command: &[String],
    settings: &Settings,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<(Outcome, std::process::ExitStatus), ProfileError> {
    observer(Stage::Attaching);
    let own = std::process::id();
    let directory = TargetHost::ourselves()?.create_dir(&agent::directory(own))?;
    directory.write_executable(agent::FILE, agent::LIBRARY)?;
    let listener = Listener::bind(&directory.here().join(agent::SOCKET))?;
    let agent_option =
        format!("-agentpath:{}/{}={}/{}", directory.there(), agent::FILE, directory.there(), agent::SOCKET);
    let spawn_error = |error| ProfileError::Spawn { command: command.join(" "), error };
    let mut child = start_program(command, &agent_option).spawn().map_err(spawn_error)?;
    let pid = child.id().unwrap_or_default();

    let connected = tokio::select! {
        caller = listener.accept() => caller.map_err(ProfileError::from).and_then(|caller| welcome(caller, settings)),
        status = child.wait() => {
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            Err(ProfileError::NoAgent { status })
        }
    };
    let (segment, link, java_version) = match connected {
        Ok(connected) => connected,
        Err(error) => {
            // Without a profile the program is of no use to who asked for one.
            let _ = child.kill().await;
            return Err(error);
        }
    };
    drop(listener);
    let target = Target { pid, main: main_of(command), jdk: java_version };
    let attached = Attached::new(link, segment, target);
    let outcome = conduct(attached, settings, interrupt, observer, Start::Held).await?;
    // The agent's file stays until now: a script may start further JVMs with the same options, and one that does not
    // find its agent does not start. One that finds it, but no listener, runs on without.
    let status = child.wait().await.map_err(|error| ProfileError::Spawn { command: command.join(" "), error })?;
    drop(directory);
    Ok((outcome, status))
}

/// The command with the agent's option at its place: after `java` itself, else in an environment variable that the JVM
/// reads, for scripts that start one.
fn start_program(command: &[String], agent_option: &str) -> tokio::process::Command {
    let program = command.first().map_or("java", String::as_str);
    let arguments = command.get(1..).unwrap_or_default();
    let mut child = tokio::process::Command::new(program);
    let is_java = PathBuf::from(program).file_name().is_some_and(|name| name == "java");
    if is_java {
        child.arg(agent_option);
    } else {
        let others = std::env::var("JAVA_TOOL_OPTIONS").unwrap_or_default();
        child.env("JAVA_TOOL_OPTIONS", format!("{others} {agent_option}").trim());
    }
    child.args(arguments);
    child
}

fn main_of(command: &[String]) -> String {
    crate::jvm::main_of_command_line(command).unwrap_or_else(|| command.join(" "))
}

/// Said where a profile was to go on when its target ended.
pub(crate) const TARGET_ENDED: &str = "the target ended before the profile did; open methods are counted up to then";

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// The program runs already.
    Running,
    /// Its `main` waits until it is released.
    Held,
}

/// Everything between the handshake and the result.
pub(crate) async fn conduct(
    attached: Attached,
    settings: &Settings,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
    start: Start,
) -> Result<Outcome, ProfileError> {
    let mut live = attached.record(settings.clone(), observer, start).await?;
    let recorded = record(&mut live, interrupt, observer).await;
    // The end of a program is what ends its profile, unless something else was to.
    let ends_with_program = start == Start::Held && settings.duration.is_none() && settings.calls.is_none();
    let mut outcome = live.finish(recorded, observer).await;
    if outcome.ending == Ending::TargetEnded && ends_with_program {
        outcome.ending = Ending::Complete;
        outcome.profile.warnings.retain(|warning| warning != TARGET_ENDED);
    }
    Ok(outcome)
}

/// How events are decoded.
pub(crate) fn decoding(settings: &Settings) -> DecodeOptions {
    let time_base = if settings.clock == ClockMode::Cpu { TimeBase::Carrier } else { TimeBase::System };
    DecodeOptions { root_limit: settings.calls, statistics: settings.statistics, time_base }
}

/// What the call graph is to select.
pub(crate) fn options(settings: &Settings) -> Options {
    Options {
        roots: settings.roots.clone(),
        lines: settings.lines.clone(),
        only_roots: settings.only_roots,
        include: settings.include.clone(),
        exclude: settings.exclude.clone(),
        jdk: settings.jdk,
        scheme: settings.scheme,
        look_ahead: true,
        skip_trivial: settings.skip_trivial,
    }
}

pub(crate) async fn prepare(
    session: &mut Session,
    settings: &Settings,
    drain: &Drain,
    observer: Observer<'_>,
    start: Start,
) -> Result<Calibration, ProfileError> {
    let calibration = session.calibrate().await?;
    if settings.clock_source == ClockChoice::Tsc && !session.uses_tsc() {
        return Err(ClockSourceError::Linker.into());
    }
    session.list_classes(settings.reveal).await?;
    session.instrument_roots().await?;
    let matches = session.graph().root_matches();
    if !settings.await_roots
        && start == Start::Running
        && let Some(missing) = matches.iter().position(|found| found.methods == 0)
    {
        return Err(not_found(session, settings, PatternIndex(missing), matches[missing]));
    }
    // So many whole calls are wanted: one that began before is none.
    let open = match (start, settings.calls) {
        (Start::Running, None) => session.find_open_calls().await?,
        _ => Vec::new(),
    };
    if !open.is_empty() {
        drain.open(open.clone(), monotonic_ns()).await;
        session.follow_open_calls(&open, drain.returns()).await?;
    }
    let instrumented = |(index, (pattern, found)): (usize, (String, &RootMatch))| {
        let methods: Vec<MethodId> = session.graph().roots_of(PatternIndex(index)).map(|method| method.id).collect();
        let inside = open.iter().filter(|open| open.calls.iter().any(|call| methods.contains(call))).count();
        InstrumentedRoot { pattern, found: *found, inside }
    };
    observer(Stage::RootsInstrumented(settings.root_names().zip(&matches).enumerate().map(instrumented).collect()));
    if start == Start::Held {
        session.release().await?;
    }
    Ok(calibration)
}

/// A root that matches nothing.
fn not_found(session: &Session, settings: &Settings, root: PatternIndex, found: RootMatch) -> ProfileError {
    let pattern = &settings.roots[root.0];
    if settings.lines.get(root.0).copied().flatten().is_some() {
        let region = settings.root_names().nth(root.0).unwrap_or_default();
        let reason = session.graph().skipped().first().map(|(method, reason)| format!("{method}: {reason}"));
        return ProfileError::NoLines { region, classes: found.classes, reason };
    }
    let near = session.graph().near_misses(pattern);
    ProfileError::NoRoot { pattern: pattern.to_string(), classes: found.classes, near }
}

async fn record(
    live: &mut Live,
    interrupt: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<Ending, SessionError> {
    let duration = live.settings().duration;
    let end = duration.map(|duration| tokio::time::Instant::now() + duration);
    let mut second = tokio::time::interval(Duration::from_secs(1));
    let period = live.settings().live;
    let mut so_far = tokio::time::interval(period.unwrap_or(Duration::from_secs(1)));
    so_far.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    so_far.reset();
    let progress = Arc::clone(live.progress());
    tokio::pin!(interrupt);
    loop {
        let next = tokio::select! {
            message = live.session().next_message() => Next::Message(message?),
            () = &mut interrupt => return Ok(Ending::Interrupted),
            () = progress.enough() => return Ok(Ending::Complete),
            () = tokio::time::sleep_until(end.unwrap_or_else(tokio::time::Instant::now)), if end.is_some() => {
                return Ok(Ending::Complete);
            }
            _ = second.tick() => Next::Progress,
            _ = so_far.tick(), if period.is_some() => Next::SoFar,
        };
        match next {
            Next::Message(message) => live.session().serve(message).await?,
            Next::Progress => observer(Stage::Recording {
                root_calls: progress.roots_entered(),
                events: progress.events(),
                instrumented: live.instrumented(),
            }),
            Next::SoFar => observer(Stage::SoFar(Box::new(live.profile().await?))),
        }
    }
}

/// What is said when recording ended before so many calls were there.
pub(crate) fn too_few(wanted: Option<u64>, profile: &Profile) -> Option<String> {
    let calls = profile.roots.iter().map(|root| root.calls).sum();
    let wanted = wanted.filter(|wanted| *wanted > calls)?;
    let wanted = plural(wanted, "call", "calls");
    Some(format!("--calls asks for {wanted}, and only {} came before recording ended", count(calls)))
}

/// What recording is to do next.
enum Next {
    Message(ToTool),
    Progress,
    SoFar,
}

/// How recording ended.
pub(crate) struct End {
    pub(crate) ending: Ending,
    pub(crate) decoder: Decoder,
    pub(crate) bare: RootTimes,
    /// What the probes cost now, if they could be timed once more.
    pub(crate) calibration: Option<Calibration>,
    pub(crate) warning: Option<String>,
}

/// Stops recording, reads what is left, times the probes again and the roots without a profile, and detaches.
pub(crate) async fn finish(
    session: &mut Session,
    segment: &Arc<Segment>,
    drain: Drain,
    recorded: Result<Ending, SessionError>,
    (timing, duration): (BareTiming, Duration),
    pid: u32,
    observer: Observer<'_>,
) -> End {
    let is_gone = matches!(recorded, Err(SessionError::TargetEnded | SessionError::Disconnected));
    let stopped = if is_gone { None } else { session.stop().await.ok() };
    let mut decoder = drain.finish();
    decoder.finish(stopped.unwrap_or_else(monotonic_ns));
    let mut bare = Ok(RootTimes::default());
    let mut calibration = None;
    if stopped.is_some() {
        match session.calibrate().await {
            Ok(again) => calibration = Some(again),
            Err(error @ (SessionError::TargetEnded | SessionError::Disconnected)) => bare = Err(error),
            // What was timed before recording has to do.
            Err(_) => {}
        }
    }
    if let (Ok(ending), Some(_), Ok(_)) = (&recorded, stopped, &bare)
        && let Some(plan) = bare::plan(timing, *ending, &decoder, duration, segment)
    {
        observer(Stage::TimingRoots { limit: plan.limit });
        bare = bare::measure(session, segment, plan).await;
    }
    let (bare, detached) = match bare {
        _ if is_gone => (RootTimes::default(), None),
        // The profile itself is complete.
        Err(error @ (SessionError::TargetEnded | SessionError::Disconnected)) => {
            (RootTimes::default(), Some(Err(error)))
        }
        other => {
            observer(Stage::Detaching);
            (other.unwrap_or_default(), Some(session.detach().await))
        }
    };
    let (ending, warning) = match (recorded, detached) {
        (Ok(ending), Some(Ok(result))) => {
            let warning = not_restored(&result);
            observer(Stage::Detached(result));
            (ending, warning)
        }
        (Err(error), Some(Ok(_))) => (Ending::Broken, Some(format!("the profile ended early: {error}"))),
        (Err(SessionError::TargetEnded), _) | (_, Some(Err(SessionError::TargetEnded))) => (Ending::TargetEnded, None),
        (Err(SessionError::Disconnected), _) | (_, Some(Err(SessionError::Disconnected))) => {
            if is_alive(pid) {
                let reason = "the session was ended by somebody else (headwater detach), or because this process did not \
                              answer for too long; the target has its original code back";
                (Ending::Broken, Some(reason.to_owned()))
            } else {
                (Ending::TargetEnded, None)
            }
        }
        (_, Some(Err(error))) => (Ending::Broken, Some(format!("detaching failed: {error}"))),
        (_, None) => (Ending::Broken, None),
    };
    End { ending, decoder, bare, calibration, warning }
}

fn not_restored(detached: &HotswapResult) -> Option<String> {
    let (_, reason) = detached.refused.first()?;
    Some(format!(
        "classes could not be given their original code back ({}): {reason}. Their probes are idle from now on",
        count(detached.refused.len() as u64)
    ))
}

/// Whether a process still runs its program: one that is ending has none any more.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

/// Ends whatever session a target has, also one whose tool is lost; what the agent says about it.
pub async fn detach(jvm: &Jvm) -> Result<String, ProfileError> {
    let Some(directory_name) = agent::loaded_directory(jvm.pid) else {
        return Ok("nothing to detach: Headwater's agent is not in this JVM".to_owned());
    };
    let host = TargetHost::of(jvm)?;
    let directory = host.create_dir(&directory_name)?;
    directory.write_executable(agent::FILE, agent::LIBRARY)?;
    let listener = Listener::bind(&directory.here().join(agent::SOCKET))?;
    let path = format!("{}/{}", directory.there(), agent::FILE);
    let options = format!("detach={}/{}", directory.there(), agent::SOCKET);
    let loading = load(host, path, options);
    tokio::pin!(loading);
    let (mut caller, _) = caller(&listener, loading).await?;
    match caller.greeting() {
        Err(LinkError::Declined(report)) => Ok(report),
        Err(error) => Err(error.into()),
        Ok(_) => Ok("the agent began a session instead of ending one".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::message::Greeting;
    use headwater_protocol::wire;
    use headwater_tests::Scratch;

    use super::*;

    #[tokio::test]
    async fn an_agent_that_fails_is_heard_first() {
        let scratch = Scratch::new("profiling");
        let path = scratch.file("socket");
        let listener = Listener::bind(&path).unwrap();
        let loading = async {
            let mut agent = std::os::unix::net::UnixStream::connect(&path).unwrap();
            wire::write(&mut agent, &Err::<Greeting, _>("another".to_owned())).unwrap();
            Err(AttachError::AgentFailed { pid: 1, code: 1 }.into())
        };
        let (mut caller, loaded) = caller(&listener, loading).await.unwrap();
        assert!(loaded);
        assert!(matches!(caller.greeting(), Err(LinkError::Declined(reason)) if reason == "another"));
    }

    #[tokio::test]
    async fn an_agent_that_fails_without_a_word_is_not_waited_for() {
        let scratch = Scratch::new("profiling");
        let listener = Listener::bind(&scratch.file("socket")).unwrap();
        let failed = || Err(AttachError::AgentFailed { pid: 1, code: 7 }.into());
        let error = caller(&listener, std::future::ready(failed())).await.unwrap_err();
        assert!(matches!(error, ProfileError::Attach(AttachError::AgentFailed { code: 7, .. })), "{error}");
    }
}
