//! Waits of which both ends are told.

use super::*;

/// Of each node: its time, how long and how often it was parked, how long it read.
fn waits(decoder: &Decoder) -> Vec<(u64, u64, u64, u64)> {
    let (_, tree) = decoder.threads().next().expect("a thread");
    let count = |id, counter| tree.count(id, counter);
    let of = |(id, node): (NodeId, &crate::cct::Node)| {
        (node.self_measured_ns, count(id, Counter::ParkedNs), count(id, Counter::Parked), count(id, Counter::SocketNs))
    };
    tree.nodes().skip(1).map(of).collect()
}

#[test]
fn a_wait_is_a_part_of_the_method_on_top() {
    let decoder = decoded("w@1 x@2 *1@10 w@20 x@50 +2@60 w@65 x@75 -2@80 w@81 x@82 -1@90");
    assert_eq!(waits(&decoder), [(60, 31, 2, 0), (20, 10, 1, 0)]);
    assert_eq!(
        (trees(&decoder), decoder.events(), decoder.healed()),
        (vec!["t1 1 1 60".into(), "t1 1/2 1 20".into()], 4, 0)
    );
}

#[test]
fn what_is_called_meanwhile_waits_too() {
    assert_eq!(waits(&decoded("*1@10 w@20 +2@30 -2@45 x@50 -1@60")), [(35, 15, 1, 0), (15, 15, 0, 0)]);
}

#[test]
fn pauses_of_ours_are_no_part_of_it_and_waits_for_monitors_count_as_such() {
    assert_eq!(waits(&decoded("*1@10 w@20 p@5 x@50 -1@60")), [(45, 25, 1, 0)]);
    assert_eq!(waits(&decoded("*1@10 w@20 m@12 x@50 -1@60")), [(50, 18, 1, 0)]);
    assert_eq!(waits(&decoded("*1@10 m@5 w@20 x@50 -1@60")), [(50, 30, 1, 0)]);
}

#[test]
fn of_waits_within_each_other_the_outermost_counts() {
    assert_eq!(waits(&decoded("*1@10 i@20 w@25 x@30 w@35 x@40 x@50 -1@60")), [(50, 0, 0, 30)]);
}

#[test]
fn a_wait_whose_end_is_missing_is_over_when_its_method_is_left() {
    assert_eq!(waits(&decoded("*1@10 +2@20 w@30 -2@40 -1@60")), [(30, 0, 0, 0), (20, 10, 1, 0)]);
    assert_eq!(waits(&decoded("*1@10 +2@20 w@30 -1@60")), [(10, 0, 0, 0), (40, 30, 1, 0)]);
    assert_eq!(waits(&decoded("*1@10 w@20 *1@40 -1@60")), [(30, 0, 1, 0)], "nobody knows when the first ended");
    assert_eq!(waits(&decoded("*1@10 x@20 -1@60")), [(50, 0, 0, 0)], "and one without a beginning is none");
}

#[test]
fn a_wait_that_goes_on_has_its_time_so_far_and_is_there_after_what_was_before_is_forgotten() {
    let mut decoder = decoded("*1@10 +2@15 w@20");
    let mut now = decoder.clone();
    now.finish(120);
    assert_eq!(waits(&now), [(5, 0, 0, 0), (105, 100, 1, 0)]);
    decoder.clear(100);
    decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words("x@130 -2@140 -1@150"));
    assert_eq!(waits(&decoder), [(10, 0, 0, 0), (40, 30, 0, 0)]);
}

#[test]
fn each_class_that_is_loaded_is_told_of_wherever_its_word_is() {
    // Some among words that are followed one after the other, some beside what needs care.
    let decoder = decoded("*1@0 a@7 +2@20 -2@30 a@8 +2@40 a@9 -2@50 p@5 a@10 w@60 a@11 x@70 -1@80");
    let (loads, others) = decoder.loads();
    let told: Vec<(i64, u64)> = loads.iter().map(|load| (load.after_ns, load.class)).collect();
    assert_eq!((told, others), (vec![(0, 7), (30, 8), (40, 9), (50, 10), (60, 11)], 0));
}

#[test]
fn class_loading_is_told_beside_waits_and_may_have_some_in_it() {
    let decoder = decoded("*1@0 l@10 +2@20 w@25 x@35 l@40 k@50 -2@60 k@70 w@80 x@85 -1@90");
    assert_eq!(waits(&decoder), [(50, 5, 1, 0), (40, 10, 1, 0)]);
    let (_, tree) = decoder.threads().next().expect("a thread");
    let loading: Vec<u64> = tree.nodes().skip(1).map(|(id, _)| tree.count(id, Counter::LoadingNs)).collect();
    assert_eq!(loading, [20, 40], "the outermost counts");
}
