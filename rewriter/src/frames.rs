//! The StackMapTable attribute (JVMS 4.7.4), read frame by frame.

use crate::Error;
use crate::reader::Reader;
use crate::types::{State, Type};

/// The first version whose classes have stack maps (Java 6).
pub(crate) const FIRST_VERSION: u16 = 50;

pub(crate) const TOP: u8 = 0;
pub(crate) const INTEGER: u8 = 1;
pub(crate) const LONG: u8 = 4;
pub(crate) const UNINITIALIZED_THIS: u8 = 6;
pub(crate) const OBJECT: u8 = 7;
pub(crate) const UNINITIALIZED: u8 = 8;
pub(crate) const SAME_LOCALS_EXTENDED: u8 = 247;
pub(crate) const SAME_EXTENDED: u8 = 251;
pub(crate) const FULL: u8 = 255;
/// So many types are in a frame that appends them, at most.
pub(crate) const MOST_APPENDED: usize = 3;

/// A frame as it stands in the table: relative to the one before it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame<'a> {
    /// Absolute offset, for messages.
    pub(crate) at: usize,
    pub(crate) tag: u8,
    /// In the code.
    pub(crate) offset: u32,
    /// What is behind tag and offset.
    pub(crate) types: Reader<'a>,
}

/// The frames of a table, in their order.
#[derive(Clone, Debug)]
pub(crate) struct FrameReader<'a> {
    table: Reader<'a>,
    left: u16,
    last: Option<u32>,
}

impl<'a> FrameReader<'a> {
    pub(crate) fn new(mut table: Reader<'a>) -> Result<FrameReader<'a>, Error> {
        let left = table.u2("the number of frames")?;
        Ok(FrameReader { table, left, last: None })
    }

    pub(crate) fn next(&mut self) -> Result<Option<Frame<'a>>, Error> {
        if self.left == 0 {
            return if self.table.is_empty() { Ok(None) } else { self.table.fail("the end of the stack map table") };
        }
        self.left -= 1;
        let at = self.table.offset();
        let tag = self.table.u1("a frame's type")?;
        let delta = match tag {
            0..=63 => tag.into(),
            64..=127 => u32::from(tag - 64),
            SAME_LOCALS_EXTENDED..=FULL => self.table.u2("a frame's offset")?.into(),
            _ => return Err(Error::new(at, "a frame's type (0 to 127, 247 to 255)")),
        };
        let offset = self.last.map_or(0, |last| last + 1) + delta;
        self.last = Some(offset);
        let types = self.table;
        match tag {
            64..=127 | SAME_LOCALS_EXTENDED => skip_types(&mut self.table, 1)?,
            252..=254 => skip_types(&mut self.table, (tag - SAME_EXTENDED).into())?,
            FULL => {
                for _ in 0..2 {
                    let count = self.table.u2("a frame's number of types")?;
                    skip_types(&mut self.table, count)?;
                }
            }
            _ => {}
        }
        let length = self.table.position() - types.position();
        Ok(Some(Frame { at, tag, offset, types: types.first(length) }))
    }
}

fn skip_types(table: &mut Reader<'_>, count: u16) -> Result<(), Error> {
    for _ in 0..count {
        let at = table.offset();
        match table.u1("a verification type")? {
            TOP..=UNINITIALIZED_THIS => {}
            OBJECT | UNINITIALIZED => {
                table.u2("a verification type's operand")?;
            }
            _ => return Err(Error::new(at, "a verification type (0 to 8)")),
        }
    }
    Ok(())
}

/// The offsets of all frames.
pub(crate) fn offsets(table: Reader<'_>) -> Result<Vec<u32>, Error> {
    let mut frames = FrameReader::new(table)?;
    let mut offsets = Vec::new();
    while let Some(frame) = frames.next()? {
        offsets.push(frame.offset);
    }
    Ok(offsets)
}

impl Frame<'_> {
    /// Makes of the frame before it (`base`) this frame; and the same of `state`, which was `base` until instructions
    /// touched it. Takes as long as the frame is, and as much was touched.
    pub(crate) fn apply_after<'a>(&self, base: &mut State<'a>, state: &mut State<'a>) -> Result<(), Error> {
        for touched in std::mem::take(&mut state.touched) {
            if let Some(slot) = state.locals.get_mut(usize::from(touched)) {
                *slot = base.local(touched);
            }
        }
        state.locals.truncate(base.locals.len());
        let kept = self.apply(base)?;
        state.locals.truncate(kept);
        state.locals.extend_from_slice(&base.locals[kept..]);
        state.stack.clone_from(&base.stack);
        state.this_uninitialized = base.this_uninitialized;
        Ok(())
    }

    pub(crate) fn has_same_locals(&self) -> bool {
        matches!(self.tag, 0..=127 | SAME_LOCALS_EXTENDED | SAME_EXTENDED)
    }

    /// Has an empty stack, and the locals of the frame before it or some more.
    pub(crate) fn only_appends(&self) -> bool {
        matches!(self.tag, 0..=63 | SAME_EXTENDED..=254)
    }

    /// So many locals are as they were.
    pub(crate) fn apply(&self, state: &mut State<'_>) -> Result<usize, Error> {
        let mut types = self.types;
        state.stack.clear();
        let mut kept = state.locals.len();
        match self.tag {
            64..=127 | SAME_LOCALS_EXTENDED => push_types(&mut types, 1, &mut state.stack)?,
            248..=250 => {
                for _ in self.tag..SAME_EXTENDED {
                    if state.locals.pop() == Some(Type::Second) {
                        state.locals.pop();
                    }
                }
                kept = state.locals.len();
                // At most the first local of a constructor; chopping it is as rare as can be.
                state.this_uninitialized &= state.locals.contains(&Type::UninitializedThis);
            }
            252..=254 => push_types(&mut types, (self.tag - SAME_EXTENDED).into(), &mut state.locals)?,
            FULL => {
                kept = 0;
                state.locals.clear();
                let count = types.u2("a frame's number of types")?;
                push_types(&mut types, count, &mut state.locals)?;
                let count = types.u2("a frame's number of types")?;
                push_types(&mut types, count, &mut state.stack)?;
                state.this_uninitialized = state.locals.contains(&Type::UninitializedThis);
            }
            _ => {}
        }
        state.this_uninitialized |= state.locals[kept..].contains(&Type::UninitializedThis);
        Ok(kept)
    }
}

fn push_types(reader: &mut Reader<'_>, count: u16, to: &mut Vec<Type<'_>>) -> Result<(), Error> {
    for _ in 0..count {
        let one = match reader.u1("a verification type")? {
            TOP => Type::Top,
            INTEGER => Type::Integer,
            2 => Type::Float,
            3 => Type::Double,
            LONG => Type::Long,
            5 => Type::Null,
            UNINITIALIZED_THIS => Type::UninitializedThis,
            OBJECT => Type::Class(reader.u2("a class")?),
            _ => Type::Uninitialized(reader.u2("the offset of a new")?.into()),
        };
        to.push(one);
        if matches!(one, Type::Long | Type::Double) {
            to.push(Type::Second);
        }
    }
    Ok(())
}
