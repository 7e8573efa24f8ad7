//! The profile as a text to be read: what was profiled, a view of its calls, and what limits its truth.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::belief::{self, Belief, Shares};
use super::chosen::{Chosen, MOST_USUAL};
use super::status::longer;
use super::units::{self, count, plural, time, times};
use super::{Options, Trees, View, is_doubtful, share};
use crate::profile::walk::Children;
use crate::profile::{
    Amounts, ClockMode, Control, ControlKind, Drift, Environment, JvmInternal, MethodIndex, Metric, Node, OpenCalls,
    Profile, Root, Target, Tree,
};
use headwater_terms::printable::{Printable, printable};
use headwater_terms::reach::MOST_REACHED;

pub mod budget;
mod callers;
mod cells;
mod flat;
mod further;
pub mod gist;
pub mod lines;
mod locks;
mod parts;
mod tracks;
mod tree;

use cells::Cells;
use lines::{Emphasis, Lines, named, others};

/// Reasons for which methods were skipped are shown with so many examples.
const EXAMPLES: usize = 3;

/// Calls that are longer by more than so many times what they take may be more than a program can bear.
const DEAR: f64 = 2.0;

/// So many warnings at most, unless all are wanted.
const MOST_WARNINGS: usize = 5;

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
    /// All warnings, not only the most important ones.
    pub verbose: bool,
}

/// Writes the report.
pub fn write(profile: &Profile, options: &Options, style: &Style, out: &mut impl Write) -> io::Result<()> {
    header(profile, style, out)?;
    match options.view {
        View::Tree | View::Callers | View::Flat => {}
        View::Locks => {
            if let Some(contention) = &profile.contention {
                writeln!(out)?;
                locks::write(contention, options, &mut Lines { style, out: &mut *out })?;
            }
            return footer(profile, style, out);
        }
        View::Tracks => {
            tracks::write(&profile.tracks, &mut Lines { style, out: &mut *out })?;
            return footer(profile, style, out);
        }
    }
    let chosen = Chosen::of(profile, options);
    for (thread, tree) in options.sections(profile) {
        match thread {
            Some(thread) => writeln!(out, "\nthread {} \"{}\"", thread.id.0, thread.shown_name())?,
            None if !options.threads.is_empty() => {
                let names: Vec<String> = options.threads.iter().map(ToString::to_string).collect();
                writeln!(out, "\nthreads {}", printable(&names.join(", ")))?;
            }
            None => {}
        }
        if tree.nodes.is_empty() {
            continue;
        }
        writeln!(out)?;
        let cells = Cells::of(profile, &tree, &chosen, options.view, style.percent);
        let unseen = profile.unseen_callees();
        let view =
            Section { profile, tree: &tree, children: Children::of(&tree), options, chosen: &chosen, cells, unseen };
        let mut lines = Lines { style, out: &mut *out };
        match options.view {
            View::Tree => tree::write(&view, &mut lines)?,
            View::Callers => callers::write(&view, &mut lines)?,
            View::Flat => flat::write(&view, &mut lines)?,
            View::Locks | View::Tracks => {}
        }
    }
    if options.trees == Trees::PerThread && profile.threads.is_empty() && !profile.merged.nodes.is_empty() {
        writeln!(out, "\nno threads are known")?;
    }
    footer(profile, style, out)
}

/// One tree of a report.
struct Section<'a> {
    profile: &'a Profile,
    tree: &'a Tree,
    children: Children,
    options: &'a Options,
    chosen: &'a Chosen,
    cells: Cells,
    /// [`Profile::unseen_callees`].
    unseen: FxHashMap<&'a str, usize>,
}

impl Section<'_> {
    /// What lines are ordered by, the largest first.
    fn rank(&self, amounts: &Amounts) -> u64 {
        self.chosen.rank(self.options, amounts)
    }

    /// How a line of a method stands out.
    fn emphasis(&self, part: u64) -> Emphasis {
        Emphasis::of_share(share(part, self.cells.whole()))
    }

    fn name(&self, method: MethodIndex) -> &str {
        &self.profile.methods[method.0].display
    }

    /// A method's name, until when its calls were recorded, if not to the end, and how many of its callees are in no tree.
    fn label(&self, method: MethodIndex, until: Option<Duration>) -> Cow<'_, str> {
        let name = self.label_until(method, until);
        match self.unseen.get(self.profile.methods[method.0].machine.as_str()) {
            None => name,
            Some(MOST_REACHED..) => format!("{name} ({} callees or more not seen)", count(MOST_REACHED as u64)).into(),
            Some(callees) => format!("{name} ({} not seen)", plural(*callees as u64, "callee", "callees")).into(),
        }
    }

    fn label_until(&self, method: MethodIndex, until: Option<Duration>) -> Cow<'_, str> {
        match until {
            None => self.name(method).into(),
            Some(Duration::ZERO) => format!("{} (calls no longer recorded)", self.name(method)).into(),
            Some(until) => format!("{} (calls until {:.1} s)", self.name(method), until.as_secs_f64()).into(),
        }
    }

    /// The same for a line that stands for all methods of that name.
    fn label_of_all(&self, method: MethodIndex) -> Cow<'_, str> {
        self.label(method, self.profile.any_recorded_until(&self.profile.methods[method.0].machine))
    }
}

