//! The profile as a text to be read: what was profiled, a view of its calls, and what limits its truth.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::units::{count, time};
use super::walk::Children;
use super::{Options, Trees, View, is_doubtful};
use crate::profile::{ClockMode, Control, ControlKind, Drift, Environment, MethodIndex, OpenCalls, Profile, Tree};

mod callers;
mod flat;
pub(crate) mod lines;
mod tree;

use lines::Lines;

/// Reasons for which methods were skipped are shown with so many examples.
const EXAMPLES: usize = 3;

/// How the report looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal: longer lines are cut. `None` leaves them whole.
    pub width: Option<usize>,
    /// Emphasis by ANSI escape sequences.
    pub color: bool,
    /// Times in per cent of the roots' total time, instead of with their units.
    pub percent: bool,
    /// Also where and when the profile was recorded: for one that was read from a file.
    pub provenance: bool,
}

/// Writes the report.
pub fn write(profile: &Profile, options: &Options, style: &Style, out: &mut impl Write) -> io::Result<()> {
    header(profile, style, out)?;
    for (thread, tree) in options.sections(profile) {
        match thread {
            Some(thread) => writeln!(out, "\nthread {} \"{}\"", thread.id.0, thread.name)?,
            None if !options.threads.is_empty() => {
                let names: Vec<String> = options.threads.iter().map(ToString::to_string).collect();
                writeln!(out, "\nthreads {}", names.join(", "))?;
            }
            None => {}
        }
        if tree.nodes.is_empty() {
            continue;
        }
        writeln!(out)?;
        let view = Section { profile, tree: &tree, children: Children::of(&tree), options, whole_ns: tree.total_ns() };
        let has_cpu = profile.merged.has_cpu_samples();
        let mut lines = Lines { style, whole_ns: view.whole_ns, has_cpu, out: &mut *out };
        match options.view {
            View::Tree => tree::write(&view, &mut lines)?,
            View::Callers => callers::write(&view, &mut lines)?,
            View::Flat => flat::write(&view, &mut lines)?,
        }
    }
    if options.trees == Trees::PerThread && profile.threads.is_empty() && !profile.merged.nodes.is_empty() {
        writeln!(out, "\nno threads are known")?;
    }
    footer(profile, out)
}

/// One tree of a report.
struct Section<'a> {
    profile: &'a Profile,
    tree: &'a Tree,
    children: Children,
    options: &'a Options,
    /// The time of all the tree's roots.
    whole_ns: u64,
}

impl Section<'_> {
    fn name(&self, method: MethodIndex) -> &str {
        &self.profile.methods[method.0].display
    }
}

/// What was profiled.
pub(crate) fn header(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let target = &profile.target;
    let seconds = profile.duration.as_secs_f64();
    let clock = match profile.clock.mode {
        ClockMode::Cpu => "cpu: all times are CPU time",
        ClockMode::Exact | ClockMode::Tick(_) => profile.clock.source.name(),
    };
    writeln!(out, "{} (pid {}, JDK {}), {seconds:.1} s, clock {clock}", target.main, target.pid, target.jdk)?;
    if style.provenance {
        provenance(&profile.environment, out)?;
    }
    for root in &profile.roots {
        let state = match (profile.root_names(root).len(), root.calls) {
            (0, _) => "no such method was loaded".to_owned(),
            (1, 0) if root.open.threads > 0 => format!("not entered since; {}", inside(&root.open)),
            (n, 0) if root.open.threads > 0 => format!("{n} methods, not entered since; {}", inside(&root.open)),
            (1, calls) if root.open.threads > 0 => format!("entered {}; {}", times(calls), inside(&root.open)),
            (n, calls) if root.open.threads > 0 => {
                format!("{n} methods, entered {}; {}", times(calls), inside(&root.open))
            }
            (1, 0) => "instrumented, but never entered: waiting for entry".to_owned(),
            (n, 0) => format!("{n} methods instrumented, but none ever entered: waiting for entry"),
            (1, calls) => format!("entered {}", times(calls)),
            (n, calls) => format!("{n} methods, entered {}", times(calls)),
        };
        writeln!(out, "root {}: {state}", root.pattern)?;
    }
    Ok(())
}

/// What became of calls that began before the profile.
fn inside(open: &OpenCalls) -> String {
    let threads = |n: usize| if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") };
    let before = format!("{} in it since before the profile", threads(open.threads));
    let error = time(open.error_ns);
    match (open.still, open.threads - open.still) {
        (_, 0) => format!("{before}, still open"),
        (0, _) => format!("{before}, returned (±{error})"),
        (still, returned) => format!("{before}, {still} still open, {returned} returned (±{error})"),
    }
}

