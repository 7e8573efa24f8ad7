//! Of how much of what threads ran samples tell.
//!
//! The recorder looks at a thread in each period, and does not find it in Java or native code while it is inside the JVM (where exceptions are filled in, classes loaded,
//! monitors inflated), nor at places from which it cannot walk a stack: that can be half of a program's time, and more of one method's than of another's. The
//! operating system tells how long threads ran meanwhile, so it is known how many samples there should be.

use std::time::Duration;

use rustc_hash::FxHashMap;

use super::place::{MOST_QUEUED, Names, Placed};
use crate::decode::Scheduled;

/// Where fewer samples should be, nothing is known.
const ENOUGH: f64 = 50.0;
/// The recorder looks at no more threads in Java code in a period than five.
const MOST_AT_WORK: f64 = 4.0;
/// So much of what there should be is lost anywhere, and from everywhere alike: of less, samples tell all.
const LOST: f64 = 0.25;
/// A longer gap between samples is one in which nobody sampled, in ns.
const LONGEST_GAP: i64 = 250_000_000;
/// Samples that are closer are of one period.
const ONE_LOOK: i64 = 1_000_000;
/// From so many gaps before one, and behind it, it is seen what the period was.
const AROUND: usize = 16;

/// Which part of the time for which these threads ran samples tell of, if they wanted so much of a processor over such a time; all, where nothing else is known.
pub fn coverage(placed: &Placed, names: &Names<'_>, wanted: &FxHashMap<u32, Scheduled>, over: Option<Duration>) -> f64 {
    const ALL: f64 = 1.0;
    let inside = placed.threads.iter().filter(|(_, samples)| samples.inside > 0);
    let known = inside.filter_map(|(thread, samples)| Some((samples.all, wanted.get(thread)?)));
    let (mut sampled, mut all) = (0.0, Scheduled::default());
    for (samples, thread) in known {
        sampled += f64::from(samples);
        all.add(*thread);
    }
    let over = over.map_or(0.0, |over| over.as_nanos() as f64);
    if over <= 0.0 || all.queued().is_none_or(|part| part > MOST_QUEUED) {
        return ALL;
    }
    let at_work = all.ran_ns as f64 / over;
    let expected = at_work * looks(names);
    if expected < ENOUGH || at_work > MOST_AT_WORK || sampled > (ALL - LOST) * expected {
        return ALL;
    }
    sampled / expected
}

/// How often the recorder has looked, whether it has seen anything or not.
pub fn looks(names: &Names<'_>) -> f64 {
    [false, true].map(|in_native| looks_at(names.times(in_native))).into_iter().fold(0.0, f64::max)
}

/// The same, where something was seen at these times.
fn looks_at(times: impl Iterator<Item = i64>) -> f64 {
    let mut times: Vec<i64> = times.collect();
    times.sort_unstable();
    times.dedup_by(|later, earlier| *later - *earlier < ONE_LOOK);
    let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).filter(|gap| *gap < LONGEST_GAP).collect();
    let period = |at: usize| {
        let mut around = gaps[at.saturating_sub(AROUND)..(at + AROUND).min(gaps.len())].to_vec();
        around.sort_unstable();
        // The shortest ones may be of a look that was late.
        around[around.len() / 8]
    };
    (0..gaps.len()).map(|at| (gaps[at] as f64 / period(at) as f64).round().max(1.0)).sum()
}

#[cfg(test)]
mod tests {
    use headwater_jfr::{Sample, Samples};

    use super::*;
    use crate::correction::place::OfThread;

    /// What is known of samples of a second, in its first half each `every` ms, in the other each twice that, of which one in so many is there; and of how long their
    /// thread ran.
    fn covered(every: i64, one_in: usize, ran_ms: u64, queued_ms: u64) -> f64 {
        let halves = [0..500 / every, 0..250 / every];
        let [first, second] = halves.map(|looks| looks.collect::<Vec<i64>>());
        let times = first.iter().map(|look| look * every).chain(second.iter().map(|look| 500 + 2 * look * every));
        let times: Vec<i64> = times.collect();
        // Each second of the gaps between those that are left is one period, so that the period shows.
        let kept =
            times.iter().enumerate().filter(|(index, _)| index % (2 * one_in) < 2).map(|(_, at_ms)| at_ms * 1_000_000);
        let sample = |thread, at_ns| Sample { at_ns, thread, frames: [].into(), is_cut: false, is_native: thread != 7 };
        let mut samples = Samples { methods: Vec::new(), stacks: kept.map(|at_ns| sample(7, at_ns)).collect() };
        let all = samples.stacks.len() as u32;
        // Somebody in native code is looked for as often, a little later.
        samples.stacks.extend(times.iter().map(|at_ms| sample(8, at_ms * 1_000_000 + 1_300_000)));
        let names = Names::of([].into_iter(), &samples, (0, i64::MAX));
        let mut placed = Placed::of(Vec::new());
        placed.threads.insert(7, OfThread { all, inside: all, cut: 0 });
        let wanted = Scheduled { ran_ns: ran_ms * 1_000_000, queued_ns: queued_ms * 1_000_000 };
        coverage(&placed, &names, &FxHashMap::from_iter([(7, wanted)]), Some(Duration::from_secs(1)))
    }

    #[test]
    fn how_many_samples_there_should_be_is_known_by_how_long_threads_ran() {
        let is = |covered: f64, expected: f64| assert!((covered - expected).abs() < 0.05, "{covered}, not {expected}");
        is(covered(4, 1, 1_000, 0), 1.0);
        is(covered(4, 2, 1_000, 0), 0.5);
        is(covered(4, 3, 1_000, 0), 1.0 / 3.0);
        // It ran for half of the time: that is when it was seen.
        is(covered(4, 2, 500, 0), 1.0);
        is(covered(4, 2, 1_000, 300), 1.0);
        is(covered(50, 2, 1_000, 0), 1.0);
    }
}
