//! What was seen of many JVMs, as one profile: a frame for each JVM, below it the stacks of its threads.
//!
//! A trace is a sample of each of its threads. What a thread has used of the processors since the trace before lies where it is then, so CPU time is
//! that of the threads, and only its places are sampled.

use std::collections::BTreeSet;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::{Process, Thread, Trace, TraceEvent, method_of};
use crate::build::{Builder, MetricIndex, jvms_own};
use crate::profile::{MethodIndex, Profile, Unit};
use crate::report::units::plural;

/// Everything that was seen up to now.
pub struct Seen {
    builder: Builder,
    metrics: Metrics,
    jvms: FxHashMap<Process, Jvm>,
    hosts: BTreeSet<String>,
    /// How many JVMs there were.
    connected: u64,
    traces: u64,
    /// Of threads that are not idle, and what they used.
    active: u64,
    cpu_ns: u64,
    /// When the first and the last trace was taken, in ms since 1970.
    time_ms: Option<(u64, u64)>,
}

#[derive(Clone, Copy)]
struct Metrics {
    active: MetricIndex,
    samples: MetricIndex,
    cpu: MetricIndex,
    blocked: MetricIndex,
    waiting: MetricIndex,
}

#[derive(Default)]
struct Jvm {
    name: String,
    /// CPU times at its last trace, by order of threads.
    cpu_ns: Option<FxHashMap<u64, u64>>,
}

impl Default for Seen {
    fn default() -> Seen {
        let mut builder = Builder::default();
        let mut count = |id, title| {
            let metric = builder.metric_called(id, title, Unit::Count);
            builder.grain(metric, 1);
            metric
        };
        let (active, samples) =
            (count("active", "samples of threads that do not wait for work"), count("samples", "samples"));
        let (blocked, waiting) =
            (count("blocked", "samples of blocked threads"), count("waiting", "samples of waiting threads"));
        let cpu = builder.metric_called("cpu", "CPU time", Unit::Nanoseconds);
        Seen {
            builder,
            metrics: Metrics { active, samples, cpu, blocked, waiting },
            jvms: FxHashMap::default(),
            hosts: BTreeSet::new(),
            connected: 0,
            traces: 0,
            active: 0,
            cpu_ns: 0,
            time_ms: None,
        }
    }
}

impl Seen {
    /// Adds what an event says.
    pub fn add(&mut self, event: &TraceEvent) {
        match event {
            TraceEvent::Connected(connected) => {
                let process = Process { host: connected.host.clone(), pid: connected.pid };
                self.hosts.insert(connected.host.clone());
                self.connected += 1;
                self.jvms.insert(process, Jvm { name: connected.name().to_owned(), cpu_ns: None });
            }
            TraceEvent::Trace(trace) => self.trace(trace),
            TraceEvent::Disconnected(_) | TraceEvent::Said(_) | TraceEvent::Unknown => {}
        }
    }

    fn trace(&mut self, trace: &Trace) {
        let process = Process { host: trace.host.clone(), pid: trace.pid };
        let (first, last) = self.time_ms.unwrap_or((trace.time_ms, trace.time_ms));
        self.time_ms = Some((first.min(trace.time_ms), last.max(trace.time_ms)));
        self.traces += 1;
        let jvm = self.jvms.entry(process).or_default();
        // A number alone says which only where there is one host.
        let is_abroad = self.hosts.first().is_some_and(|first| *first != trace.host);
        let host = if is_abroad { format!("{}: ", trace.host) } else { String::new() };
        let place = format!("[{host}{} {}]", trace.pid, jvm.name);
        let before = jvm.cpu_ns.take();
        let top = self.builder.method(&place, &place);
        let stacks: Vec<Vec<MethodIndex>> = trace
            .stacks
            .iter()
            .map(|stack| {
                let frames = stack.iter().rev().map(|frame| self.builder.method(method_of(frame), method_of(frame)));
                std::iter::once(top).chain(frames).collect()
            })
            .collect();
        let mut now = FxHashMap::default();
        for thread in &trace.threads {
            let cpu_ns = thread.cpu_ns.unwrap_or(0);
            now.insert(thread.order, cpu_ns);
            // One that has come since the last trace has used all of it since then; of the first nobody knows.
            let used_ns = before
                .as_ref()
                .map_or(0, |before| cpu_ns.saturating_sub(before.get(&thread.order).copied().unwrap_or(0)));
            let stack = thread.stack.and_then(|stack| stacks.get(stack));
            self.thread(thread, trace.pid, top, stack, used_ns);
        }
        if let Some(jvm) = self.jvms.get_mut(&Process { host: trace.host.clone(), pid: trace.pid }) {
            jvm.cpu_ns = Some(now);
        }
    }

