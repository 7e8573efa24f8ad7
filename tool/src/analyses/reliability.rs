//! How likely a program is to do what it has never been seen doing: an estimate by paths that are seen for the first time.
//!
//! A path is a stack's methods. Of N observations, f1 of paths seen once only, the next one is of a new path with a probability of about f1 / N
//! (Good and Turing; I. J. Good, 1953); its deviation is W. W. Esty's (1983). How many paths there may be in all is A. Chao's lower bound (1984).
//! If the program was right in all that was seen, and what comes is as what was, that probability bounds the one of a failure.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::{Analysis, seconds};
use crate::printable::printable;
use crate::report::units::{count, plural};
use crate::traces::{Process, Trace, TraceEvent, method_of};

/// Of a normal distribution so much is below so many deviations: 95 % of it.
const DEVIATIONS: f64 = 1.645;
/// What has not happened in N observations has a probability of less than this / N, with 95 %.
const NEVER: f64 = 3.0;

/// What it knows: programs, by their main class or jar, whichever JVMs they run in.
#[derive(Debug)]
pub struct Reliability {
    every: Duration,
    names: FxHashMap<Process, String>,
    programs: BTreeMap<String, Program>,
}

#[derive(Debug, Default)]
struct Program {
    /// How often each path was seen.
    paths: FxHashMap<u64, u64>,
    observations: u64,
    once: u64,
    twice: u64,
    /// Where each thread was last.
    last: FxHashMap<(Process, u64), u64>,
    newest_ms: u64,
    now_ms: u64,
    told_ms: u64,
}

impl Reliability {
    /// Begins; an estimate is said once in this time.
    pub fn new(every: Duration) -> Reliability {
        Reliability { every, names: FxHashMap::default(), programs: BTreeMap::new() }
    }

    fn trace(&mut self, trace: &Trace) -> Option<String> {
        let process = Process { host: trace.host.clone(), pid: trace.pid };
        let name = self.names.get(&process).cloned().unwrap_or_else(|| trace.pid.to_string());
        let program = self.programs.entry(name.clone()).or_default();
        if program.now_ms == 0 {
            program.told_ms = trace.time_ms;
        }
        program.now_ms = program.now_ms.max(trace.time_ms);
        for thread in trace.threads.iter().filter(|thread| thread.kind != "vm" && !thread.idle) {
            let stack = trace.stack(thread);
            if !stack.is_empty() {
                program.observe((process.clone(), thread.order), path(stack));
            }
        }
        let passed = Duration::from_millis(program.now_ms.saturating_sub(program.told_ms));
        (passed >= self.every).then(|| {
            program.told_ms = program.now_ms;
            program.said(&name)
        })
    }
}

fn path(stack: &[String]) -> u64 {
    let mut hasher = DefaultHasher::new();
    stack.iter().for_each(|frame| method_of(frame).hash(&mut hasher));
    hasher.finish()
}

impl Program {
    /// A thread that is where it was is no new observation: it may not have run.
    fn observe(&mut self, thread: (Process, u64), path: u64) {
        if self.last.insert(thread, path) == Some(path) {
            return;
        }
        self.observations += 1;
        let seen = self.paths.entry(path).or_insert(0);
        *seen += 1;
        match *seen {
            1 => {
                self.once += 1;
                self.newest_ms = self.now_ms;
            }
            2 => (self.once, self.twice) = (self.once - 1, self.twice + 1),
            3 => self.twice -= 1,
            _ => {}
        }
    }

    /// The probability that the next path is a new one, and what it is below with 95 %.
    fn new_path(&self) -> (f64, f64) {
        let (n, once, twice) = (self.observations.max(1) as f64, self.once as f64, self.twice as f64);
        let estimate = once / n;
        let deviation = (once * (1.0 - once / n) + 2.0 * twice).sqrt() / n;
        (estimate, (estimate + DEVIATIONS * deviation).max(NEVER / n).min(1.0))
    }

