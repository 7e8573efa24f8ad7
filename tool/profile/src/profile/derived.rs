//! Metrics that follow from others: how much a call has, and what part of the time something is.
//!
//! They are defined here and nowhere else. What is divided are sums, of whatever a row stands for: the quotient of a method is no mean of its nodes'
//! quotients, and nothing that adds up.

use super::metric::{How, ONE, Ratio};
use super::{Metric, RUNNING, Unit};

/// What follows from these metrics: of each how much a call has, of each time beside the first which part of it it is, and which part was waited. Nothing
/// follows from one that was counted in a part of the recording: calls and time are of all of it.
pub(crate) fn derived(metrics: &[Metric]) -> Vec<Metric> {
    let calls = metrics.iter().find(|metric| metric.is_calls());
    let time = metrics.iter().find(|metric| metric.is_time());
    let mut derived = Vec::new();
    if let Some(calls) = calls {
        let others = metrics.iter().filter(|metric| metric.is_additive && !metric.is_calls() && !metric.is_of_part());
        derived.extend(others.map(|metric| a_call(metric, calls)));
    }
    if let Some(time) = time {
        let is_part = |metric: &&Metric| metric.unit == Unit::Nanoseconds && !metric.is_time() && !metric.is_of_part();
        derived.extend(metrics.iter().filter(is_part).map(|metric| share(metric, time)));
        derived.extend(metrics.iter().find(|metric| metric.id == RUNNING).map(|running| waited(running, time)));
    }
    derived
}

fn a_call(of: &Metric, calls: &Metric) -> Metric {
    let (unit, one) = if of.unit == Unit::Count { (Unit::Share, ONE) } else { (of.unit, 1) };
    let ratio = Ratio { of: of.clone(), by: calls.clone(), how: How::Each, one };
    let about = format!("Of {}, how much there is for each call.", of.title);
    Metric::ratio(format!("{}-per-call", of.id), format!("{} a call", of.title), unit, about, ratio)
}

fn share(of: &Metric, time: &Metric) -> Metric {
    let ratio = Ratio { of: of.clone(), by: time.clone(), how: How::Part, one: ONE };
    let about = format!("Which part {} is of {}.", of.title, time.title);
    Metric::ratio(format!("{}-share", of.id), format!("{} as a part", of.title), Unit::Share, about, ratio)
}

