//! What a drop brings.

use super::*;

#[test]
fn the_nearer_the_end_the_less_a_drop_brings() {
    let decided = |governor: Governor| {
        let mut governor = governor;
        governor.observe(tally(100, &[(3, 2_000_000, 10)]), s(1));
        assert_eq!(ids(&governor.decide(s(1), BATCH, all)), [3]);
        governor
    };
    assert_eq!(decided(governor("5%")).gain(s(1), s(0)), None, "it was asked for");
    // Its probes take 100 ms beside 110.
    let mut unasked = decided(governor("5%"));
    unasked.limit = Limit::UNASKED;
    let gain = |governor: &Governor, compiling| {
        (governor.gain(s(1), compiling).expect("a gain").as_secs_f64() * 10.0).round() / 10.0
    };
    assert_eq!(gain(&unasked, s(0)), 28.6);
    unasked.ends_after(s(5));
    assert_eq!([0, 3, 5].map(|compiling| gain(&unasked, s(compiling))), [1.9, 0.5, 0.0]);
    unasked.is_not_worth_it(s(1));
    assert_eq!(unasked.gain(s(1), s(0)), Some(Duration::ZERO));
    assert_eq!(unasked.decide(s(1), BATCH, all), [], "not at once");
}
