//! Where in a constructor `this` is still to be constructed: there, exception handlers must say so.

use crate::Refusal;
use crate::constant_pool::ConstantPool;
use crate::frames::FrameReader;
use crate::instructions::{self, ASTORE, ASTORE_3, INVOKESPECIAL, ISTORE, ISTORE_0, Instruction, NEW, WIDE};
use crate::types::Type;
use crate::walk::Walk;

/// What a handler has to say of `this`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    /// Nothing: it is constructed, or there is none.
    Constructed,
    /// It is still to be constructed, and is in this local variable.
    Uninitialized(u16),
    /// There can be no handler: the call of `super(...)` or `this(...)` itself, which HotSpot accepts in no range, or code
    /// that has `this` in no local variable.
    Unprotected,
}

/// From an offset on, up to the next one.
pub(crate) type PhaseFrom = (u32, Phase);

/// The phases of a method, in the order of its code, the first at 0.
pub(crate) fn phases(walk: &Walk<'_, '_>, phases: &mut Vec<PhaseFrom>) -> Result<(), Refusal> {
    phases.clear();
    if walk.method.name != b"<init>" {
        phases.push((0, Phase::Constructed));
        return Ok(());
    }
    if let Some(call) = straight(walk)? {
        phases.push((0, Phase::Uninitialized(0)));
        phases.push((call.offset, Phase::Unprotected));
        phases.push((call.end(), Phase::Constructed));
        return Ok(());
    }
    let machine = walk.machine();
    walk.run(|instruction, state| {
        let phase = match state {
            Some(state) if state.this_uninitialized => {
                let local = state.locals.iter().position(|local| *local == Type::UninitializedThis);
                match (machine.constructed(state, instruction)?, local) {
                    (Some(Type::UninitializedThis), _) | (_, None) => Phase::Unprotected,
                    (_, Some(local)) => Phase::Uninitialized(local as u16),
                }
            }
            Some(_) => Phase::Constructed,
            None => Phase::Unprotected,
        };
        if phases.last().is_none_or(|(_, last)| *last != phase) {
            phases.push((instruction.offset, phase));
        }
        Ok(())
    })
}

/// The call of `super(...)` or `this(...)`, where the code comes to it without a branch, a join or another object on the
/// way: so it is in nearly all constructors, which need not be followed type by type.
fn straight(walk: &Walk<'_, '_>) -> Result<Option<Instruction>, Refusal> {
    let code = walk.code;
    if walk.class.name()? == "java/lang/Object" {
        return Ok(None);
    }
    let mut found = None;
    for instruction in instructions::all(code.bytes) {
        match instruction.opcode {
            INVOKESPECIAL if is_initializer(&walk.class.pool, walk, &instruction)? => {
                found = Some(instruction);
                break;
            }
            NEW => return Ok(None),
            _ if may_store_local_0(&instruction, code.bytes) => return Ok(None),
            _ if !instruction.falls_through(code.bytes) => return Ok(None),
            _ => {}
        }
    }
    let Some(call) = found else { return Ok(None) };
    let joins = match code.stack_map(walk.class) {
        Some(table) => FrameReader::new(table)?.next()?.is_some_and(|frame| frame.offset <= call.offset),
        None => {
            let mut jumps = walk.scan.branches.iter().flat_map(|branch| branch.jumps(code.bytes));
            jumps.any(|(_, target)| target <= i64::from(call.offset))
                || code.exceptions().any(|range| range.handler <= call.offset)
        }
    };
    let branches = walk.scan.branches.first().is_some_and(|branch| branch.offset < call.offset);
    Ok((!joins && !branches).then_some(call))
}

fn may_store_local_0(instruction: &Instruction, code: &[u8]) -> bool {
    match instruction.opcode {
        WIDE => true,
        ISTORE..=ASTORE => instruction.u1(code) == 0,
        // istore_0 to istore_3, then the other types: every fourth is one to local 0.
        opcode @ ISTORE_0..=ASTORE_3 => (opcode - ISTORE_0).is_multiple_of(4),
        _ => false,
    }
}

fn is_initializer(pool: &ConstantPool<'_>, walk: &Walk<'_, '_>, call: &Instruction) -> Result<bool, Refusal> {
    let at = walk.code.base + call.offset as usize + 1;
    Ok(pool.signature_bytes(call.operand(walk.code.bytes), at)?.0 == b"<init>")
}
