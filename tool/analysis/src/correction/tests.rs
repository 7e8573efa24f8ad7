//! Played recordings, and what becomes of them.

use headwater_protocol::MethodId;
use headwater_protocol::word::{Counter, SITE_BITS};

use rustc_hash::FxHashMap;

use super::*;
use crate::cct::Below;
use crate::decode::{Controls, Partial};
use headwater_profile::profile::{ClockMode, ClockSource, CpuSamples, MethodName, Profile};

mod waiting;

pub(crate) const CLOCK: Clock = Clock {
    mode: ClockMode::Exact,
    source: ClockSource::NanoTime,
    inner_ns: 10.0,
    inner_spread_ns: 1.0,
    outer_ns: 20.0,
    outer_spread_ns: 0.5,
    object_ns: 0.0,
    step_ns: None,
    queued: None,
    drift: None,
};

/// A root and what it calls: calls and measured self time of each.
fn called(root: (u64, u64), callees: &[(u64, u64)]) -> Cct {
    let mut cct = Cct::new();
    let outer = cct.child(NodeId::TOP, MethodId(1));
    let add = |id: NodeId, cct: &mut Cct, (calls, measured): (u64, u64)| {
        cct.node_mut(id).calls = calls;
        cct.node_mut(id).self_measured_ns = measured;
    };
    add(outer, &mut cct, root);
    for (index, callee) in callees.iter().enumerate() {
        let id = cct.child(outer, MethodId(index as u32 + 2));
        add(id, &mut cct, *callee);
    }
    cct
}

fn measured(cct: &Cct) -> Tree {
    correct(cct, &CLOCK, &Wholes::default(), None, None)
}

/// By so many samples of each node in each half of the phase.
fn sampled(cct: &Cct, total_ns: f64, own: &[[u32; 2]]) -> Tree {
    let whole = Whole { total_ns, error_ns: 0.01 * total_ns, unsettled: 0.0, is_timed: false };
    let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
    correct(cct, &CLOCK, &wholes, Some(&Placed::of([&[[0; 2]], own].concat())), None)
}

fn selfs(tree: &Tree) -> Vec<u64> {
    tree.nodes.iter().map(|node| node.self_ns).collect()
}

#[test]
fn without_samples_the_inner_time_is_the_callees_and_the_outer_time_the_callers() {
    let tree = measured(&called((1, 1_000), &[(5, 500)]));
    assert_eq!(selfs(&tree), [1_000 - 10 - 5 * 20, 500 - 5 * 10]);
    assert_eq!(tree.nodes[0].total_ns, 890 + 450);
    assert_eq!((tree.nodes[0].parent, tree.nodes[1].parent), (None, Some(NodeIndex(0))));
}

#[test]
fn of_what_was_measured_a_part_is_left_however_many_probes_there_were() {
    let tree = measured(&called((1, 100), &[(1_000_000, 9_000_000)]));
    assert_eq!(selfs(&tree), [20, 1_800_000]);
    assert!(tree.nodes[1].total_error_ns > tree.nodes[1].total_ns, "and is not known: {tree:?}");
}

#[test]
fn what_telling_of_objects_takes_is_not_the_programs() {
    let mut cct = called((1, 1_000), &[(5, 500)]);
    let root = cct.roots()[0].0;
    (0..20).for_each(|_| cct.add_counted(root, Counter::Objects, 3 << SITE_BITS));
    let told = Clock { object_ns: 5.0, ..CLOCK };
    let [before, after] = [CLOCK, told].map(|clock| correct(&cct, &clock, &Wholes::default(), None, None));
    assert_eq!((selfs(&before), selfs(&after)), (vec![890, 450], vec![790, 450]));
    assert!(after.nodes[0].error_ns > before.nodes[0].error_ns, "and may be wrong: {after:?}");
}

