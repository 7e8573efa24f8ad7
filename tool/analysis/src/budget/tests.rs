//! Which methods are dropped, in which order, and when none is.

use std::time::Duration;

use headwater_protocol::word::Event;
use headwater_protocol::{MethodId, ThreadId};
use rustc_hash::FxHashMap;

mod gain;
mod slow;
mod waiting;
use super::*;
use crate::decode::{ChunkCursor, Controls, DecodeOptions, Decoder, Scheduled};
use headwater_profile::profile::{Clock, ClockMode, ClockSource};

const ROOT: MethodId = MethodId(1);
const BATCH: Duration = Duration::from_millis(1);
const CLOCK: Clock = Clock {
    mode: ClockMode::Exact,
    source: ClockSource::NanoTime,
    inner_ns: 25.0,
    inner_spread_ns: 0.0,
    outer_ns: 25.0,
    outer_spread_ns: 0.0,
    object_ns: 0.0,
    step_ns: None,
    queued: None,
    drift: None,
};
const PROBES: Probes = Probes { clock: CLOCK, idle_ns: 3.0, timing_ns: 0.0 };

/// A method below the root: its number, how often it was called, and its own time without probes, in ms.
type Below = (u32, u64, u64);

/// So much of one root, called a thousand times; everything else is called by it.
fn tally_of(root: MethodId, own_ms: u64, below: &[Below]) -> Tally {
    tally_of_calls(1_000.0, root, own_ms, below, &CLOCK)
}

fn tally_of_calls(root_calls: f64, root: MethodId, own_ms: u64, below: &[Below], clock: &Clock) -> Tally {
    let made: f64 = below.iter().map(|(_, calls, _)| *calls as f64).sum();
    let mut methods = FxHashMap::default();
    let own = own_ms as f64 * 1e6 + root_calls * clock.inner_ns + made * clock.outer_ns;
    methods.insert(root, MethodTally { calls: root_calls, calls_made: made, self_ns: own });
    for &(method, calls, own_ms) in below {
        let calls = calls as f64;
        let self_ns = own_ms as f64 * 1e6 + calls * clock.inner_ns;
        methods.insert(MethodId(method), MethodTally { calls, calls_made: 0.0, self_ns });
    }
    let measured_ns = methods.values().map(|method| method.self_ns).sum();
    let pairs = root_calls + made;
    let tally = RootTally { calls: root_calls, threads: 1.0, pairs, measured_ns, methods, ..RootTally::default() };
    Tally { roots: FxHashMap::from_iter([(root, tally)]), ..Tally::default() }
}

fn tally(own_ms: u64, below: &[Below]) -> Tally {
    tally_of(ROOT, own_ms, below)
}

/// Calls that took so long, and came seldom.
fn undisturbed(call_ns: f64) -> Undisturbed {
    Undisturbed { call_ns, per_second: 0.0 }
}

fn governor(limit: &str) -> Governor {
    Governor::new(limit.parse().expect("a limit"), PROBES, FxHashMap::default())
}

const fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn all(_: MethodId) -> bool {
    true
}

fn ids(methods: &[MethodId]) -> Vec<u32> {
    methods.iter().map(|method| method.0).collect()
}

/// What is dropped after a second that went like this.
fn decided(limit: &str, own_ms: u64, below: &[Below]) -> Vec<u32> {
    let mut governor = governor(limit);
    governor.observe(tally(own_ms, below), s(1));
    ids(&governor.decide(s(1), BATCH, all))
}

#[test]
fn a_budget_is_a_percentage() {
    for (text, part) in [("5%", 0.05), (" 0.5 % ", 0.005), ("100%", 1.0), ("1e1%", 0.1)] {
        assert!((text.parse::<Limit>().expect(text).least() - part).abs() < 1e-12, "{text}");
    }
    assert_eq!("7%".parse::<Limit>().map(|limit| limit.to_string()), Ok("7%".to_owned()));
    for text in ["", "%", "5", "0.05", "five%", "5%%", "nan%", "inf%", "5 ms"] {
        assert_eq!(text.parse::<Limit>(), Err(LimitError::NoPercentage(text.to_owned())));
    }
    assert_eq!("0%".parse::<Limit>(), Err(LimitError::Nothing));
    assert_eq!("-5%".parse::<Limit>(), Err(LimitError::Nothing));
    assert_eq!("1001%".parse::<Limit>(), Err(LimitError::TooLarge));
}

