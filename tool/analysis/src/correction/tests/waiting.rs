//! Where threads wait, and stand in line.

use super::*;

#[test]
fn waiting_that_only_the_recording_had_is_nobodys() {
    let mut cct = called((1, 1_000), &[(1, 50_000_000), (1, 50_000_000)]);
    let stalled = cct.callee(cct.roots()[0].0, MethodId(2)).expect("it was called");
    cct.add_cpu(stalled, CpuSamples { samples: 100, running: 10 });
    let wholes = Wholes::from_iter([(
        cct.roots()[0].0,
        Whole { total_ns: 100e6, error_ns: 0.0, unsettled: 0.0, is_timed: false },
    )]);
    let placed = Placed::of(vec![[0; 2], [0; 2], [100, 100], [300, 300]]);
    let node = |waiting: Option<f64>| {
        let waiting = waiting.map(|part| Waiting { part, unclear: 0.0 });
        correct(&cct, &CLOCK, &wholes, Some(&placed), waiting).nodes[1]
    };
    let part = |waiting| node(waiting).self_ns as f64 / 100e6;
    assert!((part(Some(0.0)) - 0.25).abs() < 0.01, "{}", part(Some(0.0)));
    // All that undisturbed calls wait is where it was seen.
    assert!((part(Some(0.2)) - 0.4).abs() < 0.01, "{}", part(Some(0.2)));
    assert!(part(None) > 0.5);
    // It was seen to wait nine times as long: that may have been anywhere, and most likely there.
    assert!((part(Some(0.05)) - 0.29).abs() < 0.01, "{}", part(Some(0.05)));
    let error = |waiting| node(waiting).error_ns as f64 / 100e6;
    assert!(error(Some(0.05)) > error(Some(0.0)), "{} {}", error(Some(0.05)), error(Some(0.0)));
    let unclear = Waiting { part: 0.0, unclear: 0.2 };
    let unclear = correct(&cct, &CLOCK, &wholes, Some(&placed), Some(unclear)).nodes[1];
    assert!(unclear.error_ns as f64 / 100e6 > error(Some(0.0)) + 0.01, "{unclear:?}");
}

/// Calls of 1.2 ms that run, and of 10.8 that sleep, and stand in line when they wake up: for three quarters of the time they wait, and of the rest they are in line for
/// four fifths, which no sample sees.
#[test]
fn threads_stand_in_line_where_they_wake_up() {
    let recorded = |calls: u64| {
        let mut cct = called((1_000, 0), &[(calls, 1_200_000_000), (1_000, 10_800_000_000)]);
        let sleeps = cct.callee(cct.roots()[0].0, MethodId(3)).expect("it was called");
        cct.add_cpu(sleeps, CpuSamples { samples: 1_000, running: 170 });
        cct
    };
    let placed = Placed::of(vec![[0; 2], [0; 2], [80, 80], [1, 1]]);
    let share = |cct: &Cct, queued: f64| {
        let whole = Whole { total_ns: 11e9, error_ns: 2e9, unsettled: 0.0, is_timed: true };
        let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
        let clock = Clock { queued: Some(queued), ..CLOCK };
        let waiting = Some(Waiting { part: 0.75, unclear: 0.0 });
        let node = correct(cct, &clock, &wholes, Some(&placed), waiting).nodes[1];
        (node.self_ns as f64 / 11e9, node.error_ns as f64 / 11e9)
    };
    let (of_sparse, error) = share(&recorded(1_000), 0.8);
    assert!((0.05..0.14).contains(&of_sparse) && error < 0.1, "{of_sparse} {error}");
    assert!(share(&recorded(1_000), 0.1).0 > 0.2, "nobody is in line");
    // Probes that cost a tenth may cost anything: samples decide, and are not believed.
    let (of_dense, error) = share(&recorded(40_000_000), 0.8);
    assert!(of_dense > 0.2 && 2.0 * error > 0.08, "{of_dense} {error}");
}

