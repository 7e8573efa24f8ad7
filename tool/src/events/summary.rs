//! What happened, added up.

use std::collections::BTreeMap;

use headwater_protocol::message::events::{Happened, Kind, Kinds, Sort, What};
use serde_json::{Value, json};

use crate::printable::printable;
use crate::report::units::{bytes, count, plural, time};

/// Classes of monitors that are told apart; what waits for others is one sum.
const MOST_CLASSES: usize = 1_000;
const OTHERS: &str = "(others)";
/// Classes that a text shows.
const SHOWN: usize = 10;
/// What a collection without a cause has for one.
const NO_CAUSE: &str = "(cause unknown)";

/// Times of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// How many.
    pub(crate) count: u64,
    /// Together.
    pub(crate) total_ns: u64,
    /// The longest of them.
    pub(crate) longest_ns: u64,
}

impl Sum {
    fn add(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.longest_ns = self.longest_ns.max(ns);
    }

    fn json(self, name: &str, value: &str) -> Value {
        let Sum { count, total_ns, longest_ns } = self;
        json!({ name: value, "count": count, "total_ns": total_ns, "longest_ns": longest_ns })
    }
}

/// What has happened since the beginning.
#[derive(Clone, Debug, Default)]
pub(crate) struct Summary {
    /// What has been on, for a while at least.
    kinds: Kinds,
    /// Events that were told, and those that were not.
    counts: [u64; Sort::ALL.len()],
    left_out: [u64; Sort::ALL.len()],
    collections: BTreeMap<String, Sum>,
    waits: BTreeMap<String, Sum>,
    code_bytes: u64,
}

impl Summary {
    /// These are told of from now on.
    pub(crate) fn switched(&mut self, kinds: Kinds) {
        self.kinds = kinds.each().fold(self.kinds, Kinds::with);
    }

    /// This has happened.
    pub(crate) fn add(&mut self, happened: &Happened) {
        for event in &happened.events {
            self.counts[event.what.sort() as usize] += 1;
            match &event.what {
                What::Collection { duration_ns, cause, .. } => {
                    let cause = cause.as_deref().unwrap_or(NO_CAUSE);
                    self.collections.entry(cause.to_owned()).or_default().add(*duration_ns);
                }
                What::Wait { duration_ns, class, .. } => {
                    let is_told_apart = self.waits.len() < MOST_CLASSES || self.waits.contains_key(class);
                    let class = if is_told_apart { class } else { OTHERS };
                    self.waits.entry(class.to_owned()).or_default().add(*duration_ns);
                }
                What::Compilation { bytes, .. } => self.code_bytes = self.code_bytes.saturating_add((*bytes).into()),
                _ => {}
            }
        }
        for (sort, count) in &happened.left_out {
            let left_out = &mut self.left_out[*sort as usize];
            *left_out = left_out.saturating_add(*count);
        }
    }

    /// How many there were, told or not.
    pub(crate) fn count(&self, sort: Sort) -> u64 {
        self.counts[sort as usize].saturating_add(self.left_out[sort as usize])
    }

    /// How many were not told.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// All collections that were told.
    pub(crate) fn pauses(&self) -> Sum {
        all(&self.collections)
    }

    /// Lines to be read.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for kind in self.kinds.each() {
            let mut first = true;
            for line in self.of(kind) {
                let name = if std::mem::take(&mut first) { super::name(kind) } else { "" };
                lines.push(format!("{name:8}  {line}"));
            }
        }
        if self.left_out() > 0 {
            let events = plural(self.left_out(), "event was", "events were");
            lines.push(format!(
                "left out  {events} counted and not told: too fast to be told, or waits that began before"
            ));
        }
        lines
    }

    fn of(&self, kind: Kind) -> Vec<String> {
        let count = |sort| count(self.count(sort));
        match kind {
            Kind::Gc => with_parts(self.count(Sort::Collection), ("collection", "collections"), &self.collections),
            Kind::Classes => {
                vec![format!("{} loaded, {} unloaded", count(Sort::ClassLoad), count(Sort::ClassUnload))]
            }
            Kind::Threads => vec![format!("{} started, {} ended", count(Sort::ThreadStart), count(Sort::ThreadEnd))],
            Kind::Monitors => with_parts(self.count(Sort::Wait), ("wait", "waits"), &self.waits),
            Kind::Compile => vec![format!(
                "{} compiled ({} of code), {} discarded",
                plural(self.count(Sort::Compilation), "method", "methods"),
                bytes(self.code_bytes),
                count(Sort::Discard)
            )],
        }
    }

    /// The same for programs.
    pub(crate) fn json(&self) -> Value {
        let mut all = serde_json::Map::new();
        for kind in self.kinds.each() {
            let value = match kind {
                Kind::Gc => {
                    let causes = by_time(&self.collections).map(|(cause, sum)| sum.json("cause", cause));
                    let Sum { total_ns, longest_ns, .. } = self.pauses();
                    json!({
                        "collections": self.count(Sort::Collection),
                        "total_ns": total_ns,
                        "longest_ns": longest_ns,
                        "causes": causes.collect::<Vec<_>>(),
                    })
                }
                Kind::Classes => {
                    json!({ "loaded": self.count(Sort::ClassLoad), "unloaded": self.count(Sort::ClassUnload) })
                }
                Kind::Threads => {
                    json!({ "started": self.count(Sort::ThreadStart), "ended": self.count(Sort::ThreadEnd) })
                }
                Kind::Monitors => {
                    let classes = by_time(&self.waits).map(|(class, sum)| sum.json("class", class));
                    let Sum { total_ns, longest_ns, .. } = self::all(&self.waits);
                    json!({
                        "waits": self.count(Sort::Wait),
                        "total_ns": total_ns,
                        "longest_ns": longest_ns,
                        "classes": classes.collect::<Vec<_>>(),
                    })
                }
                Kind::Compile => json!({
                    "compiled": self.count(Sort::Compilation),
                    "code_bytes": self.code_bytes,
                    "discarded": self.count(Sort::Discard),
                }),
            };
            all.insert(super::name(kind).to_owned(), value);
        }
        all.insert("left_out".to_owned(), self.left_out().into());
        Value::Object(all)
    }
}