/// What was profiled.
pub(crate) fn header(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let out = &mut Printable(out);
    let target = &profile.target;
    if let Some(format) = &profile.imported {
        return imported(profile, format, out);
    }
    let seconds = profile.duration.as_secs_f64();
    let clock = match profile.clock.mode {
        ClockMode::Cpu => "cpu: all times are CPU time",
        ClockMode::Exact | ClockMode::Tick(_) => profile.clock.source.name(),
    };
    writeln!(
        out,
        "{} (pid {}, JDK {}), {seconds:.1} s, clock {clock}",
        printable(&target.main),
        target.pid,
        target.jdk
    )?;
    if let Some(line) = belief::line(profile) {
        writeln!(out, "{line}")?;
    }
    if style.provenance {
        provenance(&profile.environment, out)?;
        internals(&profile.target, out)?;
    }
    let mut given = Vec::new();
    for root in &profile.roots {
        writeln!(out, "root {}: {}", printable(&root.pattern), state(profile, root))?;
        // Once is enough for all roots of this kind.
        if let Some(advice) = advice(profile, root).filter(|advice| !given.contains(advice)) {
            writeln!(out, "{advice}")?;
            given.push(advice);
        }
    }
    gist::missing_calls(profile, out)
}

/// What another tool recorded.
fn imported(profile: &Profile, format: &str, out: &mut impl Write) -> io::Result<()> {
    let started = profile.environment.started().map_or_else(String::new, |started| format!(", recorded {started}"));
    let seconds = profile.duration.as_secs_f64();
    let seconds = if seconds > 0.0 { format!(", {seconds:.1} s") } else { String::new() };
    let target = &profile.target;
    let jvm = if target.pid > 0 { format!(" (pid {}, JDK {})", target.pid, target.jdk) } else { String::new() };
    writeln!(out, "{}{jvm}, {format}{started}{seconds}", printable(&target.main))?;
    let columns = profile.columns(&profile.merged);
    let sums = profile.metrics().into_iter().map(|metric| {
        let whole = metric.whole(&profile.merged, &columns);
        (metric, whole)
    });
    let (there, nothing): (Vec<_>, Vec<_>) = sums.partition(|(_, whole)| *whole > 0);
    let shown = |(metric, whole): (Metric, u64)| {
        let whole = units::value(metric.unit, whole);
        (metric, whole)
    };
    let sums: Vec<(Metric, String)> = there.into_iter().map(shown).collect();
    if !sums.is_empty() && sums.len() <= MOST_USUAL {
        let sums: Vec<String> = sums.iter().map(|(metric, whole)| format!("{} {whole}", metric.id)).collect();
        writeln!(out, "what it counts: {}", printable(&sums.join(", ")))?;
    } else if !sums.is_empty() {
        writeln!(out, "what it counts, for --metric:")?;
        let width = sums.iter().map(|(metric, _)| metric.id.len()).max().unwrap_or(0);
        for (metric, whole) in &sums {
            writeln!(out, "  {:width$} {whole:>13}  {}", printable(&metric.id), printable(&metric.title))?;
        }
    }
    if !nothing.is_empty() {
        let ids: Vec<&str> = nothing.iter().map(|(metric, _)| &*metric.id).collect();
        writeln!(out, "and of which there was nothing: {}", printable(&ids.join(", ")))?;
    }
    happened(profile, out)?;
    profile.notes.iter().try_for_each(|note| writeln!(out, "{}", printable(note)))
}

/// What happened to the whole JVM, but for what is taken out of the times.
fn happened(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut others = profile.tracks.iter().filter(|track| !track.is_ours);
    others.try_for_each(|track| writeln!(out, "{:<9} {}", track.title, printable(&tracks::summary(track))))
}

