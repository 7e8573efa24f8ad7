//! Options that say what of a profile is shown, and how.

use std::ffi::OsStr;

use clap::builder::{NonEmptyStringValueParser, PossibleValue, TypedValueParser};
use clap::{Arg, Args, Command, ValueEnum};

use crate::profile::Quantity;
use crate::report::least::Least;
use crate::report::select::{MethodSelector, ThreadSelector};
use crate::report::{Options, SortBy, Trees, View};

/// What is shown of a profile.
#[derive(Clone, Debug, Args)]
pub struct ViewArgs {
    /// What is shown, and how calls are arranged [default: tree; of `headwater locks`: locks]
    #[arg(long, value_enum)]
    view: Option<ViewName>,
    /// One tree, or table, for each thread instead of one for all
    #[arg(long)]
    threads: bool,
    /// Only this thread: its number or name, wildcards *. May be repeated
    #[arg(long, value_name = "THREAD")]
    thread: Vec<ThreadSelector>,
    /// Leave out what is below this share of the roots' total time, or of the first metric shown that adds up, in per cent, or of another:
    /// alloc=1%, wall-per-call=2ms, wait-share=50% [default: 0.5 in text, 0 in JSON]
    #[arg(long, value_name = "[METRIC=]LEAST", value_parser = minimum)]
    min: Option<Minimum>,
    /// Leave out what is deeper than this (tree)
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Only these methods, in the tree with what leads to them and what they call: com.acme.Shop.checkout, com.acme.Shop, com.acme.*
    #[arg(long, value_name = "PATTERN")]
    focus: Option<MethodSelector>,
    /// What is shown side by side, first what lines are ordered by: wall, calls, thrown, cpu, what --count counts, and what follows from
    /// these: wall-per-call, alloc-per-call, cpu-share, wait-share, ...
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metric: Vec<String>,
    /// What comes first: self or total of the first metric, or another metric, with .total for it with what is called: calls, alloc.total
    /// [default: self in the flat view, else total]
    #[arg(long, value_name = "self|total|METRIC", value_parser = OrderParser, hide_possible_values = true)]
    sort: Option<SortBy>,
    /// Times in per cent of the roots' total time (text)
    #[arg(long)]
    pub(crate) percent: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ViewName {
    /// Each chain of calls
    Tree,
    /// Each method with its callers and callees
    Callers,
    /// Each method
    Flat,
    /// Each contended lock: who waited, where and how long, and who held it
    Locks,
    /// What happened to the whole JVM, and when: collections, hotswaps
    Tracks,
}

/// Below what lines are left out.
#[derive(Clone, Debug, PartialEq)]
enum Minimum {
    /// A share of what is shown.
    Share(f64),
    /// So much of another metric.
    Of(Least),
}

impl ViewArgs {
    /// Chooses another view, and the methods if they are named.
    pub(crate) fn set(&mut self, view: View, focus: Option<MethodSelector>) {
        self.view = Some(match view {
            View::Tree => ViewName::Tree,
            View::Callers => ViewName::Callers,
            View::Flat => ViewName::Flat,
            View::Locks => ViewName::Locks,
            View::Tracks => ViewName::Tracks,
        });
        if focus.is_some() {
            self.focus = focus;
        }
    }

    /// Chooses another view, unless the user has said one.
    pub(crate) fn prefer(&mut self, view: View) {
        if self.view.is_none() {
            self.set(view, None);
        }
    }

    /// What is to be shown; `min_share` where the user does not say.
    pub(crate) fn options(&self, min_share: f64) -> Options {
        Options {
            view: match self.view {
                None | Some(ViewName::Tree) => View::Tree,
                Some(ViewName::Callers) => View::Callers,
                Some(ViewName::Flat) => View::Flat,
                Some(ViewName::Locks) => View::Locks,
                Some(ViewName::Tracks) => View::Tracks,
            },
            trees: if self.threads { Trees::PerThread } else { Trees::Merged },
            threads: self.thread.clone(),
            min_share: if let Some(Minimum::Share(share)) = self.min { share } else { min_share },
            least: if let Some(Minimum::Of(least)) = &self.min { Some(least.clone()) } else { None },
            max_depth: self.depth,
            focus: self.focus.clone(),
            sort: self.sort.clone(),
            metrics: self.metric.clone(),
        }
    }
}

/// `1`, `1%` or `alloc=1%`.
fn minimum(text: &str) -> Result<Minimum, String> {
    if text.contains('=') {
        return text.parse().map(Minimum::Of);
    }
    let share = percentage(text).map(|percent| Minimum::Share(percent / 100.0));
    share.map_err(|error| format!("{error}, or that of a metric, such as alloc=1%"))
}

/// Any metric, but these are suggested.
#[derive(Clone)]
struct OrderParser;

impl TypedValueParser for OrderParser {
    type Value = SortBy;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<SortBy, clap::Error> {
        let text = NonEmptyStringValueParser::new().parse_ref(command, arg, value)?;
        Ok(match text.as_str() {
            "self" => SortBy::Own,
            "total" => SortBy::Total,
            metric => SortBy::Quantity(Quantity::from(metric)),
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(["self", "total", "calls"].into_iter().map(PossibleValue::new)))
    }
}

/// `1` or `1%`.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim_end().parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to 100, such as 1 or 0.5%".to_owned()),
    }
}
