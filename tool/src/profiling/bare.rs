//! The bare phase: after a profile its roots, and nothing below them, stay instrumented for a while, so that their calls
//! say what they take without the profile. To this the probes' cost is fitted.
//!
//! It comes after the profile rather than before, so that a profile begins when it says so, and misses no call; nor would it be
//! better before: the first redefinition in a JVM to which one has attached discards all of its compiled code, up to JDK 22 or so.
//!
//! Code that has just been given back is compiled anew: what counts is the last quarter of the time, or its last seconds, and there
//! is an end only when the JIT compilers have not much to do any more. Where they are slow that takes longer than is else waited
//! for; then it is, as long as calls still take less and less, or are too few to tell.

use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_protocol::segment::Segment;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::jit::Compilers;
use super::{BareTiming, Ending, Observer, Stage};
use crate::correction::{MIN_CONTROLS, MOST_OF_A_PAIR_NS};
use crate::decode::{Controls, Decoder, FOLDED};
use crate::session::{Session, SessionError};
use crate::timing::{RootTimes, Timing};

/// How often the times are looked at.
const STEP: Duration = Duration::from_millis(50);
/// It takes about this long until hot code is compiled again.
const WARM_UP: Duration = Duration::from_secs(2);
/// Fewer calls are not waited for.
const ENOUGH: f64 = 8.0;
/// The first call may take so many times what recorded ones did, since the code that was given back is interpreted.
const SEVERAL: u32 = 8;
/// Probes make calls fewer by this factor at most.
const MOST_TIMES_AS_MANY: u32 = 64;
/// Two means that differ by less are the same. What falls by this in a window's time is some five times as far from what it comes to.
const STEADY: f64 = 0.02;
/// With less than this of one processor the compilers do not change much any more.
const COMPILING: f64 = 0.1;
/// Nobody waits for longer, if nobody asked for that;
const LONG: Duration = Duration::from_secs(20);
/// but while compilers are at work and times fall: so many times as long as the profile took,
const PATIENCE: u32 = 6;
/// and for a minute at most.
const LONGEST: Duration = Duration::from_secs(60);
/// Times fall for long where compilers are slow, so that a quarter of the time is more than what they came to: no more than this,
const RECENT: Duration = Duration::from_secs(4);
/// if there are so many calls in it.
const MANY: f64 = 64.0;

/// What is measured, and how long at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The root that takes most time: when its times are steady, the phase is over.
    pub(super) root: MethodId,
    /// After this long without a call there will be none.
    pub(super) idle: Duration,
    /// After this long it is over, unless compilers are still at work;
    pub(super) limit: Duration,
    /// after this long anyway.
    pub(super) longest: Duration,
}

/// How recording went.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordingFacts {
    pub(super) ending: Ending,
    pub(super) duration: Duration,
    /// The JIT compilers were at work all the while.
    pub(super) is_compiling: bool,
    /// What a probe pair costs compiled.
    pub(super) pair_ns: f64,
}

