//! What the roots take altogether: the time that their calls take without probes, times their number.

use rustc_hash::FxHashMap;

use super::place::CLEARLY;
use super::{MIN_CONTROLS, Measured, Recorded, Reference, RootCalls};
use crate::cct::{Below, Cct, NodeId};
use headwater_profile::profile::Clock;

/// How far a program's speed changes between calls that are recorded and those timed as wholes, as a standard deviation and a part.
const DRIFT: f64 = 0.02;

/// Of the time that threads stand in line for a processor, what it is in another run may be more or less by this part, as a standard deviation.
pub const QUEUED: f64 = 0.5;

/// What is left out of calls that cannot be compared may be wrong by this part, as a standard deviation.
const LEFT_OUT: f64 = 0.2;

/// Of threads that wait, and so stand in line where they wake up, for such a part of the time that they want a processor samples are no witness;
const WOKEN: f64 = 0.1;
/// and what was measured is one, if the probes cost so many times what they are known to, and that is still little.
const DEAREST: f64 = 10.0;
/// It is none of calls that took longer by so large a part, or shorter, however uncertain that is.
const MOST_LONGER: f64 = 0.5;
/// How far what was measured may be off then at least, as a part.
const LEAST_OFF: f64 = 0.02;

/// A root's time altogether, and its standard deviation, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Whole {
    /// All its calls.
    pub total_ns: f64,
    /// One standard deviation.
    pub error_ns: f64,
    /// How far its calls may be from those of settled code, as a part and a standard deviation.
    pub unsettled: f64,
    /// It was timed without probes.
    pub is_timed: bool,
}

impl Whole {
    /// As it was recorded, less the probes.
    pub(super) fn measured(of: &Measured) -> Whole {
        Whole { total_ns: of.sum(), error_ns: of.error(), unsettled: 0.0, is_timed: false }
    }

    /// By which part what was measured of it may be another, as a standard deviation: by as much as its calls took longer, or shorter, while they were recorded. But by
    /// no more than the probes may cost where these calls were not clearly longer, and their threads stood in line for such a part of the time where they had waited.
    pub(super) fn disturbed(&self, measured: &Measured, woken: f64) -> f64 {
        if !self.is_timed || self.total_ns <= 0.0 {
            return 1.0;
        }
        // With their probes: of calls that were twice as long nobody knows whether it was all of it the probes'.
        let recorded_ns = measured.sum() + measured.doubt;
        let longer_ns = (recorded_ns - self.total_ns).abs();
        let by_calls = (longer_ns + self.error_ns) / self.total_ns + self.unsettled;
        if woken < WOKEN || longer_ns > (CLEARLY * self.error_ns).min(MOST_LONGER * self.total_ns) {
            return by_calls;
        }
        let by_probes = (DEAREST * measured.doubt / recorded_ns).max(LEAST_OFF) + self.unsettled;
        by_calls.min(by_probes)
    }

    /// It was timed in code that was still being compiled, and may be wrong by such a part; and so may be how it divides, if that was sampled then.
    pub fn unsettle(&mut self, part: f64, are_samples_too: bool) {
        self.error_ns = self.error_ns.hypot(part * self.total_ns);
        self.unsettled = if are_samples_too { part } else { 0.0 };
    }
}

/// By the roots' nodes.
pub type Wholes = FxHashMap<NodeId, Whole>;

/// Of roots of which enough calls were timed as wholes. Calls that cannot be compared with these, because not all of them was recorded, are what was
/// measured of them; as far as they ran, by as much less as the other calls take without probes.
///
/// What was recorded had probes, and took no less than it would have without: that is the most that is charged. Where calls without probes took longer, they were
/// disturbed by something else, and the difference is in the error.
pub fn wholes(cct: &Cct, clock: &Clock, roots: &[RootCalls], reference: Reference<'_>) -> Wholes {
    let recorded = Recorded::of(cct, clock);
    let whole = |(id, below): (NodeId, Below)| {
        let method = cct.node(id).method();
        let root = roots.iter().find(|root| root.method == method)?;
        if reference.times.get(&method).is_none_or(|times| times.count < MIN_CONTROLS) {
            return None;
        }
        let (bare_ns, error_ns) = reference.bare_ns(method, root.pairs / root.calls)?;
        let bare = bare_ns * root.calls;
        let measured: Measured = recorded.below[id.index()];
        let others = (below.measured_ns as f64 - root.measured_ns).max(0.0) / (below.measured_ns as f64).max(1.0);
        let charged = bare.min(root.measured_ns);
        // Code that runs is as much slower with probes in these calls as in the others.
        let (run, wait) = ((1.0 - others) * measured.run, (1.0 - others) * measured.wait);
        let kept = if run > 0.0 { ((charged - wait) / run).clamp(0.0, 1.0) } else { 1.0 };
        let doubts = [
            error_ns * root.calls,
            bare_ns * root.calls_variance.sqrt(),
            DRIFT * charged,
            QUEUED * clock.queued.unwrap_or(0.0) * charged,
            bare - charged,
            others * measured.error(),
            LEFT_OUT * others * (1.0 - kept) * measured.run,
        ];
        Some((
            id,
            Whole {
                total_ns: charged + others * (measured.wait + kept * measured.run),
                error_ns: doubts.iter().map(|doubt| doubt * doubt).sum::<f64>().sqrt(),
                unsettled: 0.0,
                is_timed: true,
            },
        ))
    };
    cct.roots().into_iter().filter_map(whole).collect()
}

/// Of the other roots, as much as was measured.
pub fn untimed(cct: &Cct, clock: &Clock, timed: &Wholes) -> Wholes {
    let recorded = Recorded::of(cct, clock);
    let measured = |(id, _): (NodeId, Below)| (id, Whole::measured(&recorded.below[id.index()]));
    cct.roots().into_iter().map(measured).filter(|(id, _)| !timed.contains_key(id)).collect()
}
