//! `cargo xtask bench mechanisms`: what each mechanism that decides on instrumentation is worth, by leaving it out.
//!
//! Each run has a JVM of its own. Runs that leave something out lie between runs that do not, so that whatever else the machine does hits all.

use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;

use headwater_tests::{Jdk, jdks};

use super::build::Built;
use super::program::{self, Packaging, Root};
use super::setting::{Pace, Setting};
use super::table::{Table, digits, ms};
use super::tool::{self, Asked, Moment};
use super::{binary, class_tree, jdk};

/// A program of the zoo, with one of its roots.
#[derive(Clone, Copy, Debug)]
struct Case {
    name: &'static str,
    program: &'static str,
    root: &'static str,
    warmth: Warmth,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Warmth {
    /// It has been at work.
    Warm,
    /// It begins when its root has probes.
    Cold,
}

const fn warm(name: &'static str, root: &'static str) -> Case {
    Case { name, program: name, root, warmth: Warmth::Warm }
}

const CASES: [Case; 7] = [
    Case { name: "javac-cold", program: "javac", root: "Compile::step", warmth: Warmth::Cold },
    warm("javac", "Compile::step"),
    warm("jetty", "Server::handle"),
    warm("h2", "Command::executeQuery"),
    warm("lucene", "Index::batch"),
    warm("groovy", "Work::step"),
    warm("hsqldb", "Orders::step"),
];

/// Has a program that can be cold begin.
const BEGIN: &str = "begin";

/// Those of the call graph; the tool's `callgraph::policy` says what they are. The roots are not timed after these profiles, and nothing is
/// limited: limits depend on what else the machine does.
const OF_GRAPH: [&str; 11] = [
    "receivers",
    "guards",
    "withheld",
    "opaque",
    "expected",
    "counters",
    "look-ahead",
    "foresee",
    "loaded",
    "starting",
    "unlinked",
];
/// Those that work under limits only.
const UNDER_LIMITS: [&str; 2] = ["watched", "stale"];
/// Those of the agent.
const OF_AGENT: [&str; 3] = ["settling", "profiles", "holding"];
/// Between two runs with everything lie at most so many that leave something out.
const BETWEEN: usize = 3;

const PACE: Pace = Pace {
    recording: Duration::from_secs(4),
    looking: Duration::from_secs(2),
    steady: Duration::from_secs(1),
    warm: Duration::from_secs(6),
    patience: Duration::ZERO,
    sampling: Duration::ZERO,
};

/// A cold program's first call takes less.
const FIRST_CALL: Duration = Duration::from_secs(120);

/// What one run found.
#[derive(Debug)]
struct Run {
    without: &'static str,
    figures: [f64; FIGURES],
    called: HashSet<String>,
}

/// Of a run, in the order of [`HEADINGS`].
const FIGURES: usize = 8;
const HEADINGS: [&str; FIGURES] =
    ["instrumented", "called", "late", "batches", "paused ms", "longest ms", "waited ms", "after / before"];

/// All programs on all JDKs, but for those that the arguments leave out: versions, programs, mechanisms.
pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let compiler = Jdk::at(&jdk()?).ok_or("no JDK that compiles")?;
    let binary = binary()?;
    let versions: Vec<String> = jdks().iter().map(|jdk| jdk.version.to_string()).collect();
    let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
    let mechanisms: Vec<&str> = OF_GRAPH.into_iter().chain(UNDER_LIMITS).chain(OF_AGENT).collect();
    let known = |argument: &&String| {
        versions.contains(argument) || names.iter().chain(&mechanisms).any(|name| *name == argument.as_str())
    };
    if let Some(unknown) = arguments.iter().find(|argument| !known(argument)) {
        return Err(format!(
            "`{unknown}` is no JDK, program or mechanism: give some of {}, {}, {}",
            versions.join(", "),
            names.join(", "),
            mechanisms.join(", ")
        ));
    }
    println!("| JDK | program | without | {} | lost |", HEADINGS.join(" | "));
    println!("|{}", "---|".repeat(FIGURES + 4));
    let mut blocks = Vec::new();
    for jdk in jdks().iter().filter(|jdk| is_chosen(arguments, &versions, &jdk.version.to_string())) {
        for case in CASES.iter().filter(|case| is_chosen(arguments, &names, case.name)) {
            for (mechanisms_of, options) in [
                (&OF_GRAPH[..], &["--bare", "off", "--gentle", "off"][..]),
                (&UNDER_LIMITS[..], &["--bare", "off"]),
                (&OF_AGENT[..], &[]),
            ] {
                let chosen = mechanisms_of.iter().copied().filter(|name| is_chosen(arguments, &mechanisms, name));
                let chosen: Vec<&str> = chosen.collect();
                if !chosen.is_empty() {
                    let block = Block { case: *case, jdk, binary: &binary, options };
                    blocks.push(block.measure(&compiler, &chosen)?);
                }
            }
        }
    }
    println!("\n{}", summary(&mechanisms, &blocks));
    Ok(())
}

