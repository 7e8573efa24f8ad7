//! Reading a recording: what happened where, by the stacks of its events.
//!
//! The format is JFR's, version 2 (`jdk.jfr.internal` and HotSpot's `jfr/recorder`; JDK 11 to 25): chunks that have a header, events, a
//! description of all types, and constants, which events name by their keys. The target writes it, so nothing in it is believed: what is read
//! is in proportion to the recording's length, in time and in memory.

use rustc_hash::FxHashMap;

mod bytes;
mod constants;
mod events;
mod fields;
mod native;
mod recorded;
#[cfg(test)]
mod tests;
mod types;

use bytes::{Bytes, Text};
use constants::Constants;
pub use events::EventKind;
use fields::Name;
pub use recorded::{
    Allocated, Collection, FrameIndex, JvmInformation, Lock, LockIndex, Recorded, RecordedEvent, Sample, Samples,
    Setting, Stack, StackIndex, Thread, ThreadIndex,
};
use types::{Fuel, Kind, Types, Value};

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
/// Names are shared by methods and threads. All together, those of the events are no longer than so many times the recording.
const NAMES_PART: usize = 16;
/// When the heap was after a collection.
const AFTER: &str = "After GC";
/// What async-profiler has for the descriptor of code that is not Java's, whose class is its library.
const OTHER_CODE: &str = "()L;";
/// Settings that are kept: events have a handful each.
const MOST_SETTINGS: usize = 256;

/// Why a recording cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// It is none.
    #[error("at byte {at} there is no chunk of a recording")]
    NoChunk {
        /// Where.
        at: usize,
    },
    /// It is cut off.
    #[error("it is cut off at byte {at}, in a chunk that begins at byte {begin}{}", more(*.size))]
    Cut {
        /// How long it is.
        at: usize,
        /// Where its last chunk begins.
        begin: usize,
        /// How long that is by its own account, if that is still there.
        size: Option<i64>,
    },
    /// It makes no sense.
    #[error("{0}")]
    Format(&'static str),
}

fn more(size: Option<i64>) -> String {
    size.map_or_else(String::new, |size| format!(" and has {size} bytes"))
}

/// Whether frames are told apart by their lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lines {
    /// By methods alone.
    #[default]
    Unknown,
    /// By lines too.
    Known,
}

/// The samples of threads that run in a recording, in Java or native code.
pub fn samples(recording: &[u8]) -> Result<Samples, ReadError> {
    use EventKind::{ExecutionSample, NativeMethodSample};
    let mut recorded = read(recording, Lines::Unknown, |kind| matches!(kind, ExecutionSample | NativeMethodSample))?;
    native::weigh(&mut recorded);
    let sample = |event: &RecordedEvent| {
        let Stack { frames, is_cut } = recorded.stacks[event.stack.0 as usize].clone();
        let thread = recorded.threads[event.thread.0 as usize].number;
        // Where nothing was seen, everything is missing.
        let is_native = event.kind == NativeMethodSample;
        Sample { at_ns: event.at_ns, thread, is_cut: is_cut || frames.is_empty(), is_native, frames }
    };
    Ok(Samples { stacks: recorded.events.iter().map(sample).collect(), methods: recorded.methods })
}

/// What threads waited for: monitors, and whatever they were parked for.
pub fn waits(recording: &[u8]) -> Result<Recorded, ReadError> {
    read(recording, Lines::Unknown, |kind| {
        matches!(kind, EventKind::MonitorEnter | EventKind::Park | EventKind::DataLoss)
    })
}

/// The chunk that a file begins with, as far as it has been brought up to date, if it began at that time or later, in ns since 1970.
pub fn chunk_since(file: &[u8], since_ns: i64) -> Option<&[u8]> {
    let chunk = Chunk::at(file, 0).ok()?;
    let has_begun = chunk.field(START_NANOS_AT) >= since_ns;
    (has_begun && !chunk.is_empty()).then_some(chunk.bytes)
}

/// What all threads did: where they were seen executing, what they allocated and where.
pub fn threads_at_work(recording: &[u8], lines: Lines) -> Result<Recorded, ReadError> {
    use EventKind::{
        AllocationSample, Collection, DataLoss, ExecutionSample, Heap, NativeMethodSample, ThreadAllocated,
    };
    let is_wanted = |kind| {
        matches!(
            kind,
            ExecutionSample | NativeMethodSample | AllocationSample | ThreadAllocated | Collection | Heap | DataLoss
        )
    };
    let mut recorded = read(recording, lines, is_wanted)?;
    native::weigh(&mut recorded);
    Ok(recorded)
}

/// Everything of a recording that is understood and has a place in the code, and what else is told of the JVM.
pub fn recorded(recording: &[u8]) -> Result<Recorded, ReadError> {
    read(recording, Lines::Unknown, |kind| kind != EventKind::ThreadAllocated)
}

