//! Where methods make objects and arrays, and what tells of it.
//!
//! Nothing is given to the probe that the compiler could do without: an object's class is a constant, an array's length is known where it is made. An
//! object that is not constructed yet could not be given to anybody (JVMS 4.10.1.4).

use crate::class_file::ClassFile;
use crate::instructions::{
    ACONST_NULL, ANEWARRAY, ARRAYLENGTH, DUP, ICONST_0, Instruction, LDC, LDC_W, MULTIANEWARRAY, NEW, NEWARRAY,
};
use crate::layout::Piece;
use crate::paths::Slot;
use crate::places::Places;
use crate::probes::{Probe, Push};
use crate::{Error, Refusal};

/// The first class files in which `ldc` pushes classes (JVMS table 5.1-J).
const CLASS_CONSTANTS: u16 = 49;

/// An instruction that makes an object or an array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AllocationSite {
    /// Of the instruction, in the code.
    pub offset: u32,
    /// The object's class, as the JVM calls it: `a/b/C`, `[[I`.
    pub class: String,
    /// The line of the source, if the class file says.
    pub line: Option<u16>,
    /// Of an array, how many dimensions are made: with more than one, arrays in it. 0 of an object.
    pub dimensions: u8,
}

/// The allocations in a method's code, in its order.
pub fn allocation_sites(class: &ClassFile<'_>, method_index: usize) -> Result<Vec<AllocationSite>, Error> {
    let Some(method) = class.methods().get(method_index) else { return Ok(Vec::new()) };
    let Some(code) = class.code(method)? else { return Ok(Vec::new()) };
    let mut lines = code.lines(class)?;
    lines.sort_by_key(|line| line.start);
    let line_of = |offset: u32| {
        let behind = lines.partition_point(|line| line.start <= offset);
        behind.checked_sub(1).map(|last| lines[last].line)
    };
    let mut sites = Vec::new();
    for instruction in code.instructions() {
        let (offset, operand) = (instruction.offset, code.base + instruction.offset as usize + 1);
        let named = || class.pool.class_name(instruction.operand(code.bytes), operand);
        let (class, dimensions) = match instruction.opcode {
            NEW => (named()?.into_owned(), 0),
            ANEWARRAY => (array_of(&named()?), 1),
            NEWARRAY => (format!("[{}", primitive(instruction.u1(code.bytes))), 1),
            MULTIANEWARRAY => (named()?.into_owned(), dimensions(&instruction, code.bytes)),
            _ => continue,
        };
        sites.push(AllocationSite { offset, class, line: line_of(offset), dimensions });
    }
    Ok(sites)
}

impl Places<'_, '_, '_, '_> {
    /// What tells of an allocation, right behind it.
    pub(crate) fn allocation(&mut self, offset: u32, id: u32) -> Result<(u32, Slot, Piece), Refusal> {
        let instruction = self.instruction(offset)?;
        let code = self.walk.code.bytes;
        let (probe, operand) = match instruction.opcode {
            NEW if self.walk.class.major_version() < CLASS_CONSTANTS => (Probe::Allocated, vec![ACONST_NULL]),
            NEW => (Probe::Allocated, load_constant(instruction.operand(code))),
            NEWARRAY => (Probe::AllocatedArray, self.length_and_type(instruction.u1(code))?),
            ANEWARRAY => (Probe::AllocatedArray, vec![DUP, ARRAYLENGTH, ICONST_0]),
            MULTIANEWARRAY => {
                let dimensions = Push::new(dimensions(&instruction, code).into(), self.appended)?;
                (Probe::AllocatedArrays, [&[DUP], dimensions.bytes()].concat())
            }
            _ => return Err(Refusal::NoSuchPlace),
        };
        let push = Push::new(id, self.appended)?;
        let piece = self.caller.call(probe, &operand, &push, self.appended, &mut self.plan.arena)?;
        Ok((instruction.end(), Slot::Behind, piece))
    }

    fn length_and_type(&mut self, element: u8) -> Result<Vec<u8>, Refusal> {
        let element = Push::new(element.into(), self.appended)?;
        Ok([&[DUP, ARRAYLENGTH], element.bytes()].concat())
    }
}

fn load_constant(index: u16) -> Vec<u8> {
    match index.to_be_bytes() {
        [0, low] => vec![LDC, low],
        [high, low] => vec![LDC_W, high, low],
    }
}

/// How many dimensions `multianewarray` makes.
fn dimensions(instruction: &Instruction, code: &[u8]) -> u8 {
    code[instruction.offset as usize + 3]
}

/// The descriptor of what `newarray` means (JVMS table 6.5.newarray-A).
fn primitive(code: u8) -> char {
    const FIRST: u8 = 4;
    let types = ['Z', 'C', 'F', 'D', 'B', 'S', 'I', 'J'];
    code.checked_sub(FIRST).and_then(|at| types.get(usize::from(at)).copied()).unwrap_or('V')
}

/// An array's name, by that of its elements' class.
fn array_of(class: &str) -> String {
    if class.starts_with('[') { format!("[{class}") } else { format!("[L{class};") }
}
