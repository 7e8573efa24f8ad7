//! The comparison as a text to be read: the methods, and the calling contexts, that changed.

use std::io::{self, Write};

use super::condition::{Condition, Judgement, Judgements, Verdict};
use super::{Change, Comparison, DiffNode, Pair, Part, Per, Quantity, Run};
use crate::profile::{Extent, Unit};
use crate::report::select::MethodSelector;
use crate::report::text::Style;
use crate::report::text::lines::{Emphasis, Lines, indentation};
use crate::report::units::{bytes, count, percent, plural, time};
use headwater_terms::printable::{Printable, printable};

/// What is shown of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selection {
    /// Changes of this quantity; by default of time: of methods themselves, and of calling contexts with what they call.
    pub by: Option<Quantity>,
    /// Changes of the first of these metrics instead of time, by their ids; how the others changed stands beside.
    pub metrics: Vec<String>,
    /// Changes below this share (0 to 1) of all roots' quantity are left out.
    pub min_share: f64,
    /// Only these methods.
    pub focus: Option<MethodSelector>,
}

/// Writes the report.
pub fn write(
    comparison: &Comparison<'_>,
    judgements: Judgements<'_>,
    selection: &Selection,
    style: &Style,
    out: &mut impl Write,
) -> io::Result<()> {
    let view = View { comparison, selection };
    introduction(comparison, &view.whole(), out)?;
    let mut lines = Lines { style, out: &mut *out };
    view.methods(&mut lines)?;
    view.nodes(&mut lines)?;
    if !judgements.is_empty() {
        writeln!(out)?;
    }
    conditions(comparison, judgements, out)
}

/// What is compared, and how much the whole has of a quantity.
pub(crate) fn introduction(comparison: &Comparison<'_>, quantity: &Quantity, out: &mut impl Write) -> io::Result<()> {
    let out = &mut Printable(out);
    for (which, runs) in [("before", &comparison.before), ("after ", &comparison.after)] {
        for (index, run) in runs.iter().enumerate() {
            let which = if index == 0 { which } else { "" };
            writeln!(out, "{which:6}  {}", described(run))?;
        }
    }
    for warning in comparison.warnings() {
        writeln!(out, "warning: {warning}")?;
    }
    for note in comparison.notes() {
        writeln!(out, "note: {note}")?;
    }
    let metric = comparison.metric(quantity);
    let unit = metric.map_or(Unit::Nanoseconds, |metric| metric.unit);
    let whole = comparison.change(comparison.whole(), quantity);
    let (subject, verb) = match comparison.per {
        Per::RootCall => ("a root call", ["took", "has"]),
        Per::Run if comparison.knows_what_roots_are() => ("the roots", ["took", "have"]),
        Per::Run => ("all stacks", ["took", "have"]),
    };
    // Of time everybody knows that it passes.
    let (verb, of) = match metric.filter(|metric| !metric.is_time()) {
        Some(metric) => (verb[1], format!(" ({})", metric.title)),
        None => (verb[0], String::new()),
    };
    let error = amount(whole.error, unit);
    let verdict = match (whole.is_known(), whole.is_real()) {
        (false, _) => "times are not known".to_owned(),
        (_, true) => format!("{} (±{error}), {}", signed(whole.change(), unit), relative(&whole)),
        (_, false) => format!("no change beyond the uncertainty (±{error})"),
    };
    let means = match (comparison.before.len(), comparison.after.len()) {
        (1, 1) => String::new(),
        (n, m) => format!(", in the mean of {n} and {m} runs"),
    };
    writeln!(
        out,
        "\n{subject} {verb} {}{of} before and {} after{means}: {verdict}",
        amount(whole.before, unit),
        amount(whole.after, unit),
    )
}

/// What became of each condition.
pub(crate) fn conditions(
    comparison: &Comparison<'_>,
    judgements: Judgements<'_>,
    out: &mut impl Write,
) -> io::Result<()> {
    for (condition, judgement) in judgements {
        writeln!(out, "{}", printable(&judged(comparison, condition, judgement)))?;
    }
    Ok(())
}

