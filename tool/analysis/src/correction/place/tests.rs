use super::*;
use crate::decode::Controls;

fn sample(frames: &[u32]) -> Sample {
    Sample {
        at_ns: 1,
        thread: 7,
        frames: frames.iter().copied().map(FrameIndex).collect(),
        is_cut: false,
        is_native: false,
    }
}

#[test]
fn a_stack_is_followed_from_its_root_through_what_has_no_probes() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let callee = cct.child(root, MethodId(2));
    let again = cct.child(callee, MethodId(1));
    let methods = ["a.B.root()V", "a.B.callee()V", "java.util.List.forEach()V", "a.Main.main()V"];
    let sample = |at_ns, frames: &[u32], is_cut| Sample { at_ns, thread: 77, is_cut, ..sample(frames) };
    let samples = Samples {
        methods: methods.map(str::to_owned).to_vec(),
        stacks: vec![
            sample(10, &[3, 0], false),
            sample(11, &[3, 0, 2, 1, 2], false),
            sample(20, &[3, 0, 2, 1, 0], false),
            sample(19, &[2, 1], true),
            sample(19, &[3, 1], false),
            sample(21, &[3, 0], false),
            sample(9, &[3, 0], false),
            // A way that was not recorded ends at what was.
            sample(12, &[3, 0, 0, 1], false),
        ],
    };
    let placed =
        placed(&cct, &Names::of(methods[..2].iter().copied(), &samples, (10, 20)), cct.len(), &FxHashSet::default());
    assert_eq!((placed.inside, placed.unseen, placed.cut()), (4, 1, 1));
    assert_eq!(placed.threads, FxHashMap::from_iter([(77, OfThread { all: 6, inside: 4, cut: 1 })]));
    assert_eq!([root, callee, again].map(|node| placed.own()[node.index()]), [[2, 0], [1, 0], [0, 1]]);
    assert_eq!(placed.once(&cct).collect::<Vec<_>>(), [MethodId(2)], "the root was on top twice, and once below");
}

#[test]
fn what_was_missed_has_nodes_where_it_was_sampled() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let callee = cct.call(root, MethodId(2), 0);
    let names = ["C.root()V", "C.callee()V", "C.late()V", "C.never()V", "C.trivial()V"];
    // root, late, trivial, callee; root, callee, never; root, callee, late, once; root, root.
    let stacks = [&[0, 2, 4, 1][..], &[0, 1, 3], &[0, 1, 2], &[0, 0]];
    let times = [4, 3, 1, 2];
    let stacks = stacks.iter().zip(times).flat_map(|(frames, times)| std::iter::repeat_n(sample(frames), times));
    let samples = Samples { methods: names.map(str::to_owned).to_vec(), stacks: stacks.collect() };
    let names = Names::of(names.into_iter(), &samples, (0, 9));
    let missed = FxHashSet::from_iter([MethodId(3), MethodId(4)]);
    let recorded = grow(&mut cct, &names, &missed);
    assert_eq!((recorded, cct.len()), (3, 7));
    let late = cct.callee(root, MethodId(3)).expect("it was sampled");
    let below = cct.callee(late, MethodId(2)).expect("what is trivial is passed");
    let never = cct.callee(callee, MethodId(4)).expect("it was sampled");
    let once = cct.callee(callee, MethodId(3)).expect("it was sampled, however seldom");
    assert!([late, below, never, once].iter().all(|node| cct.node(*node).calls == 0));
    let placed = placed(&cct, &names, recorded, &missed);
    let own = |node: NodeId| placed.own()[node.index()].iter().sum::<u32>();
    assert_eq!([root, callee, late, below, never, once].map(own), [2, 0, 0, 4, 3, 1]);
    assert_eq!((placed.inside, placed.unseen), (10, 2), "a root in a root was never seen");
    assert_eq!(placed.absent, 4, "of what was never called");
}

