//! Retransformations on our account: whether there is one, and whether it comes further.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use jni::sys::jclass;

use crate::jvmti::{Error, Jvmti};

/// When one last began, or had a hook of ours called.
static PROGRESS: Mutex<Option<Instant>> = Mutex::new(None);
/// How many there are.
static UNDER_WAY: AtomicUsize = AtomicUsize::new(0);

/// Whether there is one which has come no further for so long: another agent's hook may wait for somebody.
pub fn stands_still(duration: Duration) -> bool {
    let progress = *PROGRESS.lock().unwrap_or_else(PoisonError::into_inner);
    UNDER_WAY.load(Ordering::Acquire) > 0 && progress.is_some_and(|last| last.elapsed() >= duration)
}

/// Has the JVM retransform, be it to have something refused: other agents' hooks are called for that, too.
pub fn run(jvmti: Jvmti, classes: &[jclass]) -> Result<(), Error> {
    progresses();
    UNDER_WAY.fetch_add(1, Ordering::AcqRel);
    let retransformed = jvmti.retransform(classes);
    UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
    retransformed
}

/// One has come further.
pub fn progresses() {
    *PROGRESS.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// As if a retransformation made no progress, until this is dropped.
    #[derive(Debug)]
    pub struct Standing(());

    impl Standing {
        pub fn begin() -> Standing {
            progresses();
            UNDER_WAY.fetch_add(1, Ordering::AcqRel);
            Standing(())
        }
    }

    impl Drop for Standing {
        fn drop(&mut self) {
            UNDER_WAY.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
