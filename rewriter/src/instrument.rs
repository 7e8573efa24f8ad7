//! Putting probes into a class's methods:
//!
//! ```text
//!     enter(id)                        // first instruction
//!     try { ...original body... }      // exit(id) before every return
//!     catch (any) { thrown(id); throw }
//! ```
//!
//! The same is done to regions of a method's code, and allocations are reported. [`crate::paths`] finds where probes go,
//! [`crate::layout`] makes room for them; here is what is done with a class and with a method's Code attribute.

use std::collections::HashMap;

use crate::class_file::{ClassFile, Method};
use crate::code::Code;
use crate::constant_pool::Appended;
use crate::constructor::{self, Phase, PhaseFrom};
use crate::frames::{self, FrameWriter, Full};
use crate::instructions::{
    self, ALOAD, ANEWARRAY, DUP, INVOKEDYNAMIC, INVOKEVIRTUAL, MULTIANEWARRAY, NEW, NEWARRAY, RETURN, Scan, WIDE,
};
use crate::layout::{Layout, Piece, Plan, Shift};
use crate::paths::{BlockTypes, Handler, Paths, Row, Slot};
use crate::probes::{Caller, Place, Probe, Probes, Push, Refused, Request};
use crate::regions::{self, Chains, Region};
use crate::types::Type;
use crate::walk::Walk;
use crate::{Error, Refusal, attributes, type_annotations};

/// The outcome.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The class file; the same bytes where nothing was instrumented.
    pub bytes: Vec<u8>,
    /// What could not be done. The methods are as they were, unless other requests for them succeeded.
    pub refused: Vec<Refused>,
}

/// Instruments methods of a class. Fails only if the class file as a whole cannot be read.
pub fn instrument(bytes: &[u8], probes: &Probes<'_>, requests: &[Request]) -> Result<Rewritten, Error> {
    let class = ClassFile::parse(bytes)?;
    let mut writer = ClassWriter::new(&class);
    let mut caller = Caller::new(probes);
    let mut refused = Vec::new();
    let mut order: Vec<Request> = requests.to_vec();
    order.sort_by_key(|request| (request.method_index, rank(request.place)));
    for requests in order.chunk_by(|one, other| one.method_index == other.method_index) {
        let mut requests = requests.to_vec();
        // One that cannot be done is left out; the others are tried again.
        while !requests.is_empty() {
            let mark = writer.appended.mark();
            let start = writer.codes.len();
            let Err((culprit, refusal)) = writer.method(&mut caller, &requests) else { break };
            writer.codes.truncate(start);
            caller.rewind(&mut writer.appended, mark);
            match culprit {
                Some(index) => refused.push(Refused { request: requests.remove(index), refusal }),
                None => refused.extend(requests.drain(..).map(|request| Refused { request, refusal: refusal.clone() })),
            }
        }
    }
    Ok(Rewritten { bytes: writer.finish(), refused })
}

/// Outer regions come first.
fn rank(place: Place) -> u32 {
    match place {
        Place::Method => 0,
        Place::Lines { .. } => 1,
        Place::Call { .. } => 2,
        Place::Allocation { .. } => 3,
    }
}

/// Takes every method's code apart and puts it together again, without inserting anything: the result equals the input,
/// or there is a bug here.
pub fn reassemble(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let class = ClassFile::parse(bytes)?;
    let mut writer = ClassWriter::new(&class);
    for method in class.methods().iter().filter(|method| method.has_code()) {
        match writer.unchanged(method) {
            Ok(()) => {}
            Err(Refusal::Malformed(error)) => return Err(error),
            Err(_) => return Err(Error::new(0, "code that can be written as it was read")),
        }
    }
    Ok(writer.finish())
}

/// Which request is to blame, if one is, and why.
type Failure = (Option<usize>, Refusal);

/// The new code of a method: which lies between two old offsets, and is this part of what was written.
#[derive(Debug)]
struct Replacement {
    from: usize,
    to: usize,
    content: std::ops::Range<usize>,
}

/// A class in the making.
#[derive(Debug)]
struct ClassWriter<'c, 'a> {
    class: &'c ClassFile<'a>,
    appended: Appended,
    /// The contents of the new Code attributes, one after the other.
    codes: Vec<u8>,
    replaced: Vec<Replacement>,
    // Room to work in, used again for every method.
    scan: Scan,
    plan: Plan,
    phases: Vec<PhaseFrom>,
    shifts: Vec<Shift>,
}

impl<'c, 'a> ClassWriter<'c, 'a> {
    fn new(class: &'c ClassFile<'a>) -> ClassWriter<'c, 'a> {
        ClassWriter {
            class,
            appended: Appended::new(class.pool.len()),
            codes: Vec::new(),
            replaced: Vec::new(),
            scan: Scan::default(),
            plan: Plan::default(),
            phases: Vec::new(),
            shifts: Vec::new(),
        }
    }

