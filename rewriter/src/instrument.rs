//! Entry and exit probes:
//!
//! ```text
//!     enter(id)                        // first instruction
//!     try { ...original body... }      // exit(id) before every return
//!     catch (any) { thrown(id); throw }
//! ```
//!
//! The catch-all's ranges leave out the probes and the returns behind them: whatever a probe or a return throws, an exit
//! is recorded once. In a constructor the ranges before and after the call of `super(...)` have handlers of their own, and the
//! call itself is in neither: HotSpot accepts no handler there.

use crate::attributes;
use crate::class_file::{ClassFile, Method};
use crate::code::{Code, ExceptionRange};
use crate::constant_pool::Appended;
use crate::constructor;
use crate::frames::{self, Frames};
use crate::instructions::{ATHROW, INVOKESTATIC, JSR, JSR_W, LDC, LDC_W, RET, WIDE};
use crate::reader::Reader;
use crate::relocation::{Insertion, Relocated, relocate};
use crate::type_annotations;
use crate::{Error, Refusal};

/// The methods that instrumented code calls: static, `(I)V`, visible to every class.
#[derive(Clone, Copy, Debug)]
pub struct Probes<'p> {
    /// Internal name of their class.
    pub class: &'p str,
    /// Called as the first instruction, with the method's id.
    pub enter: &'p str,
    /// Called before every return.
    pub exit: &'p str,
    /// Called when an exception leaves the method.
    pub throw: &'p str,
}

/// A method to be instrumented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which one, in the order of declaration.
    pub method_index: usize,
    /// What the probes are called with.
    pub id: u32,
}

/// The outcome.
#[derive(Clone, Debug)]
pub struct Rewritten {
    /// The class file; the same bytes where nothing was instrumented.
    pub bytes: Vec<u8>,
    /// Methods that are as they were, by index.
    pub refused: Vec<(usize, Refusal)>,
}

/// The first version whose classes have stack maps (Java 6).
const STACK_MAPS: u16 = 50;

/// Instruments methods of a class. Fails only if the class file as a whole cannot be read.
pub fn instrument(bytes: &[u8], probes: &Probes<'_>, requests: &[Request]) -> Result<Rewritten, Error> {
    let class = ClassFile::parse(bytes)?;
    let mut appended = Appended::new(class.pool.len());
    let mut refused = Vec::new();
    let mut replaced = Vec::new();
    for request in requests {
        let before = appended.clone();
        match rewrite_method(&class, &mut appended, probes, *request) {
            Ok(replacement) => replaced.push(replacement),
            Err(refusal) => {
                appended = before;
                refused.push((request.method_index, refusal));
            }
        }
    }
    if replaced.is_empty() {
        return Ok(Rewritten { bytes: bytes.to_vec(), refused });
    }
    Ok(Rewritten { bytes: assemble(&class, &appended, replaced), refused })
}

/// Takes every method's code apart and puts it together again, without inserting anything: the result equals the input,
/// or there is a bug here.
pub fn reassemble(bytes: &[u8]) -> Result<Vec<u8>, Error> {
    let class = ClassFile::parse(bytes)?;
    let mut appended = Appended::new(class.pool.len());
    let mut replaced = Vec::new();
    for method in class.methods() {
        let Some((from, to)) = method.code else { continue };
        let code = Code::parse(&class, from, to)?;
        let written = relocate(&code, &[]).and_then(|relocated| {
            write_code(&class, &mut appended, &code, &relocated, code.max_stack, &Handlers::default())
        });
        match written {
            Ok(content) => replaced.push(Replacement { from, to, content }),
            Err(Refusal::Malformed(error)) => return Err(error),
            Err(_) => return Err(Error::new(from, "code that can be written as it was read")),
        }
    }
    Ok(assemble(&class, &appended, replaced))
}

/// New content for a Code attribute, which begins with its length field at `from`.
struct Replacement {
    from: usize,
    to: usize,
    content: Vec<u8>,
}

fn assemble(class: &ClassFile<'_>, appended: &Appended, mut replaced: Vec<Replacement>) -> Vec<u8> {
    const POOL_COUNT_AT: usize = 8;
    replaced.sort_by_key(|replacement| replacement.from);
    let growth: usize = replaced.iter().map(|replacement| replacement.content.len()).sum();
    let mut out = Vec::with_capacity(class.bytes.len() + appended.bytes().len() + growth);
    out.extend_from_slice(&class.bytes[..POOL_COUNT_AT]);
    out.extend((appended.len() as u16).to_be_bytes());
    out.extend_from_slice(&class.bytes[POOL_COUNT_AT + 2..class.pool.end()]);
    out.extend_from_slice(appended.bytes());
    let mut at = class.pool.end();
    for replacement in &replaced {
        out.extend_from_slice(&class.bytes[at..replacement.from]);
        out.extend((replacement.content.len() as u32).to_be_bytes());
        out.extend_from_slice(&replacement.content);
        at = replacement.to;
    }
    out.extend_from_slice(&class.bytes[at..]);
    out
}

