//! What the JVM's own flight recorder (JFR) tells: samples of undisturbed code, waits for locks.
//!
//! Its execution samples are not biased towards safepoints, are documented, and are there since JDK 11 in every JVM that has the
//! module `jdk.jfr`; so are its events of waiting. A [`Recording`] of ours is started and stopped through the attach protocol, beside any other; it
//! ends by itself if this process does not end it.
//!
//! Samples are of threads that execute Java code. What waits, or is in native code, is in none.

mod dither;

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io, thread};

use headwater_jfr::{DEEPEST, Lines, ReadError, Recorded, Samples, samples, threads_at_work, waits};

use rustix::fs::{Dir, Mode, OFlags};

use self::dither::Dither;
use crate::attach::{AttachError, SharedDir, TargetHost, jcmd};
use crate::jvm::{self, TargetError, process};

/// What our recordings are called in the target, and what their directories' names in its /tmp begin with; its pid follows. There may be one of each at
/// a time.
const SAMPLES: [&str; 2] = ["headwater", "headwater-samples-"];
const LOCKS: [&str; 2] = ["headwater-locks", "headwater-locks-"];
/// What the names of such directories begin with.
pub(crate) const DIRECTORY_PREFIXES: [&str; 2] = [SAMPLES[1], LOCKS[1]];
const SETTINGS: &str = "samples.jfc";
/// Samples are taken at one period for so long, before it is another.
const STRETCH: Duration = Duration::from_millis(400);
/// Of samples of all threads a quarter of the time, but no less nor more than this: with each change all threads are told of.
const LONG_STRETCHES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(3)];
/// What the JVM writes when a recording is over; empty before.
pub(crate) const RECORDED: &str = "samples.jfr";
/// The JVM's own, which are used where a stack has no more.
const DEFAULT_DEPTH: usize = 64;
/// What a recording may have on the target's disk.
const MOST_MIB: u64 = 64;
/// What the recordings write that make periods shorter.
const NOT_READ: &str = "period.jfr";
/// What the JVM writes while a recording goes on.
const SO_FAR: &str = "so-far.jfr";
/// Allocations whose places are written down: enough to tell where most come from, so few that they cost nothing.
const ALLOCATIONS: &str = "200/s";
/// What the name of the recorder's own thread begins with. It is there from the recorder's first start to the JVM's end.
const OWN_THREAD: &str = "JFR Rec";
/// A JVM that ends writes its recordings before it is gone.
const LONGEST_END: Duration = Duration::from_secs(5);
/// How often it is looked whether it is.
const LOOK: Duration = Duration::from_millis(10);
/// A recording that nobody ends goes on for so long beyond what was planned.
const GRACE: Duration = Duration::from_secs(30);

/// Why there are no samples.
#[derive(Debug, thiserror::Error)]
pub enum RecorderError {
    /// The process cannot be found any more.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// It cannot be asked.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// It does not do it.
    #[error("the JVM's flight recorder did not {what}: {answer}")]
    Declined {
        /// What was asked.
        what: &'static str,
        /// Its words.
        answer: String,
    },
    /// The recording cannot be read.
    #[error("the flight recorder's recording cannot be read: {0}")]
    Read(#[from] ReadError),
    /// It can be read, and makes no sense.
    #[error("the flight recorder's recording cannot be read: {0}")]
    Unreadable(String),
}

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingKind {
    /// Threads that execute Java code, once in a period.
    Executions(Duration),
    /// The same, and what threads allocate, and where.
    Work(Duration),
    /// Threads that wait for a monitor, or are parked, for so long at least.
    Waits(Duration),
}

impl RecordingKind {
    /// The recording's name, and what its directory's begins with.
    fn names(self) -> [&'static str; 2] {
        match self {
            RecordingKind::Executions(_) | RecordingKind::Work(_) => SAMPLES,
            RecordingKind::Waits(_) => LOCKS,
        }
    }

    /// How often threads are sampled, in the mean, and how long at one period before it is another.
    fn sampled(self, longest: Duration) -> Option<(Duration, Duration)> {
        match self {
            RecordingKind::Executions(period) => Some((period, STRETCH)),
            RecordingKind::Work(period) => {
                let [least, most] = LONG_STRETCHES;
                Some((period, (longest / 4).clamp(least, most)))
            }
            RecordingKind::Waits(_) => None,
        }
    }

