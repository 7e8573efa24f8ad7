//! Contended locks of a whole JVM: who waited for which, where and how long, and who held them. Without a root and without an agent.
//!
//! Each wait is told by the JVM's own flight recorder, with its time, its stack, and of monitors who left them last. Who holds a lock meanwhile, and
//! where, is seen by looks at all threads ([`looks`]), which are joined with the waits that they fall into.
//!
//! Why so, and at what cost: docs/decisions/locks.md.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::attach::{AttachError, TargetHost};
use crate::flight_recorder::{self, RecorderError, Recording};
use crate::import::recording::{self, locks};
use crate::jvm::Jvm;
use crate::jvm::process::has_program;
use crate::profile::{ContendedLock, Contention, LockKind};
use crate::report::units::{bytes, plural, time};
use crate::thread_dump::{self, Owners};
use crate::whole_jvm::Whole;
use headwater_jfr::{EventKind, Recorded, RecordedEvent};
use looks::{Looking, Looks, Thoroughness};
use rustc_hash::FxHashMap;

mod looks;

/// Frames of a stack, where there is no root above.
pub(crate) const DEPTH: usize = 512;
/// An interruption is noticed within this time.
const STEP: Duration = Duration::from_millis(20);
/// Locks of the recorder itself, which starting and stopping it contends.
const RECORDER: &str = "jdk.jfr.";

/// What is wanted.
#[derive(Clone, Copy, Debug)]
pub struct LockOptions {
    /// For so long.
    pub duration: Duration,
    /// Shorter waits are left out.
    pub over: Duration,
    /// Whether it is looked at who holds locks.
    pub owners: Owners,
    /// Stacks hold so many frames, where nobody has used the recorder before.
    pub depth: usize,
}

