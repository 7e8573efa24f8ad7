//! What is allowed while code is slow that hotswaps have discarded.

use super::*;

#[test]
fn more_is_allowed_while_code_is_slow_and_a_tenth_of_a_second_at_most() {
    // Of calls that took so many ms before, 20 in a second, each with so many ms of probes and so many of its own.
    let dropped_at = |now: Duration, before_ms: f64, probes_ms: f64, own_ms: f64| {
        let known = FxHashMap::from_iter([(ROOT, Undisturbed { call_ns: before_ms * 1e6, per_second: 1e6 })]);
        let mut governor = Governor::new(Limit::UNASKED, PROBES, known).with_processors(2);
        let below = [(2, (20.0 * probes_ms * 10_000.0) as u64, 0)];
        governor.observe(tally_of_calls(20.0, ROOT, (20.0 * own_ms) as u64, &below, &IN_PLACE), now);
        !governor.decide(now, BATCH, all).is_empty()
    };
    let dropped = |before_ms: f64, probes_ms: f64, own_ms: f64| dropped_at(s(1), before_ms, probes_ms, own_ms);
    assert!(dropped(1.0, 3.0, 1.5), "it is as fast as before");
    assert!(!dropped(1.0, 3.0, 2.5), "another drop would make it no faster");
    assert!(dropped(1.0, 5.0, 2.5));
    assert!(!dropped(40.0, 90.0, 100.0));
    assert!(dropped(40.0, 110.0, 100.0));
    assert!(dropped_at(s(5), 1.0, 3.0, 2.5), "it is slow for its probes by then");
}
