//! Headwater's JVMTI agent: the part that lives in the target JVM.
//!
//! It comes in by dynamic attach (`Agent_OnAttach`) or with the JVM (`-agentpath`, `Agent_OnLoad`), connects to the tool's
//! socket, and from then on does what the tool asks: list classes, retransform them, start and stop recording. Everything
//! that thinks is in the tool. When the tool detaches or goes away, it restores every class and ends.
//!
//! Options: `<socket>` to begin a session, `events=<socket>` to have [events] told, `detach=<socket>` to end what there is of both.

mod allocation;
mod below;
mod callbacks;
mod carriers;
mod class_file;
mod classes;
mod collections;
mod compiled;
mod connection;
mod constants;
mod counting;
mod events;
mod files;
mod free_chunks;
mod hotspot;
mod hotswap;
mod initiating;
mod jni_env;
mod jvmti;
mod kernel_counters;
mod mentions;
mod native_memory;
mod natives;
mod open_calls;
mod originals;
mod os;
mod patience;
mod peek;
mod presence;
mod profiles;
mod ranges;
mod retransformation;
mod runtime;
mod session;
mod settling;
mod stale;
mod target;
mod tsc;
mod versions;
mod waiting;
mod walk;
mod watch;

use std::ffi::{CStr, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jni::sys::{JNIEnv, JavaVM, jint};

use jni_env::Jni;
use jvmti::{Callbacks, Capabilities, Env, EventKind, Jvmti, capability};
use native_memory::FreeBefore;
use runtime::Runtime;

const OK: jint = 0;
const FAILED: jint = 1;
/// How long the end of another session may take.
const END_DEADLINE: Duration = Duration::from_secs(20);
/// How long that of another build's session may take: of one that goes on nothing else tells.
const OTHERS_END_DEADLINE: Duration = Duration::from_secs(3);
/// How long `main` waits for the tool in start-up mode.
const STARTUP_DEADLINE: Duration = Duration::from_secs(30);

/// In start-up mode, the tool's socket between `Agent_OnLoad` and `VMInit`.
static STARTUP_SOCKET: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Runs a callback; a panic, which would be a bug, must not unwind into the JVM.
fn guard<T>(otherwise: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(otherwise)
}

/// Dynamic attach: the JVM calls this on its "Attach Listener" thread.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnAttach(vm: *mut JavaVM, options: *const c_char, _: *mut c_void) -> jint {
    guard(FAILED, || {
        // SAFETY: the JVM passes a zero-terminated string, or null.
        let options = unsafe { text(options) };
        if let Some(socket) = options.strip_prefix("detach=") {
            let is_active = session::is_active() || events::is_active();
            let has_ended = [session::end(END_DEADLINE), events::end(END_DEADLINE)];
            let report = match (is_active, has_ended == [true; 2]) {
                (false, _) => "nothing to detach",
                (true, true) => "detached",
                (true, false) => "the session has not ended yet",
            };
            connection::decline(Path::new(socket), report);
            files::remove(Path::new(socket));
            return OK;
        }
        let events = options.strip_prefix("events=");
        let socket = Path::new(events.unwrap_or(&options));
        // SAFETY: the JVM's own interface.
        let begun = unsafe {
            match events {
                Some(_) => tell_events(vm, socket),
                None => begin(vm, socket),
            }
        };
        if let Err(reason) = &begun {
            connection::decline(socket, reason);
        }
        // By now the library is mapped and the tool knows, or is gone.
        files::remove(socket);
        if begun.is_ok() { OK } else { FAILED }
    })
}

/// Start-up mode: the JVM calls this before it is initialised.
///
/// # Safety
/// Only the JVM calls this.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn Agent_OnLoad(vm: *mut JavaVM, options: *const c_char, _: *mut c_void) -> jint {
    guard(OK, || {
        // SAFETY: the JVM passes a zero-terminated string, or null.
        let socket = PathBuf::from(unsafe { text(options) });
        let prepare = || -> Result<(), jvmti::Error> {
            // SAFETY: the JVM's own interface.
            let jvmti = unsafe {
                Jvmti::keep_one(vm)?;
                Jvmti::create(vm)?
            };
            jvmti.add_capabilities(&capabilities())?;
            jvmti.set_callbacks(&Callbacks { vm_init: Some(vm_init), ..callbacks::callbacks() })?;
            jvmti.enable(EventKind::VmInit)
        };
        match prepare() {
            Ok(()) => *STARTUP_SOCKET.lock().unwrap_or_else(PoisonError::into_inner) = Some(socket),
            // The program runs all the same, only without a profile.
            Err(error) => connection::decline(&socket, &format!("JVMTI refuses the agent: {error}")),
        }
        OK
    })
}

unsafe extern "system" fn vm_init(env: *mut Env, jni: *mut JNIEnv, _thread: jvmti::jthread) {
    guard((), || {
        let Some(socket) = STARTUP_SOCKET.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        // SAFETY: the JVM calls with its own environment and the current thread's.
        let (jvmti, jni) = unsafe { (Jvmti::from_raw(env), Jni::from_raw(jni)) };
        match start(jvmti, jni, &socket, true) {
            Ok(()) => {
                if let Some(session) = session::enter() {
                    session.wait_for_release(STARTUP_DEADLINE);
                }
            }
            Err(reason) => {
                let _ = jvmti.dispose();
                connection::decline(&socket, &reason);
            }
        }
    });
}

