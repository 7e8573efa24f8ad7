//! Lines of a source file.

use std::fmt;

use headwater_rewriter::ProbeSite;
use serde::{Deserialize, Serialize};

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
    pub fn place(self) -> ProbeSite {
        ProbeSite::Lines { first: self.first, last: self.last }
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
