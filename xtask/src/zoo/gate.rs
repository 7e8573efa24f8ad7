//! Whether a gate on bytecodes holds: the same work has the same number each time, beside any load, and one more round of a loop has another.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use super::program::Root;
use super::setting::Setting;
use super::table::Table;
use super::tool;
use crate::class_tree::write_text;

/// So many calls of the root are recorded, from its first on.
const CALLS: &str = "4";
/// What `headwater diff` says by its exit code.
const IS_MET: i32 = 1;

/// What the runs of a root said.
#[derive(Debug)]
pub(crate) struct Gated {
    /// The program, the JDK, the root.
    of: [String; 3],
    /// In the first run, altogether.
    bytecodes: u64,
    methods: usize,
    /// Each other run's greatest difference from the first: of how many methods, and of the sum.
    others: Vec<Difference>,
    /// Runs in which the program's own methods had the same numbers.
    green: usize,
    /// Whether one more round of a loop was noticed.
    is_red: bool,
}

/// How far a run is from the first.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Difference {
    methods: usize,
    part: f64,
}

/// By method, in all its nodes.
type Executed = BTreeMap<String, u64>;

#[derive(Deserialize)]
struct Report {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    method: String,
    #[serde(default)]
    metrics: Metrics,
}

#[derive(Default, Deserialize)]
struct Metrics {
    bytecodes: Option<Count>,
}

#[derive(Deserialize)]
struct Count {
    #[serde(rename = "self")]
    own: u64,
}

/// Runs a root so many times, each in a JVM of its own, and once with more to do.
pub(crate) fn run(
    setting: &Setting<'_>,
    binary: &Path,
    root: &Root,
    runs: usize,
    directory: &Path,
) -> Result<Gated, String> {
    let description = &setting.program.description;
    let gate = description.gate.as_ref().ok_or("its description has no `gate`")?;
    let record = |name: &str, arguments: &[String]| -> Result<PathBuf, String> {
        let snapshot = directory.join(name).with_extension("hw");
        count(setting, binary, root, arguments, &snapshot).map(|()| snapshot)
    };
    let first = record("0", &gate.same)?;
    let executed = executed(binary, &first)?;
    let (mut others, mut green) = (Vec::new(), 0);
    let class = root.method.split("::").next().unwrap_or(&root.method);
    let condition = format!("bytecodes({class}.*) > +0%");
    let is_met = |other: &Path| -> Result<bool, String> {
        let status = Command::new(binary)
            .args(["diff", "--fail-if", &condition])
            .args([&first, other])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
        match status.code() {
            Some(0) => Ok(false),
            Some(IS_MET) => Ok(true),
            _ => Err(format!("headwater diff ended with {status}")),
        }
    };
    for number in 1..runs {
        let other = record(&number.to_string(), &gate.same)?;
        others.push(Difference::between(&executed, &self::executed(binary, &other)?));
        green += usize::from(!is_met(&other)?);
    }
    let is_red = is_met(&record("more", &gate.more)?)?;
    let of = [setting.program.name.clone(), setting.jdk.version.to_string(), root.method.clone()];
    Ok(Gated { of, bytecodes: executed.values().sum(), methods: executed.len(), others, green, is_red })
}

/// Starts the program with a profile that counts.
fn count(
    setting: &Setting<'_>,
    binary: &Path,
    root: &Root,
    arguments: &[String],
    snapshot: &Path,
) -> Result<(), String> {
    let java = setting.built.program(setting.jdk, &setting.program.description, setting.packaging);
    let mut command = Command::new(binary);
    command.args(["run", "--root", &root.method, "--calls", CALLS, "--count", "bytecodes", "--bare", "off", "-o"]);
    command.arg(snapshot).arg("--").arg(java.get_program()).args(java.get_args()).args(arguments);
    command.current_dir(&setting.built.work).stdin(Stdio::null());
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    write_text(&snapshot.with_extension("log"), &said)?;
    if !output.status.success() || said.contains("ZOO wrong") {
        return Err(format!("{command:?} ended with {}:\n{said}", output.status));
    }
    Ok(())
}

fn executed(binary: &Path, snapshot: &Path) -> Result<Executed, String> {
    let json = tool::report(binary, snapshot, &[], &snapshot.with_extension("json"))?;
    let report: Report = serde_json::from_str(&json).map_err(|error| format!("the report is no JSON: {error}"))?;
    let mut executed = Executed::new();
    for node in report.nodes {
        *executed.entry(node.method).or_default() += node.metrics.bytecodes.map_or(0, |count| count.own);
    }
    Ok(executed)
}

impl Difference {
    fn between(first: &Executed, other: &Executed) -> Difference {
        let of = |executed: &Executed, method: &str| executed.get(method).copied().unwrap_or_default();
        let mut methods: Vec<&String> = first.keys().chain(other.keys()).collect();
        methods.sort_unstable();
        methods.dedup();
        let sum = first.values().sum::<u64>();
        let apart = other.values().sum::<u64>().abs_diff(sum);
        Difference {
            methods: methods.iter().filter(|method| of(first, method) != of(other, method)).count(),
            part: apart as f64 / sum.max(1) as f64,
        }
    }
}

impl Gated {
    fn holds(&self) -> bool {
        self.is_red && self.green == self.others.len()
    }
}

/// All of them, as a table; and whether each gate holds.
pub(crate) fn table(all: &[Gated]) -> (String, bool) {
    let mut table = Table::new(&[
        "program",
        "JDK",
        "root",
        "bytecodes",
        "methods",
        "runs",
        "methods that differ, at most",
        "sums differ by, at most",
        "own methods the same",
        "one more round noticed",
    ]);
    for gated in all {
        let methods = gated.others.iter().map(|other| other.methods).max().unwrap_or_default();
        let part = gated.others.iter().map(|other| other.part).fold(0.0, f64::max);
        let mut cells = gated.of.to_vec();
        cells.extend([gated.bytecodes, gated.methods as u64, gated.others.len() as u64 + 1].map(|it| it.to_string()));
        cells.extend([methods.to_string(), format!("{:.5} %", 100.0 * part)]);
        cells.push(format!("{} of {}", gated.green, gated.others.len()));
        cells.push(if gated.is_red { "yes" } else { "NO" }.to_owned());
        table.row(cells);
    }
    (table.render(), all.iter().all(Gated::holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_only_one_run_called_differ_too() {
        let executed =
            |of: &[(&str, u64)]| -> Executed { of.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect() };
        let first = executed(&[("a", 90), ("b", 10)]);
        let same = Difference::between(&first, &first);
        assert_eq!(same, Difference { methods: 0, part: 0.0 });
        let other = Difference::between(&first, &executed(&[("a", 90), ("c", 11)]));
        assert_eq!(other, Difference { methods: 2, part: 0.01 });
    }
}
