//! The roots' calls, timed before anything below them is changed.
//!
//! The code below the roots is still the compiled code that the program had; only the roots' own classes are others. So one to three seconds tell what takes half a minute after
//! a profile, until all that was given back is compiled again. Where calls are too long for that, or the code is not settled, nothing is told, and the roots are
//! timed afterwards.

use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use headwater_protocol::{ClassId, MethodId};
use rustc_hash::FxHashMap;
use tokio::time::Instant;

use crate::budget::Undisturbed;
use crate::correction::MIN_CONTROLS;
use crate::cpu_share::OsThread;
use crate::decode::{Controls, Decoder, Scheduled};
use crate::drain::Drain;
use crate::profiling::jit::Compilers;
use crate::profiling::processor_time::ProcessorTime;
use crate::profiling::steady::{Checkpoint, UNSETTLED, checkpoint_at, is_steady, unsettled};
use crate::session::{Session, SessionError};
use crate::ticker::monotonic_ns;
use crate::timing::{RootTimes, Timed};

/// How often the times are looked at.
const STEP: Duration = Duration::from_millis(50);
/// For at least so long: the roots' own code is compiled again meanwhile.
const SHORTEST: Duration = Duration::from_secs(1);
/// Who attaches waits no longer.
const LONGEST: Duration = Duration::from_secs(3);
/// Roots that nobody has entered by then, since timing began, are called too seldom.
const ENTERED: Duration = Duration::from_millis(500);
/// A call that takes as long is not begun to be changed in its midst,
const LONG: Duration = Duration::from_millis(50);
/// unless it takes longer than this.
const LONGEST_AWAITED: Duration = Duration::from_secs(1);
/// A root that takes a smaller part of the roots' time need not have been timed.
const SMALL: f64 = 0.01;

/// What calls of the roots took.
#[derive(Clone, Debug)]
pub(in crate::profiling) struct RootsTimed {
    pub(in crate::profiling) timed: Timed,
    /// Since when that is so.
    pub(super) since: SystemTime,
    /// How far that may be from what they take when all is compiled, as a part and a standard deviation.
    pub(in crate::profiling) unsettled: f64,
    /// What each of the threads in them had of the processors meanwhile.
    pub(in crate::profiling) wanted: FxHashMap<u32, Scheduled>,
    /// Over how long that was.
    pub(in crate::profiling) wanted_over: Duration,
}

impl RootsTimed {
    /// Whether all roots were, in whose calls time was recorded.
    pub(super) fn are_all(&self, decoder: &Decoder) -> bool {
        let mut recorded: FxHashMap<MethodId, u64> = FxHashMap::default();
        for (_, tree) in decoder.threads() {
            for (root, below) in tree.roots() {
                *recorded.entry(tree.node(root).method()).or_default() += below.measured_ns;
            }
        }
        let all: u64 = recorded.values().sum();
        let is_small = |ns: u64| ns as f64 <= SMALL * all as f64;
        recorded.iter().all(|(root, ns)| is_small(*ns) || count(&self.timed.used, *root) >= MIN_CONTROLS)
    }
}

/// What is known of the roots' calls before anything below them is changed.
#[derive(Debug, Default)]
pub(in crate::profiling) struct TimedBefore {
    /// As well as times need it.
    pub(in crate::profiling) settled: Option<RootsTimed>,
    /// Roughly: as well as a limit needs it.
    pub(in crate::profiling) roughly: FxHashMap<MethodId, Undisturbed>,
    /// They were instrumented alone for that.
    pub(in crate::profiling) were_alone: bool,
}

impl TimedBefore {
    /// How long the next of the longest calls is to be waited for, if that is worth it: until another begins.
    pub(in crate::profiling) fn long(&self) -> Option<Duration> {
        let longest = self.roughly.values().map(|calls| calls.call_ns).fold(0.0, f64::max);
        let next = Duration::from_nanos((2.0 * longest) as u64);
        (longest >= LONG.as_nanos() as f64).then(|| next.min(LONGEST_AWAITED))
    }
}

