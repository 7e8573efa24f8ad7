//! What the keys mean.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// What a key asks for, outside of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    /// Unfold, and then the first callee.
    In,
    /// Fold, and then the caller.
    Out,
    /// Unfold or fold.
    Toggle,
    /// That in the tree, callers elsewhere.
    Enter,
    /// Unfold with all below.
    UnfoldAll,
    /// Fold everything.
    FoldAll,
    /// Unfold the way that most time goes.
    HotPath,
    /// The next view.
    NextView,
    /// The callers and callees of the selected method.
    Callers,
    /// Back from there.
    Back,
    /// Threads apart, or all in one.
    Threads,
    /// The next metric in the place of time.
    Metric,
    /// Sort by the column to the left.
    SortLeft,
    /// Sort by the column to the right.
    SortRight,
    /// Sort by a column, counted from zero, or the other way round.
    SortBy(usize),
    /// The other way round.
    Reverse,
    Search,
    NextMatch,
    PreviousMatch,
    /// Show no newer results.
    Freeze,
    /// Interrupt recording, or go on.
    Pause,
    /// Forget what was recorded.
    Clear,
    /// Switch what is counted beside calls.
    Count,
    Save,
    /// Profile a sampled method exactly.
    Exact,
    /// Say why the selected method is there.
    Why,
    Help,
    Redraw,
    Quit,
}

/// The keys and what they do, for the help page: two columns of these.
pub(super) const HELP: [(&str, &str); 25] = [
    ("?", "this help; any key leaves it"),
    ("q, Ctrl-C", "quit: detach and leave"),
    ("Up Down, k j", "select a row"),
    ("PgUp PgDn, Home End", "a page, the first, the last"),
    ("Right, l", "unfold; then the first callee"),
    ("Left, h", "fold; then the caller"),
    ("Space, Enter", "unfold or fold"),
    ("e, z", "unfold with all below; fold everything"),
    ("b", "unfold where most time goes"),
    ("Tab", "tree, flat table"),
    ("c", "callers and callees of the method"),
    ("Backspace, Esc", "back from there"),
    ("w", "why the method is there; arrows and pages move the text"),
    ("t", "threads apart, or all in one"),
    ("m", "the next metric: time, calls, exceptions, ..."),
    ("< >, 1 2 3 ...", "sort by a column; again: reverse"),
    ("r", "reverse the order"),
    ("/", "search as you type"),
    ("n N", "next match, previous match"),
    ("f", "freeze what is shown, or go on"),
    ("p, C", "pause or go on; clear: forget what was recorded"),
    ("o", "count more, or less: alloc on, waits off"),
    ("s", "save what is shown to a file"),
    ("x", "of samples: the method's exact profile"),
    ("Ctrl-L", "draw everything again"),
];

impl Action {
    pub(super) fn of(key: KeyEvent) -> Option<Action> {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Some(Action::Quit),
                KeyCode::Char('l') => Some(Action::Redraw),
                KeyCode::Char('b') => Some(Action::PageUp),
                KeyCode::Char('f') => Some(Action::PageDown),
                _ => None,
            };
        }
        Some(match key.code {
            KeyCode::Up | KeyCode::Char('k') => Action::Up,
            KeyCode::Down | KeyCode::Char('j') => Action::Down,
            KeyCode::PageUp => Action::PageUp,
            KeyCode::PageDown => Action::PageDown,
            KeyCode::Home | KeyCode::Char('g') => Action::First,
            KeyCode::End | KeyCode::Char('G') => Action::Last,
            KeyCode::Right | KeyCode::Char('l' | '+') => Action::In,
            KeyCode::Left | KeyCode::Char('h' | '-') => Action::Out,
            KeyCode::Char(' ') => Action::Toggle,
            KeyCode::Char('e') => Action::UnfoldAll,
            KeyCode::Char('z') => Action::FoldAll,
            KeyCode::Char('b') => Action::HotPath,
            KeyCode::Tab => Action::NextView,
            KeyCode::Enter => Action::Enter,
            KeyCode::Char('c') => Action::Callers,
            KeyCode::Backspace | KeyCode::Esc => Action::Back,
            KeyCode::Char('t') => Action::Threads,
            KeyCode::Char('m') => Action::Metric,
            KeyCode::Char('<') => Action::SortLeft,
            KeyCode::Char('>') => Action::SortRight,
            KeyCode::Char(digit @ '1'..='9') => Action::SortBy(digit as usize - '1' as usize),
            KeyCode::Char('r') => Action::Reverse,
            KeyCode::Char('/') => Action::Search,
            KeyCode::Char('n') => Action::NextMatch,
            KeyCode::Char('N') => Action::PreviousMatch,
            KeyCode::Char('f') => Action::Freeze,
            KeyCode::Char('p') => Action::Pause,
            KeyCode::Char('C') => Action::Clear,
            KeyCode::Char('o') => Action::Count,
            KeyCode::Char('s') => Action::Save,
            KeyCode::Char('x') => Action::Exact,
            KeyCode::Char('w') => Action::Why,
            KeyCode::Char('?') | KeyCode::F(1) => Action::Help,
            KeyCode::Char('q') => Action::Quit,
            _ => return None,
        })
    }
}
