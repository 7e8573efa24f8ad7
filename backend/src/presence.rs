//! Whether the tool is there.
//!
//! A thread of the tool's own gives a sign of life ten times a second, through shared memory, whatever else the tool is busy with; none comes from a
//! process that is stopped, or that gets no processor. A tool that has given none for a second is absent: nobody waits for it until it gives
//! one. When it has been so for too long, the session is over. One that is there and leaves questions unanswered is asked something now and then, and
//! told the rest.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_protocol::pulse::{End, Pulse};

use crate::os::monotonic_ns;

/// Without a sign of life for so long a tool is absent.
const ABSENT_AFTER: Duration = Duration::from_secs(1);
/// A tool that has been absent for so long is given up.
const GIVEN_UP_AFTER: Duration = Duration::from_secs(4);
/// How often the agent's thread looks.
const INTERVAL: Duration = Duration::from_millis(250);
/// How often one thread tries whether questions are answered again.
const TRIAL_INTERVAL: Duration = Duration::from_secs(1);

/// What is known of the tool.
#[derive(Debug)]
pub struct Presence {
    pulse: Pulse,
    /// The shortest time from a sign to our seeing it, in ns. Where the processes have clocks of their own it is what these differ by.
    least_lag_ns: AtomicI64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// When the agent's thread looks next; `None` as long as it need not.
    next_look: Option<Instant>,
    /// Since when each of its looks found the tool absent. Not when the last sign came: a machine may have stood still as a whole.
    absent_since: Option<Instant>,
    /// When a thread asks again, though no question has been answered since one that got no answer in time.
    next_trial: Option<Instant>,
}