/// Two callees that take the same. In one of them probes cost 30 ns, as calibrated; in the other, which is not inlined any more, 90.
#[test]
fn uneven_probes_do_not_matter_where_undisturbed_code_was_sampled() {
    let cct = called((100, 10_000), &[(100_000, 100_000 * 20), (100_000, 100_000 * 80)]);
    let tree = sampled(&cct, 2_000_000.0, &[[10, 10], [245, 245], [245, 245]]);
    let [_, one, other] = tree.nodes[..] else { panic!("three nodes") };
    for node in [one, other] {
        assert!((node.self_ns as f64 - 980_000.0).abs() < 15_000.0, "{tree:?}");
        assert!((30_000..80_000).contains(&node.total_error_ns), "{tree:?}");
    }
    assert_eq!(tree.nodes[0].total_ns, 2_000_000);
}

#[test]
fn where_few_samples_are_the_recording_decides() {
    let cct = called((1, 0), &[(10, 90_000), (10, 10_000)]);
    let none = sampled(&cct, 100_000.0, &[[0; 2], [0; 2], [0; 2]]);
    let few = sampled(&cct, 100_000.0, &[[0; 2], [0; 2], [1, 1]]);
    let many = sampled(&cct, 100_000.0, &[[0; 2], [100, 100], [100, 100]]);
    let second = |tree: &Tree| tree.nodes[2].self_ns as f64 / 1_000.0;
    assert!((second(&none) - 10.0).abs() < 1.0, "{none:?}");
    assert!((second(&few) - 55.0).abs() < 2.0, "{few:?}");
    assert!((second(&many) - 50.0).abs() < 1.0, "{many:?}");
    assert!(few.nodes[2].error_ns > 5 * many.nodes[2].error_ns, "{few:?} {many:?}");
}

/// A root whose calls took as long with probes, which cost next to nothing, as without; samples see half of what its second callee does.
#[test]
fn what_was_hardly_disturbed_is_believed_more_than_samples() {
    let cct = called((10, 1_000), &[(10, 600_000), (10, 400_000)]);
    let placed = || Placed::of(vec![[0; 2], [0; 2], [300, 300], [100, 100]]);
    let second = |total_ns: f64, is_timed| {
        let whole = Whole { total_ns, error_ns: 0.02 * total_ns, unsettled: 0.0, is_timed };
        let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
        let tree = correct(&cct, &CLOCK, &wholes, Some(&placed()), None);
        let node = &tree.nodes[2];
        (node.total_ns as f64 / total_ns, node.total_error_ns as f64 / total_ns)
    };
    let (alike, its_error) = second(1e6, true);
    assert!((0.37..0.41).contains(&alike) && its_error < 0.04, "{alike} {its_error}");
    for (total_ns, is_timed) in [(0.5e6, true), (1e6, false)] {
        let (share, _) = second(total_ns, is_timed);
        assert!((0.24..0.28).contains(&share), "samples decide: {share}");
    }
}

/// Of samples in native code of a method that waits nine tenths of its time, nine tenths are of that.
#[test]
fn where_a_method_waits_its_samples_in_native_code_are_of_that() {
    let mut cct = called((10, 10_000), &[(10, 500_000), (10, 500_000)]);
    let [first, second] = [2, 3].map(|method| cct.callee(cct.roots()[0].0, MethodId(method)).expect("it was called"));
    for (node, running) in [(first, 100), (second, 1_000)] {
        cct.add_cpu(node, CpuSamples { samples: 1_000, running });
    }
    let own = vec![[0; 2], [0; 2], [100, 100], [50, 50]];
    let whole = Whole { total_ns: 1e6, error_ns: 0.0, unsettled: 0.0, is_timed: false };
    let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
    let placed = |native| Placed { native, ..Placed::of(own.clone()) };
    let tree = |native| correct(&cct, &CLOCK, &wholes, Some(&placed(native)), None);
    let of_second = |tree: Tree| tree.nodes[2].total_ns as f64 / 1e6;
    let none = vec![[0; 2]; 4];
    let waiting = vec![[0; 2], [0; 2], [100, 100], [0; 2]];
    let (as_java, as_native) = (of_second(tree(none)), of_second(tree(waiting)));
    assert!((as_java - 0.55 / 3.0).abs() < 0.02, "{as_java}");
    assert!((as_native - 0.55 * 100.0 / 120.0).abs() < 0.02, "{as_native}");
}

