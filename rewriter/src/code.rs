//! The Code attribute (JVMS 4.7.3), taken apart.

use crate::Error;
use crate::class_file::{ClassFile, Method, attribute};
use crate::frames;
use crate::instructions::{self, ALOAD, ALOAD_0, ALOAD_3, Instruction, Scan};
use crate::reader::Reader;

/// A row of the exception table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExceptionRange {
    /// The first instruction covered.
    pub start: u32,
    /// Where it ends: the first that is not.
    pub end: u32,
    /// Where the handler begins.
    pub handler: u32,
    /// Constant pool index of the class that is caught; 0 for all.
    pub catch_type: u16,
}

/// A row of a LineNumberTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where the line's code begins.
    pub start: u32,
    /// In the source file.
    pub line: u16,
}

/// A row of a LocalVariableTable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Where it begins to have a value.
    pub start: u32,
    /// For so many bytes of code.
    pub length: u32,
    /// Its local variable.
    pub index: u16,
}

/// A method's code, for reading.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    pub(crate) max_stack: u16,
    pub(crate) max_locals: u16,
    pub(crate) bytes: &'a [u8],
    /// Absolute offset of the first instruction.
    pub(crate) base: usize,
    /// The exception table's rows: start, end, handler, catch type.
    exceptions: Reader<'a>,
    /// The attributes, from their number on.
    attributes: Reader<'a>,
    version: u16,
}

impl<'a> ClassFile<'a> {
    /// A method's code; `None` if it has none.
    pub fn code(&self, method: &Method<'_>) -> Result<Option<Code<'a>>, Error> {
        method.code.map(|(from, to)| Code::parse(self, from, to, &mut Scan::default())).transpose()
    }
}

impl<'a> Code<'a> {
    /// Reads the Code attribute that lies between two absolute offsets, its length field first.
    pub(crate) fn parse(class: &ClassFile<'a>, from: usize, to: usize, scan: &mut Scan) -> Result<Code<'a>, Error> {
        let mut reader = class.part(from + 4, to);
        let max_stack = reader.u2("max_stack")?;
        let max_locals = reader.u2("max_locals")?;
        let length = reader.u4("the code's length")?;
        let base = reader.offset();
        if length == 0 || length > 65_535 {
            return Err(Error::new(base - 4, "a code length of 1 to 65,535"));
        }
        let bytes = reader.bytes(length as usize, "the code")?;
        scan.run(bytes, base)?;
        let count = reader.u2("the exception table's length")?;
        let exceptions = reader.part(usize::from(count) * 8, "the exception table")?;
        let attributes = reader;
        for _ in 0..reader.u2("the code's number of attributes")? {
            attribute(&mut reader)?;
        }
        if !reader.is_empty() {
            return reader.fail("the end of the Code attribute");
        }
        let version = class.major_version();
        let code = Code { max_stack, max_locals, bytes, base, exceptions, attributes, version };
        for (at, range) in code.exception_rows() {
            let handler = range.handler < length && scan.is_boundary(range.handler);
            let bounds = range.end <= length && scan.is_boundary(range.start) && scan.is_boundary(range.end);
            if range.start >= range.end || !bounds || !handler {
                return Err(Error::new(at, "an exception range within the code"));
            }
        }
        Ok(code)
    }

    pub(crate) fn len(&self) -> u32 {
        self.bytes.len() as u32
    }

    /// The rows of the exception table with their absolute offsets.
    pub(crate) fn exception_rows(&self) -> impl Iterator<Item = (usize, ExceptionRange)> + '_ {
        let base = self.exceptions.offset();
        self.exceptions.rest().chunks_exact(8).enumerate().map(move |(row, bytes)| {
            let field = |i: usize| u16::from_be_bytes([bytes[i * 2], bytes[i * 2 + 1]]);
            let (start, end, handler) = (field(0).into(), field(1).into(), field(2).into());
            (base + row * 8, ExceptionRange { start, end, handler, catch_type: field(3) })
        })
    }

    /// The attributes of the Code attribute: where the name's index stands, the index, the content.
    pub(crate) fn attributes(&self) -> impl Iterator<Item = (usize, u16, Reader<'a>)> + use<'a> {
        let mut reader = self.attributes;
        let count = reader.u2("the code's number of attributes").unwrap_or(0);
        (0..count).filter_map(move |_| {
            let at = reader.offset();
            // It has been read before.
            attribute(&mut reader).ok().map(|(name, content)| (at, name, content))
        })
    }

    /// The content of the attributes of that name.
    pub(crate) fn attributes_named(&self, class: &ClassFile<'a>, wanted: &[u8]) -> Vec<Reader<'a>> {
        let named = |at, name| class.pool.utf8_bytes(name, at).is_ok_and(|bytes| bytes == wanted);
        self.attributes().filter(|(at, name, _)| named(*at, *name)).map(|(_, _, content)| content).collect()
    }

    /// The content of the StackMapTable, if there is one and the JVM reads it.
    pub(crate) fn stack_map(&self, class: &ClassFile<'a>) -> Option<Reader<'a>> {
        let has_frames = self.version >= frames::FIRST_VERSION;
        has_frames.then(|| self.attributes_named(class, b"StackMapTable").first().copied()).flatten()
    }

    /// The local variable from which the instruction before an offset takes a reference, if that is what it does.
    pub fn loaded_before(&self, offset: u32) -> Option<u16> {
        let before = self.instructions().take_while(|instruction| instruction.offset < offset).last()?;
        match before.opcode {
            ALOAD => self.bytes.get(before.offset as usize + 1).map(|local| u16::from(*local)),
            short @ ALOAD_0..=ALOAD_3 => Some(u16::from(short - ALOAD_0)),
            _ => None,
        }
    }

    /// The instructions, in order.
    pub fn instructions(&self) -> impl Iterator<Item = Instruction> + 'a {
        instructions::all(self.bytes)
    }

    /// The exception table.
    pub fn exceptions(&self) -> impl Iterator<Item = ExceptionRange> + '_ {
        self.exception_rows().map(|(_, range)| range)
    }

    /// All LineNumberTables, one after the other.
    pub fn lines(&self, class: &ClassFile<'a>) -> Result<Vec<Line>, Error> {
        let mut lines = Vec::new();
        for mut table in self.attributes_named(class, b"LineNumberTable") {
            for _ in 0..table.u2("the number of lines")? {
                let start = table.u2("a line's offset")?.into();
                lines.push(Line { start, line: table.u2("a line's number")? });
            }
        }
        Ok(lines)
    }

    /// All LocalVariableTables, one after the other.
    pub fn variables(&self, class: &ClassFile<'a>) -> Result<Vec<Variable>, Error> {
        let mut variables = Vec::new();
        for mut table in self.attributes_named(class, b"LocalVariableTable") {
            for _ in 0..table.u2("the number of local variables")? {
                let start = table.u2("a variable's start")?.into();
                let length = table.u2("a variable's length")?.into();
                table.u4("a variable's name and type")?;
                variables.push(Variable { start, length, index: table.u2("a variable's index")? });
            }
        }
        Ok(variables)
    }

    /// The offsets of the stack map's frames.
    pub fn frame_offsets(&self, class: &ClassFile<'a>) -> Result<Vec<u32>, Error> {
        self.stack_map(class).map_or(Ok(Vec::new()), frames::offsets)
    }
}
