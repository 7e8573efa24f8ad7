//! Lines of numbers with a method's name at the end.

use std::io::{self, Write};

use super::Style;
use crate::report::units::{fitting_name, plural};
use headwater_terms::printable::printable;

/// From this share of the whole on, a line is emphasised.
const HOT: f64 = 0.1;
/// Levels that are indented; what is deeper says its level instead, so that deep recursion stays readable.
const INDENTED_LEVELS: usize = 24;
/// The narrowest name that is worth shortening.
const MIN_NAME: usize = 12;

/// So many lines of the same kind, unless all are wanted.
const NAMED: usize = 5;

/// How a line stands out on a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// Not at all.
    None,
    /// It matters more than others.
    Bold,
    /// It matters less.
    Faint,
    /// Of a difference.
    Worse,
    /// Of a difference.
    Better,
}

impl Emphasis {
    /// Of a line that stands for this part of the whole.
    pub(crate) fn of_share(share: f64) -> Emphasis {
        if share >= HOT { Emphasis::Bold } else { Emphasis::None }
    }
}

/// Lines of a report, in its style.
pub struct Lines<'a, W> {
    /// How they look.
    pub style: &'a Style,
    /// Where they go.
    pub out: W,
}

impl<W: Write> Lines<'_, W> {
    /// A line. A name that does not fit is shortened from its packages on, a line that still does not fit is cut.
    pub fn line(&mut self, numbers: &str, name: &str, emphasis: Emphasis) -> io::Result<()> {
        let numbers_width = numbers.chars().count();
        let name = &*printable(name);
        let mut text = match self.style.width {
            Some(width) if numbers_width + name.chars().count() > width => {
                format!("{numbers}{}", fitting_name(name, width.saturating_sub(numbers_width).max(MIN_NAME)))
            }
            _ => format!("{numbers}{name}"),
        };
        if let Some(width) = self.style.width
            && text.chars().count() > width
        {
            text = text.chars().take(width.saturating_sub(1)).chain(['…']).collect();
        }
        let (begin, end) = match emphasis {
            Emphasis::Bold if self.style.color => ("\x1b[1m", "\x1b[0m"),
            Emphasis::Faint if self.style.color => ("\x1b[2m", "\x1b[0m"),
            Emphasis::Worse if self.style.color => ("\x1b[31m", "\x1b[0m"),
            Emphasis::Better if self.style.color => ("\x1b[32m", "\x1b[0m"),
            _ => ("", ""),
        };
        writeln!(self.out, "{begin}{text}{end}")
    }

    /// A line between others.
    pub(crate) fn rule(&mut self) -> io::Result<()> {
        const RULE: usize = 72;
        let width = self.style.width.map_or(RULE, |width| width.min(RULE));
        writeln!(self.out, "{}", "=".repeat(width))
    }
}

/// Of a list that has as many lines as the program makes it have, those that are written.
pub(super) fn named<'a, T>(all: &'a [T], style: &Style) -> &'a [T] {
    if style.verbose { all } else { &all[..all.len().min(NAMED)] }
}

/// That there are others.
pub(super) fn others<T>(all: &[T], style: &Style, out: &mut impl Write) -> io::Result<()> {
    match all.len() - named(all, style).len() {
        0 => Ok(()),
        hidden => writeln!(out, "          and {} (--verbose)", plural(hidden as u64, "other", "others")),
    }
}

/// What stands before the name of a method at this level; roots are at level 1.
pub(crate) fn indentation(level: usize) -> String {
    if level <= INDENTED_LEVELS {
        "  ".repeat(level - 1)
    } else {
        format!("{}[{level}] ", "  ".repeat(INDENTED_LEVELS))
    }
}
