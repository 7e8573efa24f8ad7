//! One run: a target, a tool, a fault, and what became of the target and of all that we had put there.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use headwater_tests::{Jdk, Patience, share};
use rustix::process::{Resource, Rlimit, Signal};

use super::disk::FullDisk;
use super::plan::{COLLECTORS, Ending, Fault, Moment, Plan, Scarce};
use super::target::{Compiled, LOOK, Target};
use super::tool::{self, Tool};
use crate::class_tree;

/// The target is at work for so long before the tool comes.
const WARM: Duration = Duration::from_millis(1500);
/// Speed is measured over so long,
const SPAN: Duration = Duration::from_millis(500);
/// and is back when it is this part of what it was: others are busy on the machine.
const RECOVERED: f64 = 0.5;
/// A call that takes longer was held up, unless calls of that JVM (all of whose methods are compiled before they run, say) take a tenth of that by
/// themselves; so much longer on a machine that is busy as others are in line.
const LONGEST_STAND_MS: u64 = 10_000;
const STANDS: u64 = 10;

/// What stays the same from run to run.
#[derive(Debug)]
pub(super) struct Bench<'b> {
    pub(super) jdk: &'b Jdk,
    pub(super) compiled: &'b Compiled,
    /// Of [`super::plan::COLLECTORS`], those that it has.
    pub(super) collectors: Vec<&'static str>,
    pub(super) binary: &'b Path,
    /// Where runs have their directories.
    pub(super) logs: &'b Path,
}

/// What a run has shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// Whether the tool was still there to be struck.
    pub(super) struck: bool,
    /// What the target has suffered.
    pub(super) harm: Vec<String>,
    /// Threads of the target have ended, because there was no heap or metaspace: so it may stand, or end, by itself.
    pub(super) starved: bool,
    /// What else was not as promised.
    pub(super) faults: Vec<String>,
    /// The longest call before the tool came, and from then on.
    pub(super) stand_before_ms: u64,
    pub(super) stand_ms: u64,
    /// From the tool's end until the agent had left, until all code was the original, and until the target was as fast as before.
    pub(super) gone: Option<Duration>,
    pub(super) restored: Option<Duration>,
    pub(super) recovered: Option<Duration>,
}

/// A run under way.
struct Course<'c> {
    bench: &'c Bench<'c>,
    plan: &'c Plan,
    directory: PathBuf,
    target: Target,
    outcome: Outcome,
    /// What the target is kept from having more of, and what it might have.
    limited: Option<(Resource, Rlimit)>,
}

impl Bench<'_> {
    /// Does what a plan says. Its directory is removed when all is well.
    pub(super) fn run(&self, number: u64, plan: &Plan) -> Result<Outcome, String> {
        let directory = self.logs.join(format!("run-{number}"));
        class_tree::empty(&directory)?;
        let write = |name: &str, text: &str| {
            fs::write(directory.join(name), text).map_err(|error| format!("{}: {error}", directory.display()))
        };
        write("plan.txt", &plan.to_string())?;
        // Whoever the target is run as may write there.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o777))
            .map_err(|error| format!("{}: {error}", directory.display()))?;
        let target = Target::start(self.jdk, self.compiled, (plan.place, &self.options(plan)), &directory)?;
        let pid = target.pid();
        let mut course = Course {
            bench: self,
            plan,
            directory: directory.clone(),
            target,
            outcome: Outcome::default(),
            limited: None,
        };
        if let Err(harm) = course.go() {
            course.outcome.harm.push(harm);
        }
        let Course { mut target, mut outcome, .. } = course;
        let said = target.all_said();
        write("target.log", &said)?;
        drop(target);
        outcome.starved = plan.is_starved(&said);
        if outcome.starved {
            let is_by_us = |what: &String| !BY_LOST_THREADS.iter().any(|it| what.starts_with(it));
            outcome.harm.retain(is_by_us);
            outcome.faults.retain(is_by_us);
        }
        let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
        if entries.map(|entry| entry.file_name()).any(|name| name.to_string_lossy().starts_with("hs_err_pid")) {
            outcome.harm.push("the JVM has crashed".to_owned());
        }
        // HotSpot's own, of one that could not remove it.
        let _ = fs::remove_file(format!("/tmp/.java_pid{pid}"));
        let mut left = tool::left_of(pid);
        left.extend(Some(directory.join(format!(".attach_pid{pid}"))).filter(|trigger| trigger.exists()));
        if !left.is_empty() {
            outcome.faults.push(format!("left: {left:?}"));
        }
        if outcome.is_good() {
            // It stays where it cannot be removed.
            let _ = fs::remove_dir_all(&directory);
        }
        Ok(outcome)
    }

    /// Those of the plan that its JVM has.
    fn options(&self, plan: &Plan) -> Vec<&'static str> {
        let is_had = |option: &&str| !COLLECTORS.contains(option) || self.collectors.contains(option);
        plan.java.iter().copied().filter(is_had).collect()
    }
}

