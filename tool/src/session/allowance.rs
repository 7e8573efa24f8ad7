//! What a profile may take of the target at a time: how long the JVM is stopped, and how much code its compilers have to compile again.
//!
//! A hotswap discards what is compiled of its classes, and of all code that has inlined them. Where threads stand in line for processors, so do the
//! compilers, and the threads that interpret meanwhile: so much slower, that methods take long to become hot again. So only as many classes are
//! changed there as compilers catch up with. Why so, and what it brings: docs/decisions/scarce-processors.md.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crate::decode::Scheduled;

/// The JVM is stopped for such a part of the time, at most.
const PAUSED: f64 = 0.02;
/// What the time that a profile was announced to take allows may be taken at once, when it begins, for what is instrumented late is counted late. No
/// less than this, so small programs are never over the limit; and no more, whatever was announced.
const AT_ONCE: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(20);
/// Processors are scarce where threads stand in line for a larger part of the time in which they could run,
const IN_LINE: f64 = 0.2;
/// or want so much of the last processor.
const LAST: f64 = 0.5;
/// So long compilers may take to catch up with what is changed at once, if they have as much of a processor as other threads.
const CATCHING_UP: Duration = Duration::from_secs(3);
/// Compiling again what a changed class discards takes them such a part of all that they have done so far. Of a Spring service on JDK 25, a hotswap of 101
/// classes discarded 1,689 methods of 21,000 that had been compiled.
const OF_A_CLASS: f64 = 1.0 / 1_200.0;
/// However crowded it is.
const FEWEST_AT_ONCE: f64 = 16.0;
/// As many may be changed again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What may be taken, and what was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    begun: Instant,
    /// What this time allows may be taken before it has passed.
    at_once: Duration,
    paused: Duration,
    changed: usize,
    /// So many classes at once; infinite where processors are not scarce.
    at_once_classes: f64,
    /// When something was left over the last time.
    pub(super) exceeded: Option<Instant>,
    /// What has to wait for longer than this would hardly be recorded.
    pub(super) last: Option<Instant>,
    /// When what was told is seen to.
    pub(super) put_off: Option<Instant>,
}

/// How the target's threads had processors before anything was changed.
#[derive(Clone, Copy, Debug)]
pub struct Scarcity {
    /// All of them together,
    pub threads: Scheduled,
    /// in this time,
    pub over: Duration,
    /// of so many processors.
    pub processors: usize,
    /// What compilers have had since the program began.
    pub compiling: Duration,
}

impl Scarcity {
    /// How many processors they wanted.
    pub(super) fn wanted(&self) -> f64 {
        (self.threads.ran_ns + self.threads.queued_ns) as f64 / self.over.as_nanos().max(1) as f64
    }

    /// How many classes may be changed at once.
    fn classes(&self) -> f64 {
        let Some(queued) = self.threads.queued() else { return f64::INFINITY };
        if queued < IN_LINE && self.wanted() < self.processors as f64 - LAST {
            return f64::INFINITY;
        }
        let of_a_class = self.compiling.mul_f64(OF_A_CLASS);
        (CATCHING_UP.mul_f64(1.0 - queued).div_duration_f64(of_a_class)).max(FEWEST_AT_ONCE)
    }
}

/// What a hotswap takes, or several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taking {
    pub(super) pause: Duration,
    pub(super) classes: usize,
}

impl Allowance {
    /// For a profile that was announced to take so long.
    pub(super) fn new(now: Instant, announced: Duration) -> Allowance {
        let at_once = announced.clamp(*AT_ONCE.start(), *AT_ONCE.end());
        Allowance {
            begun: now,
            at_once,
            paused: Duration::ZERO,
            changed: 0,
            at_once_classes: f64::INFINITY,
            exceeded: None,
            last: None,
            put_off: None,
        }
    }

    /// Processors are as scarce as that.
    pub(super) fn crowded(&mut self, scarcity: &Scarcity) {
        self.at_once_classes = scarcity.classes();
    }

    /// How long it may be stopped in all, before any time has passed.
    pub(super) fn paused_at_once(&self) -> Duration {
        self.at_once.mul_f64(PAUSED)
    }

    /// How many classes may be changed by then.
    pub(super) fn changed_at_once(&self) -> usize {
        self.at_once_classes as usize
    }

    /// Whether so many more classes are more than compilers catch up with.
    pub(super) fn is_too_much(&self, classes: usize) -> bool {
        (self.changed + classes) as f64 > self.at_once_classes
    }

    /// How many classes a batch may have now.
    pub(super) fn batch(&self, now: Instant) -> usize {
        let passed = AGAIN_AFTER.max(now.saturating_duration_since(self.begun));
        let allowed = (self.at_once_classes * passed.div_duration_f64(AGAIN_AFTER)) as usize;
        // A few are not worth a pause.
        allowed.saturating_sub(self.changed).max(self.changed_at_once())
    }

    /// So much was taken.
    pub(super) fn take(&mut self, taken: Taking) {
        self.paused += taken.pause;
        self.changed += taken.classes;
    }

    /// When so much may be taken.
    pub(super) fn due(&self, taking: Taking) -> Instant {
        let for_pauses = (self.paused + taking.pause).div_f64(PAUSED);
        let for_classes = AGAIN_AFTER.mul_f64((self.changed + taking.classes) as f64 / self.at_once_classes);
        match (for_pauses <= self.at_once, for_classes <= AGAIN_AFTER) {
            (true, true) => self.begun,
            (true, false) => self.begun + for_classes,
            (false, true) => self.begun + for_pauses,
            (false, false) => self.begun + for_pauses.max(for_classes),
        }
    }

