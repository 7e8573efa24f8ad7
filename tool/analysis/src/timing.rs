//! Timing root invocations as wholes: nothing below the roots is instrumented, so that they take the time that they take.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_protocol::chunks::ChunkReader;
use headwater_protocol::segment::Segment;
use headwater_protocol::word::Event;
use rustc_hash::FxHashMap;

use crate::decode::Controls;

/// How long the thread sleeps when there was nothing to read.
const NAP: Duration = Duration::from_millis(1);

/// What was found, for each root.
pub type RootTimes = FxHashMap<MethodId, Controls>;

/// Calls that were timed as wholes: every other one is held out, to say how true it is what the others lead to.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    /// What times are made of.
    pub used: RootTimes,
    /// What they are compared with.
    pub held_out: RootTimes,
}

impl Timed {
    /// One more call.
    pub fn add(&mut self, root: MethodId, duration_ns: u64) {
        let used = self.used.entry(root).or_default();
        let held_out = self.held_out.entry(root).or_default();
        if used.count > held_out.count { held_out.add(duration_ns) } else { used.add(duration_ns) }
    }

    /// All of them, by roots, and what is held out apart.
    pub fn all(&self) -> impl Iterator<Item = &Controls> {
        self.used.values().chain(self.held_out.values()).filter(|times| times.count > 0)
    }

    /// The calls that are not among earlier ones.
    pub fn since(&self, earlier: &Timed) -> Timed {
        let rest = |later: &RootTimes, earlier: &RootTimes| {
            let since = |(root, times): (&MethodId, &Controls)| {
                (*root, times.since(&earlier.get(root).copied().unwrap_or_default()))
            };
            later.iter().map(since).filter(|(_, times)| times.count > 0).collect()
        };
        Timed { used: rest(&self.used, &earlier.used), held_out: rest(&self.held_out, &earlier.held_out) }
    }
}

/// A thread of the tool that reads the invocations' durations.
#[derive(Debug)]
pub struct Timing {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    times: Mutex<Timed>,
}

impl Timing {
    /// Begins with what is written from now on.
    pub fn start(segment: Arc<Segment>) -> io::Result<Timing> {
        let mut reader = ChunkReader::from_now(segment);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("timing".into()).spawn(move || {
            loop {
                // Read before the pass: what was written before the stop is then in this last pass.
                let last = theirs.stop.load(Ordering::Acquire);
                let found = reader.pass(|_| (), |(), words| theirs.add(words));
                if last {
                    return;
                }
                if !found {
                    std::thread::sleep(NAP);
                }
            }
        })?;
        Ok(Timing { shared, thread })
    }

    /// What has been found so far.
    pub fn so_far(&self) -> Timed {
        self.shared.times.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads what is there and ends the thread.
    pub fn finish(self) -> Timed {
        self.shared.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        std::mem::take(&mut *self.shared.times.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Shared {
    fn add(&self, words: &[u64]) {
        let mut times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        for word in words {
            if let Some(Event::Control { method, duration_ns }) = Event::decode(*word) {
                times.add(method, duration_ns);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_call_of_a_root_is_held_out() {
        let mut timed = Timed::default();
        [10, 20, 30].into_iter().for_each(|ns| timed.add(MethodId(1), ns));
        timed.add(MethodId(2), 7);
        let earlier = timed.clone();
        timed.add(MethodId(1), 40);
        let of = |times: &RootTimes, root| times.get(&MethodId(root)).map(|times| (times.count, times.mean_ns()));
        assert_eq!((of(&timed.used, 1), of(&timed.held_out, 1)), (Some((2, 20.0)), Some((2, 30.0))));
        let rest = timed.since(&earlier);
        assert_eq!((of(&rest.used, 1), of(&rest.held_out, 1), of(&rest.used, 2)), (None, Some((1, 40.0)), None));
    }
}
