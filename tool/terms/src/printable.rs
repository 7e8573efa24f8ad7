//! Names of the target as they may stand in a text.
//!
//! To the JVM almost anything is a name (JVMS 4.2.2), and a thread has any. What a terminal would obey, an escape sequence, or what
//! would turn the line around, is written as Java does in its sources: `\u001b`. What is for programs (JSON, CSV, a method's machine
//! name) has names as they are.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Write};

use headwater_modified_utf8 as modified_utf8;

/// A text that stays on its line and shows all that is in it.
pub fn printable(text: &str) -> Cow<'_, str> {
    escaped(text, is_harmful)
}

/// The same of several lines.
pub fn printable_lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_harmful(c))
}

fn escaped(text: &str, is_meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_meant) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if !is_meant(c) {
            escaped.push(c);
            continue;
        }
        let mut units = [0; 2];
        let units = match modified_utf8::lone(c) {
            Some(lone) => {
                units[0] = lone;
                &units[..1]
            }
            None => c.encode_utf16(&mut units),
        };
        for unit in units {
            // Writing into memory does not fail.
            let _ = write!(escaped, "\\u{unit:04x}");
        }
    }
    Cow::Owned(escaped)
}

/// Whether a terminal obeys it, or it changes where others stand, or it is not seen at all.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || modified_utf8::lone(c).is_some()
        || matches!(c,
            // Soft hyphen, Arabic letter mark, Mongolian vowel separator.
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            // Spaces without width, and marks of direction.
            | '\u{200b}'..='\u{200f}'
            // Ends of lines and of paragraphs, embeddings and overrides.
            | '\u{2028}'..='\u{202e}'
            // Invisible operators, isolates.
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            // Annotations, and what is no character.
            | '\u{fff9}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
            // Tags.
            | '\u{e0000}'..='\u{e007f}')
}

/// A writer of texts of ours, with names of the target's in them: what ends lines is ours, whatever else a terminal would obey is not.
#[derive(Debug)]
pub struct Printable<W>(pub W);

impl<W: Write> Write for Printable<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Formatting writes whole strings.
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(printable_lines(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_java_writes_it() {
        for (text, shown) in [
            ("a.b.C.m(int)", "a.b.C.m(int)"),
            ("商店.結帳()", "商店.結帳()"),
            ("\u{1b}[2Jx", "\\u001b[2Jx"),
            ("a\nb\tc\u{7f}\u{9b}", "a\\u000ab\\u0009c\\u007f\\u009b"),
            ("x\u{202e}cod.exe", "x\\u202ecod.exe"),
            ("\u{2066}a\u{2069}\u{200f}", "\\u2066a\\u2069\\u200f"),
            ("a\u{e0041}", "a\\udb40\\udc41"),
            ("𝒳", "𝒳"),
            (&modified_utf8::decode_units(&[0xdcb3, 0xd835]), "\\udcb3\\ud835"),
        ] {
            assert_eq!(printable(text), shown);
            assert_eq!(printable(shown), shown, "once is enough");
        }
        assert_eq!(printable_lines("a\n\u{1b}b\r\n"), "a\n\\u001bb\\u000d\n");
    }

    #[test]
    fn lines_of_ours_stay_lines() {
        let mut out = Printable(Vec::new());
        let name = "a\u{1b}[31m";
        writeln!(out, "root {name}: {}", 7).expect("memory takes it");
        assert_eq!(out.0, b"root a\\u001b[31m: 7\n");
    }
}
