//! The Firefox Profiler's processed profile format, version 55, as the crate fxprof-processed-profile by one of its makers writes it
//! and its `docs-developer/CHANGELOG-formats.md` tells it; profiler.firefox.com upgrades whatever is older than itself.
//!
//! Written by ourselves, because that crate's sample weights are whole numbers of 32 bits: too small for nanoseconds, too coarse
//! for milliseconds. Every node is a stack, and a sample whose weight is its self time in milliseconds. Samples stand one after the
//! other as if all calls of a context were one: the stack chart shows the tree, not when things happened.

use std::io::{self, Write};
use std::iter::repeat_n;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::json;

use super::ExportedTree;
use super::functions::Functions;
use crate::profile::walk::{Children, Step};
use crate::profile::{Metric, NodeIndex, Profile, ThreadProfile, Unit};

/// Of the two categories, every frame has the second, and its package as subcategory.
const CATEGORY: usize = 1;
/// Packages come after the subcategory that each category must have.
const FIRST_PACKAGE: usize = 1;
/// `resourceTypes.library` of the profiler's source: what it calls a library is a package here.
const LIBRARY: u32 = 1;
/// No address, no resource.
const NONE: i64 = -1;

pub(super) fn write(
    profile: &Profile,
    metrics: &[Metric],
    parts: &[ExportedTree<'_>],
    started: Option<SystemTime>,
    out: &mut impl Write,
) -> io::Result<()> {
    let functions = Functions::of(profile, parts);
    serde_json::to_writer(&mut *out, &File { profile, metrics, parts, functions: &functions, started })?;
    writeln!(out)
}

struct File<'a> {
    profile: &'a Profile,
    metrics: &'a [Metric],
    parts: &'a [ExportedTree<'a>],
    functions: &'a Functions,
    started: Option<SystemTime>,
}

impl Serialize for File<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (packages, of_functions) = self.functions.packages();
        let parts = self.metrics.iter().flat_map(|metric| self.parts.iter().map(move |part| (metric, part)));
        let threads = parts.map(|(metric, part)| Thread {
            profile: self.profile,
            part,
            metric,
            functions: self.functions,
            packages: &packages,
            package_of: &of_functions,
        });
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("meta", &self.meta(&packages))?;
        map.serialize_entry("libs", &json!([]))?;
        map.serialize_entry("threads", &threads.collect::<Vec<_>>())?;
        map.serialize_entry("pages", &json!([]))?;
        map.serialize_entry("profilerOverhead", &json!([]))?;
        map.serialize_entry("counters", &json!([]))?;
        map.end()
    }
}

impl File<'_> {
    fn meta(&self, packages: &[&str]) -> serde_json::Value {
        let started = self.started.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let subcategories: Vec<&str> =
            std::iter::once("Other").chain(packages.iter().map(|name| named(name))).collect();
        let remarks = super::remarks(self.profile);
        let remark = |remark| json!({ "label": "Note", "format": "string", "value": remark });
        let remarks: Vec<serde_json::Value> = remarks.into_iter().map(remark).collect();
        let nodes: usize = self.parts.iter().map(|part| part.tree.nodes.len()).sum();
        let time = self.profile.time_metric();
        let whole_ns: u64 = self.parts.iter().map(|part| part.whole(&time)).sum();
        json!({
            "categories": [
                { "name": "Other", "color": "grey", "subcategories": ["Other"] },
                { "name": "Java", "color": "blue", "subcategories": subcategories },
            ],
            "debug": false,
            "extensions": { "length": 0, "baseURL": [], "id": [], "name": [] },
            // Nothing was sampled; tracks are drawn as if this far lay between two samples.
            "interval": (milliseconds(whole_ns) / nodes.max(1) as f64).max(1e-6),
            "preprocessedProfileVersion": 55,
            "processType": 0,
            "product": format!("{} (pid {})", self.profile.target.main, self.profile.target.pid),
            "importedFrom": super::creator(),
            "arguments": super::title(self.profile),
            "sampleUnits": { "time": "ms", "eventDelay": "ms", "threadCPUDelta": "µs" },
            "startTime": started.map_or(0.0, |time| time.as_secs_f64() * 1e3),
            "symbolicated": true,
            "pausedRanges": [],
            "version": 24,
            "usesOnlyOneStackType": true,
            "sourceCodeIsNotOnSearchfox": true,
            "markerSchema": [],
            // Shown with the profile's facts.
            "extra": [{ "label": "Headwater", "entries": remarks }],
        })
    }
}

/// A thread: tables of columns that refer to each other by index.
struct Thread<'a> {
    profile: &'a Profile,
    part: &'a ExportedTree<'a>,
    /// The tracks of the profiler are of threads: each metric has its own.
    metric: &'a Metric,
    functions: &'a Functions,
    packages: &'a [&'a str],
    package_of: &'a [usize],
}

