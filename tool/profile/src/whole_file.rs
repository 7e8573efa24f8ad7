//! Files that are written whole or not at all; or, if they are read meanwhile, anew.
//!
//! Their directory may be one that others can write to. It is opened once, and from then on no name in it is followed: not for the
//! unfinished file, and at the end only for a link of our own or root's.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufWriter, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

/// Writes beside the file and renames: whatever fails, the old file stays as it was, and no half-written one is left behind.
///
/// A device or a pipe (`/dev/stdout`, say) cannot be replaced and is written to directly. Errors are the operating system's; the
/// file's name is not in them.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let place = Place::of(path)?;
    if let Some(there) = &place.there {
        let mut out = BufWriter::new(open_through(there, &place.directory, place.name)?);
        return fill(&mut out).and_then(|()| out.flush());
    }
    let (unfinished, file) = place.create()?;
    let written = write_through(file, fill).and_then(|()| place.rename(&unfinished));
    if written.is_err() {
        // What could not be written completely is of no use.
        let _ = rustix::fs::unlinkat(&place.directory, &unfinished, AtFlags::empty());
    }
    written
}

/// A file for what is read while it is written: a new one in the place of an old one, or a device or a pipe. Errors are as those of [`write_whole`].
pub fn create(path: &Path) -> io::Result<File> {
    let place = Place::of(path)?;
    if let Some(there) = &place.there {
        return open_through(there, &place.directory, place.name);
    }
    let (unfinished, file) = place.create()?;
    if let Err(error) = place.rename(&unfinished) {
        let _ = rustix::fs::unlinkat(&place.directory, &unfinished, AtFlags::empty());
        return Err(error);
    }
    Ok(file)
}

/// A name in a directory.
#[derive(Debug)]
struct Place<'p> {
    directory: OwnedFd,
    name: &'p OsStr,
    /// What has the name, if that is no regular file.
    there: Option<OwnedFd>,
}

impl Place<'_> {
    fn of(path: &Path) -> io::Result<Place<'_>> {
        let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        let directory = rustix::fs::open(parent, flags | OFlags::DIRECTORY, Mode::empty())?;
        let there = match rustix::fs::openat(&directory, name, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(there) => Some(there).filter(|there| file_type(there) != Ok(FileType::RegularFile)),
            Err(Errno::NOENT) => None,
            Err(errno) => return Err(errno.into()),
        };
        Ok(Place { directory, name, there })
    }

    /// A new file beside it, which nobody knows.
    fn create(&self) -> io::Result<(OsString, File)> {
        let mut unfinished = self.name.to_owned();
        unfinished.push(format!(".{:016x}.new", RandomState::new().hash_one(self.name)));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, &unfinished, flags, Mode::from_raw_mode(0o666))?;
        Ok((unfinished, File::from(file)))
    }

    fn rename(&self, unfinished: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.directory, unfinished, &self.directory, self.name)?)
    }
}

/// Opens for writing what is no regular file. A link or a pipe that somebody else has put there, who is not root, is not followed: he would say where
/// we write.
fn open_through(there: &OwnedFd, directory: &OwnedFd, name: &OsStr) -> io::Result<File> {
    let (kind, owner) = (file_type(there)?, rustix::fs::fstat(there)?.st_uid);
    let is_trusted = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if !is_trusted && kind != FileType::CharacterDevice {
        let what = format!("it is no file, and belongs to user id {owner}; remove it, or write elsewhere");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, what));
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC;
    let open = |path: &OsStr| rustix::fs::openat(directory, path, flags, Mode::from_raw_mode(0o666));
    let is_proc = rustix::fs::fstatfs(directory)?.f_type == rustix::fs::PROC_SUPER_MAGIC;
    Ok(File::from(match kind {
        // What such links say in /proc (`/dev/fd/63`) is no path.
        FileType::Symlink if is_proc => open(name)?,
        FileType::Symlink => open(&OsString::from_vec(rustix::fs::readlinkat(there, "", Vec::new())?.into_bytes()))?,
        _ => rustix::fs::open(format!("/proc/self/fd/{}", there.as_raw_fd()), flags - OFlags::CREATE, Mode::empty())?,
    }))
}

