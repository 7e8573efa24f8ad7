//! The JVM's events, on whatever thread they happen.

use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};

use headwater_modified_utf8 as modified_utf8;
use headwater_protocol::message::events::{JvmEvent, Owner, Pool, Sort, Thread, What};
use jni::sys::{JNIEnv, jclass, jint, jmethodID, jobject};

use super::buffer::{Frame, Raw};
use super::named::{java_name, shortened};
use super::{Visit, current, lock};
use crate::guard;
use crate::hotspot::{causes, collectors, heap};
use crate::jni_env::Jni;
use crate::jvmti::{Callbacks, CompileRecord, Env, class_status, jthread};
use crate::os::monotonic_ns;

/// Calls on a stack that are told of where a thread waits.
const DEPTH: usize = 8;
/// ... where it loads a class: below the cause there may be a program's own loaders.
const LOADING_DEPTH: usize = 24;
/// Who has a monitor is asked no more often than this: each time is a safepoint.
const OWNER_PERIOD_NS: i64 = 100_000_000;

/// When the collection that goes on began, and what was in use.
static COLLECTING: Mutex<Option<(i64, Vec<u64>)>> = Mutex::new(None);
/// When a monitor's owner was asked for last.
static ASKED: AtomicI64 = AtomicI64::new(i64::MIN);

/// The mark of a class that has been told of.
const TOLD: i64 = 1;

thread_local! {
    /// The wait for a monitor that this thread is in.
    static WAITING: RefCell<Option<Waiting>> = const { RefCell::new(None) };
}

struct Waiting {
    /// A virtual thread may leave this one while it waits.
    thread: i64,
    began_ns: i64,
    owner: Option<(Owner, Vec<Frame>)>,
}

/// The callbacks of a visit's environment.
pub fn callbacks() -> Callbacks {
    Callbacks {
        vm_death: Some(vm_death),
        thread_start: Some(thread_start),
        thread_end: Some(thread_end),
        class_load: Some(class_load),
        compiled_method_load: Some(compiled_method_load),
        compiled_method_unload: Some(compiled_method_unload),
        monitor_contended_enter: Some(monitor_contended_enter),
        monitor_contended_entered: Some(monitor_contended_entered),
        garbage_collection_start: Some(garbage_collection_start),
        garbage_collection_finish: Some(garbage_collection_finish),
        ..Callbacks::default()
    }
}

fn with_visit(tell: impl FnOnce(&Visit)) {
    guard((), || {
        if let Some(visit) = current() {
            tell(&visit);
        }
    });
}

/// For an event for which there is room, on a thread that may be asked things.
fn of_sort(sort: Sort, env: *mut JNIEnv, tell: impl FnOnce(&Visit, Jni)) {
    with_visit(|visit| {
        if !visit.buffer.has_room(sort) {
            return;
        }
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        // An exception of the program's would be cleared.
        if jni.exception_pending() { visit.buffer.leave_out(sort) } else { tell(visit, jni) }
    });
}

impl Visit {
    fn thread(&self, jni: Jni, thread: jthread) -> Thread {
        self.thread_and_kind(jni, thread).0
    }

    fn thread_and_kind(&self, jni: Jni, thread: jthread) -> (Thread, bool) {
        let (name, is_daemon) = self.jvmti.name_and_kind(jni, thread).unwrap_or_default();
        (Thread { id: jni.thread_id(thread).unwrap_or_default(), name: shortened(name) }, is_daemon)
    }

    /// A thread's innermost calls, the innermost first.
    fn stack(&self, thread: jthread, depth: usize) -> Vec<Frame> {
        self.jvmti.calls(thread, depth).unwrap_or_default().iter().rev().map(Frame::of).collect()
    }

    /// Whether a class has been loaded just now. The JVM tells of it again when it is found by another loader, and not for the first time.
    fn is_new(&self, class: jclass, signature: &str) -> bool {
        // A hidden class is found by nobody, and linked by now.
        let is_hidden = signature.contains('.');
        let is_linked = || self.jvmti.class_status(class).is_ok_and(|status| status & class_status::PREPARED != 0);
        if is_hidden {
            return true;
        }
        let is_new = !is_linked() && self.jvmti.tag(class).is_ok_and(|tag| tag == 0);
        if is_new {
            // One that cannot be marked may be told of twice.
            let _ = self.jvmti.set_tag(class, TOLD);
        }
        is_new
    }

