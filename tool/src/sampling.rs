//! All threads of a JVM, sampled: where its time and memory go, without a root and without an agent.
//!
//! Where threads run and allocate is told by the JVM's own flight recorder; what they wait in by [`looks`] at all of them. How much CPU time each of
//! them took, and for how long it stood in line, is read from `/proc`, once a second; what it allocated is the JVM's own count. So all of these are
//! conserved, and only their places are sampled. What the JVM itself burns (collectors, compilers) stands beside it.
//!
//! Why so, and at what cost: docs/decisions/sampling.md.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headwater_jfr::{EventKind, Lines, Recorded};

use crate::attach::{AttachError, TargetHost};
use crate::flight_recorder::{self, RecorderError, Recording};
use crate::jvm::Jvm;
use crate::locks;
use crate::profile::Profile;
use crate::thread_dump;
use crate::thread_dump::cpu::{Reading, Readings};
use crate::threads::activity::Activity;
use crate::whole_jvm::{Recorder, Whole};
use looks::{Looking, Looks};

mod assemble;
mod looks;
mod metrics;
mod notes;
mod paths;
mod places;

/// Stacks hold so many frames, where nobody has used the recorder before.
const DEPTH: usize = 512;
/// How often threads' CPU times are read.
const SECOND: Duration = Duration::from_secs(1);
/// The recorder is not asked more often than this what it has so far.
const GATHERED: Duration = Duration::from_secs(5);
/// An interruption is noticed within this time, and a look is late by it at most.
const STEP: Duration = Duration::from_millis(20);

/// Whether threads are looked at while they wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Waits {
    /// At a safepoint, ten times a second at most, and for 0.5 % of the time
    On,
    /// Not, so that the JVM is never stopped for it
    Off,
}

/// Whether classes of what is allocated are told apart in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Classes {
    /// Below the method that allocates them.
    Apart,
    /// They are not.
    Together,
}

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct SampleOptions {
    /// For so long.
    pub duration: Duration,
    /// Threads that run are sampled once in this time.
    pub every: Duration,
    /// Whether nodes are lines.
    pub lines: Lines,
    /// Whether classes of what is allocated are nodes.
    pub classes: Classes,
    /// Whether the flight recorder says where they are.
    pub recorder: Recorder,
    /// Whether those that wait are looked at.
    pub waits: Waits,
    /// What there is so far is told again and again.
    pub live: Option<Duration>,
}

/// Why nothing was sampled.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// It cannot be asked.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Its recorder samples nothing.
    #[error("nothing could be sampled: {0}")]
    Recorder(#[from] RecorderError),
    /// The user does not want it any more.
    #[error("interrupted before anything was sampled")]
    Interrupted,
}

impl SampleError {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            SampleError::Attach(error) | SampleError::Recorder(RecorderError::Attach(error)) => error.exit_code(),
            SampleError::Recorder(RecorderError::Target(error)) => error.exit_code(),
            SampleError::Recorder(_) => 1,
            SampleError::Interrupted => 130,
        }
    }
}

/// Ids of the metrics of waiting for anything but work.
pub(crate) fn ids_of_waits() -> impl Iterator<Item = &'static str> {
    Activity::WAITS.into_iter().map(|activity| metrics::named(activity).0)
}

/// What is heard of samples while they are taken.
pub(crate) enum Heard {
    /// All that threads do is seen from now on.
    Begun,
    /// What there is so far, if that is wanted.
    SoFar(Box<Profile>),
}

/// Samples a JVM, until the time is over or `interrupt` is ready.
pub(crate) async fn take(
    jvm: Jvm,
    wanted: SampleOptions,
    tell: impl Fn(Heard) + Send + 'static,
    interrupt: impl Future<Output = ()>,
) -> Result<Whole, SampleError> {
    let taken = thread_dump::until(interrupt, move |is_enough| sample(&jvm, wanted, &tell, is_enough)).await;
    taken.unwrap_or(Err(SampleError::Interrupted))
}

