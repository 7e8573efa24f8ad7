//! The picture: status, table, and a line for keys, prompts and messages. Only rows on the screen are put into words.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::column::{Column, Columns, Lead};
use super::keys::HELP;
use super::rows::{Role, Row, Shown, What};
use super::view::{Glyphs, Mode, Palette, Phase, View};
use crate::printable::printable;
use crate::profile::Unit;
use crate::report::units::cut;
use crate::report::{View as Shape, share};

/// From this share of the whole on, a row is emphasised,
const HOT: f64 = 0.1;
/// and below this one it is faint.
const COLD: f64 = 0.005;
/// Rows of the table that are worth more than a status line.
const MIN_ROWS: u16 = 8;
/// From this width of a name on, levels are indented by two columns.
const ROOMY: usize = 60;

impl View {
    /// Draws the whole screen; where the cursor is, if it is to be seen.
    pub fn draw(&mut self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        self.width = area.width;
        self.worded = 0;
        if area.width == 0 || area.height == 0 {
            return None;
        }
        if matches!(self.mode, Mode::Help) {
            self.draw_help(area, buffer);
            return None;
        }
        if let Mode::Why(page) = &mut self.mode {
            for (line, y) in page.lines(area.width.into(), area.height.into()).iter().zip(area.y..area.bottom()) {
                put(buffer, area.x, y, &cut(line, area.width.into()), Style::new());
            }
            return None;
        }
        let mut rest = self.draw_status(area, buffer);
        let cursor = if area.height > 2 {
            let footer = Rect { y: rest.bottom() - 1, height: 1, ..rest };
            rest.height -= 1;
            self.draw_footer(footer, buffer)
        } else {
            None
        };
        self.draw_table(rest, buffer);
        cursor
    }

    /// What fits of the status; what is left of the area.
    fn draw_status(&self, area: Rect, buffer: &mut Buffer) -> Rect {
        let mut rest = area;
        if area.height < 4 {
            return rest;
        }
        let phase = self.phase_text();
        let phase_width = u16::try_from(phase.width()).unwrap_or(u16::MAX).min(area.width);
        let title = match &self.shown {
            Some(Shown { profile, .. }) => {
                let target = &profile.target;
                format!("headwater top  {} (pid {}, JDK {})", printable(&target.main), target.pid, target.jdk)
            }
            None => "headwater top".to_owned(),
        };
        let room = usize::from(area.width.saturating_sub(phase_width + 2));
        put(buffer, area.x, area.y, &cut(&title, room), self.style(Modifier::BOLD, None));
        let color = match self.phase {
            Phase::Recording if !self.is_frozen => Color::Green,
            Phase::Ended(_) => Color::Red,
            _ => Color::Yellow,
        };
        put(buffer, area.right() - phase_width, area.y, &phase, self.style(Modifier::BOLD, Some(color)));
        rest = below(rest, 1);
        let mut lines = self.status_lines(rest.width.into());
        // The table's title and heading, the footer, and some rows.
        let room = usize::from(rest.height.saturating_sub(3 + MIN_ROWS));
        while lines.len() > room {
            let last = lines.iter().map(|line| line.rank).max();
            let Some(at) = lines.iter().rposition(|line| Some(line.rank) == last && line.rank > 0) else { break };
            lines.remove(at);
        }
        for line in lines.iter().take(usize::from(rest.height.saturating_sub(2))) {
            let style = if line.is_alarming { self.style(Modifier::BOLD, Some(Color::Red)) } else { Style::new() };
            put(buffer, rest.x, rest.y, &cut(&printable(&line.text), rest.width.into()), style);
            rest = below(rest, 1);
        }
        rest
    }

    fn draw_table(&mut self, area: Rect, buffer: &mut Buffer) {
        let mut rest = area;
        if rest.height > MIN_ROWS {
            let title = format!(" {} ", self.table_title());
            let width = usize::from(rest.width);
            let rule = if self.look.glyphs == Glyphs::Unicode { "─" } else { "-" };
            let filled = format!("{rule}{rule}{title}{}", rule.repeat(width));
            put(buffer, rest.x, rest.y, &filled, self.style(Modifier::DIM, None));
            put(buffer, rest.x + 2, rest.y, &cut(&title, width.saturating_sub(2)), self.style(Modifier::BOLD, None));
            rest = below(rest, 1);
        }
        let columns = self.columns(rest.width);
        if rest.height > 2 {
            self.draw_heading(&columns, rest, buffer);
            rest = below(rest, 1);
        }
        self.settle(rest.height.into());
        if self.rows.is_empty() {
            for (text, y) in self.nothing().iter().zip(rest.y + u16::from(rest.height > 3)..rest.bottom()) {
                let room = usize::from(rest.width.saturating_sub(2));
                put(buffer, rest.x + rest.width.min(2), y, &cut(text, room), Style::new());
            }
            return;
        }
        let cursor = self.cursor();
        let indents = Indents::around(self.rows[cursor.row].depth, &columns);
        let visible = cursor.top..(cursor.top + usize::from(rest.height)).min(self.rows.len());
        self.worded = visible.len();
        for (index, y) in visible.zip(rest.y..) {
            let line = Rect { y, height: 1, ..rest };
            self.draw_row(&self.rows[index], &columns, &indents, line, buffer);
            if index == cursor.row {
                buffer.set_style(line, Modifier::REVERSED);
            }
        }
    }

