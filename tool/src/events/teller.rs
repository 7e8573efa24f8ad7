//! Events, written as they come, and added up.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::message::events::{Happened, JvmEvent, Kinds, What};
use rustc_hash::FxHashMap;

use super::summary::Summary;
use super::visit::Clock;
use super::{json, text};
use crate::outlet::{Closed, Given, Outlet, Sink, Weight};
use crate::report::units::plural;

/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(2);
/// Threads whose start is remembered.
const MOST_THREADS: usize = 100_000;

/// How events are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// A line each, to be read.
    Text,
    /// An object each, a line each.
    Json,
}

/// Writes events. Never waits for who reads them.
#[derive(Debug)]
pub(crate) struct Teller {
    outlet: Outlet,
    shape: Shape,
    pid: u32,
    /// From the first switch on.
    clock: Option<Clock>,
    summary: Summary,
    /// When threads were started, by their ids.
    started: FxHashMap<i64, i64>,
    unread: u64,
}

impl Teller {
    /// Of the events of this process.
    pub(crate) fn to(sink: impl Sink, shape: Shape, pid: u32) -> io::Result<Teller> {
        Ok(Teller {
            outlet: Outlet::to(sink)?,
            shape,
            pid,
            clock: None,
            summary: Summary::default(),
            started: FxHashMap::default(),
            unread: 0,
        })
    }

    /// Writes elsewhere from now on, as this one would. What was lost until then is lost.
    pub(super) fn go_on_as(&mut self, other: Teller) {
        self.shape = other.shape;
        // Its thread writes what it still has.
        self.outlet = other.outlet;
    }

    /// These are told from now on, by this clock.
    pub(super) fn switched(&mut self, kinds: Kinds, clock: Clock) {
        self.clock.get_or_insert(clock);
        self.summary.switched(kinds);
        if self.shape == Shape::Json {
            self.write(json::switched(kinds, self.pid), Weight::Needed);
        }
    }

    /// Writes what has happened.
    pub(super) fn tell(&mut self, happened: &Happened) {
        self.summary.add(happened);
        // Nothing happens before anything is switched on.
        let Some(clock) = self.clock else { return };
        for event in &happened.events {
            let lived_ns = self.lived_ns(event);
            let line = match self.shape {
                Shape::Text => text::line(event, &happened.methods, clock, lived_ns),
                Shape::Json => json::line(event, &happened.methods, (self.pid, clock), lived_ns),
            };
            self.write(line, Weight::Passing);
        }
        if !happened.left_out.is_empty() {
            let line = match self.shape {
                Shape::Text => text::left_out(happened),
                Shape::Json => json::left_out(happened, self.pid),
            };
            self.write(line, Weight::Passing);
        }
    }

    fn lived_ns(&mut self, event: &JvmEvent) -> Option<u64> {
        match &event.what {
            What::ThreadStart { thread, .. } => {
                if self.started.len() < MOST_THREADS {
                    self.started.insert(thread.id, event.time_ns);
                }
                None
            }
            What::ThreadEnd { thread } => {
                let started = self.started.remove(&thread.id)?;
                u64::try_from(event.time_ns.saturating_sub(started)).ok()
            }
            _ => None,
        }
    }

    fn write(&mut self, line: String, weight: Weight) {
        if matches!(self.outlet.give(Arc::from(line), weight), Given::LeftOut { .. }) {
            self.unread += 1;
        }
    }

    /// What has happened so far.
    pub(super) fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Whether nobody reads any more, or nothing can be written.
    pub(super) fn is_broken(&self) -> bool {
        self.outlet.is_broken()
    }

    /// Writes the summary, and waits until all is written; the summary, and what went wrong.
    pub(super) fn finish(mut self) -> (Summary, Option<String>) {
        let last = match self.shape {
            Shape::Text => self.summary.lines(),
            Shape::Json => vec![json::summary(&self.summary, self.pid)],
        };
        if self.shape == Shape::Text && !last.is_empty() {
            self.write(String::new(), Weight::Needed);
        }
        last.into_iter().for_each(|line| self.write(line, Weight::Needed));
        let failed = match self.outlet.finish(LAST_LINES) {
            Closed::Failed(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Some(format!("the events could not be written: {error}"))
            }
            _ if self.unread > 0 => {
                let lines = plural(self.unread, "line was", "lines were");
                Some(format!("{lines} left out: what was written was not read"))
            }
            _ => None,
        };
        (self.summary, failed)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use headwater_protocol::message::events::{Kind, Pool, Sort, StackFrame, Thread};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<String>>>);

