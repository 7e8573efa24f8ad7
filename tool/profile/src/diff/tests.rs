use std::time::Duration;

use super::condition::{Condition, Verdict};
use super::*;
use crate::profile::testing::{Random, profile_of, random_tree};
use crate::profile::{AtLeast, Column, Extent, MethodIndex, Node, Span, Tree};
use crate::report::text::Style;

/// From (parent, method, calls, self time, its deviation); totals and their deviations are sums, but that of roots, which are known.
fn profile(rows: &[(Option<usize>, usize, u64, u64, u64)]) -> Profile {
    let node = |&(parent, method, calls, self_ns, error_ns): &(Option<usize>, usize, u64, u64, u64)| Node {
        parent: parent.map(NodeIndex),
        calls,
        self_ns,
        total_ns: self_ns,
        error_ns,
        total_error_ns: error_ns,
        ..Node::empty(MethodIndex(method))
    };
    let mut tree = Tree::of(rows.iter().map(node).collect());
    for index in (0..tree.nodes.len()).rev() {
        let Node { parent, total_ns, total_error_ns, .. } = tree.nodes[index];
        if let Some(parent) = parent {
            tree.nodes[parent.0].total_ns += total_ns;
            tree.nodes[parent.0].total_error_ns += total_error_ns;
        }
    }
    tree.nodes.iter_mut().filter(|node| node.parent.is_none()).for_each(|root| root.total_error_ns = 0);
    Profile { controls: Vec::new(), at_least: Vec::new(), unseen: Vec::new(), ..profile_of(tree, Vec::new(), 4) }
}

const FILES: [&str; 8] = ["1.hw", "2.hw", "3.hw", "4.hw", "5.hw", "6.hw", "7.hw", "8.hw"];

/// Several runs a side, whose files are numbered on.
fn several<'a>(before: &'a [Profile], after: &'a [Profile], per: Option<Per>) -> Comparison<'a> {
    let runs: Vec<Run<'_>> =
        before.iter().chain(after).zip(FILES).map(|(profile, file)| Run { file, profile }).collect();
    let (first, second) = runs.split_at(before.len());
    super::compare(first, second, per)
}

fn compare<'a>(before: &'a Profile, after: &'a Profile, per: Option<Per>) -> Comparison<'a> {
    several(std::slice::from_ref(before), std::slice::from_ref(after), per)
}

fn written(comparison: &Comparison<'_>) -> String {
    let mut out = Vec::new();
    text::write(comparison, &[], &text::Selection::default(), &Style::default(), &mut out).expect("memory takes it");
    String::from_utf8(out).expect("text")
}

fn before() -> Profile {
    profile(&[(None, 0, 10, 1_000, 10), (Some(0), 1, 20, 4_000, 100), (Some(1), 2, 40, 5_000, 400)])
}

/// Twice as many root calls; method 2 is slower by a tenth, which is less than it is uncertain; 1 by a half; 3 is new.
fn after() -> Profile {
    profile(&[
        (None, 0, 20, 2_000, 20),
        (Some(0), 3, 20, 600, 20),
        (Some(0), 1, 40, 12_000, 200),
        (Some(2), 2, 80, 11_000, 800),
    ])
}

fn verdict(condition: &str) -> Verdict {
    let (before, after) = (before(), after());
    let condition: Condition = condition.parse().unwrap_or_else(|error| panic!("{condition}: {error}"));
    condition.judge(&compare(&before, &after, None)).verdict
}

#[test]
fn a_profile_does_not_differ_from_itself() {
    for seed in 0..100 {
        let profile = profile_of(random_tree(seed, 200, 5), Vec::new(), 5);
        let comparison = compare(&profile, &profile, None);
        let nodes = (0..comparison.nodes.len()).map(|node| comparison.node(node));
        for pair in comparison.methods().map(|(_, pair)| pair).chain(nodes) {
            for quantity in [Quantity::SELF_TIME, Quantity::TOTAL, Quantity::CALLS] {
                let change = comparison.change(pair, &quantity);
                assert_eq!((change.change(), change.relative(), change.is_real()), (0.0, 0.0, false));
            }
        }
        assert!(comparison.notes().iter().all(|note| !note.contains("differ")));
    }
}

