//! The picture: a title, three lists below each other, and a line for keys, prompts and messages.

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use unicode_width::UnicodeWidthStr;

use super::{Jvm, Mode, Order, Pane, Shown, View};
use crate::printable::printable;
use crate::report::units::{cut, plural};
use crate::top::draw::{below, put};
use crate::top::view::{Glyphs, Palette};
use crate::traces::{Process, Thread, Trace};
use crate::watch::lines::clock;

const HELP: [(&str, &str); 13] = [
    ("?", "this help; any key leaves it"),
    ("q, Ctrl-C", "quit"),
    ("Up Down, k j", "select a JVM, a thread, a frame"),
    ("PgUp PgDn, Home End", "a page, the first, the last"),
    ("Tab, Right, Enter", "to the threads, to the stack"),
    ("Shift-Tab, Left", "back"),
    ("p, Space", "pause: freeze all JVMs as they are now, or go on"),
    ("/", "search frames and threads of all JVMs as you type"),
    ("n N", "the next, the previous match, in whichever JVM"),
    ("Esc", "search no more"),
    ("i", "all Java threads, only those that do not wait for work, those of the JVM too"),
    ("s", "order threads by their start, or by CPU time"),
    ("Ctrl-L", "draw everything again"),
];

/// A row of a list: its text, and whether it is in what is searched for.
struct Line {
    text: String,
    is_match: bool,
    is_faint: bool,
}

impl View {
    /// Draws the whole screen; where the cursor is, if it is to be seen.
    pub(crate) fn draw(&mut self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        if area.width == 0 || area.height == 0 {
            return None;
        }
        if self.mode == Mode::Help {
            self.draw_help(area, buffer);
            return None;
        }
        self.draw_title(area, buffer);
        let footer = Rect { y: area.bottom() - 1, height: 1, ..area };
        let lists = below(Rect { height: area.height - 1, ..area }, 1);
        let (jvms, threads, stack) = self.lines();
        // Each list has a heading. Of JVMs as many are seen as there are, up to a third; stacks have what threads leave.
        let high = usize::from(lists.height);
        let of_jvms = (jvms.1.len().max(1) + 1).min(high / 3);
        let of_threads = (threads.1.len().max(1) + 1).min((high - of_jvms) / 2);
        let heights = [of_jvms, of_threads, high - of_jvms - of_threads];
        let mut rest = lists;
        for ((pane, (heading, lines, at)), height) in
            [(Pane::Jvms, jvms), (Pane::Threads, threads), (Pane::Stack, stack)].into_iter().zip(heights)
        {
            let height = u16::try_from(height).unwrap_or(u16::MAX);
            self.draw_list(pane, &heading, &lines, at, Rect { height, ..rest }, buffer);
            rest = below(rest, height);
        }
        if area.height > 1 { self.draw_footer(footer, buffer) } else { None }
    }

    fn draw_title(&self, area: Rect, buffer: &mut Buffer) {
        let watched = self.jvms().values().filter(|jvm| jvm.gone.is_none()).count();
        let title = format!("headwater watch  {}", plural(watched as u64, "JVM", "JVMs"));
        put(buffer, area.x, area.y, &cut(&title, area.width.into()), self.style(Modifier::BOLD, None));
        let (phase, color) = match &self.paused {
            Some((_, since_ms)) => (format!("PAUSED, as of {}", clock(*since_ms)), Color::Yellow),
            None if self.now_ms == 0 => ("waiting".to_owned(), Color::Yellow),
            None => (clock(self.now_ms), Color::Green),
        };
        let width = u16::try_from(phase.width()).unwrap_or(u16::MAX);
        if area.width > width + 30 {
            put(buffer, area.right() - width, area.y, &phase, self.style(Modifier::BOLD, Some(color)));
        }
    }