/// One line about a profile.
fn described(run: &Run<'_>) -> String {
    let Run { file, profile } = run;
    let target = &profile.target;
    if let Some(format) = &profile.imported {
        return format!("{file}: {format}");
    }
    let started = profile.environment.started().map_or_else(String::new, |started| format!(", {started}"));
    format!(
        "{file}: {} (pid {}, JDK {}), {:.1} s, {}{started}",
        target.main,
        target.pid,
        target.jdk,
        profile.duration.as_secs_f64(),
        plural(profile.root_calls(), "root call", "root calls")
    )
}

/// A condition's outcome, as a sentence.
pub fn judged(comparison: &Comparison<'_>, condition: &Condition, judgement: &Judgement) -> String {
    let Judgement { change, verdict } = judgement;
    let word = match verdict {
        Verdict::Passed | Verdict::Uncertain => "passed",
        Verdict::Failed => "FAILED",
        Verdict::NoSuchMetric => "FAILED",
        Verdict::NothingMatched => {
            let suggestion = condition.suggestion(comparison);
            return format!("FAILED {condition}: no method that was called on either side matches{suggestion}");
        }
    };
    let Some(metric) = comparison.metric(condition.quantity()) else {
        let ids: Vec<&str> = comparison.all_metrics().map(|metric| &*metric.id).collect();
        let id = &condition.quantity().id;
        return format!("FAILED {condition}: not all profiles have {id} in that form. They have {}", ids.join(", "));
    };
    let unit = metric.unit;
    let per = if is_per_root_call(comparison, condition.quantity()) { " per root call" } else { "" };
    let uncertain = match verdict {
        Verdict::Uncertain if change.may_be_missing() => ": calls may be missing on the other side",
        Verdict::Uncertain if !change.is_known() => ": times are not known",
        Verdict::Uncertain => ": not more than is uncertain",
        Verdict::NoSuchMetric => ": the limit is in another unit",
        _ => "",
    };
    format!(
        "{word} {condition}: {} before, {} after{per}: {} (±{}), {}{uncertain}",
        marked(amount(change.before, unit), change.at_least[0]),
        marked(amount(change.after, unit), change.at_least[1]),
        signed(change.change(), unit),
        amount(change.error, unit),
        relative(change)
    )
}

/// What is not listed.
#[derive(Debug, Default)]
struct Others {
    all: usize,
    /// Those that would be, if their change was certain.
    uncertain: usize,
}

struct View<'a> {
    comparison: &'a Comparison<'a>,
    selection: &'a Selection,
}

