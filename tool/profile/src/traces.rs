//! Stack traces of many JVMs, as they come: what `headwater watch` tells programs, one JSON object a line, and what it records.
//!
//! Every line says all that is needed to understand it: the schema, when, on which host, in which process. docs/REFERENCE.md has the fields.
//! [`recording`] keeps them in a file, [`seen`] makes a profile of them.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub mod recording;
pub mod seen;

/// What the lines are. Fields and kinds of events may be added; a reader passes over what it does not know.
pub const SCHEMA: &str = "headwater-watch/1";
/// The same of any version.
const SCHEMAS: &str = "headwater-watch/";

/// A line says which schema it follows; one of another is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Schema;

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(SCHEMA)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Schema, D::Error> {
        let schema = String::deserialize(deserializer)?;
        if schema == SCHEMA {
            return Ok(Schema);
        }
        Err(serde::de::Error::custom(format!("its schema is `{schema}`, and {SCHEMA} is known here")))
    }
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum TraceEvent {
    /// A JVM has answered for the first time.
    Connected(Connected),
    /// Its threads at one moment.
    Trace(Trace),
    /// Nothing more comes from it.
    Disconnected(Disconnected),
    /// An analysis has something to say.
    Said(Said),
    /// Of a kind that is not known here.
    #[serde(other)]
    Unknown,
}

/// A process: its host, and its number there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process {
    /// The host's name.
    pub host: String,
    /// The process id, as the host has it.
    pub pid: u32,
}

/// A JVM that is watched from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Connected {
    /// Of these fields.
    pub schema: Schema,
    /// When, in ms since 1970.
    pub time_ms: u64,
    /// Where.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// Its main class or jar.
    pub main: String,
    /// What stands behind that.
    pub arguments: String,
    /// `java.version`, if that is known.
    pub java: Option<String>,
    /// The JVM, in its own words.
    pub vm: String,
    /// The operating system, its version and the processor's architecture.
    pub system: String,
    /// Whose it is.
    pub uid: u32,
}

/// All threads of a JVM at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Of these fields.
    pub schema: Schema,
    /// When it was asked for, in ms since 1970.
    pub time_ms: u64,
    /// Where.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// The first of this JVM is 1.
    pub number: u64,
    /// How long the JVM took to answer.
    pub took_ms: f64,
    /// The JVM told of all its threads.
    pub whole: bool,
    /// In the JVM's order.
    pub threads: Vec<Thread>,
    /// Each stack once, the innermost frame first: `a.b.C.m(C.java:12)`.
    pub stacks: Vec<Vec<String>>,
}

/// One thread of a trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Thread {
    /// In which order it was started, among those that were seen; the same in all traces of its JVM.
    pub order: u64,
    /// As the program has named it: anything.
    pub name: String,
    /// `java`, `virtual` or `vm`.
    pub kind: String,
    /// `Thread.threadId()`.
    pub java_id: Option<u64>,
    /// The operating system's number, in the JVM's own pid namespace.
    pub os_id: Option<u32>,
    /// It does not keep the JVM from ending.
    pub daemon: bool,
    /// As `Thread.State` has it, or `UNKNOWN`.
    pub state: String,
    /// What it does, in a few words.
    pub doing: String,
    /// It waits for work, or is the JVM's own.
    pub idle: bool,
    /// CPU time since its start.
    pub cpu_ns: Option<u64>,
    /// Bytes that it has allocated since its start.
    pub allocated_bytes: Option<u64>,
    /// Of [`Trace::stacks`]; none of a thread without Java frames.
    pub stack: Option<usize>,
}

/// A JVM that is watched no more.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disconnected {
    /// Of these fields.
    pub schema: Schema,
    /// When that was seen, in ms since 1970.
    pub time_ms: u64,
    /// Where.
    pub host: String,
    /// Its number there.
    pub pid: u32,
    /// Why.
    pub reason: Reason,
}

/// Why nothing more comes from a JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// It has ended.
    Ended,
    /// It does not let itself be asked any more.
    Refused,
    /// It is not watched any more.
    Left,
    /// One that is not known here.
    #[serde(other)]
    Unknown,
}

/// A line of an analysis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Said {
    /// Of these fields.
    pub schema: Schema,
    /// When it came, in ms since 1970.
    pub time_ms: u64,
    /// Which analysis: its command.
    pub analysis: String,
    /// What it said.
    pub line: String,
}

impl TraceEvent {
    /// One object on one line, without its end.
    pub fn line(&self) -> String {
        // Names and numbers: there is nothing in it that JSON has no way to say.
        serde_json::to_string(self).unwrap_or_default()
    }

