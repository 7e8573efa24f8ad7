//! One process as `/proc` shows it: its state, its identity, what it has mapped, and files in its own root directory.
//!
//! Everything here only looks; nothing sends a signal or writes a file.

use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// The lines of `/proc/PID/status` that matter for finding and attaching to a JVM.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Status {
    /// The short name of the process, at most 15 bytes.
    pub(crate) name: String,
    /// The state letter: `R`, `S`, `T` (stopped), `t` (traced), `Z` (zombie), ...
    pub(crate) state: char,
    /// The process that this id belongs to; differs from the id asked for if that was a thread's.
    pub(crate) process: u32,
    pub(crate) effective_uid: u32,
    pub(crate) effective_gid: u32,
    /// The user whose processes and threads this one counts among.
    pub(crate) real_uid: u32,
    /// The supplementary groups.
    pub(crate) groups: Vec<u32>,
    /// How many threads it has.
    pub(crate) threads: u64,
    /// The effective capabilities, as a bit mask.
    pub capabilities: u64,
    /// The pid in the innermost pid namespace: the number the process itself knows.
    pub(crate) inner_pid: u32,
    /// Whether the process has a handler for SIGQUIT. Without one the signal is deadly.
    pub catches_quit: bool,
}

/// SIGQUIT is signal 3 on every Linux architecture; bit 0 of the masks in `/proc/PID/status` is signal 1.
const SIGQUIT_BIT: u64 = 1 << 2;

impl Status {
    /// Reads the status of a process; `NotFound` if there is none.
    pub(crate) fn of(pid: u32) -> io::Result<Status> {
        Status::at(&Path::new("/proc").join(pid.to_string()))
    }

    /// The same by the process's directory in a `/proc`.
    pub(crate) fn at(process: &Path) -> io::Result<Status> {
        let text = fs::read(process.join("status")).map_err(gone_is_not_found)?;
        Ok(Status::parse(&String::from_utf8_lossy(&text)))
    }

    fn parse(text: &str) -> Status {
        let mut status = Status { state: '?', ..Status::default() };
        for line in text.lines() {
            let Some((key, value)) = line.split_once(':') else { continue };
            let value = value.trim();
            // Uid and Gid: real, effective, saved, file system.
            let effective = || value.split_whitespace().nth(1).and_then(|id| id.parse().ok()).unwrap_or(u32::MAX);
            match key {
                "Name" => status.name = value.to_owned(),
                "State" => status.state = value.chars().next().unwrap_or('?'),
                "Tgid" => status.process = value.parse().unwrap_or(0),
                "Uid" => {
                    status.real_uid =
                        value.split_whitespace().next().and_then(|id| id.parse().ok()).unwrap_or(u32::MAX);
                    status.effective_uid = effective();
                }
                "Gid" => status.effective_gid = effective(),
                "Groups" => status.groups = value.split_whitespace().filter_map(|id| id.parse().ok()).collect(),
                "Threads" => status.threads = value.parse().unwrap_or(0),
                "CapEff" => status.capabilities = u64::from_str_radix(value, 16).unwrap_or(0),
                "NSpid" => {
                    status.inner_pid = value.split_whitespace().last().and_then(|pid| pid.parse().ok()).unwrap_or(0);
                }
                "SigCgt" => {
                    status.catches_quit = u64::from_str_radix(value, 16).is_ok_and(|mask| mask & SIGQUIT_BIT != 0);
                }
                _ => {}
            }
        }
        if status.inner_pid == 0 {
            status.inner_pid = status.process;
        }
        status
    }

    /// Whether a signal or a debugger has stopped the process, so that it can answer nothing.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Whether the process has ended and only its entry is left.
    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, 'Z' | 'X' | 'x')
    }
}

/// The start time of a process in clock ticks since boot: with the pid, its identity.
pub(crate) fn start_time(pid: u32) -> io::Result<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).map_err(gone_is_not_found)?;
    let stat = String::from_utf8_lossy(&stat);
    parse_start_time(&stat)
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "/proc/PID/stat has no start time"))
}

/// Whether a process still runs its program: one that is ending has none any more, and that before it lets go of its files and sockets.
pub fn has_program(pid: u32) -> bool {
    let program = fs::read_link(format!("/proc/{pid}/exe")).map_err(gone_is_not_found);
    !program.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// How long a process has been there; `None` if that cannot be told.
pub fn age(pid: u32) -> Option<Duration> {
    let started = Duration::from_secs_f64(start_time(pid).ok()? as f64 / ticks_per_second() as f64);
    let now = Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Boottime)).ok()?;
    now.checked_sub(started)
}

