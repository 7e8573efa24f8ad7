//! Conditions for a regression gate: `self(com.acme.*) > +5%`.
//!
//! ```text
//! condition = quantity "(" methods ")" (">" | ">=" | "<" | "<=") ["+" | "-"] number [unit]
//! quantity  = "self" | "total" | metric [".total"]
//! unit      = "%" | "ns" | "us" | "ms" | "s" | "B" | "KiB" | "MiB" | "GiB"
//! ```
//!
//! `self` and `total` are times; a metric is an id, as `calls` is. The number is a change, from the first side to the second: relative with
//! `%`, else absolute, of times and sizes with a unit, of counts without. Methods are what a [`MethodSelector`] takes, and count together: the
//! sum of what they have themselves; of totals that of the outermost calls, so that nothing counts twice.

use std::fmt;
use std::str::FromStr;

use super::{Change, Comparison};
use crate::profile::{Part, Quantity, Unit};
use crate::report::select::MethodSelector;
use crate::report::{near_methods, suggested, units};

/// Why a condition could not be understood. Columns count characters from 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {what}")]
pub struct ConditionError {
    /// Where.
    pub column: usize,
    /// What is wrong there, and what would be right.
    pub what: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Threshold {
    /// 0.05 is five per cent.
    Relative(f64),
    /// In nanoseconds, bytes, or things.
    Absolute(f64, Unit),
}

/// What must not be.
#[derive(Clone, Debug, PartialEq)]
pub struct Condition {
    text: String,
    quantity: Quantity,
    methods: MethodSelector,
    operator: Operator,
    threshold: Threshold,
}

/// Why a condition holds or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It does not hold: all is well.
    Passed,
    /// It would, but the change is not larger than its uncertainty.
    Uncertain,
    /// It holds.
    Failed,
    /// It speaks of methods that were never called: a gate that cannot close is none.
    NothingMatched,
    /// It speaks of a metric that not all profiles have, or of a part or unit that this one does not have.
    NoSuchMetric,
}

impl Verdict {
    /// Whether the gate closes.
    pub fn is_failure(self) -> bool {
        matches!(self, Verdict::Failed | Verdict::NothingMatched | Verdict::NoSuchMetric)
    }
}

/// A condition's outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The methods' quantity.
    pub change: Change,
    /// What follows.
    pub verdict: Verdict,
}

/// Conditions with their outcomes.
pub type Judgements<'a> = &'a [(Condition, Judgement)];

impl Condition {
    /// What is compared.
    pub fn quantity(&self) -> &Quantity {
        &self.quantity
    }

    /// Whether it holds.
    pub fn judge(&self, comparison: &Comparison<'_>) -> Judgement {
        let is_meant: Vec<bool> = comparison.names.iter().map(|name| self.methods.matches(&name.machine)).collect();
        let mut sum = comparison.of_methods.sum();
        match self.quantity.part {
            Part::Own => {
                for (_, pair) in comparison.methods().filter(|(name, _)| is_meant[*name]) {
                    sum.add_pair(0, pair);
                }
            }
            Part::Total => {
                // Callers come before their callees.
                let mut covered = Vec::with_capacity(comparison.nodes.len());
                for (index, node) in comparison.nodes.iter().enumerate() {
                    let is_inner = node.link.is_none() && node.parent.is_some_and(|parent| covered[parent]);
                    covered.push(is_inner || is_meant[node.name]);
                    if !is_inner && is_meant[node.name] {
                        sum.add_pair(0, comparison.node(index));
                    }
                }
            }
        }
        let sum = sum.pair(0);
        let change = comparison.change(sum, &self.quantity);
        let Some(metric) = comparison.metric(&self.quantity).filter(|metric| match self.threshold {
            Threshold::Relative(_) => true,
            Threshold::Absolute(_, unit) => unit == metric.unit.of_limits(),
        }) else {
            return Judgement { change, verdict: Verdict::NoSuchMetric };
        };
        let (value, limit) = match self.threshold {
            Threshold::Relative(limit) => (change.relative(), limit),
            Threshold::Absolute(limit, _) => (change.change(), limit),
        };
        let holds = match self.operator {
            Operator::Greater => value > limit,
            Operator::GreaterOrEqual => value >= limit,
            Operator::Less => value < limit,
            Operator::LessOrEqual => value <= limit,
        };
        // How often something was called is no estimate: who asks for it is told, however much it differs from run to run.
        let is_certain = match metric.is_calls() {
            true => change.change() != 0.0 && !change.may_be_missing(),
            false => change.is_real(),
        };
        let verdict = match (sum.is_known(), holds, is_certain) {
            (false, ..) => Verdict::NothingMatched,
            (_, false, _) => Verdict::Passed,
            (_, true, true) => Verdict::Failed,
            (_, true, false) => Verdict::Uncertain,
        };
        Judgement { change, verdict }
    }