impl View<'_> {
    /// What is told of the whole: of what is chosen with what is called, or of time.
    fn whole(&self) -> Quantity {
        let chosen = Quantity { part: Part::Total, ..self.quantity(Part::Total) };
        if self.comparison.metric(&chosen).is_some() { chosen } else { Quantity::TOTAL }
    }

    /// What changes are listed of, by default this part.
    fn quantity(&self, part: Part) -> Quantity {
        match (&self.selection.by, self.selection.metrics.first()) {
            (Some(Quantity { part, .. }), Some(id)) => Quantity::of(id, *part),
            (Some(by), None) => by.clone(),
            (None, Some(id)) => {
                let usual = Quantity::of(id, part);
                if self.comparison.metric(&usual).is_some() { usual } else { Quantity::of(id, Part::Own) }
            }
            (None, None) => Quantity { part, ..Quantity::SELF_TIME },
        }
    }

    fn methods(&self, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
        let quantity = &self.quantity(Part::Own);
        let is_meant = self.focused();
        let pairs: Vec<(usize, Pair<'_>)> = self.comparison.methods().filter(|(name, _)| is_meant[*name]).collect();
        let mut notable: Vec<(usize, Pair<'_>)> =
            pairs.iter().copied().filter(|(_, pair)| self.is_notable(*pair, quantity)).collect();
        notable.sort_by(|(a, pair_a), (b, pair_b)| {
            let size = |pair| self.comparison.change(pair, quantity).change().abs();
            let name = |index: usize| &self.comparison.names[index].machine;
            size(*pair_b).total_cmp(&size(*pair_a)).then_with(|| name(*a).cmp(name(*b)))
        });
        let others = self.others(pairs.iter().map(|(_, pair)| *pair), quantity);
        writeln!(lines.out, "\nmethods by {}{}:", named(self.comparison, quantity), self.per(quantity))?;
        if notable.is_empty() {
            return writeln!(
                lines.out,
                "none of {} changed by more than {}",
                count(others.all as u64),
                self.threshold(&others)
            );
        }
        self.header(quantity, "method", lines)?;
        for (name, pair) in &notable {
            self.line(*pair, quantity, "", &self.comparison.names[*name].display, lines)?;
        }
        self.remainder(&others, lines)
    }

    /// The contexts that changed, below those that lead to them. What lies below a context that is only in one profile is too, and
    /// is only counted.
    fn nodes(&self, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
        let quantity = &self.quantity(Part::Total);
        let is_meant = self.focused();
        let nodes = &self.comparison.nodes;
        let pair = |index: usize| self.comparison.node(index);
        let notable: Vec<bool> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| is_meant[node.name] && self.is_notable(pair(index), quantity))
            .collect();
        // Callers come before their callees.
        let mut top: Vec<Option<usize>> = Vec::with_capacity(nodes.len());
        for (index, node) in nodes.iter().enumerate() {
            let above = node.parent.and_then(|parent| top[parent]);
            top.push(above.or((notable[index] && pair(index).is_one_sided()).then_some(index)));
        }
        let mut shown = vec![false; nodes.len()];
        let mut below = vec![0_usize; nodes.len()];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        let mut roots = Vec::new();
        for (index, node) in nodes.iter().enumerate().rev() {
            if let Some(top) = top[index].filter(|top| *top != index) {
                below[top] += usize::from(notable[index]);
                continue;
            }
            if !shown[index] && !notable[index] {
                continue;
            }
            match node.parent {
                Some(parent) => {
                    shown[parent] = true;
                    children[parent].push(index);
                }
                None => roots.push(index),
            }
        }
        let others = self.others(
            nodes.iter().enumerate().filter(|(_, node)| is_meant[node.name]).map(|(index, _)| pair(index)),
            quantity,
        );
        writeln!(lines.out, "\ncalling contexts by {}{}:", named(self.comparison, quantity), self.per(quantity))?;
        if !notable.contains(&true) {
            return writeln!(
                lines.out,
                "none of {} changed by more than {}",
                count(others.all as u64),
                self.threshold(&others)
            );
        }
        self.header(quantity, "method", lines)?;
        let mut pending: Vec<(usize, usize)> = Vec::new();
        self.push(roots, 1, quantity, &mut pending);
        while let Some((index, level)) = pending.pop() {
            let (DiffNode { name, .. }, pair) = (&nodes[index], pair(index));
            let name = &self.comparison.names[*name].display;
            match below[index] {
                0 => self.line(pair, quantity, &indentation(level), name, lines)?,
                n => self.line(
                    pair,
                    quantity,
                    &indentation(level),
                    &format!("{name} and {} below it", count(n as u64)),
                    lines,
                )?,
            }
            self.push(std::mem::take(&mut children[index]), level + 1, quantity, &mut pending);
        }
        self.remainder(&others, lines)
    }

    /// The largest change is popped first.
    fn push(&self, mut siblings: Vec<usize>, level: usize, quantity: &Quantity, pending: &mut Vec<(usize, usize)>) {
        let size = |index: &usize| self.comparison.change(self.comparison.node(*index), quantity).change().abs();
        let name = |index: &usize| &self.comparison.names[self.comparison.nodes[*index].name].machine;
        siblings.sort_by(|a, b| size(a).total_cmp(&size(b)).then_with(|| name(b).cmp(name(a))));
        pending.extend(siblings.into_iter().map(|index| (index, level)));
    }

    fn focused(&self) -> Vec<bool> {
        let focus = &self.selection.focus;
        let is_meant = |machine: &str| focus.as_ref().is_none_or(|focus| focus.matches(machine));
        self.comparison.names.iter().map(|name| is_meant(&name.machine)).collect()
    }

    fn is_notable(&self, pair: Pair<'_>, quantity: &Quantity) -> bool {
        self.is_large(pair, quantity) && self.comparison.change(pair, quantity).is_real()
    }

    /// Whether it changed by enough to be listed, if that is certain.
    fn is_large(&self, pair: Pair<'_>, quantity: &Quantity) -> bool {
        let change = self.comparison.change(pair, quantity);
        let whole = self.comparison.whole_change(pair, quantity);
        change.change().abs() >= self.selection.min_share * whole.before.max(whole.after)
    }

    /// Of these, what is not listed.
    fn others<'p>(&self, pairs: impl Iterator<Item = Pair<'p>>, quantity: &Quantity) -> Others {
        let mut others = Others::default();
        for pair in pairs.filter(|pair| !self.is_notable(*pair, quantity)) {
            others.all += 1;
            let has_changed = self.comparison.change(pair, quantity).change() != 0.0;
            others.uncertain += usize::from(has_changed && self.is_large(pair, quantity));
        }
        others
    }

    fn per(&self, quantity: &Quantity) -> &'static str {
        if is_per_root_call(self.comparison, quantity) { ", per root call" } else { "" }
    }

    /// What a change must exceed to be listed, and how many of the others exceed a part of it.
    fn threshold(&self, others: &Others) -> String {
        match (self.selection.min_share * 100.0, others.uncertain) {
            (0.0, _) => "their uncertainty".to_owned(),
            (percent, 0) => format!("their uncertainty, or {percent}% of the whole"),
            (percent, n) => format!(
                "their uncertainty, or {percent}% of the whole; {} within error, but by more than {percent}%",
                count(n as u64)
            ),
        }
    }

    fn remainder(&self, others: &Others, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
        let text = format!("... {} more changed by no more than {}", count(others.all as u64), self.threshold(others));
        if others.all > 0 { lines.line("", &text, Emphasis::Faint) } else { Ok(()) }
    }

    /// Of what the change stands beside that of a quantity: the other metrics that were chosen, or calls.
    fn beside(&self, quantity: &Quantity) -> Vec<Quantity> {
        match &self.selection.metrics[..] {
            [_, others @ ..] if !others.is_empty() => {
                let same_part = |id: &String| Quantity::of(id, quantity.part);
                let has_part = |id: &String| self.comparison.metric(&same_part(id)).is_some();
                others.iter().map(|id| if has_part(id) { same_part(id) } else { Quantity::of(id, Part::Own) }).collect()
            }
            _ => self.comparison.metric(&Quantity::CALLS).map(|_| Quantity::CALLS).into_iter().collect(),
        }
    }

    fn header(&self, quantity: &Quantity, name: &str, lines: &mut Lines<'_, impl Write>) -> io::Result<()> {
        let beside = self.beside(quantity);
        let heads = beside.iter().map(|beside| {
            let head = if beside.id == quantity.id { "" } else { &beside.id };
            format!(" {head:>width$}", width = width_of(beside))
        });
        let numbers = format!(
            "{:>10} {:>10} {:>11} {:>10} {:>9}{}  ",
            "before",
            "after",
            "change",
            "±",
            "relative",
            heads.collect::<String>()
        );
        lines.line(&numbers, name, Emphasis::None)
    }

    fn line(
        &self,
        pair: Pair<'_>,
        quantity: &Quantity,
        indentation: &str,
        name: &str,
        lines: &mut Lines<'_, impl Write>,
    ) -> io::Result<()> {
        let change = self.comparison.change(pair, quantity);
        let unit = self.comparison.metric(quantity).map_or(Unit::Count, |metric| metric.unit);
        let beside = self.beside(quantity);
        let beside = beside.iter().map(|beside| {
            let is_it = beside.id == quantity.id;
            let change = if is_it { String::new() } else { claimed(&self.comparison.change(pair, beside)) };
            format!(" {change:>width$}", width = width_of(beside))
        });
        let side = |runs: &[Option<_>], value: f64| {
            if runs.iter().any(Option::is_some) { amount(value, unit) } else { "-".to_owned() }
        };
        let numbers = format!(
            "{:>10} {:>10} {:>11} {:>10} {:>9}{}  {indentation}",
            marked(side(pair.before, change.before), change.at_least[0]),
            marked(side(pair.after, change.after), change.at_least[1]),
            if change.change() == 0.0 { "=".to_owned() } else { signed(change.change(), unit) },
            amount(change.error, unit),
            claimed(&change),
            beside.collect::<String>(),
        );
        let emphasis = match change.change() {
            _ if !change.is_real() => Emphasis::Faint,
            more if more > 0.0 => Emphasis::Worse,
            _ => Emphasis::Better,
        };
        lines.line(&numbers, name, emphasis)
    }
}

