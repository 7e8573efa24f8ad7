//! Finding in a method's code what is to be probed: the instructions of regions, and what is told beside these. Allocations are in
//! [`crate::allocations`].

use std::collections::BTreeMap;

use crate::Refusal;
use crate::constant_pool::Appended;
use crate::executed::{Blocks, Counter, Ranges};
use crate::instructions::{
    self, ACONST_NULL, ALOAD, ASTORE, DUP, DUP2, I2L, ICONST_0, ILOAD, INVOKEDYNAMIC, INVOKEINTERFACE, INVOKEVIRTUAL,
    ISTORE, POP, with_local,
};
use crate::layout::{Held, Piece, Plan};
use crate::paths::Slot;
use crate::probes::{Caller, Instructions, Probe, ProbeSite, Push, Request};
use crate::regions::Region;
use crate::types::{self, Type};
use crate::walk::Walk;

/// What pushes the number of instructions that a region has executed, and what lets it begin anew.
type Executed = (Vec<u8>, Vec<u8>);

/// Which request is to blame, if one is, and why.
pub(crate) type Failure = (Option<usize>, Refusal);

/// Finds the places that are asked for in a method.
pub(crate) struct Places<'w, 'c, 'a, 'p> {
    pub(crate) walk: Walk<'w, 'a>,
    pub(crate) caller: &'c mut Caller<'p>,
    pub(crate) appended: &'c mut Appended,
    pub(crate) plan: &'c mut Plan,
    /// Where instructions are counted, if they are.
    blocks: Option<Blocks>,
    /// Of what they are counted for.
    counters: Vec<Counter>,
}

/// What is inserted: before which instruction, in what order there.
pub(crate) type Pieces = Vec<(u32, Slot, Piece)>;

impl<'w, 'c, 'a, 'p> Places<'w, 'c, 'a, 'p> {
    pub(crate) fn new(
        walk: Walk<'w, 'a>,
        caller: &'c mut Caller<'p>,
        appended: &'c mut Appended,
        plan: &'c mut Plan,
    ) -> Places<'w, 'c, 'a, 'p> {
        Places { walk, caller, appended, plan, blocks: None, counters: Vec::new() }
    }

    /// Whether there are instructions that count.
    pub(crate) fn counts(&self) -> bool {
        self.blocks.is_some()
    }

    /// Regions, and what is inserted beside their probes.
    pub(crate) fn find(&mut self, requests: &[Request]) -> Result<(Vec<Region>, Pieces), Failure> {
        let mut regions: Vec<Region> = Vec::new();
        let mut lines = 0;
        let mut pieces = Pieces::new();
        self.find_blocks(requests)?;
        for (index, request) in requests.iter().enumerate() {
            let ranges = match request.place {
                ProbeSite::Method => Ok(vec![(0, self.walk.code.len())]),
                ProbeSite::Lines { first, last } => self.lines(first, last),
                ProbeSite::Call { offset } => self.call(offset),
                ProbeSite::Allocation { offset } => {
                    let piece = self.allocation(offset, request.id).map_err(|why| (Some(index), why))?;
                    pieces.push(piece);
                    continue;
                }
                ProbeSite::Before { offset } => {
                    let piece = self.before(offset, request.id).map_err(|why| (Some(index), why))?;
                    pieces.push((offset, Slot::All, piece));
                    continue;
                }
                ProbeSite::Receiver { offset } => {
                    let piece = self.receiver(offset, request.id).map_err(|why| (Some(index), why))?;
                    pieces.push((offset, Slot::All, piece));
                    continue;
                }
                ProbeSite::Around { call: Some(offset), .. } | ProbeSite::Wait { call: Some(offset) } => {
                    self.call(offset)
                }
                ProbeSite::Around { call: None, .. } | ProbeSite::Wait { call: None } | ProbeSite::Constructed => {
                    Ok(vec![(0, self.walk.code.len())])
                }
                ProbeSite::FirstArgument | ProbeSite::Argument { .. } => {
                    let piece = match request.place {
                        ProbeSite::Argument { local } => self.argument(local, request.id),
                        _ => self.first_argument(request.id),
                    };
                    pieces.push((0, Slot::Fall, piece.map_err(|why| (Some(index), why))?));
                    continue;
                }
            };
            let region = ranges.and_then(|ranges| match request.place {
                ProbeSite::Around { local, .. } => self.around(ranges, local, request.id),
                ProbeSite::Wait { .. } => self.waiting(ranges, request.id),
                ProbeSite::Constructed => self.constructed(ranges, request.id),
                ProbeSite::Method => self.method(ranges, request.id),
                place => self.region(ranges, place, request.id),
            });
            let region = region.map_err(|why| (Some(index), why))?;
            if matches!(request.place, ProbeSite::Lines { .. }) {
                // Whichever comes later lies within, or there is no telling them apart.
                let nests = |other: &Region| region.nests_in(other) || other.nests_in(&region);
                if !regions[regions.len() - lines..].iter().all(nests) {
                    return Err((Some(index), Refusal::RegionsCross));
                }
                lines += 1;
            }
            regions.push(region);
        }
        pieces.extend(self.counting().map_err(|why| (None, why))?);
        if requests.iter().any(|request| request.place == ProbeSite::Method) {
            pieces.extend(self.handlers().map_err(|why| (None, why))?);
        }
        Ok((regions, pieces))
    }

