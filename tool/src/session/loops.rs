//! Loops that threads are in: once their class is changed, HotSpot never compiles a call again that goes on in it. A loop that a thread does not leave
//! would be interpreted for good, tens of times as slow. So such classes are left alone, where the loop's own code is what runs.
//!
//! No interface tells one call from the next of the same method. But what a thread begins with it calls once; and a method that has no compiled code but
//! for its loops is entered by the interpreter alone, which counts: if that number has not changed, nobody has called it again.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use headwater_protocol::message::RunningCall;
use headwater_protocol::{ClassId, ThreadId};

/// Of other calls than what a thread begins with: one that goes on for less will end soon.
const LASTING: Duration = Duration::from_millis(500);
/// So many calls of the JDK's lie below what a thread begins with, at most: `Thread.run`, `Thread.runWith`.
const BELOW: usize = 2;
/// So often it is looked, if some thread may be in such a loop,
const LOOKS: usize = 8;
/// and in so many of these looks nothing was above the loop itself: its own code takes its time.
const LEAST_ON_TOP: usize = 3;

/// Each thread's calls, the outermost first.
pub(super) type Calls = Vec<(ThreadId, Vec<RunningCall>)>;

/// What threads were doing at a moment.
#[derive(Debug)]
pub(super) struct Look {
    at: Instant,
    threads: HashMap<ThreadId, Stack>,
}

/// A thread's calls of the application's methods.
#[derive(Debug)]
struct Stack {
    /// The outermost first.
    calls: Vec<RunningCall>,
    /// The last of them is the thread's innermost call, and runs.
    is_on_top: bool,
    /// The first of them is what the thread begins with.
    is_from_start: bool,
}

impl Look {
    /// All calls, of which some are the application's.
    pub(super) fn of(at: Instant, threads: Calls, is_application: impl Fn(ClassId) -> bool) -> Look {
        let stack = |mut calls: Vec<RunningCall>| {
            let is_on_top = calls.last().is_some_and(|call| !call.is_native && is_application(call.class));
            let is_from_start = calls.iter().take(BELOW + 1).any(|call| is_application(call.class));
            calls.retain(|call| is_application(call.class));
            Stack { calls, is_on_top, is_from_start }
        };
        Look { at, threads: threads.into_iter().map(|(thread, calls)| (thread, stack(calls))).collect() }
    }

    /// Whether no thread is in any call.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.values().all(|stack| stack.calls.is_empty())
    }

    /// The classes of methods that a thread is in now as it was then, be it in the same calls or in others.
    pub(super) fn same_as<'l>(&'l self, then: &'l Look) -> impl Iterator<Item = ClassId> + 'l {
        let both = self.threads.iter().filter_map(|(thread, now)| Some((now, then.threads.get(thread)?)));
        both.flat_map(|(now, then)| now.calls[..now.alike(then)].iter().map(|call| call.class))
    }
}

impl Stack {
    /// How many calls are of the same methods, from the outermost on.
    fn alike(&self, then: &Stack) -> usize {
        let both = self.calls.iter().zip(&then.calls);
        both.take_while(|(now, then)| (now.version, now.class) == (then.version, then.class)).count()
    }

    /// The innermost call that has gone on since then, which is that long ago.
    fn lasting(&self, then: &Stack, since: Duration) -> Option<usize> {
        let is_same_call = |at: usize| {
            let [now, then] = [self, then].map(|stack| stack.calls[at].counted);
            now.is_some() && now == then && since >= LASTING
        };
        (0..self.alike(then)).rev().find(|at| *at == 0 && self.is_from_start || is_same_call(*at))
    }
}

/// The looks at all threads, the first of which was the earliest that could be.
#[derive(Debug, Default)]
pub(super) struct Series(Vec<Look>);

impl Series {
    pub(super) fn add(&mut self, look: Look) {
        self.0.push(look);
    }

    /// Whether to look again: some thread may be in a loop.
    pub(super) fn is_worth_another(&self) -> bool {
        self.0.len() <= LOOKS && self.lasting().any(|(_, on_top)| on_top > 0)
    }

    /// The classes in whose code threads run a loop.
    pub(super) fn looping(&self) -> Vec<ClassId> {
        self.lasting().filter(|(_, on_top)| *on_top >= LEAST_ON_TOP).map(|(class, _)| class).collect()
    }

