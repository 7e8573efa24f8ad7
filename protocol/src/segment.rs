//! The shared memory segment, seen from the tool and from the agent.

#[cfg(not(loom))]
use std::fs::File;
use std::io;
use std::num::NonZeroU32;
use std::time::Duration;

#[cfg(not(loom))]
use rustix::fs::{MemfdFlags, SealFlags};

#[cfg(not(loom))]
use crate::PROTOCOL_VERSION;
#[cfg_attr(loom, allow(unused_imports, reason = "a model is neither created in a file nor opened"))]
use crate::layout::{
    CHUNK_BYTES, CHUNK_HEAD_BYTES, CHUNK_HEADS, FLAG_ENTERED, FLAG_ROOT, FLAGS, HEAD_BASE_NS, HEAD_CLAIM, HEAD_STATE,
    HEAD_THREAD, LEAST_CHUNK_BYTES, MAGIC, MAPPED_AS, OFFSET_CHUNK_BYTES, OFFSET_CHUNKS, OFFSET_CLAIMS, OFFSET_CLOCK,
    OFFSET_CLOCK_PERIOD, OFFSET_CLOCK_SOURCE, OFFSET_CONTROL, OFFSET_LOST, OFFSET_MAGIC, OFFSET_OVERFLOW,
    OFFSET_VERSION, SOURCE_NANO_TIME, SOURCE_THREAD_CPU, SOURCE_TSC, STATE_FREE, STATE_FULL, STATE_OWNED, Shape,
    chunk_data,
};
#[cfg(not(loom))]
pub use crate::memory::Range;
#[cfg(not(loom))]
use crate::memory::{Memory, Ordering};
#[cfg(loom)]
use crate::model::{Memory, Ordering};
use crate::{MethodId, ThreadId};

/// What can be wrong with a segment.
#[derive(Debug, thiserror::Error)]
pub enum SegmentError {
    /// The operating system refused.
    #[error("cannot map the shared event buffer: {0}")]
    Map(#[from] io::Error),
    /// The file is not a segment, or one of another version.
    #[error("the shared event buffer is not Headwater's, or of another version: {0}")]
    Foreign(&'static str),
}

/// A mapped segment. Unmapped when dropped.
#[derive(Debug)]
pub struct Segment {
    pub(crate) memory: Memory,
    shape: Shape,
}

/// A chunk that a thread writes or has written, as the tool saw it at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkView {
    /// Which chunk.
    pub index: usize,
    /// The claim's number: a thread's chunks are in the order of their claims.
    pub claim: u64,
    /// The thread that claimed it.
    pub thread: ThreadId,
    /// `System.nanoTime()`, or CPU time of the thread, that the words' times are relative to.
    pub base_ns: i64,
    /// Its writer is done with it.
    pub full: bool,
}

/// How the target is to record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Times are read from the coarse clock, if it has a period.
    pub clock_period: Option<Duration>,
    /// Otherwise they are read from here.
    pub source: TimeSource,
    /// Every so many calls of a root by a thread, one is not recorded but timed as a whole.
    pub control_every: Option<NonZeroU32>,
    /// What happens when the tool falls behind.
    pub overflow: Overflow,
}

/// What a time is read from, where that is not the coarse clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeSource {
    /// `System.nanoTime()`.
    #[default]
    NanoTime,
    /// The time stamp counter, if the target can read it, else `System.nanoTime()`.
    Tsc,
    /// The CPU time of the thread itself.
    ThreadCpu,
}

/// What a thread does for whose events there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Overflow {
    /// It waits, for a limited time, and the wait is recorded.
    #[default]
    Wait,
    /// It goes on; its events are lost, and counted.
    Drop,
}