    /// The class file.
    fn finish(mut self) -> Vec<u8> {
        const POOL_COUNT_AT: usize = 8;
        let class = self.class;
        if self.replaced.is_empty() {
            return class.bytes.to_vec();
        }
        self.replaced.sort_by_key(|replacement| replacement.from);
        let mut out = Vec::with_capacity(class.bytes.len() + self.appended.bytes().len() + self.codes.len());
        out.extend_from_slice(&class.bytes[..POOL_COUNT_AT]);
        out.extend((self.appended.len() as u16).to_be_bytes());
        out.extend_from_slice(&class.bytes[POOL_COUNT_AT + 2..class.pool.end()]);
        out.extend_from_slice(self.appended.bytes());
        let mut at = class.pool.end();
        for replacement in &self.replaced {
            let content = &self.codes[replacement.content.clone()];
            out.extend_from_slice(&class.bytes[at..replacement.from]);
            out.extend((content.len() as u32).to_be_bytes());
            out.extend_from_slice(content);
            at = replacement.to;
        }
        out.extend_from_slice(&class.bytes[at..]);
        out
    }

    /// A method's code, taken apart and put together.
    fn unchanged(&mut self, method: &Method<'a>) -> Result<(), Refusal> {
        let (from, to) = method.code.ok_or(Refusal::NoCode)?;
        let code = Code::parse(self.class, from, to, &mut self.scan)?;
        self.plan.clear();
        let chains = Chains::new(&[]);
        let phases = [(0, Phase::Constructed)];
        let mut paths = Paths::new(&code, &self.scan, &chains, &phases, &mut self.plan);
        paths.find()?;
        let (rows, types, moved_rows) = (paths.rows, paths.types, paths.moved_rows);
        let layout = Layout::new(&code, &self.scan, &self.plan, Vec::new())?;
        let start = self.codes.len();
        let mut writer = CodeWriter {
            walk: Walk { class: self.class, method, code: &code, scan: &self.scan },
            layout: &layout,
            appended: &mut self.appended,
            out: &mut self.codes,
        };
        writer.write(code.max_stack, &rows, &moved_rows, &types)?;
        self.replaced.push(Replacement { from, to, content: start..self.codes.len() });
        Ok(())
    }

    /// A method with probes.
    fn method(&mut self, caller: &mut Caller<'_>, requests: &[Request]) -> Result<(), Failure> {
        let all = |refusal: Refusal| (None, refusal);
        let index = requests.first().map_or(0, |request| request.method_index);
        let method = self.class.methods().get(index).ok_or(all(Refusal::NoSuchMethod))?;
        let (from, to) = method.code.ok_or(all(Refusal::NoCode))?;
        let code = Code::parse(self.class, from, to, &mut self.scan).map_err(|error| all(error.into()))?;
        if method.is_finalizer() && code.bytes == [RETURN] {
            return Err(all(Refusal::EmptyFinalizer));
        }
        let walk = Walk { class: self.class, method, code: &code, scan: &self.scan };
        self.plan.clear();
        let mut places = Places { walk, caller, appended: &mut self.appended, plan: &mut self.plan };
        let (mut regions, pieces) = places.find(requests)?;
        let allocates = !pieces.is_empty();
        regions::nest(&mut regions);
        constructor::phases(&walk, &mut self.phases).map_err(all)?;
        let chains = Chains::new(&regions);
        let mut paths = Paths::new(&code, &self.scan, &chains, &self.phases, &mut self.plan);
        paths.pieces = pieces;
        paths.find().map_err(all)?;
        let (rows, types, moved_rows) = (paths.rows, paths.types, paths.moved_rows);

        let shifts = std::mem::take(&mut self.shifts);
        let layout = Layout::new(&code, &self.scan, &self.plan, shifts).map_err(all)?;
        // An object and an id, or an id alone; an exception and an id.
        let max_stack = code.max_stack.max(1).checked_add(1 + u16::from(allocates)).ok_or(all(Refusal::StackFull))?;
        let start = self.codes.len();
        let mut writer = CodeWriter { walk, layout: &layout, appended: &mut self.appended, out: &mut self.codes };
        writer.write(max_stack, &rows, &moved_rows, &types).map_err(all)?;
        self.shifts = layout.into_shifts();
        self.replaced.push(Replacement { from, to, content: start..self.codes.len() });
        Ok(())
    }
}

/// Finds the places that are asked for in a method.
struct Places<'w, 'c, 'a, 'p> {
    walk: Walk<'w, 'a>,
    caller: &'c mut Caller<'p>,
    appended: &'c mut Appended,
    plan: &'c mut Plan,
}

type Pieces = Vec<(u32, Slot, Piece)>;