/// In its place a pair costs 100 ns, whatever it was calibrated to.
const IN_PLACE: Clock = Clock { inner_ns: 50.0, outer_ns: 50.0, ..CLOCK };

/// What is dropped, unless something else is asked for, after a second with so many calls like this together, one of which took so long before.
fn decided_unasked_knowing(
    undisturbed_ms: Option<u64>,
    root_calls: f64,
    own_ms: u64,
    below: &[Below],
) -> (Vec<u32>, Governor) {
    let clock = Clock { inner_ns: 12.0, outer_ns: 13.0, ..CLOCK };
    let undisturbed_ns = undisturbed_ms.map(|ms| (ROOT, undisturbed(ms as f64 * 1e6))).into_iter().collect();
    let mut governor = Governor::new(Limit::UNASKED, Probes { clock, ..PROBES }, undisturbed_ns);
    governor.observe(tally_of_calls(root_calls, ROOT, own_ms, below, &IN_PLACE), s(1));
    (ids(&governor.decide(s(1), BATCH, all)), governor)
}

fn decided_unasked(root_calls: f64, own_ms: u64, below: &[Below]) -> Vec<u32> {
    decided_unasked_knowing(None, root_calls, own_ms, below).0
}

#[test]
fn unasked_a_call_is_made_longer_by_a_tenth_of_a_second_at_most() {
    // 1.5 million calls of 100 ns are 150 ms, where 18 ms would do.
    let below = [(2, 1_500_000, 0), (3, 1_000, 8)];
    assert_eq!(decided_unasked(2.0, 20, &[(2, 3_000_000, 0), (3, 1_000, 16)]), [2]);
    assert_eq!(decided_unasked(2.0, 10, &below), Vec::<u32>::new(), "75 ms a call");
    assert_eq!(decided_unasked(1.0, 10, &below), Vec::<u32>::new(), "it goes on");
    assert_eq!(decided_unasked(1.0, 100, &[(2, 35_000_000, 0)]), [2], "for too long");
    assert_eq!(decided_unasked(10_000.0, 10, &below), Vec::<u32>::new(), "however many times as long that is");
}

#[test]
fn unasked_probes_have_a_tenth_of_the_processors_at_most_or_as_much_as_the_calls() {
    // 4 ms a call of 1 ms.
    let dropped = |per_second: f64, recorded: f64, processors: usize| {
        let known = FxHashMap::from_iter([(ROOT, Undisturbed { call_ns: 1e6, per_second })]);
        let mut governor = Governor::new(Limit::UNASKED, PROBES, known).with_processors(processors);
        let below = [(2, (recorded * 40_000.0) as u64, 0)];
        governor.observe(tally_of_calls(recorded, ROOT, recorded as u64, &below, &IN_PLACE), s(1));
        (ids(&governor.decide(s(1), BATCH, all)), governor.limit())
    };
    let longer = |longer_ns| Limit::Call { longer_ns };
    assert_eq!(dropped(40.0, 20.0, 2), (vec![], Limit::UNASKED), "160 ms a second");
    assert_eq!(dropped(80.0, 20.0, 2), (vec![2], longer(2_500_000)), "320, though it is slower now");
    assert_eq!(dropped(0.0, 80.0, 2), (vec![2], longer(2_500_000)), "as seen");
    assert_eq!(dropped(80.0, 20.0, 4), (vec![], Limit::UNASKED));
    assert_eq!(dropped(8_000.0, 20.0, 2), (vec![2], longer(1_000_000)), "it may be made twice as long");
}

