//! Reading the event buffer: each claimed chunk from where it was left, full ones given back.
//!
//! Why so, and at what cost: docs/decisions/event-buffer.md.

use std::collections::HashMap;
use std::sync::Arc;

use crate::ThreadId;
use crate::layout::CHUNK_WORDS;
use crate::segment::{ChunkView, Segment};

/// Reads a segment's chunks, with a state of the reader's own for each. There must be only one at a time.
#[derive(Debug)]
pub struct ChunkReader<S> {
    segment: Arc<Segment>,
    cursors: Vec<Option<Cursor<S>>>,
    chunks: Vec<ChunkView>,
    words: Vec<u64>,
    first_claim: u64,
    /// Chunks of earlier claims may have been forgotten by their threads.
    interrupted_before: u64,
}

/// How far a claimed chunk has been read.
#[derive(Debug)]
struct Cursor<S> {
    claim: u64,
    read: usize,
    state: S,
}

impl<S> ChunkReader<S> {
    /// Reads everything.
    pub fn new(segment: Arc<Segment>) -> ChunkReader<S> {
        ChunkReader {
            cursors: (0..segment.chunks()).map(|_| None).collect(),
            segment,
            chunks: Vec::new(),
            words: Vec::with_capacity(CHUNK_WORDS),
            first_claim: 0,
            interrupted_before: 0,
        }
    }

    /// Reads only what is written into chunks that are claimed from now on.
    pub fn from_now(segment: Arc<Segment>) -> ChunkReader<S> {
        let first_claim = segment.claims();
        ChunkReader { first_claim, ..ChunkReader::new(segment) }
    }

    /// Recording was interrupted: threads that come back have forgotten the chunks that they own, and claim others. Such a
    /// chunk is given back when its thread has claimed another one, because it then never writes to this one again.
    pub fn interrupted(&mut self) {
        self.interrupted_before = self.segment.claims();
    }

    /// Hands over what is new, in the order of the chunks' claims, with the state that `begin` gave a chunk at its claim.
    /// Whether there was anything.
    pub fn pass(&mut self, begin: impl Fn(&ChunkView) -> S, mut read: impl FnMut(&mut S, &[u64])) -> bool {
        let mut found = false;
        self.segment.claimed(&mut self.chunks);
        let may_be_left = self.chunks.first().is_some_and(|first| first.claim < self.interrupted_before);
        let chunks = if may_be_left { &self.chunks[..] } else { &[] };
        let latest: HashMap<ThreadId, u64> = chunks.iter().map(|chunk| (chunk.thread, chunk.claim)).collect();
        for chunk in self.chunks.iter().filter(|chunk| chunk.claim >= self.first_claim) {
            let is_left = || latest.get(&chunk.thread).is_some_and(|latest| *latest > chunk.claim);
            let is_done = chunk.full || chunk.claim < self.interrupted_before && is_left();
            let slot = &mut self.cursors[chunk.index];
            if slot.as_ref().is_none_or(|cursor| cursor.claim != chunk.claim) {
                *slot = Some(Cursor { claim: chunk.claim, read: 0, state: begin(chunk) });
            }
            let Some(cursor) = slot else { continue };
            self.words.clear();
            self.segment.read_words(chunk.index, cursor.read, &mut self.words);
            if !self.words.is_empty() {
                found = true;
                cursor.read += self.words.len();
                read(&mut cursor.state, &self.words);
            }
            if is_done {
                self.segment.recycle(chunk.index, cursor.read);
                *slot = None;
            }
        }
        found
    }
}

/// The chunks' way through all hands, in every interleaving and every order of memory accesses that the language allows.
#[cfg(all(test, loom))]
mod tests {
    use loom::sync::Arc as Shared;
    use loom::thread;

    use super::*;
    use crate::layout::{
        CHUNK_BYTES, CHUNK_HEAD_BYTES, CHUNK_HEADS, HEAD_CLAIM, HEAD_STATE, HEAD_THREAD, OFFSET_CLAIMS, STATE_CLAIMED,
        STATE_FREE, STATE_FULL, STATE_OWNED, chunk_data,
    };
    use crate::model::Ordering;

