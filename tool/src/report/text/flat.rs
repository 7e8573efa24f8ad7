//! The flat view: each method (arcflow's xprof).

use std::cmp::Reverse;
use std::io::{self, Write};

use super::Section;
use super::lines::{Emphasis, Lines};
use crate::profile::{CpuSamples, MethodStatistics};
use crate::report::flat::{Amounts, FlatRow, rows};
use crate::report::names::Names;
use crate::report::prune::ShownMethods;
use crate::report::units::{count, plural, time};
use crate::report::{bounded, share};

pub(super) fn write(section: &Section<'_>, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let methods = ShownMethods::of(section.profile, section.options);
    let is_shown = |row: &FlatRow| methods.has(row.method, row.amounts.total_ns, section.whole_ns);
    let names = Names::of(section.profile);
    let (mut shown, hidden): (Vec<FlatRow>, Vec<FlatRow>) =
        rows(section.profile, &names, section.tree).into_iter().partition(is_shown);
    shown.sort_by_key(|row| {
        (Reverse(section.options.rank(&row.amounts)), &section.profile.methods[row.method.0].machine)
    });
    let cpu = lines.cpu_heading();
    let header = format!("{:>7} {:>11} {cpu}{:>11} {:>13} {:>11}  ", "share", "self", "total", "calls", "self/call");
    lines.line(&header, "method", Emphasis::None)?;
    for row in &shown {
        let Amounts { calls, self_ns, total_ns, error_ns, total_error_ns, cpu, at_least, .. } = row.amounts;
        let each = |ns: u64| ns.checked_div(calls).unwrap_or_default();
        let numbers = format!(
            "{} {} {}{} {:>13} {:>10}   ",
            lines.share(self_ns),
            lines.time(self_ns, error_ns),
            lines.cpu(cpu),
            lines.time(total_ns, total_error_ns),
            super::calls(calls, at_least),
            bounded(each(self_ns), each(error_ns)),
        );
        lines.line(
            &numbers,
            &section.label_of_all(row.method),
            Emphasis::of_share(share(self_ns, section.whole_ns)),
        )?;
    }
    if !hidden.is_empty() {
        let sum = |of: fn(&Amounts) -> u64| hidden.iter().map(|row| of(&row.amounts)).sum();
        let self_ns = sum(|amounts| amounts.self_ns);
        let numbers = format!(
            "{} {} {}{:>11} {:>13} {:>11}  ",
            lines.share(self_ns),
            lines.time(self_ns, 0),
            lines.cpu(CpuSamples::default()),
            "",
            super::calls(sum(|amounts| amounts.calls), hidden.iter().any(|row| row.amounts.at_least)),
            ""
        );
        let what = plural(hidden.len() as u64, "more method", "more methods");
        lines.line(&numbers, &format!("... {what}"), Emphasis::Faint)?;
    }
    statistics(section, &names, &shown, lines)
}

/// Of the methods that are shown, in the same order; of all threads, because they are recorded so.
fn statistics(
    section: &Section<'_>,
    names: &Names,
    shown: &[FlatRow],
    lines: &mut Lines<'_, impl Write>,
) -> io::Result<()> {
    let known = &section.profile.statistics;
    let of = |row: &FlatRow| known.iter().find(|statistics| names.first(statistics.method) == row.method);
    let known: Vec<&MethodStatistics> = shown.iter().filter_map(of).collect();
    if known.is_empty() {
        return Ok(());
    }
    writeln!(lines.out, "\ninvocations, each with what it calls, of all threads:\n")?;
    let columns = ["mean", "std dev", "min", "median", "90%", "99%", "max"];
    let header = columns.map(|column| format!("{column:>10} ")).concat();
    lines.line(&format!("{:>13} {header} ", "count"), "method", Emphasis::None)?;
    for statistics in known {
        let MethodStatistics { method, mean_ns, sd_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, .. } = *statistics;
        let times = [mean_ns.round() as u64, sd_ns.round() as u64, min_ns, p50_ns, p90_ns, p99_ns, max_ns];
        let numbers = times.map(|ns| format!("{:>10} ", time(ns))).concat();
        lines.line(&format!("{:>13} {numbers} ", count(statistics.count)), section.name(method), Emphasis::None)?;
    }
    Ok(())
}
