//! Parts of a recording: when something was counted that was switched on and off meanwhile.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Profile;

/// A part of a recording, in ns since its beginning, interruptions left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its beginning.
    pub from_ns: u64,
    /// Its end.
    pub to_ns: u64,
}

impl Span {
    /// These, in a recording of that length, in words.
    pub fn in_words(spans: &[Span], whole: Duration) -> String {
        let seconds = |ns: u64| ns as f64 / 1e9;
        let of = |span: &Span| match Duration::from_nanos(span.to_ns) >= whole {
            true => format!("from {:.1} s on", seconds(span.from_ns)),
            false => format!("from {:.1} to {:.1} s", seconds(span.from_ns), seconds(span.to_ns)),
        };
        let all: u64 = spans.iter().fold(0, |all, span| all.saturating_add(span.to_ns.saturating_sub(span.from_ns)));
        let spans: Vec<String> = spans.iter().map(of).collect();
        format!("{}, {:.1} of {:.1} s", spans.join(", "), seconds(all), whole.as_secs_f64())
    }
}

/// Metrics that were counted at the same times, which are a part of the recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CountedInPart {
    /// Their ids.
    pub(crate) metrics: Vec<String>,
    /// When, in words.
    pub(crate) when: String,
}

impl Profile {
    /// What was counted for a part of the recording alone.
    pub(crate) fn counted_in_part(&self) -> Vec<CountedInPart> {
        let mut all: Vec<(Vec<Span>, Vec<String>)> = Vec::new();
        for metric in self.counted.iter().filter(|metric| metric.is_of_part()) {
            let id = metric.id.clone().into_owned();
            match all.iter_mut().find(|(spans, _)| *spans == metric.spans) {
                Some((_, ids)) => ids.push(id),
                None => all.push((metric.spans.clone(), vec![id])),
            }
        }
        let told =
            |(spans, metrics): (Vec<Span>, _)| CountedInPart { metrics, when: Span::in_words(&spans, self.duration) };
        all.into_iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Extent, Metric, Unit};

    fn metric(id: &'static str, spans: &[(u64, u64)]) -> Metric {
        let span = |(from, to): &(u64, u64)| Span { from_ns: from * 100_000_000, to_ns: to * 100_000_000 };
        let metric = Metric::counted(id, id, Unit::Count, Extent::OwnAndTotal, "");
        metric.during(spans.iter().map(span).collect())
    }

    #[test]
    fn metrics_of_the_same_times_are_told_together() {
        let counted = vec![
            metric("gc", &[]),
            metric("waits", &[(5, 20)]),
            metric("alloc", &[(0, 15), (30, 100)]),
            metric("blocks", &[(5, 20)]),
        ];
        let profile = Profile { counted, duration: Duration::from_secs(10), ..Profile::default() };
        let told: Vec<(String, String)> =
            profile.counted_in_part().into_iter().map(|it| (it.metrics.join(" "), it.when)).collect();
        let expected = [
            ("waits blocks", "from 0.5 to 2.0 s, 1.5 of 10.0 s"),
            ("alloc", "from 0.0 to 1.5 s, from 3.0 s on, 8.5 of 10.0 s"),
        ];
        assert_eq!(told, expected.map(|(metrics, when)| (metrics.to_owned(), when.to_owned())));
    }
}