#[test]
fn calls_from_before_the_recorded_time_are_not_taken_for_frequent_ones() {
    // 4 ms a call of 1 ms; 20 of them while recording is prepared, and 2 in its first tenth of a second.
    let known = FxHashMap::from_iter([(ROOT, undisturbed(1e6))]);
    let mut governor = Governor::new(Limit::UNASKED, PROBES, known).with_processors(2);
    let of = |calls: f64| tally_of_calls(calls, ROOT, calls as u64, &[(2, (calls * 40_000.0) as u64, 0)], &IN_PLACE);
    governor.observe(of(20.0), Duration::ZERO);
    governor.observe(of(22.0), Duration::from_millis(100));
    assert_eq!(governor.decide(Duration::from_millis(100), BATCH, all), []);
}

#[test]
fn a_part_is_one_of_what_calls_took_before_anything_was_changed() {
    // 50 ms of probes, in calls that take 10 times as long as before.
    let dropped = |calls: f64, known: Option<Undisturbed>| {
        let known = known.map(|calls| (ROOT, calls)).into_iter().collect();
        let mut governor = Governor::new(Limit::Part(0.1), PROBES, known);
        governor.observe(tally_of_calls(calls, ROOT, 1_000, &[(2, 1_000_000, 0)], &CLOCK), s(1));
        ids(&governor.decide(s(1), BATCH, all))
    };
    assert_eq!(dropped(1_000.0, None), Vec::<u32>::new());
    assert_eq!(dropped(1_000.0, Some(undisturbed(100e3))), [2]);
    assert_eq!(dropped(1.0, Some(undisturbed(100e3))), Vec::<u32>::new(), "it may be a long one");
    assert_eq!(dropped(0.0, Some(undisturbed(100e3))), Vec::<u32>::new(), "it goes on");
}

#[test]
fn unasked_a_long_call_is_made_as_long_again_at_most() {
    assert_eq!(decided_unasked(2.0, 800, &[(2, 7_000_000, 0)]), Vec::<u32>::new(), "350 ms a call");
    assert_eq!(decided_unasked(2.0, 800, &[(2, 9_000_000, 0)]), [2], "450 ms a call");
}

#[test]
fn unasked_half_of_what_is_allowed_is_left_for_a_call_that_goes_on() {
    let below: Vec<Below> = (2..12).map(|method| (method, 400_000, 0)).collect();
    // 200 ms a call, of which 100 are too much.
    assert_eq!(decided_unasked(2.0, 20, &below).len(), 8, "of ten");
}

#[test]
fn what_a_call_took_before_counts_and_not_what_it_takes_while_its_code_is_interpreted() {
    // 10 ms took a second each, with 150 ms of probes.
    let below: [Below; 2] = [(2, 3_000_000, 0), (3, 1_000, 1_600)];
    assert_eq!(decided_unasked(2.0, 100, &below), Vec::<u32>::new(), "a call may take as long again");
    assert_eq!(decided_unasked_knowing(Some(10), 2.0, 100, &below).0, [2]);
    assert_eq!(decided_unasked_knowing(Some(400), 2.0, 100, &below).0, Vec::<u32>::new());
}

#[test]
fn a_call_that_is_too_long_already_is_not_waited_for() {
    // A call may take 100 ms more, and another may have begun before: 240 and 180 ms of probes.
    let below = |calls| [(2, calls, 0), (3, 200_000, 0)];
    let call = |calls| decided_unasked_knowing(Some(50), 1.0, 10, &below(calls)).0;
    assert_eq!(call(2_200_000), [2], "of the rest of it nothing is known");
    assert_eq!(call(1_600_000), Vec::<u32>::new());
    assert_eq!(decided_unasked(1.0, 10, &below(2_200_000)), Vec::<u32>::new(), "nor of what it took before");
}