fn rewrite_method(
    class: &ClassFile<'_>,
    appended: &mut Appended,
    probes: &Probes<'_>,
    request: Request,
) -> Result<Replacement, Refusal> {
    let method = class.methods().get(request.method_index).ok_or(Refusal::NoSuchMethod)?;
    let (from, to) = method.code.ok_or(Refusal::NoCode)?;
    let code = Code::parse(class, from, to)?;
    if code.instructions.iter().any(|instruction| is_subroutine(&code, instruction.offset as usize)) {
        return Err(Refusal::Subroutines);
    }
    let push = push_id(appended, request.id)?;
    let mut call = |name: &str| -> Result<Vec<u8>, Refusal> {
        let mut bytes = push.clone();
        bytes.push(INVOKESTATIC);
        bytes.extend(appended.method(probes.class, name, "(I)V")?.to_be_bytes());
        Ok(bytes)
    };
    let (enter, exit, thrown) = (call(probes.enter)?, call(probes.exit)?, call(probes.throw)?);
    let insertions = insertions(&code, enter, &exit);
    let relocated = relocate(&code, &insertions)?;
    let handlers = handlers(class, method, &code, &insertions, &relocated, thrown)?;
    let max_stack = code.max_stack.max(1).checked_add(1).ok_or(Refusal::CodeTooLarge)?;
    let content = write_code(class, appended, &code, &relocated, max_stack, &handlers)?;
    Ok(Replacement { from, to, content })
}

fn is_subroutine(code: &Code<'_>, at: usize) -> bool {
    match code.bytes[at] {
        JSR | JSR_W | RET => true,
        WIDE => code.bytes[at + 1] == RET,
        _ => false,
    }
}

/// The shortest instruction that pushes the id.
fn push_id(appended: &mut Appended, id: u32) -> Result<Vec<u8>, Refusal> {
    Ok(match id {
        0..=5 => vec![0x03 + id as u8],
        6..=0x7f => vec![0x10, id as u8],
        0x80..=0x7fff => vec![0x11, (id >> 8) as u8, id as u8],
        _ => {
            let [high, low] = appended.integer(id)?.to_be_bytes();
            if high == 0 { vec![LDC, low] } else { vec![LDC_W, high, low] }
        }
    })
}

fn insertions(code: &Code<'_>, enter: Vec<u8>, exit: &[u8]) -> Vec<Insertion> {
    let mut insertions = Vec::new();
    // A loop that begins at the first instruction must not enter again.
    insertions.push(Insertion { before: 0, bytes: enter, captures_branches: false });
    for instruction in code.instructions.iter().filter(|instruction| instruction.is_return()) {
        if instruction.offset == 0 {
            // Nothing can jump here but to leave.
            insertions[0].bytes.extend_from_slice(exit);
        } else {
            let bytes = exit.to_vec();
            insertions.push(Insertion { before: instruction.offset, bytes, captures_branches: true });
        }
    }
    insertions
}

/// What is appended to a method's code: handlers, the ranges they cover, and their frames.
#[derive(Debug, Default)]
struct Handlers {
    code: Vec<u8>,
    ranges: Vec<ExceptionRange>,
    /// Offset of each handler, and whether `this` is uninitialised there.
    frames: Vec<(u32, bool)>,
}

fn handlers(
    class: &ClassFile<'_>,
    method: &Method,
    code: &Code<'_>,
    insertions: &[Insertion],
    relocated: &Relocated,
    thrown: Vec<u8>,
) -> Result<Handlers, Refusal> {
    let mut covered = covered(code, insertions, relocated)?;
    let mut handlers = Handlers::default();
    let is_object = class.name()? == "java/lang/Object";
    if method.name == "<init>" && !is_object {
        let table = stack_map_table(class, code)?;
        let call = constructor::super_call(class, code, table)?;
        let (start, end) = (relocated.place(call.offset, code.base)?, relocated.place(call.end(), code.base)?);
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (from, to) in covered {
            before.push((from, to.min(start)));
            after.push((from.max(end), to));
        }
        // The type-inferring verifier of old classes is not asked to accept an uninitialised `this` in a handler.
        if class.major_version() >= STACK_MAPS {
            handlers.add(relocated, &before, true, &thrown);
        }
        covered = after;
    }
    handlers.add(relocated, &covered, false, &thrown);
    Ok(handlers)
}

impl Handlers {
    /// A handler for these ranges; empty ones are left out.
    fn add(&mut self, relocated: &Relocated, ranges: &[(u32, u32)], uninitialized_this: bool, thrown: &[u8]) {
        let handler = relocated.end() + self.code.len() as u32;
        let ranges = ranges.iter().filter(|(start, end)| start < end);
        let ranges: Vec<_> =
            ranges.map(|&(start, end)| ExceptionRange { start, end, handler, catch_type: 0 }).collect();
        if ranges.is_empty() {
            return;
        }
        self.ranges.extend(ranges);
        self.frames.push((handler, uninitialized_this));
        self.code.extend_from_slice(thrown);
        self.code.push(ATHROW);
    }
}

