//! What threads allocate, counted by probes that read [where HotSpot keeps it](crate::hotspot::allocation), and told too when a virtual thread changes its
//! carrier, whose account it is.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::hotspot::HotSpot;
use crate::hotspot::allocation::Unknown;
use crate::jni_env::Jni;
use crate::jvmti::{Capabilities, Error, Extension, ExtensionCallback, Jvmti, capability};
use crate::runtime::Runtime;

/// The first JDK that has virtual threads.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

/// Virtual threads tell when they change carriers.
static ARE_MOUNTS_TOLD: AtomicBool = AtomicBool::new(false);

/// What the JVM calls when a virtual thread changes its carrier.
#[derive(Clone, Copy, Debug)]
pub struct Mounts {
    /// It is about to leave one.
    pub unmounts: ExtensionCallback,
    /// It goes on, on some other.
    pub mounted: ExtensionCallback,
}

/// From now on it is counted.
pub fn begin((jvmti, jni): (Jvmti, Jni), hotspot: &HotSpot, runtime: &Runtime, mounts: Mounts) -> Result<(), String> {
    let described = hotspot.allocation.as_ref().ok_or(Unknown::Undescribed);
    let places = described.and_then(|described| described.tried(jvmti, jni)).map_err(|unknown| unknown.to_string())?;
    let version = jvmti.system_property("java.vm.specification.version");
    if version.and_then(|version| version.parse().ok()).is_none_or(|version: u32| version >= FIRST_WITH_VIRTUAL_THREADS)
    {
        tell_mounts(jvmti, mounts).map_err(|error| Unknown::Mounts(error).to_string())?;
    }
    runtime.count_allocation(jni, places).map_err(|thrown| thrown.to_string())
}

fn tell_mounts(jvmti: Jvmti, mounts: Mounts) -> Result<(), Error> {
    jvmti.add_capabilities(&Capabilities::of(&[capability::VIRTUAL_THREADS]))?;
    ARE_MOUNTS_TOLD.store(true, Ordering::Relaxed);
    jvmti.enable_extension(Extension::VirtualThreadUnmount, mounts.unmounts)?;
    jvmti.enable_extension(Extension::VirtualThreadMount, mounts.mounted)
}

/// It is no longer.
pub fn end(jvmti: Jvmti) {
    if ARE_MOUNTS_TOLD.swap(false, Ordering::Relaxed) {
        for event in [Extension::VirtualThreadMount, Extension::VirtualThreadUnmount] {
            let _ = jvmti.disable_extension(event);
        }
    }
}
