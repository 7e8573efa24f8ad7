//! The lines above the table: what is profiled, what it does, and what limits the truth of what is shown.

use unicode_width::UnicodeWidthStr;

use super::rows::Shown;
use super::view::{Phase, View};
use crate::report::status::{overhead, state};
use crate::report::text::{advice, budget};
use crate::report::units::{count, fitting_name, plural, time, times};
use crate::report::{Trees, View as Shape};

/// What a line says it is about, in columns.
const LABEL: usize = 10;
/// The narrowest pattern that is worth shortening.
const MIN_PATTERN: usize = 16;
/// Roots that have a line of their own.
const ROOTS: usize = 3;

/// A line; what is left out first when there is no room has the highest number.
pub(super) struct StatusLine {
    pub(super) text: String,
    pub(super) rank: u8,
    /// It is to stand out.
    pub(super) is_alarming: bool,
}

impl View {
    /// What the profile is doing, for the right upper corner.
    pub(super) fn phase_text(&self) -> String {
        let seconds = self.shown.as_ref().map_or(0.0, |shown| shown.profile.duration.as_secs_f64());
        let is_sampled = self.shown.as_ref().is_some_and(|shown| shown.profile.imported.is_some());
        let phase = match &self.phase {
            Phase::Recording if is_sampled => format!("sampling {seconds:.1} s"),
            Phase::Recording => format!("recording {seconds:.1} s"),
            Phase::Paused => format!("PAUSED at {seconds:.1} s"),
            Phase::Ending(_) => format!("ending after {seconds:.1} s"),
            Phase::Ended(_) => format!("ENDED after {seconds:.1} s"),
        };
        if self.is_frozen { format!("FROZEN, {phase}") } else { phase }
    }

    pub(super) fn status_lines(&self, width: usize) -> Vec<StatusLine> {
        let mut lines = Vec::new();
        let mut line = |rank, is_alarming, text: String| lines.push(StatusLine { text, rank, is_alarming });
        if let Phase::Ending(why) | Phase::Ended(why) = &self.phase {
            line(0, true, why.clone());
        }
        let Some(Shown { profile, .. }) = &self.shown else { return lines };
        if profile.imported.is_some() {
            (1..).zip(&profile.notes).for_each(|(rank, note)| line(rank, false, note.clone()));
            return lines;
        }
        for root in profile.roots.iter().take(ROOTS) {
            let state = state(profile, root);
            // What it does says more than where it is.
            let room = width.saturating_sub(LABEL + 2 + state.width()).max(MIN_PATTERN);
            line(1, false, format!("root      {}: {state}", fitting_name(&root.pattern, room)));
        }
        if let Some(more @ 1..) = profile.roots.len().checked_sub(ROOTS) {
            let calls: u64 = profile.roots[ROOTS..].iter().map(|root| root.calls).sum();
            let of = if more == 1 { "1 more root" } else { "more roots" };
            let number = if more == 1 { String::new() } else { format!("{more} ") };
            line(3, false, format!("          {number}{of}, entered {}", times(calls)));
        }
        let rate = self.rate.map_or_else(String::new, |rate| format!(" ({}/s)", count(rate as u64)));
        let threads = profile.threads.len();
        line(
            2,
            profile.events.lost > 0,
            format!(
                "calls     {}{rate}   lost events {}   threads {}",
                count(profile.merged.calls()),
                count(profile.events.lost),
                count(threads as u64)
            ),
        );
        line(4, false, format!("overhead  {}", overhead(profile)));
        if let Some(budget) = &profile.budget {
            let dropped = match budget.dropped.len() {
                0 => String::new(),
                n => format!("; {} dropped", plural(n as u64, "method", "methods")),
            };
            line(4, false, format!("budget    {}{dropped}", budget::state(profile, budget)));
        }
        let skipped = match profile.skipped.len() {
            0 => String::new(),
            n => format!(", {} skipped", count(n as u64)),
        };
        let hotswap = &profile.hotswap;
        line(
            5,
            false,
            format!(
                "methods   {} called of {} instrumented{skipped}   hotswaps {}, paused {}",
                count(profile.called as u64),
                count(profile.instrumented as u64),
                count(hotswap.batches),
                time(hotswap.pause_ns_total)
            ),
        );
        if let Some(first) = profile.warnings.first() {
            let more = match profile.warnings.len() - 1 {
                0 => String::new(),
                n => format!(" (and {n} more)"),
            };
            line(6, false, format!("warning   {first}{more}"));
        }
        lines
    }

    /// What the table has, and in which order.
    pub(super) fn table_title(&self) -> String {
        let threads = match self.trees {
            Trees::Merged => "all threads in one",
            Trees::PerThread => "by thread",
        };
        let sort = self.sort();
        let column = sort.column.heading();
        let order = if sort.reversed { format!("sorted by {column}, reversed") } else { format!("sorted by {column}") };
        let metric = self.shown.as_ref().map(|shown| shown.forest.metric()).filter(|metric| !metric.is_time());
        let order = metric.map_or(order.clone(), |metric| format!("{}, {order}", metric.title));
        match self.shape {
            Shape::Tree | Shape::Locks | Shape::Tracks => format!("tree, {threads}, {order}"),
            Shape::Flat => format!("flat, {threads}, {order}"),
            Shape::Callers => format!("callers and callees, all threads in one, {order}"),
        }
    }

    /// Why there is no row.
    pub(super) fn nothing(&self) -> Vec<String> {
        let Some(Shown { profile, .. }) = &self.shown else {
            return vec!["The first results are on their way.".to_owned()];
        };
        if self.shape == Shape::Callers {
            return vec!["This method has not been called since.".to_owned(), "Backspace leads back.".to_owned()];
        }
        if profile.imported.is_some() {
            return vec!["Nothing was seen yet.".to_owned()];
        }
        let ended = matches!(self.phase, Phase::Ended(_));
        let unloaded = profile.roots.iter().all(|root| root.methods.is_empty());
        let mut text = match (ended, unloaded) {
            (true, true) => vec!["Nothing was recorded: no method that matches was ever loaded.".to_owned()],
            (true, false) => vec!["Nothing was recorded: the root was never entered.".to_owned()],
            (false, true) => vec![
                "Nothing recorded yet: no class with such a method is loaded.".to_owned(),
                "It will be instrumented when it is, and its calls appear here.".to_owned(),
            ],
            (false, false) => vec![
                format!(
                    "Nothing recorded yet: no thread has entered the root in {:.0} s.",
                    profile.duration.as_secs_f64()
                ),
                "It is instrumented; calls appear here as soon as they are made.".to_owned(),
            ],
        };
        if !ended && let Some(advice) = profile.roots.iter().find_map(|root| advice(profile, root)) {
            text.extend(std::iter::once("").chain(advice.lines()).map(str::to_owned));
        }
        if self.phase == Phase::Paused {
            text.push("Recording is paused: p goes on.".to_owned());
        }
        text
    }
}