    /// Of each thread the class of its innermost call that has lasted, and how often it was on top.
    fn lasting(&self) -> impl Iterator<Item = (ClassId, usize)> {
        let ends = self.0.first().zip(self.0.last());
        ends.into_iter().flat_map(|(first, last)| {
            last.threads.iter().filter_map(|(thread, now)| {
                let at = now.lasting(first.threads.get(thread)?, last.at - first.at)?;
                let is_on_top = |look: &&Look| {
                    let stack = look.threads.get(thread);
                    stack.is_some_and(|stack| stack.is_on_top && stack.calls.len() == at + 1)
                };
                Some((now.calls[at].class, self.0[1..].iter().filter(is_on_top).count()))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOP: u64 = 2;

    /// `main`, which has called a method of class 2, which has called others; by class and how often that was called.
    fn look(at: Instant, seconds: u64, inner: &[(u64, Option<u32>)]) -> Look {
        let call = |(class, counted): (u64, Option<u32>)| RunningCall {
            version: class,
            class: ClassId(class),
            is_native: class == 9,
            counted,
        };
        // Three calls of the JDK's are below, as in a pool's threads.
        let calls = [(8, None), (8, None), (8, None), (1, Some(1))].iter().chain(inner).map(|it| call(*it)).collect();
        // What the JDK has, 8.
        Look::of(at + Duration::from_secs(seconds), vec![(ThreadId(1), calls)], |class| class != ClassId(8))
    }

    fn looping(looks: &[&[(u64, Option<u32>)]]) -> Vec<ClassId> {
        let start = Instant::now();
        let mut all = Series::default();
        looks.iter().enumerate().for_each(|(at, inner)| all.add(look(start, at as u64, inner)));
        all.looping()
    }

    #[test]
    fn a_loop_is_a_call_that_goes_on_and_is_on_top() {
        let in_loop: &[(u64, Option<u32>)] = &[(LOOP, Some(3))];
        let below: &[(u64, Option<u32>)] = &[(LOOP, Some(3)), (4, Some(7))];
        let in_jdk: &[(u64, Option<u32>)] = &[(LOOP, Some(3)), (8, Some(7))];
        let in_native: &[(u64, Option<u32>)] = &[(LOOP, Some(3)), (9, Some(7))];
        let again: &[(u64, Option<u32>)] = &[(LOOP, Some(4))];
        let compiled: &[(u64, Option<u32>)] = &[(LOOP, None)];
        assert_eq!(looping(&[below, in_loop, below, in_loop, in_loop]), [ClassId(LOOP)]);
        assert_eq!(looping(&[in_loop, below, in_loop, in_loop, below]), [], "two looks are no proof");
        assert_eq!(looping(&[in_loop, below, below, below, below]), [], "what it calls takes the time");
        assert_eq!(looping(&[in_loop, in_jdk, in_jdk, in_jdk, in_jdk]), [], "it waits, perhaps");
        assert_eq!(looping(&[in_loop, in_native, in_native, in_native, in_native]), [], "so it may here");
        assert_eq!(looping(&[in_loop, in_loop, in_loop, in_loop, again]), [], "it has been called again");
        assert_eq!(looping(&[compiled, compiled, compiled, compiled, compiled]), [], "nobody knows");
        assert_eq!(looping(&[&[], &[], &[], &[], &[]]), [ClassId(1)], "the outermost one");
        let start = Instant::now();
        let mut soon = Series::default();
        (0..5).for_each(|_| soon.add(look(start, 0, in_loop)));
        assert_eq!(soon.looping(), [], "it may end");
        assert!(!soon.is_worth_another());
    }

    #[test]
    fn what_a_thread_begins_with_it_calls_once() {
        let looping = |below: usize, class: u64| {
            let call =
                |class: u64| RunningCall { version: class, class: ClassId(class), is_native: false, counted: None };
            let calls: Vec<RunningCall> = std::iter::repeat_n(8, below).chain([class]).map(call).collect();
            let look = || Look::of(Instant::now(), vec![(ThreadId(1), calls.clone())], |class| class != ClassId(8));
            let mut all = Series::default();
            (0..5).for_each(|_| all.add(look()));
            all.looping()
        };
        assert_eq!((looping(0, 5), looping(2, 5)), (vec![ClassId(5)], vec![ClassId(5)]));
        assert_eq!((looping(3, 5), looping(0, 8)), (vec![], vec![]), "a pool's thread, one of the JDK's");
    }

    #[test]
    fn calls_of_the_same_methods_need_not_be_the_same_calls() {
        let start = Instant::now();
        let then = look(start, 0, &[(LOOP, Some(3)), (4, None)]);
        let now = look(start, 1, &[(LOOP, Some(4)), (5, None)]);
        assert_eq!(now.same_as(&then).collect::<Vec<_>>(), [ClassId(1), ClassId(LOOP)]);
        assert!(!now.is_empty());
    }
}
