//! Why there is nothing to propose, and what to do then.

use super::held::By;
use super::seen::Seen;
use crate::report::units::{plural, time};

/// Of a processor: a program whose Java code takes less does nothing worth a profile, where the JVM takes no more than that for itself: looking at it
/// takes some.
const IDLE: f64 = 0.01;
const JVMS: f64 = 0.1;
/// And so little Java code says nothing.
const STILL: f64 = 0.001;
/// So much of its CPU time in one place is the reason.
const MOST: f64 = 0.5;

/// Why no method could be named, of a JVM that was sampled for so long.
pub(super) fn why(seen: &Seen, by: By, seconds: f64) -> String {
    let used = || time(seen.process_ns);
    if by == By::Alloc && !seen.has_allocations {
        return "nothing is known of allocations, which the flight recorder tells of from JDK 16 on".to_owned();
    }
    if is_idle(seen, seconds) {
        return format!(
            "the program is idle ({} of CPU time, {}). Give it work, a request or a job, and ask again meanwhile, or look until some comes, with -d \
             60s; `headwater threads` shows what its threads wait for",
            used(),
            plural(seen.still as u64, "thread that only waits", "threads that only wait")
        );
    }
    if by == By::Wait && seen.whole.wait_ns == 0 {
        return "no thread waited for anything but work. Ask by CPU time".to_owned();
    }
    if seen.jvms_ns as f64 >= MOST * seen.process_ns as f64 {
        return format!(
            "{} of its {} of CPU time are the JVM's own: it compiles, or collects garbage. `headwater events --gc` tells of collections, `headwater \
             sample` of its threads",
            time(seen.jvms_ns),
            used()
        );
    }
    format!(
        "its {} of CPU time lie in the JDK's code, or in native code, alone. `headwater sample` shows where; look for longer with -d",
        used()
    )
}

/// Whether so little Java code ran that what it was is chance.
pub(super) fn is_still(seen: &Seen, seconds: f64) -> bool {
    (seen.whole.cpu_ns as f64) < STILL * seconds * 1e9
}

/// Whether hardly anything ran.
pub(super) fn is_idle(seen: &Seen, seconds: f64) -> bool {
    (seen.whole.cpu_ns as f64) < IDLE * seconds * 1e9 && (seen.process_ns as f64) < JVMS * seconds * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::roots::seen::testing::{Stack, seen};

    #[test]
    fn the_reason_says_what_to_do() {
        const SECOND: u64 = 1_000_000_000;
        let of = |by: By, stacks: &[Stack<'_>]| why(&seen(by, stacks), by, 5.0);
        let busy: Stack<'_> = (&["java.util.Arrays.sort"], [4 * SECOND, 0, 0, 9]);
        let idle: Stack<'_> = (&["java.lang.Thread.run"], [1_000, 0, 5 * SECOND, 0]);
        for (by, stack, reason) in [
            (By::All, idle, "the program is idle (1.000 us of CPU time, 1 thread that only waits)"),
            (
                By::All,
                (&["[JVM: GC Thread]"][..], [4 * SECOND, 0, 0, 0]),
                "4.000 s of its 4.000 s of CPU time are the JVM's own",
            ),
            (By::Cpu, busy, "its 4.000 s of CPU time lie in the JDK's code"),
            (By::Wait, busy, "no thread waited for anything but work"),
        ] {
            let why = of(by, &[stack]);
            assert!(why.starts_with(reason), "{why}");
        }
    }
}
