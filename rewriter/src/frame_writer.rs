//! The StackMapTable attribute (JVMS 4.7.4), written with offsets relocated and frames added.

use crate::class_file::ClassFile;
use crate::constant_pool::Appended;
use crate::frames::{
    FULL, Frame, FrameReader, INTEGER, LONG, MOST_APPENDED, OBJECT, SAME_EXTENDED, SAME_LOCALS_EXTENDED, TOP,
    UNINITIALIZED, UNINITIALIZED_THIS,
};
use crate::layout::{Held, Layout};
use crate::reader::Reader;
use crate::types::{State, Type};
use crate::{Error, Refusal};

/// A table is refused beyond this. Real ones have some kilobytes.
const MAX_BYTES: usize = 16 << 20;

/// A frame to be added: what stands behind tag and offset of a full frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Full(Vec<u8>);

impl Full {
    /// Of a handler of ours: `this` in a local, if it has to be there, what we hold, and a `Throwable` on the stack.
    pub(crate) fn of_handler(uninitialized_this: Option<u16>, throwable: u16, ours: &Ours<'_>) -> Full {
        let used = uninitialized_this.map_or(0, |local| local + 1);
        // No more than a method's local variables.
        let locals = usize::from(used) + ours.distance(used);
        let mut bytes = Vec::from((locals as u16).to_be_bytes());
        if let Some(local) = uninitialized_this {
            bytes.extend(std::iter::repeat_n(TOP, local.into()));
            bytes.push(UNINITIALIZED_THIS);
        }
        ours.write(used, &mut bytes);
        bytes.extend([0, 1, OBJECT]);
        bytes.extend(throwable.to_be_bytes());
        Full(bytes)
    }
}

/// Local variables behind the method's own that hold something of ours all through it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ours<'p> {
    /// The first one.
    pub(crate) first: u16,
    pub(crate) held: &'p [Held],
    /// Constant pool index of `java/lang/Object`.
    pub(crate) object: u16,
}

impl Ours<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// How many types follow those of so many local variables, up to the last of ours.
    fn distance(&self, used: u16) -> usize {
        if self.is_empty() { 0 } else { usize::from(self.first.saturating_sub(used)) + self.held.len() }
    }

    /// Writes those types.
    fn write(&self, used: u16, out: &mut Vec<u8>) {
        let unused = self.distance(used) - self.held.len();
        out.extend(std::iter::repeat_n(TOP, unused));
        for held in self.held {
            match held {
                Held::Object => {
                    out.push(OBJECT);
                    out.extend(self.object.to_be_bytes());
                }
                Held::Int => out.push(INTEGER),
                Held::Long => out.push(LONG),
            }
        }
    }
}

