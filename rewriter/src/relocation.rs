//! Inserting instructions into a method's code, and telling where everything is afterwards.
//!
//! Knows nothing of what is inserted: an [`Insertion`] is bytes before an instruction, and whether branches to that
//! instruction run through them.

use crate::code::Code;
use crate::instructions::{GOTO, GOTO_W, Instruction, JSR, i32_at, switch_distances};
use crate::{Error, Refusal};

/// Bytes to be put before the instruction at an offset.
#[derive(Clone, Debug)]
pub(crate) struct Insertion {
    pub(crate) before: u32,
    pub(crate) bytes: Vec<u8>,
    /// Branches, handlers and frames at that offset come to stand before the inserted bytes, rather than behind them.
    pub(crate) captures_branches: bool,
}

/// Code with insertions, and the way from old offsets to new ones.
#[derive(Debug)]
pub(crate) struct Relocated {
    pub(crate) code: Vec<u8>,
    /// For each old offset (and the end): where a branch to it goes now. Only meaningful at instructions.
    targets: Vec<u32>,
    /// For each old offset (and the end): where the instruction itself stands now.
    places: Vec<u32>,
    /// Whether an old offset is an instruction's (or the end).
    boundary: Vec<bool>,
    base: usize,
}

impl Relocated {
    fn check(&self, old: u32, at: usize) -> Result<usize, Error> {
        let old = old as usize;
        if self.boundary.get(old) == Some(&true) {
            Ok(old)
        } else {
            Err(Error::new(at, "the offset of an instruction"))
        }
    }

    /// Where control that went to `old` goes now; `at` is the absolute offset of what says `old`.
    pub(crate) fn target(&self, old: u32, at: usize) -> Result<u32, Error> {
        Ok(self.targets[self.check(old, at)?])
    }

    /// Where the instruction that stood at `old` stands now.
    pub(crate) fn place(&self, old: u32, at: usize) -> Result<u32, Error> {
        Ok(self.places[self.check(old, at)?])
    }

    /// The beginning of a range of a table for debuggers: ranges from the method's start keep it.
    pub(crate) fn range_start(&self, old: u32, at: usize) -> Result<u32, Error> {
        if old == 0 { Ok(0) } else { self.target(old, at) }
    }

    /// Where the old code ends now, without what is appended to it.
    pub(crate) fn end(&self) -> u32 {
        self.targets.last().copied().unwrap_or(0)
    }

    /// Absolute offset of the old code, for messages.
    pub(crate) fn base(&self) -> usize {
        self.base
    }
}

/// Puts the insertions in. They must be sorted by offset, one an offset at most.
pub(crate) fn relocate(code: &Code<'_>, insertions: &[Insertion]) -> Result<Relocated, Refusal> {
    let length = code.bytes.len();
    let mut boundary = vec![false; length + 1];
    boundary[length] = true;
    for instruction in &code.instructions {
        boundary[instruction.offset as usize] = true;
    }
    let mut relocated = Relocated {
        code: Vec::new(),
        targets: vec![0; length + 1],
        places: vec![0; length + 1],
        boundary,
        base: code.base,
    };
    // Only gotos can be widened in place; each round widens at least one more, so the rounds end. In practice one does.
    let mut widened = vec![false; if insertions.is_empty() { 0 } else { code.instructions.len() }];
    loop {
        lay_out(code, insertions, &widened, &mut relocated);
        if !widen(code, &relocated, &mut widened)? {
            break;
        }
    }
    emit(code, insertions, &widened, &mut relocated)?;
    Ok(relocated)
}

fn lay_out(code: &Code<'_>, insertions: &[Insertion], widened: &[bool], relocated: &mut Relocated) {
    let mut insertions = insertions.iter().peekable();
    let mut at = 0u32;
    for (index, instruction) in code.instructions.iter().enumerate() {
        let old = instruction.offset as usize;
        relocated.targets[old] = at;
        if let Some(insertion) = insertions.next_if(|insertion| insertion.before == instruction.offset) {
            at += insertion.bytes.len() as u32;
            if !insertion.captures_branches {
                relocated.targets[old] = at;
            }
        }
        relocated.places[old] = at;
        at += if instruction.is_switch() {
            let operands = instruction.end() - instruction.switch_operands() as u32;
            ((at + 4) & !3) - at + operands
        } else if widened.get(index) == Some(&true) {
            5
        } else {
            instruction.length
        };
    }
    let end = code.bytes.len();
    relocated.targets[end] = at;
    relocated.places[end] = at;
}