fn read(recording: &[u8], lines: Lines, is_wanted: fn(EventKind) -> bool) -> Result<Recorded, ReadError> {
    let mut reader = Reader {
        recorded: Recorded::default(),
        lines,
        is_wanted,
        known: FxHashMap::default(),
        known_threads: FxHashMap::default(),
        known_stacks: FxHashMap::default(),
        known_locks: FxHashMap::default(),
        collections: FxHashMap::default(),
        names_left: recording.len().saturating_mul(NAMES_PART),
    };
    let mut at = 0;
    while at < recording.len() {
        let chunk = Chunk::at(recording, at)?;
        if !chunk.is_empty() {
            reader.chunk(&chunk)?;
        }
        at += chunk.bytes.len();
    }
    let collections = reader.collections.into_values();
    reader.recorded.collections.extend(collections.filter_map(whole));
    Ok(reader.recorded)
}

/// A collection, and what was told of the heap before and after it.
type Told = (Option<Collection>, [Option<u64>; 2]);

fn whole((collection, heap): Told) -> Option<Collection> {
    Some(Collection { heap, ..collection? })
}

/// A chunk of a recording, which has a header at least.
struct Chunk<'a> {
    bytes: &'a [u8],
}

impl<'a> Chunk<'a> {
    fn at(recording: &'a [u8], at: usize) -> Result<Chunk<'a>, ReadError> {
        const MAGIC: &[u8] = b"FLR\0";
        let none = ReadError::NoChunk { at };
        let cut = |size| ReadError::Cut { at: recording.len(), begin: at, size };
        let rest = &recording[at..];
        if !rest.starts_with(MAGIC) {
            return Err(if MAGIC.starts_with(rest) { cut(None) } else { none });
        }
        if rest.len() < HEADER_BYTES {
            return Err(cut(None));
        }
        let told = Chunk { bytes: rest }.field(SIZE_AT);
        let size = usize::try_from(told).ok().filter(|size| *size >= HEADER_BYTES).ok_or(none)?;
        rest.get(..size).map(|bytes| Chunk { bytes }).ok_or_else(|| cut(Some(told)))
    }

    /// Of the header: big-endian, eight bytes.
    fn field(&self, at: usize) -> i64 {
        self.bytes[at..at + 8].iter().fold(0, |value, byte| value << 8 | i64::from(*byte))
    }

    /// Whether the JVM has not brought it up to date yet: it does that once a second.
    fn is_empty(&self) -> bool {
        self.bytes.len() == HEADER_BYTES
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
        self.field(START_NANOS_AT).saturating_add(self.ns(ticks.wrapping_sub(self.field(START_TICKS_AT))) as i64)
    }

    /// So many ticks, in ns.
    fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * 1e9 / self.field(FREQUENCY_AT).max(1) as f64
    }
}

struct Reader {
    recorded: Recorded,
    lines: Lines,
    is_wanted: fn(EventKind) -> bool,
    known: FxHashMap<(String, u32), FrameIndex>,
    known_threads: FxHashMap<Thread, ThreadIndex>,
    known_stacks: FxHashMap<Stack, StackIndex>,
    known_locks: FxHashMap<Lock, LockIndex>,
    /// Collections by their numbers, and what was told of the heap before and after.
    collections: FxHashMap<i64, Told>,
    /// What names may still take.
    names_left: usize,
}

/// What an event says of itself.
#[derive(Default)]
struct Fields {
    at: Option<i64>,
    duration: i64,
    amount: i64,
    longest: i64,
    thread: i64,
    stack: i64,
    /// Of a setting: the type of the events that it is of. Of a JVM: its process. Of a collection: its number.
    number: i64,
    lock_class: i64,
    address: i64,
    previous_owner: Option<i64>,
    texts: [Option<Text>; 2],
    /// Of a collection: its cause, or when it was, and its collector.
    said: [i64; 2],
}

