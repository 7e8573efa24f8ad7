//! The times of code regions, as text and as one JSON object, schema `headwater-region/1`; docs/REFERENCE.md describes it field by field.
//!
//! They are in a profile whose roots are the regions and that has nothing but roots: each method's statistics are its row.

use std::io::{self, Write};

use serde::Serialize;

use super::text::Style;
use super::text::lines::{Emphasis, Lines};
use super::units::{plural, time};
use crate::profile::{MethodStatistics, Profile, Root};
use headwater_terms::printable::{printable, printable_lines};

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    target: Target<'a>,
    clock: Clock,
    duration_ns: u64,
    regions: Vec<Region<'a>>,
    events: Events,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Target<'a> {
    pid: u32,
    main: &'a str,
    jdk: &'a str,
}

#[derive(Serialize)]
struct Clock {
    source: &'static str,
    inner_ns: f64,
    outer_ns: f64,
    inner_spread_ns: f64,
    outer_spread_ns: f64,
}

#[derive(Serialize)]
struct Region<'a> {
    region: &'a str,
    methods: Vec<Row<'a>>,
}

/// A method, or its lines. Times are null where it was never left.
#[derive(Serialize)]
struct Row<'a> {
    method: &'a str,
    count: u64,
    total_ns: u64,
    min_ns: Option<u64>,
    max_ns: Option<u64>,
    mean_ns: Option<f64>,
    sd_ns: Option<f64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
}

#[derive(Serialize)]
struct Events {
    recorded: u64,
    lost: u64,
    healed: u64,
}

impl<'a> Row<'a> {
    fn of(method: &'a str, statistics: Option<&MethodStatistics>) -> Row<'a> {
        Row {
            method,
            count: statistics.map_or(0, |known| known.count),
            total_ns: statistics.map_or(0, |known| known.total_ns),
            min_ns: statistics.map(|known| known.min_ns),
            max_ns: statistics.map(|known| known.max_ns),
            mean_ns: statistics.map(|known| known.mean_ns),
            sd_ns: statistics.map(|known| known.sd_ns),
            p50_ns: statistics.map(|known| known.p50_ns),
            p90_ns: statistics.map(|known| known.p90_ns),
            p99_ns: statistics.map(|known| known.p99_ns),
        }
    }
}

/// A region's methods by their names for machines, each once, with what is known of them.
fn statistics<'a>(profile: &'a Profile, root: &Root) -> Vec<(&'a str, Option<&'a MethodStatistics>)> {
    let machine = |statistics: &MethodStatistics| profile.methods[statistics.method.0].machine.as_str();
    let mut names: Vec<&str> = root.methods.iter().map(|method| profile.methods[method.0].machine.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let of = |name| profile.statistics.iter().find(|statistics| machine(statistics) == name);
    names.into_iter().map(|name| (name, of(name))).collect()
}

/// Writes the JSON object.
pub fn write_json<'a>(profile: &'a Profile, out: &mut impl Write) -> io::Result<()> {
    let region = |root: &'a Root| Region {
        region: &root.pattern,
        methods: statistics(profile, root).into_iter().map(|(method, known)| Row::of(method, known)).collect(),
    };
    let report = Report {
        schema: "headwater-region/1",
        target: Target { pid: profile.target.pid, main: &profile.target.main, jdk: &profile.target.jdk },
        clock: Clock {
            source: profile.clock.source.name(),
            inner_ns: profile.clock.inner_ns,
            outer_ns: profile.clock.outer_ns,
            inner_spread_ns: profile.clock.inner_spread_ns,
            outer_spread_ns: profile.clock.outer_spread_ns,
        },
        duration_ns: profile.duration.as_nanos() as u64,
        regions: profile.roots.iter().map(region).collect(),
        events: Events { recorded: profile.events.recorded, lost: profile.events.lost, healed: profile.events.healed },
        warnings: &profile.warnings,
    };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