/// Times calls of the roots among these classes, nothing below which is instrumented yet.
pub(in crate::profiling) async fn time_roots(
    session: &mut Session,
    drain: &Drain,
    pid: u32,
    classes: &[ClassId],
    control: Option<NonZeroU32>,
) -> Result<TimedBefore, SessionError> {
    if !session.time_roots_alone(classes).await? {
        return Ok(TimedBefore::default());
    }
    let mut phase = Phase::begun(Compilers::of(pid));
    let mut steps = tokio::time::interval(STEP);
    let settled = loop {
        tokio::select! {
            heard = session.hear() => heard?,
            _ = steps.tick() => {
                let threads: Vec<OsThread> = session.os_threads().collect();
                let decoder = drain.copy().await;
                if let Some(over) = phase.look(Instant::now(), decoder.controls(), pid, threads) {
                    break over;
                }
            }
        }
    };
    let stopped = session.end_timing(control).await?;
    // Nobody is in a root as far as the recording knows, and nothing was recorded.
    drain.interrupt(stopped).await;
    drain.clear(monotonic_ns()).await;
    Ok(TimedBefore { settled, roughly: phase.roughly(), were_alone: true })
}

/// The time as far as it has passed.
struct Phase {
    checkpoints: Vec<Checkpoint>,
    compilers: Compilers,
    /// Of all calls so far.
    seen: RootTimes,
    /// From the middle of the shortest phase on, when the threads are known.
    wanted: Option<ProcessorTime>,
}

impl Phase {
    fn begun(mut compilers: Compilers) -> Phase {
        let compiling = compilers.used();
        let checkpoints = vec![Checkpoint { at: Instant::now(), timed: Timed::default(), compiling }];
        Phase { checkpoints, compilers, seen: RootTimes::default(), wanted: None }
    }

    /// What is known by now, if that is enough, or nothing, if it will not be. These threads of the process have entered a root.
    fn look(&mut self, now: Instant, seen: &RootTimes, pid: u32, threads: Vec<OsThread>) -> Option<Option<RootsTimed>> {
        let first = self.checkpoints[0].at;
        let passed = now - first;
        let Checkpoint { timed, .. } = &self.checkpoints[self.checkpoints.len() - 1];
        let mut timed = timed.clone();
        // Calls of every other step are held out.
        let into = if self.checkpoints.len().is_multiple_of(2) { &mut timed.held_out } else { &mut timed.used };
        for (root, times) in seen {
            let new = times.since(&self.seen.get(root).copied().unwrap_or_default());
            let so_far = into.entry(*root).or_default();
            *so_far = so_far.and(&new);
        }
        self.seen = seen.clone();
        self.checkpoints.push(Checkpoint { at: now, timed, compiling: self.compilers.used() });
        let is_entered = !threads.is_empty();
        if passed >= SHORTEST / 2 {
            self.wanted.get_or_insert_with(|| ProcessorTime::of(pid, threads.into_iter())).look(now);
        }
        let Some((root, times)) = self.seen.iter().max_by_key(|(root, times)| (times.total_ns(), **root)) else {
            // Of a call that is under way it is to be known what it takes, if only for the limit.
            let longest = if is_entered { LONGEST } else { ENTERED };
            return (passed >= longest).then_some(None);
        };
        if passed < SHORTEST {
            return None;
        }
        if is_steady(&self.checkpoints, *root, false) {
            // The last two quarters were alike.
            return Some(Some(self.since(now - passed / 2, now, 0.0)));
        }
        if passed >= LONGEST {
            // A program may never be done with compiling; after a profile it has more of that before it.
            let unsettled = unsettled(&self.checkpoints, *root);
            return Some((unsettled <= UNSETTLED).then(|| self.since(now - passed / 2, now, unsettled)));
        }
        // Half of the calls of a quarter of the time are compared with as many.
        let by_then = times.count as f64 * LONGEST.div_duration_f64(passed) / 8.0;
        (by_then < MIN_CONTROLS as f64).then_some(None)
    }

    /// How calls of each root were in the second half of the time, when the roots' own code is compiled again; earlier, where none ended then.
    fn roughly(&self) -> FxHashMap<MethodId, Undisturbed> {
        let (first, last) = (&self.checkpoints[0], &self.checkpoints[self.checkpoints.len() - 1]);
        let half = first.at + (last.at - first.at) / 2;
        let middle = checkpoint_at(&self.checkpoints, half);
        let late = last.timed.since(&middle.timed);
        let called = self.seen.iter().filter(|(_, times)| times.count > 0);
        let calls_of = |(root, times): (&MethodId, &Controls)| {
            let of = |late: &RootTimes| late.get(root).copied().unwrap_or_default();
            let late = of(&late.used).and(&of(&late.held_out));
            let (times, since) = if late.count > 0 { (&late, middle.at) } else { (times, first.at) };
            let seconds = (last.at - since).max(STEP).as_secs_f64();
            (*root, Undisturbed { call_ns: times.mean_ns(), per_second: times.count as f64 / seconds })
        };
        called.map(calls_of).collect()
    }

