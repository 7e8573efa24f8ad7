//! Constant pools, entry by entry (JVMS 4.4). The agent does not carry the rewriter, which reads class files.

/// Tag of a text.
pub const UTF8: u8 = 1;
/// Tag of a class.
pub const CLASS: u8 = 7;
/// Tag of a string constant.
pub const STRING: u8 = 8;
/// Tag of a name with a descriptor.
pub const NAME_AND_TYPE: u8 = 12;
/// Tag of a method handle.
pub const METHOD_HANDLE: u8 = 15;
/// Tag of a computed constant.
pub const DYNAMIC: u8 = 17;
/// Tag of a call site.
pub const INVOKE_DYNAMIC: u8 = 18;

/// An entry.
#[derive(Clone, Copy, Debug)]
pub struct Constant<'p> {
    /// What it is.
    pub tag: u8,
    /// What follows the tag.
    pub content: &'p [u8],
    /// How many indexes it takes: two, if it is a long or a double.
    pub indexes: usize,
}

/// The first entry, and what stands behind it; `None` of what is cut off, or cannot be known.
pub fn split_first(pool: &[u8]) -> Option<(Constant<'_>, &[u8])> {
    let (&tag, rest) = pool.split_first()?;
    let (length, indexes) = match tag {
        UTF8 => (2 + usize::from(short(rest, 0)?), 1),
        5 | 6 => (8, 2),
        // Method types, modules, packages, too.
        CLASS | STRING | 16 | 19 | 20 => (2, 1),
        METHOD_HANDLE => (3, 1),
        3 | 4 | 9..=NAME_AND_TYPE | DYNAMIC | INVOKE_DYNAMIC => (4, 1),
        _ => return None,
    };
    let (content, behind) = rest.split_at_checked(length)?;
    Some((Constant { tag, content, indexes }, behind))
}

/// A number of two bytes.
pub fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}