/// What is worth being measured after a profile; nothing, where there would be too few calls, or no room for their times.
pub(super) fn plan(
    timing: BareTiming,
    RecordingFacts { ending, duration: recorded, is_compiling, pair_ns }: RecordingFacts,
    decoder: &Decoder,
    segment: &Segment,
) -> Option<Plan> {
    // The interpreter needs many times as long for a pair as it takes compiled.
    let pair_ns = if is_compiling { MOST_OF_A_PAIR_NS } else { pair_ns.max(0.0) };
    let limit = match timing {
        BareTiming::Off => return None,
        BareTiming::For(limit) => limit,
        // Somebody waits at the keyboard.
        BareTiming::Auto if ending == Ending::Interrupted => (recorded / 3).min(Duration::from_secs(1)),
        // Code takes its time to be compiled, however short the profile was.
        BareTiming::Auto => (recorded / 2).max(recorded.min(WARM_UP)).min(LONG),
    };
    let longest = match (timing, ending) {
        (BareTiming::Auto, ending) if ending != Ending::Interrupted => (recorded * PATIENCE).min(LONGEST),
        _ => limit,
    };
    let mut measured: FxHashMap<MethodId, u64> = FxHashMap::default();
    let mut seen = Seen { calls: decoder.roots_completed(), recorded, ..Seen::default() };
    for (thread, tree) in decoder.threads() {
        let before = seen.in_roots;
        for (root, below) in tree.roots() {
            *measured.entry(tree.node(root).method()).or_default() += below.measured_ns;
            let time = Duration::from_nanos(below.measured_ns);
            seen.in_roots += time;
            // How many threads these were is not known.
            if thread != FOLDED {
                seen.in_probes += time.min(Duration::from_nanos((below.calls as f64 * pair_ns) as u64));
            }
        }
        seen.threads += u32::from(thread != FOLDED && seen.in_roots > before);
    }
    let (root, _) = measured.into_iter().max_by_key(|(method, ns)| (*ns, *method))?;
    // Threads that were recorded keep their chunks.
    if timing == BareTiming::Auto && seen.expected_in(limit) < ENOUGH || segment.free_chunks() < segment.chunks() / 2 {
        return None;
    }
    let idle = (limit / 4).max(seen.mean() * SEVERAL).min(limit);
    Some(Plan { root, idle, limit, longest })
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

/// The times at one moment.
struct Checkpoint {
    at: Instant,
    times: RootTimes,
    /// What the JIT compilers have had of the processors.
    compiling: Duration,
}

/// Goes over from recording (which has been stopped) to timing the roots, until their times are steady, or somebody has `enough`; with what
/// went wrong, when something did.
pub(super) async fn measure(
    session: &mut Session,
    segment: &Arc<Segment>,
    plan: Plan,
    compilers: Compilers,
    enough: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> (RootTimes, Option<SessionError>) {
    // Without the thread that reads the times there are none, which is no reason to lose the profile.
    let Ok(timing) = Timing::start(Arc::clone(segment)) else { return (RootTimes::default(), None) };
    let start = Checkpoint { at: Instant::now(), times: timing.so_far(), compiling: Duration::ZERO };
    let mut checkpoints = vec![start];
    let watched = watch(session, &timing, &mut checkpoints, plan, compilers, enough, observer).await;
    let failed = match watched {
        Ok(()) => session.stop().await.err(),
        Err(error) => Some(error),
    };
    timing.finish();
    (latest(&checkpoints), failed)
}

async fn watch(
    session: &mut Session,
    timing: &Timing,
    checkpoints: &mut Vec<Checkpoint>,
    plan: Plan,
    mut compilers: Compilers,
    enough: impl Future<Output = ()>,
    observer: Observer<'_>,
) -> Result<(), SessionError> {
    tokio::pin!(enough);
    observer(Stage::TimingRoots { limit: plan.limit, longest: plan.longest });
    session.time_roots().await?;
    let start = Instant::now();
    let mut told = false;
    checkpoints[0] = Checkpoint { at: start, times: timing.so_far(), compiling: compilers.used() };
    let mut steps = tokio::time::interval(STEP);
    loop {
        let event = tokio::select! {
            event = session.next_event() => event?,
            () = &mut enough => return Ok(()),
            _ = steps.tick() => {
                let now = Checkpoint { at: Instant::now(), times: timing.so_far(), compiling: compilers.used() };
                let passed = now.at - start;
                let is_idle = passed >= plan.idle && now.times.is_empty();
                checkpoints.push(now);
                if is_idle || passed >= WARM_UP && is_steady(checkpoints, plan.root) {
                    return Ok(());
                }
                if passed >= plan.limit {
                    if passed >= plan.longest || !is_awaited(checkpoints, plan) {
                        return Ok(());
                    }
                    if !std::mem::replace(&mut told, true) {
                        observer(Stage::StillCompiling { limit: plan.longest - plan.limit });
                    }
                }
                continue;
            }
        };
        session.serve(event).await?;
    }
}

/// Whether compilers were at work.
fn compiled(from: &Checkpoint, to: &Checkpoint) -> bool {
    to.compiling - from.compiling > (to.at - from.at).mul_f64(COMPILING)
}

/// What the last part of the time says, and those before it.
struct Windows {
    /// Whether compilers were at work in the last one.
    is_compiling: bool,
    /// The last first.
    times: [Controls; 3],
}

impl Windows {
    /// A quarter of the time each, or less if there are many calls in that.
    fn of(checkpoints: &[Checkpoint], root: MethodId) -> Windows {
        let (first, last) = (&checkpoints[0], &checkpoints[checkpoints.len() - 1]);
        let quarter = (last.at - first.at) / 4;
        let ago = |time: Duration| {
            let after = checkpoints.partition_point(|checkpoint| checkpoint.at <= last.at - time);
            &checkpoints[after.max(1) - 1]
        };
        let calls = between(ago(quarter), last, root).count as f64;
        let was_compiling = compiled(ago(quarter * 3), last);
        let each = if was_compiling && calls > MANY {
            quarter.mul_f64(MANY / calls).max(RECENT).min(quarter)
        } else {
            quarter
        };
        let [late, half, early] = [1, 2, 3].map(|windows| ago(each * windows));
        Windows {
            is_compiling: compiled(late, last),
            times: [between(late, last, root), between(half, late, root), between(early, half, root)],
        }
    }

    /// What counts; as uncertain as it moved in a window's time, if compilers are at work. Since the window before or since the
    /// one before that: two may be alike by chance.
    fn latest(&self) -> Controls {
        let [last, before, earlier] = &self.times;
        if self.is_compiling { last.still_moving(before, 1.0).still_moving(earlier, 2.0) } else { *last }
    }
}

fn between(earlier: &Checkpoint, later: &Checkpoint, root: MethodId) -> Controls {
    let times = |checkpoint: &Checkpoint| checkpoint.times.get(&root).copied().unwrap_or_default();
    times(later).since(&times(earlier))
}

/// Whether the last two windows agree, and no code is about to become faster.
fn is_steady(checkpoints: &[Checkpoint], root: MethodId) -> bool {
    let Windows { is_compiling, times: [last, before, _] } = Windows::of(checkpoints, root);
    let enough = before.count >= MIN_CONTROLS && last.count >= MIN_CONTROLS;
    enough && !is_compiling && (before.mean_ns() - last.mean_ns()).abs() <= alike_ns(&before, &last, 1.0)
}

/// Whether it is worth waiting until the compilers have done more: calls take less than a window's time before, or than twice that, by
/// more than a standard error; or there have been too few to know, and enough are coming. Where calls differ anyway, some compiler at
/// work is no reason to wait.
fn is_awaited(checkpoints: &[Checkpoint], plan: Plan) -> bool {
    let Windows { is_compiling, times: [last, before, earlier] } = Windows::of(checkpoints, plan.root);
    if last.count < MIN_CONTROLS {
        return is_compiling && are_coming(checkpoints, plan);
    }
    let fell = |since: &Controls, windows: f64| {
        since.count > 0 && since.mean_ns() - last.mean_ns() > alike_ns(since, &last, windows)
    };
    is_compiling && (fell(&before, 1.0) || fell(&earlier, 2.0))
}

/// Whether calls go on coming, and at such a rate that there are enough in the last quarter of the longest time.
fn are_coming(checkpoints: &[Checkpoint], plan: Plan) -> bool {
    let (first, last) = (&checkpoints[0], &checkpoints[checkpoints.len() - 1]);
    let recently = checkpoints.iter().rev().find(|checkpoint| last.at - checkpoint.at >= plan.idle).unwrap_or(first);
    let by_then = plan.longest.div_duration_f64((last.at - first.at).max(STEP));
    between(recently, last, plan.root).count > 0
        && between(first, last, plan.root).count as f64 * by_then > 4.0 * MIN_CONTROLS as f64
}

/// By how much two means may differ that are the same, so many windows apart.
fn alike_ns(before: &Controls, last: &Controls, windows: f64) -> f64 {
    (windows * STEADY * last.mean_ns()).max(before.error_ns().hypot(last.error_ns()))
}

/// What counts of each root's calls.
fn latest(checkpoints: &[Checkpoint]) -> RootTimes {
    let roots = checkpoints[checkpoints.len() - 1].times.keys();
    roots.map(|root| (*root, Windows::of(checkpoints, *root).latest())).filter(|(_, times)| times.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: MethodId = MethodId(1);
    const PLAN: Plan = Plan {
        root: ROOT,
        idle: Duration::from_secs(1),
        limit: Duration::from_secs(5),
        longest: Duration::from_secs(60),
    };

    /// A call a millisecond; how long the n-th takes.
    fn checkpoints(calls: usize, took: impl Fn(usize) -> u64) -> Vec<Checkpoint> {
        let start = Instant::now();
        let mut times = RootTimes::default();
        let mut checkpoints = vec![Checkpoint { at: start, times: times.clone(), compiling: Duration::ZERO }];
        for call in 0..calls {
            times.entry(ROOT).or_default().add(took(call));
            let passed = Duration::from_millis(call as u64 + 1);
            checkpoints.push(Checkpoint { at: start + passed, times: times.clone(), compiling: Duration::ZERO });
        }
        checkpoints
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
    fn nothing_is_steady_while_it_is_compiled() {
        let mut busy = checkpoints(100, |call| 2_000 - call as u64 / 75 * 20);
        assert!(is_steady(&busy, ROOT));
        let error_ns = latest(&busy)[&ROOT].error_ns();
        for (call, checkpoint) in busy.iter_mut().enumerate() {
            checkpoint.compiling = Duration::from_micros(200 * call as u64);
        }
        assert!(!is_steady(&busy, ROOT));
        let last = latest(&busy)[&ROOT];
        assert_eq!((last.mean_ns(), error_ns, last.error_ns()), (1_980.0, 0.0, 20.0));
    }

    #[test]
    fn two_quarters_that_are_alike_by_chance_do_not_hide_that_times_fall() {
        let mut busy = checkpoints(100, |call| if call < 50 { 5_000 } else { 2_000 });
        assert_eq!(latest(&busy)[&ROOT].error_ns(), 0.0);
        for (call, checkpoint) in busy.iter_mut().enumerate() {
            checkpoint.compiling = Duration::from_micros(200 * call as u64);
        }
        let last = latest(&busy)[&ROOT];
        assert_eq!((last.mean_ns(), last.error_ns()), (2_000.0, 1_500.0));
    }

    #[test]
    fn where_compilers_take_long_the_last_seconds_count() {
        // A call in 10 ms; for 24 s they take less and less, for 8 s the same.
        let took = |call: usize| if call < 2_400 { 50_000 - 10 * call as u64 } else { 26_000 };
        let mut slow = checkpoints(3_200, took);
        let start = slow[0].at;
        for (call, checkpoint) in slow.iter_mut().enumerate() {
            checkpoint.at = start + Duration::from_millis(10 * call as u64);
            checkpoint.compiling = Duration::from_millis(5 * call.min(2_400) as u64);
        }
        assert!(is_awaited(&slow[..2_000], PLAN), "a window before, 4 s, calls took a tenth more");
        assert!(is_steady(&slow, ROOT), "twice 4 s were the same, and no quarters are");
        assert_eq!(latest(&slow)[&ROOT].mean_ns(), 26_000.0);
        assert!(!is_awaited(&slow, PLAN));
        // Nothing is known of a root that is called once a second.
        let mut rare = checkpoints(32, |call| 1_000 - 10 * call as u64);
        for (call, checkpoint) in rare.iter_mut().enumerate() {
            checkpoint.at = start + Duration::from_secs(call as u64);
        }
        assert_eq!(latest(&rare)[&ROOT].count, 8, "a quarter, where that has few calls");
    }

    #[test]
    fn what_does_not_fall_is_not_waited_for() {
        let is_waited_for = |took: &dyn Fn(usize) -> u64| {
            let mut busy = checkpoints(100, took);
            for (call, checkpoint) in busy.iter_mut().enumerate() {
                checkpoint.compiling = Duration::from_micros(200 * call as u64);
            }
            assert!(!is_steady(&busy, ROOT));
            is_awaited(&busy, PLAN)
        };
        assert!(!is_waited_for(&|call| 2_000 - call as u64 / 25 * 20), "by 1 % in a quarter");
        assert!(!is_waited_for(&|call| 1_000 + 2_000 * (call as u64 % 7)), "they are not alike");
        assert!(!is_waited_for(&|call| 1_000 + 10 * call as u64), "they rise");
        assert!(is_waited_for(&|call| 2_000 - call as u64 / 25 * 100));
        assert!(is_waited_for(&|call| if call < 50 { 2_000 } else { 1_500 }), "two quarters are alike by chance");
    }

    #[test]
    fn calls_are_waited_for_only_while_they_come() {
        let busy = |calls: &[u64]| {
            let mut checkpoints = checkpoints(5_000, |_| 1_000);
            for (at, checkpoint) in checkpoints.iter_mut().enumerate() {
                let mut times = Controls::default();
                calls.iter().filter(|call| **call < at as u64).for_each(|_| times.add(1_000));
                checkpoint.times = RootTimes::from_iter([(ROOT, times)]);
                checkpoint.compiling = Duration::from_micros(200 * at as u64);
            }
            is_awaited(&checkpoints, PLAN)
        };
        assert!(busy(&[2_500, 4_500]), "two in 5 s: six in a quarter of a minute");
        assert!(!busy(&[2_500, 3_500]), "none for longer than a first one would be waited for");
        assert!(!busy(&[4_500]), "three in a quarter of a minute at best");
        assert!(!busy(&[]));
    }

    #[test]
    fn times_that_still_fall_are_not_steady() {
        let falling = checkpoints(100, |call| 10_000 - 50 * call as u64);
        assert!(!is_steady(&falling, ROOT));
        let warm = checkpoints(100, |call| if call < 40 { 10_000 } else { 2_000 });
        assert!(is_steady(&warm, ROOT));
        assert_eq!(latest(&warm)[&ROOT].mean_ns(), 2_000.0);
    }

    #[test]
    fn scatter_does_not_hide_that_times_are_steady() {
        assert!(is_steady(&checkpoints(100, |call| 1_000 + 1_000 * (call as u64 % 7)), ROOT));
    }

    #[test]
    fn a_root_that_is_not_called_is_never_steady() {
        assert!(!is_steady(&checkpoints(100, |_| 5), MethodId(2)));
    }
}
