//! The JVMTI events' callbacks.

use std::borrow::Cow;
use std::ffi::{CStr, c_char};

use headwater_modified_utf8 as modified_utf8;
use headwater_protocol::message::Upcall;
use headwater_protocol::word::PauseReason;
use headwater_protocol::{ClassId, LoaderId};
use jni::sys::{JNIEnv, jclass, jint, jobject};

use crate::compiled;
use crate::guard;
use crate::hotswap;
use crate::jni_env::Jni;
use crate::jvmti::{Callbacks, Env, jthread};
use crate::natives;
use crate::originals::{self, Occasion};
use crate::os::{cpu_time_ns, monotonic_ns};
use crate::peek;
use crate::session::{self, Session};

mod counted;

pub use counted::MOUNTS;

/// The callbacks of a session's environment.
pub fn callbacks() -> Callbacks {
    Callbacks {
        vm_death: Some(vm_death),
        thread_end: Some(thread_end),
        class_file_load_hook: Some(class_file_load_hook),
        class_prepare: Some(class_prepare),
        native_method_bind: Some(natives::native_method_bind),
        compiled_method_load: Some(compiled::compiled_method_load),
        ..counted::with(Callbacks::default())
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
            session.target.runtime.thread_end(unsafe { Jni::from_raw(env) });
        }
    });
}

unsafe extern "system" fn class_prepare(_jvmti: *mut Env, env: *mut JNIEnv, _thread: jthread, class: jclass) {
    guard((), || {
        let Some(session) = session::enter() else { return };
        if asks_nobody(&session) {
            return;
        }
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        session.counting.class_prepared(&session.target, jni, class);
        let Ok(Some(info)) = session.target.classes.info(jni, class) else { return };
        session.target.classes.defined(info.loader, &info.name);
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
        if name.is_null() || bytes.is_null() {
            return;
        }
        // SAFETY: the JVM calls with the current thread's environment, a zero-terminated name and `length` bytes.
        let (jni, name, bytes) = unsafe {
            (Jni::from_raw(env), CStr::from_ptr(name), std::slice::from_raw_parts(bytes, length.max(0) as usize))
        };
        let name = modified_utf8::decode(name.to_bytes());
        let hand_out = |replacement: &[u8]| {
            // Without memory the class stays what it is.
            if let Ok(memory) = session.target.jvmti.allocate(replacement) {
                // SAFETY: both are the JVM's places for the outcome.
                unsafe {
                    *new_length = replacement.len() as jint;
                    *new_bytes = memory;
                }
            }
        };
        // When the first class of a named module is retransformed, HotSpot has Java code open the module to us. A class that
        // this loads comes here as if it were the one that is retransformed.
        if class.is_null() || !session.target.classes.is_named(class, &name) {
            // Without waiting it is told of when it has been linked.
            if !asks_nobody(&session) && session.waits() {
                let loaded = Hooked { session: &session, jni, loader, name: &name, class: None };
                if let Some(replacement) = pausing(&session, jni, || loaded.ask(bytes)) {
                    hand_out(&replacement);
                }
            }
            return;
        }
        if let Some(refused) = peek::refused(bytes) {
            hand_out(&refused);
            return;
        }
        let Ok(id) = session.target.classes.id(class) else { return };
        let hooked = Hooked { session: &session, jni, loader, name: &name, class: Some(id) };
        let occasion = hooked.occasion(id);
        let has_probes = originals::has_probes(bytes);
        // It has probes already, if somebody redefines it with what he was shown; or keeps them, if it has nothing else to be given back.
        if has_probes && (occasion == Occasion::Others || asks_nobody(&session)) {
            hotswap::hook_done();
            return;
        }
        let known = (session.target.jvmti, jni, &session.target.hotspot);
        let original = match has_probes {
            true => Err(originals::OUR_CODE.to_owned()),
            false => session.originals.of(known, (class, id), bytes, occasion),
        };
        match original {
            Ok(original) => {
                let replacement = if asks_nobody(&session) { None } else { hooked.ask(&original) };
                match (replacement, original) {
                    (Some(replacement), _) => hand_out(&replacement),
                    (None, Cow::Owned(original)) => hand_out(&original),
                    (None, Cow::Borrowed(_)) => {}
                }
            }
            Err(reason) => {
                if !asks_nobody(&session) {
                    // It is told why of those methods that it was asked for.
                    hooked.ask(bytes);
                }
                hotswap::hook_leaves_alone(id, reason);
                hand_out(&peek::NO_CLASS);
            }
        }
        hotswap::hook_done();
    });
}

/// A class that the class file hook is called for.
struct Hooked<'h> {
    session: &'h Session,
    jni: Jni,
    loader: jobject,
    /// Its internal name.
    name: &'h str,
    /// `None` while it is being loaded.
    class: Option<ClassId>,
}

impl Hooked<'_> {
    fn loader_id(&self) -> Option<LoaderId> {
        self.session.target.classes.loader_id(self.jni, self.loader).ok()
    }

    /// Who retransforms it.
    fn occasion(&self, class: ClassId) -> Occasion {
        if !hotswap::is_ours() {
            return Occasion::Others;
        }
        let is_instrumented = |loader| self.session.target.classes.is_instrumented(loader, self.name);
        let has_other_code = hotswap::is_restored(class) || self.loader_id().is_some_and(is_instrumented);
        if has_other_code { Occasion::Instrumented } else { Occasion::Ours }
    }

    /// What the tool makes of it, if anything.
    fn ask(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        let (session, loader) = (self.session, self.loader_id()?);
        let upcall =
            Upcall::ClassBytes { class: self.class, loader, name: self.name.to_owned(), bytes: bytes.to_vec() };
        let answer = match self.class {
            Some(_) => session.ask_while_retransforming(upcall),
            None => session.ask_while_loading(upcall),
        };
        let replacement = match answer {
            Ok(Some(replacement)) => replacement,
            Ok(None) => {
                if self.class.is_some() {
                    hotswap::hook_gave_back(&session.target.classes, loader, self.name);
                }
                return None;
            }
            Err(_) => {
                self.class.into_iter().for_each(hotswap::hook_unanswered);
                return None;
            }
        };
        if session.target.classes.mark_instrumented(loader, self.name, self.class.is_none()) && hotswap::is_ours() {
            hotswap::hook_gave(loader, self.name);
        }
        // Whoever restores has seen the mark, or is seen here.
        (!session.is_restoring()).then_some(replacement)
    }
}

/// Whether hooks change nothing and ask nobody.
fn asks_nobody(session: &Session) -> bool {
    session.is_restoring() || session.target.connection.is_closed()
}

/// Has the time of `work` taken off the current thread's clock.
fn pausing<T>(session: &Session, jni: Jni, work: impl FnOnce() -> T) -> T {
    let now = stopwatch(session);
    // With an exception pending no Java code may run.
    if session.counting.are_bytes() && !jni.exception_pending() {
        session.target.runtime.pausing(jni);
    }
    let start = now();
    let result = work();
    if !jni.exception_pending() {
        let duration = u64::try_from(now() - start).unwrap_or_default();
        session.target.runtime.paused(jni, PauseReason::ClassLoad, duration);
    }
    result
}

/// What times a pause: the clock that the thread's events are timed by. In ns.
fn stopwatch(session: &Session) -> fn() -> i64 {
    if session.counts_cpu_time() { cpu_time_ns } else { monotonic_ns }
}