/// As much as samples do not tell of may divide otherwise.
#[test]
fn shares_are_as_uncertain_as_what_samples_do_not_tell_of() {
    let cct = called((10, 1_000), &[(10, 600_000), (10, 400_000)]);
    let wholes = Wholes::from_iter([(
        cct.roots()[0].0,
        Whole { total_ns: 1e6, error_ns: 0.0, unsettled: 0.0, is_timed: false },
    )]);
    let mut placed = Placed::of(vec![[0; 2], [0; 2], [500, 500], [500, 500]]);
    placed.inside = 2_000;
    let error =
        |placed: Placed| correct(&cct, &CLOCK, &wholes, Some(&placed), None).nodes[1].total_error_ns as f64 / 1e6;
    let (all, half) = (error(placed.clone()), error(placed.covering(0.5)));
    // Half of the half that is not told of, and the tenth that was measured otherwise, over the root of two.
    assert!(all < 0.03 && (0.13..0.15).contains(&half), "{all} {half}");
    let mut placed = Placed::of(vec![[0; 2], [0; 2], [1_000, 1_000], [0; 2]]);
    placed.inside = 2_000;
    let error =
        |placed: Placed| correct(&cct, &CLOCK, &wholes, Some(&placed), None).nodes[1].total_error_ns as f64 / 1e6;
    let (all, half) = (error(placed.clone()), error(placed.covering(0.5)));
    assert!(all < 0.04 && half > 0.1, "all samples are not all of the time: {all} {half}");
}

/// Where calls took no longer with probes because these were dropped, what was measured has it all at the callers.
#[test]
fn what_was_measured_after_probes_were_lost_decides_nothing() {
    let cct = called((10, 995_000), &[(10, 5_000)]);
    let wholes =
        Wholes::from_iter([(cct.roots()[0].0, Whole { total_ns: 1e6, error_ns: 1e4, unsettled: 0.0, is_timed: true })]);
    let share = |lost: &[MethodId]| {
        let placed = Placed::of(vec![[0; 2], [100, 100], [100, 100]]);
        let placed = placed.without_probes_of(lost.iter().copied().collect());
        let node = correct(&cct, &CLOCK, &wholes, Some(&placed), None).nodes[1];
        (node.total_ns as f64 / 1e6, node.total_error_ns as f64 / 1e6)
    };
    let callee = cct.nodes().nth(2).expect("a callee").1.method();
    let ((measured, _), (sampled, error)) = (share(&[]), share(&[callee]));
    assert!(measured < 0.1, "both witnesses, of which one is better: {measured}");
    assert!((sampled - 0.5).abs() < 0.01 && error > 0.02, "{sampled} {error}");
}

/// They were instrumented too late, or never.
#[test]
fn many_calls_one_below_the_other_that_were_only_sampled_keep_nothing_for_themselves() {
    let mut cct = called((100, 1_000_000), &[]);
    let mut innermost = cct.roots()[0].0;
    for method in 2..42 {
        innermost = cct.child(innermost, MethodId(method));
    }
    let mut own = vec![[0; 2]; 41];
    own[40] = [100, 100];
    let tree = sampled(&cct, 1_000_000.0, &own);
    let share = |node: usize| tree.nodes[node].total_ns as f64 / tree.nodes[0].total_ns as f64;
    assert!(share(40) > 0.98 && (share(40) - share(1)).abs() < 1e-6, "{} {}", share(1), share(40));
    assert!(tree.nodes[40].total_error_ns > 0, "{tree:?}");
}

