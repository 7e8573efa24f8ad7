//! Candidates for a root, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::choice::Candidate;
use super::cost::{Basis, Cost};
use super::{Found, Looking};
use crate::printable::{printable, printable_lines};
use crate::report::units::{bytes, time};

const SCHEMA: &str = "headwater-roots/1";
/// Of others that are the same so many are named.
const SAME: usize = 2;
/// An exact profile has so many calls, if it does not take longer than this for that, in seconds.
const CALLS: f64 = 20.0;
const SECONDS: [f64; 2] = [10.0, 60.0];

/// Writes them for people.
///
/// # Errors
///
/// Those of the writer.
pub fn write_text(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let Found { target, looking, cpu_ns, whole, candidates, warnings, .. } = found;
    let main = printable(&target.main);
    writeln!(out, "{main} (pid {}, JDK {})", target.pid, printable(&target.jdk))?;
    let Looking { sampling, by, .. } = looking;
    let allocated =
        if found.has_allocations { format!("; {} allocated", bytes(whole.allocated)) } else { String::new() };
    writeln!(
        out,
        "sampled for {}, then timed for {}; CPU time {}, {:.0} % of it in Java code; waits {}{allocated}",
        time(ns(*sampling)),
        time(ns(found.timed)),
        time(*cpu_ns),
        100.0 * part(whole.cpu_ns, *cpu_ns).unwrap_or_default(),
        time(whole.wait_ns),
    )?;
    if candidates.is_empty() {
        writeln!(
            out,
            "\nno method was entered again and again while its calls were timed: look for longer with -d and --timing, while the program is at work"
        )?;
    }
    for (at, candidate) in candidates.iter().enumerate() {
        let Candidate { display, timed, same, .. } = candidate;
        writeln!(out, "\n{:>2}  {}", at + 1, printable(display))?;
        let rate = if timed.per_second < 10.0 {
            format!("{:.1}", timed.per_second)
        } else {
            format!("{:.0}", timed.per_second)
        };
        writeln!(
            out,
            "    {}; {rate} calls a second, mean {}, 99 % within {}",
            shares(found, candidate),
            time(timed.mean_ns.round() as u64),
            time(timed.p99_ns)
        )?;
        if !same.is_empty() {
            let named: Vec<_> = same.iter().take(SAME).map(|name| printable(name).into_owned()).collect();
            let more = if same.len() > SAME { format!(", {} more", same.len() - SAME) } else { String::new() };
            writeln!(out, "    entered with it: {}{more}", named.join(", "))?;
        }
        writeln!(out, "    {}", cost(candidate))?;
        writeln!(out, "    {}", command(found, candidate))?;
    }
    if !candidates.is_empty() {
        writeln!(
            out,
            "\nby {}; costs are estimates by what other programs' code calls, --try 1 tries the first; --budget 50% leaves out what costs most and tells least",
            by.name()
        )?;
    }
    for warning in warnings {
        writeln!(out, "\nwarning: {}", printable_lines(warning))?;
    }
    Ok(())
}

/// What it holds of what there is.
fn shares(found: &Found, candidate: &Candidate) -> String {
    let (held, whole) = (&candidate.held, &found.whole);
    let parts = [
        (part(held.cpu_ns, whole.cpu_ns), "of the CPU time"),
        (part(held.wait_ns, whole.wait_ns), "of the waits"),
        (part(held.allocated, whole.allocated), "of what is allocated"),
    ];
    let told = |(part, of): (Option<f64>, &str)| part.map(|part| format!("{:.0} % {of}", 100.0 * part));
    parts.into_iter().filter_map(told).collect::<Vec<_>>().join(", ")
}

fn part(of: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| of as f64 / whole as f64)
}

/// What an exact profile of it is likely to cost.
fn cost(candidate: &Candidate) -> String {
    match &candidate.cost {
        Err(unknown) => format!("exact profile: its cost is not known, as {}", unknown.why()),
        Ok(Cost { calls_a_second: [low, likely, high], pair_ns, times_as_long: [least, most], basis }) => {
            let (calls, times) = match basis {
                Basis::Estimated => (
                    format!("about {} ({} to {})", rounded(*likely), rounded(*low), rounded(*high)),
                    between(*least, *most),
                ),
                Basis::Tried => (format!("tried, {}", rounded(*likely)), factor(*least)),
            };
            format!(
                "exact profile: {calls} calls below it a second, {pair_ns:.0} ns each; its calls take {times} times as long meanwhile"
            )
        }
    }
}

/// One digit, or two: there are no more in an estimate.
fn rounded(number: f64) -> String {
    let (value, unit) = match number {
        ..1e3 => (number, ""),
        ..1e6 => (number / 1e3, " thousand"),
        ..1e9 => (number / 1e6, " million"),
        _ => (number / 1e9, " billion"),
    };
    if value < 9.5 && !unit.is_empty() { format!("{value:.1}{unit}") } else { format!("{value:.0}{unit}") }
}

