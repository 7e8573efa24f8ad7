//! Roots that are lines of a source file: each method of the classes that has code of such lines is probed there, and nowhere else.

use std::fmt;

use headwater_protocol::MethodId;
use headwater_rewriter::Place;
use serde::{Deserialize, Serialize};

use super::filter::Caller;
use super::mirror::{ClassKey, Signature};
use super::{CallGraph, PatternIndex};

/// Lines of a source file, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Lines {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl Lines {
    /// Where a method is probed.
    pub fn place(self) -> Place {
        Place::Lines { first: self.first, last: self.last }
    }

    /// Whether these overlap with others without one lying in the other: then they cannot be told apart.
    pub fn crosses(self, other: Lines) -> bool {
        let (one, two) = if self.first <= other.first { (self, other) } else { (other, self) };
        one.first < two.first && two.first <= one.last && one.last < two.last
    }
}

impl fmt::Display for Lines {
    /// `120-148`, or `120`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.first == self.last {
            true => write!(f, "{}", self.first),
            false => write!(f, "{}-{}", self.first, self.last),
        }
    }
}

impl CallGraph {
    /// Selects the lines of all methods of a class: which of them have any is known when they are rewritten.
    pub(super) fn select_lines_in(&mut self, key: ClassKey, pattern: PatternIndex, lines: Lines) {
        let mirror = self.mirrors.get(key);
        if !self.options.admits_class(&mirror.name, mirror.loader, Caller::Root) || !mirror.modifiable || mirror.refused
        {
            return;
        }
        let Some(methods) = self.mirrors.methods(key) else {
            self.need(key);
            return;
        };
        let with_code = methods.iter().filter(|(_, method)| method.has_code()).map(|(signature, _)| *signature);
        for signature in with_code.collect::<Vec<Signature>>() {
            let known = self.by_lines.get(&(key, signature));
            if known
                .is_some_and(|known| known.iter().any(|id| self.record(*id).is_some_and(|it| it.lines == Some(lines))))
                || self.methods.len() >= MethodId::MAX.0 as usize
            {
                continue;
            }
            let id = self.add_record(key, signature, Some(lines));
            self.by_lines.entry((key, signature)).or_default().push(id);
            self.mark_root(id, pattern);
        }
    }

    /// The rewriter finds none of a region's lines in a method: it is another method's.
    pub fn no_such_lines(&mut self, method: MethodId) {
        if let Some(record) = self.record_mut(method) {
            record.refused.get_or_insert_with(|| "it has no code of these lines".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_cross_where_neither_lies_in_the_other() {
        let lines = |first, last| Lines { first, last };
        for (one, other, crosses) in [
            (lines(1, 5), lines(3, 8), true),
            (lines(1, 5), lines(5, 8), true),
            (lines(1, 5), lines(6, 8), false),
            (lines(1, 8), lines(3, 5), false),
            (lines(1, 8), lines(1, 5), false),
            (lines(1, 8), lines(4, 8), false),
            (lines(1, 8), lines(1, 8), false),
        ] {
            assert_eq!((one.crosses(other), other.crosses(one)), (crosses, crosses), "{one} and {other}");
        }
    }
}
