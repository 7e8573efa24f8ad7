//! What a profile looks like: for people ([`text`]) and for programs ([`json`]), in three views.
//!
//! The views are those of arcflow (Alexander and others, *A unifying approach to performance analysis in the Java environment*,
//! 2000): [`View::Tree`] is its xtree, [`View::Callers`] its xarc, [`View::Flat`] its xprof.

use std::borrow::Cow;

use crate::profile::{Contention, MethodIndex, Profile, Quantity, ThreadProfile, Tree};
use headwater_terms::pattern::near_misses;

pub mod arcs;
pub(crate) mod belief;
pub(crate) mod chosen;
pub mod explain;
pub mod flat;
pub mod json;
pub mod least;
pub mod names;
mod prune;
pub mod region;
pub mod select;
pub mod status;
pub mod text;
pub mod units;

use least::Least;
use select::{MethodSelector, ThreadSelector};

/// How a profile's calls are arranged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Each chain of calls.
    #[default]
    Tree,
    /// Each method with those that call it and those that it calls.
    Callers,
    /// Each method.
    Flat,
    /// Each contended lock.
    Locks,
    /// What happened to the whole JVM, and when.
    Tracks,
}

/// Which trees a report shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Trees {
    /// One for all threads.
    #[default]
    Merged,
    /// One a thread.
    PerThread,
}

/// What comes first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// Those that have most of the leading metric themselves.
    Own,
    /// Those that have most of it with what they call.
    Total,
    /// Those that have most of this.
    Quantity(Quantity),
}

/// What of a profile is reported. Pruning leaves lines out and changes no number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// How calls are arranged.
    pub view: View,
    /// Which trees.
    pub trees: Trees,
    /// Only threads that one of these means; all, when empty. Times are then theirs alone.
    pub threads: Vec<ThreadSelector>,
    /// Lines below this share (0 to 1) of all roots are left out: of the first metric shown that adds up.
    pub min_share: f64,
    /// Lines that have less of this are left out, in the place of that share.
    pub least: Option<Least>,
    /// In the tree, the deepest level that is shown; roots are level 1.
    pub max_depth: Option<usize>,
    /// Only these methods, in the tree with what leads to them and what they call.
    pub focus: Option<MethodSelector>,
    /// What comes first; by default the leading metric: of methods themselves in the flat view, with what they call in the others.
    pub sort: Option<SortBy>,
    /// The metrics that are shown, by their ids, the leading one first; the usual ones, when empty.
    pub metrics: Vec<String>,
}

/// A selection that selects nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NothingSelected {
    /// No thread.
    #[error("no thread of the profile is {thread}. It has {}", listed(names))]
    Thread {
        /// What was asked for.
        thread: String,
        /// The threads there are.
        names: Vec<String>,
    },
    /// No metric.
    #[error("the profile has no metric {id}. It has {}{}", ids.join(", "), following(derived))]
    Metric {
        /// What was asked for.
        id: String,
        /// The metrics there are.
        ids: Vec<String>,
        /// Those that follow from them.
        derived: Vec<String>,
    },
    /// A metric, but not with what is called.
    #[error("{id} is known of methods themselves only: there is no {id}.total")]
    Total {
        /// The metric.
        id: Cow<'static, str>,
    },
    /// A limit in another unit than the metric's.
    #[error("{id} is in {unit}: its least cannot be in another unit")]
    Unit {
        /// The metric.
        id: String,
        /// Its unit.
        unit: &'static str,
    },
    /// Something that only what adds up can be made into.
    #[error("{id} does not add up, as {what} needs it. {} do", ids.join(", "))]
    Quotient {
        /// The metric.
        id: String,
        /// The format.
        what: &'static str,
        /// Metrics that add up.
        ids: Vec<String>,
    },
    /// No locks.
    #[error(
        "contended locks are not known: `headwater locks` records those of a whole JVM, `profile --count locks` those below roots, until it ends"
    )]
    Locks,
    /// No tracks.
    #[error(
        "what happened to the whole JVM is not known: `profile` records its hotswaps, `profile --count gc` collections too"
    )]
    Tracks,
    /// No method that was called.
    #[error("no method that was called matches {pattern}{}", suggested(near))]
    Method {
        /// What was asked for.
        pattern: String,
        /// Names that are like it.
        near: Vec<String>,
    },
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 12;
    let more = names.len().saturating_sub(SHOWN);
    let mut text = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match (names.len(), more) {
        (0, _) => text.push_str("no threads"),
        (_, 0) => {}
        (_, more) => text.push_str(&format!(" and {more} more")),
    }
    text
}

