//! The JVMs on this machine: finding them all, and finding the one that the user means.
//!
//! A JVM is a process that has HotSpot mapped. What it runs comes from the performance data that HotSpot publishes, and
//! where there is none (`-XX:-UsePerfData`, another user's JVM), from the command line. Nothing here touches the
//! processes; [`crate::attach`] does.

mod command_line;
pub mod perfdata;
pub mod process;
#[cfg(test)]
pub(crate) mod testing;

use std::fmt::Write as _;
use std::time::Duration;
use std::{fs, io};

use rustix::fs::{AtFlags, FileType, OFlags};

use crate::rights::Rights;
use headwater_terms::pattern::near_misses;
use perfdata::PerfData;
use process::{Kind, Mappings, Status};

/// A running JVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Jvm {
    /// The process id, as we see it.
    pub pid: u32,
    /// The main class, jar, `module/class` or source file, as it was given to `java`.
    pub main: String,
    /// The program's arguments, joined with spaces.
    pub arguments: String,
    /// `java.version` of the running JVM, such as `25.0.3`; unknown if it publishes no performance data to us.
    pub java_version: Option<String>,
    /// The effective user id that the JVM runs with, as we see it.
    pub uid: u32,
    /// The process id that the JVM itself knows: another one than `pid` in a container.
    pub vm_pid: u32,
}

impl Jvm {
    /// The part of `main` that people call the program by: the jar's file name, or the class without its module.
    fn name(&self) -> &str {
        self.main.rsplit('/').next().unwrap_or(&self.main)
    }

    /// Whether it is one of those that people mean by a part of a main class or jar's name, in any letter case.
    pub fn is_called(&self, wanted: &str) -> bool {
        !wanted.is_empty() && self.text_for(wanted).to_lowercase().contains(&wanted.to_lowercase())
    }

    /// What a wanted name is looked for in. One with a slash means a path or module/class; otherwise directories do not count.
    fn text_for(&self, wanted: &str) -> &str {
        if wanted.contains('/') { &self.main } else { self.name() }
    }

    /// The shortest name: the class without its package, or the file name without its extension.
    fn simple_name(&self) -> &str {
        let name = self.name();
        for extension in [".jar", ".war", ".java"] {
            if let Some(stem) = name.strip_suffix(extension) {
                return stem;
            }
        }
        name.rsplit(['.', '$']).next().unwrap_or(name)
    }
}

/// A JVM among those that a name fits, for messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The process id.
    pub pid: u32,
    /// The main class or jar.
    pub main: String,
}

/// Why a target could not be found.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// There is no process with this id.
    #[error(
        "there is no process {pid}: it has ended, or it is not visible from here; `headwater list` shows the JVMs that are"
    )]
    NoSuchProcess {
        /// The id that was asked for.
        pid: u32,
    },
    /// The process exists and is no JVM.
    #[error("process {pid} is not a JVM (it runs `{command}`); `headwater list` shows the JVMs that can be profiled")]
    NotAJvm {
        /// The process.
        pid: u32,
        /// Its command line, shortened.
        command: String,
    },
    /// The process is a JVM of another make.
    #[error(
        "process {pid} ({main}) runs on Eclipse OpenJ9, and Headwater knows HotSpot only; start the program with an \
         OpenJDK build"
    )]
    NotHotSpot {
        /// The process.
        pid: u32,
        /// What it runs.
        main: String,
    },
    /// No JVM's main class or jar contains the name.
    #[error("no running JVM has `{wanted}` in the name of its main class or jar{}", did_you_mean(.near))]
    NoMatch {
        /// What was asked for.
        wanted: String,
        /// The names that come nearest, best first.
        near: Vec<String>,
    },
    /// Several JVMs fit.
    #[error("{} JVMs have `{wanted}` in their name; give a pid or a longer part:{}", .candidates.len(), lines(.candidates))]
    Ambiguous {
        /// What was asked for.
        wanted: String,
        /// The JVMs that fit, by pid.
        candidates: Vec<Candidate>,
    },
    /// The process belongs to another user.
    #[error(
        "process {pid} ({command}) belongs to user id {owner}, and user id {us} may not look into it; {}",
        allowed_by(*.us)
    )]
    NotPermitted {
        /// The process.
        pid: u32,
        /// Its command line, shortened.
        command: String,
        /// The effective user id it runs with.
        owner: u32,
        /// Our effective user id.
        us: u32,
    },
    /// The system would not tell about the process.
    #[error("process {pid} cannot be inspected: {source}; check that /proc is mounted and readable")]
    Unreadable {
        /// The process.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
}