fn file_type(file: &OwnedFd) -> Result<FileType, Errno> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(file)?.st_mode))
}

/// To the disk: a rename may get there before the data, and a power failure would leave an empty file.
fn write_through(file: File, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(file);
    fill(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, lchown, symlink};

    use headwater_tests::Scratch;

    use super::*;

    #[test]
    fn a_failure_leaves_the_old_file_and_nothing_else() {
        let scratch = Scratch::new("whole");
        let file = scratch.file("report");
        write_whole(&file, |out| out.write_all(b"old")).expect("written");
        let failed = write_whole(&file, |out| {
            out.write_all(b"new")?;
            Err(io::Error::other("the source is gone"))
        });
        assert_eq!(failed.map_err(|error| error.to_string()), Err("the source is gone".to_owned()));
        assert_eq!(std::fs::read(&file).expect("still there"), b"old");
        assert_eq!(std::fs::read_dir(scratch.path()).expect("a directory").count(), 1);
        write_whole(&file, |out| out.write_all(b"new")).expect("written");
        assert_eq!(std::fs::read(&file).expect("replaced"), b"new");
    }

    #[test]
    fn a_device_is_not_replaced() {
        write_whole(Path::new("/dev/null"), |out| out.write_all(b"gone")).expect("written");
        assert!(!std::fs::metadata("/dev/null").expect("still a device").is_file());
    }

    #[test]
    fn a_link_of_ours_is_written_through() {
        let scratch = Scratch::new("whole");
        let (file, link) = (scratch.file("file"), scratch.file("link"));
        std::fs::write(&file, "long ago").expect("written");
        symlink("file", &link).expect("linked");
        write_whole(&link, |out| out.write_all(b"now")).expect("written");
        assert_eq!(std::fs::read(&file).expect("there"), b"now");
        assert!(std::fs::symlink_metadata(&link).expect("there").is_symlink());
    }

    #[test]
    fn another_users_link_or_pipe_is_not_followed() {
        const NOBODY: Option<u32> = Some(65534);
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can make another user's files");
            return;
        }
        let scratch = Scratch::new("whole");
        let (file, link, pipe) = (scratch.file("file"), scratch.file("link"), scratch.file("pipe"));
        std::fs::write(&file, "secret").expect("written");
        symlink(&file, &link).expect("linked");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        lchown(&link, NOBODY, NOBODY).expect("we are root");
        chown(&pipe, NOBODY, NOBODY).expect("we are root");
        chown(scratch.path(), NOBODY, NOBODY).expect("we are root");
        for path in [&link, &pipe] {
            let whole = write_whole(path, |out| out.write_all(b"ours"));
            for refused in [whole, create(path).map(drop)] {
                let error = refused.expect_err("refused").to_string();
                assert!(error.contains("belongs to user id 65534"), "{error}");
            }
        }
        assert_eq!(std::fs::read(&file).expect("there"), b"secret");
        // A file is replaced, whosever it is: nothing of ours is in what he may have open.
        chown(&file, NOBODY, NOBODY).expect("we are root");
        let owner = || std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&file).expect("there"));
        write_whole(&file, |out| out.write_all(b"ours")).expect("written");
        assert_eq!(owner(), 0);
        chown(&file, NOBODY, NOBODY).expect("we are root");
        create(&file).expect("a new one");
        assert_eq!(owner(), 0);
    }

    #[test]
    fn what_is_read_while_it_is_written_is_there_from_the_beginning() {
        let scratch = Scratch::new("whole");
        let path = scratch.file("events");
        std::fs::write(&path, "long ago").expect("written");
        let mut file = create(&path).expect("created");
        assert_eq!(std::fs::read(&path).expect("there"), b"");
        file.write_all(b"one").expect("written");
        assert_eq!(std::fs::read(&path).expect("there"), b"one");
        assert_eq!(std::fs::read_dir(scratch.path()).expect("a directory").count(), 1);
        create(Path::new("/dev/null")).expect("a device");
    }
}
