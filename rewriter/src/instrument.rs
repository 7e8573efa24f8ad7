//! Putting probes into a class's methods:
//!
//! ```text
//!     token = enter(id)                // first instruction
//!     try { ...original body... }      // exit(token, id) before every return
//!     catch (any) { thrown(token, id); throw }
//! ```
//!
//! The token is in a local variable behind the method's own, so every frame has one more type. Nearly the same is done to
//! regions of a method's code, and allocations are reported. [`crate::places`] finds what is asked for, [`crate::paths`] where
//! its probes go, [`crate::layout`] makes room for them; here is what is done with a class and with a method's Code attribute.
//!
//! Why so, and at what cost: docs/decisions/rewriter.md.

use std::collections::HashMap;

use crate::class_file::{ClassFile, Method};
use crate::code::Code;
use crate::constant_pool::Appended;
use crate::constructor::{self, Phase, PhaseFrom};
use crate::frame_writer::{FrameWriter, Full, Ours, Types};
use crate::frames;
use crate::instructions::{RETURN, Scan};
use crate::layout::{Held, Layout, Plan, Shift};
use crate::paths::{BlockTypes, Handler, Paths, Row};
use crate::places::{Failure, Places};
use crate::probes::{Caller, Instructions, ProbeSite, Probes, Refused, Request};
use crate::regions::{self, Chains};
use crate::types::State;
use crate::walk::Walk;
use crate::{Error, Refusal, attributes, type_annotations};

/// The outcome.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The class file; the same bytes where nothing was instrumented.
    pub bytes: Vec<u8>,
    /// What could not be done. The methods are as they were, unless other requests for them succeeded.
    pub refused: Vec<Refused>,
    /// What has its probes, but no instructions that are counted: with that it would have been refused.
    pub uncounted: Vec<Refused>,
}

/// Instruments methods of a class. Fails only if the class file as a whole cannot be read.
pub fn instrument(bytes: &[u8], probes: &Probes<'_>, requests: &[Request]) -> Result<Rewritten, Error> {
    Ok(instrument_class(&ClassFile::parse(bytes)?, probes, requests))
}

/// Instruments methods of a class that was read already.
pub fn instrument_class(class: &ClassFile<'_>, probes: &Probes<'_>, requests: &[Request]) -> Rewritten {
    let mut writer = ClassWriter::new(class);
    let mut caller = Caller::new(probes);
    let (mut refused, mut uncounted) = (Vec::new(), Vec::new());
    let mut order: Vec<Request> = requests.to_vec();
    order.sort_by_key(|request| (request.method_index, rank(request.place)));
    for requests in order.chunk_by(|one, other| one.method_index == other.method_index) {
        let mut requests = requests.to_vec();
        // One that cannot be done is left out; the others are tried again.
        let mut without_counting = None;
        while !requests.is_empty() {
            caller.instructions = if without_counting.is_none() { probes.instructions } else { Instructions::Ignored };
            let mark = writer.appended.mark();
            let start = writer.codes.len();
            let Err((culprit, refusal)) = writer.method(&mut caller, &requests) else { break };
            writer.codes.truncate(start);
            caller.rewind(&mut writer.appended, mark);
            if caller.instructions == Instructions::Counted {
                without_counting = Some(refusal);
                continue;
            }
            without_counting = None;
            match culprit {
                Some(index) => refused.push(Refused { request: requests.remove(index), refusal }),
                None => refused.extend(requests.drain(..).map(|request| Refused { request, refusal: refusal.clone() })),
            }
        }
        if let Some(refusal) = without_counting {
            let counting = requests.iter().filter(|it| it.place.has_instructions());
            uncounted.extend(counting.map(|request| Refused { request: *request, refusal: refusal.clone() }));
        }
    }
    Rewritten { bytes: writer.finish(), refused, uncounted }
}

