//! Class loaders are asked for the runtime before code of their classes calls it.
//!
//! A probe names the runtime's class, and HotSpot has the loader of the probed class find it when that probe runs first. If the loader's own code calls a
//! probed method of a class that it has defined itself, that asks the loader again, and so on until the stack is full: a Java agent whose advice is in
//! `ClassLoader.loadClass` has such classes. A loader that has found a class once is asked no more (JVMS 5.3): so each is asked while its classes are what they
//! were, unless another thread has locked it: nothing here waits for the program. One that does not find the runtime must have no probes in its classes.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use headwater_protocol::{ClassId, LoaderId};
use headwater_runtime_java::PROBE_CLASS;
use jni::sys::{jclass, jobject};

use crate::classes::Classes;
use crate::jni_env::Jni;
use crate::jvmti::Jvmti;

/// Why a class is left alone.
const NOT_FOUND: &str = "its class loader does not find the class that probes call";

/// Classes whose loaders have been asked.
#[derive(Debug)]
pub struct Asked {
    /// Those that can have probes: local references.
    pub can: Vec<(jclass, ClassId)>,
    /// The others, and why.
    pub cannot: Vec<(ClassId, String)>,
}

/// Whether asking a loader may mean to wait for a thread that has locked it, for as long as that pleases: one that is not parallel capable locks itself. Another's lock
/// is the name's, and nobody loads ours.
fn may_wait(jvmti: Jvmti, jni: Jni, loader: jobject) -> bool {
    let locks = jni.object_field(loader, c"parallelLockMap", c"Ljava/util/concurrent/ConcurrentHashMap;");
    let is_parallel = locks.is_ok_and(|locks| {
        jni.delete_local(locks);
        !locks.is_null()
    });
    !is_parallel && jvmti.is_locked(jni, loader).unwrap_or(true)
}

/// Which loaders have been asked, and whether they find the runtime.
#[derive(Debug, Default)]
pub struct Initiating(Mutex<HashMap<LoaderId, bool>>);

impl Initiating {
    /// Asks the loaders of these classes (local references) that have not been asked yet, on the current thread.
    pub fn ask(&self, (jvmti, jni): (Jvmti, Jni), classes: &Classes, found: Vec<(jclass, ClassId)>) -> Asked {
        let (can, cannot): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|(class, _)| self.finds(jvmti, jni, classes, *class));
        let reason = |(class, id): (jclass, ClassId)| {
            jni.delete_local(class);
            (id, NOT_FOUND.to_owned())
        };
        Asked { can, cannot: cannot.into_iter().map(reason).collect() }
    }

    fn finds(&self, jvmti: Jvmti, jni: Jni, classes: &Classes, class: jclass) -> bool {
        let Ok(loader) = jvmti.class_loader(class) else { return true };
        let finds = match classes.loader_id(jni, loader) {
            // These run no code but the JDK's.
            Ok(id) if loader.is_null() || id == LoaderId::PLATFORM => true,
            Ok(id) => {
                let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&id).copied();
                known.unwrap_or_else(|| {
                    if may_wait(jvmti, jni, loader) {
                        // It is asked another time, or by the JVM.
                        return true;
                    }
                    // Without the lock of ours: this is the loader's own code.
                    let finds = jni.for_name(&PROBE_CLASS.replace('/', "."), loader).is_ok();
                    self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, finds);
                    finds
                })
            }
            Err(_) => true,
        };
        jni.delete_local(loader);
        finds
    }
}
