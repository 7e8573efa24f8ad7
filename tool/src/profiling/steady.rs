//! Whether code that has been given back is compiled again: calls take the same from one quarter of the time to the next.

use std::time::Duration;

use headwater_protocol::MethodId;
use tokio::time::Instant;

use crate::correction::MIN_CONTROLS;
use crate::decode::Controls;
use crate::timing::{RootTimes, Timed};

/// Two means that differ by less are the same. What falls by this in a window's time is some five times as far from what it comes to.
const STEADY: f64 = 0.02;
/// While compilers go on.
const ROUGHLY_STEADY: f64 = 0.1;
/// Times that fell or rose from one quarter to the next go on by this factor of that, counted from the mean of both: by 1.5 if each step is half the one before.
const FURTHER: f64 = 1.5;
/// They are no nearer to what they come to than this, however little they fell in the end,
pub(super) const UNSETTLED: f64 = 0.25;
/// and where there were too few calls to say, or compilers have so much to do that nothing need have become faster yet.
const UNKNOWN: f64 = 0.5;
/// With less than this of one processor the compilers do not change much any more,
const COMPILING: f64 = 0.1;
/// and with more than this, or wanting it because others have the machine, they have most of the program before them.
const BEHIND: f64 = 0.5;

/// The times at one moment.
pub(super) struct Checkpoint {
    pub(super) at: Instant,
    pub(super) timed: Timed,
    /// What the JIT compilers have had of the processors.
    pub(super) compiling: Duration,
}

/// The last at that moment or before it, or the first.
pub(super) fn checkpoint_at(checkpoints: &[Checkpoint], moment: Instant) -> &Checkpoint {
    &checkpoints[checkpoints.partition_point(|checkpoint| checkpoint.at <= moment).max(1) - 1]
}

/// Which part of one processor the compilers had, or waited for.
fn compiled(from: &Checkpoint, to: &Checkpoint) -> f64 {
    let passed = to.at - from.at;
    if passed.is_zero() { 0.0 } else { (to.compiling - from.compiling).div_duration_f64(passed) }
}

/// What the last two quarters of the time say of a root, the last first; and which part of a processor the compilers had in the last.
fn quarters(checkpoints: &[Checkpoint], root: MethodId) -> ([Controls; 2], f64) {
    let (first, last) = (&checkpoints[0], &checkpoints[checkpoints.len() - 1]);
    let quarter = (last.at - first.at) / 4;
    let ago = |time: Duration| checkpoint_at(checkpoints, last.at - time);
    let (late, half) = (ago(quarter), ago(quarter * 2));
    ([between(late, last, root), between(half, late, root)], compiled(late, last))
}

fn between(earlier: &Checkpoint, later: &Checkpoint, root: MethodId) -> Controls {
    let times = |checkpoint: &Checkpoint| of(&checkpoint.timed.used, root);
    times(later).since(&times(earlier))
}

pub(super) fn of(times: &RootTimes, root: MethodId) -> Controls {
    times.get(&root).copied().unwrap_or_default()
}

/// Whether the last two quarters agree, and no code is about to become faster. Of calls that are too long for that, or endless, it is enough that nothing is compiled.
pub(super) fn is_steady(checkpoints: &[Checkpoint], root: MethodId, are_endless: bool) -> bool {
    let ([last, before], compiling) = quarters(checkpoints, root);
    let is_compiling = compiling > COMPILING;
    let are_known = before.count >= MIN_CONTROLS && last.count >= MIN_CONTROLS;
    !is_compiling && if are_known { are_alike(&before, &last, STEADY) } else { are_endless }
}

/// How far the times of code that is not settled may be from what they come to, as a part and a standard deviation; nothing, if calls take the same and compilers have little
/// to do. Calls that take the same while compilers are at work may be about to be compiled: on a busy machine those stand in line, and everything stays slow.
pub(super) fn unsettled(checkpoints: &[Checkpoint], root: MethodId) -> f64 {
    let ([last, before], compiling) = quarters(checkpoints, root);
    if before.count < MIN_CONTROLS || last.count < MIN_CONTROLS || compiling > BEHIND {
        return UNKNOWN;
    }
    if are_alike(&before, &last, ROUGHLY_STEADY) {
        return if compiling > COMPILING { UNSETTLED } else { 0.0 };
    }
    let mean_ns = (before.mean_ns() + last.mean_ns()) / 2.0;
    (FURTHER * (before.mean_ns() - last.mean_ns()).abs() / mean_ns).max(UNSETTLED)
}

