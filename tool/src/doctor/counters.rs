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
        let Some(paranoid) = self.paranoid else {
            return "none: the kernel has no perf_event_open".to_owned();
        };
        // Of its own code, and of the kernel's on its behalf.
        let [own, all] = [2, 1].map(|most| self.is_capable || paranoid <= most);
        let counters =
            [("instructions,cycles", own && self.has_processor), ("page-faults", own), ("context-switches", all)];
        let names = |is_there: bool| -> Vec<&str> {
            counters.iter().filter(|(_, it)| *it == is_there).map(|(name, _)| *name).collect()
        };
        let (there, missing) = (names(true), names(false));
        let mut reasons = Vec::new();
        if !self.has_processor {
            reasons.push("the machine has no processor counters".to_owned());
        }
        if !all {
            reasons.push(format!("kernel.perf_event_paranoid is {paranoid}"));
        }
        let there = if there.is_empty() { "none".to_owned() } else { format!("--count {}", there.join(",")) };
        match missing.is_empty() {
            true => format!("{there}, unless a container forbids them"),
            false => format!("{there}; not {}: {}", missing.join(","), reasons.join(", ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_is_named() {
        let finding = |paranoid, has_processor, is_capable| Kernel { paranoid, has_processor, is_capable }.finding();
        assert_eq!(
            finding(Some(1), true, false),
            "--count instructions,cycles,page-faults,context-switches, unless a container forbids them"
        );
        assert_eq!(
            finding(Some(2), true, false),
            "--count instructions,cycles,page-faults; not context-switches: kernel.perf_event_paranoid is 2"
        );
        assert_eq!(
            finding(Some(4), false, false),
            "none; not instructions,cycles,page-faults,context-switches: the machine has no processor counters, kernel.perf_event_paranoid is 4"
        );
        assert_eq!(
            finding(Some(4), false, true),
            "--count page-faults,context-switches; not instructions,cycles: the machine has no processor counters"
        );
        assert_eq!(finding(None, true, true), "none: the kernel has no perf_event_open");
    }
}
