use super::super::line::split;
use super::*;
use crate::profile::{Column, Extent, MethodIndex, MethodName, Node, Tree};

fn words(line: &str) -> Vec<Word> {
    split(line, &|_| None).unwrap()
}

fn wait(line: &str) -> Result<WaitCommand, LineError> {
    WaitCommand::parse(&words(line)[1..], line.len() + 1)
}

fn expectation(line: &str) -> Result<Expectation, LineError> {
    Expectation::parse(&words(line)[1..], line.len() + 1)
}

#[test]
fn waits() {
    let seconds = Duration::from_secs;
    for (line, what, at_most) in [
        ("wait 30s", Wait::For(seconds(30)), None),
        ("wait 1.5", Wait::For(Duration::from_millis(1_500)), None),
        ("wait calls 1_000", Wait::Calls(1_000), None),
        ("wait calls 1000 60s", Wait::Calls(1_000), Some(seconds(60))),
        ("wait root-entered 1m", Wait::RootEntered, Some(seconds(60))),
        ("wait done", Wait::Done, None),
    ] {
        assert_eq!(wait(line), Ok(WaitCommand { what, at_most }), "{line}");
    }
}

#[test]
fn what_is_wrong_with_a_wait_is_said_with_its_place() {
    for (line, column, part) in [
        ("wait", 5, "give a time"),
        ("wait for it", 6, "`for` is nothing to wait for"),
        ("wait calls", 11, "how many calls?"),
        ("wait calls many", 12, "`many` is no number of calls"),
        ("wait root-entered soon", 19, "`soon` is no time"),
        ("wait 3s 4s", 9, "`4s` is too much here"),
    ] {
        let error = wait(line).expect_err(line);
        assert!(error.column == column && error.message.contains(part), "{line}: {error:?}");
    }
}

#[test]
fn expectations_are_read_with_and_without_spaces_and_around_constructors() {
    for (line, comparison, value) in [
        ("expect root-calls > 0", Comparison::More, 0.0),
        ("expect root-calls>=1", Comparison::AtLeast, 1.0),
        ("expect lost == 0", Comparison::Equal, 0.0),
        ("expect calls(a.B::<init>) > 3", Comparison::More, 3.0),
        ("expect calls( a.B::<init> )!=3", Comparison::Other, 3.0),
        ("expect total(a.*::b) <= 250us", Comparison::AtMost, 250_000.0),
        ("expect duration < 2s", Comparison::Less, 2e9),
        ("expect blocked.total(a.*::b) < 2ms", Comparison::Less, 2e6),
        ("expect made-up(a.*::b) < 3MiB", Comparison::Less, 3_145_728.0),
        ("expect waits(a.*::b) < 3", Comparison::Less, 3.0),
        ("expect wait-share.total(a.*::b) < 12.5%", Comparison::Less, 125_000.0),
    ] {
        let read = expectation(line).unwrap();
        assert_eq!((read.comparison, read.value), (comparison, value), "{line}");
    }
}

#[test]
fn what_is_wrong_with_an_expectation_is_said_with_its_place() {
    for (line, column, part) in [
        ("expect", 7, "give a quantity"),
        ("expect root-calls", 8, "give a quantity"),
        ("expect root-call > 0", 8, "`root-call` is no quantity; there are root-calls"),
        ("expect events(a.B::c) > 0", 8, "`events` has no pattern"),
        ("expect blocked(a.B::c) > soon", 26, "`soon` is no number, time (250us, 3ms, 1s) or size"),
        ("expect lost ==", 15, "a number is missing"),
        ("expect lost == no", 16, "`no` is no number"),
        ("expect sample. > 3", 8, "say which metric"),
        ("expect sample.cpu > much", 21, "`much` is no time (250us, 3ms, 1s), share (20%)"),
        ("expect duration < 5 apples", 19, "`5 apples` is no time"),
    ] {
        let error = expectation(line).expect_err(line);
        assert!(error.column == column && error.message.contains(part), "{line}: {error:?}");
    }
}