fn sample(
    jvm: &Jvm,
    wanted: SampleOptions,
    tell: &dyn Fn(Heard),
    is_enough: &AtomicBool,
) -> Result<Whole, SampleError> {
    let host = TargetHost::of(jvm)?;
    let (recording, unrecorded) = record(jvm, wanted)?;
    // Where nobody else says where threads are, looks do.
    let has_looks = wanted.waits == Waits::On || recording.is_none();
    let reader = Readings::of(&host);
    let mut sampling = Sampling {
        host,
        recording,
        looking: has_looks.then(Looking::begin),
        begin: Instant::now(),
        reader,
        readings: Vec::new(),
        unrecorded,
        gathered: Recorded::default(),
        gathered_until: SystemTime::now(),
        asked: None,
    };
    sampling.read();
    tell(Heard::Begun);
    let (mut reading_due, mut telling_due) = (SECOND, wanted.live);
    while sampling.begin.elapsed() < wanted.duration && !is_enough.load(Ordering::Acquire) && sampling.host.is_alive() {
        thread::sleep(STEP.min(wanted.duration.saturating_sub(sampling.begin.elapsed())));
        if let Some(looking) = &mut sampling.looking {
            looking.look(&sampling.host);
        }
        if sampling.begin.elapsed() >= reading_due {
            sampling.read();
            reading_due += SECOND;
        }
        if let (Some(period), Some(due)) = (wanted.live, telling_due)
            && sampling.begin.elapsed() >= due
        {
            tell(Heard::SoFar(Box::new(sampling.so_far(jvm, wanted)?)));
            // What takes longer to tell than the period is told less often.
            telling_due = Some(sampling.begin.elapsed().max(due) + period);
        }
    }
    sampling.finish(jvm, wanted)
}

/// Has the recorder begin; or why it is not used.
fn record(jvm: &Jvm, wanted: SampleOptions) -> Result<(Option<Recording>, Option<String>), SampleError> {
    if wanted.recorder == Recorder::Off {
        return Ok((None, Some("--recorder off".to_owned())));
    }
    let work = flight_recorder::RecordingKind::Work(wanted.every);
    match Recording::start(jvm.pid, work, DEPTH, wanted.duration) {
        Ok(recording) => Ok((Some(recording), None)),
        // There is none in this JVM, or it does not do it.
        Err(error @ (RecorderError::Declined { .. } | RecorderError::Attach(AttachError::CommandFailed { .. }))) => {
            Ok((None, Some(error.to_string())))
        }
        Err(error) => Err(error.into()),
    }
}

/// Samples that are being taken.
struct Sampling {
    host: TargetHost,
    recording: Option<Recording>,
    looking: Option<Looking>,
    begin: Instant,
    reader: Readings,
    readings: Vec<Reading>,
    unrecorded: Option<String>,
    /// What the recorder has told while it went on,
    gathered: Recorded,
    /// until when, and when it was asked last.
    gathered_until: SystemTime,
    asked: Option<Instant>,
}

impl Sampling {
    /// Reads what threads have used; nothing of a process that is gone.
    fn read(&mut self) {
        let reading = self.reader.now();
        if !reading.threads.is_empty() {
            self.readings.push(reading);
        }
    }

    /// What there is; it goes on.
    fn so_far(&mut self, jvm: &Jvm, wanted: SampleOptions) -> Result<Profile, SampleError> {
        self.read();
        self.gather(wanted.lines);
        let looks = self.looking.as_mut().map(|looking| std::mem::take(&mut looking.looks)).unwrap_or_default();
        let gathered = std::mem::take(&mut self.gathered);
        let mut sampled = self.sampled(gathered, looks, wanted);
        if sampled.looks.threads.is_empty() {
            sampled.looks.name(&thread_dump::names(jvm).unwrap_or_default());
        }
        let profile = sampled.profile(jvm);
        if let Some(looking) = &mut self.looking {
            looking.looks = sampled.looks;
        }
        self.gathered = sampled.recorded;
        Ok(profile)
    }

    /// Has the recorder tell what it has, if it is some time since it did: each time it begins a new chunk, with all of its types.
    fn gather(&mut self, lines: Lines) {
        let Some(recording) = &self.recording else { return };
        if self.asked.is_some_and(|asked| asked.elapsed() < GATHERED) {
            return;
        }
        let now = SystemTime::now();
        let since = humantime::format_rfc3339_millis(self.gathered_until).to_string();
        // It may be just ending, and is asked once more then.
        if let Ok(recorded) = recording.work_so_far(lines, &since) {
            let known_ns = self.gathered.last_ns().unwrap_or(i64::MIN);
            self.gathered.add(recorded, known_ns);
            self.gathered_until = now;
        }
        self.asked = Some(Instant::now());
    }

