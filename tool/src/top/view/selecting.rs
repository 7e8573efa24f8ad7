//! Which row is selected, and the method in it.

use super::{Cursor, View};
use crate::pattern::pattern_of;
use crate::profile::{MethodIndex, NodeIndex};
use crate::top::forest::{Key, Subject};
use crate::top::rows::{Row, What};

impl View {
    /// Selects a row, or the last one.
    pub(super) fn choose(&mut self, row: usize) {
        let row = row.min(self.rows.len().saturating_sub(1));
        let key = self.rows.get(row).map(|row| row.key);
        let cursor = self.cursor_mut();
        *cursor = Cursor { key, row, is_chosen: key.is_some(), ..*cursor };
    }

    pub(super) fn scroll(&mut self, row: usize, by: isize) {
        self.choose(row);
        let cursor = self.cursor_mut();
        cursor.top = cursor.top.saturating_add_signed(by);
    }

    pub(super) fn choose_key(&mut self, key: Key) {
        if let Some(row) = self.rows.iter().position(|row| row.key == key) {
            self.choose(row);
        }
    }

    pub(super) fn selected(&self) -> Option<&Row> {
        self.rows.get(self.cursor().row)
    }

    pub(super) fn selected_node(&self) -> Option<NodeIndex> {
        match self.selected()?.what {
            What::Node(node) => Some(node),
            What::Line(_) => None,
        }
    }

    /// The selected method as a pattern, if it was sampled.
    pub(super) fn exact(&self) -> Result<String, &'static str> {
        let shown = self.shown.as_ref().filter(|shown| shown.profile.imported.is_some());
        let shown = shown.ok_or("this is the exact profile already")?;
        let method = self.selected_index().map(|method| &shown.profile.methods[method.0]);
        let named =
            method.filter(|method| !method.machine.starts_with('[')).and_then(|method| pattern_of(&method.display));
        named.ok_or("select a method: only such a one has an exact profile")
    }

    /// The method in the selected row, by its machine name.
    pub(super) fn selected_method(&self) -> Option<String> {
        let shown = self.shown.as_ref()?;
        self.selected_index().map(|method| shown.profile.methods[method.0].machine.clone())
    }

    pub(super) fn selected_index(&self) -> Option<MethodIndex> {
        let shown = self.shown.as_ref()?;
        match self.selected()?.what {
            What::Node(node) => match shown.forest.subject(&shown.profile, node) {
                Subject::Method(method) => Some(method),
                Subject::Thread(_) => None,
            },
            What::Line(line) => self.lines[line].method,
        }
    }

    /// Scrolls so that the selected row is on the screen; rows that fit are shown.
    pub(in super::super) fn settle(&mut self, height: usize) {
        let count = self.rows.len();
        self.height = height;
        let cursor = self.cursor_mut();
        let last_top = count.saturating_sub(height);
        let (lowest, highest) = ((cursor.row + 1).saturating_sub(height), cursor.row);
        cursor.top = cursor.top.clamp(lowest, highest).min(last_top.max(lowest));
    }
}
