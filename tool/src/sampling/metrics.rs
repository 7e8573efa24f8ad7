//! What is told of each place: CPU time, time by what threads did, allocated bytes, samples.

use headwater_profile::build::{Builder, MetricIndex};
use rustc_hash::FxHashMap;

use super::Sampled;
use super::places::{Placed, What};
use crate::profile::{ALLOCATED, Extent, Metric, OTHER_WAITS, Unit};
use crate::thread_dump::cpu::Reading;
use crate::threads::activity::Activity;

/// The metrics of a profile.
pub(super) struct Metrics {
    of: FxHashMap<What, MetricIndex>,
    wall: Option<MetricIndex>,
}

/// Which activity has which metric, as a profile below a root calls them, and what it is to people.
pub(super) fn named(activity: Activity) -> (&'static str, &'static str, &'static str) {
    match activity {
        Activity::Running => ("running", "time running", "Time in which threads ran."),
        Activity::Blocked => (
            "blocked",
            "time blocked",
            "Time in which threads wanted monitors that others had, or classes that others initialised, by looks at them.",
        ),
        Activity::Waiting => ("waited", "time in wait", "Time in which threads were in Object.wait, by looks at them."),
        Activity::Parked => (
            "parked",
            "time parked",
            "Time in which threads were parked, for java.util.concurrent locks, queues, results, by looks at them.",
        ),
        Activity::Asleep => ("slept", "time asleep", "Time in which threads slept, by looks at them."),
        Activity::Socket => {
            ("socket", "time in sockets", "Time in which threads waited for or in sockets, by looks at them.")
        }
        Activity::File => {
            ("file", "time in files", "Time in which threads read or wrote files and pipes, by looks at them.")
        }
        Activity::Outside => (
            OTHER_WAITS,
            "time in other waits",
            "Time in which threads did not run, and were in native code or waited for something else, by looks at them.",
        ),
        Activity::Idle => (
            "idle",
            "time waiting for work",
            "Time in which threads waited for work: none of the program's code was on their stacks, or a pool's own. It is no part of wall time.",
        ),
    }
}

impl Metrics {
    /// Of what was placed. What would have been seen, and nobody did, has one all the same: it is known to be nothing.
    pub(super) fn of(builder: &mut Builder, placed: &[Placed], sampled: &Sampled) -> Metrics {
        // Sums, and of how many.
        let mut sums: FxHashMap<What, (u64, u64)> = FxHashMap::default();
        for one in placed {
            let (sum, count) = sums.entry(one.what).or_default();
            *sum = sum.saturating_add(one.value);
            *count += 1;
        }
        let of = |what: What| sums.get(&what).copied().unwrap_or_default();
        let time = |id, title, about| Metric::counted(id, title, Unit::Nanoseconds, Extent::OwnAndTotal, about);
        let mut metrics = Metrics { of: FxHashMap::default(), wall: None };
        let mut add = |metric: Metric, (sum, count): (u64, u64)| {
            let index = builder.described(metric);
            builder.grain(index, sum.checked_div(count).unwrap_or(0).max(1));
            index
        };
        let about = "Time in which threads had a processor, by the operating system; places are sampled.";
        metrics.of.insert(What::Cpu, add(time("cpu", "CPU time", about), of(What::Cpu)));
        if sampled.has_looks() {
            let waits = sums.keys().filter(|what| what_is_wall(**what)).map(|what| of(*what));
            let wall = waits.fold((0, 0), |(sum, count), (more, of)| (sum + more, count + of));
            let about = "Time in which threads ran, stood in line, or waited for anything but work.";
            metrics.wall = Some(add(time("wall", "wall time", about), wall));
        }
        if sampled.has_allocations() {
            let about = "Bytes that threads have allocated, by the JVM's own count; places are sampled.";
            let metric = Metric::counted(ALLOCATED, "allocated", Unit::Bytes, Extent::OwnAndTotal, about);
            metrics.of.insert(What::Allocated, add(metric, of(What::Allocated)));
        }
        let about = "How often a thread was seen executing.";
        let samples = Metric::counted("samples", "samples", Unit::Count, Extent::OwnAndTotal, about);
        metrics.of.insert(What::Samples, add(samples, of(What::Samples)));
        let about = "Time in which threads could have run, and had no processor.";
        // Not every kernel counts that; where one does, somebody has stood in line.
        let is_counted = |reading: &Reading| reading.threads.values().any(|thread| thread.queued_ns > 0);
        if sampled.readings.iter().any(is_counted) {
            metrics.of.insert(What::Ready, add(time("ready", "time ready", about), of(What::Ready)));
        }
        for activity in Activity::WAITS.into_iter().chain([Activity::Idle]).filter(|_| sampled.has_looks()) {
            let what = What::Wait(activity);
            let (id, title, about) = named(activity);
            metrics.of.insert(what, add(time(id, title, about), of(what)));
        }
        metrics
    }

    /// Those that something is a part of.
    pub(super) fn of_what(&self, what: What) -> impl Iterator<Item = MetricIndex> {
        let wall = self.wall.filter(|_| what_is_wall(what));
        self.of.get(&what).copied().into_iter().chain(wall)
    }
}

/// Whether it is a part of wall time.
fn what_is_wall(what: What) -> bool {
    match what {
        What::Cpu | What::Ready => true,
        What::Wait(activity) => activity != Activity::Idle,
        What::Allocated | What::Samples => false,
    }
}
