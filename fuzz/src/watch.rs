//! How long a reader has been at an input: CPU time, so that a busy machine does not show.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// No input.
const NONE: u64 = u64::MAX;
/// How often it is looked.
const LOOK: Duration = Duration::from_millis(500);

/// Watches one thread, and ends the process where it does not come back.
#[derive(Debug)]
pub(crate) struct Watch {
    number: Arc<AtomicU64>,
    began: std::cell::Cell<Duration>,
}

impl Watch {
    /// Begins to watch.
    pub(crate) fn start(limit: Duration) -> Watch {
        let number = Arc::new(AtomicU64::new(NONE));
        let watched = Arc::clone(&number);
        std::thread::spawn(move || {
            let (mut last, mut since) = (NONE, Duration::ZERO);
            loop {
                std::thread::sleep(LOOK);
                let (at, now) = (watched.load(Ordering::Relaxed), cpu(ClockId::ProcessCPUTime));
                if at != last {
                    (last, since) = (at, now);
                } else if at != NONE && now - since > limit {
                    println!("  --only {at} hangs: more than {limit:?} of CPU time");
                    std::process::exit(3);
                }
            }
        });
        Watch { number, began: std::cell::Cell::new(Duration::ZERO) }
    }

    /// This thread begins with an input.
    pub(crate) fn begin(&self, number: u64) {
        self.number.store(number, Ordering::Relaxed);
        self.began.set(cpu(ClockId::ThreadCPUTime));
    }

    /// It is done; how long it took.
    pub(crate) fn end(&self) -> Duration {
        self.number.store(NONE, Ordering::Relaxed);
        cpu(ClockId::ThreadCPUTime) - self.began.get()
    }
}

fn cpu(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap_or_default()
}