#[test]
fn what_was_dropped_calls_what_was_recorded_below_its_caller() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let dropped = cct.call(root, MethodId(2), 0);
    let early = cct.call(dropped, MethodId(3), 0);
    let late = cct.call(root, MethodId(3), 0);
    cct.call(late, MethodId(4), 0);
    let names = ["C.root()V", "C.dropped()V", "C.callee()V", "C.last()V"];
    let sample = sample(&[0, 1, 2, 3]);
    let samples = Samples { methods: names.map(str::to_owned).to_vec(), stacks: vec![sample; 3] };
    let names = Names::of(names.into_iter(), &samples, (0, 9));
    let missed = FxHashSet::from_iter([MethodId(2)]);
    let recorded = grow(&mut cct, &names, &missed);
    let last = cct.callee(early, MethodId(4)).expect("it was sampled");
    let seen = placed(&cct, &names, recorded, &missed);
    assert_eq!((seen.inside, seen.unseen, seen.own()[last.index()][0]), (3, 0, 3));
    let passed = [root, dropped, early, late].map(|node| seen.is_passed(node.index()));
    assert_eq!(passed, [true, false, false, false], "what is measured there is its callee's");
}

#[test]
fn what_was_dropped_has_its_samples_wherever_there_are_some() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    cct.call(root, MethodId(2), 0);
    let elsewhere = cct.call(root, MethodId(3), 0);
    let names = ["C.root()V", "C.dropped()V", "C.caller()V", "C.never()V"];
    // root, caller, dropped, never; root, caller, never.
    let stacks = vec![sample(&[0, 2, 1, 3]), sample(&[0, 2, 3])];
    let samples = Samples { methods: names.map(str::to_owned).to_vec(), stacks };
    let names = Names::of(names.into_iter(), &samples, (0, 9));
    let missed = FxHashSet::from_iter([MethodId(2), MethodId(4)]);
    let recorded = grow(&mut cct, &names, &missed);
    let dropped = cct.callee(elsewhere, MethodId(2)).expect("it was recorded elsewhere");
    let never = [dropped, elsewhere].map(|node| cct.callee(node, MethodId(4)).expect("it was sampled"));
    assert_eq!(cct.len(), recorded + 3);
    let placed = placed(&cct, &names, recorded, &missed);
    let own = |node: NodeId| placed.own()[node.index()].iter().sum::<u32>();
    assert_eq!((own(dropped), own(elsewhere), never.map(own), placed.unseen), (0, 0, [1, 1], 0));
}

#[test]
fn so_has_what_was_recorded_below_several_that_were_dropped() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let [outer, inner, kept] = [2, 3, 4].map(|method| cct.call(root, MethodId(method), 0));
    let caller = cct.call(root, MethodId(5), 0);
    let names = ["C.root()V", "C.outer()V", "C.inner()V", "C.kept()V", "C.caller()V"];
    // root, caller, outer, inner, kept.
    let sample = sample(&[0, 4, 1, 2, 3]);
    let samples = Samples { methods: names.map(str::to_owned).to_vec(), stacks: vec![sample] };
    let names = Names::of(names.into_iter(), &samples, (0, 9));
    let missed = FxHashSet::from_iter([MethodId(2), MethodId(3)]);
    let recorded = grow(&mut cct, &names, &missed);
    let way = [2, 3, 4].into_iter().try_fold(caller, |at, method| cct.callee(at, MethodId(method)));
    let placed = placed(&cct, &names, recorded, &missed);
    let own = |node: NodeId| placed.own()[node.index()].iter().sum::<u32>();
    assert_eq!(way.map(own), Some(1), "of each of them, once");
    assert_eq!([outer, inner, kept].map(own), [0; 3]);
}

#[test]
fn what_threads_do_for_us_is_none_of_the_program() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let names = ["C.root()V", "java.lang.HeadwaterV1.revealCallees(I)V", "other.Transformer.transform()V"];
    // By the root itself; below it in a transformer that our hotswap calls.
    let stacks = vec![sample(&[0]), sample(&[0, 1, 2])];
    let samples = Samples { methods: names.map(str::to_owned).to_vec(), stacks };
    let names = Names::of(names.into_iter().take(1), &samples, (0, 9));
    let recorded = grow(&mut cct, &names, &FxHashSet::default());
    let placed = placed(&cct, &names, recorded, &FxHashSet::default());
    assert_eq!((placed.own()[root.index()].iter().sum::<u32>(), placed.inside), (1, 1));
}

