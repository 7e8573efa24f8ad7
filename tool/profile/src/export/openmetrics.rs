//! OpenMetrics text of the flat profile: what a method costs over all its contexts.
//!
//! Every line is one that parsers of Prometheus' older text format read alike.

use std::fmt::{self, Display};
use std::io::{self, Write};

use super::ExportedTree;
use super::functions::Functions;
use crate::profile::{Amount, Amounts, Extent, Metric, Profile, ThreadProfile, Unit};
use crate::report::flat::{self, FlatRow};
use crate::report::names::Names;
use headwater_terms::printable::printable;

/// A family of metrics.
struct Family {
    name: String,
    kind: &'static str,
    unit: &'static str,
    help: String,
    /// What samples' names end in.
    suffix: &'static str,
    value: Box<dyn Fn(&Amounts) -> Value>,
}

/// A sample's value, written without loss.
#[derive(Clone, Copy, Debug)]
enum Value {
    Count(u64),
    Nanoseconds(u64),
}

impl Value {
    fn of(unit: Unit, value: u64) -> Value {
        if unit == Unit::Nanoseconds { Value::Nanoseconds(value) } else { Value::Count(value) }
    }
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            Value::Nanoseconds(ns) => write!(f, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
        }
    }
}

/// The families that every profile has: name, kind, unit, help, value.
type Usual = (&'static str, &'static str, &'static str, &'static str, fn(&Amounts) -> Value);

const USUAL: [Usual; 7] = [
    (
        "calls",
        "counter",
        "",
        "Calls of the method: at least so many, where headwater_method_calls_incomplete is 1.",
        |row| Value::Count(row.calls),
    ),
    ("thrown", "counter", "", "Calls that an exception ended.", |row| Value::Count(row.thrown)),
    (
        "self_seconds",
        "counter",
        "seconds",
        "Wall time in the method itself and in what it calls that is not instrumented, corrected.",
        |row| Value::Nanoseconds(row.self_ns),
    ),
    (
        "inclusive_seconds",
        "counter",
        "seconds",
        "Wall time in the method and everything below it, corrected; recursive calls count once.",
        |row| Value::Nanoseconds(row.total_ns),
    ),
    (
        "self_error_seconds",
        "gauge",
        "seconds",
        "Uncertainty of the method's self time: where it is larger than the time, only a bound of that is known.",
        |row| Value::Nanoseconds(row.error_ns),
    ),
    ("inclusive_error_seconds", "gauge", "seconds", "Uncertainty of the method's inclusive time, at most.", |row| {
        Value::Nanoseconds(row.total_error_ns)
    }),
    (
        "calls_incomplete",
        "gauge",
        "",
        "1 where calls may be missing, because the program did not wait until all methods were instrumented.",
        |row| Value::Count(row.at_least.into()),
    ),
];

/// Those that every profile has, and those of this one's other metrics.
fn families(profile: &Profile) -> Vec<Family> {
    let family = |part: &str, kind, unit, help: &str, value: Box<dyn Fn(&Amounts) -> Value>| {
        let suffix = if kind == "counter" { "_total" } else { "" };
        Family { name: format!("headwater_method_{part}"), kind, unit, help: help.to_owned(), suffix, value }
    };
    let usual = if profile.imported.is_none() { &USUAL[..] } else { &[] };
    let mut families: Vec<Family> =
        usual.iter().map(|&(part, kind, unit, help, value)| family(part, kind, unit, help, Box::new(value))).collect();
    for metric in profile.metrics().into_iter().filter(Metric::is_column) {
        let unit = match metric.unit {
            Unit::Nanoseconds => "seconds",
            Unit::Bytes => "bytes",
            Unit::Count | Unit::Bytecodes | Unit::Share => "",
        };
        let ending = if unit.is_empty() { String::new() } else { format!("_{unit}") };
        let kind = if metric.is_additive { "counter" } else { "gauge" };
        let mut add = |part: &str, what: &str, kind, of: fn(&Amount) -> u64| {
            let name = format!("{}_{part}{ending}", super::identifier(&metric));
            let (metric, help) = (metric.clone(), format!("{} {what}", metric.about));
            families.push(family(
                &name,
                kind,
                unit,
                &help,
                Box::new(move |row| Value::of(metric.unit, of(&metric.of(row)))),
            ));
        };
        add("self", "Of the method itself.", kind, |amount| amount.own);
        if metric.extent == Extent::OwnAndTotal {
            add("inclusive", "With what the method calls; recursive calls count once.", kind, |amount| amount.total);
        }
        if metric.is_uncertain {
            add("self_error", "Uncertainty of that of the method itself.", "gauge", |amount| amount.own_error);
        }
        if metric.is_uncertain && metric.extent == Extent::OwnAndTotal {
            add("inclusive_error", "Uncertainty of that with what the method calls.", "gauge", |amount| {
                amount.total_error
            });
        }
    }
    families
}

pub(super) fn write(profile: &Profile, parts: &[ExportedTree<'_>], out: &mut impl Write) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let target = &profile.target;
    writeln!(out, "# TYPE headwater_recording_seconds gauge\n# UNIT headwater_recording_seconds seconds")?;
    writeln!(out, "# HELP headwater_recording_seconds How long was recorded.")?;
    let recorded = Value::Nanoseconds(u64::try_from(profile.duration.as_nanos()).unwrap_or(u64::MAX));
    let (pid, main, jdk) = (target.pid, escaped(&target.main), escaped(&target.jdk));
    writeln!(out, "headwater_recording_seconds{{pid=\"{pid}\",main=\"{main}\",jdk=\"{jdk}\"}} {recorded}")?;
    let names = Names::of(profile);
    let rows = |part: &ExportedTree<'_>| {
        let mut rows: Vec<FlatRow> = flat::rows(profile, &names, part.tree);
        rows.sort_by_key(|row| functions.index_of(row.method));
        rows
    };
    // A method that a thread never called has no row there.
    let rows: Vec<Vec<FlatRow>> = parts.iter().map(rows).collect();
    for family in &families(profile) {
        let Family { name, kind, unit, help, suffix, value } = family;
        writeln!(out, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {help}")?;
        for (part, rows) in parts.iter().zip(&rows) {
            let thread = part.thread.map(thread_labels).unwrap_or_default();
            for row in rows {
                let method = escaped(&functions.all[functions.index_of(row.method).0].machine);
                writeln!(out, "{name}{suffix}{{method=\"{method}\"{thread}}} {}", value(&row.amounts))?;
            }
        }
    }
    writeln!(out, "# EOF")
}

fn thread_labels(thread: &ThreadProfile) -> String {
    format!(",thread_id=\"{}\",thread=\"{}\"", thread.id.0, escaped(&thread.name))
}

/// A label's value (OpenMetrics 1.0, "escaped-string").
fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