#[test]
fn the_ends_of_many_threads_calls_are_not_taken_for_one_call() {
    let dropped = |threads| {
        let undisturbed_ns = FxHashMap::from_iter([(ROOT, undisturbed(50e6))]);
        let mut governor = Governor::new(Limit::UNASKED, PROBES, undisturbed_ns);
        // Since the last drop two calls have begun, and those of all threads ended that had begun before: 60 ms of probes each.
        let mut tally = tally_of_calls(2.0, ROOT, 100, &[(2, 30_000_000, 0)], &IN_PLACE);
        tally.roots.values_mut().for_each(|root| root.threads = threads);
        governor.observe(tally, s(1));
        ids(&governor.decide(s(1), BATCH, all))
    };
    assert_eq!(dropped(50.0), Vec::<u32>::new());
    assert_eq!(dropped(1.0), [2]);
}

#[test]
fn calls_from_when_little_had_probes_do_not_hide_later_ones() {
    let undisturbed_ns = FxHashMap::from_iter([(ROOT, undisturbed(10e6))]);
    let mut governor = Governor::new(Limit::UNASKED, PROBES, undisturbed_ns);
    let few = [(2, 100_000, 0)];
    let mut so_far = tally_of_calls(20.0, ROOT, 2_000, &few, &IN_PLACE);
    governor.observe(so_far.clone(), s(1));
    assert_eq!(governor.decide(s(1), BATCH, all), []);
    let many = tally_of_calls(1.0, ROOT, 100, &[(2, 2_000_000, 0)], &IN_PLACE);
    let late = (2..12).find(|second| {
        so_far.roots.values_mut().for_each(|root| root.add(&many.roots[&ROOT], 1.0));
        governor.observe(so_far.clone(), s(*second));
        !governor.decide(s(*second), BATCH, all).is_empty()
    });
    assert!(late.is_some_and(|second| second < 8), "200 ms a call, of which 100 are allowed: {late:?}");
}

#[test]
fn what_is_too_dear_goes_at_once() {
    let (dropped, mut governor) = decided_unasked_knowing(Some(10), 2.0, 100, &[(2, 3_000_000, 0)]);
    assert_eq!(dropped, [2]);
    governor.stays(MethodId(2));
    let ms = Duration::from_millis;
    assert_eq!(ids(&governor.decide(Duration::ZERO, ms(1), all)), [2], "before recording begins");
    governor.stays(MethodId(2));
    assert_eq!(governor.decide(ms(400), ms(201), all), [], "for a twentieth of four seconds");
    assert_eq!(ids(&governor.decide(ms(400), ms(199), all)), [2]);
    // Probes have taken 1.5 s.
    let (dropped, mut governor) = decided_unasked_knowing(Some(10), 2.0, 100, &[(2, 15_000_000, 0)]);
    assert_eq!(dropped, [2]);
    governor.stays(MethodId(2));
    assert_eq!(ids(&governor.decide(ms(400), ms(370), all)), [2], "a quarter of what it ends");
    governor.stays(MethodId(2));
    assert_eq!(governor.decide(ms(400), ms(390), all), []);
}

#[test]
fn within_the_budget_nothing_is_dropped() {
    // 100,000 calls of 50 ns are 5 ms, of 200 ms.
    assert!(decided("5%", 100, &[(2, 100_000, 100)]).is_empty());
    assert!(!decided("2%", 100, &[(2, 100_000, 100)]).is_empty());
}

#[test]
fn what_costs_most_for_what_it_tells_goes_first() {
    let tiny = (2, 1_000_000, 1);
    let busy = (3, 1_000_000, 300);
    assert_eq!(decided("50%", 100, &[tiny, busy]), Vec::<u32>::new(), "25%");
    assert_eq!(decided("20%", 100, &[busy, tiny]), [2]);
    assert_eq!(decided("5%", 100, &[tiny, busy]), [2, 3], "one is not enough");
    // Both take no time to speak of: the one with more calls saves more.
    assert_eq!(decided("20%", 400, &[(2, 400_000, 0), (3, 1_600_000, 0)]), [3]);
}