    /// Where instructions are counted for these requests.
    fn find_blocks(&mut self, requests: &[Request]) -> Result<(), Failure> {
        if self.caller.instructions == Instructions::Ignored {
            return Ok(());
        }
        let mut regions: Vec<Ranges> = Vec::new();
        let mut wanted = false;
        for (index, request) in requests.iter().enumerate() {
            wanted |= request.place.has_instructions();
            if let ProbeSite::Lines { first, last } = request.place {
                regions.push(self.lines(first, last).map_err(|why| (Some(index), why))?);
            }
        }
        self.blocks = wanted.then(|| Blocks::of(self.walk.code, self.walk.scan, &regions));
        Ok(())
    }

    /// Makes room for something that is there all through the method; its local variable.
    fn hold(&mut self, what: Held) -> Result<u16, Refusal> {
        let local = self.walk.code.max_locals.checked_add(self.plan.held_slots());
        let local = local.filter(|local| local.checked_add(what.slots()).is_some()).ok_or(Refusal::LocalsFull)?;
        self.plan.held.push(what);
        self.plan.locals = self.plan.locals.max(self.plan.held_slots());
        Ok(local)
    }

    /// What tells of a region's executed instructions; nothing, if they are not counted.
    fn executed(&mut self, ranges: &Ranges) -> Result<Option<Executed>, Refusal> {
        let Some(blocks) = &self.blocks else { return Ok(None) };
        if let Some(always) = blocks.constant() {
            let push = Push::new(always, self.appended)?;
            return Ok(Some(([push.bytes(), &[I2L]].concat(), Vec::new())));
        }
        let goes_backwards = !blocks.backwards.is_empty();
        let int = self.hold(Held::Int)?;
        let long = if goes_backwards { Some(self.hold(Held::Long)?) } else { None };
        let counter = Counter::new(ranges.clone(), int, long);
        let pieces = (counter.sum(), counter.begin(&[ICONST_0]));
        self.counters.push(counter);
        Ok(Some(pieces))
    }

    /// What counts.
    fn counting(&mut self) -> Result<Pieces, Refusal> {
        let (Some(blocks), counters) = (self.blocks.take(), std::mem::take(&mut self.counters)) else {
            return Ok(Pieces::new());
        };
        let mut pieces = Pieces::new();
        // A method that nothing in it is counted apart from begins with its first block.
        let first = match counters[..] {
            [ref only] if only.size() == self.walk.code.len() => blocks.first(),
            _ => None,
        };
        for counter in &counters {
            let push = Push::new(first.unwrap_or(0), self.appended)?;
            pieces.push((0, Slot::Fall, self.piece(&counter.begin(push.bytes()))));
        }
        for &(offset, length) in blocks.blocks.iter().skip(usize::from(first.is_some())) {
            let innermost = counters.iter().filter(|it| it.contains(offset)).min_by_key(|it| it.size());
            if let Some(counter) = innermost {
                pieces.push((offset, Slot::Count, self.piece(&counter.add(length))));
            }
        }
        for &offset in &blocks.backwards {
            for counter in counters.iter().filter(|it| it.contains(offset)) {
                pieces.push((offset, Slot::Count, self.piece(&counter.go_on())));
            }
        }
        self.blocks = Some(blocks);
        Ok(pieces)
    }

