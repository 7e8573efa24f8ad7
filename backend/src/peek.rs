//! Class files of loaded classes, and linking, without changing the classes.
//!
//! No JVMTI function returns a whole class file. Retransformation passes it to its hooks, before any safepoint; when a hook's
//! outcome is no class file at all, HotSpot refuses it there and then, changes nothing and needs no safepoint. One class at a
//! time, so that the refusal of one keeps no other from its hook.
//!
//! Nor does any link a class. Retransformation does that too, before it compares the class with the hook's outcome: so one that is the same
//! class but for its flags is refused, again without a safepoint, when the class has been linked.
//!
//! Why so, and at what cost: docs/decisions/discovery.md.

use std::cell::RefCell;

use headwater_protocol::ClassId;
use headwater_protocol::message::ClassFileBytes;
use jni::sys::jclass;

use crate::classes::Classes;
use crate::connection::Connection;
use crate::constants::{self, short};
use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};
use crate::retransformation;

/// What HotSpot refuses at the first look.
pub const NO_CLASS: [u8; 4] = [0; 4];

/// What a retransformation is for that is meant to be refused.
#[derive(Debug)]
enum Purpose {
    /// The bytes that the hook was given.
    Peek(Vec<u8>),
    Link,
}

thread_local! {
    /// Of the current thread's retransformation.
    static PURPOSE: RefCell<Option<Purpose>> = const { RefCell::new(None) };
}

/// A class file hook of a retransformation: what to hand HotSpot for these bytes, if the current thread's is meant to be refused.
pub fn refused(bytes: &[u8]) -> Option<Vec<u8>> {
    PURPOSE.with_borrow_mut(|purpose| match purpose.as_mut()? {
        Purpose::Peek(taken) => {
            *taken = bytes.to_vec();
            Some(NO_CLASS.to_vec())
        }
        Purpose::Link => Some(with_other_flags(bytes).unwrap_or_else(|| NO_CLASS.to_vec())),
    })
}

/// The same class file with a flag turned over that no check forbids.
fn with_other_flags(bytes: &[u8]) -> Option<Vec<u8>> {
    /// Of the class's flags, in their first byte: `ACC_SYNTHETIC`.
    const SYNTHETIC: u8 = 0x10;
    const POOL_COUNT_AT: usize = 8;
    let count = usize::from(short(bytes, POOL_COUNT_AT)?);
    let (mut rest, mut index) = (bytes.get(POOL_COUNT_AT + 2..)?, 1);
    while index < count {
        let (constant, behind) = constants::split_first(rest)?;
        (rest, index) = (behind, index + constant.indexes);
    }
    let at = bytes.len() - rest.len();
    let mut changed = bytes.to_vec();
    *changed.get_mut(at)? ^= SYNTHETIC;
    Some(changed)
}

/// Links those of these classes that are still loaded and can be linked.
pub fn link(jvmti: Jvmti, jni: Jni, classes: &Classes, ids: &[ClassId]) {
    for (class, _) in classes.find(jni, ids).unwrap_or_default() {
        PURPOSE.set(Some(Purpose::Link));
        // Refused, as it is meant to be.
        let _ = retransformation::run(jvmti, &[class]);
        PURPOSE.set(None);
        jni.delete_local(class);
    }
}

/// A class file that has nothing but the constants of a class: those of a hidden one are all that the JVM tells.
fn constants_only(jvmti: Jvmti, class: jclass) -> Result<Vec<u8>, Error> {
    /// Magic number, minor and major version: of JDK 17, the first whose hidden classes have constants that are read.
    const BEGINNING: [u8; 8] = [0xca, 0xfe, 0xba, 0xbe, 0, 0, 0, 61];
    /// Flags, class, superclass, numbers of interfaces, fields, methods, and attributes.
    const END: [u8; 14] = [0; 14];
    let (count, pool) = jvmti.constant_pool(class)?;
    Ok([&BEGINNING, &count.to_be_bytes()[..], &pool, &END].concat())
}

/// The class files of those of these classes that are still loaded; of hidden ones only the constants.
pub fn class_files(
    jvmti: Jvmti,
    jni: Jni,
    (classes, connection): (&Classes, &Connection),
    ids: &[ClassId],
) -> Result<Vec<ClassFileBytes>, Error> {
    let mut files = Vec::new();
    for (class, id) in connection.attending(classes.find(jni, ids)?) {
        PURPOSE.set(Some(Purpose::Peek(Vec::new())));
        // Refused, as it is meant to be.
        let _ = retransformation::run(jvmti, &[class]);
        let mut bytes = match PURPOSE.take() {
            Some(Purpose::Peek(bytes)) => bytes,
            _ => Vec::new(),
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_classs_flags_differ() {
        for class in headwater_runtime_java::CLASSES {
            let changed = with_other_flags(class.bytes).unwrap();
            let differ: Vec<usize> = (0..changed.len()).filter(|at| changed[*at] != class.bytes[*at]).collect();
            assert_eq!((changed.len(), differ.len()), (class.bytes.len(), 1), "{}", class.name);
            assert_eq!(changed[differ[0]] ^ class.bytes[differ[0]], 0x10);
            assert!(with_other_flags(&class.bytes[..differ[0]]).is_none());
        }
    }
}
