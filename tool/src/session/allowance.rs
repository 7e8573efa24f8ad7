//! What a profile may take of the target at a time: how long the JVM is stopped, and how much code its compilers have to compile again.
//!
//! A hotswap discards what is compiled of its classes, and of all code that has inlined them. Where threads stand in line for processors, so do the
//! compilers, and the threads that interpret meanwhile: so much slower, that methods take long to become hot again. So only as much code is
//! discarded there as compilers catch up with, and as the program can do without. Why so, and what it brings: docs/decisions/scarce-processors.md.

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
const CATCHING_UP: Duration = Duration::from_secs(6);
/// What is discarded is some ten times slower until then. So long the program may stand still for that, if what runs in such code did.
const STANDING_STILL: Duration = Duration::from_millis(400);
/// Compiling again what a changed class discards takes them such a part of all that they have done so far. Of a Spring service on JDK 25, 26 classes took
/// them 5 s of 31.
const OF_A_CLASS: f64 = 1.0 / 160.0;
/// However scarce they are;
const FEWEST_AT_ONCE: usize = 16;
/// and compilers have such a part of one, at least.
const LEAST_HAD: f64 = 0.01;
/// Roots, and what somebody asks for, may be more than may be changed at once: so many times as much is waited for, at most.
const MOST_BEHIND: f64 = 2.0;
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
    /// So long compilers are at work for one of them; `None` where processors are not scarce.
    of_a_class: Option<Duration>,
    /// They were behind by such a part of what may be changed at once,
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
    /// What part it is of all code that may be discarded at once.
    pub(super) code: f64,
}

impl Scarcity {
    /// How many processors they wanted, and how many threads stood in line.
    pub(super) fn wanted(&self) -> (f64, f64) {
        let over_ns = self.over.as_nanos().max(1) as f64;
        ((self.threads.ran_ns + self.threads.queued_ns) as f64 / over_ns, self.threads.queued_ns as f64 / over_ns)
    }

    /// How long compilers are at work for a class that is changed; `None` where processors are not scarce.
    fn of_a_class(&self) -> Option<Duration> {
        let (wanted, in_line) = self.wanted();
        let (queued, compiling) = (self.threads.queued()?, self.compiling.filter(|compiling| !compiling.is_zero())?);
        let is_scarce = queued >= IN_LINE.0 && in_line >= IN_LINE.1 || wanted >= self.processors as f64 - LAST;
        let had = (self.compilers as f64 * (1.0 - queued)).max(LEAST_HAD);
        is_scarce.then(|| compiling.mul_f64(OF_A_CLASS / had))
    }
}

impl Changed {
    fn classes_at_once(&self) -> Option<usize> {
        Some((CATCHING_UP.div_duration_f64(self.of_a_class?) as usize).max(FEWEST_AT_ONCE))
    }

    fn part(&self, classes: usize, share: f64) -> f64 {
        let (Some(of_a_class), Some(at_once)) = (self.of_a_class, self.classes_at_once()) else { return 0.0 };
        let stands_still = of_a_class.mul_f64(classes as f64 * share);
        (classes as f64 / at_once as f64).max(stands_still.div_duration_f64(STANDING_STILL))
    }

    fn behind(&self, now: Instant) -> f64 {
        let caught_up = now.saturating_duration_since(self.at).div_duration_f64(AGAIN_AFTER);
        (self.behind - caught_up).max(0.0)
    }

    /// How long it is until such a part of what may be changed at once may be, or as much of it as may at once.
    fn wait(&self, part: f64, now: Instant) -> Duration {
        let excess = self.behind(now) + part.min(1.0) - 1.0;
        if part > 0.0 { AGAIN_AFTER.mul_f64(excess.max(0.0)) } else { Duration::ZERO }
    }

    fn add(&mut self, part: f64, now: Instant) {
        (self.behind, self.at) = ((self.behind(now) + part).min(MOST_BEHIND), now);
    }
}

impl Allowance {
    /// For a profile that was announced to take so long.
    pub(super) fn new(now: Instant, announced: Duration) -> Allowance {
        Allowance {
            begun: now,
            announced: announced.clamp(*AT_ONCE.start(), *AT_ONCE.end()),
            paused: Duration::ZERO,
            changed: Changed { of_a_class: None, behind: 0.0, at: now },
            exceeded: None,
            last: None,
            put_off: None,
        }
    }

    /// Processors are as scarce as that.
    pub(super) fn limit_code(&mut self, scarcity: &Scarcity) {
        self.changed.of_a_class = scarcity.of_a_class();
    }

    /// How long it may be stopped in all, before any time has passed.
    pub(super) fn paused_at_once(&self) -> Duration {
        self.announced.mul_f64(PAUSED)
    }

    /// How many classes may be changed at once, if that is limited.
    pub(super) fn classes_at_once(&self) -> Option<usize> {
        self.changed.classes_at_once()
    }

    /// What part of all that may be changed at once so many classes are, if such a part of the time below roots is in code that is discarded for them.
    pub(super) fn part(&self, classes: usize, share: f64) -> f64 {
        self.changed.part(classes, share)
    }