#[test]
fn samples_have_their_metrics_as_values_and_as_shares() {
    let read = expectation("expect sample.cpu.total(a.*::b) > 20%").unwrap();
    assert!(read.is_of_samples() && !read.is_of_locks() && !read.is_of_events());
    assert!(!expectation("expect cpu.total(a.*::b) > 2ms").unwrap().is_of_samples());
    assert!(expectation("expect sample.duration > 2ms").unwrap().is_of_samples());
    let method = |machine: &str| MethodName { machine: machine.into(), display: machine.into() };
    let node =
        |method, parent: Option<usize>| Node { parent: parent.map(NodeIndex), ..Node::empty(MethodIndex(method)) };
    let mut tree = Tree::of(vec![node(0, None), node(1, Some(0)), node(1, None)]);
    tree.counted = vec![Column::of(&tree.nodes, [(1_000, 0), (3_000, 0), (4_000, 0)])];
    let cpu = Metric::counted("cpu", "CPU time", Unit::Nanoseconds, Extent::OwnAndTotal, "");
    let profile = Profile {
        merged: tree,
        methods: vec![method("a.B.m()V"), method("a.B.n()V")],
        imported: Some("samples of all threads".into()),
        counted: vec![cpu],
        ..Profile::default()
    };
    for (line, holds) in [
        ("expect sample.cpu == 8us", true),
        ("expect sample.cpu = 8us", true),
        ("expect sample.cpu(a.B::n) == 7us", true),
        ("expect sample.cpu(a.B::m) == 12.5%", true),
        ("expect sample.cpu.total(a.B::m) == 50%", true),
        ("expect sample.cpu.total(a.B::m) > 51%", false),
        ("expect sample.cpu > 3", false),
        ("expect sample.wall > 3s", false),
    ] {
        let checked = expectation(line).unwrap().check(&profile);
        assert_eq!(checked.is_ok(), holds, "{line}: {checked:?}");
    }
    let failed = expectation("expect sample.cpu(a.B::n) > 90%").unwrap().check(&profile);
    assert_eq!(failed.unwrap_err(), "expected sample.cpu(a.B::n) > 90%, but it is 87.5%");
}

#[test]
fn machine_names_are_matched() {
    let pattern = "a.b.C::m(int)".parse().unwrap();
    assert!(is_meant(&pattern, "a.b.C.m(I)V"));
    assert!(!is_meant(&pattern, "a.b.C.m(J)V") && !is_meant(&pattern, "a.b.C.n(I)V"));
}

#[test]
fn what_happened_is_expected_of_a_summary() {
    use headwater_protocol::message::events::{Happened, JvmEvent, What};

    let mut summary = Summary::default();
    let collection = |duration_ns| What::Collection { duration_ns, cause: None, collector: None, pools: Vec::new() };
    let events = [2_000_000, 5_000_000].map(|ns| JvmEvent { time_ns: 0, what: collection(ns) });
    summary.add(&Happened { events: events.into(), left_out: vec![(Sort::ClassLoad, 3)], ..Happened::default() });
    for line in
        ["expect collections == 2", "expect gc-total == 7ms", "expect gc-longest < 6ms", "expect classes-loaded == 3"]
    {
        let read = expectation(line).unwrap();
        assert!(read.is_of_events() && !read.is_of_threads(), "{line}");
        assert_eq!(read.check_events(&summary), Ok(()), "{line}");
    }
    let failed = expectation("expect gc-longest < 5ms").unwrap().check_events(&summary);
    assert_eq!(failed.unwrap_err(), "expected gc-longest < 5ms, but it is 5ms");
    assert!(!expectation("expect events > 0").unwrap().is_of_events());
}

#[test]
fn quotients_are_expected_as_any_metric() {
    let node = |parent: Option<usize>, method, calls, self_ns, total_ns| Node {
        parent: parent.map(NodeIndex),
        calls,
        self_ns,
        total_ns,
        ..Node::empty(MethodIndex(method))
    };
    // A method that is called twice by another, and once by itself.
    let nodes = [node(None, 0, 1, 10, 100), node(Some(0), 1, 2, 30, 90), node(Some(1), 1, 1, 60, 60)];
    let method = |machine: &str| MethodName { machine: machine.into(), display: machine.into() };
    let profile = Profile {
        merged: Tree::of(nodes.to_vec()),
        methods: vec![method("a.B.m()V"), method("a.B.n()V")],
        ..Profile::default()
    };
    for (line, holds) in [
        ("expect wall-per-call(a.B::n) == 30ns", true),
        // The outermost calls have all of it.
        ("expect wall-per-call.total(a.B::n) == 45ns", true),
        ("expect thrown-per-call(a.B::n) == 0%", true),
        ("expect wall-per-call(a.B::n) > 30ns", false),
        ("expect thrown-per-call(a.B::n) == 0ns", false),
    ] {
        let expectation = expectation(line).unwrap();
        assert_eq!(expectation.check(&profile).is_ok(), holds, "{line}: {:?}", expectation.check(&profile));
    }
}
