//! Instructions (JVMS 6.5): where each begins, how long it is, and where it can go.

use crate::Error;

pub(crate) const ACONST_NULL: u8 = 0x01;
pub(crate) const ICONST_0: u8 = 0x03;
pub(crate) const LCONST_0: u8 = 0x09;
pub(crate) const LDC: u8 = 0x12;
pub(crate) const LDC_W: u8 = 0x13;
pub(crate) const LDC2_W: u8 = 0x14;
pub(crate) const ILOAD: u8 = 0x15;
pub(crate) const LLOAD: u8 = 0x16;
pub(crate) const ALOAD: u8 = 0x19;
pub(crate) const ALOAD_0: u8 = 0x2a;
pub(crate) const ALOAD_3: u8 = 0x2d;
pub(crate) const ISTORE: u8 = 0x36;
pub(crate) const LSTORE: u8 = 0x37;
pub(crate) const ASTORE: u8 = 0x3a;
pub(crate) const ISTORE_0: u8 = 0x3b;
pub(crate) const ASTORE_3: u8 = 0x4e;
pub(crate) const AASTORE: u8 = 0x53;
pub(crate) const POP: u8 = 0x57;
pub(crate) const DUP: u8 = 0x59;
pub(crate) const DUP2: u8 = 0x5c;
pub(crate) const LADD: u8 = 0x61;
pub(crate) const IINC: u8 = 0x84;
pub(crate) const I2L: u8 = 0x85;
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
pub(crate) const NEWARRAY: u8 = 0xbc;
pub(crate) const ANEWARRAY: u8 = 0xbd;
pub(crate) const ARRAYLENGTH: u8 = 0xbe;
pub(crate) const ATHROW: u8 = 0xbf;
pub(crate) const CHECKCAST: u8 = 0xc0;
pub(crate) const INSTANCEOF: u8 = 0xc1;
pub(crate) const WIDE: u8 = 0xc4;
pub(crate) const MULTIANEWARRAY: u8 = 0xc5;
pub(crate) const IFNULL: u8 = 0xc6;
pub(crate) const IFNONNULL: u8 = 0xc7;
pub(crate) const GOTO_W: u8 = 0xc8;
pub(crate) const JSR_W: u8 = 0xc9;

/// The low bits of [`SHAPES`]: an instruction's length, opcode included; 0 where it varies.
const LENGTH: u8 = 0x07;
/// It names a place to go to, or is a return, or is otherwise worth a second look.
const SPECIAL: u8 = 0x08;
/// No such opcode.
const UNKNOWN: u8 = 0xff;

/// Length and kind of every opcode.
#[rustfmt::skip]
const SHAPES: [u8; 256] = {
    let mut shapes = [UNKNOWN; 256];
    let mut opcode = 0;
    while opcode < 256 {
        shapes[opcode] = match opcode as u8 {
            0x00..=0x0f | 0x1a..=0x35 | 0x3b..=0x83 | 0x85..=0x98 | 0xbe | 0xbf | 0xc2 | 0xc3 => 1,
            0x10 | 0x12 | 0x15..=0x19 | 0x36..=0x3a | 0xbc => 2,
            0x11 | 0x13 | 0x14 | 0x84 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 => 3,
            0xc5 => 4,
            0xb9 | 0xba => 5,
            0xac..=0xb1 => 1 | SPECIAL,
            0xa9 => 2 | SPECIAL,
            0x99..=0xa8 | 0xc6 | 0xc7 => 3 | SPECIAL,
            0xc8 | 0xc9 => 5 | SPECIAL,
            0xaa | 0xab | 0xc4 => SPECIAL,
            _ => UNKNOWN,
        };
        opcode += 1;
    }
    shapes
};

/// An instruction within a method's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// Offset in the code.
    pub offset: u32,
    /// In bytes, opcode included.
    pub length: u32,
    /// JVMS 6.5.
    pub opcode: u8,
}

impl Instruction {
    pub(crate) fn end(&self) -> u32 {
        self.offset + self.length
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

    /// A short branch that may not be taken.
    pub(crate) fn is_conditional(&self) -> bool {
        self.is_short_branch() && !matches!(self.opcode, GOTO | JSR)
    }

    /// Returns from a subroutine.
    pub(crate) fn is_ret(&self, code: &[u8]) -> bool {
        self.opcode == RET || self.opcode == WIDE && self.u1(code) == RET
    }

    /// Whether control can come to the instruction behind it, if only by returning from a subroutine.
    pub(crate) fn falls_through(&self, code: &[u8]) -> bool {
        match self.opcode {
            GOTO | GOTO_W | TABLESWITCH | LOOKUPSWITCH | IRETURN..=RETURN | ATHROW => false,
            _ => !self.is_ret(code),
        }
    }

    /// The byte behind the opcode.
    pub(crate) fn u1(&self, code: &[u8]) -> u8 {
        code[self.offset as usize + 1]
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

    /// Every place that a branch or switch names, with the offset of the operand that names it.
    pub(crate) fn jumps(self, code: &[u8]) -> impl Iterator<Item = (usize, i64)> {
        let branch = (!self.is_switch()).then(|| (self.offset as usize + 1, self.branch_target(code)));
        let switch = self.is_switch().then(|| {
            switch_distances(&self, code).map(move |at| (at, i64::from(self.offset) + i64::from(i32_at(code, at))))
        });
        branch.into_iter().chain(switch.into_iter().flatten())
    }
}

/// A 32-bit operand whose bytes are known to be there.
pub(crate) fn i32_at(code: &[u8], at: usize) -> i32 {
    i32::from_be_bytes([code[at], code[at + 1], code[at + 2], code[at + 3]])
}

/// The instruction at an offset where one begins; the code has been scanned.
pub(crate) fn at(code: &[u8], offset: u32) -> Instruction {
    let opcode = code[offset as usize];
    let length = match SHAPES[usize::from(opcode)] & LENGTH {
        0 => variable_length(code, offset as usize).unwrap_or(1),
        length => usize::from(length),
    };
    Instruction { offset, length: length as u32, opcode }
}

/// All instructions of code that has been scanned.
pub(crate) fn all(code: &[u8]) -> impl Iterator<Item = Instruction> + '_ {
    let mut offset = 0;
    std::iter::from_fn(move || {
        if offset as usize >= code.len() {
            return None;
        }
        let instruction = at(code, offset);
        offset = instruction.end();
        Some(instruction)
    })
}

/// What one pass over a method's code finds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scan {
    /// A bit for every offset of the code, and one for its end: whether an instruction begins there.
    starts: Vec<u64>,
    /// Everything that names a place to go to, in the order of the code.
    pub(crate) branches: Vec<Instruction>,
    /// Offsets of the returns, in order.
    pub(crate) returns: Vec<u32>,
    /// There are `jsr`, `jsr_w` or `ret`.
    pub(crate) subroutines: bool,
}

