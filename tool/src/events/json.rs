//! Events as JSON objects, one a line.

use headwater_protocol::message::events::{Happened, JvmEvent, Kinds, Named, Sort, StackFrame, Thread, What};
use serde_json::{Value, json};

use super::name;
use super::said::{heap, method_name, place_name, total};
use super::summary::Summary;
use super::visit::Clock;

/// What the lines are. Fields and kinds of events may be added; a reader passes over what it does not know.
const SCHEMA: &str = "headwater-events/1";

/// An event; `lived_ns` of a thread whose start is known.
pub(super) fn line(event: &JvmEvent, methods: &[Named], (pid, clock): (u32, Clock), lived_ns: Option<u64>) -> String {
    let stack = |stack: &[StackFrame]| -> Value { stack.iter().map(|place| place_name(methods, place)).collect() };
    let (kind, what) = match &event.what {
        What::Collection { duration_ns, cause, collector, pools } => {
            let each = pools
                .iter()
                .map(|pool| json!({ "name": pool.name, "before_bytes": pool.before, "after_bytes": pool.after }));
            let heap = heap(pools);
            let what = json!({
                "duration_ns": duration_ns,
                "cause": cause,
                "collector": collector,
                "before_bytes": total(&heap, |pool| pool.before),
                "after_bytes": total(&heap, |pool| Some(pool.after)),
                "pools": each.collect::<Vec<_>>(),
            });
            ("gc", what)
        }
        What::ClassLoad { class, loader, thread: by, stack: calls } => {
            ("class-load", json!({ "class": class, "loader": loader, "thread": thread(by), "stack": stack(calls) }))
        }
        What::ClassUnload { class } => ("class-unload", json!({ "class": class })),
        What::ThreadStart { thread: started, is_daemon } => {
            ("thread-start", json!({ "thread": thread(started), "daemon": is_daemon }))
        }
        What::ThreadEnd { thread: ended } => ("thread-end", json!({ "thread": thread(ended), "lived_ns": lived_ns })),
        What::Wait { duration_ns, class, thread: waiter, stack: calls, owner } => {
            let owner = owner.as_ref();
            let owner = owner.map(|owner| json!({ "thread": thread(&owner.thread), "stack": stack(&owner.stack) }));
            let what = json!({
                "duration_ns": duration_ns,
                "class": class,
                "thread": thread(waiter),
                "stack": stack(calls),
                "owner": owner,
            });
            ("monitor", what)
        }
        What::Compilation { method, bytes } => {
            ("compile", json!({ "method": method_name(methods, *method), "code_bytes": bytes }))
        }
        What::Discard { method } => ("discard", json!({ "method": method_name(methods, *method) })),
    };
    let when = json!({ "time_ms": clock.world_ms(event.time_ns), "nano_time": event.time_ns });
    object(kind, pid, [when, what])
}

/// What was left out.
pub(super) fn left_out(happened: &Happened, pid: u32) -> String {
    let count = |(sort, count): &(Sort, u64)| {
        let event = match sort {
            Sort::Collection => "gc",
            Sort::ClassLoad => "class-load",
            Sort::ClassUnload => "class-unload",
            Sort::ThreadStart => "thread-start",
            Sort::ThreadEnd => "thread-end",
            Sort::Wait => "monitor",
            Sort::Compilation => "compile",
            Sort::Discard => "discard",
        };
        (event.to_owned(), Value::from(*count))
    };
    let counts: serde_json::Map<String, Value> = happened.left_out.iter().map(count).collect();
    object("left-out", pid, [json!({ "counts": counts })])
}

/// What is told of from now on.
pub(super) fn switched(kinds: Kinds, pid: u32) -> String {
    object("switched", pid, [json!({ "on": kinds.each().map(name).collect::<Vec<_>>() })])
}

/// The end.
pub(super) fn summary(summary: &Summary, pid: u32) -> String {
    object("summary", pid, [summary.json()])
}

fn thread(thread: &Thread) -> Value {
    json!({ "id": thread.id, "name": thread.name })
}

fn object<const N: usize>(event: &str, pid: u32, parts: [Value; N]) -> String {
    let Value::Object(mut all) = json!({ "event": event, "schema": SCHEMA, "pid": pid }) else { return String::new() };
    for part in parts {
        if let Value::Object(part) = part {
            all.extend(part);
        }
    }
    Value::Object(all).to_string()
}

#[cfg(test)]
mod tests {
    use headwater_protocol::message::events::{Kind, Owner};

    use headwater_protocol::message::events::Pool;

    use super::*;

    const CLOCK: Clock = Clock { jvm_ns: 0, world_ns: 5_000_000_000 };

    fn read(what: What) -> Value {
        let methods = [Named { class: "a.B".into(), name: "c".into() }];
        let text = line(&JvmEvent { time_ns: 7_000_000, what }, &methods, (12, CLOCK), Some(9));
        assert!(!text.contains('\n'));
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn each_object_says_what_when_and_where() {
        let read = read(What::ClassUnload { class: "a\nB".into() });
        let expected = json!({
            "event": "class-unload", "schema": SCHEMA, "pid": 12, "time_ms": 5_007, "nano_time": 7_000_000, "class": "a\nB",
        });
        assert_eq!(read, expected);
    }

    #[test]
    fn a_collection_has_the_heap_in_all_and_each_pool() {
        let pool = |name: &str, before, after| Pool { name: name.into(), before: Some(before), after };
        let pools = vec![pool("eden", 20, 0), pool("old", 1, 11), pool("metaspace", 5, 5)];
        let collected = read(What::Collection { duration_ns: 3, cause: Some("x".into()), collector: None, pools });
        assert_eq!([&collected["before_bytes"], &collected["after_bytes"]], [21, 11]);
        assert_eq!(collected["pools"][2], json!({ "name": "metaspace", "before_bytes": 5, "after_bytes": 5 }));
        let unknown = read(What::Collection { duration_ns: 3, cause: None, collector: None, pools: Vec::new() });
        assert!(unknown["cause"].is_null() && unknown["before_bytes"].is_null());
    }

    #[test]
    fn stacks_are_names_with_lines_and_an_owner_may_be_unknown() {
        let thread = Thread { id: 4, name: "t".into() };
        let stack = vec![StackFrame { method: 0, line: Some(3) }, StackFrame { method: 9, line: None }];
        let wait = |owner| What::Wait {
            duration_ns: 1,
            class: "a.B".into(),
            thread: thread.clone(),
            stack: stack.clone(),
            owner,
        };
        let waited = read(wait(Some(Owner { thread: thread.clone(), stack: Vec::new() })));
        assert_eq!(waited["stack"], json!(["a.B.c:3", "?"]));
        assert_eq!(waited["owner"], json!({ "thread": { "id": 4, "name": "t" }, "stack": [] }));
        assert!(read(wait(None))["owner"].is_null());
        assert_eq!(read(What::ThreadEnd { thread: thread.clone() })["lived_ns"], 9);
    }

    #[test]
    fn what_is_on_and_what_was_left_out_are_objects_too() {
        let on: Value = serde_json::from_str(&switched([Kind::Gc, Kind::Compile].into_iter().collect(), 1)).unwrap();
        assert_eq!(on["on"], json!(["gc", "compile"]));
        let happened = Happened { left_out: vec![(Sort::Wait, 3)], ..Happened::default() };
        let left: Value = serde_json::from_str(&left_out(&happened, 1)).unwrap();
        assert_eq!(left["counts"], json!({ "monitor": 3 }));
    }
}
