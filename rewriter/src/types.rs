//! Following a method's types (JVMS 4.10): what the locals and the operand stack hold before each instruction.
//!
//! Wanted where a frame must be made up, where `this` or a new object is not yet constructed, and nowhere else. Nothing is
//! verified here: code that the JVM accepts is followed exactly, other code as far as it makes sense.

use crate::Error;
use crate::class_file::{ClassFile, Method};
use crate::constant_pool::{CLASS, DOUBLE, DYNAMIC, FLOAT, INTEGER, LONG, METHOD_HANDLE, METHOD_TYPE, STRING};
use crate::instructions::{
    ALOAD, ANEWARRAY, CHECKCAST, GETFIELD, GETSTATIC, ILOAD, INVOKEDYNAMIC, INVOKESPECIAL, INVOKESTATIC, INVOKEVIRTUAL,
    ISTORE, Instruction, JSR, JSR_W, LDC, LDC_W, LDC2_W, MULTIANEWARRAY, NEW, NEWARRAY, PUTFIELD, PUTSTATIC, WIDE,
};

/// What a slot holds (JVMS 4.10.1.2). Longs and doubles take two slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type<'a> {
    /// Nothing that can be used.
    Top,
    Integer,
    Float,
    Long,
    Double,
    /// The second slot of a long or double.
    Second,
    Null,
    UninitializedThis,
    /// The object made by the `new` at an offset, before its constructor has run.
    Uninitialized(u32),
    /// Of the class that a class constant names.
    Class(u16),
    /// Of a class or array, by its internal name.
    Named(&'a [u8]),
    /// An array of what a class constant names.
    ArrayOf(u16),
    /// Where the subroutine that begins at an offset returns to.
    ReturnAddress(u32),
}

impl<'a> Type<'a> {
    fn is_wide(self) -> bool {
        matches!(self, Type::Long | Type::Double)
    }

    /// The type of a descriptor that begins here, and the rest; `None` at what is no type, `void` included.
    pub(crate) fn of_descriptor(text: &'a [u8]) -> Option<(Type<'a>, &'a [u8])> {
        let (first, rest) = text.split_first()?;
        let plain = match first {
            b'Z' | b'B' | b'C' | b'S' | b'I' => Type::Integer,
            b'F' => Type::Float,
            b'J' => Type::Long,
            b'D' => Type::Double,
            b'L' => {
                let end = rest.iter().position(|byte| *byte == b';')?;
                return Some((Type::Named(&rest[..end]), &rest[end + 1..]));
            }
            b'[' => {
                let (_, after) = Type::of_descriptor(&text[text.iter().position(|byte| *byte != b'[')?..])?;
                return Some((Type::Named(&text[..text.len() - after.len()]), after));
            }
            _ => return None,
        };
        Some((plain, rest))
    }
}

/// The parameters of a method's descriptor, and what follows them: the result.
pub(crate) fn parameters(descriptor: &[u8]) -> (Vec<Type<'_>>, &[u8]) {
    let mut rest = descriptor.strip_prefix(b"(").unwrap_or(descriptor);
    let mut types = Vec::new();
    while let Some((parameter, after)) = Type::of_descriptor(rest) {
        types.push(parameter);
        rest = after;
    }
    (types, rest.strip_prefix(b")").unwrap_or(rest))
}

/// Locals and operand stack, slot by slot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct State<'a> {
    pub(crate) locals: Vec<Type<'a>>,
    pub(crate) stack: Vec<Type<'a>>,
    /// `this` is still to be constructed (JVMS 4.10.1.4, flagThisUninit).
    pub(crate) this_uninitialized: bool,
    /// Locals that were set since the log was last cleared.
    pub(crate) touched: Vec<u16>,
}