/// What became of a root.
pub fn state(profile: &Profile, root: &Root) -> String {
    let open = (root.open.threads > 0).then(|| inside(&root.open));
    let methods = match profile.root_names(root).len() {
        0 => return "no such method was loaded".to_owned(),
        1 => String::new(),
        methods => format!("{}, ", plural(methods as u64, "method", "methods")),
    };
    match (root.calls, open) {
        (0, Some(open)) => format!("{methods}not entered since; {open}"),
        (0, None) if has_calls_below(profile, root) => {
            format!("{methods}in a call that began before recording, not entered since")
        }
        (0, None) => format!("{methods}instrumented, but never entered"),
        (calls, Some(open)) => format!("{methods}entered {}; {open}", times(calls)),
        (calls, None) => format!("{methods}entered {}", times(calls)),
    }
}

/// Whether calls were recorded below a root: one that took longer than all of the recording has no call of its own.
fn has_calls_below(profile: &Profile, root: &Root) -> bool {
    let nodes = &profile.merged.nodes;
    let is_root = |node: &Node| node.parent.is_none() && root.methods.contains(&node.method);
    nodes.iter().any(|node| node.calls > 0 && node.parent.is_some_and(|parent| is_root(&nodes[parent.0])))
}

/// What to do about a root that nothing is known of.
pub fn advice(profile: &Profile, root: &Root) -> Option<&'static str> {
    if root.calls > 0 || root.open.threads > 0 || has_calls_below(profile, root) {
        return None;
    }
    Some(match root.methods.is_empty() {
        true => {
            "  - misspelt? `headwater attach`, then `methods PATTERN`, shows what is loaded\n  - loaded later? add --await-root"
        }
        false => {
            "  - called seldom? record for longer\n  - called at start-up only? headwater run ... -- java ...\n  \
             - overridden in a subclass? name the subclass's method, or *::method\n  - not called here? take a method that is: \
             one that calls it, or main"
        }
    })
}

/// What became of calls that began before the profile.
fn inside(open: &OpenCalls) -> String {
    let threads = plural(open.threads as u64, "thread", "threads");
    let before = format!("{threads} in it since before the profile");
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
    parts.extend((*processors > 0).then(|| format!("({})", plural(*processors as u64, "processor", "processors"))));
    parts.extend((!headwater.is_empty()).then(|| format!("by Headwater {headwater}")));
    if !parts.is_empty() {
        writeln!(out, "recorded {}", parts.join(" "))?;
    }
    if !command.is_empty() {
        writeln!(out, "command  {}", command.join(" "))?;
    }
    Ok(())
}

fn internals(target: &Target, out: &mut impl Write) -> io::Result<()> {
    let [first, others @ ..] = &target.internals[..] else { return Ok(()) };
    let said = |it: &JvmInternal| format!("{} {}", it.name, it.standing);
    let others: String = others.iter().map(|it| format!(", {}", said(it))).collect();
    writeln!(out, "read of the JVM beyond its documented interfaces: {}{others}", said(first))
}

