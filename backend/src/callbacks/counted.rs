//! Events of what is counted beside calls. The JVM tells of a wait on the thread that waits, of a class on the thread that loads it, and of a collection while all threads are stopped, on a thread
//! that can do next to nothing: no Java code, no function of JNI's or JVMTI's.

use headwater_protocol::word::Counter;
use jni::sys::{JNIEnv, jclass, jlong, jobject};

use crate::carriers::Mounts;
use crate::collections;
use crate::guard;
use crate::jni_env::Jni;
use crate::jvmti::{Callbacks, Env, jthread};
use crate::runtime::Runtime;
use crate::session;

/// With the callbacks of these events.
pub fn with(others: Callbacks) -> Callbacks {
    Callbacks {
        class_load: Some(class_load),
        monitor_wait: Some(monitor_wait),
        monitor_waited: Some(monitor_waited),
        monitor_contended_enter: Some(monitor_contended_enter),
        monitor_contended_entered: Some(monitor_contended_entered),
        garbage_collection_start: Some(garbage_collection_start),
        garbage_collection_finish: Some(garbage_collection_finish),
        ..others
    }
}

/// What virtual threads call.
pub const MOUNTS: Mounts = Mounts { unmounts, mounted };

/// Runs on the thread that the event is of, inside a session.
fn tell(env: *mut JNIEnv, tell: impl FnOnce(&Runtime, Jni)) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        // With an exception pending no Java code may run.
        if !session.is_restoring() && !jni.exception_pending() {
            tell(session.target.runtime, jni);
        }
    });
}

unsafe extern "system" fn class_load(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread, class: jclass) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        session.counting.class_loaded(&session.target, jni, class);
    });
}

unsafe extern "system" fn monitor_contended_enter(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
) {
    tell(env, |runtime, jni| runtime.waits(jni));
}

unsafe extern "system" fn monitor_contended_entered(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
) {
    tell(env, |runtime, jni| runtime.waited(jni, Counter::BlockedNs, Counter::Blocked));
}

unsafe extern "system" fn monitor_wait(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
    _timeout_ms: jlong,
) {
    tell(env, |runtime, jni| runtime.waits(jni));
}

unsafe extern "system" fn monitor_waited(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
    _timed_out: u8,
) {
    tell(env, |runtime, jni| runtime.waited(jni, Counter::WaitedNs, Counter::Waited));
}

unsafe extern "system" fn unmounts(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread) {
    tell(env, |runtime, jni| runtime.unmounts(jni));
}

unsafe extern "system" fn mounted(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread) {
    tell(env, |runtime, jni| runtime.mounted(jni));
}

unsafe extern "system" fn garbage_collection_start(_jvmti: *mut Env) {
    guard((), collections::begins);
}

unsafe extern "system" fn garbage_collection_finish(_jvmti: *mut Env) {
    guard((), || {
        if let Some((collection, session)) = collections::ended().zip(session::enter()) {
            session.collected(&collection);
        }
    });
}