fn provenance(environment: &Environment, out: &mut impl Write) -> io::Result<()> {
    let Environment { headwater, host, processors, command, .. } = environment;
    let mut parts = Vec::new();
    parts.extend(environment.started());
    parts.extend((!host.is_empty()).then(|| format!("on {host}")));
    parts.extend((*processors > 0).then(|| format!("({processors} processors)")));
    parts.extend((!headwater.is_empty()).then(|| format!("by Headwater {headwater}")));
    if !parts.is_empty() {
        writeln!(out, "recorded {}", parts.join(" "))?;
    }
    if !command.is_empty() {
        writeln!(out, "command  {}", command.join(" "))?;
    }
    Ok(())
}

fn times(n: u64) -> String {
    match n {
        1 => "once".to_owned(),
        n => format!("{} times", count(n)),
    }
}

/// What limits the truth of the numbers, with an empty line before it.
pub(crate) fn footer(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let events = &profile.events;
    let healed = match events.healed {
        0 => String::new(),
        1 => ", 1 frame healed".to_owned(),
        n => format!(", {} frames healed", count(n)),
    };
    writeln!(out, "\nevents    {} recorded, {} lost{healed}", count(events.recorded), count(events.lost))?;
    writeln!(
        out,
        "methods   {} instrumented, {} called, {} skipped{}",
        count(profile.instrumented as u64),
        count(profile.called as u64),
        count(profile.skipped.len() as u64),
        trivial(profile.discovery.trivial)
    )?;
    skipped(profile, out)?;
    writeln!(out, "taken out of all times:")?;
    let clock = &profile.clock;
    writeln!(
        out,
        "probes    {:.1} ns (±{:.1}) in the method and {:.1} ns (±{:.1}) in its caller, for each call",
        clock.inner_ns, clock.inner_spread_ns, clock.outer_ns, clock.outer_spread_ns
    )?;
    if let Some(Drift { before_ns, after_ns }) = clock.drift {
        writeln!(
            out,
            "          drifted from {before_ns:.1} ns before to {after_ns:.1} ns after the recording, in an empty method: the mean counts"
        )?;
    }
    for control in &profile.controls {
        let Control { kind, charged_ns, control_ns, error_ns, calls, .. } = *control;
        let kind = match kind {
            ControlKind::During => "control",
            ControlKind::After => "bare",
        };
        writeln!(
            out,
            "accuracy  {}: charged {} a call, {} {kind} calls {} (±{})",
            profile.methods[control.root.0].display,
            time(charged_ns as u64),
            count(calls),
            time(control_ns as u64),
            time(error_ns as u64)
        )?;
    }
    if let Some(period) = clock.mode.period() {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        writeln!(out, "times     by a clock that moves once in {}: sampled; counts are exact", time(period))?;
    }
    let hotswap = &profile.hotswap;
    writeln!(
        out,
        "hotswaps  {} batches, {} classes; paused {} altogether, {} at most",
        count(hotswap.batches),
        count(hotswap.classes),
        time(hotswap.pause_ns_total),
        time(hotswap.pause_ns_max)
    )?;
    for wait in &profile.waits {
        writeln!(out, "waits     {} for {}: {}", times(wait.count), wait.reason, time(wait.duration_ns))?;
    }
    if profile
        .merged
        .nodes
        .iter()
        .any(|node| is_doubtful(node.self_ns, node.error_ns) || is_doubtful(node.total_ns, node.total_error_ns))
    {
        writeln!(out, "~ marks times that are smaller than their own uncertainty")?;
    }
    for warning in &profile.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    Ok(())
}

/// The methods that were left alone because they are trivial, if there are any.
fn trivial(methods: usize) -> String {
    if methods == 0 { String::new() } else { format!(", {} trivial and left alone", count(methods as u64)) }
}

fn skipped(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for skipped in &profile.skipped {
        by_reason.entry(&skipped.reason).or_default().push(&skipped.method);
    }
    for (reason, methods) in by_reason {
        let more = if methods.len() > EXAMPLES { ", ..." } else { "" };
        let examples = methods.iter().take(EXAMPLES).copied().collect::<Vec<_>>().join(", ");
        writeln!(out, "          {} because {reason}: {examples}{more}", methods.len())?;
    }
    Ok(())
}
