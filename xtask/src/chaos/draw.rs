//! Random numbers that are the same for the same seed and run.

use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::time::Duration;

/// What one run draws.
#[derive(Debug)]
pub(super) struct Draw {
    seed: u64,
    run: u64,
    drawn: u64,
}

impl Draw {
    pub(super) fn new(seed: u64, run: u64) -> Draw {
        Draw { seed, run, drawn: 0 }
    }

    fn next(&mut self) -> u64 {
        self.drawn += 1;
        BuildHasherDefault::<DefaultHasher>::default().hash_one((self.seed, self.run, self.drawn))
    }

    /// Less than this.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// Once in so many times.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(super) fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[usize::try_from(self.below(of.len() as u64)).unwrap_or(0)]
    }

    /// Between two times.
    pub(super) fn between(&mut self, least_ms: u64, most_ms: u64) -> Duration {
        Duration::from_millis(least_ms + self.below(most_ms - least_ms + 1))
    }

    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(count).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_draws_the_same_again_and_another_draws_otherwise() {
        let drawn = |seed, run| {
            let mut draw = Draw::new(seed, run);
            (0..20).map(|_| draw.below(1000)).collect::<Vec<_>>()
        };
        assert_eq!(drawn(1, 2), drawn(1, 2));
        assert_ne!(drawn(1, 2), drawn(1, 3));
        assert_ne!(drawn(1, 2), drawn(2, 2));
    }
}