impl Places<'_, '_, '_, '_> {
    /// Regions, and what is inserted behind allocations.
    fn find(&mut self, requests: &[Request]) -> Result<(Vec<Region>, Pieces), Failure> {
        let mut regions: Vec<Region> = Vec::new();
        let mut lines = 0;
        let mut allocations = HashMap::new();
        for (index, request) in requests.iter().enumerate() {
            let ranges = match request.place {
                Place::Method => Ok(vec![(0, self.walk.code.len())]),
                Place::Lines { first, last } => self.lines(first, last),
                Place::Call { offset } => self.call(offset),
                Place::Allocation { offset } => {
                    allocations.insert(offset, (index, request.id));
                    continue;
                }
            };
            let region = ranges.and_then(|ranges| self.region(ranges, request.id)).map_err(|why| (Some(index), why))?;
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
        let pieces = if allocations.is_empty() { Vec::new() } else { self.allocations(allocations)? };
        Ok((regions, pieces))
    }

    fn region(&mut self, ranges: Vec<(u32, u32)>, id: u32) -> Result<Region, Refusal> {
        let push = Push::new(id, self.appended)?;
        let mut call = |probe| self.caller.call(probe, &[], &push, self.appended, &mut self.plan.arena);
        Ok(Region { ranges, enter: call(Probe::Enter)?, exit: call(Probe::Exit)?, thrown: call(Probe::Throw)? })
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
    fn allocations(&mut self, wanted: HashMap<u32, (usize, u32)>) -> Result<Pieces, Failure> {
        let mut pieces = Vec::new();
        let mut objects = HashMap::new();
        for (&offset, &(request, id)) in &wanted {
            let one = |refusal| (Some(request), refusal);
            let instruction = self.instruction(offset).map_err(one)?;
            match instruction.opcode {
                NEW => {
                    objects.insert(offset, (request, id));
                }
                NEWARRAY | ANEWARRAY | MULTIANEWARRAY => {
                    let piece = self.allocated(&[DUP], id).map_err(one)?;
                    pieces.push((instruction.end(), Slot::Behind, piece));
                }
                _ => return Err(one(Refusal::NoSuchPlace)),
            }
        }
        if !objects.is_empty() {
            self.objects(&objects, &mut pieces)?;
        }
        Ok(pieces)
    }

    /// Behind every call that constructs one of these objects.
    fn objects(&mut self, wanted: &HashMap<u32, (usize, u32)>, pieces: &mut Pieces) -> Result<(), Failure> {
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
            let (request, id) = wanted[&new];
            let one = |refusal| (Some(request), refusal);
            let operand = operand.ok_or(one(Refusal::ObjectDropped))?;
            pieces.push((end, Slot::Behind, self.allocated(&operand, id).map_err(one)?));
        }
        Ok(())
    }

    fn allocated(&mut self, operand: &[u8], id: u32) -> Result<Piece, Refusal> {
        let push = Push::new(id, self.appended)?;
        self.caller.call(Probe::Allocate, operand, &push, self.appended, &mut self.plan.arena)
    }
}

/// Pushes a reference from a local variable.
fn load(local: u16) -> Vec<u8> {
    match local.to_be_bytes() {
        [0, low] => vec![ALOAD, low],
        [high, low] => vec![WIDE, ALOAD, high, low],
    }
}

/// Writes a Code attribute's content.
struct CodeWriter<'w, 'a> {
    walk: Walk<'w, 'a>,
    layout: &'w Layout<'w>,
    appended: &'w mut Appended,
    out: &'w mut Vec<u8>,
}

impl CodeWriter<'_, '_> {
    fn write(&mut self, max_stack: u16, rows: &[Row], moved_rows: &[u16], types: &[BlockTypes]) -> Result<(), Refusal> {
        let (code, layout) = (self.walk.code, self.layout);
        self.out.extend(max_stack.to_be_bytes());
        self.out.extend(code.max_locals.to_be_bytes());
        self.out.extend(layout.length().to_be_bytes());
        layout.emit(code, self.out)?;
        self.out.extend((rows.len() as u16).to_be_bytes());
        for row in rows {
            let handler = match row.handler {
                Handler::Old(offset) => layout.target(offset),
                Handler::Block(block) => layout.block(block),
            };
            // What is inserted on the way into the range or out of it is not part of it.
            for offset in [layout.place(row.start), layout.before(row.end), handler] {
                self.out.extend((offset as u16).to_be_bytes());
            }
            self.out.extend(row.catch_type.to_be_bytes());
        }
        self.attributes(moved_rows, types)
    }

