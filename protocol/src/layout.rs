//! The shared memory segment, in bytes from its beginning:
//!
//! ```text
//! 0            header page: magic, version, number and length of chunks, counters of claims and of lost words, coarse clock, signs of life,
//!              collections
//! FLAGS        one byte a method id: FLAG_*
//! CHUNK_HEADS  CHUNK_HEAD_BYTES a chunk: state, claim number, thread, time base, words written
//! chunk_data() as many bytes a chunk as the header says: event words, zero from the first unwritten one on
//! ```
//!
//! A chunk goes `FREE -> CLAIMED -> OWNED -> FULL -> FREE`; the target's threads make the first three steps, the tool the
//! last, after zeroing the words. `CLAIMED` protects the head while its owner fills it in.

/// "hdwater1", little-endian.
pub const MAGIC: u64 = 0x3172_6574_6177_6468;
/// Offset of the magic (u64).
pub const OFFSET_MAGIC: usize = 0;
/// Offset of the protocol version (u32).
pub const OFFSET_VERSION: usize = 8;
/// Offset of the number of chunks (u32).
pub const OFFSET_CHUNKS: usize = 12;
/// Offset of the counter that numbers chunk claims (u64, atomic).
pub const OFFSET_CLAIMS: usize = 64;
/// Offset of the number of words that could not be stored (u64, atomic).
pub const OFFSET_LOST: usize = 128;

/// Offset of the coarse clock's period in ns (u32); 0 when times are read from `System.nanoTime()`.
pub const OFFSET_CLOCK_PERIOD: usize = 16;
/// Offset of the interval of control invocations (u32): every so many calls of a root by a thread one is not recorded but
/// timed as a whole; 0 for none, and 1 for all, so that nothing is recorded. Read when recording begins.
pub const OFFSET_CONTROL: usize = 20;
/// Offset of what a thread does for which no chunk is free (u32): wait for one when 0, go on without when not.
pub const OFFSET_OVERFLOW: usize = 28;
/// Offset of how many bytes a chunk has (u32).
pub const OFFSET_CHUNK_BYTES: usize = 32;
/// Offset of the clock source (u32), `SOURCE_*`: the tool writes the one that it wants, and the target, as it times its probes,
/// the one that it uses.
pub const OFFSET_CLOCK_SOURCE: usize = 24;
/// Times are read from `System.nanoTime()`, or from the coarse clock if there is one.
pub const SOURCE_NANO_TIME: u32 = 0;
/// Times are read from the processor's time stamp counter, and converted to those of `System.nanoTime()` as they are written.
pub const SOURCE_TSC: u32 = 1;
/// Times are CPU times of the writing thread; of a virtual thread, its carrier's.
pub const SOURCE_THREAD_CPU: u32 = 2;
/// Offset of the coarse clock (i64, atomic): the time in ns, kept by the tool. Alone in its cache line.
pub const OFFSET_CLOCK: usize = 192;
/// Offset of the tool's latest sign of life (i64, atomic): the time in ns by the tool's clock. Alone in its cache line.
pub const OFFSET_BEAT: usize = 256;
/// Offset of why the agent has ended the session (u32, atomic), see [`crate::pulse::End`]; 0 while it has not.
pub const OFFSET_END: usize = 320;

/// Offset of how many collections have been told of (u64, atomic). Alone in its cache line.
pub const OFFSET_COLLECTIONS: usize = 384;
/// Offset of the latest collections, a ring.
pub const COLLECTIONS: usize = 2048;
/// How many there are in it.
pub const COLLECTIONS_KEPT: u64 = 18;
/// Bytes of each.
pub const COLLECTION_BYTES: usize = 112;
/// In a collection: when it began (i64).
pub const COLLECTION_START_NS: usize = 0;
/// In a collection: how long it took, in ns (u64).
pub const COLLECTION_DURATION_NS: usize = 8;
/// In a collection: how many bytes of the heap were in use before it (u64), [`HEAP_UNKNOWN`] where the JVM does not say.
pub const COLLECTION_HEAP_BEFORE: usize = 16;
/// In a collection: the same after it.
pub const COLLECTION_HEAP_AFTER: usize = 24;
/// No heap has so many bytes in use.
pub const HEAP_UNKNOWN: u64 = u64::MAX;
/// In a collection: what it was for (UTF-8, filled up with zeros).
pub const COLLECTION_CAUSE: usize = 32;
/// Bytes of that.
pub const COLLECTION_CAUSE_BYTES: usize = 40;
/// In a collection: which collector's it was (in the same way).
pub const COLLECTION_COLLECTOR: usize = COLLECTION_CAUSE + COLLECTION_CAUSE_BYTES;
/// Bytes of that.
pub const COLLECTOR_BYTES: usize = COLLECTION_BYTES - COLLECTION_COLLECTOR;

