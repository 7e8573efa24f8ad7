//! The runtime class inside the target: defining it, its native methods, and what the agent calls of it.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use headwater_protocol::message::Calibration;
use headwater_protocol::segment::Segment;
use headwater_protocol::word::{Counter, Counting, PauseReason};
use headwater_protocol::{MethodId, ThreadId, layout, word};
use headwater_runtime_java::{CLASSES, FORMER_NAMES, PROBE_CLASS, PROBES, SESSION_CLASS, UNSAFE_CLASS};
use jni::sys::{jclass, jint, jmethodID, jvalue};

use crate::hotspot::allocation::Places;
use crate::jni_env::{Jni, Thrown};
use crate::jvmti::{Capabilities, EventKind, Jvmti, capability};
use crate::tsc;

/// The runtime's class that the agent calls, once it has been defined: it stays until the JVM ends.
#[derive(Debug)]
pub struct Runtime {
    class: jclass,
    attach: jmethodID,
    record: jmethodID,
    stop: jmethodID,
    hold: jmethodID,
    let_go: jmethodID,
    threads: jmethodID,
    calibrate: jmethodID,
    thread_end: jmethodID,
    pausing: jmethodID,
    paused: jmethodID,
    count_allocation: jmethodID,
    count_no_allocation: jmethodID,
    count_by_kernel: jmethodID,
    count_none_by_kernel: jmethodID,
    tell: jmethodID,
    count_objects: jmethodID,
    count_no_objects: jmethodID,
    unmounts: jmethodID,
    mounted: jmethodID,
    counted: jmethodID,
    waits: jmethodID,
    waited: jmethodID,
    open: jmethodID,
    returned: jmethodID,
}

// SAFETY: a global reference and method ids of a class that is never unloaded; valid in every thread.
unsafe impl Send for Runtime {}
// SAFETY: as above.
unsafe impl Sync for Runtime {}

static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// Why the runtime's classes cannot be used.
#[derive(Clone, Copy, Debug, thiserror::Error)]
pub enum InstallError {
    /// The JVM does not take them.
    #[error("the runtime class could not be defined in the target: {0}. Is its heap or metaspace exhausted?")]
    Thrown(#[from] Thrown),
    /// They are there already, and instrumented code could not call them.
    #[error(
        "the classes of another Headwater version are in this JVM, which keeps them until it ends: use that version for it, or restart it"
    )]
    OtherVersion,
}

/// One of its native methods.
#[derive(Clone, Copy, Debug)]
pub struct Native {
    /// Its name.
    pub name: &'static CStr,
    /// Its descriptor.
    pub signature: &'static CStr,
    /// What the JVM calls.
    pub function: *mut c_void,
}

impl Native {
    fn call(&self, jni: Jni, class: jclass) -> Result<(), Thrown> {
        let method = jni.static_method(class, &self.name.to_string_lossy(), &self.signature.to_string_lossy())?;
        jni.call_with_zeros(class, method, self.signature)
    }
}

/// All of its native methods.
#[derive(Debug)]
pub struct Natives {
    /// Each.
    pub all: Vec<Native>,
    /// One that does nothing without a session but to set a flag, if it is this build's.
    pub telling: Native,
    /// The flag.
    pub told: &'static AtomicBool,
}

impl Natives {
    /// Whether the JVM calls this agent's; or nobody's: then it looks for code among agents that have been attached, as this one will be.
    fn are_bound(&self, jni: Jni, class: jclass) -> bool {
        self.told.store(false, Ordering::Relaxed);
        self.telling.call(jni, class).is_err() || self.told.load(Ordering::Relaxed)
    }

    /// Has the JVM call this agent's instead of those of another build, whose library has the same names.
    fn bind(&self, (jvmti, jni): (Jvmti, Jni), class: jclass) -> Result<(), Thrown> {
        // Of `RegisterNatives` the JVM would warn, on the program's own output.
        let refused = |_| Thrown("JVMTI");
        jvmti.add_capabilities(&Capabilities::of(&[capability::NATIVE_METHOD_BIND])).map_err(refused)?;
        jvmti.enable(EventKind::NativeMethodBind).map_err(refused)?;
        let unbound = jni.unregister_natives(class);
        // Without a session of this build they do nothing. Where nobody's code is found, because the other's session never began, it will be this one's.
        for native in &self.all {
            let _ = native.call(jni, class);
        }
        jvmti.disable(EventKind::NativeMethodBind).map_err(refused)?;
        unbound
    }
}

