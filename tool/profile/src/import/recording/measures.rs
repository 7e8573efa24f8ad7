//! What the events of each kind measure, as metrics.

use crate::profile::{ALLOCATED, Extent, Metric, Unit};
use headwater_jfr::{EventKind, RecordedEvent};

use EventKind::{
    AllocationSample, CpuTimeSample, Error, Exception, ExecutionSample, FileForce, FileRead, FileWrite, LiveObject,
    Malloc, MonitorEnter, MonitorWait, NativeMethodSample, NewTlab, OutsideTlab, Park, Pinned, Sleep, SocketRead,
    SocketWrite, WallClockSample,
};

/// What events of a kind come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) count: u64,
    duration_ns: u64,
    amount: u64,
}

impl Sum {
    pub(super) fn add(&mut self, event: &RecordedEvent) {
        *self = self.and(Sum { count: 1, duration_ns: event.duration_ns, amount: event.amount });
    }

    pub(super) fn and(self, other: Sum) -> Sum {
        Sum {
            count: self.count.saturating_add(other.count),
            duration_ns: self.duration_ns.saturating_add(other.duration_ns),
            amount: self.amount.saturating_add(other.amount),
        }
    }
}

/// Which of the numbers of events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    /// How many there were.
    Count,
    /// For how long they went on.
    Duration,
    /// How much they were of, in this unit.
    Amount(Unit),
}

/// A metric of some kinds of events.
pub(super) struct Measure {
    pub(super) kinds: &'static [EventKind],
    number: Number,
    /// Only places are sampled, or what is counted stands for more.
    pub(super) is_sampled: bool,
    id: &'static str,
    title: &'static str,
    about: &'static str,
}

const BYTES: Number = Number::Amount(Unit::Bytes);

const fn exact(
    kinds: &'static [EventKind],
    number: Number,
    id: &'static str,
    title: &'static str,
    about: &'static str,
) -> Measure {
    Measure { kinds, number, is_sampled: false, id, title, about }
}

const fn sampled(
    kinds: &'static [EventKind],
    number: Number,
    id: &'static str,
    title: &'static str,
    about: &'static str,
) -> Measure {
    Measure { kinds, number, is_sampled: true, id, title, about }
}

