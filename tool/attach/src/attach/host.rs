//! The target as a place: its user, its file system, and a hold on the process that outlives the reuse of its pid.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::{Errno, retry_on_intr};
use rustix::process::{Pid, PidfdFlags, Signal};

use super::{AttachError, error};
use crate::jvm::process::{self, Kind, Mappings, Status};
use crate::jvm::{self, Jvm};
use crate::rights::Rights;

/// A hold on a JVM that may be attached to.
#[derive(Debug)]
pub struct TargetHost {
    pid: u32,
    vm_pid: u32,
    uid: u32,
    gid: u32,
    /// Those of the target's user: nothing is done in its places with others.
    rights: Rights,
    /// With the pid, the identity of the process.
    start_time: u64,
    /// None on kernels before 5.3.
    pidfd: Option<OwnedFd>,
    /// The target's /tmp, as a place only (`O_PATH`).
    tmp: OwnedFd,
    tmp_here: PathBuf,
    attach_disabled: bool,
    /// Nobody waits any more for what is asked of it.
    abandoned: Arc<AtomicBool>,
}

impl TargetHost {
    /// Takes hold of a JVM. Changes nothing in it.
    pub fn of(jvm: &Jvm) -> Result<TargetHost, AttachError> {
        let pid = jvm.pid;
        // Taken before looking: whatever we see from now on, as long as the process lives, is this process.
        let pidfd = open_pidfd(pid)?;
        let inspected = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => AttachError::Gone { pid },
            _ => AttachError::Io { doing: format!("inspect process {pid}"), source },
        };
        let status = Status::of(pid).map_err(inspected)?;
        if status.is_dead() {
            return Err(AttachError::Gone { pid });
        }
        let start_time = process::start_time(pid).map_err(inspected)?;
        let us = rustix::process::geteuid();
        let not_permitted = || AttachError::NotPermitted { pid, owner: status.effective_uid, us: us.as_raw() };
        let mappings = Mappings::of(pid, status.inner_pid).map_err(inspected)?;
        match mappings.kind {
            Kind::HotSpot => {}
            Kind::Hidden => return Err(not_permitted()),
            Kind::OpenJ9 | Kind::Other => {
                return Err(AttachError::NotAJvm { pid, command: process::command(pid, &status) });
            }
        }
        if !us.is_root() && us.as_raw() != status.effective_uid {
            return Err(not_permitted());
        }
        let (tmp, tmp_here) = open_tmp(pid).map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => not_permitted(),
            _ => AttachError::NoTmp { pid, source },
        })?;
        Ok(TargetHost {
            pid,
            vm_pid: status.inner_pid,
            uid: status.effective_uid,
            gid: status.effective_gid,
            rights: Rights::of(status.effective_uid, status.effective_gid, &status.groups),
            start_time,
            pidfd,
            tmp,
            tmp_here,
            attach_disabled: jvm::attach_is_disabled(pid, &status, &mappings),
            abandoned: Arc::default(),
        })
    }

    /// Ourselves as a place: for programs that we start, which see what we see and run as the user we are.
    pub fn ourselves() -> Result<TargetHost, AttachError> {
        let pid = std::process::id();
        let inspected = |source: io::Error| AttachError::Io { doing: "inspect our own process".to_owned(), source };
        let (tmp, tmp_here) = open_tmp(pid).map_err(|source| AttachError::NoTmp { pid, source })?;
        Ok(TargetHost {
            pid,
            vm_pid: Status::of(pid).map_err(inspected)?.inner_pid,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            rights: Rights::own(),
            start_time: process::start_time(pid).map_err(inspected)?,
            pidfd: open_pidfd(pid)?,
            tmp,
            tmp_here,
            attach_disabled: false,
            abandoned: Arc::default(),
        })
    }

    /// The process id, as we see it.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The process id that the JVM itself knows.
    pub fn vm_pid(&self) -> u32 {
        self.vm_pid
    }

    /// The effective user id of the JVM, as we see it.
    pub fn uid(&self) -> u32 {
        self.uid
    }

    /// The effective group id of the JVM, as we see it.
    pub fn gid(&self) -> u32 {
        self.gid
    }

    /// Whether the process that we took hold of is still running; false too if its pid now means another one.
    pub fn is_alive(&self) -> bool {
        self.status().is_ok()
    }

    /// Set to true, it ends what is being asked of the target, as soon as that can be.
    pub fn abandoned(&self) -> &Arc<AtomicBool> {
        &self.abandoned
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Acquire)
    }

    /// The state of the process, or [`AttachError::Gone`].
    pub fn status(&self) -> Result<Status, AttachError> {
        match Status::of(self.pid) {
            // It was the same process's, if that has not ended since.
            Ok(status) if !status.is_dead() && process::has_program(self.pid) && self.is_the_same() => Ok(status),
            _ => Err(AttachError::Gone { pid: self.pid }),
        }
    }

    /// Whether the number is still the process's. To read when it began costs time for each of its threads.
    fn is_the_same(&self) -> bool {
        let Some(pidfd) = &self.pidfd else {
            return process::start_time(self.pid).is_ok_and(|start_time| start_time == self.start_time);
        };
        // It can be read once the process has ended.
        let ended = &mut [PollFd::new(pidfd, PollFlags::IN)];
        retry_on_intr(|| poll(ended, Some(&Timespec::default()))).is_ok_and(|ready| ready == 0)
    }

    /// The JVM has switched attaching off.
    pub fn attach_disabled(&self) -> bool {
        self.attach_disabled
    }

    /// The target's /tmp, as a place.
    pub fn tmp(&self) -> BorrowedFd<'_> {
        self.tmp.as_fd()
    }

    /// The path of the target's /tmp for us.
    pub fn tmp_here(&self) -> &Path {
        &self.tmp_here
    }

    /// Those of the target's user.
    pub(crate) fn rights(&self) -> &Rights {
        &self.rights
    }

    /// Does something as the target's user.
    pub(crate) fn as_target<T: Send>(&self, task: impl FnOnce() -> T + Send) -> Result<T, AttachError> {
        let doing =
            || format!("become user id {}, to do nothing in places of process {} that it may not", self.uid, self.pid);
        self.rights.exercise(task).map_err(|source| AttachError::Io { doing: doing(), source })
    }

    /// Sends SIGQUIT to this process and no other. The caller has made sure that it is handled.
    pub(super) fn send_quit(&self) -> Result<(), AttachError> {
        let sent = match &self.pidfd {
            Some(pidfd) => rustix::process::pidfd_send_signal(pidfd, Signal::QUIT),
            None => {
                self.status()?;
                pid_of(self.pid).map_or(Err(Errno::SRCH), |pid| rustix::process::kill_process(pid, Signal::QUIT))
            }
        };
        match sent {
            Ok(()) => Ok(()),
            Err(Errno::SRCH) => Err(AttachError::Gone { pid: self.pid }),
            Err(Errno::PERM) => Err(AttachError::NotPermitted {
                pid: self.pid,
                owner: self.uid,
                us: rustix::process::geteuid().as_raw(),
            }),
            Err(errno) => {
                Err(error::AttachError::Io { doing: format!("signal process {}", self.pid), source: errno.into() })
            }
        }
    }
}

