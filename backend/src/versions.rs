//! Whether a class file is the one that a class runs.
//!
//! A retransformation begins with the class file that the JVM has kept, or makes up, and with what other agents make of it. Neither need be what runs.
//! Up to JDK 19 HotSpot keeps the first one for good, however often somebody else redefines the class afterwards, by a developer's hot swap for
//! instance (JDK-7124710); and an agent may have been told to transform a class once, and not again. Whoever retransforms such a class takes
//! from it what it has become. So a file is compared with the class: instruction by instruction, with what their constants stand for, handlers of
//! exceptions, and lines. What differs in annotations alone is not seen.
//!
//! And a call on a stack may run a version that is not the current one; of some the JVM does not tell.

use std::collections::HashMap;

use headwater_modified_utf8 as modified_utf8;
use jni::sys::{jclass, jmethodID};

use crate::class_file::{self, ClassFile, Pool};
use crate::constants::{self, short};
use crate::hotspot::behind_code::BehindCode;
use crate::jvmti::{Jvmti, MethodName};

/// An instruction and its line.
type Lines = Vec<(u16, u16)>;
/// From where to where exceptions of a class, of any if it is 0, are handled, and where.
type Handlers = Vec<[u16; 4]>;
/// Constants that are computed from others, and these from others, are compared as far as so many: of those that are computed from themselves there is no end.
const MOST_COMPARED: usize = 4096;

/// The packages of what the JVM's flight recorder has its classes of files, sockets and exceptions call.
const RECORDERS: [&[u8]; 2] = [b"jdk/jfr/events/", b"jdk/jfr/internal/instrument/"];

/// What instructions refer to.
#[derive(Clone, Copy, Debug)]
struct Constants<'a> {
    pool: &'a Pool<'a>,
    /// How those are linked that are computed, as far as that is known.
    bootstraps: Option<&'a [Vec<u16>]>,
}

/// A method's code, and what stands behind it.
#[derive(Clone, Copy, Debug)]
struct Code<'a> {
    instructions: &'a [u8],
    constants: Constants<'a>,
    lines: &'a Lines,
    /// As far as they are known.
    handlers: Option<&'a Handlers>,
}

/// Whether each method of a class file runs in the class as it stands there; `None`, where the JVM does not tell: of a class that is not linked.
pub fn is_running(
    (jvmti, behind_code): (Jvmti, Option<&BehindCode>),
    class: jclass,
    file: &ClassFile<'_>,
) -> Option<bool> {
    let (count, bytes) = jvmti.constant_pool(class).ok()?;
    let (pool, _) = Pool::parse(count, &bytes)?;
    let methods = jvmti.methods(class).ok()?;
    let bootstraps = behind_code.zip(methods.first()).and_then(|(behind, method)| behind.bootstraps(*method, &pool));
    let its_constants = Constants { pool: &pool, bootstraps: bootstraps.as_deref() };
    let constants = Constants { pool: &file.pool, bootstraps: Some(&file.bootstraps) };
    let named: Option<Vec<(MethodName, jmethodID)>> =
        methods.into_iter().map(|method| Some((jvmti.method_key(method).ok()?, method))).collect();
    let named: HashMap<_, _> = named?.into_iter().collect();
    for method in &file.methods {
        let name = MethodName { name: method.name.to_vec(), descriptor: method.descriptor.to_vec() };
        let Some(running) = named.get(&name) else { return Some(false) };
        let Some(code) = method.attribute("Code") else { continue };
        let (instructions, lines, handlers) = parts(file, code)?;
        let (runs, its_lines) = (jvmti.bytecodes(*running).ok()?, jvmti.line_numbers(*running).ok()?);
        let its_handlers = behind_code.and_then(|behind| behind.tables(*running)).map(|tables| tables.handlers);
        let code = Code { instructions, constants, lines: &lines, handlers: Some(&handlers) };
        let its =
            Code { instructions: &runs, constants: its_constants, lines: &its_lines, handlers: its_handlers.as_ref() };
        let is_same = if runs.len() == instructions.len() { is_same_code(its, code) } else { is_widened(code, its) };
        if !is_same && !is_recorders(its, code) {
            return Some(false);
        }
    }
    Some(true)
}

