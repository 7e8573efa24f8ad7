//! Why an attach failed, in sentences for the user.

use std::io;
use std::time::Duration;

/// Why the JVM could not be attached to, or no file could be put where it sees it.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The process has ended.
    #[error("process {pid} has ended; `headwater list` shows the JVMs that are running")]
    Gone {
        /// The process.
        pid: u32,
    },
    /// The process is no JVM. It has been left alone.
    #[error("process {pid} is not a HotSpot JVM (it runs `{command}`); nothing was sent to it")]
    NotAJvm {
        /// The process.
        pid: u32,
        /// Its command line, shortened.
        command: String,
    },
    /// The JVM belongs to another user.
    #[error(
        "process {pid} belongs to user id {owner}, and a JVM accepts only its own user and root; run headwater as that \
         user or as root (we are user id {us})"
    )]
    NotPermitted {
        /// The process.
        pid: u32,
        /// The user id that it runs with.
        owner: u32,
        /// Our effective user id.
        us: u32,
    },
    /// The process is stopped by a signal or held by a debugger.
    #[error(
        "process {pid} is stopped and can answer nothing; continue it (`kill -CONT {pid}`, or in its debugger) and try again"
    )]
    Stopped {
        /// The process.
        pid: u32,
    },
    /// The JVM runs with `-XX:+DisableAttachMechanism`.
    #[error(
        "the JVM {pid} was started with -XX:+DisableAttachMechanism; restart it without that option, or from the start \
         with `headwater run`"
    )]
    Disabled {
        /// The process.
        pid: u32,
    },
    /// The JVM has no handler for SIGQUIT: sending it would end the program.
    #[error(
        "the JVM {pid} has no attach socket and no handler for the signal that would open one, and the signal would end \
         it; either it is only just starting: try again in a moment; or it was started with -Xrs and its socket was \
         deleted from its /tmp: restart it"
    )]
    SignalUnsafe {
        /// The process.
        pid: u32,
    },
    /// The JVM did not create its socket in time.
    #[error(
        "the JVM {pid} did not open its attach socket within {} s; it may be frozen, overloaded, or unable to write to \
         its /tmp (is it full?)", waited.as_secs()
    )]
    NoSocket {
        /// The process.
        pid: u32,
        /// How long we waited.
        waited: Duration,
    },
    /// The file where the attach socket should be is someone else's, or no socket.
    #[error("{path} is not the JVM's attach socket: {why}; remove it and try again")]
    WrongSocket {
        /// The file, as the target sees it.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// The place of one of HotSpot's own files is taken by another user's.
    #[error(
        "{path} belongs to user id {owner}, and the JVM {pid}, which runs as user id {uid}, takes it for nobody's request; that \
         file keeps it from being attached to: have its owner or root remove it, and try again"
    )]
    Squatted {
        /// The file.
        path: String,
        /// Whose it is.
        owner: u32,
        /// The process.
        pid: u32,
        /// Whose the process is.
        uid: u32,
    },
    /// The JVM could not start the threads that attaching takes.
    #[error(
        "the JVM {pid} has no room for the threads that attaching starts: {limit}, and {needed} must be free; a JVM that cannot start \
         its attach listener dies of it, so nothing was sent to it: raise that limit or end some threads, and try again"
    )]
    NoThreads {
        /// The process.
        pid: u32,
        /// How many there must be room for.
        needed: u64,
        /// What stands against it, and how much of it is left.
        limit: String,
    },
    /// The JVM closed the connection without an answer: it does not accept our user or group.
    #[error(
        "the JVM {pid} refused the connection: it runs as user id {uid}, group id {gid}, and accepts nobody else; run \
         headwater as exactly that user and group"
    )]
    Refused {
        /// The process.
        pid: u32,
        /// Its effective user id.
        uid: u32,
        /// Its effective group id.
        gid: u32,
    },
    /// The JVM took the command and did not finish its answer in time.
    #[error(
        "the JVM {pid} has not answered `{command}` within {} s; it may be paused, overloaded, or busy with another tool; \
         try again", waited.as_secs()
    )]
    NoAnswer {
        /// The process.
        pid: u32,
        /// The command.
        command: String,
        /// How long we waited.
        waited: Duration,
    },
    /// The JVM answered with an error.
    #[error("the JVM {pid} refused the command `{command}` (error {code}): {message}")]
    CommandFailed {
        /// The process.
        pid: u32,
        /// The command.
        command: String,
        /// HotSpot's result; 100 and more are errors of the attach protocol.
        code: i32,
        /// The JVM's own words.
        message: String,
    },
    /// What came back is no answer of HotSpot's.
    #[error("the JVM {pid} answered with something that is no attach response: `{answer}`; is it a HotSpot JVM?")]
    BadAnswer {
        /// The process.
        pid: u32,
        /// The answer's beginning.
        answer: String,
    },
    /// The JVM does not load agents any more once it runs.
    #[error(
        "the JVM {pid} does not accept agents while it runs; start it with -XX:+EnableDynamicAgentLoading, or with \
         `headwater run`, which loads the agent at the start"
    )]
    LoadingDisabled {
        /// The process.
        pid: u32,
    },
    /// The library could not be loaded.
    #[error(
        "the JVM {pid} could not load the agent: {message}; check that its /tmp is not mounted noexec and that its C \
         library and processor match this build of headwater"
    )]
    NotLoaded {
        /// The process.
        pid: u32,
        /// The JVM's own words.
        message: String,
    },
    /// The agent was loaded and reported a failure.
    #[error("the agent in JVM {pid} could not start (it returned {code}); the JVM's own output may say more")]
    AgentFailed {
        /// The process.
        pid: u32,
        /// What `Agent_OnAttach` returned.
        code: i32,
    },
    /// A command's argument cannot be sent.
    #[error("an argument of `{command}` {why}; the attach protocol cannot carry it, so make it shorter or plainer")]
    BadArgument {
        /// The command.
        command: String,
        /// What is wrong with it.
        why: String,
    },
    /// The target has no usable temporary directory.
    #[error(
        "the target {pid} has no /tmp directory ({source}), which the JVM's attach mechanism needs; create it in its container"
    )]
    NoTmp {
        /// The process.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
    /// The name of the shared directory is taken by something that we cannot trust.
    #[error("{path} exists and {why}; remove it and try again")]
    DirTaken {
        /// The path, as the target sees it.
        path: String,
        /// Why it cannot be taken over.
        why: String,
    },
    /// Another tool is using the shared directory.
    #[error("another headwater is attached to JVM {pid} (it holds {path}); end it first")]
    InUse {
        /// The process.
        pid: u32,
        /// The path, as the target sees it.
        path: String,
    },
    /// The target's file system is full.
    #[error(
        "there is no space left for {path} (as the target sees it); free some space on that file system and try again"
    )]
    Full {
        /// The path, as the target sees it.
        path: String,
    },
    /// The target's file system cannot be written to.
    #[error(
        "{path} (as the target sees it) is on a file system that is read-only, and the JVM's attach mechanism and the agent need a \
         /tmp that can be written to; remount it, or give the container one (`--tmpfs /tmp`, an emptyDir), and try again"
    )]
    ReadOnly {
        /// The path, as the target sees it.
        path: String,
    },
    /// The target's file system does not run programs or libraries.
    #[error(
        "the target's /tmp is mounted noexec, so the JVM could not load {path}; remount it without noexec, or start the \
         program with `headwater run`"
    )]
    NoExec {
        /// The path, as the target sees it.
        path: String,
    },
    /// Some other system call failed.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was being done.
        doing: String,
        /// What the system said.
        source: io::Error,
    },
}

impl AttachError {
    /// The exit code of the command line contract: 3 if there is no such target or we may not attach to it, else 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            AttachError::Gone { .. }
            | AttachError::NotAJvm { .. }
            | AttachError::NotPermitted { .. }
            | AttachError::Refused { .. }
            | AttachError::Disabled { .. }
            | AttachError::NoThreads { .. }
            | AttachError::LoadingDisabled { .. } => 3,
            _ => 1,
        }
    }

    /// A failed operation on a file of the target's, with the errors that have a remedy of their own told apart.
    pub(super) fn file(doing: &str, path: &str, source: impl Into<io::Error>) -> AttachError {
        let source = source.into();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => AttachError::Full { path: path.to_owned() },
            io::ErrorKind::ReadOnlyFilesystem => AttachError::ReadOnly { path: path.to_owned() },
            _ => AttachError::Io { doing: format!("{doing} {path} (as the target sees it)"), source },
        }
    }
}