#[test]
fn contexts_are_the_same_by_their_names_in_whatever_order_and_number() {
    let (before, mut after) = (before(), after());
    // The other run has seen its methods in another order, and one under two loaders.
    after.methods.rotate_left(1);
    after.methods.push(after.methods[0].clone());
    for node in &mut after.merged.nodes {
        node.method = MethodIndex((node.method.0 + 3) % 4);
    }
    after.merged.nodes[2].method = MethodIndex(4);
    let comparison = compare(&before, &after, None);
    assert_eq!(comparison.names.len(), 4);
    let paths: Vec<(Option<usize>, &str, Presence)> = comparison
        .nodes
        .iter()
        .enumerate()
        .map(|(index, node)| {
            (node.parent, comparison.names[node.name].display.as_str(), comparison.node(index).presence())
        })
        .collect();
    assert_eq!(
        paths,
        [
            (None, "com.acme.Shop.m0(int)", Presence::Both),
            (Some(0), "com.acme.Shop.m1(int)", Presence::Both),
            (Some(1), "com.acme.Shop.m2(int)", Presence::Both),
            (Some(0), "com.acme.Shop.m3(int)", Presence::Added),
        ]
    );
}

#[test]
fn quantities_are_those_of_a_root_call() {
    let (before, after) = (before(), after());
    let comparison = compare(&before, &after, None);
    let own = |method: usize| comparison.change(comparison.method(method), &Quantity::SELF_TIME);
    let deviations = |n: f64| estimate::NORMAL * n;
    assert_eq!((own(1).before, own(1).after), (400.0, 600.0));
    assert_eq!((own(1).errors, own(1).error), ([deviations(10.0); 2], deviations(200_f64.sqrt())));
    assert_eq!((own(1).change(), own(1).relative(), own(1).is_real()), (200.0, 0.5, true));
    assert_eq!((own(2).before, own(2).after, own(2).error), (500.0, 550.0, deviations(3_200_f64.sqrt())));
    assert!(!own(2).is_real(), "50 is less than 111");
    assert_eq!(own(3).relative(), f64::INFINITY);
    let calls = comparison.change(comparison.method(2), &Quantity::CALLS);
    assert_eq!((calls.before, calls.after, calls.is_real()), (4.0, 4.0, false));

    let runs = compare(&before, &after, Some(Per::Run));
    let own = runs.change(runs.method(1), &Quantity::SELF_TIME);
    assert_eq!((own.before, own.after, own.error), (4_000.0, 12_000.0, deviations(50_000_f64.sqrt())));
}

#[test]
fn without_root_calls_whole_runs_are_compared() {
    let nothing = profile(&[]);
    let before = before();
    let comparison = compare(&before, &nothing, Some(Per::RootCall));
    assert_eq!(comparison.per, Per::Run);
    assert_eq!(comparison.change(comparison.whole(), &Quantity::TOTAL).relative(), -1.0);
    assert!(comparison.notes().contains(&"one has no root calls: whole runs are compared".to_owned()));
}

#[test]
fn a_deep_recursion_is_compared_in_linear_time() {
    // 100,000 squared steps would not end within the test's patience.
    const LEVELS: usize = 100_000;
    let chain = |own: u64| {
        let rows: Vec<_> = (0..LEVELS).map(|level| (level.checked_sub(1), 1, 1, own, 0)).collect();
        profile(&rows)
    };
    let (before, after) = (chain(1), chain(2));
    let comparison = compare(&before, &after, None);
    let report = written(&comparison);
    assert!(report.lines().count() > LEVELS && report.lines().all(|line| line.chars().count() < 160));
}

