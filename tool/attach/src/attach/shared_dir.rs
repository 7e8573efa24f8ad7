//! A directory that the tool and the target both see, for as long as one session lasts.
//!
//! It lies in the target's /tmp, which others can write to and which a hostile target could rearrange meanwhile. So everything
//! here goes through a handle on the directory itself, never through its path, and with the rights of the target's user.

use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Mode, OFlags, StatVfsMountFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use super::{AttachError, TargetHost};
use crate::jvm::process;
use crate::rights::Rights;

/// A private directory in the target's /tmp; removed with its content on drop.
#[derive(Debug)]
pub struct SharedDir {
    here: PathBuf,
    there: String,
    name: String,
    tmp: OwnedFd,
    /// Locked as long as it is open: one tool a directory, and a sign that there is one.
    directory: OwnedFd,
    /// What is in it is the target's user's, and made with his rights.
    rights: Rights,
}

/// How often the directory may vanish between finding and locking it, because another tool is just ending, or be locked by one that
/// looks whether it has been left.
const ATTEMPTS: usize = 8;
/// How long such a look takes at most, if it is to be over after some of them.
const LOOK: Duration = Duration::from_millis(5);
/// How many connections may wait to be accepted.
const BACKLOG: i32 = 128;

impl TargetHost {
    /// A directory `/tmp/NAME` of the target's, private to its user and us, and removed on drop.
    ///
    /// One tool at a time can hold it. What a killed tool left there is removed. A directory by that name that does not belong
    /// to the target's user is an error, and so is a symbolic link.
    pub fn create_dir(&self, stable_name: &str) -> Result<SharedDir, AttachError> {
        SharedDir::create(self, stable_name)
    }

    /// The same under another name, which begins so, if another user has taken this one.
    pub fn create_dir_or_another(&self, stable_name: &str) -> Result<SharedDir, AttachError> {
        SharedDir::create_or_another(self, stable_name)
    }
}