    /// Whether so much may be taken now.
    pub(super) fn allows(&self, taking: Taking, now: Instant) -> bool {
        let due = self.due(taking);
        due == self.begun || due <= now && self.is_worth_while(now)
    }

    /// Whether what would be changed then would be recorded for long enough.
    pub(super) fn is_worth_while(&self, at: Instant) -> bool {
        self.last.is_none_or(|last| at <= last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn pause(pause: Duration) -> Taking {
        Taking { pause, classes: 1 }
    }

    #[test]
    fn what_ten_seconds_allow_may_be_taken_at_once() {
        let begun = Instant::now();
        let mut allowance = Allowance::new(begun, Duration::from_secs(1));
        allowance.take(pause(150 * MS));
        assert!(allowance.allows(pause(50 * MS), begun));
        assert!(!allowance.allows(pause(51 * MS), begun));
    }

    #[test]
    fn what_the_announced_time_allows_may_be_taken_at_once() {
        let begun = Instant::now();
        let allows = |announced_s, stopped| {
            Allowance::new(begun, Duration::from_secs(announced_s)).allows(pause(stopped), begun)
        };
        assert!(allows(15, 300 * MS));
        assert!(!allows(15, 301 * MS));
        assert!(allows(3_600, 400 * MS), "the JVM is stopped for no more than that");
        assert!(!allows(3_600, 401 * MS));
    }

    #[test]
    fn pauses_are_a_fiftieth_of_the_time_in_the_long_run() {
        let begun = Instant::now();
        let mut allowance = Allowance::new(begun, Duration::ZERO);
        let mut now = begun;
        while now < begun + Duration::from_secs(60) {
            now = now.max(allowance.due(pause(45 * MS)));
            allowance.take(pause(45 * MS));
        }
        let part = allowance.paused.as_secs_f64() / (now - begun).as_secs_f64();
        assert!((0.018..=0.0201).contains(&part), "{part}");
    }

    #[test]
    fn what_would_hardly_be_recorded_is_not_instrumented() {
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        let mut allowance = Allowance { last: Some(begun + 15 * second), ..Allowance::new(begun, Duration::ZERO) };
        assert!(allowance.allows(pause(200 * MS), begun + 20 * second), "it may be taken at once");
        allowance.take(pause(200 * MS));
        assert!(allowance.allows(pause(40 * MS), begun + 15 * second));
        assert!(!allowance.allows(pause(40 * MS), begun + 16 * second));
    }

    #[test]
    fn a_pause_longer_than_all_that_is_allowed_has_its_time_too() {
        let allowance = Allowance::new(Instant::now(), Duration::ZERO);
        assert_eq!(allowance.due(pause(600 * MS)) - allowance.begun, Duration::from_secs(30));
    }

    fn scarcity(wanted_ms: u64, queued_ms: u64, compiling_s: u64) -> Scarcity {
        let [ran_ns, queued_ns] = [wanted_ms - queued_ms, queued_ms].map(|ms| ms * 1_000_000);
        let threads = Scheduled { ran_ns, queued_ns };
        Scarcity { threads, over: Duration::from_secs(1), processors: 2, compiling: Duration::from_secs(compiling_s) }
    }

    #[test]
    fn where_processors_are_scarce_as_many_classes_are_changed_as_compilers_catch_up_with() {
        let begun = Instant::now();
        let at_once = |scarcity: Scarcity| {
            let mut allowance = Allowance::new(begun, Duration::from_secs(15));
            allowance.crowded(&scarcity);
            let batch = allowance.batch(begun);
            assert!(allowance.allows(Taking { pause: MS, classes: batch }, begun));
            assert!(batch == usize::MAX || !allowance.allows(Taking { pause: MS, classes: batch + 1 }, begun));
            batch
        };
        assert_eq!(at_once(scarcity(1_100, 50, 35)), usize::MAX, "there is a processor to spare");
        assert_eq!(at_once(scarcity(2_000, 1_540, 35)), 23, "others have them");
        assert_eq!(at_once(scarcity(2_100, 340, 35)), 86, "the program itself has them");
        assert_eq!(at_once(scarcity(2_000, 1_540, 1)), 828, "of a small program little has to be compiled again");
        assert_eq!(at_once(scarcity(2_000, 1_540, 0)), usize::MAX);
        assert_eq!(at_once(scarcity(2_000, 1_999, 300)), 16);
        let unknown = Scarcity { threads: Scheduled::default(), ..scarcity(2_000, 0, 35) };
        assert_eq!(at_once(unknown), usize::MAX);
    }

    #[test]
    fn as_compilers_catch_up_more_classes_are_changed() {
        let begun = Instant::now();
        let second = Duration::from_secs(1);
        let mut allowance = Allowance::new(begun, 15 * second);
        allowance.crowded(&scarcity(2_000, 1_500, 30));
        allowance.take(Taking { pause: MS, classes: 30 });
        assert_eq!(allowance.batch(begun), 30, "as many as are worth a pause");
        assert_eq!(allowance.due(Taking { pause: MS, classes: 30 }), begun + 20 * second);
        assert_eq!(allowance.batch(begun + 30 * second), 60);
    }
}