/// How many types some slots are.
fn count(slots: &[Type<'_>]) -> usize {
    slots.iter().filter(|slot| **slot != Type::Second).count()
}

/// Writes the types of a class's code that has been laid out.
#[derive(Debug)]
pub(crate) struct Types<'w, 'a> {
    pub(crate) class: &'w ClassFile<'a>,
    pub(crate) layout: &'w Layout<'w>,
    pub(crate) ours: &'w Ours<'w>,
    pub(crate) appended: &'w mut Appended,
}

impl Types<'_, '_> {
    /// A state between instructions; `at` is the absolute offset of what says that it is so.
    pub(crate) fn full(&mut self, state: &State<'_>, at: usize) -> Result<Full, Refusal> {
        let mut bytes = Vec::new();
        self.write_full(state, at, &mut bytes)?;
        Ok(Full(bytes))
    }

    fn write_full(&mut self, state: &State<'_>, at: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let used = state.locals.iter().rposition(|local| *local != Type::Top).map_or(0, |last| last + 1);
        let locals = count(&state.locals[..used]) + self.ours.distance(used as u16);
        out.extend(u16::try_from(locals).map_err(|_| Refusal::StackMapFull)?.to_be_bytes());
        self.write(&state.locals[..used], at, out)?;
        self.ours.write(used as u16, out);
        out.extend(u16::try_from(count(&state.stack)).map_err(|_| Refusal::StackMapFull)?.to_be_bytes());
        self.write(&state.stack, at, out)
    }

    fn write(&mut self, slots: &[Type<'_>], at: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
        slots.iter().filter(|slot| **slot != Type::Second).try_for_each(|slot| self.write_type(*slot, at, out))
    }

    fn write_type(&mut self, one: Type<'_>, at: usize, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let (tag, operand) = match one {
            // Classes with subroutines have no stack maps.
            Type::Top | Type::Second | Type::ReturnAddress(_) => (TOP, None),
            Type::Integer => (INTEGER, None),
            Type::Float => (2, None),
            Type::Double => (3, None),
            Type::Long => (LONG, None),
            Type::Null => (5, None),
            Type::UninitializedThis => (UNINITIALIZED_THIS, None),
            Type::Class(index) => (OBJECT, Some(index)),
            Type::Named(name) => (OBJECT, Some(self.appended.class(name)?)),
            Type::ArrayOf(index) => {
                let element = self.class.pool.class_bytes(index, 0)?;
                let name =
                    if element.starts_with(b"[") { [b"[", element].concat() } else { [b"[L", element, b";"].concat() };
                (OBJECT, Some(self.appended.class(&name)?))
            }
            Type::Uninitialized(new) => (UNINITIALIZED, Some(self.layout.checked_place(new, at)? as u16)),
        };
        out.push(tag);
        if let Some(operand) = operand {
            out.extend(operand.to_be_bytes());
        }
        Ok(())
    }
}

/// A table in the making.
#[derive(Debug)]
pub(crate) struct FrameWriter<'o> {
    out: &'o mut Vec<u8>,
    start: usize,
    count: u16,
    /// New offset of the latest frame.
    last: Option<u32>,
}

