//! Inserting instructions into a method's code: where everything stands afterwards, and the new code itself.
//!
//! Knows nothing of what is inserted. A [`Plan`] says which bytes come before which instruction, which jumps take another
//! way, and what is appended; a [`Layout`] finds the new places, widening branches that grow too long, and writes the code.

use std::ops::Range;

use crate::code::Code;
use crate::instructions::{ATHROW, GOTO, GOTO_W, IFNULL, Instruction, JSR, Scan};
use crate::{Error, Refusal};

/// The farthest a 16-bit branch goes forward.
const REACH: u32 = 32_767;
/// The most code that a method can have (JVMS 4.7.3).
const MAX_CODE: u32 = 65_535;

/// Bytes in a plan's arena.
pub(crate) type Piece = Range<u32>;

/// Bytes to be put before the instruction at an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Insertion {
    pub(crate) before: u32,
    /// Only control that comes from the instruction above, or into the method, runs through these.
    pub(crate) fall: Piece,
    /// All control runs through these, which come after the former.
    pub(crate) all: Piece,
}

/// How a block of the tail ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// Rethrows what is on the stack.
    Throw,
    /// Goes on where control would have gone: an offset of the old code.
    Goto(u32),
}

/// Appended to the code: reached by redirected jumps, or by exceptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) bytes: Piece,
    pub(crate) then: Then,
}

/// What is to be done to a method's code.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(crate) arena: Vec<u8>,
    /// In the order of their offsets, one an offset at most.
    pub(crate) insertions: Vec<Insertion>,
    /// In order: the jump's offset and its old target, and the block it goes to instead.
    pub(crate) redirected: Vec<((u32, u32), usize)>,
    pub(crate) tail: Vec<Block>,
    /// Local variables that what is inserted uses, behind those of the method.
    pub(crate) locals: u16,
    /// What the first of them hold from the method's entry on.
    pub(crate) held: Vec<Held>,
}

/// What a local variable of ours holds all through a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// A call's token.
    Object,
    /// Executed instructions, since they were last added to the `Long` behind it, if there is one.
    Int,
    /// All executed instructions but those; two slots.
    Long,
}

impl Held {
    pub(crate) fn slots(self) -> u16 {
        if self == Held::Long { 2 } else { 1 }
    }
}

impl Plan {
    pub(crate) fn clear(&mut self) {
        self.locals = 0;
        self.held.clear();
        self.arena.clear();
        self.insertions.clear();
        self.redirected.clear();
        self.tail.clear();
    }

    /// How many local variables [`held`](Plan::held) is.
    pub(crate) fn held_slots(&self) -> u16 {
        self.held.iter().map(|held| held.slots()).sum()
    }

    pub(crate) fn piece(&self, piece: &Piece) -> &[u8] {
        &self.arena[piece.start as usize..piece.end as usize]
    }

    fn redirect(&self, jump: u32, target: u32) -> Option<usize> {
        if self.redirected.is_empty() {
            return None;
        }
        let found = self.redirected.binary_search_by_key(&(jump, target), |(edge, _)| *edge);
        found.ok().map(|index| self.redirected[index].1)
    }
}

/// An old offset at which something changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shift {
    old: u32,
    /// Where what is inserted before it begins.
    before: u32,
    /// Where jumps to it go.
    target: u32,
    /// Where the instruction itself stands.
    place: u32,
    /// What is added to the offsets behind it, up to the next shift.
    delta: u32,
}

/// New places for old offsets.
#[derive(Debug)]
pub(crate) struct Layout<'p> {
    scan: &'p Scan,
    plan: &'p Plan,
    shifts: Vec<Shift>,
    /// Whether each branch of the scan is widened; empty when none is.
    widened: Vec<bool>,
    /// Where each block of the tail begins, and where the last one ends.
    blocks: Vec<u32>,
    /// The tail's gotos have 32-bit offsets.
    wide_tail: bool,
    old_length: u32,
}

