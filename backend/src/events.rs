//! What happens in this JVM, told as it happens: a visit of its own, with or without a [session](crate::session) beside it. It instruments nothing,
//! loads no class, and asks the tool nothing, so that no thread of the target ever waits for it.
//!
//! Threads of the target leave what happened in a [buffer], with as little work as can be; the agent's thread empties it, [names](named) what is
//! meant, and sends. What finds no room is counted.
//!
//! Why so: docs/decisions/events.md.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use headwater_protocol::PROTOCOL_VERSION;
use headwater_protocol::message::events::{Kind, Kinds, Telling};
use headwater_protocol::message::{Command, Greeting, Notice, Reply, RequestId, ToTool};
use headwater_protocol::pulse::End;
use jni::sys::JNIEnv;

use crate::connection::{AskError, Connection, Next};
use crate::guard;
use crate::hotspot;
use crate::jni_env::Jni;
use crate::jvmti::{Capabilities, Env, Error, EventKind, Extension, Jvmti, capability};
use crate::os::monotonic_ns;

mod buffer;
mod callbacks;
mod named;

use buffer::Buffer;

/// How often what happened is sent.
const PERIOD: Duration = Duration::from_millis(50);
/// How long the end of a visit waits for callbacks that are under way.
const LEAVE_DEADLINE: Duration = Duration::from_secs(2);
/// How often it looks.
const NAP: Duration = Duration::from_millis(1);

/// The visit that there is.
static CURRENT: RwLock<Option<Arc<Visit>>> = RwLock::new(None);

/// A tool that is told of events.
#[derive(Debug)]
struct Visit {
    jvmti: Jvmti,
    connection: Connection,
    buffer: Buffer,
    on: Mutex<Kinds>,
    /// Somebody wants it to end.
    is_enough: AtomicBool,
    /// The JVM goes down.
    vm_dead: AtomicBool,
    /// Everything is off.
    has_ended: AtomicBool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The visit that there is. Whoever has it is waited for at its end.
fn current() -> Option<Arc<Visit>> {
    CURRENT.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Whether a tool is told of events.
pub fn is_active() -> bool {
    current().is_some()
}

/// Has the visit end by itself, and waits for that, for at most `patience`. Whether there is none now.
pub fn end(patience: Duration) -> bool {
    let Some(visit) = current() else { return true };
    visit.is_enough.store(true, Ordering::Release);
    wait_for_end(visit, patience)
}

/// Whether there is no visit, or one whose tool is gone, and which is over within `patience`.
pub fn is_free(patience: Duration) -> bool {
    current().is_none_or(|visit| visit.connection.is_closed() && wait_for_end(visit, patience))
}

fn wait_for_end(visit: Arc<Visit>, patience: Duration) -> bool {
    // Who is waited for is not to wait for us: this looks by a reference that it does not count.
    let watched = Arc::downgrade(&visit);
    drop(visit);
    let deadline = Instant::now() + patience;
    while Instant::now() < deadline {
        let Some(visit) = watched.upgrade() else { return true };
        if visit.has_ended.load(Ordering::Acquire) {
            return true;
        }
        drop(visit);
        std::thread::sleep(NAP);
    }
    false
}

/// Connects to the tool, and starts the agent's thread for it; nothing is told of yet.
pub fn begin(jvmti: Jvmti, jni: Jni, socket: &Path) -> Result<(), String> {
    let refused = |error: Error| format!("JVMTI refuses the agent: {error}");
    jvmti.add_capabilities(&Capabilities::of(&[capability::LINE_NUMBERS])).map_err(refused)?;
    jvmti.set_callbacks(&callbacks::callbacks()).map_err(refused)?;
    let greeting = Greeting {
        protocol: PROTOCOL_VERSION,
        pid: std::process::id(),
        vm_version: jvmti.system_property("java.vm.version").unwrap_or_default(),
        java_version: jvmti.system_property("java.version").unwrap_or_default(),
        startup: false,
        internals: Vec::new(),
    };
    let (connection, _segment) = Connection::open(socket, greeting).map_err(|error| error.to_string())?;
    connection.presence().watch();
    let visit = Visit {
        jvmti,
        connection,
        buffer: Buffer::default(),
        on: Mutex::default(),
        is_enough: AtomicBool::new(false),
        vm_dead: AtomicBool::new(false),
        has_ended: AtomicBool::new(false),
    };
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(visit));
    let started = jvmti
        .enable(EventKind::VmDeath)
        .map_err(|error| error.to_string())
        .and_then(|()| jni.new_thread("Headwater events").map_err(|error| error.to_string()))
        .and_then(|thread| jvmti.run_agent_thread(thread, agent_thread).map_err(|error| error.to_string()));
    if started.is_err() {
        forget();
    }
    started.map_err(|error| format!("the agent's thread could not be started: {error}"))
}

fn forget() {
    *CURRENT.write().unwrap_or_else(PoisonError::into_inner) = None;
}

unsafe extern "system" fn agent_thread(_jvmti: *mut Env, env: *mut JNIEnv, _: *mut std::ffi::c_void) {
    guard((), || {
        let Some(visit) = current() else { return };
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let detach = guard(None, || visit.serve(jni));
        if !visit.vm_dead.load(Ordering::Acquire) {
            leave(visit, jni, detach);
        }
    });
}

impl Visit {
    /// Tells the tool until it detaches, whose request is returned, or goes away. On the agent's own thread.
    fn serve(&self, jni: Jni) -> Option<RequestId> {
        self.connection.read_here();
        loop {
            if self.connection.presence().is_given_up() {
                self.connection.presence().end(End::Silence);
                return None;
            }
            if self.is_enough.load(Ordering::Acquire) {
                self.connection.presence().end(End::Detached);
                return None;
            }
            self.tell(jni).ok()?;
            let is_any_on = !lock(&self.on).is_empty();
            let next = [is_any_on.then(|| Instant::now() + PERIOD), self.connection.presence().next_look()];
            match self.connection.next_command(|| next.into_iter().flatten().min()) {
                Next::Command(request, Command::Detach) => return Some(request),
                Next::Command(request, Command::Tell(kinds)) => {
                    let reply = self.switch(kinds).map(Reply::Telling);
                    self.connection.send(&ToTool::Reply { request, reply }).ok()?;
                }
                Next::Command(request, _) => {
                    let reply = Err("an agent that tells of events does nothing else".to_owned());
                    self.connection.send(&ToTool::Reply { request, reply }).ok()?;
                }
                Next::Deadline => {}
                Next::Closed => return None,
            }
        }
    }