    fn since(&mut self, since: Instant, now: Instant, unsettled: f64) -> RootsTimed {
        let before = checkpoint_at(&self.checkpoints, since);
        let since = before.at;
        let timed = self.checkpoints[self.checkpoints.len() - 1].timed.since(&before.timed);
        let wanted = self.wanted.as_mut().map(|wanted| wanted.ended(now).between(since, now)).unwrap_or_default();
        let wanted_over = now - since;
        RootsTimed { timed, since: SystemTime::now() - wanted_over, unsettled, wanted, wanted_over }
    }
}

fn count(times: &RootTimes, root: MethodId) -> u64 {
    times.get(&root).map_or(0, |times: &Controls| times.count)
}

#[cfg(test)]
mod tests {
    use headwater_protocol::ThreadId;

    use super::*;

    const ROOT: MethodId = MethodId(1);

    /// What is known in the end of calls of which the n-th step of 50 ms has so many, each of which takes so long; and when that is.
    fn played(calls: impl Fn(u64) -> u64, took_ns: impl Fn(u64) -> u64) -> (Option<RootsTimed>, Duration) {
        let (timed, _, passed) = played_roughly(calls, took_ns, |_| true);
        (timed, passed)
    }

    fn played_roughly(
        calls: impl Fn(u64) -> u64,
        took_ns: impl Fn(u64) -> u64,
        is_entered: impl Fn(u64) -> bool,
    ) -> (Option<RootsTimed>, Option<f64>, Duration) {
        let mut phase = Phase::begun(Compilers::of(u32::MAX));
        let begun = phase.checkpoints[0].at;
        let mut seen = RootTimes::default();
        for step in 1.. {
            (0..calls(step)).for_each(|_| seen.entry(ROOT).or_default().add(took_ns(step)));
            let passed = STEP * step as u32;
            let entered = OsThread { thread: ThreadId(1), number: 1 };
            let threads = is_entered(step).then_some(entered).into_iter().collect();
            if let Some(timed) = phase.look(begun + passed, &seen, u32::MAX, threads) {
                return (timed, phase.roughly().get(&ROOT).map(|calls| calls.call_ns), passed);
            }
        }
        unreachable!("it ends")
    }

    #[test]
    fn calls_that_take_the_same_are_timed_and_half_of_them_are_held_out() {
        let (timed, passed) = played(|_| 20, |_| 1_000_000);
        let timed = timed.expect("they are steady").timed;
        assert_eq!((passed, timed.used[&ROOT].count, timed.held_out[&ROOT].count), (SHORTEST, 100, 100));
        assert_eq!(timed.used[&ROOT].mean_ns(), 1e6);
        // The root's own code is interpreted at first.
        let (timed, _) = played(|_| 20, |step| if step < 8 { 9_000_000 } else { 1_000_000 });
        assert_eq!(timed.expect("it was settled by then").timed.used[&ROOT].mean_ns(), 1e6);
    }

    #[test]
    fn roughly_it_is_known_of_each_call() {
        let roughly = |calls: fn(u64) -> u64, took_ns: fn(u64) -> u64| played_roughly(calls, took_ns, |_| true).1;
        assert_eq!(roughly(|_| 0, |_| 0), None);
        assert_eq!(roughly(|step| u64::from(step == 3), |_| 80_000_000), Some(80e6));
        let slow_at_first = |step| if step < 10 { 80_000_000 } else { 5_000_000 };
        assert_eq!(roughly(|step| u64::from(step % 4 == 0), slow_at_first), Some(5e6), "of the last half");
        let long = |step| u64::from(step == 30);
        assert_eq!(roughly(long, |_| 1_400_000_000), Some(1.4e9), "who is in a call is waited for");
    }

    #[test]
    fn who_is_called_too_seldom_or_differently_each_time_is_timed_afterwards() {
        let (never, _, passed) = played_roughly(|_| 0, |_| 0, |_| false);
        assert!(never.is_none() && passed == ENTERED);
        let (too_long, passed) = played(|_| 0, |_| 0);
        assert!(too_long.is_none() && passed == LONGEST);
        let (seldom, passed) = played(|step| u64::from(step % 4 == 0), |_| 80_000_000);
        assert!(seldom.is_none() && passed == SHORTEST);
        let (faster, passed) = played(|_| 20, |step| 100_000_000 / step);
        assert!(faster.is_none() && passed == LONGEST);
    }
}
