//! Class files of loaded classes, without changing the classes.
//!
//! No JVMTI function hands a whole class file out. Retransformation does, to its hooks, before anything stands still; when a hook's
//! outcome is no class file at all, HotSpot refuses it there and then, changes nothing and needs no safepoint. One class at a
//! time, so that the refusal of one keeps no other from its hook.

use std::cell::RefCell;

use headwater_protocol::ClassId;
use headwater_protocol::message::ClassFileBytes;
use jni::sys::jclass;

use crate::classes::Classes;
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};

/// What HotSpot refuses at the first look.
pub const NO_CLASS: &[u8] = &[0; 4];

thread_local! {
    /// While this thread peeks: the bytes that its hook was given.
    static TAKEN: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// A class file hook of a retransformation: takes the bytes if the current thread is only peeking, and says whether it is.
pub fn took(bytes: &[u8]) -> bool {
    TAKEN.with_borrow_mut(|taken| {
        taken.as_mut().is_some_and(|taken| {
            *taken = bytes.to_vec();
            true
        })
    })
}

/// A class file that has nothing but the constants of a class: those of a hidden one are all that the JVM hands out.
fn constants_only(jvmti: Jvmti, class: jclass) -> Result<Vec<u8>, Error> {
    /// Magic number, minor and major version: of JDK 17, the first whose hidden classes have constants that are read.
    const BEGINNING: [u8; 8] = [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61];
    /// Flags, class, superclass, numbers of interfaces, fields, methods, and attributes.
    const END: [u8; 14] = [0; 14];
    let (count, pool) = jvmti.constant_pool(class)?;
    Ok([&BEGINNING, &count.to_be_bytes()[..], &pool, &END].concat())
}

/// The class files of those of these classes that are still loaded; of hidden ones only the constants.
pub fn class_files(jvmti: Jvmti, jni: Jni, classes: &Classes, ids: &[ClassId]) -> Result<Vec<ClassFileBytes>, Error> {
    let mut files = Vec::new();
    for (class, id) in classes.find(ids)? {
        TAKEN.set(Some(Vec::new()));
        // Refused, as it is meant to be.
        let _ = jvmti.retransform(&[class]);
        let mut bytes = TAKEN.take().unwrap_or_default();
        if bytes.is_empty() && jvmti.is_modifiable(class) == Ok(false) {
            // One that fails here is being unloaded.
            bytes = constants_only(jvmti, class).unwrap_or_default();
        }
        if !bytes.is_empty() {
            files.push(ClassFileBytes { class: id, bytes });
        }
        jni.delete_local(class);
    }
    Ok(files)
}
