//! Explanations as one JSON object, schema `headwater-explain/1`; docs/REFERENCE.md describes it field by field.

use std::io::{self, Write};

use serde::Serialize;

use super::words::how;
use super::{Explained, Standing};
use crate::profile::reach;
use headwater_terms::reach::Trigger;

#[derive(Serialize)]
struct Report<'a> {
    schema: &'static str,
    pattern: &'a str,
    methods: Vec<Method<'a>>,
}

#[derive(Serialize)]
struct Method<'a> {
    method: &'a str,
    /// `probed`, `unprobed` or `unreached`.
    standing: &'static str,
    calls: u64,
    /// Why it has no probes.
    obstacle: Option<&'static str>,
    roots: &'a [String],
    callers: Vec<Caller<'a>>,
    way: Vec<Step<'a>>,
    found: Option<Found>,
    probed: Option<Moment>,
    remarks: &'a [String],
    advice: Option<&'a str>,
}

#[derive(Serialize)]
struct Caller<'a> {
    /// None is code outside the call graph.
    method: Option<&'a str>,
    calls: u64,
}

#[derive(Serialize)]
struct Step<'a> {
    method: &'a str,
    way: &'static str,
    through: Option<&'a str>,
    text: String,
}

#[derive(Serialize)]
struct Moment {
    at_ns: u64,
    hotswaps: u32,
}

impl Moment {
    fn of(moment: reach::Moment) -> Moment {
        Moment { at_ns: u64::from(moment.recorded_ms) * 1_000_000, hotswaps: moment.batches }
    }
}

#[derive(Serialize)]
struct Found {
    /// None where it was found before its way was known.
    trigger: Option<&'static str>,
    #[serde(flatten)]
    moment: Moment,
}

/// Writes them all.
pub fn write(explained: &[Explained], pattern: &str, out: &mut impl Write) -> io::Result<()> {
    let report = Report { schema: "headwater-explain/1", pattern, methods: explained.iter().map(method).collect() };
    serde_json::to_writer_pretty(&mut *out, &report)?;
    writeln!(out)
}

fn method(explained: &Explained) -> Method<'_> {
    let (standing, obstacle, calls) = match explained.standing {
        Standing::Probed(calls) => ("probed", None, calls),
        Standing::Unprobed(why, calls) => ("unprobed", Some(why.name()), calls),
        Standing::Unreached => ("unreached", None, 0),
    };
    Method {
        method: &explained.machine,
        standing,
        calls,
        obstacle,
        roots: &explained.roots,
        callers: explained
            .callers
            .iter()
            .map(|it| Caller { method: it.method.as_ref().map(|(machine, _)| &**machine), calls: it.calls })
            .collect(),
        way: explained
            .way
            .iter()
            .map(|it| Step { method: &it.machine, way: it.way.name(), through: it.through.as_deref(), text: how(it) })
            .collect(),
        found: explained
            .found
            .map(|(trigger, at)| Found { trigger: trigger.map(Trigger::name), moment: Moment::of(at) }),
        probed: explained.probed.map(Moment::of),
        remarks: &explained.remarks,
        advice: explained.advice.as_deref(),
    }
}
