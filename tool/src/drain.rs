//! Draining: a thread of the tool that moves event words from shared memory into the decoder.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use headwater_protocol::chunks::ChunkReader;
use headwater_protocol::segment::Segment;
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
        let worker =
            Worker { reader: ChunkReader::new(segment), decoder: Decoder::new(DecodeOptions { root_limit: calls }) };
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

struct Worker {
    reader: ChunkReader<ChunkCursor>,
    decoder: Decoder,
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

    /// Decodes what is new. Whether there was anything.
    fn pass(&mut self) -> bool {
        let found = self.reader.pass(
            |chunk| ChunkCursor::new(chunk.thread, chunk.base_ns),
            |cursor, words| self.decoder.words(cursor, words),
        );
        self.decoder.pass_done();
        found
    }
}
