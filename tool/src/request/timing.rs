//! What `region` times, on the command line and in a session.

use std::io;
use std::str::FromStr;
use std::time::Duration;

use clap::Args;

use super::destination::{Destination, Shape};
use super::output::terminal_width;
use super::profile::ClockSource;
use super::progress::{Progress, matched};
use super::values::duration;
use crate::callgraph::Lines;
use crate::pattern::MethodPattern;
use crate::profile::{MethodStatistics, Profile};
use crate::profiling::{Settings, Stage};
use crate::report::region;
use crate::report::units::{plural, time};

/// What the live line says at first.
const WAITING: &str = "waiting for entry into a region (Ctrl-C ends)";

/// A method, or lines of a class.
#[derive(Clone, Debug)]
struct Region {
    pattern: MethodPattern,
    lines: Option<Lines>,
}

impl FromStr for Region {
    type Err = String;

    fn from_str(text: &str) -> Result<Region, String> {
        let is_range = |range: &str| range.starts_with(|c: char| c.is_ascii_digit());
        let Some((class, range)) = text.rsplit_once(':').filter(|(_, range)| is_range(range)) else {
            let pattern =
                text.parse().map_err(|error| format!("{error}; or lines, such as `com.acme.Main:120-148`"))?;
            return Ok(Region { pattern, lines: None });
        };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let line = |text: &str| match text.parse::<u16>() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("`{text}` is no line: write 120-148, or 120, of lines from 1 to 65535")),
        };
        let lines = Lines { first: line(first)?, last: line(last)? };
        if lines.first > lines.last {
            return Err(format!("the lines end before they begin; write {}-{}", lines.last, lines.first));
        }
        let pattern: MethodPattern = format!("{class}::*").parse().map_err(|error| format!("{error}"))?;
        Ok(Region { pattern, lines: Some(lines) })
    }
}

/// What is timed, for how long, and where the times go: for `region`, on the command line and in a session.
#[derive(Clone, Debug, Args)]
pub struct Timing {
    /// A method, a.b.C::m with wildcards and an optional parameter list, or lines of a class, a.b.C:120-148
    #[arg(required = true, value_name = "REGION")]
    regions: Vec<Region>,
    /// End after this time (30s, 2m, 500ms) [default: until Ctrl-C]
    #[arg(short, long, value_parser = duration)]
    duration: Option<Duration>,
    /// End after this many calls, and count no others; calls inside another region or call do not count for this
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    calls: Option<u64>,
    /// What is read for the time. The time stamp counter takes less than half as long, and needs JDK 17, or 21 or later
    #[arg(long, value_enum, default_value_t = ClockSource::Auto)]
    clock_source: ClockSource,
    /// Wait for classes that are not loaded yet, rather than fail
    #[arg(long)]
    await_region: bool,
    #[command(flatten)]
    destination: Destination,
}

impl Timing {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (index, region) in self.regions.iter().enumerate() {
            let crossing = self.regions[..index].iter().find(|other| region.crosses(other));
            if let (Some(Region { lines: Some(other), .. }), Some(lines)) = (crossing, region.lines) {
                let class = region.pattern.class_text();
                return Err(format!(
                    "lines {other} and {lines} of {class} overlap, and neither lies in the other: time them one after the other"
                ));
            }
        }
        self.destination.check()
    }

    /// Whether it ends by itself.
    pub(crate) fn ends(&self) -> bool {
        self.duration.is_some() || self.calls.is_some()
    }

    /// The recording that has these times.
    pub(crate) fn settings(&self, progress: &Progress) -> Settings {
        let roots = self.regions.iter().map(|region| region.pattern.clone()).collect();
        let lines = self.regions.iter().map(|region| region.lines).collect();
        Settings {
            duration: self.duration,
            calls: self.calls,
            clock_source: self.clock_source.choice(),
            await_roots: self.await_region,
            live: progress.is_live().then_some(Duration::from_secs(1)),
            ..Settings::of_regions(roots, lines)
        }
    }

    /// Writes the times.
    pub(crate) fn write(&self, profile: &Profile) -> io::Result<()> {
        self.destination.write(&mut |shape, mut out| match shape {
            Shape::Json => region::write_json(profile, &mut out),
            Shape::Text(style) => region::write_text(profile, &style, &mut out),
        })
    }
}

impl Region {
    fn crosses(&self, other: &Region) -> bool {
        let (Some(lines), Some(others)) = (self.lines, other.lines) else { return false };
        self.pattern.class_text() == other.pattern.class_text() && lines.crosses(others)
    }
}

/// Shows how it goes: on a terminal the times up to now.
pub(crate) fn observe(stage: Stage, progress: &Progress) {
    match stage {
        Stage::SoFar(profile) => progress.live(&so_far(&profile)),
        Stage::Recording { root_calls: 0, .. } => progress.live(WAITING),
        // The times say more.
        Stage::Recording { .. } => {}
        Stage::RootsInstrumented(regions) => regions.iter().for_each(|region| progress.say(&matched("region", region))),
        other => progress.show(other),
    }
}

/// The times up to now, on one line of the terminal.
fn so_far(profile: &Profile) -> String {
    let region = |known: &MethodStatistics| {
        let MethodStatistics { method, count: calls, min_ns, mean_ns, max_ns, .. } = *known;
        let (name, calls) = (&profile.methods[method.0].display, plural(calls, "call", "calls"));
        format!("{name}: {calls}, mean {}, {} to {}", time(mean_ns.round() as u64), time(min_ns), time(max_ns))
    };
    if profile.statistics.is_empty() {
        return WAITING.to_owned();
    }
    let line = profile.statistics.iter().map(region).collect::<Vec<_>>().join("; ");
    // One that wraps could not be replaced.
    line.chars().take(terminal_width(io::stderr()).unwrap_or(80) - 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_a_method_or_lines() {
        let region = |text: &str| text.parse::<Region>().map(|region| (region.pattern.to_string(), region.lines));
        let lines = |first, last| Some(Lines { first, last });
        assert_eq!(region("a.b.C::m(int)"), Ok(("a.b.C::m(int)".to_owned(), None)));
        assert_eq!(region("a.b.C.m"), Ok(("a.b.C.m".to_owned(), None)));
        assert_eq!(region("a.b.C:120-148"), Ok(("a.b.C::*".to_owned(), lines(120, 148))));
        assert_eq!(region("a.b.C$D:7"), Ok(("a.b.C$D::*".to_owned(), lines(7, 7))));
        for wrong in ["", "a.b.C:0", "a.b.C:7-", "a.b.C:9-7", "a.b.C:70000", ":7", "a.b.C:7-8-9"] {
            assert!(region(wrong).is_err(), "{wrong}");
        }
    }
}
