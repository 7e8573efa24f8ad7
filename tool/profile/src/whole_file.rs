//! Files that are written whole or not at all.
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
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let place = OFlags::PATH | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, place | OFlags::DIRECTORY, Mode::empty())?;
    match rustix::fs::openat(&directory, name, place | OFlags::NOFOLLOW, Mode::empty()) {
        Ok(there) if file_type(&there)? != FileType::RegularFile => {
            let mut out = BufWriter::new(open_through(&there, &directory, name)?);
            return fill(&mut out).and_then(|()| out.flush());
        }
        Ok(_) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut unfinished = name.to_owned();
    unfinished.push(format!(".{:016x}.new", RandomState::new().hash_one(name)));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(&directory, &unfinished, flags, Mode::from_raw_mode(0o666))?);
    let rename = || Ok(rustix::fs::renameat(&directory, &unfinished, &directory, name)?);
    let written = write_through(file, fill).and_then(|()| rename());
    if written.is_err() {
        // What could not be written completely is of no use.
        let _ = rustix::fs::unlinkat(&directory, &unfinished, AtFlags::empty());
    }
    written
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
            let error = write_whole(path, |out| out.write_all(b"ours")).expect_err("refused").to_string();
            assert!(error.contains("belongs to user id 65534"), "{error}");
        }
        assert_eq!(std::fs::read(&file).expect("there"), b"secret");
        // A file is replaced, whosever it is: nothing of ours is in what he may have open.
        chown(&file, NOBODY, NOBODY).expect("we are root");
        write_whole(&file, |out| out.write_all(b"ours")).expect("written");
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&file).expect("there")), 0);
    }
}
