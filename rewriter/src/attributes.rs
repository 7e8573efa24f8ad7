//! The attributes of a Code attribute that hold offsets into the code (JVMS 4.7.12 to 4.7.14, 4.7.20), relocated in place;
//! all others are copied. They are for debuggers: no JVM checks them, so none is a reason to refuse a method.

use crate::layout::Layout;
use crate::reader::Reader;

/// Relocates LineNumberTables: u2 start_pc, u2 line.
pub(crate) fn line_numbers(mut table: Reader<'_>, layout: &Layout<'_>, out: &mut [u8]) -> Option<()> {
    for _ in 0..table.u2("").ok()? {
        let at = table.position();
        let start = table.u2("").ok()?;
        put(out, at, layout.debug_start(start.into()));
        table.u2("").ok()?;
    }
    Some(())
}

/// Relocates LocalVariableTables and LocalVariableTypeTables: u2 start_pc, length, name, type, index.
pub(crate) fn local_variables(mut table: Reader<'_>, layout: &Layout<'_>, out: &mut [u8]) -> Option<()> {
    for _ in 0..table.u2("").ok()? {
        variable_range(&mut table, layout, out)?;
        table.bytes(6, "").ok()?;
    }
    Some(())
}

/// The start and length of a local variable's range.
pub(crate) fn variable_range(table: &mut Reader<'_>, layout: &Layout<'_>, out: &mut [u8]) -> Option<()> {
    let position = table.position();
    let start = u32::from(table.u2("").ok()?);
    let length = u32::from(table.u2("").ok()?);
    let (new_start, new_end) = (layout.debug_start(start), layout.debug_target(start + length));
    put(out, position, new_start);
    // An empty range stays empty where the start stays at 0.
    put(out, position + 2, if length == 0 { 0 } else { new_end.saturating_sub(new_start) });
    Some(())
}

/// Writes a u2 that is known to fit: new code is at most 65,535 bytes long.
pub(crate) fn put(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}
