//! Room for threads in the target. HotSpot ends the whole JVM when it cannot start the thread of its attach listener, so this is found
//! out before it is asked to.

use std::fs;
use std::path::{Path, PathBuf};

use super::AttachError;
use crate::jvm::process::Status;

/// How many threads must be free where the attach listener is to be started: one, and those that the program, its JVM and the user's
/// other processes may start meanwhile.
pub(crate) const LISTENER: u64 = 8;
/// The agent's one. If that cannot be started, the agent says so and the program runs on.
pub(crate) const AGENT: u64 = 1;

/// The user namespace that a machine starts with (`PROC_USER_INIT_INO`, linux/proc_ns.h).
const INITIAL_USER_NAMESPACE: &str = "user:[4026531837]";
/// Who has one of them is not held to RLIMIT_NPROC: CAP_SYS_RESOURCE and CAP_SYS_ADMIN.
const UNLIMITED_CAPABILITIES: u64 = 1 << 24 | 1 << 21;

/// Something that limits how many threads there may be.
#[derive(Debug, PartialEq, Eq)]
pub struct Limit {
    what: String,
    most: u64,
    there: u64,
}

impl Limit {
    /// How many more may be started.
    pub fn left(&self) -> u64 {
        self.most.saturating_sub(self.there)
    }
}

impl std::fmt::Display for Limit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} allows {} threads and {} are there", self.what, self.most, self.there)
    }
}

/// Fails if so many threads cannot be started in the process.
pub fn check(pid: u32, needed: u64) -> Result<(), AttachError> {
    match tightest(pid).filter(|limit| limit.left() < needed) {
        Some(limit) => Err(AttachError::NoThreads { pid, needed, limit: limit.to_string() }),
        None => Ok(()),
    }
}

/// The limit that leaves a process the fewest threads; `None` if nothing that we can see does.
pub fn tightest(pid: u32) -> Option<Limit> {
    let system = System { proc: PathBuf::from("/proc"), cgroups: PathBuf::from("/sys/fs/cgroup") };
    system.limits(pid).into_iter().min_by_key(Limit::left)
}

/// Where the kernel says it.
struct System {
    proc: PathBuf,
    cgroups: PathBuf,
}

impl System {
    fn limits(&self, pid: u32) -> Vec<Limit> {
        let mut limits = self.of_control_groups(pid);
        limits.extend(self.of_user(pid));
        limits.extend(self.of_kernel("threads-max"));
        limits.extend(self.of_kernel("pid_max"));
        limits
    }

    /// `RLIMIT_NPROC`: all threads of the processes whose real user the process's is.
    fn of_user(&self, pid: u32) -> Option<Limit> {
        let process = self.proc.join(pid.to_string());
        let most = soft_limit(&fs::read_to_string(process.join("limits")).ok()?)?;
        let status = Status::at(&process).ok()?;
        let namespace = user_namespace(&process);
        let is_initial = namespace.as_deref().is_none_or(|namespace| namespace == INITIAL_USER_NAMESPACE);
        if is_initial && (status.real_uid == 0 || status.capabilities & UNLIMITED_CAPABILITIES != 0) {
            return None;
        }
        let processes = fs::read_dir(&self.proc).ok()?.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_name().to_str()?.parse::<u32>().ok()?;
            Some(entry.path())
        });
        // Those of another user namespace are counted there and in the initial one.
        let counts = |other: &Path| is_initial || user_namespace(other) == namespace;
        let there = processes
            .filter_map(|other| Some((Status::at(&other).ok()?, other)))
            .filter(|(other, path)| other.real_uid == status.real_uid && counts(path))
            .map(|(other, _)| other.threads)
            .sum();
        Some(Limit { what: format!("RLIMIT_NPROC of user id {}", status.real_uid), most, there })
    }

    /// `pids.max` of the process's control group and of all above it, as far as we see them.
    fn of_control_groups(&self, pid: u32) -> Vec<Limit> {
        let text = fs::read_to_string(self.proc.join(pid.to_string()).join("cgroup")).unwrap_or_default();
        let mut limits = Vec::new();
        for line in text.lines() {
            let mut fields = line.splitn(3, ':').skip(1);
            let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
            let bases: &[&str] = match controllers {
                // Version 2, alone or beside version 1.
                "" => &["", "unified"],
                _ if controllers.split(',').any(|controller| controller == "pids") => &["pids"],
                _ => continue,
            };
            // Outside our own root of control groups nothing is to be seen.
            let path = path.trim_matches('/');
            let path = if path.split('/').any(|part| part == "..") { "" } else { path };
            for base in bases {
                let base = self.cgroups.join(base);
                let group = base.join(path);
                limits.extend(group.ancestors().take_while(|group| group.starts_with(&base)).filter_map(of_group));
            }
        }
        limits
    }

    /// A limit of the kernel's for all processes.
    fn of_kernel(&self, name: &str) -> Option<Limit> {
        let most = number(&self.proc.join("sys/kernel").join(name))?;
        // proc(5): the fourth field is `running/all`.
        let load = fs::read_to_string(self.proc.join("loadavg")).ok()?;
        let there = load.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
        Some(Limit { what: format!("kernel.{name}"), most, there })
    }
}

fn of_group(group: &Path) -> Option<Limit> {
    let (most, there) = (number(&group.join("pids.max"))?, number(&group.join("pids.current"))?);
    Some(Limit { what: format!("pids.max of the control group {}", group.display()), most, there })
}