#[test]
fn conditions_are_met_by_changes_that_are_certain() {
    for (condition, expected) in [
        ("self(com.acme.Shop.m1) > +5%", Verdict::Failed),
        ("self(com.acme.Shop.m1)>50%", Verdict::Passed),
        ("self(com.acme.Shop.m1) >= +50 %", Verdict::Failed),
        ("self(com.acme.Shop.m2) > +5%", Verdict::Uncertain),
        ("self(com.acme.Shop.m2) > +20%", Verdict::Passed),
        ("self(com.acme.Shop.m1) > +199ns", Verdict::Failed),
        ("self(com.acme.Shop.m1) > +0.2us", Verdict::Passed),
        ("self(com.acme.Shop.m1) > +1ms", Verdict::Passed),
        ("self(com.acme.*) > +5%", Verdict::Failed),
        ("self(com.acme.Shop.m3) > +1000%", Verdict::Failed),
        // m1 is above m2, whose time must not count twice.
        ("total(com.acme.Shop.m*) >= +280ns", Verdict::Failed),
        ("total(com.acme.Shop.m*) > +280ns", Verdict::Passed),
        ("total(com.acme.Shop::m1(int)) > 27%", Verdict::Failed),
        ("calls(m1) > 0", Verdict::Passed),
        ("calls(m3) > 0", Verdict::Failed),
        ("calls(m3) >= +1", Verdict::Failed),
        ("calls(m3) > 1", Verdict::Passed),
        ("self(m1) < -5%", Verdict::Passed),
        ("self(org.other.*) > +5%", Verdict::NothingMatched),
    ] {
        assert_eq!(verdict(condition), expected, "{condition}");
    }
    let (before, after) = (before(), after());
    let faster: Condition = "total(m0) <= -20%".parse().expect("a condition");
    assert_eq!(faster.judge(&compare(&after, &before, None)).verdict, Verdict::Failed, "the other way round");
}

/// A run of one program: its own times scatter by a part of themselves, and it states that they do by another.
fn scattered(random: &mut Random, scatter: f64, stated: f64, factor: f64) -> Profile {
    // Twelve of them have a variance of one, and are nearly normal.
    let mut normal = || (0..12).map(|_| random.below(1 << 30) as f64 / f64::from(1 << 30)).sum::<f64>() - 6.0;
    let own = [200e3, 4e6 * factor, 3e6, 1e6];
    let row = |(method, own): (usize, f64)| {
        let parent = (method > 0).then_some(0);
        (parent, method, 100, (own * (1.0 + scatter * normal())).max(1.0) as u64, (stated * own) as u64)
    };
    let rows: Vec<_> = own.into_iter().enumerate().map(row).collect();
    let mut profile = profile(&rows);
    profile.merged.nodes[0].total_error_ns = (stated * own.iter().map(|own| own * own).sum::<f64>().sqrt()) as u64;
    profile
}

/// Of 100 comparisons, in how many the whole, and each method's own time, are said to have changed.
fn claimed(mut compared: impl FnMut() -> [Vec<Profile>; 2]) -> [usize; 5] {
    let mut claimed = [0; 5];
    for _ in 0..100 {
        let [before, after] = compared();
        let comparison = several(&before, &after, None);
        let own = (0..4).map(|method| comparison.change(comparison.method(method), &Quantity::SELF_TIME));
        let whole = comparison.change(comparison.whole(), &Quantity::TOTAL);
        for (claims, change) in claimed.iter_mut().zip([whole].into_iter().chain(own)) {
            *claims += usize::from(change.is_real());
        }
    }
    claimed
}

#[test]
fn of_100_pairs_of_runs_of_one_program_90_differ_by_no_more_than_they_say() {
    let mut random = Random::new(31);
    let claims = claimed(|| [1.0, 1.0].map(|factor| vec![scattered(&mut random, 0.05, 0.05, factor)]));
    assert!(claims.iter().all(|claims| *claims <= 10), "{claims:?}");
}

#[test]
fn several_runs_a_side_hold_though_they_scatter_by_far_more_than_they_say() {
    let mut random = Random::new(31);
    let mut sides = |scatter, runs: [usize; 2], factor| {
        [(1.0, runs[0]), (factor, runs[1])]
            .map(|(factor, runs)| (0..runs).map(|_| scattered(&mut random, scatter, 0.01, factor)).collect())
    };
    for (runs, scatter) in [2, 3, 4].into_iter().flat_map(|runs| [0.01, 0.03, 0.1, 0.3].map(|scatter| (runs, scatter)))
    {
        let claims = claimed(|| sides(scatter, [runs; 2], 1.0));
        assert!(claims.iter().all(|claims| *claims <= 10), "{runs} runs, {scatter}: {claims:?}");
    }
    // What single runs say of themselves would not hold, and what changed is found.
    assert!(claimed(|| sides(0.1, [1, 1], 1.0))[2] > 60);
    let [_, _, changed, unchanged, _] = claimed(|| sides(0.05, [4, 4], 1.5));
    assert!(changed >= 90 && unchanged <= 10, "{changed} {unchanged}");
}

