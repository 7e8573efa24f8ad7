//! The programs that read exports.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use headwater_tests::Scratch;
use serde_json::Value;

use super::made_up::Callgrind;

/// Debian's Python: the one that finds Debian's libraries.
const PYTHON: &str = "/usr/bin/python3";

/// A file that goes away with the test.
pub struct Written {
    scratch: Scratch,
    name: &'static str,
}

impl Written {
    pub fn new(name: &'static str, bytes: &[u8]) -> Written {
        let scratch = Scratch::new("export");
        std::fs::write(scratch.file(name), bytes).expect("a scratch file");
        Written { scratch, name }
    }

    fn path(&self) -> PathBuf {
        self.scratch.file(self.name)
    }
}

/// Runs a reader to its end; its standard output.
fn run(command: &mut Command) -> String {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}. `cargo xtask test` installs what reads exports"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed; `cargo xtask test` installs what it needs:\n{stderr}");
    assert!(!stderr.contains("WARNING") && !stderr.contains("malformed"), "{command:?}:\n{stderr}");
    String::from_utf8(output.stdout).expect("text")
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumers").join(name)
}

/// What `cargo xtask test` has installed from npm.
fn speedscope_package() -> PathBuf {
    let own = std::env::current_exe().expect("our own path");
    let target = own.ancestors().nth(3).expect("target/<profile>/deps/<test>");
    target.join("consumers/node_modules/speedscope")
}

/// What speedscope's importer makes of a file that has this name.
pub fn speedscope(file: &Written, name: &str) -> Value {
    let mut node = Command::new("node");
    node.arg(script("speedscope.js")).arg(speedscope_package()).arg(file.path()).arg(name);
    serde_json::from_str(&run(&mut node)).expect("JSON")
}

/// What one of Python's libraries makes of a file.
pub fn python(reader: &[&str], file: &Written) -> Value {
    let mut python = Command::new(PYTHON);
    python.arg(script("read.py")).args(reader).arg(file.path());
    serde_json::from_str(&run(&mut python)).expect("JSON")
}

/// What Graphviz makes of a graph.
pub fn graphviz(file: &Written) -> Value {
    serde_json::from_str(&run(Command::new("dot").arg("-Tdot_json").arg(file.path()))).expect("JSON")
}

/// Validates a file by the schema that speedscope publishes.
pub fn validate_by_schema(file: &Written) {
    let schema = speedscope_package().join("dist/release/file-format-schema.json");
    let schema = schema.to_str().expect("a path in UTF-8");
    assert_eq!(python(&["schema", schema], file), "valid");
}

/// What `go tool pprof` knows of a profile.
pub struct GoPprof {
    pub header: String,
    pub comments: String,
    pub sample_types: Vec<String>,
    /// Calls and time by stack, from the root on, and labels.
    pub samples: BTreeMap<(Vec<String>, String), (i64, u64)>,
    pub system_names: BTreeSet<String>,
}

fn pprof(file: &Written, options: &[&str]) -> String {
    run(Command::new("go").args(["tool", "pprof"]).args(options).arg(file.path()))
}

/// The table of functions.
pub fn go_pprof_top(file: &Written, options: &[&str]) -> String {
    pprof(file, &[&["-top", "-nodecount=1000"], options].concat())
}

