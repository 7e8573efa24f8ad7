//! What was seen, each at its place, before it becomes a profile.

use headwater_jfr::LockIndex;
use headwater_profile::build::ThreadIndex;
use rustc_hash::FxHashMap;

use super::paths::PathIndex;
use crate::decode::Scheduled;
use crate::threads::activity::Activity;

/// What lies at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum What {
    /// Time on a processor.
    Cpu,
    /// Time in line for one.
    Ready,
    /// Time in which a thread did this.
    Wait(Activity),
    /// Bytes.
    Allocated,
    /// How often it was seen.
    Samples,
}

/// Something that lies somewhere.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub(super) thread: ThreadIndex,
    pub(super) path: PathIndex,
    pub(super) what: What,
    pub(super) value: u64,
}

/// All of it.
#[derive(Default)]
pub(super) struct Places {
    pub(super) all: Vec<Placed>,
    /// CPU time of Java threads that were seen nowhere.
    pub(super) unseen_ns: u64,
    /// CPU time whose place the recorder, and looks, have told.
    pub(super) recorded_ns: u64,
    pub(super) looked_ns: u64,
    /// CPU time that is too much for the samples of its threads.
    pub(super) unknown_ns: u64,
    /// All threads' CPU time.
    pub(super) threads_ns: u64,
    /// What was allocated of each class.
    pub(super) classes: FxHashMap<LockIndex, u64>,
}

impl Places {
    pub(super) fn put(&mut self, thread: ThreadIndex, path: PathIndex, what: What, value: u64) {
        if value > 0 {
            self.all.push(Placed { thread, path, what, value });
        }
    }

    /// What a thread ran, and stood in line for, at these places.
    pub(super) fn put_work(
        &mut self,
        thread: ThreadIndex,
        Scheduled { ran_ns, queued_ns }: Scheduled,
        paths: &[PathIndex],
    ) {
        let of = |what: What| paths.iter().map(|path| (what, *path)).collect::<Vec<_>>();
        self.divide(thread, ran_ns, &of(What::Cpu));
        self.divide(thread, queued_ns, &of(What::Ready));
    }

    /// Divides a whole among some places, to the last of it.
    pub(super) fn divide(&mut self, thread: ThreadIndex, whole: u64, places: &[(What, PathIndex)]) {
        for ((what, path), share) in places.iter().zip(shares(whole, places.len())) {
            self.put(thread, *path, *what, share);
        }
    }
}

/// Divides a whole into so many equal parts, to the last of it.
pub(super) fn shares(whole: u64, parts: usize) -> impl Iterator<Item = u64> {
    let parts = parts as u64;
    (0..parts).map(move |at| {
        let until = |at: u64| (u128::from(whole) * u128::from(at) / u128::from(parts)) as u64;
        until(at + 1) - until(at)
    })
}
