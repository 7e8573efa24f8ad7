//! Loops that threads are in: once their class is changed, HotSpot never compiles a call again that goes on in it. A loop that a thread does not leave
//! would be interpreted for good, tens of times as slow. So such classes are left alone, where the loop's own code is what runs, or what is compiled into it.
//!
//! No interface tells one call from the next of the same method. But what a thread begins with it calls once.

use std::collections::HashMap;

use headwater_protocol::message::RunningCall;
use headwater_protocol::{ClassId, ThreadId};

/// It is looked so often, if some thread may be in such a loop,
const LOOKS: usize = 8;
/// and in so many of these looks nothing was above the loop itself: its own code takes its time.
const LEAST_ON_TOP: usize = 3;
/// A look at more calls is the last: all threads are stopped for it.
const DEAR: usize = 20_000;

/// Each thread's calls, the outermost first.
pub(super) type Calls = Vec<(ThreadId, Vec<RunningCall>)>;

/// Whose a method is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Application,
    /// `java.lang.Thread`.
    Thread,
    Other,
}

/// What threads were doing at a moment.
#[derive(Debug)]
pub(super) struct Look {
    /// How many calls there were, of anybody's methods.
    calls: usize,
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
    /// All calls.
    pub(super) fn of(threads: Calls, owner: impl Fn(ClassId) -> Owner) -> Look {
        let calls = threads.iter().map(|(_, calls)| calls.len()).sum();
        let stack = |mut calls: Vec<RunningCall>| {
            let is_application = |call: &RunningCall| owner(call.class) == Owner::Application;
            let is_on_top = calls.last().is_some_and(|call| !call.is_native && is_application(call));
            let mut from_start = calls.iter().skip_while(|call| owner(call.class) == Owner::Thread);
            let is_from_start = from_start.next().is_some_and(is_application);
            calls.retain(is_application);
            Stack { calls, is_on_top, is_from_start }
        };
        Look { calls, threads: threads.into_iter().map(|(thread, calls)| (thread, stack(calls))).collect() }
    }

    /// Whether no thread is in any call.
    pub(super) fn is_empty(&self) -> bool {
        self.threads.values().all(|stack| stack.calls.is_empty())
    }

    /// The classes of methods that a thread is in now as it was then, be it in the same calls or in others.
    pub(super) fn same_as<'l>(&'l self, then: &'l Look) -> impl Iterator<Item = ClassId> + 'l {
        let both = self.threads.iter().filter_map(|(thread, now)| Some((now, then.threads.get(thread)?)));
        both.flat_map(|(now, then)| {
            let both = now.calls.iter().zip(&then.calls);
            both.take_while(|(now, then)| now == then).map(|(now, _)| now.class)
        })
    }
}

/// Looks at all threads, one after the other.
#[derive(Debug, Default)]
pub(super) struct Series(Vec<Look>);

impl Series {
    pub(super) fn add(&mut self, look: Look) {
        self.0.push(look);
    }

    /// Whether to look again: some thread may be in a loop.
    pub(super) fn is_worth_another(&self) -> bool {
        let is_cheap = self.0.last().is_some_and(|look| look.calls < DEAR);
        self.0.len() < LOOKS && is_cheap && self.began().any(|(_, on_top)| on_top > 0)
    }

    /// The classes in whose code threads run a loop.
    pub(super) fn looping(&self) -> Vec<ClassId> {
        self.began().filter(|(_, on_top)| *on_top >= LEAST_ON_TOP).map(|(class, _)| class).collect()
    }

    /// Of each thread the class of what it began with, and how often that was on top.
    fn began(&self) -> impl Iterator<Item = (ClassId, usize)> {
        let last = self.0.last().into_iter().flat_map(|last| &last.threads);
        last.filter(|(_, now)| now.is_from_start).filter_map(|(thread, now)| {
            let first = *now.calls.first()?;
            let is_on_top = |look: &&Look| {
                look.threads.get(thread).is_some_and(|stack| stack.is_on_top && stack.calls[..] == [first])
            };
            Some((first.class, self.0.iter().filter(is_on_top).count()))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of classes by these numbers.
    const THREAD: u64 = 7;
    const JDK: u64 = 8;
    const NATIVE: u64 = 9;

    fn looked(stack: &[u64]) -> Look {
        let call = |class: &u64| RunningCall { version: *class, class: ClassId(*class), is_native: *class == NATIVE };
        let owner = |class| match class {
            ClassId(THREAD) => Owner::Thread,
            ClassId(JDK) => Owner::Other,
            _ => Owner::Application,
        };
        Look::of(vec![(ThreadId(1), stack.iter().map(call).collect())], owner)
    }

    fn looping(looks: &[&[u64]]) -> Vec<ClassId> {
        let mut all = Series::default();
        looks.iter().for_each(|stack| all.add(looked(stack)));
        all.looping()
    }

    #[test]
    fn a_loop_is_what_a_thread_begins_with_and_is_on_top() {
        let (own, below): (&[u64], &[u64]) = (&[THREAD, THREAD, 5], &[THREAD, THREAD, 5, 6]);
        assert_eq!(looping(&[below, own, below, own, own]), [ClassId(5)]);
        assert_eq!(looping(&[own, below, own, below, below]), [], "two looks are no proof");
        assert_eq!(looping(&[&[5][..]; 3]), [ClassId(5)], "as `main`");
        assert_eq!(looping(&[&[THREAD, JDK, 5][..]; 8]), [], "a pool's thread, or a timer's, calls it again and again");
        assert_eq!(looping(&[&[5, 6][..]; 8]), [], "what it calls takes the time");
        assert_eq!(looping(&[&[5, JDK][..]; 8]), [], "it waits, perhaps");
        assert_eq!(looping(&[&[5, NATIVE][..]; 8]), [], "so it may here");
        assert_eq!(looping(&[&[THREAD, JDK][..]; 8]), [], "it is the JDK's");
    }

    #[test]
    fn it_is_looked_again_where_a_thread_may_be_in_a_loop() {
        let mut all = Series::default();
        all.add(looked(&[5, 6]));
        assert!(!all.is_worth_another());
        all.add(looked(&[5]));
        assert!(all.is_worth_another());
        all.add(Look { calls: DEAR, ..looked(&[5]) });
        assert!(!all.is_worth_another(), "all threads are stopped for it");
        (0..LOOKS).for_each(|_| all.add(looked(&[5])));
        assert!(!all.is_worth_another());
    }

    #[test]
    fn calls_of_the_same_methods_need_not_be_the_same_calls() {
        let (then, now) = (looked(&[1, 2, 4]), looked(&[1, 2, 5]));
        assert_eq!(now.same_as(&then).collect::<Vec<_>>(), [ClassId(1), ClassId(2)]);
        assert!(!now.is_empty() && looked(&[JDK]).is_empty());
    }
}
