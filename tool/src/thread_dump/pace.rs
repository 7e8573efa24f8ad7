//! How often all threads may be looked at. Each look is a safepoint, and all of them together take a two-hundredth of the time at most.

use std::time::{Duration, Instant};

/// Between two looks, what the one before took, so many times.
const SPARING: u32 = 200;
/// To write a line takes the JVM a third of this.
const A_LINE: Duration = Duration::from_micros(5);

/// When the next look is due.
pub(crate) struct Pace {
    every: Duration,
    due: Instant,
}

impl Pace {
    /// Now, and then not more often than this.
    pub(crate) fn of(every: Duration) -> Pace {
        Pace { every, due: Instant::now() }
    }

    /// Whether it is time.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due <= now
    }

    /// A look has been, and took so long.
    pub(crate) fn looked(&mut self, took: Duration) {
        self.due = Instant::now() + self.every.max(took * SPARING);
    }
}

/// For how long the JVM was stopped to write a dump, which nobody tells: no longer than the answer took, nor than it can take to write so many lines.
pub(crate) fn longest_pause(dump: &str, took: Duration) -> Duration {
    let lines = u32::try_from(dump.lines().count()).unwrap_or(u32::MAX);
    took.min(A_LINE * lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_take_long_are_few() {
        let mut pace = Pace::of(Duration::ZERO);
        assert!(pace.is_due(Instant::now()));
        pace.looked(Duration::from_secs(1));
        assert!(!pace.is_due(Instant::now() + Duration::from_secs(190)));
        assert!(pace.is_due(Instant::now() + Duration::from_secs(201)));
    }

    #[test]
    fn a_pause_is_no_longer_than_there_was_to_write() {
        let second = Duration::from_secs(1);
        assert_eq!(longest_pause("a\nb\n", second), 2 * A_LINE);
        assert_eq!(longest_pause(&"a\n".repeat(1_000_000), second), second);
    }
}