/// proc(5): field 22, counted from 1; the name in field 2 may hold spaces and parentheses.
fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(22 - 3)?.parse().ok()
}

/// Of the times in `/proc`.
pub fn ticks_per_second() -> u64 {
    rustix::param::clock_ticks_per_second().max(1)
}

/// The arguments of a process, from the program's name on. Empty for kernel threads and zombies.
pub(crate) fn arguments(pid: u32) -> Vec<String> {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let bytes = bytes.strip_suffix(b"\0").unwrap_or(&bytes);
    if bytes.is_empty() {
        return Vec::new();
    }
    bytes.split(|&byte| byte == 0).map(|argument| String::from_utf8_lossy(argument).into_owned()).collect()
}

/// A text of another process's choosing without what a terminal would obey.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}

/// The command of a process in one line, for messages; the short name if it has no arguments to show.
pub(crate) fn command(pid: u32, status: &Status) -> String {
    const LONGEST: usize = 80;
    let line = printable(&arguments(pid).join(" "));
    if line.is_empty() {
        return format!("[{}]", printable(&status.name));
    }
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

/// Whether the pids that `/proc` shows are those of our own pid namespace.
pub fn pids_are_ours() -> bool {
    fs::read_link("/proc/self").is_ok_and(|link| link.to_str() == Some(&std::process::id().to_string()))
}

/// What the memory map of a process says about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    HotSpot,
    /// Eclipse OpenJ9: a JVM with another attach mechanism and another JVMTI implementation.
    OpenJ9,
    Other,
    /// We may not look: another user's process.
    Hidden,
}

/// What a process is, and the performance data file that it keeps mapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mappings {
    pub(crate) kind: Kind,
    /// `hsperfdata_USER/PID`, relative to the temporary directory. A file on disk that is not mapped is a leftover.
    pub(crate) perf_data: Option<String>,
}

impl Mappings {
    /// Reads `/proc/PID/maps`; `NotFound` if there is no such process.
    pub(crate) fn of(pid: u32, inner_pid: u32) -> io::Result<Mappings> {
        match fs::File::open(format!("/proc/{pid}/maps")) {
            Ok(file) => Mappings::parse(BufReader::with_capacity(64 * 1024, file), inner_pid).or_else(|error| {
                if error.kind() == io::ErrorKind::PermissionDenied { Ok(HIDDEN) } else { Err(gone_is_not_found(error)) }
            }),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(HIDDEN),
            Err(error) => Err(gone_is_not_found(error)),
        }
    }

    fn parse(mut maps: impl BufRead, inner_pid: u32) -> io::Result<Mappings> {
        let own_file = format!("/{inner_pid}");
        let (mut libjvm, mut openj9, mut perf_data) = (false, false, None);
        let mut line = Vec::new();
        while {
            line.clear();
            maps.read_until(b'\n', &mut line)? > 0
        } {
            let Some(slash) = line.iter().position(|&byte| byte == b'/') else { continue };
            let path = String::from_utf8_lossy(&line[slash..]);
            // A JDK that was upgraded under the running program shows as deleted.
            let path = path.trim_end_matches('\n').trim_end_matches(" (deleted)");
            libjvm |= path.ends_with("/libjvm.so");
            openj9 |= path.rsplit_once('/').is_some_and(|(_, file)| file.starts_with("libj9vm"));
            if let Some(start) = path.rfind("/hsperfdata_")
                && path.ends_with(&own_file)
            {
                perf_data = Some(path[start + 1..].to_owned());
            }
        }
        let kind = match () {
            () if openj9 => Kind::OpenJ9,
            // A statically linked JVM has no libjvm.so, but it maps its own performance data.
            () if libjvm || perf_data.is_some() => Kind::HotSpot,
            () => Kind::Other,
        };
        Ok(Mappings { kind, perf_data })
    }
}

const HIDDEN: Mappings = Mappings { kind: Kind::Hidden, perf_data: None };

/// Opens the root directory of a process, which is another one than ours in a container. Needs ptrace-read permission.
pub(crate) fn open_root(pid: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(format!("/proc/{pid}/root"), flags, Mode::empty())?)
}

/// Opens the working directory of a process, as a place only. Needs ptrace-read permission.
pub(crate) fn open_working_directory(pid: u32) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::open(format!("/proc/{pid}/cwd"), flags, Mode::empty())?)
}

