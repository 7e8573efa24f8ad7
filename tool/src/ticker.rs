//! The coarse clock: a thread of the tool that writes the time into shared memory, where the target's threads read it
//! for next to nothing.
//!
//! Time read so is sampled: what passes between two steps of the clock is given to the method that is on top at the step.
//! The steps know nothing of the events, so the samples are fair; their error is in [`crate::correction`].

use std::io;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use headwater_protocol::segment::Segment;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Ticker {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Ticker {
    /// Sets the segment's clock now, and then once a period.
    pub fn start(segment: Arc<Segment>, period: Duration) -> io::Result<Ticker> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        segment.set_clock(monotonic_ns());
        let thread = std::thread::Builder::new().name("ticker".into()).spawn(move || {
            // By default a sleep may last 50 us longer; where that cannot be had, the steps are longer.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(period);
                segment.set_clock(monotonic_ns());
            }
        })?;
        Ok(Ticker { stop, thread: Some(thread) })
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It cannot have panicked.
            let _ = thread.join();
        }
    }
}

/// The clock that `System.nanoTime` reads on Linux.
pub fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
