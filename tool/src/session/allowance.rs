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
/// Processors are scarce where threads stand in line for a larger part of the time in which they could run, and so many of them at a time;
const IN_LINE: (f64, f64) = (0.2, 0.5);
/// or where they want so much of the last processor.
const LAST: f64 = 0.5;
/// So long compilers may take to catch up with what is changed at once, if each has as much of a processor as other threads.
const CATCHING_UP: Duration = Duration::from_millis(1_500);
/// Compiling again what a changed class discards takes them such a part of all that they have done so far. Of a Spring service on JDK 25, a hotswap of 101
/// classes discarded 1,689 methods of 21,000 that had been compiled.
const OF_A_CLASS: f64 = 1.0 / 1_200.0;
/// However scarce they are.
const FEWEST_AT_ONCE: f64 = 16.0;
/// As many may be changed again after this time.
const AGAIN_AFTER: Duration = Duration::from_secs(10);

/// What may be taken, and what was.
#[derive(Clone, Copy, Debug)]
pub(super) struct Allowance {
    begun: Instant,
    /// What this time allows the JVM may be stopped before it has passed.
    announced: Duration,
    paused: Duration,
    changed: Changed,
    /// When something was left over the last time.
    pub(super) exceeded: Option<Instant>,
    /// What has to wait for longer than this would hardly be recorded.
    pub(super) last: Option<Instant>,
    /// When what was told is seen to.
    pub(super) put_off: Option<Instant>,
}

/// Classes whose code is to be compiled again.
#[derive(Clone, Copy, Debug)]
struct Changed {
    /// So many may be changed at once; `None` where processors are not scarce.
    at_once: Option<f64>,
    /// Compilers were so many behind,
    behind: f64,
    /// at that moment.
    at: Instant,
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
    /// What compilers have had since the program began, if that is known,
    pub compiling: Option<Duration>,
    /// and how many they are.
    pub compilers: usize,
}

/// What a hotswap takes, or several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taking {
    pub(super) pause: Duration,
    pub(super) classes: usize,
}

impl Scarcity {
    /// How many processors they wanted, and how many threads stood in line.
    pub(super) fn wanted(&self) -> (f64, f64) {
        let over_ns = self.over.as_nanos().max(1) as f64;
        ((self.threads.ran_ns + self.threads.queued_ns) as f64 / over_ns, self.threads.queued_ns as f64 / over_ns)
    }

    /// How many classes compilers catch up with; `None` where processors are not scarce.
    fn classes(&self) -> Option<f64> {
        let (wanted, in_line) = self.wanted();
        let (queued, compiling) = (self.threads.queued()?, self.compiling.filter(|compiling| !compiling.is_zero())?);
        let is_scarce = queued >= IN_LINE.0 && in_line >= IN_LINE.1 || wanted >= self.processors as f64 - LAST;
        let compiled = CATCHING_UP.mul_f64(self.compilers as f64 * (1.0 - queued));
        let classes = compiled.div_duration_f64(compiling) / OF_A_CLASS;
        is_scarce.then(|| classes.max(FEWEST_AT_ONCE).floor())
    }
}

impl Changed {
    fn behind(&self, now: Instant) -> f64 {
        let caught_up = now.saturating_duration_since(self.at).div_duration_f64(AGAIN_AFTER);
        (self.behind - self.at_once.unwrap_or_default() * caught_up).max(0.0)
    }

    /// How long it is until so many more may be changed, or as many of them as may at once.
    fn wait(&self, classes: usize, now: Instant) -> Duration {
        let Some(at_once) = self.at_once.filter(|_| classes > 0) else { return Duration::ZERO };
        let excess = self.behind(now) + (classes as f64).min(at_once) - at_once;
        AGAIN_AFTER.mul_f64(excess.max(0.0) / at_once)
    }

    fn add(&mut self, classes: usize, now: Instant) {
        if self.at_once.is_some() {
            (self.behind, self.at) = (self.behind(now) + classes as f64, now);
        }
    }
}

impl Allowance {
    /// For a profile that was announced to take so long.
    pub(super) fn new(now: Instant, announced: Duration) -> Allowance {
        Allowance {
            begun: now,
            announced: announced.clamp(*AT_ONCE.start(), *AT_ONCE.end()),
            paused: Duration::ZERO,
            changed: Changed { at_once: None, behind: 0.0, at: now },
            exceeded: None,
            last: None,
            put_off: None,
        }
    }

    /// Processors are as scarce as that.
    pub(super) fn limit_classes(&mut self, scarcity: &Scarcity) {
        self.changed.at_once = scarcity.classes();
    }

    /// How long it may be stopped in all, before any time has passed.
    pub(super) fn paused_at_once(&self) -> Duration {
        self.announced.mul_f64(PAUSED)
    }

    /// How many classes may be changed at once, if that is limited.
    pub(super) fn classes_at_once(&self) -> Option<usize> {
        self.changed.at_once.map(|classes| classes as usize)
    }

