//! The ways into and out of regions, and the probes on them: from the instruction above, by a jump, a return or an exception.
//!
//! Probes on the way of a jump or an exception stand in blocks behind the code, which go on to where control was going.
//! What no handler of the method catches is rethrown from such a block, too. In a constructor a block says whether `this` is
//! constructed.

use std::collections::HashMap;

use crate::Refusal;
use crate::code::Code;
use crate::constructor::{Phase, PhaseFrom};
use crate::instructions::{self, Scan};
use crate::layout::{Block, Insertion, Piece, Plan, Then};
use crate::regions::{Chain, Chains};

/// Where exceptions of a range go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    /// As before, to an offset of the old code.
    Old(u32),
    /// To a block of the tail.
    Block(usize),
}

/// A row of the new exception table, by old offsets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) handler: Handler,
    pub(crate) catch_type: u16,
}

/// The types at the beginning of a block of the tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockTypes {
    /// Those of an exception handler of ours.
    Handler(Phase),
    /// As at an offset of the old code, where the block goes on.
    Old(u32),
}

/// The order of what is inserted before an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Slot {
    /// Belongs to the instruction above.
    Behind,
    /// On the way from the instruction above, or into the method.
    Fall,
    /// On every way to the instruction.
    All,
    /// Counts what is executed from here on.
    Count,
    /// Part of a return.
    Return,
}

/// The ways of a method, found one after the other.
pub(crate) struct Paths<'p> {
    pub(crate) code: &'p Code<'p>,
    pub(crate) scan: &'p Scan,
    pub(crate) chains: &'p Chains<'p>,
    pub(crate) phases: &'p [PhaseFrom],
    pub(crate) plan: &'p mut Plan,
    /// What is inserted, in any order.
    pub(crate) pieces: Vec<(u32, Slot, Piece)>,
    pub(crate) rows: Vec<Row>,
    /// The first new row of each old one, where regions divide them.
    pub(crate) moved_rows: Vec<u16>,
    /// Of each block of the plan's tail.
    pub(crate) types: Vec<BlockTypes>,
    /// Blocks that go on to a place: from which chain, whether by an exception, and where.
    detours: HashMap<(Chain, bool, u32), usize>,
    /// Blocks that rethrow.
    rethrows: HashMap<(Chain, Phase), usize>,
}