    fn piece(&mut self, bytes: &[u8]) -> Piece {
        let start = self.plan.arena.len() as u32;
        self.extend(start..start, bytes)
    }

    /// The whole method: what its entry returns is kept for its exits.
    fn method(&mut self, ranges: Vec<(u32, u32)>, id: u32) -> Result<Region, Refusal> {
        let token = self.hold(Held::Object)?;
        let executed = self.executed(&ranges)?;
        let push = Push::new(id, self.appended)?;
        let seen = self.caller.exceptions().map(|_| DUP);
        let mut call =
            |probe, operand: &[u8]| self.caller.call(probe, operand, &push, self.appended, &mut self.plan.arena);
        let sum = executed.map(|(sum, _)| sum);
        let (exits, throws, throws_seen) = match sum {
            None => (Probe::Exit, Probe::Throw, Probe::ThrowSeen),
            Some(_) => (Probe::ExitCounted, Probe::ThrowCounted, Probe::ThrowSeenCounted),
        };
        let operands = [load(token), sum.unwrap_or_default()].concat();
        let exit = call(exits, &operands)?;
        let thrown = match seen {
            None => call(throws, &operands)?,
            Some(dup) => call(throws_seen, &[&[dup][..], &operands].concat())?,
        };
        let enter = call(Probe::Enter, &[])?;
        Ok(Region { ranges, enter: self.extend(enter, &store(token)), exit, thrown })
    }

    /// Part of a method, which control may enter more than once.
    fn region(&mut self, ranges: Vec<(u32, u32)>, place: ProbeSite, id: u32) -> Result<Region, Refusal> {
        let executed = if place.has_instructions() { self.executed(&ranges)? } else { None };
        let push = Push::new(id, self.appended)?;
        let mut call =
            |probe, operand: &[u8]| self.caller.call(probe, operand, &push, self.appended, &mut self.plan.arena);
        let (exit, thrown, begin) = match executed {
            None => (call(Probe::ExitRegion, &[])?, call(Probe::ThrowRegion, &[])?, Vec::new()),
            Some((sum, begin)) => {
                (call(Probe::ExitRegionCounted, &sum)?, call(Probe::ThrowRegionCounted, &sum)?, begin)
            }
        };
        let enter = call(Probe::Enter, &[])?;
        Ok(Region { ranges, enter: self.extend(enter, &[&[POP], &begin[..]].concat()), exit, thrown })
    }

    /// The piece that was made last, with more behind it.
    fn extend(&mut self, piece: Piece, more: &[u8]) -> Piece {
        self.plan.arena.extend_from_slice(more);
        piece.start..self.plan.arena.len() as u32
    }

    fn around(&mut self, ranges: Vec<(u32, u32)>, local: u16, id: u32) -> Result<Region, Refusal> {
        if self.is_unconstructed(local) || local >= self.walk.code.max_locals {
            return Err(Refusal::NoSuchPlace);
        }
        let push = Push::new(id, self.appended)?;
        let mut call =
            |probe, operand: &[u8]| self.caller.call(probe, operand, &push, self.appended, &mut self.plan.arena);
        let object = load(local);
        Ok(Region {
            ranges,
            enter: call(Probe::Begin, &object)?,
            exit: call(Probe::End, &object)?,
            // Where exceptions are caught, nothing is known of the locals.
            thrown: call(Probe::End, &[ACONST_NULL])?,
        })
    }

