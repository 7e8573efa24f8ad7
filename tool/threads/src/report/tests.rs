use super::*;
use crate::waits::{Supertypes, WaitGraph};
use crate::{deadlocks, read};

/// What has been taken of a JVM that said this.
fn taken(text: &str) -> Taken {
    let dump = read::read(text);
    let waits = WaitGraph::of(&dump, &Supertypes::new());
    let deadlocks = deadlocks::deadlocks(&waits);
    Taken {
        pid: 4711,
        main: "Stuck\u{1b}".to_owned(),
        dump,
        waits,
        deadlocks,
        cpu: None,
        warnings: vec!["something is not known".to_owned()],
    }
}

fn text(taken: &Taken, depth: Option<usize>, width: Option<usize>) -> String {
    let style = Style { width, color: false, percent: false, provenance: false, verbose: false };
    let mut out = Vec::new();
    write_text(taken, Depth(depth), &style, &mut out).expect("memory takes it");
    String::from_utf8(out).expect("UTF-8")
}

const JDK_17: &str = include_str!("../tests/jdk17.txt");
const HOSTILE: &str = include_str!("../tests/hostile.txt");

#[test]
fn deadlocks_come_first_then_who_holds_others_up_then_each_stack_once() {
    let shown = text(&taken(JDK_17), None, None);
    let at = |part: &str| shown.find(part).unwrap_or_else(|| panic!("{part}: {shown}"));
    let order = [
        "Stuck\\u001b (pid 4711, OpenJDK 64-Bit Server VM (17.0.15",
        "deadlock 1: 3 threads wait for each other\n  \"three-0\" #12\n      at Stuck.enter(Stuck.java:78)\n      wants java.lang.Object <0x",
        "who holds others up\n  17 threads wait for \"owner\"",
        "17 threads \"Thread\"\n  WAITING, waits for java.util.concurrent.locks.ReentrantLock$NonfairSync <0x",
        "3 threads: \"three-0\" #12, \"three-1\" #13, \"three-2\" #14\n  BLOCKED, wants the monitor java.lang.Object each",
        "without Java stacks",
        "warning: something is not known",
    ];
    assert!(order.map(at).is_sorted(), "{shown}");
    assert_eq!(shown.matches("ReentrantLock.lock(ReentrantLock.java:322)").count(), 3, "once for each stack");
    assert!(!shown.contains(", likely"), "{shown}");
}

#[test]
fn stacks_are_cut_and_lines_fit() {
    let shown = text(&taken(JDK_17), Some(1), Some(60));
    assert!(shown.contains("\n    at Stuck.enter(Stuck.java:78)\n"));
    assert!(shown.contains("\n    ... 4 more frames\n"), "{shown}");
    assert!(shown.contains("\n      held by \"three-1\" #13\n"), "{shown}");
    let body = shown.lines().skip(2).filter(|line| !line.starts_with("warning"));
    assert!(body.into_iter().all(|line| line.chars().count() <= 60), "{shown}");
}

#[test]
fn no_name_reaches_a_terminal_as_it_is() {
    let taken = taken(HOSTILE);
    let shown = text(&taken, None, None);
    assert!(shown.contains("\"a\\u000a\"b\" #7 daemon") && !shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    let mut out = Vec::new();
    json::write_json(&taken, &mut out).expect("memory takes it");
    let report: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let rows = report["threads"].as_array().expect("threads");
    let name = rows.iter().filter_map(|row| row["name"].as_str()).find(|name| name.starts_with("a\n"));
    assert!(name.is_some_and(|name| name.ends_with('\u{202e}')), "programs have it as it is");
}

#[test]
fn the_numbers_in_json_lead_to_each_other() {
    let taken = taken(JDK_17);
    let mut out = Vec::new();
    json::write_json(&taken, &mut out).expect("memory takes it");
    let report: serde_json::Value = serde_json::from_slice(&out).expect("JSON");
    let (threads, locks) = (report["threads"].as_array().expect("threads"), report["locks"].as_array().expect("locks"));
    assert!(threads.iter().enumerate().all(|(at, thread)| thread["id"] == at));
    let waits: Vec<_> = threads.iter().map(|thread| &thread["wait"]).filter(|wait| wait["holder"].is_u64()).collect();
    assert!(waits.iter().any(|wait| wait["kind"] == "class-initialisation"));
    let holder = |wait: &serde_json::Value| locks[wait["lock"].as_u64().expect("a lock") as usize]["holder"].clone();
    assert!(
        waits.iter().all(|wait| holder(wait) == wait["holder"]),
        "who waits and what is waited for have one holder"
    );
    let wait = &report["deadlocks"][0]["waits"][0];
    let lock = &locks[wait["lock"].as_u64().expect("a lock") as usize];
    assert_eq!((&lock["holder"], &lock["class"]), (&wait["holder"], &"java.lang.Object".into()));
    let holder = &threads[wait["holder"].as_u64().expect("a thread") as usize];
    assert!(holder["holds"].as_array().is_some_and(|held| held.iter().any(|held| held["lock"] == wait["lock"])));
    let group = &report["groups"][holder["group"].as_u64().expect("a group") as usize];
    assert!(group["threads"].as_array().is_some_and(|group| group.contains(&wait["holder"])));
}
