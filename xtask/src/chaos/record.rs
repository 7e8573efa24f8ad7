//! The table of all runs.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use super::plan::Plan;
use super::run::Outcome;

/// What was seen of one kind of fault.
#[derive(Debug, Default)]
struct Row {
    runs: usize,
    struck: usize,
    harmed: usize,
    faulty: usize,
    /// Of each run that the target outlived.
    stands_ms: Vec<u64>,
    gone: Vec<Duration>,
    restored: Option<Duration>,
    recovered: Option<Duration>,
}

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Record {
    rows: BTreeMap<String, Row>,
    /// The longest call of each run before any tool came; of programs without `-Xcomp`, and from then on.
    stands_before_ms: Vec<u64>,
    others_before_ms: Vec<u64>,
    others_ms: Vec<u64>,
    failures: Vec<String>,
}

impl Record {
    /// One more run; `again` repeats it.
    pub(super) fn add(&mut self, plan: &Plan, outcome: &Outcome, again: &str) {
        let row = self.rows.entry(plan.fault.name()).or_default();
        row.runs += 1;
        row.struck += usize::from(outcome.struck);
        row.harmed += usize::from(!outcome.harm.is_empty());
        row.faulty += usize::from(!outcome.faults.is_empty());
        row.stands_ms.extend(outcome.gone.map(|_| outcome.stand_ms));
        row.gone.extend(outcome.gone);
        row.restored = row.restored.max(outcome.restored);
        row.recovered = row.recovered.max(outcome.recovered);
        self.stands_before_ms.push(outcome.stand_before_ms);
        if !plan.java.contains(&"-Xcomp") {
            self.others_before_ms.push(outcome.stand_before_ms);
            self.others_ms.extend(outcome.gone.map(|_| outcome.stand_ms));
        }
        for failure in outcome.harm.iter().map(|it| format!("HARMED: {it}")).chain(outcome.faults.iter().cloned()) {
            self.failures.push(format!("{failure}\n  {plan}\n  {again}"));
        }
    }

    /// As text.
    pub(super) fn render(&self) -> String {
        let mut text = String::from(
            "| fault | runs | struck | harmed | else wrong | longest call, ms: median, most | agent gone, s: median, most | code restored, s | speed back, s |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        let mut total = Row::default();
        for (name, row) in &self.rows {
            row.write(&mut text, name);
            total.runs += row.runs;
            total.struck += row.struck;
            total.harmed += row.harmed;
            total.faulty += row.faulty;
            total.stands_ms.extend(&row.stands_ms);
            total.gone.extend(&row.gone);
            total.restored = total.restored.max(row.restored);
            total.recovered = total.recovered.max(row.recovered);
        }
        total.write(&mut text, "all");
        let _ = writeln!(
            text,
            "\nThe longest call before any tool came, ms: {}. Without -Xcomp: {} before, {} from then on.",
            spread(&self.stands_before_ms),
            spread(&self.others_before_ms),
            spread(&self.others_ms)
        );
        for failure in &self.failures {
            let _ = writeln!(text, "\n- {failure}");
        }
        text
    }

    /// An error if anything was not as promised.
    pub(super) fn verdict(&self) -> Result<(), String> {
        match self.failures.len() {
            0 => Ok(()),
            failures => Err(format!("{failures} promises were broken")),
        }
    }
}

impl Row {
    fn write(&self, text: &mut String, name: &str) {
        let mut gone = self.gone.clone();
        gone.sort();
        let median = gone.get(gone.len() / 2).copied();
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {}, {} | {} | {} |",
            self.runs,
            self.struck,
            self.harmed,
            self.faulty,
            spread(&self.stands_ms),
            seconds(median),
            seconds(gone.last().copied()),
            seconds(self.restored),
            seconds(self.recovered)
        );
    }
}

/// The median, and the most.
fn spread(values: &[u64]) -> String {
    let mut values = values.to_vec();
    values.sort_unstable();
    let median = values.get(values.len() / 2);
    median.zip(values.last()).map_or(String::new(), |(median, most)| format!("{median}, {most}"))
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or(String::new(), |time| format!("{:.1}", time.as_secs_f64()))
}
