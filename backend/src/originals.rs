//! What a class that is being retransformed is without us: nearly always the class file that the hook is handed.
//!
//! Not where HotSpot has forgotten something of it ([`parameters`](crate::hotspot::parameters)), nor where another one runs
//! ([`versions`](crate::versions)). If somebody else redefines a class while we are here, our hook sees its new file, and that is kept where HotSpot keeps
//! the old one. A class that was another already when we came is left alone.
//!
//! Why so, and at what cost: docs/decisions/original-class-files.md.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headwater_protocol::ClassId;
use jni::sys::{jclass, jint};

use crate::class_file::ClassFile;
use crate::hotspot::parameters;
use crate::hotspot::{FIRST_TO_FOLLOW, HotSpot};
use crate::jni_env::Jni;
use crate::jvmti::Jvmti;
use crate::versions;

/// Why a class is left alone that another class file runs in.
const OTHER_CODE: &str = "it runs other code than the class file that the JVM has kept of it: somebody else has redefined it, and would lose that";

/// Why a class is left alone whose own class file has probes: calls would be counted twice.
pub const OUR_CODE: &str = "somebody else has redefined it with what he was shown while it had probes: they do nothing, and stay until it is redefined again";

/// Of which class probes call methods.
const PROBES: &[u8] = b"java/lang/HeadwaterV1";

/// Whether a class file has probes: whoever is shown one while it has them may redefine the class with it. Their class's name alone may be left of ones that it had.
pub fn has_probes(bytes: &[u8]) -> bool {
    let is_named = bytes.windows(PROBES.len()).any(|window| window == PROBES);
    is_named && ClassFile::parse(bytes).is_some_and(|file| versions::calls(&file, PROBES))
}

/// What a session knows of classes' own class files.
#[derive(Debug)]
pub struct Originals {
    /// HotSpot keeps the class file that a class had first.
    keeps_first: bool,
    redefined: Mutex<HashMap<ClassId, Redefined>>,
}

/// A class that somebody else has redefined since we came, as far as is known.
#[derive(Debug, Default)]
struct Redefined {
    /// What runs.
    current: Option<Vec<u8>>,
    /// What may run, if the JVM has accepted it: then there has been one redefinition more than so many.
    latest: Option<(Vec<u8>, jint)>,
}

/// Who retransforms, and what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// We do, a class that has its original code.
    Ours,
    /// We do, a class that has been given other code.
    Instrumented,
    /// Somebody else redefines it, or retransforms it.
    Others,
}

impl Originals {
    /// Finds out what this JVM keeps.
    pub fn of_jvm(jvmti: Jvmti) -> Originals {
        let version = jvmti.system_property("java.vm.specification.version").unwrap_or_default();
        let keeps_first = version.parse::<u32>().is_ok_and(|version| version < FIRST_TO_FOLLOW);
        Originals { keeps_first, redefined: Mutex::default() }
    }

    /// The class file of a class that is being retransformed, of which the hook was handed these bytes; or why it must be left alone.
    pub fn of<'b>(
        &self,
        (jvmti, jni, hotspot): (Jvmti, Jni, &HotSpot),
        (class, id): (jclass, ClassId),
        bytes: &'b [u8],
        occasion: Occasion,
    ) -> Result<Cow<'b, [u8]>, String> {
        let mut original = Cow::Borrowed(bytes);
        if self.keeps_first {
            let redefinitions = jni.redefinitions(class).unwrap_or_default();
            let mut redefined = self.redefined();
            if occasion == Occasion::Others {
                redefined.entry(id).or_default().begin(bytes, redefinitions);
            } else if let Some(current) = redefined.get_mut(&id).and_then(|it| it.current(redefinitions)) {
                original = Cow::Owned(current.to_vec());
            }
        }
        let is_kept = matches!(original, Cow::Borrowed(_));
        if occasion == Occasion::Ours
            && is_kept
            && let Some(file) = ClassFile::parse(bytes)
            && versions::is_running((jvmti, hotspot.behind_code.as_ref()), class, &file) == Some(false)
        {
            return Err(OTHER_CODE.to_owned());
        }
        if let Some(parameters) = &hotspot.parameters {
            let written = parameters.of(jvmti, class).and_then(|found| parameters::written(&original, &found));
            match written {
                Ok(Some(written)) => original = Cow::Owned(written),
                // It is restored in any case.
                Ok(None) => {}
                Err(unknown) if occasion == Occasion::Ours => return Err(unknown.to_string()),
                Err(_) => {}
            }
        }
        Ok(original)
    }

    fn redefined(&self) -> MutexGuard<'_, HashMap<ClassId, Redefined>> {
        self.redefined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Redefined {
    /// A redefinition has begun, after so many.
    fn begin(&mut self, bytes: &[u8], redefinitions: jint) {
        self.settle(redefinitions);
        self.latest = Some((bytes.to_vec(), redefinitions));
    }

    /// What runs after so many redefinitions.
    fn current(&mut self, redefinitions: jint) -> Option<&[u8]> {
        self.settle(redefinitions);
        self.current.as_deref()
    }

    fn settle(&mut self, redefinitions: jint) {
        if let Some((bytes, before)) = self.latest.take()
            && redefinitions != before
        {
            self.current = Some(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_jvm_has_refused_does_not_run() {
        let mut class = Redefined::default();
        class.begin(b"first", 3);
        assert_eq!(class.current(3), None, "it was refused");
        class.begin(b"second", 3);
        class.begin(b"third", 4);
        assert_eq!(class.current(4), Some(&b"second"[..]), "the third was refused");
        class.begin(b"fourth", 4);
        assert_eq!(class.current(5), Some(&b"fourth"[..]));
        assert_eq!(class.current(6), Some(&b"fourth"[..]), "a redefinition of ours");
    }
}
