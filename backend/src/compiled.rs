//! What the JIT compiler has found worth compiling: methods that run often, and will do so again.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

use headwater_protocol::ClassId;
use headwater_protocol::message::MethodInfo;
use jni::sys::{jint, jmethodID};

use crate::classes::Classes;
use crate::connection::Connection;
use crate::guard;
use crate::jni_env::Jni;
use crate::jvmti::{CompileRecord, Env, Error, EventKind, InlinePlace, InlineRecord, Jvmti};

thread_local! {
    /// While this thread lists: the methods that it has been told of.
    static LISTED: RefCell<Option<HashSet<jmethodID>>> = const { RefCell::new(None) };
}

/// All methods that are compiled, by themselves or inlined in others, by their classes.
pub fn list(
    jvmti: Jvmti,
    jni: Jni,
    classes: &Classes,
    connection: &Connection,
) -> Result<Vec<(ClassId, Vec<MethodInfo>)>, Error> {
    LISTED.set(Some(HashSet::new()));
    let generated = jvmti.enable(EventKind::CompiledMethodLoad).and_then(|()| {
        let generated = jvmti.generate(EventKind::CompiledMethodLoad);
        jvmti.disable(EventKind::CompiledMethodLoad).and(generated)
    });
    let methods = LISTED.take().unwrap_or_default();
    generated?;
    let mut by_class: HashMap<ClassId, Vec<MethodInfo>> = HashMap::new();
    for method in connection.attending(methods.into_iter().collect()) {
        // A method whose class has been unloaded meanwhile has no name any more.
        if let Ok((class, info)) = describe(jvmti, jni, classes, method) {
            by_class.entry(class).or_default().push(info);
        }
    }
    Ok(by_class.into_iter().collect())
}

fn describe(jvmti: Jvmti, jni: Jni, classes: &Classes, method: jmethodID) -> Result<(ClassId, MethodInfo), Error> {
    let class = jvmti.declaring_class(method)?;
    let id = classes.id(class);
    jni.delete_local(class);
    let (name, descriptor) = jvmti.method_name(method)?;
    Ok((id?, MethodInfo { name, descriptor, access: jvmti.method_modifiers(method)? as u16, calls: Some(1) }))
}

/// The event's callback. Threads that do not list are told of what is compiled just now, and do not care.
pub unsafe extern "system" fn compiled_method_load(
    _jvmti: *mut Env,
    method: jmethodID,
    _code_size: jint,
    _code: *const c_void,
    _map_length: jint,
    _map: *const c_void,
    mut record: *const CompileRecord,
) {
    guard((), || {
        LISTED.with_borrow_mut(|listed| {
            let Some(listed) = listed else { return };
            listed.insert(method);
            // SAFETY: the JVM passes null, or a list of records that are as their kind says (jvmticmlr.h).
            while let Some(header) = unsafe { record.as_ref() } {
                if header.kind == CompileRecord::INLINE_INFO {
                    // SAFETY: as above.
                    listed.extend(unsafe { inlined(&*record.cast::<InlineRecord>()) });
                }
                record = header.next;
            }
        });
    });
}

/// # Safety
/// The record is as the JVM passes it to the event's callback.
unsafe fn inlined(record: &InlineRecord) -> Vec<jmethodID> {
    if record.places.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    let places: &[InlinePlace] = unsafe { std::slice::from_raw_parts(record.places, record.count.max(0) as usize) };
    let stacks = places.iter().filter(|place| !place.methods.is_null());
    // SAFETY: as above.
    stacks
        .flat_map(|place| unsafe { std::slice::from_raw_parts(place.methods, place.depth.max(0) as usize) })
        .copied()
        .collect()
}
