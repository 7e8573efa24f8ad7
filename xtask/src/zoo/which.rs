//! Whether `headwater roots`, which knows nothing of a program, finds what those who know it would name: the roots in its `zoo.json`.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

use super::run::Setting;
use super::tool;

/// Such a place is among the first.
pub(crate) const FIRST: usize = 3;

/// What it said of a program.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The program, and the JDK.
    pub(crate) of: String,
    /// Its first candidates, and what is entered with them.
    candidates: Vec<Candidate>,
    /// Those that the program's description names.
    wanted: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Candidate {
    root: String,
    cpu_share: f64,
    calls_a_second: f64,
    entered_with_it: Vec<String>,
}

#[derive(Deserialize)]
struct Report {
    candidates: Vec<Candidate>,
}

/// Starts a program, warms it up, and asks.
pub(crate) fn ask(setting: &Setting<'_>, binary: &Path, directory: &Path, of: String) -> Result<Said, String> {
    let roots = &setting.program.description.roots;
    let first = roots.first().ok_or("the program has no root")?;
    let mut work = setting.start(directory)?;
    work.warm_up(first, &setting.pace)?;
    let output = Command::new(binary)
        .args(["roots", &work.program.pid.to_string(), "--format", "json"])
        .output()
        .map_err(|error| format!("cannot start {}: {error}", binary.display()))?;
    let json = String::from_utf8_lossy(&output.stdout);
    tool::write(&directory.join("roots.json"), &json)?;
    if !output.status.success() {
        return Err(format!("headwater roots: {}", String::from_utf8_lossy(&output.stderr)));
    }
    let Report { candidates } =
        serde_json::from_str(&json).map_err(|error| format!("the answer is no JSON: {error}"))?;
    Ok(Said { of, candidates, wanted: roots.iter().map(|root| root.method.clone()).collect() })
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
        let short = |it: &Candidate| {
            let name = it.root.split('(').next().unwrap_or(&it.root);
            let class = name.rfind("::").and_then(|end| name[..end].rfind('.')).map_or(0, |dot| dot + 1);
            format!("{} ({:.0} %, {:.0}/s)", &name[class..], 100.0 * it.cpu_share, it.calls_a_second)
        };
        let first: Vec<String> = self.candidates.iter().take(FIRST).map(short).collect();
        let place = match self.place() {
            Some((place, true)) => place.to_string(),
            Some((place, false)) => format!("entered with {place}"),
            None => "-".to_owned(),
        };
        format!("| {} | {} | {place} | {} |", self.of, self.wanted.join(", "), first.join(", "))
    }
}

/// All of them, as a table.
pub(crate) fn table(all: &[Said]) -> String {
    let mut text =
        "| program, JDK | those who know it name | place | the first three |\n|---|---|---|---|\n".to_owned();
    all.iter().for_each(|said| text += &(said.row() + "\n"));
    let among =
        all.iter().filter(|said| said.place().is_some_and(|(place, is_named)| is_named && place <= FIRST)).count();
    text + &format!("\n{among} of {} among the first {FIRST}.\n", all.len())
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
        };
        let said = |wanted: &str| Said {
            of: "shop 25".to_owned(),
            candidates: vec![candidate("a.B::m(int)", &["a.C.n(String)"]), candidate("a.D::m()", &[])],
            wanted: vec![wanted.to_owned()],
        };
        assert_eq!(said("a.D::m").place(), Some((2, true)));
        assert_eq!(said("a.C::n").place(), Some((1, false)));
        assert_eq!(said("a.E::m").place(), None);
        assert_eq!(said("a.B::m").row(), "| shop 25 | a.B::m | 1 | B::m (50 %, 7/s), D::m (50 %, 7/s) |");
    }
}
