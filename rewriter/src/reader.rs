//! Big-endian reading with absolute offsets.

use crate::Error;

/// A cursor over a part of the class file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Absolute offset of `bytes[0]`.
    base: usize,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`, which begin at absolute offset `base`.
    pub(crate) fn new(bytes: &'a [u8], base: usize) -> Reader<'a> {
        Reader { bytes, at: 0, base }
    }

    /// Absolute offset of what is read next.
    pub(crate) fn offset(&self) -> usize {
        self.base + self.at
    }

    /// Offset within this reader's bytes.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, count: usize, expected: &'static str) -> Result<&'a [u8], Error> {
        let taken = self.bytes.get(self.at..).and_then(|rest| rest.get(..count));
        let taken = taken.ok_or_else(|| Error::new(self.offset(), expected))?;
        self.at += count;
        Ok(taken)
    }

    /// A part of its own, with its own absolute offset.
    pub(crate) fn part(&mut self, count: usize, expected: &'static str) -> Result<Reader<'a>, Error> {
        let base = self.offset();
        Ok(Reader::new(self.bytes(count, expected)?, base))
    }

    /// What is read next, by itself: as much of `count` bytes as there is.
    pub(crate) fn first(&self, count: usize) -> Reader<'a> {
        let rest = self.rest();
        Reader::new(&rest[..count.min(rest.len())], self.offset())
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.bytes.get(self.at..).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn u1(&mut self, expected: &'static str) -> Result<u8, Error> {
        Ok(self.bytes(1, expected)?[0])
    }

    #[inline]
    pub(crate) fn u2(&mut self, expected: &'static str) -> Result<u16, Error> {
        let bytes = self.bytes(2, expected)?;
        Ok(u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    #[inline]
    pub(crate) fn u4(&mut self, expected: &'static str) -> Result<u32, Error> {
        let bytes = self.bytes(4, expected)?;
        Ok(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    pub(crate) fn fail<T>(&self, expected: &'static str) -> Result<T, Error> {
        Err(Error::new(self.offset(), expected))
    }
}
