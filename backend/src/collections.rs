//! Garbage collections, told to the tool as they end.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use headwater_protocol::collections::Collection;
use headwater_protocol::layout::HEAP_UNKNOWN;

use crate::hotspot::{causes, collectors, heap};
use crate::jvmti::{Capabilities, Error, EventKind, Jvmti, capability};
use crate::os::monotonic_ns;

const EVENTS: [EventKind; 2] = [EventKind::GarbageCollectionStart, EventKind::GarbageCollectionFinish];
/// When the collection that goes on began; 0 if none does.
static BEGAN: AtomicI64 = AtomicI64::new(0);
/// How many bytes of the heap were in use then.
static HEAP_BEFORE: AtomicU64 = AtomicU64::new(HEAP_UNKNOWN);

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
    HEAP_BEFORE.store(heap::all_used().unwrap_or(HEAP_UNKNOWN), Ordering::Relaxed);
    BEGAN.store(monotonic_ns(), Ordering::Relaxed);
}

/// The one that goes on has ended; `None` where its beginning was not seen.
pub fn ended() -> Option<Collection> {
    let start_ns = Some(BEGAN.swap(0, Ordering::Relaxed)).filter(|start_ns| *start_ns != 0)?;
    let duration_ns = (monotonic_ns() - start_ns).max(0) as u64;
    let heap_before = Some(HEAP_BEFORE.load(Ordering::Relaxed)).filter(|bytes| *bytes != HEAP_UNKNOWN);
    let cause = causes::now().unwrap_or_default();
    let collector = collectors::latest().unwrap_or_default().to_owned();
    Some(Collection { start_ns, duration_ns, heap_before, heap_after: heap::all_used(), cause, collector })
}
