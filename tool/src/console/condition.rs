//! What a session can wait for, and what it can demand: `wait calls 1000 60s`, `expect root-calls > 0`.

use std::fmt;
use std::time::Duration;

use headwater_protocol::message::events::Sort;

use super::line::{LineError, Word};
use crate::events::summary::Summary;
use crate::pattern::MethodPattern;
use crate::profile::{Amount, Contention, Metric, NodeIndex, Part, Profile, Quantity, Unit};
use crate::profiling::counters;
use crate::report::units::{bytes, percent};
use value::value;

/// What is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Time to pass.
    For(Duration),
    /// So many complete calls of the roots.
    Calls(u64),
    /// A call of a root.
    RootEntered,
    /// The profile to end by its own -d or --calls.
    Done,
}

/// `wait ...`: what for, and for how long at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitCommand {
    /// What for.
    pub what: Wait,
    /// How long at most; without end, when there is none.
    pub at_most: Option<Duration>,
}

const WAIT_USAGE: &str =
    "give a time (`wait 30s`), `wait calls N [TIME]`, `wait root-entered [TIME]` or `wait done [TIME]`";

impl WaitCommand {
    /// Reads the words behind `wait`; `end` is the column behind the line.
    pub fn parse(words: &[Word], end: usize) -> Result<WaitCommand, LineError> {
        let Some((first, rest)) = words.split_first() else { return Err(LineError::new(end, WAIT_USAGE)) };
        let (what, rest) = match first.text.as_str() {
            "calls" => {
                let Some((number, rest)) = rest.split_first() else {
                    return Err(LineError::new(end, "how many calls? `wait calls N [TIME]`"));
                };
                let calls = number.text.replace(['_', ','], "").parse();
                let calls = calls
                    .map_err(|_| LineError::new(number.column, format!("`{}` is no number of calls", number.text)))?;
                (Wait::Calls(calls), rest)
            }
            "root-entered" => (Wait::RootEntered, rest),
            "done" => (Wait::Done, rest),
            _ => match crate::request::duration(&first.text) {
                Ok(time) => (Wait::For(time), rest),
                Err(_) => {
                    let message = format!("`{}` is nothing to wait for; {WAIT_USAGE}", first.text);
                    return Err(LineError::new(first.column, message));
                }
            },
        };
        let (at_most, rest) = match (what, rest.split_first()) {
            (Wait::For(_), _) | (_, None) => (None, rest),
            (_, Some((time, rest))) => {
                let at_most = crate::request::duration(&time.text)
                    .map_err(|_| LineError::new(time.column, format!("`{}` is no time (30s, 2m)", time.text)))?;
                (Some(at_most), rest)
            }
        };
        match rest.first() {
            Some(extra) => Err(LineError::new(extra.column, format!("`{}` is too much here", extra.text))),
            None => Ok(WaitCommand { what, at_most }),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Wait::For(time) => write!(f, "{time:?}"),
            Wait::Calls(1) => write!(f, "a complete root call"),
            Wait::Calls(calls) => write!(f, "{calls} complete root calls"),
            Wait::RootEntered => write!(f, "a root to be entered"),
            Wait::Done => write!(f, "the profile to end"),
        }
    }
}

/// What an expectation is about.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Subject {
    RootCalls,
    Calls,
    /// A metric of methods.
    Of(Quantity, Box<MethodPattern>),
    /// All that there is of a metric.
    Whole(Quantity),
    Duration,
    Events,
    Lost,
    Healed,
    Instrumented,
    Called,
    Skipped,
    Threads,
    Warnings,
    /// Of the target's threads.
    Deadlocks,
    /// Of contended locks.
    ContendedLocks,
    LockWaits,
    LockBlocked,
    /// Of events.
    Collections,
    GcTotal,
    GcLongest,
    ClassesLoaded,
    ThreadsStarted,
}

/// The quantities without a pattern, for messages and completion.
pub const QUANTITIES: [&str; 20] = [
    "root-calls",
    "calls",
    "duration",
    "events",
    "lost",
    "healed",
    "instrumented",
    "called",
    "skipped",
    "threads",
    "warnings",
    "deadlocks",
    "contended-locks",
    "lock-waits",
    "lock-blocked",
    "collections",
    "gc-total",
    "gc-longest",
    "classes-loaded",
    "threads-started",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Less,
    AtMost,
    Equal,
    Other,
    AtLeast,
    More,
}

