//! The target: `tests/targets/chaos`, which checks itself, and is asked how it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use headwater_tests::{Jdk, Patience, Process, compile_directory, compile_library};
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};

use super::place;
use super::plan::{AOT_CACHE, POLICY, Place};
use crate::class_tree;
use crate::machine::call;

/// How often it is looked for something that is to come.
pub(super) const LOOK: Duration = Duration::from_millis(5);
/// What the agent's thread is called (as far as the kernel keeps names).
const AGENT: &str = "Headwater agent";

/// Its classes and its library.
#[derive(Debug)]
pub(super) struct Compiled {
    classes: PathBuf,
    library: PathBuf,
    /// What stands between tool and agent.
    pub(super) between: PathBuf,
    policy: PathBuf,
    /// Where the JDK can make one.
    cache: Option<PathBuf>,
}

impl Compiled {
    /// Below a place that is not in `/tmp`: a target may have another one.
    pub(super) fn new(jdk: &Jdk, place: &Path) -> Result<Compiled, String> {
        let classes = place.join("classes");
        class_tree::empty(place)?;
        call(Command::new("cp").arg("-r").arg(compile_directory(jdk, "chaos").path()).arg(&classes))?;
        let library = classes.join("libbytecodes.so");
        let between = classes.join("libbetween.so");
        compile_library(jdk, "bytecodes.c", &library);
        compile_library(jdk, "between.c", &between);
        let policy = classes.join("policy");
        fs::write(&policy, "grant { permission java.security.AllPermission; };").expect("a file");
        let mut compiled = Compiled { classes, library, between, policy, cache: None };
        compiled.cache = compiled.make_cache(jdk);
        Ok(compiled)
    }

    /// The AOT cache of a run of it.
    fn make_cache(&self, jdk: &Jdk) -> Option<PathBuf> {
        let cache = self.classes.join("chaos.aot");
        let mut java = Command::new(jdk.program("java"));
        java.arg(format!("-XX:AOTCacheOutput={}", cache.display())).arg("--enable-native-access=ALL-UNNAMED");
        // A cache is of jars alone: these classes' own are not in it, the JDK's are.
        java.arg("-cp").arg(&self.classes).arg("Chaos").arg(&self.library);
        let java = java.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
        java.is_ok_and(|status| status.success() && cache.exists()).then_some(cache)
    }

    /// An option as the JDK takes it, if it does.
    fn option(&self, jdk: &Jdk, option: &str) -> Vec<String> {
        match option {
            AOT_CACHE => self.cache.iter().map(|cache| format!("{AOT_CACHE}{}", cache.display())).collect(),
            // From 24 on there is none.
            POLICY if jdk.version < 24 => {
                vec!["-Djava.security.manager".to_owned(), format!("{POLICY}{}", self.policy.display())]
            }
            POLICY => Vec::new(),
            other => vec![other.to_owned()],
        }
    }
}

/// A running one.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) process: Process,
    pid: u32,
    pub(super) log: String,
}

/// What it says of itself.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Look {
    pub(super) calls: u64,
    pub(super) requests: u64,
    /// The longest call or request since the last look.
    pub(super) stand_ms: u64,
}

impl Target {
    pub(super) fn start(
        jdk: &Jdk,
        compiled: &Compiled,
        (place, options): (Place, &[&str]),
        directory: &Path,
    ) -> Result<Target, String> {
        let mut java = place::command(place, &jdk.program("java"), directory);
        java.current_dir(directory).args(["-Xverify:all", "--enable-native-access=ALL-UNNAMED"]);
        java.args(options.iter().flat_map(|option| compiled.option(jdk, option)));
        java.arg(format!("-XX:ErrorFile={}/hs_err_pid%p.log", directory.display()));
        java.args(["-XX:-CreateCoredumpOnCrash", "-Xmx256m", "-Dsun.net.httpserver.nodelay=true", "-cp"]);
        java.arg(&compiled.classes).arg("Chaos").arg(&compiled.library);
        let process = Process::spawn(&mut java);
        let mut target = Target { pid: process.pid(), process, log: String::new() };
        target.answer("READY")?;
        target.pid = place::pid_of(place, target.pid);
        if place == Place::Full {
            place::fill(&place::tmp(target.pid));
        }
        Ok(target)
    }

    pub(super) fn pid(&self) -> u32 {
        self.pid
    }

