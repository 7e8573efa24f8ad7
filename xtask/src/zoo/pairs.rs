//! Whether profiles of one program differ by no more than they say: some of them, each of a JVM of its own, every two compared by `headwater diff`,
//! and the first half with the second.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::program::Root;
use super::setting::Setting;
use super::tool;

/// Methods with such a part of the root's time in one of the profiles are looked at.
const COUNTED: f64 = 0.08;

/// How many differences there were, and how many of them were larger than was said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) all: usize,
    pub(crate) beyond: usize,
    /// Of each, how much may be chance, as a part of the time.
    stated: Vec<f64>,
}

/// What comparing found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    pub(crate) profiles: usize,
    /// Of every two.
    pub(crate) compared: usize,
    /// Those with times that are not known.
    pub(crate) not_known: usize,
    /// The time of a root's call.
    pub(crate) root: Tally,
    /// Times of large methods.
    pub(crate) methods: Tally,
    /// The same of the first half of the profiles and the second; nothing, if times are not known.
    pub(crate) halves: Option<Tally>,
}

/// Of `headwater diff --format json`, what is looked at here.
#[derive(Debug, Deserialize)]
struct Comparison {
    times_known: bool,
    total: Time,
    methods: Vec<Method>,
}

#[derive(Debug, Deserialize)]
struct Method {
    total: Time,
}

#[derive(Debug, Deserialize)]
struct Time {
    before_ns: f64,
    after_ns: f64,
    /// None, if times are not known.
    error_ns: Option<f64>,
    changed: bool,
}

/// Profiles a root so many times, and compares.
pub(crate) fn run(
    setting: &Setting<'_>,
    binary: &Path,
    root: &Root,
    options: &[String],
    profiles: usize,
    directory: &Path,
) -> Result<Pairs, String> {
    let mut files: Vec<PathBuf> = Vec::new();
    for number in 0..profiles {
        let directory = directory.join(number.to_string());
        std::fs::create_dir_all(&directory).map_err(|error| format!("{}: {error}", directory.display()))?;
        let mut work = setting.start(&directory)?;
        work.warm_up(root, &setting.pace)?;
        let asked = tool::Asked {
            pid: work.program.pid,
            root: &root.method,
            duration: setting.pace.recording,
            options,
            without: "",
        };
        tool::profile(binary, asked, &directory, |_| Ok(()))?;
        files.push(directory.join(tool::SNAPSHOT));
    }
    let compare = |before: &[PathBuf], after: &[PathBuf]| -> Result<Comparison, String> {
        let text = tool::diff(binary, before, after, &directory.join("diff.json"))?;
        serde_json::from_str(&text).map_err(|error| format!("the comparison is no JSON: {error}"))
    };
    let mut pairs = Pairs { profiles, ..Pairs::default() };
    for after in 1..files.len() {
        for before in 0..after {
            pairs.add(&compare(&files[before..=before], &files[after..=after])?);
        }
    }
    let (first, second) = files.split_at(files.len() / 2);
    let halves = compare(first, second)?;
    pairs.halves = halves.times_known.then(|| halves.large_methods());
    Ok(pairs)
}

impl Pairs {
    fn add(&mut self, comparison: &Comparison) {
        self.compared += 1;
        if !comparison.times_known {
            self.not_known += 1;
            return;
        }
        self.root.add(&comparison.total);
        let Tally { all, beyond, stated } = comparison.large_methods();
        self.methods.all += all;
        self.methods.beyond += beyond;
        self.methods.stated.extend(stated);
    }
}

impl Comparison {
    fn large_methods(&self) -> Tally {
        let mut tally = Tally::default();
        let is_large = |time: &&Time| {
            time.before_ns >= COUNTED * self.total.before_ns || time.after_ns >= COUNTED * self.total.after_ns
        };
        self.methods.iter().map(|method| &method.total).filter(is_large).for_each(|time| tally.add(time));
        tally
    }
}

impl Tally {
    fn add(&mut self, time: &Time) {
        self.all += 1;
        self.beyond += usize::from(time.changed);
        let mean_ns = (time.before_ns + time.after_ns) / 2.0;
        self.stated.extend(time.error_ns.filter(|_| mean_ns > 0.0).map(|error_ns| error_ns / mean_ns));
    }

    /// The median of what is said to be chance, in per cent: an error as large as the time itself would always hold.
    pub(crate) fn stated_percent(&self) -> Option<f64> {
        let mut stated = self.stated.clone();
        stated.sort_by(f64::total_cmp);
        stated.get(stated.len() / 2).map(|part| 100.0 * part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_methods_that_differ_by_more_than_is_said_are_counted() {
        let comparison = |changed: bool, known: bool| -> Comparison {
            let time = |before_ns: f64, after_ns: f64, changed: bool| {
                let error_ns = known.then_some(20.0);
                serde_json::json!({"before_ns": before_ns, "after_ns": after_ns, "error_ns": error_ns, "changed": changed})
            };
            let methods = [time(1000.0, 1000.0, false), time(50.0, 150.0, changed), time(10.0, 70.0, true)];
            let methods: Vec<_> =
                methods.into_iter().map(|total| serde_json::json!({"method": "A.f()V", "total": total})).collect();
            let whole = time(1000.0, 1000.0, false);
            serde_json::from_value(serde_json::json!({"times_known": known, "total": whole, "methods": methods}))
                .expect("a comparison")
        };
        let mut pairs = Pairs::default();
        for (changed, known) in [(true, true), (false, true), (true, false)] {
            pairs.add(&comparison(changed, known));
        }
        assert_eq!((pairs.compared, pairs.not_known), (3, 1));
        assert_eq!((pairs.root.all, pairs.root.beyond), (2, 0));
        assert_eq!((pairs.methods.all, pairs.methods.beyond), (4, 1), "small ones are not");
        assert_eq!(pairs.methods.stated_percent(), Some(20.0));
    }
}