impl TargetError {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        3
    }
}

fn allowed_by(us: u32) -> &'static str {
    if us == 0 {
        "even root may not without the capability CAP_SYS_PTRACE, which containers often lack: run headwater where it has it"
    } else {
        "run headwater as that user or as root"
    }
}

fn did_you_mean(near: &[String]) -> String {
    if near.is_empty() {
        "; `headwater list` shows the running ones".to_owned()
    } else {
        format!("; did you mean {}?", near.join(" or "))
    }
}

fn lines(candidates: &[Candidate]) -> String {
    let width = candidates.iter().map(|candidate| candidate.pid.to_string().len()).max().unwrap_or(0);
    candidates.iter().fold(String::new(), |mut lines, Candidate { pid, main }| {
        let _ = write!(lines, "\n  {pid:>width$} {main}");
        lines
    })
}

/// All JVMs that we can see, those of other users included, by pid.
pub fn list() -> Vec<Jvm> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut jvms: Vec<Jvm> = entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| match inspect(pid) {
            Ok(Inspected::HotSpot(jvm) | Inspected::Hidden { jvm: Some(jvm), .. }) => Some(jvm),
            _ => None,
        })
        .collect();
    jvms.sort_by_key(|jvm| jvm.pid);
    jvms
}

/// The main class or jar that a `java` command line starts.
pub fn main_of_command_line(command: &[String]) -> Option<String> {
    command_line::parse(command, |_| None).map(|launch| launch.main)
}

/// Finds the JVM that the user means by a pid, or by a unique part of its main class or jar's name.
///
/// A name is tried as the whole name (with or without package, directory or extension), then as a part of it, then as a
/// part in any letter case; the first of these that fits any JVM decides. A number is always a pid. The id of a thread
/// stands for its process.
pub fn resolve(target: &str) -> Result<Jvm, TargetError> {
    let pid = match target.parse() {
        Ok(pid) if target.bytes().all(|byte| byte.is_ascii_digit()) => pid,
        _ => choose(target, &list())?.pid,
    };
    match inspect(pid) {
        Ok(Inspected::HotSpot(jvm)) => Ok(jvm),
        Ok(Inspected::OpenJ9 { main }) => Err(TargetError::NotHotSpot { pid, main }),
        Ok(Inspected::Other { command }) => Err(TargetError::NotAJvm { pid, command }),
        Ok(Inspected::Hidden { owner, command, .. }) => {
            Err(TargetError::NotPermitted { pid, command, owner, us: rustix::process::geteuid().as_raw() })
        }
        Err(source) if source.kind() == io::ErrorKind::NotFound => Err(TargetError::NoSuchProcess { pid }),
        Err(source) => Err(TargetError::Unreadable { pid, source }),
    }
}

