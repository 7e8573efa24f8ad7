//! What the benchmarks share: timing, and tables.

use std::time::{Duration, Instant};

/// The fastest of several rounds: what the code takes when nothing else gets in its way.
pub fn fastest(rounds: usize, mut run: impl FnMut()) -> Duration {
    let mut times = (0..rounds).map(|_| {
        let start = Instant::now();
        run();
        start.elapsed()
    });
    let first = times.next().unwrap_or_default();
    times.fold(first, Duration::min)
}

/// Megabytes (10^6) a second.
pub fn rate(bytes: usize, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64()
}
