//! What the JIT compilers have found worth compiling: methods that run often, and will do so again, and what has inlined what.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::ffi::c_void;

use headwater_protocol::message::{CompiledCode, CompiledPiece, MethodRef};
use jni::sys::{jint, jmethodID};

use crate::classes::Classes;
use crate::connection::Connection;
use crate::guard;
use crate::jni_env::Jni;
use crate::jvmti::{CompileRecord, Env, Error, EventKind, InlinePlace, InlineRecord, Jvmti};

thread_local! {
    /// While this thread lists: what it has been told of.
    static LISTED: RefCell<Option<Vec<Piece>>> = const { RefCell::new(None) };
}

/// A method that is compiled by itself.
struct Piece {
    method: jmethodID,
    bytes: u32,
    inlined: HashSet<jmethodID>,
}

/// All that is compiled.
pub fn list(jvmti: Jvmti, jni: Jni, classes: &Classes, connection: &Connection) -> Result<CompiledCode, Error> {
    LISTED.set(Some(Vec::new()));
    let generated = jvmti.enable(EventKind::CompiledMethodLoad).and_then(|()| {
        let generated = jvmti.generate(EventKind::CompiledMethodLoad);
        jvmti.disable(EventKind::CompiledMethodLoad).and(generated)
    });
    let pieces = LISTED.take().unwrap_or_default();
    generated?;
    let methods = pieces.iter().flat_map(|piece| piece.inlined.iter().chain([&piece.method])).copied();
    let (mut code, mut indices) = (CompiledCode::default(), HashMap::new());
    for method in connection.attending(methods.collect::<HashSet<_>>().into_iter().collect()) {
        // A method whose class has been unloaded meanwhile has no name any more.
        if let Ok(described) = describe(jvmti, jni, classes, method) {
            indices.insert(method, code.methods.len() as u32);
            code.methods.push(described);
        }
    }
    let numbered = |Piece { method, bytes, inlined }: Piece| {
        let inlined = inlined.iter().filter_map(|method| indices.get(method)).copied().collect();
        Some(CompiledPiece { bytes, method: *indices.get(&method)?, inlined })
    };
    code.pieces = pieces.into_iter().filter_map(numbered).collect();
    Ok(code)
}

fn describe(jvmti: Jvmti, jni: Jni, classes: &Classes, method: jmethodID) -> Result<MethodRef, Error> {
    let class = jvmti.declaring_class(method)?;
    let id = classes.id(class);
    jni.delete_local(class);
    let (name, descriptor) = jvmti.method_name(method)?;
    Ok(MethodRef { class: id?, name, descriptor })
}

/// The event's callback. Threads that do not list are told of what is compiled just now, and do not care.
pub unsafe extern "system" fn compiled_method_load(
    _jvmti: *mut Env,
    method: jmethodID,
    code_size: jint,
    _code: *const c_void,
    _map_length: jint,
    _map: *const c_void,
    mut record: *const CompileRecord,
) {
    guard((), || {
        LISTED.with_borrow_mut(|listed| {
            let Some(listed) = listed else { return };
            let mut inlined = HashSet::new();
            // SAFETY: the JVM passes null, or a list of records that are as their kind says (jvmticmlr.h).
            while let Some(header) = unsafe { record.as_ref() } {
                if header.kind == CompileRecord::INLINE_INFO {
                    // SAFETY: as above.
                    inlined.extend(unsafe { inlined_in(&*record.cast::<InlineRecord>()) });
                }
                record = header.next;
            }
            inlined.remove(&method);
            listed.push(Piece { method, bytes: code_size.max(0) as u32, inlined });
        });
    });
}

/// # Safety
/// The record is as the JVM passes it to the event's callback.
unsafe fn inlined_in(record: &InlineRecord) -> Vec<jmethodID> {
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
