//! Why a method is reached: by which other one, in which way, and when. One cause is kept for each, the first; but of what is only reached
//! because anything may be called on objects that nobody names, the first that says more.

use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_terms::reach::{Trigger, Way};

use super::mirror::ClassKey;

/// What leads to a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// The method of the graph that does, if it is known which.
    pub(super) by: Option<MethodId>,
    pub(super) way: Way,
    /// The type that a call names, or as which an object is given away.
    pub(super) through: Option<ClassKey>,
}

impl Cause {
    /// Whether it says more than another: of what nobody names it is hardly known why it is called.
    pub(super) fn says_more_than(self, other: Cause) -> bool {
        other.way == Way::Unnamed && self.way != Way::Unnamed
    }
}

/// A moment of recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// How long had been recorded.
    pub recorded: Duration,
    /// How many hotswaps there had been.
    pub batches: u32,
}

/// When a method was found, and had its probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct History {
    pub(super) cause: Cause,
    pub(super) trigger: Trigger,
    pub(super) found: Moment,
    pub(super) probed: Option<Moment>,
    /// It was found before this cause: as something that code outside the filter may call on objects that nobody names.
    pub(super) was_unnamed: bool,
}
