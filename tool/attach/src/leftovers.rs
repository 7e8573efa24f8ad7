//! What tools that are gone have left: the directories that they made for a target, and their trigger files.
//!
//! A tool locks what it makes for as long as it lives, so what is not locked was left. It is removed with the rights of the user whose it is.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{AtFlags, Dir, Mode, OFlags};

use crate::attach::{TargetHost, shared_dir, trigger};
use crate::flight_recorder;
use crate::jvm::process;
use crate::rights::Rights;
use headwater_protocol::files;

/// How long looking may take in a file system that may be of another user's making.
const LONGEST_LOOK: Duration = Duration::from_secs(5);

/// What has been removed for a target, as the target sees it.
pub fn remove(host: &TargetHost) -> Vec<String> {
    let begins = format!("{}{}-", files::DIRECTORY_PREFIX, host.pid());
    remove_where(host, move |name| name.starts_with(&begins))
}

/// The same for targets too that are gone and had the same /tmp and user.
pub fn remove_beside(host: &TargetHost) -> Vec<String> {
    remove_where(host, |_| true)
}

fn remove_where(host: &TargetHost, is_wanted: impl Fn(&str) -> bool + Send + 'static) -> Vec<String> {
    let Ok(tmp) = host.tmp().try_clone_to_owned() else { return Vec::new() };
    let places = [(process::open_working_directory(host.pid()).ok(), "."), (tmp.try_clone().ok(), "/tmp")];
    let (trigger, owner) = (trigger::trigger_name(host), host.uid());
    let task = move || {
        let mut removed: Vec<String> = Vec::new();
        for (place, path) in places {
            if place.is_some_and(|place| trigger::remove_left(place.as_fd(), &trigger, owner)) {
                removed.push(format!("{path}/{trigger}"));
            }
        }
        removed.extend(directories(tmp.as_fd(), owner, is_wanted));
        removed
    };
    host.rights().exercise_within(LONGEST_LOOK, task).unwrap_or_default()
}

/// What has been removed from our own /tmp; of all users, if we are root. Their targets may be gone too.
pub fn remove_here() -> Vec<String> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(tmp) = rustix::fs::open("/tmp", flags, Mode::empty()) else { return Vec::new() };
    let owner_of = |name: &String| {
        let stat = rustix::fs::statat(&tmp, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        Some((stat.st_uid, stat.st_gid))
    };
    let mut owners: Vec<(u32, u32)> = names(tmp.as_fd()).iter().filter_map(owner_of).collect();
    owners.sort_unstable();
    owners.dedup_by_key(|owner| owner.0);
    let mut removed = Vec::new();
    for (uid, gid) in owners {
        let rights = Rights::of(uid, gid, &[]);
        // Another user's, and we are not root.
        if rights.uid() == uid {
            removed.extend(rights.exercise(|| directories(tmp.as_fd(), uid, |_| true)).unwrap_or_default());
        }
    }
    removed
}

/// Removes the directories of one user that have been left in a /tmp.
fn directories(tmp: BorrowedFd<'_>, owner: u32, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    let left = names(tmp).into_iter().filter(|name| is_wanted(name) && remove_left(tmp, name, owner));
    left.map(|name| format!("/tmp/{name}")).collect()
}

fn remove_left(tmp: BorrowedFd<'_>, name: &str, owner: u32) -> bool {
    let held = shared_dir::hold_left(tmp, name, owner).filter(|held| !is_needed(held.as_fd(), name));
    held.is_some_and(|held| shared_dir::remove_directory(&held, tmp, name))
}

/// The names in a /tmp that are as ours.
fn names(tmp: BorrowedFd<'_>) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let read = || -> Result<Dir, rustix::io::Errno> { Dir::new(rustix::fs::openat(tmp, ".", flags, Mode::empty())?) };
    let Ok(entries) = read() else { return Vec::new() };
    let names = entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str().ok()?.to_owned()));
    names.filter(|name| is_ours(name)).collect()
}