    /// The class of an object.
    fn class_of(&self, jni: Jni, object: jobject) -> String {
        let class = jni.object_class(object);
        let signature = self.jvmti.class_signature(class);
        jni.delete_local(class);
        java_name(&signature.unwrap_or_default())
    }

    /// Who has a monitor, if it is time to ask.
    fn owner(&self, jni: Jni, monitor: jobject, now_ns: i64) -> Option<(Owner, Vec<Frame>)> {
        let asked = ASKED.load(Ordering::Relaxed);
        let is_time = now_ns.saturating_sub(asked) >= OWNER_PERIOD_NS;
        if !is_time || ASKED.compare_exchange(asked, now_ns, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return None;
        }
        let owner = self.jvmti.monitor_owner(jni, monitor).ok().filter(|owner| !owner.is_null())?;
        let stack = self.stack(owner, DEPTH);
        let found = Owner { thread: self.thread(jni, owner), stack: Vec::new() };
        jni.delete_local(owner);
        Some((found, stack))
    }
}

unsafe extern "system" fn vm_death(_jvmti: *mut Env, env: *mut JNIEnv) {
    // SAFETY: the JVM calls with the current thread's environment.
    with_visit(|visit| visit.vm_death(unsafe { Jni::from_raw(env) }));
}

unsafe extern "system" fn thread_start(_jvmti: *mut Env, env: *mut JNIEnv, thread: jthread) {
    of_sort(Sort::ThreadStart, env, |visit, jni| {
        let (thread, is_daemon) = visit.thread_and_kind(jni, thread);
        visit.buffer.add(JvmEvent { time_ns: monotonic_ns(), what: What::ThreadStart { thread, is_daemon } });
    });
}

unsafe extern "system" fn thread_end(_jvmti: *mut Env, env: *mut JNIEnv, thread: jthread) {
    of_sort(Sort::ThreadEnd, env, |visit, jni| {
        let thread = visit.thread(jni, thread);
        visit.buffer.add(JvmEvent { time_ns: monotonic_ns(), what: What::ThreadEnd { thread } });
    });
}

unsafe extern "system" fn class_load(_jvmti: *mut Env, env: *mut JNIEnv, thread: jthread, class: jclass) {
    of_sort(Sort::ClassLoad, env, |visit, jni| {
        let time_ns = monotonic_ns();
        let name = visit.jvmti.class_signature(class).unwrap_or_default();
        if !visit.is_new(class, &name) {
            return;
        }
        let loader = visit.jvmti.class_loader(class).ok().filter(|loader| !loader.is_null());
        let loader_class = loader.map(|loader| visit.class_of(jni, loader));
        loader.into_iter().for_each(|loader| jni.delete_local(loader));
        let what = What::ClassLoad {
            class: java_name(&name),
            loader: loader_class,
            thread: visit.thread(jni, thread),
            stack: Vec::new(),
        };
        let stack = visit.stack(thread, LOADING_DEPTH);
        visit.buffer.add(Raw { stack, ..JvmEvent { time_ns, what }.into() });
    });
}

/// HotSpot calls this on a thread of its own, some time after the collection that unloaded the class.
pub unsafe extern "system" fn class_unload(_jvmti: *mut Env, _env: *mut JNIEnv, name: *const c_char) {
    with_visit(|visit| {
        if name.is_null() || !visit.buffer.has_room(Sort::ClassUnload) {
            return;
        }
        // SAFETY: the JVM passes a zero-terminated string.
        let name = modified_utf8::decode(unsafe { CStr::from_ptr(name) }.to_bytes());
        let class = shortened(name.replace('/', "."));
        visit.buffer.add(JvmEvent { time_ns: monotonic_ns(), what: What::ClassUnload { class } });
    });
}

unsafe extern "system" fn monitor_contended_enter(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    thread: jthread,
    monitor: jobject,
) {
    with_visit(|visit| {
        let began_ns = monotonic_ns();
        // SAFETY: the JVM calls with the current thread's environment.
        let jni = unsafe { Jni::from_raw(env) };
        let waiting = (!jni.exception_pending()).then(|| {
            let owner = visit.owner(jni, monitor, began_ns);
            Waiting { thread: jni.thread_id(thread).unwrap_or_default(), began_ns, owner }
        });
        WAITING.set(waiting);
    });
}

