//! The runtime class's native methods: its slow paths.
//!
//! They carry JNI's own names, by which HotSpot finds them in agent libraries. Of `RegisterNatives` it would warn, in the target's own output, for a platform
//! class's methods are being bound.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use headwater_protocol::message::{MethodRef, Notice, Upcall};
use headwater_protocol::{MethodId, ThreadId};
use headwater_runtime_java::PROBE_CLASS;
use jni::sys::{JNIEnv, jboolean, jclass, jint, jlong, jmethodID, jobject, jstring};

use crate::guard;
use crate::jni_env::Jni;
use crate::jvmti::{Env, Jvmti, jthread};
use crate::kernel_counters;
use crate::os::{cpu_time_ns, os_thread};
use crate::runtime::{Native, Natives};
use crate::session;
use crate::tsc;

/// The natives' receiver, a class.
type Receiver = jobject;

/// Somebody has asked whether calibration is waited for.
static WAS_ASKED: AtomicBool = AtomicBool::new(false);

/// All of them.
pub fn all() -> Natives {
    let native = |name: &'static CStr, signature: &'static CStr, function| Native { name, signature, function };
    let telling = native(c"isWanted", c"()Z", Java_java_lang_HeadwaterV1_isWanted as *mut c_void);
    let all = vec![
        telling,
        native(c"entered", c"(I)V", Java_java_lang_HeadwaterV1_entered as *mut c_void),
        native(c"awaitChunk", c"()Z", Java_java_lang_HeadwaterV1_awaitChunk as *mut c_void),
        native(c"awaitGivenBack", c"()V", Java_java_lang_HeadwaterV1_awaitGivenBack as *mut c_void),
        native(c"reveal", c"(Ljava/lang/Object;)V", Java_java_lang_HeadwaterV1_reveal as *mut c_void),
        native(
            c"revealHandle",
            c"(Ljava/lang/Class;Ljava/lang/String;Ljava/lang/String;)V",
            Java_java_lang_HeadwaterV1_revealHandle as *mut c_void,
        ),
        native(c"revealReceiver", c"(Ljava/lang/Class;I)V", Java_java_lang_HeadwaterV1_revealReceiver as *mut c_void),
        native(c"classNumber", c"(Ljava/lang/Class;)J", Java_java_lang_HeadwaterV1_classNumber as *mut c_void),
        native(c"objectSize", c"(Ljava/lang/Object;)J", Java_java_lang_HeadwaterV1_objectSize as *mut c_void),
        native(c"openCalls", c"(J)I", Java_java_lang_HeadwaterV1_openCalls as *mut c_void),
        native(c"cpuTime", c"()J", Java_java_lang_HeadwaterV1_cpuTime as *mut c_void),
        native(c"kernelCounters", c"(I)J", Java_java_lang_HeadwaterV1_kernelCounters as *mut c_void),
        native(c"readTsc", c"()J", Java_java_lang_HeadwaterV1_readTsc as *mut c_void),
        native(c"started", c"(Ljava/lang/Thread;JZ)V", Java_java_lang_HeadwaterV1_started as *mut c_void),
    ];
    Natives { all, telling, told: &WAS_ASKED }
}

/// Has the JVM take the native methods that it looks for from this agent: another build's library is there too, and has the same names.
///
/// # Safety
/// Only the JVM calls this.
pub unsafe extern "system" fn native_method_bind(
    jvmti: *mut Env,
    jni: *mut JNIEnv,
    _thread: jthread,
    method: jmethodID,
    _found: *mut c_void,
    instead: *mut *mut c_void,
) {
    guard((), || {
        // SAFETY: the JVM calls with its own environment and the current thread's.
        let (jvmti, jni) = unsafe { (Jvmti::from_raw(jvmti), Jni::from_raw(jni)) };
        let Ok(class) = jvmti.declaring_class(method) else { return };
        let is_ours = jvmti.class_signature(class).is_ok_and(|name| name == format!("L{PROBE_CLASS};"));
        jni.delete_local(class);
        let (true, Ok((name, descriptor))) = (is_ours, jvmti.method_name(method)) else { return };
        let is_meant = |native: &Native| {
            native.name.to_bytes() == name.as_bytes() && native.signature.to_bytes() == descriptor.as_bytes()
        };
        if let Some(native) = all().all.into_iter().find(is_meant) {
            // SAFETY: the JVM's own variable, for that.
            unsafe { *instead = native.function };
        }
    });
}

