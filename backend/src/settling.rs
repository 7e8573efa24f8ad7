//! Calls in code that has just been compiled, which in JDKs up to 22 are slow until the next safepoint.
//!
//! A hotswap discards compiled code, and what is compiled instead resolves its virtual calls anew. HotSpot up to JDK 22 cannot change such a
//! call's target and what it expects there in one go while others run it. So until the next safepoint the call takes a detour through a stub of
//! its own (`ICStub`; JDK-8322630 did away with them), and a program of small virtual calls is three times as slow. A safepoint comes with every
//! garbage collection, and once a second if stubs wait for one, so a profile of a second was of nothing else. Hence the agent asks
//! for some after each hotswap: soon at first, because hot code is compiled soon, and then at growing intervals, so that what
//! is compiled at any moment waits for a small part of the time since the hotswap.
//!
//! Why so, and at what cost: docs/decisions/safepoints-after-hotswaps.md.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::jni_env::Jni;
use crate::jvmti::Jvmti;

/// The first JDK whose calls take no detours.
const FIRST_WITHOUT: u32 = 23;
/// From a hotswap to the first safepoint, and between two at the least.
const SHORTEST: Duration = Duration::from_millis(10);
/// Later, such a part of the time since the hotswap is between two.
const PART: u32 = 16;
/// So long after a hotswap there are none any more: the JVM has its own, once a second.
const LONGEST: Duration = Duration::from_secs(8);
/// What they take is a hundredth of the time at the most: threads may be slow to reach a safepoint.
const COST: u32 = 100;
/// But for so much, because any thread may have to wait for a processor now and then.
const FREE: Duration = Duration::from_millis(20);

/// When the next safepoint is to be.
#[derive(Debug)]
pub struct Settling {
    is_needed: bool,
    schedule: Mutex<Schedule>,
}

#[derive(Debug)]
struct Schedule {
    /// The latest hotswap.
    since: Instant,
    due: Option<Instant>,
    /// When the latest one was over.
    last: Instant,
    /// What they have taken, less a hundredth of the time since.
    debt: Duration,
}

impl Settling {
    /// That of this JVM.
    pub fn of(jvmti: Jvmti) -> Settling {
        let version = jvmti.system_property("java.vm.specification.version");
        let feature = version.and_then(|version| version.parse::<u32>().ok());
        let now = Instant::now();
        Settling {
            is_needed: feature.is_none_or(|feature| feature < FIRST_WITHOUT),
            schedule: Mutex::new(Schedule::at(now)),
        }
    }

    /// Code has been discarded.
    pub fn begin(&self) {
        if self.is_needed {
            self.lock().begin(Instant::now());
        }
    }

    /// When the agent's thread is to have it; `None` while none is due.
    pub fn next(&self) -> Option<Instant> {
        self.lock().due
    }

    /// Requests a safepoint, if it is time. On the agent's own thread.
    pub fn settle_if_due(&self, jvmti: Jvmti, jni: Jni) {
        let start = Instant::now();
        if self.lock().take(start) {
            // Where that fails, the JVM's own are to be waited for.
            let _ = jvmti.safepoint(jni);
            self.lock().had(start, Instant::now());
        }
    }

