//! Whether `headwater roots`, which knows nothing of a program, finds what those who know it would name: the roots in its `zoo.json`; and whether an
//! exact profile of its first candidate costs what it says.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde::Deserialize;

use super::setting::Setting;
use super::tool::{self, Asked};
use crate::class_tree::write_text;

/// Such a place is among the first.
pub(crate) const FIRST: usize = 3;

/// For so long the first candidate is profiled.
const RECORDED: Duration = Duration::from_secs(5);

/// What it said of a program.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The program, and the JDK.
    pub(crate) of: String,
    /// Its first candidates, and what is entered with them.
    candidates: Vec<Candidate>,
    /// Those that the program's description names.
    wanted: Vec<String>,
    /// What a profile of the first was, if one was made.
    profiled: Option<Profiled>,
}

#[derive(Clone, Debug, Deserialize)]
struct Candidate {
    root: String,
    cpu_share: f64,
    calls_a_second: f64,
    entered_with_it: Vec<String>,
    cost: Option<Cost>,
}

/// What a profile is said to cost.
#[derive(Clone, Debug, Deserialize)]
struct Cost {
    calls_a_second: Range,
    pair_ns: f64,
    times_as_long: Range,
}

#[derive(Clone, Copy, Debug, Deserialize)]
struct Range {
    low: f64,
    likely: Option<f64>,
    high: f64,
}

/// Of a profile's JSON report, what it cost.
#[derive(Clone, Debug, Deserialize)]
struct Profiled {
    roots: Vec<Root>,
    events: Events,
    methods: Methods,
    #[serde(default)]
    lengthened: Vec<Lengthened>,
}

