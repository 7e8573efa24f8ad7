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

/// A thread of the tool that reads the invocations' durations.
#[derive(Debug)]
pub struct Timing {
    shared: Arc<Shared>,
    thread: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: AtomicBool,
    times: Mutex<RootTimes>,
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
    pub fn so_far(&self) -> RootTimes {
        self.shared.times.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Reads what is there and ends the thread.
    pub fn finish(self) -> RootTimes {
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
                times.entry(method).or_default().add(duration_ns);
            }
        }
    }
}