#[test]
fn of_several_runs_the_mean_counts_and_their_spread() {
    // Of unchanged code, once slow for a reason that no profile knows.
    let run = |own| profile(&[(None, 0, 10, 1_000, 1), (Some(0), 1, 20, own, 40)]);
    let (before, after) = ([run(4_067), run(492)], [run(492), run(500)]);
    let comparison = several(&before, &after, None);
    let own = comparison.change(comparison.method(1), &Quantity::SELF_TIME);
    assert!((own.before - 227.95).abs() < 1e-9 && (own.after - 49.6).abs() < 1e-9, "{own:?}");
    assert!(!own.is_real(), "{own:?}");
    assert!(compare(&before[0], &after[0], None).change(comparison.method(1), &Quantity::SELF_TIME).error < own.error);
    let condition: Condition = "self(m1) < -5%".parse().expect("a condition");
    assert_eq!(condition.judge(&comparison).verdict, Verdict::Uncertain);
}

#[test]
fn what_is_missing_in_a_run_has_nothing_there() {
    let (before, after) = ([before(), after()], [after()]);
    let comparison = several(&before, &after, None);
    let calls = comparison.change(comparison.method(3), &Quantity::CALLS);
    assert_eq!((calls.before, calls.after), (0.5, 1.0));
    assert_eq!(comparison.method(3).presence(), Presence::Both);
    assert!(!calls.is_real(), "once of two times is no sign");
    // But who asks for calls is told.
    let condition: Condition = "calls(m3) > 0".parse().expect("a condition");
    assert_eq!(condition.judge(&comparison).verdict, Verdict::Failed);
}

#[test]
fn the_same_calls_are_the_same_in_means_of_any_number_of_runs() {
    let run = || profile(&[(None, 0, 7, 1_000, 1), (Some(0), 1, 3, 10, 1)]);
    let (before, after) = ([run(), run(), run()], [run(), run(), run(), run(), run()]);
    let comparison = several(&before, &after, None);
    assert_eq!(comparison.change(comparison.method(1), &Quantity::CALLS).change(), 0.0);
}

#[test]
fn no_time_is_said_to_have_changed_where_times_are_not_known() {
    let (known, mut unknown) = (before(), after());
    unknown.merged.nodes[0].total_error_ns = unknown.merged.nodes[0].total_ns;
    let (before, after) = ([known.clone(), known], [unknown]);
    let comparison = several(&before, &after, None);
    for (_, pair) in comparison.methods() {
        for quantity in [Quantity::SELF_TIME, Quantity::TOTAL] {
            let change = comparison.change(pair, &quantity);
            assert!(!change.is_known() && !change.is_real(), "{change:?}");
        }
    }
    assert!(comparison.change(comparison.method(3), &Quantity::CALLS).is_real());
    let report = written(&comparison);
    assert!(
        report.contains("warning: the times of 3.hw are not known, so no time is said to have changed"),
        "{report}"
    );
    assert!(report.contains(
        "\na root call took 1.000 us before and 1.280 us after, in the mean of 2 and 1 runs: times are not known\n"
    ));
    let mut object = Vec::new();
    json::write(&comparison, &[], &mut object).expect("memory takes it");
    let object: serde_json::Value = serde_json::from_slice(&object).expect("JSON");
    assert_eq!((&object["times_known"], &object["total"]["error_ns"]), (&false.into(), &serde_json::Value::Null));
    assert_eq!(object["total"]["changed"], false);
    let files = |side: &str| {
        object[side]["files"].as_array().map(|files| files.iter().map(|file| file["file"].clone()).collect())
    };
    assert_eq!(files("before"), Some(vec!["1.hw".into(), "2.hw".into()]));
    assert_eq!(object["before"]["file"], "1.hw");
}