fn all(parts: &BTreeMap<String, Sum>) -> Sum {
    parts.values().fold(Sum::default(), |all, sum| Sum {
        count: all.count + sum.count,
        total_ns: all.total_ns.saturating_add(sum.total_ns),
        longest_ns: all.longest_ns.max(sum.longest_ns),
    })
}

/// Those first that took longest together.
fn by_time(parts: &BTreeMap<String, Sum>) -> impl Iterator<Item = (&String, &Sum)> {
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|(_, sum)| std::cmp::Reverse(sum.total_ns));
    parts.into_iter()
}

/// A line for all, and one for each part, if there are several.
fn with_parts(number: u64, (one, many): (&str, &str), parts: &BTreeMap<String, Sum>) -> Vec<String> {
    let Sum { total_ns, longest_ns, .. } = all(parts);
    let mut lines = vec![plural(number, one, many)];
    if parts.is_empty() {
        return lines;
    }
    lines[0] += &format!(", {} together, the longest {}", time(total_ns), time(longest_ns));
    let shown = by_time(parts).take(SHOWN).map(|(name, sum)| {
        let Sum { count: n, total_ns, longest_ns } = *sum;
        format!("  {}: {}, {}, the longest {}", printable(name), count(n), time(total_ns), time(longest_ns))
    });
    lines.extend(shown);
    if parts.len() > SHOWN {
        lines.push(format!("  {} more", count((parts.len() - SHOWN) as u64)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use headwater_protocol::message::events::{JvmEvent, Thread};

    use super::*;

    fn happened(whats: Vec<What>) -> Happened {
        let events = whats.into_iter().map(|what| JvmEvent { time_ns: 0, what }).collect();
        Happened { methods: Vec::new(), events, left_out: Vec::new() }
    }

    fn collection(cause: Option<&str>, duration_ns: u64) -> What {
        What::Collection { duration_ns, cause: cause.map(str::to_owned), collector: None, pools: Vec::new() }
    }

    fn wait(class: String, duration_ns: u64) -> What {
        What::Wait { duration_ns, class, thread: Thread::default(), stack: Vec::new(), owner: None }
    }

    #[test]
    fn times_are_added_up_by_cause_and_the_longest_is_kept() {
        let mut summary = Summary::default();
        summary.switched(Kinds::default().with(Kind::Gc));
        summary.switched(Kinds::default());
        summary.add(&happened(vec![
            collection(Some("System.gc()"), 2_000_000),
            collection(Some("Allocation Failure"), 1_000_000),
        ]));
        summary.add(&happened(vec![collection(Some("System.gc()"), 5_000_000), collection(None, 10)]));
        assert_eq!(
            summary.lines(),
            [
                "gc        4 collections, 8.000 ms together, the longest 5.000 ms",
                "            System.gc(): 2, 7.000 ms, the longest 5.000 ms",
                "            Allocation Failure: 1, 1.000 ms, the longest 1.000 ms",
                "            (cause unknown): 1, 10 ns, the longest 10 ns",
            ]
        );
        let causes = &summary.json()["gc"]["causes"];
        assert_eq!(
            causes[0],
            json!({ "cause": "System.gc()", "count": 2, "total_ns": 7_000_000, "longest_ns": 5_000_000 })
        );
        assert!(summary.json().get("classes").is_none());
    }

    #[test]
    fn what_was_left_out_is_counted_and_said() {
        let mut summary = Summary::default();
        summary.switched([Kind::Classes, Kind::Threads, Kind::Compile].into_iter().collect());
        summary
            .add(&Happened { left_out: vec![(Sort::ClassLoad, 1_000), (Sort::ThreadEnd, 1)], ..Happened::default() });
        summary.add(&happened(vec![
            What::ClassUnload { class: "a.B".into() },
            What::Compilation { method: 0, bytes: 2_048 },
        ]));
        assert_eq!(
            summary.lines(),
            [
                "classes   1,000 loaded, 1 unloaded",
                "threads   0 started, 1 ended",
                "compile   1 method compiled (2.000 KiB of code), 0 discarded",
                "left out  1,001 events were counted and not told: too fast to be told, or waits that began before",
            ]
        );
        assert_eq!(summary.json()["left_out"], 1_001);
        assert_eq!(summary.json()["classes"], json!({ "loaded": 1_000, "unloaded": 1 }));
    }

    #[test]
    fn of_many_classes_of_monitors_some_are_shown_and_memory_is_bounded() {
        let mut summary = Summary::default();
        summary.switched(Kinds::all());
        summary.add(&happened((0..2_000).map(|n| wait(format!("a.B{n}"), n)).collect()));
        let lines = summary.lines();
        let waits: Vec<_> = lines.iter().skip_while(|line| !line.starts_with("monitors")).collect();
        assert_eq!(waits[0], "monitors  2,000 waits, 1.999 ms together, the longest 1.999 us");
        assert!(waits[1].contains("(others): 1,000, "), "{}", waits[1]);
        assert_eq!(waits[SHOWN + 1].trim(), "991 more");
    }
}
