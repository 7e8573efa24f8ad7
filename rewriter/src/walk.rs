//! The state before every instruction of a method: by its stack map where it has one, else by following its control flow.

use std::collections::{HashMap, HashSet};

use crate::class_file::{ClassFile, Method};
use crate::code::Code;
use crate::frames::FrameReader;
use crate::instructions::{self, Instruction, JSR, JSR_W, Scan};
use crate::reader::Reader;
use crate::types::{Machine, State, Type};
use crate::{Error, Refusal};

/// Slots that may be compared while following control flow: seconds of work. Real methods need thousands.
const BUDGET: u64 = 200_000_000;

/// Slots that may be kept meanwhile: fifty megabytes.
const KEPT: usize = 2_000_000;

/// What is called with an instruction and the state before it.
type Visit<'v, 'a> = dyn FnMut(&Instruction, Option<&State<'a>>) -> Result<(), Refusal> + 'v;

/// A method to be walked through.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Walk<'c, 'a> {
    pub(crate) class: &'c ClassFile<'a>,
    pub(crate) method: &'c Method<'a>,
    pub(crate) code: &'c Code<'a>,
    pub(crate) scan: &'c Scan,
}

impl<'a> Walk<'_, 'a> {
    pub(crate) fn machine(&self) -> Machine<'_, 'a> {
        Machine { class: self.class, code: self.code.bytes, base: self.code.base, max_locals: self.code.max_locals }
    }

    /// Calls `visit` with every instruction, in the order of the code, and the state before it; with none where control
    /// never comes, or where a stack map is missing.
    pub(crate) fn run(
        &self,
        mut visit: impl FnMut(&Instruction, Option<&State<'a>>) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let entry = State::at_entry(self.class, self.method)?;
        match self.code.stack_map(self.class) {
            Some(table) => self.by_frames(entry, table, &mut visit),
            None => self.by_flow(entry, &mut visit),
        }
    }

    fn by_frames(&self, entry: State<'a>, table: Reader<'a>, visit: &mut Visit<'_, 'a>) -> Result<(), Refusal> {
        let machine = self.machine();
        let mut frames = FrameReader::new(table)?;
        let mut next = frames.next()?;
        // What the latest frame says, and what has become of it; only the differences are undone at the next frame.
        let mut base = entry.clone();
        let mut state = entry;
        let mut known = true;
        for instruction in instructions::all(self.code.bytes) {
            if let Some(frame) = next.filter(|frame| frame.offset <= instruction.offset) {
                if frame.offset < instruction.offset {
                    return Err(Error::new(frame.at, "the offset of an instruction").into());
                }
                frame.apply_after(&mut base, &mut state)?;
                known = true;
                next = frames.next()?;
            }
            visit(&instruction, known.then_some(&state))?;
            if known {
                machine.step(&mut state, &instruction)?;
                known = instruction.falls_through(self.code.bytes);
            }
        }
        Ok(())
    }

    fn by_flow(&self, entry: State<'a>, visit: &mut Visit<'_, 'a>) -> Result<(), Refusal> {
        let machine = self.machine();
        let mut states = Flow::new(self)?.run(entry)?;
        let mut state: Option<State<'a>> = None;
        for instruction in instructions::all(self.code.bytes) {
            if let Some(joined) = states.remove(&instruction.offset) {
                state = joined;
            }
            visit(&instruction, state.as_ref())?;
            if let Some(current) = &mut state {
                machine.step(current, &instruction)?;
            }
            if !instruction.falls_through(self.code.bytes) {
                state = None;
            }
        }
        Ok(())
    }
}

/// Control flow followed to a fixed point: the state at every place that can be come to by other ways than from the
/// instruction above.
struct Flow<'w, 'c, 'a> {
    walk: &'w Walk<'c, 'a>,
    /// The exception ranges, each with its handler.
    handlers: Vec<(u32, u32, u32)>,
    range_starts: HashSet<u32>,
    states: HashMap<u32, Option<State<'a>>>,
    pending: Vec<u32>,
    /// Behind every `jsr`, with where it goes.
    returns: Vec<(u32, u32)>,
    budget: u64,
    /// Slots of `states`, as they were when they were first come to.
    kept: usize,
}

