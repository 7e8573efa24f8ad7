//! Bringing the agent into a JVM, and hearing of it.

use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headwater_protocol::layout::Shape;
use headwater_protocol::message::{Greeting, Internal, Standing};
use headwater_protocol::segment::{Recording, Segment};
use tokio::process::Child;

use super::settings::{Settings, agreed};
use super::{LockWaits, ProfileError};
use crate::agent;
use crate::attach::{self, AttachError, SharedDir, TargetHost, load_agent};
use crate::connection::{Caller, Connection, ConnectionError, Listener, Peer};
use crate::jvm::{self, Jvm};
use crate::leftovers;
use crate::profile::{JvmInternal, Target};
use crate::profiling::live::Attached;
use crate::pulse::Pulse;
use crate::session::TARGET_DEADLINE;

/// How long the agent may take from being loaded to its greeting, and a started program to its first sign.
pub(super) const GREETING_DEADLINE: Duration = Duration::from_secs(20);

/// How long what an agent said before it failed may take to be seen here.
const LAST_WORDS_DEADLINE: Duration = Duration::from_secs(1);

/// Said before anything is changed where a debugger may be at work.
const DEBUGGER: &str = "a debugger's agent (JDWP) is loaded: the JVM clears its breakpoints in each class that is instrumented, and again \
                        when the class gets its original code back. Set them anew afterwards, or profile without the debugger";

/// Said before anything is changed where HotSpot may not bear it.
const ARCHIVE: &str = "this JVM writes an archive of its classes when it ends: with classes that an agent has changed HotSpot may crash as it \
                       does, and write none. Profile a run that writes none";

/// Said before anything is changed where that cannot be helped.
const FORGOTTEN_NAMES: &str = "this JVM forgets the names of parameters (javac -parameters, records) in classes that are instrumented, and \
                               they cannot be read here, to be put back. What asks reflection for them afterwards, as Spring 6 does, \
                               fails until a restart";

/// Said of a JVM that is newer than what is known.
const UNKNOWN_JDK: &str = "this JDK is newer than those that Headwater knows: it uses the JVM's documented interfaces alone, finds what is \
                           called with more vain instrumentation, and may leave stale type profiles. Counts are as complete as ever";

/// What is read of a JVM beyond its documented interfaces, in words.
fn described((internal, standing): (Internal, Standing)) -> JvmInternal {
    JvmInternal { name: internal.name().to_owned(), standing: standing.name().to_owned() }
}

/// Attaches to a running JVM, for profiles with the clock, the controls and the buffer of these settings.
pub async fn connect(jvm: &Jvm, settings: &Settings) -> Result<Attached, ProfileError> {
    let waits = match settings.counting.locks {
        // The JVM hands class files to agents in the order in which they came, and the recorder, which is one, changes classes of files and sockets
        // up to JDK 21: ours is to find them as they run.
        true => Some(LockWaits::begun(jvm.pid, settings.duration).await),
        false => None,
    };
    let connected = bring_into(jvm, "", |caller| welcome(caller, jvm.pid, settings)).await?;
    Ok(connected.attached(jvm.pid, jvm.main.clone(), waits))
}

/// Attaches to a running JVM to be told of events, beside whatever else is attached.
pub(crate) async fn connect_for_events(jvm: &Jvm) -> Result<Connected, ProfileError> {
    bring_into(jvm, "events=", |caller| {
        // Nothing but signs of life is in it.
        welcome_with(caller, Shape::of(2), Recording::default())
    })
    .await
}

/// Brings the agent into a JVM, for what the option says, and welcomes it.
async fn bring_into(
    jvm: &Jvm,
    option: &str,
    welcome: impl FnOnce(Caller) -> Result<Connected, ProfileError>,
) -> Result<Connected, ProfileError> {
    let pid = jvm.pid;
    let jvm = jvm.clone();
    let (place, socket) = blocking(move || {
        let host = TargetHost::of(&jvm)?;
        attach::check_room(&host)?;
        // Also what a tool has left that was killed before its agent was there to remove it.
        leftovers::remove(&host);
        let own = agent::directory(pid);
        let mapped = agent::loaded_directory(pid).filter(|name| name.starts_with(&own));
        Place::make(host, mapped.as_deref().unwrap_or(&own), mapped.is_some())
    })
    .await?;
    let listener = place.listener(socket)?;
    let options = format!("{option}{}", path_of_socket(&place.directory));
    let loading = load(place.host, place.library, options);
    tokio::pin!(loading);
    let (caller, loaded) = caller(&listener, loading.as_mut()).await?;
    let connected = welcome(caller)?;
    // HotSpot looks for the runtime's native methods in the agents that it has finished loading.
    if !loaded {
        finished(&listener, loading).await?;
    }
    // The agent is mapped and the socket connected: nothing of ours needs to stay in the file system.
    drop((listener, place.directory));
    Ok(connected)
}