    fn waiting(&mut self, ranges: Vec<(u32, u32)>, id: u32) -> Result<Region, Refusal> {
        let push = Push::new(id, self.appended)?;
        let mut call = |probe| self.caller.call(probe, &[], &push, self.appended, &mut self.plan.arena);
        let (enter, exit, thrown) = (call(Probe::Waits)?, call(Probe::Waited)?, call(Probe::Waited)?);
        Ok(Region { ranges, enter, exit, thrown })
    }

    /// A constructor, of which only returns are probed.
    fn constructed(&mut self, ranges: Vec<(u32, u32)>, id: u32) -> Result<Region, Refusal> {
        if !self.is_unconstructed(0) {
            return Err(Refusal::NoSuchPlace);
        }
        let push = Push::new(id, self.appended)?;
        let exit = self.caller.call(Probe::Seen, &load(0), &push, self.appended, &mut self.plan.arena)?;
        Ok(Region { ranges, enter: 0..0, exit, thrown: 0..0 })
    }

    /// What tells that exceptions arrive at handlers.
    fn handlers(&mut self) -> Result<Pieces, Refusal> {
        let Some(exceptions) = self.caller.exceptions() else { return Ok(Pieces::new()) };
        // One that is for a class of exceptions too is for these: a compiler makes no such.
        let mut handlers: BTreeMap<u32, bool> = BTreeMap::new();
        for range in self.walk.code.exceptions() {
            *handlers.entry(range.handler).or_default() |= range.catch_type != 0;
        }
        let mut pieces = Pieces::new();
        for (offset, catches) in handlers {
            let push = Push::new(if catches { exceptions.caught } else { exceptions.passing }, self.appended)?;
            let piece = self.caller.call(Probe::Seen, &[DUP], &push, self.appended, &mut self.plan.arena)?;
            pieces.push((offset, Slot::All, piece));
        }
        Ok(pieces)
    }

    fn lines(&self, first: u16, last: u16) -> Result<Vec<(u32, u32)>, Refusal> {
        let (code, scan) = (self.walk.code, self.walk.scan);
        let mut lines = code.lines(self.walk.class)?;
        lines.retain(|line| line.start < code.len() && scan.is_boundary(line.start));
        lines.sort_by_key(|line| line.start);
        // Of several lines that begin at an instruction, debuggers take the last.
        lines.dedup_by(|next, first| {
            let same = next.start == first.start;
            if same {
                first.line = next.line;
            }
            same
        });
        let ends = lines.iter().skip(1).map(|line| line.start).chain([code.len()]);
        let mut ranges: Vec<(u32, u32)> = Vec::new();
        for (line, end) in lines.iter().zip(ends).filter(|(line, _)| (first..=last).contains(&line.line)) {
            match ranges.last_mut() {
                Some(before) if before.1 == line.start => before.1 = end,
                _ => ranges.push((line.start, end)),
            }
        }
        match ranges[..] {
            [] => Err(Refusal::NoSuchPlace),
            [(0, end)] if end == code.len() => Ok(ranges),
            _ if scan.subroutines => Err(Refusal::Subroutines),
            _ => Ok(ranges),
        }
    }

    fn call(&self, offset: u32) -> Result<Vec<(u32, u32)>, Refusal> {
        let call = self.instruction(offset)?;
        let is_call = (INVOKEVIRTUAL..=INVOKEDYNAMIC).contains(&call.opcode);
        if is_call { Ok(vec![(offset, call.end())]) } else { Err(Refusal::NoSuchPlace) }
    }

    pub(crate) fn instruction(&self, offset: u32) -> Result<instructions::Instruction, Refusal> {
        let (code, scan) = (self.walk.code, self.walk.scan);
        let begins = offset < code.len() && scan.is_boundary(offset);
        if begins { Ok(instructions::at(code.bytes, offset)) } else { Err(Refusal::NoSuchPlace) }
    }