    /// What part of all that may be changed at once may be by now.
    pub(super) fn room(&self, now: Instant) -> f64 {
        1.0 - self.changed.behind(now)
    }

    /// So much was taken.
    pub(super) fn take(&mut self, taken: Taking, now: Instant) {
        self.paused += taken.pause;
        self.changed.add(taken.code, now);
    }

    /// When so much may be taken, if not at once.
    fn due_later(&self, taking: Taking, now: Instant) -> Option<Instant> {
        let needed = (self.paused + taking.pause).div_f64(PAUSED);
        let for_pauses = (needed > self.announced).then(|| self.begun + needed);
        let wait = self.changed.wait(taking.code, now);
        let for_code = (!wait.is_zero()).then(|| now + wait);
        for_pauses.max(for_code)
    }

    /// When so much may be taken.
    pub(super) fn due(&self, taking: Taking, now: Instant) -> Instant {
        self.due_later(taking, now).unwrap_or(self.begun)
    }

    /// Whether so much may be taken now.
    pub(super) fn allows(&self, taking: Taking, now: Instant) -> bool {
        self.due_later(taking, now).is_none_or(|due| due <= now && self.is_worth_while(now))
    }

    /// Whether it is compilers that this has to wait for.
    pub(super) fn waits_for_compilers(&self, taking: Taking, now: Instant) -> bool {
        !self.changed.wait(taking.code, now).is_zero()
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
        Taking { pause, code: 0.0 }
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

    fn limited(scarcity: &Scarcity, begun: Instant) -> Allowance {
        let mut allowance = Allowance::new(begun, Duration::from_secs(15));
        allowance.limit_code(scarcity);
        allowance
    }

    #[test]
    fn where_processors_are_scarce_as_many_classes_are_changed_as_compilers_catch_up_with() {
        let at_once = |scarcity: Scarcity| limited(&scarcity, Instant::now()).classes_at_once();
        assert_eq!(at_once(scarcity(1_100, 50, 35)), None, "there is a processor to spare");
        assert_eq!(at_once(scarcity(80, 48, 35)), None, "threads that are woken together stand in line for a moment");
        assert_eq!(at_once(scarcity(2_000, 1_300, 31)), Some(21), "others have them");
        assert_eq!(at_once(scarcity(2_100, 340, 31)), Some(51), "the program itself has them");
        let more = |compilers| Scarcity { compilers, processors: 64, ..scarcity(64_000, 9_600, 31) };
        assert_eq!((at_once(more(2)), at_once(more(20))), (Some(52), Some(526)));
        assert_eq!(at_once(scarcity(2_000, 1_540, 1)), Some(441), "of a small program little has to be compiled again");
        assert_eq!(at_once(scarcity(2_000, 1_999, 300)), Some(16));
        assert_eq!(at_once(Scarcity { compiling: None, ..scarcity(2_000, 1_540, 35) }), None);
        assert_eq!(at_once(Scarcity { threads: Scheduled::default(), ..scarcity(2_000, 0, 35) }), None);
    }

    #[test]
    fn the_longer_compilers_take_the_less_of_the_time_is_in_what_they_have_to_compile() {
        let limit = limited(&scarcity(2_000, 1_300, 31), Instant::now());
        let fit = |classes, share| limit.part(classes, share) <= 1.0;
        assert!(fit(21, 0.0) && !fit(22, 0.0));
        assert!(fit(21, 0.06) && !fit(21, 0.08), "six seconds");
        assert!(fit(5, 0.28) && !fit(5, 0.3));
        assert!(fit(1, 1.0), "one of them");
        let small = limited(&scarcity(2_000, 1_300, 1), Instant::now());
        assert!(small.part(40, 1.0) <= 1.0 && small.part(60, 1.0) > 1.0);
        assert_eq!(limited(&scarcity(1_100, 50, 35), Instant::now()).part(1_000, 1.0), 0.0, "there is no limit");
    }

    #[test]
    fn as_compilers_catch_up_more_is_changed() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let code = |code| Taking { pause: MS, code };
        let limited = limited(&scarcity(2_000, 1_500, 30), begun);
        let mut allowance = Allowance { last: Some(at(100)), ..limited };
        assert!(allowance.allows(code(0.75), at(20)) && !allowance.waits_for_compilers(code(0.75), at(20)));
        allowance.take(code(0.75), at(20));
        assert!(allowance.allows(code(0.25), at(20)) && allowance.room(at(20)) == 0.25);
        assert!(!allowance.allows(code(0.5), at(20)) && allowance.waits_for_compilers(code(0.5), at(20)));
        assert_eq!(allowance.due(code(0.5), at(20)), at(20) + Duration::from_millis(2_500));
        assert!(allowance.allows(code(0.0), at(20)), "it discards nothing");
        // What is more than may be at once waits until they are done, and is changed then as far as it may be.
        assert!(!allowance.allows(code(5.0), at(27)) && allowance.allows(code(5.0), at(28)));
        // However long nothing was changed.
        assert!(allowance.allows(code(1.0), at(90)));
        allowance.take(code(50.0), at(90));
        assert_eq!(allowance.due(code(1.0), at(90)), at(110), "it is not waited for for long");
    }
}