/// Everything, by `-raw`.
pub fn go_pprof(file: &Written) -> GoPprof {
    let raw = pprof(file, &["-raw"]);
    let (header, body) = raw.split_once("Samples:\n").expect("samples");
    let (samples, locations) = body.split_once("Locations\n").expect("locations");
    let (locations, _) = locations.split_once("Mappings\n").expect("mappings");

    // `     1: 0x0 M=1 name :0:0 s=0(system name)`
    let mut names = BTreeMap::new();
    let mut system_names = BTreeSet::new();
    for line in locations.lines() {
        let (id, rest) = line.trim_start().split_once(": 0x0 M=1 ").expect("a location");
        let (name, system_name) = rest.split_once(" :0:0 s=0").expect("a function without a file");
        // Where both are the same, it stands there once.
        let system_name = system_name.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).unwrap_or(name);
        names.insert(id.to_owned(), name.to_owned());
        system_names.insert(system_name.to_owned());
    }

    // The types; then `12 1000: 3 2 1`, the leaf first; then `thread:[main]`, if there are labels.
    let mut lines = samples.lines();
    let sample_types = lines.next().expect("types").split_whitespace().map(str::to_owned).collect();
    let mut samples: Vec<(Vec<String>, i64, u64, String)> = Vec::new();
    for line in lines {
        let numbers = line.split_once(": ").and_then(|(values, stack)| {
            let mut values = values.split_whitespace();
            Some((values.next()?.parse().ok()?, values.next()?.parse().ok()?, stack))
        });
        match numbers {
            Some((calls, ns, stack)) => {
                let stack = stack.split_whitespace().rev().map(|id| names[id].clone()).collect();
                samples.push((stack, calls, ns, String::new()));
            }
            None => {
                let labels = &mut samples.last_mut().expect("labels follow a sample").3;
                *labels = format!("{labels} {}", line.trim()).trim().to_owned();
            }
        }
    }
    let mut sums: BTreeMap<(Vec<String>, String), (i64, u64)> = BTreeMap::new();
    for (stack, calls, ns, labels) in samples {
        let sum = sums.entry((stack, labels)).or_default();
        *sum = (sum.0 + calls, sum.1 + ns);
    }
    let samples = sums;
    GoPprof { header: header.to_owned(), comments: pprof(file, &["-comments"]), sample_types, samples, system_names }
}

/// What callgrind_annotate knows of a profile.
pub struct Annotated {
    pub total: u64,
    pub self_ns: BTreeMap<String, u64>,
    pub inclusive_ns: BTreeMap<String, u64>,
    pub arcs: BTreeMap<(String, String), (u64, u64)>,
}

/// Everything that it lists.
pub fn callgrind_annotate(file: &Written) -> Annotated {
    let exclusive = annotate(file, &[]);
    let inclusive = annotate(file, &["--inclusive=yes", "--tree=calling"]);
    Annotated {
        total: exclusive.0,
        self_ns: exclusive.1.self_ns,
        inclusive_ns: inclusive.1.self_ns,
        arcs: inclusive.1.arcs,
    }
}

/// The listing: its total; its functions' costs, as self time; and the calls below each.
fn annotate(file: &Written, options: &[&str]) -> (u64, Callgrind) {
    let text =
        run(Command::new("callgrind_annotate").args(["--threshold=100", "--auto=no"]).args(options).arg(file.path()));
    // What costs nothing has a dot, and is listed for what it costs of another event.
    let number = |text: &str| match text.split_whitespace().next() {
        Some(".") => 0,
        number => number.expect("a number").replace(',', "").parse::<u64>().expect("a number"),
    };
    let mut total = None;
    let mut listed = Callgrind::default();
    let mut caller = String::new();
    // `12,345 (12.3%)  *  ???:caller [package]`, below it `12,345 (1.2%)  >   ???:callee (24x) [package]`.
    for line in text.lines() {
        let Some((cost, rest)) = line.split_once('(') else { continue };
        let Some((_, rest)) = rest.split_once("%)") else { continue };
        // Behind the first event come the others.
        if rest.ends_with("PROGRAM TOTALS") {
            total = Some(number(cost));
            continue;
        }
        let Some((mark, function)) = rest.split_once("???:") else { continue };
        let function = function.rsplit_once(" [").map_or(function, |(function, _)| function);
        if mark.trim().ends_with('>') {
            let (callee, calls) = function.rsplit_once(" (").expect("a number of calls");
            let calls = number(calls.strip_suffix("x)").expect("(calls x)"));
            let known = listed.arcs.insert((caller.clone(), callee.to_owned()), (calls, number(cost)));
            assert_eq!(known, None, "{line}");
        } else {
            caller = function.to_owned();
            assert_eq!(listed.self_ns.insert(caller.clone(), number(cost)), None, "{line}");
        }
    }
    listed.self_ns.retain(|_, ns| *ns > 0);
    listed.arcs.retain(|_, (_, ns)| *ns > 0);
    (total.expect("PROGRAM TOTALS"), listed)
}