    impl Sink for Written {
        fn write(&mut self, lines: &[Arc<str>]) -> io::Result<()> {
            self.0.lock().unwrap().extend(lines.iter().map(|line| line.to_string()));
            Ok(())
        }
    }

    const CLOCK: Clock = Clock { jvm_ns: 1_000, world_ns: 0 };

    fn of_thread(start: bool, time_ns: i64) -> JvmEvent {
        let thread = Thread { id: 7, name: "worker".into() };
        let what = if start { What::ThreadStart { thread, is_daemon: false } } else { What::ThreadEnd { thread } };
        JvmEvent { time_ns, what }
    }

    #[test]
    fn lines_come_in_order_and_the_summary_last() {
        let written = Written::default();
        let mut teller = Teller::to(written.clone(), Shape::Text, 1).unwrap();
        teller.switched(Kinds::default().with(Kind::Threads), CLOCK);
        let events = vec![of_thread(true, 2_000), of_thread(false, 5_000), of_thread(false, 6_000)];
        teller.tell(&Happened { events, left_out: vec![(Sort::ThreadEnd, 2)], ..Happened::default() });
        assert_eq!(teller.finish().1, None);
        let lines = written.0.lock().unwrap();
        assert_eq!(
            lines[..],
            [
                "    0.000001 threads   started worker (#7)",
                "    0.000004 threads   ended worker (#7), which lived 3.000 us",
                "    0.000005 threads   ended worker (#7)",
                "             left out  2 threads ended",
                "",
                "threads   1 started, 4 ended",
                "left out  2 events were counted and not told: too fast to be told, or waits that began before",
            ]
        );
    }

    #[test]
    fn an_agent_that_lies_is_written_down_as_it_is() {
        let thread = Thread { id: 7, name: "worker".into() };
        let stack = vec![StackFrame { method: u32::MAX, line: None }];
        let pool = Pool { name: "eden".into(), before: Some(u64::MAX), after: u64::MAX };
        let collection =
            What::Collection { duration_ns: u64::MAX, cause: None, collector: None, pools: vec![pool.clone(), pool] };
        let wait = What::Wait { duration_ns: u64::MAX, class: String::new(), thread, stack, owner: None };
        let whats = [collection.clone(), collection, wait.clone(), wait, What::Discard { method: 1 }];
        let times = [i64::MIN, i64::MAX, 0, -1, 1];
        let events = whats.into_iter().zip(times).map(|(what, time_ns)| JvmEvent { time_ns, what }).collect();
        let events = [of_thread(true, i64::MIN), of_thread(false, i64::MAX)].into_iter().chain::<Vec<_>>(events);
        let left_out = vec![(Sort::Wait, u64::MAX), (Sort::ClassLoad, u64::MAX)];
        let happened = Happened { events: events.collect(), left_out, ..Happened::default() };
        for shape in [Shape::Text, Shape::Json] {
            let written = Written::default();
            let mut teller = Teller::to(written.clone(), shape, 1).unwrap();
            teller.switched(Kinds::all(), CLOCK);
            teller.tell(&happened);
            assert_eq!(teller.finish().1, None);
            assert!(written.0.lock().unwrap().len() > 8);
        }
    }

    #[test]
    fn objects_may_go_elsewhere_in_the_middle() {
        let (first, second) = (Written::default(), Written::default());
        let mut teller = Teller::to(first.clone(), Shape::Text, 1).unwrap();
        teller.switched(Kinds::all(), CLOCK);
        teller.go_on_as(Teller::to(second.clone(), Shape::Json, 1).unwrap());
        teller.tell(&Happened { events: vec![of_thread(true, 2_000)], ..Happened::default() });
        teller.finish();
        let lines = second.0.lock().unwrap();
        let events: Vec<serde_json::Value> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<&str> = events.iter().map(|event| event["event"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["thread-start", "summary"]);
        assert_eq!(events[1]["threads"]["started"], 1);
        assert!(first.0.lock().unwrap().is_empty());
    }
}
