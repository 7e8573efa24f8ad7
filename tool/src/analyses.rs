//! Analyses of stack traces that come with the tool: they read what `headwater watch` gives to programs, and say lines. Pure.
//!
//! They use nothing but what is documented: any other program could be in their place.

use crate::traces::{TraceEvent, method_of};

pub mod reliability;
pub mod still;

/// An analysis.
pub trait Analysis {
    /// What is to be said of the next event; lines.
    fn next(&mut self, event: &TraceEvent) -> Vec<String>;

    /// What is to be said at the end; lines.
    fn end(&mut self) -> Vec<String>;
}

/// How a process is called in lines: `4711 shop.jar`.
fn named(pid: u32, main: Option<&String>) -> String {
    match main {
        Some(main) => format!("{pid} {main}"),
        None => pid.to_string(),
    }
}

/// Whether two stacks are of the same methods; at which lines these are does not matter.
fn is_same_path(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| method_of(one) == method_of(other))
}

/// A time in whole seconds, for people.
fn seconds(ms: u64) -> String {
    humantime::format_duration(std::time::Duration::from_secs(ms / 1_000)).to_string()
}

#[cfg(test)]
mod testing {
    use crate::traces::{Connected, Schema, Thread, Trace, TraceEvent};

    pub(super) fn connected(pid: u32) -> TraceEvent {
        TraceEvent::Connected(Connected {
            schema: Schema,
            time_ms: 0,
            host: "h".to_owned(),
            pid,
            main: "/opt/shop.jar".to_owned(),
            arguments: String::new(),
            java: None,
            vm: String::new(),
            system: String::new(),
            uid: 0,
        })
    }

    /// Threads by name, what they do, CPU time in ms, and their stacks, innermost frame first, with `<` between.
    pub(super) fn trace(pid: u32, time_ms: u64, threads: &[(&str, &str, u64, &str)]) -> TraceEvent {
        let thread = |(at, (name, doing, cpu_ms, _)): (usize, &(&str, &str, u64, &str))| Thread {
            order: at as u64 + 1,
            name: (*name).to_owned(),
            kind: "java".to_owned(),
            java_id: None,
            os_id: None,
            daemon: false,
            state: if doing.starts_with("runs") { "RUNNABLE" } else { "WAITING" }.to_owned(),
            doing: (*doing).to_owned(),
            idle: *doing == "waits for work",
            cpu_ns: Some(cpu_ms * 1_000_000),
            allocated_bytes: None,
            stack: Some(at),
        };
        let stack = |(_, _, _, stack): &(&str, &str, u64, &str)| stack.split('<').map(str::to_owned).collect();
        TraceEvent::Trace(Trace {
            schema: Schema,
            time_ms,
            host: "h".to_owned(),
            pid,
            number: 1,
            took_ms: 1.0,
            whole: true,
            threads: threads.iter().enumerate().map(thread).collect(),
            stacks: threads.iter().map(stack).collect(),
        })
    }
}
