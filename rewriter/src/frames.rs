//! The StackMapTable attribute (JVMS 4.7.4), relocated frame by frame.

use crate::Error;
use crate::reader::Reader;
use crate::relocation::Relocated;

const ITEM_UNINITIALIZED_THIS: u8 = 6;
const ITEM_OBJECT: u8 = 7;
const ITEM_UNINITIALIZED: u8 = 8;

/// Relocated frames in the making.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    count: u16,
    /// New offset of the latest frame.
    last: Option<u32>,
    bytes: Vec<u8>,
}

impl Frames {
    /// The attribute's content.
    pub(crate) fn finish(self) -> Vec<u8> {
        let mut content = self.count.to_be_bytes().to_vec();
        content.extend(self.bytes);
        content
    }

    fn delta(&mut self, offset: u32, at: usize) -> Result<u16, Error> {
        let delta = match self.last {
            None => Some(offset),
            Some(last) => offset.checked_sub(last + 1),
        };
        self.last = Some(offset);
        self.count = self.count.checked_add(1).ok_or_else(|| Error::new(at, "at most 65,535 frames"))?;
        delta
            .and_then(|delta| u16::try_from(delta).ok())
            .ok_or_else(|| Error::new(at, "frames in the order of their offsets"))
    }

    /// Appends the full frame of an exception handler: one local or none, a `Throwable` on the stack.
    pub(crate) fn handler(&mut self, offset: u32, uninitialized_this: bool, throwable: u16) -> Result<(), Error> {
        let delta = self.delta(offset, 0)?;
        self.bytes.push(255);
        self.bytes.extend(delta.to_be_bytes());
        if uninitialized_this {
            self.bytes.extend([0, 1, ITEM_UNINITIALIZED_THIS]);
        } else {
            self.bytes.extend([0, 0]);
        }
        self.bytes.extend([0, 1, ITEM_OBJECT]);
        self.bytes.extend(throwable.to_be_bytes());
        Ok(())
    }
}

/// Reads a table and relocates it.
pub(crate) fn relocate(mut table: Reader<'_>, relocated: &Relocated) -> Result<Frames, Error> {
    let mut frames = Frames::default();
    let mut old: Option<u32> = None;
    for _ in 0..table.u2("the number of frames")? {
        let at = table.offset();
        let tag = table.u1("a frame's type")?;
        let old_delta = match tag {
            0..=63 => u16::from(tag),
            64..=127 => u16::from(tag - 64),
            247..=255 => table.u2("a frame's offset")?,
            _ => return Err(Error::new(at, "a frame's type (0 to 127, 247 to 255)")),
        };
        let offset = old.map_or(0, |old| old + 1) + u32::from(old_delta);
        old = Some(offset);
        let delta = frames.delta(relocated.target(offset, at)?, at)?;
        let out = &mut frames.bytes;
        match tag {
            // The short forms have no room for larger offsets.
            0..=63 if delta <= 63 => out.push(delta as u8),
            64..=127 if delta <= 63 => out.push(64 + delta as u8),
            0..=63 => push(out, 251, delta),
            64..=127 => push(out, 247, delta),
            _ => push(out, tag, delta),
        }
        match tag {
            64..=127 | 247 => verification_type(&mut table, relocated, out)?,
            252..=254 => {
                for _ in 251..tag {
                    verification_type(&mut table, relocated, out)?;
                }
            }
            255 => {
                for _ in 0..2 {
                    let count = table.u2("a frame's number of types")?;
                    out.extend(count.to_be_bytes());
                    for _ in 0..count {
                        verification_type(&mut table, relocated, out)?;
                    }
                }
            }
            _ => {}
        }
    }
    if !table.is_empty() {
        return table.fail("the end of the stack map table");
    }
    Ok(frames)
}

fn push(out: &mut Vec<u8>, tag: u8, delta: u16) {
    out.push(tag);
    out.extend(delta.to_be_bytes());
}

fn verification_type(table: &mut Reader<'_>, relocated: &Relocated, out: &mut Vec<u8>) -> Result<(), Error> {
    let at = table.offset();
    let tag = table.u1("a verification type")?;
    out.push(tag);
    match tag {
        0..=ITEM_UNINITIALIZED_THIS => Ok(()),
        ITEM_OBJECT => {
            out.extend(table.u2("a class")?.to_be_bytes());
            Ok(())
        }
        ITEM_UNINITIALIZED => {
            // Names the `new` instruction itself.
            let old = table.u2("the offset of a new")?;
            out.extend((relocated.place(old.into(), at)? as u16).to_be_bytes());
            Ok(())
        }
        _ => Err(Error::new(at, "a verification type (0 to 8)")),
    }
}

/// The offsets of all frames, and whether `this` is uninitialised there (JVMS 4.10.1.4, flagThisUninit). Locals are
/// followed only as far as their first, which is where `this` is.
pub(crate) fn uninitialized_this(mut table: Reader<'_>) -> Result<Vec<(u32, bool)>, Error> {
    let mut frames = Vec::new();
    let mut old: Option<u32> = None;
    // In a constructor, the first local is uninitializedThis when it begins.
    let mut locals = 1usize;
    let mut uninitialized = true;
    for _ in 0..table.u2("the number of frames")? {
        let tag = table.u1("a frame's type")?;
        let delta = match tag {
            0..=63 => u16::from(tag),
            64..=127 => u16::from(tag - 64),
            _ => table.u2("a frame's offset")?,
        };
        match tag {
            0..=63 | 251 => {}
            64..=127 | 247 => {
                skip_type(&mut table)?;
            }
            248..=250 => {
                locals = locals.saturating_sub(usize::from(251 - tag));
                uninitialized &= locals > 0;
            }
            252..=254 => {
                for _ in 251..tag {
                    skip_type(&mut table)?;
                    locals += 1;
                }
            }
            255 => {
                locals = usize::from(table.u2("a frame's number of locals")?);
                uninitialized = false;
                for i in 0..locals {
                    let tag = skip_type(&mut table)?;
                    uninitialized |= i == 0 && tag == ITEM_UNINITIALIZED_THIS;
                }
                for _ in 0..table.u2("a frame's stack depth")? {
                    skip_type(&mut table)?;
                }
            }
            _ => return table.fail("a frame's type (0 to 127, 247 to 255)"),
        }
        let offset = old.map_or(0, |old| old + 1) + u32::from(delta);
        old = Some(offset);
        frames.push((offset, uninitialized));
    }
    Ok(frames)
}

fn skip_type(table: &mut Reader<'_>) -> Result<u8, Error> {
    let tag = table.u1("a verification type")?;
    if tag >= ITEM_OBJECT {
        table.u2("a verification type's operand")?;
    }
    Ok(tag)
}
