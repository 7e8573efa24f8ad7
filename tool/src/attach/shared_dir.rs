//! A directory that the tool and the target both see, for as long as one session lasts.
//!
//! It lies in the target's /tmp, which others can write to and which a hostile target could rearrange while we write as
//! root. So everything here goes through a handle on the directory itself, never through its path.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, FlockOperation, Gid, Mode, OFlags, StatVfsMountFlags, Uid};
use rustix::io::Errno;

use super::{AttachError, TargetHost};

/// A private directory in the target's /tmp; removed with its content on drop.
#[derive(Debug)]
pub struct SharedDir {
    here: PathBuf,
    there: String,
    name: String,
    tmp: OwnedFd,
    /// Locked as long as it is open: one tool a directory.
    directory: OwnedFd,
    owner: Option<(Uid, Gid)>,
}

/// How often the directory may vanish between finding and locking it, because another tool is just ending.
const ATTEMPTS: usize = 8;

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
        for _ in 0..ATTEMPTS {
            let made = match rustix::fs::mkdirat(&tmp, name, Mode::RWXU) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(errno) => return Err(AttachError::file("create", &there, errno)),
            };
            let Some(directory) = open_and_lock(host, &tmp, name, &there)? else { continue };
            let owner = host.owner_to_set();
            let shared = SharedDir {
                here: host.tmp_here().join(name),
                there: there.clone(),
                name: name.to_owned(),
                tmp,
                directory,
                owner,
            };
            if !made {
                remove_content(&shared.directory).map_err(|errno| AttachError::file("clear", &there, errno))?;
            }
            shared
                .set_owner(&shared.directory)
                .map_err(|errno| AttachError::file("change the owner of", &there, errno))?;
            rustix::fs::fchmod(&shared.directory, Mode::RWXU)
                .map_err(|errno| AttachError::file("protect", &there, errno))?;
            return Ok(shared);
        }
        Err(AttachError::InUse { pid: host.pid(), path: there })
    }

    /// The directory's path for us: `/tmp/NAME`, or through `/proc` if the target has a file system of its own.
    pub fn here(&self) -> &Path {
        &self.here
    }

    /// The directory's path for the target.
    pub fn there(&self) -> &str {
        &self.there
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
            self.set_owner(&file)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(0o755))?;
            rustix::fs::renameat(&self.directory, &unfinished, &self.directory, name)?;
            Ok(())
        };
        write().map_err(|source| {
            let _ = rustix::fs::unlinkat(&self.directory, &unfinished, AtFlags::empty());
            AttachError::file("write", &path, source)
        })
    }

    /// Creates an empty file that both sides can read and write, mode 0600, the target's own; replaces what is there.
    pub fn create_file(&self, name: &str) -> Result<File, AttachError> {
        let path = self.path_of(name)?;
        let create = || -> io::Result<File> {
            let file = self.open_new(name)?;
            self.set_owner(&file)?;
            Ok(file)
        };
        create().map_err(|source| AttachError::file("create", &path, source))
    }

    /// Writes a file that both sides can read, mode 0600, the target's own; replaces what is there.
    pub fn write_file(&self, name: &str, bytes: &[u8]) -> Result<(), AttachError> {
        let mut file = self.create_file(name)?;
        file.write_all(bytes).map_err(|source| AttachError::file("write", &format!("{}/{name}", self.there), source))
    }

    /// Opens what is there for reading; no symbolic link is followed.
    pub fn open_file(&self, name: &str) -> Result<File, AttachError> {
        let path = self.path_of(name)?;
        // Opening what is no file must not block either.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(&self.directory, name, flags, Mode::empty());
        opened.map(File::from).map_err(|errno| AttachError::file("open", &path, errno))
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

    fn open_new(&self, name: &str) -> io::Result<File> {
        match rustix::fs::unlinkat(&self.directory, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno.into()),
        }
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.directory, name, flags, Mode::RUSR | Mode::WUSR)?))
    }

    fn set_owner(&self, file: impl AsFd) -> Result<(), Errno> {
        match self.owner {
            Some((uid, gid)) => rustix::fs::fchown(file, Some(uid), Some(gid)),
            None => Ok(()),
        }
    }
}

impl Drop for SharedDir {
    fn drop(&mut self) {
        // Works after the target's end too: the handles keep its file system alive. If the name means another directory
        // by now, that one is not empty or not ours to care about, and removing it fails or does no harm.
        let _ = remove_content(&self.directory);
        if is_still_at(&self.directory, &self.tmp, &self.name) {
            let _ = rustix::fs::unlinkat(&self.tmp, &self.name, AtFlags::REMOVEDIR);
        }
    }
}

const DIRECTORY_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory, checks that it can be trusted and locks it. None if it has just been removed.
fn open_and_lock(host: &TargetHost, tmp: &OwnedFd, name: &str, there: &str) -> Result<Option<OwnedFd>, AttachError> {
    let taken = |why: String| AttachError::DirTaken { path: there.to_owned(), why };
    let directory = match rustix::fs::openat(tmp, name, DIRECTORY_FLAGS, Mode::empty()) {
        Ok(directory) => directory,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP | Errno::NOTDIR) => return Err(taken("is a symbolic link or a file".to_owned())),
        Err(Errno::ACCESS) => return Err(taken("we may not open it".to_owned())),
        Err(errno) => return Err(AttachError::file("open", there, errno)),
    };
    let stat = rustix::fs::fstat(&directory).map_err(|errno| AttachError::file("look at", there, errno))?;
    if stat.st_uid != host.uid() && stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(taken(format!("belongs to user id {}, neither to us nor to the target", stat.st_uid)));
    }
    match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(AttachError::InUse { pid: host.pid(), path: there.to_owned() }),
        Err(errno) => return Err(AttachError::file("lock", there, errno)),
    }
    Ok(is_still_at(&directory, tmp, name).then_some(directory))
}

fn is_still_at(directory: &OwnedFd, tmp: &OwnedFd, name: &str) -> bool {
    match (rustix::fs::fstat(directory), rustix::fs::statat(tmp, name, AtFlags::SYMLINK_NOFOLLOW)) {
        (Ok(one), Ok(other)) => (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino),
        _ => false,
    }
}

/// Removes everything in a directory, without following symbolic links.
fn remove_content(directory: &OwnedFd) -> Result<(), Errno> {
    let names: Vec<_> = Dir::read_from(directory)?
        .filter_map(|entry| entry.ok().map(|entry| (entry.file_name().to_owned(), entry.file_type())))
        .filter(|(name, _)| !matches!(name.as_bytes(), b"." | b".."))
        .collect();
    for (name, file_type) in names {
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