/// Writes a table for people.
pub fn write_text(profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
    let target = &profile.target;
    let seconds = profile.duration.as_secs_f64();
    let main = printable(&target.main);
    writeln!(out, "{main} (pid {}, JDK {}), {seconds:.1} s\n", target.pid, target.jdk)?;
    let columns = ["mean", "std dev", "min", "median", "90%", "99%", "max"];
    let mut lines = Lines { style, out };
    lines.line("", &columns.map(|column| format!("{column:>10}")).concat(), Emphasis::None)?;
    for (name, known) in profile.roots.iter().flat_map(|root| statistics(profile, root)) {
        let method = profile.methods.iter().find(|method| method.machine == name);
        let name = method.map_or(name, |method| method.display.as_str());
        writeln!(lines.out)?;
        let Some(known) = known else {
            lines.line("", &format!("{name}: not called"), Emphasis::None)?;
            continue;
        };
        let MethodStatistics { total_ns, mean_ns, sd_ns, min_ns, p50_ns, p90_ns, p99_ns, max_ns, .. } = *known;
        let what = format!("{name}: {}, {}", plural(known.count, "call", "calls"), time(total_ns));
        lines.line("", &what, Emphasis::Bold)?;
        let times = [mean_ns.round() as u64, sd_ns.round() as u64, min_ns, p50_ns, p90_ns, p99_ns, max_ns];
        lines.line("", &times.map(|ns| format!("{:>10}", time(ns))).concat(), Emphasis::None)?;
    }
    let clock = &profile.clock;
    writeln!(lines.out, "\ntimes include what is called; of recursive calls only the outermost count")?;
    writeln!(lines.out, "taken out of each: {:.1} ns (±{:.1}) for its probes", clock.inner_ns, clock.inner_spread_ns)?;
    let mut warnings = profile.warnings.iter().map(|warning| printable_lines(warning));
    warnings.try_for_each(|warning| writeln!(lines.out, "warning: {warning}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Clock, MethodIndex, MethodName, Tree};

    /// Two regions, the second never left.
    fn profile() -> Profile {
        let mut profile = profile_of(Tree::default(), Vec::new(), 2);
        profile.methods = ["a.B.m(I)V", "a.B.n()V:120-148"]
            .map(|machine| MethodName { machine: machine.to_owned(), display: machine.replace("(I)V", "(int)") })
            .to_vec();
        let root = |pattern: &str, method| Root {
            pattern: pattern.to_owned(),
            methods: vec![MethodIndex(method)],
            calls: 0,
            open: Default::default(),
        };
        profile.roots = vec![root("a.B::m", 0), root("a.B:120-148", 1)];
        profile.duration = Duration::from_secs(2);
        profile.statistics = vec![MethodStatistics {
            method: MethodIndex(0),
            count: 1_234,
            total_ns: 5_000_000,
            min_ns: 900,
            max_ns: 90_000,
            mean_ns: 4_051.9,
            sd_ns: 77.4,
            p50_ns: 4_000,
            p90_ns: 5_000,
            p99_ns: 60_000,
        }];
        profile
    }

    #[test]
    fn a_region_that_was_never_left_has_no_times() {
        let mut out = Vec::new();
        write_json(&profile(), &mut out).expect("a vector takes all");
        let report: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
        assert_eq!(report["schema"], "headwater-region/1");
        let first = &report["regions"][0]["methods"][0];
        assert_eq!((first["method"].as_str(), first["count"].as_u64()), (Some("a.B.m(I)V"), Some(1_234)));
        assert_eq!(first["p99_ns"], 60_000);
        let second = &report["regions"][1];
        assert_eq!(second["region"], "a.B:120-148");
        assert_eq!((second["methods"][0]["count"].as_u64(), second["methods"][0]["min_ns"].as_u64()), (Some(0), None));
    }

    #[test]
    fn the_text_has_two_lines_a_region_and_fits_a_narrow_terminal() {
        let mut out = Vec::new();
        let style = Style { width: None, color: false, percent: false, provenance: false, verbose: false };
        let mut profile = profile();
        profile.warnings.clear();
        let Clock { inner_ns, inner_spread_ns, .. } = profile.clock;
        write_text(&profile, &style, &mut out).expect("a vector takes all");
        let text = String::from_utf8(out).expect("UTF-8");
        assert_eq!(
            text.lines().skip(2).collect::<Vec<_>>(),
            [
                "      mean   std dev       min    median       90%       99%       max",
                "",
                "a.B.m(int): 1,234 calls, 5.000 ms",
                "  4.052 us     77 ns    900 ns  4.000 us  5.000 us  60.00 us  90.00 us",
                "",
                "a.B.n()V:120-148: not called",
                "",
                "times include what is called; of recursive calls only the outermost count",
                &format!("taken out of each: {:.1} ns (±{:.1}) for its probes", inner_ns, inner_spread_ns),
            ],
            "{text}"
        );
    }
}