/// Does what may wait for a file system or a process, and cannot be interrupted, on a thread of its own: Ctrl-C is heard meanwhile.
async fn blocking<T: Send + 'static>(
    task: impl FnOnce() -> Result<T, AttachError> + Send + 'static,
) -> Result<T, ProfileError> {
    let done = tokio::task::spawn_blocking(task).await;
    Ok(done.map_err(|error| ProfileError::Thread(error.into()))??)
}

/// Where the agent finds the tool, and the JVM the agent.
struct Place {
    host: TargetHost,
    directory: SharedDir,
    /// As the target sees it.
    library: String,
}

impl Place {
    /// Puts the agent into a directory of this name, and a socket beside it; elsewhere, if somebody else has that name. An agent that is mapped under
    /// it needs no file: the dynamic linker knows it by its path.
    fn make(host: TargetHost, name: &str, is_mapped: bool) -> Result<(Place, UnixListener), AttachError> {
        let directory = host.create_dir_or_another(name)?;
        let library = if is_mapped && directory.name() != name {
            format!("/tmp/{name}/{}", agent::FILE)
        } else {
            directory.write_executable(agent::FILE, agent::LIBRARY)?;
            format!("{}/{}", directory.there(), agent::FILE)
        };
        let socket = directory.listen(agent::SOCKET)?;
        Ok((Place { host, directory, library }, socket))
    }

    /// Waits for the target, and for nobody else.
    fn listener(&self, socket: UnixListener) -> Result<Listener, ConnectionError> {
        let peer = Peer { pid: Some(self.host.pid()), uid: self.host.uid() };
        Listener::new(socket, path_of_socket(&self.directory), peer)
    }
}

fn path_of_socket(directory: &SharedDir) -> String {
    format!("{}/{}", directory.there(), agent::SOCKET)
}

/// The end of the loading of an agent that has connected. One that fails after that says why on a connection of its own.
async fn finished(
    listener: &Listener,
    loading: impl Future<Output = Result<(), ProfileError>>,
) -> Result<(), ProfileError> {
    let Err(failed) = loading.await else { return Ok(()) };
    match tokio::time::timeout(LAST_WORDS_DEADLINE, listener.accept()).await {
        Ok(Err(error)) => Err(error.into()),
        _ => Err(failed),
    }
}

/// Has the JVM load the agent, on a thread of its own: the JVM answers when the agent has begun. If that is not waited for to its end, it is not
/// begun any more, and what it takes is removed.
async fn load(host: TargetHost, path: String, options: String) -> Result<(), ProfileError> {
    let _abandoned_when_dropped = Abandoning(Arc::clone(host.abandoned()));
    blocking(move || load_agent(&host, &path, &options)).await
}

struct Abandoning(Arc<AtomicBool>);

