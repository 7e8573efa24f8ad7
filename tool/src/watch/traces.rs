//! A dump of a JVM's threads becomes a trace.

use std::time::Duration;

use rustc_hash::FxHashMap;

use crate::threads::activity::is_idle;
use crate::threads::doing::doing;
use crate::threads::{Dump, Kind, Thread};
use crate::traces::{Schema, Thread as Told, Trace};

/// Numbers the traces of a JVM, and its threads in the order in which they were started.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    traces: u64,
    threads: u64,
    known: FxHashMap<Key, u64>,
}

/// What a thread is known by as long as it is there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    Java(u64),
    System(u32),
    Named(String),
}

impl Key {
    fn of(thread: &Thread) -> Key {
        match (thread.java_id, thread.os_id) {
            (Some(id), _) => Key::Java(id),
            (None, Some(id)) => Key::System(id),
            (None, None) => Key::Named(thread.name.clone()),
        }
    }
}

/// When and where a dump was taken.
#[derive(Clone, Debug)]
pub(super) struct Taken {
    pub(super) host: String,
    pub(super) pid: u32,
    pub(super) time_ms: u64,
    pub(super) took: Duration,
}

impl Numbering {
    /// How many traces there were.
    pub(super) fn traces(&self) -> u64 {
        self.traces
    }

    /// The next trace.
    pub(super) fn trace(&mut self, dump: &Dump, taken: Taken) -> Trace {
        self.traces += 1;
        self.number(dump);
        let mut stacks: Vec<Vec<String>> = Vec::new();
        let mut places: FxHashMap<&[crate::threads::Frame], usize> = FxHashMap::default();
        let mut told = Vec::with_capacity(dump.threads.len());
        for thread in &dump.threads {
            let stack = (!thread.stack.is_empty()).then(|| {
                *places.entry(&thread.stack).or_insert_with(|| {
                    stacks.push(thread.stack.iter().map(ToString::to_string).collect());
                    stacks.len() - 1
                })
            });
            told.push(Told {
                order: self.known.get(&Key::of(thread)).copied().unwrap_or(0),
                name: thread.name.clone(),
                kind: thread.kind.name().to_owned(),
                java_id: thread.java_id,
                os_id: thread.os_id,
                daemon: thread.daemon,
                state: thread.state.name().to_owned(),
                doing: doing(dump, thread),
                idle: is_idle(thread),
                cpu_ns: thread.cpu_ns,
                allocated_bytes: thread.allocated_bytes,
                stack,
            });
        }
        let Taken { host, pid, time_ms, took } = taken;
        Trace {
            schema: Schema,
            time_ms,
            host,
            pid,
            number: self.traces,
            took_ms: (took.as_secs_f64() * 1e6).round() / 1e3,
            whole: dump.is_whole,
            threads: told,
            stacks,
        }
    }

    /// Gives new threads their numbers, and forgets those that are gone: the JVM uses none of its own numbers twice, the system does.
    fn number(&mut self, dump: &Dump) {
        let mut new: Vec<&Thread> =
            dump.threads.iter().filter(|thread| !self.known.contains_key(&Key::of(thread))).collect();
        // The older first; the JVM's own threads, whose age it tells too, are older than the program's.
        new.sort_by_key(|thread| {
            (std::cmp::Reverse(thread.elapsed_ns.unwrap_or(0)), thread.kind == Kind::Virtual, thread.java_id)
        });
        let numbered: Vec<(Key, u64)> = new.into_iter().map(Key::of).zip(self.threads + 1..).collect();
        self.threads += numbered.len() as u64;
        self.known.extend(numbered);
        if self.known.len() > 2 * dump.threads.len() {
            let there: FxHashMap<Key, u64> = dump
                .threads
                .iter()
                .map(Key::of)
                .filter_map(|key| self.known.get(&key).copied().map(|number| (key, number)))
                .collect();
            self.known = there;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::threads::read::read;

    use super::*;

    fn dump(threads: &[(&str, u64, &str, &str)]) -> Dump {
        let mut text = "Full thread dump OpenJDK 64-Bit Server VM (25+1 mixed mode):\n\n".to_owned();
        for (name, id, elapsed, frame) in threads {
            text += &format!(
                "\"{name}\" #{id} [{}] prio=5 os_prio=0 cpu=1.50ms elapsed={elapsed}s tid=0x{id} nid={} runnable  [0x1]\n   \
                 java.lang.Thread.State: RUNNABLE\n\tat {frame}\n\n",
                100 + id,
                100 + id,
            );
        }
        read(&(text + "JNI global refs: 1, weak refs: 0\n"))
    }

    fn taken() -> Taken {
        Taken { host: "h".into(), pid: 7, time_ms: 1, took: Duration::from_micros(1_234) }
    }

    #[test]
    fn threads_keep_their_order_of_start_and_equal_stacks_are_told_once() {
        let mut numbering = Numbering::default();
        let first = numbering
            .trace(&dump(&[("late", 9, "1.00", "a.B.c(B.java:1)"), ("main", 1, "5.00", "a.B.c(B.java:1)")]), taken());
        let orders = |trace: &Trace| -> Vec<(String, u64)> {
            trace.threads.iter().map(|thread| (thread.name.clone(), thread.order)).collect()
        };
        assert_eq!(orders(&first), [("late".to_owned(), 2), ("main".to_owned(), 1)]);
        assert_eq!((first.number, first.took_ms, first.whole), (1, 1.234, true));
        assert_eq!(first.stacks, [["a.B.c(B.java:1)"]]);
        assert_eq!(first.threads[0].cpu_ns, Some(1_500_000));
        let second = numbering
            .trace(&dump(&[("late", 9, "2.00", "a.B.d(B.java:2)"), ("new", 12, "0.10", "a.B.c(B.java:1)")]), taken());
        assert_eq!(orders(&second), [("late".to_owned(), 2), ("new".to_owned(), 3)]);
        assert_eq!((second.number, second.stacks.len()), (2, 2));
        assert_eq!(second.stack(&second.threads[1]), ["a.B.c(B.java:1)"]);
    }

    #[test]
    fn what_is_gone_is_forgotten() {
        let mut numbering = Numbering::default();
        for id in 1..100 {
            let trace = numbering.trace(&dump(&[("t", id, "0.10", "a.B.c(B.java:1)")]), taken());
            assert_eq!(trace.threads[0].order, id);
        }
        assert!(numbering.known.len() <= 3, "{:?}", numbering.known);
    }
}
