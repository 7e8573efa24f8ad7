//! Contended locks below roots: the waits of the whole JVM, recorded beside a profile, of which those are kept that are below a root.
//!
//! Why so: docs/decisions/locks.md.

use std::time::Duration;

use headwater_jfr::{DEEPEST, RecordedEvent};

use crate::jvm;
use crate::locks::{LockOptions, LocksError, Watching, now_ns};
use crate::profile::{Contention, LockKind, Profile};
use crate::report::units::{count, plural, time};
use crate::session::Session;
use crate::thread_dump::Owners;

/// For so long it goes on at most if nobody ends it, where the profile has no end of its own.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Waits for locks that are being recorded beside a profile.
#[derive(Debug)]
pub(crate) struct LockWaits {
    watching: Result<Watching, LocksError>,
    times: Times,
    /// So much of the profile's beginning is without them.
    missing: Duration,
}

/// When it was recorded, in ns since 1970.
#[derive(Debug, Default)]
struct Times {
    over: Vec<[i64; 2]>,
    since: Option<i64>,
}

impl Times {
    fn has(&self, at_ns: i64) -> bool {
        let is_in_one = self.over.iter().any(|[from, to]| (*from..*to).contains(&at_ns));
        is_in_one || self.since.is_some_and(|since| since <= at_ns)
    }
}

impl LockWaits {
    /// Begins to record them; the recorder takes a second or two.
    pub(crate) async fn begun(pid: u32, planned: Option<Duration>) -> LockWaits {
        let started = tokio::task::spawn_blocking(move || LockWaits::start(pid, planned)).await;
        started.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic()))
    }

    fn start(pid: u32, planned: Option<Duration>) -> LockWaits {
        let wanted = LockOptions {
            duration: planned.unwrap_or(LONGEST),
            over: Duration::ZERO,
            owners: Owners::Auto,
            // So deep that a root is on each stack; later recordings have no other depth.
            depth: DEEPEST,
        };
        let started = jvm::resolve(&pid.to_string()).map_err(|error| LocksError::Recorder(error.into()));
        let watching = started.and_then(|jvm| Watching::start(&jvm, wanted));
        LockWaits { watching, times: Times::default(), missing: Duration::ZERO }
    }

    /// Why nothing is recorded, if that is so.
    pub(crate) fn failed(&self) -> Option<String> {
        self.watching.as_ref().err().map(ToString::to_string)
    }

    /// The profile records from now on.
    pub(crate) fn begin(&mut self) {
        self.times.since.get_or_insert_with(now_ns);
    }

    /// The same, of a profile that has recorded for so long already.
    pub(crate) fn begin_late(&mut self, missing: Duration) {
        self.missing = missing;
        self.begin();
    }

    /// It does not.
    pub(crate) fn interrupt(&mut self) {
        if let Some(since) = self.times.since.take() {
            self.times.over.push([since, now_ns()]);
        }
    }

    /// It forgets what it has.
    pub(crate) fn clear(&mut self) {
        self.missing = Duration::ZERO;
        self.times.over.clear();
        if self.times.since.is_some() {
            self.times.since = Some(now_ns());
        }
    }

    /// Ends it; blocks for as long as the recorder takes.
    pub(crate) fn finish(mut self) -> Result<Contention, LocksError> {
        self.interrupt();
        let LockWaits { watching, times, missing } = self;
        let mut contention = watching?.finish(|event: &RecordedEvent| times.has(event.at_ns))?.contention;
        if !missing.is_zero() {
            let missing = time(missing.as_nanos() as u64);
            contention
                .limits
                .push(format!("waits of the program's first {missing} are missing: the recorder had not begun"));
        }
        Ok(contention)
    }
}

/// Ends the recording of waits, if there is one; the target is served meanwhile.
pub(super) async fn ended(
    session: &mut Session,
    waits: Option<LockWaits>,
    is_gone: bool,
) -> Option<Result<Contention, LocksError>> {
    let mut waits = waits?;
    waits.interrupt();
    if is_gone {
        return Some(waits.finish());
    }
    let finishing = tokio::task::spawn_blocking(move || waits.finish());
    // What is wrong with the conversation is found out by who goes on with it.
    let finished = session.serve_until(finishing).await.ok()?;
    Some(finished.unwrap_or_else(|panic| std::panic::resume_unwind(panic.into_panic())))
}

/// What recordings have found one after the other; `None` if there were none.
pub(super) fn joined(
    parts: impl Iterator<Item = Result<Contention, LocksError>>,
) -> Option<Result<Contention, LocksError>> {
    let (mut all, mut failed) = (None::<Contention>, None);
    for part in parts {
        match (part, &mut all) {
            (Ok(part), Some(all)) => all.add(part),
            (Ok(part), None) => all = Some(part),
            (Err(error), _) => failed = Some(error),
        }
    }
    let Some(mut all) = all else { return failed.map(Err) };
    let missing = failed.map(|error| format!("contended locks are not known for a part of the time: {error}"));
    all.limits.extend(missing);
    Some(Ok(all))
}

/// Gives a profile its locks, of those that were recorded.
pub(super) fn add(profile: &mut Profile, recorded: Result<Contention, LocksError>) {
    let mut contention = match recorded {
        Ok(contention) => contention,
        Err(error) => {
            profile.warnings.push(format!("contended locks are not known: {error}"));
            return;
        }
    };
    contention.place(&profile.methods, &profile.merged);
    let cut = contention.keep_placed().count;
    let roots: Vec<&str> = profile.roots.iter().flat_map(|root| profile.root_names(root)).collect();
    contention.keep_unfinished_below(&roots);
    contention.other_parks = Default::default();
    contention.sort();
    let warnings = &mut contention.limits;
    if cut > 0 {
        let cut = plural(cut, "wait", "waits");
        warnings.push(format!("{cut} had stacks too deep to tell whether they were below a root, and are left out"));
    }
    if profile.merged.nodes.iter().any(|node| node.link.is_some()) {
        warnings
            .push("waits in work that was handed to other threads are not in it: their stacks have no root".to_owned());
    }
    let monitors = contention.locks.iter().filter(|lock| lock.kind == LockKind::Monitor);
    let told: u64 = monitors.map(|lock| lock.blocked().count).sum();
    if let Some(counted) = counted(profile).filter(|counted| *counted != told) {
        let (counted, told) = (plural(counted, "wait", "waits"), count(told));
        contention.limits.push(format!(
            "JVMTI counted {counted} for monitors below the roots (`blocks` in the tree), and the flight recorder told of {told}"
        ));
    }
    profile.contention = Some(contention);
}

/// How many waits for monitors the probes counted, of all nodes that no other thread ran for them.
fn counted(profile: &Profile) -> Option<u64> {
    let metrics = profile.metrics();
    let metric = metrics.iter().find(|metric| metric.id == "blocks")?;
    Some(metric.whole(&profile.merged, &profile.columns(&profile.merged)))
}
