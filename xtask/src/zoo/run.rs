//! One program, one root, one JDK: warm up, look at it before, profile it, look at it after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::meter::Window;
use super::program::Root;
use super::setting::{Pace, Setting};
use super::stacks::Stacks;
use super::talker::{Complaints, Mark, Talker};
use super::tool::{self, Moment, Profiled};
use super::truth::Truth;

/// How many threads that hardly run a program is to have beside its own.
const THREADS: &str = "ZOO_THREADS";
/// The client's meter, of every program that has a client.
const CLIENT: &str = "client";

/// Means that differ by no more than a tenth are the same.
const SAME: f64 = 0.1;

/// A program at work, with its client if it has one.
#[derive(Debug)]
pub(crate) struct Work {
    // Ended first, so that it does not complain that the program has ended.
    client: Option<Talker>,
    pub(crate) program: Talker,
}

/// A moment in the program's and the client's life.
#[derive(Clone, Debug)]
struct Marks {
    program: Mark,
    client: Option<Mark>,
}

/// What was seen of the root's own meter and of the client in one phase.
#[derive(Clone, Debug, Default)]
pub(crate) struct Phase {
    pub(crate) own: Window,
    pub(crate) client: Option<Window>,
}

/// What a run found.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) before: Phase,
    pub(crate) during: Phase,
    pub(crate) after: Phase,
    /// From the recording's end to the command's, in which the root is timed and sampled without probes below it.
    pub(crate) undisturbed: Window,
    /// How long it took after the command's end until calls took the same time again and again.
    pub(crate) settled_after: Duration,
    /// Root calls that were begun while the profile recorded, by the program's own count.
    pub(crate) own_calls: u64,
    pub(crate) profiled: Profiled,
    /// Where this JVM was before that, if somebody was to look.
    pub(crate) seen: Option<Stacks>,
    /// Answers that were wrong, or did not come.
    pub(crate) complaints: Complaints,
    /// Classes that reflection sees otherwise than before.
    pub(crate) changed: Vec<String>,
    /// Where the run's files are.
    pub(crate) directory: PathBuf,
}

impl Setting<'_> {
    /// Starts the program and its client; their logs are kept in the directory.
    pub(crate) fn start(&self, directory: &Path) -> Result<Work, String> {
        let description = &self.program.description;
        let mut command = self.built.program(self.jdk, description, self.packaging);
        command.env(THREADS, self.threads.to_string());
        let program = Talker::start(&mut command, &directory.join("program.log"))?;
        let client = description.client.as_ref().map(|main| {
            let mut command = self.built.java(self.jdk, main);
            command.args(program.port.map(|port| port.to_string()));
            Talker::start(&mut command, &directory.join("client.log"))
        });
        Ok(Work { client: client.transpose()?, program })
    }

    /// Profiles one root, in a JVM that a witness has looked at before, if that is wanted.
    pub(crate) fn run(
        &self,
        binary: &Path,
        root: &Root,
        options: &[String],
        directory: &Path,
        looked_at: bool,
    ) -> Result<Outcome, String> {
        let pace = &self.pace;
        let classes = &self.program.description.reflect;
        let mut work = self.start(directory)?;
        work.warm_up(root, pace)?;
        let reflected = work.program.reflect(classes)?;
        let seen = looked_at.then(|| Truth::of_same(self, work.program.pid, directory)).flatten();
        let before = work.look(root, pace)?;

        let from = work.mark()?;
        let (mut attached, mut recorded) = (None, None);
        let asked =
            tool::Asked { pid: work.program.pid, root: &root.method, duration: pace.recording, options, without: "" };
        let profiled = tool::profile(binary, asked, directory, |moment| {
            let mark = Some(work.mark()?);
            match moment {
                Moment::Attached => attached = mark,
                Moment::Recorded => recorded = mark,
            }
            Ok(())
        })?;
        let to = work.mark()?;
        let during = work.phase(root, &from, &to)?;
        let bounds = attached.zip(recorded).ok_or("the tool did not say when it had attached")?;
        let own_calls = root.calls * work.window(root, &bounds.0, &bounds.1)?.begun;
        let undisturbed = work.window(root, &bounds.1, &to)?;

        let ended = Instant::now();
        work.settle(root, pace)?;
        let settled_after = ended.elapsed();
        let after = work.look(root, pace)?;
        let again = work.program.reflect(classes)?;
        for command in &self.program.description.late {
            let client = work.client.as_mut().ok_or("late commands are for a client, and there is none")?;
            client.tell(command, &[])?;
        }
        Ok(Outcome {
            before,
            during,
            after,
            undisturbed,
            settled_after,
            own_calls,
            profiled,
            seen,
            complaints: work.complaints(),
            changed: differing(&reflected, &again),
            directory: directory.to_owned(),
        })
    }
}

