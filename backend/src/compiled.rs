//! What the JIT compilers have found worth compiling: methods that run often, and will do so again, and what has inlined what.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::c_void;

use headwater_protocol::ClassId;
use headwater_protocol::message::{CompiledCode, CompiledPiece, MethodRef};
use jni::sys::{jint, jmethodID};

use crate::connection::{ATTENDING, Connection};
use crate::guard;
use crate::jni_env::Jni;
use crate::jvmti::{CompileRecord, Env, Error, EventKind, InlinePlace, InlineRecord, Jvmti};

thread_local! {
    /// While this thread lists: what it has been told of.
    static LISTED: RefCell<Option<Listing>> = const { RefCell::new(None) };
}

/// What is found by a listing that is under way.
struct Listing {
    jvmti: Jvmti,
    jni: Jni,
    /// Heard meanwhile. It is there as long as this is.
    connection: *const Connection,
    code: CompiledCode,
    /// Which of [`CompiledCode::methods`] each is; `None` of those that nobody knows.
    indices: HashMap<jmethodID, Option<u32>>,
    /// What is inlined in the piece at hand.
    inlined: Vec<jmethodID>,
}

/// All that is compiled, of classes that have a number.
pub fn list(jvmti: Jvmti, jni: Jni, connection: &Connection) -> Result<CompiledCode, Error> {
    let (code, indices, inlined) = (CompiledCode::default(), HashMap::new(), Vec::new());
    LISTED.set(Some(Listing { jvmti, jni, connection, code, indices, inlined }));
    let generated = jvmti.enable(EventKind::CompiledMethodLoad).and_then(|()| {
        let generated = jvmti.generate(EventKind::CompiledMethodLoad);
        jvmti.disable(EventKind::CompiledMethodLoad).and(generated)
    });
    let listing = LISTED.take();
    generated?;
    Ok(listing.map_or_else(CompiledCode::default, |listing| listing.code))
}

impl Listing {
    fn add(&mut self, method: jmethodID, bytes: jint) {
        self.inlined.sort_unstable();
        self.inlined.dedup();
        let inlined = std::mem::take(&mut self.inlined);
        let others = inlined.iter().filter(|inlined| **inlined != method);
        let piece = CompiledPiece {
            bytes: bytes.max(0) as u32,
            method: self.number(method),
            inlined: others.filter_map(|inlined| self.number(*inlined)).collect(),
        };
        self.code.pieces.push(piece);
        if self.code.pieces.len().is_multiple_of(ATTENDING) {
            // SAFETY: `list` borrows it for as long as there is a listing.
            unsafe { &*self.connection }.attend();
        }
        self.inlined = inlined;
        self.inlined.clear();
    }

    /// A method is described while the code that it is in is: its class cannot be unloaded then.
    fn number(&mut self, method: jmethodID) -> Option<u32> {
        if let Some(known) = self.indices.get(&method) {
            return *known;
        }
        let described = self.describe(method).ok().flatten();
        let index = described.map(|described| {
            self.code.methods.push(described);
            self.code.methods.len() as u32 - 1
        });
        self.indices.insert(method, index);
        index
    }

    fn describe(&self, method: jmethodID) -> Result<Option<MethodRef>, Error> {
        let class = self.jvmti.declaring_class(method)?;
        let tag = self.jvmti.tag(class);
        self.jni.delete_local(class);
        let tag = tag?;
        if tag == 0 {
            return Ok(None);
        }
        let (name, descriptor) = self.jvmti.method_name(method)?;
        Ok(Some(MethodRef { class: ClassId(tag.cast_unsigned()), name, descriptor }))
    }
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
            let Some(listing) = listed else { return };
            // SAFETY: the JVM passes null, or a list of records that are as their kind says (jvmticmlr.h).
            while let Some(header) = unsafe { record.as_ref() } {
                if header.kind == CompileRecord::INLINE_INFO {
                    // SAFETY: as above.
                    unsafe { add_inlined(&*record.cast::<InlineRecord>(), &mut listing.inlined) };
                }
                record = header.next;
            }
            listing.add(method, code_size);
        });
    });
}

/// # Safety
/// The record is as the JVM passes it to the event's callback.
unsafe fn add_inlined(record: &InlineRecord, methods: &mut Vec<jmethodID>) {
    if record.places.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let places: &[InlinePlace] = unsafe { std::slice::from_raw_parts(record.places, record.count.max(0) as usize) };
    let mut before: &[jmethodID] = &[];
    for place in places.iter().filter(|place| !place.methods.is_null()) {
        // SAFETY: as above.
        let stack = unsafe { std::slice::from_raw_parts(place.methods, place.depth.max(0) as usize) };
        if stack != before {
            methods.extend_from_slice(stack);
        }
        before = stack;
    }
}