/// A method's code as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Current {
    code: Vec<u8>,
    /// The number of its class's constants, and they.
    pool: (u16, Vec<u8>),
}

impl Current {
    /// That of a method.
    pub fn of(jvmti: Jvmti, class: jclass, method: jmethodID) -> Option<Current> {
        Some(Current { code: jvmti.bytecodes(method).ok()?, pool: jvmti.constant_pool(class).ok()? })
    }

    /// Whether a call that is at this place, and has called `callee`, may run this code. If not, it runs another version of it.
    pub fn may_be_at(&self, place: usize, callee: Option<&str>) -> bool {
        let Some((pool, _)) = Pool::parse(self.pool.0, &self.pool.1) else { return true };
        let mut at = 0;
        while at < place {
            match operands(&self.code, at) {
                Some(Operands::Plain(length)) => at += 1 + length,
                Some(Operands::Constant(index, more)) => at += 1 + index + more,
                None => return true,
            }
        }
        let (Some(opcode), true) = (self.code.get(at), at == place) else { return false };
        let Some(callee) = callee else { return true };
        match opcode {
            // Calls of methods, by whatever name an agent gives native ones.
            0xb6..=0xb9 => {
                let called = short(&self.code, at + 1).and_then(|index| called_name(&pool, index));
                called.is_none_or(|name| callee.ends_with(&*name)) || is_called_by_the_jvm(callee)
            }
            // The JVM calls what it likes.
            0xba => true,
            _ => is_called_by_the_jvm(callee),
        }
    }
}

/// The name of what a method constant stands for.
fn called_name<'b>(pool: &Pool<'b>, index: u16) -> Option<std::borrow::Cow<'b, str>> {
    let name_and_type = pool.get(short(pool.get(index)?.content, 2)?)?;
    Some(modified_utf8::decode(pool.text(short(name_and_type.content, 0)?)?))
}

/// Whether the JVM calls methods of this name by itself, in the middle of an instruction: to load, link and initialise classes, to make
/// exceptions, to register finalizers.
fn is_called_by_the_jvm(name: &str) -> bool {
    const NAMES: [&str; 7] =
        ["<clinit>", "<init>", "loadClass", "checkPackageAccess", "register", "linkMethod", "linkCallSite"];
    NAMES.contains(&name) || name.starts_with("find") || name.starts_with("link") || name.starts_with("invoke")
}

/// What is in a Code attribute (JVMS 4.7.3).
fn parts<'b>(file: &ClassFile<'b>, content: &'b [u8]) -> Option<(&'b [u8], Lines, Handlers)> {
    const CODE_AT: usize = 8;
    const HANDLER: usize = 8;
    let length = u32::from_be_bytes(*content.get(4..)?.first_chunk()?);
    let end = CODE_AT.checked_add(usize::try_from(length).ok()?)?;
    let code = content.get(CODE_AT..end)?;
    let attributes_at = end + 2 + HANDLER * usize::from(short(content, end)?);
    let handlers = content.get(end + 2..attributes_at)?.as_chunks::<HANDLER>().0;
    let handlers = handlers.iter().map(|handler| std::array::from_fn(|at| short(handler, 2 * at).unwrap_or_default()));
    let (attributes, _) = class_file::attributes(content, &file.pool, attributes_at)?;
    let tables = attributes.iter().filter(|attribute| attribute.name == b"LineNumberTable");
    let rows = tables.flat_map(|table| table.content.get(2..).unwrap_or_default().as_chunks::<4>().0);
    let lines = rows.map(|[a, b, c, d]| (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d])));
    Some((code, lines.collect(), handlers.collect()))
}

/// What follows an opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operands {
    /// So many bytes.
    Plain(usize),
    /// The index of a constant, of so many bytes, and so many bytes more.
    Constant(usize, usize),
}

