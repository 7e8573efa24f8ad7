//! A method's own time in parts that add up to it: running, and what it waited in.
//!
//! Where waits are counted (`--count waits`), most parts are told of by events; what these leave is waiting that was sampled, and the rest ran, or stood in line
//! for a processor, as the operating system says of all of it.

use serde::Serialize;

use crate::profile::{Amounts, Metric, OTHER_WAITS, Profile, READY, RUNNING, STOPPED};

/// How a part is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Provenance {
    /// An event or a probe tells of both ends of each.
    Events,
    /// By samples of threads' states.
    Samples,
    /// What the others leave.
    Rest,
}

/// A part of self times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TimePart {
    /// Its name.
    pub(crate) part: &'static str,
    /// The metric of which it is that much of the self time.
    pub(crate) metric: &'static str,
    pub(crate) known: Provenance,
}

const fn told(part: &'static str, metric: &'static str) -> TimePart {
    TimePart { part, metric, known: Provenance::Events }
}

const ALL: [TimePart; 10] = [
    TimePart { part: "running", metric: RUNNING, known: Provenance::Rest },
    TimePart { part: "ready", metric: READY, known: Provenance::Samples },
    told("blocked", "blocked"),
    told("waiting", "waited"),
    told("parked", "parked"),
    told("asleep", "slept"),
    told("socket", "socket"),
    told("file", "file"),
    told("stopped", STOPPED),
    TimePart { part: "other", metric: OTHER_WAITS, known: Provenance::Samples },
];

/// The parts of a profile's self times.
#[derive(Clone, Debug)]
pub(crate) struct Parts(Vec<(TimePart, Metric)>);

impl Parts {
    /// `None` where waits were not counted.
    pub(crate) fn of(profile: &Profile) -> Option<Parts> {
        if profile.imported.is_some() {
            return None;
        }
        let metrics = profile.metrics();
        // What was counted for a part of the time is no part of a self time.
        let is_one = |metric: &&Metric, part: TimePart| metric.id == part.metric && !metric.is_of_part();
        let of = |part: TimePart| Some((part, metrics.iter().find(|metric| is_one(metric, part))?.clone()));
        // Not every kernel counts how long threads stand in line, and collections are counted by themselves.
        let may_be_missing = |part: &TimePart| [READY, STOPPED].contains(&part.metric);
        let may_be_there = |part: &TimePart| !may_be_missing(part) || of(*part).is_some();
        let parts: Option<Vec<(TimePart, Metric)>> = ALL.into_iter().filter(may_be_there).map(of).collect();
        parts.map(Parts)
    }

    /// Which there are.
    pub(crate) fn parts(&self) -> impl Iterator<Item = TimePart> {
        self.0.iter().map(|(part, _)| *part)
    }

    /// A row's self time in these parts, which add up to it. Waits are told of as they were recorded, and the self time is that of undisturbed code: where more
    /// was waited than that has room for, each wait has its share of the room.
    pub(crate) fn divide(&self, amounts: &Amounts) -> Vec<u64> {
        let self_ns = amounts.self_ns;
        let values: Vec<(Provenance, u64)> =
            self.0.iter().map(|(part, metric)| (part.known, metric.of(amounts).own)).collect();
        let sum = |is_meant: fn(Provenance) -> bool| {
            let meant = values.iter().filter(|(known, _)| is_meant(*known));
            meant.fold(0_u64, |sum, (_, value)| sum.saturating_add(*value))
        };
        let told = sum(|known| known == Provenance::Events);
        let room = self_ns.saturating_sub(sum(|known| known != Provenance::Events));
        let (mut so_far, mut given) = (0_u64, 0);
        let mut part = |(known, value): &(Provenance, u64)| {
            if *known != Provenance::Events {
                return (*value).min(self_ns);
            }
            so_far = so_far.saturating_add(*value);
            let until = (u128::from(room) * u128::from(so_far)).checked_div(u128::from(told)).unwrap_or(0) as u64;
            until - std::mem::replace(&mut given, until)
        };
        let mut parts: Vec<u64> = values.iter().map(&mut part).collect();
        // The first is what the others leave.
        let others: u64 = parts.iter().skip(1).sum();
        if let Some(first) = parts.first_mut() {
            *first = self_ns.saturating_sub(others);
        }
        parts
    }