impl Drop for Abandoning {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The agent that greets, and whether its loading has ended: an agent that connects is heard first, because it knows best
/// what is wrong.
async fn caller(
    listener: &Listener,
    loading: impl Future<Output = Result<(), ProfileError>>,
) -> Result<(Caller, bool), ProfileError> {
    let accepting = listener.accept();
    tokio::pin!(accepting);
    let loaded = tokio::select! {
        biased;
        caller = &mut accepting => return Ok((caller?, false)),
        loaded = loading => loaded,
    };
    // The agent connects before it returns, but the JVM's answer may be the first that we see.
    let patience = match &loaded {
        Ok(()) => GREETING_DEADLINE,
        Err(ProfileError::Attach(AttachError::AgentFailed { .. })) => LAST_WORDS_DEADLINE,
        Err(_) => Duration::ZERO,
    };
    match tokio::time::timeout(patience, accepting).await {
        Ok(caller) => Ok((caller?, true)),
        Err(_) => Err(loaded.err().unwrap_or(ProfileError::Silent(GREETING_DEADLINE))),
    }
}

/// An agent that has been welcomed.
pub(crate) struct Connected {
    pub(crate) segment: Arc<Segment>,
    /// Goes on as long as it is kept.
    pub(crate) pulse: Pulse,
    pub(crate) connection: Connection,
    java_version: String,
    internals: Vec<(Internal, Standing)>,
}

impl Connected {
    fn attached(self, pid: u32, main: String, waits: Option<LockWaits>) -> Attached {
        let has_debugger = jvm::mapped_files(pid).iter().any(|file| jvm::is_debugger(file));
        let debugger = has_debugger.then_some(DEBUGGER);
        let archive = jvm::archive_option(&jvm::vm_options(pid)).map(|_| ARCHIVE);
        let is_lost = |(internal, standing): &(Internal, Standing)| {
            *internal == Internal::ParameterNames && !matches!(standing, Standing::Holds | Standing::NotNeeded)
        };
        let names = self.internals.iter().any(is_lost).then_some(FORGOTTEN_NAMES);
        let is_unknown = self.internals.iter().any(|(_, standing)| *standing == Standing::UnknownJdk);
        let unknown = is_unknown.then_some(UNKNOWN_JDK);
        let notes = [debugger, archive, names, unknown].into_iter().flatten().map(str::to_owned).collect();
        let internals = self.internals.into_iter().map(described).collect();
        let target = Target { pid, main, jdk: self.java_version, internals };
        Attached::new(self.connection, (self.segment, self.pulse), target, (notes, waits))
    }
}

fn welcome(caller: Caller, pid: u32, settings: &Settings) -> Result<Connected, ProfileError> {
    let (buffer_bytes, recording) = agreed(settings, java_version(caller.greeting()))?;
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    welcome_with(caller, Shape::fit(buffer_bytes, threads), recording)
}

fn welcome_with(caller: Caller, shape: Shape, recording: Recording) -> Result<Connected, ProfileError> {
    let greeting = caller.greeting();
    let (java_version, internals) = (java_version(greeting).to_owned(), greeting.internals.clone());
    let (segment, file) = Segment::create(shape, recording)?;
    let segment = Arc::new(segment);
    let pulse = Pulse::start(Arc::clone(&segment)).map_err(ProfileError::Thread)?;
    let connection = caller.welcome(&file, TARGET_DEADLINE)?;
    Ok(Connected { segment, pulse, connection, java_version, internals })
}

fn java_version(greeting: &Greeting) -> &str {
    if greeting.java_version.is_empty() { &greeting.vm_version } else { &greeting.java_version }
}

/// A program that was started with the agent in it.
pub(super) struct Started {
    pub(super) program: Child,
    /// Where the agent's file is.
    pub(super) directory: SharedDir,
    main: String,
}

/// Starts a program with the agent in it, which connects here. Its `main` waits for what the agent is told then.
pub(super) fn start(command: &[String]) -> Result<(Started, Listener), ProfileError> {
    let own = std::process::id();
    let directory = TargetHost::ourselves()?.create_dir_or_another(&agent::directory(own))?;
    directory.write_executable(agent::FILE, agent::LIBRARY)?;
    // It may be a program that the program starts.
    let peer = Peer { pid: None, uid: rustix::process::geteuid().as_raw() };
    let listener = Listener::new(directory.listen(agent::SOCKET)?, path_of_socket(&directory), peer)?;
    let agent_option = format!("-agentpath:{}/{}={}", directory.there(), agent::FILE, path_of_socket(&directory));
    let spawn_error = |error| ProfileError::Spawn { command: command.join(" "), error };
    let program = with_agent(command, &agent_option).spawn().map_err(spawn_error)?;
    Ok((Started { program, directory, main: main_of(command) }, listener))
}

impl Started {
    /// Waits for the agent's connection, for profiles with the clock, the controls and the buffer of these settings. Further JVMs
    /// that the program starts find nobody who listens.
    pub(super) async fn connected(
        &mut self,
        listener: Listener,
        settings: &Settings,
    ) -> Result<Attached, ProfileError> {
        let pid = self.program.id().unwrap_or_default();
        let caller = tokio::select! {
            caller = listener.accept() => caller?,
            status = self.program.wait() => {
                let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                return Err(ProfileError::NoAgent { status });
            }
        };
        Ok(welcome(caller, pid, settings)?.attached(pid, self.main.clone(), None))
    }
}

/// The command with the agent's option at its place: after `java` itself, else in an environment variable that the JVM
/// reads, for scripts that start one.
fn with_agent(command: &[String], agent_option: &str) -> tokio::process::Command {
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
    jvm::main_of_command_line(command).unwrap_or_else(|| command.join(" "))
}

/// Ends whatever session a target has, also one whose tool is lost, and removes the files that such a tool has left; what there is to be said
/// about it.
pub async fn detach(jvm: &Jvm) -> Result<String, ProfileError> {
    let Some(name) = agent::loaded_directory(jvm.pid) else {
        let jvm = jvm.clone();
        let removed = blocking(move || Ok(leftovers::remove(&TargetHost::of(&jvm)?))).await?;
        return Ok(with_removed("nothing to detach: Headwater's agent is not in this JVM".to_owned(), &removed));
    };
    let target = jvm.clone();
    let (removed, (place, socket)) = blocking(move || {
        let host = TargetHost::of(&target)?;
        let mut removed = leftovers::remove(&host);
        removed.extend(leftovers::end_recording(&host));
        Ok((removed, Place::make(host, &name, true)?))
    })
    .await?;
    let listener = place.listener(socket)?;
    let options = format!("detach={}", path_of_socket(&place.directory));
    let loading = load(place.host, place.library, options);
    tokio::pin!(loading);
    match caller(&listener, loading).await {
        Err(ProfileError::Connection(ConnectionError::Declined(report))) => Ok(with_removed(report, &removed)),
        Err(error) => Err(error),
        Ok(_) => Ok("the agent began a session instead of ending one".to_owned()),
    }
}

fn with_removed(report: String, removed: &[String]) -> String {
    if removed.is_empty() {
        report
    } else {
        format!("{report}; removed what a tool left that is gone: {}", removed.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::wire;
    use headwater_tests::Scratch;

    use super::*;

    #[tokio::test]
    async fn an_agent_that_fails_is_heard_first() {
        let scratch = Scratch::new("profiling");
        let path = scratch.file("socket");
        let listener = Listener::at(&path);
        let loading = async {
            let mut agent = std::os::unix::net::UnixStream::connect(&path).unwrap();
            wire::write(&mut agent, &Err::<Greeting, _>("another".to_owned())).unwrap();
            Err(AttachError::AgentFailed { pid: 1, code: 1 }.into())
        };
        let error = caller(&listener, loading).await.unwrap_err();
        assert!(
            matches!(&error, ProfileError::Connection(ConnectionError::Declined(reason)) if reason == "another"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_agent_that_fails_after_it_has_connected_is_heard_too() {
        let scratch = Scratch::new("profiling");
        let path = scratch.file("socket");
        let listener = Listener::at(&path);
        let loading = async {
            let mut agent = std::os::unix::net::UnixStream::connect(&path).unwrap();
            wire::write(&mut agent, &Err::<Greeting, _>("no class".to_owned())).unwrap();
            Err(AttachError::AgentFailed { pid: 1, code: 1 }.into())
        };
        let error = finished(&listener, loading).await.unwrap_err();
        assert!(
            matches!(&error, ProfileError::Connection(ConnectionError::Declined(reason)) if reason == "no class"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn an_agent_that_fails_without_a_word_is_not_waited_for() {
        let scratch = Scratch::new("profiling");
        let listener = Listener::at(&scratch.file("socket"));
        let failed = || Err(AttachError::AgentFailed { pid: 1, code: 7 }.into());
        let error = caller(&listener, std::future::ready(failed())).await.unwrap_err();
        assert!(matches!(error, ProfileError::Attach(AttachError::AgentFailed { code: 7, .. })), "{error}");
    }
}
