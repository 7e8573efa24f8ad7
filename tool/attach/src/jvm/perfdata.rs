//! Reader for the file in which HotSpot publishes its performance data, `/tmp/hsperfdata_USER/PID`.
//!
//! The layout is that of `PerfDataPrologue` and `PerfDataEntry` in HotSpot's `perfMemory.hpp`, version 2. Only strings are
//! read. The file is written by another process while we read it, so nothing in it is trusted: every offset is checked,
//! and an entry that makes no sense ends the reading.

use std::collections::HashMap;

/// The first four bytes, in this order whatever the machine's.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
const PROLOGUE_BYTES: usize = 32;
const ENTRY_HEADER_BYTES: usize = 20;
/// The JVM's type letter for a byte array; strings are arrays of bytes with the unit "string".
const TYPE_BYTE: u8 = b'B';
const UNIT_STRING: u8 = 5;

/// Why a performance data file could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PerfDataError {
    /// It is another file.
    #[error("it has no performance data magic number")]
    NotPerfData,
    /// Its byte order is neither.
    #[error("its byte order mark is {0}, not 0 or 1")]
    ByteOrder(u8),
    /// Its format is another.
    #[error("its format version is {0}, and only version 2 is known")]
    Version(u8),
    /// It is being written.
    #[error("the JVM has not finished writing it")]
    NotReady,
    /// It is not whole.
    #[error("it ends after {0} bytes, inside its header")]
    Truncated(usize),
}

#[derive(Clone, Copy)]
enum ByteOrder {
    Big,
    Little,
}

impl ByteOrder {
    fn read_u32(self, bytes: &[u8], at: usize) -> Option<usize> {
        let four: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
        let value = match self {
            ByteOrder::Big => u32::from_be_bytes(four),
            ByteOrder::Little => u32::from_le_bytes(four),
        };
        usize::try_from(value).ok()
    }
}

/// The strings of a performance data file, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PerfData {
    strings: HashMap<String, String>,
}

impl PerfData {
    /// The value of a string counter, such as `sun.rt.javaCommand`.
    pub fn string(&self, name: &str) -> Option<&str> {
        self.strings.get(name).map(String::as_str)
    }

    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Result<PerfData, PerfDataError> {
        if !bytes.starts_with(&MAGIC) {
            return Err(PerfDataError::NotPerfData);
        }
        if bytes.len() < PROLOGUE_BYTES {
            return Err(PerfDataError::Truncated(bytes.len()));
        }
        let order = match bytes[4] {
            0 => ByteOrder::Big,
            1 => ByteOrder::Little,
            other => return Err(PerfDataError::ByteOrder(other)),
        };
        if bytes[5] != 2 {
            return Err(PerfDataError::Version(bytes[5]));
        }
        if bytes[7] == 0 {
            return Err(PerfDataError::NotReady);
        }
        // 8 used, 12 overflow, 16 modification time stamp (8 bytes), 24 entry offset, 28 number of entries.
        let field = |at| order.read_u32(bytes, at).ok_or(PerfDataError::Truncated(bytes.len()));
        let (mut at, entries) = (field(24)?, field(28)?);
        let mut strings = HashMap::new();
        for _ in 0..entries {
            let Some((length, entry)) = entry(bytes, at, order) else { break };
            strings.extend(entry);
            at += length;
        }
        Ok(PerfData { strings })
    }
}

/// The length of the entry at an offset and, if it is a string, its name and value. `None` where no entry can be.
fn entry(bytes: &[u8], at: usize, order: ByteOrder) -> Option<(usize, Option<(String, String)>)> {
    let length = order.read_u32(bytes, at)?;
    let entry = bytes.get(at..at.checked_add(length)?)?;
    // Also keeps a length of zero from looping.
    if length < ENTRY_HEADER_BYTES {
        return None;
    }
    let name_offset = order.read_u32(entry, 4)?;
    let vector_length = order.read_u32(entry, 8)?;
    let (data_type, units) = (entry[12], entry[14]);
    let data_offset = order.read_u32(entry, 16)?;
    let name = until_nul(entry.get(name_offset..)?);
    if data_type != TYPE_BYTE || units != UNIT_STRING || vector_length == 0 {
        return Some((length, None));
    }
    let value = until_nul(entry.get(data_offset..data_offset.checked_add(vector_length)?)?);
    Some((length, Some((name, value))))
}