fn choose<'a>(wanted: &str, jvms: &'a [Jvm]) -> Result<&'a Jvm, TargetError> {
    let rules: [&dyn Fn(&'a Jvm) -> bool; 3] = [
        &|jvm| [jvm.main.as_str(), jvm.name(), jvm.simple_name()].contains(&wanted),
        &|jvm| jvm.text_for(wanted).contains(wanted),
        &|jvm| jvm.is_called(wanted),
    ];
    for rule in rules {
        let fitting: Vec<&Jvm> = jvms.iter().filter(|jvm| !wanted.is_empty() && rule(jvm)).collect();
        match fitting.as_slice() {
            [] => {}
            [only] => return Ok(only),
            several => {
                let candidates = several.iter().map(|jvm| Candidate { pid: jvm.pid, main: jvm.main.clone() }).collect();
                return Err(TargetError::Ambiguous { wanted: wanted.to_owned(), candidates });
            }
        }
    }
    let names = jvms.iter().flat_map(|jvm| [jvm.simple_name(), jvm.name()]);
    let near = near_misses(wanted, names, 3).into_iter().map(str::to_owned).collect();
    Err(TargetError::NoMatch { wanted: wanted.to_owned(), near })
}

/// What a look at a process shows.
enum Inspected {
    HotSpot(Jvm),
    OpenJ9 {
        main: String,
    },
    Other {
        command: String,
    },
    /// Another user's process. That it is a JVM is known only if it has left its performance data in our /tmp.
    Hidden {
        jvm: Option<Jvm>,
        owner: u32,
        command: String,
    },
}

/// Looks at one process; `NotFound` if there is none.
fn inspect(pid: u32) -> io::Result<Inspected> {
    let status = Status::of(pid)?;
    if status.is_dead() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let pid = if status.process != 0 { status.process } else { pid };
    let mappings = Mappings::of(pid, status.inner_pid)?;
    let describe = |perf_data: Option<PerfData>| describe(pid, &status, perf_data.as_ref());
    Ok(match mappings.kind {
        Kind::HotSpot => Inspected::HotSpot(describe(perf_data(pid, &status, &mappings))),
        Kind::OpenJ9 => Inspected::OpenJ9 { main: describe(None).main },
        Kind::Other => Inspected::Other { command: process::command(pid, &status) },
        Kind::Hidden => Inspected::Hidden {
            jvm: has_left_perf_data(&status).then(|| describe(None)),
            owner: status.effective_uid,
            command: process::command(pid, &status),
        },
    })
}

fn describe(pid: u32, status: &Status, perf_data: Option<&PerfData>) -> Jvm {
    let string = |name| perf_data.and_then(|data| data.string(name)).filter(|value| !value.is_empty());
    let launch = command_line::parse(&process::arguments(pid), |path| read_argument_file(pid, status, path));
    let (main, arguments) = command_line::program(string("sun.rt.javaCommand"), launch);
    let java_version = string("java.property.java.version").or_else(|| string("java.property.java.vm.version"));
    Jvm {
        pid,
        main: process::printable(if main.is_empty() { &status.name } else { &main }),
        arguments: process::printable(&arguments),
        java_version: java_version.map(process::printable),
        uid: status.effective_uid,
        vm_pid: status.inner_pid,
    }
}

/// The largest performance data or argument file that is read; the usual ones have 32 KiB and less.
const LARGEST_FILE_BYTES: u64 = 8 << 20;
/// How long reading it may take: another user's file system may never answer.
const LONGEST_LOOK: Duration = Duration::from_secs(2);

/// The performance data of a JVM that we may look into. None if it keeps none, or if it cannot be understood: then the
/// command line has to do.
fn perf_data(pid: u32, status: &Status, mappings: &Mappings) -> Option<PerfData> {
    let root = process::open_root(pid).ok()?;
    let path = format!("tmp/{}", mappings.perf_data.as_ref()?);
    let owner = status.effective_uid;
    let read = move || {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = process::open_in_root(root, &path, flags).ok()?;
        // The JVM creates the file with its effective user id; another owner's file is not its own.
        if rustix::fs::fstat(&file).ok()?.st_uid != owner {
            return None;
        }
        process::read_regular(file, LARGEST_FILE_BYTES).ok()
    };
    PerfData::parse(&rights_of(status).exercise_within(LONGEST_LOOK, read).ok()??).ok()
}

/// Files in a process's places are read as its user would.
fn rights_of(status: &Status) -> Rights {
    Rights::of(status.effective_uid, status.effective_gid, &status.groups)
}

