//! What the operating system says of the current thread, and its clocks.

use rustix::time::{ClockId, clock_gettime};

/// CPU time of the current thread, in ns. Touches nothing but the clock, and cannot fail.
pub fn cpu_time_ns() -> i64 {
    nanos_of(ClockId::ThreadCPUTime)
}

/// What `System.nanoTime()` says.
pub fn monotonic_ns() -> i64 {
    nanos_of(ClockId::Monotonic)
}

fn nanos_of(clock: ClockId) -> i64 {
    let now = clock_gettime(clock);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// The operating system's number of the current thread, in our pid namespace.
pub fn os_thread() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}