#[test]
fn no_time_is_known_better_than_held_out_calls_confirm() {
    let (before, mut after) = (before(), after());
    let own = |after: &Profile| {
        let comparison = compare(&before, after, None);
        comparison.change(comparison.method(1), &Quantity::SELF_TIME).is_real()
    };
    assert!(own(&after));
    let control = crate::profile::Control {
        root: MethodIndex(0),
        kind: crate::profile::ControlKind::After,
        charged_ns: 1_300.0,
        control_ns: 1_000.0,
        error_ns: 10.0,
        calls: 30,
    };
    after.controls.push(control);
    assert!(!own(&after), "200 is not more than twice 29 per cent of 600");
    let note = "times are good to 29 % (2.hw) only: what seems to have changed may not have";
    assert!(compare(&before, &after, None).notes().iter().any(|found| found == note));
}

#[test]
fn what_was_counted_for_a_part_of_a_run_is_not_compared() {
    let (mut before, mut after) = (before(), after());
    let alloc = Metric::counted("alloc", "allocated", Unit::Bytes, Extent::OwnAndTotal, "");
    for profile in [&mut before, &mut after] {
        let column = Column::of(&profile.merged.nodes, profile.merged.nodes.iter().map(|_| (8, 0)));
        profile.merged.counted = vec![column];
        profile.counted = vec![alloc.clone()];
    }
    let has_it = |after: &Profile| compare(&before, after, None).metrics.iter().any(|metric| metric.id == "alloc");
    assert!(has_it(&after));
    after.counted = vec![alloc.during(vec![Span { from_ns: 500_000_000, to_ns: 700_000_000 }])];
    assert!(!has_it(&after));
    let notes = compare(&before, &after, None).notes();
    assert!(notes.iter().any(|note| note.starts_with("alloc after: counted from 0.5 to 0.7 s, 0.2 of ")), "{notes:?}");
}

#[test]
fn runs_of_a_side_that_are_not_of_one_program_are_reported() {
    let (before, after) = ([before(), before(), before()], [after()]);
    let mut mixed = before.clone();
    assert!(several(&mixed, &after, None).warnings().is_empty());
    mixed[1].target.main = "com.acme.Other".to_owned();
    mixed[2].target.jdk = "17.0.15".to_owned();
    mixed[2].environment.host = "shop-2".to_owned();
    let comparison = several(&mixed, &after, None);
    assert_eq!(
        comparison.warnings(),
        [
            "the runs before are of different programs, and their mean is of none: com.acme.Shop (1.hw, 3.hw); com.acme.Other (2.hw)",
            "the runs before are of different JDKs, and their mean is of none: 25.0.1 (1.hw, 2.hw); 17.0.15 (3.hw)",
        ]
    );
    assert!(comparison.notes().contains(&"hosts differ before: shop-1 (1.hw, 2.hw); shop-2 (3.hw)".to_owned()));
}

#[test]
fn what_a_file_does_not_say_is_no_difference() {
    let ours = before();
    assert!(!ours.roots.is_empty() && !ours.target.jdk.is_empty() && !ours.environment.host.is_empty());
    let theirs = |name: &str| crate::import::read(name, &mut &b"com.acme.Shop.sell 7\n"[..]).expect("a profile");
    let (first, second) = (theirs("1.collapsed"), theirs("2.collapsed"));
    for (one, other) in [(&ours, &first), (&first, &ours), (&first, &second)] {
        let notes = compare(one, other, None).notes();
        assert!(notes.iter().all(|note| !note.contains("differ: ")), "{notes:?}");
    }
    let sides = ([ours.clone(), first], [ours, second]);
    let comparison = several(&sides.0, &sides.1, None);
    assert_eq!(comparison.warnings().iter().filter(|warning| warning.contains("different")).count(), 0);
    assert!(comparison.notes().iter().all(|note| !note.contains("differ ")), "{:?}", comparison.notes());
}

