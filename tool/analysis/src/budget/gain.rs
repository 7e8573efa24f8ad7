//! Whether what is to be dropped is worth it: the JVM discards code for it.

use std::time::Duration;

use headwater_profile::profile::Limit;

use super::governor::Governor;

/// What is recorded until somebody ends it goes on for so long, at least, or as long as it did.
const GOES_ON: Duration = Duration::from_secs(60);

/// What is not worth it now hardly is soon.
const JUDGED_AGAIN: Duration = Duration::from_secs(3);

impl Governor {
    /// What of the rest of the recording the program gets back by what is due, once compilers have been at work for it for so long; `None` where somebody has asked
    /// for a budget, which is kept to whatever that takes.
    pub fn gain(&self, now: Duration, compiling: Duration) -> Option<Duration> {
        let Limit::Call { .. } = self.limit else { return None };
        let overhead: f64 = self.due.iter().map(|due| due.overhead).sum();
        let rest = self.ends.map_or(GOES_ON.max(now), |ends| ends.saturating_sub(now)).saturating_sub(compiling);
        // Calls that took nothing are longer by more than anything.
        let part = if overhead.is_finite() { overhead / (1.0 + overhead) } else { 1.0 };
        Some(rest.mul_f64(part))
    }

    /// What is due costs more than that: it stays, and for [a while](JUDGED_AGAIN) nothing is judged.
    pub fn is_not_worth_it(&mut self, now: Duration) {
        self.due.clear();
        self.settled = now + JUDGED_AGAIN;
    }
}
