//! Why the JVM collects garbage, by its [performance data](super::perf_data). May be asked while it does.

use std::sync::OnceLock;

use headwater_protocol::layout::COLLECTION_CAUSE_BYTES;

use super::perf_data;
use super::vm_structs::{Description, Memory};

/// Why the JVM collects, or why it did last if that is [`NO_CAUSE`].
const COUNTERS: [&str; 2] = ["sun.gc.cause", "sun.gc.lastCause"];
/// What the JVM says between collections.
const NO_CAUSE: &str = "No GC";

static CAUSES: OnceLock<Option<Causes>> = OnceLock::new();

/// Where the JVM says it.
#[derive(Debug)]
struct Causes {
    memory: Memory,
    places: [u64; 2],
}

/// Finds it, once for all sessions. Whether it is there.
pub(super) fn find(memory: &Memory, described: &Description) -> bool {
    let find = || {
        let [now, last] = perf_data::find(memory, described, COUNTERS)?;
        Some(Causes { memory: memory.clone(), places: [now?, last?] })
    };
    CAUSES.get_or_init(find).is_some()
}

/// The cause of the collection that goes on, or has just ended; `None` where the JVM does not say.
pub fn now() -> Option<String> {
    let causes = CAUSES.get()?.as_ref()?;
    let read = |place| {
        let bytes = causes.memory.read::<COLLECTION_CAUSE_BYTES>(place)?;
        let text = bytes.split(|byte| *byte == 0).next()?;
        Some(String::from_utf8_lossy(text).into_owned())
    };
    // Some collectors have ended what the cause is known for when the JVM calls.
    causes.places.into_iter().filter_map(read).find(|cause| cause != NO_CAUSE)
}