/// What the kernel's list of a process's mappings calls a segment.
pub const MAPPED_AS: &str = "/memfd:headwater";
/// Offset of the method flags.
pub const FLAGS: usize = 4096;
/// The method's first call has been handled.
pub const FLAG_ENTERED: u8 = 1;
/// The method is a root.
pub const FLAG_ROOT: u8 = 2;

/// Offset of the chunk heads.
pub const CHUNK_HEADS: usize = FLAGS + (1 << crate::word::ID_BITS);
/// Bytes of a chunk head: one cache line.
pub const CHUNK_HEAD_BYTES: usize = 64;
/// In a chunk head: its state (u32, atomic).
pub const HEAD_STATE: usize = 0;
/// In a chunk head: which claim this is, counted over all chunks (u64).
pub const HEAD_CLAIM: usize = 8;
/// In a chunk head: the thread that claimed it (u64).
pub const HEAD_THREAD: usize = 16;
/// In a chunk head: the nanoTime, or CPU time of its writer, that its words' times are relative to (i64).
pub const HEAD_BASE_NS: usize = 24;

/// Nobody's; all words are zero.
pub const STATE_FREE: u32 = 0;
/// Its head is being filled in.
pub const STATE_CLAIMED: u32 = 1;
/// A thread appends to it.
pub const STATE_OWNED: u32 = 2;
/// Its writer is done with it.
pub const STATE_FULL: u32 = 3;

/// Bytes of a chunk, usually and at most; of two words, where all orders of accesses to it are tried.
pub const CHUNK_BYTES: usize = if cfg!(loom) { 16 } else { 32 * 1024 };
/// Words of such a chunk.
pub const CHUNK_WORDS: usize = CHUNK_BYTES / 8;
/// Bytes of a chunk at least: a page.
pub const LEAST_CHUNK_BYTES: usize = if cfg!(loom) { 16 } else { 4096 };
/// Each thread that is inside the call graph has a chunk of its own, so there are to be so many for each that may be.
const CHUNKS_A_THREAD: usize = 4;

/// Where the chunks' words begin in a segment of `chunks` chunks.
pub const fn chunk_data(chunks: usize) -> usize {
    (CHUNK_HEADS + chunks * CHUNK_HEAD_BYTES).next_multiple_of(4096)
}

/// How many chunks a segment has, and how long each is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// So many.
    pub chunks: usize,
    /// Of so many bytes each: a power of two.
    pub chunk_bytes: usize,
}

impl Shape {
    /// So many chunks of the usual length.
    pub const fn of(chunks: usize) -> Shape {
        Shape { chunks, chunk_bytes: CHUNK_BYTES }
    }

    /// That of a segment of about `bytes` for a program of so many threads: the more there are, the shorter are the chunks. Two chunks at the least.
    pub const fn fit(bytes: usize, threads: usize) -> Shape {
        let mut chunk_bytes = CHUNK_BYTES;
        loop {
            let chunks = bytes / (chunk_bytes + CHUNK_HEAD_BYTES);
            if chunks >= threads.saturating_mul(CHUNKS_A_THREAD) || chunk_bytes <= LEAST_CHUNK_BYTES {
                return Shape { chunks: if chunks < 2 { 2 } else { chunks }, chunk_bytes };
            }
            chunk_bytes /= 2;
        }
    }

    /// Words of a chunk.
    pub const fn chunk_words(self) -> usize {
        self.chunk_bytes / 8
    }

    /// Size of the segment.
    pub const fn segment_bytes(self) -> usize {
        chunk_data(self.chunks) + self.chunks * self.chunk_bytes
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn many_threads_have_short_chunks() {
        const BUFFER: usize = 64 << 20;
        for (threads, chunk_bytes) in [(1, 32), (500, 32), (600, 16), (2_000, 8), (4_000, 4), (100_000, 4)] {
            let shape = Shape::fit(BUFFER, threads);
            assert_eq!(shape.chunk_bytes, chunk_bytes << 10, "{threads} threads");
            assert!((BUFFER * 9 / 10..=BUFFER + CHUNK_HEADS + 4096).contains(&shape.segment_bytes()), "{shape:?}");
        }
        assert_eq!(Shape::fit(0, 1).chunks, 2);
    }
}