#[test]
fn parts_of_code_that_is_not_settled_may_be_as_far_from_it_as_the_whole() {
    let cct = called((1, 0), &[(10, 50_000), (10, 50_000)]);
    let error = |unsettled: f64| {
        let mut whole = Whole { total_ns: 100_000.0, error_ns: 0.0, unsettled: 0.0, is_timed: false };
        whole.unsettle(unsettled, true);
        let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
        let placed = Placed::of(vec![[0; 2], [0; 2], [5_000, 5_000], [5_000, 5_000]]);
        correct(&cct, &CLOCK, &wholes, Some(&placed), None).nodes[1].total_error_ns as f64
    };
    // Half of the whole's, and as much for the other half's being settled.
    assert!(error(0.0) < 3_000.0 && (error(0.4) - 22_400.0).abs() < 500.0, "{} {}", error(0.0), error(0.4));
}

#[test]
fn samples_that_are_alike_say_less() {
    let cct = called((1, 0), &[(10, 50_000), (10, 50_000)]);
    let wholes = Wholes::from_iter([(
        cct.roots()[0].0,
        Whole { total_ns: 1e6, error_ns: 0.0, unsettled: 0.0, is_timed: false },
    )]);
    let error = |alike| {
        let placed = Placed { alike, ..Placed::of(vec![[0; 2], [0; 2], [200, 200], [200, 200]]) };
        correct(&cct, &CLOCK, &wholes, Some(&placed), None).nodes[1].total_error_ns as f64
    };
    // Beside what two runs differ by.
    let by_chance = |alike: f64| (error(alike).powi(2) - (0.03 * 0.5e6_f64).powi(2)).sqrt() / 1e6;
    assert!((by_chance(1.0) - 0.0177).abs() < 0.001 && (by_chance(9.0) - 0.053).abs() < 0.002, "{}", by_chance(9.0));
}

#[test]
fn halves_of_the_phase_that_differ_are_in_the_error() {
    let cct = called((1, 0), &[(10, 50_000), (10, 50_000)]);
    let error = |own: &[[u32; 2]]| sampled(&cct, 100_000.0, own).nodes[1].total_error_ns;
    let (alike, apart) = (error(&[[0; 2], [500, 500], [500, 500]]), error(&[[0; 2], [800, 200], [200, 800]]));
    assert!(alike < 4_000 && apart > 25_000, "{alike} {apart}");
    // By less than twice what chance makes them differ, they say no more than that.
    assert_eq!(error(&[[0; 2], [518, 482], [482, 518]]), alike);
}

#[test]
fn who_waited_keeps_it_though_no_sample_was_taken_of_it() {
    let mut cct = called((1, 1_000_000), &[(1, 800_000_000), (1_000_000, 60_000_000)]);
    let sleeper = cct.callee(cct.roots()[0].0, MethodId(2)).expect("it was called");
    cct.add_cpu(sleeper, CpuSamples { samples: 80, running: 0 });
    // Undisturbed, all of it takes 805 ms.
    let tree = sampled(&cct, 805e6, &[[1, 1], [0, 0], [50, 50]]);
    let part = |node: usize| tree.nodes[node].self_ns as f64 / 805e6;
    assert!(part(1) > 0.93 && part(1) < 0.99, "{tree:?}");
    assert!(part(2) > 0.01, "what runs has the rest: {tree:?}");
}

#[test]
fn of_roots_that_hardly_run_nearly_all_waits() {
    let mut cct = called((50, 5_000_000), &[(50, 1_000), (50, 4_990_000_000)]);
    let sleeper = cct.callee(cct.roots()[0].0, MethodId(3)).expect("it was called");
    cct.add_count(sleeper, Counter::SleptNs, 4_990_000_000);
    let tree = sampled(&cct, 4_995e6, &[[1, 1], [0, 0], [0, 0]]);
    assert!(tree.nodes[2].self_ns > 4_985_000_000, "{tree:?}");
    assert!(tree.nodes[0].self_ns < 10_000_000, "{tree:?}");
}