impl<'p> Layout<'p> {
    /// Finds a place for everything; `shifts` is room to work in.
    pub(crate) fn new(
        code: &Code<'_>,
        scan: &'p Scan,
        plan: &'p Plan,
        shifts: Vec<Shift>,
    ) -> Result<Layout<'p>, Refusal> {
        let old_length = code.len();
        let mut layout =
            Layout { scan, plan, shifts, widened: Vec::new(), blocks: Vec::new(), wide_tail: false, old_length };
        layout.lay_out();
        let mut round = 0;
        while layout.length() > REACH && !(plan.insertions.is_empty() && plan.tail.is_empty()) {
            if !layout.widen(code, round)? {
                break;
            }
            layout.lay_out();
            round += 1;
        }
        if layout.length() > MAX_CODE { Err(Refusal::CodeTooLarge) } else { Ok(layout) }
    }

    /// What every frame has behind the method's own local variables.
    pub(crate) fn held(&self) -> &'p [Held] {
        &self.plan.held
    }

    /// Room that can be used again.
    pub(crate) fn into_shifts(self) -> Vec<Shift> {
        self.shifts
    }

    fn lay_out(&mut self) {
        self.shifts.clear();
        let mut delta = 0;
        for (old, insertion, branch) in events(self.plan, self.scan) {
            let (fall, all) = insertion.map_or((0, 0), |insertion| (insertion.fall.len(), insertion.all.len()));
            let before = old + delta;
            let target = before + fall as u32;
            let place = target + all as u32;
            let growth = branch.map_or(0, |index| self.growth(index, place));
            delta = (place - old).wrapping_add_signed(growth);
            if insertion.is_some() || growth != 0 {
                self.shifts.push(Shift { old, before, target, place, delta });
            }
        }
        let end = self.old_length + delta;
        let tail = |goto: u32| self.plan.tail.iter().map(move |block| block.length(goto)).sum::<u32>();
        self.wide_tail = end + tail(5) > REACH;
        let goto = if self.wide_tail { 5 } else { 3 };
        self.blocks.clear();
        let mut at = end;
        self.blocks.push(at);
        for block in &self.plan.tail {
            at += block.length(goto);
            self.blocks.push(at);
        }
    }

    fn is_widened(&self, branch: usize) -> bool {
        self.widened.get(branch) == Some(&true)
    }

    /// How much longer a branch or switch is at its new place.
    fn growth(&self, branch: usize, place: u32) -> i32 {
        let instruction = &self.scan.branches[branch];
        if instruction.is_switch() {
            let padding = |offset: u32| (!offset & 3) as i32;
            padding(place) - padding(instruction.offset)
        } else if !self.is_widened(branch) {
            0
        } else if instruction.is_conditional() {
            5
        } else {
            2
        }
    }

    /// Widens the branches that have grown too long; whether there were any. So that the rounds end soon whatever the
    /// code, later ones widen what is nearly too long, too.
    fn widen(&mut self, code: &Code<'_>, round: u32) -> Result<bool, Error> {
        let comfortable = match round {
            0..8 => i64::from(REACH),
            8..12 => i64::from(REACH) / 2,
            12..16 => i64::from(REACH) / 16,
            _ => 0,
        };
        self.widened.resize(self.scan.branches.len(), false);
        let mut distances = Vec::new();
        for (index, instruction) in self.scan.branches.iter().enumerate() {
            if !self.widened[index] && instruction.is_short_branch() {
                distances.push((index, self.distance(code, instruction)?));
            }
        }
        let too_long = |distance: i64| i16::try_from(distance).is_err();
        if !distances.iter().any(|(_, distance)| too_long(*distance)) {
            return Ok(false);
        }
        for (index, distance) in distances {
            self.widened[index] = too_long(distance) || distance.abs() > comfortable;
        }
        Ok(true)
    }

    /// From where a branch stands now to where it goes now.
    fn distance(&self, code: &Code<'_>, branch: &Instruction) -> Result<i64, Error> {
        let at = code.base + branch.offset as usize;
        let target = self.scan.jump(branch.branch_target(code.bytes), self.old_length, at)?;
        Ok(i64::from(self.destination(branch.offset, target)) - i64::from(self.place(branch.offset)))
    }

    /// Where a jump to `target` goes now.
    fn destination(&self, jump: u32, target: u32) -> u32 {
        match self.plan.redirect(jump, target) {
            Some(block) => self.blocks[block],
            None => self.target(target),
        }
    }

    fn find(&self, old: u32) -> Result<&Shift, u32> {
        let behind = self.shifts.partition_point(|shift| shift.old <= old);
        match behind.checked_sub(1).map(|index| &self.shifts[index]) {
            Some(shift) if shift.old == old => Ok(shift),
            Some(shift) => Err(old + shift.delta),
            None => Err(old),
        }
    }

    /// Where what is inserted before an old offset begins.
    pub(crate) fn before(&self, old: u32) -> u32 {
        self.find(old).map_or_else(|new| new, |shift| shift.before)
    }

    /// Where control that went to an old offset goes now.
    pub(crate) fn target(&self, old: u32) -> u32 {
        self.find(old).map_or_else(|new| new, |shift| shift.target)
    }

    /// Where the instruction that stood at an old offset stands now.
    pub(crate) fn place(&self, old: u32) -> u32 {
        self.find(old).map_or_else(|new| new, |shift| shift.place)
    }

    /// As [`target`](Layout::target), of an offset that `at` names and that must be an instruction's.
    pub(crate) fn checked_target(&self, old: u32, at: usize) -> Result<u32, Error> {
        self.check(old, at).map(|()| self.target(old))
    }

    /// As [`place`](Layout::place), of an offset that `at` names and that must be an instruction's.
    pub(crate) fn checked_place(&self, old: u32, at: usize) -> Result<u32, Error> {
        self.check(old, at).map(|()| self.place(old))
    }

    fn check(&self, old: u32, at: usize) -> Result<(), Error> {
        let sound = old < self.old_length && self.scan.is_boundary(old);
        if sound { Ok(()) } else { Err(Error::new(at, "the offset of an instruction")) }
    }

    /// Offsets in tables for debuggers, which no JVM checks: beyond the code they stay what they are.
    pub(crate) fn debug_target(&self, old: u32) -> u32 {
        if old > self.old_length { old } else { self.target(old) }
    }

    /// The instruction that such a table names.
    pub(crate) fn debug_place(&self, old: u32) -> u32 {
        if old > self.old_length { old } else { self.place(old) }
    }

    /// The beginning of a range in such a table: ranges from the method's start keep it.
    pub(crate) fn debug_start(&self, old: u32) -> u32 {
        if old == 0 { 0 } else { self.debug_target(old) }
    }

    /// Where the new code ends.
    pub(crate) fn length(&self) -> u32 {
        self.blocks.last().copied().unwrap_or(self.old_length)
    }

    /// Where a block of the tail begins.
    pub(crate) fn block(&self, index: usize) -> u32 {
        self.blocks[index]
    }

    /// The conditional branches that are now an inverted one around a `goto_w`: the instruction behind each has become
    /// the target of a branch.
    pub(crate) fn inverted(&self) -> impl Iterator<Item = &Instruction> {
        let branches = self.scan.branches.iter().zip(&self.widened);
        branches.filter(|(branch, widened)| **widened && branch.is_conditional()).map(|(branch, _)| branch)
    }

    /// Writes the new code to the end of `out`.
    pub(crate) fn emit(&self, code: &Code<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
        let start = out.len();
        out.reserve(self.length() as usize);
        let mut copied = 0;
        for (old, insertion, branch) in events(self.plan, self.scan) {
            out.extend_from_slice(&code.bytes[copied..old as usize]);
            copied = old as usize;
            if let Some(insertion) = insertion {
                out.extend_from_slice(self.plan.piece(&insertion.fall));
                out.extend_from_slice(self.plan.piece(&insertion.all));
            }
            if let Some(index) = branch {
                let instruction = &self.scan.branches[index];
                copied = instruction.end() as usize;
                if instruction.is_switch() {
                    self.emit_switch(code, instruction, start, out)?;
                } else {
                    self.emit_branch(code, index, out)?;
                }
            }
        }
        out.extend_from_slice(&code.bytes[copied..]);
        for (index, block) in self.plan.tail.iter().enumerate() {
            out.extend_from_slice(self.plan.piece(&block.bytes));
            match block.then {
                Then::Throw => out.push(ATHROW),
                Then::Goto(target) => {
                    let distance = self.target(target) as i32 - (self.blocks[index] + block.bytes.len() as u32) as i32;
                    if self.wide_tail {
                        out.push(GOTO_W);
                        out.extend(distance.to_be_bytes());
                    } else {
                        out.push(GOTO);
                        out.extend((distance as i16).to_be_bytes());
                    }
                }
            }
        }
        Ok(())
    }

    fn emit_branch(&self, code: &Code<'_>, index: usize, out: &mut Vec<u8>) -> Result<(), Error> {
        let instruction = &self.scan.branches[index];
        let distance = self.distance(code, instruction)? as i32;
        if instruction.is_wide_branch() {
            out.push(instruction.opcode);
            out.extend(distance.to_be_bytes());
        } else if !self.is_widened(index) {
            out.push(instruction.opcode);
            out.extend((distance as i16).to_be_bytes());
        } else if matches!(instruction.opcode, GOTO | JSR) {
            // goto_w and jsr_w follow goto and jsr at the same distance.
            out.push(instruction.opcode + (GOTO_W - GOTO));
            out.extend(distance.to_be_bytes());
        } else {
            const BRANCH: i32 = 3;
            const GOTO_W_LENGTH: u8 = 5;
            out.extend([inverse(instruction.opcode), 0, BRANCH as u8 + GOTO_W_LENGTH, GOTO_W]);
            out.extend((distance - BRANCH).to_be_bytes());
        }
        Ok(())
    }

    fn emit_switch(
        &self,
        code: &Code<'_>,
        instruction: &Instruction,
        start: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let (old, operands) = (instruction.offset as usize, instruction.switch_operands());
        let place = out.len() - start;
        out.push(instruction.opcode);
        let padding = !place & 3;
        // Where nothing moved, the padding, which nobody reads, stays what it was.
        match code.bytes.get(old + 1..operands).filter(|old_padding| old_padding.len() == padding) {
            Some(old_padding) => out.extend_from_slice(old_padding),
            None => out.resize(out.len() + padding, 0),
        }
        let copied = out.len();
        out.extend_from_slice(&code.bytes[operands..instruction.end() as usize]);
        for (at, target) in instruction.jumps(code.bytes) {
            let target = self.scan.jump(target, self.old_length, code.base + at)?;
            let distance = i64::from(self.destination(instruction.offset, target)) - place as i64;
            let word = copied + (at - operands);
            out[word..word + 4].copy_from_slice(&(distance as i32).to_be_bytes());
        }
        Ok(())
    }
}

