//! What is counted beside calls: waiting for monitors, classes, [collections], [bytes](allocation). Off unless the tool asks: then it costs nothing.
//!
//! The JVM tells of a wait on the thread that waits. Nothing is counted outside the call graph; the runtime knows whether a thread is in it.

use std::sync::atomic::{AtomicBool, Ordering};

use headwater_protocol::word::{Counter, Counting};
use jni::sys::{JNIEnv, jlong, jobject};

use crate::allocation;
use crate::collections;
use crate::guard;
use crate::hotspot::HotSpot;
use crate::jni_env::Jni;
use crate::jvmti::{Capabilities, Env, Error, EventKind, Jvmti, capability, jthread};
use crate::runtime::Runtime;
use crate::session::{self, Session};

/// What is counted in a session.
#[derive(Debug, Default)]
pub struct Counters {
    classes: AtomicBool,
    bytes: AtomicBool,
}

const LOCKS: [EventKind; 2] = [EventKind::MonitorContendedEnter, EventKind::MonitorContendedEntered];
const WAITS: [EventKind; 2] = [EventKind::MonitorWait, EventKind::MonitorWaited];

impl Counters {
    /// From now on this is counted.
    pub fn count(
        &self,
        jvmti: Jvmti,
        jni: Jni,
        (hotspot, runtime): (&HotSpot, &Runtime),
        what: Counting,
    ) -> Result<(), String> {
        if what.alloc {
            allocation::begin(jvmti, jni, hotspot, runtime)?;
            self.bytes.store(true, Ordering::Release);
        }
        self.count_events(jvmti, what).map_err(|error| error.to_string())
    }

    fn count_events(&self, jvmti: Jvmti, what: Counting) -> Result<(), Error> {
        if what.locks || what.waits {
            jvmti.add_capabilities(&Capabilities::of(&[capability::MONITOR_EVENTS]))?;
        }
        let wanted = [(what.locks, LOCKS), (what.waits, WAITS)].into_iter().filter(|(is_wanted, _)| *is_wanted);
        for event in wanted.flat_map(|(_, events)| events) {
            jvmti.enable(event)?;
        }
        if what.gc {
            collections::begin(jvmti)?;
        }
        self.classes.store(what.classes, Ordering::Release);
        Ok(())
    }

    /// Nothing is counted any more.
    pub fn stop(&self, jvmti: Jvmti) {
        self.classes.store(false, Ordering::Release);
        for event in LOCKS.into_iter().chain(WAITS) {
            let _ = jvmti.disable(event);
        }
        collections::end(jvmti);
        allocation::end(jvmti);
    }

    /// Whether that is what threads allocate.
    pub fn are_bytes(&self) -> bool {
        self.bytes.load(Ordering::Acquire)
    }

    /// The current thread has linked a class.
    pub fn class_prepared(&self, session: &Session, jni: Jni) {
        if self.classes.load(Ordering::Acquire) && !jni.exception_pending() {
            session.runtime.counted(jni, Counter::Classes, 1);
        }
    }
}

/// Runs on the thread that waits, inside a session.
pub(crate) fn in_session(env: *mut JNIEnv, tell: impl FnOnce(&Session, Jni)) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        // With an exception pending no Java code may run.
        if !session.is_restoring() && !jni.exception_pending() {
            tell(&session, jni);
        }
    });
}

pub(crate) unsafe extern "system" fn monitor_contended_enter(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
) {
    in_session(env, |session, jni| session.runtime.waits(jni));
}

pub(crate) unsafe extern "system" fn monitor_contended_entered(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
) {
    in_session(env, |session, jni| session.runtime.waited(jni, Counter::BlockedNs, Counter::Blocked));
}

pub(crate) unsafe extern "system" fn monitor_wait(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
    _timeout_ms: jlong,
) {
    in_session(env, |session, jni| session.runtime.waits(jni));
}

pub(crate) unsafe extern "system" fn monitor_waited(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    _thread: jthread,
    _monitor: jobject,
    _timed_out: u8,
) {
    in_session(env, |session, jni| session.runtime.waited(jni, Counter::WaitedNs, Counter::Waited));
}
