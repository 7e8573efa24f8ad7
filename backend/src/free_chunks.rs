//! Threads that wait for a free chunk.
//!
//! The tool says nothing when it has given a chunk back, so somebody has to look. One of those who wait does, for all of them: if thousands looked
//! through thousands of chunks, each a few thousand times a second, nobody would get to anything else, the tool least of all.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks. The tool reads about every millisecond.
const NAP: Duration = Duration::from_micros(200);
/// Looking takes such a part of the time at most.
const PART: u32 = 5;

/// Those who wait.
#[derive(Debug, Default)]
pub struct FreeChunks {
    state: Mutex<State>,
    found: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_looked: bool,
    waiting: usize,
    /// So many chunks were free when they were last looked at, and nobody has been sent for them.
    left: usize,
}

impl FreeChunks {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a chunk until then. `look` says how many are free, as far as so many; `None` if there will be none. Whether one was.
    pub fn wait(&self, deadline: Instant, look: impl Fn(usize) -> Option<usize>) -> bool {
        let mut state = self.lock();
        state.waiting += 1;
        let found = loop {
            if state.left > 0 {
                state.left -= 1;
                break true;
            }
            if Instant::now() >= deadline {
                break false;
            }
            if state.is_looked {
                let left = deadline.saturating_duration_since(Instant::now());
                state = self.found.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let wanted = state.waiting;
            state.is_looked = true;
            drop(state);
            let (start, found) = (Instant::now(), look(wanted));
            if found == Some(0) {
                std::thread::sleep(NAP.max(start.elapsed() * PART));
            }
            state = self.lock();
            state.is_looked = false;
            match found {
                Some(found) => state.left = found,
                None => break false,
            }
        };
        state.waiting -= 1;
        // One to look in this one's place, and others for what is left.
        (0..=state.left.min(state.waiting)).for_each(|_| self.found.notify_one());
        found
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    #[test]
    fn one_looks_for_all_and_as_many_go_as_there_are_chunks() {
        const THREADS: usize = 40;
        let (chunks, free, looking) = (FreeChunks::default(), AtomicUsize::new(0), AtomicUsize::new(0));
        let look = |most: usize| {
            assert_eq!(looking.fetch_add(1, Ordering::SeqCst), 0, "two look at the same time");
            let found = free.load(Ordering::SeqCst).min(most);
            looking.fetch_sub(1, Ordering::SeqCst);
            Some(found)
        };
        let take = || {
            // Another may have been faster.
            while chunks.wait(later(), look) {
                let taken = free.try_update(Ordering::SeqCst, Ordering::SeqCst, |free| free.checked_sub(1));
                if taken.is_ok() {
                    return;
                }
            }
            panic!("it waited in vain");
        };
        thread::scope(|scope| {
            (0..THREADS).for_each(|_| drop(scope.spawn(take)));
            for _ in 0..THREADS / 4 {
                free.fetch_add(4, Ordering::SeqCst);
                thread::yield_now();
            }
        });
        assert_eq!(free.into_inner(), 0);
        assert_eq!(chunks.lock().waiting, 0);
    }

    #[test]
    fn nobody_waits_longer_than_he_wants_or_for_what_will_not_come() {
        let chunks = FreeChunks::default();
        assert!(!chunks.wait(Instant::now(), |_| Some(1)));
        assert!(!chunks.wait(Instant::now() + NAP, |_| Some(0)));
        thread::scope(|scope| (0..10).for_each(|_| drop(scope.spawn(|| assert!(!chunks.wait(later(), |_| None))))));
    }
}