fn pid_of(pid: u32) -> Option<Pid> {
    Pid::from_raw(i32::try_from(pid).ok()?)
}

fn open_pidfd(pid: u32) -> Result<Option<OwnedFd>, AttachError> {
    let Some(raw) = pid_of(pid) else { return Err(AttachError::Gone { pid }) };
    match rustix::process::pidfd_open(raw, PidfdFlags::empty()) {
        Ok(pidfd) => Ok(Some(pidfd)),
        Err(Errno::SRCH) => Err(AttachError::Gone { pid }),
        // Linux before 5.3, or a seccomp filter that does not know the call: the start time has to do.
        Err(_) => Ok(None),
    }
}

/// The target's /tmp, and a path to it for us.
fn open_tmp(pid: u32) -> io::Result<(OwnedFd, PathBuf)> {
    let root = process::open_root(pid)?;
    let tmp = process::open_in_root(&root, "tmp", OFlags::PATH | OFlags::DIRECTORY)?;
    let shared_tmp = same_directory(&tmp, Path::new("/tmp"));
    let same_mounts = match (fs::metadata("/proc/self/ns/mnt"), fs::metadata(format!("/proc/{pid}/ns/mnt"))) {
        (Ok(ours), Ok(theirs)) => ours.ino() == theirs.ino(),
        _ => false,
    };
    let through_root = PathBuf::from(format!("/proc/{pid}/root/tmp"));
    let here = if same_mounts && shared_tmp {
        PathBuf::from("/tmp")
    } else if same_directory(&tmp, &through_root) {
        through_root
    } else {
        // The container's /tmp is an absolute symbolic link, which would lead us astray through /proc/PID/root.
        use std::os::fd::AsRawFd;
        PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), tmp.as_raw_fd()))
    };
    Ok((tmp, here))
}

fn same_directory(directory: &OwnedFd, path: &Path) -> bool {
    match (rustix::fs::fstat(directory), fs::metadata(path)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.dev(), other.ino()),
        _ => false,
    }
}