/// Whether attaching is switched off: `-XX:+DisableAttachMechanism`, by the JVM's own statement or its command line.
pub(crate) fn attach_is_disabled(pid: u32, status: &Status, mappings: &Mappings) -> bool {
    // The first of the capability flags is HotSpot's `AttachListener::is_attach_supported()`.
    let stated =
        perf_data(pid, status, mappings).and_then(|data| Some(data.string("sun.rt.jvmCapabilities")?.starts_with('0')));
    stated.unwrap_or_else(|| process::arguments(pid).iter().any(|argument| argument == "-XX:+DisableAttachMechanism"))
}

/// The options that a JVM runs with, by its own statement (which has those of `JAVA_TOOL_OPTIONS`) and its command line.
pub fn vm_options(pid: u32) -> Vec<String> {
    let stated = || {
        let status = Status::of(pid).ok()?;
        let mappings = Mappings::of(pid, status.inner_pid).ok()?;
        let data = perf_data(pid, &status, &mappings)?;
        Some(data.string("java.rt.vmArgs")?.split_whitespace().map(str::to_owned).collect::<Vec<String>>())
    };
    let mut options = stated().unwrap_or_default();
    let launched = process::arguments(pid).into_iter().skip(1).take_while(|argument| argument.starts_with('-'));
    options.extend(launched);
    options
}

/// Of a JVM's options the one that has it write an archive of its classes when it ends.
pub fn archive_option(options: &[String]) -> Option<&str> {
    const WRITE: [&str; 4] =
        ["-XX:ArchiveClassesAtExit=", "-XX:+AutoCreateSharedArchive", "-XX:AOTCacheOutput=", "-XX:AOTMode=record"];
    options.iter().map(String::as_str).find(|option| WRITE.iter().any(|it| option.starts_with(it)))
}

/// Whether a mapped file is the agent that debuggers talk to.
pub fn is_debugger(file: &str) -> bool {
    file.ends_with("/libjdwp.so")
}

/// The files that a process has mapped, each once.
pub fn mapped_files(pid: u32) -> Vec<String> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let mut files: Vec<String> = maps
        .lines()
        .filter_map(|line| Some(line[line.find('/')?..].trim_end_matches(" (deleted)").to_owned()))
        .collect();
    files.sort_unstable();
    files.dedup();
    files
}

/// Whether a process whose memory map is closed to us has its performance data in the /tmp that we see.
fn has_left_perf_data(status: &Status) -> bool {
    let Ok(entries) = fs::read_dir("/tmp") else { return false };
    let file = |directory| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, rustix::fs::Mode::empty())?;
        rustix::fs::statat(directory, status.inner_pid.to_string(), AtFlags::SYMLINK_NOFOLLOW)
    };
    entries.filter_map(Result::ok).any(|entry| {
        entry.file_name().to_string_lossy().starts_with("hsperfdata_")
            && file(entry.path()).is_ok_and(|file| {
                FileType::from_raw_mode(file.st_mode) == FileType::RegularFile && file.st_uid == status.effective_uid
            })
    })
}

