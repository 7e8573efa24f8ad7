//! What all self times together divide into.

use std::cmp::Reverse;
use std::io::{self, Write};

use crate::profile::parts::{Parts, Provenance, TimePart};
use crate::profile::{NodeAmounts, NodeIndex, Profile};
use crate::report::share;

/// The largest first, and how each is known; nothing where waits were not counted.
pub(super) fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let Some(parts) = Parts::of(profile) else { return Ok(()) };
    let rows = NodeAmounts::of(profile, &profile.merged);
    let mut sums: Vec<(TimePart, u64)> = parts.parts().map(|part| (part, 0)).collect();
    for index in 0..profile.merged.nodes.len() {
        let divided = parts.divide(&rows.at(NodeIndex(index)));
        sums.iter_mut().zip(divided).for_each(|((_, sum), value)| *sum = sum.saturating_add(value));
    }
    let whole = sums.iter().fold(0_u64, |whole, (_, sum)| whole.saturating_add(*sum));
    sums.retain(|(_, sum)| *sum > 0);
    sums.sort_by_key(|(_, sum)| Reverse(*sum));
    let known = |part: &TimePart| match part.known {
        Provenance::Events => "",
        Provenance::Samples => " (by samples)",
        Provenance::Rest => " (the rest)",
    };
    let said =
        |(part, sum): &(TimePart, u64)| format!("{} {:.1}%{}", part.part, 100.0 * share(*sum, whole), known(part));
    let said: Vec<String> = sums.iter().map(said).collect();
    if said.is_empty() { Ok(()) } else { writeln!(out, "self      {}", said.join(", ")) }
}
