//! What happened to the whole JVM, and when.

use serde::Serialize;

use crate::profile::{COLLECTIONS, Profile};

/// Garbage collections, where they were counted. The track of them has the same, and more.
#[derive(Serialize)]
pub(super) struct Collections<'a> {
    pauses: Vec<Pause<'a>>,
    lost: u64,
}

#[derive(Serialize)]
struct Pause<'a> {
    start_ns: u64,
    duration_ns: u64,
    cause: &'a str,
}

impl Collections<'_> {
    pub(super) fn of(profile: &Profile) -> Option<Collections<'_>> {
        let track = profile.tracks.iter().find(|track| track.id == COLLECTIONS)?;
        let pauses = track.slices.iter().map(|slice| Pause {
            start_ns: u64::try_from(slice.start_ns).unwrap_or_default(),
            duration_ns: slice.duration_ns,
            cause: &slice.label,
        });
        Some(Collections { pauses: pauses.collect(), lost: track.lost })
    }
}
