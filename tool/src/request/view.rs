//! Options that say what of a profile is shown, and how.

use clap::{Args, ValueEnum};

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
    /// Leave out what is below this share of the roots' total time, in per cent [default: 0.5 in text, 0 in JSON]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    min: Option<f64>,
    /// Leave out what is deeper than this (tree)
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
    /// Only these methods, in the tree with what leads to them and what they call: com.acme.Shop.checkout, com.acme.Shop, com.acme.*
    #[arg(long, value_name = "PATTERN")]
    focus: Option<MethodSelector>,
    /// What is shown, first what lines are ordered and left out by: wall, calls, thrown, cpu; the ids of other metrics are in the JSON
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metric: Vec<String>,
    /// What comes first [default: self in the flat view, else total]
    #[arg(long, value_enum)]
    sort: Option<SortName>,
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortName {
    /// Time in the method itself
    #[value(name = "self")]
    SelfTime,
    /// Time in it and in what it calls
    Total,
    /// Number of calls
    Calls,
}

impl SortName {
    pub(crate) fn order(self) -> SortBy {
        match self {
            SortName::SelfTime => SortBy::SelfTime,
            SortName::Total => SortBy::Total,
            SortName::Calls => SortBy::Calls,
        }
    }
}

impl ViewArgs {
    /// Chooses another view, and the methods if they are named.
    pub(crate) fn set(&mut self, view: View, focus: Option<MethodSelector>) {
        self.view = Some(match view {
            View::Tree => ViewName::Tree,
            View::Callers => ViewName::Callers,
            View::Flat => ViewName::Flat,
            View::Locks => ViewName::Locks,
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
            },
            trees: if self.threads { Trees::PerThread } else { Trees::Merged },
            threads: self.thread.clone(),
            min_share: self.min.map_or(min_share, |percent| percent / 100.0),
            max_depth: self.depth,
            focus: self.focus.clone(),
            sort: self.sort.map(SortName::order),
            metrics: self.metric.clone(),
        }
    }
}

/// `1` or `1%`.
pub(crate) fn percentage(text: &str) -> Result<f64, String> {
    match text.strip_suffix('%').unwrap_or(text).trim_end().parse() {
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("give a number from 0 to 100, such as 1 or 0.5%".to_owned()),
    }
}
