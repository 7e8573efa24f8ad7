//! Who waits for which answer.
//!
//! Thousands of threads may wait at the same time. Each answer wakes the one that it is for: if it woke all, they would do nothing but look whose
//! it is.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use headwater_protocol::message::{Answer, RequestId};

/// Those who wait.
#[derive(Debug, Default)]
pub struct Waiting(Mutex<HashMap<RequestId, Waiter>>);

#[derive(Debug, Default)]
struct Waiter {
    answer: Option<Answer>,
    woken: Arc<Condvar>,
}

/// What there was after a wait.
#[derive(Debug)]
pub enum Waited {
    /// The answer.
    Answered(Answer),
    /// None yet.
    Not,
}

impl Waiting {
    fn lock(&self) -> MutexGuard<'_, HashMap<RequestId, Waiter>> {
        // What is guarded is valid between any two statements; a panic elsewhere must not take the target along.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Somebody is about to wait for the answer to a question.
    pub fn expect(&self, request: RequestId) {
        self.lock().insert(request, Waiter::default());
    }

    /// Nobody waits for it any more.
    pub fn forget(&self, request: RequestId) {
        self.lock().remove(&request);
    }

    /// Hands an answer over to who waits for it, if anybody does.
    pub fn answer(&self, request: RequestId, answer: Answer) {
        if let Some(waiter) = self.lock().get_mut(&request) {
            waiter.answer = Some(answer);
            waiter.woken.notify_one();
        }
    }

    /// Takes an answer, if it has come.
    pub fn take(&self, request: RequestId) -> Option<Answer> {
        self.lock().get_mut(&request)?.answer.take()
    }

    /// Takes an answer; if there is none yet, and nothing else to be done, waits for so long at most, or until all are woken.
    pub fn wait(&self, request: RequestId, time: impl FnOnce() -> Duration) -> Waited {
        let mut waiting = self.lock();
        let Some(waiter) = waiting.get_mut(&request) else { return Waited::Not };
        if let Some(answer) = waiter.answer.take() {
            return Waited::Answered(answer);
        }
        let woken = Arc::clone(&waiter.woken);
        // Asked with the lock held: who changes what it depends on wakes all behind that.
        let time = time();
        if !time.is_zero() {
            waiting = woken.wait_timeout(waiting, time).unwrap_or_else(PoisonError::into_inner).0;
        }
        match waiting.get_mut(&request).and_then(|waiter| waiter.answer.take()) {
            Some(answer) => Waited::Answered(answer),
            None => Waited::Not,
        }
    }

    /// Changes something that all who wait depend on, and wakes them.
    pub fn wake_all(&self, change: impl FnOnce()) {
        let waiting = self.lock();
        change();
        waiting.values().for_each(|waiter| waiter.woken.notify_one());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_wakes_the_one_that_waits_for_it() {
        const THREADS: usize = 50;
        let (waiting, woken) = (Waiting::default(), AtomicUsize::new(0));
        (0..THREADS).for_each(|request| waiting.expect(request as RequestId));
        thread::scope(|scope| {
            let wait = |request: usize| {
                let (waiting, woken) = (&waiting, &woken);
                scope.spawn(move || {
                    loop {
                        let waited = waiting.wait(request as RequestId, || LONG);
                        woken.fetch_add(1, Ordering::Relaxed);
                        if matches!(waited, Waited::Answered(_)) {
                            return;
                        }
                    }
                })
            };
            let threads: Vec<_> = (0..THREADS).map(wait).collect();
            for (request, thread) in threads.into_iter().enumerate() {
                waiting.answer(request as RequestId, Answer::Bytes(None));
                thread.join().expect("it has been answered");
            }
        });
        // Once each; a system may wake somebody for nothing now and then.
        assert!(woken.into_inner() < 2 * THREADS);
    }

    #[test]
    fn all_are_woken_when_there_will_be_no_answers() {
        let (waiting, over) = (Waiting::default(), AtomicBool::new(false));
        (0..10).for_each(|request| waiting.expect(request));
        thread::scope(|scope| {
            for request in 0..10 {
                let (waiting, over) = (&waiting, &over);
                let time = || if over.load(Ordering::Relaxed) { Duration::ZERO } else { LONG };
                scope.spawn(move || {
                    while !over.load(Ordering::Relaxed) {
                        drop(waiting.wait(request, time))
                    }
                });
            }
            waiting.wake_all(|| over.store(true, Ordering::Relaxed));
        });
    }

    #[test]
    fn an_answer_that_came_before_is_taken_and_one_for_nobody_is_dropped() {
        let waiting = Waiting::default();
        waiting.expect(1);
        waiting.answer(1, Answer::Bytes(None));
        waiting.answer(2, Answer::Bytes(None));
        assert!(matches!(waiting.wait(1, || LONG), Waited::Answered(Answer::Bytes(None))));
        waiting.forget(1);
        assert!(waiting.take(1).is_none() && waiting.take(2).is_none());
        assert!(matches!(waiting.wait(2, || LONG), Waited::Not));
    }
}
