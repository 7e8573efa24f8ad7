//! The undisturbed phase: after the recording its roots, and nothing below them, stay instrumented for a while. Their calls say what they take
//! without the profile; and the JVM's flight recorder samples meanwhile where they are, unless that was done [before](super::before). The recorded calls' times are
//! made of both.
//!
//! It comes after the recording rather than before, so that a profile begins when it says so, and misses no call.
//!
//! Code that has just been given back is compiled anew. What was timed and sampled before the compilers were done with it, and calls took the
//! same from one part of the time to the next, does not count. Where that does not come, the last half of the phase counts, and the profile says so.
//!
//! Why so, and at what cost: docs/decisions/times.md.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use headwater_protocol::MethodId;
use headwater_protocol::segment::Segment;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::before::{Before, RootsTimed};
use super::jit::{Compilers, is_busy};
use super::processor_time::ProcessorTime;
use super::recorder::{LEAST_PERIOD, PERIOD, Recorder};
use super::steady::{Checkpoint, checkpoint_at, is_steady, unsettled};
use super::{BareTiming, Ending, Observer, Stage};
use crate::decode::{Decoder, FOLDED, Scheduled};
use crate::profile::ControlKind;
use crate::session::{Session, SessionError};
use crate::timing::{Timed, Timing};
use headwater_jfr::Samples;

/// How often the times are looked at.
const STEP: Duration = Duration::from_millis(50);
/// It takes about this long until hot code is compiled again.
const WARM_UP: Duration = Duration::from_secs(2);
/// Where samples were taken before the profile, code that is not settled by then is not waited for: the program has waited long enough.
const ONLY_TIMED: Duration = Duration::from_secs(10);
/// Fewer calls are not waited for, if threads are hardly ever in a root.
const ENOUGH: f64 = 8.0;
/// In this part of the time they are not hardly ever.
const OFTEN: f64 = 0.05;
/// The first call may take so many times what recorded ones did, since the code that was given back is interpreted.
const SEVERAL: u32 = 8;
/// Probes make calls fewer by this factor at most.
const MOST_TIMES_AS_MANY: u32 = 64;
/// Nobody waits for longer, if nobody asked for that.
const LONGEST: Duration = Duration::from_secs(60);
/// Somebody who has pressed Ctrl-C waits no longer than this.
const HASTE: Duration = Duration::from_secs(3);
/// How long settled code is sampled, at least and at most.
const SAMPLED: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(10));
/// However busy the machine is, a thread that wants a processor runs for this part of the time.
const LEAST_RUNNING: f64 = 0.25;
/// Frames of a stack for each level of the recorded tree: between methods that have probes there are others.
const FRAMES: usize = 3;
/// Frames of a stack outside the root.
const FRAMES_ABOVE: usize = 64;

/// What is measured, and how long at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The root that takes most time: when its times are steady, the phase is over.
    root: MethodId,
    /// After this long without a call there will be none; unless threads are in one all the time.
    idle: Option<Duration>,
    /// After this long it is over.
    limit: Duration,
    /// For how long settled code is to be sampled, if it is,
    sampled: Option<Duration>,
    /// and how often.
    period: Duration,
    /// Frames that a stack may have.
    depth: usize,
}

/// How recording went.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordingFacts {
    pub(super) ending: Ending,
    pub(super) duration: Duration,
    /// What a probe pair costs.
    pub(super) pair_ns: f64,
    /// Whether there are samples of the undisturbed code already.
    pub(super) is_sampled: bool,
}

/// How long the phase is at most, after a recording that was so long; `None` if there is none.
pub(super) fn limit(timing: BareTiming, ending: Ending, recorded: Duration) -> Option<Duration> {
    match timing {
        BareTiming::Off => None,
        BareTiming::For(limit) => Some(limit),
        BareTiming::Auto if ending == Ending::Interrupted => Some((recorded / 2).min(HASTE)),
        // Code takes its time to be compiled, however short the profile was.
        BareTiming::Auto => Some(recorded.clamp(WARM_UP, LONGEST)),
    }
}

