//! What the runs found, in tables.

use std::time::Duration;

use super::meter::Window;
use super::names::{short, with_parameters};
use super::pairs::{Pairs, Tally};
use super::profile::Share;
use super::program::{Dependency, Program, Root};
use super::run::{Outcome, Phase};
use super::table::{Table, digits, ms};
use super::truth::{Compared, Comparison, Truth, Verdict};
use crate::process;

/// All runs of one call of the command.
#[derive(Debug)]
pub(crate) struct Record {
    heading: String,
    /// A line a program.
    introductions: Vec<String>,
    /// What each root's program, and its clients, saw.
    programs: Table,
    /// What each profile did and took.
    profiles: Table,
    /// The largest methods.
    truths: Table,
    /// Profiles that were compared with one another.
    pairs: Table,
    /// Below the tables.
    notes: Vec<String>,
    failures: Vec<String>,
}

impl Record {
    pub(crate) fn new(load: usize, recording: Duration, options: &[String]) -> Record {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let date = process::run(std::process::Command::new("date").arg("+%F"), Duration::from_secs(10));
        let date = date.map_or_else(|_| "-".to_owned(), |said| String::from_utf8_lossy(&said.stdout).trim().to_owned());
        // Others may be at work here too.
        let queue = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let queue = queue.split(' ').next().unwrap_or("-");
        let heading = format!(
            "{date}, {cores} processors, load average {queue} before the start, beside {load} busy processes, {} s recorded{}",
            recording.as_secs(),
            if options.is_empty() { String::new() } else { format!(", `{}`", options.join(" ")) }
        );
        Record {
            heading,
            introductions: Vec::new(),
            programs: Table::new(&[
                "program",
                "JDK",
                "root",
                "ms a call, own clock: before / during / after",
                "calls a second",
                "client's p50, ms",
                "p99, ms",
                "p99.9, ms",
                "longest, ms",
                "failed",
                "settled after, s",
            ]),
            profiles: Table::new(&[
                "program",
                "JDK",
                "root",
                "attached, s",
                "command, s",
                "after recording, s: calls a second, of those before",
                "methods, called",
                "batches, classes",
                "pauses, longest, ms",
                "waits: number, ms",
                "calls: profile, own",
                "ms a call: profile",
                "reflection",
            ]),
            truths: Table::new(&[
                "program",
                "JDK",
                "root",
                "method",
                "JFR %",
                "halves",
                "async %",
                "same JVM %",
                "wall %",
                "shown %",
                "error",
                "verdict",
                "first screen",
            ]),
            pairs: Table::new(&[
                "program",
                "JDK",
                "root",
                "profiles",
                "pairs, not known",
                "root's time: differ, by more than said",
                "±, median",
                "methods' times: differ, by more than said",
                "±, median",
                "first half and second: differ, by more than said",
            ]),
            notes: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Says what a program is, and under which licences.
    pub(crate) fn introduce(&mut self, program: &Program) {
        let dependency = |dependency: &Dependency| format!("{} ({})", dependency.coordinates, dependency.licence);
        let dependencies: Vec<String> = program.description.dependencies.iter().map(dependency).collect();
        self.introductions.push(format!(
            "{}: {}; {}",
            program.name,
            program.description.about,
            dependencies.join(", ")
        ));
    }

    /// Adds a run.
    pub(crate) fn add(
        &mut self,
        program: &str,
        jdk: u32,
        root: &Root,
        outcome: Result<Outcome, String>,
        truth: Option<&Truth>,
    ) {
        let name = short(&root.method);
        let head = [program.to_owned(), jdk.to_string(), name.to_owned()];
        let outcome = match outcome {
            Ok(outcome) => outcome,
            Err(failure) => return self.fail(&format!("{program} on {jdk}, {name}"), &failure),
        };
        for failure in outcome.failures() {
            self.fail(
                &format!("{program} on {jdk}, {name}"),
                &format!("{failure} (see {})", outcome.directory.display()),
            );
        }
        self.programs.row([&head[..], &program_cells(&outcome)].concat());
        self.profiles.row([&head[..], &profile_cells(&outcome)].concat());
        if let Some(truth) = truth {
            let compared = truth.compare(&root.method, &outcome.profiled, outcome.seen.as_ref());
            self.add_truth(&head, &compared);
        }
    }

    /// Adds what comparing profiles of a root with one another found.
    pub(crate) fn add_pairs(&mut self, program: &str, jdk: u32, root: &Root, pairs: Result<Pairs, String>) {
        let head = [program.to_owned(), jdk.to_string(), short(&root.method).to_owned()];
        match pairs {
            Ok(pairs) => self.pairs.row([&head[..], &pairs_cells(&pairs)].concat()),
            Err(failure) => self.fail(&head.join(", "), &failure),
        }
    }

    /// Something did not go as it must.
    pub(crate) fn fail(&mut self, what: &str, failure: &str) {
        self.failures.push(format!("{what}: {failure}"));
    }

    fn add_truth(&mut self, head: &[String; 3], compared: &Compared) {
        let [program, jdk, root] = head;
        let count = |verdict: Verdict| compared.methods.iter().filter(|method| method.verdict() == verdict).count();
        self.notes.push(format!(
            "{program} on {jdk}, {root}: {} samples inside the root; of {} methods with 8 % or more {} WRONG; of the largest {} ok, {} not known, {} WRONG{}",
            compared.samples,
            compared.counted,
            compared.wrong.len(),
            count(Verdict::Ok),
            count(Verdict::NotKnown),
            count(Verdict::Wrong),
            match &compared.missing[..] {
                [] => String::new(),
                missing => {
                    let names: Vec<String> = missing.iter().map(|method| with_parameters(method)).collect();
                    format!("; with a tenth or more, and not on the first screen: {}", names.join(", "))
                }
            }
        ));
        for wrong in &compared.wrong {
            let [name, truth, halves, second, same, wall, shown, ..] = &truth_cells(wrong)[..] else { continue };
            self.notes.push(format!(
                "{program} on {jdk}, {root}: WRONG {name}: JFR {truth} % ({halves}), async-profiler {second}, in the same JVM {same}, wall {wall}, shown {shown}"
            ));
        }
        for method in &compared.methods {
            self.truths.row([&head[..], &truth_cells(method)].concat());
        }
    }

    /// The tables, and what was wrong.
    pub(crate) fn render(&self) -> String {
        let mut text = format!("{}\n", self.heading);
        for table in [&self.programs, &self.profiles, &self.truths, &self.pairs] {
            if !table.is_empty() {
                text += &format!("\n{}", table.render());
            }
        }
        for (heading, lines) in [("", &self.notes), ("", &self.introductions), ("FAILED: ", &self.failures)] {
            text += if lines.is_empty() { "" } else { "\n" };
            lines.iter().for_each(|line| text += &format!("- {heading}{line}\n"));
        }
        text
    }

    /// An error if a check has failed.
    pub(crate) fn verdict(&self) -> Result<(), String> {
        match self.failures.len() {
            0 => Ok(()),
            count => Err(format!("{count} checks of the zoo failed")),
        }
    }
}

fn program_cells(outcome: &Outcome) -> Vec<String> {
    let phases = [&outcome.before, &outcome.during, &outcome.after];
    let own = |of: fn(&Window) -> String| phases.map(|phase| of(&phase.own)).join(" / ");
    let client = |of: fn(&Window) -> Option<f64>| {
        let cell = |phase: &Phase| ms(of(phase.client.as_ref().unwrap_or(&phase.own)));
        phases.map(cell).join(" / ")
    };
    vec![
        own(|window| ms(window.mean_ns())),
        own(|window| digits(window.rate())),
        client(|window| window.quantile_ns(500)),
        client(|window| window.quantile_ns(990)),
        client(|window| window.quantile_ns(999)),
        client(Window::longest_ns),
        outcome.complaints.count.to_string(),
        digits(outcome.settled_after.as_secs_f64()),
    ]
}

fn profile_cells(outcome: &Outcome) -> Vec<String> {
    let report = &outcome.profiled.report;
    let (methods, hotswap) = (&report.methods, &report.hotswap);
    let (waits, waited_ns) = report.waits();
    vec![
        outcome.profiled.attached_after.map_or("-".to_owned(), |time| digits(time.as_secs_f64())),
        digits(outcome.profiled.took.as_secs_f64()),
        format!(
            "{}: {:.2}",
            digits(outcome.undisturbed.seconds),
            outcome.undisturbed.rate() / outcome.before.own.rate()
        ),
        format!("{}, {}", methods.instrumented, methods.called),
        format!("{}, {}", hotswap.batches, hotswap.classes),
        format!("{}, {}", ms(Some(hotswap.pause_ns_total)), ms(Some(hotswap.pause_ns_max))),
        format!("{waits}, {}", ms(Some(waited_ns))),
        format!("{}, {}", report.root_calls(), outcome.own_calls),
        ms(report.root_mean_ns()),
        if outcome.changed.is_empty() { "same" } else { "CHANGED" }.to_owned(),
    ]
}

fn pairs_cells(pairs: &Pairs) -> Vec<String> {
    let counts = |tally: &Tally| format!("{}, {}", tally.all, tally.beyond);
    let stated = |tally: &Tally| tally.stated_percent().map_or("-".to_owned(), |percent| format!("{percent:.0} %"));
    vec![
        pairs.profiles.to_string(),
        format!("{}, {}", pairs.compared, pairs.not_known),
        counts(&pairs.root),
        stated(&pairs.root),
        counts(&pairs.methods),
        stated(&pairs.methods),
        pairs.halves.as_ref().map_or("not known".to_owned(), counts),
    ]
}

fn truth_cells(method: &Comparison) -> Vec<String> {
    let percent = |share: f64| format!("{share:.1}");
    vec![
        with_parameters(&method.method),
        percent(method.truth),
        method.halves.map(percent).join(", "),
        method.second.map_or("-".to_owned(), percent),
        method.same.map_or("-".to_owned(), percent),
        method.wall.map_or("-".to_owned(), percent),
        match method.shown {
            None => "missing".to_owned(),
            Some(Share::NotKnown) => "?".to_owned(),
            Some(Share::Known(share)) => percent(share),
            Some(Share::AtMost(share)) => format!("<{share:.1}"),
            Some(Share::Between(from, to)) => format!("{from:.0}-{to:.0}"),
        },
        method.error().map_or("-".to_owned(), |error| format!("{error:+.1}")),
        match method.verdict() {
            Verdict::Ok => "ok",
            Verdict::NotKnown => "not known",
            Verdict::Wrong => "WRONG",
        }
        .to_owned(),
        if method.on_first_screen { "yes" } else { "no" }.to_owned(),
    ]
}
