//! Making the JVM open its attach socket: a trigger file that says who asks, and SIGQUIT.
//!
//! On SIGQUIT, HotSpot looks for `.attach_pidN` in its working directory, then in /tmp. If there is one, owned by its own
//! user or root, it starts the attach listener; if there is none, it prints all threads' stacks to its standard output.
//! So the file must exist before the signal, and until the socket does.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::{AttachError, TargetHost, room, shared_dir};
use crate::jvm::process;
use crate::rights::Rights;

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
    room::check(host.pid(), room::LISTENER)?;
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
        if waited >= SOCKET_DEADLINE || host.is_abandoned() {
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
        Ok(stat) if stat.st_uid != host.uid() && stat.st_uid != 0 => {
            let here = host.tmp_here().join(&name);
            Err(squatted(host, &here.to_string_lossy(), stat.st_uid))
        }
        Ok(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Socket => wrong("it is no socket".to_owned()),
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

/// What our trigger files say, so that one that was left can be told from another client's. HotSpot looks only at their owners.
const OURS: &[u8] = b"headwater\n";

/// The trigger file, removed on drop.
struct TriggerFile {
    directory: OwnedFd,
    name: String,
    /// Locked as long as it is open: it is not left.
    _file: File,
    rights: Rights,
}

/// Why there is no trigger file.
enum Refused {
    /// Another user's is there, which cannot be removed.
    Squatted(u32),
    Failed(Errno),
}

impl From<Errno> for Refused {
    fn from(errno: Errno) -> Refused {
        Refused::Failed(errno)
    }
}

impl TriggerFile {
    /// The file where the JVM looks first, or else where it looks then. None where there is one that will do and cannot be removed.
    fn create(host: &TargetHost) -> Result<Option<TriggerFile>, AttachError> {
        let name = trigger_name(host);
        if let Ok(directory) = process::open_working_directory(host.pid()) {
            match host.as_target(|| TriggerFile::create_in(host, directory, &name))? {
                Ok(trigger) => return Ok(trigger),
                // The JVM would look no further.
                Err(Refused::Squatted(owner)) => {
                    return Err(squatted(host, &format!("/proc/{}/cwd/{name}", host.pid()), owner));
                }
                // A working directory that cannot be written to, or that gives files another owner (NFS), is common.
                Err(Refused::Failed(_)) => {}
            }
        }
        let path = format!("/tmp/{name}");
        let tmp = host.tmp().try_clone_to_owned().map_err(|source| AttachError::file("open", "/tmp", source))?;
        host.as_target(|| TriggerFile::create_in(host, tmp, &name))?.map_err(|refused| match refused {
            Refused::Squatted(owner) => squatted(host, &path, owner),
            Refused::Failed(errno) => AttachError::file("create", &path, errno),
        })
    }

    fn create_in(host: &TargetHost, directory: OwnedFd, name: &str) -> Result<Option<TriggerFile>, Refused> {
        let create = || create_marked(directory.as_fd(), name);
        let file = match create() {
            Err(Errno::EXIST) => match rustix::fs::unlinkat(&directory, name, AtFlags::empty()) {
                // Left by a tool that was killed.
                Ok(()) | Err(Errno::NOENT) => create()?,
                Err(_) => {
                    let owner = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW)?.st_uid;
                    return if [0, host.uid()].contains(&owner) { Ok(None) } else { Err(Refused::Squatted(owner)) };
                }
            },
            other => other?,
        };
        let rights = host.rights().clone();
        let owner = rustix::fs::fstat(&file)?.st_uid;
        let trigger = TriggerFile { directory, name: name.to_owned(), _file: file, rights };
        if owner == host.uid() { Ok(Some(trigger)) } else { Err(Refused::Failed(Errno::PERM)) }
    }
}

/// A new file that is locked and says that it is ours from the moment it has its name, so that a tool may be killed at any moment.
fn create_marked(directory: BorrowedFd<'_>, name: &str) -> Result<File, Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::openat(directory, ".", OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, mode) {
        let file = mark(File::from(file));
        let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
        match rustix::fs::linkat(rustix::fs::CWD, unnamed, directory, name, AtFlags::SYMLINK_FOLLOW) {
            Ok(()) => return Ok(file),
            Err(Errno::EXIST) => return Err(Errno::EXIST),
            Err(_) => {}
        }
    }
    // A file system without unnamed files, or a place without /proc.
    rustix::fs::openat(directory, name, flags | OFlags::CREATE | OFlags::EXCL, mode).map(|file| mark(File::from(file)))
}

