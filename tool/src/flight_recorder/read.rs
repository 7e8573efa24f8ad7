//! Reading a recording: the stacks of its execution samples.

use std::io::Cursor;

use jfrs::reader::event::Accessor;
use jfrs::reader::value_descriptor::ValueDescriptor;
use jfrs::reader::{Chunk, JfrReader};
use rustc_hash::FxHashMap;

/// The event; on every JDK.
const SAMPLE: &str = "jdk.ExecutionSample";
/// Magic, version, and the chunk's size: the beginning of each chunk's header.
const SIZE_AT: usize = 8;
/// A chunk has no less than its header.
const HEADER_BYTES: usize = 68;

/// Why a recording cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is cut off, or none.
    #[error("at byte {at} there is no chunk of a recording")]
    NoChunk {
        /// Where.
        at: usize,
    },
    /// It makes no sense.
    #[error("{0}")]
    Format(jfrs::reader::Error),
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
    /// The methods on it, the outermost first.
    pub frames: Vec<FrameIndex>,
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

impl Samples {
    fn frame(&mut self, known: &mut FxHashMap<String, FrameIndex>, name: String) -> FrameIndex {
        let next = FrameIndex(self.methods.len() as u32);
        *known.entry(name).or_insert_with_key(|name| {
            self.methods.push(name.clone());
            next
        })
    }
}

/// The execution samples of a recording.
pub fn samples(bytes: Vec<u8>) -> Result<Samples, ReadError> {
    check(&bytes)?;
    let mut samples = Samples::default();
    let mut known = FxHashMap::default();
    let mut reader = JfrReader::new(Cursor::new(bytes));
    for chunk in reader.chunks() {
        let (mut events, chunk) = chunk.map_err(ReadError::Format)?;
        // Constants are a chunk's own.
        let (mut names, mut stacks) = (FxHashMap::default(), FxHashMap::default());
        let mut previous = None;
        for event in events.events(&chunk) {
            let event = event.map_err(ReadError::Format)?;
            // An event of no length would be read for ever.
            if previous.replace(event.byte_offset) == Some(event.byte_offset) {
                break;
            }
            if event.class.name() != SAMPLE {
                continue;
            }
            let value = event.value();
            let (Some(at), Some(trace)) = (long(value.get_field("startTime")), value.get_field_raw("stackTrace"))
            else {
                continue;
            };
            let (frames, is_cut) = match constant(&trace) {
                Some(key) => match stacks.get(&key) {
                    Some(stack) => Clone::clone(stack),
                    None => {
                        let stack = frames(trace, &mut samples, &mut known, &mut names);
                        stacks.insert(key, stack.clone());
                        stack
                    }
                },
                None => frames(trace, &mut samples, &mut known, &mut names),
            };
            let thread = long(value.get_field("sampledThread").and_then(|thread| thread.get_field("osThreadId")));
            let thread = thread.and_then(|number| u32::try_from(number).ok()).unwrap_or_default();
            samples.stacks.push(Sample { at_ns: since_1970(&chunk, at), thread, frames, is_cut });
        }
    }
    Ok(samples)
}

/// That all chunks are there to their ends: the reader takes their word for it.
fn check(bytes: &[u8]) -> Result<(), ReadError> {
    let mut at = 0;
    while at < bytes.len() {
        let header = bytes.get(at..at + HEADER_BYTES).ok_or(ReadError::NoChunk { at })?;
        let size: [u8; 8] = header[SIZE_AT..SIZE_AT + 8].try_into().map_err(|_| ReadError::NoChunk { at })?;
        let size = usize::try_from(i64::from_be_bytes(size)).unwrap_or(0);
        if !header.starts_with(b"FLR\0") || size < HEADER_BYTES || size > bytes.len() - at {
            return Err(ReadError::NoChunk { at });
        }
        at += size;
    }
    Ok(())
}

fn since_1970(chunk: &Chunk, ticks: i64) -> i64 {
    let header = &chunk.header;
    let passed = (ticks - header.start_ticks) as f64 * 1e9 / header.ticks_per_second.max(1) as f64;
    header.start_time_nanos.saturating_add(passed as i64)
}

type Constant = (i64, i64);

/// A value's place in the constants, if it is there.
fn constant(value: &Accessor<'_>) -> Option<Constant> {
    match value.value {
        ValueDescriptor::ConstantPool { class_id, constant_index } => Some((*class_id, *constant_index)),
        _ => None,
    }
}

fn frames(
    trace: Accessor<'_>,
    samples: &mut Samples,
    known: &mut FxHashMap<String, FrameIndex>,
    names: &mut FxHashMap<Constant, FrameIndex>,
) -> (Vec<FrameIndex>, bool) {
    let Some(trace) = trace.resolve() else { return (Vec::new(), true) };
    let is_cut = trace.get_field("truncated").is_some_and(|cut| bool::try_from(cut.value).unwrap_or(true));
    let mut frames = Vec::new();
    for frame in trace.get_field("frames").and_then(Accessor::as_iter).into_iter().flatten() {
        let Some(method) = frame.get_field_raw("method") else { continue };
        let key = constant(&method);
        let index = match key.and_then(|key| names.get(&key)) {
            Some(index) => *index,
            None => {
                let index = samples.frame(known, machine_name(method).unwrap_or_default());
                names.extend(key.map(|key| (key, index)));
                index
            }
        };
        frames.push(index);
    }
    frames.reverse();
    (frames, is_cut)
}

/// As everywhere here: `a.b.C.m(ILjava/lang/String;)V`.
fn machine_name(method: Accessor<'_>) -> Option<String> {
    let method = method.resolve()?;
    let text = |value: Option<Accessor<'_>>| {
        let value = value?;
        <&str>::try_from(value.get_field("string")?.value).ok().map(str::to_owned)
    };
    let class = text(method.get_field("type")?.get_field("name"))?;
    let (name, descriptor) = (text(method.get_field("name"))?, text(method.get_field("descriptor"))?);
    Some(format!("{}.{name}{descriptor}", class.replace('/', ".")))
}

fn long(value: Option<Accessor<'_>>) -> Option<i64> {
    i64::try_from(value?.value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_recording_is_refused_before_it_is_read() {
        let mut chunk = b"FLR\0\0\x02\0\x01".to_vec();
        chunk.extend(68_i64.to_be_bytes());
        chunk.resize(68, 0);
        assert!(check(&chunk).is_ok() && check(&[]).is_ok());
        let at = |bytes: &[u8]| match check(bytes) {
            Err(ReadError::NoChunk { at }) => Some(at),
            _ => None,
        };
        assert_eq!(at(&chunk[..67]), Some(0));
        assert_eq!(at(&[&chunk[..], &chunk[..40]].concat()), Some(68));
        for size in [0_i64, -1, 69, i64::MAX] {
            let mut wrong = chunk.clone();
            wrong[8..16].copy_from_slice(&size.to_be_bytes());
            assert_eq!(at(&wrong), Some(0), "{size}");
        }
    }
}
