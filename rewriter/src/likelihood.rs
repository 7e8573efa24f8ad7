//! How likely an instruction runs when its method does, by the shape of the code alone.

use std::collections::HashMap;

use crate::code::Code;
use crate::instructions::{IRETURN, Instruction, JSR, JSR_W, RETURN};

/// Whether an instruction runs when its method does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Likelihood {
    /// Only where an exception is thrown or caught: all ways from it end in a throw, or all ways to it begin at a handler.
    Rare,
    /// There are ways around it.
    Possible,
    /// No branch leads around it, and no return comes before it.
    Certain,
}

/// The likelihoods of a method's instructions; of others all are possible.
#[derive(Default)]
pub(crate) struct Likelihoods {
    /// In the order of the code, with their offsets.
    instructions: Vec<(u32, Likelihood)>,
}

impl Likelihoods {
    /// Takes a pass over the code in each direction, and one along its jumps.
    pub(crate) fn of(code: &Code<'_>) -> Likelihoods {
        let instructions: Vec<Instruction> = code.instructions().collect();
        let index: HashMap<u32, usize> = instructions.iter().enumerate().map(|(i, it)| (it.offset, i)).collect();
        // A jump to where no instruction begins is the verifier's to refuse.
        let targets = |instruction: &Instruction| -> Vec<usize> {
            if !instruction.is_switch() && !instruction.is_short_branch() && !instruction.is_wide_branch() {
                return Vec::new();
            }
            let places = instruction.jumps(code.bytes).filter_map(|(_, target)| u32::try_from(target).ok());
            places.filter_map(|target| index.get(&target).copied()).collect()
        };
        let returns = |it: &Instruction| matches!(it.opcode, IRETURN..=RETURN);
        let falls = |it: &Instruction| it.falls_through(code.bytes);

        let mut reached = vec![false; instructions.len()];
        let mut pending = vec![0];
        while let Some(at) = pending.pop() {
            if at >= instructions.len() || std::mem::replace(&mut reached[at], true) {
                continue;
            }
            pending.extend(targets(&instructions[at]));
            if falls(&instructions[at]) {
                pending.push(at + 1);
            }
        }
        // A loop may be where a method stays: a way back is as good as a return. So only ways forward are left to follow.
        let mut ends = vec![false; instructions.len()];
        for (at, it) in instructions.iter().enumerate().rev() {
            ends[at] = returns(it)
                || it.is_ret(code.bytes)
                || matches!(it.opcode, JSR | JSR_W)
                || falls(it) && ends.get(at + 1).is_some_and(|ends| *ends)
                || targets(it).into_iter().any(|target| target <= at || ends[target]);
        }
        let (mut around, mut returned) = (0, false);
        let mut found = Vec::with_capacity(instructions.len());
        for (at, it) in instructions.iter().enumerate() {
            let likelihood = match () {
                () if !reached[at] || !ends[at] => Likelihood::Rare,
                () if returned || at < around => Likelihood::Possible,
                () => Likelihood::Certain,
            };
            found.push((it.offset, likelihood));
            returned |= returns(it);
            around = targets(it).into_iter().fold(around, usize::max);
        }
        Likelihoods { instructions: found }
    }

    /// That of the instruction at an offset.
    pub(crate) fn at(&self, offset: u32) -> Likelihood {
        let found = self.instructions.binary_search_by_key(&offset, |(offset, _)| *offset);
        found.map_or(Likelihood::Possible, |index| self.instructions[index].1)
    }
}
