//! A recording's bytes: numbers, strings, and how much is still to come.

use headwater_modified_utf8 as modified_utf8;

use super::ReadError;

/// Of a string: there is none, it is empty, it is a constant, UTF-8, UTF-16 units, ISO 8859-1.
const NULL: u8 = 0;
const EMPTY: u8 = 1;
const CONSTANT: u8 = 2;
const UTF8: u8 = 3;
const UNITS: u8 = 4;
const LATIN1: u8 = 5;

/// A string as it stands in an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Text {
    /// As itself.
    Here(String),
    /// Among the constants, by its key.
    Constant(i64),
}

/// A part of a recording that is read from its beginning to its end.
#[derive(Clone, Debug)]
pub(super) struct Bytes<'a> {
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Bytes<'a> {
        Bytes { rest: bytes }
    }

    /// How many are left.
    pub(super) fn len(&self) -> usize {
        self.rest.len()
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], ReadError> {
        let (taken, rest) = self.rest.split_at_checked(count).ok_or(ReadError::Format("a value is cut off"))?;
        self.rest = rest;
        Ok(taken)
    }

    pub(super) fn byte(&mut self) -> Result<u8, ReadError> {
        Ok(self.take(1)?[0])
    }

    /// A compressed integer: seven bits a byte, the lowest first, and all eight of a ninth.
    pub(super) fn number(&mut self) -> Result<i64, ReadError> {
        let mut number = 0_u64;
        for place in 0..8 {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7F) << (7 * place);
            if byte < 0x80 {
                return Ok(number as i64);
            }
        }
        Ok((number | u64::from(self.byte()?) << 56) as i64)
    }

    /// Of things that take a byte each at least.
    pub(super) fn count(&mut self) -> Result<usize, ReadError> {
        let count = usize::try_from(self.number()?).ok().filter(|count| *count <= self.len());
        count.ok_or(ReadError::Format("it speaks of more than it has"))
    }

    pub(super) fn text(&mut self) -> Result<Text, ReadError> {
        let text = match self.byte()? {
            NULL | EMPTY => String::new(),
            CONSTANT => return Ok(Text::Constant(self.number()?)),
            UTF8 => {
                let count = self.count()?;
                modified_utf8::decode_text(self.take(count)?).into_owned()
            }
            UNITS => {
                let units = (0..self.count()?).map(|_| self.number().map(|unit| unit as u16));
                modified_utf8::decode_units(&units.collect::<Result<Vec<u16>, ReadError>>()?)
            }
            LATIN1 => {
                let count = self.count()?;
                self.take(count)?.iter().map(|byte| char::from(*byte)).collect()
            }
            _ => return Err(ReadError::Format("a string is of no known kind")),
        };
        Ok(Text::Here(text))
    }

    /// What begins here and says how long it is, its length included.
    pub(super) fn event(&mut self) -> Result<Bytes<'a>, ReadError> {
        let whole = self.clone();
        let size = usize::try_from(self.number()?).unwrap_or(0);
        let head = whole.len() - self.len();
        if size <= head || size > whole.len() {
            return Err(ReadError::Format("an event has an impossible length"));
        }
        Ok(Bytes::new(self.take(size - head)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_up_to_nine_bytes() {
        let number = |bytes: &[u8]| Bytes::new(bytes).number().ok();
        assert_eq!(number(&[0x85, 0xB0, 0x03]), Some(55_301));
        // Integers may be padded, so that they can be written afterwards.
        assert_eq!(number(&[0x81, 0x80, 0x80, 0x00]), Some(1));
        assert_eq!(number(&[0xFF; 9]), Some(-1));
        assert_eq!(number(&[0x80; 8]), None);
    }

    #[test]
    fn strings_of_all_kinds_are_read() {
        let text = |bytes: &[u8]| Bytes::new(bytes).text();
        let here = |text: &str| Ok(Text::Here(text.to_owned()));
        assert_eq!(text(&[NULL]), here(""));
        assert_eq!(text(&[EMPTY]), here(""));
        assert_eq!(text(&[CONSTANT, 7]), Ok(Text::Constant(7)));
        assert_eq!(text(b"\x03\x02ab"), here("ab"));
        assert_eq!(text(&[UNITS, 2, b'a', 0xE9, 0x01]), here("a\u{e9}"));
        // The JVM's own names are in modified UTF-8.
        for spelled in [&b"\x03\x04\xf0\x9d\x92\xb3"[..], b"\x03\x06\xed\xa0\xb5\xed\xb2\xb3"] {
            assert_eq!(text(spelled), here("\u{1d4b3}"));
        }
        assert_eq!(text(&[LATIN1, 1, 0xE9]), here("\u{e9}"));
        for wrong in [&[UTF8, 3, b'a'][..], &[UTF8, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], &[6], &[]] {
            assert!(text(wrong).is_err(), "{wrong:?}");
        }
    }
}
