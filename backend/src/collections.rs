//! Garbage collections, told to the tool as they end.

use std::sync::atomic::{AtomicI64, Ordering};

use headwater_protocol::collections::Collection;

use crate::hotspot::causes;
use crate::jvmti::{Capabilities, Error, EventKind, Jvmti, capability};
use crate::os::monotonic_ns;

const EVENTS: [EventKind; 2] = [EventKind::GarbageCollectionStart, EventKind::GarbageCollectionFinish];
/// When the collection that goes on began; 0 if none does.
static BEGAN: AtomicI64 = AtomicI64::new(0);

/// From now on collections are told of.
pub fn begin(jvmti: Jvmti) -> Result<(), Error> {
    // What began when they were told of before may have ended since.
    BEGAN.store(0, Ordering::Relaxed);
    jvmti.add_capabilities(&Capabilities::of(&[capability::GARBAGE_COLLECTION_EVENTS]))?;
    EVENTS.into_iter().try_for_each(|event| jvmti.enable(event))
}

/// They are no longer.
pub fn end(jvmti: Jvmti) {
    for event in EVENTS {
        let _ = jvmti.disable(event);
    }
}

/// One begins.
pub fn begins() {
    BEGAN.store(monotonic_ns(), Ordering::Relaxed);
}

/// The one that goes on has ended; `None` where its beginning was not seen.
pub fn ended() -> Option<Collection> {
    let start_ns = Some(BEGAN.swap(0, Ordering::Relaxed)).filter(|start_ns| *start_ns != 0)?;
    let duration_ns = (monotonic_ns() - start_ns).max(0) as u64;
    Some(Collection { start_ns, duration_ns, cause: causes::now().unwrap_or_default() })
}
