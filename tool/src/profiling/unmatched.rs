//! Roots that matched nothing to the end.

use std::fmt;

use super::error::did_you_mean;
use super::{ProfileError, Settings, Sought};
use crate::callgraph::{LeftAlone, PatternIndex, RootMatch};
use crate::session::Session;

/// A root that matched nothing to the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// As the user gave it.
    pub pattern: String,
    /// What is like it among all that was loaded by then, best first.
    pub near: Vec<String>,
}

impl fmt::Display for Unmatched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "nothing that matches {} was loaded while this was recorded", self.pattern)?;
        f.write_str(&did_you_mean(&self.near))
    }
}

/// The roots that match nothing, with what is like them.
pub(crate) fn unmatched(session: &Session, settings: &Settings) -> Vec<Unmatched> {
    let graph = session.graph();
    let roots = settings.subgraph.roots.iter().zip(settings.root_names()).zip(graph.root_matches()).enumerate();
    roots
        .filter(|(_, (_, found))| found.methods == 0)
        .map(|(index, ((root, pattern), _))| {
            let lines = settings.subgraph.lines_of(PatternIndex(index));
            let near = graph.near_misses(root).into_iter();
            // What stands for lines is a pattern for all methods of the class.
            let near = near.map(|near| match lines {
                Some(lines) => format!("{}:{lines}", near.strip_suffix("::*").unwrap_or(&near)),
                None => near,
            });
            Unmatched { pattern, near: near.collect() }
        })
        .collect()
}

/// A root that matches nothing.
pub(super) fn not_found(session: &Session, settings: &Settings, root: PatternIndex, found: RootMatch) -> ProfileError {
    let pattern = &settings.subgraph.roots[root.0];
    let sought = if settings.subgraph.only_roots { Sought::Region } else { Sought::Root };
    if let Some(class) = session.graph().looping(pattern) {
        let pattern = settings.root_names().nth(root.0).unwrap_or_default();
        return ProfileError::Looping { sought, pattern, class };
    }
    if settings.subgraph.lines_of(root).is_some() {
        let region = settings.root_names().nth(root.0).unwrap_or_default();
        let reason = session.graph().skipped().first().map(|(method, reason)| format!("{method}: {reason}"));
        return ProfileError::NoLines { region, classes: found.classes, reason };
    }
    if let Some(LeftAlone { class, unless_jdk }) = session.graph().left_alone(pattern) {
        return ProfileError::LeftAlone { sought, pattern: pattern.to_string(), class, unless_jdk };
    }
    let near = session.graph().near_misses(pattern);
    ProfileError::NoRoot { sought, pattern: pattern.to_string(), classes: found.classes, near }
}