impl<'p> Paths<'p> {
    pub(crate) fn new(
        code: &'p Code<'p>,
        scan: &'p Scan,
        chains: &'p Chains<'p>,
        phases: &'p [PhaseFrom],
        plan: &'p mut Plan,
    ) -> Paths<'p> {
        Paths {
            code,
            scan,
            chains,
            phases,
            plan,
            pieces: Vec::new(),
            rows: Vec::new(),
            moved_rows: Vec::new(),
            types: Vec::new(),
            detours: HashMap::new(),
            rethrows: HashMap::new(),
        }
    }

    /// Finds them all. `pieces` may hold other insertions before.
    pub(crate) fn find(&mut self) -> Result<(), Refusal> {
        self.entry_and_returns();
        if !self.chains.is_uniform(self.code.len()) {
            self.jumps_and_falls()?;
        }
        self.caught()?;
        self.uncaught()?;
        if self.rows.len() > usize::from(u16::MAX) {
            return Err(Refusal::ExceptionTableFull);
        }
        self.insert();
        Ok(())
    }

    /// The probes on the way from one chain to another, in the plan's arena.
    fn transition(&mut self, from: Chain, to: Chain, thrown: bool) -> Piece {
        let mut probes = self.chains.probes(from, to, thrown);
        let (first, second) = (probes.next(), probes.next());
        match (first, second) {
            (None, _) => 0..0,
            (Some(only), None) => only.clone(),
            (Some(first), Some(second)) => {
                let start = self.plan.arena.len() as u32;
                for piece in [first, second].into_iter().chain(probes) {
                    self.plan.arena.extend_from_within(piece.start as usize..piece.end as usize);
                }
                start..self.plan.arena.len() as u32
            }
        }
    }

    fn put(&mut self, before: u32, slot: Slot, piece: Piece) {
        if !piece.is_empty() {
            self.pieces.push((before, slot, piece));
        }
    }

    fn entry_and_returns(&mut self) {
        let entry = self.transition(0, self.chains.at(0), false);
        self.put(0, Slot::Fall, entry);
        let mut last: Option<(Chain, Piece)> = None;
        for &offset in &self.scan.returns {
            let chain = self.chains.at(offset);
            let piece = match &last {
                Some((known, piece)) if *known == chain => piece.clone(),
                _ => self.transition(chain, 0, false),
            };
            last = Some((chain, piece.clone()));
            self.put(offset, Slot::Return, piece);
        }
    }

    /// Jumps between chains, and the edges of regions that control runs over.
    fn jumps_and_falls(&mut self) -> Result<(), Refusal> {
        let code = self.code;
        // Target, from which chain, the jump's offset; falling from above is a way with no jump.
        let mut ways: Vec<(u32, Chain, Option<u32>)> = vec![(0, 0, None)];
        for branch in &self.scan.branches {
            let from = self.chains.at(branch.offset);
            for (at, target) in branch.jumps(code.bytes) {
                let target = self.scan.jump(target, code.len(), code.base + at)?;
                ways.push((target, from, Some(branch.offset)));
            }
        }
        let jumped: Vec<u32> = ways.iter().map(|(target, ..)| *target).collect();
        let mut wanted: Vec<u32> = jumped.into_iter().chain(self.chains.changes(0, code.len())).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut wanted = wanted.into_iter().peekable();
        for instruction in instructions::all(code.bytes) {
            while wanted.next_if(|offset| *offset < instruction.end()).is_some() {}
            if wanted.peek() == Some(&instruction.end()) && instruction.falls_through(code.bytes) {
                ways.push((instruction.end(), self.chains.at(instruction.offset), None));
            }
        }
        ways.sort_unstable();
        ways.dedup();
        let mut handlers: Vec<u32> = code.exceptions().map(|range| range.handler).collect();
        handlers.sort_unstable();
        for ways in ways.chunk_by(|one, other| one.0 == other.0) {
            let (target, first, _) = ways[0];
            let chain = self.chains.at(target);
            let same = ways.iter().all(|(_, from, _)| *from == first);
            if same && target != 0 && handlers.binary_search(&target).is_err() {
                let piece = self.transition(first, chain, false);
                self.put(target, Slot::All, piece);
                continue;
            }
            for &(_, from, jump) in ways.iter().filter(|(_, from, _)| *from != chain) {
                match jump {
                    // That is the method's entry.
                    None if target == 0 => {}
                    None => {
                        let piece = self.transition(from, chain, false);
                        self.put(target, Slot::Fall, piece);
                    }
                    Some(jump) => {
                        let block = self.detour(from, target, false);
                        self.plan.redirected.push(((jump, target), block));
                    }
                }
            }
        }
        self.plan.redirected.sort_unstable();
        Ok(())
    }

    /// The block with the probes on the way from a chain to a place.
    fn detour(&mut self, from: Chain, target: u32, thrown: bool) -> usize {
        if let Some(block) = self.detours.get(&(from, thrown, target)) {
            return *block;
        }
        let bytes = self.transition(from, self.chains.at(target), thrown);
        let block = self.block(bytes, Then::Goto(target), BlockTypes::Old(target));
        self.detours.insert((from, thrown, target), block);
        block
    }

    fn block(&mut self, bytes: Piece, then: Then, types: BlockTypes) -> usize {
        self.plan.tail.push(Block { bytes, then });
        self.types.push(types);
        self.plan.tail.len() - 1
    }

    /// The old exception table: where an exception goes from one chain to another, it takes a detour.
    fn caught(&mut self) -> Result<(), Refusal> {
        let code = self.code;
        let uniform = self.chains.is_uniform(code.len());
        for range in code.exceptions() {
            if !uniform {
                self.moved_rows.push(self.rows.len() as u16);
            }
            let chain = self.chains.at(range.handler);
            let mut start = range.start;
            let ends: Vec<u32> = self.chains.changes(range.start, range.end).chain([range.end]).collect();
            for end in ends {
                let from = self.chains.at(start);
                let handler = if from == chain {
                    Handler::Old(range.handler)
                } else {
                    Handler::Block(self.detour(from, range.handler, true))
                };
                self.rows.push(Row { start, end, handler, catch_type: range.catch_type });
                start = end;
            }
            if self.rows.len() > usize::from(u16::MAX) {
                return Err(Refusal::ExceptionTableFull);
            }
        }
        Ok(())
    }

    /// What leaves the method by an exception leaves its regions. Returns and the probes before them are left out:
    /// whatever they throw, a region is left once.
    fn uncaught(&mut self) -> Result<(), Refusal> {
        let length = self.code.len();
        let changes = self.chains.changes(0, length);
        let mut cuts: Vec<u32> = changes.chain(self.phases.iter().map(|(from, _)| *from)).collect();
        for &offset in &self.scan.returns {
            cuts.extend([offset, offset + 1]);
        }
        cuts.extend([0, length]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut phase = 0;
        let mut returns = self.scan.returns.iter().peekable();
        for pair in cuts.windows(2) {
            let (start, end) = (pair[0], pair[1]);
            while self.phases.get(phase + 1).is_some_and(|(from, _)| *from <= start) {
                phase += 1;
            }
            if returns.next_if_eq(&&start).is_some() {
                continue;
            }
            let (chain, phase) = (self.chains.at(start), self.phases[phase].1);
            if chain == 0 || phase == Phase::Unprotected {
                continue;
            }
            let block = self.rethrow(chain, phase);
            self.rows.push(Row { start, end, handler: Handler::Block(block), catch_type: 0 });
        }
        Ok(())
    }

    fn rethrow(&mut self, chain: Chain, phase: Phase) -> usize {
        if let Some(block) = self.rethrows.get(&(chain, phase)) {
            return *block;
        }
        let bytes = self.transition(chain, 0, true);
        let block = self.block(bytes, Then::Throw, BlockTypes::Handler(phase));
        self.rethrows.insert((chain, phase), block);
        block
    }

    /// One insertion an offset.
    fn insert(&mut self) {
        self.pieces.sort_by_key(|(before, slot, _)| (*before, *slot));
        let pieces = std::mem::take(&mut self.pieces);
        for pieces in pieces.chunk_by(|one, other| one.0 == other.0) {
            let split = pieces.partition_point(|(_, slot, _)| *slot < Slot::All);
            let (fall, all) = (self.join(&pieces[..split]), self.join(&pieces[split..]));
            self.plan.insertions.push(Insertion { before: pieces[0].0, fall, all });
        }
        self.pieces = pieces;
    }

    fn join(&mut self, pieces: &[(u32, Slot, Piece)]) -> Piece {
        match pieces {
            [] => 0..0,
            [(_, _, only)] => only.clone(),
            _ => {
                let start = self.plan.arena.len() as u32;
                for (_, _, piece) in pieces {
                    self.plan.arena.extend_from_within(piece.start as usize..piece.end as usize);
                }
                start..self.plan.arena.len() as u32
            }
        }
    }
}
