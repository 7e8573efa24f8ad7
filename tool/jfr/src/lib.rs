//! Reading a recording: the stacks of its execution samples.
//!
//! The format is JFR's, version 2 (`jdk.jfr.internal` and HotSpot's `jfr/recorder`; JDK 11 to 25): chunks that have a header, events, a
//! description of all types, and constants, which events name by their keys. The target writes it, so nothing in it is believed: what is read
//! is in proportion to the recording's length, in time and in memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;

mod bytes;
#[cfg(test)]
mod tests;
mod types;

use bytes::{Bytes, Text};
use types::{Fuel, Kind, Name, Types, Value};

/// JFR keeps no deeper stacks.
pub const DEEPEST: usize = 2048;
/// Type of the event that describes types.
const METADATA: i64 = 0;
/// Type of those that hold constants.
const CONSTANTS: i64 = 1;
/// A chunk's header: magic, version, size, where constants and types are, when it begins, for how long, ticks, flags.
const HEADER_BYTES: usize = 68;
const SIZE_AT: usize = 8;
const METADATA_AT: usize = 24;
const START_NANOS_AT: usize = 32;
const START_TICKS_AT: usize = 48;
const FREQUENCY_AT: usize = 56;
/// Integers are compressed; the JVM has no other.
const FLAGS_AT: usize = 67;
const COMPRESSED: u8 = 1;
/// Names are shared by methods. All together, those of the samples are no longer than so many times the recording.
const NAMES_PART: usize = 16;

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is cut off, or none.
    #[error("at byte {at} there is no chunk of a recording")]
    NoChunk {
        /// Where.
        at: usize,
    },
    /// It makes no sense.
    #[error("{0}")]
    Format(&'static str),
}

/// A method of the samples: an index into [`Samples::methods`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FrameIndex(pub u32);

/// A thread's stack at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When, in ns since 1970.
    pub at_ns: i64,
    /// The operating system's number of the thread, as the JVM knows it.
    pub thread: u32,
    /// The methods on it, the outermost first. Equal stacks share them.
    pub frames: Arc<[FrameIndex]>,
    /// Outer frames are missing: it was deeper than stacks are kept.
    pub is_cut: bool,
}

/// What was sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Samples {
    /// Machine names, `a.b.C.m(ILjava/lang/String;)V`, each once.
    pub methods: Vec<String>,
    /// In no particular order.
    pub stacks: Vec<Sample>,
}

/// The execution samples of a recording.
pub fn samples(recording: &[u8]) -> Result<Samples, ReadError> {
    let mut reader = Reader {
        samples: Samples::default(),
        known: FxHashMap::default(),
        names_left: recording.len().saturating_mul(NAMES_PART),
    };
    let mut at = 0;
    while at < recording.len() {
        let chunk = Chunk::at(recording, at)?;
        reader.chunk(&chunk)?;
        at += chunk.bytes.len();
    }
    Ok(reader.samples)
}

/// A chunk of a recording, which has a header at least.
struct Chunk<'a> {
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn at(recording: &'a [u8], at: usize) -> Result<Chunk<'a>, ReadError> {
        let none = ReadError::NoChunk { at };
        let rest = &recording[at..];
        if rest.len() < HEADER_BYTES || !rest.starts_with(b"FLR\0") {
            return Err(none);
        }
        let size = usize::try_from(Chunk { bytes: rest }.field(SIZE_AT)).unwrap_or(0);
        match rest.get(..size) {
            Some(bytes) if size >= HEADER_BYTES => Ok(Chunk { bytes }),
            _ => Err(none),
        }
    }

    /// Of the header: big-endian, eight bytes.
    fn field(&self, at: usize) -> i64 {
        self.bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | i64::from(*byte))
    }

    /// Its events, each with its type.
    fn events(&self) -> impl Iterator<Item = Result<(i64, Bytes<'a>), ReadError>> + use<'a> {
        let mut rest = Bytes::new(&self.bytes[HEADER_BYTES..]);
        let mut is_over = false;
        std::iter::from_fn(move || {
            if is_over || rest.len() == 0 {
                return None;
            }
            let event = rest.event().and_then(|mut event| Ok((event.number()?, event)));
            is_over = event.is_err();
            Some(event)
        })
    }

    fn types(&self) -> Result<Types, ReadError> {
        let at = usize::try_from(self.field(METADATA_AT)).ok().and_then(|at| self.bytes.get(at..));
        let mut event = Bytes::new(at.ok_or(ReadError::Format("it does not say where its types are"))?).event()?;
        if event.number()? != METADATA {
            return Err(ReadError::Format("its types are not where it says"));
        }
        Types::read(event)
    }

    fn since_1970(&self, ticks: i64) -> i64 {
        let passed = ticks.wrapping_sub(self.field(START_TICKS_AT)) as f64 * 1e9;
        self.field(START_NANOS_AT).saturating_add((passed / self.field(FREQUENCY_AT).max(1) as f64) as i64)
    }
}