    fn finish(mut self, jvm: &Jvm, wanted: SampleOptions) -> Result<Whole, SampleError> {
        self.read();
        if let [only] = &self.readings[..] {
            // It has ended before there was another one.
            let at_ns = locks::now_ns();
            self.readings.push(Reading { at_ns, ..only.clone() });
        }
        let duration = self.begin.elapsed();
        let recorded = self.recording.take().map(|recording| (recording.others(), recording.finish_work(wanted.lines)));
        let target_ended = !self.host.is_alive();
        let mut looks = self.looking.take().map(|looking| looking.looks).unwrap_or_default();
        let (others, recorded) = match recorded {
            Some((others, Ok(recorded))) => {
                let known_ns = self.gathered.last_ns().unwrap_or(i64::MIN);
                self.gathered.add(recorded, known_ns);
                (others, std::mem::take(&mut self.gathered))
            }
            // Killed, it has not written what it had, or not all of it: in whatever way that shows. How much threads took is known all the same.
            Some((others, Err(error))) if target_ended => {
                self.unrecorded = Some(error.to_string());
                (others, std::mem::take(&mut self.gathered))
            }
            Some((_, Err(error))) => return Err(error.into()),
            None => (0, Recorded::default()),
        };
        let mut unnamed = None;
        if !target_ended {
            match thread_dump::names(jvm) {
                Ok(threads) => looks.name(&threads),
                // It may have ended since: what was sampled is shown all the same.
                Err(error) => unnamed = Some(format!("threads' names are not known: {error}")),
            }
        }
        let mut sampled = self.sampled(recorded, looks, wanted);
        (sampled.duration, sampled.others, sampled.target_ended) = (duration, others, target_ended);
        let mut profile = sampled.profile(jvm);
        profile.notes.extend(unnamed);
        Ok(Whole { profile, target_ended })
    }

    fn sampled(
        &self,
        recorded: Recorded,
        looks: Looks,
        SampleOptions { every, lines, classes, .. }: SampleOptions,
    ) -> Sampled {
        let duration = self.begin.elapsed();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Sampled {
            duration,
            every,
            began_s: now.saturating_sub(duration).as_secs(),
            others: self.recording.as_ref().map_or(0, Recording::others),
            readings: self.readings.clone(),
            recorded,
            looks,
            lines,
            classes,
            unrecorded: self.unrecorded.clone(),
            target_ended: false,
        }
    }
}

/// What was seen of a JVM.
struct Sampled {
    duration: Duration,
    /// Between two samples of a thread by the recorder, at least.
    every: Duration,
    /// In seconds since 1970.
    began_s: u64,
    /// Recordings of others, which have our samples too.
    others: usize,
    /// Each with threads by the numbers that the JVM knows.
    readings: Vec<Reading>,
    recorded: Recorded,
    looks: Looks,
    lines: Lines,
    classes: Classes,
    /// Why the recorder was not used, where it was not.
    unrecorded: Option<String>,
    target_ended: bool,
}

impl Sampled {
    fn profile(&self, jvm: &Jvm) -> Profile {
        assemble::profile(self, jvm)
    }

    /// What the process took, threads that have ended included.
    fn process_ns(&self) -> u64 {
        match (self.readings.first(), self.readings.last()) {
            (Some(first), Some(last)) => last.process_ns.saturating_sub(first.process_ns),
            _ => 0,
        }
    }

    fn has_looks(&self) -> bool {
        !self.looks.at_ns.is_empty()
    }

    fn has_allocations(&self) -> bool {
        !self.recorded.allocated.is_empty()
    }

    fn samples_of_virtual_threads(&self) -> u64 {
        let threads = &self.recorded.threads;
        let is_one = |event: &&headwater_jfr::RecordedEvent| {
            let thread = &threads[event.thread.0 as usize];
            let is_sample = matches!(event.kind, EventKind::ExecutionSample | EventKind::NativeMethodSample);
            is_sample && (thread.is_virtual || thread.number == 0)
        };
        self.recorded.events.iter().filter(is_one).count() as u64
    }
}

#[cfg(test)]
mod tests;
