//! Where targets run: commands that start a program there.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::Rlimit;

use super::plan::Place;

/// A user whom nobody else is, so that only the target's threads count.
const USER: &str = "54321";
/// What a file system in memory has, where it is to be full: room for what HotSpot puts there at its start.
const SMALL: &str = "size=128k";

/// A command that starts a program in a place; only root can, others start it beside themselves.
pub(super) fn command(place: Place, program: &Path, directory: &Path) -> Command {
    if !rustix::process::geteuid().is_root() {
        return Command::new(program);
    }
    let in_tmp = |options: &str| in_mounts(&format!("mount -t tmpfs -o {options} tmpfs /tmp"), program);
    match place {
        Place::Here => Command::new(program),
        Place::Namespaces => {
            let mut unshare = Command::new("unshare");
            unshare.args(["--fork", "--pid", "--mount-proc", "--kill-child", "--mount"]).arg(program);
            unshare
        }
        Place::Root => {
            let root = directory.join("root");
            let root = root.display();
            let script = format!(
                "mkdir -p {root} && mount --rbind / {root} && mount -t tmpfs tmpfs {root}/tmp && exec chroot {root} \"$@\""
            );
            shell(&script, program.as_os_str())
        }
        Place::User => {
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--reuid", USER, "--regid", USER, "--clear-groups"]).arg(program);
            setpriv
        }
        Place::Full => in_tmp(SMALL),
        Place::ReadOnly => in_tmp("ro"),
        Place::NoExec => in_tmp("noexec"),
    }
}

/// In mounts of its own that are made so.
fn in_mounts(mount: &str, program: &Path) -> Command {
    shell(&format!("{mount} && exec \"$@\""), program.as_os_str())
}

fn shell(script: &str, program: &OsStr) -> Command {
    let mut unshare = Command::new("unshare");
    unshare.args(["--mount", "sh", "-c", script, "sh"]).arg(program);
    unshare
}

/// The target's pid, of a process that was started so: it may be its child.
pub(super) fn pid_of(place: Place, started: u32) -> u32 {
    let children = fs::read_to_string(format!("/proc/{started}/task/{started}/children")).unwrap_or_default();
    let child = children.split_whitespace().next().and_then(|child| child.parse().ok());
    if place == Place::Namespaces { child.unwrap_or(started) } else { started }
}

/// Where the target has its `/tmp`, as we see it.
pub(super) fn tmp(pid: u32) -> PathBuf {
    PathBuf::from(format!("/proc/{pid}/root/tmp"))
}

/// Leaves no room there.
pub(super) fn fill(tmp: &Path) {
    if let Ok(mut full) = fs::File::create(tmp.join("full")) {
        // It takes what there is room for, and fails with the rest.
        for size in [4096, 1] {
            while full.write_all(&vec![0; size]).is_ok() {}
        }
    }
}

/// How many threads the user of [`Place::User`] may have by what a process of his is told; none is no limit.
pub(super) fn soft_limit_of_threads(pid: u32) -> Option<Rlimit> {
    let limits = fs::read_to_string(format!("/proc/{pid}/limits")).ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    Some(Rlimit { current: line.split_whitespace().next()?.parse().ok(), maximum: None })
}

/// Has that user limit them for a process of his.
pub(super) fn limit_threads_as_user(pid: u32, most: &str) -> bool {
    let mut setpriv = Command::new("setpriv");
    setpriv.args(["--reuid", USER, "--regid", USER, "--clear-groups", "prlimit", "--pid", &pid.to_string()]);
    setpriv.arg(format!("--nproc={most}:")).output().is_ok_and(|done| done.status.success())
}
