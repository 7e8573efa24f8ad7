//! Searching among the rows, while typing and after.

use ratatui::crossterm::event::KeyEvent;

use super::typing::{Typed, edit};
use super::{Mode, View};
use crate::report::View as Shape;
use crate::report::units::plural;
use crate::top::search::{Direction, Matches, Query};

impl View {
    pub(super) fn type_search(&mut self, key: KeyEvent) {
        let mut text = self.query.text().to_owned();
        let typed = edit(&mut text, key);
        let Mode::Search { before, anchor, folds } = &self.mode else { return };
        match typed {
            Some(Typed::Accepted) => self.mode = Mode::Rows,
            Some(Typed::Dropped) => {
                (self.query, self.folds) = (before.clone(), folds.clone());
                let anchor = *anchor;
                self.mode = Mode::Rows;
                *self.cursor_mut() = anchor;
                self.rebuild();
            }
            None => {
                self.query = Query::new(&text);
                // What a shorter text led to has been left.
                self.folds = folds.clone();
                let anchor = *anchor;
                *self.cursor_mut() = anchor;
                self.rebuild();
                if !self.query.is_empty() && !self.selected().is_some_and(|row| self.query.matches(&self.name_of(row)))
                {
                    self.find(Direction::Next);
                }
            }
        }
    }

    /// Selects the next or previous row whose name matches, and unfolds what leads to it.
    pub(super) fn find(&mut self, direction: Direction) {
        if self.query.is_empty() {
            return self.say("nothing is searched for; / begins".to_owned());
        }
        let Some(shown) = &self.shown else { return };
        if self.shape == Shape::Tree {
            let sort = self.sort().in_view(self.shape);
            let matches = Matches::of(&self.query, &shown.profile, &shown.forest, sort);
            if let Some(found) = matches.from(self.selected_node(), direction) {
                let total = matches.count();
                let key = shown.forest.key(found);
                let mut above = shown.forest.parent(&shown.profile, found);
                while let Some(node) = above {
                    self.folds.known.insert(shown.forest.key(node), true);
                    above = shown.forest.parent(&shown.profile, node);
                }
                self.rebuild();
                self.choose_key(key);
                return self.say(plural(total as u64, "match", "matches"));
            }
        } else {
            let (count, at) = (self.rows.len(), self.cursor().row);
            let is_match = |row: &usize| self.query.matches(&self.name_of(&self.rows[*row]));
            let found = match direction {
                Direction::Next => (1..=count).map(|step| (at + step) % count).find(is_match),
                Direction::Previous => (1..=count).map(|step| (at + count - step) % count).find(is_match),
            };
            if let Some(row) = found {
                let total = (0..count).filter(is_match).count();
                self.choose(row);
                return self.say(plural(total as u64, "match", "matches"));
            }
        }
        self.say(format!("nothing here matches `{}`", self.query.text()));
    }
}