#[test]
fn what_the_recording_has_not_come_to_has_nodes_where_it_was_sampled_often() {
    let mut cct = Cct::new();
    let root = cct.child(NodeId::TOP, MethodId(1));
    let early = cct.call(root, MethodId(2), 0);
    cct.call(early, MethodId(3), 0);
    let names = ["C.root()V", "C.early()V", "C.late()V"];
    // root, early; root, late, early.
    let samples = |early: usize, late: usize| {
        let stacks = std::iter::repeat_n(sample(&[0, 1]), early).chain(std::iter::repeat_n(sample(&[0, 2, 1]), late));
        Samples { methods: names.map(str::to_owned).to_vec(), stacks: stacks.collect() }
    };
    let seldom = samples(99, 4);
    let seldom = Names::of(names.into_iter(), &seldom, (0, 9));
    let (placed, uncalled) = placed_on_all(&mut cct, &seldom, &FxHashSet::default());
    assert_eq!((cct.len(), placed.unseen, uncalled), (4, 4, 0.0), "their caller has them");
    let often = samples(9, 3);
    let often = Names::of(names.into_iter(), &often, (0, 9));
    let (placed, uncalled) = placed_on_all(&mut cct, &often, &FxHashSet::default());
    let below = cct.callee(root, MethodId(3)).and_then(|late| cct.callee(late, MethodId(2)));
    let own = |node: NodeId| placed.own()[node.index()].iter().sum::<u32>();
    assert_eq!((own(early), below.map(own), placed.unseen, uncalled), (9, Some(3), 0, 0.25));
}

#[test]
fn threads_wait_in_roots_for_what_they_do_not_run() {
    let samples = [(1, OfThread { all: 120, inside: 50, cut: 20 }), (2, OfThread { all: 100, inside: 0, cut: 0 })];
    let placed = Placed { threads: FxHashMap::from_iter(samples), ..Placed::default() };
    // The first runs for 8 s, half of it in roots, whose calls take 5.
    let wanted = FxHashMap::from_iter(
        [(1, 6_000_000_000, 2_000_000_000), (2, 1_000_000_000, 0)]
            .map(|(thread, ran_ns, queued_ns)| (thread, Scheduled { ran_ns, queued_ns })),
    );
    let timed = |calls: usize, each_ns| {
        let times = Controls::of(&vec![each_ns; calls]);
        Timed { used: FxHashMap::from_iter([(MethodId(1), times)]), ..Timed::default() }
    };
    let waiting = |timed: &Timed, over_s| placed.waiting(&wanted, timed, Some(Duration::from_secs(over_s)));
    let close = |waiting: Option<Waiting>, to: f64| (waiting.expect("it is known").part - to).abs() < 1e-9;
    assert!(close(waiting(&timed(1_000, 6_000_000), 10), 1.0 / 3.0));
    assert!(close(waiting(&timed(300, 10_000_000), 10), 0.0));
    // Five calls of a second: what they took in that time may be a second less, and samples are good to half of one.
    assert_eq!(waiting(&timed(5, 1_000_000_000), 10), Some(Waiting { part: 0.0, unclear: 0.2 }));
    // No more than all of that time was spent in them.
    assert!(close(waiting(&timed(5_000, 10_000_000), 4), 0.5));
    assert_eq!(waiting(&Timed::default(), 10), None);
    assert_eq!(placed.waiting(&FxHashMap::default(), &timed(50, 100_000_000), None), None);
}

#[test]
fn many_idle_threads_and_a_long_call_beside_short_ones_hide_no_waiting() {
    // 200 threads are in 20 calls of 66 ms in a second, of which they run for a quarter.
    let samples = OfThread { all: 40, inside: 40, cut: 0 };
    let placed = Placed { threads: (1..=200).map(|thread| (thread, samples)).collect(), ..Placed::default() };
    let ran = Scheduled { ran_ns: 1_650_000, queued_ns: 0 };
    let wanted: FxHashMap<u32, Scheduled> = (1..=200).map(|thread| (thread, ran)).collect();
    let times = |calls: usize, each_ns| Controls::of(&vec![each_ns; calls]);
    let waiting = |used| {
        let timed = Timed { used: FxHashMap::from_iter(used), ..Timed::default() };
        placed.waiting(&wanted, &timed, Some(Duration::from_secs(1))).expect("it is known").part
    };
    let short = (MethodId(1), times(20, 66_000_000));
    assert!((waiting(vec![short]) - 0.75).abs() < 1e-6);
    assert!(waiting(vec![short, (MethodId(2), times(1, 500_000_000))]) > 0.75);
}

#[test]
fn samples_of_threads_that_stand_in_line_come_in_bunches() {
    let alike = |alike, part| Placed { alike, ..Placed::default() }.queued(part).alike();
    assert_eq!([alike(1.0, 0.1), alike(1.0, 0.5), alike(7.0, 0.5)], [1.0, BUNCHED, 7.0]);
}