/// Whether this one of these is among the choices; all are, where none is.
fn is_chosen(choices: &[String], of: &[impl AsRef<str>], this: &str) -> bool {
    !choices.iter().any(|choice| of.iter().any(|one| one.as_ref() == choice))
        || choices.iter().any(|choice| choice == this)
}

/// A program on a JDK.
struct Block<'a> {
    case: Case,
    jdk: &'a Jdk,
    binary: &'a Path,
    options: &'a [&'a str],
}

impl Block<'_> {
    /// Runs with everything first and last, and in between.
    fn measure(&self, compiler: &Jdk, mechanisms: &[&'static str]) -> Result<Vec<Run>, String> {
        let mut program = program::named(&[self.case.program.to_owned()], None)?.remove(0);
        if self.case.warmth == Warmth::Cold {
            program.description.arguments.push(BEGIN.to_owned());
        }
        let roots = &program.description.roots;
        let root = roots.iter().find(|root| root.method.ends_with(self.case.root)).cloned();
        let root = root.ok_or_else(|| format!("{} has no root {}", program.name, self.case.root))?;
        let built = Built::prepare(&program, compiler)?;
        let packaging = Packaging::ClassPath;
        let setting = Setting { program: &program, built: &built, packaging, jdk: self.jdk, pace: PACE, threads: 0 };
        let parts = mechanisms.chunks(BETWEEN).flat_map(|part| std::iter::once("").chain(part.iter().copied()));
        let mut runs: Vec<Run> = Vec::new();
        for without in parts.chain([""]) {
            let run = self.profile(&setting, &root, without)?;
            self.tell(&runs, &run);
            runs.push(run);
        }
        Ok(runs)
    }

    fn profile(&self, setting: &Setting<'_>, root: &Root, without: &'static str) -> Result<Run, String> {
        let directory = setting.built.work.join("mechanisms");
        class_tree::empty(&directory)?;
        let mut work = setting.start(&directory)?;
        let is_cold = self.case.warmth == Warmth::Cold;
        let before = if is_cold {
            None
        } else {
            work.warm_up(root, &PACE)?;
            Some(work.look(root, &PACE)?)
        };
        // A cold one's first call is the same work, however long it takes.
        let (duration, calls) = if is_cold { (FIRST_CALL, &["--calls", "1"][..]) } else { (PACE.recording, &[][..]) };
        let options: Vec<String> = self.options.iter().chain(calls).map(|option| (*option).to_owned()).collect();
        let asked = Asked { pid: work.program.pid, root: &root.method, duration, options: &options, without };
        let snapshot = directory.join(tool::SNAPSHOT);
        tool::record(self.binary, asked, &snapshot, |moment| match moment {
            Moment::Attached if is_cold => work.program.tell(BEGIN, &[]),
            _ => Ok(()),
        })?;
        std::thread::sleep(PACE.steady);
        let after = work.look(root, &PACE)?;
        drop(work);
        let report = tool::whole_report(self.binary, &snapshot)?;
        let mean = |phase: &super::run::Phase| phase.own.mean_ns();
        let ratio = mean(&after).zip(before.as_ref().and_then(mean)).map(|(after, before)| after / before);
        let (methods, hotswap) = (&report.methods, &report.hotswap);
        let figures = [
            methods.instrumented as f64,
            methods.called as f64,
            methods.late as f64,
            hotswap.batches as f64,
            hotswap.pause_ns_total,
            hotswap.pause_ns_max,
            report.waits().1,
            ratio.unwrap_or(f64::NAN),
        ];
        Ok(Run { without, figures, called: report.called() })
    }

    fn tell(&self, before: &[Run], run: &Run) {
        let [instrumented, called, late, batches, paused, longest, waited, ratio] = run.figures;
        println!(
            "| {} | {} | {} | {instrumented} | {called} | {late} | {batches} | {} | {} | {} | {ratio:.2} | {} |",
            self.jdk.version,
            self.case.name,
            if run.without.is_empty() { "-" } else { run.without },
            ms(Some(paused)),
            ms(Some(longest)),
            ms(Some(waited)),
            lost(before, run),
        );
    }
}