impl Reader {
    fn chunk(&mut self, chunk: &Chunk<'_>) -> Result<(), ReadError> {
        if chunk.bytes[FLAGS_AT] & COMPRESSED == 0 {
            return Err(ReadError::Format("its integers are not compressed"));
        }
        let types = chunk.types()?;
        let begins_ns = chunk.field(START_NANOS_AT);
        self.recorded.begins_ns = Some(self.recorded.begins_ns.map_or(begins_ns, |known| known.min(begins_ns)));
        if !types.events().any(self.is_wanted) {
            return Ok(());
        }
        let mut fuel = Fuel::for_bytes(chunk.bytes.len());
        let mut constants = Constants::read(chunk, &types, &mut fuel)?;
        // Constants are a chunk's own.
        let mut names = FxHashMap::default();
        for event in chunk.events() {
            let (class, mut event) = event?;
            let Some(kind) = types.event(class).filter(|kind| (self.is_wanted)(*kind)) else { continue };
            let mut fields = Fields::default();
            let amount = kind.amount();
            types.value(class, &mut event, &mut fuel, &mut |name, value| match (name, value) {
                (Name::StartTime, Value::Number(ticks)) => fields.at = Some(ticks),
                (Name::Duration, Value::Number(ticks)) => fields.duration = ticks,
                (Name::Thread, Value::Constant(key)) => fields.thread = key,
                (Name::StackTrace, Value::Constant(key)) => fields.stack = key,
                (Name::LockClass, Value::Constant(key)) => fields.lock_class = key,
                (Name::Address, Value::Number(address)) => fields.address = address,
                (Name::PreviousOwner, Value::Constant(key)) => fields.previous_owner = Some(key),
                (Name::LongestPause, Value::Number(ticks)) => fields.longest = ticks,
                (Name::Id | Name::Pid | Name::CollectionId, Value::Number(number)) => fields.number = number,
                (Name::Cause | Name::When, Value::Constant(key)) => fields.said[0] = key,
                (Name::Symbol, Value::Constant(key)) => fields.said[1] = key,
                (Name::Symbol | Name::JvmVersion, Value::Text(text)) => fields.texts[0] = Some(text),
                (Name::SettingValue | Name::JavaArguments, Value::Text(text)) => fields.texts[1] = Some(text),
                (name, Value::Number(number)) if amount == Some(name) => fields.amount = number,
                _ => {}
            })?;
            let Some(at) = fields.at else { continue };
            let positive = |ticks: i64| chunk.ns(ticks).max(0.0) as u64;
            let amount = if kind.is_of_ticks() { positive(fields.amount) } else { fields.amount.max(0) as u64 };
            match kind {
                EventKind::Collection => {
                    let collection = Collection {
                        number: fields.number,
                        at_ns: chunk.since_1970(at),
                        duration_ns: positive(fields.duration),
                        pauses_ns: amount,
                        longest_ns: positive(fields.longest),
                        cause: self.said(&constants, Kind::Cause, fields.said[0])?,
                        collector: self.said(&constants, Kind::Collector, fields.said[1])?,
                        heap: [None; 2],
                    };
                    let told = self.collections.entry(fields.number).or_default();
                    if told.0.is_some() {
                        // Another JVM's, which has numbers of its own.
                        self.recorded.collections.extend(whole(std::mem::take(told)));
                    }
                    told.0 = Some(collection);
                }
                EventKind::Heap => {
                    let is_after = usize::from(constants.said(Kind::When, fields.said[0]) == AFTER);
                    self.collections.entry(fields.number).or_default().1[is_after] = Some(amount);
                }
                EventKind::ThreadAllocated => {
                    let thread = self.thread(fields.thread, &mut constants)?;
                    let at_ns = chunk.since_1970(at);
                    self.recorded.allocated.push(Allocated { at_ns, thread, bytes: amount });
                }
                EventKind::SamplesLost => {
                    self.recorded.lost_samples = self.recorded.lost_samples.saturating_add(amount);
                }
                EventKind::DataLoss => self.recorded.lost_bytes = self.recorded.lost_bytes.saturating_add(amount),
                EventKind::Jvm => {
                    let [version, java_arguments] = self.texts(&constants, &fields)?;
                    let pid = u32::try_from(fields.number).unwrap_or(0);
                    self.recorded.jvm = Some(JvmInformation { pid, version, java_arguments });
                }
                EventKind::Setting => {
                    if let Some(kind) = types.event(fields.number) {
                        let [name, value] = self.texts(&constants, &fields)?;
                        let setting = Setting { kind, name, value };
                        if !self.recorded.settings.contains(&setting) && self.recorded.settings.len() < MOST_SETTINGS {
                            self.recorded.settings.push(setting);
                        }
                    }
                }
                _ => {
                    let thread = self.thread(fields.thread, &mut constants)?;
                    let stack = self.stack(fields.stack, &mut constants, &mut names)?;
                    let (at_ns, duration_ns) = (chunk.since_1970(at), positive(fields.duration));
                    let lock = self.lock(&fields, &constants)?;
                    // A key of none where nobody had it.
                    let owner = fields.previous_owner.filter(|key| constants.threads.contains_key(key));
                    let previous_owner = owner.map(|key| self.thread(key, &mut constants)).transpose()?;
                    let event = RecordedEvent { kind, at_ns, duration_ns, amount, thread, stack, lock, previous_owner };
                    self.recorded.events.push(event);
                }
            }
        }
        Ok(())
    }