/// Outer regions come first.
fn rank(place: ProbeSite) -> u32 {
    match place {
        ProbeSite::Method => 1,
        ProbeSite::Wait { call: None } | ProbeSite::Constructed => 2,
        ProbeSite::Lines { .. } => 3,
        // Around the method's own probes: what is told first is not the method's time.
        ProbeSite::Around { call: None, .. } => 0,
        ProbeSite::Call { .. } | ProbeSite::Around { call: Some(_), .. } | ProbeSite::Wait { call: Some(_) } => 4,
        ProbeSite::Allocation { .. } => 5,
        ProbeSite::FirstArgument | ProbeSite::Argument { .. } => 6,
        ProbeSite::Before { .. } | ProbeSite::Receiver { .. } => 7,
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
        writer.write((code.max_stack, code.max_locals), &rows, &moved_rows, &types)?;
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
        let mut places = Places::new(walk, caller, &mut self.appended, &mut self.plan);
        let (mut regions, pieces) = places.find(requests)?;
        let (inserts, counts) = (!pieces.is_empty(), places.counts());
        let sees = places.caller.exceptions().is_some();
        regions::nest(&mut regions);
        constructor::phases(&walk, &mut self.phases).map_err(all)?;
        let chains = Chains::new(&regions);
        let mut paths = Paths::new(&code, &self.scan, &chains, &self.phases, &mut self.plan);
        paths.pieces = pieces;
        paths.find().map_err(all)?;
        let (rows, types, moved_rows) = (paths.rows, paths.types, paths.moved_rows);

        let shifts = std::mem::take(&mut self.shifts);
        let layout = Layout::new(&code, &self.scan, &self.plan, shifts).map_err(all)?;
        // An object and an id, or an id alone; below them what is returned, or an exception.
        let around = requests.iter().any(|it| matches!(it.place, ProbeSite::Around { .. } | ProbeSite::Constructed));
        let more = match counts {
            // A token, and two longs that are added.
            true => 5,
            false => 1 + u16::from(inserts || around || !self.plan.held.is_empty()),
        };
        // An array, what is told of it, and an id.
        let allocates = requests.iter().any(|it| matches!(it.place, ProbeSite::Allocation { .. }));
        let more = if allocates { more.max(3) } else { more };
        // What leaves the method is passed on.
        let more = more + u16::from(sees);
        let max_stack = code.max_stack.max(1).checked_add(more).ok_or(all(Refusal::StackFull))?;
        let max_locals = code.max_locals.checked_add(self.plan.locals).ok_or(all(Refusal::LocalsFull))?;
        let start = self.codes.len();
        let mut writer = CodeWriter { walk, layout: &layout, appended: &mut self.appended, out: &mut self.codes };
        writer.write((max_stack, max_locals), &rows, &moved_rows, &types).map_err(all)?;
        self.shifts = layout.into_shifts();
        self.replaced.push(Replacement { from, to, content: start..self.codes.len() });
        Ok(())
    }
}

/// Writes a Code attribute's content.
struct CodeWriter<'w, 'a> {
    walk: Walk<'w, 'a>,
    layout: &'w Layout<'w>,
    appended: &'w mut Appended,
    out: &'w mut Vec<u8>,
}

impl<'w> CodeWriter<'w, '_> {
    fn write(
        &mut self,
        (max_stack, max_locals): (u16, u16),
        rows: &[Row],
        moved_rows: &[u16],
        types: &[BlockTypes],
    ) -> Result<(), Refusal> {
        let (code, layout) = (self.walk.code, self.layout);
        self.out.extend(max_stack.to_be_bytes());
        self.out.extend(max_locals.to_be_bytes());
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
        let ours = self.ours()?;
        if let Some(table) = table {
            joints.extend(layout.inverted().map(|branch| (branch.end(), layout.before(branch.end()))));
            if !joints.is_empty() || types.iter().any(|types| matches!(types, BlockTypes::Old(_))) {
                let offsets = frames::offsets(table)?;
                joints.retain(|(old, new)| offsets.binary_search(old).is_err() || layout.target(*old) != *new);
                let mut wanted: Vec<u32> = joints.iter().map(|(old, _)| *old).collect();
                wanted.extend(types.iter().filter_map(|types| match types {
                    BlockTypes::Old(offset) => Some(*offset),
                    BlockTypes::Handler(_) => None,
                }));
                made = self.states(&wanted, &ours)?;
            }
        }
        let throwable = match types.iter().any(|types| matches!(types, BlockTypes::Handler(_))) {
            true => self.appended.class(b"java/lang/Throwable")?,
            false => 0,
        };
        let mut writer = FrameWriter::new(self.out);
        let added = joints.iter().filter_map(|(old, new)| Some((*old, *new, made.get(old)?)));
        if let Some(table) = table {
            let entry = match ours.is_empty() && joints.is_empty() {
                true => None,
                false => Some(State::at_entry(self.walk.class, self.walk.method)?),
            };
            let mut written = Types { class: self.walk.class, layout, ours: &ours, appended: &mut *self.appended };
            writer.all(&mut written, entry, table, added)?;
        }
        for (block, types) in types.iter().enumerate() {
            let offset = layout.block(block);
            match types {
                BlockTypes::Handler(phase) => {
                    let local = match phase {
                        Phase::Uninitialized(local) => Some(*local),
                        Phase::Constructed | Phase::Unprotected => None,
                    };
                    writer.full(offset, &Full::of_handler(local, throwable, &ours))?;
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

    /// What every frame has behind the method's own local variables.
    fn ours(&mut self) -> Result<Ours<'w>, Refusal> {
        let held = self.layout.held();
        let object = if held.contains(&Held::Object) { self.appended.class(b"java/lang/Object")? } else { 0 };
        Ok(Ours { first: self.walk.code.max_locals, held, object })
    }

    /// The types before the instructions at these offsets, as frames.
    fn states(&mut self, wanted: &[u32], ours: &Ours<'_>) -> Result<HashMap<u32, Full>, Refusal> {
        let mut wanted = wanted.to_vec();
        wanted.sort_unstable();
        wanted.dedup();
        let mut made = HashMap::new();
        let mut left = wanted.into_iter().peekable();
        let mut types = Types { class: self.walk.class, layout: self.layout, ours, appended: &mut *self.appended };
        let base = self.walk.code.base;
        self.walk.run(|instruction, state| {
            if left.next_if_eq(&instruction.offset).is_some()
                && let Some(state) = state
            {
                made.insert(instruction.offset, types.full(state, base + instruction.offset as usize)?);
            }
            Ok(())
        })?;
        Ok(made)
    }
}
