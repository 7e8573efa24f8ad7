//! Explanations to be read.

use std::io::{self, Write};

use super::words::{how, when};
use super::{Caller, Explained, Standing, Step};
use crate::profile::reach::Moment;
use crate::report::text::Style;
use crate::report::units::{count, plural, times};
use headwater_terms::printable::Printable;
use headwater_terms::reach::Way;

/// Of a longer way so many steps are told, and of these so many from its beginning.
const MOST_STEPS: usize = 12;
const FIRST_STEPS: usize = 4;
/// So many callers are named.
const MOST_CALLERS: usize = 3;

/// Writes at most so many of them, and the names of the others.
pub fn write(explained: &[Explained], limit: usize, style: &Style, out: &mut impl Write) -> io::Result<()> {
    for (at, method) in explained.iter().take(limit).enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        one(method, style, out)?;
    }
    match explained.len().saturating_sub(limit) {
        0 => Ok(()),
        more => {
            let methods = plural(more as u64, "more method matches", "more methods match");
            writeln!(out, "\n{methods}; a longer name, its parameters, or --limit N")
        }
    }
}

fn one(method: &Explained, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let (bold, plain) = if style.color { ("\x1b[1m", "\x1b[0m") } else { ("", "") };
    write!(out, "{bold}")?;
    write!(Printable(&mut *out), "{}", method.display)?;
    writeln!(out, "{plain}: {}", standing(method))?;
    let out = &mut Printable(out);
    if !method.roots.is_empty() {
        writeln!(out, "  root    {}", method.roots.join(", "))?;
    }
    if !method.callers.is_empty() {
        writeln!(out, "  calls   {}", callers(&method.callers))?;
    }
    if let Some((trigger, found)) = method.found {
        let by = method.way.len().checked_sub(2).map(|at| method.way[at].display.as_str());
        write!(out, "  found   {}, {}", moment(found), when(trigger, by))?;
        match method.probed {
            Some(probed) => writeln!(out, "; probes {}", in_batch(found, probed))?,
            None => writeln!(out)?,
        }
    }
    for (at, remark) in method.remarks.iter().enumerate() {
        let label = match (at, method.standing) {
            (0, Standing::Probed(_)) => "note",
            (0, _) => "why",
            _ => "",
        };
        writeln!(out, "  {label:7} {remark}")?;
    }
    if let Some(advice) = &method.advice {
        writeln!(out, "  to do   {advice}")?;
    }
    write_way(&method.way, out)
}

fn write_way(way: &[Step], out: &mut impl Write) -> io::Result<()> {
    let mut label = "way";
    let left_out = way.len().checked_sub(MOST_STEPS).map_or(0..0, |more| FIRST_STEPS..FIRST_STEPS + more);
    if let Some(first) = way.first().filter(|first| !begins(first.way)) {
        writeln!(out, "  {label:7} a method below the root; it is not known which")?;
        label = "";
        writeln!(out, "  {label:7} > {}: {}", first.display, how(first))?;
    }
    for (at, step) in way.iter().enumerate().skip(usize::from(label.is_empty())) {
        if left_out.contains(&at) {
            if at == left_out.start {
                writeln!(out, "  {label:7} ... {}", plural(left_out.len() as u64, "more step", "more steps"))?;
            }
            continue;
        }
        let mark = if at == 0 { "" } else { "> " };
        writeln!(out, "  {label:7} {mark}{}: {}", step.display, how(step))?;
        label = "";
    }
    Ok(())
}

/// Who called a method, in a line.
fn callers(callers: &[Caller]) -> String {
    let by = |name: &str, calls: u64| format!("{} by {name}", count(calls));
    let name =
        |caller: &Caller| caller.method.as_ref().map_or("code outside the call graph", |(_, name)| name).to_owned();
    let (first, rest) = callers.split_at(callers.len().min(MOST_CALLERS));
    let mut parts: Vec<String> = first.iter().map(|caller| by(&name(caller), caller.calls)).collect();
    if !rest.is_empty() {
        let calls = rest.iter().fold(0_u64, |sum, caller| sum.saturating_add(caller.calls));
        parts.push(by(&plural(rest.len() as u64, "other", "others"), calls));
    }
    parts.join(", ")
}

/// Whether a way may begin so.
fn begins(way: Way) -> bool {
    matches!(way, Way::Root | Way::Total | Way::Open | Way::Override | Way::Reflected)
}

fn standing(method: &Explained) -> String {
    match method.standing {
        Standing::Probed(0) => "has probes, was not called".to_owned(),
        Standing::Probed(calls) => format!("has probes, was called {}", times(calls)),
        Standing::Unprobed(_, 0) => "no probes".to_owned(),
        Standing::Unprobed(_, calls) => format!("no probes any more, was called {}", times(calls)),
        Standing::Unreached => "no probes, not reached".to_owned(),
    }
}

fn seconds(moment: Moment) -> String {
    format!("{:.2} s", f64::from(moment.recorded_ms) / 1e3)
}

fn moment(moment: Moment) -> String {
    if moment.recorded_ms == 0 { "before recording".to_owned() } else { format!("at {}", seconds(moment)) }
}

/// When its probes came: by which hotswap, or with its class.
fn in_batch(found: Moment, probed: Moment) -> String {
    let number = count(probed.batches.into());
    match (probed.batches == found.batches, probed.recorded_ms == found.recorded_ms) {
        (true, true) => "with its class".to_owned(),
        (true, false) => format!("with its class, at {}", seconds(probed)),
        (false, true) => format!("with hotswap {number}"),
        (false, false) => format!("with hotswap {number}, at {}", seconds(probed)),
    }
}
