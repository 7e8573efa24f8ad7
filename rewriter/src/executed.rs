//! Counting the instructions that a method executes: where blocks begin, and what is inserted there.
//!
//! A block is entered at its first instruction only and left behind its last; control that comes to it adds its length to a
//! local variable, in one `iinc`. A call is the last of its block, so that its exception counts nothing behind it; one that another
//! instruction throws counts all of the block. Each call has variables of its own, which hand over what they hold when the call is
//! left: what it calls cannot add to them.
//!
//! An int would overflow in a loop that runs for seconds. So where control may go backwards, the int is added to a long, and begins
//! anew: between two such places no instruction is executed twice.
//!
//! Why so, and at what cost: docs/decisions/bytecodes.md.

use crate::code::Code;
use crate::instructions::{
    self, ATHROW, I2L, ICONST_0, IINC, ILOAD, INVOKEDYNAMIC, INVOKEVIRTUAL, IRETURN, ISTORE, Instruction, LADD,
    LCONST_0, LLOAD, LSTORE, RETURN, Scan, WIDE, with_local,
};

/// Some of a method's instructions, in order, that are counted apart from the others.
pub(crate) type Ranges = Vec<(u32, u32)>;

/// Where a method's instructions are counted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Blocks {
    /// Each block's first instruction, and how many instructions it has.
    pub(crate) blocks: Vec<(u32, u32)>,
    /// Instructions from which control may go backwards, or to which it has come by an exception that may have been thrown behind
    /// them.
    pub(crate) backwards: Vec<u32>,
    /// A jump leads to the first instruction.
    begins_again: bool,
}

impl Blocks {
    /// Blocks of a method. Each lies as a whole in one of the regions, or outside.
    pub(crate) fn of(code: &Code<'_>, scan: &Scan, regions: &[Ranges]) -> Blocks {
        let mut leaders: Vec<u32> = regions.iter().flatten().flat_map(|(start, end)| [*start, *end]).collect();
        let mut backwards: Vec<u32> = Vec::new();
        let mut begins_again = false;
        for branch in &scan.branches {
            // One that goes to where no instruction begins is refused elsewhere.
            for target in branch.jumps(code.bytes).filter_map(|(_, target)| u32::try_from(target).ok()) {
                leaders.push(target);
                begins_again |= target == 0;
                if target <= branch.offset {
                    backwards.push(branch.offset);
                }
            }
        }
        for range in code.exceptions() {
            leaders.push(range.handler);
            begins_again |= range.handler == 0;
            if range.handler < range.end {
                backwards.push(range.handler);
            }
        }
        leaders.sort_unstable();
        let mut leaders = leaders.into_iter().peekable();
        let mut blocks: Vec<(u32, u32)> = Vec::new();
        let mut ended = true;
        for instruction in instructions::all(code.bytes) {
            let mut begins = ended;
            while leaders.next_if(|leader| *leader <= instruction.offset).is_some() {
                begins = true;
            }
            match blocks.last_mut() {
                Some((_, length)) if !begins => *length += 1,
                _ => blocks.push((instruction.offset, 1)),
            }
            if instruction.is_ret(code.bytes) {
                backwards.push(instruction.offset);
            }
            ended = ends_block(&instruction, code.bytes);
        }
        backwards.sort_unstable();
        backwards.dedup();
        Blocks { blocks, backwards, begins_again }
    }

    /// What every call of the method executes, if that is always the same.
    pub(crate) fn constant(&self) -> Option<u32> {
        match self.blocks[..] {
            [(_, length)] if !self.begins_again => Some(length),
            _ => None,
        }
    }

    /// The length of the first block, if only the method's entry leads to it.
    pub(crate) fn first(&self) -> Option<u32> {
        self.blocks.first().filter(|_| !self.begins_again).map(|(_, length)| *length)
    }
}

/// Whether control goes on elsewhere, or may: by an exception, as far as another method's code throws it.
fn ends_block(instruction: &Instruction, code: &[u8]) -> bool {
    let branches = instruction.is_switch() || instruction.is_short_branch() || instruction.is_wide_branch();
    branches
        || matches!(instruction.opcode, IRETURN..=RETURN | ATHROW | INVOKEVIRTUAL..=INVOKEDYNAMIC)
        || instruction.is_ret(code)
}

/// Local variables that count for a region.
#[derive(Clone, Debug)]
pub(crate) struct Counter {
    pub(crate) ranges: Ranges,
    int: u16,
    /// Only where control goes backwards.
    long: Option<u16>,
}

impl Counter {
    pub(crate) fn new(ranges: Ranges, int: u16, long: Option<u16>) -> Counter {
        Counter { ranges, int, long }
    }

    /// In bytes of code.
    pub(crate) fn size(&self) -> u32 {
        self.ranges.iter().map(|(start, end)| end - start).sum()
    }

    pub(crate) fn contains(&self, offset: u32) -> bool {
        self.ranges.iter().any(|(start, end)| (*start..*end).contains(&offset))
    }

    /// Lets it begin, with what `push` pushes.
    pub(crate) fn begin(&self, push: &[u8]) -> Vec<u8> {
        let mut bytes = push.to_vec();
        bytes.extend(with_local(ISTORE, self.int));
        if let Some(long) = self.long {
            bytes.push(LCONST_0);
            bytes.extend(with_local(LSTORE, long));
        }
        bytes
    }

    /// Adds so many instructions.
    pub(crate) fn add(&self, instructions: u32) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut left = instructions;
        while left > 0 {
            match (u8::try_from(self.int), i8::try_from(left)) {
                (Ok(local), Ok(few)) => {
                    bytes.extend([IINC, local, few as u8]);
                    left = 0;
                }
                _ => {
                    let some = left.min(i16::MAX as u32) as u16;
                    bytes.extend([WIDE, IINC]);
                    bytes.extend(self.int.to_be_bytes());
                    bytes.extend(some.to_be_bytes());
                    left -= u32::from(some);
                }
            }
        }
        bytes
    }

    /// Pushes the sum, a long. Takes four slots of the operand stack.
    pub(crate) fn sum(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let Some(long) = self.long {
            bytes.extend(with_local(LLOAD, long));
        }
        bytes.extend(with_local(ILOAD, self.int));
        bytes.push(I2L);
        if self.long.is_some() {
            bytes.push(LADD);
        }
        bytes
    }

    /// Adds the int to the long.
    pub(crate) fn go_on(&self) -> Vec<u8> {
        let Some(long) = self.long else { return Vec::new() };
        [self.sum(), with_local(LSTORE, long), vec![ICONST_0], with_local(ISTORE, self.int)].concat()
    }
}
