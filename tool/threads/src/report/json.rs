//! All threads of a JVM as one JSON object, schema `headwater-threads/1`; docs/REFERENCE.md describes it field by field.

use std::io::{self, Write};

use serde::Serialize;

use crate::Taken;
use crate::blockers::{End, blockers};
use crate::doing::doing;
use crate::groups::groups;
use crate::waits::{Certainty, holders};
use crate::{Dump, Kind, LockIndex, Thread, ThreadIndex};

#[derive(Serialize)]
pub(super) struct Report<'a> {
    schema: &'static str,
    target: Target<'a>,
    cpu: Option<Cpu>,
    virtual_threads: Option<VirtualThreads>,
    deadlocks: Vec<Deadlock>,
    blockers: Vec<Blocker>,
    groups: Vec<Group>,
    threads: Vec<Row<'a>>,
    locks: Vec<Lock<'a>>,
    unread: &'a [String],
    warnings: &'a [String],
}

#[derive(Serialize)]
struct Target<'a> {
    pid: u32,
    main: &'a str,
    vm: &'a str,
}

#[derive(Serialize)]
struct Cpu {
    window_ns: u64,
    recent_ns: u64,
    ended_ns: u64,
    threads_ns: u64,
    process_ns: u64,
}

#[derive(Serialize)]
struct VirtualThreads {
    count: usize,
    parked: usize,
    pinned: usize,
}

#[derive(Serialize)]
struct Deadlock {
    certain: bool,
    waits: Vec<Edge>,
}

#[derive(Serialize)]
struct Edge {
    thread: usize,
    kind: &'static str,
    lock: Option<usize>,
    holder: usize,
    certain: bool,
}

#[derive(Serialize)]
struct Blocker {
    thread: Option<usize>,
    deadlock: Option<usize>,
    doing: Option<String>,
    waiting: Vec<usize>,
    wanted: Vec<Wanted>,
}

#[derive(Serialize)]
struct Wanted {
    holder: usize,
    kind: &'static str,
    lock: Option<usize>,
    waiting: usize,
}

#[derive(Serialize)]
struct Group {
    threads: Vec<usize>,
    recent_cpu_ns: u64,
    stack: Vec<String>,
}

#[derive(Serialize)]
struct Row<'a> {
    id: usize,
    name: &'a str,
    kind: &'static str,
    java_id: Option<u64>,
    os_id: Option<u32>,
    daemon: bool,
    priority: Option<i32>,
    state: &'static str,
    doing: String,
    cpu_ns: Option<u64>,
    recent_cpu_ns: Option<u64>,
    elapsed_ns: Option<u64>,
    allocated_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    carries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    carrier: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pinned: Option<bool>,
    group: usize,
    wait: Option<Wait>,
    holds: Vec<Held>,
    notes: &'a [String],
}

#[derive(Serialize)]
struct Wait {
    kind: &'static str,
    lock: Option<usize>,
    frame: usize,
    holder: Option<usize>,
    certain: Option<bool>,
}

#[derive(Serialize)]
struct Held {
    lock: usize,
    frame: Option<usize>,
}

#[derive(Serialize)]
struct Lock<'a> {
    id: usize,
    object: String,
    class: &'a str,
    holder: Option<usize>,
}

/// Writes it.
///
/// # Errors
///
/// Those of the writer.
pub fn write_json(taken: &Taken, out: &mut impl Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, &report(taken))?;
    writeln!(out)
}