/// The instruction at this place (JVMS 6.5); `None`, if there is none.
fn operands(code: &[u8], at: usize) -> Option<Operands> {
    use Operands::{Constant, Plain};
    const WIDE_IINC: u8 = 0x84;
    let word = |at: usize| Some(i32::from_be_bytes(*code.get(at..)?.first_chunk()?));
    // A switch is aligned to four bytes.
    let table_at = (at + 4) & !3;
    let of_switch = |words: Option<usize>| Some(Plain(table_at.checked_add(words?.checked_mul(4)?)? - at - 1));
    Some(match *code.get(at)? {
        0x12 => Constant(1, 0),
        0x13 | 0x14 | 0xb2..=0xb8 | 0xbb | 0xbd | 0xc0 | 0xc1 => Constant(2, 0),
        0xb9 | 0xba => Constant(2, 2),
        0xc5 => Constant(2, 1),
        0x10 | 0x15..=0x19 | 0x36..=0x3a | 0xa9 | 0xbc => Plain(1),
        0x11 | 0x84 | 0x99..=0xa8 | 0xc6 | 0xc7 => Plain(2),
        0xc8 | 0xc9 => Plain(4),
        0xaa => {
            let (low, high) = (word(table_at + 4)?, word(table_at + 8)?);
            return of_switch(usize::try_from(i64::from(high) - i64::from(low) + 4).ok());
        }
        0xab => return of_switch(usize::try_from(i64::from(word(table_at + 4)?) * 2 + 2).ok()),
        0xc4 => Plain(if code.get(at + 1) == Some(&WIDE_IINC) { 5 } else { 3 }),
        0x00..=0xc3 => Plain(0),
        0xca.. => return None,
    })
}

/// Whether two methods' code is the same, instruction by instruction.
fn is_same_code(a: Code<'_>, b: Code<'_>) -> bool {
    a.lines == b.lines && is_handled_the_same(a, b, Some) && are_same_instructions(a, b)
}

/// Whether exceptions are handled in the same way, where the first one's places are `moved`.
fn is_handled_the_same(a: Code<'_>, b: Code<'_>, moved: impl Fn(u16) -> Option<u16>) -> bool {
    // JDKs whose own class file is what runs are not asked.
    let (Some(of_a), Some(of_b)) = (a.handlers, b.handlers) else { return true };
    let is_same = |([start, end, handler, class], its): (&[u16; 4], &[u16; 4])| {
        let places = [start, end, handler].map(|place| moved(*place));
        let is_same_class =
            (*class, its[3]) == (0, 0) || is_same_constant((a.constants, *class), (b.constants, its[3]));
        places == [Some(its[0]), Some(its[1]), Some(its[2])] && is_same_class
    };
    of_a.len() == of_b.len() && of_a.iter().zip(of_b).all(is_same)
}

fn are_same_instructions(of_a: Code<'_>, of_b: Code<'_>) -> bool {
    let (a, b) = (of_a.instructions, of_b.instructions);
    if a.len() != b.len() {
        return false;
    }
    let (in_a, in_b) = (of_a.constants, of_b.constants);
    let mut at = 0;
    while at < a.len() {
        let Some(operands) = operands(a, at).filter(|_| a[at] == b[at]) else { return false };
        let (constant, length) = match operands {
            Operands::Plain(length) => (0, length),
            Operands::Constant(index, more) => (index, index + more),
        };
        let behind = at + 1 + length;
        let (Some(of_a), Some(of_b)) = (a.get(at + 1..behind), b.get(at + 1..behind)) else { return false };
        let index = |of: &[u8]| of[..constant].iter().fold(0, |index, byte| index << 8 | u16::from(*byte));
        if of_a[constant..] != of_b[constant..]
            || constant > 0 && !is_same_constant((in_a, index(of_a)), (in_b, index(of_b)))
        {
            return false;
        }
        at = behind;
    }
    true
}

