//! Why the selected method is there: a page of its own.

use unicode_width::UnicodeWidthStr;

use super::{Mode, View};
use crate::report::explain::{explain_one, text};
use crate::report::text::Style;

/// Where a line goes on that does not fit.
const INDENT: &str = "          ";

impl View {
    /// Shows it, or says why not.
    pub(super) fn explain_selected(&mut self) {
        match self.explanation() {
            Ok(text) => self.mode = Mode::Why(text),
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
pub(in crate::top) fn wrapped(text: &str, width: usize) -> Vec<String> {
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
    use super::wrapped;

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