/// The longer come first: `<=` begins with `<`.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Other),
    ("<", Comparison::Less),
    (">", Comparison::More),
    ("=", Comparison::Equal),
];

/// Before what is expected of samples and not of a profile below roots.
const SAMPLED: &str = "sample.";

/// `expect QUANTITY COMPARISON VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    subject: Subject,
    /// It is of samples of all threads.
    is_sampled: bool,
    comparison: Comparison,
    /// In the unit.
    value: f64,
    unit: Unit,
}

impl Expectation {
    /// Reads the words behind `expect`; `end` is the column behind the line.
    pub fn parse(words: &[Word], end: usize) -> Result<Expectation, LineError> {
        const USAGE: &str = "give a quantity, a comparison and a value: `expect root-calls > 0`";
        let (text, columns) = joined(words);
        let column = |at: usize| columns.get(at).copied().unwrap_or(end);
        // A comparison lies outside the pattern's brackets: `calls(a.B::<init>) > 0`.
        let mut depth = 0;
        let found = text.char_indices().find_map(|(at, character)| {
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            let comparison = COMPARISONS.iter().find(|(symbol, _)| text[at..].starts_with(symbol))?;
            (depth <= 0).then_some((at, comparison))
        });
        let Some((at, (symbol, comparison))) = found else { return Err(LineError::new(column(0), USAGE)) };
        let named = text[..at].trim();
        let sampled = named.strip_prefix(SAMPLED);
        let subject = match sampled {
            Some(named) => of_samples(named),
            None => subject(named),
        };
        let subject = subject.map_err(|message| LineError::new(column(0), message))?;
        let behind = at + symbol.len();
        let value_text = text[behind..].trim();
        let value_at = text.len() - text[behind..].trim_start().len();
        let Some((value, unit)) = value(value_text, subject.unit()) else {
            let what = match subject.unit() {
                Some(Unit::Nanoseconds) => "time (250us, 3ms, 1s)",
                Some(_) => "number",
                None if sampled.is_some() => "time (250us, 3ms, 1s), share (20%), number or size (64KiB, 3MiB)",
                None => "number, time (250us, 3ms, 1s) or size (64KiB, 3MiB)",
            };
            let message = match value_text {
                "" => format!("a {what} is missing"),
                value_text => format!("`{value_text}` is no {what}"),
            };
            return Err(LineError::new(column(value_at), message));
        };
        let is_sampled = sampled.is_some();
        Ok(Expectation { text, subject, is_sampled, comparison: *comparison, value, unit })
    }

    /// Whether it holds; if not, a sentence.
    pub fn check(&self, profile: &Profile) -> Result<(), String> {
        let mut whole = None;
        if let Subject::Of(quantity, _) | Subject::Whole(quantity) = &self.subject {
            let metrics = all_metrics(profile);
            let metric = quantity.among(&metrics).map(|at| &metrics[at]);
            match metric {
                None => {
                    let ids: Vec<&str> = metrics.iter().map(|metric| &*metric.id).collect();
                    let text = &self.text;
                    return Err(format!(
                        "expected {text}, but the profile has no such metric: it has {}",
                        ids.join(", ")
                    ));
                }
                // Which part of all that was sampled.
                Some(metric) if self.is_sampled && self.unit == Unit::Share => {
                    whole = Some(whole_of(profile, metric));
                }
                Some(metric) if metric.unit.of_limits() != self.unit => {
                    let unit = metric.unit.name();
                    return Err(format!("expected {}, but {} is in {unit}", self.text, metric.id));
                }
                Some(_) => {}
            }
        }
        let value = self.subject.of(profile);
        self.check_value(whole.map_or(value, |whole| value / whole.max(1) as f64 * Unit::Share.one()))
    }

    /// Whether it is about the target's threads and not about a profile.
    pub fn is_of_threads(&self) -> bool {
        self.subject == Subject::Deadlocks
    }

    /// Whether it is about contended locks.
    pub fn is_of_locks(&self) -> bool {
        matches!(self.subject, Subject::ContendedLocks | Subject::LockWaits | Subject::LockBlocked)
    }

    /// Whether it is about samples of all threads.
    pub fn is_of_samples(&self) -> bool {
        self.is_sampled
    }

    /// Whether it is about events.
    pub fn is_of_events(&self) -> bool {
        self.subject.happened(&Summary::default()).is_some()
    }

    /// The same as [`Expectation::check`] of what has happened.
    pub(crate) fn check_events(&self, summary: &Summary) -> Result<(), String> {
        self.check_value(self.subject.happened(summary).unwrap_or(f64::NAN))
    }

