//! Class files of loaded classes, without changing the classes.
//!
//! No JVMTI function hands a whole class file out. Retransformation does, to its hooks, before anything stands still; when a hook's
//! outcome is no class file at all, HotSpot refuses it there and then, changes nothing and needs no safepoint. One class at a
//! time, so that the refusal of one keeps no other from its hook.

use std::cell::RefCell;

use headwater_protocol::ClassId;
use headwater_protocol::message::ClassFileBytes;

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

/// The class files of those of these classes that are still loaded.
pub fn class_files(jvmti: Jvmti, jni: Jni, classes: &Classes, ids: &[ClassId]) -> Result<Vec<ClassFileBytes>, Error> {
    let mut files = Vec::new();
    for (class, id) in classes.find(ids)? {
        TAKEN.set(Some(Vec::new()));
        // Refused, as it is meant to be.
        let _ = jvmti.retransform(&[class]);
        let bytes = TAKEN.take().unwrap_or_default();
        if !bytes.is_empty() {
            files.push(ClassFileBytes { class: id, bytes });
        }
        jni.delete_local(class);
    }
    Ok(files)
}