/// What a file has; `None` where it says `max`.
fn number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// Of `/proc/PID/limits`; `None` where it says `unlimited`.
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max processes"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn user_namespace(process: &Path) -> Option<String> {
    Some(fs::read_link(process.join("ns/user")).ok()?.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use headwater_tests::Scratch;

    use super::*;

    const LIMITS: &str = "Limit   Soft Limit  Hard Limit  Units\nMax processes             100                  200                  processes\n";

    /// A machine on which little runs, as the kernel would show it.
    struct Played {
        place: Scratch,
        system: System,
    }

    impl Played {
        fn new() -> Played {
            let place = Scratch::new("room");
            let system = System { proc: place.file("proc"), cgroups: place.file("cgroup") };
            let played = Played { place, system };
            played.write("proc/loadavg", "0.10 0.20 0.30 2/345 999\n");
            played
        }

        fn write(&self, file: &str, text: &str) {
            let file = self.place.file(file);
            fs::create_dir_all(file.parent().expect("a directory")).expect("made");
            fs::write(file, text).expect("written");
        }

        fn process(&self, pid: u32, uid: u32, threads: u64, capabilities: &str, namespace: &str) {
            let status = format!(
                "Tgid:\t{pid}\nUid:\t{uid}\t7\t7\t7\nGid:\t7\t7\t7\t7\nThreads:\t{threads}\nCapEff:\t{capabilities}\n"
            );
            self.write(&format!("proc/{pid}/status"), &status);
            self.write(&format!("proc/{pid}/limits"), LIMITS);
            self.write(&format!("proc/{pid}/ns/pid"), "");
            symlink(namespace, self.place.file(&format!("proc/{pid}/ns/user"))).expect("linked");
        }

        fn lines(&self, pid: u32) -> Vec<String> {
            let place = self.place.path().to_string_lossy().into_owned();
            self.system.limits(pid).iter().map(|limit| limit.to_string().replace(&place, "")).collect()
        }
    }

    #[test]
    fn all_threads_of_the_real_user_count() {
        let played = Played::new();
        for (pid, uid, threads) in [(10, 1000, 60), (11, 1000, 33), (12, 1001, 500)] {
            played.process(pid, uid, threads, "0", INITIAL_USER_NAMESPACE);
        }
        played.process(13, 1000, 3, "0", "user:[4026532999]");
        assert_eq!(played.lines(10), ["RLIMIT_NPROC of user id 1000 allows 100 threads and 96 are there"]);
        assert_eq!(played.lines(13), ["RLIMIT_NPROC of user id 1000 allows 100 threads and 3 are there"]);
        played
            .write("proc/10/limits", "Max processes             unlimited            unlimited            processes\n");
        assert_eq!(played.lines(10), Vec::<String>::new());
    }

    #[test]
    fn root_and_whoever_may_do_as_it_does_is_not_limited() {
        let played = Played::new();
        let container = "user:[4026532999]";
        let cases = [
            (20, 0, "0", INITIAL_USER_NAMESPACE, false),
            (21, 5, "0000000001000000", INITIAL_USER_NAMESPACE, false),
            (22, 5, "0000000000200000", INITIAL_USER_NAMESPACE, false),
            (23, 5, "00000000000000ff", INITIAL_USER_NAMESPACE, true),
            // Root of a container, in a user namespace of its own.
            (24, 0, "000001ffffffffff", container, true),
        ];
        for (pid, uid, capabilities, namespace, limited) in cases {
            played.process(pid, uid, 1, capabilities, namespace);
            assert_eq!(!played.lines(pid).is_empty(), limited, "{pid}");
        }
    }

    #[test]
    fn control_groups_count_with_all_above_them() {
        let played = Played::new();
        for (group, most, there) in
            [("a/b", "max", "7"), ("a", "50", "48"), ("unified/u", "9", "1"), ("pids/v1", "30", "2")]
        {
            played.write(&format!("cgroup/{group}/pids.max"), most);
            played.write(&format!("cgroup/{group}/pids.current"), there);
        }
        let cases: [(&str, &[&str]); 5] = [
            ("0::/a/b\n", &["pids.max of the control group /cgroup/a allows 50 threads and 48 are there"]),
            (
                "4:memory:/v1\n3:cpu,pids:/v1\n",
                &["pids.max of the control group /cgroup/pids/v1 allows 30 threads and 2 are there"],
            ),
            ("0::/u\n", &["pids.max of the control group /cgroup/unified/u allows 9 threads and 1 are there"]),
            ("0::/../../a\n", &[]),
            ("nonsense\n", &[]),
        ];
        for (text, expected) in cases {
            played.write("proc/30/cgroup", text);
            assert_eq!(played.lines(30), expected, "{text}");
        }
    }

    #[test]
    fn the_kernels_own_limits_are_of_all_threads() {
        let played = Played::new();
        played.write("proc/sys/kernel/threads-max", "400\n");
        played.write("proc/sys/kernel/pid_max", "350\n");
        let expected = [
            "kernel.threads-max allows 400 threads and 345 are there",
            "kernel.pid_max allows 350 threads and 345 are there",
        ];
        assert_eq!(played.lines(1), expected);
        assert_eq!(played.system.limits(1).iter().map(Limit::left).min(), Some(5));
    }

    #[test]
    fn who_has_no_room_is_told_why() {
        let limit = Limit { what: "kernel.pid_max".to_owned(), most: 10, there: 12 };
        assert_eq!(limit.left(), 0);
        let refused = AttachError::NoThreads { pid: 7, needed: LISTENER, limit: limit.to_string() };
        assert!(refused.to_string().contains("kernel.pid_max allows 10 threads and 12 are there"), "{refused}");
        assert_eq!(refused.exit_code(), 3);
    }
}
