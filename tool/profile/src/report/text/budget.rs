//! What was given up for the overhead budget.

use std::io::{self, Write};

use super::Style;
use super::lines::{named, others};
use crate::profile::{Budget, DroppedMethod, Limit, Profile};
use crate::report::units::{count, time};

/// The overhead and the methods that were dropped, the dearest first, if there was a budget.
pub(super) fn write(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    summary(profile, out)?;
    let mut dropped: Vec<&DroppedMethod> = profile.budget.iter().flat_map(|budget| &budget.dropped).collect();
    dropped.sort_by(|one, other| other.overhead.total_cmp(&one.overhead));
    for DroppedMethod { method, calls, self_ns, overhead, at, .. } in named(&dropped, style) {
        let name = &profile.methods[method.0].display;
        let cost = percent(*overhead);
        if at.is_zero() {
            writeln!(out, "          before what is shown here; its probes cost {cost}: {name}")?;
        } else {
            let (at, calls, own) = (at.as_secs_f64(), count(*calls), time(*self_ns));
            writeln!(out, "          at {at:.1} s, after {calls} calls, {own} self; its probes cost {cost}: {name}")?;
        }
    }
    others(&dropped, style, out)
}

/// The overhead, and how many methods were dropped, if there was a budget.
pub fn summary(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let Some(budget) = &profile.budget else { return Ok(()) };
    writeln!(out, "budget    {}", state(profile, budget))?;
    if budget.dropped.is_empty() {
        return Ok(());
    }
    let what = match budget.dropped.len() {
        1 => "1 method, whose probes cost more than they told: since then its time is its callers'".to_owned(),
        n => format!(
            "{} methods, whose probes cost more than they told: since then their time is their callers'",
            count(n as u64)
        ),
    };
    writeln!(out, "dropped   {what}")
}

/// What is spent of it, in a line.
pub fn state(profile: &Profile, budget: &Budget) -> String {
    const SHOWN: usize = 3;
    let limit = budget.limit;
    let Some(overhead) = budget.overhead() else {
        let since = if budget.dropped.is_empty() { "" } else { " since methods were dropped last" };
        return format!("{limit}; what is spent is not known: the roots have run for less than 50 ms{since}");
    };
    let roots = budget
        .roots
        .iter()
        .take(SHOWN)
        .map(|root| format!("{} takes {} longer", profile.methods[root.root.0].display, percent(root.overhead)));
    let mut parts: Vec<String> = roots.collect();
    if budget.batches > 0 {
        parts.push(format!("hotswaps to drop methods {}", percent(budget.pauses)));
    }
    let more = if budget.roots.len() > SHOWN { ", ..." } else { "" };
    let parts = parts.join(", ");
    match limit {
        Limit::Part(_) => format!("{} of {limit} spent: {parts}{more}", percent(overhead)),
        Limit::Call { .. } => format!("{limit}, or as long as it runs by itself: {parts}{more}"),
    }
}

fn percent(part: f64) -> String {
    format!("{:.1}%", 100.0 * part)
}
