//! Finding the call of `super(...)` or `this(...)` in a constructor: before it, `this` is uninitialised, and exception
//! handlers must say so.

use crate::class_file::ClassFile;
use crate::code::Code;
use crate::frames;
use crate::instructions::{ASTORE, ASTORE_0, INVOKESPECIAL, Instruction, NEW, WIDE};
use crate::reader::Reader;
use crate::{Error, Refusal};

/// The instruction that initialises `this`.
///
/// In the order of the code, every `new` is followed by the call that initialises its object, because an uninitialised
/// object can be passed to nothing else; the call that has no `new` of its own initialises `this`. That holds for what
/// compilers emit, not for everything that verifies, so the outcome is checked against the stack map frames: `this` must
/// be uninitialised in all frames up to the call, and in none after it.
pub(crate) fn super_call(
    class: &ClassFile<'_>,
    code: &Code<'_>,
    frames: Option<Reader<'_>>,
) -> Result<Instruction, Refusal> {
    let mut pending = 0u32;
    let mut found: Option<Instruction> = None;
    for instruction in &code.instructions {
        match instruction.opcode {
            NEW => pending += 1,
            INVOKESPECIAL if calls_initializer(class, code, instruction)? => match pending.checked_sub(1) {
                Some(left) => pending = left,
                None if found.is_none() => found = Some(*instruction),
                None => return Err(Refusal::SuperCallUnclear),
            },
            _ if stores_local_0(code, instruction) => return Err(Refusal::SuperCallUnclear),
            _ => {}
        }
    }
    let found = found.ok_or(Refusal::SuperCallUnclear)?;
    for (offset, uninitialized) in frames.map_or(Ok(Vec::new()), frames::uninitialized_this)? {
        if uninitialized != (offset <= found.offset) {
            return Err(Refusal::SuperCallUnclear);
        }
    }
    Ok(found)
}

fn calls_initializer(class: &ClassFile<'_>, code: &Code<'_>, call: &Instruction) -> Result<bool, Error> {
    let at = code.base + call.offset as usize + 1;
    Ok(class.pool.member(call.operand(code.bytes), at)?.name == "<init>")
}

fn stores_local_0(code: &Code<'_>, instruction: &Instruction) -> bool {
    let at = instruction.offset as usize;
    match instruction.opcode {
        ASTORE => code.bytes[at + 1] == 0,
        ASTORE_0 => true,
        WIDE => code.bytes[at + 1] == ASTORE && code.bytes[at + 2..at + 4] == [0, 0],
        _ => false,
    }
}
