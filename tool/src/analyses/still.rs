//! Stacks that never move: threads that have not run at all for a while, and threads that run in one place all the time.

use std::time::Duration;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{Analysis, is_same_path, named, seconds};
use crate::printable::printable;
use crate::report::units::plural;
use crate::traces::{Process, Thread, Trace, TraceEvent};

/// Who uses so much of a processor in one place runs there.
const BUSY: f64 = 0.5;
/// Of those that stand at the end so many are named.
const MOST_NAMED: usize = 20;

/// What is looked for.
#[derive(Clone, Copy, Debug)]
pub struct StillOptions {
    /// Who has not moved for so long is told of.
    pub after: Duration,
    /// Those too that wait for work, or sleep.
    pub idle: bool,
}

/// What it knows.
#[derive(Debug)]
pub struct Still {
    wanted: StillOptions,
    names: FxHashMap<Process, String>,
    threads: FxHashMap<(Process, u64), Standing>,
}

/// How a thread stays where it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum How {
    /// It has used no CPU time.
    Stands,
    /// It uses a processor.
    Runs,
}

/// A thread in its place.
#[derive(Debug)]
struct Standing {
    name: String,
    doing: String,
    stack: Vec<String>,
    since_ms: u64,
    seen_ms: u64,
    cpu_ns: Option<u64>,
    how: Option<How>,
    is_told: bool,
}

impl Standing {
    fn of(trace: &Trace, thread: &Thread) -> Standing {
        Standing {
            name: thread.name.clone(),
            doing: thread.doing.clone(),
            stack: trace.stack(thread).to_vec(),
            since_ms: trace.time_ms,
            seen_ms: trace.time_ms,
            cpu_ns: thread.cpu_ns,
            how: None,
            is_told: false,
        }
    }

    /// How the thread stayed in its place since it was last seen; `None` if it has moved.
    fn stayed(&self, trace: &Trace, thread: &Thread) -> Option<How> {
        if !is_same_path(&self.stack, trace.stack(thread)) {
            return None;
        }
        let used_ns = thread.cpu_ns.zip(self.cpu_ns).map_or(0, |(now, then)| now.saturating_sub(then));
        let passed_ns = trace.time_ms.saturating_sub(self.seen_ms).max(1) as f64 * 1e6;
        match used_ns {
            0 => Some(How::Stands),
            used if used as f64 >= BUSY * passed_ns => Some(How::Runs),
            // It ran, and came back.
            _ => None,
        }
        .filter(|how| self.how.is_none_or(|before| before == *how))
    }

    /// What is said of it, behind its name.
    fn said(&self) -> String {
        let place = self.stack.first().map_or_else(String::new, |frame| format!(" at {}", printable(frame)));
        let time = seconds(self.seen_ms.saturating_sub(self.since_ms));
        match self.how {
            Some(How::Runs) => format!("running in one place for {time},{place}"),
            _ => format!("not moved for {time}: {}{place}", printable(&self.doing)),
        }
    }
}

impl Still {
    /// Begins.
    pub fn new(wanted: StillOptions) -> Still {
        Still { wanted, names: FxHashMap::default(), threads: FxHashMap::default() }
    }

    fn trace(&mut self, trace: &Trace) -> Vec<String> {
        let process = Process { host: trace.host.clone(), pid: trace.pid };
        let jvm = named(trace.pid, self.names.get(&process));
        let mut lines = Vec::new();
        let mut there = FxHashSet::default();
        let mut told: Vec<u64> = Vec::new();
        let is_meant = |thread: &&Thread| {
            thread.kind != "vm"
                && !trace.stack(thread).is_empty()
                && (self.wanted.idle || !thread.idle && thread.doing != "sleeps")
        };
        for thread in trace.threads.iter().filter(is_meant) {
            there.insert(thread.order);
            let key = (process.clone(), thread.order);
            let standing = self.threads.entry(key).or_insert_with(|| Standing::of(trace, thread));
            // What has just come has stayed for no time yet.
            if standing.seen_ms == trace.time_ms {
                continue;
            }
            let Some(how) = standing.stayed(trace, thread) else {
                lines.extend(moved(&jvm, standing, trace.time_ms));
                *standing = Standing::of(trace, thread);
                continue;
            };
            standing.how = Some(how);
            (standing.seen_ms, standing.cpu_ns) = (trace.time_ms, thread.cpu_ns);
            thread.doing.clone_into(&mut standing.doing);
            let stayed = Duration::from_millis(trace.time_ms.saturating_sub(standing.since_ms));
            if stayed >= self.wanted.after && !std::mem::replace(&mut standing.is_told, true) {
                told.push(thread.order);
            }
        }
        // Who has ended, or waits for work now, has moved.
        self.threads.retain(|(of, order), standing| {
            let stays = *of != process || there.contains(order);
            if !stays {
                lines.extend(moved(&jvm, standing, trace.time_ms));
            }
            stays
        });
        let told = told.iter().filter_map(|order| self.threads.get(&(process.clone(), *order)));
        lines.extend(grouped(told.collect()).iter().map(|group| format!("{jvm}: {}", said(group))));
        lines
    }
}

/// That a thread moves again, if it was said that it does not.
fn moved(jvm: &str, standing: &Standing, now_ms: u64) -> Option<String> {
    standing.is_told.then(|| {
        let time = seconds(now_ms.saturating_sub(standing.since_ms));
        format!("{jvm}: \"{}\" moves again, after {time}", printable(&standing.name))
    })
}

