//! RuntimeVisibleTypeAnnotations and RuntimeInvisibleTypeAnnotations of a Code attribute (JVMS 4.7.20), relocated in place.

use crate::Error;
use crate::attributes::{put, variable_range};
use crate::reader::Reader;
use crate::relocation::Relocated;

/// Nesting of annotations that is believed; the format itself has no limit, compilers need two or three.
const MAX_DEPTH: u32 = 64;

/// Relocates the offsets in the annotations' targets.
pub(crate) fn relocate(mut table: Reader<'_>, relocated: &Relocated) -> Result<Vec<u8>, Error> {
    let mut out = table.rest().to_vec();
    for _ in 0..table.u2("the number of type annotations")? {
        target(&mut table, relocated, &mut out)?;
        let path = table.u1("a type path's length")?;
        table.bytes(usize::from(path) * 2, "a type path")?;
        annotation(&mut table, 0)?;
    }
    if table.is_empty() { Ok(out) } else { table.fail("the end of the type annotations") }
}

fn target(table: &mut Reader<'_>, relocated: &Relocated, out: &mut [u8]) -> Result<(), Error> {
    match table.u1("a type annotation's target")? {
        // localvar_target
        0x40 | 0x41 => {
            for _ in 0..table.u2("a target's number of ranges")? {
                variable_range(table, relocated, out)?;
                table.u2("a local variable's index")?;
            }
        }
        // catch_target: an index of the exception table, whose old rows keep their places.
        0x42 => {
            table.u2("a row of the exception table")?;
        }
        // offset_target, type_argument_target
        kind @ 0x43..=0x4b => {
            let (position, at) = (table.position(), table.offset());
            let old = table.u2("a target's offset")?;
            put(out, position, relocated.place(old.into(), at)?);
            if kind >= 0x47 {
                table.u1("a type argument's index")?;
            }
        }
        // Targets of declarations, which do not belong into a Code attribute but do no harm.
        0x00 | 0x01 | 0x16 => {
            table.u1("a target's index")?;
        }
        0x10 | 0x11 | 0x12 | 0x17 => {
            table.u2("a target's index")?;
        }
        0x13..=0x15 => {}
        _ => return Err(Error::new(table.offset() - 1, "a type annotation's target")),
    }
    Ok(())
}

fn annotation(table: &mut Reader<'_>, depth: u32) -> Result<(), Error> {
    table.u2("an annotation's type")?;
    for _ in 0..table.u2("an annotation's number of elements")? {
        table.u2("an element's name")?;
        element(table, depth)?;
    }
    Ok(())
}

fn element(table: &mut Reader<'_>, depth: u32) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return table.fail("annotations nested less deeply");
    }
    match table.u1("an element's tag")? {
        b'e' => {
            table.u4("an enum constant")?;
        }
        b'@' => annotation(table, depth + 1)?,
        b'[' => {
            for _ in 0..table.u2("an array's length")? {
                element(table, depth + 1)?;
            }
        }
        b'B' | b'C' | b'D' | b'F' | b'I' | b'J' | b'S' | b'Z' | b's' | b'c' => {
            table.u2("a constant")?;
        }
        _ => return Err(Error::new(table.offset() - 1, "an element's tag")),
    }
    Ok(())
}