    /// Of each list the heading, the rows and the selected one.
    #[expect(clippy::type_complexity, reason = "three of a kind, taken apart at once")]
    fn lines(&self) -> ((String, Vec<Line>, usize), (String, Vec<Line>, usize), (String, Vec<Line>, usize)) {
        let chosen = self.chosen();
        let process = chosen.map(|(process, _)| process);
        let jvms: Vec<Line> = self.jvms().iter().map(|(process, jvm)| self.jvm_line(process, jvm)).collect();
        let at = self.jvms().keys().position(|it| Some(it) == process).unwrap_or(0);
        let found = if self.query.is_empty() { "" } else { "  FOUND" };
        let jvms = (format!("    PID  THREADS   RUN  BLOCK  WAIT    CPU{found}  JVM"), jvms, at);

        let order = match self.order {
            Order::Start => "by start",
            Order::Cpu => "by CPU time",
        };
        let shown = match self.shown {
            Shown::Java => "Java threads",
            Shown::Active => "threads that do not wait for work",
            Shown::All => "all threads",
        };
        let Some((trace, jvm)) = chosen.and_then(|(_, jvm)| Some((jvm.trace.as_deref()?, jvm))) else {
            return (jvms, (String::new(), Vec::new(), 0), (String::new(), Vec::new(), 0));
        };
        let threads = self.threads(jvm);
        let thread = self.chosen_thread(jvm);
        let at = threads.iter().position(|it| Some(it.order) == thread.map(|it| it.order)).unwrap_or(0);
        let lines = threads.iter().map(|thread| self.thread_line(trace, jvm, thread)).collect();
        let heading = format!("  ORDER  STATE             CPU  THREAD ({shown}, {order})");
        let frames = thread.map_or(&[][..], |thread| trace.stack(thread));
        let stack = frames
            .iter()
            .map(|frame| Line {
                text: format!("  at {}", printable(frame)),
                is_match: self.query.matches(frame),
                is_faint: false,
            })
            .collect();
        let of = thread.map_or(String::new(), |thread| {
            format!("  STACK of \"{}\", which {}", printable(&thread.name), printable(&thread.doing))
        });
        (jvms, (heading, lines, at), (of, stack, self.frame.min(frames.len().saturating_sub(1))))
    }

    fn jvm_line(&self, process: &Process, jvm: &Jvm) -> Line {
        let pid = process.pid;
        let name = printable(&jvm.name);
        let Some(trace) = &jvm.trace else {
            let why = jvm.gone.as_deref().unwrap_or("has not answered yet");
            return Line { text: format!("{pid:>7}  {name}: {}", printable(why)), is_match: false, is_faint: true };
        };
        let java = || trace.threads.iter().filter(|thread| thread.kind != "vm");
        let of = |states: &[&str]| java().filter(|thread| states.contains(&thread.state.as_str())).count();
        let cpu = jvm.cpu.as_ref().map_or("     ?".to_owned(), |cpu| percent(cpu.values().sum()));
        let found = if self.query.is_empty() { String::new() } else { format!("  {:>5}", self.matches(jvm)) };
        let gone = jvm.gone.as_ref().map_or(String::new(), |why| format!("  {}", printable(why)));
        Line {
            text: format!(
                "{pid:>7}  {:>7}  {:>4}  {:>5}  {:>4} {cpu}{found}  {name}{gone}",
                java().count(),
                of(&["RUNNABLE"]),
                of(&["BLOCKED"]),
                of(&["WAITING", "TIMED_WAITING"]),
            ),
            is_match: self.matches(jvm) > 0,
            is_faint: jvm.gone.is_some(),
        }
    }

    fn thread_line(&self, trace: &Trace, jvm: &Jvm, thread: &Thread) -> Line {
        let cpu = jvm.cpu.as_ref().map_or("     ?".to_owned(), |_| percent(jvm.cpu_of(thread)));
        Line {
            text: format!(
                "{:>7}  {:13} {cpu}  {}  {}",
                thread.order,
                thread.state,
                printable(&thread.name),
                printable(&thread.doing)
            ),
            is_match: self.is_match(trace, thread),
            is_faint: thread.idle,
        }
    }