impl Work {
    /// Waits until the program is warm.
    pub(crate) fn warm_up(&mut self, root: &Root, pace: &Pace) -> Result<(), String> {
        std::thread::sleep(pace.warm);
        self.settle(root, pace)
    }

    /// Waits until calls take the same time again and again, or patience ends.
    fn settle(&mut self, root: &Root, pace: &Pace) -> Result<(), String> {
        let deadline = Instant::now() + pace.patience;
        let mut last = None;
        let mut from = self.mark()?;
        while Instant::now() < deadline {
            std::thread::sleep(pace.steady);
            let to = self.mark()?;
            let mean = self.window(root, &from, &to)?.mean_ns();
            if last.zip(mean).is_some_and(|(last, mean): (f64, f64)| (last - mean).abs() <= SAME * mean) {
                break;
            }
            (last, from) = (mean, to);
        }
        Ok(())
    }

    pub(crate) fn look(&mut self, root: &Root, pace: &Pace) -> Result<Phase, String> {
        let from = self.mark()?;
        std::thread::sleep(pace.looking);
        let to = self.mark()?;
        self.phase(root, &from, &to)
    }

    /// How many of the root's calls ended in a second, for so long.
    pub(crate) fn rate(&mut self, root: &Root, long: Duration) -> Result<f64, String> {
        let from = self.mark()?;
        std::thread::sleep(long);
        let to = self.mark()?;
        Ok(self.window(root, &from, &to)?.rate())
    }

    /// What the root's meter has counted between two moments.
    fn window(&self, root: &Root, from: &Marks, to: &Marks) -> Result<Window, String> {
        if root.meter == CLIENT {
            self.client_window(from, to)
        } else {
            self.program.window(&root.meter, &from.program, &to.program)
        }
    }

    fn client_window(&self, from: &Marks, to: &Marks) -> Result<Window, String> {
        let marks = self.client.as_ref().zip(from.client.as_ref().zip(to.client.as_ref()));
        let (client, (from, to)) = marks.ok_or("the program has no client")?;
        client.window(CLIENT, from, to)
    }

    /// Reads all meters.
    fn mark(&mut self) -> Result<Marks, String> {
        let client = self.client.as_mut().map(Talker::mark).transpose()?;
        Ok(Marks { program: self.program.mark()?, client })
    }

    fn phase(&self, root: &Root, from: &Marks, to: &Marks) -> Result<Phase, String> {
        let client = self.client.as_ref().map(|_| self.client_window(from, to)).transpose()?;
        Ok(Phase { own: self.window(root, from, to)?, client })
    }

    fn complaints(&self) -> Complaints {
        let mut complaints = self.program.complaints();
        if let Some(client) = &self.client {
            let of_client = client.complaints();
            complaints.count += of_client.count;
            complaints.first.extend(of_client.first);
        }
        complaints
    }
}

impl Outcome {
    /// What must not be, in sentences.
    pub(crate) fn failures(&self) -> Vec<String> {
        let mut failures = Vec::new();
        if self.complaints.count > 0 {
            failures.push(format!("{} wrong results: {}", self.complaints.count, self.complaints.first.join("; ")));
        }
        if !self.changed.is_empty() {
            failures.push(format!("reflection sees other classes than before: {}", self.changed.join(", ")));
        }
        if !self.profiled.do_threads_add_up {
            failures.push("the threads' calls and times do not add up to the whole".to_owned());
        }
        let (own, profiled) = (self.own_calls, self.profiled.report.root_calls());
        let own_before = &self.before.own;
        if !counts_agree(own, profiled, own_before.begun as f64 / own_before.seconds.max(1.0)) {
            failures.push(format!("{profiled} calls of the root in the profile, {own} by the program's own count"));
        }
        failures
    }
}

/// The moments at which the program is asked are not quite those at which recording begins and ends. It is asked a moment later than that begins, when calls still
/// come as fast as before.
fn counts_agree(own: u64, profiled: u64, per_second: f64) -> bool {
    const CALLS: u64 = 4;
    const MOMENT_SECONDS: f64 = 0.02;
    let apart = CALLS + own / 50;
    let before_asked = (MOMENT_SECONDS * per_second) as u64;
    (own.saturating_sub(apart)..=own + apart + before_asked).contains(&profiled)
}

/// The classes with another digest.
fn differing(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    before.iter().filter(|(class, digest)| after.get(*class) != Some(digest)).map(|(class, _)| class.clone()).collect()
}