impl Segment {
    /// Creates an anonymous file of this shape and maps it. The file goes away with its last user.
    #[cfg(not(loom))]
    pub fn create(shape: Shape, recording: Recording) -> Result<(Segment, File), SegmentError> {
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let name = MAPPED_AS.trim_start_matches("/memfd:");
        let file = File::from(rustix::fs::memfd_create(name, flags).map_err(io::Error::from)?);
        file.set_len(shape.segment_bytes() as u64)?;
        // The other process has the descriptor: of a file that it made shorter, a read would be the end of this one (SIGBUS).
        rustix::fs::fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(io::Error::from)?;
        let segment = Segment { memory: Memory::map(&file, shape.segment_bytes())?, shape };
        segment.memory.u64_at(OFFSET_MAGIC).store(MAGIC, Ordering::Relaxed);
        segment.memory.u32_at(OFFSET_VERSION).store(PROTOCOL_VERSION, Ordering::Relaxed);
        segment.set_control(recording.control_every);
        segment
            .memory
            .u32_at(OFFSET_OVERFLOW)
            .store(u32::from(recording.overflow == Overflow::Drop), Ordering::Relaxed);
        let period =
            recording.clock_period.map_or(0, |period| u32::try_from(period.as_nanos()).unwrap_or(u32::MAX).max(1));
        segment.memory.u32_at(OFFSET_CLOCK_PERIOD).store(period, Ordering::Relaxed);
        let source = match recording.source {
            TimeSource::NanoTime => SOURCE_NANO_TIME,
            TimeSource::Tsc => SOURCE_TSC,
            TimeSource::ThreadCpu => SOURCE_THREAD_CPU,
        };
        segment.memory.u32_at(OFFSET_CLOCK_SOURCE).store(source, Ordering::Relaxed);
        segment.memory.u32_at(OFFSET_CHUNK_BYTES).store(shape.chunk_bytes as u32, Ordering::Relaxed);
        segment.memory.u32_at(OFFSET_CHUNKS).store(shape.chunks as u32, Ordering::Release);
        Ok((segment, file))
    }

    /// Maps a segment that the other process created.
    #[cfg(not(loom))]
    pub fn open(file: &File) -> Result<Segment, SegmentError> {
        Segment::open_in(file, None)
    }

    /// The same, where one was that has been [abandoned](Segment::abandon), if that was as large. It is nowhere any more if this fails.
    #[cfg(not(loom))]
    pub fn open_in(file: &File, range: Option<Range>) -> Result<Segment, SegmentError> {
        let len = Segment::len_of(file)?;
        let memory = match range.filter(|range| range.len() >= len) {
            Some(range) => Memory::map_in(file, len, range)?,
            None => Memory::map(file, len)?,
        };
        let mut segment = Segment { memory, shape: Shape::of(0) };
        let chunks = segment.memory.u32_at(OFFSET_CHUNKS).load(Ordering::Acquire) as usize;
        let chunk_bytes = segment.memory.u32_at(OFFSET_CHUNK_BYTES).load(Ordering::Relaxed) as usize;
        let shape = Shape { chunks, chunk_bytes };
        if segment.memory.u64_at(OFFSET_MAGIC).load(Ordering::Relaxed) != MAGIC {
            return Err(SegmentError::Foreign("no magic number"));
        }
        if segment.memory.u32_at(OFFSET_VERSION).load(Ordering::Relaxed) != PROTOCOL_VERSION {
            return Err(SegmentError::Foreign("another protocol version"));
        }
        if !(LEAST_CHUNK_BYTES..=CHUNK_BYTES).contains(&chunk_bytes) || !chunk_bytes.is_power_of_two() {
            return Err(SegmentError::Foreign("no chunk is so long"));
        }
        if shape.segment_bytes() != len {
            return Err(SegmentError::Foreign("size and number of chunks disagree"));
        }
        segment.shape = shape;
        Ok(segment)
    }

    /// How much room a segment takes that the other process created.
    #[cfg(not(loom))]
    pub fn len_of(file: &File) -> Result<usize, SegmentError> {
        let len = usize::try_from(file.metadata()?.len()).unwrap_or(usize::MAX);
        if len < CHUNK_HEADS { Err(SegmentError::Foreign("too small")) } else { Ok(len) }
    }

    /// One whose every order of accesses can be tried.
    #[cfg(loom)]
    pub(crate) fn model(chunks: usize) -> Segment {
        Segment { memory: Memory::of(chunks), shape: Shape::of(chunks) }
    }

    /// How many chunks there are.
    pub fn chunks(&self) -> usize {
        self.shape.chunks
    }

    /// How many bytes each has.
    pub fn chunk_bytes(&self) -> usize {
        self.shape.chunk_bytes
    }

    /// Address of the segment's first byte in this process.
    #[cfg(not(loom))]
    pub fn address(&self) -> usize {
        self.memory.address()
    }

    /// Size of the mapping.
    #[cfg(not(loom))]
    pub fn len_bytes(&self) -> usize {
        self.memory.len()
    }

    /// Sets the coarse clock.
    pub fn set_clock(&self, now_ns: i64) {
        // Relaxed: a time, and nothing else, is published.
        self.memory.u64_at(OFFSET_CLOCK).store(now_ns as u64, Ordering::Relaxed);
    }

    /// From the next beginning of recording on, one call of a root by a thread in so many is not recorded but timed as a
    /// whole. With one in one nothing is recorded at all.
    pub fn set_control(&self, every: Option<NonZeroU32>) {
        // Relaxed: the command to record, which makes the target read it, is a stronger edge.
        self.memory.u32_at(OFFSET_CONTROL).store(every.map_or(0, NonZeroU32::get), Ordering::Relaxed);
    }