/// What is worth being measured after a profile; nothing, where there would be too little of the roots, or no room for their times.
pub(super) fn plan(
    timing: BareTiming,
    RecordingFacts { ending, duration: recorded, pair_ns, is_sampled }: RecordingFacts,
    decoder: &Decoder,
    segment: &Segment,
) -> Option<Plan> {
    let limit = limit(timing, ending, recorded)?;
    let limit = if is_sampled && timing == BareTiming::Auto { limit.min(ONLY_TIMED) } else { limit };
    let mut measured: FxHashMap<MethodId, u64> = FxHashMap::default();
    let mut seen = Seen { calls: decoder.roots_completed(), recorded, ..Seen::default() };
    let mut depth = 0;
    for (thread, tree) in decoder.threads() {
        let before = seen.in_roots;
        depth = depth.max(tree.deepest());
        for (root, below) in tree.roots() {
            *measured.entry(tree.node(root).method()).or_default() += below.measured_ns;
            let time = Duration::from_nanos(below.measured_ns);
            seen.in_roots += time;
            // How many threads these were is not known.
            if thread != FOLDED {
                seen.in_probes += time.min(Duration::from_nanos((below.calls as f64 * pair_ns.max(0.0)) as u64));
            }
        }
        seen.threads += u32::from(thread != FOLDED && seen.in_roots > before);
    }
    let (root, _) = measured.into_iter().max_by_key(|(method, ns)| (*ns, *method))?;
    let is_worth_it = seen.expected_in(limit) >= ENOUGH || seen.in_roots >= recorded.mul_f64(OFTEN);
    // Threads that were recorded keep their chunks.
    if timing == BareTiming::Auto && !is_worth_it || segment.free_chunks() < segment.chunks() / 2 {
        return None;
    }
    let is_inside = decoder.partial().values().any(|partial| partial.unfinished > 0 || partial.open_below.calls > 0);
    // Where threads stand in line for a processor, fewer samples find them running.
    let running = (1.0 - decoder.scheduled().queued().unwrap_or(0.0)).max(LEAST_RUNNING);
    let idle = (limit / 4).max(seen.mean() * SEVERAL).min(limit);
    Some(Plan {
        root,
        idle: (!is_inside).then_some(idle),
        limit,
        sampled: (!is_sampled).then(|| (limit / 2).clamp(SAMPLED.0, SAMPLED.1).div_f64(running).min(limit)),
        period: PERIOD.mul_f64(running).max(LEAST_PERIOD),
        depth: FRAMES * depth + FRAMES_ABOVE,
    })
}

/// Calls of roots that were recorded.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    calls: u64,
    /// On so many threads.
    threads: u32,
    /// For how long there was recording.
    recorded: Duration,
    /// The calls' own time, of all threads.
    in_roots: Duration,
    /// At most so much of it were probes.
    in_probes: Duration,
}

impl Seen {
    /// How many there are in that time without probes: it may be many times as many, but no more than probes allow.
    fn expected_in(&self, time: Duration) -> f64 {
        let others = self.recorded.saturating_sub(self.in_probes / self.threads.max(1));
        let least = (self.recorded / MOST_TIMES_AS_MANY).max(Duration::from_nanos(1));
        self.calls as f64 * time.div_duration_f64(others.max(least))
    }

    fn mean(&self) -> Duration {
        self.in_roots.div_f64(self.calls.max(1) as f64)
    }
}

/// What was seen of the undisturbed code.
#[derive(Debug, Default)]
pub(crate) struct Undisturbed {
    /// The roots' calls in the time that counts.
    pub(crate) timed: Timed,
    /// What was sampled, or why nothing was.
    pub(crate) samples: Option<Result<Samples, String>>,
    /// The time that counts, in ns since 1970.
    pub(crate) counted: (i64, i64),
    /// When the program was changed, if samples are from before that and from after it.
    pub(crate) parted: Option<i64>,
    /// How far what calls take may still be from what it comes to, as a part and a standard deviation: nothing where code was compiled and calls took the same
    /// all that time. `None` if there was no such phase.
    pub(crate) unsettled: Option<f64>,
    /// What each of the threads that have been in a root had of the processors in that time, by the operating system's numbers.
    pub(crate) wanted: FxHashMap<u32, Scheduled>,
    /// Over how long that was.
    pub(crate) wanted_over: Option<Duration>,
    /// Recordings of others that got our samples too.
    pub(crate) other_recordings: usize,
    /// Samples are those from before the profile: of compiled code, whatever it was when the roots were timed.
    pub(crate) is_sampled_before: bool,
    /// The roots were timed before the profile.
    pub(crate) is_timed_before: bool,
}

impl Undisturbed {
    /// The samples are those that were taken before the profile.
    pub(super) fn sampled_before(&mut self, before: Before) {
        self.samples = Some(Ok(before.samples));
        self.counted = before.taken;
        self.other_recordings = before.other_recordings;
        self.is_sampled_before = true;
    }

