//! Where threads run, by looks at the stacks of those that do.
//!
//! A thread tells its stack at the next place where it can (a handshake): at a loop's or a method's end. What is compiled into a caller, and has no loop, is its caller's
//! then. But none is lost, as they are where HotSpot walks the stack of a thread that it has stopped anywhere; and nothing in the program changes for it.
//!
//! Why so, and at what cost: docs/decisions/times.md.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use headwater_protocol::message::{MethodRef, Walked, WalkedThread};
use jni::sys::jmethodID;

use crate::jni_env::Jni;
use crate::jvmti::{Error, MethodNumber, ThreadState, jthread};
use crate::target::Target;

/// Calls on a stack that are told, the innermost.
const DEPTH: usize = 1024;
/// Of more threads that run, so many are looked at, any of them; and of those in native code, most of which wait there.
const MOST_RUNNING: usize = 8;
const MOST_NATIVE: usize = 4;
/// Looking takes such a part of the time at most; most of it is waited for the thread that is asked. What one look alone takes is a collection's or a queue's.
const PART: u32 = 10;
/// More are not told of one command.
const MOST_STACKS: usize = 20_000;

/// Looks that are being made, or none.
#[derive(Debug, Default)]
pub struct Walk(Mutex<Option<State>>);

#[derive(Debug)]
struct State {
    period: Duration,
    next: Instant,
    end: Instant,
    /// What the latest look took.
    took: Duration,
    random: u64,
    /// Where each method is among those that are told; nowhere, where nobody can tell of it.
    methods: HashMap<MethodNumber, Option<u32>>,
    stacks: HashMap<Vec<u32>, u32>,
    walked: Walked,
}

impl Walk {
    fn lock(&self) -> MutexGuard<'_, Option<State>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks so often in the mean from now on, for so long at most.
    pub fn begin(&self, period: Duration, longest: Duration) {
        let now = Instant::now();
        *self.lock() = Some(State {
            period,
            next: now,
            end: now + longest,
            took: Duration::ZERO,
            random: unix_ns(SystemTime::now()).cast_unsigned() | 1,
            methods: HashMap::new(),
            stacks: HashMap::new(),
            walked: Walked::default(),
        });
    }

    /// What was seen; it is not looked any more.
    pub fn end(&self) -> Walked {
        let Some(state) = self.lock().take() else { return Walked::default() };
        let mut stacks: Vec<(Vec<u32>, u32)> = state.stacks.into_iter().collect();
        stacks.sort_unstable_by_key(|(_, place)| *place);
        Walked { stacks: stacks.into_iter().map(|(stack, _)| stack).collect(), ..state.walked }
    }

    /// When to look next.
    pub fn next_look(&self) -> Option<Instant> {
        self.lock().as_ref().map(|state| state.next)
    }

    /// Looks, if it is time.
    pub fn look_if_due(&self, jni: Jni, target: &Target) {
        let mut walking = self.lock();
        let start = Instant::now();
        let Some(state) = walking.as_mut().filter(|state| state.next <= start) else { return };
        // Who does not come back for what was seen gets none of it.
        if start >= state.end || state.look(jni, target).is_err() {
            *walking = None;
            return;
        }
        let took = start.elapsed();
        state.walked.looks += 1;
        state.walked.took_ns += took.as_nanos() as u64;
        state.next = Instant::now() + state.until_next(took);
    }
}

impl State {
    /// From 0 to 1.
    fn draw(&mut self) -> f64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// After a look that took so long.
    fn until_next(&mut self, took: Duration) -> Duration {
        let often = took.min(std::mem::replace(&mut self.took, took));
        // Calls that take as long as a period would be seen in one place.
        self.period.mul_f64(0.5 + self.draw()).max(often * PART)
    }