    /// How many paths there are at least, by those that were seen once and twice.
    fn all_paths(&self) -> f64 {
        let (once, twice) = (self.once as f64, self.twice as f64);
        self.paths.len() as f64 + once * (once - 1.0).max(0.0) / (2.0 * (twice + 1.0))
    }

    fn said(&self, name: &str) -> String {
        if self.observations == 0 {
            return format!("{name}: nothing was seen running yet");
        }
        let (estimate, most) = self.new_path();
        let percent = |share: f64| {
            let share = share * 100.0;
            if share < 1.0 { format!("{share:.2} %") } else { format!("{share:.1} %") }
        };
        format!(
            "{name}: {} of {}, {} of them seen once; the next one is new with {} (95 %: less than {}); last new one {} ago; {} or more in all",
            plural(self.observations, "observation", "observations"),
            plural(self.paths.len() as u64, "path", "paths"),
            count(self.once),
            percent(estimate),
            percent(most),
            seconds(self.now_ms.saturating_sub(self.newest_ms)),
            count(self.all_paths().round() as u64),
        )
    }
}

impl Analysis for Reliability {
    fn next(&mut self, event: &TraceEvent) -> Vec<String> {
        match event {
            TraceEvent::Connected(connected) => {
                let process = Process { host: connected.host.clone(), pid: connected.pid };
                self.names.insert(process, printable(connected.name()).into_owned());
                Vec::new()
            }
            TraceEvent::Trace(trace) => self.trace(trace).into_iter().collect(),
            TraceEvent::Disconnected(event) => {
                let process = Process { host: event.host.clone(), pid: event.pid };
                self.names.remove(&process);
                self.programs.values_mut().for_each(|program| program.last.retain(|(of, _), _| *of != process));
                Vec::new()
            }
            TraceEvent::Said(_) | TraceEvent::Unknown => Vec::new(),
        }
    }

    fn end(&mut self) -> Vec<String> {
        self.programs.iter().map(|(name, program)| program.said(name)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{connected, trace};
    use super::*;

    #[test]
    fn what_is_seen_once_says_how_much_has_not_been_seen() {
        let mut program = Program::default();
        let thread = |number| (Process { host: "h".to_owned(), pid: 1 }, number);
        for number in 0..100 {
            program.observe(thread(number), number % 50);
        }
        assert_eq!((program.observations, program.once, program.twice), (100, 0, 50));
        let (estimate, most) = program.new_path();
        assert_eq!(estimate, 0.0);
        assert!((most - DEVIATIONS * 0.1).abs() < 1e-9, "{most}");
        for number in 0..20 {
            program.observe(thread(number), 1_000 + number);
        }
        assert_eq!(program.new_path().0, 20.0 / 120.0);
        assert_eq!(program.all_paths(), 70.0 + 20.0 * 19.0 / (2.0 * 51.0));
    }

    #[test]
    fn an_estimate_is_of_a_program_whichever_jvm_it_runs_in_and_who_stands_is_seen_once() {
        let mut reliability = Reliability::new(Duration::from_secs(10));
        for pid in [7, 8] {
            reliability.next(&connected(pid));
        }
        let at =
            |pid, time, stack| trace(pid, time, &[("t", "runs", 1, stack), ("idle", "waits for work", 1, "x.y(z)")]);
        assert!(reliability.next(&at(7, 1_000, "a.b(c:1)<m.n(o:1)")).is_empty());
        // Another line, the same path: it may never have left it.
        assert!(reliability.next(&at(7, 2_000, "a.b(c:2)<m.n(o:1)")).is_empty());
        assert!(reliability.next(&at(8, 3_000, "a.b(c:2)<m.n(o:1)")).is_empty());
        assert_eq!(
            reliability.next(&at(8, 12_000, "d.e(f:2)<m.n(o:1)")),
            [
                "shop.jar: 3 observations of 2 paths, 1 of them seen once; the next one is new with 33.3 % (95 %: less than 100.0 %); \
              last new one 0s ago; 2 or more in all"
            ]
        );
        assert_eq!(reliability.end().len(), 1);
    }
}
