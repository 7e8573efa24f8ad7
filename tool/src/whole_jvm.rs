//! What is recorded of a whole JVM, without a root: what comes of it, and what it costs to begin.

use crate::doctor;
use crate::flight_recorder;
use crate::jvm::{self, Jvm};
use crate::profile::Profile;

/// Whether the JVM's own flight recorder is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Recorder {
    /// Places of CPU time and allocations are its samples; it is started
    On,
    /// It is left alone: places are seen at safepoints, nothing is known of allocations
    Off,
}

/// What was recorded.
#[derive(Debug)]
pub struct Whole {
    /// All of it.
    pub profile: Profile,
    /// The target has ended before the time was over.
    pub target_ended: bool,
}

/// What a JVM pays for the first start of its recorder; `None` where it has been started, or discards nothing for it.
pub(crate) fn price_of_recorder(jvm: &Jvm) -> Option<String> {
    let version = jvm.java_version.as_deref()?;
    let discards =
        doctor::discards_compiled_code(Some(version), &jvm::vm_options(jvm.pid), &jvm::mapped_files(jvm.pid));
    (discards && !flight_recorder::was_used(jvm.pid)).then(|| {
        format!(
            "this JVM's flight recorder starts for the first time: JDK {version} throws all compiled code away for that, once, and the program is \
             slow for some seconds"
        )
    })
}
