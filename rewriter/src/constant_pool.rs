//! The constant pool (JVMS 4.4): where its entries are, and what is appended.

use std::borrow::Cow;
use std::collections::HashMap;

use headwater_modified_utf8 as modified_utf8;

use crate::reader::Reader;
use crate::{Error, Refusal};

pub(crate) const UTF8: u8 = 1;
pub(crate) const INTEGER: u8 = 3;
pub(crate) const FLOAT: u8 = 4;
pub(crate) const LONG: u8 = 5;
pub(crate) const DOUBLE: u8 = 6;
pub(crate) const CLASS: u8 = 7;
pub(crate) const STRING: u8 = 8;
pub(crate) const METHODREF: u8 = 10;
pub(crate) const INTERFACE_METHODREF: u8 = 11;
pub(crate) const FIELDREF: u8 = 9;
pub(crate) const NAME_AND_TYPE: u8 = 12;
pub(crate) const METHOD_HANDLE: u8 = 15;
pub(crate) const METHOD_TYPE: u8 = 16;
pub(crate) const DYNAMIC: u8 = 17;
pub(crate) const INVOKE_DYNAMIC: u8 = 18;
const MODULE: u8 = 19;
const PACKAGE: u8 = 20;

/// An index of the constant pool's entries.
#[derive(Clone, Debug)]
pub(crate) struct ConstantPool<'a> {
    class: &'a [u8],
    /// Absolute offset of each entry's tag; 0 for index 0 and for the second half of longs and doubles.
    offsets: Vec<u32>,
    end: usize,
}

/// A reference to a field or a method (JVMS 4.4.2).
#[derive(Clone, Debug)]
pub(crate) struct MemberRef<'a> {
    pub(crate) owner: Cow<'a, str>,
    pub(crate) name: Cow<'a, str>,
    pub(crate) descriptor: Cow<'a, str>,
    pub(crate) interface: bool,
}

impl<'a> ConstantPool<'a> {
    /// Reads the pool from its count on; the reader stands behind it afterwards.
    pub(crate) fn parse(class: &'a [u8], reader: &mut Reader<'a>) -> Result<ConstantPool<'a>, Error> {
        let count = reader.u2("the constant pool's count")?;
        if count == 0 {
            return Err(Error::new(reader.offset() - 2, "a constant pool's count of 1 or more"));
        }
        let mut offsets = Vec::with_capacity(usize::from(count));
        offsets.push(0);
        while offsets.len() < usize::from(count) {
            offsets.push(reader.offset() as u32);
            let length = match reader.u1("a constant's tag")? {
                UTF8 => usize::from(reader.u2("a string's length")?),
                INTEGER | FLOAT | FIELDREF | METHODREF | INTERFACE_METHODREF | NAME_AND_TYPE | DYNAMIC
                | INVOKE_DYNAMIC => 4,
                LONG | DOUBLE if offsets.len() < usize::from(count) => {
                    offsets.push(0);
                    8
                }
                LONG | DOUBLE => return Err(Error::new(reader.offset() - 1, "a constant of one entry, the last")),
                CLASS | STRING | METHOD_TYPE | MODULE | PACKAGE => 2,
                METHOD_HANDLE => 3,
                _ => return Err(Error::new(reader.offset() - 1, "a constant's tag (1, 3 to 12, 15 to 20)")),
            };
            reader.bytes(length, "a constant")?;
        }
        Ok(ConstantPool { class, offsets, end: reader.offset() })
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Absolute offset behind the last entry.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    /// The entry's tag and a reader behind it; `at` is where the index stands.
    pub(crate) fn entry(&self, index: u16, at: usize) -> Result<(u8, Reader<'a>), Error> {
        let offset = self.offsets.get(usize::from(index)).copied().unwrap_or(0) as usize;
        if offset == 0 {
            return Err(Error::new(at, "an index into the constant pool"));
        }
        let mut reader = Reader::new(self.class.get(offset..).unwrap_or_default(), offset);
        Ok((reader.u1("a constant's tag")?, reader))
    }

    /// All name-and-type constants that can be read.
    pub(crate) fn names_and_types(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + '_ {
        (1..self.offsets.len() as u16).filter_map(|index| {
            let mut pair = self.expect(index, 0, NAME_AND_TYPE, "a name and a descriptor").ok()?;
            let (name, descriptor) = (pair.u2("a name").ok()?, pair.u2("a descriptor").ok()?);
            Some((self.utf8_bytes(name, 0).ok()?, self.utf8_bytes(descriptor, 0).ok()?))
        })
    }

