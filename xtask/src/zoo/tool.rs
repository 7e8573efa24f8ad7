//! Headwater as a user calls it, and when it said what.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use super::load::Ended;
use super::profile::{Methodwise, Report};
use crate::class_tree::write_text;

/// Names another binary than that of this checkout.
pub(crate) const BINARY: &str = "HEADWATER_BIN";

/// The profile's file.
pub(crate) const SNAPSHOT: &str = "profile.hw";

/// Longer than this takes no profile of the zoo, however long it records.
const PATIENCE: Duration = Duration::from_secs(900);

/// A moment in a profile's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    /// The roots have their probes.
    Attached,
    /// Nothing more is recorded.
    Recorded,
}

/// What a profile left.
#[derive(Debug)]
pub(crate) struct Profiled {
    /// Its JSON report.
    pub(crate) report: Report,
    /// The same of methods.
    pub(crate) methods: Methodwise,
    /// Whether what its threads have adds up to that, for each node.
    pub(crate) do_threads_add_up: bool,
    /// Its text report.
    pub(crate) text: String,
    /// From the command's start to [`Moment::Attached`].
    pub(crate) attached_after: Option<Duration>,
    /// The whole command.
    pub(crate) took: Duration,
}

/// What is to be profiled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) pid: u32,
    pub(crate) root: &'a str,
    pub(crate) duration: Duration,
    /// Beyond the default ones.
    pub(crate) options: &'a [String],
    /// What it does without, by names with commas between them; nothing, usually.
    pub(crate) without: &'a str,
}

/// When a profile's roots had their probes, from the command's start on, and how long that took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    attached_after: Option<Duration>,
    took: Duration,
}

/// Profiles a root, and tells of moments as they come. The files are kept in the directory.
pub(crate) fn profile(
    binary: &Path,
    asked: Asked<'_>,
    directory: &Path,
    at: impl FnMut(Moment) -> Result<(), String>,
) -> Result<Profiled, String> {
    let snapshot = directory.join(SNAPSHOT);
    let Times { attached_after, took } = record(binary, asked, &snapshot, at)?;
    let text = report(binary, &snapshot, &[], &directory.join("profile.txt"))?;
    let report = whole_report(binary, &snapshot)?;
    let threads: Report = parsed(binary, &snapshot, &["--threads"], &directory.join("threads.json"))?;
    let methods = parsed(binary, &snapshot, &["--view", "flat"], &directory.join("flat.json"))?;
    let do_threads_add_up = threads.places() == report.places();
    Ok(Profiled { report, methods, do_threads_add_up, text, attached_after, took })
}

/// What a snapshot's JSON report says.
pub(crate) fn whole_report(binary: &Path, snapshot: &Path) -> Result<Report, String> {
    parsed(binary, snapshot, &[], &snapshot.with_extension("json"))
}

fn parsed<R: DeserializeOwned>(binary: &Path, snapshot: &Path, options: &[&str], file: &Path) -> Result<R, String> {
    let json = report(binary, snapshot, options, file)?;
    serde_json::from_str(&json).map_err(|error| format!("the report is no JSON: {error}"))
}

/// Records a snapshot, and tells of moments as they come. What the tool says is kept beside it.
pub(crate) fn record(
    binary: &Path,
    Asked { pid, root, duration, options, without }: Asked<'_>,
    snapshot: &Path,
    mut at: impl FnMut(Moment) -> Result<(), String>,
) -> Result<Times, String> {
    let started = Instant::now();
    let mut command = Command::new(binary);
    command
        .args(["profile", &pid.to_string(), "--root", root, "-d", &format!("{}s", duration.as_secs()), "-o"])
        .arg(snapshot)
        .args(options);
    if !without.is_empty() {
        command.env("HEADWATER_WITHOUT", without);
    }
    let spawned = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut process = Ended(spawned.map_err(|error| format!("cannot start {command:?}: {error}"))?);
    let stderr = process.0.stderr.take().ok_or("the tool has no standard error")?;
    let (sender, lines) = channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    let (mut log, mut attached, mut recorded) = (String::new(), None, false);
    loop {
        // Where the root's calls are not timed after the profile, nothing says that it is over.
        let end = attached.filter(|_| !recorded).map_or(started + PATIENCE, |attached: Instant| attached + duration);
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if attached.is_none() && line.contains(" instrumented, ") {
                    attached = Some(Instant::now());
                    at(Moment::Attached)?;
                } else if !recorded && line.contains("timing and sampling the root's calls") {
                    recorded = true;
                    at(Moment::Recorded)?;
                }
                log += &(line + "\n");
            }
            Err(RecvTimeoutError::Timeout) if attached.is_some() && !recorded => {
                recorded = true;
                at(Moment::Recorded)?;
            }
            Err(RecvTimeoutError::Timeout) => {
                return Err(format!("{command:?}: not at its end after {} s", PATIENCE.as_secs()));
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    drop(reader.join());
    let status = process.0.wait().map_err(|error| format!("{command:?}: {error}"))?;
    let took = started.elapsed();
    write_text(&snapshot.with_extension("err"), &log)?;
    if !status.success() {
        return Err(format!("{command:?} ended with {status}:\n{log}"));
    }
    let attached_after = attached.map(|attached| attached.duration_since(started));
    Ok(Times { attached_after, took })
}

/// A report of a snapshot, which is kept in a file of the format that its name asks for.
pub(crate) fn report(binary: &Path, snapshot: &Path, options: &[&str], file: &Path) -> Result<String, String> {
    said_in(Command::new(binary).arg("report").arg("-o").arg(file).arg(snapshot).args(options), file)
}

/// A comparison of two sides, which is kept in a file of the format that its name asks for.
pub(crate) fn diff(binary: &Path, before: &[PathBuf], after: &[PathBuf], file: &Path) -> Result<String, String> {
    said_in(Command::new(binary).arg("diff").arg("-o").arg(file).args(before).arg("--").args(after), file)
}

/// What a command writes into a file.
fn said_in(command: &mut Command, file: &Path) -> Result<String, String> {
    let output = command.output();
    let output = output.map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)));
    }
    std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))
}
