//! Where an undisturbed program is, by witnesses, and how far a profile's shares are from that.
//!
//! All but one look at a JVM that is only for that. Compilers make another program of the same classes in each JVM, so that one looks at the JVM that is profiled, before that;
//! it is the one that does not need the recorder, which the profile is to find as in any program.
//!
//! These see threads that run, or, in Java code, could. A profile's times are of the clock on the wall: of a thread that stands in line for a processor each time when it has woken
//! another, most of the time is in the system call that did. So one more witness samples all time that passes.

use std::path::Path;

use super::async_profiler;
use super::flight::Recorder;
use super::profile::{self, POINTS, Share, tolerance};
use super::setting::Setting;
use super::stacks::Stacks;
use super::tool::Profiled;

/// A method with so many per cent, by all witnesses, has to be on the first screen.
const LARGE: f64 = 10.0;
/// Of the methods with so many per cent it is counted how many are wrong.
const COUNTED: f64 = 8.0;

/// Samples of a program that nobody had attached to before.
#[derive(Debug)]
pub(crate) struct Truth {
    jfr: Stacks,
    async_profiler: Result<Stacks, String>,
    wall: Result<Stacks, String>,
}

/// One of a root's largest methods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Comparison {
    pub(crate) method: String,
    /// Per cent, by JFR.
    pub(crate) truth: f64,
    /// The same of the first and the second half of its samples.
    pub(crate) halves: [f64; 2],
    /// By async-profiler, if it works here.
    pub(crate) second: Option<f64>,
    /// The same of the JVM that was profiled afterwards.
    pub(crate) same: Option<f64>,
    /// Of all time that passed.
    pub(crate) wall: Option<f64>,
    /// None where the profile does not have the method.
    pub(crate) shown: Option<Share>,
    /// Whether it is among the text report's first rows, or named above them.
    pub(crate) on_first_screen: bool,
}

/// Whether a share is what it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ok,
    NotKnown,
    Wrong,
}

/// Of each root so many methods are compared.
const METHODS: usize = 10;
/// A root's comparisons.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    /// JFR's inside the root.
    pub(crate) samples: usize,
    pub(crate) methods: Vec<Comparison>,
    /// How many methods with 8 per cent or more there are, and those of them that are shown wrong.
    pub(crate) counted: usize,
    pub(crate) wrong: Vec<Comparison>,
    /// Methods with a tenth or more of the root that are not among the text report's first rows.
    pub(crate) missing: Vec<String>,
}

impl Truth {
    /// Has witnesses look at the program, in a JVM that is only for that.
    pub(crate) fn record(setting: &Setting<'_>, directory: &Path) -> Result<Truth, String> {
        let mut work = setting.start(directory)?;
        let root = setting.program.description.roots.first().ok_or("the program has no root")?;
        let recorder = Recorder { jdk: setting.jdk, pid: work.program.pid, directory };
        recorder.warm_up()?;
        work.warm_up(root, &setting.pace)?;
        let (jfr, sampled) = recorder.record(setting.pace.sampling)?;
        let record = |event| {
            let libraries = async_profiler::prepare()?;
            async_profiler::record(&libraries, setting.jdk, (work.program.pid, event), sampled, directory)
        };
        Ok(Truth { jfr, async_profiler: record(async_profiler::CPU), wall: record(async_profiler::WALL) })
    }

    /// Why a witness says nothing.
    pub(crate) fn failure(&self) -> Option<&str> {
        [&self.async_profiler, &self.wall].into_iter().find_map(|witness| witness.as_ref().err()).map(String::as_str)
    }

    /// Looks at a JVM that is about to be profiled, if that works here.
    pub(crate) fn of_same(setting: &Setting<'_>, pid: u32, directory: &Path) -> Option<Stacks> {
        let libraries = async_profiler::prepare().ok()?;
        async_profiler::record(&libraries, setting.jdk, (pid, async_profiler::CPU), setting.pace.sampling, directory)
            .ok()
    }

    /// Compares a profile of a root, and what was seen in the same JVM before.
    pub(crate) fn compare(&self, root: &str, profiled: &Profiled, same: Option<&Stacks>) -> Compared {
        let shares = self.jfr.shares(root);
        let halves = self.jfr.halves(root);
        let second = self.async_profiler.as_ref().ok().map(|stacks| stacks.shares(root));
        let same = same.map(|stacks| stacks.shares(root));
        let wall = self.wall.as_ref().ok().map(|stacks| stacks.shares(root));
        let shown = profiled.methods.shares(profiled.report.root_ns());
        let screen = profile::FirstScreen::of(&profiled.text);
        let compare = |(method, truth): (&str, f64)| Comparison {
            method: method.to_owned(),
            truth,
            halves: [0, 1].map(|half: usize| halves[half].percent.get(method).copied().unwrap_or(0.0)),
            second: second.as_ref().map(|second| second.percent.get(method).copied().unwrap_or(0.0)),
            same: same.as_ref().map(|same| same.percent.get(method).copied().unwrap_or(0.0)),
            wall: wall.as_ref().map(|wall| wall.percent.get(method).copied().unwrap_or(0.0)),
            shown: shown.get(method).copied(),
            on_first_screen: screen.has(method),
        };
        let all: Vec<Comparison> = shares.largest(usize::MAX).into_iter().map(compare).collect();
        let counted: Vec<&Comparison> = all.iter().filter(|method| method.truth >= COUNTED).collect();
        let missing = all.iter().filter(|method| method.witnesses().0 >= LARGE && !method.on_first_screen);
        Compared {
            samples: shares.samples,
            missing: missing.map(|method| method.method.clone()).collect(),
            counted: counted.len(),
            wrong: counted
                .iter()
                .filter(|method| method.verdict() == Verdict::Wrong)
                .map(|method| (*method).clone())
                .collect(),
            methods: all.into_iter().take(METHODS).collect(),
        }
    }
}