/// # Safety
/// `vm` is the JVM's own.
unsafe fn begin(vm: *mut JavaVM, socket: &Path) -> Result<(), String> {
    if !session::is_free(END_DEADLINE) {
        return Err("another Headwater is attached to this JVM already. Wait for it to end, or end it by \
                    `headwater detach <target>`"
            .to_owned());
    }
    if !ranges::are_free_of_others(OTHERS_END_DEADLINE) {
        return Err("another build of Headwater is attached to this JVM. Wait for it to end, or end it by its own \
                    `headwater detach <target>`"
            .to_owned());
    }
    // SAFETY: the caller's promise.
    let (jvmti, jni) = unsafe { environments(vm)? };
    let prepared = jvmti
        .add_capabilities(&capabilities())
        .and_then(|()| jvmti.set_callbacks(&callbacks::callbacks()))
        .map_err(|error| format!("JVMTI refuses the agent: {error}"));
    disposed_on_failure(jvmti, prepared.and_then(|()| start(jvmti, jni, socket, false)))
}

/// # Safety
/// `vm` is the JVM's own.
unsafe fn tell_events(vm: *mut JavaVM, socket: &Path) -> Result<(), String> {
    if !events::is_free(END_DEADLINE) {
        return Err("another Headwater is told of this JVM's events already. Wait for it to end, or end it by \
                    `headwater detach <target>`"
            .to_owned());
    }
    // SAFETY: the caller's promise.
    let (jvmti, jni) = unsafe { environments(vm)? };
    disposed_on_failure(jvmti, events::begin(jvmti, jni, socket))
}

/// A JVMTI environment for a visit, and this thread's of JNI.
///
/// # Safety
/// `vm` is the JVM's own.
unsafe fn environments(vm: *mut JavaVM) -> Result<(Jvmti, Jni), String> {
    let mut env: *mut c_void = std::ptr::null_mut();
    // SAFETY: `vm` is valid (the caller's promise); this thread is the JVM's own.
    let jni = unsafe {
        if ((**vm).v1_2.GetEnv)(vm, &mut env, jni::sys::JNI_VERSION_1_6) != 0 {
            return Err("this thread has no JNI environment".to_owned());
        }
        Jni::from_raw(env.cast())
    };
    // SAFETY: as above.
    let jvmti = unsafe { Jvmti::keep_one(vm).and_then(|()| Jvmti::create(vm)) };
    Ok((jvmti.map_err(|error| format!("the JVM offers no JVMTI: {error}"))?, jni))
}

fn disposed_on_failure(jvmti: Jvmti, begun: Result<(), String>) -> Result<(), String> {
    if begun.is_err() {
        let _ = jvmti.dispose();
    }
    begun
}

/// Opens a session and starts the agent's own thread.
fn start(jvmti: Jvmti, jni: Jni, socket: &Path, startup: bool) -> Result<(), String> {
    let runtime = Runtime::install(jvmti, jni, &natives::all()).map_err(|error| error.to_string())?;
    session::open((jvmti, jni, runtime), socket, startup, callbacks::MOUNTS)?;
    let started = jvmti
        .enable(EventKind::VmDeath)
        .map_err(|error| error.to_string())
        .and_then(|()| jni.new_thread("Headwater agent").map_err(|error| error.to_string()))
        .and_then(|thread| jvmti.run_agent_thread(thread, agent_thread).map_err(|error| error.to_string()));
    if started.is_err() {
        session::forget();
    }
    started.map_err(|error| format!("the agent's thread could not be started: {error}"))
}

unsafe extern "system" fn agent_thread(_jvmti: *mut Env, env: *mut JNIEnv, _: *mut c_void) {
    guard((), || {
        // Not counted as inside: it is this thread that waits for the others at the end.
        if let Some(session) = session::current() {
            // SAFETY: the JVM calls with the current thread's environment.
            let jni = unsafe { Jni::from_raw(env) };
            let memory = FreeBefore::now();
            let served = guard(false, || {
                session.serve(jni);
                true
            });
            // A bug of ours must not leave the target as it is now.
            if !served {
                session.leave(jni, None);
            }
            memory.give_back();
        }
    });
}

fn capabilities() -> Capabilities {
    Capabilities::of(&[
        capability::TAG_OBJECTS,
        capability::BYTECODES,
        capability::LINE_NUMBERS,
        capability::ALL_CLASS_HOOKS,
        capability::COMPILED_METHOD_LOAD,
        capability::CONSTANT_POOL,
        capability::RETRANSFORM_CLASSES,
        capability::RETRANSFORM_ANY_CLASS,
    ])
}

/// # Safety
/// `options` is null or a zero-terminated string.
unsafe fn text(options: *const c_char) -> String {
    if options.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(options) }.to_string_lossy().into_owned()
}