    fn draw_heading(&self, columns: &Columns, area: Rect, buffer: &mut Buffer) {
        let sort = self.sort();
        let style = self.style(Modifier::BOLD | Modifier::UNDERLINED, Some(Color::Cyan));
        buffer.set_style(Rect { height: 1, ..area }, style);
        let is_down = !sort.reversed ^ (sort.column == Column::Name);
        let mark = match (self.look.glyphs, is_down) {
            (Glyphs::Unicode, true) => "▼",
            (Glyphs::Unicode, false) => "▲",
            (Glyphs::Ascii, true) => "v",
            (Glyphs::Ascii, false) => "^",
        };
        let mut x = area.x;
        for (column, width) in &columns.columns {
            let mark = if *column == sort.column { mark } else { "" };
            let mut text = format!("{}{mark}", column.heading());
            // Times have a blank, or a mark, behind them.
            if mark.is_empty() && matches!(column, Column::Total | Column::SelfTime | Column::PerCall) {
                text.push(' ');
            }
            let text = cut(&text, (*width).into());
            if *column != Column::Name {
                put(buffer, x + (*width).saturating_sub(text.width() as u16), area.y, &text, style);
            } else {
                put(buffer, x, area.y, &text, style);
            }
            x += width + 1;
        }
    }

    fn draw_row(&self, row: &Row, columns: &Columns, indents: &Indents, area: Rect, buffer: &mut Buffer) {
        let amounts = self.amounts_of(row);
        let lead = self.shown.as_ref().map_or(Lead { unit: Unit::Nanoseconds, whole: 0 }, |shown| shown.forest.lead());
        let part = if self.shape == Shape::Flat { amounts.self_ns } else { amounts.total_ns };
        let is_own = matches!(row.what, What::Line(line) if self.lines[line].role == Role::Own);
        let modifier = match share(part, lead.whole) {
            _ if self.shape == Shape::Callers && is_own => Modifier::BOLD,
            part if part >= HOT => Modifier::BOLD,
            part if part < COLD => Modifier::DIM,
            _ => Modifier::empty(),
        };
        let style = self.style(modifier, None);
        buffer.set_style(area, style);
        let mut x = area.x;
        for (column, width) in &columns.columns {
            let width = *width;
            if *column == Column::Name {
                self.draw_name(row, indents, Rect { x, width, ..area }, style, buffer);
            } else {
                let text = column.text(self.shape, &amounts, lead, width.into());
                put(buffer, x + width.saturating_sub(text.width() as u16), area.y, &text, style);
            }
            x += width + 1;
        }
    }

    fn draw_name(&self, row: &Row, indents: &Indents, area: Rect, style: Style, buffer: &mut Buffer) {
        let before = match row.what {
            What::Node(node) => {
                let can_fold = self.shown.as_ref().is_some_and(|shown| shown.forest.has_children(node));
                let mark = match (self.look.glyphs, can_fold, can_fold && self.is_open(node)) {
                    (_, false, _) => ' ',
                    (Glyphs::Unicode, true, true) => '▾',
                    (Glyphs::Unicode, true, false) => '▸',
                    (Glyphs::Ascii, true, true) => '-',
                    (Glyphs::Ascii, true, false) => '+',
                };
                format!("{}{mark} ", indents.of(row.depth))
            }
            What::Line(line) if self.shape == Shape::Callers => match self.lines[line].role {
                Role::Caller => "caller    ".to_owned(),
                Role::Own => "method  ".to_owned(),
                Role::Callee => "callee    ".to_owned(),
            },
            What::Line(_) => String::new(),
        };
        let width = usize::from(area.width);
        let before = cut(&before, width.saturating_sub(4));
        let name = self.fitting_name_of(row, width.saturating_sub(before.width()));
        let x = put(buffer, area.x, area.y, &before, style);
        put(buffer, x, area.y, &name, style);
        if let Some((start, length)) = self.query.place_in(&name) {
            let x = x + name[..start].width() as u16;
            let length = name[start..start + length].width() as u16;
            let found = Rect { x, width: length.min(area.right().saturating_sub(x)), ..area };
            buffer.set_style(found, self.style(Modifier::BOLD | Modifier::UNDERLINED, Some(Color::Yellow)));
        }
    }

