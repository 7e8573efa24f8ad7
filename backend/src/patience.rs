//! How long threads of the target wait for the tool, all their waits together.
//!
//! Each wait has its deadline, but a thread that enters a thousand methods for the first time waits a thousand times. So each thread has an
//! account: it may wait for so long at any moment, and for a small part of the time in the long run. A thread that has used its own up tells
//! the tool what it would have asked, and goes on; what it calls next is instrumented a little later. So does every thread while the tool is
//! [absent](crate::presence), or leaves questions unanswered.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headwater_protocol::message;

/// What is left of less is not worth a question.
pub const LEAST: Duration = Duration::from_millis(1);

thread_local! {
    static ACCOUNT: Cell<Option<Account>> = const { Cell::new(None) };
}

/// What a thread has waited in a session.
#[derive(Clone, Copy, Debug)]
struct Account {
    session: u64,
    /// What it may not wait any more, until as much has been earned.
    spent: Duration,
    /// When that was reckoned.
    at: Instant,
}

/// What a session's threads may wait.
#[derive(Debug)]
pub struct Patience {
    /// Numbers the sessions: a thread's account is of one.
    session: u64,
    limit: OnceLock<message::Patience>,
}

impl Default for Patience {
    fn default() -> Self {
        static SESSIONS: AtomicU64 = AtomicU64::new(0);
        Patience { session: SESSIONS.fetch_add(1, Ordering::Relaxed), limit: OnceLock::new() }
    }
}

impl Patience {
    /// From now on waits are limited.
    pub fn limit(&self, limit: message::Patience) {
        // A second one of the same session changes nothing.
        let _ = self.limit.set(limit);
    }

    /// How long the current thread may still wait: without an end, where there is no limit.
    pub fn left(&self) -> Duration {
        let Some(limit) = self.limit.get() else { return Duration::MAX };
        let account = ACCOUNT.get().filter(|account| account.session == self.session);
        let spent = account.map_or(Duration::ZERO, |account| account.spent_at(Instant::now(), limit.per_mille));
        let left = Duration::from_millis(limit.most_ms.into()).saturating_sub(spent);
        if left < LEAST { Duration::ZERO } else { left }
    }

    /// The current thread has waited since `start`.
    pub fn spend(&self, start: Instant) {
        let Some(limit) = self.limit.get() else { return };
        let now = Instant::now();
        let account = ACCOUNT.get().filter(|account| account.session == self.session);
        let before = account.map_or(Duration::ZERO, |account| account.spent_at(now, limit.per_mille));
        ACCOUNT.set(Some(Account { session: self.session, spent: before + (now - start), at: now }));
    }
}

impl Account {
    /// What is still spent when a part of the time since has been earned.
    fn spent_at(&self, now: Instant, per_mille: u32) -> Duration {
        let earned = now.saturating_duration_since(self.at) * per_mille / 1000;
        self.spent.saturating_sub(earned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: message::Patience = message::Patience { most_ms: 500, per_mille: 50 };

    #[test]
    fn without_a_limit_a_thread_waits_as_long_as_it_takes() {
        let patience = Patience::default();
        patience.spend(Instant::now());
        assert_eq!(patience.left(), Duration::MAX);
    }

    #[test]
    fn waits_add_up_and_a_part_of_the_time_is_earned_again() {
        let start = Instant::now();
        let account = Account { session: 0, spent: Duration::from_millis(500), at: start };
        assert_eq!(account.spent_at(start, LIMIT.per_mille), Duration::from_millis(500));
        assert_eq!(account.spent_at(start + Duration::from_secs(2), LIMIT.per_mille), Duration::from_millis(400));
        assert_eq!(account.spent_at(start + Duration::from_secs(60), LIMIT.per_mille), Duration::ZERO);
    }

    #[test]
    fn who_has_waited_long_enough_waits_no_more_and_each_session_is_another() {
        let patience = Patience::default();
        patience.limit(LIMIT);
        assert_eq!(patience.left(), Duration::from_millis(500));
        let long_ago =
            Instant::now().checked_sub(Duration::from_millis(600)).expect("a clock that has run for a second");
        patience.spend(long_ago);
        assert_eq!(patience.left(), Duration::ZERO);
        let another = Patience::default();
        another.limit(LIMIT);
        assert_eq!(another.left(), Duration::from_millis(500));
    }
}
