//! Where threads stand in line for processors, and calls wait for each other.

use super::*;

#[test]
fn who_stands_in_line_for_a_processor_waits_for_what_probes_run_too() {
    // Two calls of 1.6 s each, of which 0.3 s are probes.
    let dropped = |queued_ns: u64| {
        let scheduled = Scheduled { ran_ns: 100 - queued_ns, queued_ns };
        let mut governor =
            Governor::new(Limit::UNASKED, PROBES, FxHashMap::default()).with_scheduled(scheduled, Duration::ZERO);
        governor.observe(tally_of_calls(2.0, ROOT, 2_600, &[(2, 6_000_000, 0)], &IN_PLACE), s(1));
        ids(&governor.decide(s(1), BATCH, all))
    };
    assert_eq!(dropped(0), Vec::<u32>::new(), "no longer than it takes anyway");
    assert_eq!(dropped(80), [2], "nearly the whole call, with the waiting for them");
}

#[test]
fn where_calls_wait_for_each_other_probes_have_no_more_than_what_calls_run() {
    // A hundred calls of 350 ms a second, and 40 ms of probes in each.
    let known = FxHashMap::from_iter([(ROOT, Undisturbed { call_ns: 350e6, per_second: 100.0 })]);
    let dropped = |processors_used: u64| {
        let scheduled = Scheduled { ran_ns: processors_used * 1_000_000_000, queued_ns: 0 };
        let governor = Governor::new(Limit::UNASKED, PROBES, known.clone()).with_processors(2);
        let mut governor = governor.with_scheduled(scheduled, s(1));
        governor.observe(tally_of_calls(20.0, ROOT, 7_000, &[(2, 8_000_000, 0)], &IN_PLACE), s(1));
        ids(&governor.decide(s(1), BATCH, all))
    };
    assert_eq!(dropped(2), [2], "they run for 20 ms");
    assert_eq!(dropped(35), Vec::<u32>::new(), "they run all the time");
}
