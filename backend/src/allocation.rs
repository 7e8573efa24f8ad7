//! What threads allocate, counted by probes that read [where HotSpot keeps it](crate::hotspot::allocation), and told too when a virtual thread changes its
//! carrier, whose account it is.

use std::sync::atomic::{AtomicBool, Ordering};

use jni::sys::JNIEnv;

use crate::counting::in_session;
use crate::hotspot::HotSpot;
use crate::hotspot::allocation::Unknown;
use crate::jni_env::Jni;
use crate::jvmti::{Capabilities, Env, Error, Extension, Jvmti, capability, jthread};
use crate::runtime::Runtime;

/// The first JDK that has virtual threads.
const FIRST_WITH_VIRTUAL_THREADS: u32 = 21;

/// Virtual threads tell when they change carriers.
static ARE_MOUNTS_TOLD: AtomicBool = AtomicBool::new(false);

/// From now on it is counted.
pub fn begin(jvmti: Jvmti, jni: Jni, hotspot: &HotSpot, runtime: &Runtime) -> Result<(), String> {
    let described = hotspot.allocation.as_ref().ok_or(Unknown::Undescribed);
    let places = described.and_then(|described| described.tried(jvmti, jni)).map_err(|unknown| unknown.to_string())?;
    let version = jvmti.system_property("java.vm.specification.version");
    if version.and_then(|version| version.parse().ok()).is_none_or(|version: u32| version >= FIRST_WITH_VIRTUAL_THREADS)
    {
        tell_mounts(jvmti).map_err(|error| Unknown::Mounts(error).to_string())?;
    }
    runtime.count_allocation(jni, places).map_err(|thrown| thrown.to_string())
}

fn tell_mounts(jvmti: Jvmti) -> Result<(), Error> {
    jvmti.add_capabilities(&Capabilities::of(&[capability::VIRTUAL_THREADS]))?;
    ARE_MOUNTS_TOLD.store(true, Ordering::Relaxed);
    jvmti.enable_extension(Extension::VirtualThreadUnmount, unmounts)?;
    jvmti.enable_extension(Extension::VirtualThreadMount, mounted)
}

/// It is no longer.
pub fn end(jvmti: Jvmti) {
    if ARE_MOUNTS_TOLD.swap(false, Ordering::Relaxed) {
        for event in [Extension::VirtualThreadMount, Extension::VirtualThreadUnmount] {
            let _ = jvmti.disable_extension(event);
        }
    }
}

unsafe extern "system" fn unmounts(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread) {
    in_session(env, |session, jni| session.runtime.unmounts(jni));
}

unsafe extern "system" fn mounted(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread) {
    in_session(env, |session, jni| session.runtime.mounted(jni));
}