    fn draw_list(&mut self, pane: Pane, heading: &str, lines: &[Line], at: usize, area: Rect, buffer: &mut Buffer) {
        if area.height == 0 {
            return;
        }
        let width = usize::from(area.width);
        let has_keys = pane == self.pane;
        let color = if has_keys { Color::Cyan } else { Color::Reset };
        let style = self.style(Modifier::BOLD | Modifier::UNDERLINED, Some(color));
        buffer.set_style(Rect { height: 1, ..area }, style);
        put(buffer, area.x, area.y, &cut(heading, width), style);
        let rows = below(area, 1);
        let room = usize::from(rows.height);
        self.room[pane as usize] = room;
        let top = &mut self.tops[pane as usize];
        // The selected row is seen, and the list does not end above its room's end.
        *top = (*top).min(at).max((at + 1).saturating_sub(room)).min(lines.len().saturating_sub(room));
        let top = *top;
        if lines.is_empty() && rows.height > 0 {
            put(buffer, area.x, rows.y, &cut("  nothing yet", width), self.style(Modifier::DIM, None));
        }
        for ((line, index), y) in lines.iter().zip(0..).skip(top).zip(rows.y..rows.bottom()) {
            let mut style = match (line.is_match, line.is_faint) {
                (true, _) => self.style(Modifier::BOLD, Some(Color::Yellow)),
                (false, true) => self.style(Modifier::DIM, None),
                (false, false) => Style::new(),
            };
            let is_selected = index == at;
            if is_selected && has_keys {
                style = style.add_modifier(Modifier::REVERSED);
                buffer.set_style(Rect { y, height: 1, ..area }, style);
            }
            put(buffer, area.x, y, &cut(&line.text, width), style);
            if is_selected {
                put(buffer, area.x, y, self.mark(), style);
            }
        }
    }

    /// What the selected row begins with.
    fn mark(&self) -> &'static str {
        if self.glyphs == Glyphs::Unicode { "▶" } else { ">" }
    }

    fn draw_footer(&self, area: Rect, buffer: &mut Buffer) -> Option<Position> {
        let width = usize::from(area.width);
        if let Mode::Search(_) = self.mode {
            let said = self.message.as_ref().map_or(String::new(), |said| format!("   ({said})"));
            let text = format!("/{}", printable(self.query.text()));
            let end = put(buffer, area.x, area.y, &cut(&text, width), Style::new());
            put(buffer, end, area.y, &cut(&said, usize::from(area.right() - end)), self.style(Modifier::DIM, None));
            return Some(Position { x: end.min(area.right() - 1), y: area.y });
        }
        if let Some(message) = &self.message {
            put(buffer, area.x, area.y, &cut(&printable(message), width), self.style(Modifier::BOLD, None));
            return None;
        }
        let keys = "? help  q quit  Tab lists  p pause  / search  n next match  i which threads  s order";
        put(buffer, area.x, area.y, &cut(keys, width), self.style(Modifier::DIM, None));
        None
    }

    fn draw_help(&self, area: Rect, buffer: &mut Buffer) {
        for ((keys, meaning), y) in HELP.into_iter().zip(area.y..area.bottom()) {
            put(buffer, area.x, y, &cut(keys, area.width.into()), self.style(Modifier::BOLD, Some(Color::Cyan)));
            if let Some(room) = usize::from(area.width).checked_sub(24) {
                put(buffer, area.x + 24, y, &cut(meaning, room), Style::new());
            }
        }
    }

    fn style(&self, modifier: Modifier, color: Option<Color>) -> Style {
        let style = Style::new().add_modifier(modifier);
        match (color, self.palette) {
            (Some(color), Palette::Color) => style.fg(color),
            _ => style,
        }
    }
}

/// Of a processor, six columns wide.
fn percent(share: f64) -> String {
    format!("{:>4.0} %", share * 100.0)
}
