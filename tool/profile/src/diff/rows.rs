//! What each run took, row by row: of methods, or of nodes.

use crate::profile::Amounts;

/// A table with a column for each run, those of the first side first, and a row for each method or node.
#[derive(Clone, Debug)]
pub(super) struct Rows {
    /// Runs on each side.
    runs: [usize; 2],
    /// Row after row; nothing of runs in which it was not called.
    cells: Vec<Option<Amounts>>,
}

/// A method, in all or in one calling context, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair<'a> {
    /// In each run of the first side; `None` where it was not called.
    pub before: &'a [Option<Amounts>],
    /// In each run of the second.
    pub after: &'a [Option<Amounts>],
}

impl Rows {
    /// Without rows, for so many runs on each side.
    pub(super) fn new(runs: [usize; 2]) -> Rows {
        Rows { runs, cells: Vec::new() }
    }

    /// Another table for the same runs, with one row: nothing.
    pub(super) fn sum(&self) -> Rows {
        let mut rows = Rows::new(self.runs);
        rows.push();
        rows
    }

    fn width(&self) -> usize {
        self.runs[0] + self.runs[1]
    }

    /// One row more, of what was never called; its number.
    pub(super) fn push(&mut self) -> usize {
        let row = self.cells.len() / self.width();
        self.cells.resize(self.cells.len() + self.width(), None);
        row
    }

    /// Adds what a run has of a row.
    pub(super) fn add(&mut self, row: usize, run: usize, amounts: &Amounts) {
        let at = row * self.width() + run;
        self.cells[at].get_or_insert_default().add(amounts);
    }

    /// Adds a row of another table to one of this.
    pub(super) fn add_pair(&mut self, row: usize, pair: Pair<'_>) {
        for (run, amounts) in pair.before.iter().chain(pair.after).enumerate() {
            if let Some(amounts) = amounts {
                self.add(row, run, amounts);
            }
        }
    }

    /// A row.
    pub(super) fn pair(&self, row: usize) -> Pair<'_> {
        let (before, after) = self.cells[row * self.width()..][..self.width()].split_at(self.runs[0]);
        Pair { before, after }
    }
}

/// On which side something was called at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// On both.
    Both,
    /// Only in runs of the second.
    Added,
    /// Only in runs of the first.
    Removed,
    /// In none.
    Never,
}

impl Pair<'_> {
    /// On which side it was called.
    pub fn presence(self) -> Presence {
        let is_in = |runs: &[Option<Amounts>]| runs.iter().any(Option::is_some);
        match (is_in(self.before), is_in(self.after)) {
            (true, true) => Presence::Both,
            (false, true) => Presence::Added,
            (true, false) => Presence::Removed,
            (false, false) => Presence::Never,
        }
    }

    /// Whether it was called on one side only.
    pub fn is_one_sided(self) -> bool {
        matches!(self.presence(), Presence::Added | Presence::Removed)
    }

    /// Whether it was called at all.
    pub fn is_known(self) -> bool {
        self.presence() != Presence::Never
    }
}
