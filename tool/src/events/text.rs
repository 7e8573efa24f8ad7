//! Events as lines to be read.

use headwater_protocol::message::events::{Happened, JvmEvent, Named, Pool, Sort, StackFrame, Thread, What};

use super::said::{heap, method_name, place_name, total};
use super::visit::Clock;
use crate::printable::printable;
use crate::report::units::{bytes, count, plural, time};

/// Calls of a stack in a line.
const SHOWN: usize = 4;

/// Of these classes are frames that load a class for others.
const LOADING: [&str; 7] = [
    "java.lang.ClassLoader",
    "java.lang.System$",
    "java.lang.invoke.",
    "java.net.URLClassLoader",
    "java.security.",
    "jdk.internal.loader.",
    "jdk.internal.misc.",
];

/// An event in one line; `lived_ns` of a thread whose start is known.
pub(super) fn line(event: &JvmEvent, methods: &[Named], clock: Clock, lived_ns: Option<u64>) -> String {
    let what = match &event.what {
        What::Collection { duration_ns, cause, collector, pools } => {
            let cause = cause.as_deref().unwrap_or("cause unknown");
            let by = collector.as_deref().map_or_else(String::new, |collector| format!("{collector}, "));
            format!("gc        {}: {by}{cause}{}", time(*duration_ns), used(pools))
        }
        What::ClassLoad { class, loader, thread, stack } => {
            let loader = loader.as_deref().unwrap_or("the JVM");
            let by = at(cause(stack, methods, loader), methods);
            format!("classes   loaded {class}, by {loader}, in {}{by}", thread.name)
        }
        What::ClassUnload { class } => format!("classes   unloaded {class}"),
        What::ThreadStart { thread: Thread { id, name }, is_daemon } => {
            format!("threads   started {name} (#{id}{})", if *is_daemon { ", daemon" } else { "" })
        }
        What::ThreadEnd { thread: Thread { id, name } } => {
            let lived = lived_ns.map_or_else(String::new, |ns| format!(", which lived {}", time(ns)));
            format!("threads   ended {name} (#{id}){lived}")
        }
        What::Wait { duration_ns, class, thread, stack, owner } => {
            let owner = owner.as_ref().map_or_else(String::new, |owner| {
                format!("; {} had it{}", owner.thread.name, at(&owner.stack, methods))
            });
            let duration = time(*duration_ns);
            format!("monitors  {duration}: {} waited for {class}{}{owner}", thread.name, at(stack, methods))
        }
        What::Compilation { method, bytes: size } => {
            format!("compile   {}, {}", method_name(methods, *method), bytes(u64::from(*size)))
        }
        What::Discard { method } => format!("compile   discarded {}", method_name(methods, *method)),
    };
    format!("{} {}", moment(clock.since_ns(event.time_ns)), printable(&what))
}

/// What was left out, in one line.
pub(super) fn left_out(happened: &Happened) -> String {
    let each = |(sort, number): &(Sort, u64)| {
        let (one, many) = match sort {
            Sort::Collection => ("collection", "collections"),
            Sort::ClassLoad => ("class loaded", "classes loaded"),
            Sort::ClassUnload => ("class unloaded", "classes unloaded"),
            Sort::ThreadStart => ("thread started", "threads started"),
            Sort::ThreadEnd => ("thread ended", "threads ended"),
            Sort::Wait => ("wait", "waits"),
            Sort::Compilation => ("method compiled", "methods compiled"),
            Sort::Discard => ("method discarded", "methods discarded"),
        };
        plural(*number, one, many)
    };
    let all: Vec<String> = happened.left_out.iter().map(each).collect();
    format!("{:12} left out  {}", "", all.join(", "))
}

/// Seconds since the beginning.
fn moment(ns: i64) -> String {
    format!("{:12.6}", ns as f64 / 1e9)
}

/// How much is in use in all, and pool by pool where anything is.
fn used(pools: &[Pool]) -> String {
    let heap = heap(pools);
    let Some(after) = total(&heap, |pool| Some(pool.after)) else { return String::new() };
    let change = |before: Option<u64>, after| {
        let before = before.map_or_else(|| "?".to_owned(), bytes);
        format!("{before} -> {}", bytes(after))
    };
    let is_used = |pool: &&Pool| pool.before.is_some_and(|before| before > 0) || pool.after > 0;
    let each = pools.iter().filter(is_used).map(|pool| format!("{} {}", pool.name, change(pool.before, pool.after)));
    let all = change(total(&heap, |pool| pool.before), after);
    format!(", heap {all} ({})", each.collect::<Vec<_>>().join(", "))
}

/// The calls of a stack from the first on that is not there to load a class.
fn cause<'a>(stack: &'a [StackFrame], methods: &[Named], loader: &str) -> &'a [StackFrame] {
    let loads = |place: &StackFrame| {
        let class = methods.get(place.method as usize).map_or("", |named| &named.class);
        class == loader || LOADING.iter().any(|beginning| class.starts_with(beginning))
    };
    match stack.iter().position(|place| !loads(place)) {
        Some(first) => &stack[first..],
        None => stack,
    }
}