    /// What it answers to a command.
    pub(super) fn ask(&mut self, command: &str, answer: &str) -> Result<String, String> {
        self.process.tell(command).map_err(|error| format!("the target takes no command: {error}"))?;
        self.answer(answer)
    }

    fn answer(&mut self, beginning: &str) -> Result<String, String> {
        let mut patience = Patience::default();
        loop {
            let has_ended = self.process.status();
            for line in self.process.pending_lines() {
                self.log += &format!("{line}\n");
                if let Some(rest) = line.strip_prefix(beginning) {
                    return Ok(rest.trim().to_owned());
                }
            }
            if let Some(status) = has_ended {
                return Err(format!("the target has ended: {status}"));
            }
            if !patience.lasts() {
                return Err(format!("the target hangs: no {beginning}"));
            }
            std::thread::sleep(LOOK);
        }
    }

    pub(super) fn look(&mut self) -> Result<Look, String> {
        let answer = self.ask("look", "LOOK")?;
        let numbers: Vec<u64> = answer.split(' ').filter_map(|number| number.parse().ok()).collect();
        match numbers[..] {
            [calls, requests, _wrong, stand_ms] => Ok(Look { calls, requests, stand_ms }),
            _ => Err(format!("the target says nonsense: {answer}")),
        }
    }

    /// Calls for each second of CPU time that it takes, over a while.
    pub(super) fn speed(&mut self, over: Duration) -> Result<(f64, u64), String> {
        let (from, took) = (self.look()?, self.cpu_seconds());
        std::thread::sleep(over);
        let to = self.look()?;
        let took = self.cpu_seconds() - took;
        Ok(((to.calls - from.calls) as f64 / took.max(0.01), from.stand_ms.max(to.stand_ms)))
    }

    /// proc_pid_stat(5): hundredths of a second.
    fn cpu_seconds(&self) -> f64 {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(0.0);
        (ticks(11) + ticks(12)) / 100.0
    }

    /// How many of these it has: `task`, `fd`.
    pub(super) fn count(&self, of: &str) -> u64 {
        fs::read_dir(format!("/proc/{}/{of}", self.pid())).map_or(0, |all| all.count() as u64)
    }

    /// Whether the agent has a thread in it.
    pub(super) fn has_agent(&self) -> bool {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.pid())).into_iter().flatten().flatten();
        tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok()).any(|name| name.trim_end() == AGENT)
    }

    pub(super) fn signal(&mut self, signal: Signal) {
        if let Some(pid) = Pid::from_raw(self.pid.cast_signed()).filter(|_| self.process.is_alive()) {
            // It may have ended just now.
            let _ = kill_process(pid, signal);
        }
    }

    /// Lets it have no more of something than it has; what it might have before. `None` where that cannot be had.
    pub(super) fn limit(&self, resource: Resource, has: u64) -> Option<Rlimit> {
        let pid = Pid::from_raw(self.pid.cast_signed());
        let limit = Rlimit { current: Some(has), maximum: None };
        // Of another user's process not even root sets it, if its capabilities are few; that user does.
        prlimit(pid, resource, limit).ok().or_else(|| {
            let before = place::soft_limit_of_threads(self.pid)?;
            let is_set = resource == Resource::Nproc && place::limit_threads_as_user(self.pid, &has.to_string());
            is_set.then_some(before)
        })
    }

    /// Lets it have as much again.
    pub(super) fn relieve(&self, resource: Resource, limit: Rlimit) {
        // Fails where it has just ended.
        if prlimit(Pid::from_raw(self.pid.cast_signed()), resource, limit).is_err() && resource == Resource::Nproc {
            let most = limit.current.map_or_else(|| "unlimited".to_owned(), |most| most.to_string());
            place::limit_threads_as_user(self.pid, &most);
        }
    }

    /// Whether it ends in time.
    pub(super) fn ends(&mut self) -> bool {
        let mut patience = Patience::default();
        while self.process.is_alive() && patience.lasts() {
            std::thread::sleep(LOOK);
        }
        !self.process.is_alive()
    }

    /// All that it has said.
    pub(super) fn all_said(&mut self) -> String {
        let rest = [self.process.pending_lines(), self.process.pending_error_lines()].concat();
        self.log += &rest.join("\n");
        self.log.clone()
    }
}
