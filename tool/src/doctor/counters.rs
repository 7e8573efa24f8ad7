//! Which of the kernel's counters a target can probably have (`--count`). Only the agent can try them; what is looked at here is what usually decides.

use std::fs;
use std::path::Path;

use super::{Check, ok};
use crate::attach::TargetHost;

/// What decides.
struct Kernel {
    /// `kernel.perf_event_paranoid`.
    paranoid: Option<i32>,
    /// Whether the machine has counters of its processor.
    has_processor: bool,
    /// Whether the target may count whatever is set.
    is_capable: bool,
}

/// No precondition of attaching.
pub(super) fn counters(host: &TargetHost) -> Check {
    const SYS_ADMIN: u32 = 21;
    const PERFMON: u32 = 38;
    let capabilities = host.status().map_or(0, |status| status.capabilities);
    let kernel = Kernel {
        paranoid: fs::read_to_string("/proc/sys/kernel/perf_event_paranoid")
            .ok()
            .and_then(|text| text.trim().parse().ok()),
        has_processor: has_processor(Path::new("/sys/bus/event_source/devices")),
        is_capable: [SYS_ADMIN, PERFMON].into_iter().any(|bit| capabilities >> bit & 1 != 0),
    };
    ok("kernel counters", kernel.finding())
}

/// By the names that processors' counters have there.
fn has_processor(devices: &Path) -> bool {
    let names = fs::read_dir(devices).into_iter().flatten().flatten().map(|device| device.file_name());
    names.into_iter().any(|name| ["cpu", "armv"].iter().any(|it| name.to_string_lossy().starts_with(it)))
}

impl Kernel {
    fn finding(&self) -> String {
        /// Not by `perf_event_open` alone.
        const ALWAYS: &str = "--count page-faults,context-switches";
        const OWN: i32 = 2;
        let mut reasons = Vec::new();
        if !self.has_processor {
            reasons.push("the machine has no processor counters".to_owned());
        }
        match self.paranoid {
            None => reasons.push("the kernel has no perf_event_open".to_owned()),
            Some(paranoid) if paranoid > OWN && !self.is_capable => {
                reasons.push(format!("kernel.perf_event_paranoid is {paranoid}"));
            }
            Some(_) => {}
        }
        match &reasons[..] {
            [] => format!("{ALWAYS}; instructions,cycles too, unless a container forbids them"),
            reasons => format!("{ALWAYS}; not instructions,cycles: {}", reasons.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_named() {
        let finding = |paranoid, has_processor, is_capable| Kernel { paranoid, has_processor, is_capable }.finding();
        const ALWAYS: &str = "--count page-faults,context-switches; ";
        let is = |found: String, rest: &str| assert_eq!(found, format!("{ALWAYS}{rest}"));
        is(finding(Some(2), true, false), "instructions,cycles too, unless a container forbids them");
        is(finding(Some(4), true, false), "not instructions,cycles: kernel.perf_event_paranoid is 4");
        is(finding(Some(4), false, true), "not instructions,cycles: the machine has no processor counters");
        is(finding(None, true, true), "not instructions,cycles: the kernel has no perf_event_open");
    }
}