impl Serialize for Thread<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let functions = self.functions.all.len();
        let packages = self.packages.len();
        let main = &self.profile.target.main;
        let pid = self.profile.target.pid.to_string();
        let strings: Vec<&str> = self
            .functions
            .all
            .iter()
            .map(|function| function.label.as_str())
            .chain(self.packages.iter().map(|name| named(name)))
            .collect();
        let name = self.part.thread.map_or("all threads".into(), ThreadProfile::shown_name);
        let name = match self.metric.is_time() {
            true => name.into_owned(),
            false => format!("{name}: {}", self.metric.title),
        };
        let tid = self.part.thread.map_or_else(|| pid.clone(), |thread| thread.id.0.to_string());
        let subcategories: Vec<usize> = self.package_of.iter().map(|package| FIRST_PACKAGE + package).collect();

        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(
            "frameTable",
            &json!({
                "length": functions,
                "address": column(NONE, functions),
                "inlineDepth": column(0, functions),
                "category": column(CATEGORY, functions),
                "subcategory": subcategories,
                "func": (0..functions).collect::<Vec<_>>(),
                "nativeSymbol": column((), functions),
                "innerWindowID": column(0, functions),
                "line": column((), functions),
                "column": column((), functions),
            }),
        )?;
        map.serialize_entry(
            "funcTable",
            &json!({
                "length": functions,
                "name": (0..functions).collect::<Vec<_>>(),
                "isJS": column(false, functions),
                "relevantForJS": column(false, functions),
                "resource": self.package_of,
                "fileName": column((), functions),
                "lineNumber": column((), functions),
                "columnNumber": column((), functions),
            }),
        )?;
        map.serialize_entry(
            "resourceTable",
            &json!({
                "length": packages,
                "lib": column((), packages),
                "name": (functions..functions + packages).collect::<Vec<_>>(),
                "host": column((), packages),
                "type": column(LIBRARY, packages),
            }),
        )?;
        map.serialize_entry(
            "nativeSymbols",
            &json!({ "length": 0, "address": [], "functionSize": [], "libIndex": [], "name": [] }),
        )?;
        map.serialize_entry(
            "markers",
            &json!({
                "length": 0, "category": [], "data": [], "endTime": [], "name": [], "phase": [], "startTime": [],
            }),
        )?;
        map.serialize_entry("stackTable", &Stacks(self))?;
        map.serialize_entry("samples", &Samples(self))?;
        map.serialize_entry("stringArray", &strings)?;
        map.serialize_entry("name", &name)?;
        map.serialize_entry("isMainThread", &(self.part.thread.is_none() && self.metric.is_time()))?;
        map.serialize_entry("pausedRanges", &json!([]))?;
        map.serialize_entry("pid", &pid)?;
        map.serialize_entry("processName", main)?;
        map.serialize_entry("processShutdownTime", &())?;
        map.serialize_entry("processStartupTime", &0.0)?;
        map.serialize_entry("processType", "default")?;
        map.serialize_entry("registerTime", &0.0)?;
        map.serialize_entry("tid", &tid)?;
        map.serialize_entry("unregisterTime", &())?;
        map.serialize_entry("showMarkersInTimeline", &false)?;
        map.end()
    }
}

/// A stack a node, by the nodes' own numbers: parents come first there, as prefixes must here.
struct Stacks<'a>(&'a Thread<'a>);

impl Serialize for Stacks<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Thread { part, functions, .. } = self.0;
        let nodes = &part.tree.nodes;
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("length", &nodes.len())?;
        map.serialize_entry("prefix", &Column(|| nodes.iter().map(|node| node.parent.map(|parent| parent.0))))?;
        map.serialize_entry("frame", &Column(|| nodes.iter().map(|node| functions.index_of(node.method).0)))?;
        map.end()
    }
}

/// A sample a node, and a last one of no stack, which ends the one before it.
struct Samples<'a>(&'a Thread<'a>);

impl Serialize for Samples<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let tree = self.0.part.tree;
        let children = Children::of(tree);
        let order: Vec<NodeIndex> = children
            .depth_first()
            .filter_map(|step| match step {
                Step::Enter(index) => Some(index),
                Step::Leave(_) => None,
            })
            .collect();
        let metric = self.0.metric;
        let (weight_type, one) = match metric.unit {
            Unit::Nanoseconds => ("tracing-ms", 1e-6),
            Unit::Bytes => ("bytes", 1.0),
            Unit::Count | Unit::Bytecodes | Unit::Share => ("samples", 1.0),
        };
        let own = |index: &NodeIndex| self.0.part.amount(metric, *index).own as f64 * one;
        let stacks = || order.iter().map(|index| Some(index.0)).chain([None]);
        let weights = || order.iter().map(own).chain([0.0]);
        // The first sample comes at once, and every other when the time of the one before it is over: what is no time passes as one would.
        let deltas = || std::iter::once(0.0).chain(order.iter().map(own));
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("length", &(order.len() + 1))?;
        map.serialize_entry("weightType", weight_type)?;
        map.serialize_entry("stack", &Column(stacks))?;
        map.serialize_entry("timeDeltas", &Column(deltas))?;
        map.serialize_entry("weight", &Column(weights))?;
        map.end()
    }
}

/// A column that is made as it is written.
struct Column<F>(F);

impl<I, F> Serialize for Column<F>
where
    I: Iterator<Item: Serialize>,
    F: Fn() -> I,
{
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0())
    }
}

/// A column of one value.
fn column<T: Clone>(value: T, length: usize) -> Vec<T> {
    repeat_n(value, length).collect()
}

fn named(package: &str) -> &str {
    if package.is_empty() { "(unnamed package)" } else { package }
}

fn milliseconds(ns: u64) -> f64 {
    ns as f64 / 1e6
}