impl Runtime {
    /// Defines the runtime's classes, or finds those that an earlier session left.
    pub fn install(jvmti: Jvmti, jni: Jni, natives: &Natives) -> Result<&'static Runtime, InstallError> {
        if let Some(runtime) = RUNTIME.get() {
            // Another build may have been here meanwhile.
            let class = jni.find_class(PROBE_CLASS)?;
            if !natives.are_bound(jni, class) {
                natives.bind((jvmti, jni), class)?;
            }
            jni.delete_local(class);
            return Ok(runtime);
        }
        let runtime = match defined(jvmti, jni) {
            // Defined by another build's agent, to which its native methods are bound.
            Some(class) => {
                Runtime::left_by_others((jvmti, jni), class, natives).map_err(|_| InstallError::OtherVersion)?
            }
            None => {
                let has_former_names = has_former_names(jni)?;
                for class in CLASSES {
                    let defined = if has_former_names {
                        jni.define_boot_class(class.name, &class.with_former_names())?
                    } else {
                        jni.define_boot_class(class.name, class.bytes)?
                    };
                    jni.delete_local(defined);
                }
                Runtime::find(jni)?
            }
        };
        Ok(RUNTIME.get_or_init(|| runtime))
    }

    /// Takes native methods over only if all that is needed is there.
    fn left_by_others((jvmti, jni): (Jvmti, Jni), class: jclass, natives: &Natives) -> Result<Runtime, Thrown> {
        for (name, descriptor) in PROBES {
            jni.static_method(class, name, descriptor)?;
        }
        for Native { name, signature, .. } in &natives.all {
            jni.static_method(class, &name.to_string_lossy(), &signature.to_string_lossy())?;
        }
        let runtime = Runtime::find(jni)?;
        natives.bind((jvmti, jni), class)?;
        jni.delete_local(class);
        Ok(runtime)
    }

    fn find(jni: Jni) -> Result<Runtime, Thrown> {
        let class = jni.find_class(SESSION_CLASS)?;
        let runtime = Runtime {
            class: jni.new_global(class),
            attach: jni.static_method(class, "attach", "(JIIJJ)V")?,
            record: jni.static_method(class, "record", "()V")?,
            stop: jni.static_method(class, "stop", "()J")?,
            hold: jni.static_method(class, "hold", "()J")?,
            let_go: jni.static_method(class, "letGo", "()V")?,
            threads: jni.static_method(class, "threads", "()J")?,
            calibrate: jni.static_method(class, "calibrate", "()[D")?,
            thread_end: jni.static_method(class, "threadEnd", "()V")?,
            pausing: jni.static_method(class, "pausing", "()V")?,
            paused: jni.static_method(class, "paused", "(IJ)V")?,
            count_allocation: jni.static_method(class, "countAllocation", "(JJJ)V")?,
            count_no_allocation: jni.static_method(class, "countNoAllocation", "()V")?,
            count_by_kernel: jni.static_method(class, "countByKernel", "()V")?,
            count_none_by_kernel: jni.static_method(class, "countNoneByKernel", "()V")?,
            tell: jni.static_method(class, "tell", "(IZZ)V")?,
            count_objects: jni.static_method(class, "countObjects", "()J")?,
            count_no_objects: jni.static_method(class, "countNoObjects", "()V")?,
            unmounts: jni.static_method(class, "unmounts", "()V")?,
            mounted: jni.static_method(class, "mounted", "()V")?,
            counted: jni.static_method(class, "counted", "(IJ)V")?,
            waits: jni.static_method(class, "waits", "()V")?,
            waited: jni.static_method(class, "waited", "(II)V")?,
            open: jni.static_method(class, "open", "(J[I)V")?,
            returned: jni.static_method(class, "returned", "(J)V")?,
        };
        jni.delete_local(class);
        Ok(runtime)
    }

    /// Begins a session over a mapped segment.
    pub fn attach(&self, jni: Jni, segment: &Segment) -> Result<(), Thrown> {
        let arguments = [
            jvalue { j: segment.address() as i64 },
            jvalue { i: segment.chunks() as jint },
            jvalue { i: segment.chunk_bytes() as jint },
            jvalue { j: layout::chunk_data(segment.chunks()) as i64 },
            jvalue { j: tsc::read as *const () as i64 },
        ];
        jni.call_static_void(self.class, self.attach, &arguments)
    }

    /// Lets instrumented methods record.
    pub fn record(&self, jni: Jni) -> Result<(), Thrown> {
        jni.call_static_void(self.class, self.record, &[])
    }

    /// Ends recording; returns the `nanoTime` of that moment.
    pub fn stop(&self, jni: Jni) -> Result<i64, Thrown> {
        jni.call_static_long(self.class, self.stop)
    }

    /// Has threads that leave the call graph wait for what is being given back; how many are in it, but for virtual ones.
    pub fn hold(&self, jni: Jni) -> Result<i64, Thrown> {
        jni.call_static_long(self.class, self.hold)
    }

    /// Lets threads leave without waiting, and forgets all threads.
    pub fn let_go(&self, jni: Jni) -> Result<(), Thrown> {
        jni.call_static_void(self.class, self.let_go, &[])
    }

    /// How many threads have been in the call graph; as many as there can be, if that cannot be told.
    pub fn threads(&self, jni: Jni) -> u32 {
        let threads = jni.call_static_long(self.class, self.threads);
        threads.ok().and_then(|threads| threads.try_into().ok()).unwrap_or(u32::MAX)
    }

    /// Times the probes (JFluid 5.3). On the thread that reads what the tool says: it is heard meanwhile, and when it is gone, what has been timed means
    /// nothing.
    pub fn calibrate(&self, jni: Jni) -> Result<Calibration, Thrown> {
        let [inner_ns, outer_ns, outside_ns, control_ns, inner_spread_ns, outer_spread_ns, object_ns] =
            jni.call_static_doubles(self.class, self.calibrate)?;
        Ok(Calibration { inner_ns, outer_ns, outside_ns, control_ns, inner_spread_ns, outer_spread_ns, object_ns })
    }

    /// A thread is inside these methods since before recording; the outermost comes first.
    pub fn open(&self, jni: Jni, thread: ThreadId, methods: &[MethodId]) -> Result<(), Thrown> {
        let methods: Vec<jint> = methods.iter().map(|method| method.0 as jint).collect();
        let methods = jni.new_ints(&methods)?;
        let opened =
            jni.call_static_void(self.class, self.open, &[jvalue { j: thread.0 as i64 }, jvalue { l: methods }]);
        jni.delete_local(methods);
        opened
    }

    /// A thread has left all those methods.
    pub fn returned(&self, jni: Jni, thread: ThreadId) {
        // An exception here was cleared; the thread then finds out by itself.
        let _ = jni.call_static_void(self.class, self.returned, &[jvalue { j: thread.0 as i64 }]);
    }

    /// The current thread is about to end.
    pub fn thread_end(&self, jni: Jni) {
        // An exception here (a StackOverflowError at most) was cleared: the chunk is then found ownerless at the end.
        let _ = jni.call_static_void(self.class, self.thread_end, &[]);
    }

    /// The current thread begins to do something for the profiler.
    pub fn pausing(&self, jni: Jni) {
        // An exception here was cleared; what is allocated then counts as the method's.
        let _ = jni.call_static_void(self.class, self.pausing, &[]);
    }

    /// The current thread was paused for the profiler.
    pub fn paused(&self, jni: Jni, reason: PauseReason, duration_ns: u64) {
        let duration = duration_ns.min(word::MAX_PAYLOAD) as i64;
        let arguments = [jvalue { i: reason.number() as jint }, jvalue { j: duration }];
        // An exception here was cleared; the pause then counts into the method's time.
        let _ = jni.call_static_void(self.class, self.paused, &arguments);
    }

    /// From now on what is allocated is counted.
    pub fn count_allocation(&self, jni: Jni, places: Places) -> Result<(), Thrown> {
        let Places { former, start, top } = places;
        let arguments = [former, start, top].map(|offset| jvalue { j: offset as i64 });
        jni.call_static_void(self.class, self.count_allocation, &arguments)
    }

    /// It no longer is.
    pub fn count_no_allocation(&self, jni: Jni) -> Result<(), Thrown> {
        jni.call_static_void(self.class, self.count_no_allocation, &[])
    }

    /// From now on what the kernel counts is told.
    pub fn count_by_kernel(&self, jni: Jni) -> Result<(), Thrown> {
        jni.call_static_void(self.class, self.count_by_kernel, &[])
    }

    /// It no longer is.
    pub fn count_none_by_kernel(&self, jni: Jni) -> Result<(), Thrown> {
        jni.call_static_void(self.class, self.count_none_by_kernel, &[])
    }

    /// From now on probes tell of these, as far as there are any, and of nothing else.
    pub fn tell(&self, jni: Jni, what: Counting) -> Result<(), Thrown> {
        let waits = what.waits_told() as jint;
        let arguments = [jvalue { i: waits }, jvalue { z: what.exceptions }, jvalue { z: what.bytecodes }];
        jni.call_static_void(self.class, self.tell, &arguments)
    }

    /// From now on objects are counted where they are made; whether the JVM lays them out as expected.
    pub fn count_objects(&self, jni: Jni) -> Result<bool, Thrown> {
        jni.call_static_long(self.class, self.count_objects).map(|alignment| alignment != 0)
    }

    /// They no longer are.
    pub fn count_no_objects(&self, jni: Jni) -> Result<(), Thrown> {
        jni.call_static_void(self.class, self.count_no_objects, &[])
    }

    /// The current thread, which is virtual, is about to leave its carrier.
    pub fn unmounts(&self, jni: Jni) {
        // An exception here (a StackOverflowError at most) was cleared; what it has allocated is not told then, or as a part of more.
        let _ = jni.call_static_void(self.class, self.unmounts, &[]);
    }

    /// It goes on.
    pub fn mounted(&self, jni: Jni) {
        let _ = jni.call_static_void(self.class, self.mounted, &[]);
    }

    /// Something happened in the method that the current thread is in.
    pub fn counted(&self, jni: Jni, counter: Counter, value: u64) {
        let arguments = [jvalue { i: counter.number() as jint }, jvalue { j: value.min(word::MAX_PAYLOAD) as i64 }];
        // An exception here (a StackOverflowError at most) was cleared; it is not counted then.
        let _ = jni.call_static_void(self.class, self.counted, &arguments);
    }

    /// The current thread begins to wait.
    pub fn waits(&self, jni: Jni) {
        let _ = jni.call_static_void(self.class, self.waits, &[]);
    }

    /// The current thread has waited: how long and how often goes to these counters.
    pub fn waited(&self, jni: Jni, time: Counter, times: Counter) {
        let arguments = [time, times].map(|counter| jvalue { i: counter.number() as jint });
        let _ = jni.call_static_void(self.class, self.waited, &arguments);
    }
}