    /// What the Java side does for one thread, with the same orderings.
    struct Writer {
        segment: Arc<Segment>,
        thread: u64,
        chunk: Option<(usize, usize)>,
    }

    impl Writer {
        fn claim(&self) -> Option<usize> {
            let memory = &self.segment.memory;
            for index in 0..self.segment.chunks() {
                let head = CHUNK_HEADS + index * CHUNK_HEAD_BYTES;
                let state = memory.u32_at(head + HEAD_STATE);
                if state.load(Ordering::SeqCst) != STATE_FREE
                    || state.compare_exchange(STATE_FREE, STATE_CLAIMED, Ordering::SeqCst, Ordering::SeqCst).is_err()
                {
                    continue;
                }
                let claim = memory.u64_at(OFFSET_CLAIMS).fetch_add(1, Ordering::SeqCst);
                memory.u64_at(head + HEAD_CLAIM).store(claim, Ordering::Relaxed);
                memory.u64_at(head + HEAD_THREAD).store(self.thread, Ordering::Relaxed);
                state.store(STATE_OWNED, Ordering::Release);
                return Some(index);
            }
            None
        }

        fn release(&mut self) {
            if let Some((index, _)) = self.chunk.take() {
                let head = CHUNK_HEADS + index * CHUNK_HEAD_BYTES;
                self.segment.memory.u32_at(head + HEAD_STATE).store(STATE_FULL, Ordering::Release);
            }
        }

        fn write(&mut self, word: u64) {
            if self.chunk.is_none_or(|(_, used)| used == CHUNK_WORDS) {
                self.release();
                while self.chunk.is_none() {
                    self.chunk = self.claim().map(|index| (index, 0));
                    if self.chunk.is_none() {
                        thread::yield_now();
                    }
                }
            }
            let Some((index, used)) = &mut self.chunk else { unreachable!("just claimed") };
            let at = chunk_data(self.segment.chunks()) + *index * CHUNK_BYTES + *used * 8;
            self.segment.memory.u64_at(at).store(word, Ordering::Relaxed);
            *used += 1;
        }
    }

    /// `writers` threads write `words` words each into `chunks` chunks, while another one reads; what it read, by thread.
    fn run(chunks: usize, writers: u64, words: u64) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(move || {
            let segment = Arc::new(Segment::model(chunks));
            let finished = Shared::new(loom::sync::atomic::AtomicU64::new(0));
            let handles: Vec<_> = (1..=writers)
                .map(|thread| {
                    let mut writer = Writer { segment: Arc::clone(&segment), thread, chunk: None };
                    let finished = Shared::clone(&finished);
                    thread::spawn(move || {
                        (1..=words).for_each(|word| writer.write(word));
                        finished.fetch_add(1, Ordering::Release);
                    })
                })
                .collect();
            let mut reader = ChunkReader::new(segment);
            let mut read = vec![Vec::new(); writers as usize];
            loop {
                let last = finished.load(Ordering::Acquire) == writers;
                reader
                    .pass(|chunk| chunk.thread.0 as usize - 1, |thread, words| read[*thread].extend_from_slice(words));
                if last {
                    break;
                }
                thread::yield_now();
            }
            handles.into_iter().for_each(|handle| handle.join().expect("the writer has written"));
            let all: Vec<u64> = (1..=words).collect();
            assert!(read.iter().all(|read| *read == all), "{read:?}");
        });
    }

    #[test]
    fn a_half_full_chunk_is_read_up_to_what_is_written() {
        run(1, 1, 2);
    }

    #[test]
    fn a_threads_chunks_are_read_in_order() {
        run(3, 1, 5);
    }

    #[test]
    fn chunks_that_are_given_back_are_clean() {
        run(1, 1, 3);
        run(2, 1, 5);
    }

    #[test]
    fn threads_do_not_share_chunks() {
        run(2, 2, 2);
    }
}