    fn look(&mut self, jni: Jni, target: &Target) -> Result<(), Error> {
        let (mut running, mut native) = (Vec::new(), Vec::new());
        for thread in target.jvmti.threads()? {
            match target.jvmti.state(thread) {
                ThreadState::Runnable => running.push(thread),
                ThreadState::InNative => native.push(thread),
                ThreadState::Other => jni.delete_local(thread),
            }
        }
        for (threads, most, is_native) in [(running, MOST_RUNNING, false), (native, MOST_NATIVE, true)] {
            let stands_for = u16::try_from(((threads.len() + most / 2) / most).max(1)).unwrap_or(u16::MAX);
            for (place, thread) in self.chosen(threads, most).into_iter().enumerate() {
                if place < most {
                    self.look_at(jni, target, thread, (is_native, stands_for));
                }
                jni.delete_local(thread);
            }
        }
        Ok(())
    }

    /// So many of them, any ones, come first.
    fn chosen(&mut self, mut threads: Vec<jthread>, most: usize) -> Vec<jthread> {
        for place in 0..threads.len().min(most) {
            let others = threads.len() - place;
            threads.swap(place, place + ((self.draw() * others as f64) as usize).min(others - 1));
        }
        threads
    }

    fn look_at(&mut self, jni: Jni, target: &Target, thread: jthread, (is_native, stands_for): (bool, u16)) {
        // One that has ended has none, and nor has this one.
        let calls = target.jvmti.stack(thread, DEPTH).unwrap_or_default();
        let at_ns = unix_ns(SystemTime::now());
        if calls.is_empty() || self.stacks.len() >= MOST_STACKS {
            return;
        }
        let is_cut = calls.len() == DEPTH;
        let walked = &mut self.walked.methods;
        let mut place = |method: jmethodID| {
            let known = self.methods.entry(MethodNumber(method));
            *known.or_insert_with(|| told(target.classes.reference(jni, method)?, walked))
        };
        let stack: Vec<u32> = calls.into_iter().filter_map(&mut place).collect();
        let next = self.stacks.len() as u32;
        let stack = *self.stacks.entry(stack).or_insert(next);
        self.walked.threads.push(WalkedThread { at_ns, stack, is_cut, is_native, stands_for });
    }
}

fn told(method: MethodRef, methods: &mut Vec<MethodRef>) -> Option<u32> {
    methods.push(method);
    u32::try_from(methods.len() - 1).ok()
}

fn unix_ns(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_threads_any_are_chosen_and_all_as_often() {
        let walk = Walk::default();
        walk.begin(Duration::from_millis(4), Duration::from_secs(1));
        let mut walking = walk.lock();
        let state = walking.as_mut().expect("it has begun");
        let mut chosen = [0_u32; 20];
        for _ in 0..2_000 {
            let threads = (1..=20).map(|thread: usize| thread as jthread).collect();
            let all = state.chosen(threads, 5);
            assert_eq!(all.len(), 20);
            all.into_iter().take(5).for_each(|thread| chosen[thread as usize - 1] += 1);
        }
        assert!(chosen.iter().all(|times| (350..650).contains(times)), "{chosen:?}");
        assert_eq!(state.chosen(Vec::new(), 5).len(), 0);
    }

    #[test]
    fn looks_that_take_long_are_fewer_but_not_for_one_that_waited_for_a_collection() {
        let walk = Walk::default();
        let period = Duration::from_millis(4);
        walk.begin(period, Duration::from_secs(1));
        let mut walking = walk.lock();
        let state = walking.as_mut().expect("it has begun");
        let mut after = |ms| state.until_next(Duration::from_millis(ms));
        let usual = period / 2..period * 3 / 2;
        assert!(usual.contains(&after(0)) && usual.contains(&after(200)) && usual.contains(&after(0)));
        assert!(usual.contains(&after(3)));
        assert_eq!([after(5), after(7), after(2)].map(|next| next.as_millis()), [30, 50, 20]);
    }

    #[test]
    fn who_begins_again_has_nothing_of_before_and_who_has_not_begun_has_nothing() {
        let walk = Walk::default();
        assert_eq!((walk.end(), walk.next_look()), (Walked::default(), None));
        walk.begin(Duration::from_millis(4), Duration::from_secs(1));
        assert!(walk.next_look().is_some_and(|next| next <= Instant::now()));
        assert_eq!((walk.end(), walk.next_look()), (Walked::default(), None));
    }
}