/// Whether two means differ by no more than they would if they were the same.
fn are_alike(before: &Controls, last: &Controls, part: f64) -> bool {
    let most_ns = (part * last.mean_ns()).max(before.error_ns().hypot(last.error_ns()));
    (before.mean_ns() - last.mean_ns()).abs() <= most_ns
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    const ROOT: MethodId = MethodId(1);

    /// Two calls a millisecond, of which one is held out; how long the n-th pair takes.
    pub(in crate::profiling) fn checkpoints(calls: usize, took: impl Fn(usize) -> u64) -> Vec<Checkpoint> {
        let start = Instant::now();
        let mut timed = Timed::default();
        let mut checkpoints = vec![Checkpoint { at: start, timed: timed.clone(), compiling: Duration::ZERO }];
        for call in 0..calls {
            (0..2).for_each(|_| timed.add(ROOT, took(call)));
            let passed = Duration::from_millis(call as u64 + 1);
            checkpoints.push(Checkpoint { at: start + passed, timed: timed.clone(), compiling: Duration::ZERO });
        }
        checkpoints
    }

    fn compile(checkpoints: &mut [Checkpoint], processor: f64) {
        for (call, checkpoint) in checkpoints.iter_mut().enumerate() {
            checkpoint.compiling = Duration::from_millis(call as u64).mul_f64(processor);
        }
    }

    #[test]
    fn nothing_is_steady_while_it_is_compiled() {
        let mut busy = checkpoints(100, |call| 2_000 - call as u64 / 75 * 20);
        assert!(is_steady(&busy, ROOT, false));
        assert_eq!(unsettled(&busy, ROOT), 0.0);
        compile(&mut busy, 0.2);
        assert!(!is_steady(&busy, ROOT, false));
        assert_eq!(unsettled(&busy, ROOT), UNSETTLED);
        compile(&mut busy, 1.6);
        assert_eq!(unsettled(&busy, ROOT), UNKNOWN, "behind");
    }

    #[test]
    fn times_that_still_fall_are_not_steady() {
        let falling = checkpoints(100, |call| 10_000 - 50 * call as u64);
        assert!(!is_steady(&falling, ROOT, false) && unsettled(&falling, ROOT) >= UNSETTLED);
        let warm = checkpoints(100, |call| if call < 40 { 10_000 } else { 2_000 });
        assert!(is_steady(&warm, ROOT, false));
    }

    #[test]
    fn scatter_does_not_hide_that_times_are_steady() {
        assert!(is_steady(&checkpoints(100, |call| 1_000 + 1_000 * (call as u64 % 7)), ROOT, false));
    }

    #[test]
    fn a_root_without_calls_is_steady_when_threads_stay_in_it_and_nothing_is_compiled() {
        let other = MethodId(2);
        let mut checkpoints = checkpoints(100, |_| 5);
        assert!(!is_steady(&checkpoints, other, false) && is_steady(&checkpoints, other, true));
        compile(&mut checkpoints, 0.2);
        assert!(!is_steady(&checkpoints, other, true));
    }

    /// From 10 us to 2, half of what is left in each quarter of the time.
    #[test]
    fn what_still_falls_comes_to_what_its_uncertainty_allows() {
        let falling = checkpoints(100, |call| 2_000 + (8_000.0 * 0.5_f64.powf(call as f64 / 25.0)) as u64);
        let ([last, before], _) = quarters(&falling, ROOT);
        let mean_ns = (last.mean_ns() + before.mean_ns()) / 2.0;
        let error_ns = unsettled(&falling, ROOT) * mean_ns;
        assert!(mean_ns > 3_000.0 && (mean_ns - 2_000.0 - error_ns).abs() < 200.0, "{mean_ns} {error_ns}");
    }
}