    /// Whether the target reads the time stamp counter. Known once it has timed its probes.
    pub fn uses_tsc(&self) -> bool {
        self.memory.u32_at(OFFSET_CLOCK_SOURCE).load(Ordering::Relaxed) == SOURCE_TSC
    }

    /// Whether times are CPU times of the threads.
    pub fn uses_thread_cpu(&self) -> bool {
        self.memory.u32_at(OFFSET_CLOCK_SOURCE).load(Ordering::Relaxed) == SOURCE_THREAD_CPU
    }

    /// Declares a method to be a root, before it is instrumented.
    pub fn mark_root(&self, method: MethodId) {
        // Relaxed: the hotswap that makes the method call the runtime is a much stronger edge than any here.
        self.memory.u8_at(FLAGS + method.0 as usize).fetch_or(FLAG_ROOT, Ordering::Relaxed);
    }

    /// Whether the method's first call has been handled.
    pub fn was_entered(&self, method: MethodId) -> bool {
        self.memory.u8_at(FLAGS + method.0 as usize).load(Ordering::Relaxed) & FLAG_ENTERED != 0
    }

    /// The number of the next claim of a chunk.
    pub fn claims(&self) -> u64 {
        // Relaxed: a number, and nothing that it stands for.
        self.memory.u64_at(OFFSET_CLAIMS).load(Ordering::Relaxed)
    }

    /// The chunks that were claimed before this call and are owned or full now, in the order of their claims.
    ///
    /// A thread claims a chunk only after the one before is complete, so when a chunk is in this list all words of
    /// the same thread's earlier chunks are visible: read them in this order and a thread's events come in order.
    /// Later claims are left to the next call: a fast thread may fill a chunk behind the scan and own one ahead of it.
    pub fn claimed(&self, into: &mut Vec<ChunkView>) {
        into.clear();
        // Acquire: pairs with the claimers' getAndAdd, which follows their STATE_CLAIMED. So a chunk of an earlier claim
        // is not seen free below; and while it is not seen owned, its thread has not claimed another one.
        let claims = self.memory.u64_at(OFFSET_CLAIMS).load(Ordering::Acquire);
        for index in 0..self.shape.chunks {
            let head = CHUNK_HEADS + index * CHUNK_HEAD_BYTES;
            // Acquire: pairs with the owner's release of OWNED and FULL; the head's other fields are visible then.
            let state = self.memory.u32_at(head + HEAD_STATE).load(Ordering::Acquire);
            let claim = self.memory.u64_at(head + HEAD_CLAIM).load(Ordering::Relaxed);
            if (state == STATE_OWNED || state == STATE_FULL) && claim < claims {
                into.push(ChunkView {
                    index,
                    claim,
                    thread: ThreadId(self.memory.u64_at(head + HEAD_THREAD).load(Ordering::Relaxed)),
                    base_ns: self.memory.u64_at(head + HEAD_BASE_NS).load(Ordering::Relaxed) as i64,
                    full: state == STATE_FULL,
                });
            }
        }
        into.sort_unstable_by_key(|chunk| chunk.claim);
    }

    /// Appends the words of a chunk from word `from` on to `into`, up to the first that is not written yet.
    pub fn read_words(&self, index: usize, from: usize, into: &mut Vec<u64>) {
        assert!(index < self.shape.chunks, "chunk {index} of {}", self.shape.chunks);
        let data = self.data_of(index);
        for word in from..self.shape.chunk_words() {
            // Relaxed: a word is complete in itself, and a reader that sees word i + 1 before word i stops at i.
            match self.memory.u64_at(data + word * 8).load(Ordering::Relaxed) {
                0 => break,
                value => into.push(value),
            }
        }
    }

    /// Gives a full chunk back to the writers, its first `used` words zeroed.
    pub fn recycle(&self, index: usize, used: usize) {
        assert!(index < self.shape.chunks && used <= self.shape.chunk_words(), "chunk {index}, {used} words");
        let data = self.data_of(index);
        for word in 0..used {
            self.memory.u64_at(data + word * 8).store(0, Ordering::Relaxed);
        }
        let head = CHUNK_HEADS + index * CHUNK_HEAD_BYTES;
        // Release: pairs with the claimer's compare-and-set; it sees the zeros.
        self.memory.u32_at(head + HEAD_STATE).store(STATE_FREE, Ordering::Release);
    }

