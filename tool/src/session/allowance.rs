//! What a profile may take of the target at a time: how long the JVM is stopped, and how much code its compilers have to compile again.
//!
//! A hotswap discards what is compiled of its classes, and all code that has inlined them. So of a large program only as much is discarded as compilers
//! catch up with, and as the program can do without. Why so, and what it brings: docs/decisions/discarded-code.md.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use crate::callgraph::Discarded;
use crate::decode::Scheduled;

/// The JVM is stopped for such a part of the time, at most.
const PAUSED: f64 = 0.02;
/// What the time that a profile was announced to take allows may be taken at once, when it begins, for what is instrumented late is counted late. No
/// less than this, so small programs are never over the limit; and no more, whatever was announced.
const AT_ONCE: RangeInclusive<Duration> = Duration::from_secs(10)..=Duration::from_secs(20);
/// Programs that were compiled in less than this are fast again before anybody minds.
const SMALL: Duration = Duration::from_secs(3);
/// So long compilers may take to catch up with what is discarded at once, if each has as much of a processor as other threads.
const CATCHING_UP: Duration = Duration::from_secs(6);
/// What is discarded is so many times slower until then.
const SLOWER: f64 = 10.0;
/// So much of that time the program may lose at once,
const LOST: Duration = Duration::from_secs(1);
/// and as much again after this: a tenth of the time, and of what is still to be recorded.
const AGAIN_AFTER: Duration = Duration::from_secs(10);
/// Compiling a part of what is there again takes them so many times that part of all that they have done so far.
const AGAIN: f64 = 2.0;
/// Threads of a program that hardly runs may all stand in line, and do not tell how processors are had. So many stand there at any moment, where they do.
const IN_LINE: f64 = 0.1;
/// However scarce processors are, compilers have such a part of one, at least.
const LEAST_HAD: f64 = 0.01;
/// Roots, what somebody asks for, and a class by itself may be more than may be changed at once: so many times as much, at most, is waited for.
pub(super) const MOST_BEHIND: f64 = 2.0;
/// What had to wait for the limits is not instrumented in the rest of the recording: the JVM would be stopped for little.
const WORTH_WHILE: f64 = 0.75;

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
    /// What has to wait for longer than this would hardly be recorded,
    last: Option<Instant>,
    /// and this is when recording ends.
    ends: Option<Instant>,
    /// When what was told is seen to.
    pub(super) put_off: Option<Instant>,
}

/// Code that is to be compiled again.
#[derive(Clone, Copy, Debug)]
struct Changed {
    /// So long compilers would be at work for all there is; `None` where that does not matter.
    all: Option<Duration>,
    /// They were behind by such a part of what may be changed at once,
    behind: f64,
    /// at that moment.
    at: Instant,
}

/// How compilers have fared before anything was changed.
#[derive(Clone, Copy, Debug)]
pub struct CompilerTime {
    /// So many there are of those that compile what is hot.
    pub number: usize,
    /// What all have had of the processors since the program began.
    pub had: Duration,
    /// How the target's threads had processors
    pub threads: Scheduled,
    /// in this time.
    pub over: Duration,
}

/// What a hotswap takes, or several.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taking {
    pub(super) pause: Duration,
    /// What part it is of all code that may be discarded at once.
    pub(super) code: f64,
}

impl CompilerTime {
    /// How long they would be at work for all there is, if they have processors as other threads have.
    fn all(&self) -> Duration {
        let in_line = self.threads.queued_ns as f64 / self.over.as_nanos().max(1) as f64;
        let queued = self.threads.queued().filter(|_| in_line >= IN_LINE).unwrap_or(0.0);
        let had = self.number.max(1) as f64 * (1.0 - queued);
        self.had.mul_f64(AGAIN / had.max(LEAST_HAD))
    }
}

impl Changed {
    /// How long compilers are at work for that, and what the program loses meanwhile.
    fn takes(&self, of: Discarded) -> (Duration, Duration) {
        let takes = self.all.unwrap_or_default().mul_f64(of.code);
        (takes, takes.mul_f64(1.0 - 1.0 / (1.0 + (SLOWER - 1.0) * of.time)))
    }

    fn part(&self, of: Discarded) -> f64 {
        let (takes, lost) = self.takes(of);
        takes.div_duration_f64(CATCHING_UP).max(lost.div_duration_f64(LOST))
    }

    fn behind(&self, now: Instant) -> f64 {
        let caught_up = now.saturating_duration_since(self.at).div_duration_f64(AGAIN_AFTER);
        (self.behind - caught_up).max(0.0)
    }