    /// What passes the receiver, or a static method's first argument.
    fn first_argument(&mut self, id: u32) -> Result<Piece, Refusal> {
        const ACC_STATIC: u16 = 0x0008;
        let method = self.walk.method;
        let is_reference = match method.access & ACC_STATIC {
            0 => !self.is_unconstructed(0),
            _ => matches!(method.descriptor.get(1), Some(b'L' | b'[')),
        };
        if !is_reference {
            return Err(Refusal::NoSuchPlace);
        }
        let push = Push::new(id, self.appended)?;
        self.caller.call(Probe::Receive, &load(0), &push, self.appended, &mut self.plan.arena)
    }

    /// What tells that an instruction is about to be executed.
    fn before(&mut self, offset: u32, id: u32) -> Result<Piece, Refusal> {
        self.instruction(offset)?;
        let push = Push::new(id, self.appended)?;
        self.caller.call(Probe::Before, &[], &push, self.appended, &mut self.plan.arena)
    }

    /// What passes the object that a call is made on: it lies below the arguments, which are put aside meanwhile.
    fn receiver(&mut self, offset: u32, id: u32) -> Result<Piece, Refusal> {
        let call = self.instruction(offset)?;
        if !matches!(call.opcode, INVOKEVIRTUAL | INVOKEINTERFACE) {
            return Err(Refusal::NoSuchPlace);
        }
        let code = self.walk.code;
        let at = code.base + offset as usize + 1;
        let (_, descriptor) = self.walk.class.pool.signature_bytes(call.operand(code.bytes), at)?;
        let (arguments, _) = types::parameters(descriptor);
        let push = Push::new(id, self.appended)?;
        let (operand, back) = match arguments[..] {
            [] => (vec![DUP], Vec::new()),
            [only] if types::slots(&[only]) == 1 => (vec![DUP2, POP], Vec::new()),
            _ => {
                let first = code.max_locals.checked_add(self.plan.held_slots()).ok_or(Refusal::LocalsFull)?;
                let (mut aside, back, locals) = put_aside(&arguments, first)?;
                aside.push(DUP);
                let locals = self.plan.held_slots().checked_add(locals).ok_or(Refusal::LocalsFull)?;
                self.plan.locals = self.plan.locals.max(locals);
                (aside, back)
            }
        };
        let piece = self.caller.call(Probe::Receiver, &operand, &push, self.appended, &mut self.plan.arena)?;
        Ok(self.extend(piece, &back))
    }

    /// What passes an argument.
    fn argument(&mut self, local: u16, id: u32) -> Result<Piece, Refusal> {
        if self.is_unconstructed(local) || local >= self.walk.code.max_locals {
            return Err(Refusal::NoSuchPlace);
        }
        let push = Push::new(id, self.appended)?;
        self.caller.call(Probe::Argument, &load(local), &push, self.appended, &mut self.plan.arena)
    }

    /// Whether a local variable holds an object whose constructor is this method.
    fn is_unconstructed(&self, local: u16) -> bool {
        local == 0 && self.walk.method.name == b"<init>"
    }
}

/// Instructions that pop values into local variables from a first one on, those that push them again, and how many variables that
/// takes.
fn put_aside(values: &[Type<'_>], first: u16) -> Result<(Vec<u8>, Vec<u8>, u16), Refusal> {
    let (mut pops, mut pushes) = (Vec::new(), Vec::new());
    let mut local = usize::from(first);
    for &value in values {
        let form = match value {
            Type::Integer => 0,
            Type::Long => 1,
            Type::Float => 2,
            Type::Double => 3,
            _ => ASTORE - ISTORE,
        };
        let index = u16::try_from(local).map_err(|_| Refusal::LocalsFull)?;
        pops.push(with_local(ISTORE + form, index));
        pushes.extend(with_local(ILOAD + form, index));
        local += types::slots(&[value]);
    }
    u16::try_from(local).map_err(|_| Refusal::LocalsFull)?;
    Ok((pops.into_iter().rev().flatten().collect(), pushes, (local - usize::from(first)) as u16))
}

/// Pushes a reference from a local variable.
fn load(local: u16) -> Vec<u8> {
    with_local(ALOAD, local)
}

/// Pops a reference into a local variable.
fn store(local: u16) -> Vec<u8> {
    with_local(ASTORE, local)
}
