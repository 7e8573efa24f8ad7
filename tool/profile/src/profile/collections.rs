//! The JVM's garbage collections while a profile was recorded.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Collections {
    /// Those that are known, the earliest first.
    pub pauses: Vec<Pause>,
    /// How many more there were: the tool came too late to see them.
    pub lost: u64,
}

/// The JVM was stopped for a collection, or for one of its parts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When that began, in ns since recording did.
    pub start_ns: u64,
    /// For how long.
    pub duration_ns: u64,
    /// Why, as the JVM says; empty where it does not.
    pub cause: String,
}

impl Collections {
    /// How long the JVM was stopped altogether.
    pub fn total_ns(&self) -> u64 {
        self.pauses.iter().map(|pause| pause.duration_ns).fold(0, u64::saturating_add)
    }

    /// How long it did at most.
    pub fn longest_ns(&self) -> u64 {
        self.pauses.iter().map(|pause| pause.duration_ns).max().unwrap_or_default()
    }

    /// The causes that are known, and how often each was, the most frequent first.
    pub fn causes(&self) -> Vec<(&str, u64)> {
        let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
        for pause in self.pauses.iter().filter(|pause| !pause.cause.is_empty()) {
            *causes.entry(&pause.cause).or_default() += 1;
        }
        let mut causes: Vec<(&str, u64)> = causes.into_iter().collect();
        causes.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        causes
    }
}