impl Comparison {
    /// Within five points, or a fifth, of what the witnesses of running threads say, or between them: where they differ, no more is known. Or of what that of all time says.
    pub(crate) fn verdict(&self) -> Verdict {
        let verdicts = self.says().map(|(least, most)| self.verdict_by(least, most));
        verdicts.min_by_key(|verdict| *verdict as u8).unwrap_or(Verdict::Wrong)
    }

    fn verdict_by(&self, least: f64, most: f64) -> Verdict {
        match self.shown {
            Some(Share::NotKnown) => Verdict::NotKnown,
            Some(Share::AtMost(shown)) if least <= shown => Verdict::NotKnown,
            Some(Share::Between(from, to)) if from <= most && least <= to => Verdict::NotKnown,
            Some(Share::Known(shown)) if shown >= least - tolerance(least) && shown <= most + tolerance(most) => {
                Verdict::Ok
            }
            // Small ones may well be missing.
            None if least <= POINTS => Verdict::Ok,
            _ => Verdict::Wrong,
        }
    }

    /// How many points are shown too many.
    pub(crate) fn error(&self) -> Option<f64> {
        let shown = match self.shown {
            Some(Share::NotKnown | Share::AtMost(_) | Share::Between(..)) => return None,
            Some(Share::Known(shown)) => shown,
            None => 0.0,
        };
        let beyond = |(least, most): (f64, f64)| (shown - most).max(0.0) + (shown - least).min(0.0);
        self.says().map(beyond).min_by(|one, other| one.abs().total_cmp(&other.abs()))
    }

    /// Between what a share should be: by who sees threads that run, and by who sees all time.
    fn says(&self) -> impl Iterator<Item = (f64, f64)> + use<> {
        [Some(self.witnesses()), self.wall.map(|wall| (wall, wall))].into_iter().flatten()
    }

    /// The least and the most that a witness of running threads says.
    fn witnesses(&self) -> (f64, f64) {
        let others = [self.second, self.same].into_iter().flatten();
        others.fold((self.truth, self.truth), |(least, most), other| (least.min(other), most.max(other)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_right_within_five_points_or_a_fifth() {
        let comparison = |truth: f64, shown: Option<Share>| {
            let halves = [truth; 2];
            Comparison {
                method: "A.f()V".into(),
                truth,
                halves,
                second: None,
                same: None,
                wall: None,
                shown,
                on_first_screen: true,
            }
        };
        let verdict = |truth: f64, shown: Option<Share>| comparison(truth, shown).verdict();
        assert_eq!(verdict(80.0, Some(Share::Known(65.0))), Verdict::Ok);
        assert_eq!(verdict(80.0, Some(Share::Known(63.0))), Verdict::Wrong);
        assert_eq!(verdict(4.0, Some(Share::Known(8.5))), Verdict::Ok);
        assert_eq!(verdict(4.0, Some(Share::AtMost(44.0))), Verdict::NotKnown);
        assert_eq!(verdict(45.0, Some(Share::AtMost(44.0))), Verdict::Wrong);
        let differing = |shown| Comparison { second: Some(40.0), ..comparison(21.0, Some(Share::Known(shown))) };
        assert_eq!([39.0, 30.0, 17.0, 47.0].map(|shown| differing(shown).verdict()), [Verdict::Ok; 4]);
        assert_eq!([10.0, 50.0].map(|shown| differing(shown).verdict()), [Verdict::Wrong; 2]);
        assert_eq!((differing(50.0).error(), differing(30.0).error()), (Some(10.0), Some(0.0)));
        let same = Comparison { same: Some(60.0), ..differing(62.0) };
        assert_eq!((same.verdict(), same.error()), (Verdict::Ok, Some(2.0)));
        // In line for a processor: that is not between the others.
        let waiting = |shown| Comparison { wall: Some(90.0), ..differing(shown) };
        assert_eq!(
            [88.0, 60.0, 30.0].map(|shown| waiting(shown).verdict()),
            [Verdict::Ok, Verdict::Wrong, Verdict::Ok]
        );
        assert_eq!((waiting(60.0).error(), waiting(89.0).error()), (Some(20.0), Some(-1.0)));
        let between = Some(Share::Between(20.0, 40.0));
        assert_eq!([22.0, 41.0].map(|truth| verdict(truth, between)), [Verdict::NotKnown, Verdict::Wrong]);
        assert_eq!(verdict(80.0, Some(Share::NotKnown)), Verdict::NotKnown);
        assert_eq!(verdict(80.0, None), Verdict::Wrong);
    }
}
