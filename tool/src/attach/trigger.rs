//! Making the JVM open its attach socket: a trigger file that says who asks, and SIGQUIT.
//!
//! On SIGQUIT, HotSpot looks for `.attach_pidN` in its working directory, then in /tmp. If there is one, owned by its own
//! user or root, it starts the attach listener; if there is none, it prints all threads' stacks to its standard output.
//! So the file must exist before the signal, and until the socket does.

use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{AttachError, TargetHost};

/// How long the JVM may take to open its socket. HotSpot's listener thread starts after the next safepoint.
const SOCKET_DEADLINE: Duration = Duration::from_secs(10);
/// How long a JVM that has only just started may take to install its SIGQUIT handler.
const HANDLER_DEADLINE: Duration = Duration::from_secs(2);
const FIRST_PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// The name of the JVM's attach socket in its /tmp.
pub(super) fn socket_name(host: &TargetHost) -> String {
    format!(".java_pid{}", host.vm_pid())
}

/// Makes sure that the JVM's attach socket exists.
pub(super) fn ensure_socket(host: &TargetHost) -> Result<(), AttachError> {
    if host.status()?.is_stopped() {
        return Err(AttachError::Stopped { pid: host.pid() });
    }
    if socket_exists(host)? {
        return Ok(());
    }
    if host.attach_disabled() {
        return Err(AttachError::Disabled { pid: host.pid() });
    }
    wait_for_handler(host)?;
    if socket_exists(host)? {
        return Ok(());
    }
    let _trigger = TriggerFile::create(host)?;
    send_quit_safely(host)?;
    let start = Instant::now();
    let mut signals = 1;
    let mut pause = FIRST_PAUSE;
    while !socket_exists(host)? {
        let waited = start.elapsed();
        if host.status()?.is_stopped() {
            return Err(AttachError::Stopped { pid: host.pid() });
        }
        if waited >= SOCKET_DEADLINE {
            return Err(AttachError::NoSocket { pid: host.pid(), waited });
        }
        // A signal that came while the JVM was starting may have been missed; the JDK's own client repeats it too.
        if signals == 1 && waited >= SOCKET_DEADLINE / 2 {
            send_quit_safely(host)?;
            signals += 1;
        }
        thread::sleep(pause);
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
    }
    Ok(())
}

/// Looks for the attach socket, and refuses what another user may have put in its place.
pub(super) fn socket_exists(host: &TargetHost) -> Result<bool, AttachError> {
    let name = socket_name(host);
    let path = format!("/tmp/{name}");
    let wrong = |why: String| Err(AttachError::WrongSocket { path: path.clone(), why });
    match rustix::fs::statat(host.tmp(), &name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Socket => wrong("it is no socket".to_owned()),
        Ok(stat) if stat.st_uid != host.uid() && stat.st_uid != 0 => {
            wrong(format!("it belongs to user id {}, and the JVM to {}", stat.st_uid, host.uid()))
        }
        Ok(_) => Ok(true),
        Err(Errno::NOENT) => Ok(false),
        Err(errno) => Err(AttachError::file("look at", &path, errno)),
    }
}

/// Removes a socket that nobody listens at, so that the JVM opens its own.
pub(super) fn remove_socket(host: &TargetHost) -> Result<(), AttachError> {
    let name = socket_name(host);
    match rustix::fs::unlinkat(host.tmp(), &name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => {
            let why = format!("nobody listens at it, and it cannot be removed ({errno})");
            Err(AttachError::WrongSocket { path: format!("/tmp/{name}"), why })
        }
    }
}

/// Waits for a JVM that is starting to install its SIGQUIT handler. With `-Xrs` it never does: it opens the socket at its
/// start instead.
fn wait_for_handler(host: &TargetHost) -> Result<(), AttachError> {
    let start = Instant::now();
    while !host.status()?.catches_quit && !socket_exists(host)? {
        if start.elapsed() >= HANDLER_DEADLINE {
            return Err(AttachError::SignalUnsafe { pid: host.pid() });
        }
        thread::sleep(LONGEST_PAUSE);
    }
    Ok(())
}

/// Sends SIGQUIT if, and only if, the process handles it at this moment.
fn send_quit_safely(host: &TargetHost) -> Result<(), AttachError> {
    let status = host.status()?;
    if status.is_stopped() {
        return Err(AttachError::Stopped { pid: host.pid() });
    }
    if !status.catches_quit {
        return Err(AttachError::SignalUnsafe { pid: host.pid() });
    }
    host.send_quit()
}

/// The trigger file, removed on drop.
struct TriggerFile {
    directory: OwnedFd,
    name: String,
}

impl TriggerFile {
    fn create(host: &TargetHost) -> Result<TriggerFile, AttachError> {
        let name = format!(".attach_pid{}", host.vm_pid());
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let working_directory = rustix::fs::open(format!("/proc/{}/cwd", host.pid()), flags, Mode::empty());
        if let Ok(directory) = working_directory
            && let Ok(trigger) = TriggerFile::create_in(host, directory, &name)
        {
            return Ok(trigger);
        }
        // A working directory that cannot be written to, or that gives files another owner (NFS), is common.
        let path = format!("/tmp/{name}");
        let tmp = host.tmp().try_clone_to_owned().map_err(|source| AttachError::file("open", "/tmp", source))?;
        TriggerFile::create_in(host, tmp, &name).map_err(|errno| AttachError::file("create", &path, errno))
    }

    fn create_in(host: &TargetHost, directory: OwnedFd, name: &str) -> Result<TriggerFile, Errno> {
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let create = || rustix::fs::openat(&directory, name, flags, Mode::RUSR | Mode::WUSR);
        let file = match create() {
            // Left by a tool that was killed.
            Err(Errno::EXIST) => {
                rustix::fs::unlinkat(&directory, name, AtFlags::empty())?;
                create()?
            }
            other => other?,
        };
        let trigger = TriggerFile { directory, name: name.to_owned() };
        if let Some((uid, gid)) = host.owner_to_set() {
            rustix::fs::fchown(&file, Some(uid), Some(gid))?;
        }
        if rustix::fs::fstat(&file)?.st_uid != host.uid() {
            return Err(Errno::PERM);
        }
        Ok(trigger)
    }
}

impl Drop for TriggerFile {
    fn drop(&mut self) {
        // Nothing to be done if it fails: the JVM looks at the file only on SIGQUIT.
        let _ = rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty());
    }
}
