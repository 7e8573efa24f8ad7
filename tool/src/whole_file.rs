//! Files that are written whole or not at all.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes beside the file and renames: whatever fails, the old file stays as it was, and no half-written one is left behind.
///
/// A device or a pipe (`/dev/stdout`, say) cannot be replaced and is written to directly. Errors are the operating system's; the
/// file's name is not in them.
pub fn write_whole(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(path);
    if metadata.is_ok_and(|metadata| !metadata.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).truncate(true).open(path)?);
        return fill(&mut out).and_then(|()| out.flush());
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = write_through(&unfinished, fill).and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        // What could not be written completely is of no use.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// To the disk: a rename may get there before the data, and a power failure would leave an empty file.
fn write_through(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    fill(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
}

#[cfg(test)]
mod tests {
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
}