/// Whether a method's code is that of one that runs, but for wide indexes: HotSpot puts the constants of what is redefined behind those of
/// the version before, and where one is too far then for `ldc` has `ldc_w`, with all that is behind it moved.
fn is_widened(of_file: Code<'_>, its: Code<'_>) -> bool {
    let (code, runs) = (of_file.instructions, its.instructions);
    let mut places = HashMap::from([(code.len(), runs.len())]);
    let mut jumps = Vec::new();
    let (mut at, mut its_at) = (0, 0);
    while at < code.len() && its_at < runs.len() {
        places.insert(at, its_at);
        let (Some(one), Some(other)) = (Instruction::at(code, at), Instruction::at(runs, its_at)) else { return false };
        let is_same_constant = match (one.constant, other.constant) {
            (Some(one), Some(other)) => is_same_constant((of_file.constants, one), (its.constants, other)),
            (one, other) => one == other,
        };
        let is_same = (one.opcode, &one.numbers) == (other.opcode, &other.numbers);
        if !is_same_constant || !is_same || one.targets.len() != other.targets.len() {
            return false;
        }
        jumps.extend(one.targets.into_iter().zip(other.targets));
        (at, its_at) = (one.end, other.end);
    }
    let is_moved = |(from, to): (usize, usize)| places.get(&from) == Some(&to);
    let moved = |place: u16| u16::try_from(*places.get(&usize::from(place))?).ok();
    let line = |(start, line): &(u16, u16)| Some((moved(*start)?, *line));
    (at, its_at) == (code.len(), runs.len())
        && jumps.into_iter().all(is_moved)
        && of_file.lines.iter().map(line).eq(its.lines.iter().map(|line| Some(*line)))
        && is_handled_the_same(of_file, its, moved)
}

/// Whether a method runs what the JVM's flight recorder has made of the one of a class file. From JDK 20 on that is done behind all agents, each time the class
/// is retransformed: nobody takes it away. Up to JDK 19 the recorder is an agent, too, whose work is in the class file that those get who came later.
fn is_recorders(its: Code<'_>, of_file: Code<'_>) -> bool {
    let is_its = |class: &[u8]| RECORDERS.iter().any(|package| class.starts_with(package));
    calls_static(its.instructions, its.constants.pool, is_its)
        && !calls_static(of_file.instructions, of_file.constants.pool, is_its)
}

/// Whether code of a class file calls a class's static methods.
pub fn calls(file: &ClassFile<'_>, class: &[u8]) -> bool {
    let codes = file.methods.iter().filter_map(|method| method.attribute("Code"));
    let mut instructions = codes.filter_map(|code| Some(parts(file, code)?.0));
    instructions.any(|instructions| calls_static(instructions, &file.pool, |called| called == class))
}

/// Whether instructions call static methods of such a class.
fn calls_static(instructions: &[u8], pool: &Pool<'_>, is_meant: impl Fn(&[u8]) -> bool) -> bool {
    const INVOKESTATIC: u8 = 0xb8;
    let of_constant = |index: u16, at: usize| short(pool.get(index)?.content, at);
    let is_called = |reference: u16| {
        let name = of_constant(reference, 0).and_then(|class| of_constant(class, 0));
        name.and_then(|name| pool.text(name)).is_some_and(&is_meant)
    };
    let mut at = 0;
    while let Some(instruction) = Instruction::at(instructions, at) {
        if instruction.opcode == INVOKESTATIC && instruction.constant.is_some_and(is_called) {
            return true;
        }
        at = instruction.end;
    }
    false
}

/// What an instruction does, wherever it stands.
#[derive(Debug)]
struct Instruction {
    /// `ldc_w` also of `ldc`.
    opcode: u8,
    constant: Option<u16>,
    /// Other operands that are no places.
    numbers: Vec<i32>,
    /// Where it may jump to.
    targets: Vec<usize>,
    end: usize,
}

