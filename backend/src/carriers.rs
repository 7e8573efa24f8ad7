//! Virtual threads tell when they change their carriers, on whose account they run ([bytes](crate::allocation), what the [kernel](crate::kernel_counters)
//! counts): told before they leave one, and read anew when they go on. HotSpot's events, on only while such a thing is counted.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::jvmti::{Capabilities, Error, Extension, ExtensionCallback, Jvmti, capability};

/// The first JDK that has virtual threads.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

static ARE_TOLD: AtomicBool = AtomicBool::new(false);

/// What the JVM calls when a virtual thread changes its carrier.
#[derive(Clone, Copy, Debug)]
pub struct Mounts {
    /// It is about to leave one.
    pub unmounts: ExtensionCallback,
    /// It goes on, on some other.
    pub mounted: ExtensionCallback,
}

/// From now on, if there are virtual threads in this JVM.
pub fn begin(jvmti: Jvmti, mounts: Mounts) -> Result<(), Error> {
    let version = jvmti.system_property("java.vm.specification.version");
    if version.and_then(|version| version.parse().ok()).is_some_and(|version: u32| version < FIRST_WITH_VIRTUAL_THREADS)
        || ARE_TOLD.load(Ordering::Relaxed)
    {
        return Ok(());
    }
    jvmti.add_capabilities(&Capabilities::of(&[capability::VIRTUAL_THREADS]))?;
    ARE_TOLD.store(true, Ordering::Relaxed);
    jvmti.enable_extension(Extension::VirtualThreadUnmount, mounts.unmounts)?;
    jvmti.enable_extension(Extension::VirtualThreadMount, mounts.mounted)
}

/// They no longer do.
pub fn end(jvmti: Jvmti) {
    if ARE_TOLD.swap(false, Ordering::Relaxed) {
        for event in [Extension::VirtualThreadMount, Extension::VirtualThreadUnmount] {
            let _ = jvmti.disable_extension(event);
        }
    }
}
