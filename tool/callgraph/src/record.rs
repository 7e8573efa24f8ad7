//! A method that was selected for instrumentation.

use std::sync::Arc;
use std::time::Duration;

use headwater_protocol::MethodId;
use headwater_terms::pattern;

use super::cause::History;
use super::lines::Lines;
use super::mirror::{ClassKey, Signature};
use super::policy::Probability;

/// One of [`Options::roots`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PatternIndex(pub usize);

/// Whether a method gives up its probes because they cost too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Drop {
    /// It does not.
    #[default]
    No,
    /// Its class is to be hotswapped without it.
    Due,
    /// Its original code has been given to the JVM, and not been accepted by HotSpot yet.
    Submitted,
    /// It was restored.
    Done,
    /// HotSpot did not take it back.
    Refused,
}

/// A method that a call can run, and how likely it then does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Callee {
    pub(super) method: MethodId,
    pub(super) probability: Probability,
}

/// When calls of a method may have been missed, in time of recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// From then on.
    pub since: Duration,
    /// Up to when it was instrumented; `None` if it never was.
    pub until: Option<Duration>,
    /// No more calls than that were missed, if the JVM has counted so few.
    pub most: Option<u32>,
}

/// What became of a method whose callees were selected before it was entered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Guess {
    /// They were not.
    #[default]
    None,
    /// None of its callers has been entered yet.
    Open,
    /// One has.
    Tried,
    /// It has been itself.
    Right,
}

/// A method that was selected for instrumentation.
#[derive(Clone, Debug)]
pub struct MethodRecord {
    /// Its number.
    pub id: MethodId,
    /// Internal name of its class.
    pub class: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its descriptor.
    pub descriptor: Arc<str>,
    /// The lines that it is instrumented at; all of it, when there are none.
    pub lines: Option<Lines>,
    /// The root patterns that it stands for; none, when it is not a root.
    pub root_of: Vec<PatternIndex>,
    /// Why it is not instrumented after all.
    pub refused: Option<String>,
    /// It is native: the calls of it are instrumented.
    pub(super) is_native: bool,
    pub(super) key: ClassKey,
    pub(super) signature: Signature,
    /// Its callees are selected: these, by what was known then.
    pub(super) expanded: bool,
    pub(super) callees: Vec<Callee>,
    /// Of being entered.
    pub(super) probability: Probability,
    /// It has been.
    pub(super) entered: bool,
    pub(super) guess: Guess,
    /// Code that runs calls it next, as far as it is known.
    pub(super) called_next: bool,
    /// When it may have been called before it was instrumented.
    pub(super) missed: Option<Missed>,
    /// It has been instrumented, in a class file for the JVM or, if it is native, where it is called.
    pub(super) submitted: bool,
    /// HotSpot has accepted its instrumented code.
    pub(super) in_place: bool,
    pub(super) drop: Drop,
    pub(super) history: History,
}

impl MethodRecord {
    /// Whether it is not to be instrumented any more.
    pub(super) fn is_dropped(&self) -> bool {
        matches!(self.drop, Drop::Due | Drop::Submitted | Drop::Done)
    }

    /// `a.b.C.m(I)V`; of lines, `a.b.C.m(I)V:120-148`.
    pub fn java_name(&self) -> String {
        self.with_lines(pattern::java_name(&self.class, &self.name, &self.descriptor))
    }

    /// `a.b.C.m(int)`; of lines, `a.b.C.m(int):120-148`.
    pub fn display_name(&self) -> String {
        self.with_lines(pattern::display_name(&self.class, &self.name, &self.descriptor))
    }

    fn with_lines(&self, name: String) -> String {
        match self.lines {
            Some(lines) => format!("{name}:{lines}"),
            None => name,
        }
    }
}