impl SharedDir {
    pub(super) fn create(host: &TargetHost, name: &str) -> Result<SharedDir, AttachError> {
        let there = format!("/tmp/{name}");
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(AttachError::BadArgument {
                command: "create_dir".to_owned(),
                why: format!("is `{name}`, which is no plain file name"),
            });
        }
        let tmp = host.tmp().try_clone_to_owned().map_err(|source| AttachError::file("open", "/tmp", source))?;
        let directory = host.as_target(|| make(tmp.as_fd(), name, host.uid()))?.map_err(|refused| match refused {
            Refused::Taken(why) => AttachError::DirTaken { path: there.clone(), why },
            Refused::InUse => AttachError::InUse { pid: host.pid(), path: there.clone() },
            Refused::Failed(doing, errno) => AttachError::file(doing, &there, errno),
        })?;
        let (here, name, rights) = (host.tmp_here().join(name), name.to_owned(), host.rights().clone());
        Ok(SharedDir { here, there, name, tmp, directory, rights })
    }

    /// The same under another name, where somebody has taken this one who is neither the target's user nor a tool that is attached.
    pub(super) fn create_or_another(host: &TargetHost, name: &str) -> Result<SharedDir, AttachError> {
        let mut created = SharedDir::create(host, name);
        for _ in 0..ATTEMPTS {
            if !matches!(created, Err(AttachError::DirTaken { .. })) {
                break;
            }
            // Nobody can foresee it: the hasher's keys are random.
            let number = RandomState::new().hash_one(name) as u32;
            created = SharedDir::create(host, &format!("{name}-{number:08x}"));
        }
        created
    }

    /// The directory's path for us: `/tmp/NAME`, or through `/proc` if the target has a file system of its own.
    pub fn here(&self) -> &Path {
        &self.here
    }

    /// The directory's path for the target.
    pub fn there(&self) -> &str {
        &self.there
    }

    /// Its name in the target's /tmp.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes a library or program that the target can load: mode 0755, the target's own, complete or not there at all.
    pub fn write_executable(&self, name: &str, bytes: &[u8]) -> Result<(), AttachError> {
        let path = self.path_of(name)?;
        let statvfs =
            rustix::fs::fstatvfs(&self.directory).map_err(|errno| AttachError::file("look at", &path, errno))?;
        if statvfs.f_flag.contains(StatVfsMountFlags::NOEXEC) {
            return Err(AttachError::NoExec { path });
        }
        let unfinished = format!(".{name}.new");
        let write = || -> io::Result<()> {
            let mut file = self.open_new(&unfinished)?;
            file.write_all(bytes)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o755))?;
            rustix::fs::renameat(&self.directory, &unfinished, &self.directory, name)?;
            Ok(())
        };
        let write = || {
            write().inspect_err(|_| {
                let _ = rustix::fs::unlinkat(&self.directory, &unfinished, AtFlags::empty());
            })
        };
        self.do_with("write", &path, write)
    }

    /// Creates an empty file that both sides can read and write, mode 0600, the target's own; replaces what is there.
    pub fn create_file(&self, name: &str) -> Result<File, AttachError> {
        self.do_with("create", &self.path_of(name)?, || self.open_new(name))
    }

    /// Creates a pipe that the target can write to, and opens it for reading, which then waits for nothing; replaces what is there.
    pub fn create_pipe(&self, name: &str) -> Result<File, AttachError> {
        self.do_with("create", &self.path_of(name)?, || {
            self.remove(name)?;
            rustix::fs::mknodat(&self.directory, name, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?;
            Ok(open_pipe(&self.directory, name)?)
        })
    }

    /// Writes a file that both sides can read, mode 0600, the target's own; replaces what is there.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), AttachError> {
        self.do_with("write", &self.path_of(name)?, || self.open_new(name)?.write_all(bytes))
    }

    /// What is in a file, of which no more than `limit` is read. No symbolic link is followed.
    pub fn read_file(&self, name: &str, limit: u64) -> Result<Vec<u8>, AttachError> {
        self.do_with("read", &self.path_of(name)?, || {
            // Opening what is no file must not block either.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
            process::read_regular(rustix::fs::openat(&self.directory, name, flags, Mode::empty())?, limit)
        })
    }

    /// A socket to which only the target's user can connect, and root; replaces what is there.
    pub fn listen(&self, name: &str) -> Result<UnixListener, AttachError> {
        self.do_with("create", &self.path_of(name)?, || {
            self.remove(name)?;
            let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            // Linux gives the file the socket's own mode, less the umask. So it has no other for a moment, and its path is not needed again.
            rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
            let path = format!("/proc/self/fd/{}/{name}", self.directory.as_raw_fd());
            rustix::net::bind(&socket, &SocketAddrUnix::new(path.as_str())?)?;
            rustix::net::listen(&socket, BACKLOG)?;
            Ok(UnixListener::from(socket))
        })
    }

    fn path_of(&self, name: &str) -> Result<String, AttachError> {
        if name.is_empty() || matches!(name, "." | "..") || name.contains(['/', '\0']) {
            return Err(AttachError::BadArgument {
                command: "write".to_owned(),
                why: format!("is `{name}`, which is no plain file name"),
            });
        }
        Ok(format!("{}/{name}", self.there))
    }

    /// Does something in the directory as the target's user.
    fn do_with<T: Send>(
        &self,
        doing: &str,
        path: &str,
        task: impl FnOnce() -> io::Result<T> + Send,
    ) -> Result<T, AttachError> {
        self.rights.exercise(task).flatten().map_err(|source| AttachError::file(doing, path, source))
    }

    fn remove(&self, name: &str) -> Result<(), Errno> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn open_new(&self, name: &str) -> io::Result<File> {
        self.remove(name)?;
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?))
    }
}

impl Drop for SharedDir {
    fn drop(&mut self) {
        // Works after the target's end too: the handles keep its file system alive.
        let _ = self.rights.exercise(|| remove_directory(&self.directory, self.tmp.as_fd(), &self.name));
    }
}

/// The end of a pipe that is read.
fn open_pipe(directory: impl AsFd, name: impl rustix::path::Arg) -> Result<File, Errno> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::openat(directory, name, flags, Mode::empty())?))
}