/// Whether what is shown is that of one root call. Quotients are the same of one and of all.
fn is_per_root_call(comparison: &Comparison<'_>, quantity: &Quantity) -> bool {
    comparison.per == Per::RootCall && comparison.metric(quantity).is_none_or(|metric| metric.is_additive)
}

/// Of a column of changes in per cent.
fn width_of(quantity: &Quantity) -> usize {
    quantity.id.len().max("not known".len())
}

/// That calls may be missing.
fn marked(text: String, at_least: bool) -> String {
    if at_least { format!(">={text}") } else { text }
}

fn named(comparison: &Comparison<'_>, quantity: &Quantity) -> String {
    match (comparison.metric(quantity), quantity.part) {
        (Some(metric), _) if metric.extent == Extent::Own => metric.title.clone().into_owned(),
        (Some(metric), Part::Own) if metric.is_time() => "self time".to_owned(),
        (Some(metric), Part::Total) if metric.is_time() => "total time".to_owned(),
        (Some(metric), Part::Own) => format!("{} of methods themselves", metric.title),
        (Some(metric), Part::Total) => format!("{} with what is called", metric.title),
        (None, _) => quantity.id.clone().into_owned(),
    }
}

fn amount(value: f64, unit: Unit) -> String {
    match unit {
        _ if value.is_infinite() => "?".to_owned(),
        Unit::Share => percent(value / unit.one()),
        Unit::Nanoseconds => time(value.round() as u64),
        Unit::Bytes => bytes(value.round() as u64),
        Unit::Count | Unit::Bytecodes if value.fract() == 0.0 => count(value as u64),
        Unit::Count | Unit::Bytecodes if value < 0.001 => format!("{value:.1e}"),
        Unit::Count | Unit::Bytecodes if value < 1_000.0 => format!("{value:.3}"),
        Unit::Count | Unit::Bytecodes => count(value.round() as u64),
    }
}