/// Both bounds, where they are told apart.
fn between(least: f64, most: f64) -> String {
    let (least, most) = (factor(least), factor(most));
    if least == most { least } else { format!("{least} to {most}") }
}

fn factor(factor: f64) -> String {
    if factor < 9.5 { format!("{factor:.1}") } else { format!("{factor:.0}") }
}

/// What begins the exact profile, as a shell takes it.
fn command(found: &Found, candidate: &Candidate) -> String {
    let seconds = (CALLS / candidate.timed.per_second.max(1e-3)).clamp(SECONDS[0], SECONDS[1]).ceil();
    format!("headwater profile {} --root {} -d {seconds:.0}s", found.target.pid, quoted(&candidate.pattern))
}

/// A word of a shell. What a terminal would obey is any characters to the pattern.
fn quoted(pattern: &str) -> String {
    let shown = |c: char| if printable(c.encode_utf8(&mut [0; 4])).chars().eq([c]) { c } else { '*' };
    let pattern: String = pattern.chars().map(shown).collect();
    // A quote is no part of a name of Java's, but may be one of the JVM's.
    format!("'{}'", pattern.replace('\'', "'\\''"))
}

fn ns(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    target: Target<'a>,
    sampled_ns: u64,
    timed_ns: u64,
    by: &'static str,
    cpu_ns: u64,
    java_cpu_ns: u64,
    wait_ns: u64,
    allocated_bytes: Option<u64>,
    candidates: Vec<Row<'a>>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Target<'a> {
    pid: u32,
    main: &'a str,
    jdk: &'a str,
}

#[derive(Serialize)]
struct Row<'a> {
    method: &'a str,
    root: &'a str,
    cpu_share: f64,
    wait_share: Option<f64>,
    allocated_share: Option<f64>,
    calls: u64,
    calls_a_second: f64,
    mean_ns: u64,
    p99_ns: u64,
    entered_with_it: &'a [String],
    cost: Option<Price>,
    cost_unknown: Option<&'static str>,
    command: String,
}

#[derive(Serialize)]
struct Price {
    basis: &'static str,
    calls_a_second: Range,
    pair_ns: f64,
    times_as_long: Range,
}

#[derive(Serialize)]
struct Range {
    low: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    likely: Option<f64>,
    high: f64,
}

impl Price {
    fn of(cost: &Cost) -> Price {
        let Cost { calls_a_second: [low, likely, high], pair_ns, times_as_long: [least, most], basis } = *cost;
        Price {
            basis: basis.name(),
            calls_a_second: Range { low, likely: Some(likely), high },
            pair_ns,
            times_as_long: Range { low: least, likely: None, high: most },
        }
    }
}

/// Writes them as one object.
///
/// # Errors
///
/// Those of the writer.
pub fn write_json(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let report = Report {
        schema: SCHEMA,
        target: Target { pid: found.target.pid, main: &found.target.main, jdk: &found.target.jdk },
        sampled_ns: ns(found.looking.sampling),
        timed_ns: ns(found.timed),
        by: found.looking.by.name(),
        cpu_ns: found.cpu_ns,
        java_cpu_ns: found.whole.cpu_ns,
        wait_ns: found.whole.wait_ns,
        allocated_bytes: found.has_allocations.then_some(found.whole.allocated),
        candidates: found.candidates.iter().map(|candidate| row(found, candidate)).collect(),
        warnings: &found.warnings,
    };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

fn row<'a>(found: &Found, candidate: &'a Candidate) -> Row<'a> {
    let Candidate { machine, pattern, held, timed, same, cost, .. } = candidate;
    let whole = &found.whole;
    Row {
        method: machine,
        root: pattern,
        cpu_share: part(held.cpu_ns, whole.cpu_ns).unwrap_or_default(),
        wait_share: part(held.wait_ns, whole.wait_ns),
        allocated_share: part(held.allocated, whole.allocated),
        calls: timed.calls,
        calls_a_second: timed.per_second,
        mean_ns: timed.mean_ns.round() as u64,
        p99_ns: timed.p99_ns,
        entered_with_it: same,
        cost: cost.as_ref().ok().map(Price::of),
        cost_unknown: cost.as_ref().err().map(|unknown| unknown.why()),
        command: command(found, candidate),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_is_one_word_of_a_shell_whatever_is_in_it() {
        for (pattern, word) in [
            ("a.B$C::m(int, String[])", "'a.B$C::m(int, String[])'"),
            ("a.B::it's()", r"'a.B::it'\''s()'"),
            ("a.B::m\u{1b}[2Jn()", "'a.B::m*[2Jn()'"),
        ] {
            assert_eq!(quoted(pattern), word);
        }
    }

    #[test]
    fn estimates_have_few_digits() {
        assert_eq!(
            [412.0, 1_234.0, 47_000_000.0, 2.5e9].map(rounded),
            ["412", "1.2 thousand", "47 million", "2.5 billion"]
        );
        assert_eq!([1.04, 9.6, 36.2].map(factor), ["1.0", "10", "36"]);
    }
}
