use super::condition::{Condition, Verdict};
use super::*;
use crate::profile::testing::{profile_of, random_tree};
use crate::profile::{MethodIndex, Node, Tree};
use crate::report::text::Style;

/// From (parent, method, calls, self time, its uncertainty); totals and their uncertainties are sums.
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
    let mut tree = Tree { nodes: rows.iter().map(node).collect() };
    for index in (0..tree.nodes.len()).rev() {
        let Node { parent, total_ns, total_error_ns, .. } = tree.nodes[index];
        if let Some(parent) = parent {
            tree.nodes[parent.0].total_ns += total_ns;
            tree.nodes[parent.0].total_error_ns += total_error_ns;
        }
    }
    profile_of(tree, Vec::new(), 4)
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
        let pairs = comparison.methods.iter().chain(comparison.nodes.iter().map(|node| &node.pair));
        for pair in pairs {
            for quantity in [Quantity::SelfTime, Quantity::Total, Quantity::Calls] {
                let change = comparison.change(pair, quantity);
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
    let paths: Vec<(Option<usize>, &str, bool, bool)> = comparison
        .nodes
        .iter()
        .map(|node| {
            let name = comparison.names[node.name].display.as_str();
            (node.parent, name, node.pair.before.is_some(), node.pair.after.is_some())
        })
        .collect();
    assert_eq!(
        paths,
        [
            (None, "com.acme.Shop.m0(int)", true, true),
            (Some(0), "com.acme.Shop.m1(int)", true, true),
            (Some(1), "com.acme.Shop.m2(int)", true, true),
            (Some(0), "com.acme.Shop.m3(int)", false, true),
        ]
    );
}

#[test]
fn quantities_are_those_of_a_root_call() {
    let (before, after) = (before(), after());
    let comparison = compare(&before, &after, None);
    let own = |method: usize| comparison.change(&comparison.methods[method], Quantity::SelfTime);
    assert_eq!(own(1), Change { before: 400.0, after: 600.0, error: 20.0 });
    assert_eq!((own(1).change(), own(1).relative(), own(1).is_real()), (200.0, 0.5, true));
    assert_eq!(own(2), Change { before: 500.0, after: 550.0, error: 80.0 });
    assert!(!own(2).is_real(), "50 is less than 80");
    assert_eq!(own(3).relative(), f64::INFINITY);
    let calls = comparison.change(&comparison.methods[2], Quantity::Calls);
    assert_eq!((calls.before, calls.after, calls.is_real()), (4.0, 4.0, false));

    let runs = compare(&before, &after, Some(Per::Run));
    let own = runs.change(&runs.methods[1], Quantity::SelfTime);
    assert_eq!(own, Change { before: 4_000.0, after: 12_000.0, error: 300.0 });
}

#[test]
fn without_root_calls_whole_runs_are_compared() {
    let nothing = profile(&[]);
    let before = before();
    let comparison = compare(&before, &nothing, Some(Per::RootCall));
    assert_eq!(comparison.per, Per::Run);
    assert_eq!(comparison.change(&comparison.whole, Quantity::Total).relative(), -1.0);
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
    let context = json::Context { files: ["before.hw", "after.hw"], judgements: &[] };
    let mut out = Vec::new();
    text::write(&comparison, &context, &text::Selection::default(), &Style::default(), &mut out)
        .expect("memory takes it");
    let report = String::from_utf8(out).expect("text");
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

#[test]
fn a_malformed_condition_is_refused_with_its_column() {
    for (condition, expected) in [
        ("", "column 1: say what is compared: self(...), total(...) or calls(...)"),
        ("  mean(x) > 5%", "column 3: `mean` cannot be compared; say self(...), total(...) or calls(...)"),
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
