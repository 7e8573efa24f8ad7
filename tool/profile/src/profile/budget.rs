//! The overhead of a profile, what it was allowed to have, and what it gave up for that.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::MethodIndex;

/// The largest budget that makes sense: by more no program can be slowed down and still be watched.
const LARGEST_PERCENT: f64 = 1_000.0;

/// How much longer the roots' calls may take.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Limit {
    /// By this part of what they take without probes: 0.05 for 5 %.
    Part(f64),
    /// By so much each, or less where they come often ([`Limit::at`]), or by as much as they run without probes, if that is more.
    Call {
        /// In ns.
        longer_ns: u64,
    },
}

/// Probes have no more than this part of the processors: a service needs the rest for its clients.
const PROCESSORS: f64 = 0.1;

impl Limit {
    /// What is kept to unless something else is asked for.
    pub const UNASKED: Limit = Limit::Call { longer_ns: 100_000_000 };

    /// The same for so many calls a second on so many processors. Of a limit that nobody asked for the probes of all calls together may have a tenth of
    /// the processors at most.
    #[must_use]
    pub fn at(self, calls_a_second: f64, processors: f64) -> Limit {
        match self {
            Limit::Part(_) => self,
            Limit::Call { longer_ns } => {
                let most_ns = PROCESSORS * processors * 1e9 / calls_a_second;
                Limit::Call { longer_ns: longer_ns.min(most_ns as u64) }
            }
        }
    }

    /// For calls that take so long without probes: as a part of that.
    pub fn part_of(self, bare_ns: f64) -> f64 {
        self.part_of_running(bare_ns, bare_ns)
    }

    /// The same for calls that run for no longer than this: where they wait, most of all for each other, probes may not run for as long.
    pub fn part_of_running(self, bare_ns: f64, run_ns: f64) -> f64 {
        match self {
            Limit::Part(part) => part,
            Limit::Call { longer_ns } => (longer_ns as f64).max(self.least() * run_ns.min(bare_ns)) / bare_ns.max(1.0),
        }
    }

    /// For calls of any length.
    pub fn least(self) -> f64 {
        match self {
            Limit::Part(part) => part,
            Limit::Call { .. } => 1.0,
        }
    }
}

/// Why a text is no budget.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// It is no percentage.
    #[error("`{0}` is no share of the time; give one in per cent, such as 5% or 0.5%")]
    NoPercentage(String),
    /// Nothing can be profiled for nothing.
    #[error("the budget must be more than 0%: counting calls always costs something")]
    Nothing,
    /// It would never be reached.
    #[error("a budget is at most {LARGEST_PERCENT}%; --budget off sets no limit")]
    TooLarge,
}

impl FromStr for Limit {
    type Err = LimitError;

    /// A percentage with its sign: `5%`.
    fn from_str(text: &str) -> Result<Limit, LimitError> {
        let number = text.trim().strip_suffix('%').map(str::trim_end);
        let percent = number.and_then(|number| number.parse::<f64>().ok()).filter(|percent| percent.is_finite());
        match percent {
            None => Err(LimitError::NoPercentage(text.to_owned())),
            Some(percent) if percent <= 0.0 => Err(LimitError::Nothing),
            Some(percent) if percent > LARGEST_PERCENT => Err(LimitError::TooLarge),
            Some(percent) => Ok(Limit::Part(percent / 100.0)),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Not 7.000000000000001.
            Limit::Part(part) => write!(f, "{}%", (part * 1e8).round() / 1e6),
            Limit::Call { longer_ns } => write!(f, "{} ms a call", (*longer_ns as f64 / 1e3).round() / 1e3),
        }
    }
}

/// The overhead budget, by the probes' cost as the profile found it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    /// How much longer the probes may make a root's calls.
    pub limit: Limit,
    /// How much longer calls are since methods were dropped last: the dearest root first. Those that have not run for long enough since are not
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

/// How much longer a root's calls took while they were recorded than without.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lengthened {
    /// The root.
    pub root: MethodIndex,
    /// What a call took while it was recorded, in the mean: probes, and what its thread waited on account of the profile, included.
    pub recorded_ns: f64,
    /// What one takes without.
    pub bare_ns: f64,
    /// Standard error of that.
    pub error_ns: f64,
    /// How many calls without the profile there were.
    pub calls: u64,
}

impl Lengthened {
    /// By which part of the time without it is longer; below zero where it is shorter.
    pub fn part(&self) -> f64 {
        if self.bare_ns > 0.0 { self.recorded_ns / self.bare_ns - 1.0 } else { 0.0 }
    }

    /// The part of that which is not chance.
    pub fn certain_part(&self) -> f64 {
        self.part_beyond(1.0)
    }

    /// The largest part that it may be, by chance.
    pub fn possible_part(&self) -> f64 {
        self.part_beyond(-1.0)
    }

    fn part_beyond(&self, chances: f64) -> f64 {
        let bare_ns = self.bare_ns + chances * (CHANCE * self.error_ns + SPEED * self.bare_ns);
        if self.bare_ns > 0.0 { ((self.recorded_ns - bare_ns) / self.bare_ns).max(0.0) } else { 0.0 }
    }
}

/// So many standard errors are chance.
const CHANCE: f64 = 2.0;
/// How far a machine's speed may change from recorded calls to others, as a part.
const SPEED: f64 = 0.04;

/// What the probes of a root's calls cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RootOverhead {
    /// The root.
    pub root: MethodIndex,
    /// How much longer its calls take, as a part of the time that they take without: by the probes' cost, or as measured, if that is more.
    pub overhead: f64,
    /// By its own probes alone.
    pub own: f64,
    /// What a call of it takes without probes, in ns, as far as was known when methods were chosen; zero where that does not matter.
    #[serde(default)]
    pub bare_ns: f64,
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
        (!self.roots.is_empty()).then(|| self.exceeded().is_none())
    }

    /// The dearest root of those that are not within the limit.
    pub fn exceeded(&self) -> Option<&RootOverhead> {
        self.roots.iter().find(|root| root.overhead + self.pauses > self.limit.part_of(root.bare_ns))
    }
}