/// In this order: what says that it is ours is never without a lock. Neither is needed to attach, on a full file system say.
fn mark(mut file: File) -> File {
    let _ = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
    let _ = file.write_all(OURS);
    file
}

impl Drop for TriggerFile {
    fn drop(&mut self) {
        // Nothing to be done if it fails: the JVM looks at the file only on SIGQUIT.
        let _ = self.rights.exercise(|| rustix::fs::unlinkat(&self.directory, &self.name, AtFlags::empty()));
    }
}

/// Fails if another user's file is in the place of the trigger file.
pub(super) fn check(host: &TargetHost) -> Result<(), AttachError> {
    let name = trigger_name(host);
    let Ok(directory) = process::open_working_directory(host.pid()) else { return Ok(()) };
    for (place, path) in
        [(directory.as_fd(), format!("/proc/{}/cwd/{name}", host.pid())), (host.tmp(), format!("/tmp/{name}"))]
    {
        let owner = rustix::fs::statat(place, &name, AtFlags::SYMLINK_NOFOLLOW).map(|stat| stat.st_uid);
        if let Ok(owner) = owner
            && owner != 0
            && owner != host.uid()
        {
            return Err(squatted(host, &path, owner));
        }
    }
    Ok(())
}

/// The name of the trigger file.
pub(crate) fn trigger_name(host: &TargetHost) -> String {
    format!(".attach_pid{}", host.vm_pid())
}

/// Removes a trigger file of ours that a tool has left which is gone. Whether there was one.
pub(crate) fn remove_left(directory: BorrowedFd<'_>, name: &str, owner: u32) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::empty()) else { return false };
    let is_his = rustix::fs::fstat(&file).is_ok_and(|stat| stat.st_uid == owner);
    let is_left = is_his && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
    // One byte more than it has: it is ours only if that is all.
    is_left
        && shared_dir::is_still_at(&file, directory, name)
        && process::read_regular(file, OURS.len() as u64 + 1).is_ok_and(|bytes| bytes == OURS)
        && rustix::fs::unlinkat(directory, name, AtFlags::empty()).is_ok()
}

/// The file that a client makes, as long as the result lives.
#[cfg(test)]
pub(super) fn play(host: &TargetHost) -> impl Drop {
    TriggerFile::create(host).expect("it can be made").expect("there was none")
}

fn squatted(host: &TargetHost, path: &str, owner: u32) -> AttachError {
    AttachError::Squatted { path: path.to_owned(), owner, pid: host.pid(), uid: host.uid() }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Whoever sees a trigger file of ours sees that it is ours and not left, however soon he looks.
    #[test]
    fn a_trigger_file_is_never_without_its_mark_and_its_lock() {
        let path = std::env::temp_dir().join(format!("headwater-test-trigger-{}", std::process::id()));
        std::fs::create_dir(&path).expect("new");
        let directory = File::open(&path).expect("it is there");
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let is_over = AtomicBool::new(false);
        let looks = thread::scope(|scope| {
            let looker = scope.spawn(|| {
                let mut looks = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let Ok(file) = rustix::fs::openat(&directory, "trigger", flags, Mode::empty()) else { continue };
                    let lock = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
                    // It may be closed, and so unlocked, as soon as it has no name any more.
                    let is_there = rustix::fs::fstat(&file).expect("open").st_nlink > 0;
                    let text = process::read_regular(file, 100).expect("readable");
                    assert_eq!(text, OURS, "without its mark");
                    assert!(!is_there || lock.is_err(), "without its lock");
                    looks += 1;
                }
                looks
            });
            for _ in 0..20_000 {
                let file = create_marked(directory.as_fd(), "trigger").expect("it can be made");
                rustix::fs::unlinkat(&directory, "trigger", AtFlags::empty()).expect("it is there");
                drop(file);
                if looker.is_finished() {
                    break;
                }
            }
            is_over.store(true, Ordering::Relaxed);
            looker.join()
        });
        std::fs::remove_dir_all(&path).expect("ours");
        assert!(looks.expect("each look saw mark and lock") > 0);
    }
}
