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
    stand_ms: u64,
    gone: Vec<Duration>,
    restored: Option<Duration>,
    recovered: Option<Duration>,
}

/// All runs.
#[derive(Debug, Default)]
pub(super) struct Record {
    rows: BTreeMap<String, Row>,
    stand_before_ms: u64,
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
        row.stand_ms = row.stand_ms.max(outcome.stand_ms);
        row.gone.extend(outcome.gone);
        row.restored = row.restored.max(outcome.restored);
        row.recovered = row.recovered.max(outcome.recovered);
        self.stand_before_ms = self.stand_before_ms.max(outcome.stand_before_ms);
        for failure in outcome.harm.iter().map(|it| format!("HARMED: {it}")).chain(outcome.faults.iter().cloned()) {
            self.failures.push(format!("{failure}\n  {plan}\n  {again}"));
        }
    }

    /// As text.
    pub(super) fn render(&self) -> String {
        let mut text = String::from(
            "| fault | runs | struck | harmed | else wrong | longest call, ms | agent gone, s: median, most | code restored, s | speed back, s |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        let mut total = Row::default();
        for (name, row) in &self.rows {
            row.write(&mut text, name);
            total.runs += row.runs;
            total.struck += row.struck;
            total.harmed += row.harmed;
            total.faulty += row.faulty;
            total.stand_ms = total.stand_ms.max(row.stand_ms);
            total.gone.extend(&row.gone);
            total.restored = total.restored.max(row.restored);
            total.recovered = total.recovered.max(row.recovered);
        }
        total.write(&mut text, "all");
        let _ = writeln!(text, "\nThe longest call before any tool came: {} ms.", self.stand_before_ms);
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
            if self.gone.is_empty() { "".to_owned() } else { self.stand_ms.to_string() },
            seconds(median),
            seconds(gone.last().copied()),
            seconds(self.restored),
            seconds(self.recovered)
        );
    }
}

fn seconds(time: Option<Duration>) -> String {
    time.map_or(String::new(), |time| format!("{:.1}", time.as_secs_f64()))
}