    /// The largest part of a row's self time, and which part of it that is; `None` if it has none.
    pub(crate) fn largest(&self, amounts: &Amounts) -> Option<(&'static str, f64)> {
        let divided = self.divide(amounts);
        let (at, largest) = divided.iter().enumerate().max_by_key(|(at, value)| (**value, std::cmp::Reverse(*at)))?;
        (*largest > 0).then(|| (self.0[at].0.part, *largest as f64 / amounts.self_ns as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Column, Extent, MethodIndex, Node, NodeAmounts, NodeIndex, Tree, Unit};

    /// A profile of one node with such a self time, and values of the metrics of all parts.
    fn profile(self_ns: u64, values: [u64; ALL.len()]) -> Profile {
        let node = Node { calls: 1, self_ns, total_ns: self_ns, ..Node::empty(MethodIndex(0)) };
        let mut tree = Tree::of(vec![node]);
        tree.counted = values.iter().map(|value| Column::of(&tree.nodes, [(*value, 0)])).collect();
        let metric =
            |part: TimePart| Metric::counted(part.metric, part.part, Unit::Nanoseconds, Extent::OwnAndTotal, "");
        Profile { counted: ALL.map(metric).to_vec(), ..profile_of(tree, Vec::new(), 1) }
    }

    fn divided(self_ns: u64, values: [u64; ALL.len()]) -> Vec<u64> {
        let profile = profile(self_ns, values);
        let row = NodeAmounts::of(&profile, &profile.merged).at(NodeIndex(0));
        Parts::of(&profile).expect("waits").divide(&row)
    }

    #[test]
    fn parts_add_up_to_the_self_time() {
        assert_eq!(divided(100, [30, 10, 10, 20, 5, 15, 0, 0, 0, 10]), [30, 10, 10, 20, 5, 15, 0, 0, 0, 10]);
        assert_eq!(
            divided(10, [0, 0, 0, 1_000, 0, 2_000, 0, 0, 0, 0]),
            [0, 0, 0, 3, 0, 7, 0, 0, 0, 0],
            "all was waited"
        );
        assert_eq!(
            divided(10, [100, 0, 5, 5, 0, 0, 0, 0, 0, 50]),
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 10],
            "of values that lie"
        );
        assert_eq!(divided(0, [0; 10]), [0; 10]);
        assert_eq!(divided(7, [0; 10]), [7, 0, 0, 0, 0, 0, 0, 0, 0, 0], "what nothing is known of ran");
        let huge = divided(u64::MAX, [1, 0, u64::MAX, u64::MAX, 0, 0, 0, 0, 0, 0]);
        assert_eq!(huge.iter().map(|part| u128::from(*part)).sum::<u128>(), u128::from(u64::MAX));
    }

    #[test]
    fn the_largest_is_named_with_its_share() {
        let largest = |self_ns, values| {
            let profile = profile(self_ns, values);
            let row = NodeAmounts::of(&profile, &profile.merged).at(NodeIndex(0));
            Parts::of(&profile).expect("waits").largest(&row)
        };
        assert_eq!(largest(100, [39, 0, 0, 0, 61, 0, 0, 0, 0, 0]), Some(("parked", 0.61)));
        assert_eq!(largest(100, [50, 0, 50, 0, 0, 0, 0, 0, 0, 0]), Some(("running", 0.5)));
        assert_eq!(largest(0, [0; 10]), None);
    }

    #[test]
    fn a_profile_without_waits_has_no_parts() {
        let mut without = profile(1, [0; 10]);
        without.counted.truncate(3);
        assert!(Parts::of(&without).is_none());
    }
}
