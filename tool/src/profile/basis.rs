//! What a profile's times rest on.

use serde::{Deserialize, Serialize};

/// What was seen of the roots without probes, after the recording. Nothing of it in a profile that is still being recorded, or whose roots were not timed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Basis {
    /// Samples of the undisturbed code, below the roots, by which run times are divided.
    pub samples: u64,
    /// Samples of stacks that were deeper than the JVM keeps them, and may have had a root.
    pub cut: u64,
    /// Code was compiled, and calls took the same all the time that counts.
    pub is_settled: bool,
    /// Why nothing was sampled, if it was to be.
    pub unsampled: Option<String>,
    /// Recordings of others in the target's flight recorder that got our samples too.
    pub other_recordings: usize,
}

impl Basis {
    /// What the reader should know of it.
    pub(crate) fn warnings(&self) -> Vec<String> {
        /// More cut stacks than this part of all leave out what is deep.
        const TOLERATED: f64 = 0.05;
        let mut warnings = Vec::new();
        if let Some(reason) = &self.unsampled {
            warnings.push(format!(
                "the undisturbed code could not be sampled ({reason}): times inside the tree are as measured beside the probes"
            ));
        }
        if self.cut as f64 > TOLERATED * (self.samples + self.cut) as f64 {
            warnings.push(format!(
                "of {} samples the root was beyond the depth to which the JVM's flight recorder keeps stacks: what is called deep in \
                 the tree has too little time. Start the JVM with -XX:FlightRecorderOptions=stackdepth=2048",
                self.cut
            ));
        }
        if self.other_recordings > 0 {
            warnings.push(
                "the flight recording that runs in the target got execution samples more often while the root was sampled".to_owned(),
            );
        }
        warnings
    }
}
