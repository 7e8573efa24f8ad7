//! What a profile that is being recorded is about, in words.

use super::units::{plural, time, times};
use crate::profile::{OpenCalls, Profile, Root};

/// Whether a root has been entered.
pub fn state(profile: &Profile, root: &Root) -> String {
    let methods = match profile.root_names(root).len() {
        0 => return "no such method is loaded yet".to_owned(),
        1 => String::new(),
        methods => format!("{}, ", plural(methods as u64, "method", "methods")),
    };
    let OpenCalls { threads, still, .. } = root.open;
    let inside = match (threads, still) {
        (0, _) => String::new(),
        (1, 0) => ", 1 thread was in it before".to_owned(),
        (1, _) => ", 1 thread is in it since before".to_owned(),
        (threads, 0) => format!(", {threads} threads were in it before"),
        (threads, still) => format!(", {threads} threads were in it before, {still} still are"),
    };
    match root.calls {
        0 => format!("{methods}waiting for entry{inside}"),
        calls => format!("{methods}entered {}{inside}", times(calls)),
    }
}

/// What the probes took, and how that compares with what the roots took without them.
pub fn overhead(profile: &Profile) -> String {
    let probes_ns = profile.merged.calls() as f64 * (profile.clock.inner_ns + profile.clock.outer_ns);
    let probes = format!("{} in probes", time(probes_ns as u64));
    match profile.merged.total_ns() {
        0 => probes,
        bare_ns => format!("{probes}, {:.0}% of the roots' own time", 100.0 * probes_ns / bare_ns as f64),
    }
}