    /// For a condition that matched nothing: a sentence's end that suggests other names.
    pub fn suggestion(&self, comparison: &Comparison<'_>) -> String {
        let runs = comparison.after.iter().chain(&comparison.before);
        let mut near = runs.map(|run| near_methods(run.profile, &self.methods));
        suggested(&near.find(|near| !near.is_empty()).unwrap_or_default())
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Condition, ConditionError> {
        let mut rest = Rest { text, at: 0 };
        let quantity = match rest.word() {
            "" => return Err(rest.wrong("say what is compared: self(...), total(...), calls(...) or another metric")),
            word => Quantity::from(word),
        };
        rest.skip_spaces();
        if !rest.take("(") {
            return Err(rest.wrong("the methods are missing: write them in parentheses, as in self(com.acme.*)"));
        }
        let column = rest.column();
        let methods = rest.up_to_closing().ok_or_else(|| rest.wrong("the parenthesis before this is never closed"))?;
        let methods: MethodSelector = methods
            .parse()
            .map_err(|error| ConditionError { column, what: format!("these are no methods: {error}") })?;
        rest.skip_spaces();
        let operators = [
            (">=", Operator::GreaterOrEqual),
            ("<=", Operator::LessOrEqual),
            (">", Operator::Greater),
            ("<", Operator::Less),
        ];
        let operator = operators.into_iter().find(|(sign, _)| rest.take(sign));
        let (_, operator) = operator.ok_or_else(|| rest.wrong("write >, >=, < or <= here"))?;
        rest.skip_spaces();
        let number = rest.number().ok_or_else(|| rest.wrong("a change is missing, such as +5% or -2ms"))?;
        rest.skip_spaces();
        let unit_column = rest.column();
        let unit = rest.rest().trim_end();
        let is_time = quantity.is_time();
        let is_meant = |(_, unit): &(f64, Unit)| !is_time || *unit == Unit::Nanoseconds;
        let (factor, unit) = match (unit, units::unit(unit).filter(is_meant)) {
            ("%", _) => (None, Unit::Count),
            (_, Some((factor, unit))) => (Some(factor), unit),
            _ => {
                let units = match is_time {
                    true => "a unit is needed here: %, ns, us, ms or s",
                    false => "this is no unit: there are %, ns, us, ms, s, B, KiB, MiB and GiB, and counts have none",
                };
                return Err(ConditionError { column: unit_column, what: units.to_owned() });
            }
        };
        if quantity == Quantity::CALLS && unit != Unit::Count {
            return Err(ConditionError { column: unit_column, what: "calls have no unit but %".to_owned() });
        }
        let threshold = match factor {
            None => Threshold::Relative(number / 100.0),
            Some(factor) => Threshold::Absolute(number * factor, unit),
        };
        Ok(Condition { text: text.trim().to_owned(), quantity, methods, operator, threshold })
    }
}

/// What has not been read yet.
struct Rest<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn column(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn wrong(&self, what: &str) -> ConditionError {
        ConditionError { column: self.column(), what: what.to_owned() }
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, what: &str) -> bool {
        let is_next = self.rest().starts_with(what);
        self.at += if is_next { what.len() } else { 0 };
        is_next
    }

    fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !accepts(character)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn word(&mut self) -> &'a str {
        self.skip_spaces();
        self.take_while(|character| character.is_alphanumeric() || ['-', '.'].contains(&character))
    }

    /// Behind the parenthesis that closes the one just taken; what is between. Parameter lists have parentheses of their own.
    fn up_to_closing(&mut self) -> Option<&'a str> {
        let rest = self.rest();
        let mut depth = 1;
        for (at, character) in rest.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.at += at + 1;
                return Some(&rest[..at]);
            }
        }
        None
    }

    fn number(&mut self) -> Option<f64> {
        let start = self.at;
        let sign = if self.take("-") || self.take("−") { -1.0 } else { 1.0 };
        if sign > 0.0 {
            self.take("+");
        }
        self.skip_spaces();
        let digits = self.take_while(|character| character.is_ascii_digit() || character == '.');
        match digits.parse::<f64>() {
            Ok(number) => Some(sign * number),
            Err(_) => {
                self.at = start;
                None
            }
        }
    }
}