impl Instruction {
    /// That at this place; `None` if there is none.
    fn at(code: &[u8], at: usize) -> Option<Instruction> {
        const LDC: u8 = 0x12;
        const LDC_W: u8 = 0x13;
        let opcode = *code.get(at)?;
        let target = |offset: i32| usize::try_from(i64::try_from(at).ok()? + i64::from(offset)).ok();
        let (constant, length) = match operands(code, at)? {
            Operands::Plain(length) => (0, length),
            Operands::Constant(index, more) => (index, index + more),
        };
        let end = at + 1 + length;
        let operands = code.get(at + 1..end)?;
        let (index, others) = operands.split_at(constant);
        let words = || code.get((at + 4) & !3..end).unwrap_or_default().as_chunks::<4>().0;
        let words = || words().iter().map(|word| i32::from_be_bytes(*word)).enumerate();
        // JVMS 6.5: the default, the lowest and the highest key, and offsets; the default, how many pairs, and pairs of keys and offsets.
        let is_offset = |place: usize| match opcode {
            0xaa => !matches!(place, 1 | 2),
            _ => place == 0 || place > 1 && place % 2 == 1,
        };
        let (numbers, targets): (Vec<i32>, Option<Vec<usize>>) = match opcode {
            0x99..=0xa8 | 0xc6 | 0xc7 => {
                (Vec::new(), Some(vec![target(i16::from_be_bytes(*others.first_chunk()?).into())?]))
            }
            0xc8 | 0xc9 => (Vec::new(), Some(vec![target(i32::from_be_bytes(*others.first_chunk()?))?])),
            0xaa | 0xab => (
                words().filter(|(place, _)| !is_offset(*place)).map(|(_, word)| word).collect(),
                words().filter(|(place, _)| is_offset(*place)).map(|(_, word)| target(word)).collect(),
            ),
            _ => (others.iter().map(|byte| i32::from(*byte)).collect(), Some(Vec::new())),
        };
        Some(Instruction {
            opcode: if opcode == LDC { LDC_W } else { opcode },
            constant: (constant > 0).then(|| index.iter().fold(0, |index, byte| index << 8 | u16::from(*byte))),
            numbers,
            targets: targets?,
            end,
        })
    }
}

/// Whether two constants stand for the same, each its pool's.
fn is_same_constant(a: (Constants<'_>, u16), b: (Constants<'_>, u16)) -> bool {
    is_same_within(a, b, &mut { MOST_COMPARED })
}

/// The same, of those that are computed from others: of so many more.
fn is_same_within((a, a_index): (Constants<'_>, u16), (b, b_index): (Constants<'_>, u16), more: &mut usize) -> bool {
    let (Some(of_a), Some(of_b), Some(left)) = (a.pool.get(a_index), b.pool.get(b_index), more.checked_sub(1)) else {
        return false;
    };
    *more = left;
    if of_a.tag != of_b.tag {
        return false;
    }
    let same_at = |at, more: &mut usize| match (short(of_a.content, at), short(of_b.content, at)) {
        (Some(a_index), Some(b_index)) => is_same_within((a, a_index), (b, b_index), more),
        _ => false,
    };
    let is_linked_the_same = |more: &mut usize| {
        // JDKs whose own class file is what runs are not asked.
        let (Some(all_a), Some(all_b)) = (a.bootstraps, b.bootstraps) else { return true };
        let of = |all: &'_ [Vec<u16>], content| Some(all.get(usize::from(short(content, 0)?))?.clone());
        let (Some(of_a), Some(of_b)) = (of(all_a, of_a.content), of(all_b, of_b.content)) else { return false };
        let mut both = of_a.iter().zip(&of_b);
        of_a.len() == of_b.len() && both.all(|(of_a, of_b)| is_same_within((a, *of_a), (b, *of_b), more))
    };
    match of_a.tag {
        constants::UTF8 | 3..=6 => of_a.content == of_b.content,
        constants::CLASS | constants::STRING | 16 | 19 | 20 => same_at(0, more),
        9..=constants::NAME_AND_TYPE => same_at(0, more) && same_at(2, more),
        constants::METHOD_HANDLE => of_a.content.first() == of_b.content.first() && same_at(1, more),
        _ => same_at(2, more) && is_linked_the_same(more),
    }
}

#[cfg(test)]
mod tests;
