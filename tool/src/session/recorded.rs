//! How long has been recorded.

use std::time::{Duration, Instant};

use crate::ticker::monotonic_ns;

/// The time of recording, interruptions left out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Recorded {
    before: Duration,
    /// When it began, by the target's clock.
    began_ns: i64,
    /// Since when recording goes on; `None` while it does not.
    since: Option<Instant>,
}

impl Recorded {
    /// Recording begins, or goes on.
    pub fn begin(&mut self) {
        if self.since.is_none() && self.before.is_zero() {
            self.began_ns = monotonic_ns();
        }
        self.since.get_or_insert_with(Instant::now);
    }

    /// It is interrupted.
    pub fn interrupt(&mut self) {
        self.before = self.elapsed();
        self.since = None;
    }

    /// What was recorded is forgotten.
    pub fn clear(&mut self) {
        self.before = Duration::ZERO;
        self.began_ns = monotonic_ns();
        self.since = self.since.map(|_| Instant::now());
    }

    /// How long was recorded.
    pub fn elapsed(&self) -> Duration {
        self.before + self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// When it began, by the target's `System.nanoTime()`.
    pub fn began_ns(&self) -> i64 {
        self.began_ns
    }

    /// Whether recording goes on.
    pub fn is_running(&self) -> bool {
        self.since.is_some()
    }

    /// Whether recording had begun, and does not go on.
    pub fn is_interrupted(&self) -> bool {
        self.since.is_none() && !self.before.is_zero()
    }
}