/// Calls wait for a tenth of what they waited while they were recorded, in two methods of which neither runs.
#[test]
fn waiting_that_has_grown_is_where_it_was_seen_and_no_row_is_surer_than_its_node() {
    let mut cct = called((100, 0), &[(100, 100_000_000), (100, 9_900_000_000)]);
    let waits = cct.callee(cct.roots()[0].0, MethodId(3)).expect("it was called");
    cct.add_cpu(waits, CpuSamples { samples: 1_000, running: 0 });
    let whole = Whole { total_ns: 1e9, error_ns: 0.0, unsettled: 0.0, is_timed: true };
    let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
    let placed = Placed::of(vec![[0; 2], [0; 2], [200, 200], [0, 0]]);
    let tree =
        |waiting: f64| correct(&cct, &CLOCK, &wholes, Some(&placed), Some(Waiting { part: waiting, unclear: 0.0 }));
    let grown = tree(0.8);
    assert!((grown.nodes[2].self_ns as f64 / 1e9 - 0.8).abs() < 0.02, "{grown:?}");
    assert!(grown.nodes[1].error_ns > 30_000_000, "some of it may be elsewhere: {grown:?}");
    assert_eq!([1.2, 1.0, 0.5, 0.0].map(elsewhere), [0.0, 0.0, 0.25, 1.0]);
    let is_by_samples_alone = |tree: &Tree| format!("{:?}", tree.sampled).contains("late: Some");
    assert!(!is_by_samples_alone(&grown) && is_by_samples_alone(&tree(0.0)));
}

/// Work that was handed over waited for 0.8 of its second, and its root for a tenth of what it did while it was recorded.
#[test]
fn what_is_as_measured_waits_as_it_was_measured() {
    let mut cct = called((100, 0), &[(100, 9_900_000_000)]);
    let waits = cct.callee(cct.roots()[0].0, MethodId(2)).expect("it was called");
    cct.add_cpu(waits, CpuSamples { samples: 1_000, running: 0 });
    let handed = cct.handed_child(waits, MethodId(3));
    cct.node_mut(handed).calls = 100;
    let [runs, sleeps] = [(4, 200_000_000), (5, 800_000_000)].map(|(method, ns)| {
        let node = cct.call(handed, MethodId(method), 0);
        cct.node_mut(node).self_measured_ns = ns;
        node
    });
    cct.add_cpu(runs, CpuSamples { samples: 200, running: 200 });
    cct.add_cpu(sleeps, CpuSamples { samples: 800, running: 0 });
    let whole = Whole { total_ns: 1e9, error_ns: 0.0, unsettled: 0.0, is_timed: true };
    let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
    let waiting = Some(Waiting { part: 0.9, unclear: 0.0 });
    let tree = correct(&cct, &CLOCK, &wholes, Some(&Placed::of(vec![[0; 2]; 6])), waiting);
    assert!((tree.nodes[4].self_ns as f64 / 0.8e9 - 1.0).abs() < 0.05, "{tree:?}");
}

/// Half of a root's time is waited for in one method, half in another.
#[test]
fn where_few_calls_wait_is_chance() {
    let error = |calls: u64| {
        let mut cct = called((calls, 0), &[(calls, 500_000_000), (calls, 500_000_000)]);
        for method in [2, 3] {
            let waits = cct.callee(cct.roots()[0].0, MethodId(method)).expect("it was called");
            cct.add_cpu(waits, CpuSamples { samples: 10_000, running: 0 });
        }
        let whole = Whole { total_ns: 1e9, error_ns: 0.0, unsettled: 0.0, is_timed: true };
        let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
        let waiting = Some(Waiting { part: 1.0, unclear: 0.0 });
        correct(&cct, &CLOCK, &wholes, Some(&Placed::of(vec![[0; 2]; 4])), waiting).nodes[1].error_ns as f64 / 1e9
    };
    assert!((0.1..0.16).contains(&error(16)), "{}", error(16));
    assert!(error(10_000) < 0.08, "{}", error(10_000));
}