pub(super) fn report(taken: &Taken) -> Report<'_> {
    let dump = &taken.dump;
    let groups = groups(dump);
    let mut group_of = vec![0; dump.threads.len()];
    for (number, group) in groups.iter().enumerate() {
        group.threads.iter().for_each(|thread| group_of[thread.0] = number);
    }
    let holders = holders(dump, &taken.waits);
    let index = |thread: &ThreadIndex| thread.0;
    Report {
        schema: "headwater-threads/1",
        target: Target { pid: taken.pid, main: &taken.main, vm: &dump.vm },
        cpu: taken.cpu.map(|cpu| Cpu {
            window_ns: cpu.window.as_nanos() as u64,
            recent_ns: cpu.recent_ns,
            ended_ns: cpu.ended_ns,
            threads_ns: cpu.threads_ns,
            process_ns: cpu.process_ns,
        }),
        virtual_threads: dump.virtual_threads.map(|count| VirtualThreads {
            count,
            parked: dump.threads.iter().filter(|thread| thread.is_parked()).count(),
            pinned: dump.threads.iter().filter(|thread| thread.is_pinned()).count(),
        }),
        deadlocks: taken.deadlocks.iter().map(deadlock).collect(),
        blockers: blockers(&taken.waits, &taken.deadlocks).iter().map(|blocker| blocking(dump, blocker)).collect(),
        groups: groups
            .iter()
            .map(|group| Group {
                threads: group.threads.iter().map(index).collect(),
                recent_cpu_ns: group.recent_cpu_ns,
                stack: dump[group.threads[0]].stack.iter().map(ToString::to_string).collect(),
            })
            .collect(),
        threads: (0..dump.threads.len()).map(|id| row(taken, id, group_of[id])).collect(),
        locks: (0..dump.locks.len())
            .map(|id| {
                let lock = &dump.locks[LockIndex(id)];
                let holder = holders.get(&LockIndex(id)).map(index);
                Lock { id, object: lock.to_string(), class: &lock.class, holder }
            })
            .collect(),
        unread: &dump.unread,
        warnings: &taken.warnings,
    }
}

fn deadlock(deadlock: &crate::deadlocks::Deadlock) -> Deadlock {
    let edge = |edge: &crate::waits::Edge| Edge {
        thread: edge.from.0,
        kind: edge.kind.name(),
        lock: edge.lock.map(|lock| lock.0),
        holder: edge.to.0,
        certain: edge.certainty == Certainty::Certain,
    };
    Deadlock { certain: deadlock.certainty == Certainty::Certain, waits: deadlock.waits.iter().map(edge).collect() }
}

fn blocking(dump: &Dump, blocker: &crate::blockers::Blocker) -> Blocker {
    let (thread, deadlock) = match blocker.end {
        End::Thread(thread) => (Some(thread), None),
        End::Deadlock(at) => (None, Some(at)),
    };
    let wanted = |wanted: &crate::blockers::HeldLock| Wanted {
        holder: wanted.owner.0,
        kind: wanted.kind.name(),
        lock: wanted.lock.map(|lock| lock.0),
        waiting: wanted.waiting,
    };
    Blocker {
        thread: thread.map(|thread| thread.0),
        deadlock,
        doing: thread.map(|thread| doing(dump, &dump[thread])),
        waiting: blocker.waiting.iter().map(|thread| thread.0).collect(),
        wanted: blocker.wanted.iter().map(wanted).collect(),
    }
}

fn row(taken: &Taken, id: usize, group: usize) -> Row<'_> {
    let thread: &Thread = &taken.dump.threads[id];
    let edge = taken.waits.blocker(ThreadIndex(id));
    let is_virtual = thread.kind == Kind::Virtual;
    Row {
        id,
        name: &thread.name,
        kind: thread.kind.name(),
        java_id: thread.java_id,
        os_id: thread.os_id,
        daemon: thread.daemon,
        priority: thread.priority,
        state: thread.state.name(),
        doing: doing(&taken.dump, thread),
        cpu_ns: thread.cpu_ns,
        recent_cpu_ns: thread.recent_cpu_ns,
        elapsed_ns: thread.elapsed_ns,
        allocated_bytes: thread.allocated_bytes,
        carries: thread.mount.filter(|_| !is_virtual),
        carrier: thread.mount.filter(|_| is_virtual),
        pinned: is_virtual.then(|| thread.is_pinned()),
        group,
        wait: thread.wait.map(|wait| Wait {
            kind: wait.kind.name(),
            lock: wait.lock.map(|lock| lock.0),
            frame: wait.frame,
            holder: edge.map(|edge| edge.to.0),
            certain: edge.map(|edge| edge.certainty == Certainty::Certain),
        }),
        holds: thread.owned.iter().map(|owned| Held { lock: owned.lock.0, frame: owned.frame }).collect(),
        notes: &thread.notes,
    }
}