fn at(stack: &[StackFrame], methods: &[Named]) -> String {
    if stack.is_empty() {
        return String::new();
    }
    let shown = stack.iter().take(SHOWN).map(|place| place_name(methods, place)).collect::<Vec<_>>().join(" < ");
    match stack.len().saturating_sub(SHOWN) {
        0 => format!(" at {shown}"),
        more => format!(" at {shown} < {} more", count(more as u64)),
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::message::events::Owner;

    use super::*;

    const CLOCK: Clock = Clock { jvm_ns: 1_000_000_000, world_ns: 0 };

    fn methods() -> Vec<Named> {
        let named = |class: &str, name: &str| Named { class: class.into(), name: name.into() };
        vec![
            named("java.lang.ClassLoader", "defineClass1"),
            named("a.Plugins", "findClass"),
            named("a.Shop", "open"),
            named("a.Main", "main"),
            named("", "?"),
        ]
    }

    fn stack(methods: &[u32]) -> Vec<StackFrame> {
        methods.iter().map(|method| StackFrame { method: *method, line: (*method == 2).then_some(12) }).collect()
    }

    fn worker(id: i64) -> Thread {
        Thread { id, name: format!("worker-{id}") }
    }

    #[track_caller]
    fn check(what: What, expected: &str) {
        let event = JvmEvent { time_ns: 2_500_000_000, what };
        assert_eq!(line(&event, &methods(), CLOCK, Some(7_000)), format!("    1.500000 {expected}"));
    }

    #[test]
    fn an_event_is_a_line() {
        let pool = |name: &str, before, after| Pool { name: name.into(), before, after };
        let first = vec![pool("eden", None, 0), pool("old", None, 1024), pool("metaspace", None, 512)];
        check(
            What::Collection { duration_ns: 7, cause: Some("x".into()), collector: None, pools: first },
            "gc        7 ns: x, heap ? -> 1.000 KiB (old ? -> 1.000 KiB, metaspace ? -> 512 B)",
        );
        let pools = vec![
            pool("eden", Some(2048), 0),
            pool("s0", Some(0), 0),
            pool("old", Some(0), 1024),
            pool("metaspace", Some(512), 512),
        ];
        check(
            What::Collection { duration_ns: 1_500_000, cause: Some("System.gc()".into()), collector: None, pools },
            "gc        1.500 ms: System.gc(), heap 2.000 KiB -> 1.000 KiB (eden 2.000 KiB -> 0 B, old 0 B -> 1.000 KiB, metaspace 512 B -> 512 B)",
        );
        check(
            What::Collection { duration_ns: 7, cause: None, collector: None, pools: Vec::new() },
            "gc        7 ns: cause unknown",
        );
        check(What::ClassUnload { class: "a.B".into() }, "classes   unloaded a.B");
        check(What::ThreadStart { thread: worker(7), is_daemon: true }, "threads   started worker-7 (#7, daemon)");
        check(What::ThreadEnd { thread: worker(7) }, "threads   ended worker-7 (#7), which lived 7.000 us");
        check(What::Compilation { method: 2, bytes: 1536 }, "compile   a.Shop.open, 1.500 KiB");
        check(What::Discard { method: 4 }, "compile   discarded ?");
    }

    #[test]
    fn a_wait_says_who_had_the_monitor_if_that_is_known() {
        let wait = |owner| What::Wait {
            duration_ns: 3_000,
            class: "a.Cart".into(),
            thread: worker(1),
            stack: stack(&[2, 3]),
            owner,
        };
        check(wait(None), "monitors  3.000 us: worker-1 waited for a.Cart at a.Shop.open:12 < a.Main.main");
        check(
            wait(Some(Owner { thread: worker(2), stack: stack(&[3]) })),
            "monitors  3.000 us: worker-1 waited for a.Cart at a.Shop.open:12 < a.Main.main; worker-2 had it at a.Main.main",
        );
    }

    #[test]
    fn what_loads_a_class_is_not_the_cause() {
        let load = |loader: Option<&str>, calls: &[u32]| What::ClassLoad {
            class: "a.B".into(),
            loader: loader.map(str::to_owned),
            thread: worker(1),
            stack: stack(calls),
        };
        let (own, jvms) = (Some("a.Plugins"), None);
        check(
            load(own, &[0, 1, 0, 2, 3]),
            "classes   loaded a.B, by a.Plugins, in worker-1 at a.Shop.open:12 < a.Main.main",
        );
        check(load(jvms, &[0]), "classes   loaded a.B, by the JVM, in worker-1 at java.lang.ClassLoader.defineClass1");
        check(load(jvms, &[]), "classes   loaded a.B, by the JVM, in worker-1");
        check(
            load(jvms, &[3; 6]),
            "classes   loaded a.B, by the JVM, in worker-1 at a.Main.main < a.Main.main < a.Main.main < a.Main.main < 2 more",
        );
    }

    #[test]
    fn names_that_would_harm_a_terminal_are_escaped() {
        let thread = Thread { id: 1, name: "a\u{1b}[2Jb\n".into() };
        let event = JvmEvent { time_ns: 0, what: What::ThreadEnd { thread } };
        let line = line(&event, &[], CLOCK, None);
        assert!(!line.contains(['\u{1b}', '\n']), "{line:?}");
    }

    #[test]
    fn what_was_left_out_is_said_by_sort() {
        let counts = vec![(Sort::ClassLoad, 1), (Sort::Wait, 2_000)];
        let line = left_out(&Happened { left_out: counts, ..Happened::default() });
        assert_eq!(line.trim(), "left out  1 class loaded, 2,000 waits");
    }
}