/// Ten calls that take 2.5 ms as recorded, in the interpreter and beside others, and 0.26 undisturbed; and two that began before recording, as slow.
#[test]
fn calls_that_cannot_be_compared_are_not_charged_their_probes() {
    let cct = called((10, 0), &[(1_190, 12 * 2_500_000)]);
    let times = FxHashMap::from_iter([(MethodId(1), Controls::of(&[260_000; 4]))]);
    let reference = Reference { times: &times, idle_ns: 0.0, timing_ns: 0.0 };
    let ended_below = Below { measured_ns: 2 * 2_500_000, calls: 190 };
    let partial = FxHashMap::from_iter([(MethodId(1), Partial { ended: 2, ended_below, ..Partial::default() })]);
    let roots = root_calls(&cct, &partial, reference);
    assert_eq!(roots[0].calls, 10.0, "they are too slow to be compared");
    let whole = wholes(&cct, &CLOCK, &roots, reference)[&cct.roots()[0].0];
    assert!((whole.total_ns / 12.0 - 260_000.0).abs() < 10_000.0, "{whole:?}");
    // One that waited did so.
    let mut waited = called((10, 0), &[(1_000, 10 * 2_500_000), (1, 3_600_000_000_000)]);
    let waiting = waited.callee(waited.roots()[0].0, MethodId(3)).expect("it was called");
    waited.add_cpu(waiting, CpuSamples { samples: 1_000_000, running: 0 });
    let ended_below = Below { measured_ns: 3_600_000_000_000, calls: 1 };
    let partial = FxHashMap::from_iter([(MethodId(1), Partial { ended: 1, ended_below, ..Partial::default() })]);
    let roots = root_calls(&waited, &partial, reference);
    let whole = wholes(&waited, &CLOCK, &roots, reference)[&waited.roots()[0].0];
    assert!((whole.total_ns / 3_600e9 - 1.0).abs() < 0.01, "{whole:?}");
}

#[test]
fn what_was_handed_over_takes_a_time_of_its_own() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let handed = cct.handed_child(root, MethodId(2));
    let called = cct.child(handed, MethodId(3));
    for (id, (calls, measured)) in [(root, (1, 1_000)), (handed, (5, 5_000)), (called, (5, 500))] {
        cct.node_mut(id).calls = calls;
        cct.node_mut(id).self_measured_ns = measured;
    }
    let tree = measured(&cct);
    let totals: Vec<u64> = tree.nodes.iter().map(|node| node.total_ns).collect();
    assert_eq!(totals, [990, 5_000 - 5 * 10 - 5 * 20 + 450, 450], "probes of what it hands over cost the root nothing");
    assert_eq!(tree.nodes[1].link, Some(Link::Thread));
    assert_eq!(tree.total_ns(), 990 + totals[1]);
}

#[test]
fn times_by_a_coarse_clock_are_as_uncertain_as_samples() {
    let coarse = Clock { step_ns: Some(100_000.0), inner_ns: 0.0, outer_ns: 0.0, ..CLOCK };
    let tree = correct(&called((1, 0), &[(10, 10_000_000)]), &coarse, &Wholes::default(), None, None);
    let expected = (10e6_f64 * 1e5).sqrt();
    assert!((tree.nodes[1].total_error_ns as f64 - expected).abs() < 0.1 * expected, "{tree:?}");
}

