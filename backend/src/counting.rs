//! What is counted beside calls: waiting for monitors and in them, classes, [collections], [bytes](allocation), and what the [kernel](kernel_counters)
//! counts. Each is off unless the tool asks, and costs nothing then; it may ask at any time. Exceptions, objects, other waits and class loaders are told of by probes, which are told whether to.
//!
//! Nothing is counted outside the call graph; the runtime knows whether a thread is in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use headwater_protocol::word::{Counter, Counting};
use jni::sys::jclass;

use crate::allocation;
use crate::carriers::{self, Mounts};
use crate::collections;
use crate::hotspot::HotSpot;
use crate::jni_env::Jni;
use crate::jvmti::{Capabilities, Error, EventKind, Jvmti, capability};
use crate::kernel_counters;
use crate::runtime::Runtime;
use crate::target::Target;

/// What is counted in a session.
#[derive(Debug)]
pub struct Counters {
    /// What virtual threads call when they change carriers.
    mounts: Mounts,
    now: Mutex<Counting>,
    classes: AtomicBool,
    bytes: AtomicBool,
}

const LOCKS: [EventKind; 2] = [EventKind::MonitorContendedEnter, EventKind::MonitorContendedEntered];
const LOADS: [EventKind; 1] = [EventKind::ClassLoad];
const WAITS: [EventKind; 2] = [EventKind::MonitorWait, EventKind::MonitorWaited];

impl Counters {
    /// Nothing yet.
    pub fn new(mounts: Mounts) -> Counters {
        Counters { mounts, now: Mutex::default(), classes: AtomicBool::new(false), bytes: AtomicBool::new(false) }
    }

    /// From now on this is counted, and nothing else.
    pub fn count(
        &self,
        jvmti: Jvmti,
        jni: Jni,
        (hotspot, runtime): (&HotSpot, &Runtime),
        what: Counting,
    ) -> Result<(), String> {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, kinds) = (now.by_kernel(), what.by_kernel());
        if before != kinds {
            // First: where the kernel refuses, what is counted stays as it is.
            kernel_counters::tried(kinds)?;
        }
        match (now.alloc, what.alloc) {
            (false, true) => {
                allocation::begin((jvmti, jni), hotspot, runtime, self.mounts)?;
                self.bytes.store(true, Ordering::Release);
            }
            (true, false) => {
                self.bytes.store(false, Ordering::Release);
                runtime.count_no_allocation(jni).map_err(|thrown| thrown.to_string())?;
            }
            _ => {}
        }
        if before != kinds && before != 0 {
            kernel_counters::end();
            runtime.count_none_by_kernel(jni).map_err(|thrown| thrown.to_string())?;
        }
        if before != kinds && kinds != 0 {
            kernel_counters::begin((jvmti, jni), runtime, self.mounts, kinds)?;
        }
        if what.at_events().is_nothing() {
            carriers::end(jvmti);
        }
        match (now.objects, what.objects) {
            (false, true) if !runtime.count_objects(jni).map_err(|thrown| thrown.to_string())? => {
                return Err("the JVM's arrays are not as large as expected".to_owned());
            }
            (true, false) => runtime.count_no_objects(jni).map_err(|thrown| thrown.to_string())?,
            _ => {}
        }
        self.switch_events(jvmti, *now, what).map_err(|error| error.to_string())?;
        runtime.tell(jni, what).map_err(|thrown| thrown.to_string())?;
        *now = what;
        Ok(())
    }

    fn switch_events(&self, jvmti: Jvmti, before: Counting, what: Counting) -> Result<(), Error> {
        let has_locks = |counting: Counting| counting.locks || counting.waits;
        if has_locks(what) && !has_locks(before) {
            jvmti.add_capabilities(&Capabilities::of(&[capability::MONITOR_EVENTS]))?;
        }
        let switches = [
            (has_locks(before), has_locks(what), &LOCKS[..]),
            (before.waits, what.waits, &WAITS[..]),
            (before.classes, what.classes, &LOADS[..]),
        ];
        for (was_on, is_on, events) in switches {
            match (was_on, is_on) {
                (false, true) => events.iter().try_for_each(|event| jvmti.enable(*event))?,
                (true, false) => events.iter().try_for_each(|event| jvmti.disable(*event))?,
                _ => {}
            }
        }
        match (before.gc, what.gc) {
            (false, true) => collections::begin(jvmti)?,
            (true, false) => collections::end(jvmti),
            _ => {}
        }
        self.classes.store(what.classes, Ordering::Release);
        Ok(())
    }

    /// Nothing is counted any more.
    pub fn stop(&self, jvmti: Jvmti) {
        self.classes.store(false, Ordering::Release);
        for event in LOCKS.into_iter().chain(WAITS).chain(LOADS) {
            let _ = jvmti.disable(event);
        }
        collections::end(jvmti);
        carriers::end(jvmti);
        kernel_counters::end();
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
