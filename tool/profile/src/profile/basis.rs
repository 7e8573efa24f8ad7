//! What a profile's times rest on.

use serde::{Deserialize, Serialize};

/// What was seen of the roots without probes, after the recording. Nothing of it in a profile that is still being recorded, or whose roots were not timed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Basis {
    /// Samples of the undisturbed code, below the roots, by which run times are divided.
    pub samples: u64,
    /// Those of them that were in calls of which the recording has none.
    pub unseen: u64,
    /// Those whose innermost method was instrumented too late, or never, and has no calls.
    #[serde(skip_serializing_if = "is_none")]
    pub absent: u64,
    /// Those whose innermost method has probes only because it was in this one, where samples have chosen what is instrumented: methods that are in none
    /// have as much of the time, and no probes (Good and Turing).
    #[serde(skip_serializing_if = "is_none")]
    pub by_chance: u64,
    /// Samples of stacks that were deeper than the JVM keeps them, and may have had a root.
    pub cut: u64,
    /// Whether code was compiled, and calls took the same, all the time that counts; `None` if nothing was timed without probes.
    pub is_settled: Option<bool>,
    /// Why nothing was sampled, if it was to be.
    pub unsampled: Option<String>,
    /// Recordings of others in the target's flight recorder that got our samples too.
    pub other_recordings: usize,
}

/// As in files from before there was such a number.
fn is_none(number: &u64) -> bool {
    *number == 0
}

impl Basis {
    /// The part of the samples that was in calls of which the recording has none.
    pub(crate) fn unseen_part(&self) -> f64 {
        self.unseen as f64 / self.samples.max(1) as f64
    }

    /// What the reader should know of it.
    pub fn warnings(&self) -> Vec<String> {
        /// More than this part of all makes a difference.
        const TOLERATED: f64 = 0.05;
        let mut warnings = Vec::new();
        if let Some(reason) = &self.unsampled {
            warnings.push(format!(
                "the undisturbed code could not be sampled ({reason}): times inside the tree are as measured beside the probes"
            ));
        }
        if self.unseen as f64 > TOLERATED * self.samples as f64 {
            warnings.push(format!(
                "{:.0} % of the samples of the undisturbed code were in calls that the recording has not seen: their time is their callers' own. Record \
                 for longer",
                100.0 * self.unseen_part()
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