    /// Requests safepoints whenever it is time, for so long, or until all is over.
    pub fn settle(&self, jvmti: Jvmti, jni: Jni, time: Duration, is_over: impl Fn() -> bool) {
        let end = Instant::now() + time;
        while let Some(next) = self.next().filter(|next| *next <= end && !is_over()) {
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            self.settle_if_due(jvmti, jni);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Schedule {
    fn at(now: Instant) -> Schedule {
        Schedule { since: now, due: None, last: now, debt: Duration::ZERO }
    }

    fn begin(&mut self, now: Instant) {
        self.since = now;
        self.plan(now + SHORTEST);
    }

    /// Whether one is due; it is none any more.
    fn take(&mut self, now: Instant) -> bool {
        self.due.take_if(|due| *due <= now).is_some()
    }

    fn had(&mut self, start: Instant, end: Instant) {
        let paid = start.saturating_duration_since(self.last) / COST;
        self.debt = self.debt.saturating_sub(paid) + (end - start);
        self.last = end;
        self.plan(end + SHORTEST.max((end - self.since) / PART));
    }

    /// Has one at that time, or when it may be had after what the others took; if that is soon enough.
    fn plan(&mut self, at: Instant) {
        let at = at.max(self.last + self.debt.saturating_sub(FREE) * COST);
        if at <= self.since + LONGEST {
            // One that is due already is not put off, however many hotswaps follow each other.
            self.due = Some(self.due.map_or(at, |due| due.min(at)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Safepoints up to `end`, and what the n-th takes; after a hotswap every so often.
    fn safepoints(takes: impl Fn(usize) -> Duration, hotswap_every: Option<Duration>, end: Duration) -> Vec<Duration> {
        let start = Instant::now();
        let mut schedule = Schedule::at(start);
        schedule.begin(start);
        let mut next_hotswap = hotswap_every.map(|every| start + every);
        let mut moments = Vec::new();
        while let Some(due) = schedule.due.filter(|due| *due <= start + end) {
            if let Some(hotswap) = next_hotswap.filter(|hotswap| *hotswap <= due) {
                schedule.begin(hotswap);
                next_hotswap = hotswap_every.map(|every| hotswap + every);
                continue;
            }
            assert!(!schedule.take(due - Duration::from_nanos(1)), "not before it is due");
            assert!(schedule.take(due) && !schedule.take(due), "once");
            schedule.had(due, due + takes(moments.len()));
            moments.push(due - start);
        }
        moments
    }

    const SHORT: Duration = Duration::from_micros(100);
    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn what_is_compiled_waits_for_a_small_part_of_the_time_since_the_hotswap() {
        let moments = safepoints(|_| SHORT, None, MINUTE);
        assert_eq!(moments[0], SHORTEST);
        for pair in moments.windows(2) {
            assert!(pair[1] - pair[0] <= pair[1] / 10 + SHORTEST + SHORT, "{moments:?}");
        }
        let last = moments[moments.len() - 1];
        assert!(
            (Duration::from_secs(7)..Duration::from_secs(9)).contains(&last),
            "then there are the JVM's own: {last:?}"
        );
        assert!(moments.len() < 100, "{}", moments.len());
    }

    #[test]
    fn threads_that_are_slow_to_stand_still_do_it_rarely() {
        for took in [Duration::from_millis(3), Duration::from_secs(1)] {
            let moments = safepoints(|_| took, None, 100 * MINUTE);
            assert!(moments[moments.len() - 1] <= LONGEST, "{moments:?}");
            for (nth, moment) in moments.iter().enumerate().skip(1) {
                let spent = took * nth as u32;
                assert!(spent <= *moment / COST + FREE + took, "{spent:?} of {moments:?}");
            }
        }
        let alternating = |nth| if nth % 2 == 0 { Duration::from_millis(50) } else { SHORT };
        let moments = safepoints(alternating, None, MINUTE);
        assert!(moments[1] - moments[0] >= Duration::from_secs(3), "{moments:?}");
    }

    #[test]
    fn one_that_waited_for_a_processor_does_not_count() {
        let takes = |nth| if nth == 3 { 100 * SHORT } else { SHORT };
        let moments = safepoints(takes, None, MINUTE);
        assert!(moments[4] - moments[3] <= SHORTEST + 100 * SHORT, "{moments:?}");
    }

    #[test]
    fn hotswaps_that_follow_each_other_neither_put_it_off_nor_make_it_dear() {
        let every = Duration::from_millis(3);
        let moments = safepoints(|_| SHORT, Some(every), Duration::from_secs(1));
        assert!((80..=100).contains(&moments.len()), "{}", moments.len());
        let moments = safepoints(|_| Duration::from_millis(1), Some(every), Duration::from_secs(1));
        assert!((25..=35).contains(&moments.len()), "{}", moments.len());
    }
}
