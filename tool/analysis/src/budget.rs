//! The overhead budget: how much longer the roots' calls may take for being profiled, and what is given up to keep to that.
//!
//! The draining thread adds up what it has decoded, a [`Tally`] about ten times a second; the [`Governor`] estimates the overhead from
//! these, and says which methods are to be restored. It is a state machine without I/O; the
//! session does what it says, and the call graph remembers it.
//!
//! The **overhead of a root** is what the probes below it cost, its own included, divided by the time that its calls take without them: how
//! much longer they take for the profile. Each root has its own, and the budget holds for each: a root that waits for
//! connections all day would hide any cost of another if they were added up. To that come the pauses of the hotswaps that
//! methods are dropped by, as a part of the recording: they stop everything. Not in it is what finding the subgraph costs (that ends by
//! itself, and is reported beside), nor, where a budget was asked for, what the JIT compiler no longer inlines.
//!
//! Why so, and at what cost: docs/decisions/overhead-budget.md.

mod gain;
mod governor;
mod in_place;
mod rules;
mod tally;
#[cfg(test)]
mod tests;

pub use governor::{Dropped, Governor, Probes, RootSum, Undisturbed};
pub use headwater_profile::profile::{Limit, LimitError};
pub use in_place::in_place;
pub use tally::{MethodTally, RootTally, Tally};
