//! A program that runs: it is told commands, its meters are read, and it ends with us.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::meter::{Line, Reading, Window};

/// A program that says nothing for so long hangs.
const PATIENCE: Duration = Duration::from_secs(300);
/// Of the complaints so many are kept.
const COMPLAINTS: usize = 5;

/// A running program.
#[derive(Debug)]
pub(crate) struct Talker {
    child: Child,
    stdin: ChildStdin,
    heard: Arc<(Mutex<Heard>, Condvar)>,
    commands: u64,
    pub(crate) pid: u32,
    pub(crate) port: Option<u16>,
}

/// What it has said.
#[derive(Debug, Default)]
struct Heard {
    ready: Option<(u32, Option<u16>)>,
    meters: BTreeMap<String, Vec<Reading>>,
    reflected: BTreeMap<String, String>,
    complaints: Complaints,
    /// The last command that was carried out.
    said: u64,
    ended: bool,
}

/// Results that were wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Complaints {
    pub(crate) count: usize,
    pub(crate) first: Vec<String>,
}

/// A moment: how many readings there were of each meter, the last made for it.
#[derive(Clone, Debug)]
pub(crate) struct Mark(BTreeMap<String, usize>);

impl Talker {
    /// Starts it and waits until it is at work. What it says beside goes into the log.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Talker, String> {
        let file = std::fs::File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
        let errors = file.try_clone().map_err(|error| format!("{}: {error}", log.display()))?;
        let spawned = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn();
        let mut child = spawned.map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (stdin, stdout) = pipes.ok_or("the program has no input or output")?;
        let heard: Arc<(Mutex<Heard>, Condvar)> = Arc::default();
        let shared = Arc::clone(&heard);
        std::thread::spawn(move || listen(BufReader::new(stdout), file, &shared));
        let mut talker = Talker { child, stdin, heard, commands: 0, pid: 0, port: None };
        let ready = talker.wait("ready", |heard| heard.ready);
        (talker.pid, talker.port) = ready.map_err(|error| format!("{error}; see {}", log.display()))?;
        Ok(talker)
    }

    /// Has it carry out a command, and waits for it.
    pub(crate) fn tell(&mut self, word: &str, arguments: &[String]) -> Result<(), String> {
        self.commands += 1;
        let number = self.commands;
        let line = format!("{word} {number} {}\n", arguments.join(" "));
        self.stdin.write_all(line.as_bytes()).map_err(|error| format!("the program takes no commands: {error}"))?;
        self.wait(word, |heard| (heard.said >= number).then_some(()))
    }

    /// Reads the meters.
    pub(crate) fn mark(&mut self) -> Result<Mark, String> {
        self.tell("say", &[])?;
        Ok(Mark(self.heard().meters.iter().map(|(name, readings)| (name.clone(), readings.len())).collect()))
    }

    /// What a meter has counted from one moment to another.
    pub(crate) fn window(&self, meter: &str, from: &Mark, to: &Mark) -> Result<Window, String> {
        let heard = self.heard();
        let bounds = from.0.get(meter).zip(to.0.get(meter));
        let readings = heard.meters.get(meter).zip(bounds);
        let (readings, (from, to)) = readings.ok_or_else(|| format!("the program has no meter `{meter}`"))?;
        Ok(Window::of(&readings[from - 1..*to]))
    }

    /// What these classes are to reflection.
    pub(crate) fn reflect(&mut self, classes: &[String]) -> Result<BTreeMap<String, String>, String> {
        self.tell("reflect", classes)?;
        Ok(std::mem::take(&mut self.heard().reflected))
    }

    pub(crate) fn complaints(&self) -> Complaints {
        self.heard().complaints.clone()
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.0.lock().expect("no panic while locked")
    }

    fn wait<T>(&self, what: &str, mut found: impl FnMut(&Heard) -> Option<T>) -> Result<T, String> {
        let deadline = Instant::now() + PATIENCE;
        let mut heard = self.heard();
        loop {
            if let Some(found) = found(&heard) {
                return Ok(found);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if heard.ended {
                return Err(format!("the program has ended (waiting for `{what}`)"));
            } else if left.is_zero() {
                return Err(format!("the program says nothing of `{what}` for {} s", PATIENCE.as_secs()));
            }
            heard = self.heard.1.wait_timeout(heard, left).expect("no panic while locked").0;
        }
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        // Both fail only when it has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn listen(output: impl BufRead, mut log: impl Write, shared: &(Mutex<Heard>, Condvar)) {
    let mut lines = output.lines();
    let mut ended = false;
    while !ended {
        let line = lines.next().and_then(Result::ok);
        let mut heard = shared.0.lock().expect("no panic while locked");
        match line.as_deref().map(|line| Line::parse(line, Instant::now())) {
            None => ended = true,
            Some(Some(Line::Meter { name, reading })) => heard.meters.entry(name).or_default().push(reading),
            Some(Some(Line::Ready { pid, port })) => heard.ready = Some((pid, port)),
            Some(Some(Line::Said(number))) => heard.said = number,
            Some(Some(Line::Reflected { class, digest })) => drop(heard.reflected.insert(class, digest)),
            Some(Some(Line::Wrong(message))) => heard.complaints.add(message),
            // The log is for people; that it can't be written is no reason to stop.
            Some(None) => drop(writeln!(log, "{}", line.unwrap_or_default())),
        }
        heard.ended = ended;
        shared.1.notify_all();
    }
}

impl Complaints {
    fn add(&mut self, message: String) {
        self.count += 1;
        if self.first.len() < COMPLAINTS {
            self.first.push(message);
        }
    }
}
