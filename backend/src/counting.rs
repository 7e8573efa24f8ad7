//! What is counted beside calls: waiting for monitors and in them, classes, [collections], [bytes](allocation). Off unless the tool asks: then it costs nothing.
//! Exceptions are counted by probes alone.
//!
//! Nothing is counted outside the call graph; the runtime knows whether a thread is in it.

use std::sync::atomic::{AtomicBool, Ordering};

use headwater_protocol::word::{Counter, Counting};
use jni::sys::jclass;

use crate::allocation::{self, Mounts};
use crate::collections;
use crate::hotspot::HotSpot;
use crate::jni_env::Jni;
use crate::jvmti::{Capabilities, Error, EventKind, Jvmti, capability};
use crate::runtime::Runtime;
use crate::target::Target;

/// What is counted in a session.
#[derive(Debug)]
pub struct Counters {
    /// What virtual threads call when they change carriers.
    mounts: Mounts,
    classes: AtomicBool,
    bytes: AtomicBool,
}

const LOCKS: [EventKind; 2] = [EventKind::MonitorContendedEnter, EventKind::MonitorContendedEntered];
const WAITS: [EventKind; 2] = [EventKind::MonitorWait, EventKind::MonitorWaited];

impl Counters {
    /// Nothing yet.
    pub fn new(mounts: Mounts) -> Counters {
        Counters { mounts, classes: AtomicBool::new(false), bytes: AtomicBool::new(false) }
    }

    /// From now on this is counted.
    pub fn count(
        &self,
        jvmti: Jvmti,
        jni: Jni,
        (hotspot, runtime): (&HotSpot, &Runtime),
        what: Counting,
    ) -> Result<(), String> {
        if what.alloc {
            allocation::begin((jvmti, jni), hotspot, runtime, self.mounts)?;
            self.bytes.store(true, Ordering::Release);
        }
        self.count_events(jvmti, what).map_err(|error| error.to_string())
    }

    fn count_events(&self, jvmti: Jvmti, what: Counting) -> Result<(), Error> {
        if what.locks || what.waits {
            jvmti.add_capabilities(&Capabilities::of(&[capability::MONITOR_EVENTS]))?;
        }
        let wanted =
            [(what.locks || what.waits, LOCKS), (what.waits, WAITS)].into_iter().filter(|(is_wanted, _)| *is_wanted);
        for event in wanted.flat_map(|(_, events)| events) {
            jvmti.enable(event)?;
        }
        if what.gc {
            collections::begin(jvmti)?;
        }
        if what.classes {
            jvmti.enable(EventKind::ClassLoad)?;
        }
        self.classes.store(what.classes, Ordering::Release);
        Ok(())
    }

    /// Nothing is counted any more.
    pub fn stop(&self, jvmti: Jvmti) {
        self.classes.store(false, Ordering::Release);
        for event in LOCKS.into_iter().chain(WAITS).chain([EventKind::ClassLoad]) {
            let _ = jvmti.disable(event);
        }
        collections::end(jvmti);
        allocation::end(jvmti);
    }

    /// Whether that is what threads allocate.
    pub fn are_bytes(&self) -> bool {
        self.bytes.load(Ordering::Acquire)
    }

    /// The current thread has loaded a class, perhaps.
    pub fn class_loaded(&self, target: &Target, jni: Jni, class: jclass) {
        if self.classes.load(Ordering::Acquire)
            && !jni.exception_pending()
            && let Some(id) = target.classes.newly_loaded(class)
        {
            target.runtime.counted(jni, Counter::Loaded, id.0);
        }
    }

    /// The current thread has linked a class.
    pub fn class_prepared(&self, target: &Target, jni: Jni, class: jclass) {
        if self.classes.load(Ordering::Acquire) && !jni.exception_pending() {
            let number = target.classes.id(class).map_or(0, |id| id.0);
            target.runtime.counted(jni, Counter::Classes, number);
        }
    }
}