/// An instrumented method is entered for the first time: its callees are instrumented before this returns, unless that happens in
/// the background.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_entered(env: *mut JNIEnv, _class: Receiver, method: jint) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        session.ask_and_follow(jni, Upcall::FirstCall(MethodId(method as u32)));
    });
}

/// A method is about to be called by reflection, which `executable` stands for: it is instrumented before this returns, unless that
/// happens in the background.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_reveal(
    env: *mut JNIEnv,
    _class: Receiver,
    executable: jobject,
) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let Some(method) = session.target.classes.reflected(jni, executable) else { return };
        session.ask_and_follow(jni, Upcall::Reflected(method));
    });
}

/// A method is about to be called by a method handle, or one that overrides it: as above.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_revealHandle(
    env: *mut JNIEnv,
    _class: Receiver,
    owner: jclass,
    name: jstring,
    descriptor: jstring,
) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let Ok(class) = session.target.classes.id(owner) else { return };
        let method = MethodRef { class, name: jni.string(name), descriptor: jni.string(descriptor) };
        session.ask_and_follow(jni, Upcall::Reflected(method));
    });
}

/// A call is about to be made on an object of a class for the first time, which `number` stands for: what it runs is instrumented
/// before this returns.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_revealReceiver(
    env: *mut JNIEnv,
    _class: Receiver,
    receiver: jclass,
    number: jint,
) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let Ok(class) = session.target.classes.id(receiver) else { return };
        session.ask_and_follow(jni, Upcall::Received { call: number as u32, class });
    });
}

/// The number of a class; 0 without a session.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_classNumber(
    _env: *mut JNIEnv,
    _class: Receiver,
    numbered: jclass,
) -> jlong {
    guard(0, || {
        session::enter().and_then(|session| session.target.classes.id(numbered).ok()).map_or(0, |id| id.0 as jlong)
    })
}

/// How large an object is, in bytes; 0 without a session.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_objectSize(
    _env: *mut JNIEnv,
    _class: Receiver,
    object: jobject,
) -> jlong {
    guard(0, || session::enter().and_then(|session| session.target.jvmti.object_size(object).ok()).unwrap_or_default())
}

/// Waits for a free chunk.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_awaitChunk(_env: *mut JNIEnv, _class: Receiver) -> jboolean {
    guard(false, || session::enter().is_some_and(|session| session.await_chunk()))
}

/// Whether somebody waits for the calibration that goes on. The tool is heard meanwhile.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_isWanted(_env: *mut JNIEnv, _class: Receiver) -> jboolean {
    WAS_ASKED.store(true, Ordering::Relaxed);
    guard(false, || session::current().is_some_and(|session| session.target.connection.attend()))
}

/// Waits until instrumented code has been given back.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_awaitGivenBack(_env: *mut JNIEnv, _class: Receiver) {
    // Not as one who is inside: the end of the session waits for those.
    guard((), || session::current().into_iter().for_each(|session| session.stay()));
}

/// How many of the calls that a thread, the current one, was in when recording began are still open.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_openCalls(
    env: *mut JNIEnv,
    _class: Receiver,
    tid: jlong,
) -> jint {
    guard(0, || {
        let Some(session) = session::enter() else { return 0 };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        session.open_calls.of_current(jni, &session.target, ThreadId(tid as u64)) as jint
    })
}

/// CPU time of the current thread, in ns.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_cpuTime(_env: *mut JNIEnv, _class: Receiver) -> jlong {
    cpu_time_ns()
}

/// Reads what the kernel counts of the current thread.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_kernelCounters(
    _env: *mut JNIEnv,
    _class: Receiver,
    what: jint,
) -> jlong {
    guard(0, || {
        kernel_counters::act(what, |reason| {
            if let Some(session) = session::enter() {
                session.target.connection.notice(Notice::Uncounted { reason });
            }
        })
    })
}

/// The time stamp counter.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_readTsc(_env: *mut JNIEnv, _class: Receiver) -> jlong {
    tsc::read() as jlong
}

/// A thread enters the call graph for the first time.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Java_java_lang_HeadwaterV1_started(
    env: *mut JNIEnv,
    _class: Receiver,
    thread: jobject,
    tid: jlong,
    is_virtual: jboolean,
) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let name = session.target.jvmti.thread_name(jni, thread).unwrap_or_default();
        let os_thread = (!is_virtual).then(os_thread);
        session.target.connection.notice(Notice::ThreadStarted { thread: ThreadId(tid as u64), name, os_thread });
    });
}
