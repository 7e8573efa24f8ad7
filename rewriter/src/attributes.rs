//! The attributes of a Code attribute that hold offsets into the code (JVMS 4.7.12 to 4.7.14, 4.7.20), relocated in place;
//! all others are copied.

use crate::Error;
use crate::reader::Reader;
use crate::relocation::Relocated;

/// LineNumberTable: u2 start_pc, u2 line.
pub(crate) fn line_numbers(mut table: Reader<'_>, relocated: &Relocated) -> Result<Vec<u8>, Error> {
    let mut out = table.rest().to_vec();
    for _ in 0..table.u2("the number of lines")? {
        let at = table.position();
        let start = relocated.range_start(table.u2("a line's offset")?.into(), table.offset() - 2)?;
        put(&mut out, at, start);
        table.u2("a line's number")?;
    }
    end(&table).map(|()| out)
}

/// LocalVariableTable and LocalVariableTypeTable: u2 start_pc, length, name, type, index.
pub(crate) fn local_variables(mut table: Reader<'_>, relocated: &Relocated) -> Result<Vec<u8>, Error> {
    let mut out = table.rest().to_vec();
    for _ in 0..table.u2("the number of local variables")? {
        variable_range(&mut table, relocated, &mut out)?;
        table.bytes(6, "a local variable's name, type and index")?;
    }
    end(&table).map(|()| out)
}

/// The start and length of a local variable's range, relocated.
pub(crate) fn variable_range(table: &mut Reader<'_>, relocated: &Relocated, out: &mut [u8]) -> Result<(), Error> {
    let (position, at) = (table.position(), table.offset());
    let start = u32::from(table.u2("a variable's start")?);
    let length = u32::from(table.u2("a variable's length")?);
    let (new_start, new_end) = (relocated.range_start(start, at)?, relocated.target(start + length, at)?);
    put(out, position, new_start);
    // An empty range stays empty where the start stays at 0.
    put(out, position + 2, if length == 0 { 0 } else { new_end - new_start });
    Ok(())
}

/// Writes a u2 that is known to fit: new code is at most 65,535 bytes long.
pub(crate) fn put(out: &mut [u8], at: usize, value: u32) {
    out[at..at + 2].copy_from_slice(&(value as u16).to_be_bytes());
}

fn end(table: &Reader<'_>) -> Result<(), Error> {
    if table.is_empty() { Ok(()) } else { table.fail("the end of the table") }
}