/// All of them, what leads first. Ids are those of what a profile below a root counts, where that is the same.
pub(super) const MEASURES: &[Measure] = &[
    sampled(
        &[CpuTimeSample],
        Number::Amount(Unit::Nanoseconds),
        "cpu",
        "CPU time",
        "CPU time, by samples that each stand for a period of it.",
    ),
    sampled(&[ExecutionSample], Number::Count, "samples", "samples", "How often a thread was seen executing."),
    sampled(
        &[WallClockSample],
        Number::Amount(Unit::Count),
        "wall-samples",
        "wall-clock samples",
        "How often a thread was seen, whether it executed or waited.",
    ),
    sampled(
        &[AllocationSample],
        BYTES,
        ALLOCATED,
        "allocated",
        "Bytes that were allocated, by samples that each stand for some.",
    ),
    sampled(
        &[NewTlab, OutsideTlab],
        BYTES,
        ALLOCATED_BY_BUFFERS,
        "allocated",
        "Bytes of buffers that threads took for allocations, and of objects outside them.",
    ),
    exact(
        &[MonitorEnter],
        Number::Duration,
        "blocked",
        "time blocked",
        "Time in which threads waited to enter monitors that others had.",
    ),
    exact(&[MonitorWait], Number::Duration, "waited", "time in wait", "Time that threads spent in Object.wait."),
    exact(&[Park], Number::Duration, "parked", "time parked", "Time in which threads were parked."),
    exact(&[Sleep], Number::Duration, "slept", "time asleep", "Time in which threads slept."),
    exact(&[SocketRead], Number::Duration, "socket-read-time", "time in socket reads", "Time in reads from sockets."),
    exact(&[SocketWrite], Number::Duration, "socket-write-time", "time in socket writes", "Time in writes to sockets."),
    exact(&[FileRead], Number::Duration, "file-read-time", "time in file reads", "Time in reads from files."),
    exact(&[FileWrite], Number::Duration, "file-write-time", "time in file writes", "Time in writes to files."),
    exact(
        &[FileForce],
        Number::Duration,
        "file-force-time",
        "time in forcing files",
        "Time until files were on their devices.",
    ),
    exact(
        &[Pinned],
        Number::Duration,
        "pinned",
        "time pinned",
        "Time in which virtual threads waited and kept their carriers.",
    ),
    exact(&[SocketRead], BYTES, "socket-read", "read from sockets", "Bytes that were read from sockets."),
    exact(&[SocketWrite], BYTES, "socket-written", "written to sockets", "Bytes that were written to sockets."),
    exact(&[FileRead], BYTES, "file-read", "read from files", "Bytes that were read from files."),
    exact(&[FileWrite], BYTES, "file-written", "written to files", "Bytes that were written to files."),
    exact(&[Exception], Number::Count, "exceptions", "exceptions created", "How many exceptions were created."),
    exact(
        &[Error],
        Number::Count,
        "errors",
        "errors created",
        "How many objects of java.lang.Error's subclasses were created.",
    ),
    sampled(&[LiveObject], BYTES, "live", "still alive", "Bytes of sampled objects that were alive at the end."),
    exact(&[Malloc], BYTES, "malloc", "allocated by malloc", "Bytes that native code allocated."),
    sampled(
        &[NativeMethodSample],
        Number::Count,
        "native-samples",
        "samples in native code",
        "How often a thread was seen in native code, executing or waiting.",
    ),
    sampled(
        &[CpuTimeSample],
        Number::Count,
        "cpu-samples",
        "CPU time samples",
        "How many samples of CPU time there are.",
    ),
    exact(
        &[AllocationSample],
        Number::Count,
        "allocation-samples",
        "allocation samples",
        "How many samples of allocations there are.",
    ),
    exact(
        &[NewTlab],
        Number::Count,
        "new-tlabs",
        "allocation buffers",
        "How many buffers for allocations threads took.",
    ),
    exact(
        &[OutsideTlab],
        Number::Count,
        "outside-tlabs",
        "allocated outside buffers",
        "How many objects were allocated outside threads' buffers.",
    ),
    exact(
        &[MonitorEnter],
        Number::Count,
        "blocks",
        "monitors waited for",
        "How often a monitor was entered after waiting for it.",
    ),
    exact(&[MonitorWait], Number::Count, "waits", "waits", "How often Object.wait waited."),
    exact(&[Park], Number::Count, "parks", "parks", "How often a thread was parked."),
    exact(&[Sleep], Number::Count, "sleeps", "sleeps", "How often a thread slept."),
    exact(&[SocketRead], Number::Count, "socket-reads", "socket reads", "How often a socket was read from."),
    exact(&[SocketWrite], Number::Count, "socket-writes", "socket writes", "How often a socket was written to."),
    exact(&[FileRead], Number::Count, "file-reads", "file reads", "How often a file was read from."),
    exact(&[FileWrite], Number::Count, "file-writes", "file writes", "How often a file was written to."),
    exact(&[FileForce], Number::Count, "file-forces", "files forced", "How often a file was forced to its device."),
    exact(&[Pinned], Number::Count, "pins", "pinned", "How often a virtual thread waited and kept its carrier."),
    exact(
        &[LiveObject],
        Number::Count,
        "live-objects",
        "objects still alive",
        "How many sampled objects were alive at the end.",
    ),
    exact(&[Malloc], Number::Count, "mallocs", "calls of malloc", "How often native code allocated memory."),
];

const ALLOCATED_BY_BUFFERS: &str = "tlab-allocated";

impl Measure {
    pub(super) fn of(&self, sum: &Sum) -> u64 {
        match self.number {
            Number::Count => sum.count,
            Number::Duration => sum.duration_ns,
            Number::Amount(_) => sum.amount,
        }
    }

    /// In a recording with these kinds of events: where allocations are told of in one way only, it is `allocated`.
    pub(super) fn metric(&self, has: impl Fn(EventKind) -> bool) -> Metric {
        let unit = match self.number {
            Number::Count => Unit::Count,
            Number::Duration => Unit::Nanoseconds,
            Number::Amount(unit) => unit,
        };
        let id = if self.id == ALLOCATED_BY_BUFFERS && !has(AllocationSample) { ALLOCATED } else { self.id };
        Metric::counted(id, self.title, unit, Extent::OwnAndTotal, self.about)
    }
}