#[test]
fn unasked_what_only_calls_others_stays_if_it_costs_little() {
    // Thirty that take nothing cost 110 ms together, one that takes a time of its own 96; half of them would be enough.
    let mut below = vec![(2, 960_000, 40)];
    below.extend((3..33).map(|method| (method, 36_700, 0)));
    let dropped = decided_unasked(2.0, 20, &below);
    assert!(dropped.len() == 4 && dropped.contains(&2), "{dropped:?}");
}

#[test]
fn no_more_is_dropped_than_is_needed() {
    // The first by its score saves 2.5 %, the second 25 %, which is enough by itself.
    assert_eq!(decided("10%", 200, &[(2, 100_000, 0), (3, 1_000_000, 2), (4, 10, 0)]), [3]);
}

#[test]
fn a_root_is_never_dropped_and_its_own_cost_may_be_more_than_is_allowed() {
    let mut governor = governor("5%");
    // Each second a million calls of a root that takes 60 ns, and calls one method.
    let mut all_so_far = RootTally::default();
    let mut at = 0;
    let mut pass = |governor: &mut Governor, below: bool| {
        at += 1;
        let mut methods = FxHashMap::default();
        let made = if below { 1e6 } else { 0.0 };
        methods.insert(ROOT, MethodTally { calls: 1e6, calls_made: made, self_ns: 60e6 + 1e6 * 25.0 + made * 25.0 });
        methods.insert(MethodId(2), MethodTally { calls: made, calls_made: 0.0, self_ns: made * 25.0 });
        let measured_ns = methods.values().map(|method| method.self_ns).sum();
        let pairs = 1e6 + made;
        let latest = RootTally { calls: 1e6, threads: 1.0, pairs, measured_ns, methods, ..RootTally::default() };
        all_so_far.add(&latest, 1.0);
        let roots = FxHashMap::from_iter([(ROOT, all_so_far.clone())]);
        governor.observe(Tally { roots, ..Tally::default() }, s(at));
        let decided = governor.decide(s(at), BATCH, |method| method != ROOT);
        decided.iter().for_each(|method| governor.dropped(*method, s(at)));
        ids(&decided)
    };
    assert_eq!(pass(&mut governor, true), [2], "as near to it as can be");
    assert!(governor.roots().is_empty(), "what was measured before says nothing now");
    assert!(pass(&mut governor, false).is_empty());
    let [root] = governor.roots()[..] else { panic!("one root") };
    let (own, whole) = (root.own_overhead(&CLOCK), root.overhead(&CLOCK));
    assert!(root.exhausted && own == whole && (0.8..0.9).contains(&own), "{own} of {whole}");
}

#[test]
fn what_would_not_be_enough_is_not_given_up_in_vain() {
    let mut governor = governor("5%");
    let mut dense_root = tally(1, &[(2, 100_000, 90), (3, 100_000, 1)]);
    dense_root.roots.values_mut().for_each(|root| {
        (root.calls, root.pairs) = (1e6, 1.2e6);
        root.measured_ns += 1e6 * 25.0;
        root.methods.get_mut(&ROOT).expect("it is there").calls = 1e6;
    });
    governor.observe(dense_root, s(1));
    let can_go = |method| method != ROOT;
    assert_eq!(ids(&governor.decide(s(1), BATCH, can_go)), [3], "5 ms for 1 ms; the other tells 90 ms");
    governor.stays(MethodId(3));
    assert!(governor.decide(s(2), BATCH, |method| method.0 == 2).is_empty());
    assert!(governor.roots()[0].exhausted);
}

#[test]
fn the_root_that_is_dearest_counts_not_all_together() {
    let mut waiting = tally_of(MethodId(7), 60_000, &[(8, 10, 0)]);
    waiting.roots.extend(tally(10, &[(2, 1_000_000, 50)]).roots);
    let mut governor = governor("5%");
    governor.observe(waiting, s(1));
    assert_eq!(ids(&governor.decide(s(1), BATCH, all)), [2]);
}