/// Opens a path as a process with that root directory would: symbolic links in it, absolute ones too, never lead out.
/// The path is relative to the root.
pub(crate) fn open_in_root(root: impl AsFd, path: &str, flags: OFlags) -> io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC;
    match rustix::fs::openat2(&root, path, flags, Mode::empty(), ResolveFlags::IN_ROOT) {
        // Before Linux 5.6, or under a seccomp filter that does not know the call.
        Err(Errno::NOSYS | Errno::PERM) => Ok(rustix::fs::openat(root, path, flags | OFlags::NOFOLLOW, Mode::empty())?),
        other => Ok(other?),
    }
}

/// Reads a regular file of at most `limit` bytes; anything else (a pipe someone left there) is an error, not a wait.
pub(crate) fn read_regular(file: OwnedFd, limit: u64) -> io::Result<Vec<u8>> {
    let file = fs::File::from(file);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// A process that ends between open and read gives ESRCH.
fn gone_is_not_found(error: io::Error) -> io::Error {
    if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) {
        io::Error::from(io::ErrorKind::NotFound)
    } else {
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tjava\nState:\tT (stopped)\nTgid:\t4711\nPid:\t4712\nUid:\t1000\t1001\t1002\t1003\n\
                          Gid:\t100\t101\t102\t103\nGroups:\t7 8 \nThreads:\t31\nCapEff:\t0000000001000000\nNSpid:\t4711\t27\t1\nSigCgt:\t2000000101005ccd\n";

    #[test]
    fn status_gives_effective_ids_and_the_innermost_pid() {
        let status = Status::parse(STATUS);
        let expected = Status {
            name: "java".to_owned(),
            state: 'T',
            process: 4711,
            effective_uid: 1001,
            effective_gid: 101,
            real_uid: 1000,
            groups: vec![7, 8],
            threads: 31,
            capabilities: 1 << 24,
            inner_pid: 1,
            catches_quit: true,
        };
        assert_eq!(status, expected);
        assert!(status.is_stopped() && !status.is_dead());
    }

    #[test]
    fn status_tells_whether_sigquit_is_caught() {
        for (mask, caught) in
            [("0000000000000004", true), ("fffffffffffffffb", false), ("0", false), ("nonsense", false)]
        {
            let status = Status::parse(&format!("Tgid:\t5\nSigCgt:\t{mask}\n"));
            assert_eq!(status.catches_quit, caught, "{mask}");
            assert_eq!(status.inner_pid, 5, "kernels without NSpid have one namespace");
        }
    }

    #[test]
    fn a_command_has_no_say_on_the_terminal() {
        assert_eq!(printable("java -jar \x1b[2Jx\u{9b}K é.jar\n"), "java -jar \u{fffd}[2Jx\u{fffd}K é.jar\u{fffd}");
    }

    #[test]
    fn this_process_is_not_as_old_as_the_machine() {
        let age = age(std::process::id()).expect("it is there");
        let up = Duration::try_from(rustix::time::clock_gettime(rustix::time::ClockId::Boottime)).expect("a time");
        assert!(age < up, "{age:?} {up:?}");
        assert_eq!(super::age(u32::MAX), None, "there is no such process");
    }

    #[test]
    fn start_time_survives_a_name_full_of_parentheses() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 30 0 987654 1 2 3";
        assert_eq!(parse_start_time(stat), Some(987654));
        assert_eq!(parse_start_time("12 (x"), None);
    }

    #[test]
    fn maps_tell_what_kind_of_process_it_is() {
        let head = "7f4771e00000-7f4772051000 r--p 00000000 fe:00 315152  ";
        let cases = [
            ("/usr/lib/jvm/17/lib/server/libjvm.so", Kind::HotSpot, None),
            ("/opt/old jdk/lib/server/libjvm.so (deleted)", Kind::HotSpot, None),
            ("/tmp/hsperfdata_me/7", Kind::HotSpot, Some("hsperfdata_me/7")),
            ("/tmp/hsperfdata_me/17", Kind::Other, None),
            ("/opt/j9/lib/default/libj9vm29.so", Kind::OpenJ9, None),
            ("/usr/lib/libc.so.6", Kind::Other, None),
            ("/tmp/libjvm.so.txt", Kind::Other, None),
            ("[heap]", Kind::Other, None),
        ];
        for (path, kind, perf_data) in cases {
            let maps = format!("00400000-00401000 r-xp 0 0:0 0\n{head}{path}\n{head}[stack]\n");
            let mappings = Mappings::parse(maps.as_bytes(), 7).expect("a slice cannot fail");
            assert_eq!(mappings, Mappings { kind, perf_data: perf_data.map(str::to_owned) }, "{path}");
        }
    }
}