#[derive(Clone, Debug, Deserialize)]
struct Root {
    calls: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Events {
    calls: u64,
}

#[derive(Clone, Debug, Deserialize)]
struct Methods {
    /// The part of the calls that is missing.
    #[serde(default)]
    missing: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Lengthened {
    part: f64,
}

#[derive(Deserialize)]
struct Report {
    candidates: Vec<Candidate>,
}

/// Whether what is said of costs is compared with a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Costs {
    /// The first candidate is profiled.
    Compared,
    /// It is not.
    Believed,
}

/// Starts a program, warms it up, and asks.
pub(crate) fn ask(
    setting: &Setting<'_>,
    binary: &Path,
    directory: &Path,
    of: String,
    costs: Costs,
) -> Result<Said, String> {
    let roots = &setting.program.description.roots;
    let first = roots.first().ok_or("the program has no root")?;
    let mut work = setting.start(directory)?;
    work.warm_up(first, &setting.pace)?;
    let output = Command::new(binary)
        .args(["roots", &work.program.pid.to_string(), "--format", "json"])
        .output()
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    let json = String::from_utf8_lossy(&output.stdout);
    write_text(&directory.join("roots.json"), &json)?;
    if !output.status.success() {
        return Err(format!("headwater roots: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let Report { candidates } =
        serde_json::from_str(&json).map_err(|error| format!("the answer is no JSON: {error}"))?;
    let wanted = roots.iter().map(|root| root.method.clone()).collect();
    let mut said = Said { of, candidates, wanted, profiled: None };
    if let Some(first) = said.candidates.first().filter(|_| costs == Costs::Compared) {
        let snapshot = directory.join(tool::SNAPSHOT);
        let asked = Asked { pid: work.program.pid, root: &first.root, duration: RECORDED, options: &[], without: "" };
        tool::record(binary, asked, &snapshot, |_| Ok(()))?;
        let json = tool::report(binary, &snapshot, &[], &snapshot.with_extension("json"))?;
        said.profiled = Some(serde_json::from_str(&json).map_err(|error| format!("the report is no JSON: {error}"))?);
    }
    Ok(said)
}

impl Said {
    /// The place of the first candidate that is wanted, and whether it was named itself, or stands beside one that is entered with it.
    fn place(&self) -> Option<(usize, bool)> {
        let is_wanted = |name: &str| {
            let name = name.split('(').next().unwrap_or(name).replace("::", ".");
            self.wanted.iter().any(|wanted| wanted.replace("::", ".") == name)
        };
        let named = self.candidates.iter().position(|it| is_wanted(&it.root));
        let beside = || self.candidates.iter().position(|it| it.entered_with_it.iter().any(|name| is_wanted(name)));
        named.map(|at| (at + 1, true)).or_else(|| beside().map(|at| (at + 1, false)))
    }

    fn row(&self) -> String {
        let short =
            |it: &Candidate| format!("{} ({:.0} %, {:.0}/s)", it.short(), 100.0 * it.cpu_share, it.calls_a_second);
        let first: Vec<String> = self.candidates.iter().take(FIRST).map(short).collect();
        let place = match self.place() {
            Some((place, true)) => place.to_string(),
            Some((place, false)) => format!("entered with {place}"),
            None => "-".to_owned(),
        };
        format!("| {} | {} | {place} | {} |", self.of, self.wanted.join(", "), first.join(", "))
    }
}

impl Candidate {
    /// The class without its package, and the method.
    fn short(&self) -> &str {
        let name = self.root.split('(').next().unwrap_or(&self.root);
        let class = name.rfind("::").and_then(|end| name[..end].rfind('.')).map_or(0, |dot| dot + 1);
        &name[class..]
    }
}

/// What was said of the first candidates' costs, and what they were.
fn costs(all: &[Said]) -> String {
    let mut text =
        "\n| program, JDK | root | calls below each: said | were | missing | pair, ns | times as long: said | were |\n\
        |---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let (mut known, mut held) = (0, [0, 0]);
    for Said { of, candidates, profiled, .. } in all {
        let (Some(first), Some(profiled)) = (candidates.first(), profiled) else { continue };
        let calls: u64 = profiled.roots.iter().map(|root| root.calls).sum();
        let below = (profiled.events.calls as f64 / calls.max(1) as f64 - 1.0).max(0.0);
        let times = profiled.lengthened.first().map(|lengthened| 1.0 + lengthened.part);
        let were = format!("{below:.0} | {:.0} %", 100.0 * profiled.methods.missing);
        let longer = times.map_or("-".to_owned(), |times| format!("{times:.1}"));
        let Some(Cost { calls_a_second, pair_ns, times_as_long }) = &first.cost else {
            text += &format!("| {of} | {} | not known | {were} | - | - | {longer} |\n", first.short());
            continue;
        };
        let each = |calls: f64| calls / first.calls_a_second.max(1e-3);
        let Range { low, likely, high } = *calls_a_second;
        let likely = likely.unwrap_or_default();
        known += 1;
        held[0] += i32::from((each(low)..=each(high)).contains(&below));
        held[1] += i32::from(times.is_none_or(|times| (times_as_long.low..=times_as_long.high).contains(&times)));
        text += &format!(
            "| {of} | {} | {:.0} ({:.0} to {:.0}) | {were} | {pair_ns:.0} | {:.1} to {:.0} | {longer} |\n",
            first.short(),
            each(likely),
            each(low),
            each(high),
            times_as_long.low,
            times_as_long.high
        );
    }
    text + &format!("\nWithin what was said: calls {} of {known}, times as long {} of {known}.\n", held[0], held[1])
}

/// All of them, as a table.
pub(crate) fn table(all: &[Said]) -> String {
    let mut text =
        "| program, JDK | those who know it name | place | the first three |\n|---|---|---|---|\n".to_owned();
    all.iter().for_each(|said| text += &(said.row() + "\n"));
    let among =
        all.iter().filter(|said| said.place().is_some_and(|(place, is_named)| is_named && place <= FIRST)).count();
    text += &format!("\n{among} of {} among the first {FIRST}.\n", all.len());
    if all.iter().any(|said| said.profiled.is_some()) { text + &costs(all) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_named_or_stands_beside() {
        let candidate = |root: &str, with: &[&str]| Candidate {
            root: root.to_owned(),
            cpu_share: 0.5,
            calls_a_second: 7.0,
            entered_with_it: with.iter().map(|name| (*name).to_owned()).collect(),
            cost: None,
        };
        let said = |wanted: &str| Said {
            of: "shop 25".to_owned(),
            candidates: vec![candidate("a.B::m(int)", &["a.C.n(String)"]), candidate("a.D::m()", &[])],
            wanted: vec![wanted.to_owned()],
            profiled: None,
        };
        assert_eq!(said("a.D::m").place(), Some((2, true)));
        assert_eq!(said("a.C::n").place(), Some((1, false)));
        assert_eq!(said("a.E::m").place(), None);
        assert_eq!(said("a.B::m").row(), "| shop 25 | a.B::m | 1 | B::m (50 %, 7/s), D::m (50 %, 7/s) |");
    }

    #[test]
    fn what_a_profile_cost_stands_beside_what_was_said() {
        let report = r#"{"candidates": [{"root": "a.B::m()", "cpu_share": 0.5, "calls_a_second": 10, "entered_with_it": [],
            "cost": {"calls_a_second": {"low": 100, "likely": 400, "high": 900}, "pair_ns": 40.2, "times_as_long": {"low": 1.5, "high": 9}}}]}"#;
        let Report { candidates } = serde_json::from_str(report).expect("a report");
        let profiled = |calls: u64| {
            let profiled = Profiled {
                roots: vec![Root { calls: 10 }],
                events: Events { calls },
                methods: Methods { missing: 0.25 },
                lengthened: vec![Lengthened { part: 1.5 }],
            };
            costs(&[Said {
                of: "shop, 25".to_owned(),
                candidates: candidates.clone(),
                wanted: Vec::new(),
                profiled: Some(profiled),
            }])
        };
        let table = profiled(510);
        assert!(table.contains("| shop, 25 | B::m | 40 (10 to 90) | 50 | 25 % | 40 | 1.5 to 9 | 2.5 |"), "{table}");
        assert!(table.contains("calls 1 of 1, times as long 1 of 1"), "{table}");
        assert!(profiled(5_010).contains("calls 0 of 1"), "{table}");
    }
}