impl Scan {
    /// Scans code that begins at absolute offset `base`, in place of what was scanned before.
    pub(crate) fn run(&mut self, code: &[u8], base: usize) -> Result<(), Error> {
        self.starts.clear();
        self.starts.resize(code.len() / 64 + 1, 0);
        self.branches.clear();
        self.returns.clear();
        self.subroutines = false;
        let mut at = 0;
        while let Some(&opcode) = code.get(at) {
            self.starts[at >> 6] |= 1 << (at & 63);
            let shape = SHAPES[usize::from(opcode)];
            if shape & SPECIAL == 0 {
                at += usize::from(shape);
                continue;
            }
            at += self.special(code, base, at, shape)?;
        }
        if at != code.len() {
            return Err(Error::new(base + code.len(), "the rest of the last instruction"));
        }
        self.starts[at >> 6] |= 1 << (at & 63);
        Ok(())
    }

    /// The instruction's length.
    fn special(&mut self, code: &[u8], base: usize, at: usize, shape: u8) -> Result<usize, Error> {
        if shape == UNKNOWN {
            return Err(Error::new(base + at, "an opcode"));
        }
        let length = match shape & LENGTH {
            0 => variable_length(code, at),
            length => Some(usize::from(length)),
        };
        let length = length.filter(|length| *length <= code.len() - at);
        let length = length.ok_or_else(|| Error::new(base + at, "a whole instruction"))?;
        let instruction = Instruction { offset: at as u32, length: length as u32, opcode: code[at] };
        match instruction.opcode {
            IRETURN..=RETURN => self.returns.push(instruction.offset),
            RET => self.subroutines = true,
            WIDE => self.subroutines |= code[at + 1] == RET,
            opcode => {
                self.subroutines |= matches!(opcode, JSR | JSR_W);
                self.branches.push(instruction);
            }
        }
        Ok(length)
    }

    /// Whether an instruction begins at an offset, or the code ends there.
    pub(crate) fn is_boundary(&self, offset: u32) -> bool {
        let word = self.starts.get(offset as usize >> 6).copied().unwrap_or(0);
        word >> (offset & 63) & 1 == 1
    }

    /// The place that a jump names, if an instruction begins there; `at` is the absolute offset of what names it.
    pub(crate) fn jump(&self, target: i64, length: u32, at: usize) -> Result<u32, Error> {
        let target = u32::try_from(target).ok().filter(|target| *target < length && self.is_boundary(*target));
        target.ok_or_else(|| Error::new(at, "a jump to an instruction"))
    }
}

fn variable_length(code: &[u8], at: usize) -> Option<usize> {
    if code[at] == WIDE {
        return match *code.get(at + 1)? {
            IINC => Some(6),
            0x15..=0x19 | 0x36..=0x3a | RET => Some(4),
            _ => None,
        };
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
fn switch_distances(instruction: &Instruction, code: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let operands = instruction.switch_operands();
    let (step, count) = if instruction.opcode == TABLESWITCH {
        let (low, high) = (i32_at(code, operands + 4), i32_at(code, operands + 8));
        (4, (i64::from(high) - i64::from(low) + 1) as usize)
    } else {
        (8, i32_at(code, operands + 4) as usize)
    };
    std::iter::once(operands).chain((0..count).map(move |i| operands + 12 + i * step))
}

/// An instruction on a local variable, in its shortest form: JIT compilers count bytes.
pub(crate) fn with_local(opcode: u8, local: u16) -> Vec<u8> {
    const SHORT_LOADS: u8 = 0x1a;
    const SHORT_STORES: u8 = 0x3b;
    // Of each type there are four forms without an operand.
    let first = match opcode {
        ISTORE.. => SHORT_STORES + (opcode - ISTORE) * 4,
        _ => SHORT_LOADS + (opcode - ILOAD) * 4,
    };
    match local.to_be_bytes() {
        [0, low @ 0..=3] => vec![first + low],
        [0, low] => vec![opcode, low],
        [high, low] => vec![WIDE, opcode, high, low],
    }
}
