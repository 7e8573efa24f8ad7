//! The JVMTI events' callbacks.

use std::ffi::{CStr, c_char};
use std::ptr;

use headwater_protocol::ClassId;
use headwater_protocol::message::Upcall;
use headwater_protocol::word::PauseReason;
use jni::sys::{JNIEnv, jclass, jint, jobject};

use crate::compiled;
use crate::guard;
use crate::hotswap;
use crate::jni_env::Jni;
use crate::jvmti::{Callbacks, Env, jthread};
use crate::natives::cpu_time_ns;
use crate::peek;
use crate::session::{self, Session};

/// The callbacks of a session's environment.
pub fn callbacks() -> Callbacks {
    Callbacks {
        vm_death: Some(vm_death),
        thread_end: Some(thread_end),
        class_file_load_hook: Some(class_file_load_hook),
        class_prepare: Some(class_prepare),
        compiled_method_load: Some(compiled::compiled_method_load),
        ..Callbacks::default()
    }
}

unsafe extern "system" fn vm_death(_jvmti: *mut Env, _env: *mut JNIEnv) {
    guard((), || {
        if let Some(session) = session::enter() {
            session.vm_death();
        }
    });
}

unsafe extern "system" fn thread_end(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread) {
    guard((), || {
        if let Some(session) = session::enter() {
            // SAFETY: the JVM calls with the current thread's environment.
            session.runtime.thread_end(unsafe { Jni::from_raw(env) });
        }
    });
}

unsafe extern "system" fn class_prepare(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread, class: jclass) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        if session.is_restoring() || session.connection.is_closed() {
            return;
        }
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let Ok(Some(info)) = session.classes.info(jni, class) else { return };
        session.classes.defined(info.loader, &info.name);
        let reveal = || session.ask_and_follow(jni, Upcall::ClassPrepared(info));
        if session.waits() { pausing(&session, jni, reveal) } else { reveal() }
    });
}

#[allow(clippy::too_many_arguments, reason = "JVMTI's signature")]
unsafe extern "system" fn class_file_load_hook(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    class: jclass,
    loader: jobject,
    name: *const c_char,
    _protection_domain: jobject,
    length: jint,
    bytes: *const u8,
    new_length: *mut jint,
    new_bytes: *mut *mut u8,
) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        if session.is_restoring() || session.connection.is_closed() || name.is_null() || bytes.is_null() {
            return;
        }
        // SAFETY: the JVM calls with the current thread's environment, a zero-terminated name and `length` bytes.
        let (jni, name, bytes) = unsafe {
            (Jni::from_raw(env), CStr::from_ptr(name), std::slice::from_raw_parts(bytes, length.max(0) as usize))
        };
        let name = name.to_string_lossy();
        // When the first class of a named module is retransformed, HotSpot has Java code open the module to us. A class that
        // this loads comes here as if it were the one that is retransformed.
        let class = if class.is_null() || session.classes.is_named(class, &name) { class } else { ptr::null_mut() };
        // It is told of when it has been linked.
        if class.is_null() && !session.waits() {
            return;
        }
        if !class.is_null()
            && let Some(refused) = peek::refused(bytes)
        {
            if let Ok(memory) = session.jvmti.allocate(&refused) {
                // SAFETY: both are the JVM's places for the outcome.
                unsafe {
                    *new_length = refused.len() as jint;
                    *new_bytes = memory;
                }
            }
            return;
        }
        let ask = || -> Option<*mut u8> {
            let loader = session.classes.loader_id(jni, loader).ok()?;
            let id: Option<ClassId> = if class.is_null() { None } else { session.classes.id(class).ok() };
            let upcall = Upcall::ClassBytes { class: id, loader, name: name.to_string(), bytes: bytes.to_vec() };
            let answer = match id {
                Some(_) => session.ask_while_retransforming(upcall),
                None => session.ask_while_loading(upcall),
            };
            let replacement = match answer {
                Ok(Some(replacement)) => replacement,
                Ok(None) => {
                    if id.is_some() {
                        hotswap::hook_gave_back(&session.classes, loader, &name);
                    }
                    return None;
                }
                Err(_) => {
                    id.into_iter().for_each(hotswap::hook_unanswered);
                    return None;
                }
            };
            session.classes.mark_instrumented(loader, &name, class.is_null());
            // Whoever restores has seen the mark, or is seen here.
            if session.is_restoring() {
                return None;
            }
            let memory = session.jvmti.allocate(&replacement).ok()?;
            // SAFETY: both are the JVM's places for the outcome.
            unsafe { *new_length = replacement.len() as jint };
            Some(memory)
        };
        let replacement = if class.is_null() { pausing(&session, jni, ask) } else { ask() };
        if let Some(memory) = replacement {
            // SAFETY: as above.
            unsafe { *new_bytes = memory };
        }
        if !class.is_null() {
            hotswap::hook_done();
        }
    });
}

/// Has the time of `work` taken off the current thread's clock.
fn pausing<T>(session: &Session, jni: Jni, work: impl FnOnce() -> T) -> T {
    let now = stopwatch(session);
    let start = now();
    let result = work();
    // With an exception pending no Java code may run.
    if !jni.exception_pending() {
        let duration = u64::try_from(now() - start).unwrap_or_default();
        session.runtime.paused(jni, PauseReason::ClassLoad, duration);
    }
    result
}

/// What times a pause: the clock that the thread's events are timed by. In ns.
fn stopwatch(session: &Session) -> fn() -> i64 {
    if session.counts_cpu_time() { cpu_time_ns } else { monotonic_ns }
}

fn monotonic_ns() -> i64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}
