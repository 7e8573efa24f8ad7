//! The files by which the agent came. They are of no use once it is loaded and has connected, and the tool may be killed before it has removed
//! them: so the agent does it, too.

use std::path::Path;

use headwater_protocol::files::{DIRECTORY_PREFIX, LIBRARY, SOCKET};
use rustix::fs::{AtFlags, Mode, OFlags};

/// Removes the directory of a control socket, if it is one that the tool has made for us, and has nothing else in it.
pub fn remove(socket: &Path) {
    let Some(directory) = socket.parent() else { return };
    let (Some(place), Some(name)) = (directory.parent(), directory.file_name()) else { return };
    if socket.file_name().is_none_or(|name| name != SOCKET)
        || !name.as_encoded_bytes().starts_with(DIRECTORY_PREFIX.as_bytes())
    {
        return;
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(place) = rustix::fs::open(place, flags, Mode::empty()) else { return };
    let Ok(directory) = rustix::fs::openat(&place, name, flags | OFlags::NOFOLLOW, Mode::empty()) else { return };
    let is_ours = |stat: rustix::fs::Stat| stat.st_uid == rustix::process::geteuid().as_raw();
    if !rustix::fs::fstat(&directory).is_ok_and(is_ours) {
        return;
    }
    // The tool may be doing the same: what is gone is gone.
    for file in [LIBRARY, SOCKET] {
        let _ = rustix::fs::unlinkat(&directory, file, AtFlags::empty());
    }
    let _ = rustix::fs::unlinkat(&place, name, AtFlags::REMOVEDIR);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// A directory below the test's own, removed with it.
    struct Place(std::path::PathBuf);

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn only_what_the_tool_has_made_is_removed() {
        let place = Place(std::env::temp_dir().join(format!("headwater-test-files-{}", std::process::id())));
        let make = |name: &str, others: &[&str]| {
            let directory = place.0.join(name);
            fs::create_dir_all(&directory).expect("made");
            for file in [LIBRARY, SOCKET].iter().chain(others) {
                fs::write(directory.join(file), "x").expect("written");
            }
            directory
        };
        let count = |directory: &Path| fs::read_dir(directory).map(Iterator::count).ok();

        let ours = make("headwater-1-0123abcd", &[]);
        remove(&ours.join(SOCKET));
        assert_eq!(count(&ours), None);
        // Twice is not too often.
        remove(&ours.join(SOCKET));

        let more = make("headwater-2-0123abcd", &["kept"]);
        remove(&more.join(SOCKET));
        assert_eq!(count(&more), Some(1));

        let other = make("other", &[]);
        remove(&other.join(SOCKET));
        remove(&other.join(LIBRARY));
        std::os::unix::fs::symlink(&other, place.0.join("headwater-3-0123abcd")).expect("linked");
        remove(&place.0.join("headwater-3-0123abcd").join(SOCKET));
        remove(Path::new(SOCKET));
        assert_eq!(count(&other), Some(2));
    }
}
