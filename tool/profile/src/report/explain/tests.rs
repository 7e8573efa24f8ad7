use std::time::Duration;

use super::*;
use crate::profile::reach::{ReachOptions, Unprobed};
use crate::profile::{Budget, DroppedMethod, Limit, MethodName, Node, NodeIndex, Root, Skipped, Tree};
use crate::report::text::Style;

const CHECKOUT: &str = "shop.Shop.checkout(Lshop/Cart;)V";
const TOTAL: &str = "shop.Cart.total()I";
const PRICE: &str = "shop.Item.price()I";
const LATE: &str = "shop.Item.late()V";

/// `Shop.checkout`, which calls `Cart.total`, which virtually calls `Priced.price`; `Item.late` is not instrumented.
fn profile() -> Profile {
    let at = |recorded_ms, batches| Moment { recorded_ms, batches };
    let cause = |by: usize, way, through| Cause { by: Some(MethodIndex(by)), way, through };
    let reached = |cause, found, probed| Reached {
        cause,
        trigger: Trigger::Entered,
        found,
        probed: Some(probed),
        ..Reached::default()
    };
    let other = |machine: &str, why, cause| Unprobed { machine: machine.into(), why, cause };
    let root = Cause { way: Way::Root, ..Cause::default() };
    let name = |machine: &str| MethodName { machine: machine.into(), display: shown(machine) };
    let node = |parent: Option<usize>, method, calls| Node {
        parent: parent.map(NodeIndex),
        calls,
        ..Node::empty(MethodIndex(method))
    };
    let reach = Reach {
        wanted: ReachOptions { exclude: vec!["shop.Log".into()], jdk: "none".into(), ..ReachOptions::default() },
        types: vec!["shop.Priced".into(), "java.util.List".into()],
        methods: vec![
            Reached { trigger: Trigger::Start, ..reached(root, at(0, 0), at(0, 1)) },
            reached(cause(0, Way::Direct, None), at(20, 1), at(40, 2)),
            reached(cause(1, Way::Virtual, Some(0)), at(60, 2), at(60, 2)),
            Reached {
                probed: None,
                lacks: Some(Obstacle::Limits),
                ..reached(cause(2, Way::Direct, None), at(900, 9), at(0, 0))
            },
        ],
        others: vec![
            other("java.util.List.size()I", Obstacle::Jdk, cause(1, Way::Virtual, Some(1))),
            other("shop.Log.say(Ljava/lang/String;)V", Obstacle::Filtered, cause(1, Way::Direct, None)),
            other("shop.Priced.price()I", Obstacle::Abstract, cause(1, Way::Virtual, Some(0))),
        ],
        classes: ["shop.Cart", "shop.Idle", "shop.Item", "shop.Log", "shop.Shop"].map(str::to_owned).to_vec(),
    };
    Profile {
        methods: [CHECKOUT, TOTAL, PRICE, LATE].map(name).to_vec(),
        roots: vec![Root {
            pattern: "shop.Shop::checkout".into(),
            methods: vec![MethodIndex(0)],
            calls: 2,
            open: Default::default(),
        }],
        merged: Tree::of(vec![node(None, 0, 2), node(Some(0), 1, 4), node(Some(1), 2, 1_000)]),
        skipped: vec![Skipped { method: "shop.Item.refused()V".into(), reason: "no room".into() }],
        reach: Some(reach),
        ..Profile::default()
    }
}

fn text_of(profile: &Profile, wanted: &str) -> String {
    let explained = explain(profile, &wanted.parse().expect("a selector")).expect("it is known");
    let mut out = Vec::new();
    text::write(&explained, 2, &Style::default(), &mut out).expect("memory");
    String::from_utf8(out).expect("text")
}

#[track_caller]
fn check(wanted: &str, expected: &str) {
    assert_eq!(text_of(&profile(), wanted), expected, "{wanted}");
}

#[test]
fn a_method_is_explained_by_its_way_from_the_root() {
    check(
        "shop.Item::price",
        "shop.Item.price(): has probes, was called 1,000 times
  root    shop.Shop::checkout
  calls   1,000 by shop.Cart.total()
  found   at 0.06 s, when shop.Cart.total() was entered for the first time; probes with its class
  way     shop.Shop.checkout(Cart): named by the root
          > shop.Cart.total(): called directly
          > shop.Item.price(): virtual call of a method of shop.Priced, which may run it
",
    );
    check(
        "shop.Shop.checkout(Cart)",
        "shop.Shop.checkout(Cart): has probes, was called 2 times
  root    shop.Shop::checkout
  calls   2 by code outside the call graph
  found   before recording, with the roots; probes with hotswap 1
  way     shop.Shop.checkout(Cart): named by the root
",
    );
}

#[test]
fn what_has_no_probes_is_explained_by_what_kept_it_from_them() {
    check(
        "shop.Item.late",
        "shop.Item.late(): no probes
  root    shop.Shop::checkout
  found   at 0.90 s, when shop.Item.price() was entered for the first time
  why     recording ended before its turn came: for the program's sake the JVM is stopped for a small part of the time only
  to do   record for longer (-d), or, where the program may be held up, with --gentle off
  way     shop.Shop.checkout(Cart): named by the root
          > shop.Cart.total(): called directly
          > shop.Item.price(): virtual call of a method of shop.Priced, which may run it
          > shop.Item.late(): called directly
",
    );
    for (wanted, part) in [
        (
            "java.util.List::size",
            "it is the JDK's: its time counts into those that call it\n  to do   --jdk edge gives",
        ),
        (
            "java.util.Set::add",
            "no probes, not reached\n  why     it is the JDK's, and nothing that ran below a root calls it",
        ),
        ("shop.Log::say", "--exclude shop.Log leaves it out"),
        ("shop.Priced::price", "it is abstract; found because of it: shop.Item.price()"),
        ("shop.Item::refused", "shop.Item.refused(): no probes\n  why     no room\n"),
        ("shop.Idle::run", "nothing that ran below a root leads to a method of that name"),
        ("shop.Item::pirce", "found below the root: shop.Item.price()\n          loaded: shop.Item\n"),
        ("shop.Item::price(int)", "found below the root: shop.Item.price()"),
        ("java.util.ArrayList::size", "calls it by this name\n          found below the root: java.util.List.size()\n"),
    ] {
        let text = text_of(&profile(), wanted);
        assert!(text.contains(part), "{wanted}: {text}");
    }
}