fn waited(running: &Metric, time: &Metric) -> Metric {
    let ratio = Ratio { of: running.clone(), by: time.clone(), how: How::Rest, one: ONE };
    let about = "Which part of the time threads waited, in whatever: all but what they ran.".to_owned();
    Metric::ratio("wait-share".to_owned(), "waiting as a part".to_owned(), Unit::Share, about, ratio)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Amount, Column, Extent, MethodIndex, Node, NodeAmounts, NodeIndex, Profile, Span, Tree};

    /// A method that is called twice and calls another three times; what each has of bytes and of running time.
    fn profile() -> Profile {
        let node = |parent: Option<usize>, method, calls, self_ns, total_ns| Node {
            parent: parent.map(NodeIndex),
            calls,
            thrown: calls / 3,
            self_ns,
            total_ns,
            error_ns: self_ns / 10,
            total_error_ns: total_ns / 10,
            ..Node::empty(MethodIndex(method))
        };
        let mut tree = Tree::of(vec![node(None, 0, 2, 1_000, 4_000), node(Some(0), 1, 3, 3_000, 3_000)]);
        tree.counted =
            vec![Column::of(&tree.nodes, [(1_000, 0), (500, 0)]), Column::of(&tree.nodes, [(1_000, 0), (600, 0)])];
        let counted = vec![
            Metric::counted("alloc", "allocated", Unit::Bytes, Extent::OwnAndTotal, ""),
            Metric::counted(RUNNING, "time running", Unit::Nanoseconds, Extent::OwnAndTotal, "").uncertain(),
        ];
        Profile { counted, ..profile_of(tree, Vec::new(), 2) }
    }

    fn amount(profile: &Profile, id: &str, node: usize) -> Amount {
        let metric = profile.metric(id).unwrap_or_else(|| panic!("no {id}"));
        let row = NodeAmounts::of(profile, &profile.merged).at(NodeIndex(node));
        let columns = profile.columns(&profile.merged);
        let amount = metric.of(&row);
        assert_eq!(amount, metric.at_node(&profile.merged, &columns, NodeIndex(node)), "{id}: a row is its node");
        amount
    }

    #[test]
    fn each_metric_has_its_own_for_a_call_and_times_are_parts_of_time() {
        let ids: Vec<String> = profile().derived().into_iter().map(|metric| metric.id.into_owned()).collect();
        let calls = ["wall-per-call", "thrown-per-call", "alloc-per-call", "running-per-call"];
        assert_eq!(ids, [&calls[..], &["running-share", "wait-share"]].concat());
        assert!(profile().derived().iter().all(|metric| !metric.is_additive));
    }

    #[test]
    fn nothing_follows_from_what_was_counted_for_a_part_of_the_time() {
        let mut profile = profile();
        let spans = vec![Span { from_ns: 1, to_ns: 2 }];
        profile.counted[0] = profile.counted[0].clone().during(spans);
        let ids: Vec<String> = profile.derived().into_iter().map(|metric| metric.id.into_owned()).collect();
        assert_eq!(ids, ["wall-per-call", "thrown-per-call", "running-per-call", "running-share", "wait-share"]);
        assert!(profile.metric("alloc").is_some(), "its own values are there");
    }

    #[test]
    fn sums_are_divided_and_not_quotients_added() {
        let profile = profile();
        let values = |id, node| {
            let Amount { own, total, .. } = amount(&profile, id, node);
            (own, total)
        };
        assert_eq!(values("alloc-per-call", 0), (500, 750));
        assert_eq!(values("alloc-per-call", 1), (166, 166));
        assert_eq!(values("wall-per-call", 0), (500, 2_000));
        assert_eq!(values("running-share", 0), (ONE, 2 * ONE / 5));
        assert_eq!(values("wait-share", 0), (0, 3 * ONE / 5));
        assert_eq!(values("wait-share", 1), (4 * ONE / 5, 4 * ONE / 5));
        assert_eq!(values("thrown-per-call", 1).0, ONE / 3);
        let columns = profile.columns(&profile.merged);
        let whole = |id: &str| profile.metric(id).expect("there").whole(&profile.merged, &columns);
        assert_eq!(whole("wait-share"), 3 * ONE / 5, "of the tree, as of its root");
    }

    #[test]
    fn a_quotient_is_as_uncertain_as_what_is_divided() {
        let profile = profile();
        assert_eq!(amount(&profile, "wall-per-call", 0).own_error, 50);
        assert_eq!(amount(&profile, "alloc-per-call", 0).own_error, 0, "both are exact");
        // 600 ± 0 of 3,000 ± 300.
        assert_eq!(amount(&profile, "running-share", 1).own_error, ONE / 50);
    }

    #[test]
    fn no_part_is_more_than_the_whole() {
        // What was waited while it was recorded, of what that takes without the profile.
        let profile = profile();
        let [of, by] = ["alloc", "running"].map(|id| profile.metric(id).expect("there"));
        let parts = Ratio { of, by, how: How::Part, one: ONE };
        assert_eq!(parts.quotient((1_480, 10), (1_000, 20)), (ONE, 48 * ONE / 100));
        assert_eq!(parts.quotient((500, 10), (1_000, 0)), (ONE / 2, ONE / 100));
    }

    #[test]
    fn nothing_by_nothing_is_nothing_and_much_does_not_overflow() {
        let mut profile = profile();
        profile.merged.nodes[1] = Node { calls: 0, self_ns: 0, total_ns: 0, ..profile.merged.nodes[1] };
        for metric in profile.derived() {
            assert_eq!(amount(&profile, &metric.id, 1), Amount::default(), "{}", metric.id);
        }
        let ratio =
            Ratio { of: profile.metrics()[0].clone(), by: profile.metrics()[1].clone(), how: How::Each, one: ONE };
        assert_eq!(ratio.quotient((u64::MAX, u64::MAX), (1, 1)), (u64::MAX, u64::MAX));
    }
}
