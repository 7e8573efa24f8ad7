//! How the methods of a profile were reached, and why others have no probes.
//!
//! In a snapshot these are columns, like those of trees: a byte or two for each method, once they are compressed.

use std::time::Duration;

use headwater_terms::reach::{Obstacle, Trigger, Way};
use serde::{Deserialize, Serialize};

use super::MethodIndex;

mod columns;

/// What leads to a method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The method that does, if it is known which.
    pub by: Option<MethodIndex>,
    /// In which way.
    pub way: Way,
    /// The type that a call names, or as which an object is given away: an index into [`Reach::types`].
    pub through: Option<usize>,
}

/// A moment of recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// How long had been recorded, in milliseconds.
    pub recorded_ms: u32,
    /// How many hotswaps there had been.
    pub batches: u32,
}

impl Moment {
    /// At this time, after so many hotswaps.
    pub fn new(recorded: Duration, batches: u32) -> Moment {
        Moment { recorded_ms: u32::try_from(recorded.as_millis()).unwrap_or(u32::MAX), batches }
    }
}

/// A method of the call graph.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// What led to it. Followed from one to the next, this ends.
    pub cause: Cause,
    /// It was found before that was known: as something that code without probes may call on an object that nobody names.
    pub was_unnamed: bool,
    /// On what trigger it was found.
    pub trigger: Trigger,
    /// When that was.
    pub found: Moment,
    /// When it had its probes.
    pub probed: Option<Moment>,
    /// Why it has none, or has no longer.
    pub lacks: Option<Obstacle>,
}

/// A method that was reached and is not among those of the call graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unprobed {
    /// Its machine name. Its class is as the call names it, where that was not resolved.
    pub machine: String,
    /// Why it has no probes.
    pub why: Obstacle,
    /// What led to it.
    pub cause: Cause,
}

/// Which methods were wanted besides the roots.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReachOptions {
    /// `--include`.
    pub include: Vec<String>,
    /// `--exclude`.
    pub exclude: Vec<String>,
    /// `--jdk`: `none`, `edge` or `all`.
    pub jdk: String,
    /// `--natives`.
    pub natives: bool,
    /// Nothing but the roots.
    pub only_roots: bool,
}

/// How methods were reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reach {
    /// Which were wanted.
    pub wanted: ReachOptions,
    /// Names of types, with dots.
    pub types: Vec<String>,
    /// Of the first of [`Profile::methods`](super::Profile::methods), in their order.
    #[serde(with = "columns::reached")]
    pub methods: Vec<Reached>,
    /// Those that were reached besides, by their names.
    #[serde(with = "columns::unprobed")]
    pub others: Vec<Unprobed>,
    /// The application's classes that were loaded in the end, by their names, with dots.
    #[serde(with = "columns::names")]
    pub classes: Vec<String>,
}

impl Reach {
    /// Whether everything that is spoken of is there, and each way leads to its beginning.
    pub(crate) fn holds(&self, methods: usize) -> bool {
        let is_type = |cause: &Cause| cause.through.is_none_or(|at| at < self.types.len());
        let is_known = |it: &Unprobed| it.cause.by.is_none_or(|by| by.0 < methods) && is_type(&it.cause);
        self.methods.len() <= methods
            && self.methods.iter().all(|it| is_type(&it.cause))
            && self.others.iter().all(is_known)
            && self.ends()
    }

    /// Whether no way leads in a circle.
    fn ends(&self) -> bool {
        // For each method the beginning from which it was come to last, or that its way ends.
        let mut ends = vec![false; self.methods.len()];
        let mut come_from = vec![usize::MAX; self.methods.len()];
        for first in 0..self.methods.len() {
            let mut way = Vec::new();
            let mut next = Some(first);
            while let Some(at) = next.filter(|at| ends.get(*at) != Some(&true)) {
                let Some(reached) = self.methods.get(at) else { return false };
                if std::mem::replace(&mut come_from[at], first) == first {
                    return false;
                }
                way.push(at);
                next = reached.cause.by.map(|by| by.0);
            }
            way.into_iter().for_each(|at| ends[at] = true);
        }
        true
    }
}