    /// How long it is until such a part of what may be changed at once may be, or as much of it as may at `most`.
    fn wait(&self, part: f64, most: f64, now: Instant) -> Duration {
        let excess = self.behind(now) + part.min(most) - most;
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
            changed: Changed { all: None, behind: 0.0, at: now },
            exceeded: None,
            last: None,
            ends: None,
            put_off: None,
        }
    }

    /// Limits what code is discarded, as compilers have fared.
    pub(super) fn limit_code(&mut self, compilers: &CompilerTime) {
        self.changed.all = (compilers.had >= SMALL).then(|| compilers.all());
    }

    /// Recording begins, for so long; as long as it takes, if it is not said.
    pub(super) fn recording_for(&mut self, duration: Option<Duration>, now: Instant) {
        self.last = duration.map(|duration| now + duration.mul_f64(WORTH_WHILE));
        self.ends = duration.map(|duration| now + duration);
    }

    /// How long it may be stopped in all, before any time has passed.
    pub(super) fn paused_at_once(&self) -> Duration {
        self.announced.mul_f64(PAUSED)
    }

    /// Whether it is limited what code is discarded.
    pub(super) fn limits_code(&self) -> bool {
        self.changed.all.is_some()
    }

    /// What part that is of all that may be discarded at once.
    pub(super) fn part(&self, of: Discarded) -> f64 {
        self.changed.part(of)
    }

    /// How long compilers are at work for that, and what of its time the program loses meanwhile.
    pub(super) fn takes(&self, of: Discarded) -> (Duration, Duration) {
        self.changed.takes(of)
    }

    /// What part of all that may be changed at once may be by now.
    pub(super) fn room(&self, now: Instant) -> f64 {
        self.most(now) - self.changed.behind(now)
    }

    /// The same of a class by itself.
    pub(super) fn room_alone(&self, now: Instant) -> f64 {
        self.rest(now).map_or(MOST_BEHIND, |rest| rest.min(MOST_BEHIND))
    }

    /// What is worth it in the rest of the recording, if that is known.
    fn rest(&self, now: Instant) -> Option<f64> {
        Some(self.ends?.saturating_duration_since(now).div_duration_f64(AGAIN_AFTER))
    }

    fn most(&self, now: Instant) -> f64 {
        self.rest(now).map_or(1.0, |rest| rest.min(1.0))
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
        let wait = self.changed.wait(taking.code, self.most(now), now);
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
        !self.changed.wait(taking.code, self.most(now), now).is_zero()
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
        let mut allowance = Allowance::new(begun, Duration::ZERO);
        allowance.recording_for(Some(20 * second), begun);
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

    fn compilers(had_s: u64, queued: f64) -> CompilerTime {
        let queued_ns = (queued * 1e9) as u64;
        let threads = Scheduled { ran_ns: 1_000_000_000 - queued_ns, queued_ns };
        CompilerTime { number: 1, had: Duration::from_secs(had_s), threads, over: Duration::from_secs(1) }
    }

    fn limited(compilers: &CompilerTime, begun: Instant) -> Allowance {
        let mut allowance = Allowance::new(begun, Duration::from_secs(15));
        allowance.limit_code(compilers);
        allowance
    }

    #[test]
    fn of_a_large_program_little_code_is_discarded_at_once() {
        let part = |compilers: CompilerTime, code, time| {
            let part = limited(&compilers, Instant::now()).part(Discarded { code, time });
            (part * 100.0).round() / 100.0
        };
        let idle = compilers(30, 0.0);
        assert_eq!(part(idle, 0.1, 0.0), 1.0, "of a minute for all, six seconds");
        assert_eq!((part(idle, 0.05, 0.0), part(idle, 0.2, 0.0)), (0.5, 2.0));
        assert_eq!(part(compilers(30, 0.5), 0.05, 0.0), 1.0, "they have half of the processors");
        assert_eq!(part(CompilerTime { number: 6, ..idle }, 0.1, 0.0), 0.17);
        assert_eq!(part(idle, 0.05, 1.0), 2.7, "three seconds, nine tenths of which are lost");
        assert_eq!(part(idle, 0.05, 1.0 / 18.0), 1.0, "a third of three seconds");
        let hardly = CompilerTime { over: Duration::from_secs(20), ..compilers(30, 0.9) };
        assert_eq!(part(hardly, 0.1, 0.0), 1.0, "it hardly runs");
        assert_eq!(part(idle, 0.0, 1.0), 0.0, "nothing is compiled");
        assert_eq!(part(compilers(2, 0.9), 1.0, 1.0), 0.0, "a small program");
        assert!(part(compilers(30, 1.0), 0.001, 0.0) > 0.1, "nobody has a processor");
    }

    #[test]
    fn as_compilers_catch_up_more_is_changed() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let code = |code| Taking { pause: MS, code };
        let mut allowance = limited(&compilers(30, 0.0), begun);
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

    #[test]
    fn the_nearer_the_end_the_less_is_changed() {
        let begun = Instant::now();
        let at = |s: u64| begun + Duration::from_secs(s);
        let mut allowance = limited(&compilers(30, 0.0), begun);
        assert_eq!((allowance.room(begun), allowance.room_alone(begun)), (1.0, 2.0));
        allowance.recording_for(Some(Duration::from_secs(15)), begun);
        assert_eq!((allowance.room(begun), allowance.room_alone(begun)), (1.0, 1.5));
        allowance.take(Taking { pause: MS, code: 0.8 }, begun);
        assert_eq!(allowance.room(at(10)), 0.5);
        assert!(allowance.allows(Taking { pause: MS, code: 3.0 }, at(10)), "as much of it as is worth while");
        assert_eq!((allowance.room(at(16)), allowance.room_alone(at(16))), (0.0, 0.0));
    }
}