#[test]
fn a_method_that_was_dropped_says_when_and_why() {
    let dropped = |limit, at| {
        let mut profile = profile();
        let reach = profile.reach.as_mut().expect("it is known");
        reach.methods[2].lacks = Some(Obstacle::Dropped);
        let method = MethodIndex(2);
        let price = DroppedMethod { method, calls: 1_000, self_ns: 5, error_ns: 0, overhead: 0.25, at };
        profile.budget =
            Some(Budget { limit, roots: Vec::new(), dropped: vec![price], batches: 1, pause_ns: 9, pauses: 0.0 });
        text_of(&profile, "shop.Item::price")
    };
    let unasked = dropped(Limit::UNASKED, Duration::from_millis(3_100));
    assert!(unasked.starts_with("shop.Item.price(): no probes any more, was called 1,000 times\n"), "{unasked}");
    assert!(
        unasked.contains(
            "taken out at 3.10 s because calls of its root were made longer by more than 100.0 ms; they alone cost 25.0%"
        ),
        "{unasked}"
    );
    assert!(unasked.contains("\n  to do   --budget off keeps all\n"), "{unasked}");
    let asked = dropped(Limit::Part(0.05), Duration::ZERO);
    assert!(asked.contains("taken out before what was recorded here to keep to --budget 5%;"), "{asked}");
}

#[test]
fn callers_are_those_that_called_whatever_way_a_method_was_found_on() {
    let mut profile = profile();
    let call =
        |parent, method, calls| Node { parent: Some(NodeIndex(parent)), calls, ..Node::empty(MethodIndex(method)) };
    let root = Node { calls: 2, ..Node::empty(MethodIndex(0)) };
    profile.merged = Tree::of(vec![root, call(0, 2, 7), call(0, 1, 1), call(2, 2, 9)]);
    let text = text_of(&profile, "shop.Item::price");
    assert!(text.contains("  calls   9 by shop.Cart.total(), 7 by shop.Shop.checkout(Cart)\n"), "{text}");
}

#[test]
fn of_a_long_way_the_beginning_and_the_end_are_told() {
    let mut profile = profile();
    let reach = profile.reach.as_mut().expect("it is known");
    for at in 4..30 {
        let machine = format!("shop.Deep.m{at}()V");
        profile.methods.push(MethodName { display: shown(&machine), machine });
        let cause = Cause { by: Some(MethodIndex(at - 1)), way: Way::Direct, through: None };
        reach.methods.push(Reached { cause, ..Reached::default() });
    }
    let text = text_of(&profile, "shop.Deep::m29");
    let way = text.lines().filter(|line| line.contains("called directly") || line.contains("more steps"));
    assert_eq!(way.count(), 11, "{text}");
    assert!(
        text.contains("late(): called directly\n          ... 18 more steps\n          > shop.Deep.m22()"),
        "{text}"
    );
}

#[test]
fn of_many_methods_some_are_explained_and_the_others_counted() {
    let text = text_of(&profile(), "shop.Item");
    assert!(text.ends_with("\n1 more method matches; a longer name, its parameters, or --limit N\n"), "{text}");
}

#[test]
fn what_nobody_knows_is_an_error_with_what_may_be_meant() {
    let error = |profile: &Profile, wanted: &str| {
        explain(profile, &wanted.parse().expect("a selector")).expect_err("nobody knows it").to_string()
    };
    assert_eq!(
        error(&profile(), "shop.Crat::total"),
        "nothing that matches shop.Crat::total was reached, and no class of that name was loaded while this was recorded. Did you mean \
         shop.Cart.total()?"
    );
    let older = Profile { reach: None, ..profile() };
    assert!(error(&older, "shop.Idle::run").contains("an older Headwater recorded it"));
    assert!(text_of(&older, "shop.Item::price").contains("how it was reached is not known"));
    let imported = Profile { imported: Some("pprof".into()), ..profile() };
    assert!(error(&imported, "shop.Item::price").ends_with("this was made of pprof"));
}

#[test]
fn programs_are_told_the_same() {
    let explained = explain(&profile(), &"shop.Item::price".parse().expect("a selector")).expect("it is known");
    let mut out = Vec::new();
    json::write(&explained, "shop.Item::price", &mut out).expect("memory");
    let report: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!((&report["schema"], &report["pattern"]), (&"headwater-explain/1".into(), &"shop.Item::price".into()));
    let method = &report["methods"][0];
    assert_eq!(
        (&method["method"], &method["standing"], &method["calls"]),
        (&PRICE.into(), &"probed".into(), &1000.into())
    );
    assert_eq!(method["callers"], serde_json::json!([{ "method": TOTAL, "calls": 1000 }]));
    assert_eq!(method["way"][2]["way"], "virtual");
    assert_eq!(method["way"][2]["through"], "shop.Priced");
    assert_eq!(method["found"]["trigger"], "entered");
    assert_eq!(method["found"]["at_ns"], 60_000_000);
    assert_eq!(method["probed"]["hotswaps"], 2);
}
