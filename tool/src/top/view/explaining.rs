//! Why the selected method is there: a page of its own.

use ratatui::crossterm::event::KeyEvent;
use unicode_width::UnicodeWidthStr;

use super::{Mode, View};
use crate::report::explain::{explain_one, text};
use crate::report::text::Style;
use crate::top::keys::Action;

/// Where a line goes on that does not fit.
const INDENT: &str = "          ";

/// A text that may be longer than the screen.
#[derive(Clone, Debug)]
pub(in crate::top) struct Page {
    text: String,
    /// The line at the top.
    top: usize,
    /// How many lines there were room for.
    height: usize,
}

impl Page {
    fn of(text: String) -> Page {
        Page { text, top: 0, height: 1 }
    }

    /// Whether a key moves the text, rather than leaving it.
    pub(in crate::top) fn scroll(&mut self, key: KeyEvent) -> bool {
        let page = self.height.max(1);
        self.top = match Action::of(key) {
            Some(Action::Up) => self.top.saturating_sub(1),
            Some(Action::Down) => self.top + 1,
            Some(Action::PageUp) => self.top.saturating_sub(page),
            Some(Action::PageDown) => self.top + page,
            Some(Action::First) => 0,
            // As far as there are lines.
            Some(Action::Last) => usize::MAX / 2,
            _ => return false,
        };
        true
    }

    /// What is to be seen of it in so much room.
    pub(in crate::top) fn lines(&mut self, width: usize, height: usize) -> Vec<String> {
        let lines = wrapped(&self.text, width);
        if lines.len() <= height {
            (self.top, self.height) = (0, height);
            return lines;
        }
        self.height = height.saturating_sub(1);
        self.top = self.top.min(lines.len() - self.height);
        let shown = &lines[self.top..self.top + self.height];
        let place = format!(
            "lines {} to {} of {}: arrows and pages move, any other key leaves",
            self.top + 1,
            self.top + self.height,
            lines.len()
        );
        shown.iter().cloned().chain([place]).collect()
    }
}

impl View {
    /// Shows it, or says why not.
    pub(super) fn explain_selected(&mut self) {
        match self.explanation() {
            Ok(text) => self.mode = Mode::Why(Page::of(text)),
            Err(message) => self.say(message),
        }
    }

    fn explanation(&self) -> Result<String, String> {
        let shown = self.shown.as_ref().zip(self.selected_index());
        let explained = shown.and_then(|(shown, method)| explain_one(&shown.profile, method));
        let explained = explained.ok_or_else(|| "select a method that was instrumented".to_owned())?;
        let mut out = Vec::new();
        text::write(&[explained], 1, &Style::default(), &mut out).map_err(|error| error.to_string())?;
        Ok(String::from_utf8_lossy(&out).into_owned())
    }
}

/// A text's lines, those that do not fit broken between words, or where there is no more room.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut rest = line.to_owned();
        while rest.width() > width {
            // A label, a mark or an indentation alone is no line.
            let says =
                |at: &usize| rest[..*at].get(INDENT.len()..).is_some_and(|part| !matches!(part.trim(), "" | ">"));
            let fits = |at: &usize| rest[..*at].width() <= width;
            let at = rest.match_indices(' ').map(|(at, _)| at).rfind(|at| fits(at) && says(at));
            let at = at.or_else(|| rest.char_indices().map(|(at, _)| at).rfind(|at| fits(at)));
            let Some(at) = at.filter(|at| *at > INDENT.len()) else { break };
            let next = format!("{INDENT}{}", rest[at..].trim_start());
            lines.push(rest[..at].to_owned());
            rest = next;
        }
        lines.push(rest);
    }
    lines
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};

    use super::*;

    #[test]
    fn a_text_that_is_longer_than_the_screen_moves() {
        let mut page = Page::of("a\nb\nc\nd\ne\n".to_owned());
        let mut after = |code: KeyCode, height: usize| {
            let moves = page.scroll(KeyEvent::new(code, KeyModifiers::NONE));
            let shown: String = page.lines(80, height).iter().filter(|line| line.len() == 1).cloned().collect();
            (moves, shown)
        };
        assert_eq!(after(KeyCode::Up, 5), (true, "abcde".to_owned()));
        assert_eq!(after(KeyCode::Down, 4), (true, "bcd".to_owned()), "and a line that says where");
        assert_eq!(after(KeyCode::PageDown, 4), (true, "cde".to_owned()));
        assert_eq!(after(KeyCode::Down, 4), (true, "cde".to_owned()), "there is no more");
        assert_eq!(after(KeyCode::Up, 4), (true, "bcd".to_owned()));
        assert_eq!(after(KeyCode::Home, 4), (true, "abc".to_owned()));
        assert_eq!(after(KeyCode::End, 3), (true, "de".to_owned()));
        assert!(!after(KeyCode::Char('w'), 3).0);
        assert_eq!(after(KeyCode::End, 1), (true, String::new()));
    }

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("  why     it never ran before", 20), ["  why     it never", "          ran before"]);
        assert_eq!(
            wrapped("short\n          > longlonglong: called", 20),
            ["short", "          > longlong", "          long:", "          called"]
        );
        assert_eq!(wrapped("longlonglong", 8), ["longlonglong"], "there is no room for anything");
    }
}
