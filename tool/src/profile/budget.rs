//! The overhead that a profile was allowed to have, and what it gave up for that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::MethodIndex;
use crate::budget::Limit;

/// The overhead budget. How overheads are reckoned is said in [`budget`](crate::budget); here by the probes' cost as the profile found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// What the probes may cost, as a part of the time that a root's calls take without them.
    pub limit: Limit,
    /// What they cost since methods were dropped last: the dearest root first. Those that have not run for long enough since are not
    /// among them.
    pub roots: Vec<RootOverhead>,
    /// The methods that were dropped, in that order.
    pub dropped: Vec<DroppedMethod>,
    /// The hotswaps for that.
    pub batches: u64,
    /// How long they stopped the program.
    pub pause_ns: u64,
    /// The same, as a part of the recording.
    pub pauses: f64,
}

/// What the probes of a root's calls cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RootOverhead {
    /// The root.
    pub root: MethodIndex,
    /// All of them, as a part of the time that its calls take without.
    pub overhead: f64,
    /// Its own alone.
    pub own: f64,
    /// Nothing below it is left that could be dropped.
    pub exhausted: bool,
}

/// A method that was not instrumented any more from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DroppedMethod {
    /// The method.
    pub method: MethodIndex,
    /// Its calls until then, in all contexts.
    pub calls: u64,
    /// Its self time until then.
    pub self_ns: u64,
    /// Uncertainty of that.
    pub error_ns: u64,
    /// What its probes cost, as a part of the time that its root's calls take without.
    pub overhead: f64,
    /// How long had been recorded; zero when what was recorded until then was cleared.
    pub at: Duration,
}

impl Budget {
    /// All that was spent: of the dearest root; `None` while no root has run for long enough.
    pub fn overhead(&self) -> Option<f64> {
        self.roots.first().map(|root| root.overhead + self.pauses)
    }

    /// Whether that is within the limit.
    pub fn is_held(&self) -> Option<bool> {
        self.overhead().map(|overhead| overhead <= self.limit.part())
    }
}