#[test]
fn a_malformed_condition_is_refused_with_its_column() {
    for (condition, expected) in [
        ("", "column 1: say what is compared: self(...), total(...), calls(...) or another metric"),
        ("self > 5%", "column 6: the methods are missing: write them in parentheses, as in self(com.acme.*)"),
        ("self(a.B > 5%", "column 6: the parenthesis before this is never closed"),
        (
            "self() > 5%",
            "column 6: these are no methods: the pattern is empty; write a class and a method, such as `com.acme.Main::run`",
        ),
        ("self(a.B) = 5%", "column 11: write >, >=, < or <= here"),
        ("self(a.B) > much", "column 13: a change is missing, such as +5% or -2ms"),
        ("self(a.B) > 5", "column 14: a unit is needed here: %, ns, us, ms or s"),
        ("self(a.B) > 1.2.3%", "column 13: a change is missing, such as +5% or -2ms"),
        ("self(a.B) > +5 parsecs", "column 16: a unit is needed here: %, ns, us, ms or s"),
        ("calls(a.B) > +5ms", "column 16: calls have no unit but %"),
        ("self(a.B) > 5 KiB", "column 15: a unit is needed here: %, ns, us, ms or s"),
        (
            "alloc.total(a.B) > 5 kB",
            "column 22: this is no unit: there are %, ns, us, ms, s, B, KiB, MiB and GiB, and counts have none",
        ),
        ("self(ä.B) > 5", "column 14: a unit is needed here: %, ns, us, ms or s"),
    ] {
        assert_eq!(condition.parse::<Condition>().expect_err(condition).to_string(), expected, "{condition}");
    }
}

#[test]
fn random_conditions_are_never_a_panic() {
    let mut random = crate::profile::testing::Random::new(9);
    let pieces =
        ["self", "total", "calls", "(", ")", "a.B", "*", ">", "<", "=", "+", "-", "−", "5", ".", "%", "ms", " ", "é"];
    for _ in 0..20_000 {
        let text: String = (0..random.below(12)).map(|_| pieces[random.below(pieces.len() as u64) as usize]).collect();
        if let Err(error) = text.parse::<Condition>() {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{text}: {error}");
        }
    }
}

#[test]
fn calls_that_may_be_missing_are_marked_and_explain_what_they_can() {
    let late = |of: Profile| {
        let at_least = AtLeast {
            method: MethodIndex(1),
            since: Duration::ZERO,
            until: Duration::from_secs(1),
            callers: Vec::new(),
        };
        Profile { at_least: vec![at_least], ..of }
    };
    // 20 calls of method 1 for 10 of the root, then more, or fewer.
    let calls = |n| profile(&[(None, 0, 10, 1_000, 10), (Some(0), 1, n, 4_000, 100), (Some(1), 2, n, 5_000, 400)]);
    let (few, many) = (calls(20), calls(30));
    for (before, after, is_real) in [
        (few.clone(), many.clone(), true),
        // What is missing before may be the difference; what is missing after makes it larger only.
        (late(few.clone()), many.clone(), false),
        (few.clone(), late(many.clone()), true),
        (many.clone(), late(few.clone()), false),
        (late(many.clone()), few.clone(), true),
        (late(few.clone()), late(many.clone()), false),
    ] {
        let comparison = compare(&before, &after, None);
        for name in [1, 2] {
            let change = comparison.change(comparison.method(name), &Quantity::CALLS);
            assert_eq!(change.is_real(), is_real, "method {name}: {change:?}");
        }
        assert!(!comparison.change(comparison.method(0), &Quantity::CALLS).may_be_missing());
        let condition: Condition = "calls(*.m1) > +5%".parse().expect("a condition");
        let failed = condition.judge(&comparison).verdict == Verdict::Failed;
        assert_eq!(failed, is_real && comparison.change(comparison.method(1), &Quantity::CALLS).change() > 0.0);
    }
    let (before, after) = (late(few), many);
    let comparison = compare(&before, &after, None);
    let selection = text::Selection { by: Some(Quantity::CALLS), ..text::Selection::default() };
    let mut out = Vec::new();
    text::write(&comparison, &[], &selection, &Style::default(), &mut out).expect("memory takes it");
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("note: counts before may be too low (>=): 1 method may"), "{text}");
    let mut out = Vec::new();
    json::write(&comparison, &[], &mut out).expect("memory takes it");
    let json: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(json["methods"][1]["calls"]["before_at_least"], true);
    assert!(json["methods"][1]["calls"].get("after_at_least").is_none());
}
