//! How long the JVM has been at safepoints, by its own account.
//!
//! What a retransformation takes its own thread is more than what it takes all others: new code is verified first, while they run. JVMTI does not tell
//! the two apart, but HotSpot keeps a counter of all time at safepoints among its [performance data](super::perf_data).

use std::sync::OnceLock;

use super::perf_data;
use super::vm_structs::{Description, Memory};

/// The counter, and that of its unit.
const COUNTERS: [&str; 2] = ["sun.rt.safepointTime", "sun.os.hrt.frequency"];

/// What the latter says on Linux (`os::elapsed_frequency`).
const ON_LINUX: u64 = 1_000_000_000;

static CLOCK: OnceLock<Option<Clock>> = OnceLock::new();

/// The counter of this JVM.
#[derive(Debug)]
struct Clock {
    memory: Memory,
    address: u64,
    ticks_a_second: u64,
}

/// All time at safepoints so far, in nanoseconds; `None` where the JVM does not count it.
pub fn nanos() -> Option<u64> {
    CLOCK.get()?.as_ref()?.nanos()
}

/// Finds the counter, once for all sessions. Whether there is one.
pub(super) fn find(memory: &Memory, described: &Description) -> bool {
    CLOCK.get_or_init(|| Clock::find(memory, described)).is_some()
}

impl Clock {
    fn nanos(&self) -> Option<u64> {
        let ticks = self.memory.word(self.address)?;
        u64::try_from(u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_a_second)).ok()
    }

    fn find(memory: &Memory, described: &Description) -> Option<Clock> {
        let [address, frequency] = perf_data::find(memory, described, COUNTERS)?;
        let ticks_a_second = match frequency {
            Some(frequency) => memory.word(frequency)?,
            // A JVM that is just starting creates it after it has told agents that it is ready.
            None => ON_LINUX,
        };
        if ticks_a_second == 0 {
            return None;
        }
        let clock = Clock { memory: memory.clone(), address: address?, ticks_a_second };
        // Nobody was stopped for longer than the machine runs.
        let uptime = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec;
        (clock.nanos()? / 1_000_000_000 <= u64::try_from(uptime).ok()?).then_some(clock)
    }
}