/// Whether a tool makes directories with such names: `headwater-PID-BUILD`, `headwater-samples-PID`, `headwater-locks-PID`, `headwater-threads-PID`, each perhaps with a number
/// of eight digits behind it.
fn is_ours(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_hash = |text: &str| text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let Some(rest) = name.strip_prefix(files::DIRECTORY_PREFIX) else { return false };
    match rest.split('-').collect::<Vec<_>>().as_slice() {
        ["samples" | "locks" | "threads", pid] => is_number(pid),
        ["samples" | "locks" | "threads", pid, number] => is_number(pid) && is_hash(number),
        [pid, build] => is_number(pid) && is_hash(build),
        [pid, build, number] => is_number(pid) && is_hash(build) && is_hash(number),
        _ => false,
    }
}

/// Whether a directory is used though no tool holds it: by the flight recorder of a target that goes on recording for a while, until it has
/// written what it has; or by a program that `headwater run` has started and whose further JVMs are to find the agent.
fn is_needed(directory: BorrowedFd<'_>, name: &str) -> bool {
    if let Some(rest) = flight_recorder::DIRECTORY_PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        let pid = rest.split('-').next().unwrap_or_default();
        let recorded = rustix::fs::statat(directory, flight_recorder::RECORDED, AtFlags::SYMLINK_NOFOLLOW);
        let goes_on = recorded.is_ok_and(|file| file.st_size == 0);
        return goes_on && fs::exists(format!("/proc/{pid}")).unwrap_or(false);
    }
    let file = format!("/{name}/{}", files::LIBRARY);
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.parse::<u32>().is_ok())).any(
        |process| {
            ["environ", "cmdline"].iter().any(|text| {
                let text = fs::read(process.path().join(text)).unwrap_or_default();
                text.windows(file.len()).any(|part| part == file.as_bytes())
            })
        },
    )
}

/// Has a target end a recording that a tool has left in it, and removes what it wrote.
pub fn end_recording(host: &TargetHost) -> Vec<String> {
    let Ok(tmp) = host.tmp().try_clone_to_owned() else { return Vec::new() };
    let begins = flight_recorder::DIRECTORY_PREFIXES.map(|prefix| format!("{prefix}{}", host.pid()));
    let is_its = |name: &String| {
        let rest = begins.iter().find_map(|begins| name.strip_prefix(begins.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let hold = |name: String| Some((shared_dir::hold_left(tmp.as_fd(), &name, host.uid())?, name));
    let held: Vec<(OwnedFd, String)> =
        host.as_target(|| names(tmp.as_fd()).into_iter().filter(is_its).filter_map(hold).collect()).unwrap_or_default();
    if held.is_empty() {
        return Vec::new();
    }
    flight_recorder::stop(host);
    let remove = || {
        let left = held.iter().filter(|(held, name)| shared_dir::remove_directory(held, tmp.as_fd(), name));
        left.map(|(_, name)| format!("/tmp/{name}")).collect()
    };
    host.as_target(remove).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use headwater_tests::Scratch;

    use super::*;

    #[test]
    fn what_a_recording_has_written_is_left_when_it_is_over() {
        let tmp = Scratch::new("left-samples");
        let name = format!("{}{}", flight_recorder::DIRECTORY_PREFIXES[0], std::process::id());
        let (directory, recorded) = (tmp.file(&name), tmp.file(&name).join(flight_recorder::RECORDED));
        fs::create_dir(&directory).expect("a directory");
        fs::write(&recorded, "").expect("a file");
        let opened = fs::File::open(tmp.path()).expect("a directory");
        let remove = || directories(opened.as_fd(), rustix::process::geteuid().as_raw(), |_| true);
        assert_eq!(remove(), [""; 0], "the target lives, and has written nothing yet");
        fs::write(&recorded, "samples").expect("a file");
        assert_eq!(remove(), [format!("/tmp/{name}")]);
        assert!(!directory.exists());
    }

    #[test]
    fn only_names_that_tools_give_are_ours() {
        for name in [
            "headwater-12-0123abcd",
            "headwater-12-0123abcd-89abcdef",
            "headwater-samples-12",
            "headwater-samples-12-89abcdef",
            "headwater-locks-12",
            "headwater-threads-12",
            "headwater-threads-12-89abcdef",
        ] {
            assert!(is_ours(name), "{name}");
        }
        for name in [
            "headwater",
            "headwater-",
            "headwater-12",
            "headwater-x-0123abcd",
            "headwater-12-0123abcg",
            "headwater-test-12-3-x",
            "tmp",
        ] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