    fn attributes(&mut self, moved_rows: &[u16], types: &[BlockTypes]) -> Result<(), Refusal> {
        let (class, code, layout) = (self.walk.class, self.walk.code, self.layout);
        let has_frames = class.major_version() >= frames::FIRST_VERSION;
        let mut wants_frames = has_frames && !types.is_empty();
        let count_at = self.out.len();
        let mut count = 0u16;
        self.out.extend([0, 0]);
        for (at, name, content) in code.attributes() {
            self.out.extend(name.to_be_bytes());
            let length_at = self.out.len();
            self.out.extend([0; 4]);
            let start = self.out.len();
            match class.pool.utf8_bytes(name, at)? {
                b"StackMapTable" if has_frames => {
                    wants_frames = false;
                    self.frames(true, types)?;
                }
                name => {
                    self.out.extend_from_slice(content.rest());
                    let out = &mut self.out[start..];
                    // As far as they can be read: nobody else can read them further.
                    let _ = match name {
                        b"LineNumberTable" => attributes::line_numbers(content, layout, out),
                        b"LocalVariableTable" | b"LocalVariableTypeTable" => {
                            attributes::local_variables(content, layout, out)
                        }
                        b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                            type_annotations::relocate(content, layout, moved_rows, out)
                        }
                        _ => None,
                    };
                }
            }
            self.end_attribute(length_at);
            count += 1;
        }
        if wants_frames {
            let name = self.appended.utf8(b"StackMapTable")?;
            self.out.extend(name.to_be_bytes());
            let length_at = self.out.len();
            self.out.extend([0; 4]);
            self.frames(false, types)?;
            self.end_attribute(length_at);
            count = count.checked_add(1).ok_or(Refusal::StackMapFull)?;
        }
        self.out[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
        Ok(())
    }

    fn end_attribute(&mut self, length_at: usize) {
        let length = (self.out.len() - length_at - 4) as u32;
        self.out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// The stack map: the old frames (if the method `has` some), those of places that have become the target of a branch,
    /// and those of the tail's blocks.
    fn frames(&mut self, has: bool, types: &[BlockTypes]) -> Result<(), Refusal> {
        let (code, layout) = (self.walk.code, self.layout);
        let table = if has { code.stack_map(self.walk.class) } else { None };
        // Old offset, and the new one.
        let mut joints: Vec<(u32, u32)> = Vec::new();
        let mut made = HashMap::new();
        if let Some(table) = table {
            joints.extend(layout.inverted().map(|branch| (branch.end(), layout.before(branch.end()))));
            if !joints.is_empty() || types.iter().any(|types| matches!(types, BlockTypes::Old(_))) {
                let offsets = frames::offsets(table)?;
                joints.retain(|(old, new)| offsets.binary_search(old).is_err() || layout.target(*old) != *new);
                let mut wanted: Vec<u32> = joints.iter().map(|(old, _)| *old).collect();
                // A frame behind one that is added is relative to another than before.
                let behind = |old: &u32| offsets.get(offsets.partition_point(|offset| offset < old)).copied();
                wanted.extend(joints.iter().filter_map(|(old, _)| behind(old)));
                wanted.extend(types.iter().filter_map(|types| match types {
                    BlockTypes::Old(offset) => Some(*offset),
                    BlockTypes::Handler(_) => None,
                }));
                made = self.states(&wanted)?;
            }
        }
        let throwable = match types.iter().any(|types| matches!(types, BlockTypes::Handler(_))) {
            true => self.appended.class(b"java/lang/Throwable")?,
            false => 0,
        };
        let mut writer = FrameWriter::new(self.out);
        let added = joints.iter().filter_map(|(old, new)| Some((*old, *new, made.get(old)?)));
        writer.all(table, added, layout, &made)?;
        for (block, types) in types.iter().enumerate() {
            let offset = layout.block(block);
            match types {
                BlockTypes::Handler(phase) => {
                    let local = match phase {
                        Phase::Uninitialized(local) => Some(*local),
                        Phase::Constructed | Phase::Unprotected => None,
                    };
                    writer.full(offset, &Full::of_handler(local, throwable))?;
                }
                // There is none where there was none: then the JVM does not look at them.
                BlockTypes::Old(old) => {
                    if let Some(full) = made.get(old) {
                        writer.full(offset, full)?;
                    }
                }
            }
        }
        writer.finish();
        Ok(())
    }

    /// The types before the instructions at these offsets, as frames.
    fn states(&mut self, wanted: &[u32]) -> Result<HashMap<u32, Full>, Refusal> {
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut made = HashMap::new();
        let mut left = wanted.into_iter().peekable();
        let (class, layout) = (self.walk.class, self.layout);
        let appended = &mut *self.appended;
        self.walk.run(|instruction, state| {
            if left.next_if_eq(&instruction.offset).is_some()
                && let Some(state) = state
            {
                made.insert(instruction.offset, Full::of_state(class, state, layout, appended)?);
            }
            Ok(())
        })?;
        Ok(made)
    }
}
