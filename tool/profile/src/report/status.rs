//! What a profile that is being recorded is about, in words.

use super::units::{plural, time, times};
use crate::profile::{Lengthened, OpenCalls, Profile, Root};

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

/// How much longer the root's calls are that are lengthened most, if there are calls without the profile to compare with; and what the probes
/// took by their calibrated cost, which is a part of that.
pub fn overhead(profile: &Profile) -> String {
    let probes_ns = profile.merged.calls() as f64 * (profile.clock.inner_ns + profile.clock.outer_ns);
    let probes = format!("{} in probes, as calibrated", time(probes_ns as u64));
    match profile.lengthened.first() {
        None => format!("not known yet; {probes}"),
        Some(most) => format!("{}: {}; {probes}", profile.methods[most.root.0].display, longer(most)),
    }
}

/// How much longer a root's calls were, in words.
pub fn longer(lengthened: &Lengthened) -> String {
    /// From so much longer on it is said how many times as long they are.
    const TIMES: f64 = 1.0;
    let (part, possible) = (lengthened.part(), lengthened.possible_part());
    let how = match lengthened.certain_part() > 0.0 {
        true if part >= TIMES => format!("{:.1} times as long as undisturbed", 1.0 + part),
        true => format!("{:.0}% longer than undisturbed", 100.0 * part),
        false if possible >= TIMES => format!("up to {:.1} times as long as undisturbed", 1.0 + possible),
        false if possible > 0.0 => format!("0 to {:.0}% longer than undisturbed", 100.0 * possible),
        false => "no longer than undisturbed".to_owned(),
    };
    let [recorded, bare] = [lengthened.recorded_ns, lengthened.bare_ns].map(|ns| time(ns as u64));
    format!("a call was {how} ({recorded}, {bare})")
}