    fn thread(&mut self, thread: &Thread, pid: u32, top: MethodIndex, stack: Option<&Vec<MethodIndex>>, used_ns: u64) {
        if stack.is_none() && used_ns == 0 {
            return;
        }
        self.cpu_ns += used_ns;
        let of = self.builder.thread(Some(&format!("{} of {pid}", thread.name)));
        let cpu = (self.metrics.cpu, used_ns);
        let Some(stack) = stack else {
            let own = jvms_own(&thread.name);
            let own = self.builder.method(&own, &own);
            return self.builder.add_stack(of, [top, own], [cpu]);
        };
        let Metrics { active, samples, blocked, waiting, .. } = self.metrics;
        self.active += u64::from(!thread.idle);
        let of_state = |states: &[&str]| u64::from(states.contains(&thread.state.as_str()));
        let values = [
            (active, u64::from(!thread.idle)),
            (samples, 1),
            (blocked, of_state(&["BLOCKED"])),
            (waiting, of_state(&["WAITING", "TIMED_WAITING"])),
            cpu,
        ];
        self.builder.add_stack(of, stack.iter().copied(), values.into_iter().filter(|(_, value)| *value > 0));
    }

    /// Whether there is nothing yet.
    pub fn is_empty(&self) -> bool {
        self.traces == 0
    }