    /// What is said of a collection.
    fn said(&mut self, constants: &Constants, kind: Kind, key: i64) -> Result<String, ReadError> {
        let said = constants.said(kind, key);
        self.take(said.len())?;
        Ok(said.to_owned())
    }

    /// What an event's thread waited for, or the class that it allocated, if it says so.
    fn lock(&mut self, fields: &Fields, constants: &Constants) -> Result<Option<LockIndex>, ReadError> {
        let Some(class) = constants.class(fields.lock_class) else { return Ok(None) };
        let lock = Lock { class: class.replace('/', "."), address: fields.address as u64 };
        if let Some(known) = self.known_locks.get(&lock) {
            return Ok(Some(*known));
        }
        self.take(lock.class.len())?;
        let next = LockIndex(self.recorded.locks.len() as u32);
        self.recorded.locks.push(lock.clone());
        self.known_locks.insert(lock, next);
        Ok(Some(next))
    }

    /// What the texts of an event come to.
    fn texts(&mut self, constants: &Constants, fields: &Fields) -> Result<[String; 2], ReadError> {
        let mut texts = [String::new(), String::new()];
        for (text, field) in texts.iter_mut().zip(&fields.texts) {
            let found = field.as_ref().and_then(|field| constants.text(field)).unwrap_or_default();
            self.take(found.len())?;
            found.clone_into(text);
        }
        Ok(texts)
    }

    /// Makes room for a name.
    fn take(&mut self, length: usize) -> Result<(), ReadError> {
        self.names_left = self.names_left.checked_sub(length).ok_or(ReadError::Format("its names are too long"))?;
        Ok(())
    }

    fn thread(&mut self, key: i64, constants: &mut Constants) -> Result<ThreadIndex, ReadError> {
        let thread = match constants.threads.get(&key) {
            None => Thread::default(),
            Some(constants::Thread { index: Some(index), .. }) => return Ok(*index),
            Some(thread) => {
                let name = constants.thread_name(thread);
                self.take(name.len())?;
                Thread { number: thread.number, name: name.to_owned(), is_virtual: thread.is_virtual }
            }
        };
        let next = ThreadIndex(self.recorded.threads.len() as u32);
        let index = *self.known_threads.entry(thread).or_insert_with_key(|thread| {
            self.recorded.threads.push(thread.clone());
            next
        });
        if let Some(thread) = constants.threads.get_mut(&key) {
            thread.index = Some(index);
        }
        Ok(index)
    }

    fn stack(
        &mut self,
        key: i64,
        constants: &mut Constants,
        names: &mut FxHashMap<(i64, u32), FrameIndex>,
    ) -> Result<StackIndex, ReadError> {
        let (mut frames, mut is_cut) = (Vec::new(), false);
        if let Some(stack) = constants.stacks.get(&key) {
            if let Some(index) = stack.index {
                return Ok(index);
            }
            is_cut = stack.is_cut;
            for (at, method) in stack.methods.iter().enumerate().rev() {
                let line = match self.lines {
                    Lines::Known => stack.lines.get(at).copied().unwrap_or(0),
                    Lines::Unknown => 0,
                };
                let index = match names.get(&(*method, line)) {
                    Some(index) => *index,
                    None => {
                        let index = self.frame(constants.parts(*method), line)?;
                        names.insert((*method, line), index);
                        index
                    }
                };
                frames.push(index);
            }
        }
        let next = StackIndex(self.recorded.stacks.len() as u32);
        let index = *self.known_stacks.entry(Stack { frames: frames.into(), is_cut }).or_insert_with_key(|stack| {
            self.recorded.stacks.push(stack.clone());
            next
        });
        if let Some(stack) = constants.stacks.get_mut(&key) {
            stack.index = Some(index);
        }
        Ok(index)
    }

    /// A method, by its name as everywhere here: `a.b.C.m(ILjava/lang/String;)V`; one without a name has an empty one. And a line of it.
    fn frame(&mut self, parts: Option<[&str; 3]>, line: u32) -> Result<FrameIndex, ReadError> {
        let name = match parts {
            None => String::new(),
            Some(["", symbol, _] | [_, symbol, OTHER_CODE]) => {
                self.take(symbol.len())?;
                symbol.to_owned()
            }
            Some([class, name, descriptor]) => {
                self.take(class.len() + name.len() + descriptor.len())?;
                format!("{}.{name}{descriptor}", class.replace('/', "."))
            }
        };
        let next = FrameIndex(self.recorded.methods.len() as u32);
        Ok(*self.known.entry((name, line)).or_insert_with_key(|(name, line)| {
            self.recorded.methods.push(name.clone());
            if self.lines == Lines::Known {
                self.recorded.lines.push(*line);
            }
            next
        }))
    }
}