    fn draw_footer(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        let width = usize::from(area.width);
        let prompt = match &self.mode {
            Mode::Search { .. } => format!("search: {}", self.query.text()),
            Mode::File { text, .. } => format!("save to: {text}"),
            Mode::Count { text } => format!("count (alloc on, waits off, ...): {text}"),
            Mode::Rows | Mode::Help | Mode::Why(_) => String::new(),
        };
        if !prompt.is_empty() {
            // The end is what is being typed.
            let mut shown = prompt.as_str();
            while shown.width() + 1 > width && !shown.is_empty() {
                shown = &shown[shown.chars().next().map_or(0, char::len_utf8)..];
            }
            let x = put(buffer, area.x, area.y, shown, self.style(Modifier::BOLD, None));
            if let Mode::File { text, is_suggested: true } = &self.mode {
                // As what is selected: typing replaces it.
                let width = (text.width() as u16).min(x - area.x);
                buffer.set_style(Rect { x: x - width, width, ..area }, Modifier::REVERSED);
            }
            if let (Some(message), true) = (&self.message, x + 3 < area.right()) {
                let room = usize::from(area.right() - x - 3);
                put(buffer, x + 3, area.y, &cut(message, room), self.style(Modifier::DIM, None));
            }
            return Some(Position { x: x.min(area.right() - 1), y: area.y });
        }
        if let Some(message) = &self.message {
            put(buffer, area.x, area.y, &cut(message, width), self.style(Modifier::BOLD, None));
            return None;
        }
        let keys = match self.shape {
            Shape::Tree | Shape::Locks | Shape::Tracks => {
                "? help  q quit  / search  Right Left fold  Tab flat  c callers  < > sort  s save"
            }
            Shape::Flat => "? help  q quit  / search  Enter callers  Tab tree  < > sort  t threads  s save",
            Shape::Callers => "? help  q quit  / search  Enter its callers  Backspace back  < > sort  s save",
        };
        put(buffer, area.x, area.y, &cut(keys, width), self.style(Modifier::DIM, None));
        None
    }

    fn draw_help(&self, area: Rect, buffer: &mut Buffer) {
        let two_columns = area.width >= 100;
        let heading = self.style(Modifier::BOLD, Some(Color::Cyan));
        let column = if two_columns { area.width / 2 } else { area.width };
        let per_column = if two_columns { HELP.len().div_ceil(2) } else { HELP.len() };
        for (index, (keys, meaning)) in HELP.into_iter().enumerate() {
            let (x, y) = ((index / per_column) as u16 * column, (index % per_column) as u16);
            if y >= area.height {
                continue;
            }
            let width = usize::from(column);
            put(buffer, area.x + x, area.y + y, &cut(keys, width), heading);
            if let Some(room) = width.checked_sub(24) {
                put(buffer, area.x + x + 24, area.y + y, &cut(meaning, room), Style::new());
            }
        }
    }

    fn style(&self, modifier: Modifier, color: Option<Color>) -> Style {
        let style = Style::new().add_modifier(modifier);
        match (color, self.look.palette) {
            (Some(color), Palette::Color) => style.fg(color),
            _ => style,
        }
    }
}

/// How levels are indented: so that the selected row's name is to be seen.
struct Indents {
    step: usize,
    /// Levels that are not indented.
    skipped: u32,
    /// Levels that are, at most.
    most: u32,
}

impl Indents {
    fn around(depth: u32, columns: &Columns) -> Indents {
        let width = columns.columns.last().map_or(0, |(_, width)| usize::from(*width));
        let step = if width >= ROOMY { 2 } else { 1 };
        let most = (width / 2 / step) as u32;
        Indents { step, skipped: depth.saturating_sub(most), most }
    }

    fn of(&self, depth: u32) -> String {
        let levels = depth.saturating_sub(self.skipped);
        if levels <= self.most {
            " ".repeat(levels as usize * self.step)
        } else {
            format!("{}[{}] ", " ".repeat(self.most as usize * self.step), depth + 1)
        }
    }
}

pub(crate) fn below(area: Rect, rows: u16) -> Rect {
    Rect { y: area.y + rows.min(area.height), height: area.height.saturating_sub(rows), ..area }
}

/// Writes as far as the picture goes; where the text ends.
pub(crate) fn put(buffer: &mut Buffer, x: u16, y: u16, text: &str, style: Style) -> u16 {
    if buffer.area.contains(Position { x, y }) { buffer.set_stringn(x, y, text, usize::MAX, style).0 } else { x }
}
