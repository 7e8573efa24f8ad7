//! Where a profile comes from.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::profile::{self, Environment};

#[derive(Serialize)]
pub(super) struct RecordedIn<'a> {
    headwater: &'a str,
    host: &'a str,
    processors: u32,
    command: &'a [String],
    started: Option<String>,
}

#[derive(Serialize)]
pub(super) struct Target<'a> {
    pid: u32,
    main: &'a str,
    jdk: &'a str,
    /// How what was read of the JVM beyond its documented interfaces stands in it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    internals: BTreeMap<&'a str, &'a str>,
}

impl Target<'_> {
    pub(super) fn of(target: &profile::Target) -> Target<'_> {
        let profile::Target { pid, main, jdk, internals } = target;
        let internals = internals.iter().map(|it| (it.name.as_str(), it.standing.as_str())).collect();
        Target { pid: *pid, main, jdk, internals }
    }
}

impl RecordedIn<'_> {
    pub(super) fn of(environment: &Environment) -> Option<RecordedIn<'_>> {
        let Environment { headwater, host, processors, command, .. } = environment;
        let started = environment.started();
        (*environment != Environment::default()).then_some(RecordedIn {
            headwater,
            host,
            processors: *processors,
            command,
            started,
        })
    }
}