#[test]
fn a_method_below_two_roots_is_dropped_once() {
    let shared = (5, 1_000_000, 10);
    let mut both = tally(100, &[shared]);
    both.roots.extend(tally_of(MethodId(2), 200, &[shared]).roots);
    let mut governor = governor("5%");
    governor.observe(both, s(1));
    assert_eq!(ids(&governor.decide(s(1), BATCH, all)), [5]);
}

#[test]
fn little_time_says_little() {
    assert!(decided("5%", 20, &[(2, 500_000, 1)]).is_empty());
    assert_eq!(decided("5%", 60, &[(2, 500_000, 1)]), [2]);
}

#[test]
fn after_a_drop_it_waits_what_comes_of_it() {
    let mut governor = governor("5%");
    let first = tally(100, &[(2, 1_000_000, 1), (3, 60_000, 1)]);
    governor.observe(first.clone(), s(1));
    assert_eq!(ids(&governor.decide(s(1), BATCH, all)), [2], "without it 3%");
    assert!(governor.decide(s(2), BATCH, all).is_empty(), "the first is not over yet");
    governor.dropped(MethodId(2), s(2));
    let [dropped] = governor.all_dropped() else { panic!("one") };
    assert_eq!((dropped.method, dropped.at), (MethodId(2), s(2)));
    assert!(governor.decide(s(2), BATCH, all).is_empty(), "code is being compiled");
    // What comes now is what came in since: calls of another method, too many.
    let mut second = first;
    second.roots.values_mut().for_each(|root| root.add(&tally(100, &[(3, 500_000, 1)]).roots[&ROOT], 1.0));
    governor.observe(second, s(3));
    assert_eq!(ids(&governor.decide(s(3), BATCH, all)), [3]);
}

#[test]
fn scatter_around_the_limit_drops_nothing_more() {
    // 10 % are allowed; one is dropped at 10.5 %, and with it more than that half per cent.
    assert_eq!(decided("10%", 500, &[(2, 500_000, 1), (3, 550_000, 2)]).len(), 1);
    let rest = decided("10%", 500, &[(2, 500_000, 1), (3, 60_000, 2), (4, 430_000, 100)]);
    assert!(rest.is_empty(), "8.2% is as good as it was meant to be: {rest:?}");
}

#[test]
fn hotswaps_count_and_may_not_take_more_than_half() {
    let dense = [(2, 1_000_000, 1)];
    let mut governor = governor("1%");
    governor.observe(tally(100, &dense), s(1));
    let dear = Duration::from_millis(20);
    assert!(governor.decide(s(1), dear, all).is_empty(), "2% for the hotswap alone");
    assert_eq!(ids(&governor.decide(s(4), dear, all)), [2], "0.5%");
    governor.paused(20_000_000);
    governor.dropped(MethodId(2), s(4));
    governor.observe(tally(100, &[(2, 1_000_000, 1), (3, 1_000_000, 1)]), s(5));
    assert!(governor.decide(s(5), dear, all).is_empty(), "0.8%");
    assert_eq!((governor.batches(), governor.paused_ns()), (1, 20_000_000));
}

#[test]
fn waiting_for_room_for_events_is_overhead_too() {
    // Probes alone would take 2.5 %.
    let below = [(2, 45_000, 1), (3, 5_000, 1)];
    assert!(decided("5%", 100, &below).is_empty());
    let mut governor = governor("5%");
    governor.observe(Tally { waited_ns: 10e6, ..tally(100, &below) }, s(1));
    let [root] = governor.roots()[..] else { panic!("one root") };
    assert!((0.12..0.13).contains(&root.overhead(&CLOCK)), "{root:?}");
    assert_eq!(ids(&governor.decide(s(1), BATCH, all)), [2]);
}

#[test]
fn a_method_that_cannot_go_stays_and_others_go_for_it() {
    let mut governor = governor("20%");
    governor.observe(tally(100, &[(2, 1_000_000, 1), (3, 1_000_000, 300)]), s(1));
    assert_eq!(ids(&governor.decide(s(1), BATCH, |method| method.0 != 2)), [3]);
    governor.stays(MethodId(3));
    assert!(governor.all_dropped().is_empty());
    assert_eq!(ids(&governor.decide(s(2), BATCH, |method| method.0 == 2)), [2], "nothing is pending any more");
}