impl<'w, 'c, 'a> Flow<'w, 'c, 'a> {
    fn new(walk: &'w Walk<'c, 'a>) -> Result<Flow<'w, 'c, 'a>, Refusal> {
        let (code, scan) = (walk.code, walk.scan);
        let mut states = HashMap::from([(0, None)]);
        let mut returns = Vec::new();
        for branch in &scan.branches {
            for (at, target) in branch.jumps(code.bytes) {
                let target = scan.jump(target, code.len(), code.base + at)?;
                states.insert(target, None);
                if matches!(branch.opcode, JSR | JSR_W) && branch.end() < code.len() {
                    returns.push((branch.end(), target));
                    states.insert(branch.end(), None);
                }
            }
        }
        let handlers: Vec<_> = code.exceptions().map(|range| (range.start, range.end, range.handler)).collect();
        for (_, _, handler) in &handlers {
            states.insert(*handler, None);
        }
        let range_starts = handlers.iter().map(|(start, _, _)| *start).collect();
        Ok(Flow { walk, handlers, range_starts, states, pending: Vec::new(), returns, budget: BUDGET, kept: 0 })
    }

    fn run(mut self, entry: State<'a>) -> Result<HashMap<u32, Option<State<'a>>>, Refusal> {
        self.join(0, &entry.locals, &entry.stack, entry.this_uninitialized)?;
        while let Some(start) = self.pending.pop() {
            if let Some(Some(state)) = self.states.get(&start) {
                let state = state.clone();
                self.block(start, state)?;
            }
        }
        Ok(self.states)
    }

    /// From a place where control joins to the next one.
    fn block(&mut self, start: u32, mut state: State<'a>) -> Result<(), Refusal> {
        let code = self.walk.code;
        let machine = self.walk.machine();
        state.touched.clear();
        let mut offset = start;
        let mut locals_changed = true;
        while offset < code.len() {
            let instruction = instructions::at(code.bytes, offset);
            if locals_changed || self.range_starts.contains(&offset) {
                self.join_handlers(offset, &state)?;
            }
            let constructing = state.this_uninitialized;
            machine.step(&mut state, &instruction)?;
            locals_changed = !state.touched.is_empty() || constructing != state.this_uninitialized;
            state.touched.clear();
            if locals_changed {
                // The handler may be come to with either.
                self.join_handlers(offset, &state)?;
            }
            self.follow_jumps(&instruction, &state)?;
            offset = instruction.end();
            if !instruction.falls_through(code.bytes) || matches!(instruction.opcode, JSR | JSR_W) {
                return Ok(());
            }
            if self.states.contains_key(&offset) {
                return self.join(offset, &state.locals, &state.stack, state.this_uninitialized);
            }
        }
        Ok(())
    }

    fn follow_jumps(&mut self, instruction: &Instruction, state: &State<'a>) -> Result<(), Refusal> {
        let (code, scan) = (self.walk.code, self.walk.scan);
        if instruction.is_short_branch() || instruction.is_wide_branch() || instruction.is_switch() {
            for (at, target) in instruction.jumps(code.bytes) {
                let target = scan.jump(target, code.len(), code.base + at)?;
                self.join(target, &state.locals, &state.stack, state.this_uninitialized)?;
            }
        } else if instruction.is_ret(code.bytes) {
            let from = state.local(self.walk.machine().variable(instruction));
            for (target, subroutine) in self.returns.clone() {
                if from == Type::ReturnAddress(subroutine) {
                    self.join(target, &state.locals, &state.stack, state.this_uninitialized)?;
                }
            }
        }
        Ok(())
    }

    fn join_handlers(&mut self, offset: u32, state: &State<'a>) -> Result<(), Refusal> {
        let stack = [Type::Named(b"java/lang/Throwable")];
        for index in 0..self.handlers.len() {
            let (start, end, handler) = self.handlers[index];
            if (start..end).contains(&offset) {
                self.join(handler, &state.locals, &stack, state.this_uninitialized)?;
            }
        }
        self.spend(self.handlers.len())
    }

    fn spend(&mut self, slots: usize) -> Result<(), Refusal> {
        self.budget = self.budget.checked_sub(slots as u64 + 1).ok_or(Refusal::TooComplex)?;
        Ok(())
    }

    /// Control comes to a place with this state, too.
    fn join(
        &mut self,
        place: u32,
        locals: &[Type<'a>],
        stack: &[Type<'a>],
        this_uninitialized: bool,
    ) -> Result<(), Refusal> {
        self.spend(locals.len() + stack.len())?;
        let slot = self.states.entry(place).or_default();
        let changed = match slot {
            None => {
                self.kept += locals.len() + stack.len();
                if self.kept > KEPT {
                    return Err(Refusal::TooComplex);
                }
                let (locals, stack) = (locals.to_vec(), stack.to_vec());
                *slot = Some(State { locals, stack, this_uninitialized, touched: Vec::new() });
                true
            }
            Some(known) => {
                let constructing = known.this_uninitialized;
                known.this_uninitialized |= this_uninitialized;
                merge(&mut known.locals, locals)
                    | merge(&mut known.stack, stack)
                    | (constructing != known.this_uninitialized)
            }
        };
        if changed {
            self.pending.push(place);
        }
        Ok(())
    }
}

/// Slots that differ are of no use to anybody. Whether anything changed.
fn merge<'a>(known: &mut Vec<Type<'a>>, other: &[Type<'a>]) -> bool {
    let mut changed = known.len() > other.len();
    known.truncate(other.len());
    for (known, other) in known.iter_mut().zip(other) {
        if known != other && *known != Type::Top {
            *known = Type::Top;
            changed = true;
        }
    }
    changed
}