/// What limits the truth of the numbers, with an empty line before it.
pub(crate) fn footer(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let out = &mut Printable(out);
    if profile.imported.is_some() {
        return warnings(&profile.warnings, style, out);
    }
    let events = &profile.events;
    let healed = match events.healed {
        0 => String::new(),
        n => format!(", {} healed", plural(n, "frame", "frames")),
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
    unseen(profile, style, out)?;
    budget::write(profile, style, out)?;
    profile.notes.iter().try_for_each(|note| writeln!(out, "note      {note}"))?;
    if let Some(contention) = &profile.contention {
        writeln!(out, "locks     {}: --view locks", locks::summary(contention))?;
    }
    let clock = &profile.clock;
    writeln!(
        out,
        "probes    {:.1} ns (±{:.1}) in the method and {:.1} ns (±{:.1}) in its caller, for each call",
        clock.inner_ns, clock.inner_spread_ns, clock.outer_ns, clock.outer_spread_ns
    )?;
    if clock.object_ns > 0.0 {
        writeln!(out, "          {:.1} ns for each object that is counted", clock.object_ns)?;
    }
    if let Some(Drift { before_ns, after_ns }) = clock.drift {
        writeln!(
            out,
            "          drifted from {before_ns:.1} ns before to {after_ns:.1} ns after the recording, in an empty method: the mean counts"
        )?;
    }
    of_roots(profile, style, out)?;
    if let Some(period) = clock.mode.period() {
        let period = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
        writeln!(out, "times     by a clock that moves once in {}: sampled; counts are exact", time(period))?;
    }
    parts::write(profile, out)?;
    counted_in_part(profile, out)?;
    happened(profile, out)?;
    writeln!(out, "taken out of all times:")?;
    let hotswap = &profile.hotswap;
    writeln!(
        out,
        "hotswaps  {}, {}; paused {} altogether, {} at most",
        plural(hotswap.batches, "batch", "batches"),
        plural(hotswap.classes, "class", "classes"),
        time(hotswap.pause_ns_total),
        time(hotswap.pause_ns_max)
    )?;
    for wait in &profile.waits {
        writeln!(out, "waits     {} for {}: {}", times(wait.count), wait.reason, time(wait.duration_ns))?;
    }
    let is_bound =
        |node: &Node| is_doubtful(node.self_ns, node.error_ns) || is_doubtful(node.total_ns, node.total_error_ns);
    let are_times_known = Belief::of(profile).is_none_or(|belief| belief.is_known());
    if !are_times_known || profile.merged.nodes.iter().any(is_bound) {
        writeln!(out, "< marks times of which only a bound is known: their uncertainty is larger")?;
    }
    let shares = Shares::of(&profile.merged);
    if profile.merged.nodes.iter().any(|node| shares.range(node.total_ns, node.total_error_ns).is_some()) {
        writeln!(out, "10-20% is from where to where a share lies that is not known any better")?;
    }
    if !profile.at_least.is_empty() {
        writeln!(
            out,
            ">= marks counts of methods that may have been called before they were instrumented, and of what they call"
        )?;
    }
    warnings(&profile.warnings, style, out)
}

/// How what roots are charged compares with calls that were timed as wholes, and how much longer they were.
fn of_roots(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let name = |root: MethodIndex| printable(&profile.methods[root.0].display);
    let off = |control: &Control| (control.charged_ns - control.control_ns).abs() / control.error_ns.max(1.0);
    let mut controls: Vec<&Control> = profile.controls.iter().collect();
    // Those that are furthest off, where not all are named.
    controls.sort_by(|one, other| off(other).total_cmp(&off(one)));
    for control in named(&controls, style) {
        let Control { root, kind, charged_ns, control_ns, error_ns, calls } = **control;
        let kind = match kind {
            ControlKind::During => "control",
            ControlKind::Before | ControlKind::After => "held-out",
        };
        writeln!(
            out,
            "accuracy  {}: charged {} a call; {} {} (±{})",
            name(root),
            time(charged_ns as u64),
            plural(calls, &format!("{kind} call"), &format!("{kind} calls")),
            time(control_ns as u64),
            time(error_ns as u64)
        )?;
    }
    others(&controls, style, out)?;
    for lengthened in named(&profile.lengthened, style) {
        let longer = longer(lengthened);
        writeln!(out, "overhead  {}: {longer}, waits for the profile included", name(lengthened.root))?;
    }
    others(&profile.lengthened, style, out)?;
    if profile.budget.is_none() && profile.lengthened.iter().any(|it| it.certain_part() >= DEAR) {
        writeln!(out, "          --budget 100% leaves out the methods whose probes cost most and tell least")?;
    }
    Ok(())
}

/// The methods that may have been called and never were instrumented, if there are any.
fn unseen(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    const NAMED: usize = 3;
    let unseen = &profile.unseen;
    if unseen.is_empty() {
        return Ok(());
    }
    let named = if style.verbose { unseen.len() } else { unseen.len().min(NAMED) };
    let names = unseen[..named].iter().map(|unseen| profile.methods[unseen.method.0].display.as_str());
    let others = match unseen.len() - named {
        0 => String::new(),
        others => format!(" and {} (--verbose)", plural(others as u64, "other", "others")),
    };
    writeln!(
        out,
        "not seen  {} that may have been called and got no probes, and what only these call: {}{others}",
        plural(unseen.len() as u64, "method", "methods"),
        names.collect::<Vec<_>>().join(", ")
    )
}

/// Which metrics say something of a part of the recording alone.
fn counted_in_part(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    for it in profile.counted_in_part() {
        let metrics = it.metrics.join(", ");
        writeln!(out, "counted   {metrics}: {}; nothing a call and no share of the time follows", it.when)?;
    }
    Ok(())
}

/// The first are the most important ones.
fn warnings(warnings: &[String], style: &Style, out: &mut impl Write) -> io::Result<()> {
    let shown = if style.verbose || warnings.len() <= MOST_WARNINGS { warnings.len() } else { MOST_WARNINGS - 1 };
    for warning in &warnings[..shown] {
        writeln!(out, "warning: {warning}")?;
    }
    match warnings.len() - shown {
        0 => Ok(()),
        others => writeln!(out, "warning: and {}: --verbose shows all", plural(others as u64, "other", "others")),
    }
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
        let examples = printable(&examples);
        writeln!(out, "          {} because {}: {examples}{more}", methods.len(), printable(reason))?;
    }
    Ok(())
}
