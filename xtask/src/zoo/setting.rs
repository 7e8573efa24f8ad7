//! What does not change from run to run.

use std::time::Duration;

use headwater_tests::Jdk;

use super::build::Built;
use super::program::{Packaging, Program};

/// How long the phases take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The profile's recording.
    pub(crate) recording: Duration,
    /// What the program does before and after is looked at for so long.
    pub(crate) looking: Duration,
    /// It is warm when the mean time of a call over so long is that of as long before.
    pub(crate) steady: Duration,
    /// But not sooner than this after its start: some are slow for long, and evenly so.
    pub(crate) warm: Duration,
    /// It is taken as it is after so long, warm or not.
    pub(crate) patience: Duration,
    /// The truth is sampled for so long, or a few times as long.
    pub(crate) sampling: Duration,
}

impl Pace {
    pub(crate) const LONG: Pace = Pace {
        recording: Duration::from_secs(15),
        looking: Duration::from_secs(8),
        steady: Duration::from_secs(5),
        warm: Duration::from_secs(20),
        patience: Duration::from_secs(60),
        sampling: Duration::from_secs(30),
    };
    /// For a look, and for CI.
    pub(crate) const SHORT: Pace = Pace {
        recording: Duration::from_secs(5),
        looking: Duration::from_secs(3),
        steady: Duration::from_secs(2),
        warm: Duration::from_secs(5),
        patience: Duration::from_secs(15),
        sampling: Duration::from_secs(10),
    };
}

/// What does not change from run to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting<'s> {
    pub(crate) program: &'s Program,
    pub(crate) built: &'s Built,
    pub(crate) packaging: Packaging,
    pub(crate) jdk: &'s Jdk,
    pub(crate) pace: Pace,
    /// Of the program, beside its own: they hardly run.
    pub(crate) threads: u16,
}
