//! Draining: a thread of the tool that moves event words from shared memory into the decoder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use headwater_protocol::layout::CHUNK_WORDS;
use headwater_protocol::segment::{ChunkView, Segment};
use tokio::sync::Notify;

use crate::decode::{ChunkCursor, DecodeOptions, Decoder};

/// How long the thread sleeps when there was nothing to read.
const NAP: Duration = Duration::from_millis(1);

/// What the draining thread tells while it runs.
#[derive(Debug, Default)]
pub struct Progress {
    stop: AtomicBool,
    roots_completed: AtomicU64,
    roots_entered: AtomicU64,
    events: AtomicU64,
    /// Rung when the wanted number of root invocations is complete.
    enough: Notify,
}

impl Progress {
    /// Root invocations that have been entered.
    pub fn roots_entered(&self) -> u64 {
        self.roots_entered.load(Ordering::Relaxed)
    }

    /// Events that have been decoded.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    /// Returns when as many root invocations are complete as were asked for.
    pub async fn enough(&self) {
        self.enough.notified().await;
    }
}

/// The draining thread.
#[derive(Debug)]
pub struct Drain {
    progress: Arc<Progress>,
    thread: JoinHandle<Decoder>,
}

impl Drain {
    /// Starts the thread. With `calls`, only that many root invocations are decoded.
    pub fn start(segment: Arc<Segment>, calls: Option<u64>) -> std::io::Result<Drain> {
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let worker = Worker {
            cursors: (0..segment.chunks()).map(|_| None).collect(),
            segment,
            decoder: Decoder::new(DecodeOptions { root_limit: calls }),
            chunks: Vec::new(),
            words: Vec::with_capacity(CHUNK_WORDS),
        };
        let thread = std::thread::Builder::new().name("drain".into()).spawn(move || worker.run(&shared, calls))?;
        Ok(Drain { progress, thread })
    }

    /// What the thread tells.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// Reads what is there and ends the thread.
    pub fn finish(self) -> Decoder {
        self.progress.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// How far a claimed chunk has been read.
struct Cursor {
    claim: u64,
    read: usize,
    decoder: ChunkCursor,
}

struct Worker {
    segment: Arc<Segment>,
    decoder: Decoder,
    cursors: Vec<Option<Cursor>>,
    chunks: Vec<ChunkView>,
    words: Vec<u64>,
}

impl Worker {
    fn run(mut self, progress: &Progress, calls: Option<u64>) -> Decoder {
        loop {
            // Read before the pass: what was written before the stop is then in this last pass.
            let last = progress.stop.load(Ordering::Acquire);
            let found = self.pass();
            progress.roots_entered.store(self.decoder.roots_entered(), Ordering::Relaxed);
            progress.roots_completed.store(self.decoder.roots_completed(), Ordering::Relaxed);
            progress.events.store(self.decoder.events(), Ordering::Relaxed);
            if calls.is_some_and(|calls| self.decoder.roots_completed() >= calls) {
                progress.enough.notify_one();
            }
            if last {
                return self.decoder;
            }
            if !found {
                std::thread::sleep(NAP);
            }
        }
    }

    /// Reads all claimed chunks once, in the order of their claims. Whether there was anything new.
    fn pass(&mut self) -> bool {
        let mut found = false;
        self.segment.claimed(&mut self.chunks);
        for chunk in &self.chunks {
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
                self.decoder.words(&mut cursor.decoder, &self.words);
            }
            if chunk.full {
                self.segment.recycle(chunk.index, cursor.read);
                *slot = None;
            }
        }
        self.decoder.pass_done();
        found
    }
}