/// A directory that a tool of this user's has left: one that none holds any more. It is held then.
pub(crate) fn hold_left(tmp: BorrowedFd<'_>, name: &str, owner: u32) -> Option<OwnedFd> {
    match open_and_lock(tmp, name, owner) {
        Ok(Found::Held(directory)) => Some(directory),
        _ => None,
    }
}

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Why there is no directory.
enum Refused {
    /// The name is somebody else's.
    Taken(String),
    /// A tool holds it.
    InUse,
    /// What was being done.
    Failed(&'static str, Errno),
}

/// Makes the directory or takes over what a tool that is gone has left; empty and locked.
fn make(tmp: BorrowedFd<'_>, name: &str, owner: u32) -> Result<OwnedFd, Refused> {
    let mut refused = Refused::InUse;
    for _ in 0..ATTEMPTS {
        match rustix::fs::mkdirat(tmp, name, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(Refused::Failed("create", errno)),
        }
        match open_and_lock(tmp, name, owner)? {
            Found::Held(directory) => {
                remove_content(&directory).map_err(|errno| Refused::Failed("clear", errno))?;
                rustix::fs::fchmod(&directory, Mode::RWXU).map_err(|errno| Refused::Failed("protect", errno))?;
                return Ok(directory);
            }
            Found::Locked => thread::sleep(LOOK),
            Found::Vanished => refused = Refused::Failed("create", Errno::NOENT),
        }
    }
    Err(refused)
}

/// What has come of a directory.
enum Found {
    /// It can be trusted, and is ours alone.
    Held(OwnedFd),
    /// Another tool holds it.
    Locked,
    /// It has just been removed.
    Vanished,
}

/// Opens the directory, checks that it can be trusted and locks it.
fn open_and_lock(tmp: BorrowedFd<'_>, name: &str, owner: u32) -> Result<Found, Refused> {
    let directory = match rustix::fs::openat(tmp, name, DIRECTORY_FLAGS, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(Found::Vanished),
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(Refused::Taken("is a symbolic link or a file".to_owned())),
        Err(Errno::ACCESS) => return Err(Refused::Taken("may not be opened".to_owned())),
        Err(errno) => return Err(Refused::Failed("open", errno)),
    };
    let stat = rustix::fs::fstat(&directory).map_err(|errno| Refused::Failed("look at", errno))?;
    if stat.st_uid != owner {
        return Err(Refused::Taken(format!("belongs to user id {}, and the target to {owner}", stat.st_uid)));
    }
    match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) if is_still_at(&directory, tmp, name) => Ok(Found::Held(directory)),
        Ok(()) => Ok(Found::Vanished),
        Err(Errno::WOULDBLOCK) => Ok(Found::Locked),
        Err(errno) => Err(Refused::Failed("lock", errno)),
    }
}

/// Whether a name still means this file.
pub(crate) fn is_still_at(file: impl AsFd, directory: BorrowedFd<'_>, name: &str) -> bool {
    match (rustix::fs::fstat(file), rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// Removes a directory that we hold, unless its name means another one by now. Whether it is gone.
pub(crate) fn remove_directory(directory: &OwnedFd, tmp: BorrowedFd<'_>, name: &str) -> bool {
    // The agent may have removed it already.
    let _ = remove_content(directory);
    is_still_at(directory, tmp, name) && rustix::fs::unlinkat(tmp, name, AtFlags::REMOVEDIR).is_ok()
}

/// Removes everything in a directory, without following symbolic links.
fn remove_content(directory: &OwnedFd) -> Result<(), Errno> {
    let names: Vec<_> = Dir::read_from(directory)?
        .filter_map(|entry| entry.ok().map(|entry| (entry.file_name().to_owned(), entry.file_type())))
        .filter(|(name, _)| !matches!(name.as_bytes(), b"." | b".."))
        .collect();
    for (name, file_type) in names {
        // A target that is just opening a pipe to write into it would wait for ever for a reader.
        let _reader = (file_type == FileType::Fifo).then(|| open_pipe(directory, &name));
        let removed = match file_type {
            FileType::Directory => Err(Errno::ISDIR),
            _ => rustix::fs::unlinkat(directory, &name, AtFlags::empty()),
        };
        match removed {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => {
                remove_content(&rustix::fs::openat(directory, &name, DIRECTORY_FLAGS, Mode::empty())?)?;
                rustix::fs::unlinkat(directory, &name, AtFlags::REMOVEDIR)?;
            }
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
