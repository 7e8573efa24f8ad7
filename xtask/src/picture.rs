//! What a terminal shows, as an SVG picture and as text.

use std::fmt::Write;
use std::path::Path;

use headwater_tests::terminal::Terminal;
use vt100::{Cell, Color};

/// Of a character, in pixels.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 18.0;
const FONT_SIZE: f64 = 14.0;
/// Around the text, and for the line above it.
const MARGIN: f64 = 12.0;
const TITLE: f64 = 30.0;
const BACKGROUND: &str = "#16181d";
const FOREGROUND: &str = "#d8dbe2";
/// The first eight colours of a terminal, and the bright ones: each at least 4.5 to 1 on the background.
const COLORS: [&str; 16] = [
    "#7d8590", "#ff7b72", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#d8dbe2", "#9aa4af", "#ffa198",
    "#7ee787", "#f2cc60", "#a5d6ff", "#e2c5ff", "#76e3ea", "#ffffff",
];

/// How a run of characters looks.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Look {
    front: &'static str,
    back: Option<&'static str>,
    is_bold: bool,
    is_faint: bool,
    is_underlined: bool,
}

impl Look {
    fn of(cell: &Cell) -> Look {
        let (front, back) = (color(cell.fgcolor()), color(cell.bgcolor()));
        let (front, back) = if cell.inverse() {
            (back.unwrap_or(BACKGROUND), Some(front.unwrap_or(FOREGROUND)))
        } else {
            (front.unwrap_or(FOREGROUND), back)
        };
        Look { front, back, is_bold: cell.bold(), is_faint: cell.dim(), is_underlined: cell.underline() }
    }
}

fn color(color: Color) -> Option<&'static str> {
    match color {
        Color::Idx(index) => COLORS.get(usize::from(index)).copied(),
        Color::Default | Color::Rgb(..) => None,
    }
}

/// Writes `NAME.svg` and `NAME.txt` into a directory: what a terminal shows, without the empty lines at its end.
pub(crate) fn save(terminal: &Terminal, title: &str, directory: &Path, name: &str) -> Result<(), String> {
    let mut lines = terminal.lines();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let text = lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    for (file, content) in [(format!("{name}.txt"), text), (format!("{name}.svg"), svg(terminal, lines.len(), title))] {
        let path = directory.join(file);
        std::fs::write(&path, content).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

fn svg(terminal: &Terminal, rows: usize, title: &str) -> String {
    let screen = terminal.screen();
    let (_, columns) = screen.size();
    let columns = columns.get();
    let (width, height) =
        (f64::from(columns) * WIDTH + 2.0 * MARGIN, TITLE + rows as f64 * HEIGHT + MARGIN + HEIGHT / 2.0);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"{FONT_SIZE}\">\n\
         <title>{title}</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{BACKGROUND}\"/>\n\
         <text x=\"{MARGIN}\" y=\"20\" fill=\"{}\">{title}</text>\n",
        COLORS[8],
        title = escaped(title),
    );
    for row in 0..u16::try_from(rows).unwrap_or(u16::MAX) {
        let mut column = 0;
        while let Some(first) = screen.cell(row, column) {
            let (look, start) = (Look::of(first), column);
            let mut text = String::new();
            while let Some(cell) = screen.cell(row, column).filter(|cell| Look::of(cell) == look) {
                text.push_str(if cell.contents().is_empty() { " " } else { cell.contents() });
                column += if cell.is_wide() { 2 } else { 1 };
            }
            run(&mut out, &text, look, (start, column - start), row);
        }
    }
    out.push_str("</svg>\n");
    out
}

/// Some characters of a row that look alike.
fn run(out: &mut String, text: &str, look: Look, (start, length): (u16, u16), row: u16) {
    let (x, y) = (MARGIN + f64::from(start) * WIDTH, TITLE + f64::from(row) * HEIGHT);
    let width = f64::from(length) * WIDTH;
    // Writing into memory does not fail.
    if let Some(back) = look.back {
        let _ =
            writeln!(out, "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{HEIGHT}\" fill=\"{back}\"/>");
    }
    if text.trim().is_empty() && !look.is_underlined {
        return;
    }
    let mut style = String::new();
    for (is_so, attribute) in [
        (look.is_bold, " font-weight=\"bold\""),
        (look.is_faint, " opacity=\"0.75\""),
        (look.is_underlined, " text-decoration=\"underline\""),
    ] {
        if is_so {
            style.push_str(attribute);
        }
    }
    let _ = writeln!(
        out,
        "<text x=\"{x:.1}\" y=\"{:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" xml:space=\"preserve\" fill=\"{}\"{style}>{}</text>",
        y + 13.5,
        look.front,
        escaped(text)
    );
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
