//! Finding in a method's code what is to be probed: the instructions of regions, and where allocated objects can be had.

use std::collections::BTreeMap;

use crate::Refusal;
use crate::constant_pool::Appended;
use crate::instructions::{
    self, ACONST_NULL, ALOAD, ALOAD_0, ANEWARRAY, ASTORE, ASTORE_0, DUP, DUP2, ILOAD, INVOKEDYNAMIC, INVOKEINTERFACE,
    INVOKEVIRTUAL, ISTORE, MULTIANEWARRAY, NEW, NEWARRAY, POP, WIDE,
};
use crate::layout::{Piece, Plan};
use crate::paths::Slot;
use crate::probes::{Caller, Place, Probe, Push, Request};
use crate::regions::Region;
use crate::types::{self, Type};
use crate::walk::Walk;

/// Which request is to blame, if one is, and why.
pub(crate) type Failure = (Option<usize>, Refusal);

/// Allocations by their offsets, each with the requests for it (by their place in the list) and their ids.
type Wanted = BTreeMap<u32, Vec<(usize, u32)>>;

/// Finds the places that are asked for in a method.
pub(crate) struct Places<'w, 'c, 'a, 'p> {
    pub(crate) walk: Walk<'w, 'a>,
    pub(crate) caller: &'c mut Caller<'p>,
    pub(crate) appended: &'c mut Appended,
    pub(crate) plan: &'c mut Plan,
}

/// What is inserted: before which instruction, in what order there.
pub(crate) type Pieces = Vec<(u32, Slot, Piece)>;

impl Places<'_, '_, '_, '_> {
    /// Regions, and what is inserted behind allocations.
    pub(crate) fn find(&mut self, requests: &[Request]) -> Result<(Vec<Region>, Pieces), Failure> {
        let mut regions: Vec<Region> = Vec::new();
        let mut lines = 0;
        let mut allocations = Wanted::new();
        let mut pieces = Pieces::new();
        for (index, request) in requests.iter().enumerate() {
            let ranges = match request.place {
                Place::Method => Ok(vec![(0, self.walk.code.len())]),
                Place::Lines { first, last } => self.lines(first, last),
                Place::Call { offset } => self.call(offset),
                Place::Allocation { offset } => {
                    allocations.entry(offset).or_default().push((index, request.id));
                    continue;
                }
                Place::Before { offset } => {
                    let piece = self.before(offset, request.id).map_err(|why| (Some(index), why))?;
                    pieces.push((offset, Slot::All, piece));
                    continue;
                }
                Place::Receiver { offset } => {
                    let piece = self.receiver(offset, request.id).map_err(|why| (Some(index), why))?;
                    pieces.push((offset, Slot::All, piece));
                    continue;
                }
                Place::Around { call: Some(offset), .. } => self.call(offset),
                Place::Around { call: None, .. } => Ok(vec![(0, self.walk.code.len())]),
                Place::FirstArgument | Place::Argument { .. } => {
                    let piece = match request.place {
                        Place::Argument { local } => self.argument(local, request.id),
                        _ => self.first_argument(request.id),
                    };
                    pieces.push((0, Slot::Fall, piece.map_err(|why| (Some(index), why))?));
                    continue;
                }
            };
            let region = ranges.and_then(|ranges| match request.place {
                Place::Around { local, .. } => self.around(ranges, local, request.id),
                Place::Method => self.method(ranges, request.id),
                _ => self.region(ranges, request.id),
            });
            let region = region.map_err(|why| (Some(index), why))?;
            if matches!(request.place, Place::Lines { .. }) {
                // Whichever comes later lies within, or there is no telling them apart.
                let nests = |other: &Region| region.nests_in(other) || other.nests_in(&region);
                if !regions[regions.len() - lines..].iter().all(nests) {
                    return Err((Some(index), Refusal::RegionsCross));
                }
                lines += 1;
            }
            regions.push(region);
        }
        if !allocations.is_empty() {
            pieces.extend(self.allocations(&allocations)?);
        }
        Ok((regions, pieces))
    }

    /// The whole method: what its entry returns is kept for its exits.
    fn method(&mut self, ranges: Vec<(u32, u32)>, id: u32) -> Result<Region, Refusal> {
        let token = self.walk.code.max_locals.checked_add(self.plan.tokens);
        let token = token.filter(|token| *token < u16::MAX).ok_or(Refusal::LocalsFull)?;
        self.plan.tokens += 1;
        self.plan.locals = self.plan.locals.max(self.plan.tokens);
        let push = Push::new(id, self.appended)?;
        let mut call =
            |probe, operand: &[u8]| self.caller.call(probe, operand, &push, self.appended, &mut self.plan.arena);
        let (exit, thrown) = (call(Probe::Exit, &load(token))?, call(Probe::Throw, &load(token))?);
        let enter = call(Probe::Enter, &[])?;
        Ok(Region { ranges, enter: self.extend(enter, &store(token)), exit, thrown })
    }