impl<'o> FrameWriter<'o> {
    /// Writes the content of the attribute to the end of `out`.
    pub(crate) fn new(out: &'o mut Vec<u8>) -> FrameWriter<'o> {
        let start = out.len();
        out.extend([0, 0]);
        FrameWriter { out, start, count: 0, last: None }
    }

    pub(crate) fn finish(self) {
        self.out[self.start..self.start + 2].copy_from_slice(&self.count.to_be_bytes());
    }

    /// Distance from the frame before it; an error if that one does not come before it.
    fn delta(&mut self, offset: u32, at: usize) -> Result<u16, Refusal> {
        let delta = match self.last {
            None => Some(offset),
            Some(last) => offset.checked_sub(last + 1),
        };
        self.last = Some(offset);
        self.count = self.count.checked_add(1).ok_or(Refusal::StackMapFull)?;
        if self.out.len() - self.start > MAX_BYTES {
            return Err(Refusal::StackMapFull);
        }
        let delta = delta.and_then(|delta| u16::try_from(delta).ok());
        Ok(delta.ok_or_else(|| Error::new(at, "frames in the order of their offsets"))?)
    }

    pub(crate) fn full(&mut self, offset: u32, frame: &Full) -> Result<(), Refusal> {
        let delta = self.delta(offset, 0)?;
        self.extended(FULL, delta);
        self.out.extend_from_slice(&frame.0);
        Ok(())
    }

    fn extended(&mut self, tag: u8, delta: u16) {
        self.out.push(tag);
        self.out.extend(delta.to_be_bytes());
    }

    /// A frame of the old table, relocated; what it is relative to must have been written before it.
    fn relocated(&mut self, frame: &Frame<'_>, layout: &Layout<'_>) -> Result<(), Refusal> {
        let delta = self.delta(layout.checked_target(frame.offset, frame.at)?, frame.at)?;
        // The short forms have no room for larger offsets.
        match frame.tag {
            0..=63 if delta <= 63 => self.out.push(delta as u8),
            64..=127 if delta <= 63 => self.out.push(64 + delta as u8),
            0..=63 => self.extended(SAME_EXTENDED, delta),
            64..=127 => self.extended(SAME_LOCALS_EXTENDED, delta),
            tag => self.extended(tag, delta),
        }
        let start = self.out.len();
        self.out.extend_from_slice(frame.types.rest());
        let mut types = frame.types;
        match frame.tag {
            64..=127 | SAME_LOCALS_EXTENDED => self.relocate_types(start, &mut types, 1, layout)?,
            252..=254 => self.relocate_types(start, &mut types, (frame.tag - SAME_EXTENDED).into(), layout)?,
            FULL => {
                for _ in 0..2 {
                    let count = types.u2("a frame's number of types")?;
                    self.relocate_types(start, &mut types, count, layout)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Only the offsets of `new` instructions move. `start` is where `types` was copied to.
    fn relocate_types(
        &mut self,
        start: usize,
        types: &mut Reader<'_>,
        count: u16,
        layout: &Layout<'_>,
    ) -> Result<(), Error> {
        for _ in 0..count {
            match types.u1("a verification type")? {
                OBJECT => {
                    types.u2("a class")?;
                }
                UNINITIALIZED => {
                    let (at, position) = (types.offset(), types.position());
                    let old = types.u2("the offset of a new")?.into();
                    let new = layout.checked_place(old, at)? as u16;
                    let place = start + position;
                    self.out[place..place + 2].copy_from_slice(&new.to_be_bytes());
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All frames of the old table, and those that are to be added: old offset, new offset, frame. At the same old offset an
    /// added one comes first. `entry` is what the method begins with, if there is something of ours or frames to be added.
    ///
    /// What is ours is behind all other local variables, so a frame with other local variables than the one before it has to name
    /// them all.
    pub(crate) fn all<'a, 'f>(
        &mut self,
        types: &mut Types<'_, 'a>,
        entry: Option<State<'a>>,
        table: Reader<'a>,
        added: impl Iterator<Item = (u32, u32, &'f Full)>,
    ) -> Result<(), Refusal> {
        let (ours, layout) = (types.ours, types.layout);
        let mut added = added.peekable();
        let mut state = entry;
        let mut frames = FrameReader::new(table)?;
        while let Some(frame) = frames.next()? {
            let mut last_is_added = false;
            while let Some((_, new, full)) = added.next_if(|(old, ..)| *old <= frame.offset) {
                self.full(new, full)?;
                last_is_added = true;
            }
            let Some(state) = &mut state else {
                self.relocated(&frame, layout)?;
                continue;
            };
            let before = state.locals.len();
            frame.apply(state)?;
            let used = state.locals.len();
            let can_stay = match ours.is_empty() {
                true => !last_is_added || frame.tag == FULL,
                false => !last_is_added && self.last.is_some() && frame.has_same_locals(),
            };
            if can_stay {
                self.relocated(&frame, layout)?;
                continue;
            }
            if !ours.is_empty() && used > usize::from(ours.first) {
                return Err(Error::new(frame.at, "a frame with no more local variables than the method has").into());
            }
            let delta = self.delta(layout.checked_target(frame.offset, frame.at)?, frame.at)?;
            let more = &state.locals[before.min(used)..];
            let appended = ours.distance(used as u16) + count(more);
            if self.count == 1 && frame.only_appends() && appended <= MOST_APPENDED {
                self.extended(SAME_EXTENDED + appended as u8, delta);
                types.write(more, frame.at, self.out)?;
                ours.write(used as u16, self.out);
            } else {
                self.extended(FULL, delta);
                types.write_full(state, frame.at, self.out)?;
            }
        }
        for (_, new, full) in added {
            self.full(new, full)?;
        }
        Ok(())
    }
}