    /// The samples are those from before the profile, which are too few by themselves, and one in so many from after it, or as many if nobody says: code that was compiled
    /// anew may be other code.
    pub(super) fn sampled_before_too(&mut self, mut before: Before, every: Option<usize>) {
        let Some(Ok(after)) = &mut self.samples else { return self.sampled_before(before) };
        let keep = |samples: &mut Samples, (from_ns, to_ns): (i64, i64)| {
            samples.stacks.retain(|sample| (from_ns..=to_ns).contains(&sample.at_ns));
        };
        keep(after, self.counted);
        keep(&mut before.samples, before.taken);
        let every = every.unwrap_or_else(|| after.stacks.len().div_ceil(before.samples.stacks.len().max(1))).max(1);
        let fewer = after.stacks.iter().step_by(every).cloned().collect();
        let fewer = Samples { stacks: fewer, methods: std::mem::take(&mut after.methods) };
        *after = before.samples.and(&fewer);
        self.counted.0 = before.taken.0;
        self.parted = Some(before.taken.1);
    }

    /// The roots' calls are those that were timed before the profile.
    pub(super) fn timed_before(&mut self, RootsTimed { timed, unsettled, wanted, wanted_over, .. }: RootsTimed) {
        (self.timed, self.wanted, self.wanted_over) = (timed, wanted, Some(wanted_over));
        self.unsettled = Some(unsettled);
        self.is_timed_before = true;
    }

    /// Compilers had so much of the processors, or wanted it, while it was recorded for so long: if nothing was timed, what was measured may be of code that they
    /// had not come to, and many times what it takes.
    #[must_use]
    pub(crate) fn unless_compiled(self, compiling: Duration, recorded: Duration) -> Undisturbed {
        const NOT_KNOWN: f64 = 1.0;
        let not_known = is_busy(compiling, recorded).then_some(NOT_KNOWN);
        Undisturbed { unsettled: self.unsettled.or(not_known), ..self }
    }

    /// When the roots were timed.
    pub(crate) fn kind(&self) -> ControlKind {
        if self.is_timed_before { ControlKind::Before } else { ControlKind::After }
    }

    /// The part of the time in which threads stood in line for a processor: while they were recorded, or afterwards, if it was more then.
    pub(crate) fn queued(&self, recorded: Scheduled) -> Option<f64> {
        let mut afterwards = Scheduled::default();
        self.wanted.values().for_each(|thread| afterwards.add(*thread));
        [recorded, afterwards].into_iter().filter_map(Scheduled::queued).reduce(f64::max)
    }
}