    /// Part of a method, which control may enter more than once.
    fn region(&mut self, ranges: Vec<(u32, u32)>, id: u32) -> Result<Region, Refusal> {
        let push = Push::new(id, self.appended)?;
        let mut call = |probe| self.caller.call(probe, &[], &push, self.appended, &mut self.plan.arena);
        let (exit, thrown) = (call(Probe::ExitRegion)?, call(Probe::ThrowRegion)?);
        let enter = call(Probe::Enter)?;
        Ok(Region { ranges, enter: self.extend(enter, &[POP]), exit, thrown })
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

    fn instruction(&self, offset: u32) -> Result<instructions::Instruction, Refusal> {
        let (code, scan) = (self.walk.code, self.walk.scan);
        let begins = offset < code.len() && scan.is_boundary(offset);
        if begins { Ok(instructions::at(code.bytes, offset)) } else { Err(Refusal::NoSuchPlace) }
    }

    /// What is inserted behind allocations, which are given by their offsets, with request and id.
    fn allocations(&mut self, wanted: &Wanted) -> Result<Pieces, Failure> {
        let mut pieces = Vec::new();
        let mut objects = false;
        for (&offset, requests) in wanted {
            for &(request, id) in requests {
                let one = |refusal| (Some(request), refusal);
                let instruction = self.instruction(offset).map_err(one)?;
                match instruction.opcode {
                    NEW => objects = true,
                    NEWARRAY | ANEWARRAY | MULTIANEWARRAY => {
                        let piece = self.allocated(&[DUP], id).map_err(one)?;
                        pieces.push((instruction.end(), Slot::Behind, piece));
                    }
                    _ => return Err(one(Refusal::NoSuchPlace)),
                }
            }
        }
        if objects {
            self.objects(wanted, &mut pieces)?;
        }
        Ok(pieces)
    }

    /// Behind every call that constructs one of these objects.
    fn objects(&mut self, wanted: &Wanted, pieces: &mut Pieces) -> Result<(), Failure> {
        let machine = self.walk.machine();
        // The call's end, how to push the object, and for which `new`.
        let mut found: Vec<(u32, Option<Vec<u8>>, u32)> = Vec::new();
        let walked = self.walk.run(|instruction, state| {
            let Some(state) = state else { return Ok(()) };
            let Some(object @ Type::Uninitialized(new)) = machine.constructed(state, instruction)? else {
                return Ok(());
            };
            if wanted.contains_key(&new) {
                let mut after = state.clone();
                machine.step(&mut after, instruction)?;
                let operand = if state.stack[..after.stack.len()].last() == Some(&object) {
                    Some(vec![DUP])
                } else {
                    state.locals.iter().position(|local| *local == object).map(|local| load(local as u16))
                };
                found.push((instruction.end(), operand, new));
            }
            Ok(())
        });
        walked.map_err(|refusal| (None, refusal))?;
        for (end, operand, new) in found {
            for &(request, id) in &wanted[&new] {
                let one = |refusal| (Some(request), refusal);
                let operand = operand.as_ref().ok_or(one(Refusal::ObjectDropped))?;
                pieces.push((end, Slot::Behind, self.allocated(operand, id).map_err(one)?));
            }
        }
        Ok(())
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
                let first = code.max_locals.checked_add(self.plan.tokens).ok_or(Refusal::LocalsFull)?;
                let (mut aside, back, locals) = put_aside(&arguments, first)?;
                aside.push(DUP);
                let locals = self.plan.tokens.checked_add(locals).ok_or(Refusal::LocalsFull)?;
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

    fn allocated(&mut self, operand: &[u8], id: u32) -> Result<Piece, Refusal> {
        let push = Push::new(id, self.appended)?;
        self.caller.call(Probe::Allocate, operand, &push, self.appended, &mut self.plan.arena)
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
    short(ALOAD_0, local).unwrap_or_else(|| with_local(ALOAD, local))
}

/// Pops a reference into a local variable.
fn store(local: u16) -> Vec<u8> {
    short(ASTORE_0, local).unwrap_or_else(|| with_local(ASTORE, local))
}

/// The form without an operand, of which there are four: JIT compilers count bytes.
fn short(first: u8, local: u16) -> Option<Vec<u8>> {
    let last = 3;
    u8::try_from(local).ok().filter(|local| *local <= last).map(|local| vec![first + local])
}

fn with_local(opcode: u8, local: u16) -> Vec<u8> {
    match local.to_be_bytes() {
        [0, low] => vec![opcode, low],
        [high, low] => vec![WIDE, opcode, high, low],
    }
}
