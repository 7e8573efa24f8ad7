//! Draining: a thread of the tool that moves event words from shared memory into the decoder.
//!
//! The thread owns the decoder. Whoever wants to see it while the target runs, or to have it forget, sends a request, which is
//! met between two passes: what was written before the request was made is then decoded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use headwater_protocol::chunks::ChunkReader;
use headwater_protocol::collections::CollectionReader;
use headwater_protocol::segment::Segment;
use tokio::sync::{Notify, oneshot, watch};

use crate::budget::Tally;
use crate::callgraph::OpenThread;
use crate::cpu_share::CpuSampler;
use crate::decode::{ChunkCursor, DecodeOptions, Decoder, Returned};

/// How long the thread sleeps when there was nothing to read.
const NAP: Duration = Duration::from_millis(1);
/// How often everything is added up, at most, for who wants tallies.
const TALLY_PERIOD: Duration = Duration::from_millis(100);
/// That takes at most this part of the thread's time: trees may be large.
const TALLY_PART: u32 = 20;

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

    /// Root invocations that are complete.
    pub fn roots_completed(&self) -> u64 {
        self.roots_completed.load(Ordering::Relaxed)
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

/// What the draining thread is asked to do with its decoder.
#[derive(Debug)]
enum Request {
    /// Hand out a copy.
    Copy(oneshot::Sender<Decoder>),
    /// Forget what was counted; threads stay where they are.
    Clear { now_ns: i64, done: oneshot::Sender<()> },
    /// These threads are in roots already.
    Open { threads: Vec<OpenThread>, now_ns: i64, done: oneshot::Sender<()> },
    /// They know of it.
    Followed(oneshot::Sender<()>),
    /// Recording has been interrupted: no thread is inside a root any more.
    Interrupt { now_ns: i64, done: oneshot::Sender<()> },
    /// Add up what was decoded, now and then, from now on.
    Tally(watch::Sender<Tally>),
}

/// The draining thread.
#[derive(Debug)]
pub struct Drain {
    progress: Arc<Progress>,
    requests: Sender<Request>,
    returns: Sender<Returned>,
    thread: JoinHandle<Decoder>,
}

impl Drain {
    /// Starts the thread, which also takes a sampler's samples.
    pub fn start(segment: Arc<Segment>, options: DecodeOptions, sampler: Option<CpuSampler>) -> std::io::Result<Drain> {
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let (requests, inbox) = channel();
        let (returns, returned) = channel();
        let decoder = Decoder::new(options);
        let collections = CollectionReader::new(Arc::clone(&segment));
        let reader = ChunkReader::new(segment);
        let worker = Worker { inbox, returned, reader, collections, decoder, sampler, tallies: None };
        let calls = options.root_limit;
        let thread = std::thread::Builder::new().name("drain".into()).spawn(move || worker.run(&shared, calls))?;
        Ok(Drain { progress, requests, returns, thread })
    }

    /// What the thread tells.
    pub fn progress(&self) -> Arc<Progress> {
        Arc::clone(&self.progress)
    }

    /// A copy of the decoder with all that was written until now. Copying takes the thread some milliseconds for a hundred
    /// thousand nodes; the buffer holds what the target writes meanwhile.
    pub fn copy(&self) -> impl Future<Output = Decoder> + use<> {
        self.ask(Request::Copy)
    }

    /// Forgets what was counted until `now_ns`; methods that are open stay open.
    pub fn clear(&self, now_ns: i64) -> impl Future<Output = ()> + use<> {
        self.ask(move |done| Request::Clear { now_ns, done })
    }

    /// These threads have been in roots since before recording, which began at `now_ns`. To be done before the target is told
    /// to record what they call.
    pub fn open(&self, threads: Vec<OpenThread>, now_ns: i64) -> impl Future<Output = ()> + use<> {
        self.ask(move |done| Request::Open { threads, now_ns, done })
    }

    /// The target's threads know of their open calls.
    pub fn followed(&self) -> impl Future<Output = ()> + use<> {
        self.ask(Request::Followed)
    }

    /// Where it is told that such threads have returned.
    pub fn returns(&self) -> Sender<Returned> {
        self.returns.clone()
    }

    /// Closes all open methods: recording was interrupted at `now_ns`, and their exits will not come.
    pub fn interrupt(&self, now_ns: i64) -> impl Future<Output = ()> + use<> {
        self.ask(move |done| Request::Interrupt { now_ns, done })
    }

    /// What was decoded, added up about ten times a second from now on.
    pub fn tallies(&self) -> watch::Receiver<Tally> {
        let (sender, receiver) = watch::channel(Tally::default());
        // A thread that has panicked sends none, and `finish` passes that on.
        let _ = self.requests.send(Request::Tally(sender));
        receiver
    }

    fn ask<T, R: FnOnce(oneshot::Sender<T>) -> Request>(&self, request: R) -> impl Future<Output = T> + use<T, R> {
        let (sender, answer) = oneshot::channel();
        // The thread ends before this handle only by a panic, which `finish` passes on.
        let _ = self.requests.send(request(sender));
        async { answer.await.expect("the draining thread lives as long as its handle, or has panicked") }
    }

    /// Reads what is there and ends the thread.
    pub fn finish(self) -> Decoder {
        self.progress.stop.store(true, Ordering::Release);
        self.thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

struct Worker {
    inbox: Receiver<Request>,
    returned: Receiver<Returned>,
    reader: ChunkReader<ChunkCursor>,
    collections: CollectionReader,
    decoder: Decoder,
    sampler: Option<CpuSampler>,
    tallies: Option<Tallies>,
}

/// Who wants tallies, and when the next is due.
struct Tallies {
    sender: watch::Sender<Tally>,
    due: Instant,
}

impl Tallies {
    fn send_if_due(&mut self, decoder: &Decoder) {
        let start = Instant::now();
        if start >= self.due {
            self.sender.send_replace(Tally::of(decoder));
            let end = Instant::now();
            self.due = end + TALLY_PERIOD.max((end - start) * TALLY_PART);
        }
    }
}

impl Worker {
    fn run(mut self, progress: &Progress, calls: Option<u64>) -> Decoder {
        loop {
            // Read before the pass: what was written before the stop, or the request, is then in this pass.
            let last = progress.stop.load(Ordering::Acquire);
            let request = self.inbox.try_recv().ok();
            let returned: Vec<Returned> = self.returned.try_iter().collect();
            let found = self.pass();
            returned.into_iter().for_each(|returned| self.decoder.returned(returned));
            if let Some(request) = request {
                self.meet(request, progress);
            }
            if let Some(tallies) = &mut self.tallies {
                tallies.send_if_due(&self.decoder);
            }
            self.tell(progress);
            if calls.is_some_and(|calls| self.decoder.roots_completed() >= calls) {
                progress.enough.notify_one();
            }
            if last {
                self.account();
                return self.decoder;
            }
            if !found {
                std::thread::sleep(NAP);
            }
        }
    }

    fn tell(&self, progress: &Progress) {
        progress.roots_entered.store(self.decoder.roots_entered(), Ordering::Relaxed);
        progress.roots_completed.store(self.decoder.roots_completed(), Ordering::Relaxed);
        progress.events.store(self.decoder.events(), Ordering::Relaxed);
    }

    fn meet(&mut self, request: Request, progress: &Progress) {
        // Nobody waits any more for an answer that cannot be sent.
        match request {
            Request::Copy(answer) => {
                self.account();
                drop(answer.send(self.decoder.clone()));
            }
            Request::Clear { now_ns, done } => {
                self.account();
                self.decoder.clear(now_ns);
                // Before the answer: whoever asked must not see what was forgotten.
                self.tell(progress);
                let _ = done.send(());
            }
            Request::Open { threads, now_ns, done } => {
                threads.iter().for_each(|open| self.decoder.open(open.thread, &open.calls, now_ns));
                let _ = done.send(());
            }
            Request::Followed(done) => {
                self.decoder.followed();
                let _ = done.send(());
            }
            Request::Interrupt { now_ns, done } => {
                self.account();
                self.decoder.interrupt(now_ns);
                self.reader.interrupted();
                let _ = done.send(());
            }
            Request::Tally(sender) => self.tallies = Some(Tallies { sender, due: Instant::now() }),
        }
    }

    /// Adds up what the threads had of the processors up to now.
    fn account(&mut self) {
        if let Some(sampler) = &mut self.sampler {
            sampler.account(&mut self.decoder);
        }
    }

    /// Decodes what is new. Whether there was anything.
    fn pass(&mut self) -> bool {
        let found = self.reader.pass(
            |chunk| ChunkCursor::new(chunk.thread, chunk.base_ns),
            |cursor, words| {
                // All that ended before these words were written.
                pass_collections(&mut self.collections, &mut self.decoder);
                self.decoder.words(cursor, words);
            },
        );
        pass_collections(&mut self.collections, &mut self.decoder);
        self.decoder.pass_done();
        if let Some(sampler) = &mut self.sampler {
            sampler.sample(&mut self.decoder);
        }
        found
    }
}

fn pass_collections(from: &mut CollectionReader, to: &mut Decoder) {
    let lost = from.read(|collection| to.collection(collection));
    to.lost_collections(lost);
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use headwater_protocol::MethodId;
    use headwater_protocol::layout::{
        CHUNK_BYTES, CHUNK_HEAD_BYTES, CHUNK_HEADS, HEAD_BASE_NS, HEAD_CLAIM, HEAD_STATE, HEAD_THREAD, OFFSET_CLAIMS,
        STATE_FREE, STATE_OWNED, Shape, chunk_data,
    };
    use headwater_protocol::segment::Recording;
    use headwater_protocol::word::Event;

    use super::*;

    const CHUNKS: usize = 3;

    /// What a thread of the target does: claims a chunk and writes a call of a root into it; the chunk stays its own.
    fn call_a_root(file: &File, index: usize, claim: u64, thread: u64) {
        let method = MethodId(1);
        let words = [
            Event::Enter { method, time_ns: 1, root: true }.encode(),
            Event::Exit { method, time_ns: 3, thrown: false }.encode(),
        ];
        let head = CHUNK_HEADS + index * CHUNK_HEAD_BYTES;
        let write = |at: usize, bytes: &[u8]| file.write_all_at(bytes, at as u64).unwrap();
        for (at, word) in words.iter().enumerate() {
            write(chunk_data(CHUNKS) + index * CHUNK_BYTES + at * 8, &word.to_le_bytes());
        }
        write(head + HEAD_CLAIM, &claim.to_le_bytes());
        write(head + HEAD_THREAD, &thread.to_le_bytes());
        write(head + HEAD_BASE_NS, &0_i64.to_le_bytes());
        write(head + HEAD_STATE, &STATE_OWNED.to_le_bytes());
        write(OFFSET_CLAIMS, &(claim + 1).to_le_bytes());
    }

    fn state(file: &File, index: usize) -> u32 {
        let mut state = [0; 4];
        file.read_exact_at(&mut state, (CHUNK_HEADS + index * CHUNK_HEAD_BYTES + HEAD_STATE) as u64).unwrap();
        u32::from_le_bytes(state)
    }

    #[tokio::test]
    async fn a_copy_has_what_was_written_before_it_was_asked_for() {
        let (segment, file) = Segment::create(Shape::of(CHUNKS), Recording::default()).unwrap();
        let drain = Drain::start(Arc::new(segment), DecodeOptions::default(), None).unwrap();
        for thread in 0..CHUNKS {
            call_a_root(&file, thread, thread as u64, thread as u64);
            assert_eq!(drain.copy().await.roots_completed(), thread as u64 + 1);
        }
        drain.clear(10).await;
        assert_eq!(drain.progress().roots_completed(), 0, "whoever waits for calls waits for new ones");
        assert_eq!(drain.finish().roots_completed(), 0);
    }

    #[tokio::test]
    async fn a_chunk_that_its_thread_forgot_in_an_interruption_is_recycled_when_the_thread_comes_back() {
        let (segment, file) = Segment::create(Shape::of(CHUNKS), Recording::default()).unwrap();
        let drain = Drain::start(Arc::new(segment), DecodeOptions::default(), None).unwrap();
        call_a_root(&file, 0, 0, 7);
        call_a_root(&file, 1, 1, 8);
        drain.interrupt(10).await;
        call_a_root(&file, 2, 2, 7);
        assert_eq!(drain.copy().await.roots_completed(), 3);
        assert_eq!((state(&file, 0), state(&file, 1), state(&file, 2)), (STATE_FREE, STATE_OWNED, STATE_OWNED));
        assert_eq!(drain.finish().roots_completed(), 3);
    }
}