#[test]
fn totals_are_sums_and_threads_add_up_to_them() {
    for seed in 0..40 {
        let (mut all, mut random) = (Cct::new(), headwater_profile::profile::testing::Random::new(seed));
        let threads: Vec<Cct> = (0..1 + seed as usize % 4)
            .map(|_| {
                let mut cct = Cct::new();
                for _ in 0..60 {
                    let parent = random.below(cct.len() as u64);
                    let parent = cct.nodes().nth(parent as usize).expect("it is there").0;
                    let node = cct.child(parent, MethodId(1 + random.below(5) as u32));
                    cct.node_mut(node).calls += random.below(1_000);
                    cct.node_mut(node).self_measured_ns += random.below(3) * random.below(100_000);
                    cct.add_cpu(node, CpuSamples { samples: 3, running: random.below(4) as u32 });
                }
                cct
            })
            .collect();
        let mut places: Vec<Vec<NodeId>> = threads.iter().map(|thread| thread.merge_into(&mut all)).collect();
        // Some were only sampled.
        let recorded = all.len();
        for method in 900..904 {
            let above = all.nodes().skip(1).nth(random.below(all.len() as u64) as usize).map(|(id, _)| id);
            if let Some(above) = above {
                all.child(above, MethodId(method));
            }
        }
        let own: Vec<[u32; 2]> = all.nodes().map(|_| [random.below(3) as u32, random.below(3) as u32]).collect();
        let placed = Placed::of(own);
        let placed = if seed % 2 == 0 {
            placed
        } else {
            placed.without_probes_of([MethodId(2), MethodId(4)].into_iter().collect())
        };
        let lost = Lost::of(&all, Some(&placed));
        let grown: Vec<_> = threads
            .iter()
            .zip(&mut places)
            .map(|(thread, places)| grown(&all, recorded, &lost, thread, places))
            .collect();
        let places: Vec<(&Cct, Vec<NodeId>)> = grown.iter().map(|tree| &**tree).zip(places).collect();
        let whole = |(root, _)| {
            (root, Whole { total_ns: random.below(1 << 30) as f64, error_ns: 0.0, unsettled: 0.0, is_timed: false })
        };
        let wholes: Wholes = all.roots().into_iter().map(whole).collect();
        let tree = correct(&all, &CLOCK, &wholes, Some(&placed), None);
        for (root, whole) in &wholes {
            let rounding = tree.nodes.len() as f64;
            assert!((tree.nodes[root.index() - 1].total_ns as f64 - whole.total_ns).abs() <= rounding);
        }
        let mut sums = vec![(0, 0); tree.nodes.len()];
        let places_of: Vec<Vec<NodeId>> = places.iter().map(|(_, places)| places.clone()).collect();
        for (thread, places) in divided(&tree, &CLOCK, &lost, &places).iter().zip(places_of) {
            for (node, place) in thread.nodes.iter().zip(&places[1..]) {
                let (self_ns, total_ns) = &mut sums[place.index() - 1];
                *self_ns += node.self_ns;
                *total_ns += node.total_ns;
            }
        }
        let expected: Vec<(u64, u64)> = tree.nodes.iter().map(|node| (node.self_ns, node.total_ns)).collect();
        assert_eq!(sums, expected, "seed {seed}");
    }
}

#[test]
fn what_was_measured_of_the_callees_of_a_method_that_lost_its_probes_is_not_another_ways() {
    // The second was dropped at once, and what it calls was measured beside it since.
    let cct = called((10, 1_000_000), &[(1, 1_000), (1_000, 80_000_000)]);
    let whole = Whole { total_ns: 80e6, error_ns: 1e6, unsettled: 0.0, is_timed: false };
    let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
    let total = |passed: Vec<bool>| {
        let placed = Placed { passed, ..Placed::of(vec![[0; 2], [0; 2], [1, 2], [0; 2]]) };
        correct(&cct, &CLOCK, &wholes, Some(&placed), None).nodes[1].total_ns
    };
    assert!(total(vec![false; 4]) < 50_000_000, "as much as two samples");
    assert_eq!(total(vec![false, true, false, false]), 80_000_000);
}