fn signed(value: f64, unit: Unit) -> String {
    let text = amount(value.abs(), unit);
    if value < 0.0 { format!("-{text}") } else { format!("+{text}") }
}

/// As a part, if it is larger than its error.
fn claimed(change: &Change) -> String {
    match (change.is_known() && !change.may_be_missing(), change.change() == 0.0 || change.is_real()) {
        (false, _) => "not known".to_owned(),
        (_, false) => "within ±".to_owned(),
        (_, true) => match change.at_least {
            [false, false] => relative(change),
            _ if change.change() == 0.0 => "not known".to_owned(),
            _ if change.change() > 0.0 => format!(">={}", relative(change)),
            _ => format!("<={}", relative(change)),
        },
    }
}

fn relative(change: &Change) -> String {
    match change.relative() {
        0.0 => "=".to_owned(),
        relative if relative.is_infinite() => "new".to_owned(),
        -1.0 => "gone".to_owned(),
        relative if relative.abs() >= 10.0 => format!("x{:.1}", 1.0 + relative),
        relative => format!("{:+.1}%", relative * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_never_shown_as_none() {
        assert_eq!(signed(0.0, Unit::Count), "+0");
        assert_eq!(signed(-0.000_25, Unit::Bytecodes), "-2.5e-4");
        assert_eq!(signed(0.25, Unit::Bytecodes), "+0.250");
    }
}