/// The new code without the probes and the returns behind them.
fn covered(code: &Code<'_>, insertions: &[Insertion], relocated: &Relocated) -> Result<Vec<(u32, u32)>, Refusal> {
    let mut ranges = Vec::new();
    let returns_at_once = code.instructions.first().is_some_and(|instruction| instruction.is_return());
    let mut start = relocated.place(0, code.base)? + u32::from(returns_at_once);
    for insertion in insertions.iter().filter(|insertion| insertion.captures_branches) {
        // A return is one byte long.
        let place = relocated.place(insertion.before, code.base)?;
        ranges.push((start, place - insertion.bytes.len() as u32));
        start = place + 1;
    }
    ranges.push((start, relocated.end()));
    Ok(ranges)
}

fn stack_map_table<'a>(class: &ClassFile<'a>, code: &Code<'a>) -> Result<Option<Reader<'a>>, Error> {
    for (name, content) in &code.attributes {
        if class.pool.utf8_bytes(*name, content.offset())? == b"StackMapTable" {
            return Ok(Some(*content));
        }
    }
    Ok(None)
}

/// The content of a Code attribute.
fn write_code(
    class: &ClassFile<'_>,
    appended: &mut Appended,
    code: &Code<'_>,
    relocated: &Relocated,
    max_stack: u16,
    handlers: &Handlers,
) -> Result<Vec<u8>, Refusal> {
    let length = relocated.code.len() + handlers.code.len();
    if length > 65_535 {
        return Err(Refusal::CodeTooLarge);
    }
    let mut out = Vec::with_capacity(length + 64);
    out.extend(max_stack.to_be_bytes());
    out.extend(code.max_locals.to_be_bytes());
    out.extend((length as u32).to_be_bytes());
    out.extend_from_slice(&relocated.code);
    out.extend_from_slice(&handlers.code);
    write_exceptions(code, relocated, handlers, &mut out)?;
    write_attributes(class, appended, code, relocated, handlers, &mut out)?;
    Ok(out)
}

fn write_exceptions(
    code: &Code<'_>,
    relocated: &Relocated,
    handlers: &Handlers,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let count = code.exceptions.len() + handlers.ranges.len();
    out.extend(u16::try_from(count).map_err(|_| Refusal::CodeTooLarge)?.to_be_bytes());
    let at = relocated.base() + code.bytes.len();
    for range in &code.exceptions {
        let (start, end) = (relocated.target(range.start, at)?, relocated.target(range.end, at)?);
        push_range(out, start, end, relocated.target(range.handler, at)?, range.catch_type);
    }
    for range in &handlers.ranges {
        push_range(out, range.start, range.end, range.handler, range.catch_type);
    }
    Ok(())
}

fn push_range(out: &mut Vec<u8>, start: u32, end: u32, handler: u32, catch_type: u16) {
    for value in [start as u16, end as u16, handler as u16, catch_type] {
        out.extend(value.to_be_bytes());
    }
}

fn write_attributes(
    class: &ClassFile<'_>,
    appended: &mut Appended,
    code: &Code<'_>,
    relocated: &Relocated,
    handlers: &Handlers,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let wants_frames = class.major_version() >= STACK_MAPS && !handlers.frames.is_empty();
    let mut has_frames = false;
    let count_at = out.len();
    let mut count = code.attributes.len();
    out.extend([0, 0]);
    for &(name, content) in &code.attributes {
        let content = match class.pool.utf8_bytes(name, content.offset())? {
            b"StackMapTable" if class.major_version() >= STACK_MAPS => {
                has_frames = true;
                finish_frames(frames::relocate(content, relocated)?, appended, handlers)?
            }
            b"LineNumberTable" => attributes::line_numbers(content, relocated)?,
            b"LocalVariableTable" | b"LocalVariableTypeTable" => attributes::local_variables(content, relocated)?,
            b"RuntimeVisibleTypeAnnotations" | b"RuntimeInvisibleTypeAnnotations" => {
                type_annotations::relocate(content, relocated)?
            }
            _ => content.rest().to_vec(),
        };
        push_attribute(out, name, &content);
    }
    if wants_frames && !has_frames {
        let name = appended.utf8("StackMapTable")?;
        let content = finish_frames(Frames::default(), appended, handlers)?;
        push_attribute(out, name, &content);
        count += 1;
    }
    let count = u16::try_from(count).map_err(|_| Refusal::CodeTooLarge)?;
    out[count_at..count_at + 2].copy_from_slice(&count.to_be_bytes());
    Ok(())
}

fn finish_frames(mut frames: Frames, appended: &mut Appended, handlers: &Handlers) -> Result<Vec<u8>, Refusal> {
    for &(offset, uninitialized_this) in &handlers.frames {
        frames.handler(offset, uninitialized_this, appended.class("java/lang/Throwable")?)?;
    }
    Ok(frames.finish())
}

fn push_attribute(out: &mut Vec<u8>, name: u16, content: &[u8]) {
    out.extend(name.to_be_bytes());
    out.extend((content.len() as u32).to_be_bytes());
    out.extend_from_slice(content);
}
