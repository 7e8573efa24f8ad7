//! The bare phase: after a profile its roots, and nothing below them, stay instrumented for a while, so that their calls
//! say what they take without the profile. To this the probes' cost is fitted.
//!
//! It comes after the profile rather than before, so that a profile begins when it says so, and misses no call; nor would it be
//! better before: the first redefinition in a JVM to which one has attached discards all of its compiled code, up to JDK 22 or so.
//!
//! Code that has just been given back is compiled anew: what counts is the last quarter of the time, and there is an end only
//! when the JIT compilers have not much to do any more.

use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_protocol::segment::Segment;
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use super::jit::Compilers;
use super::{BareTiming, Ending};
use crate::correction::MIN_CONTROLS;
use crate::decode::{Controls, Decoder};
use crate::session::{Session, SessionError};
use crate::timing::{RootTimes, Timing};

/// How often the times are looked at.
const STEP: Duration = Duration::from_millis(50);
/// It takes about this long until hot code is compiled again.
const WARM_UP: Duration = Duration::from_secs(2);
/// Fewer calls are not waited for.
const ENOUGH: f64 = 8.0;
/// Two means that differ by less are the same.
const STEADY: f64 = 0.02;
/// With less than this of one processor the compilers do not change much any more.
const COMPILING: f64 = 0.1;
/// Nobody waits for longer, if nobody asked for that.
const LONGEST: Duration = Duration::from_secs(20);

/// What is measured, and how long at most.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    /// The root that takes most time: when its times are steady, the phase is over.
    pub(super) root: MethodId,
    /// After this long it is over anyway.
    pub(super) limit: Duration,
}

/// What is worth being measured after a profile; nothing, where there would be too few calls, or no room for their times.
pub(super) fn plan(
    timing: BareTiming,
    ending: Ending,
    decoder: &Decoder,
    recorded: Duration,
    segment: &Segment,
) -> Option<Plan> {
    let limit = match timing {
        BareTiming::Off => return None,
        BareTiming::For(limit) => limit,
        // Somebody waits at the keyboard.
        BareTiming::Auto if ending == Ending::Interrupted => (recorded / 3).min(Duration::from_secs(1)),
        // Code takes its time to be compiled, however short the profile was.
        BareTiming::Auto => (recorded / 2).max(recorded.min(WARM_UP)).min(LONGEST),
    };
    let expected = decoder.roots_completed() as f64 * limit.as_secs_f64() / recorded.as_secs_f64();
    // Threads that were recorded keep their chunks.
    if timing == BareTiming::Auto && expected < ENOUGH || segment.free_chunks() < segment.chunks() / 2 {
        return None;
    }
    let mut measured: FxHashMap<MethodId, u64> = FxHashMap::default();
    for (_, tree) in decoder.threads() {
        for (root, below) in tree.roots() {
            *measured.entry(tree.node(root).method()).or_default() += below.measured_ns;
        }
    }
    let (root, _) = measured.into_iter().max_by_key(|(method, ns)| (*ns, *method))?;
    Some(Plan { root, limit })
}

/// The times at one moment.
struct Checkpoint {
    at: Instant,
    times: RootTimes,
    /// What the JIT compilers have had of the processors.
    compiling: Duration,
}

/// Goes over from recording (which has been stopped) to timing the roots, until their times are steady, or somebody has `enough`.
pub(super) async fn measure(
    session: &mut Session,
    segment: &Arc<Segment>,
    plan: Plan,
    compilers: Compilers,
    enough: impl Future<Output = ()>,
) -> Result<RootTimes, SessionError> {
    // Without the thread that reads the times there are none, which is no reason to lose the profile.
    let Ok(timing) = Timing::start(Arc::clone(segment)) else { return Ok(RootTimes::default()) };
    let measured = watch(session, &timing, plan, compilers, enough).await;
    let stopped = if measured.is_ok() { session.stop().await.map(drop) } else { Ok(()) };
    timing.finish();
    stopped?;
    measured
}

async fn watch(
    session: &mut Session,
    timing: &Timing,
    plan: Plan,
    mut compilers: Compilers,
    enough: impl Future<Output = ()>,
) -> Result<RootTimes, SessionError> {
    tokio::pin!(enough);
    session.time_roots().await?;
    let start = Instant::now();
    let mut checkpoints = vec![Checkpoint { at: start, times: timing.so_far(), compiling: compilers.used() }];
    let mut steps = tokio::time::interval(STEP);
    loop {
        let event = tokio::select! {
            event = session.next_event() => event?,
            () = &mut enough => return Ok(last_quarter(&checkpoints)),
            _ = steps.tick() => {
                let now = Checkpoint { at: Instant::now(), times: timing.so_far(), compiling: compilers.used() };
                let passed = now.at - start;
                checkpoints.push(now);
                let idle = passed >= plan.limit / 4 && timing.so_far().is_empty();
                if idle || passed >= plan.limit || passed >= WARM_UP && is_steady(&checkpoints, plan.root) {
                    return Ok(last_quarter(&checkpoints));
                }
                continue;
            }
        };
        session.serve(event).await?;
    }
}

