//! Attaching to a running JVM: HotSpot's dynamic attach protocol, spoken without a JDK.
//!
//! HotSpot's side is `attachListener_linux.cpp` (JDK 11 to 17) and `attachListener_posix.cpp` (later). The steps:
//!
//! 1. [`TargetHost::of`] takes hold of the process: its identity, its user, its view of the file system.
//! 2. If the JVM's attach socket does not exist yet, a trigger file and SIGQUIT make the JVM create it. SIGQUIT goes only
//!    to a process that is certainly HotSpot and has a handler for it: anything else would die of it.
//! 3. One connection carries one command, whose answer ends with the connection.
//!
//! [`TargetHost::create_dir`] gives a directory that both processes can see, for the agent's library and shared files. Whatever is done in the
//! target's places is done with its user's rights ([`crate::rights`]), so root lends it none of its own.
//! What the agent does once it is loaded is none of this module's business.

mod error;
mod host;
pub mod room;
pub(crate) mod shared_dir;
mod transport;
pub(crate) mod trigger;

pub use error::AttachError;
pub use host::TargetHost;
pub use shared_dir::SharedDir;

/// Loads an agent library into the JVM and waits until its `Agent_OnAttach` has returned 0.
///
/// The path is the library's path as the target sees it. Loading a library again that is loaded already only runs its
/// `Agent_OnAttach` again: the dynamic linker knows it by its path.
pub fn load_agent(host: &TargetHost, agent_path_there: &str, options: &str) -> Result<(), AttachError> {
    // "true": the path is absolute, so the JVM must not decorate it.
    match transport::execute(host, "load", [agent_path_there, "true", options]) {
        Ok(answer) => check_load_answer(host, &answer),
        // JNI_ERR: how JDK 17 and earlier say that there was nothing to call in the library, or no library.
        Err(AttachError::CommandFailed { code: -1, message, .. }) => Err(not_loaded(host, message)),
        Err(error) => Err(error),
    }
}

/// Has the JVM carry out a diagnostic command, as `jcmd PID COMMAND` does, and returns its output.
pub fn jcmd(host: &TargetHost, command: &str) -> Result<String, AttachError> {
    transport::execute(host, "jcmd", [command, "", ""])
}

/// All threads of the JVM as text. Options are those of its command: `-l` for the owners of `java.util.concurrent` locks, for which it looks
/// through its heap, `-e` for more about each thread.
pub fn thread_dump(host: &TargetHost, options: &str) -> Result<String, AttachError> {
    transport::execute_at_safepoint(host, "threaddump", [options, "", ""])
}

/// The JVM's words when `-XX:-EnableDynamicAgentLoading` is set (JDK 9 and later).
const LOADING_DISABLED: &str = "Dynamic agent loading is not enabled";

/// Reads what the JVM says after the result 0. JDK 11 and later: `return code: N`, N from the agent; before: `N` alone;
/// nothing from some builds. Any other text says why the library was not loaded (JDK 21 and later answer 0 even then).
fn check_load_answer(host: &TargetHost, answer: &str) -> Result<(), AttachError> {
    let codes = answer.lines().map(|line| line.trim().strip_prefix("return code:").unwrap_or(line).trim());
    match codes.filter_map(|code| code.parse::<i32>().ok()).next_back() {
        Some(0) => return Ok(()),
        Some(code) => return Err(AttachError::AgentFailed { pid: host.pid(), code }),
        None if answer.trim().is_empty() => return Ok(()),
        None => {}
    }
    Err(not_loaded(host, transport::one_line(answer)))
}

fn not_loaded(host: &TargetHost, message: String) -> AttachError {
    if message.contains(LOADING_DISABLED) {
        AttachError::LoadingDisabled { pid: host.pid() }
    } else {
        AttachError::NotLoaded { pid: host.pid(), message }
    }
}

/// Whether the JVM's attach socket exists already: it then answers without being asked by a signal.
pub fn has_socket(host: &TargetHost) -> Result<bool, AttachError> {
    trigger::socket_exists(host)
}

/// Fails if the threads that attaching takes cannot be started in the target.
pub fn check_room(host: &TargetHost) -> Result<(), AttachError> {
    room::check(host.pid(), threads_needed(host)?)
}

/// How many threads there must be room for.
pub fn threads_needed(host: &TargetHost) -> Result<u64, AttachError> {
    Ok(if has_socket(host)? { room::AGENT } else { room::LISTENER + room::AGENT })
}

/// Fails if another user's file is where the JVM looks for who asks to attach.
pub fn check_trigger(host: &TargetHost) -> Result<(), AttachError> {
    trigger::check(host)
}

#[cfg(test)]
mod tests;