    /// The profile, called so.
    pub fn finish(mut self, title: &str) -> Profile {
        let (first, last) = self.time_ms.unwrap_or_default();
        self.builder.recorded = (first / 1_000, Duration::from_millis(last - first));
        self.builder.grain(self.metrics.cpu, self.cpu_ns.checked_div(self.active).unwrap_or(0));
        let hosts: Vec<&str> = self.hosts.iter().map(String::as_str).collect();
        self.builder.notes.push(format!(
            "{} of {} on {}: each is a sample of all its threads, and what they used of the processors since the one before",
            plural(self.traces, "trace", "traces"),
            plural(self.connected, "JVM", "JVMs"),
            if hosts.is_empty() { "a host that is not known".to_owned() } else { hosts.join(", ") },
        ));
        self.builder.finish(title, "stack traces")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::NodeIndex;
    use crate::traces::{Connected, Schema};

    fn connected(host: &str, pid: u32, main: &str) -> TraceEvent {
        TraceEvent::Connected(Connected {
            schema: Schema,
            time_ms: 1_000,
            host: host.to_owned(),
            pid,
            main: main.to_owned(),
            arguments: String::new(),
            java: None,
            vm: String::new(),
            system: String::new(),
            uid: 0,
        })
    }

    /// Threads by order, state, CPU time and stack, the outermost frame first.
    fn trace(host: &str, pid: u32, time_ms: u64, threads: &[(u64, &str, u64, &[&str])]) -> TraceEvent {
        let thread = |(at, (order, state, cpu_ns, stack)): (usize, &(u64, &str, u64, &[&str]))| Thread {
            order: *order,
            name: format!("t{order}"),
            kind: "java".to_owned(),
            java_id: None,
            os_id: None,
            daemon: false,
            state: (*state).to_owned(),
            doing: String::new(),
            idle: stack.is_empty(),
            cpu_ns: Some(*cpu_ns),
            allocated_bytes: None,
            stack: (!stack.is_empty()).then_some(at),
        };
        let stack = |(_, _, _, stack): &(u64, &str, u64, &[&str])| {
            stack.iter().rev().enumerate().map(|(line, frame)| format!("{frame}(A.java:{line})")).collect()
        };
        TraceEvent::Trace(Trace {
            schema: Schema,
            time_ms,
            host: host.to_owned(),
            pid,
            number: 1,
            took_ms: 1.0,
            whole: true,
            threads: threads.iter().enumerate().map(thread).collect(),
            stacks: threads.iter().map(stack).collect(),
        })
    }

    /// Each node's stack with its own values, but for those without any.
    fn nodes(profile: &Profile) -> Vec<(String, Vec<u64>)> {
        let columns = profile.columns(&profile.merged);
        let mut paths: Vec<String> = Vec::new();
        let mut nodes = Vec::new();
        for (at, node) in profile.merged.nodes.iter().enumerate() {
            let name = &profile.methods[node.method.0].display;
            let path = node.parent.map_or_else(|| name.clone(), |parent| format!("{};{name}", paths[parent.0]));
            let own: Vec<u64> = columns.iter().map(|column| column.at(NodeIndex(at)).own).collect();
            if own.iter().any(|own| *own > 0) {
                nodes.push((path.clone(), own));
            }
            paths.push(path);
        }
        nodes.sort();
        nodes
    }

    #[test]
    fn a_jvm_is_a_frame_and_cpu_time_is_conserved() {
        let mut seen = Seen::default();
        for event in [
            connected("h", 1, "/opt/shop.jar"),
            connected("h", 2, "com.acme.Bill"),
            trace("h", 1, 1_000, &[(1, "RUNNABLE", 500, &["a.A.main", "a.A.work"]), (2, "BLOCKED", 5, &["a.A.main"])]),
            trace("h", 2, 1_000, &[(1, "WAITING", 7, &["a.A.main"])]),
            trace(
                "h",
                1,
                3_500,
                &[
                    (1, "RUNNABLE", 800, &["a.A.main", "a.A.rest"]),
                    (2, "BLOCKED", 5, &["a.A.main"]),
                    (3, "UNKNOWN", 40, &[]),
                ],
            ),
        ] {
            seen.add(&event);
        }
        let profile = seen.finish("night.hwr");
        assert_eq!(
            nodes(&profile),
            [
                ("[1 shop.jar];[JVM: t]".to_owned(), vec![0, 0, 0, 0, 40]),
                ("[1 shop.jar];a.A.main".to_owned(), vec![2, 2, 2, 0, 0]),
                ("[1 shop.jar];a.A.main;a.A.rest".to_owned(), vec![1, 1, 0, 0, 300]),
                ("[1 shop.jar];a.A.main;a.A.work".to_owned(), vec![1, 1, 0, 0, 0]),
                ("[2 com.acme.Bill];a.A.main".to_owned(), vec![1, 1, 0, 1, 0]),
            ]
        );
        let ids: Vec<String> = profile.metrics().into_iter().map(|metric| metric.id.into_owned()).collect();
        assert_eq!(ids, ["active", "samples", "blocked", "waiting", "cpu"]);
        assert_eq!((profile.environment.started_s, profile.duration), (1, Duration::from_millis(2_500)));
        assert!(profile.notes[0].starts_with("3 traces of 2 JVMs on h: "), "{:?}", profile.notes);
        let threads: Vec<&str> = profile.threads.iter().map(|thread| thread.name.as_str()).collect();
        assert_eq!(threads, ["t1 of 1", "t2 of 1", "t1 of 2", "t3 of 1"]);
    }

    #[test]
    fn a_jvm_of_another_host_is_told_apart() {
        let mut seen = Seen::default();
        for host in ["a", "b"] {
            seen.add(&connected(host, 7, "shop.jar"));
            seen.add(&trace(host, 7, 1_000, &[(1, "RUNNABLE", 1, &["m.M.n"])]));
        }
        let profile = seen.finish("both");
        let places: Vec<String> = nodes(&profile).into_iter().map(|(place, _)| place).collect();
        assert_eq!(places, ["[7 shop.jar];m.M.n", "[b: 7 shop.jar];m.M.n"]);
    }
}