/// The constants that samples need, by their keys.
#[derive(Default)]
struct Constants {
    texts: FxHashMap<i64, String>,
    /// Classes' names, as keys of symbols.
    classes: FxHashMap<i64, i64>,
    methods: FxHashMap<i64, Method>,
    stacks: FxHashMap<i64, Stack>,
    threads: FxHashMap<i64, u32>,
    symbols: FxHashMap<i64, Text>,
}

#[derive(Clone, Copy, Default)]
struct Method {
    class: i64,
    name: i64,
    descriptor: i64,
}

#[derive(Default)]
struct Stack {
    is_cut: bool,
    /// Keys, the innermost first.
    methods: Vec<i64>,
    /// What they come to, once it is known.
    frames: Option<Arc<[FrameIndex]>>,
}

impl Constants {
    fn read(chunk: &Chunk<'_>, types: &Types, fuel: &mut Fuel) -> Result<Constants, ReadError> {
        let mut constants = Constants::default();
        for event in chunk.events() {
            let (CONSTANTS, mut event) = event? else { continue };
            // When, for how long, where the ones before are, and whether they are all.
            for _ in 0..3 {
                event.number()?;
            }
            event.byte()?;
            for _ in 0..event.count()? {
                let class = event.number()?;
                for _ in 0..event.count()? {
                    let key = event.number()?;
                    constants.add(key, class, &mut event, types, fuel)?;
                }
            }
        }
        Ok(constants)
    }

    /// Reads one, and keeps it if it is of a kind that is needed.
    fn add(
        &mut self,
        key: i64,
        class: i64,
        from: &mut Bytes<'_>,
        types: &Types,
        fuel: &mut Fuel,
    ) -> Result<(), ReadError> {
        let (mut text, mut method, mut stack) = (None, Method::default(), Stack::default());
        let mut thread = 0;
        types.value(class, from, fuel, &mut |name, value| match (name, value) {
            (Name::Characters | Name::Other, Value::Text(value)) => text = Some(value),
            (Name::Type, Value::Constant(key)) => method.class = key,
            (Name::Symbol, Value::Constant(key)) => method.name = key,
            (Name::Descriptor, Value::Constant(key)) => method.descriptor = key,
            (Name::Truncated, Value::Number(cut)) => stack.is_cut = cut != 0,
            (Name::Method, Value::Constant(key)) => stack.methods.push(key),
            (Name::OsThreadId, Value::Number(number)) => thread = u32::try_from(number).unwrap_or(0),
            _ => {}
        })?;
        match (types.kind(class), text) {
            (Some(Kind::Text), Some(Text::Here(text))) => drop(self.texts.insert(key, text)),
            (Some(Kind::Symbol), Some(text)) => drop(self.symbols.insert(key, text)),
            (Some(Kind::Class), _) => drop(self.classes.insert(key, method.name)),
            (Some(Kind::Method), _) => drop(self.methods.insert(key, method)),
            (Some(Kind::Stack), _) if stack.methods.len() <= DEEPEST => drop(self.stacks.insert(key, stack)),
            (Some(Kind::Thread), _) => drop(self.threads.insert(key, thread)),
            _ => {}
        }
        Ok(())
    }