impl<'a> State<'a> {
    /// Where a method begins.
    pub(crate) fn at_entry(class: &ClassFile<'a>, method: &Method<'a>) -> Result<State<'a>, Error> {
        const STATIC: u16 = 0x0008;
        let mut state = State::default();
        if method.access & STATIC == 0 {
            let this = class.u2_at(class.this_class_at)?;
            let is_object = class.pool.class_bytes(this, class.this_class_at)? == b"java/lang/Object";
            state.this_uninitialized = method.name == b"<init>" && !is_object;
            let this = if state.this_uninitialized { Type::UninitializedThis } else { Type::Class(this) };
            state.locals.push(this);
        }
        for parameter in parameters(method.descriptor).0 {
            push(&mut state.locals, parameter);
        }
        Ok(state)
    }

    pub(crate) fn local(&self, index: u16) -> Type<'a> {
        self.locals.get(usize::from(index)).copied().unwrap_or(Type::Top)
    }

    fn set_slot(&mut self, index: usize, to: Type<'a>) {
        if self.locals.len() <= index {
            self.locals.resize(index + 1, Type::Top);
        }
        self.locals[index] = to;
        self.touched.push(index as u16);
    }

    fn store(&mut self, index: u16, to: Type<'a>) {
        let index = usize::from(index);
        // Half a long is no value.
        if index > 0 && self.locals.get(index - 1).is_some_and(|before| before.is_wide()) {
            self.set_slot(index - 1, Type::Top);
        }
        let last = if to.is_wide() { index + 1 } else { index };
        if self.locals.get(last).is_some_and(|before| before.is_wide()) {
            self.set_slot(last + 1, Type::Top);
        }
        self.set_slot(index, to);
        if to.is_wide() {
            self.set_slot(index + 1, Type::Second);
        }
    }

    /// An object is constructed: whatever stood for it before is of its class now.
    fn initialize(&mut self, object: Type<'a>, class: Type<'a>) {
        for index in 0..self.locals.len() {
            if self.locals[index] == object {
                self.set_slot(index, class);
            }
        }
        for slot in &mut self.stack {
            if *slot == object {
                *slot = class;
            }
        }
        if object == Type::UninitializedThis {
            self.this_uninitialized = false;
        }
    }

    fn pop(&mut self, slots: usize, at: usize) -> Result<(), Error> {
        let left = self.stack.len().checked_sub(slots);
        self.stack.truncate(left.ok_or_else(|| Error::new(at, "operands on the stack"))?);
        Ok(())
    }

    fn push(&mut self, value: Type<'a>) {
        push(&mut self.stack, value);
    }

    /// The slot that lies so deep; 0 is the top.
    pub(crate) fn peek(&self, depth: usize) -> Option<Type<'a>> {
        self.stack.len().checked_sub(depth + 1).map(|index| self.stack[index])
    }

    /// Copies the upper `count` slots below the `below` slots under them.
    fn duplicate(&mut self, count: usize, below: usize, at: usize) -> Result<(), Error> {
        let length = self.stack.len();
        let place = length.checked_sub(count + below).ok_or_else(|| Error::new(at, "operands on the stack"))?;
        self.stack.extend_from_within(length - count..);
        self.stack[place..].rotate_right(count);
        Ok(())
    }
}

fn push<'a>(slots: &mut Vec<Type<'a>>, value: Type<'a>) {
    slots.push(value);
    if value.is_wide() {
        slots.push(Type::Second);
    }
}