/// Why nothing is known.
#[derive(Debug, thiserror::Error)]
pub enum LocksError {
    /// It cannot be asked.
    #[error(transparent)]
    Attach(#[from] AttachError),
    /// Its recorder tells nothing.
    #[error("waits for locks could not be recorded: {0}")]
    Recorder(#[from] RecorderError),
    /// The user does not want it any more.
    #[error("interrupted before anything was recorded")]
    Interrupted,
}

impl LocksError {
    /// The exit code of the command line contract.
    pub fn exit_code(&self) -> u8 {
        match self {
            LocksError::Attach(error) | LocksError::Recorder(RecorderError::Attach(error)) => error.exit_code(),
            LocksError::Recorder(RecorderError::Target(error)) => error.exit_code(),
            LocksError::Recorder(_) => 1,
            LocksError::Interrupted => 130,
        }
    }
}

/// Records a JVM's waits for locks, until the time is over or `interrupt` is ready. `begun` is called when all is told from then on.
pub(crate) async fn take(
    jvm: Jvm,
    wanted: LockOptions,
    begun: fn(LockOptions),
    interrupt: impl Future<Output = ()>,
) -> Result<Whole, LocksError> {
    let taken = thread_dump::until(interrupt, move |is_enough| record(&jvm, wanted, begun, is_enough)).await;
    taken.unwrap_or(Err(LocksError::Interrupted))
}

fn record(jvm: &Jvm, wanted: LockOptions, begun: fn(LockOptions), is_enough: &AtomicBool) -> Result<Whole, LocksError> {
    let watching = Watching::start(jvm, wanted)?;
    begun(wanted);
    let begin = Instant::now();
    let is_over = || begin.elapsed() >= wanted.duration || is_enough.load(Ordering::Acquire);
    while !is_over() && watching.recording.is_target_alive() {
        thread::sleep(STEP.min(wanted.duration.saturating_sub(begin.elapsed())));
    }
    let target_ended = !is_over();
    let duration = begin.elapsed();
    let Watched { recorded, contention, is_unwritten } = watching.finish(|_| true)?;
    let mut builder = recording::build(&recorded, &[EventKind::MonitorEnter, EventKind::Park], usize::MAX)
        .map_err(RecorderError::Unreadable)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    builder.recorded = (now.saturating_sub(duration).as_secs(), duration);
    builder.contention = Some(contention);
    let mut profile = builder.finish(&jvm.main, "waits for locks");
    profile.target.pid = jvm.pid;
    profile.target.jdk = jvm.java_version.clone().unwrap_or_default();
    Ok(Whole { profile, target_ended: target_ended || is_unwritten })
}

/// It is over when this is dropped.
#[derive(Debug, Default)]
struct Over(Arc<AtomicBool>);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A recording of waits that goes on, until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct Watching {
    pid: u32,
    recording: Recording,
    wanted: LockOptions,
    /// When it had begun, in ns since 1970.
    began_ns: i64,
    is_over: Over,
    looking: Option<JoinHandle<Looks>>,
}

/// What was recorded.
pub(crate) struct Watched {
    /// Waits for locks alone.
    pub(crate) recorded: Recorded,
    /// What they come to.
    pub(crate) contention: Contention,
    /// The target ended before it wrote what it had recorded.
    pub(crate) is_unwritten: bool,
}

impl Watching {
    pub(crate) fn start(jvm: &Jvm, wanted: LockOptions) -> Result<Watching, LocksError> {
        let host = TargetHost::of(jvm)?;
        let waits = flight_recorder::RecordingKind::Waits(wanted.over);
        let recording = Recording::start(jvm.pid, waits, wanted.depth, wanted.duration)?;
        let began_ns = now_ns();
        let is_over = Over::default();
        let seen = Arc::clone(&is_over.0);
        let looking = (wanted.owners != Owners::Off).then(|| {
            let mut looking = Looking::begin(host, wanted.owners);
            // Of waits that have begun before, looks alone tell.
            looking.look(Thoroughness::Best);
            thread::Builder::new().spawn(move || looking.until(&seen)).ok()
        });
        let looking = looking.flatten();
        Ok(Watching { pid: jvm.pid, recording, wanted, began_ns, is_over, looking })
    }

    /// Ends it; what is wanted of it.
    pub(crate) fn finish(mut self, is_wanted: impl Fn(&RecordedEvent) -> bool) -> Result<Watched, RecorderError> {
        drop(self.is_over);
        let looks = self.looking.take().and_then(|looking| looking.join().ok());
        let others = self.recording.others();
        let mut unrecorded = None;
        let mut recorded = match self.recording.finish_waits() {
            Ok(recorded) => recorded,
            // Killed, the target has not written what it had, or not all of it: in whatever way that shows. Looks may have seen something.
            Err(error) if !has_program(self.pid) => {
                unrecorded = Some(error);
                Recorded::default()
            }
            Err(error) => return Err(error),
        };
        let over_ns = u64::try_from(self.wanted.over.as_nanos()).unwrap_or(u64::MAX);
        let locks = &recorded.locks;
        let is_recorders = |lock: headwater_jfr::LockIndex| locks[lock.0 as usize].class.starts_with(RECORDER);
        // With another recording beside it there may be shorter ones.
        recorded
            .events
            .retain(|event| event.duration_ns >= over_ns && !event.lock.is_some_and(is_recorders) && is_wanted(event));
        let (mut contention, places) = locks::contention(&recorded);
        contention.over_ns = over_ns;
        if let Some(looks) = &looks {
            looks.join(&recorded, &places, &mut contention);
        }
        limits(&recorded, self.began_ns, others, looks.as_ref(), &mut contention);
        let is_unwritten = unrecorded.is_some();
        contention.limits.extend(unrecorded.map(|error| {
            format!("waits that had ended are missing: the target ended before it wrote them down ({error})")
        }));
        let mut is_lock = places.iter().map(Option::is_some);
        recorded.events.retain(|_| is_lock.next().unwrap_or(false));
        Ok(Watched { recorded, contention, is_unwritten })
    }
}

/// What is not known.
fn limits(recorded: &Recorded, began_ns: i64, others: usize, looks: Option<&Looks>, contention: &mut Contention) {
    let warnings = &mut contention.limits;
    if let Some(lost) = recorded.begins_ns.and_then(|begins| u64::try_from(begins - began_ns).ok()).filter(|ns| *ns > 0)
    {
        warnings.push(format!(
            "waits of the first {} are missing: there were more than the recording has room for; --over leaves out short ones",
            time(lost)
        ));
    }
    if recorded.lost_bytes > 0 {
        let lost = bytes(recorded.lost_bytes);
        warnings.push(format!(
            "{lost} of waits were lost, because the flight recorder had no room: they are more than is told"
        ));
    }
    if others > 0 {
        let others = plural(others as u64, "other recording", "other recordings");
        warnings.push(format!("{others} of the flight recorder went on meanwhile, and got these waits too"));
    }
    if let Some(looks) = looks {
        warnings.extend(looks.limits());
    }
    warnings.extend(moved(&contention.locks));
}

/// Of locks of `java.util.concurrent` addresses are known alone, which collections change: those of one class that are waited for in one place.
fn moved(locks: &[ContendedLock]) -> Option<String> {
    let mut alike: FxHashMap<(&str, &[usize]), u64> = FxHashMap::default();
    for lock in locks.iter().filter(|lock| lock.kind == LockKind::Concurrent) {
        let Some(place) = lock.waits.first() else { continue };
        *alike.entry((&lock.class, &place.stack)).or_default() += 1;
    }
    let alike: u64 = alike.values().filter(|locks| **locks > 1).sum();
    if alike == 0 {
        return None;
    }
    let locks = plural(alike, "java.util.concurrent lock", "java.util.concurrent locks");
    Some(format!(
        "some of {locks} may be one: they are told apart by their addresses, which a garbage collection changes"
    ))
}

/// The time, in ns since 1970.
pub(crate) fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::WaitPlace;

    #[test]
    fn locks_that_may_be_one_are_told_of() {
        let lock = |kind, class: &str, address, place: usize| {
            let waits = vec![WaitPlace { stack: vec![place], ..WaitPlace::default() }];
            ContendedLock { kind, class: class.to_owned(), address, waits }
        };
        let (monitor, concurrent) = (LockKind::Monitor, LockKind::Concurrent);
        let others = [lock(monitor, "a.B", 1, 7), lock(monitor, "a.B", 2, 7), lock(concurrent, "a.B", 3, 7)];
        assert_eq!(moved(&others), None);
        assert_eq!(moved(&[lock(concurrent, "a.B", 1, 7), lock(concurrent, "a.B", 2, 8)]), None, "in two places");
        let told =
            moved(&[lock(concurrent, "a.B", 1, 7), lock(concurrent, "a.C", 2, 7), lock(concurrent, "a.B", 3, 7)]);
        assert!(told.is_some_and(|told| told.starts_with("some of 2 java.util.concurrent locks may be one: ")));
    }
}