impl Presence {
    /// The tool has just been heard.
    pub fn of(pulse: Pulse) -> Presence {
        let least_lag_ns = AtomicI64::new(monotonic_ns() - pulse.beat_ns());
        Presence { pulse, least_lag_ns, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether nobody waits for the tool.
    pub fn is_absent(&self) -> bool {
        self.until_absent().is_zero()
    }

    /// How long a thread may wait before the tool is absent, if no further sign comes.
    pub fn until_absent(&self) -> Duration {
        self.until_absent_at(monotonic_ns())
    }

    fn until_absent_at(&self, now_ns: i64) -> Duration {
        let lag = now_ns - self.pulse.beat_ns();
        // Relaxed: a number that stands for itself.
        let least = self.least_lag_ns.fetch_min(lag, Ordering::Relaxed).min(lag);
        ABSENT_AFTER.saturating_sub(Duration::from_nanos(lag.abs_diff(least)))
    }

    /// From now on the session ends when the tool is absent for too long.
    pub fn watch(&self) {
        self.lock().next_look.get_or_insert_with(Instant::now);
    }

    /// When the agent's thread is to look next.
    pub fn next_look(&self) -> Option<Instant> {
        self.lock().next_look
    }

    /// Looks, if it is time; whether the tool is given up.
    pub fn is_given_up(&self) -> bool {
        self.is_given_up_at(Instant::now(), monotonic_ns())
    }

    fn is_given_up_at(&self, now: Instant, now_ns: i64) -> bool {
        let mut state = self.lock();
        if state.next_look.is_none_or(|next| next > now) {
            return false;
        }
        state.next_look = Some(now + INTERVAL);
        if !self.until_absent_at(now_ns).is_zero() {
            state.absent_since = None;
            return false;
        }
        now.saturating_duration_since(*state.absent_since.get_or_insert(now)) >= GIVEN_UP_AFTER
    }

    /// A question got no answer in time.
    pub fn has_not_answered(&self) {
        self.lock().next_trial = Some(Instant::now() + TRIAL_INTERVAL);
    }

    /// Something has come from the tool.
    pub fn is_heard(&self) {
        self.lock().next_trial = None;
    }

    /// Whether there has been no answer since one that did not come in time.
    pub fn is_unresponsive(&self) -> bool {
        self.lock().next_trial.is_some()
    }

    /// Whether a thread of the program is to ask, and not only to tell. Of those that would wait in vain one tries, once a while.
    pub fn may_ask(&self) -> bool {
        if self.is_absent() {
            return false;
        }
        let (mut state, now) = (self.lock(), Instant::now());
        match state.next_trial {
            Some(next) if next > now => false,
            Some(_) => {
                state.next_trial = Some(now + TRIAL_INTERVAL);
                true
            }
            None => true,
        }
    }

    /// The session is over; the tool will know why, whenever it looks. The first reason stays.
    pub fn end(&self, why: End) {
        self.pulse.end(why);
    }
}

#[cfg(test)]
pub mod tests {
    use headwater_protocol::layout::Shape;
    use headwater_protocol::segment::{Recording, Segment};

    use super::*;

    const MS: i64 = 1_000_000;

    /// A tool that gives signs when it is told to, and what is known of it.
    pub fn played() -> (Segment, Presence) {
        let (tool, file) = Segment::create(Shape::of(2), Recording::default()).expect("a segment");
        tool.beat(monotonic_ns());
        let presence = Presence::of(Pulse::open(&file).expect("its first page"));
        (tool, presence)
    }

    #[test]
    fn a_tool_without_a_sign_for_a_second_is_absent_until_the_next_one() {
        let (tool, presence) = played();
        let start = monotonic_ns();
        tool.beat(start);
        let left = |at| presence.until_absent_at(start + at * MS).as_millis();
        assert_eq!([left(0), left(400), left(999), left(1000), left(9000)], [1000, 600, 1, 0, 0]);
        tool.beat(start + 9000 * MS);
        assert_eq!(left(9000), 1000);
    }

    #[test]
    fn clocks_may_differ() {
        for behind in [-86_400_000 * MS, 86_400_000 * MS] {
            let (tool, file) = Segment::create(Shape::of(2), Recording::default()).expect("a segment");
            let start = monotonic_ns();
            // It took half a second until the first sign was seen.
            tool.beat(start + behind - 500 * MS);
            let presence = Presence::of(Pulse::open(&file).expect("its first page"));
            tool.beat(start + behind + 2000 * MS);
            let left = |at| presence.until_absent_at(start + at * MS).as_millis();
            assert_eq!([left(2000), left(2900), left(3000)], [1000, 100, 0]);
        }
    }

    #[test]
    fn a_tool_is_given_up_when_it_has_been_absent_at_every_look_for_long_enough() {
        let (tool, presence) = played();
        let (start, start_ns) = (Instant::now(), monotonic_ns());
        let is_given_up =
            |at: i64| presence.is_given_up_at(start + Duration::from_millis(at.unsigned_abs()), start_ns + at * MS);
        assert!(!is_given_up(20_000), "nobody has asked for it");
        presence.watch();
        // As if the whole machine had stood still.
        assert!(!is_given_up(20_000));
        assert!(!is_given_up(20_000 + 3_900));
        assert!(is_given_up(20_000 + 4_200));
        tool.beat(start_ns + 24_500 * MS);
        assert!(!is_given_up(24_600), "it was late, but is there");
        assert!(!is_given_up(30_000));
        assert!(is_given_up(34_000));
    }

    #[test]
    fn of_all_threads_one_tries_whether_questions_are_answered_again() {
        let (tool, presence) = played();
        assert!(presence.may_ask() && presence.may_ask());
        presence.has_not_answered();
        assert!(!presence.may_ask() && presence.is_unresponsive());
        presence.lock().next_trial = Some(Instant::now());
        tool.beat(monotonic_ns());
        assert!(presence.may_ask() && !presence.may_ask());
        presence.is_heard();
        tool.beat(monotonic_ns());
        assert!(presence.may_ask() && presence.may_ask() && !presence.is_unresponsive());
    }
}
