//! For how long threads wanted a processor: what they ran, and what they stood in line.

use std::path::PathBuf;
use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};
use tokio::time::Instant;

use crate::correction::ALL_VIRTUAL;
use crate::cpu_share::{OsThread, scheduled};
use crate::decode::Scheduled;

/// What threads of the JVM are called that work for us while we attach, as far as the kernel keeps names: compilers have what is new with us to compile.
const OURS: [&str; 6] = ["Headwater", "Attach Listener", "JFR ", "C1 Compiler", "C2 Compiler", "JVMCI"];

/// What the threads that have been in a root have had of the processors, or waited for them, at some moments.
#[derive(Debug)]
pub(super) struct ProcessorTime {
    tasks: PathBuf,
    threads: Vec<u32>,
    /// Those of them that carry virtual threads: what these want is what all of them together do.
    carriers: FxHashSet<u32>,
    read: Vec<(Instant, FxHashMap<u32, Scheduled>)>,
}

impl ProcessorTime {
    /// More threads are not read.
    const MOST: usize = 256;
    /// Nor are more if that is done a few times only.
    const MOST_AT_ONCE: usize = 4096;
    /// How often they are.
    const STEP: Duration = Duration::from_secs(1);

    /// Nothing known yet of these threads of the process with this pid.
    pub(super) fn of(pid: u32, threads: impl Iterator<Item = OsThread>) -> ProcessorTime {
        let threads: Vec<OsThread> = threads.collect();
        let threads = if threads.len() > ProcessorTime::MOST { Vec::new() } else { threads };
        let carriers = threads.iter().filter(|of| of.thread.is_carrier()).map(|of| of.number).collect();
        let threads = threads.iter().map(|of| of.number).collect();
        ProcessorTime { tasks: PathBuf::from(format!("/proc/{pid}/task")), threads, carriers, read: Vec::new() }
    }

    /// Of all threads of the process that do not work for us, from now on.
    pub(super) fn of_all(pid: u32) -> ProcessorTime {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let is_ours = |name: String| OURS.iter().any(|ours| name.starts_with(ours));
        let theirs = tasks.filter(|task| !std::fs::read_to_string(task.path().join("comm")).is_ok_and(is_ours));
        let numbers = theirs.filter_map(|task| task.file_name().to_str()?.parse().ok());
        let threads = numbers.take(ProcessorTime::MOST_AT_ONCE).collect();
        let mut wanted = ProcessorTime { threads, ..ProcessorTime::of(pid, std::iter::empty()) };
        wanted.look(Instant::now());
        wanted
    }

    /// What all threads together have had since they were first looked at, and how long that is.
    pub(super) fn so_far(&mut self) -> (Scheduled, Duration) {
        let Some((since, _)) = self.read.first() else { return Default::default() };
        let (since, now) = (*since, Instant::now());
        let mut all = Scheduled::default();
        self.ended(now).between(since, now).values().for_each(|thread| all.add(*thread));
        (all, now - since)
    }

    /// Looks again, if it is time.
    pub(super) fn look(&mut self, now: Instant) {
        if self.read.last().is_none_or(|(at, _)| now - *at >= ProcessorTime::STEP) {
            self.ended(now);
        }
    }

    /// Looks for the last time.
    pub(super) fn ended(&mut self, now: Instant) -> &ProcessorTime {
        let time = |thread: &u32| Some((*thread, scheduled(&self.tasks, *thread)?));
        self.read.push((now, self.threads.iter().filter_map(time).collect()));
        self
    }

    /// In the time from one moment to another, by the rate between the moments that are known nearest to them.
    pub(super) fn between(&self, from: Instant, to: Instant) -> FxHashMap<u32, Scheduled> {
        let known = self.read.partition_point(|(at, _)| *at < from).min(self.read.len().saturating_sub(2));
        let (Some((begin, before)), Some((end, after))) = (self.read.get(known), self.read.last()) else {
            return FxHashMap::default();
        };
        if end <= begin {
            return FxHashMap::default();
        }
        let whole = (to - from).div_duration_f64(*end - *begin);
        let part = |ns: u64| (ns as f64 * whole) as u64;
        let wanted = |(thread, until): (&u32, &Scheduled)| {
            let time = until.since(*before.get(thread)?);
            Some((*thread, Scheduled { ran_ns: part(time.ran_ns), queued_ns: part(time.queued_ns) }))
        };
        let mut all: FxHashMap<u32, Scheduled> = after.iter().filter_map(wanted).collect();
        for carrier in self.carriers.iter().filter_map(|carrier| all.remove(carrier)).collect::<Vec<_>>() {
            all.entry(ALL_VIRTUAL).or_default().add(carrier);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_wanted_is_reckoned_for_the_time_that_counts() {
        let start = Instant::now();
        let had = |ms: u64| Scheduled { ran_ns: ms * 750_000, queued_ns: ms * 250_000 };
        let at = |s: u64, ms: u64| (start + Duration::from_secs(s), FxHashMap::from_iter([(7, had(ms))]));
        let wanted = ProcessorTime {
            tasks: PathBuf::new(),
            threads: vec![7],
            carriers: FxHashSet::default(),
            read: vec![at(0, 0), at(1, 900), at(2, 1_400), at(3, 1_900)],
        };
        let between = |from: u64, to: u64| {
            let ms = |ms| start + Duration::from_millis(ms);
            wanted.between(ms(from), ms(to)).get(&7).copied()
        };
        assert_eq!(between(800, 2_800), Some(had(1_000)), "half of the time since it was known");
        assert_eq!(between(2_500, 3_500), Some(had(500)), "the last moments that are known");
        let carried = ProcessorTime {
            carriers: [7].into_iter().collect(),
            read: wanted.read.clone(),
            ..ProcessorTime::of(1, [].into_iter())
        };
        let until = start + Duration::from_secs(3);
        assert_eq!(carried.between(start, until), FxHashMap::from_iter([(ALL_VIRTUAL, had(1_900))]));
        assert!(ProcessorTime { read: vec![at(0, 5)], ..wanted }.between(start, start).is_empty());
    }
}
