//! RuntimeVisibleTypeAnnotations and RuntimeInvisibleTypeAnnotations of a Code attribute (JVMS 4.7.20), relocated in place.

use crate::attributes::{put, variable_range};
use crate::layout::Layout;
use crate::reader::Reader;

/// Relocates the offsets in the annotations' targets, and the rows of the exception table: `rows` says what has become of
/// each, if they have moved.
pub(crate) fn relocate(mut table: Reader<'_>, layout: &Layout<'_>, rows: &[u16], out: &mut [u8]) -> Option<()> {
    for _ in 0..table.u2("").ok()? {
        target(&mut table, layout, rows, out)?;
        let path = table.u1("").ok()?;
        table.bytes(usize::from(path) * 2, "").ok()?;
        skip_annotation(&mut table)?;
    }
    Some(())
}

fn target(table: &mut Reader<'_>, layout: &Layout<'_>, rows: &[u16], out: &mut [u8]) -> Option<()> {
    match table.u1("").ok()? {
        // localvar_target
        0x40 | 0x41 => {
            for _ in 0..table.u2("").ok()? {
                variable_range(table, layout, out)?;
                table.u2("").ok()?;
            }
        }
        // catch_target
        0x42 => {
            let position = table.position();
            let old = table.u2("").ok()?;
            put(out, position, rows.get(usize::from(old)).copied().unwrap_or(old).into());
        }
        // offset_target, type_argument_target
        kind @ 0x43..=0x4b => {
            let position = table.position();
            let old = u32::from(table.u2("").ok()?);
            put(out, position, layout.debug_place(old));
            if kind >= 0x47 {
                table.u1("").ok()?;
            }
        }
        // Targets of declarations, which do not belong into a Code attribute but do no harm.
        0x00 | 0x01 | 0x16 => {
            table.u1("").ok()?;
        }
        0x10 | 0x11 | 0x12 | 0x17 => {
            table.u2("").ok()?;
        }
        0x13..=0x15 => {}
        _ => return None,
    }
    Some(())
}

/// Annotations nest; the format has no limit, so neither has this.
fn skip_annotation(table: &mut Reader<'_>) -> Option<()> {
    /// What is still to be read at one level.
    enum Left {
        /// Named elements of an annotation.
        Elements(u16),
        /// Values of an array.
        Values(u16),
    }
    table.u2("").ok()?;
    let mut levels = vec![Left::Elements(table.u2("").ok()?)];
    while let Some(level) = levels.last_mut() {
        match level {
            Left::Elements(0) | Left::Values(0) => {
                levels.pop();
                continue;
            }
            Left::Elements(left) => {
                *left -= 1;
                table.u2("").ok()?;
            }
            Left::Values(left) => *left -= 1,
        }
        match table.u1("").ok()? {
            b'e' => {
                table.u4("").ok()?;
            }
            b'@' => {
                table.u2("").ok()?;
                levels.push(Left::Elements(table.u2("").ok()?));
            }
            b'[' => levels.push(Left::Values(table.u2("").ok()?)),
            b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
                table.u2("").ok()?;
            }
            _ => return None,
        }
    }
    Some(())
}