fn following(derived: &[String]) -> String {
    if derived.is_empty() { String::new() } else { format!("; and what follows from these: {}", derived.join(", ")) }
}

pub(crate) fn suggested(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(". Did you mean {}?", near.join(", or ")) }
}

impl Options {
    /// Whether every thread, method and metric that was asked for is there.
    pub fn check(&self, profile: &Profile) -> Result<(), NothingSelected> {
        chosen::Chosen::check(profile, self)?;
        if self.view == View::Locks && profile.contention.is_none() {
            return Err(NothingSelected::Locks);
        }
        if self.view == View::Tracks && profile.tracks.is_empty() {
            return Err(NothingSelected::Tracks);
        }
        if let Some(absent) = self.threads.iter().find(|wanted| !profile.threads.iter().any(|t| wanted.matches(t))) {
            let names = profile.threads.iter().map(|it| format!("{} \"{}\"", it.id.0, it.shown_name())).collect();
            return Err(NothingSelected::Thread { thread: absent.to_string(), names });
        }
        match &self.focus {
            Some(focus) if !called_methods(profile).any(|method| focus.matches(&profile.methods[method.0].machine)) => {
                Err(NothingSelected::Method { pattern: focus.to_string(), near: near_methods(profile, focus) })
            }
            _ => Ok(()),
        }
    }

    /// The profile of only those threads that were asked for.
    pub fn narrowed<'a>(&self, profile: &'a Profile) -> Cow<'a, Profile> {
        if self.threads.is_empty() {
            return Cow::Borrowed(profile);
        }
        let mut narrowed = profile.clone();
        narrowed.threads.retain(|thread| self.threads.iter().any(|selector| selector.matches(thread)));
        narrowed.merged = crate::profile::walk::sum(narrowed.threads.iter().map(|thread| &thread.tree));
        // Locks are those of all threads, and no nodes of this tree.
        narrowed.contention.iter_mut().for_each(Contention::forget_nodes);
        Cow::Owned(narrowed)
    }

    /// The trees to be shown, each with its thread if it has one.
    fn sections<'a>(&self, profile: &'a Profile) -> Vec<(Option<&'a ThreadProfile>, Cow<'a, Tree>)> {
        let chosen = |thread: &&ThreadProfile| {
            self.threads.is_empty() || self.threads.iter().any(|selector| selector.matches(thread))
        };
        let threads: Vec<&ThreadProfile> = profile.threads.iter().filter(chosen).collect();
        match (self.trees, &threads[..]) {
            (Trees::PerThread, _) => {
                threads.into_iter().map(|thread| (Some(thread), Cow::Borrowed(&thread.tree))).collect()
            }
            (Trees::Merged, _) if self.threads.is_empty() => vec![(None, Cow::Borrowed(&profile.merged))],
            (Trees::Merged, [only]) => vec![(Some(only), Cow::Borrowed(&only.tree))],
            (Trees::Merged, several) => {
                vec![(None, Cow::Owned(crate::profile::walk::sum(several.iter().map(|thread| &thread.tree))))]
            }
        }
    }
}

fn called_methods(profile: &Profile) -> impl Iterator<Item = MethodIndex> {
    profile.merged.nodes.iter().map(|node| node.method)
}

/// Names of called methods that are like what a selector means.
pub(crate) fn near_methods(profile: &Profile, selector: &MethodSelector) -> Vec<String> {
    const SUGGESTIONS: usize = 3;
    let mut called: Vec<MethodIndex> = called_methods(profile).collect();
    called.sort_unstable();
    called.dedup();
    let names = called.iter().map(|method| profile.methods[method.0].display.as_str());
    near_misses(&selector.to_string(), names, SUGGESTIONS).into_iter().map(str::to_owned).collect()
}

/// A part of a whole, 0 to 1.
pub fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// A value, or what it is at most, where it is not known.
pub fn bounded(value: u64, error: u64, text: impl Fn(u64) -> String) -> String {
    match is_doubtful(value, error) {
        true => format!("<{}", text(value.saturating_add(error))),
        false => text(value),
    }
}

/// Whether a value is not known: it is smaller than its own uncertainty.
pub(crate) fn is_doubtful(value: u64, error: u64) -> bool {
    value < error
}
