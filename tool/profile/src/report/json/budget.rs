//! The overhead budget.

use serde::Serialize;

use crate::profile::{self, Profile};

#[derive(Serialize)]
pub(super) struct Budget<'a> {
    /// Parts of the time that a root's calls take without probes.
    limit: Option<f64>,
    /// By so much a call may be longer, or by as much as it runs without probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    limit_ns: Option<u64>,
    overhead: Option<f64>,
    held: Option<bool>,
    roots: Vec<Root<'a>>,
    batches: u64,
    pause_ns: u64,
    dropped: Vec<Dropped<'a>>,
}

#[derive(Serialize)]
struct Root<'a> {
    method: &'a str,
    overhead: f64,
    own: f64,
    exhausted: bool,
}

#[derive(Serialize)]
struct Dropped<'a> {
    method: &'a str,
    calls: u64,
    self_ns: u64,
    error_ns: u64,
    overhead: f64,
    at_ns: u64,
}

impl<'a> Budget<'a> {
    pub(super) fn of(profile: &'a Profile, budget: &profile::Budget) -> Budget<'a> {
        let name = |method: profile::MethodIndex| profile.methods[method.0].machine.as_str();
        let roots = budget.roots.iter().map(|root| Root {
            method: name(root.root),
            overhead: root.overhead,
            own: root.own,
            exhausted: root.exhausted,
        });
        let dropped = budget.dropped.iter().map(|dropped| Dropped {
            method: name(dropped.method),
            calls: dropped.calls,
            self_ns: dropped.self_ns,
            error_ns: dropped.error_ns,
            overhead: dropped.overhead,
            at_ns: super::nanoseconds(dropped.at),
        });
        let (limit, limit_ns) = match budget.limit {
            profile::Limit::Part(part) => (Some(part), None),
            profile::Limit::Call { longer_ns } => (None, Some(longer_ns)),
        };
        Budget {
            limit,
            limit_ns,
            overhead: budget.overhead(),
            held: budget.is_held(),
            roots: roots.collect(),
            batches: budget.batches,
            pause_ns: budget.pause_ns,
            dropped: dropped.collect(),
        }
    }
}