/// What is no harm by us where threads have ended, those of the JDK's HTTP server among them.
const BY_LOST_THREADS: [&str; 5] = [
    "it stands",
    "it is not as fast as before",
    "a call was held up",
    "the target has ended",
    "the target takes no command",
];

impl Outcome {
    pub(super) fn is_good(&self) -> bool {
        self.harm.is_empty() && self.faults.is_empty()
    }
}

impl Course<'_> {
    /// An error is harm that ends the run.
    fn go(&mut self) -> Result<(), String> {
        std::thread::sleep(WARM);
        if self.plan.crowd {
            self.target.ask("crowd", "CROWD")?;
        }
        if self.plan.is_sampled() {
            self.target.ask("record", "RECORDED")?;
        }
        self.target.ask("baseline", "BASELINE")?;
        let (before, stand) = self.target.speed(SPAN)?;
        self.outcome.stand_before_ms = stand;
        let output = self.directory.join("out");
        fs::create_dir_all(&output).map_err(|error| error.to_string())?;
        let disk = if self.plan.fault == Fault::FullDisk { FullDisk::mount(&output)? } else { None };
        let pid = self.target.pid();
        let mut tool = self.tool(pid, self.plan, &output);
        let ended = self.struck(&mut tool);
        fs::write(self.directory.join("tool.log"), format!("{ended:?}\n{}", tool.all_said()))
            .map_err(|error| error.to_string())?;
        self.judge(&tool, &ended);
        let file = tool.file.as_ref().filter(|_| disk.is_none());
        if let Some(flaw) = file.and_then(|file| tool::flaw(self.bench.binary, file)) {
            self.outcome.faults.push(format!("its file is no good: {flaw}"));
        }
        if ended == Ok(0) && file.is_some_and(|file| !file.exists()) {
            self.outcome.faults.push("it is content, and has written nothing".to_owned());
        }
        drop((tool, disk));
        if self.plan.spares_the_target() { self.look_after(before) } else { self.end() }
    }

    /// The fault, and the tool's end.
    fn struck(&mut self, tool: &mut Tool) -> Result<i32, String> {
        let Plan { fault, moment, delay, .. } = *self.plan;
        self.outcome.struck =
            tool.await_moment(if matches!(fault, Fault::Garbled(_)) { Moment::Attach } else { moment }, delay)?;
        match fault {
            Fault::Target(ending) => self.end_target(ending),
            Fault::Scarce(what) => {
                self.take(what)?;
                let ended = tool.end();
                if let Some((resource, limit)) = self.limited.take() {
                    self.target.relieve(resource, limit);
                }
                self.target.ask("strict", "STRICT")?;
                return ended;
            }
            Fault::TwoTools => {
                let mut other = self.tool(self.target.pid(), self.plan, &self.directory);
                let code = other.end();
                let said = other.all_said();
                let _ = fs::write(self.directory.join("other.log"), &said);
                self.blame("the other tool", &code, &said);
            }
            _ => tool.strike(self.plan, self.target.pid()),
        }
        tool.end()
    }

    /// The target has no more of something.
    fn take(&mut self, what: Scarce) -> Result<(), String> {
        self.target.ask("lenient", "LENIENT")?;
        let (resource, has) = match what {
            Scarce::Heap => return self.target.ask("heap", "TAKING").map(drop),
            Scarce::Metaspace => return self.target.ask("metaspace", "TAKING").map(drop),
            Scarce::Threads => (Resource::Nproc, self.target.count("task")),
            Scarce::Descriptors => (Resource::Nofile, self.target.count("fd")),
        };
        self.limited = self.target.limit(resource, has).map(|limit| (resource, limit));
        self.outcome.struck &= self.limited.is_some();
        Ok(())
    }

    fn end_target(&mut self, ending: Ending) {
        match ending {
            Ending::Terminated => self.target.signal(Signal::TERM),
            Ending::Killed => self.target.signal(Signal::KILL),
            Ending::ExitInRoot | Ending::Halt | Ending::Exception => {
                let command = match ending {
                    Ending::ExitInRoot => "exit",
                    Ending::Halt => "halt",
                    _ => "throw",
                };
                // It may be gone before it has read all.
                let _ = self.target.process.tell(command);
            }
        }
    }

    fn tool(&self, pid: u32, plan: &Plan, directory: &Path) -> Tool {
        Tool::start(self.bench.binary, &self.bench.compiled.between, pid, plan, directory)
    }

    fn judge(&mut self, tool: &Tool, ended: &Result<i32, String>) {
        self.blame("the tool", ended, &tool.log);
    }

    /// Exit code and messages.
    fn blame(&mut self, who: &str, ended: &Result<i32, String>, said: &str) {
        /// The standard library's own panic, in a thread that has no memory for its signals' stack.
        const NO_STACK: &str = "failed to allocate an alternative stack";
        if self.plan.fault == Fault::NoMemory && said.contains(NO_STACK) {
            return;
        }
        match ended {
            Ok(code) if self.plan.fault.exit_codes().contains(code) => {}
            // What an interruption begins, at the moment of detaching, is a profile's usual end.
            Ok(130) if self.plan.moment == Moment::Detach => {}
            Ok(1 | 3) if self.plan.place.may_refuse() => {}
            Ok(code) => self.outcome.faults.push(format!("{who}'s exit code is {code}")),
            Err(hang) => self.outcome.faults.push(hang.clone()),
        }
        if let Some(panic) = said.lines().find(|line| line.contains("panicked at")) {
            self.outcome.faults.push(format!("{who}: {panic}"));
        }
    }

    /// A target that lives on is right, has its own code and speed, and nobody in it.
    fn look_after(&mut self, speed: f64) -> Result<(), String> {
        let ended = Instant::now();
        self.outcome.gone = self.within(ended, |target| Ok(!target.has_agent()))?;
        self.outcome.restored = self.within(ended, |target| Ok(target.ask("restored", "CHANGED")?.starts_with("0")))?;
        let (mut stand, most_ms) = (0, (LONGEST_STAND_MS as f64 / share()) as u64);
        self.outcome.recovered = self.within(ended, |target| {
            let (now, longest) = target.speed(SPAN)?;
            stand = stand.max(longest);
            Ok(now >= speed * RECOVERED)
        })?;
        self.outcome.stand_ms = stand;
        for (what, is_missed) in [
            ("the agent stays", self.outcome.gone.is_none()),
            ("code is not restored", self.outcome.restored.is_none()),
            ("it is not as fast as before", self.outcome.recovered.is_none()),
            ("a call was held up", stand > most_ms.max(STANDS * self.outcome.stand_before_ms)),
        ] {
            if is_missed {
                self.outcome.harm.push(what.to_owned());
            }
        }
        if self.plan.again && !self.plan.place.may_refuse() {
            self.profile_again();
        }
        let from = self.target.look()?;
        let moves = |target: &mut Target| {
            let to = target.look()?;
            Ok(to.calls > from.calls && to.requests > from.requests)
        };
        if self.within(Instant::now(), moves)?.is_none() {
            self.outcome.harm.push(format!("it stands: {from:?}"));
        }
        if self.plan.fault.is_fatal() {
            // What a dead tool has left, any other removes.
            tool::list(self.bench.binary)?;
            // But for what a recording goes on writing to, which `detach` ends.
            if !tool::left_of(self.target.pid()).is_empty() {
                tool::detach(self.bench.binary, self.target.pid())?;
            }
        }
        let left = tool::left_in(self.plan.place, self.target.pid());
        if !left.is_empty() {
            self.outcome.faults.push(format!("left in its /tmp: {left:?}"));
        }
        let wrong = self.target.ask("quit", "WRONG")?;
        if wrong != "0" {
            self.outcome.harm.push(format!("wrong results: {wrong}"));
        }
        self.end()
    }

    /// How long after that moment something holds, if it ever does.
    fn within(
        &mut self,
        since: Instant,
        mut holds: impl FnMut(&mut Target) -> Result<bool, String>,
    ) -> Result<Option<Duration>, String> {
        let mut patience = Patience::default();
        while patience.lasts() {
            if holds(&mut self.target)? {
                return Ok(Some(since.elapsed()));
            }
            if self.outcome.restored.is_some() && self.plan.is_starved(&self.target.all_said()) {
                break;
            }
            std::thread::sleep(LOOK);
        }
        Ok(None)
    }

    /// Another tool can attach.
    fn profile_again(&mut self) {
        let plan = Plan {
            fault: Fault::Nothing,
            tool: ["-d", "300ms", "--bare", "off"].map(str::to_owned).to_vec(),
            ..self.plan.clone()
        };
        let mut tool = self.tool(self.target.pid(), &plan, &self.directory);
        let ended = tool.end();
        if ended != Ok(0) {
            let said = tool.all_said();
            self.outcome.faults.push(format!("a second profile: {ended:?}: {said}"));
        }
    }

    /// The target's own end.
    fn end(&mut self) -> Result<(), String> {
        if !self.target.ends() {
            return Err("the target does not end".to_owned());
        }
        if let Some(wrong) =
            self.target.all_said().lines().find(|line| line.contains("WRONG ") && !line.contains("WRONG 0"))
        {
            self.outcome.harm.push(wrong.to_owned());
        }
        Ok(())
    }
}
