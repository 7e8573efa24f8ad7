//! The constant pool (JVMS 4.4): where its entries are, and what is appended.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::reader::Reader;
use crate::{Error, Refusal};

pub(crate) const UTF8: u8 = 1;
pub(crate) const CLASS: u8 = 7;
const METHODREF: u8 = 10;
const INTERFACE_METHODREF: u8 = 11;
const FIELDREF: u8 = 9;
pub(crate) const NAME_AND_TYPE: u8 = 12;
pub(crate) const METHOD_HANDLE: u8 = 15;
pub(crate) const DYNAMIC: u8 = 17;
pub(crate) const INVOKE_DYNAMIC: u8 = 18;

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
        let mut offsets = Vec::with_capacity(usize::from(count));
        offsets.push(0);
        while offsets.len() < usize::from(count) {
            offsets.push(reader.offset() as u32);
            let length = match reader.u1("a constant's tag")? {
                UTF8 => usize::from(reader.u2("a string's length")?),
                3 | 4 | FIELDREF | METHODREF | INTERFACE_METHODREF | NAME_AND_TYPE | DYNAMIC | INVOKE_DYNAMIC => 4,
                5 | 6 => {
                    offsets.push(0);
                    8
                }
                CLASS | 8 | 16 | 19 | 20 => 2,
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
        Ok(decode_modified_utf8(self.utf8_bytes(index, at)?))
    }

    /// The name of a class constant.
    pub(crate) fn class_name(&self, index: u16, at: usize) -> Result<Cow<'a, str>, Error> {
        let mut reader = self.expect(index, at, CLASS, "the index of a class constant")?;
        let at = reader.offset();
        self.utf8(reader.u2("a class's name")?, at)
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

    /// Kind and reference of a method handle.
    pub(crate) fn method_handle(&self, index: u16, at: usize) -> Result<(u8, MemberRef<'a>), Error> {
        let mut reader = self.expect(index, at, METHOD_HANDLE, "the index of a method handle")?;
        let kind = reader.u1("a method handle's kind")?;
        let at = reader.offset();
        Ok((kind, self.member(reader.u2("a method handle's reference")?, at)?))
    }
}

/// Modified UTF-8 (JVMS 4.4.7). Borrowed when it is plain; what no `str` can hold (lone surrogates) is replaced.
fn decode_modified_utf8(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut units = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, tail @ ..] = rest {
        let (unit, length) = match (first, tail) {
            (0x00..=0x7f, _) => (u16::from(*first), 1),
            (0xc0..=0xdf, [second, ..]) => (u16::from(first & 0x1f) << 6 | u16::from(second & 0x3f), 2),
            (0xe0..=0xef, [second, third, ..]) => {
                (u16::from(first & 0x0f) << 12 | u16::from(second & 0x3f) << 6 | u16::from(third & 0x3f), 3)
            }
            _ => (0xfffd, 1),
        };
        units.push(unit);
        rest = &rest[length..];
    }
    Cow::Owned(String::from_utf16_lossy(&units))
}

/// Entries to be appended. Each is added once.
#[derive(Clone, Debug)]
pub(crate) struct Appended {
    bytes: Vec<u8>,
    next: usize,
    known: HashMap<Vec<u8>, u16>,
}

impl Appended {
    /// Behind a pool of `len` entries (its count field).
    pub(crate) fn new(len: usize) -> Appended {
        Appended { bytes: Vec::new(), next: len, known: HashMap::new() }
    }

    /// The pool's count with what was appended.
    pub(crate) fn len(&self) -> usize {
        self.next
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    fn add(&mut self, entry: Vec<u8>) -> Result<u16, Refusal> {
        if let Some(index) = self.known.get(&entry) {
            return Ok(*index);
        }
        // The count field, one more than the last index, is a u2.
        if self.next >= usize::from(u16::MAX) {
            return Err(Refusal::ConstantPoolFull);
        }
        let index = self.next as u16;
        self.next += 1;
        self.bytes.extend_from_slice(&entry);
        self.known.insert(entry, index);
        Ok(index)
    }

    pub(crate) fn utf8(&mut self, text: &str) -> Result<u16, Refusal> {
        let mut entry = vec![UTF8];
        entry.extend((text.len() as u16).to_be_bytes());
        entry.extend(text.bytes());
        self.add(entry)
    }

    fn pair(&mut self, tag: u8, first: u16, second: u16) -> Result<u16, Refusal> {
        let ([a, b], [c, d]) = (first.to_be_bytes(), second.to_be_bytes());
        self.add(vec![tag, a, b, c, d])
    }

    pub(crate) fn class(&mut self, name: &str) -> Result<u16, Refusal> {
        let [a, b] = self.utf8(name)?.to_be_bytes();
        self.add(vec![CLASS, a, b])
    }

    pub(crate) fn method(&mut self, owner: &str, name: &str, descriptor: &str) -> Result<u16, Refusal> {
        let (name, descriptor) = (self.utf8(name)?, self.utf8(descriptor)?);
        let (class, name_and_type) = (self.class(owner)?, self.pair(NAME_AND_TYPE, name, descriptor)?);
        self.pair(METHODREF, class, name_and_type)
    }

    pub(crate) fn integer(&mut self, value: u32) -> Result<u16, Refusal> {
        let [a, b, c, d] = value.to_be_bytes();
        self.add(vec![3, a, b, c, d])
    }
}
