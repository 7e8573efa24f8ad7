//! Instructions (JVMS 6.5): where each begins, how long it is, and where it can go.

use crate::Error;

pub(crate) const LDC: u8 = 0x12;
pub(crate) const LDC_W: u8 = 0x13;
pub(crate) const LDC2_W: u8 = 0x14;
pub(crate) const ASTORE: u8 = 0x3a;
pub(crate) const ASTORE_0: u8 = 0x4b;
pub(crate) const GOTO: u8 = 0xa7;
pub(crate) const JSR: u8 = 0xa8;
pub(crate) const RET: u8 = 0xa9;
pub(crate) const TABLESWITCH: u8 = 0xaa;
pub(crate) const LOOKUPSWITCH: u8 = 0xab;
pub(crate) const IRETURN: u8 = 0xac;
pub(crate) const RETURN: u8 = 0xb1;
pub(crate) const GETSTATIC: u8 = 0xb2;
pub(crate) const PUTSTATIC: u8 = 0xb3;
pub(crate) const GETFIELD: u8 = 0xb4;
pub(crate) const PUTFIELD: u8 = 0xb5;
pub(crate) const INVOKEVIRTUAL: u8 = 0xb6;
pub(crate) const INVOKESPECIAL: u8 = 0xb7;
pub(crate) const INVOKESTATIC: u8 = 0xb8;
pub(crate) const INVOKEINTERFACE: u8 = 0xb9;
pub(crate) const INVOKEDYNAMIC: u8 = 0xba;
pub(crate) const NEW: u8 = 0xbb;
pub(crate) const ANEWARRAY: u8 = 0xbd;
pub(crate) const ATHROW: u8 = 0xbf;
pub(crate) const CHECKCAST: u8 = 0xc0;
pub(crate) const INSTANCEOF: u8 = 0xc1;
pub(crate) const WIDE: u8 = 0xc4;
pub(crate) const MULTIANEWARRAY: u8 = 0xc5;
pub(crate) const IFNULL: u8 = 0xc6;
pub(crate) const IFNONNULL: u8 = 0xc7;
pub(crate) const GOTO_W: u8 = 0xc8;
pub(crate) const JSR_W: u8 = 0xc9;

/// Lengths of the instructions, opcode included; 0 for those of variable length, 255 for opcodes that do not exist.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = {
    let mut lengths = [255u8; 256];
    let mut opcode = 0;
    while opcode < 256 {
        lengths[opcode] = match opcode as u8 {
            0x00..=0x0f | 0x1a..=0x35 | 0x3b..=0x83 | 0x85..=0x98 | 0xac..=0xb1 | 0xbe | 0xbf | 0xc2 | 0xc3 => 1,
            0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | 0xa9 | 0xbc => 2,
            0x11 | 0x13 | 0x14 | 0x84 | 0x99..=0xa8 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 | 0xc6 | 0xc7 => 3,
            0xc5 => 4,
            0xb9 | 0xba | 0xc8 | 0xc9 => 5,
            0xaa | 0xab | 0xc4 => 0,
            _ => 255,
        };
        opcode += 1;
    }
    lengths
};

/// An instruction within a method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    /// Offset in the code.
    pub(crate) offset: u32,
    pub(crate) length: u32,
    pub(crate) opcode: u8,
}

impl Instruction {
    pub(crate) fn end(&self) -> u32 {
        self.offset + self.length
    }

    pub(crate) fn is_return(&self) -> bool {
        (IRETURN..=RETURN).contains(&self.opcode)
    }

    pub(crate) fn is_switch(&self) -> bool {
        matches!(self.opcode, TABLESWITCH | LOOKUPSWITCH)
    }

    /// A branch with a 16-bit offset.
    pub(crate) fn is_short_branch(&self) -> bool {
        matches!(self.opcode, 0x99..=JSR | IFNULL | IFNONNULL)
    }

    /// A branch with a 32-bit offset.
    pub(crate) fn is_wide_branch(&self) -> bool {
        matches!(self.opcode, GOTO_W | JSR_W)
    }

    /// The two bytes behind the opcode.
    pub(crate) fn operand(&self, code: &[u8]) -> u16 {
        let at = self.offset as usize;
        u16::from_be_bytes([code[at + 1], code[at + 2]])
    }

    /// The target of a branch that is no switch, which may lie outside the code.
    pub(crate) fn branch_target(&self, code: &[u8]) -> i64 {
        let at = self.offset as usize;
        let distance =
            if self.is_wide_branch() { i64::from(i32_at(code, at + 1)) } else { i64::from(self.operand(code) as i16) };
        i64::from(self.offset) + distance
    }

    /// Where a switch's operands begin, behind the padding.
    pub(crate) fn switch_operands(&self) -> usize {
        (self.offset as usize + 4) & !3
    }
}

/// A 32-bit operand whose bytes are known to be there.
pub(crate) fn i32_at(code: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]])
}

/// All instructions of a method's code, which begins at absolute offset `base`.
pub(crate) fn decode(code: &[u8], base: usize) -> Result<Vec<Instruction>, Error> {
    let mut instructions = Vec::with_capacity(code.len() / 2);
    let mut at = 0;
    while at < code.len() {
        let opcode = code[at];
        let length = match LENGTHS[usize::from(opcode)] {
            255 => return Err(Error::new(base + at, "an opcode")),
            0 => variable_length(code, at).ok_or_else(|| Error::new(base + at, "a whole instruction"))?,
            length => usize::from(length),
        };
        if length > code.len() - at {
            return Err(Error::new(base + at, "a whole instruction"));
        }
        instructions.push(Instruction { offset: at as u32, length: length as u32, opcode });
        at += length;
    }
    Ok(instructions)
}

fn variable_length(code: &[u8], at: usize) -> Option<usize> {
    if code[at] == WIDE {
        return Some(if *code.get(at + 1)? == 0x84 { 6 } else { 4 });
    }
    let operands = (at + 4) & !3;
    let word = |index: usize| -> Option<i64> {
        let bytes = code.get(operands + index * 4..operands + index * 4 + 4)?;
        Some(i64::from(i32_at(bytes, 0)))
    };
    let words = if code[at] == TABLESWITCH {
        let (low, high) = (word(1)?, word(2)?);
        if high < low {
            return None;
        }
        3 + (high - low + 1)
    } else {
        2 + word(1)?.checked_mul(2).filter(|words| *words >= 0)?
    };
    let bytes = usize::try_from(words).ok()?.checked_mul(4)?;
    (bytes <= code.len()).then_some(operands - at + bytes)
}

/// The words of a switch that are jump distances, by their offsets in the code.
pub(crate) fn switch_distances(instruction: &Instruction, code: &[u8]) -> impl Iterator<Item = usize> {
    let operands = instruction.switch_operands();
    let (first, step, count) = if instruction.opcode == TABLESWITCH {
        let (low, high) = (i32_at(code, operands + 4), i32_at(code, operands + 8));
        (operands + 12, 4, (i64::from(high) - i64::from(low) + 1) as usize)
    } else {
        (operands + 12, 8, i32_at(code, operands + 4) as usize)
    };
    std::iter::once(operands).chain((0..count).map(move |i| first + i * step))
}