/// How many methods have been called in each run with everything, but not in this one.
fn lost(runs: &[Run], run: &Run) -> usize {
    let mut whole = runs.iter().filter(|other| other.without.is_empty());
    let Some(first) = whole.next() else { return 0 };
    let whole: Vec<&Run> = whole.collect();
    let always = first.called.iter().filter(|method| whole.iter().all(|run| run.called.contains(*method)));
    always.filter(|method| !run.called.contains(*method)).count()
}

/// Of each mechanism: each figure without it, as a ratio to that with everything in the same block; the median over the blocks, and the
/// least and the most.
fn summary(mechanisms: &[&str], blocks: &[Vec<Run>]) -> String {
    let mut headings = vec!["without", "blocks"];
    headings.extend(HEADINGS);
    headings.push("lost");
    let mut table = Table::new(&headings);
    for mechanism in mechanisms {
        let runs = blocks.iter().flat_map(|block| block.iter().map(move |run| (block, run)));
        let runs: Vec<_> = runs.filter(|(_, run)| run.without == *mechanism).collect();
        if runs.is_empty() {
            continue;
        }
        let mut cells = vec![(*mechanism).to_owned(), runs.len().to_string()];
        for figure in 0..FIGURES {
            let ratios = runs.iter().map(|(block, run)| run.figures[figure] / usual(block, figure));
            cells.push(spread(ratios.filter(|ratio| ratio.is_finite()).collect()));
        }
        cells.push(runs.iter().map(|(block, run)| lost(block, run)).sum::<usize>().to_string());
        table.row(cells);
    }
    table.render()
}

/// A figure's median with everything.
fn usual(block: &[Run], figure: usize) -> f64 {
    let mut values: Vec<f64> =
        block.iter().filter(|run| run.without.is_empty()).map(|run| run.figures[figure]).collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn spread(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match &values[..] {
        [] => "-".to_owned(),
        [first, .., last] => format!("{} ({}..{})", digits(values[values.len() / 2]), digits(*first), digits(*last)),
        [only] => digits(*only),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(without: &'static str, batches: f64, called: &[&str]) -> Run {
        let mut figures = [1.0; FIGURES];
        figures[3] = batches;
        Run { without, figures, called: called.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn a_mechanism_is_compared_with_the_runs_around_it() {
        let block = vec![
            run("", 10.0, &["a", "b", "c"]),
            run("guards", 5.0, &["a"]),
            run("", 12.0, &["a", "b"]),
            run("", 8.0, &["a", "b", "c"]),
        ];
        assert_eq!(usual(&block, 3), 10.0);
        assert_eq!(lost(&block, &block[1]), 1);
        let text = summary(&["receivers", "guards"], &[block]);
        let row = text.lines().nth(2).expect("a row");
        assert!(row.contains("guards") && row.contains("0.500"), "{text}");
    }
}
