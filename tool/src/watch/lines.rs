//! What is seen, as lines of text: one for each JVM and trace, or one for each thread that is in a method that is looked for.

use std::fmt::Write as _;
use std::time::{Duration, UNIX_EPOCH};

use rustc_hash::FxHashMap;

use crate::printable::printable;
use crate::report::units::plural;
use crate::top::search::Query;
use crate::traces::{Connected, Process, Reason, Said, Thread, Trace, TraceEvent};

/// Lines, and what they are made of besides the newest events.
#[derive(Debug, Default)]
pub(super) struct TextLines {
    /// What is looked for in stacks.
    find: Option<Query>,
    known: FxHashMap<Process, Known>,
}

#[derive(Debug, Default)]
struct Known {
    name: String,
    last: Option<Last>,
}

/// What of a trace the next one is compared with.
#[derive(Debug)]
struct Last {
    time_ms: u64,
    /// By order: CPU time and stack.
    threads: FxHashMap<u64, (u64, Vec<String>)>,
}

/// What happened between two traces.
#[derive(Debug)]
struct Since<'a> {
    /// CPU time of those threads that are in both, in processors.
    processors: f64,
    /// Threads whose stacks differ, and new ones.
    moved: usize,
    /// Who used most, if anybody used much.
    busiest: Option<(&'a Thread, f64)>,
}

impl TextLines {
    pub(super) fn new(find: Option<Query>) -> TextLines {
        TextLines { find, known: FxHashMap::default() }
    }

    /// The lines that an event is worth.
    pub(super) fn of(&mut self, event: &TraceEvent) -> Vec<String> {
        match event {
            TraceEvent::Connected(connected) => self.connected(connected),
            TraceEvent::Trace(trace) => self.trace(trace),
            TraceEvent::Disconnected(event) => {
                let process = Process { host: event.host.clone(), pid: event.pid };
                let name = self.known.remove(&process).map(|known| known.name).unwrap_or_default();
                let what = match event.reason {
                    Reason::Ended => "has ended",
                    Reason::Refused => "does not let itself be watched any more",
                    Reason::Left | Reason::Unknown => return Vec::new(),
                };
                vec![format!("{}  {what}", begin(event.time_ms, event.pid, &name))]
            }
            TraceEvent::Said(Said { analysis, line, .. }) => {
                vec![format!("[{}] {}", printable(analysis), printable(line))]
            }
            TraceEvent::Unknown => Vec::new(),
        }
    }

    fn connected(&mut self, connected: &Connected) -> Vec<String> {
        let process = Process { host: connected.host.clone(), pid: connected.pid };
        let name = printable(connected.name()).into_owned();
        let line = format!("{}  {}", begin(connected.time_ms, connected.pid, &name), printable(&connected.vm));
        self.known.insert(process, Known { name, last: None });
        // Who looks for something wants only that.
        if self.find.is_some() { Vec::new() } else { vec![line] }
    }

    fn trace(&mut self, trace: &Trace) -> Vec<String> {
        let process = Process { host: trace.host.clone(), pid: trace.pid };
        let known = self.known.entry(process).or_default();
        let begin = begin(trace.time_ms, trace.pid, &known.name);
        if let Some(query) = &self.find {
            return found(trace, query).map(|(thread, frame)| found_line(&begin, thread, frame)).collect();
        }
        let since = known.last.as_ref().map(|last| since(last, trace));
        let line = format!("{begin}  {}{}", counts(trace), since.map(|since| said(trace, &since)).unwrap_or_default());
        known.last = Some(Last::of(trace));
        vec![line]
    }
}

impl Last {
    fn of(trace: &Trace) -> Last {
        let of = |thread: &Thread| (thread.order, (thread.cpu_ns.unwrap_or(0), trace.stack(thread).to_vec()));
        Last { time_ms: trace.time_ms, threads: trace.threads.iter().map(of).collect() }
    }
}

/// The threads that are in a method that is looked for, and the innermost frame of it.
pub(super) fn found<'a>(trace: &'a Trace, query: &'a Query) -> impl Iterator<Item = (&'a Thread, &'a str)> {
    trace.threads.iter().filter_map(|thread| {
        let frame = trace.stack(thread).iter().find(|frame| query.matches(frame))?;
        Some((thread, frame.as_str()))
    })
}

fn found_line(begin: &str, thread: &Thread, frame: &str) -> String {
    format!("{begin}  \"{}\" {}  {}", printable(&thread.name), thread.state, printable(frame))
}

/// `12:00:01Z   4711 shop.jar`.
fn begin(time_ms: u64, pid: u32, name: &str) -> String {
    format!("{}  {pid:>7} {name}", clock(time_ms))
}

/// The time of day, as all times here: UTC.
pub(super) fn clock(time_ms: u64) -> String {
    let time = UNIX_EPOCH.checked_add(Duration::from_millis(time_ms)).unwrap_or(UNIX_EPOCH);
    let mut text = String::new();
    // A time past the year 9999 has no such form.
    let _ = write!(text, "{}", humantime::format_rfc3339_seconds(time));
    text.split_once('T').map_or_else(|| "?".to_owned(), |(_, clock)| clock.to_owned())
}