    /// The texts of all string constants that can be read.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &'a [u8]> + '_ {
        (1..self.offsets.len() as u16).filter_map(|index| {
            let mut string = self.expect(index, 0, STRING, "a string").ok()?;
            self.utf8_bytes(string.u2("a text").ok()?, 0).ok()
        })
    }

    fn expect(&self, index: u16, at: usize, tag: u8, expected: &'static str) -> Result<Reader<'a>, Error> {
        let (found, reader) = self.entry(index, at)?;
        if found == tag { Ok(reader) } else { Err(Error::new(at, expected)) }
    }

    /// The bytes of a string constant.
    pub(crate) fn utf8_bytes(&self, index: u16, at: usize) -> Result<&'a [u8], Error> {
        let mut reader = self.expect(index, at, UTF8, "the index of a string constant")?;
        let length = reader.u2("a string's length")?;
        reader.bytes(usize::from(length), "a string")
    }

    /// A string constant.
    pub(crate) fn utf8(&self, index: u16, at: usize) -> Result<Cow<'a, str>, Error> {
        Ok(modified_utf8::decode(self.utf8_bytes(index, at)?))
    }

    /// The name of a class constant.
    pub(crate) fn class_name(&self, index: u16, at: usize) -> Result<Cow<'a, str>, Error> {
        Ok(modified_utf8::decode(self.class_bytes(index, at)?))
    }

    /// The bytes of a class constant's name.
    pub(crate) fn class_bytes(&self, index: u16, at: usize) -> Result<&'a [u8], Error> {
        let mut reader = self.expect(index, at, CLASS, "the index of a class constant")?;
        let at = reader.offset();
        self.utf8_bytes(reader.u2("a class's name")?, at)
    }

    /// The bytes of a field's or method's name and descriptor; dynamic constants and call sites have them, too.
    pub(crate) fn signature_bytes(&self, index: u16, at: usize) -> Result<(&'a [u8], &'a [u8]), Error> {
        let (tag, mut reader) = self.entry(index, at)?;
        if !matches!(tag, FIELDREF | METHODREF | INTERFACE_METHODREF | DYNAMIC | INVOKE_DYNAMIC) {
            return Err(Error::new(at, "the index of a field, a method or a dynamic call"));
        }
        reader.u2("a class or bootstrap method")?;
        let at = reader.offset();
        let mut reader =
            self.expect(reader.u2("a name and type")?, at, NAME_AND_TYPE, "the index of a name and type")?;
        let at = reader.offset();
        let name = self.utf8_bytes(reader.u2("a name")?, at)?;
        Ok((name, self.utf8_bytes(reader.u2("a descriptor")?, at + 2)?))
    }

    /// Name and descriptor.
    pub(crate) fn name_and_type(&self, index: u16, at: usize) -> Result<(Cow<'a, str>, Cow<'a, str>), Error> {
        let mut reader = self.expect(index, at, NAME_AND_TYPE, "the index of a name and type")?;
        let at = reader.offset();
        let name = self.utf8(reader.u2("a name")?, at)?;
        Ok((name, self.utf8(reader.u2("a descriptor")?, at + 2)?))
    }

    /// A field or method reference.
    pub(crate) fn member(&self, index: u16, at: usize) -> Result<MemberRef<'a>, Error> {
        let (tag, mut reader) = self.entry(index, at)?;
        if !matches!(tag, FIELDREF | METHODREF | INTERFACE_METHODREF) {
            return Err(Error::new(at, "the index of a field or method reference"));
        }
        let at = reader.offset();
        let owner = self.class_name(reader.u2("a class")?, at)?;
        let (name, descriptor) = self.name_and_type(reader.u2("a name and type")?, at + 2)?;
        Ok(MemberRef { owner, name, descriptor, interface: tag == INTERFACE_METHODREF })
    }

    /// Bootstrap method's index and name-and-type's index of a dynamic constant or call site.
    pub(crate) fn dynamic(&self, index: u16, at: usize) -> Result<(u16, u16, usize), Error> {
        let (tag, mut reader) = self.entry(index, at)?;
        if !matches!(tag, DYNAMIC | INVOKE_DYNAMIC) {
            return Err(Error::new(at, "the index of a dynamic constant or call site"));
        }
        let bootstrap = reader.u2("a bootstrap method")?;
        let at = reader.offset();
        Ok((bootstrap, reader.u2("a name and type")?, at))
    }

    /// A method handle's kind, and the index of its field or method.
    pub(crate) fn method_handle(&self, index: u16, at: usize) -> Result<(u8, u16), Error> {
        let mut reader = self.expect(index, at, METHOD_HANDLE, "the index of a method handle")?;
        Ok((reader.u1("a method handle's kind")?, reader.u2("a method handle's reference")?))
    }
}