    /// The same as [`Expectation::check`] of what is known to be so many.
    pub fn check_count(&self, count: usize) -> Result<(), String> {
        self.check_value(count as f64)
    }

    fn check_value(&self, value: f64) -> Result<(), String> {
        let holds = match self.comparison {
            Comparison::Less => value < self.value,
            Comparison::AtMost => value <= self.value,
            Comparison::Equal => value == self.value,
            Comparison::Other => value != self.value,
            Comparison::AtLeast => value >= self.value,
            Comparison::More => value > self.value,
        };
        if holds {
            return Ok(());
        }
        let value = match self.unit {
            Unit::Nanoseconds => format!("{:?}", Duration::from_nanos(value as u64)),
            Unit::Bytes => bytes(value as u64),
            Unit::Count | Unit::Bytecodes => format!("{value}"),
            Unit::Share => percent(value / Unit::Share.one()),
        };
        Err(format!("expected {}, but it is {value}", self.text))
    }
}

/// The words as one text, and the column of each of its bytes.
fn joined(words: &[Word]) -> (String, Vec<usize>) {
    let (mut text, mut columns) = (String::new(), Vec::new());
    for word in words {
        if !text.is_empty() {
            text.push(' ');
            columns.push(word.column);
        }
        for (index, character) in word.text.chars().enumerate() {
            text.push(character);
            columns.extend(std::iter::repeat_n(word.column + index, character.len_utf8()));
        }
    }
    (text, columns)
}

fn subject(text: &str) -> Result<Subject, String> {
    if let Some((name, pattern)) = text.split_once('(') {
        let Some(pattern) = pattern.strip_suffix(')') else { return Err("a closing bracket is missing".to_owned()) };
        let pattern: MethodPattern = pattern.parse().map_err(|error| format!("{error}"))?;
        let quantity = match name.trim() {
            other if QUANTITIES.contains(&other) && other != Quantity::CALLS.id => {
                return Err(format!("`{other}` has no pattern; calls(METHOD), self(METHOD) and total(METHOD) do"));
            }
            name => Quantity::from(name),
        };
        return Ok(Subject::Of(quantity, Box::new(pattern)));
    }
    Ok(match text {
        "root-calls" => Subject::RootCalls,
        "calls" => Subject::Calls,
        "duration" => Subject::Duration,
        "events" => Subject::Events,
        "lost" => Subject::Lost,
        "healed" => Subject::Healed,
        "instrumented" => Subject::Instrumented,
        "called" => Subject::Called,
        "skipped" => Subject::Skipped,
        "threads" => Subject::Threads,
        "warnings" => Subject::Warnings,
        "deadlocks" => Subject::Deadlocks,
        "contended-locks" => Subject::ContendedLocks,
        "lock-waits" => Subject::LockWaits,
        "lock-blocked" => Subject::LockBlocked,
        "collections" => Subject::Collections,
        "gc-total" => Subject::GcTotal,
        "gc-longest" => Subject::GcLongest,
        "classes-loaded" => Subject::ClassesLoaded,
        "threads-started" => Subject::ThreadsStarted,
        metric if counters::is_known(metric) => Subject::Whole(Quantity::from(metric)),
        other => {
            let known = QUANTITIES.join(", ");
            return Err(format!(
                "`{other}` is no quantity; there are {known}, metrics (alloc, blocked), and METRIC(METHOD), calls(METHOD), self(METHOD), total(METHOD)"
            ));
        }
    })
}

/// What samples have: metrics, of methods or all that there is of one.
fn of_samples(text: &str) -> Result<Subject, String> {
    match text {
        "" => Err(format!("say which metric: {SAMPLED}cpu, {SAMPLED}cpu(METHOD), {SAMPLED}blocked.total(METHOD)")),
        "duration" => Ok(Subject::Duration),
        "threads" => Ok(Subject::Threads),
        of_methods if of_methods.contains('(') => subject(of_methods),
        metric => Ok(Subject::Whole(Quantity::from(metric))),
    }
}

impl Subject {
    /// Its unit; `None` if the profile will tell.
    fn unit(&self) -> Option<Unit> {
        match self {
            Subject::Duration | Subject::LockBlocked | Subject::GcTotal | Subject::GcLongest => Some(Unit::Nanoseconds),
            Subject::Of(quantity, _) if quantity.is_time() => Some(Unit::Nanoseconds),
            Subject::Of(quantity, _) if *quantity == Quantity::CALLS => Some(Unit::Count),
            Subject::Of(..) | Subject::Whole(_) => None,
            _ => Some(Unit::Count),
        }
    }