unsafe extern "system" fn monitor_contended_entered(
    _jvmti: *mut Env,
    env: *mut JNIEnv,
    thread: jthread,
    monitor: jobject,
) {
    of_sort(Sort::Wait, env, |visit, jni| {
        let ended_ns = monotonic_ns();
        let waiter = visit.thread(jni, thread);
        // One that began before this was on, or elsewhere.
        let Some(waiting) = WAITING.take().filter(|waiting| waiting.thread == waiter.id) else {
            return visit.buffer.leave_out(Sort::Wait);
        };
        let (owner, owner_stack) = waiting.owner.unzip();
        let what = What::Wait {
            duration_ns: u64::try_from(ended_ns - waiting.began_ns).unwrap_or_default(),
            class: visit.class_of(jni, monitor),
            thread: waiter,
            stack: Vec::new(),
            owner,
        };
        let event = JvmEvent { time_ns: waiting.began_ns, what };
        visit.buffer.add(Raw {
            event,
            stack: visit.stack(thread, DEPTH),
            owner_stack: owner_stack.unwrap_or_default(),
        });
    });
}

unsafe extern "system" fn compiled_method_load(
    _jvmti: *mut Env,
    method: jmethodID,
    code_size: jint,
    _code: *const c_void,
    _map_length: jint,
    _map: *const c_void,
    _record: *const CompileRecord,
) {
    with_visit(|visit| {
        if visit.buffer.has_room(Sort::Compilation) {
            let bytes = u32::try_from(code_size).unwrap_or_default();
            visit.about(method, What::Compilation { method: 0, bytes });
        }
    });
}

unsafe extern "system" fn compiled_method_unload(_jvmti: *mut Env, method: jmethodID, _code: *const c_void) {
    with_visit(|visit| {
        if visit.buffer.has_room(Sort::Discard) {
            visit.about(method, What::Discard { method: 0 });
        }
    });
}

impl Visit {
    fn about(&self, method: jmethodID, what: What) {
        let event = JvmEvent { time_ns: monotonic_ns(), what };
        self.buffer.add(Raw { stack: vec![Frame::of_method(method)], ..event.into() });
    }
}

/// What was in use before and after. A JVM that has not said so before its first collection has nothing in use then.
fn pools(names: &[String], before: &[u64], after: &[u64]) -> Vec<Pool> {
    let is_known = |metaspace: bool| {
        let mut pools = names.iter().zip(before);
        pools.any(|(name, used)| (name == heap::METASPACE) == metaspace && *used > 0)
    };
    let known = [is_known(false), is_known(true)];
    let pools = names.iter().zip(before).zip(after);
    let pool = |((name, before), after): ((&String, &u64), &u64)| {
        let before = known[usize::from(name == heap::METASPACE)].then_some(*before);
        Pool { name: name.clone(), before, after: *after }
    };
    pools.map(pool).collect()
}

unsafe extern "system" fn garbage_collection_start(_jvmti: *mut Env) {
    guard((), || {
        // In this order: what is read here is not the collection's own time.
        let used = heap::used();
        *lock(&COLLECTING) = Some((monotonic_ns(), used));
    });
}

unsafe extern "system" fn garbage_collection_finish(_jvmti: *mut Env) {
    let now_ns = monotonic_ns();
    with_visit(|visit| {
        let Some((time_ns, before)) = lock(&COLLECTING).take() else { return };
        let pools = pools(heap::names(), &before, &heap::used());
        let duration_ns = u64::try_from(now_ns - time_ns).unwrap_or_default();
        let collector = collectors::latest().map(str::to_owned);
        let what = What::Collection { duration_ns, cause: causes::now(), collector, pools };
        visit.buffer.add_collection(JvmEvent { time_ns, what });
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn before_its_first_collection_a_jvm_has_not_said_what_is_in_use() {
        let names = ["eden", "old", heap::METASPACE].map(str::to_owned);
        let before = |used: [u64; 3]| pools(&names, &used, &[1, 2, 3]).into_iter().map(|pool| pool.before);
        assert!(before([0, 0, 0]).eq([None, None, None]));
        assert!(before([0, 0, 5]).eq([None, None, Some(5)]));
        assert!(before([7, 0, 0]).eq([Some(7), Some(0), None]));
    }
}