    /// So much was taken.
    pub(super) fn take(&mut self, taken: Taking, now: Instant) {
        self.paused += taken.pause;
        self.changed.add(taken.classes, now);
    }

    /// When so much may be taken, if not at once.
    fn due_later(&self, taking: Taking, now: Instant) -> Option<Instant> {
        let needed = (self.paused + taking.pause).div_f64(PAUSED);
        let for_pauses = (needed > self.announced).then(|| self.begun + needed);
        let wait = self.changed.wait(taking.classes, now);
        let for_classes = (!wait.is_zero()).then(|| now + wait);
        for_pauses.max(for_classes)
    }

    /// When so much may be taken.
    pub(super) fn due(&self, taking: Taking, now: Instant) -> Instant {
        self.due_later(taking, now).unwrap_or(self.begun)
    }

    /// Whether so much may be taken now.
    pub(super) fn allows(&self, taking: Taking, now: Instant) -> bool {
        self.due_later(taking, now).is_none_or(|due| due <= now && self.is_worth_while(now))
    }

    /// Whether it is compilers that so many classes have to wait for.
    pub(super) fn waits_for_compilers(&self, classes: usize, now: Instant) -> bool {
        !self.changed.wait(classes, now).is_zero()
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
        allowance.take(pause(150 * MS), begun);
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
            now = now.max(allowance.due(pause(45 * MS), now));
            allowance.take(pause(45 * MS), now);
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
        allowance.take(pause(200 * MS), begun);
        assert!(allowance.allows(pause(40 * MS), begun + 15 * second));
        assert!(!allowance.allows(pause(40 * MS), begun + 16 * second));
    }

    #[test]
    fn a_pause_longer_than_all_that_is_allowed_has_its_time_too() {
        let allowance = Allowance::new(Instant::now(), Duration::ZERO);
        assert_eq!(allowance.due(pause(600 * MS), allowance.begun) - allowance.begun, Duration::from_secs(30));
    }

    fn scarcity(wanted_ms: u64, queued_ms: u64, compiling_s: u64) -> Scarcity {
        let [ran_ns, queued_ns] = [wanted_ms - queued_ms, queued_ms].map(|ms| ms * 1_000_000);
        Scarcity {
            threads: Scheduled { ran_ns, queued_ns },
            over: Duration::from_secs(1),
            processors: 2,
            compiling: Some(Duration::from_secs(compiling_s)),
            compilers: 2,
        }
    }

    #[test]
    fn where_processors_are_scarce_as_many_classes_are_changed_as_compilers_catch_up_with() {
        let begun = Instant::now();
        let at_once = |scarcity: Scarcity| {
            let mut allowance = Allowance::new(begun, Duration::from_secs(15));
            allowance.limit_classes(&scarcity);
            allowance.classes_at_once()
        };
        assert_eq!(at_once(scarcity(1_100, 50, 35)), None, "there is a processor to spare");
        assert_eq!(at_once(scarcity(80, 48, 35)), None, "threads that are woken together stand in line for a moment");
        assert_eq!(at_once(scarcity(2_000, 1_540, 35)), Some(23), "others have them");
        assert_eq!(at_once(scarcity(2_100, 340, 35)), Some(86), "the program itself has them");
        let more = |compilers| Scarcity { compilers, processors: 64, ..scarcity(64_000, 9_600, 35) };
        assert_eq!((at_once(more(2)), at_once(more(20))), (Some(87), Some(874)));
        assert_eq!(at_once(scarcity(2_000, 1_540, 1)), Some(827), "of a small program little has to be compiled again");
        assert_eq!(at_once(scarcity(2_000, 1_999, 300)), Some(16));
        assert_eq!(at_once(Scarcity { compiling: None, ..scarcity(2_000, 1_540, 35) }), None);
        assert_eq!(at_once(Scarcity { threads: Scheduled::default(), ..scarcity(2_000, 0, 35) }), None);
    }

    #[test]
    fn as_compilers_catch_up_more_classes_are_changed() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let classes = |classes| Taking { pause: MS, classes };
        let mut allowance = Allowance { last: Some(at(100)), ..Allowance::new(begun, Duration::from_secs(15)) };
        allowance.limit_classes(&scarcity(2_000, 1_500, 30));
        assert!(allowance.allows(classes(30), at(20)) && !allowance.waits_for_compilers(30, at(20)));
        allowance.take(classes(30), at(20));
        assert!(!allowance.allows(classes(1), at(20)) && allowance.waits_for_compilers(1, at(20)));
        assert_eq!(allowance.due(classes(15), at(20)), at(25));
        assert!(allowance.allows(classes(15), at(25)) && !allowance.allows(classes(16), at(25)));
        assert_eq!(allowance.due(classes(400), at(20)), at(30), "no more than may be at once is waited for");
        // However long nothing was changed.
        assert!(allowance.allows(classes(30), at(90)));
        allowance.take(classes(30), at(90));
        assert!(!allowance.allows(classes(1), at(90)));
    }
}
