//! The events that are asked for.

use super::fields::Name;

/// What an event tells of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum EventKind {
    /// A thread was seen executing.
    ExecutionSample,
    /// A thread used up a period of CPU time.
    CpuTimeSample,
    /// A thread was seen, whether it executed or waited: once or several times in the same place.
    WallClockSample,
    /// A thread was seen in native code.
    NativeMethodSample,
    /// One of some allocations, with the bytes that it stands for.
    AllocationSample,
    /// A thread took a buffer for allocations.
    NewTlab,
    /// An object was allocated outside such a buffer.
    OutsideTlab,
    /// A sampled object was still alive at the end.
    LiveObject,
    /// Memory was allocated by native code.
    Malloc,
    /// A monitor was waited for.
    MonitorEnter,
    /// `Object.wait`.
    MonitorWait,
    /// A thread was parked.
    Park,
    /// A thread slept.
    Sleep,
    /// A virtual thread kept its carrier while it waited.
    Pinned,
    /// Bytes were read from a socket.
    SocketRead,
    /// They were written to one.
    SocketWrite,
    /// Bytes were read from a file.
    FileRead,
    /// They were written to one.
    FileWrite,
    /// A file was forced to its device.
    FileForce,
    /// An exception was created.
    Exception,
    /// An `Error` was.
    Error,
    /// The JVM collected garbage.
    Collection,
    /// How much of the heap was in use before it, or after.
    Heap,
    /// What the JVM is.
    Jvm,
    /// How a kind of events was recorded.
    Setting,
    /// Events were lost, in a thread's full buffer.
    DataLoss,
    /// Samples of CPU time were lost, in a thread's full queue.
    SamplesLost,
    /// What a thread has allocated since its start.
    ThreadAllocated,
}

/// Each kind, its name, and the field that says how much it is of.
const EVENTS: [(EventKind, &str, Option<Name>); 28] = [
    (EventKind::ExecutionSample, "jdk.ExecutionSample", None),
    (EventKind::CpuTimeSample, "jdk.CPUTimeSample", Some(Name::SamplingPeriod)),
    (EventKind::WallClockSample, "profiler.WallClockSample", Some(Name::Samples)),
    (EventKind::NativeMethodSample, "jdk.NativeMethodSample", None),
    (EventKind::AllocationSample, "jdk.ObjectAllocationSample", Some(Name::Weight)),
    (EventKind::NewTlab, "jdk.ObjectAllocationInNewTLAB", Some(Name::TlabSize)),
    (EventKind::OutsideTlab, "jdk.ObjectAllocationOutsideTLAB", Some(Name::AllocationSize)),
    (EventKind::LiveObject, "profiler.LiveObject", Some(Name::AllocationSize)),
    (EventKind::Malloc, "profiler.Malloc", Some(Name::Size)),
    (EventKind::MonitorEnter, "jdk.JavaMonitorEnter", None),
    (EventKind::MonitorWait, "jdk.JavaMonitorWait", None),
    (EventKind::Park, "jdk.ThreadPark", None),
    (EventKind::Sleep, "jdk.ThreadSleep", None),
    (EventKind::Pinned, "jdk.VirtualThreadPinned", None),
    (EventKind::SocketRead, "jdk.SocketRead", Some(Name::BytesRead)),
    (EventKind::SocketWrite, "jdk.SocketWrite", Some(Name::BytesWritten)),
    (EventKind::FileRead, "jdk.FileRead", Some(Name::BytesRead)),
    (EventKind::FileWrite, "jdk.FileWrite", Some(Name::BytesWritten)),
    (EventKind::FileForce, "jdk.FileForce", None),
    (EventKind::Exception, "jdk.JavaExceptionThrow", None),
    (EventKind::Error, "jdk.JavaErrorThrow", None),
    (EventKind::Collection, "jdk.GarbageCollection", Some(Name::SumOfPauses)),
    (EventKind::Heap, "jdk.GCHeapSummary", Some(Name::HeapUsed)),
    (EventKind::Jvm, "jdk.JVMInformation", None),
    (EventKind::Setting, "jdk.ActiveSetting", None),
    (EventKind::DataLoss, "jdk.DataLoss", Some(Name::Lost)),
    (EventKind::SamplesLost, "jdk.CPUTimeSamplesLost", Some(Name::LostSamples)),
    (EventKind::ThreadAllocated, "jdk.ThreadAllocationStatistics", Some(Name::Allocated)),
];

impl EventKind {
    pub(super) fn of(name: &str) -> Option<EventKind> {
        EVENTS.iter().find(|(_, event, _)| *event == name).map(|(kind, ..)| *kind)
    }

    /// As recordings call it.
    pub fn name(self) -> &'static str {
        EVENTS[self as usize].1
    }

    pub(super) fn amount(self) -> Option<Name> {
        EVENTS[self as usize].2
    }

    /// Whether its amount is in ticks of the recording's clock.
    pub(super) fn is_of_ticks(self) -> bool {
        matches!(self, EventKind::CpuTimeSample | EventKind::Collection)
    }

    /// Whether it happened at a place in the code.
    pub fn has_place(self) -> bool {
        use EventKind::{Collection, DataLoss, Heap, Jvm, SamplesLost, Setting, ThreadAllocated};
        !matches!(self, Collection | Heap | Jvm | Setting | DataLoss | SamplesLost | ThreadAllocated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_place_in_the_table() {
        for (place, (kind, name, _)) in EVENTS.into_iter().enumerate() {
            assert_eq!((kind as usize, EventKind::of(name), kind.name()), (place, Some(kind), name));
        }
    }
}