    /// Sends what has happened since the last time.
    fn tell(&self, jni: Jni) -> Result<(), AskError> {
        let taken = self.buffer.take();
        if taken.is_empty() {
            return Ok(());
        }
        self.connection.send(&ToTool::Notice(Notice::Happened(named::named(self.jvmti, jni, taken))))
    }

    /// Switches kinds on and off. The first that cannot be is the error; those before it are as they should be.
    fn switch(&self, wanted: Kinds) -> Result<Telling, String> {
        let mut on = lock(&self.on);
        let mut telling = Telling { now_ns: monotonic_ns(), has_unloads: true, has_pools: true };
        for kind in Kind::ALL {
            if on.has(kind) && !wanted.has(kind) {
                switch_off(self.jvmti, kind);
                *on = on.without(kind);
            }
            if wanted.has(kind) && !on.has(kind) {
                if let Err(error) = switch_on(self.jvmti, kind) {
                    switch_off(self.jvmti, kind);
                    return Err(error.to_string());
                }
                *on = on.with(kind);
            }
            match kind {
                Kind::Gc if on.has(kind) => telling.has_pools = hotspot::find_collections(self.jvmti),
                Kind::Classes if on.has(kind) => {
                    telling.has_unloads = self.jvmti.enable_unloads(callbacks::class_unload).is_ok();
                }
                _ => {}
            }
        }
        Ok(telling)
    }

    /// The JVM goes down: the tool is told what has happened until now.
    fn vm_death(&self, jni: Jni) {
        self.vm_dead.store(true, Ordering::Release);
        // What cannot be sent is lost, as the JVM is.
        let _ = self.tell(jni);
        self.connection.presence().end(End::JvmEnds);
        self.connection.notice(Notice::VmDeath);
        self.connection.close();
    }
}

/// The events of a kind, and the capabilities that they need.
fn events_of(kind: Kind) -> (&'static [EventKind], &'static [u32]) {
    match kind {
        Kind::Gc => (
            &[EventKind::GarbageCollectionStart, EventKind::GarbageCollectionFinish],
            &[capability::GARBAGE_COLLECTION_EVENTS],
        ),
        Kind::Classes => (&[EventKind::ClassLoad], &[capability::TAG_OBJECTS]),
        Kind::Threads => (&[EventKind::ThreadStart, EventKind::ThreadEnd], &[]),
        Kind::Monitors => (
            &[EventKind::MonitorContendedEnter, EventKind::MonitorContendedEntered],
            &[capability::MONITOR_EVENTS, capability::MONITOR_INFO],
        ),
        Kind::Compile => {
            (&[EventKind::CompiledMethodLoad, EventKind::CompiledMethodUnload], &[capability::COMPILED_METHOD_LOAD])
        }
    }
}

fn switch_on(jvmti: Jvmti, kind: Kind) -> Result<(), Error> {
    let (events, capabilities) = events_of(kind);
    jvmti.add_capabilities(&Capabilities::of(capabilities))?;
    events.iter().try_for_each(|event| jvmti.enable(*event))
}

/// In the other order, as far as anything was on.
fn switch_off(jvmti: Jvmti, kind: Kind) {
    let (events, capabilities) = events_of(kind);
    for event in events {
        let _ = jvmti.disable(*event);
    }
    if kind == Kind::Classes {
        let _ = jvmti.disable_extension(Extension::ClassUnload);
    }
    let _ = jvmti.relinquish_capabilities(&Capabilities::of(capabilities));
}

/// Turns everything off, tells what is left, and answers `detach` if there is somebody to be answered.
fn leave(visit: Arc<Visit>, jni: Jni, detach: Option<RequestId>) {
    let jvmti = visit.jvmti;
    Kind::ALL.into_iter().for_each(|kind| switch_off(jvmti, kind));
    let _ = jvmti.disable(EventKind::VmDeath);
    forget();
    // Callbacks that are under way have the visit, too.
    let deadline = Instant::now() + LEAVE_DEADLINE;
    while Arc::strong_count(&visit) > 1 && Instant::now() < deadline {
        std::thread::sleep(NAP);
    }
    // A tool that is gone is not told.
    let told = visit.tell(jni);
    if let Some(request) = detach
        && told.is_ok()
    {
        let _ = visit.connection.send(&ToTool::Reply { request, reply: Ok(Reply::Done) });
    }
    visit.connection.close();
    // A thread that is still inside may use the environment: it is then left alone, with all its events off.
    if Arc::strong_count(&visit) == 1 {
        let _ = jvmti.dispose();
    }
    visit.has_ended.store(true, Ordering::Release);
}