    /// The recorder's settings: nothing else is recorded. Where the period [changes](Dither), it is the longest of its periods.
    fn settings(self, changes: bool) -> String {
        let executions = |period: Duration| executions(if changes { dither::periods(period).0 } else { ms(period) });
        let events = match self {
            RecordingKind::Executions(period) => executions(period),
            RecordingKind::Work(period) => {
                // A recording has what threads had allocated when it began, and when it ended.
                let allocated = event("ThreadAllocationStatistics", "period", "everyChunk");
                let collections = event("GarbageCollection", "threshold", "0 ms") + &bare_event("GCHeapSummary");
                let allocations = event("ObjectAllocationSample", "throttle", ALLOCATIONS);
                executions(period) + &allocations + &allocated + &collections
            }
            RecordingKind::Waits(over) => {
                let over = format!("{} ns", over.as_nanos());
                let waits = ["JavaMonitorEnter", "ThreadPark"].map(|name| event(name, "threshold", &over));
                waits.concat() + &event("DataLoss", "stackTrace", "false")
            }
        };
        configuration(&events)
    }
}

/// An event's settings.
fn event(name: &str, setting: &str, value: &str) -> String {
    format!(
        "<event name=\"jdk.{name}\"><setting name=\"enabled\">true</setting><setting name=\"{setting}\">{value}</setting></event>"
    )
}

/// An event that has no settings but whether it is recorded.
fn bare_event(name: &str) -> String {
    format!("<event name=\"jdk.{name}\"><setting name=\"enabled\">true</setting></event>")
}

fn executions(period_ms: u64) -> String {
    // Threads in native code are told by another event.
    ["ExecutionSample", "NativeMethodSample"].map(|name| event(name, "period", &format!("{period_ms} ms"))).concat()
}

fn ms(period: Duration) -> u64 {
    u64::try_from(period.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// What the recorder reads settings from.
fn configuration(events: &str) -> String {
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<configuration version=\"2.0\">{events}</configuration>\n")
}

/// A recording of ours that goes on in a JVM.
#[derive(Debug)]
pub struct Recording {
    /// Ends before the recording does.
    dither: Option<Dither>,
    host: Arc<TargetHost>,
    directory: SharedDir,
    name: &'static str,
    others: usize,
    /// Where the JVM keeps what it has recorded, in its /tmp; and since when ours goes on, in ns since 1970.
    repository: Option<String>,
    began_ns: i64,
    ended: bool,
}

impl Recording {
    /// Has a JVM, by its pid as we see it, record something; stacks are to hold so many frames. The recording is over after `longest` at the
    /// latest, whatever happens to this process.
    ///
    /// Takes as long as JFR takes to begin, which in a JVM where it has never been used is a second or more of one processor.
    pub fn start(pid: u32, wanted: RecordingKind, depth: usize, longest: Duration) -> Result<Recording, RecorderError> {
        let host = Arc::new(TargetHost::of(&jvm::resolve(&pid.to_string())?)?);
        let [name, prefix] = wanted.names();
        let directory = host.create_dir_or_another(&format!("{prefix}{pid}"))?;
        directory.create_file(RECORDED)?;
        if depth > DEFAULT_DEPTH {
            // Before anything else is asked: on JDK 25 a question makes the recorder, whose depth stays what it is. Where the recorder was used before
            // this has no effect; stacks that are cut off are counted.
            jcmd(&host, &format!("JFR.configure stackdepth={}", depth.min(DEEPEST)))?;
        }
        let others = others(&jcmd(&host, "JFR.check")?);
        // Somebody else's recording would be cut into pieces.
        let changes = others == 0;
        directory.write_file(SETTINGS, wanted.settings(changes).as_bytes())?;
        let there = directory.there();
        // A chunk may have the time of its beginning in ms.
        let began_ns = now_ns() - 1_000_000;
        let answer = jcmd(
            &host,
            &format!(
                "JFR.start name={name} settings={there}/{SETTINGS} filename={there}/{RECORDED} maxsize={MOST_MIB}m duration={}s dumponexit=true",
                (longest + GRACE).as_secs()
            ),
        )?;
        let repository = repository(&jcmd(&host, "JFR.configure")?);
        let mut recording =
            Recording { dither: None, host, directory, name, others, repository, began_ns, ended: false };
        if !answer.contains("Started recording") {
            return Err(RecorderError::Declined { what: "begin a recording", answer: one_line(&answer) });
        }
        if changes {
            // With one period it is worth as much as most recordings.
            recording.dither = recording.dithered(wanted, longest).unwrap_or_default();
        }
        Ok(recording)
    }

    /// Has the period of its samples change from now on, if it has samples.
    fn dithered(&self, wanted: RecordingKind, longest: Duration) -> Result<Option<Dither>, RecorderError> {
        let Some((period, stretch)) = wanted.sampled(longest) else { return Ok(None) };
        let write = |period_ms: &u64| {
            let name = format!("{period_ms}ms.jfc");
            self.directory.write_file(&name, configuration(&executions(*period_ms)).as_bytes())?;
            Ok(format!("{}/{name}", self.directory.there()))
        };
        let settings: Result<_, AttachError> = dither::periods(period).1.iter().map(write).collect();
        self.directory.create_file(NOT_READ)?;
        let file = format!("{}/{NOT_READ}", self.directory.there());
        Ok(Some(Dither::begin(Arc::clone(&self.host), settings?, file, stretch)))
    }

    /// Whether the JVM is still there.
    pub fn is_target_alive(&self) -> bool {
        self.host.is_alive()
    }

    /// How many recordings of others it has beside it, which get our samples too.
    pub fn others(&self) -> usize {
        self.others
    }

    /// What threads did until now, and not long before `since`, an instant as `java.time` reads it; it goes on.
    pub fn work_so_far(&self, lines: Lines, since: &str) -> Result<Recorded, RecorderError> {
        self.directory.create_file(SO_FAR)?;
        let there = self.directory.there();
        let answer = jcmd(&self.host, &format!("JFR.dump name={} begin={since} filename={there}/{SO_FAR}", self.name))?;
        let bytes = self.directory.read_file(SO_FAR, (2 * MOST_MIB) << 20)?;
        if bytes.is_empty() {
            return Err(RecorderError::Declined { what: "write what it has so far", answer: one_line(&answer) });
        }
        Ok(threads_at_work(&bytes, lines)?)
    }

    /// Ends it; what threads did.
    pub fn finish_work(self, lines: Lines) -> Result<Recorded, RecorderError> {
        Ok(threads_at_work(&self.recorded()?, lines)?)
    }

    /// Ends it; what was sampled.
    pub fn finish(self) -> Result<Samples, RecorderError> {
        Ok(samples(&self.recorded()?)?)
    }

    /// Ends it; who waited for what.
    pub fn finish_waits(self) -> Result<Recorded, RecorderError> {
        Ok(waits(&self.recorded()?)?)
    }

    fn recorded(mut self) -> Result<Vec<u8>, RecorderError> {
        let stopped = self.stop();
        if stopped.is_err() {
            self.await_end();
        }
        let bytes = self.directory.read_file(RECORDED, (2 * MOST_MIB) << 20)?;
        match stopped {
            // A JVM that has ended meanwhile has written what it had; one that was killed had written most of it.
            _ if !bytes.is_empty() => Ok(bytes),
            Ok(answer) => Err(RecorderError::Declined { what: "write its recording", answer: one_line(&answer) }),
            Err(_) if !self.is_target_alive() => {
                self.left_behind().ok_or(RecorderError::Attach(AttachError::Gone { pid: self.host.pid() }))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What a JVM that was killed has left of its recording: the chunks of its repository, which it brings up to date once a second.
    fn left_behind(&self) -> Option<Vec<u8>> {
        let repository = self.repository.as_deref()?;
        let read = || chunks(self.host.tmp(), repository, self.began_ns);
        let left = self.host.as_target(read).ok()?.ok()?;
        (!left.is_empty()).then_some(left)
    }

    /// Waits until the JVM is gone, but not for ever: it may be there still, and not answer.
    fn await_end(&self) {
        let begin = Instant::now();
        while self.is_target_alive() && begin.elapsed() < LONGEST_END {
            thread::sleep(LOOK);
        }
    }

    fn stop(&mut self) -> Result<String, AttachError> {
        self.ended = true;
        drop(self.dither.take());
        jcmd(&self.host, &format!("JFR.stop name={}", self.name))
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        if !self.ended {
            // Nobody is left to be told; it ends by itself if it does not end now.
            let _ = self.stop();
        }
    }
}

/// Whether a JVM's recorder has been started before, by its process: nothing is asked of it.
pub fn was_used(pid: u32) -> bool {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut names = tasks.filter_map(|task| fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.starts_with(OWN_THREAD))
}

/// Has a JVM end the recordings of ours that go on, be they another process's.
pub(crate) fn stop(host: &TargetHost) {
    for name in [dither::NAME, SAMPLES[0], LOCKS[0]] {
        // There need not be one any more.
        let _ = jcmd(host, &format!("JFR.stop name={name}"));
    }
}

/// Where the JVM keeps its chunks, as `JFR.configure` tells it, if that is in its /tmp.
fn repository(answer: &str) -> Option<String> {
    let path = answer.lines().find_map(|line| line.strip_prefix("Repository path: "))?;
    let name = path.trim().strip_prefix("/tmp/")?;
    (!name.is_empty() && !name.starts_with('.') && !name.contains('/')).then(|| name.to_owned())
}

/// The chunks of a repository that have begun since, one after the other.
fn chunks(tmp: BorrowedFd<'_>, repository: &str, since_ns: i64) -> io::Result<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let directory = rustix::fs::openat(tmp, repository, flags | OFlags::DIRECTORY, Mode::empty())?;
    let entries = Dir::read_from(&directory)?.filter_map(Result::ok);
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_owned()).collect();
    names.retain(|name| name.to_bytes().ends_with(b".jfr"));
    // Their names are the times of their beginnings.
    names.sort();
    let mut all = Vec::new();
    for name in names {
        let file = rustix::fs::openat(&directory, name, flags, Mode::empty())?;
        let bytes = process::read_regular(file, (2 * MOST_MIB) << 20)?;
        all.extend_from_slice(headwater_jfr::chunk_since(&bytes, since_ns).unwrap_or_default());
    }
    Ok(all)
}

/// The time, in ns since 1970.
fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

/// How many recordings of others `JFR.check` tells of: a line each, `Recording 1: name=...`. Another of ours is none.
fn others(answer: &str) -> usize {
    let is_ours = |line: &str| {
        let name = line.split_once("name=").map_or("", |(_, behind)| behind);
        let name = name.split(' ').next().unwrap_or_default().trim_matches('"');
        [dither::NAME, SAMPLES[0], LOCKS[0]].contains(&name)
    };
    let recordings = answer.lines().filter(|line| line.starts_with("Recording ") || line.starts_with("Recording:"));
    recordings.filter(|line| !is_ours(line)).count()
}

fn one_line(answer: &str) -> String {
    answer.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_recordings_are_counted() {
        assert_eq!(others("No available recordings.\n\nUse jcmd 4711 JFR.start to start a recording.\n"), 0);
        assert_eq!(others("Recording 1: name=a duration=10m (running)\n\nRecording 3: name=b (stopped)\n"), 2);
        // Ours are not others'.
        assert_eq!(
            others("Recording 1: name=headwater-locks duration=10m (running)\nRecording 2: name=headwater (new)\n"),
            0
        );
        // JDK 11.
        assert_eq!(others("Recording: recording=1 name=\"a\" (running)\n"), 1);
    }

    #[test]
    fn the_repository_is_in_the_targets_tmp() {
        let answer = |path: &str| format!("Current configuration:\n\nRepository path: {path}\n\nStack depth: 64\n");
        assert_eq!(repository(&answer("/tmp/2026_11_26_23_12_04_4711")), Some("2026_11_26_23_12_04_4711".to_owned()));
        for elsewhere in ["/var/jfr/2026", "/tmp/", "/tmp/a/b", "/tmp/../etc"] {
            assert_eq!(repository(&answer(elsewhere)), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_period_is_at_least_a_millisecond() {
        let period = |ms| format!("<setting name=\"period\">{ms} ms</setting>");
        let wanted = RecordingKind::Executions(Duration::from_micros(10));
        assert!(wanted.settings(false).contains(&period(1)) && wanted.settings(true).contains(&period(2)));
    }
}
