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
use headwater_protocol::message::{Answer, Notice, Upcall};

use crate::connection::AskError;
use crate::jni_env::Jni;
use crate::peek;
use crate::session::Session;

/// What is left of less is not worth a question.
const LEAST: Duration = Duration::from_millis(1);

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
    fn left(&self) -> Duration {
        let Some(limit) = self.limit.get() else { return Duration::MAX };
        let account = ACCOUNT.get().filter(|account| account.session == self.session);
        let spent = account.map_or(Duration::ZERO, |account| account.spent_at(Instant::now(), limit.per_mille));
        let left = Duration::from_millis(limit.most_ms.into()).saturating_sub(spent);
        if left < LEAST { Duration::ZERO } else { left }
    }

    /// The current thread has waited since `start`.
    fn spend(&self, start: Instant) {
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

impl Session {
    /// Whether the current thread waits for what it reveals.
    pub fn waits(&self) -> bool {
        !self.time_left().is_zero()
    }

    fn time_left(&self) -> Duration {
        let nobody_waits = self.reveals_in_background() || self.connection.presence().is_absent();
        if nobody_waits { Duration::ZERO } else { self.patience.left() }
    }

    /// Has the tool decide what the current thread reveals: the thread asks, waits, and executes what it is answered; or it tells, and goes on.
    pub fn ask_and_follow(&self, jni: Jni, upcall: Upcall) {
        let left = self.time_left();
        if left.is_zero() || !self.connection.presence().may_ask() {
            self.connection.notice(told(upcall));
            return;
        }
        let start = Instant::now();
        let mut answer = self.connection.ask(upcall, left);
        loop {
            let next = match &answer {
                Ok(Answer::Hotswap { classes }) if !classes.is_empty() => {
                    Upcall::Hotswapped(self.hotswap(jni, classes))
                }
                Ok(Answer::Link { classes }) => {
                    // Another could call what is linked before it is instrumented.
                    if self.runtime.threads(jni) == 1 {
                        peek::link(self.jvmti, jni, &self.classes, classes);
                    }
                    Upcall::Linked
                }
                _ => break,
            };
            answer = self.connection.ask(next, left.saturating_sub(start.elapsed()).max(LEAST));
        }
        self.patience.spend(start);
    }

    /// Asks the tool what the bytes of a class that is being loaded are to be.
    pub fn ask_while_loading(&self, upcall: Upcall) -> Result<Option<Vec<u8>>, AskError> {
        if !self.connection.presence().may_ask() {
            return Err(AskError::Deadline);
        }
        let start = Instant::now();
        let answer = self.connection.ask(upcall, self.time_left());
        self.patience.spend(start);
        answer.map(bytes)
    }

    /// Asks the tool what the bytes of a class that is being retransformed are to be. Who retransforms does not go on without: the class would be
    /// given its own code; but if the tool is absent, that is what becomes of it.
    pub fn ask_while_retransforming(&self, upcall: Upcall) -> Result<Option<Vec<u8>>, AskError> {
        if self.connection.presence().is_absent() {
            return Err(AskError::Deadline);
        }
        self.connection.ask(upcall, Duration::MAX).map(bytes)
    }
}

fn bytes(answer: Answer) -> Option<Vec<u8>> {
    match answer {
        Answer::Bytes(bytes) => bytes,
        Answer::Hotswap { .. } | Answer::Link { .. } => None,
    }
}

/// What a thread tells that does not ask.
fn told(upcall: Upcall) -> Notice {
    match upcall {
        Upcall::FirstCall(method) => Notice::FirstCall(method),
        Upcall::Reflected(method) => Notice::Reflected(method),
        Upcall::Received { call, class } => Notice::Received { call, class },
        Upcall::ClassPrepared(info) => Notice::ClassPrepared(info),
        Upcall::ClassBytes { .. } | Upcall::Hotswapped(_) | Upcall::Linked => {
            unreachable!("a thread that is asked for class files, or hotswaps, waits")
        }
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
