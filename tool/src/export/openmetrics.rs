//! OpenMetrics text of the flat profile: what a method costs over all its contexts.
//!
//! Every line is one that parsers of Prometheus' older text format read alike.

use std::fmt::{self, Display};
use std::io::{self, Write};

use super::Part;
use super::functions::Functions;
use crate::printable::printable;
use crate::profile::{Profile, ThreadProfile};

/// What is known of a method in one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sums {
    calls: u64,
    thrown: u64,
    self_ns: u64,
    error_ns: u64,
    /// Of the outermost of its calls: a recursion counts once.
    inclusive_ns: u64,
    inclusive_error_ns: u64,
    /// Calls may be missing.
    at_least: bool,
}

/// A family of metrics.
struct Family {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
    /// What samples' names end in.
    suffix: &'static str,
    value: fn(&Sums) -> Value,
}

/// A sample's value, written without loss.
#[derive(Clone, Copy, Debug)]
enum Value {
    Count(u64),
    Nanoseconds(u64),
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count) => write!(f, "{count}"),
            Value::Nanoseconds(ns) => write!(f, "{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000),
        }
    }
}

const FAMILIES: [Family; 7] = [
    Family {
        name: "headwater_method_calls",
        kind: "counter",
        unit: "",
        help: "Calls of the method: at least so many, where headwater_method_calls_incomplete is 1.",
        suffix: "_total",
        value: |sums| Value::Count(sums.calls),
    },
    Family {
        name: "headwater_method_thrown",
        kind: "counter",
        unit: "",
        help: "Calls that an exception ended.",
        suffix: "_total",
        value: |sums| Value::Count(sums.thrown),
    },
    Family {
        name: "headwater_method_self_seconds",
        kind: "counter",
        unit: "seconds",
        help: "Wall time in the method itself and in what it calls that is not instrumented, corrected.",
        suffix: "_total",
        value: |sums| Value::Nanoseconds(sums.self_ns),
    },
    Family {
        name: "headwater_method_inclusive_seconds",
        kind: "counter",
        unit: "seconds",
        help: "Wall time in the method and everything below it, corrected; recursive calls count once.",
        suffix: "_total",
        value: |sums| Value::Nanoseconds(sums.inclusive_ns),
    },
    Family {
        name: "headwater_method_self_error_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Uncertainty of the method's self time: where it is larger than the time, only a bound of that is known.",
        suffix: "",
        value: |sums| Value::Nanoseconds(sums.error_ns),
    },
    Family {
        name: "headwater_method_inclusive_error_seconds",
        kind: "gauge",
        unit: "seconds",
        help: "Uncertainty of the method's inclusive time, at most.",
        suffix: "",
        value: |sums| Value::Nanoseconds(sums.inclusive_error_ns),
    },
    Family {
        name: "headwater_method_calls_incomplete",
        kind: "gauge",
        unit: "",
        help: "1 where calls may be missing, because the program did not wait until all methods were instrumented.",
        suffix: "",
        value: |sums| Value::Count(sums.at_least.into()),
    },
];

pub(super) fn write(profile: &Profile, parts: &[Part<'_>], out: &mut impl Write) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    let target = &profile.target;
    writeln!(out, "# TYPE headwater_recording_seconds gauge\n# UNIT headwater_recording_seconds seconds")?;
    writeln!(out, "# HELP headwater_recording_seconds How long was recorded.")?;
    let recorded = Value::Nanoseconds(u64::try_from(profile.duration.as_nanos()).unwrap_or(u64::MAX));
    let (pid, main, jdk) = (target.pid, escaped(&target.main), escaped(&target.jdk));
    writeln!(out, "headwater_recording_seconds{{pid=\"{pid}\",main=\"{main}\",jdk=\"{jdk}\"}} {recorded}")?;
    let sums: Vec<Vec<Sums>> = parts.iter().map(|part| sums(profile, part, &functions)).collect();
    for family in &FAMILIES {
        let Family { name, kind, unit, help, suffix, value } = family;
        writeln!(out, "# TYPE {name} {kind}")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {help}")?;
        for (part, sums) in parts.iter().zip(&sums) {
            let thread = part.thread.map(thread_labels).unwrap_or_default();
            // A method that this thread never called has no line.
            for (function, sums) in functions.all.iter().zip(sums).filter(|(_, sums)| **sums != Sums::default()) {
                let method = escaped(&function.machine);
                writeln!(out, "{name}{suffix}{{method=\"{method}\"{thread}}} {}", value(sums))?;
            }
        }
    }
    writeln!(out, "# EOF")
}

fn sums(profile: &Profile, part: &Part<'_>, functions: &Functions) -> Vec<Sums> {
    let incomplete = profile.incomplete_nodes(part.tree);
    let mut all = vec![Sums::default(); functions.all.len()];
    let levels = functions.recursion_levels(part.tree);
    for ((node, level), incomplete) in part.tree.nodes.iter().zip(levels).zip(incomplete) {
        let sums = &mut all[functions.index_of(node.method).0];
        sums.calls += node.calls;
        sums.thrown += node.thrown;
        sums.self_ns += node.self_ns;
        sums.error_ns += node.error_ns;
        sums.at_least |= incomplete;
        if level == 1 {
            sums.inclusive_ns += node.total_ns;
            sums.inclusive_error_ns += node.total_error_ns;
        }
    }
    all
}

fn thread_labels(thread: &ThreadProfile) -> String {
    format!(",thread_id=\"{}\",thread=\"{}\"", thread.id.0, escaped(&thread.name))
}

/// A label's value (OpenMetrics 1.0, "escaped-string").
fn escaped(text: &str) -> String {
    printable(text).replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