/// Reads an `@argfile` as the target sees it.
fn read_argument_file(pid: u32, status: &Status, path: &str) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let (place, path, is_absolute) = match path.strip_prefix('/') {
        Some(path) => (process::open_root(pid).ok()?, path.to_owned(), true),
        None => (process::open_working_directory(pid).ok()?, path.to_owned(), false),
    };
    let read = move || {
        let file = if is_absolute {
            process::open_in_root(place, &path, flags).ok()?
        } else {
            rustix::fs::openat(place, &path, flags | OFlags::CLOEXEC, rustix::fs::Mode::empty()).ok()?
        };
        process::read_regular(file, LARGEST_FILE_BYTES).ok()
    };
    let bytes = rights_of(status).exercise_within(LONGEST_LOOK, read).ok()??;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::testing::{self, Child};
    use super::*;

    fn jvm(pid: u32, main: &str) -> Jvm {
        Jvm { pid, main: main.to_owned(), arguments: String::new(), java_version: None, uid: 0, vm_pid: pid }
    }

    #[test]
    fn a_name_chooses_by_whole_name_then_part_then_part_in_any_case() {
        let jvms = [
            jvm(11, "com.acme.Main"),
            jvm(12, "com.acme.MainServer"),
            jvm(13, "/opt/shop/order-service.jar"),
            jvm(14, "app.mod/com.acme.Gate"),
            jvm(15, "Bench.java"),
        ];
        let cases = [
            ("com.acme.Main", Ok(11)),
            ("Main", Ok(11)),
            ("MainS", Ok(12)),
            ("order", Ok(13)),
            ("order-service.jar", Ok(13)),
            ("shop/order", Ok(13)),
            ("ORDER", Ok(13)),
            ("com.acme.Gate", Ok(14)),
            ("app.mod/", Ok(14)),
            ("Bench", Ok(15)),
            ("bench", Ok(15)),
            (
                "acme",
                Err(
                    "3 JVMs have `acme` in their name; give a pid or a longer part:\n  11 com.acme.Main\n  12 com.acme.MainServer\n  14 app.mod/com.acme.Gate",
                ),
            ),
            (
                "shop",
                Err(
                    "no running JVM has `shop` in the name of its main class or jar; `headwater list` shows the running ones",
                ),
            ),
            ("Bnech", Err("no running JVM has `Bnech` in the name of its main class or jar; did you mean Bench?")),
            (
                "",
                Err(
                    "no running JVM has `` in the name of its main class or jar; `headwater list` shows the running ones",
                ),
            ),
        ];
        for (wanted, expected) in cases {
            let found = choose(wanted, &jvms).map(|jvm| jvm.pid).map_err(|error| error.to_string());
            assert_eq!(found, expected.map_err(str::to_owned), "{wanted}");
        }
    }

    #[test]
    fn a_process_that_is_no_jvm_is_named_with_its_command() {
        let cat = Child::waiting();
        let error = resolve(&cat.pid().to_string()).expect_err("cat is no JVM");
        assert!(matches!(&error, TargetError::NotAJvm { pid, command } if *pid == cat.pid() && command == "cat"));
        assert_eq!(error.exit_code(), 3);
        assert!(!list().iter().any(|jvm| jvm.pid == cat.pid()));
    }

    #[test]
    fn a_pid_that_nobody_has_is_said_to_be_so() {
        let pid = testing::free_pid();
        let error = resolve(&pid.to_string()).expect_err("no such process");
        assert!(matches!(error, TargetError::NoSuchProcess { pid: named } if named == pid), "{error}");
        assert!(matches!(resolve("99999999999999"), Err(TargetError::NoMatch { .. })));
    }

    #[test]
    fn running_jvms_are_listed_with_main_arguments_and_version() {
        for jdk in testing::jdks() {
            for options in [&[][..], &["-XX:-UsePerfData"]] {
                let target = testing::Target::start_source(&jdk, options, &["one", "two"]);
                let listed = list();
                let found = listed.iter().find(|jvm| jvm.pid == target.pid()).expect("the JVM is listed");
                assert_eq!(found.main, target.main(), "{jdk:?} {options:?}");
                assert_eq!(found.arguments, "one two");
                assert_eq!(found.vm_pid, target.pid());
                assert_eq!(found.uid, rustix::process::geteuid().as_raw());
                assert_eq!(found.java_version.is_some(), options.is_empty());
                if let Some(version) = &found.java_version {
                    assert!(version.starts_with(|first: char| first.is_ascii_digit()), "{version}");
                }
                assert_eq!(resolve(target.unique_name()).expect("by name"), *found);
                assert_eq!(resolve(&target.pid().to_string()).expect("by pid"), *found);
                assert!(listed.is_sorted_by_key(|jvm| jvm.pid));
            }
        }
    }
}
