//! What the reader should know of the runs before comparing them.

use std::fmt::Write;

use super::{Comparison, Per, Run};
use crate::profile::Profile;
use crate::report::units::plural;

/// What should be the same of all runs: how it is called, and what it is of one, as far as its file says.
type Fact = (&'static str, fn(&Profile) -> Option<String>);

/// Of runs that differ in these, there is no mean.
const ESSENTIAL: [Fact; 3] = [("programs", program), ("roots", roots), ("JDKs", |profile| said(&profile.target.jdk))];
const OTHERS: [Fact; 2] = [("hosts", |profile| said(&profile.environment.host)), ("clocks", clock)];

fn said(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

/// Another tool's file that names no JVM is called by its own name.
fn program(profile: &Profile) -> Option<String> {
    let is_named = profile.imported.is_none() || profile.target.pid != 0;
    said(&profile.target.main).filter(|_| is_named)
}

fn roots(profile: &Profile) -> Option<String> {
    let mut patterns: Vec<&str> = profile.roots.iter().map(|root| root.pattern.as_str()).collect();
    patterns.sort_unstable();
    said(&patterns.join(", "))
}

/// What is imported, or sampled, has none of ours.
fn clock(profile: &Profile) -> Option<String> {
    let source = profile.imported.is_none().then(|| profile.clock.source.name())?;
    Some(match profile.clock.mode.period() {
        Some(period) => format!("{source} of {period:?}"),
        None => source.to_owned(),
    })
}

/// Each value once, with the files that have it; what a file does not say is no value.
fn values<'a>(runs: &[Run<'a>], of: fn(&Profile) -> Option<String>) -> Vec<(String, Vec<&'a str>)> {
    let mut values: Vec<(String, Vec<&str>)> = Vec::new();
    for run in runs {
        let Some(value) = of(run.profile) else { continue };
        match values.iter_mut().find(|(known, _)| *known == value) {
            Some((_, files)) => files.push(run.file),
            None => values.push((value, vec![run.file])),
        }
    }
    values
}

/// How a side's runs differ, if they do.
fn scattered(runs: &[Run<'_>], of: fn(&Profile) -> Option<String>) -> Option<String> {
    let values = values(runs, of);
    let described = |(value, files): &(String, Vec<&str>)| format!("{value} ({})", files.join(", "));
    (values.len() > 1).then(|| values.iter().map(described).collect::<Vec<_>>().join("; "))
}

impl<'a> Comparison<'a> {
    fn sides(&self) -> [(&'static str, &[Run<'a>]); 2] {
        [("before", &self.before), ("after", &self.after)]
    }

    /// Why times cannot be compared.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        let doubts = self.doubts();
        let unknown = self.runs().zip(doubts).filter(|(_, doubt)| doubt.is_infinite()).map(|(run, _)| run.file);
        let unknown: Vec<&str> = unknown.collect();
        if !unknown.is_empty() {
            warnings.push(format!(
                "the times of {} are not known, so no time is said to have changed; calls can be compared. `headwater report` says why they are not",
                unknown.join(", ")
            ));
        }
        for (which, runs) in self.sides() {
            for (what, of) in ESSENTIAL {
                let Some(values) = scattered(runs, of) else { continue };
                warnings.push(format!("the runs {which} are of different {what}, and their mean is of none: {values}"));
            }
        }
        warnings
    }

    /// What else the reader should know.
    pub fn notes(&self) -> Vec<String> {
        /// Times that are good to more than this part are hardly worth comparing once.
        const ROUGH: f64 = 0.1;
        let mut notes = Vec::new();
        let is_certain =
            |run: &Run<'_>| run.profile.imported.is_some() && run.profile.metrics().iter().all(|it| !it.is_uncertain);
        let certain: Vec<&str> = self.runs().filter(|run| is_certain(run)).map(|run| run.file).collect();
        if !certain.is_empty() {
            let files = certain.join(", ");
            notes.push(format!(
                "how uncertain the values of {files} are, no file says: ± is of how runs differ, if there are several"
            ));
        }
        let rough = self.runs().zip(self.doubts()).filter(|(_, doubt)| doubt.is_finite() && *doubt > ROUGH);
        let rough: Vec<String> =
            rough.map(|(run, doubt)| format!("{} % ({})", (100.0 * doubt).ceil(), run.file)).collect();
        if !rough.is_empty() {
            notes.push(format!("times are good to {} only: what seems to have changed may not have", rough.join(", ")));
        }
        // A program's name may well change with its version.
        for (what, of) in ESSENTIAL.into_iter().skip(1).chain(OTHERS) {
            if let ([(before, _)], [(after, _)]) = (&values(&self.before, of)[..], &values(&self.after, of)[..])
                && before != after
            {
                notes.push(format!("{what} differ: {before} before, {after} after"));
            }
        }
        for (which, runs) in self.sides() {
            for (what, of) in OTHERS {
                if let Some(values) = scattered(runs, of) {
                    notes.push(format!("{what} differ {which}: {values}"));
                }
            }
        }
        // With several files a side, which of them.
        let which = |which: &str, runs: &[Run<'_>], run: &Run<'_>| {
            let mut which = which.to_owned();
            if runs.len() > 1 {
                let _ = write!(which, " in {}", run.file);
            }
            which
        };
        for (side, runs) in self.sides() {
            for run in runs.iter().filter(|run| run.profile.events.lost > 0) {
                notes.push(format!(
                    "events were lost {} ({}): its calls and times are too low",
                    which(side, runs, run),
                    run.profile.events.lost
                ));
            }
        }
        for (side, runs) in self.sides() {
            for run in runs.iter().filter(|run| !run.profile.at_least.is_empty()) {
                notes.push(format!(
                    "counts {} may be too low (>=): {} may have been called before that was instrumented, and so what it calls",
                    which(side, runs, run),
                    plural(run.profile.at_least.len() as u64, "method", "methods")
                ));
            }
        }
        for (side, runs) in self.sides() {
            for run in runs.iter().filter(|run| !run.profile.unseen.is_empty()) {
                notes.push(format!(
                    "calls are missing {}: {} may have been called and got no probes",
                    which(side, runs, run),
                    plural(run.profile.unseen.len() as u64, "method", "methods")
                ));
            }
        }
        for (side, runs) in self.sides() {
            for run in runs {
                let dropped = run.profile.budget.as_ref().map_or(0, |budget| budget.dropped.len());
                if dropped > 0 {
                    notes.push(format!(
                        "{dropped} methods were dropped {} to keep to --budget: their calls are too few, and their time is their callers'",
                        which(side, runs, run)
                    ));
                }
            }
        }
        for (side, runs) in self.sides() {
            for run in runs {
                for it in run.profile.counted_in_part() {
                    let (metrics, which) = (it.metrics.join(", "), which(side, runs, run));
                    notes.push(format!("{metrics} {which}: counted {}, and so not compared", it.when));
                }
            }
        }
        let has_calls = |run: &Run<'_>| run.profile.root_calls() > 0;
        if self.per == Per::Run && self.runs().any(has_calls) && !self.runs().all(has_calls) {
            notes.push("one has no root calls: whole runs are compared".to_owned());
        } else if self.per == Per::RootCall && self.nodes.iter().filter(|node| node.parent.is_none()).count() > 1 {
            notes.push(
                "several roots were entered: a change in how often each is shows as a change per root call".to_owned(),
            );
        }
        notes
    }
}
