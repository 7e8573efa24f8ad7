//! The Code attribute (JVMS 4.7.3), taken apart.

use crate::Error;
use crate::class_file::{ClassFile, attribute};
use crate::instructions::{self, Instruction};
use crate::reader::Reader;

/// A row of the exception table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExceptionRange {
    pub(crate) start: u32,
    pub(crate) end: u32,
    pub(crate) handler: u32,
    pub(crate) catch_type: u16,
}

/// A method's code.
#[derive(Clone, Debug)]
pub(crate) struct Code<'a> {
    pub(crate) max_stack: u16,
    pub(crate) max_locals: u16,
    pub(crate) bytes: &'a [u8],
    /// Absolute offset of the first instruction.
    pub(crate) base: usize,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) exceptions: Vec<ExceptionRange>,
    /// The attributes of the Code attribute: name, content.
    pub(crate) attributes: Vec<(u16, Reader<'a>)>,
}

impl<'a> Code<'a> {
    /// Reads the Code attribute that lies between two absolute offsets, its length field first.
    pub(crate) fn parse(class: &ClassFile<'a>, from: usize, to: usize) -> Result<Code<'a>, Error> {
        let mut reader = class.part(from + 4, to);
        let max_stack = reader.u2("max_stack")?;
        let max_locals = reader.u2("max_locals")?;
        let length = reader.u4("the code's length")?;
        if length == 0 || length > 65_535 {
            return Err(Error::new(reader.offset() - 4, "a code length of 1 to 65,535"));
        }
        let base = reader.offset();
        let bytes = reader.bytes(length as usize, "the code")?;
        let instructions = instructions::decode(bytes, base)?;
        let count = reader.u2("the exception table's length")?;
        let mut exceptions = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let at = reader.offset();
            let range = ExceptionRange {
                start: reader.u2("an exception range's start")?.into(),
                end: reader.u2("an exception range's end")?.into(),
                handler: reader.u2("an exception handler's offset")?.into(),
                catch_type: reader.u2("a catch type")?,
            };
            if range.start >= range.end || range.end > length || range.handler >= length {
                return Err(Error::new(at, "an exception range within the code"));
            }
            exceptions.push(range);
        }
        let count = reader.u2("the code's number of attributes")?;
        let mut attributes = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            attributes.push(attribute(&mut reader)?);
        }
        if !reader.is_empty() {
            return reader.fail("the end of the Code attribute");
        }
        Ok(Code { max_stack, max_locals, bytes, base, instructions, exceptions, attributes })
    }

    pub(crate) fn len(&self) -> u32 {
        self.bytes.len() as u32
    }
}