    fn symbol(&self, key: i64) -> Option<&str> {
        match self.symbols.get(&key)? {
            Text::Here(text) => Some(text),
            Text::Constant(key) => self.texts.get(key).map(String::as_str),
        }
    }

    /// What a method's name is made of.
    fn parts(&self, method: i64) -> Option<[&str; 3]> {
        let method = self.methods.get(&method)?;
        let class = self.symbol(*self.classes.get(&method.class)?)?;
        Some([class, self.symbol(method.name)?, self.symbol(method.descriptor)?])
    }
}

struct Reader {
    samples: Samples,
    known: FxHashMap<String, FrameIndex>,
    /// What methods' names may still take.
    names_left: usize,
}

impl Reader {
    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), ReadError> {
        if chunk.bytes[FLAGS_AT] & COMPRESSED == 0 {
            return Err(ReadError::Format("its integers are not compressed"));
        }
        let types = chunk.types()?;
        let Some(sample) = types.number(Kind::Sample) else { return Ok(()) };
        let mut fuel = Fuel::for_bytes(chunk.bytes.len());
        let mut constants = Constants::read(chunk, &types, &mut fuel)?;
        // Constants are a chunk's own.
        let mut names = FxHashMap::default();
        for event in chunk.events() {
            let (kind, mut event) = event?;
            if kind != sample {
                continue;
            }
            let (mut at, mut thread, mut stack) = (None, 0, None);
            types.value(sample, &mut event, &mut fuel, &mut |name, value| match (name, value) {
                (Name::StartTime, Value::Number(ticks)) => at = Some(ticks),
                (Name::SampledThread, Value::Constant(key)) => thread = key,
                (Name::StackTrace, Value::Constant(key)) => stack = Some(key),
                _ => {}
            })?;
            let (Some(at), Some(stack)) = (at, stack) else { continue };
            let (frames, is_cut) = self.frames(stack, &mut constants, &mut names)?;
            let thread = constants.threads.get(&thread).copied().unwrap_or_default();
            self.samples.stacks.push(Sample { at_ns: chunk.since_1970(at), thread, frames, is_cut });
        }
        Ok(())
    }

    /// The methods of a stack; and whether outer ones are missing.
    fn frames(
        &mut self,
        key: i64,
        constants: &mut Constants,
        names: &mut FxHashMap<i64, FrameIndex>,
    ) -> Result<(Arc<[FrameIndex]>, bool), ReadError> {
        let Some(stack) = constants.stacks.get(&key) else { return Ok((Arc::default(), true)) };
        let is_cut = stack.is_cut;
        if let Some(frames) = &stack.frames {
            return Ok((Arc::clone(frames), is_cut));
        }
        let mut frames = Vec::with_capacity(stack.methods.len());
        for method in stack.methods.iter().rev() {
            let index = match names.get(method) {
                Some(index) => *index,
                None => {
                    let index = self.frame(constants.parts(*method))?;
                    names.insert(*method, index);
                    index
                }
            };
            frames.push(index);
        }
        let frames: Arc<[FrameIndex]> = frames.into();
        if let Some(stack) = constants.stacks.get_mut(&key) {
            stack.frames = Some(Arc::clone(&frames));
        }
        Ok((frames, is_cut))
    }

    /// A method, by its name as everywhere here: `a.b.C.m(ILjava/lang/String;)V`; one without a name has an empty one.
    fn frame(&mut self, parts: Option<[&str; 3]>) -> Result<FrameIndex, ReadError> {
        let name = match parts {
            None => String::new(),
            Some([class, name, descriptor]) => {
                let length = class.len() + name.len() + descriptor.len();
                self.names_left =
                    self.names_left.checked_sub(length).ok_or(ReadError::Format("its methods' names are too long"))?;
                format!("{}.{name}{descriptor}", class.replace('/', "."))
            }
        };
        let next = FrameIndex(self.samples.methods.len() as u32);
        Ok(*self.known.entry(name).or_insert_with_key(|name| {
            self.samples.methods.push(name.clone());
            next
        }))
    }
}
