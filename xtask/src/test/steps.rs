//! Steps that are run some at a time, each a process. What one says is in one piece.

use std::fs::{self, File};
use std::io::Write;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use crate::pinned;

/// A part of the whole.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: String,
    pub(crate) command: Command,
    pub(crate) output: Output,
}

/// When it is seen what a step says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    AsItComes,
    AtTheEnd,
}

/// How a step went.
struct Done {
    name: String,
    /// Why it failed.
    failure: Option<String>,
    took: Duration,
    /// Time of processors, of all processes that it has waited for.
    processors: Duration,
    said: Vec<u8>,
}

/// Runs them all, beginning with the first, so many at a time, whatever becomes of the others.
pub(crate) fn run(steps: Vec<Step>, at_a_time: usize) -> Result<(), String> {
    let queue = Mutex::new(steps.into_iter());
    let done = Mutex::new(Vec::new());
    // A lock that is poisoned has lost its step's panic only, which ends all of this.
    std::thread::scope(|scope| {
        for _ in 0..at_a_time {
            scope.spawn(|| {
                while let Some(step) = { queue.lock().expect("nobody panics with it").next() } {
                    let step = step.run();
                    let mut done = done.lock().expect("nobody panics with it");
                    step.print();
                    done.push(step);
                }
            });
        }
    });
    let done = done.into_inner().expect("nobody panics with it");
    println!("\nSteps, seconds, seconds of processors:");
    done.iter().for_each(|step| println!("{}", step.line()));
    let failures: Vec<String> = done.into_iter().filter_map(Done::failure).collect();
    if failures.is_empty() { Ok(()) } else { Err(format!("failed: {}", failures.join("; "))) }
}

impl Step {
    fn run(self) -> Done {
        let Step { name, command, output } = self;
        let began = Instant::now();
        let (outcome, said) = match output {
            Output::AsItComes => (run_seen(command), Vec::new()),
            Output::AtTheEnd => run_unseen(command, &name),
        };
        let (failure, processors) = match outcome {
            Ok(processors) => (None, processors),
            Err((failure, processors)) => (Some(failure), processors),
        };
        Done { name, failure, took: began.elapsed(), processors, said }
    }
}

impl Done {
    fn line(&self) -> String {
        let failed = if self.failure.is_some() { " FAILED" } else { "" };
        format!("  {:24} {:7.1} {:7.1}{failed}", self.name, self.took.as_secs_f64(), self.processors.as_secs_f64())
    }

    fn failure(self) -> Option<String> {
        self.failure.map(|failure| format!("{}: {failure}", self.name))
    }

    /// In one piece, beside a step that is seen as it goes.
    fn print(&self) {
        let end = format!("step {}\n\n", self.line().trim_start());
        let text = [&b"\n"[..], &self.said, end.as_bytes()].concat();
        // Nobody is there to be told that nobody reads.
        let _ = std::io::stdout().write_all(&text);
    }
}

/// The time of processors that it took; and why it failed, if it did.
type Outcome = Result<Duration, (String, Duration)>;

fn run_seen(mut command: Command) -> Outcome {
    let child = command.stdin(Stdio::null()).spawn();
    child.map_err(|error| (error.to_string(), Duration::ZERO)).and_then(finish)
}

/// The same, and what it says, on both streams. That goes to a file: a pipe would have to be read until whoever the step has started, and left, is gone.
fn run_unseen(mut command: Command, name: &str) -> (Outcome, Vec<u8>) {
    let file = pinned::target().map(|target| target.join("steps").join(name));
    let spawn = || -> Result<_, String> {
        let file = file?;
        let failed = |error: std::io::Error| format!("{}: {error}", file.display());
        fs::create_dir_all(file.parent().unwrap_or(&file)).map_err(failed)?;
        let said = File::create(&file).map_err(failed)?;
        let errors = said.try_clone().map_err(failed)?;
        let child = command.stdin(Stdio::null()).stdout(said).stderr(errors).spawn();
        Ok((child.map_err(|error| error.to_string())?, file))
    };
    match spawn() {
        Ok((child, file)) => (finish(child), fs::read(file).unwrap_or_default()),
        Err(error) => (Err((error, Duration::ZERO)), Vec::new()),
    }
}

fn finish(mut child: Child) -> Outcome {
    let pid = Pid::from_raw(child.id().cast_signed());
    // It is left there to be asked what it took.
    let _ = pid.map(|pid| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT));
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id()));
    let took = stat.ok().and_then(|stat| processors(&stat)).unwrap_or_default();
    match child.wait() {
        Ok(status) if status.success() => Ok(took),
        Ok(status) => Err((status.to_string(), took)),
        Err(error) => Err((error.to_string(), took)),
    }
}

/// Of a process and the children it has waited for (proc_pid_stat(5)).
fn processors(stat: &str) -> Option<Duration> {
    const TICKS_PER_SECOND: f64 = 100.0;
    // Fields 14 to 17; the second, a name, may have anything in it.
    let (_, fields) = stat.rsplit_once(") ")?;
    let ticks: u64 = fields.split(' ').skip(11).take(4).map(|field| field.parse::<u64>().ok()).sum::<Option<u64>>()?;
    Some(Duration::from_secs_f64(ticks as f64 / TICKS_PER_SECOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(name: &str, script: &str) -> Step {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        Step { name: name.to_owned(), command, output: Output::AtTheEnd }
    }

    #[test]
    fn all_are_run_and_those_that_fail_are_named() {
        let missing = Step { name: "missing".to_owned(), command: Command::new("/no/such"), output: Output::AtTheEnd };
        let failed =
            run(vec![shell("good", "true"), shell("bad", "exit 3"), missing, shell("killed", "kill -9 $$")], 2);
        let failed = failed.expect_err("three have failed");
        assert!(failed.contains("bad: exit status: 3") && failed.contains("missing: "), "{failed}");
        assert!(failed.contains("killed: signal: 9") && !failed.contains("good"), "{failed}");
        assert_eq!(run(vec![shell("good", "true")], 2), Ok(()));
    }

    #[test]
    fn both_streams_are_kept_in_their_order() {
        let done = shell("both", "echo one; echo two >&2; echo three").run();
        assert_eq!((done.failure, String::from_utf8_lossy(&done.said).as_ref()), (None, "one\ntwo\nthree\n"));
    }

    #[test]
    fn the_time_of_processors_is_that_of_the_process_and_its_children() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 200 0 0 150 50 300 500 20 0 1 0 1000";
        assert_eq!(processors(stat), Some(Duration::from_secs(10)));
        assert_eq!(processors("nonsense"), None);
    }
}
