//! Garbage collections, told to the tool as they end. The JVM calls while all threads stand still, on a thread that can do next to nothing: no
//! Java code, no function of JNI's or JVMTI's.

use std::sync::atomic::{AtomicI64, Ordering};

use headwater_protocol::collections::Collection;

use crate::guard;
use crate::hotspot::causes;
use crate::jvmti::{Capabilities, Env, Error, EventKind, Jvmti, capability};
use crate::natives::monotonic_ns;
use crate::session;

const EVENTS: [EventKind; 2] = [EventKind::GarbageCollectionStart, EventKind::GarbageCollectionFinish];
/// When the collection that goes on began; 0 if none does.
static BEGAN: AtomicI64 = AtomicI64::new(0);

/// From now on collections are told of.
pub fn begin(jvmti: Jvmti) -> Result<(), Error> {
    jvmti.add_capabilities(&Capabilities::of(&[capability::GARBAGE_COLLECTION_EVENTS]))?;
    EVENTS.into_iter().try_for_each(|event| jvmti.enable(event))
}

/// They are no longer.
pub fn end(jvmti: Jvmti) {
    for event in EVENTS {
        let _ = jvmti.disable(event);
    }
}

pub(crate) unsafe extern "system" fn garbage_collection_start(_jvmti: *mut Env) {
    BEGAN.store(monotonic_ns(), Ordering::Relaxed);
}

pub(crate) unsafe extern "system" fn garbage_collection_finish(_jvmti: *mut Env) {
    guard((), || {
        let start_ns = BEGAN.swap(0, Ordering::Relaxed);
        let Some(session) = session::enter().filter(|_| start_ns != 0) else { return };
        let duration_ns = (monotonic_ns() - start_ns).max(0) as u64;
        let cause = causes::now().unwrap_or_default();
        session.collected(&Collection { start_ns, duration_ns, cause });
    });
}