/// Entries to be appended. Strings, classes and references are added once; numbers each time.
#[derive(Debug)]
pub(crate) struct Appended {
    bytes: Vec<u8>,
    next: usize,
    /// Where each entry that the probes may want again begins, with its index: about a dozen.
    known: Vec<(u32, u16)>,
    /// Class constants by name: of handlers and of frames that had to be made.
    classes: HashMap<Box<[u8]>, u16>,
}

/// How much was appended at some time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    bytes: usize,
    next: usize,
    known: usize,
}

impl Appended {
    /// Behind a pool of `len` entries (its count field).
    pub(crate) fn new(len: usize) -> Appended {
        Appended { bytes: Vec::new(), next: len, known: Vec::new(), classes: HashMap::new() }
    }

    /// The pool's count with what was appended.
    pub(crate) fn len(&self) -> usize {
        self.next
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark { bytes: self.bytes.len(), next: self.next, known: self.known.len() }
    }

    /// Forgets what was appended since.
    pub(crate) fn rewind(&mut self, mark: Mark) {
        self.bytes.truncate(mark.bytes);
        self.known.truncate(mark.known);
        self.next = mark.next;
        self.classes.retain(|_, index| usize::from(*index) < mark.next);
    }

    fn add(&mut self, entry: &[u8]) -> Result<u16, Refusal> {
        // The count field, one more than the last index, is a u2.
        if self.next >= usize::from(u16::MAX) {
            return Err(Refusal::ConstantPoolFull);
        }
        let index = self.next as u16;
        self.next += 1;
        self.bytes.extend_from_slice(entry);
        Ok(index)
    }

    fn add_once(&mut self, entry: &[u8]) -> Result<u16, Refusal> {
        let stands_at = |start: u32| self.bytes[start as usize..].starts_with(entry);
        if let Some((_, index)) = self.known.iter().find(|(start, _)| stands_at(*start)) {
            return Ok(*index);
        }
        let start = self.bytes.len() as u32;
        let index = self.add(entry)?;
        self.known.push((start, index));
        Ok(index)
    }

    pub(crate) fn utf8(&mut self, text: &[u8]) -> Result<u16, Refusal> {
        self.add_once(&utf8_entry(text)?)
    }

    fn pair(&mut self, tag: u8, first: u16, second: u16) -> Result<u16, Refusal> {
        let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
        self.add_once(&[tag, a, b, c, d])
    }

    pub(crate) fn class(&mut self, name: &[u8]) -> Result<u16, Refusal> {
        if let Some(index) = self.classes.get(name) {
            return Ok(*index);
        }
        let [a, b] = self.add(&utf8_entry(name)?)?.to_be_bytes();
        let index = self.add(&[CLASS, a, b])?;
        self.classes.insert(name.into(), index);
        Ok(index)
    }

    pub(crate) fn method(&mut self, owner: &str, name: &str, descriptor: &str) -> Result<u16, Refusal> {
        let (name, descriptor) = (self.utf8(name.as_bytes())?, self.utf8(descriptor.as_bytes())?);
        let (class, name_and_type) = (self.class(owner.as_bytes())?, self.pair(NAME_AND_TYPE, name, descriptor)?);
        self.pair(METHODREF, class, name_and_type)
    }

    pub(crate) fn integer(&mut self, value: u32) -> Result<u16, Refusal> {
        let [a, b, c, d] = value.to_be_bytes();
        self.add(&[INTEGER, a, b, c, d])
    }
}

fn utf8_entry(text: &[u8]) -> Result<Vec<u8>, Refusal> {
    let length = u16::try_from(text.len()).map_err(|_| Refusal::ConstantPoolFull)?;
    let mut entry = Vec::with_capacity(text.len() + 3);
    entry.push(UTF8);
    entry.extend(length.to_be_bytes());
    entry.extend_from_slice(text);
    Ok(entry)
}