/// How many slots values take.
pub(crate) fn slots(types: &[Type<'_>]) -> usize {
    types.iter().map(|one| 1 + usize::from(one.is_wide())).sum()
}

/// What the `Integer`, `Long`, `Float`, `Double`, and reference forms of an instruction work on, in the order of the opcodes.
const NUMBERS: [Type<'static>; 4] = [Type::Integer, Type::Long, Type::Float, Type::Double];

/// Executes instructions of a class on types.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Machine<'c, 'a> {
    pub(crate) class: &'c ClassFile<'a>,
    pub(crate) code: &'a [u8],
    /// Absolute offset of the code.
    pub(crate) base: usize,
    /// How many slots the method's local variables have.
    pub(crate) max_locals: u16,
}

impl<'a> Machine<'_, 'a> {
    /// The state behind an instruction, where control goes on.
    pub(crate) fn step(&self, state: &mut State<'a>, instruction: &Instruction) -> Result<(), Error> {
        let at = self.base + instruction.offset as usize;
        let opcode = instruction.opcode;
        // (popped slots, pushed)
        let (pops, pushed) = match opcode {
            0x01 => (0, Some(Type::Null)),
            0x02..=0x08 | 0x10 | 0x11 => (0, Some(Type::Integer)),
            0x09 | 0x0a => (0, Some(Type::Long)),
            0x0b..=0x0d => (0, Some(Type::Float)),
            0x0e | 0x0f => (0, Some(Type::Double)),
            LDC => (0, Some(self.constant(instruction.u1(self.code).into(), at)?)),
            LDC_W | LDC2_W => (0, Some(self.constant(instruction.operand(self.code), at)?)),
            ILOAD..=ALOAD | 0x1a..=0x2d => (0, Some(self.loaded(state, instruction))),
            0x2e | 0x33..=0x35 => (2, Some(Type::Integer)),
            0x2f..=0x31 => (2, Some(NUMBERS[usize::from(opcode - 0x2e)])),
            0x32 => (2, Some(self.component(state.peek(1).unwrap_or(Type::Top), at)?)),
            ISTORE..=0x4e => return self.stored(state, instruction, at),
            0x4f | 0x51 | 0x53..=0x56 => (3, None),
            0x50 | 0x52 => (4, None),
            0x57 => (1, None),
            0x58 => (2, None),
            0x59..=0x5b => return state.duplicate(1, usize::from(opcode - 0x59), at),
            0x5c..=0x5e => return state.duplicate(2, usize::from(opcode - 0x5c), at),
            0x5f => {
                let length = state.stack.len();
                if length < 2 {
                    return Err(Error::new(at, "operands on the stack"));
                }
                state.stack.swap(length - 1, length - 2);
                return Ok(());
            }
            0x60..=0x73 => {
                let number = NUMBERS[usize::from(opcode & 3)];
                (2 * slots(&[number]), Some(number))
            }
            0x74..=0x77 => {
                let number = NUMBERS[usize::from(opcode & 3)];
                (slots(&[number]), Some(number))
            }
            0x78 | 0x7a | 0x7c | 0x7e | 0x80 | 0x82 => (2, Some(Type::Integer)),
            0x79 | 0x7b | 0x7d => (3, Some(Type::Long)),
            0x7f | 0x81 | 0x83 => (4, Some(Type::Long)),
            0x85 | 0x8c => (1, Some(Type::Long)),
            0x86 => (1, Some(Type::Float)),
            0x87 | 0x8d => (1, Some(Type::Double)),
            0x88 | 0x8e => (2, Some(Type::Integer)),
            0x89 | 0x90 => (2, Some(Type::Float)),
            0x8a => (2, Some(Type::Double)),
            0x8f => (2, Some(Type::Long)),
            0x8b | 0x91..=0x93 => (1, Some(Type::Integer)),
            0x94 | 0x97 | 0x98 => (4, Some(Type::Integer)),
            0x95 | 0x96 => (2, Some(Type::Integer)),
            0x99..=0x9e | 0xaa | 0xab | 0xc6 | 0xc7 | 0xbf | 0xc2 | 0xc3 => (1, None),
            0x9f..=0xa6 => (2, None),
            JSR | JSR_W => {
                let subroutine = u32::try_from(instruction.branch_target(self.code)).unwrap_or(u32::MAX);
                (0, Some(Type::ReturnAddress(subroutine)))
            }
            GETSTATIC..=PUTFIELD => return self.field(state, instruction, at),
            INVOKEVIRTUAL..=INVOKEDYNAMIC => return self.call(state, instruction, at),
            NEW => (0, Some(Type::Uninitialized(instruction.offset))),
            NEWARRAY => (1, Some(Type::Named(primitive_array(instruction.u1(self.code))))),
            ANEWARRAY => (1, Some(Type::ArrayOf(instruction.operand(self.code)))),
            0xbe | 0xc1 => (1, Some(Type::Integer)),
            CHECKCAST => (1, Some(Type::Class(instruction.operand(self.code)))),
            WIDE => match self.code[instruction.offset as usize + 1] {
                ISTORE..=0x3a => return self.stored(state, instruction, at),
                ILOAD..=ALOAD => (0, Some(self.loaded(state, instruction))),
                _ => (0, None),
            },
            MULTIANEWARRAY => {
                let dimensions = self.code[instruction.offset as usize + 3];
                (dimensions.into(), Some(Type::Class(instruction.operand(self.code))))
            }
            // nop, iinc, gotos, ret, returns: what is left on the stack does not matter behind a return.
            _ => (0, None),
        };
        state.pop(pops, at)?;
        if let Some(value) = pushed {
            state.push(value);
        }
        Ok(())
    }

    fn constant(&self, index: u16, at: usize) -> Result<Type<'a>, Error> {
        let named = |name: &'static [u8]| Ok(Type::Named(name));
        match self.class.pool.entry(index, at)?.0 {
            INTEGER => Ok(Type::Integer),
            FLOAT => Ok(Type::Float),
            LONG => Ok(Type::Long),
            DOUBLE => Ok(Type::Double),
            STRING => named(b"java/lang/String"),
            CLASS => named(b"java/lang/Class"),
            METHOD_HANDLE => named(b"java/lang/invoke/MethodHandle"),
            METHOD_TYPE => named(b"java/lang/invoke/MethodType"),
            DYNAMIC => {
                let (_, descriptor) = self.class.pool.signature_bytes(index, at)?;
                let one = Type::of_descriptor(descriptor).ok_or_else(|| Error::new(at, "a constant's descriptor"))?;
                Ok(one.0)
            }
            _ => Err(Error::new(at, "the index of a constant that can be loaded")),
        }
    }

    /// The local variable that a load, store or `ret` names.
    pub(crate) fn variable(&self, instruction: &Instruction) -> u16 {
        match instruction.opcode {
            WIDE => u16::from_be_bytes([
                self.code[instruction.offset as usize + 2],
                self.code[instruction.offset as usize + 3],
            ]),
            0x1a..=0x2d => u16::from(instruction.opcode - 0x1a) & 3,
            0x3b..=0x4e => u16::from(instruction.opcode - 0x3b) & 3,
            _ => instruction.u1(self.code).into(),
        }
    }

    /// 0 to 4 for int, long, float, double, reference.
    fn kind(&self, instruction: &Instruction) -> usize {
        usize::from(match instruction.opcode {
            WIDE => return self.kind(&Instruction { opcode: instruction.u1(self.code), ..*instruction }),
            opcode @ ILOAD..=ALOAD => opcode - ILOAD,
            opcode @ 0x1a..=0x2d => (opcode - 0x1a) / 4,
            opcode @ ISTORE..=0x3a => opcode - ISTORE,
            opcode => (opcode - 0x3b) / 4,
        })
    }

    fn loaded(&self, state: &State<'a>, instruction: &Instruction) -> Type<'a> {
        let number = NUMBERS.get(self.kind(instruction)).copied();
        number.unwrap_or_else(|| state.local(self.variable(instruction)))
    }

    fn stored(&self, state: &mut State<'a>, instruction: &Instruction, at: usize) -> Result<(), Error> {
        let value = match NUMBERS.get(self.kind(instruction)) {
            Some(number) => *number,
            None => state.peek(0).unwrap_or(Type::Top),
        };
        state.pop(slots(&[value]), at)?;
        let variable = self.variable(instruction);
        // Of two bytes that anybody could write, 65,535 slots would come.
        if usize::from(variable) + slots(&[value]) > usize::from(self.max_locals) {
            return Err(Error::new(at, "a local variable that the method has"));
        }
        state.store(variable, value);
        Ok(())
    }

    /// What an array's elements are.
    fn component(&self, array: Type<'a>, at: usize) -> Result<Type<'a>, Error> {
        let of_name = |name: &'a [u8]| {
            let component = name.strip_prefix(b"[").and_then(Type::of_descriptor);
            component.map_or(Type::Top, |(component, _)| component)
        };
        Ok(match array {
            Type::Null => Type::Null,
            Type::Named(name) => of_name(name),
            Type::Class(index) => of_name(self.class.pool.class_bytes(index, at)?),
            Type::ArrayOf(index) => Type::Class(index),
            _ => Type::Top,
        })
    }

    fn field(&self, state: &mut State<'a>, instruction: &Instruction, at: usize) -> Result<(), Error> {
        let (_, descriptor) = self.class.pool.signature_bytes(instruction.operand(self.code), at)?;
        let (value, _) = Type::of_descriptor(descriptor).ok_or_else(|| Error::new(at, "a field's descriptor"))?;
        match instruction.opcode {
            GETSTATIC => state.push(value),
            PUTSTATIC => state.pop(slots(&[value]), at)?,
            GETFIELD => {
                state.pop(1, at)?;
                state.push(value);
            }
            _ => state.pop(1 + slots(&[value]), at)?,
        }
        Ok(())
    }

    fn call(&self, state: &mut State<'a>, instruction: &Instruction, at: usize) -> Result<(), Error> {
        let (name, descriptor) = self.class.pool.signature_bytes(instruction.operand(self.code), at)?;
        let (parameters, result) = parameters(descriptor);
        state.pop(slots(&parameters), at)?;
        if !matches!(instruction.opcode, INVOKESTATIC | INVOKEDYNAMIC) {
            let receiver = state.peek(0).unwrap_or(Type::Top);
            state.pop(1, at)?;
            if instruction.opcode == INVOKESPECIAL && name == b"<init>" {
                let class = match receiver {
                    Type::UninitializedThis => Some(Type::Class(self.class.u2_at(self.class.this_class_at)?)),
                    // The class that the `new` names; its offset is that of an instruction of ours.
                    Type::Uninitialized(new) => {
                        let new = new as usize;
                        let operand = self.code.get(new + 1..new + 3);
                        operand.map(|operand| Type::Class(u16::from_be_bytes([operand[0], operand[1]])))
                    }
                    _ => None,
                };
                if let Some(class) = class {
                    state.initialize(receiver, class);
                }
            }
        }
        if let Some((value, _)) = Type::of_descriptor(result) {
            state.push(value);
        }
        Ok(())
    }

    /// The object that a call constructs: what its receiver is, if it is not constructed yet.
    pub(crate) fn constructed(&self, state: &State<'a>, call: &Instruction) -> Result<Option<Type<'a>>, Error> {
        let at = self.base + call.offset as usize;
        if call.opcode != INVOKESPECIAL {
            return Ok(None);
        }
        let (name, descriptor) = self.class.pool.signature_bytes(call.operand(self.code), at)?;
        if name != b"<init>" {
            return Ok(None);
        }
        let receiver = state.peek(slots(&parameters(descriptor).0));
        Ok(receiver.filter(|receiver| matches!(receiver, Type::UninitializedThis | Type::Uninitialized(_))))
    }
}

fn primitive_array(code: u8) -> &'static [u8] {
    match code {
        4 => b"[Z",
        5 => b"[C",
        6 => b"[F",
        7 => b"[D",
        8 => b"[B",
        9 => b"[S",
        11 => b"[J",
        _ => b"[I",
    }
}