    /// Where a chunk's words begin.
    fn data_of(&self, index: usize) -> usize {
        chunk_data(self.shape.chunks) + index * self.shape.chunk_bytes
    }

    /// Words that writers without a chunk could not store.
    pub fn lost(&self) -> u64 {
        self.memory.u64_at(OFFSET_LOST).load(Ordering::Relaxed)
    }

    /// Whether any chunk is free (what a writer without one waits for).
    pub fn has_free_chunk(&self) -> bool {
        self.some_free_chunks(1) > 0
    }

    /// How many chunks are free.
    pub fn free_chunks(&self) -> usize {
        self.some_free_chunks(usize::MAX)
    }

    /// The same, as far as so many.
    pub fn some_free_chunks(&self, most: usize) -> usize {
        (0..self.shape.chunks).filter(|index| self.is_free(*index)).take(most).count()
    }

    fn is_free(&self, index: usize) -> bool {
        self.memory.u32_at(CHUNK_HEADS + index * CHUNK_HEAD_BYTES + HEAD_STATE).load(Ordering::Acquire) == STATE_FREE
    }

    /// The mapping's memory stays where it is for as long as the process lives, but is cut off from the other
    /// process: late writers scribble into private pages that nobody reads. Gives up the address range, not memory; another segment may be
    /// [opened in it](Segment::open_in).
    ///
    /// For the agent, whose threads may be in the middle of a probe when a session ends: an unmapped page would kill
    /// the target.
    #[cfg(not(loom))]
    pub fn abandon(self) -> io::Result<Range> {
        self.memory.abandon()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;
    use crate::layout::STATE_CLAIMED;
    use crate::word::Event;

    #[test]
    fn whoever_has_the_file_cannot_take_the_memory_away() {
        let (segment, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let bytes = segment.shape.segment_bytes() as u64;
        assert!(file.set_len(0).is_err() && file.set_len(bytes - 1).is_err() && file.set_len(bytes + 1).is_err());
        assert!(rustix::fs::fcntl_add_seals(&file, SealFlags::WRITE).is_err());
        assert_eq!(segment.claims(), 0);
    }

    /// What the Java side does, in Rust: claim, write, publish.
    fn write_chunk(segment: &Segment, thread: u64, base_ns: i64, words: &[u64], full: bool) -> usize {
        let index = (0..segment.chunks())
            .find(|i| {
                segment
                    .memory
                    .u32_at(CHUNK_HEADS + i * CHUNK_HEAD_BYTES)
                    .compare_exchange(STATE_FREE, STATE_CLAIMED, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            })
            .expect("a free chunk");
        let head = CHUNK_HEADS + index * CHUNK_HEAD_BYTES;
        let claim = segment.memory.u64_at(OFFSET_CLAIMS).fetch_add(1, Ordering::SeqCst);
        segment.memory.u64_at(head + HEAD_CLAIM).store(claim, Ordering::Relaxed);
        segment.memory.u64_at(head + HEAD_THREAD).store(thread, Ordering::Relaxed);
        segment.memory.u64_at(head + HEAD_BASE_NS).store(base_ns as u64, Ordering::Relaxed);
        segment.memory.u32_at(head).store(STATE_OWNED, Ordering::Release);
        for (i, word) in words.iter().enumerate() {
            let at = segment.data_of(index) + i * 8;
            segment.memory.u64_at(at).store(*word, Ordering::Relaxed);
        }
        if full {
            segment.memory.u32_at(head).store(STATE_FULL, Ordering::Release);
        }
        index
    }

    #[test]
    fn words_written_on_one_side_are_read_on_the_other() {
        let (ours, file) = Segment::create(Shape::of(3), Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        let words: Vec<u64> = (0..5).map(|t| Event::Thread { thread: ThreadId(t), run: None }.encode()).collect();
        let first = write_chunk(&theirs, 7, -5, &words, true);
        write_chunk(&theirs, 7, 40, &words[..2], false);

        let mut chunks = Vec::new();
        ours.claimed(&mut chunks);
        assert_eq!(
            chunks.iter().map(|c| (c.thread.0, c.base_ns, c.full)).collect::<Vec<_>>(),
            [(7, -5, true), (7, 40, false)]
        );
        let mut read = Vec::new();
        ours.read_words(first, 2, &mut read);
        assert_eq!(read, words[2..]);

        ours.recycle(first, words.len());
        ours.claimed(&mut chunks);
        assert_eq!(chunks.len(), 1);
        read.clear();
        theirs.read_words(first, 0, &mut read);
        assert_eq!(read, []);
        assert!(theirs.has_free_chunk());
    }

    #[test]
    fn a_fast_writers_chunks_come_in_order() {
        const WORDS: u64 = 60_000;
        let (ours, file) = Segment::create(Shape::of(6), Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        let writer = std::thread::spawn(move || {
            for number in 1..=WORDS {
                while !theirs.has_free_chunk() {
                    std::hint::spin_loop();
                }
                write_chunk(&theirs, 7, 0, &[number], true);
            }
        });
        let (mut chunks, mut words) = (Vec::new(), Vec::new());
        while words.len() < WORDS as usize {
            ours.claimed(&mut chunks);
            for chunk in &chunks {
                // One that is not full yet is read whole when it is.
                if !chunk.full {
                    break;
                }
                ours.read_words(chunk.index, 0, &mut words);
                ours.recycle(chunk.index, 1);
            }
        }
        writer.join().unwrap();
        assert!(words.is_sorted(), "words overtook each other");
    }

    #[test]
    fn short_chunks_have_fewer_words() {
        let shape = Shape { chunks: 2, chunk_bytes: LEAST_CHUNK_BYTES };
        let (ours, file) = Segment::create(shape, Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        assert_eq!((theirs.chunks(), theirs.chunk_bytes()), (2, LEAST_CHUNK_BYTES));
        let words: Vec<u64> = (1..=shape.chunk_words() as u64).collect();
        let [first, second] = [7, 8].map(|thread| write_chunk(&theirs, thread, 0, &words, true));
        for index in [first, second] {
            let mut read = Vec::new();
            ours.read_words(index, 0, &mut read);
            assert_eq!(read, words, "and none of its neighbour's");
            ours.recycle(index, words.len());
        }
        assert_eq!(theirs.free_chunks(), 2);
        for chunk_bytes in [0_u32, 4_000, 6 << 10, 64 << 10] {
            ours.memory.u32_at(OFFSET_CHUNK_BYTES).store(chunk_bytes, Ordering::Relaxed);
            assert!(matches!(Segment::open(&file), Err(SegmentError::Foreign(_))), "{chunk_bytes}");
        }
    }

    #[test]
    fn another_segment_is_opened_where_one_was_abandoned() {
        let shape = Shape::of(2);
        let (_, first) = Segment::create(shape, Recording::default()).unwrap();
        let (ours, second) = Segment::create(shape, Recording::default()).unwrap();
        let theirs = Segment::open(&first).unwrap();
        let address = theirs.address();
        let range = theirs.abandon().unwrap();
        let theirs = Segment::open_in(&second, Some(range)).unwrap();
        assert_eq!(theirs.address(), address);
        ours.mark_root(MethodId(9));
        assert_eq!(theirs.memory.u8_at(FLAGS + 9).load(Ordering::Relaxed), FLAG_ROOT);
        // A smaller one leaves the rest of the range as it is, for a larger one.
        let range = theirs.abandon().unwrap();
        let (_, smaller) = Segment::create(Shape::of(1), Recording::default()).unwrap();
        let range = Segment::open_in(&smaller, Some(range)).unwrap().abandon().unwrap();
        assert_eq!(range.len(), shape.segment_bytes());
        // And a larger one is elsewhere.
        let (_, larger) = Segment::create(Shape::of(3), Recording::default()).unwrap();
        assert_ne!(Segment::open_in(&larger, Some(range)).unwrap().address(), address);
    }

    #[test]
    fn flags_are_shared() {
        let (ours, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let theirs = Segment::open(&file).unwrap();
        ours.mark_root(MethodId::MAX);
        assert_eq!(theirs.memory.u8_at(FLAGS + MethodId::MAX.0 as usize).load(Ordering::Relaxed), FLAG_ROOT);
        theirs.memory.u8_at(FLAGS + 9).fetch_or(FLAG_ENTERED, Ordering::Relaxed);
        assert!(ours.was_entered(MethodId(9)) && !ours.was_entered(MethodId(8)));
    }

    #[test]
    fn foreign_files_are_refused() {
        let (_, file) = Segment::create(Shape::of(2), Recording::default()).unwrap();
        let mut header = [0; 100];
        file.read_exact_at(&mut header, 0).unwrap();
        let foreign = File::from(rustix::fs::memfd_create("foreign", MemfdFlags::CLOEXEC).unwrap());
        foreign.write_all_at(&header, 0).unwrap();
        assert!(matches!(Segment::open(&foreign), Err(SegmentError::Foreign(_))));
        foreign.set_len(Shape::of(1).segment_bytes() as u64).unwrap();
        assert!(matches!(Segment::open(&foreign), Err(SegmentError::Foreign(_))));
    }
}