/// Goes over from recording (which has been stopped) to timing and sampling the roots, until that is enough, or somebody has `enough`; with what
/// went wrong, when something did.
pub(super) async fn measure(
    session: &mut Session,
    segment: &Arc<Segment>,
    pid: u32,
    plan: Plan,
    compilers: Compilers,
    enough: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> (Undisturbed, Option<SessionError>) {
    // Without the thread that reads the times there are none, which is no reason to lose the profile.
    let Ok(timing) = Timing::start(Arc::clone(segment)) else { return (Undisturbed::default(), None) };
    let wanted = ProcessorTime::of(session.peer_pid().unwrap_or(pid), session.os_threads());
    let mut phase = Phase::begun(plan, compilers, wanted, &timing);
    let mut recorder = Recorder::NotYet;
    observer(Stage::TimingRoots { limit: plan.limit });
    let mut failed = phase.watch(session, &timing, &mut recorder, pid, enough).await.err();
    let ended = SystemTime::now();
    let (mut samples, mut other_recordings) = (None, 0);
    let stopped = recorder.finish();
    match failed {
        // Nobody is to be served any more.
        Some(_) => drop(stopped),
        None if plan.sampled.is_none() => {}
        None => match session.serve_until(stopped).await {
            Ok((found, others)) => (samples, other_recordings) = (Some(found), others),
            Err(error) => failed = Some(error),
        },
    }
    if failed.is_none() {
        failed = session.stop().await.err();
    }
    timing.finish();
    let (timed, since, unsettled) = phase.counted();
    let now = Instant::now();
    let until = phase.checkpoints.last().map_or(since, |last| last.at);
    let (wanted, wanted_over) = (phase.wanted.between(since, until), Some(until - since));
    let ns = |time: SystemTime| time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
    let counted = (ns(SystemTime::now() - (now - since)), ns(ended));
    let unsettled = Some(unsettled);
    let undisturbed = Undisturbed {
        timed,
        samples,
        counted,
        unsettled,
        wanted,
        wanted_over,
        other_recordings,
        ..Undisturbed::default()
    };
    (undisturbed, failed)
}

/// The phase as far as it has come.
struct Phase {
    plan: Plan,
    compilers: Compilers,
    wanted: ProcessorTime,
    checkpoints: Vec<Checkpoint>,
    /// Since when code is settled.
    settled: Option<Instant>,
}

impl Phase {
    fn begun(plan: Plan, compilers: Compilers, wanted: ProcessorTime, timing: &Timing) -> Phase {
        let start = Checkpoint { at: Instant::now(), timed: timing.so_far(), compiling: Duration::ZERO };
        Phase { plan, compilers, wanted, checkpoints: vec![start], settled: None }
    }

    async fn watch(
        &mut self,
        session: &mut Session,
        timing: &Timing,
        recorder: &mut Recorder,
        pid: u32,
        enough: impl Future<Output = ()>,
    ) -> Result<(), SessionError> {
        tokio::pin!(enough);
        session.time_roots().await?;
        if self.plan.sampled.is_some() {
            *recorder = Recorder::start(pid, self.plan.period, self.plan.depth, self.plan.limit);
        }
        let start = Instant::now();
        self.checkpoints[0] = Checkpoint { at: start, timed: timing.so_far(), compiling: self.compilers.used() };
        let mut sampled_since = None;
        let mut steps = tokio::time::interval(STEP);
        loop {
            let event = tokio::select! {
                event = session.next_event() => event?,
                () = &mut enough => return Ok(()),
                _ = steps.tick() => {
                    recorder.look().await;
                    let now = Instant::now();
                    let compiling = self.compilers.used();
                    self.wanted.look(now);
                    self.checkpoints.push(Checkpoint { at: now, timed: timing.so_far(), compiling });
                    let passed = now - start;
                    let is_idle = self.plan.idle.is_some_and(|idle| passed >= idle)
                        && self.checkpoints.last().is_none_or(|last| last.timed.used.is_empty());
                    if is_idle || passed >= self.plan.limit {
                        return Ok(());
                    }
                    if self.settled.is_none() && passed >= WARM_UP && is_steady(&self.checkpoints, self.plan.root, self.plan.idle.is_none()) {
                        // The last two quarters were alike.
                        self.settled = Some(now - passed / 2);
                    }
                    if matches!(recorder, Recorder::Runs(_) | Recorder::Failed(_)) {
                        sampled_since.get_or_insert(now);
                    }
                    let is_sampled = match (self.settled, sampled_since, self.plan.sampled) {
                        (None, ..) | (_, None, Some(_)) => false,
                        (Some(settled), Some(sampled), Some(wanted)) => now - settled.max(sampled) >= wanted,
                        (Some(_), _, None) => true,
                    };
                    if is_sampled || self.settled.is_some() && matches!(recorder, Recorder::Failed(_)) {
                        return Ok(());
                    }
                    continue;
                }
            };
            session.serve(event).await?;
        }
    }

    /// The calls that count, since when, and how far they are from those of settled code.
    fn counted(&self) -> (Timed, Instant, f64) {
        let (first, last) = (&self.checkpoints[0], &self.checkpoints[self.checkpoints.len() - 1]);
        let since = self.settled.unwrap_or(first.at + (last.at - first.at) / 2);
        let before = checkpoint_at(&self.checkpoints, since);
        let unsettled = if self.settled.is_some() { 0.0 } else { unsettled(&self.checkpoints, self.plan.root) };
        (last.timed.since(&before.timed), before.at, unsettled)
    }
}

#[cfg(test)]
mod tests {
    use headwater_jfr::{FrameIndex, Sample};

    use super::*;
    use crate::profiling::steady::of;
    use crate::profiling::steady::tests::checkpoints;

    const ROOT: MethodId = MethodId(1);
    const PLAN: Plan = Plan {
        root: ROOT,
        idle: Some(Duration::from_secs(1)),
        limit: Duration::from_secs(5),
        sampled: Some(Duration::from_secs(2)),
        period: PERIOD,
        depth: 64,
    };

    #[test]
    fn what_was_not_timed_is_not_known_of_code_that_was_not_compiled() {
        const S: Duration = Duration::from_secs(1);
        let unsettled = |known, compiling| {
            Undisturbed { unsettled: known, ..Undisturbed::default() }.unless_compiled(compiling, 10 * S).unsettled
        };
        assert_eq!(unsettled(None, 4 * S), None);
        assert_eq!(unsettled(None, 6 * S), Some(1.0));
        assert_eq!(unsettled(Some(0.0), 6 * S), Some(0.0));
    }

    #[test]
    fn few_calls_are_expected_where_it_is_not_probes_that_make_them_few() {
        const S: Duration = Duration::from_secs(1);
        // Twelve calls of 0.8 s in 10 s, on one thread, with six million pairs each.
        let slowed = Seen { calls: 12, threads: 1, recorded: 10 * S, in_roots: 10 * S, in_probes: 10 * S };
        assert!(slowed.expected_in(5 * S) > ENOUGH);
        assert_eq!(slowed.mean(), 10 * S / 12);
        // With ten pairs each, or where the root is called once in a while.
        let long = Seen { in_probes: S / 1_000, ..slowed };
        let rare = Seen { in_roots: S / 10, in_probes: S / 10, ..slowed };
        assert!([long, rare].iter().all(|seen| seen.expected_in(5 * S) < ENOUGH));
        // Of four threads that wait for one another for most of the time.
        let shared = Seen { threads: 4, ..slowed };
        assert!(shared.expected_in(5 * S) < 2.0 * ENOUGH);
        assert_eq!(Seen { recorded: S, ..Seen::default() }.expected_in(5 * S), 0.0);
    }

    #[test]
    fn threads_may_stand_in_line_longer_once_the_recording_is_over() {
        let of = |ran_ns, queued_ns| Scheduled { ran_ns, queued_ns };
        let undisturbed = |wanted| Undisturbed {
            wanted: FxHashMap::from_iter([(1, wanted), (2, of(0, 0))]),
            ..Undisturbed::default()
        };
        assert_eq!(undisturbed(of(50, 50)).queued(of(75, 25)), Some(0.5));
        assert_eq!(undisturbed(of(90, 10)).queued(of(75, 25)), Some(0.25));
        assert_eq!(Undisturbed::default().queued(Scheduled::default()), None);
    }

    #[test]
    fn samples_from_after_the_profile_are_no_more_than_those_from_before() {
        let samples = |method: &str, at: std::ops::Range<i64>| Samples {
            methods: vec![method.to_owned()],
            stacks: at
                .map(|at_ns| Sample {
                    at_ns,
                    thread: 7,
                    frames: [FrameIndex(0)].into(),
                    is_cut: false,
                    is_native: false,
                })
                .collect(),
        };
        let after = Some(Ok(samples("A.after()V", 100..200)));
        let mut undisturbed = Undisturbed { samples: after, counted: (110, 150), ..Undisturbed::default() };
        let before = || Before { samples: samples("A.before()V", 0..20), taken: (5, 14), ..Before::default() };
        undisturbed.sampled_before_too(before(), None);
        assert_eq!((undisturbed.counted, undisturbed.parted), ((5, 150), Some(14)));
        let of = |undisturbed: &Undisturbed, method: u32| {
            let Some(Ok(samples)) = &undisturbed.samples else { panic!("there are samples") };
            samples.stacks.iter().filter(|sample| sample.frames[0] == FrameIndex(method)).count()
        };
        assert_eq!([0, 1].map(|method| of(&undisturbed, method)), [10, 9]);
        let after = Some(Ok(samples("A.after()V", 100..200)));
        let mut fewer = Undisturbed { samples: after, counted: (110, 150), ..Undisturbed::default() };
        fewer.sampled_before_too(before(), Some(8));
        assert_eq!([0, 1].map(|method| of(&fewer, method)), [10, 6]);
        // Without any from after it they are all that is known.
        let mut alone = Undisturbed::default();
        alone.sampled_before_too(before(), None);
        assert_eq!((of(&alone, 0), alone.counted, alone.parted), (20, (5, 14), None));
    }

    #[test]
    fn what_was_timed_before_code_was_settled_does_not_count() {
        let phase = |settled: Option<u64>| {
            let checkpoints = checkpoints(100, |call| if call < 80 { 10_000 } else { 2_000 });
            let settled = settled.map(|ms| checkpoints[0].at + Duration::from_millis(ms));
            let compilers = Compilers::of(u32::MAX);
            let wanted = ProcessorTime::of(u32::MAX, [].into_iter());
            let (timed, _, unsettled) = Phase { plan: PLAN, compilers, wanted, checkpoints, settled }.counted();
            (of(&timed.used, ROOT).count, of(&timed.used, ROOT).mean_ns().round(), unsettled)
        };
        assert_eq!(phase(Some(90)), (10, 2_000.0, 0.0));
        let (count, mean_ns, unsettled) = phase(None);
        assert_eq!((count, mean_ns), (50, 6_800.0), "the last half");
        assert!(unsettled > 1.0, "and it is said: {unsettled}");
    }
}
