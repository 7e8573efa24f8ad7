//! What a session shows beside the reports: roots, status, threads, names.

use std::io::{self, Write};
use std::time::Duration;

use clap::ValueEnum;

use crate::pattern::ClassPattern;
use crate::printable::Printable;
use crate::profile::{Profile, Span};
use crate::profiling::History;
use crate::report::status::{overhead, state};
use crate::report::text::budget;
use crate::report::units::{count, plural, time};
use crate::request::count::Count;

/// `roots`.
pub(super) fn roots(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let width = profile.roots.iter().map(|root| root.pattern.chars().count()).max().unwrap_or(0);
    let out = &mut Printable(out);
    for root in &profile.roots {
        writeln!(out, "{:width$}  {}", root.pattern, state(profile, root))?;
    }
    Ok(())
}

/// `status`; `rate` is in calls a second.
pub(super) fn status(profile: &Profile, what: &str, rate: Option<f64>, out: &mut impl Write) -> io::Result<()> {
    let (out, target) = (&mut Printable(out), &profile.target);
    writeln!(out, "target    {} (pid {}, JDK {})", target.main, target.pid, target.jdk)?;
    writeln!(out, "status    {what}; {:.1} s recorded", profile.duration.as_secs_f64())?;
    for root in &profile.roots {
        writeln!(out, "root      {}: {}", root.pattern, state(profile, root))?;
    }
    let rate = rate.map_or_else(String::new, |rate| format!(", {} a second", count(rate as u64)));
    writeln!(out, "calls     {}{rate}", count(profile.merged.calls()))?;
    writeln!(
        out,
        "methods   {} instrumented, {} called, {} skipped",
        count(profile.instrumented as u64),
        count(profile.called as u64),
        count(profile.skipped.len() as u64)
    )?;
    writeln!(out, "events    {} recorded, {} lost", count(profile.events.recorded), count(profile.events.lost))?;
    writeln!(out, "overhead  {}", overhead(profile))?;
    budget::summary(profile, out)?;
    writeln!(
        out,
        "hotswaps  {}, {}; paused {} altogether",
        plural(profile.hotswap.batches, "batch", "batches"),
        plural(profile.hotswap.classes, "class", "classes"),
        time(profile.hotswap.pause_ns_total)
    )?;
    for warning in &profile.warnings {
        writeln!(out, "warning   {warning}")?;
    }
    Ok(())
}

/// `threads`.
pub(super) fn threads(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    if profile.threads.is_empty() {
        return writeln!(out, "no thread has been inside a root");
    }
    writeln!(out, "{:>8} {:>13} {:>11}  name", "id", "calls", "total")?;
    for thread in &profile.threads {
        let calls = count(thread.tree.calls());
        writeln!(out, "{:>8} {calls:>13} {:>11}  {}", thread.id.0, time(thread.tree.total_ns()), thread.shown_name())?;
    }
    Ok(())
}

/// `count`: when what was counted, of so long a recording.
pub(super) fn counted(history: &History, recorded: Duration, out: &mut impl Write) -> io::Result<()> {
    for kind in Count::value_variants() {
        let when = match history.spans(recorded, |what| kind.is_in(what)) {
            None => "all the time".to_owned(),
            Some(spans) if spans.is_empty() => "not".to_owned(),
            Some(spans) => Span::in_words(&spans, recorded),
        };
        writeln!(out, "{:10}  {when}", kind.name())?;
    }
    Ok(())
}

/// Names, one a line, at most so many.
pub(super) fn limited(names: &[String], limit: usize, out: &mut impl Write) -> io::Result<()> {
    for name in names.iter().take(limit) {
        writeln!(out, "{name}")?;
    }
    match names.len().saturating_sub(limit) {
        0 => Ok(()),
        more => writeln!(out, "... {} more; a longer pattern, or --limit N", count(more as u64)),
    }
}

/// `filter`.
pub(super) fn filters(include: &[ClassPattern], exclude: &[ClassPattern], out: &mut impl Write) -> io::Result<()> {
    if include.is_empty() && exclude.is_empty() {
        return writeln!(out, "no filters: everything of the application");
    }
    for (name, patterns) in [("include", include), ("exclude", exclude)] {
        for pattern in patterns {
            writeln!(out, "{name}  {pattern}")?;
        }
    }
    Ok(())
}
