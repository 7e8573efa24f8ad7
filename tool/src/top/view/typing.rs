//! A line that is being typed: a search, or a file's name.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What became of a line that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Accepted,
    Dropped,
}

pub(crate) fn edit(text: &mut String, key: KeyEvent) -> Option<Typed> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    match key.code {
        KeyCode::Enter => return Some(Typed::Accepted),
        KeyCode::Esc => return Some(Typed::Dropped),
        KeyCode::Char('c' | 'g') if is_control => return Some(Typed::Dropped),
        KeyCode::Char('u') if is_control => text.clear(),
        KeyCode::Char('w') if is_control => {
            text.pop();
            text.truncate(text.rfind(['/', ' ', '.']).map_or(0, |at| at + 1));
        }
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(character) if !is_control => text.push(character),
        _ => {}
    }
    None
}
