//! What a session can wait for, and what it can demand: `wait calls 1000 60s`, `expect root-calls > 0`.

use std::fmt;
use std::time::Duration;

use super::line::{LineError, Word};
use crate::pattern::MethodPattern;
use crate::profile::{Node, Profile};

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
            _ => match crate::cli::duration(&first.text) {
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
                let at_most = crate::cli::duration(&time.text)
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

/// A quantity of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Quantity {
    RootCalls,
    Calls(Option<MethodPattern>),
    SelfTime(MethodPattern),
    TotalTime(MethodPattern),
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
}

/// The quantities without a pattern, for messages and completion.
pub const QUANTITIES: [&str; 12] = [
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
const COMPARISONS: [(&str, Comparison); 6] = [
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("==", Comparison::Equal),
    ("!=", Comparison::Other),
    ("<", Comparison::Less),
    (">", Comparison::More),
];

/// `expect QUANTITY COMPARISON VALUE`.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    text: String,
    quantity: Quantity,
    comparison: Comparison,
    /// A number, or nanoseconds.
    value: f64,
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
        let quantity = quantity(text[..at].trim()).map_err(|message| LineError::new(column(0), message))?;
        let behind = at + symbol.len();
        let value_text = text[behind..].trim();
        let value_at = text.len() - text[behind..].trim_start().len();
        let value = if quantity.is_time() {
            crate::cli::duration(value_text).map(|time| time.as_nanos() as f64).ok()
        } else {
            value_text.replace(['_', ','], "").parse().ok()
        };
        let Some(value) = value else {
            let what = if quantity.is_time() { "time (250us, 3ms, 1s)" } else { "number" };
            let message = match value_text {
                "" => format!("a {what} is missing"),
                value_text => format!("`{value_text}` is no {what}"),
            };
            return Err(LineError::new(column(value_at), message));
        };
        Ok(Expectation { text, quantity, comparison: *comparison, value })
    }

    /// Whether it holds; if not, a sentence.
    pub fn check(&self, profile: &Profile) -> Result<(), String> {
        self.check_value(self.quantity.of(profile))
    }

    /// Whether it is about the target's threads and not about a profile.
    pub fn is_of_threads(&self) -> bool {
        self.quantity == Quantity::Deadlocks
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
        let value = match self.quantity.is_time() {
            true => format!("{:?}", Duration::from_nanos(value as u64)),
            false => format!("{value}"),
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

fn quantity(text: &str) -> Result<Quantity, String> {
    if let Some((name, pattern)) = text.split_once('(') {
        let Some(pattern) = pattern.strip_suffix(')') else { return Err("a closing bracket is missing".to_owned()) };
        let pattern = pattern.parse().map_err(|error| format!("{error}"))?;
        return match name.trim() {
            "calls" => Ok(Quantity::Calls(Some(pattern))),
            "self" => Ok(Quantity::SelfTime(pattern)),
            "total" => Ok(Quantity::TotalTime(pattern)),
            other => Err(format!("`{other}` has no pattern; calls(METHOD), self(METHOD) and total(METHOD) do")),
        };
    }
    Ok(match text {
        "root-calls" => Quantity::RootCalls,
        "calls" => Quantity::Calls(None),
        "duration" => Quantity::Duration,
        "events" => Quantity::Events,
        "lost" => Quantity::Lost,
        "healed" => Quantity::Healed,
        "instrumented" => Quantity::Instrumented,
        "called" => Quantity::Called,
        "skipped" => Quantity::Skipped,
        "threads" => Quantity::Threads,
        "warnings" => Quantity::Warnings,
        "deadlocks" => Quantity::Deadlocks,
        other => {
            let known = QUANTITIES.join(", ");
            return Err(format!(
                "`{other}` is no quantity; there are {known}, calls(METHOD), self(METHOD) and total(METHOD)"
            ));
        }
    })
}

impl Quantity {
    fn is_time(&self) -> bool {
        matches!(self, Quantity::SelfTime(_) | Quantity::TotalTime(_) | Quantity::Duration)
    }

    fn of(&self, profile: &Profile) -> f64 {
        let count = match self {
            Quantity::RootCalls => profile.roots.iter().map(|root| root.calls).sum(),
            Quantity::Calls(None) => profile.merged.calls(),
            Quantity::Calls(Some(pattern)) => sum(profile, pattern, |node, _| node.calls),
            Quantity::SelfTime(pattern) => sum(profile, pattern, |node, _| node.self_ns),
            Quantity::TotalTime(pattern) => {
                // What is below a call of a method that matches is in that call's time already.
                sum(profile, pattern, |node, nested| if nested { 0 } else { node.total_ns })
            }
            Quantity::Duration => return profile.duration.as_nanos() as f64,
            Quantity::Events => profile.events.recorded,
            Quantity::Lost => profile.events.lost,
            Quantity::Healed => profile.events.healed,
            Quantity::Instrumented => profile.instrumented as u64,
            Quantity::Called => profile.called as u64,
            Quantity::Skipped => profile.skipped.len() as u64,
            Quantity::Threads => profile.threads.len() as u64,
            Quantity::Warnings => profile.warnings.len() as u64,
            // Not a profile's.
            Quantity::Deadlocks => return f64::NAN,
        };
        count as f64
    }
}

/// The sum over the nodes of matching methods; `of` is told whether a node lies below another such node.
fn sum(profile: &Profile, pattern: &MethodPattern, of: impl Fn(&Node, bool) -> u64) -> u64 {
    let matching: Vec<bool> = profile.methods.iter().map(|method| is_meant(pattern, &method.machine)).collect();
    let tree = &profile.merged;
    let mut inside = vec![false; tree.nodes.len()];
    let mut sum = 0;
    for (index, node) in tree.nodes.iter().enumerate() {
        let nested = node.caller().is_some_and(|caller| inside[caller.0]);
        let matches = matching[node.method.0];
        inside[index] = nested || matches;
        if matches {
            sum += of(node, nested);
        }
    }
    sum
}

/// Whether a pattern means the method of a machine name, `a.b.C.m(I)V`.
pub fn is_meant(pattern: &MethodPattern, machine: &str) -> bool {
    let (name, descriptor) = machine.split_at(machine.find('(').unwrap_or(machine.len()));
    name.rsplit_once('.').is_some_and(|(class, method)| pattern.matches(&class.replace('.', "/"), method, descriptor))
}

#[cfg(test)]
mod tests {
    use super::super::line::split;
    use super::*;

    fn words(line: &str) -> Vec<Word> {
        split(line, &|_| None).unwrap()
    }

    fn wait(line: &str) -> Result<WaitCommand, LineError> {
        WaitCommand::parse(&words(line)[1..], line.len() + 1)
    }

    fn expectation(line: &str) -> Result<Expectation, LineError> {
        Expectation::parse(&words(line)[1..], line.len() + 1)
    }

    #[test]
    fn waits() {
        let seconds = Duration::from_secs;
        for (line, what, at_most) in [
            ("wait 30s", Wait::For(seconds(30)), None),
            ("wait 1.5", Wait::For(Duration::from_millis(1_500)), None),
            ("wait calls 1_000", Wait::Calls(1_000), None),
            ("wait calls 1000 60s", Wait::Calls(1_000), Some(seconds(60))),
            ("wait root-entered 1m", Wait::RootEntered, Some(seconds(60))),
            ("wait done", Wait::Done, None),
        ] {
            assert_eq!(wait(line), Ok(WaitCommand { what, at_most }), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_wait_is_said_with_its_place() {
        for (line, column, part) in [
            ("wait", 5, "give a time"),
            ("wait for it", 6, "`for` is nothing to wait for"),
            ("wait calls", 11, "how many calls?"),
            ("wait calls many", 12, "`many` is no number of calls"),
            ("wait root-entered soon", 19, "`soon` is no time"),
            ("wait 3s 4s", 9, "`4s` is too much here"),
        ] {
            let error = wait(line).expect_err(line);
            assert!(error.column == column && error.message.contains(part), "{line}: {error:?}");
        }
    }

    #[test]
    fn expectations_are_read_with_and_without_spaces_and_around_constructors() {
        for (line, comparison, value) in [
            ("expect root-calls > 0", Comparison::More, 0.0),
            ("expect root-calls>=1", Comparison::AtLeast, 1.0),
            ("expect lost == 0", Comparison::Equal, 0.0),
            ("expect calls(a.B::<init>) > 3", Comparison::More, 3.0),
            ("expect calls( a.B::<init> )!=3", Comparison::Other, 3.0),
            ("expect total(a.*::b) <= 250us", Comparison::AtMost, 250_000.0),
            ("expect duration < 2s", Comparison::Less, 2e9),
        ] {
            let read = expectation(line).unwrap();
            assert_eq!((read.comparison, read.value), (comparison, value), "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_an_expectation_is_said_with_its_place() {
        for (line, column, part) in [
            ("expect", 7, "give a quantity"),
            ("expect root-calls", 8, "give a quantity"),
            ("expect root-call > 0", 8, "`root-call` is no quantity; there are root-calls"),
            ("expect events(a.B::c) > 0", 8, "`events` has no pattern"),
            ("expect lost ==", 15, "a number is missing"),
            ("expect lost == no", 16, "`no` is no number"),
            ("expect duration < 5 apples", 19, "`5 apples` is no time"),
        ] {
            let error = expectation(line).expect_err(line);
            assert!(error.column == column && error.message.contains(part), "{line}: {error:?}");
        }
    }

    #[test]
    fn machine_names_are_matched() {
        let pattern = "a.b.C::m(int)".parse().unwrap();
        assert!(is_meant(&pattern, "a.b.C.m(I)V"));
        assert!(!is_meant(&pattern, "a.b.C.m(J)V") && !is_meant(&pattern, "a.b.C.n(I)V"));
    }
}