impl Block {
    fn length(&self, goto: u32) -> u32 {
        self.bytes.len() as u32 + if self.then == Then::Throw { 1 } else { goto }
    }
}

/// Insertions and branches in the order of the code: the offset, and what is there; branches by their index in the scan.
fn events<'p>(plan: &'p Plan, scan: &'p Scan) -> impl Iterator<Item = (u32, Option<&'p Insertion>, Option<usize>)> {
    let mut insertions = plan.insertions.iter().peekable();
    let mut branches = scan.branches.iter().enumerate().peekable();
    std::iter::from_fn(move || {
        let insertion = insertions.peek().map(|insertion| insertion.before);
        let branch = branches.peek().map(|(_, branch)| branch.offset);
        let at = match (insertion, branch) {
            (Some(insertion), Some(branch)) => insertion.min(branch),
            (one, other) => one.or(other)?,
        };
        let insertion = insertions.next_if(|insertion| insertion.before == at);
        let branch = branches.next_if(|(_, branch)| branch.offset == at);
        Some((at, insertion, branch.map(|(index, _)| index)))
    })
}

/// The conditional branch that is taken when this one is not.
fn inverse(opcode: u8) -> u8 {
    // ifeq and ifne, iflt and ifge, ... are neighbours, the first odd; ifnull and ifnonnull, the first even.
    if opcode < IFNULL { ((opcode + 1) ^ 1) - 1 } else { opcode ^ 1 }
}
