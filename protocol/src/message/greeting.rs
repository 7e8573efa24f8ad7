//! The handshake: who the agent is, what its JVM lets it do, and how long that waits.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

/// The first frame, from the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Greeting {
    /// [`crate::PROTOCOL_VERSION`].
    pub protocol: u32,
    /// The JVM's process id in its own pid namespace.
    pub pid: u32,
    /// The system property `java.vm.version`.
    pub vm_version: String,
    /// The system property `java.version`, where the VM tells it.
    pub java_version: String,
    /// The agent came in with the JVM's start and holds `main` back until [`Command::Release`](super::Command::Release).
    pub startup: bool,
    /// What the agent reads of HotSpot beyond its documented interfaces, and how that stands in this JVM.
    pub internals: Vec<(Internal, Standing)>,
}

/// Something of HotSpot's that no interface documents. Without it a profile is dearer, or rougher, and counts the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Internal {
    /// How often each method has been called: tells what is likely to be called.
    InvocationCounters,
    /// The classes that virtual calls were made on: stale ones are forgotten after a profile.
    TypeProfiles,
    /// How long the JVM has been at safepoints: tells what hotswaps stop.
    SafepointTime,
    /// Names of parameters: JDKs before 19 lose them of classes that are hotswapped, and they are put back.
    ParameterNames,
    /// How exceptions are handled and call sites linked: JDKs before 20 would lose what somebody else has redefined, and such a class is left alone.
    RunningCode,
    /// How much each thread has allocated: `--count alloc`.
    AllocatedBytes,
    /// Why it collects: the track of collections, and `events`.
    CollectionCauses,
    /// How much of each pool of the heap is in use: the track of collections, and `events`.
    HeapPools,
}

impl Internal {
    /// Each.
    pub const ALL: [Internal; 8] = [
        Internal::InvocationCounters,
        Internal::TypeProfiles,
        Internal::SafepointTime,
        Internal::ParameterNames,
        Internal::RunningCode,
        Internal::AllocatedBytes,
        Internal::CollectionCauses,
        Internal::HeapPools,
    ];

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Internal::InvocationCounters => "invocation-counters",
            Internal::TypeProfiles => "type-profiles",
            Internal::SafepointTime => "safepoint-time",
            Internal::ParameterNames => "parameter-names",
            Internal::RunningCode => "running-code",
            Internal::AllocatedBytes => "allocated-bytes",
            Internal::CollectionCauses => "collection-causes",
            Internal::HeapPools => "heap-pools",
        }
    }

    /// The JDKs that are known to be as each expects: the end-to-end tests run on both ends, and in between.
    pub const KNOWN_JDKS: RangeInclusive<u32> = 11..=25;
}

/// How something of HotSpot's stands in a JVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Standing {
    /// A test in this JVM has shown that it is as expected.
    Holds,
    /// This JVM describes it; it is tested when it is first used.
    Untested,
    /// This JVM can do without.
    NotNeeded,
    /// A test in this JVM failed, or it is switched off there.
    Failed,
    /// It has not been tried: nobody knows whether this JDK is as expected.
    UnknownJdk,
}

impl Standing {
    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Standing::Holds => "holds",
            Standing::Untested => "untested",
            Standing::NotNeeded => "not needed",
            Standing::Failed => "failed",
            Standing::UnknownJdk => "unknown JDK",
        }
    }
}

/// The second frame, from the tool; the segment's file descriptor comes with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// [`crate::PROTOCOL_VERSION`].
    pub protocol: u32,
    /// After this long, a thread of the target that waits for the tool goes on without it, unless the tool says otherwise later.
    pub deadline_ms: u32,
}
