//! The coarse clock: a thread of the tool that writes the time into shared memory, where the target's threads read it
//! for next to nothing.
//!
//! Time read so is sampled: what passes between two steps of the clock is given to the method that is on top at the step.
//! The steps know nothing of the events, so the samples are fair; their error is in [`crate::correction`].

use std::io;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use headwater_protocol::segment::Segment;

/// Of a thread that sleeps nearly all of the time.
const HIGHEST_PRIORITY: i32 = -20;

/// The thread; it ends when this is dropped.
#[derive(Debug)]
pub struct Ticker {
    stop: Arc<AtomicBool>,
    steps: Arc<Mutex<Steps>>,
    thread: Option<JoinHandle<()>>,
}

/// How far the clock has gone at once.
#[derive(Debug, Default)]
struct Steps {
    sum: f64,
    squares: f64,
}

impl Steps {
    fn add(&mut self, step_ns: f64) {
        self.sum += step_ns;
        self.squares += step_ns * step_ns;
    }

    /// The mean of all moments' steps, and not of all steps.
    fn mean_ns(&self) -> Option<f64> {
        (self.sum > 0.0).then(|| self.squares / self.sum)
    }
}

impl Ticker {
    /// Sets the segment's clock now, and then once a period.
    pub fn start(segment: Arc<Segment>, period: Duration) -> io::Result<Ticker> {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let steps = Arc::new(Mutex::new(Steps::default()));
        let gone = Arc::clone(&steps);
        let mut before = monotonic_ns();
        segment.set_clock(before);
        let thread = std::thread::Builder::new().name("ticker".into()).spawn(move || {
            // By default a sleep may last 50 us longer; where that cannot be had, the steps are longer.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
            // A step that comes late, because others have the processors, is samples that are missing. Who may not do this has longer steps.
            let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), HIGHEST_PRIORITY);
            while !stopped.load(Ordering::Relaxed) {
                std::thread::sleep(period);
                let now = monotonic_ns();
                segment.set_clock(now);
                gone.lock().unwrap_or_else(PoisonError::into_inner).add((now - before) as f64);
                before = now;
            }
        })?;
        Ok(Ticker { stop, steps, thread: Some(thread) })
    }

    /// Forgets the steps up to now: those from now on are of interest.
    pub fn begin(&self) {
        *self.steps.lock().unwrap_or_else(PoisonError::into_inner) = Steps::default();
    }

    /// How long the step takes, in ns, that a moment falls into: a period at the least, and longer where this thread had to wait for a
    /// processor. `None` before the first one.
    pub fn step_ns(&self) -> Option<f64> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).mean_ns()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_more_likely_in_a_long_step() {
        let mut steps = Steps::default();
        assert_eq!(steps.mean_ns(), None);
        [100.0, 100.0, 100.0, 700.0].into_iter().for_each(|step_ns| steps.add(step_ns));
        assert_eq!(steps.mean_ns(), Some(520.0));
    }
}