#[test]
fn what_is_forgotten_is_not_counted_as_recorded() {
    let mut governor = governor("5%");
    governor.observe(tally(100, &[(2, 1_000_000, 1)]), s(1));
    governor.decide(s(1), BATCH, all);
    governor.dropped(MethodId(2), s(1));
    governor.clear();
    assert_eq!(governor.all_dropped()[0].at, Duration::ZERO);
    governor.observe(tally(60, &[(3, 10_000, 1)]), s(1));
    assert!(governor.decide(s(1), BATCH, all).is_empty(), "what is left of it is within the budget");
    assert_eq!(governor.roots().len(), 1);
}

#[test]
fn control_invocations_correct_what_a_pair_costs() {
    let calibrated = governor("5%").clock();
    assert_eq!((calibrated.inner_ns, calibrated.outer_ns), (25.0, 25.0));
    let mut governor = governor("5%");
    let mut tally = tally(100, &[(2, 1_000_000, 100)]);
    // A call took 250 us with 1,001 pairs; without, 150 us and 3 ns for each idle pair: so a pair takes nearly 100 ns.
    tally.roots.values_mut().for_each(|root| root.measured_ns = 250e6);
    tally.controls.insert(ROOT, Controls::of(&[153_003; 50]));
    governor.observe(tally, s(1));
    let clock = governor.clock();
    assert!((95.0..101.0).contains(&(clock.inner_ns + clock.outer_ns)), "{clock:?}");
}

#[test]
fn a_tally_adds_up_all_threads_and_contexts() {
    let mut decoder = Decoder::new(DecodeOptions::default());
    for thread in [1, 2] {
        let root = |time_ns, method| Event::Enter { method: MethodId(method), time_ns, root: true };
        let enter = |time_ns, method| Event::Enter { method: MethodId(method), time_ns, root: false };
        let exit = |time_ns, method| Event::Exit { method: MethodId(method), time_ns, thrown: false };
        // 1 calls 2, which calls 3; and 1 calls 3. Then 4, which is a root too.
        let events = [
            root(0, 1),
            enter(10, 2),
            enter(30, 3),
            exit(35, 3),
            exit(40, 2),
            enter(41, 3),
            exit(46, 3),
            exit(50, 1),
            root(60, 4),
            exit(70, 4),
        ];
        let words: Vec<u64> = events.iter().map(|event| event.encode()).collect();
        decoder.words(&mut ChunkCursor::new(ThreadId(thread), 0), &words);
    }
    let tally = Tally::of(&decoder);
    assert_eq!(tally.roots.len(), 2);
    let root = &tally.roots[&ROOT];
    assert_eq!((root.calls, root.pairs, root.measured_ns), (2.0, 8.0, 100.0));
    let of = |method| root.methods[&MethodId(method)];
    assert_eq!(of(1), MethodTally { calls: 2.0, calls_made: 4.0, self_ns: 2.0 * (10.0 + 1.0 + 4.0) });
    assert_eq!(of(2), MethodTally { calls: 2.0, calls_made: 2.0, self_ns: 2.0 * 25.0 });
    assert_eq!(of(3), MethodTally { calls: 4.0, calls_made: 0.0, self_ns: 2.0 * 10.0 });
    assert_eq!(tally.roots[&MethodId(4)].measured_ns, 20.0);
}

#[test]
fn nothing_is_dropped_where_it_would_be_gone_for_hardly_longer_than_the_pause() {
    for (ends, dropped) in [(s(1) + 10 * BATCH, vec![3]), (s(1) + 9 * BATCH, Vec::new())] {
        let mut governor = governor("5%");
        governor.ends_after(ends);
        governor.observe(tally(100, &[(2, 10_000, 500), (3, 2_000_000, 10)]), s(1));
        assert_eq!(ids(&governor.decide(s(1), BATCH, all)), dropped);
    }
}