/// `24 threads: 2 runnable, 1 blocked, 21 waiting`, the JVM's own left out.
pub(super) fn counts(trace: &Trace) -> String {
    let java = trace.threads.iter().filter(|thread| thread.kind != "vm");
    let (mut all, mut runnable, mut blocked, mut waiting) = (0, 0, 0, 0);
    for thread in java {
        all += 1;
        match thread.state.as_str() {
            "RUNNABLE" => runnable += 1,
            "BLOCKED" => blocked += 1,
            "WAITING" | "TIMED_WAITING" => waiting += 1,
            _ => {}
        }
    }
    let parts = [(runnable, "runnable"), (blocked, "blocked"), (waiting, "waiting")];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}")).collect();
    format!("{}: {}", plural(all, "thread", "threads"), parts.join(", "))
}

fn since<'a>(last: &Last, trace: &'a Trace) -> Since<'a> {
    let passed_ns = (trace.time_ms.saturating_sub(last.time_ms)).max(1) as f64 * 1e6;
    let mut since = Since { processors: 0.0, moved: 0, busiest: None };
    for thread in &trace.threads {
        let before = last.threads.get(&thread.order);
        let stack = trace.stack(thread);
        since.moved += usize::from(before.is_none_or(|(_, before)| before != stack));
        let (Some(cpu), Some((before, _))) = (thread.cpu_ns, before) else { continue };
        let used = cpu.saturating_sub(*before) as f64 / passed_ns;
        since.processors += used;
        if used > since.busiest.map_or(0.0, |(_, most)| most) {
            since.busiest = Some((thread, used));
        }
    }
    since
}

/// What is said of the time since the last trace, behind the counts.
fn said(trace: &Trace, since: &Since<'_>) -> String {
    /// Of a processor.
    const MUCH: f64 = 0.05;
    let mut said = format!("; CPU {:.0} %; {} moved", since.processors * 100.0, since.moved);
    if let Some((thread, used)) = since.busiest.filter(|(_, used)| *used >= MUCH) {
        let _ = write!(said, "; \"{}\" {:.0} %", printable(&thread.name), used * 100.0);
        if let Some(frame) = trace.stack(thread).first() {
            let _ = write!(said, " at {}", printable(frame));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traces::Schema;

    fn thread(order: u64, state: &str, cpu_ms: u64, stack: usize) -> Thread {
        Thread {
            order,
            name: format!("worker-{order}"),
            kind: "java".to_owned(),
            java_id: Some(order),
            os_id: None,
            daemon: false,
            state: state.to_owned(),
            doing: String::new(),
            idle: false,
            cpu_ns: Some(cpu_ms * 1_000_000),
            allocated_bytes: None,
            stack: Some(stack),
        }
    }

    fn trace(time_ms: u64, threads: Vec<Thread>) -> TraceEvent {
        let stacks = ["com.acme.Order.save(Order.java:12)", "com.acme.Cart.add(Cart.java:3)"];
        let stacks = stacks.iter().map(|top| vec![(*top).to_owned(), "com.acme.Main.main(Main.java:1)".to_owned()]);
        TraceEvent::Trace(Trace {
            schema: Schema,
            time_ms,
            host: "h".to_owned(),
            pid: 4711,
            number: 1,
            took_ms: 1.0,
            whole: true,
            threads,
            stacks: stacks.collect(),
        })
    }

    fn connected() -> TraceEvent {
        TraceEvent::Connected(Connected {
            schema: Schema,
            time_ms: 1_764_147_600_000,
            host: "h".to_owned(),
            pid: 4711,
            main: "/opt/shop.jar".to_owned(),
            arguments: String::new(),
            java: None,
            vm: "OpenJDK".to_owned(),
            system: "Linux".to_owned(),
            uid: 0,
        })
    }

    #[test]
    fn a_trace_is_a_line_with_what_has_changed_since_the_last_one() {
        let mut lines = TextLines::default();
        assert_eq!(lines.of(&connected()), ["09:00:00Z     4711 shop.jar  OpenJDK"]);
        let first = trace(1_764_147_600_000, vec![thread(1, "RUNNABLE", 100, 0), thread(2, "WAITING", 1, 1)]);
        assert_eq!(lines.of(&first), ["09:00:00Z     4711 shop.jar  2 threads: 1 runnable, 1 waiting"]);
        let second = trace(
            1_764_147_602_000,
            vec![thread(1, "RUNNABLE", 1_100, 1), thread(2, "WAITING", 1, 1), thread(3, "BLOCKED", 9, 1)],
        );
        assert_eq!(
            lines.of(&second),
            ["09:00:02Z     4711 shop.jar  3 threads: 1 runnable, 1 blocked, 1 waiting; CPU 50 %; 2 moved; \
              \"worker-1\" 50 % at com.acme.Cart.add(Cart.java:3)"]
        );
    }

    #[test]
    fn who_looks_for_a_method_gets_the_threads_that_are_in_it() {
        let mut lines = TextLines::new(Some(Query::new("Order.save")));
        assert!(lines.of(&connected()).is_empty());
        let seen = trace(1_764_147_600_000, vec![thread(1, "RUNNABLE", 1, 0), thread(2, "WAITING", 1, 1)]);
        assert_eq!(
            lines.of(&seen),
            ["09:00:00Z     4711 shop.jar  \"worker-1\" RUNNABLE  com.acme.Order.save(Order.java:12)"]
        );
    }
}