#[test]
fn a_root_that_was_not_timed_is_as_unsettled_as_those_that_were() {
    let cct = called((1, 1_000_000), &[(10, 500_000)]);
    let mut wholes = untimed(&cct, &CLOCK, &Wholes::default());
    let error = |wholes: &Wholes| {
        let root = correct(&cct, &CLOCK, wholes, None, None).nodes[0];
        root.total_error_ns as f64 / root.total_ns as f64
    };
    assert_eq!(correct(&cct, &CLOCK, &wholes, None, None), measured(&cct));
    wholes.values_mut().for_each(|whole| whole.unsettle(0.5, false));
    assert!(error(&Wholes::default()) < 0.01 && error(&wholes) >= 0.5, "{}", error(&wholes));
    assert!(untimed(&cct, &CLOCK, &wholes).is_empty());
}

#[test]
fn a_method_in_many_places_is_as_uncertain_as_its_samples() {
    // Of 400 samples every tenth is in one of a thousand nodes of method 2, each below another caller.
    let mut cct = Cct::new();
    let root = cct.call(NodeId::TOP, MethodId(1), 1_000_000);
    let mut own = vec![[0; 2], [180, 180]];
    for place in 0..1_000 {
        let caller = cct.call(root, MethodId(3 + place), 1_000);
        let callee = cct.call(caller, MethodId(2), 0);
        cct.node_mut(callee).self_measured_ns = 1_000;
        own.extend([
            [0; 2],
            if place % 25 == 0 { [u32::from(place % 2 == 0), u32::from(place % 2 == 1)] } else { [0; 2] },
        ]);
    }
    let whole = Whole { total_ns: 4e9, error_ns: 0.0, unsettled: 0.0, is_timed: false };
    let merged = correct(&cct, &CLOCK, &Wholes::from_iter([(root, whole)]), Some(&Placed::of(own)), None);
    let name = |number: u32| MethodName { display: number.to_string(), machine: number.to_string() };
    let profile = Profile { merged, methods: (1..=1_002).map(name).collect(), ..Profile::default() };
    let method = &profile.own_amounts(&[MethodIndex(1)])[0];
    let share = |ns: u64| ns as f64 / 4e9;
    assert!((0.09..0.11).contains(&share(method.self_ns)), "{method:?}");
    assert!((0.012..0.06).contains(&share(method.error_ns)), "{method:?}");
    let linear: u64 =
        profile.merged.nodes.iter().filter(|node| node.method == MethodIndex(1)).map(|node| node.error_ns).sum();
    assert!(share(linear) > 1.0, "{linear}");
}

#[test]
fn a_method_in_many_places_with_few_samples_each_has_all_of_them() {
    // A hundred callers of a method that calls another, which has all of its time; of the probes it was measured the other way round, and where no samples were
    // it has not been seen.
    const CALLERS: u32 = 100;
    let mut cct = Cct::new();
    let root = cct.call(NodeId::TOP, MethodId(1), 0);
    let mut places = Vec::new();
    for place in 0..CALLERS {
        let caller = cct.call(root, MethodId(10 + place), 0);
        let method = cct.call(caller, MethodId(2), 90_000);
        cct.node_mut(method).self_measured_ns = 90_000;
        if place % 2 == 0 {
            let callee = cct.call(method, MethodId(3), 0);
            cct.node_mut(callee).self_measured_ns = 10_000;
            places.push(callee);
        }
    }
    let mut own = vec![[0; 2]; cct.len()];
    places.iter().step_by(2).for_each(|place| own[place.index()] = [1, 0]);
    let tree = sampled(&cct, 1e6, &own[1..]);
    let total = |method: usize| {
        let of = tree.nodes.iter().filter(|node| node.method == MethodIndex(method - 1));
        of.map(|node| node.total_ns).sum::<u64>()
    };
    assert!(total(2) > 999_000 && total(3) > 999_000, "{} {}", total(2), total(3));
}