/// The runtime's class, if it is there: a local reference. Not by asking for it: a debugger stops the whole program at an exception that nobody catches, be it one in
/// a native method's search for a class.
fn defined(jvmti: Jvmti, jni: Jni) -> Option<jclass> {
    let signature = format!("L{PROBE_CLASS};");
    let mut found = None;
    for class in jvmti.loaded_classes().unwrap_or_default() {
        match found.is_none() && jvmti.class_signature(class).is_ok_and(|it| it == signature) {
            true => found = Some(class),
            false => jni.delete_local(class),
        }
    }
    found
}

/// Whether this JDK's `Unsafe` is that of JDK 11.
fn has_former_names(jni: Jni) -> Result<bool, Thrown> {
    const DESCRIPTOR: &CStr = c"(Ljava/lang/Object;J)Ljava/lang/Object;";
    let class = jni.find_class(UNSAFE_CLASS)?;
    let [(now, former), _] = FORMER_NAMES;
    let has = |name| jni.has_method(class, name, DESCRIPTOR);
    // JDK 17 has both.
    let are_former = !has(now) && has(former);
    jni.delete_local(class);
    Ok(are_former)
}

/// Whether a method is the runtime's.
pub fn is_own(jvmti: Jvmti, jni: Jni, version: jmethodID) -> bool {
    let Ok(class) = jvmti.declaring_class(version) else { return false };
    let signature = jvmti.class_signature(class);
    jni.delete_local(class);
    signature.is_ok_and(|signature| signature.strip_prefix('L').is_some_and(|name| name.starts_with(PROBE_CLASS)))
}