/// Those of one place together, those that have stood longest first.
fn grouped(mut standing: Vec<&Standing>) -> Vec<Vec<&Standing>> {
    standing.sort_by_key(|it| (it.since_ms, it.name.clone()));
    let mut groups: Vec<Vec<&Standing>> = Vec::new();
    for thread in standing {
        let same =
            groups.iter_mut().find(|group| group[0].how == thread.how && is_same_path(&group[0].stack, &thread.stack));
        match same {
            Some(group) => group.push(thread),
            None => groups.push(vec![thread]),
        }
    }
    groups
}

fn said(group: &[&Standing]) -> String {
    let first = group[0];
    let name = printable(&first.name);
    match group.len() {
        1 => format!("\"{name}\" has {}", been(first)),
        2 => format!("\"{name}\" and 1 other have {}", been(first)),
        more => format!("\"{name}\" and {} others have {}", more - 1, been(first)),
    }
}

fn been(standing: &Standing) -> String {
    let said = standing.said();
    if standing.how == Some(How::Runs) { format!("been {said}") } else { said }
}

impl Analysis for Still {
    fn next(&mut self, event: &TraceEvent) -> Vec<String> {
        match event {
            TraceEvent::Connected(connected) => {
                let process = Process { host: connected.host.clone(), pid: connected.pid };
                self.names.insert(process, printable(connected.name()).into_owned());
                Vec::new()
            }
            TraceEvent::Trace(trace) => self.trace(trace),
            TraceEvent::Disconnected(event) if event.reason == crate::traces::Reason::Ended => {
                let process = Process { host: event.host.clone(), pid: event.pid };
                self.threads.retain(|(of, _), _| *of != process);
                self.names.remove(&process);
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self) -> Vec<String> {
        let mut by_jvm: std::collections::BTreeMap<&Process, Vec<&Standing>> = std::collections::BTreeMap::new();
        for ((process, _), standing) in self.threads.iter().filter(|(_, standing)| standing.is_told) {
            by_jvm.entry(process).or_default().push(standing);
        }
        let count: usize = by_jvm.values().map(Vec::len).sum();
        let jvms = plural(by_jvm.len() as u64, "JVM", "JVMs");
        let mut lines = match count {
            0 => vec!["at the end no thread is stuck".to_owned()],
            1 => vec!["at the end 1 thread is stuck".to_owned()],
            more => vec![format!("at the end {more} threads are stuck in {jvms}")],
        };
        let groups = by_jvm.into_iter().flat_map(|(process, standing)| {
            let jvm = named(process.pid, self.names.get(process));
            grouped(standing).into_iter().map(|group| format!("  {jvm}: {}", said(&group))).collect::<Vec<_>>()
        });
        lines.extend(groups.take(MOST_NAMED));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connected, trace};
    use super::*;

    fn still(idle: bool) -> Still {
        let mut still = Still::new(StillOptions { after: Duration::from_secs(10), idle });
        assert!(still.next(&connected(7)).is_empty());
        still
    }

    const WAITS: &str = "java.lang.Object.wait0(Native Method)<a.B.get(B.java:7)";

    #[test]
    fn who_has_not_run_for_the_time_is_told_of_once_and_again_when_it_moves() {
        let mut still = still(false);
        let waits = |time, cpu| {
            trace(7, time, &[("left", "waits for a latch", cpu, WAITS), ("right", "waits for a latch", 1, WAITS)])
        };
        assert!(still.next(&waits(0, 5)).is_empty());
        assert!(still.next(&waits(9_999, 5)).is_empty());
        assert_eq!(
            still.next(&waits(12_000, 5)),
            [
                "7 shop.jar: \"left\" and 1 other have not moved for 12s: waits for a latch at java.lang.Object.wait0(Native Method)"
            ]
        );
        assert!(still.next(&waits(20_000, 5)).is_empty());
        // Its stack is the same, and yet it ran.
        assert_eq!(still.next(&waits(31_000, 6)), ["7 shop.jar: \"left\" moves again, after 31s"]);
        assert_eq!(
            still.end(),
            [
                "at the end 1 thread is stuck",
                "  7 shop.jar: \"right\" has not moved for 31s: waits for a latch at java.lang.Object.wait0(Native Method)"
            ]
        );
    }

    #[test]
    fn who_runs_in_one_place_is_told_of_whatever_the_line() {
        let mut still = still(false);
        let runs = |time, cpu, line| {
            let stack = format!("a.B.spin(B.java:{line})<a.B.main(B.java:1)");
            trace(7, time, &[("loop", "runs a.B.spin", cpu, &stack)])
        };
        assert!(still.next(&runs(0, 0, 1)).is_empty());
        assert!(still.next(&runs(5_000, 4_000, 2)).is_empty());
        assert_eq!(
            still.next(&runs(10_000, 8_000, 3)),
            ["7 shop.jar: \"loop\" has been running in one place for 10s, at a.B.spin(B.java:1)"]
        );
        // A second's work in twenty is none.
        assert_eq!(still.next(&runs(30_000, 9_000, 3)), ["7 shop.jar: \"loop\" moves again, after 30s"]);
        assert_eq!(still.end(), ["at the end no thread is stuck"]);
    }

    #[test]
    fn who_waits_for_work_or_sleeps_is_left_alone_unless_asked_for() {
        for (idle, expected) in [(false, 0), (true, 2)] {
            let mut still = still(idle);
            let idle =
                |time| trace(7, time, &[("pool", "waits for work", 1, "a.b(c)"), ("timer", "sleeps", 1, "d.e(f)")]);
            still.next(&idle(0));
            assert_eq!(still.next(&idle(10_000)).len(), expected);
        }
    }
}