/// Finds branches that no longer fit; whether there were any.
fn widen(code: &Code<'_>, relocated: &Relocated, widened: &mut [bool]) -> Result<bool, Refusal> {
    let mut found = false;
    for (index, widened) in widened.iter_mut().enumerate() {
        let instruction = &code.instructions[index];
        if *widened || !instruction.is_short_branch() {
            continue;
        }
        if i16::try_from(distance(code, relocated, instruction)?).is_err() {
            if !matches!(instruction.opcode, GOTO | JSR) {
                return Err(Refusal::BranchTooFar);
            }
            *widened = true;
            found = true;
        }
    }
    Ok(found)
}

fn distance(code: &Code<'_>, relocated: &Relocated, instruction: &Instruction) -> Result<i64, Error> {
    let at = code.base + instruction.offset as usize;
    let target = instruction.branch_target(code.bytes);
    let target = u32::try_from(target).ok().filter(|target| *target < code.len());
    let target = target.ok_or_else(|| Error::new(at, "a branch to an instruction"))?;
    let (from, to) = (relocated.place(instruction.offset, at)?, relocated.target(target, at)?);
    Ok(i64::from(to) - i64::from(from))
}

fn emit(code: &Code<'_>, insertions: &[Insertion], widened: &[bool], relocated: &mut Relocated) -> Result<(), Refusal> {
    let mut out = Vec::with_capacity(relocated.end() as usize + 16);
    let mut insertions = insertions.iter().peekable();
    for (index, instruction) in code.instructions.iter().enumerate() {
        if let Some(insertion) = insertions.next_if(|insertion| insertion.before == instruction.offset) {
            out.extend_from_slice(&insertion.bytes);
        }
        let old = instruction.offset as usize;
        let old_end = instruction.end() as usize;
        if instruction.is_switch() {
            emit_switch(code, relocated, instruction, &mut out)?;
        } else if instruction.is_short_branch() {
            let distance = distance(code, relocated, instruction)?;
            if widened.get(index) == Some(&true) {
                // goto_w and jsr_w follow goto and jsr at the same distance.
                out.push(instruction.opcode + (GOTO_W - GOTO));
                out.extend((distance as i32).to_be_bytes());
            } else {
                out.push(instruction.opcode);
                out.extend((distance as i16).to_be_bytes());
            }
        } else if instruction.is_wide_branch() {
            out.push(instruction.opcode);
            out.extend((distance(code, relocated, instruction)? as i32).to_be_bytes());
        } else {
            out.extend_from_slice(&code.bytes[old..old_end]);
        }
    }
    relocated.code = out;
    Ok(())
}

fn emit_switch(
    code: &Code<'_>,
    relocated: &Relocated,
    instruction: &Instruction,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let (old, operands) = (instruction.offset, instruction.switch_operands());
    let place = out.len();
    out.push(instruction.opcode);
    let padding = ((place + 4) & !3) - place - 1;
    // Where nothing moved the padding, which nobody reads, stays what it was.
    match code.bytes.get(old as usize + 1..operands).filter(|old_padding| old_padding.len() == padding) {
        Some(old_padding) => out.extend_from_slice(old_padding),
        None => out.resize(out.len() + padding, 0),
    }
    let copied = out.len();
    out.extend_from_slice(&code.bytes[operands..instruction.end() as usize]);
    for at in switch_distances(instruction, code.bytes) {
        let absolute = code.base + at;
        let target = i64::from(old) + i64::from(i32_at(code.bytes, at));
        let target = u32::try_from(target).ok().filter(|target| *target < code.len());
        let target = target.ok_or_else(|| Error::new(absolute, "a switch's jump to an instruction"))?;
        let distance = i64::from(relocated.target(target, absolute)?) - place as i64;
        let word = copied + (at - operands);
        out[word..word + 4].copy_from_slice(&(distance as i32).to_be_bytes());
    }
    Ok(())
}