    /// What there has been of it, if it is about events.
    fn happened(&self, summary: &Summary) -> Option<f64> {
        let count = match self {
            Subject::Collections => summary.count(Sort::Collection),
            Subject::GcTotal => summary.pauses().total_ns,
            Subject::GcLongest => summary.pauses().longest_ns,
            Subject::ClassesLoaded => summary.count(Sort::ClassLoad),
            Subject::ThreadsStarted => summary.count(Sort::ThreadStart),
            _ => return None,
        };
        Some(count as f64)
    }

    fn of(&self, profile: &Profile) -> f64 {
        let blocked = || profile.contention.as_ref().map(Contention::blocked).unwrap_or_default();
        let count = match self {
            Subject::ContendedLocks => {
                profile.contention.as_ref().map_or(0, |contention| contention.locks.len() as u64)
            }
            Subject::LockWaits => blocked().count,
            Subject::LockBlocked => blocked().total_ns,
            Subject::RootCalls => profile.roots.iter().map(|root| root.calls).sum(),
            Subject::Calls => profile.merged.calls(),
            Subject::Of(quantity, pattern) => sum(profile, pattern, quantity),
            Subject::Whole(quantity) => whole(profile, quantity),
            Subject::Duration => return profile.duration.as_nanos() as f64,
            Subject::Events => profile.events.recorded,
            Subject::Lost => profile.events.lost,
            Subject::Healed => profile.events.healed,
            Subject::Instrumented => profile.instrumented as u64,
            Subject::Called => profile.called as u64,
            Subject::Skipped => profile.skipped.len() as u64,
            Subject::Threads => profile.threads.len() as u64,
            Subject::Warnings => profile.warnings.len() as u64,
            // Not a profile's.
            Subject::Deadlocks
            | Subject::Collections
            | Subject::GcTotal
            | Subject::GcLongest
            | Subject::ClassesLoaded
            | Subject::ThreadsStarted => return f64::NAN,
        };
        count as f64
    }
}

/// All that a profile has of a metric.
fn whole(profile: &Profile, quantity: &Quantity) -> u64 {
    let metrics = all_metrics(profile);
    let metric = quantity.among(&metrics).map(|at| &metrics[at]);
    metric.map_or(0, |metric| whole_of(profile, metric))
}

fn whole_of(profile: &Profile, metric: &Metric) -> u64 {
    metric.whole(&profile.merged, &profile.columns(&profile.merged))
}

/// The sum over the nodes of matching methods. With what they call, what is below another such node is in that one's already.
fn sum(profile: &Profile, pattern: &MethodPattern, quantity: &Quantity) -> u64 {
    let metrics = all_metrics(profile);
    let Some(metric) = quantity.among(&metrics).map(|at| &metrics[at]) else { return 0 };
    let columns = profile.columns(&profile.merged);
    let matching: Vec<bool> = profile.methods.iter().map(|method| is_meant(pattern, &method.machine)).collect();
    let tree = &profile.merged;
    let sum_of = |metric: &Metric| {
        let mut inside = vec![false; tree.nodes.len()];
        let mut sum = Amount::default();
        for (index, node) in tree.nodes.iter().enumerate() {
            let nested = node.caller().is_some_and(|caller| inside[caller.0]);
            let matches = matching[node.method.0];
            inside[index] = nested || matches;
            if matches {
                let amount = metric.at_node(tree, &columns, NodeIndex(index));
                sum.own += amount.own;
                sum.total += if nested { 0 } else { amount.total };
            }
        }
        sum
    };
    let sum = metric.over(&sum_of);
    if quantity.part == Part::Own { sum.own } else { sum.total }
}

/// Those of a profile, and what follows from them.
fn all_metrics(profile: &Profile) -> Vec<Metric> {
    profile.metrics().into_iter().chain(profile.derived()).collect()
}

/// Whether a pattern means the method of a machine name, `a.b.C.m(I)V`.
pub fn is_meant(pattern: &MethodPattern, machine: &str) -> bool {
    let (name, descriptor) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
    name.rsplit_once('.').is_some_and(|(class, method)| pattern.matches(&class.replace('.', "/"), method, descriptor))
}

mod value;

#[cfg(test)]
mod tests;
