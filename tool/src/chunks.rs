//! Reading the event buffer: each claimed chunk from where it was left, full ones given back.

use std::sync::Arc;

use headwater_protocol::layout::CHUNK_WORDS;
use headwater_protocol::segment::{ChunkView, Segment};

use crate::decode::ChunkCursor;

/// Reads a segment's chunks. There must be only one at a time.
#[derive(Debug)]
pub struct ChunkReader {
    segment: Arc<Segment>,
    cursors: Vec<Option<Cursor>>,
    chunks: Vec<ChunkView>,
    words: Vec<u64>,
    first_claim: u64,
}

/// How far a claimed chunk has been read.
#[derive(Debug)]
struct Cursor {
    claim: u64,
    read: usize,
    decoder: ChunkCursor,
}

impl ChunkReader {
    /// Reads everything.
    pub fn new(segment: Arc<Segment>) -> ChunkReader {
        ChunkReader {
            cursors: (0..segment.chunks()).map(|_| None).collect(),
            segment,
            chunks: Vec::new(),
            words: Vec::with_capacity(CHUNK_WORDS),
            first_claim: 0,
        }
    }

    /// Reads only what is written into chunks that are claimed from now on.
    pub fn from_now(segment: Arc<Segment>) -> ChunkReader {
        let first_claim = segment.claims();
        ChunkReader { first_claim, ..ChunkReader::new(segment) }
    }

    /// Hands over what is new, in the order of the chunks' claims. Whether there was anything.
    pub fn pass(&mut self, mut decode: impl FnMut(&mut ChunkCursor, &[u64])) -> bool {
        let mut found = false;
        self.segment.claimed(&mut self.chunks);
        for chunk in self.chunks.iter().filter(|chunk| chunk.claim >= self.first_claim) {
            let slot = &mut self.cursors[chunk.index];
            if slot.as_ref().is_none_or(|cursor| cursor.claim != chunk.claim) {
                let decoder = ChunkCursor::new(chunk.thread, chunk.base_ns);
                *slot = Some(Cursor { claim: chunk.claim, read: 0, decoder });
            }
            let Some(cursor) = slot else { continue };
            self.words.clear();
            self.segment.read_words(chunk.index, cursor.read, &mut self.words);
            if !self.words.is_empty() {
                found = true;
                cursor.read += self.words.len();
                decode(&mut cursor.decoder, &self.words);
            }
            if chunk.full {
                self.segment.recycle(chunk.index, cursor.read);
                *slot = None;
            }
        }
        found
    }
}