    /// What a line says.
    ///
    /// # Errors
    ///
    /// If it is no object of this schema: a clause.
    pub fn of_line(line: &str) -> Result<TraceEvent, String> {
        let event: TraceEvent = serde_json::from_str(line).map_err(|error| error.to_string())?;
        match &event {
            TraceEvent::Trace(trace) if !trace.is_consistent() => {
                Err("a thread of it has a stack that is not there".to_owned())
            }
            _ => Ok(event),
        }
    }

    /// Whether a text begins with such a line, of any version.
    pub fn is_begun_by(begins: &str) -> bool {
        let first = begins.trim_start().lines().next().unwrap_or_default();
        first.starts_with("{\"event\":\"") && first.contains(&format!("\"schema\":\"{SCHEMAS}"))
    }

    /// Which process it is about, if it is about one.
    pub fn process(&self) -> Option<Process> {
        let (host, pid) = match self {
            TraceEvent::Connected(it) => (&it.host, it.pid),
            TraceEvent::Trace(it) => (&it.host, it.pid),
            TraceEvent::Disconnected(it) => (&it.host, it.pid),
            TraceEvent::Said(_) | TraceEvent::Unknown => return None,
        };
        Some(Process { host: host.clone(), pid })
    }
}

impl Connected {
    /// What people call it: the file of the jar, or the class without its module.
    pub fn name(&self) -> &str {
        self.main.rsplit('/').next().unwrap_or(&self.main)
    }
}

impl Trace {
    /// A thread's stack, the innermost frame first.
    pub fn stack(&self, thread: &Thread) -> &[String] {
        thread.stack.and_then(|stack| self.stacks.get(stack)).map_or(&[], Vec::as_slice)
    }

    fn is_consistent(&self) -> bool {
        self.threads.iter().all(|thread| thread.stack.is_none_or(|stack| stack < self.stacks.len()))
    }
}

/// Of a frame `a.b.C.m(C.java:12)`, the method.
pub fn method_of(frame: &str) -> &str {
    frame.rsplit_once('(').map_or(frame, |(method, _)| method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_object_that_says_what_it_is() {
        let left = Disconnected { schema: Schema, time_ms: 7, host: "a\nb".into(), pid: 4711, reason: Reason::Left };
        let event = TraceEvent::Disconnected(left);
        let line = event.line();
        assert_eq!(
            line,
            r#"{"event":"disconnected","schema":"headwater-watch/1","time_ms":7,"host":"a\nb","pid":4711,"reason":"left"}"#
        );
        assert!(TraceEvent::is_begun_by(&line));
        assert_eq!(TraceEvent::of_line(&line), Ok(event));
    }

    #[test]
    fn what_later_versions_add_is_passed_over_and_another_schema_is_refused() {
        let added = r#"{"event":"disconnected","schema":"headwater-watch/1","time_ms":7,"host":"h","pid":1,"reason":"tired","x":[1]}"#;
        let Ok(TraceEvent::Disconnected(left)) = TraceEvent::of_line(added) else { panic!("it is understood") };
        assert_eq!(left.reason, Reason::Unknown);
        assert_eq!(
            TraceEvent::of_line(r#"{"event":"more","schema":"headwater-watch/1","x":1}"#),
            Ok(TraceEvent::Unknown)
        );
        let other = added.replace("watch/1", "watch/2");
        assert!(TraceEvent::is_begun_by(&other));
        let error = TraceEvent::of_line(&other).expect_err("another schema");
        assert!(error.contains("its schema is `headwater-watch/2`, and headwater-watch/1 is known here"), "{error}");
    }

    #[test]
    fn a_thread_has_only_stacks_that_are_there() {
        let line = r#"{"event":"trace","schema":"headwater-watch/1","time_ms":1,"host":"h","pid":1,"number":1,"took_ms":1,"whole":true,"threads":[{"order":1,"name":"a","kind":"java","java_id":1,"os_id":1,"daemon":false,"state":"RUNNABLE","doing":"","idle":false,"cpu_ns":1,"allocated_bytes":1,"stack":1}],"stacks":[["a.b(c)"]]}"#;
        assert_eq!(TraceEvent::of_line(line), Err("a thread of it has a stack that is not there".to_owned()));
        assert!(TraceEvent::of_line(&line.replace("\"stack\":1", "\"stack\":0")).is_ok());
        assert_eq!(method_of("a.b.C.m(C.java:12)"), "a.b.C.m");
    }
}
