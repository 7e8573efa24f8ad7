//! What a program says of itself: lines that `tests/zoo/common` prints, and what has passed between two of them.

use std::time::Instant;

/// A line of a program's that is meant for us.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Line {
    /// It is at work. A server has a port.
    Ready { pid: u32, port: Option<u16> },
    /// A result is not what it should be.
    Wrong(String),
    /// What a meter shows.
    Meter { name: String, reading: Reading },
    /// A class's digest.
    Reflected { class: String, digest: String },
    /// A command was carried out.
    Said(u64),
}

/// What a meter shows at a moment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// When it came.
    pub(crate) at: Instant,
    /// Calls that were begun, since the program's start.
    pub(crate) begun: u64,
    /// Calls that have ended, since the program's start.
    pub(crate) ended: u64,
    /// Their time.
    pub(crate) ns: u64,
    /// How long each took that has ended since the last reading, in microseconds.
    pub(crate) latest_us: Vec<u32>,
}

impl Line {
    /// None for what is not for us.
    pub(crate) fn parse(line: &str, at: Instant) -> Option<Line> {
        let (kind, rest) = line.strip_prefix("ZOO ")?.split_once(' ')?;
        let mut words = rest.split(' ');
        let mut number = || words.next()?.parse::<u64>().ok();
        match kind {
            "ready" => {
                let pid = u32::try_from(number()?).ok()?;
                Some(Line::Ready { pid, port: number().and_then(|port| port.try_into().ok()) })
            }
            "wrong" => Some(Line::Wrong(rest.to_owned())),
            "said" => Some(Line::Said(number()?)),
            "reflected" => {
                let (class, digest) = rest.split_once(' ')?;
                Some(Line::Reflected { class: class.to_owned(), digest: digest.to_owned() })
            }
            "meter" => {
                let name = words.next()?.to_owned();
                let mut number = || words.next()?.parse::<u64>().ok();
                let (begun, ended, ns) = (number()?, number()?, number()?);
                let latest_us = words.next()?.split(',').filter_map(|us| us.parse().ok()).collect();
                Some(Line::Meter { name, reading: Reading { at, begun, ended, ns, latest_us } })
            }
            _ => None,
        }
    }
}

/// What has passed between two readings of a meter.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Window {
    pub(crate) seconds: f64,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) ns: u64,
    /// How long each call took, from the shortest.
    durations_us: Vec<u32>,
}

impl Window {
    /// From the first of these readings to the last.
    pub(crate) fn of(readings: &[Reading]) -> Window {
        let (Some(first), Some(last)) = (readings.first(), readings.last()) else { return Window::default() };
        let mut durations_us: Vec<u32> = readings[1..].iter().flat_map(|reading| &reading.latest_us).copied().collect();
        durations_us.sort_unstable();
        Window {
            seconds: last.at.duration_since(first.at).as_secs_f64(),
            begun: last.begun - first.begun,
            ended: last.ended - first.ended,
            ns: last.ns - first.ns,
            durations_us,
        }
    }

    /// The time of a call, in ns; none if none has ended.
    pub(crate) fn mean_ns(&self) -> Option<f64> {
        (self.ended > 0).then(|| self.ns as f64 / self.ended as f64)
    }

    /// Calls a second.
    pub(crate) fn rate(&self) -> f64 {
        self.ended as f64 / self.seconds
    }

    /// So long took so many thousandths of the calls, or less; in ns.
    pub(crate) fn quantile_ns(&self, per_mille: usize) -> Option<f64> {
        let last = self.durations_us.len().checked_sub(1)?;
        Some(f64::from(self.durations_us[last * per_mille / 1000]) * 1e3)
    }

    /// The longest call, in ns.
    pub(crate) fn longest_ns(&self) -> Option<f64> {
        self.quantile_ns(1000)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn reading(line: &str, at: Instant) -> Reading {
        match Line::parse(line, at) {
            Some(Line::Meter { reading, .. }) => reading,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn what_passes_between_two_readings_is_their_difference() {
        let start = Instant::now();
        let readings = [
            reading("ZOO meter step 10 9 9000 5,5,5", start),
            reading("ZOO meter step 12 12 409000 100,200", start + Duration::from_secs(1)),
            reading("ZOO meter step 13 12 409000 ", start + Duration::from_secs(2)),
            reading("ZOO meter step 14 13 709000 300", start + Duration::from_secs(4)),
        ];
        let window = Window::of(&readings);
        assert_eq!((window.begun, window.ended, window.ns), (4, 4, 700_000));
        assert_eq!(window.mean_ns(), Some(175_000.0));
        assert_eq!(window.rate(), 1.0);
        assert_eq!((window.quantile_ns(500), window.longest_ns()), (Some(200e3), Some(300e3)));
    }

    #[test]
    fn a_server_says_its_port_and_other_output_is_nobodys() {
        let now = Instant::now();
        assert_eq!(Line::parse("ZOO ready 17 8080", now), Some(Line::Ready { pid: 17, port: Some(8080) }));
        assert_eq!(Line::parse("ZOO ready 17", now), Some(Line::Ready { pid: 17, port: None }));
        assert_eq!(Line::parse("ZOO wrong 3 instead of 4", now), Some(Line::Wrong("3 instead of 4".into())));
        assert_eq!(Line::parse("ready 17", now), None);
    }
}
