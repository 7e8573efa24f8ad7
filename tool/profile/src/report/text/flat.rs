//! The flat view: each method (arcflow's xprof).

use std::cmp::Reverse;
use std::io::{self, Write};

use super::Section;
use super::lines::{Emphasis, Lines};
use crate::profile::{Amounts, MethodStatistics};
use crate::report::flat::{FlatRow, rows};
use crate::report::names::Names;
use crate::report::prune::ShownMethods;
use crate::report::units::{count, plural, time};

pub(super) fn write(section: &Section<'_>, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
    let methods = ShownMethods::of(section.profile, section.tree, section.options, section.chosen);
    let names = Names::of(section.profile);
    let (mut shown, hidden): (Vec<FlatRow>, Vec<FlatRow>) =
        rows(section.profile, &names, section.tree).into_iter().partition(|row| methods.has(row.method, &row.amounts));
    shown.sort_by_cached_key(|row| {
        (Reverse(section.rank(&row.amounts)), &section.profile.methods[row.method.0].machine)
    });
    lines.line(&section.cells.heading(), "method", Emphasis::None)?;
    for row in &shown {
        let emphasis = section.emphasis(section.chosen.weight().of(&row.amounts).own);
        lines.line(&section.cells.row(&row.amounts), &section.label_of_all(row.method), emphasis)?;
    }
    if !hidden.is_empty() {
        let mut sum = Amounts::default();
        hidden.iter().for_each(|row| sum.add(&row.amounts));
        let what = plural(hidden.len() as u64, "more method", "more methods");
        lines.line(&section.cells.sum(&sum), &format!("... {what}"), Emphasis::Faint)?;
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