fn until_nul(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file as HotSpot writes it: a counter that is no string first, then the given strings.
    fn file(order: ByteOrder, strings: &[(&str, &str)]) -> Vec<u8> {
        let number = |value: usize| {
            let value = u32::try_from(value).expect("small");
            match order {
                ByteOrder::Big => value.to_be_bytes(),
                ByteOrder::Little => value.to_le_bytes(),
            }
        };
        let mut bytes = Vec::from(MAGIC);
        bytes.extend([matches!(order, ByteOrder::Little).into(), 2, 0, 1]);
        bytes.extend([0; 16]);
        bytes.extend(number(PROLOGUE_BYTES));
        bytes.extend(number(strings.len() + 1));
        let mut push = |name: &str, kind: u8, unit: u8, vector: usize, data: &[u8]| {
            let data_offset = (ENTRY_HEADER_BYTES + name.len() + 1).next_multiple_of(8);
            let length = (data_offset + data.len()).next_multiple_of(8);
            let mut entry = Vec::new();
            for value in [length, ENTRY_HEADER_BYTES, vector] {
                entry.extend(number(value));
            }
            entry.extend([kind, 0, unit, 1]);
            entry.extend(number(data_offset));
            entry.extend(name.as_bytes());
            entry.resize(data_offset, 0);
            entry.extend(data);
            entry.resize(length, 0);
            bytes.extend(entry);
        };
        push("sun.rt.createVmBeginTime", b'J', 1, 0, &[7; 8]);
        for (name, value) in strings {
            let data = [value.as_bytes(), b"\0\0"].concat();
            push(name, TYPE_BYTE, UNIT_STRING, data.len(), &data);
        }
        bytes
    }

    const STRINGS: &[(&str, &str)] =
        &[("sun.rt.javaCommand", "a.b.Main x y"), ("java.property.java.version", "25.0.3")];

    #[test]
    fn strings_are_read_in_both_byte_orders() {
        for order in [ByteOrder::Big, ByteOrder::Little] {
            let data = PerfData::parse(&file(order, STRINGS)).expect("a valid file");
            assert_eq!(data.string("sun.rt.javaCommand"), Some("a.b.Main x y"));
            assert_eq!(data.string("java.property.java.version"), Some("25.0.3"));
            assert_eq!(data.string("sun.rt.createVmBeginTime"), None);
        }
    }

    #[test]
    fn files_that_are_something_else_are_refused_with_the_reason() {
        let changed = |at: usize, value: u8| {
            let mut bytes = file(ByteOrder::Little, STRINGS);
            bytes[at] = value;
            bytes
        };
        let cases = [
            (Vec::new(), PerfDataError::NotPerfData),
            (changed(0, 0), PerfDataError::NotPerfData),
            (changed(4, 9), PerfDataError::ByteOrder(9)),
            (changed(5, 1), PerfDataError::Version(1)),
            (changed(7, 0), PerfDataError::NotReady),
            (file(ByteOrder::Big, &[])[..20].to_vec(), PerfDataError::Truncated(20)),
        ];
        for (bytes, expected) in cases {
            assert_eq!(PerfData::parse(&bytes), Err(expected));
        }
    }

    #[test]
    fn every_truncation_and_every_damaged_byte_is_survived() {
        let whole = file(ByteOrder::Little, STRINGS);
        for end in 0..whole.len() {
            let _ = PerfData::parse(&whole[..end]);
        }
        for at in 0..whole.len() {
            for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[at] = value;
                let _ = PerfData::parse(&bytes);
            }
        }
        let first_only = PerfData::parse(&whole[..whole.len() - 1]).expect("the header is whole");
        assert_eq!(first_only.string("sun.rt.javaCommand"), Some("a.b.Main x y"));
        assert_eq!(first_only.string("java.property.java.version"), None);
    }
}