/// The checkpoint at which this part of the time had passed.
fn at(checkpoints: &[Checkpoint], part: f64) -> &Checkpoint {
    let (first, last) = (&checkpoints[0], &checkpoints[checkpoints.len() - 1]);
    let moment = first.at + (last.at - first.at).mul_f64(part);
    let after = checkpoints.partition_point(|checkpoint| checkpoint.at <= moment);
    &checkpoints[after.max(1) - 1]
}

fn between(earlier: &Checkpoint, later: &Checkpoint, root: MethodId) -> Controls {
    let times = |checkpoint: &Checkpoint| checkpoint.times.get(&root).copied().unwrap_or_default();
    times(later).since(&times(earlier))
}

/// Whether the third and the last quarter agree, and no code is about to become faster.
fn is_steady(checkpoints: &[Checkpoint], root: MethodId) -> bool {
    let (half, late, end) = (at(checkpoints, 0.5), at(checkpoints, 0.75), at(checkpoints, 1.0));
    let (before, last) = (between(half, late, root), between(late, end, root));
    if before.count < MIN_CONTROLS || last.count < MIN_CONTROLS || is_compiling(late, end) {
        return false;
    }
    let error = before.error_ns().hypot(last.error_ns());
    (before.mean_ns() - last.mean_ns()).abs() <= (STEADY * last.mean_ns()).max(error)
}

fn is_compiling(from: &Checkpoint, to: &Checkpoint) -> bool {
    to.compiling - from.compiling > (to.at - from.at).mul_f64(COMPILING)
}

/// What counts; as uncertain as it moved in a quarter of the time, if that is not over. Of the last two, or since the second one:
/// two quarters may be alike by chance.
fn last_quarter(checkpoints: &[Checkpoint]) -> RootTimes {
    let [early, half, late, end] = [0.25, 0.5, 0.75, 1.0].map(|part| at(checkpoints, part));
    let is_compiling = is_compiling(late, end);
    let of_root = |root: &MethodId| {
        let last = between(late, end, *root);
        let moving = || {
            let (second, third) = (between(early, half, *root), between(half, late, *root));
            last.still_moving(&third, 1.0).still_moving(&second, 2.0)
        };
        (*root, if is_compiling { moving() } else { last })
    };
    end.times.keys().map(of_root).filter(|(_, times)| times.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: MethodId = MethodId(1);

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
    fn nothing_is_steady_while_it_is_compiled() {
        let mut busy = checkpoints(100, |call| 2_000 - call as u64 / 75 * 20);
        assert!(is_steady(&busy, ROOT));
        let error_ns = last_quarter(&busy)[&ROOT].error_ns();
        for (call, checkpoint) in busy.iter_mut().enumerate() {
            checkpoint.compiling = Duration::from_micros(200 * call as u64);
        }
        assert!(!is_steady(&busy, ROOT));
        let last = last_quarter(&busy)[&ROOT];
        assert_eq!((last.mean_ns(), error_ns, last.error_ns()), (1_980.0, 0.0, 20.0));
    }

    #[test]
    fn two_quarters_that_are_alike_by_chance_do_not_hide_that_times_fall() {
        let mut busy = checkpoints(100, |call| if call < 50 { 5_000 } else { 2_000 });
        assert_eq!(last_quarter(&busy)[&ROOT].error_ns(), 0.0);
        for (call, checkpoint) in busy.iter_mut().enumerate() {
            checkpoint.compiling = Duration::from_micros(200 * call as u64);
        }
        let last = last_quarter(&busy)[&ROOT];
        assert_eq!((last.mean_ns(), last.error_ns()), (2_000.0, 1_500.0));
    }

    #[test]
    fn times_that_still_fall_are_not_steady() {
        let falling = checkpoints(100, |call| 10_000 - 50 * call as u64);
        assert!(!is_steady(&falling, ROOT));
        let warm = checkpoints(100, |call| if call < 40 { 10_000 } else { 2_000 });
        assert!(is_steady(&warm, ROOT));
        assert_eq!(last_quarter(&warm)[&ROOT].mean_ns(), 2_000.0);
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
