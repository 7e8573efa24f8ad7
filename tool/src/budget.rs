//! The overhead budget: how much longer the roots' calls may take for being profiled, and what is given up to keep to that.
//!
//! The draining thread adds up what it has decoded, a [`Tally`] about ten times a second; the [`Governor`] estimates the overhead from
//! these, and says which methods are to be restored. It is a state machine without I/O; the
//! [`session`](crate::session) does what it says, and the [`callgraph`](crate::callgraph) remembers it.
//!
//! The **overhead of a root** is what the probes below it cost, its own included, divided by the time that its calls take without them: how
//! much longer they take for the profile. Each root has its own, and the budget holds for each: a root that waits for
//! connections all day would hide any cost of another if they were added up. To that come the pauses of the hotswaps that
//! methods are dropped by, as a part of the recording: they stop everything. Not in it is what finding the subgraph costs (that ends by
//! itself, and is reported beside), nor what the JIT compiler no longer inlines.
//!
//! Why so, and at what cost: docs/decisions/overhead-budget.md.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

mod governor;
mod in_place;
mod tally;
#[cfg(test)]
mod tests;

pub use governor::{Dropped, Governor, Probes, RootSum};
pub use in_place::in_place;
pub use tally::{MethodTally, RootTally, Tally};

/// The largest budget that makes sense: by more no program can be slowed down and still be watched.
const LARGEST_PERCENT: f64 = 1_000.0;

/// How much longer the roots' calls may take, as a part of what they take without probes: 0.05 for 5 %.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
pub struct Limit(f64);

impl Limit {
    /// As a part of the time.
    pub fn part(self) -> f64 {
        self.0
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
    #[error("a budget is at most {LARGEST_PERCENT}%; without --budget there is no limit")]
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
            Some(percent) => Ok(Limit(percent / 100.0)),
        }
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not 7.000000000000001.
        write!(f, "{}%", (self.0 * 1e8).round() / 1e6)
    }
}
