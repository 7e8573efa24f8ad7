//! Candidates for a root, as text and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use super::Found;
use super::choice::Candidate;
use crate::printable::{printable, printable_lines};
use crate::report::units::time;

const SCHEMA: &str = "headwater-roots/1";
/// Of others that are the same so many are named.
const SAME: usize = 2;

/// Writes them for people.
///
/// # Errors
///
/// Those of the writer.
pub fn write_text(found: &Found, out: &mut dyn Write) -> io::Result<()> {
    let Found { target, looking, cpu_ns: [process, java], candidates, warnings } = found;
    let main = printable(&target.main);
    writeln!(out, "{main} (pid {}, JDK {})", target.pid, printable(&target.jdk))?;
    writeln!(
        out,
        "sampled for {}, then timed for {}; CPU time {}, {:.0} % of it in Java code",
        time(ns(looking.sampling)),
        time(ns(looking.timing)),
        time(*process),
        100.0 * *java as f64 / (*process).max(1) as f64
    )?;
    if candidates.is_empty() {
        writeln!(
            out,
            "\nno method was entered again and again while its calls were timed: look for longer with -d and --timing"
        )?;
    }
    for (at, candidate) in candidates.iter().enumerate() {
        let Candidate { display, share, timed, same, .. } = candidate;
        writeln!(out, "\n{:>2}  {}", at + 1, printable(display))?;
        let rate = if timed.per_second < 10.0 {
            format!("{:.1}", timed.per_second)
        } else {
            format!("{:.0}", timed.per_second)
        };
        writeln!(
            out,
            "    {:.0} % of the CPU time; {rate} calls a second, mean {}, 99 % within {}",
            100.0 * share,
            time(timed.mean_ns.round() as u64),
            time(timed.p99_ns)
        )?;
        if !same.is_empty() {
            let named: Vec<_> = same.iter().take(SAME).map(|name| printable(name).into_owned()).collect();
            let more = if same.len() > SAME { format!(", {} more", same.len() - SAME) } else { String::new() };
            writeln!(out, "    entered with it: {}{more}", named.join(", "))?;
        }
        writeln!(out, "    {}", command(found, candidate))?;
    }
    for warning in warnings {
        writeln!(out, "\nwarning: {}", printable_lines(warning))?;
    }
    Ok(())
}

/// What begins the exact profile.
fn command(found: &Found, candidate: &Candidate) -> String {
    // A name with a quote in it is no name of Java's, but may be one of the JVM's.
    let pattern = printable(&candidate.pattern).replace('\'', "'\\''");
    format!("headwater profile {} --root '{pattern}' -d 10s", found.target.pid)
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
    cpu_ns: u64,
    java_cpu_ns: u64,
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
    calls: u64,
    calls_a_second: f64,
    mean_ns: u64,
    p99_ns: u64,
    entered_with_it: &'a [String],
    command: String,
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
        timed_ns: ns(found.looking.timing),
        cpu_ns: found.cpu_ns[0],
        java_cpu_ns: found.cpu_ns[1],
        candidates: found.candidates.iter().map(|candidate| row(found, candidate)).collect(),
        warnings: &found.warnings,
    };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

fn row<'a>(found: &Found, candidate: &'a Candidate) -> Row<'a> {
    let Candidate { machine, pattern, share, timed, same, .. } = candidate;
    Row {
        method: machine,
        root: pattern,
        cpu_share: *share,
        calls: timed.calls,
        calls_a_second: timed.per_second,
        mean_ns: timed.mean_ns.round() as u64,
        p99_ns: timed.p99_ns,
        entered_with_it: same,
        command: command(found, candidate),
    }
}
