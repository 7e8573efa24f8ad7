//! Streams of events as JVMs write them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use headwater::Scheme;
use headwater::callgraph::{JdkMethods, Options};
use headwater::clock_source::ClockChoice;
use headwater::decode::{ChunkCursor, Statistics};
use headwater::profile::ClockMode;
use headwater::profiling::{self, BareTiming, Keeping, Settings};
use headwater::session::Gentle;
use headwater_protocol::chunks::ChunkReader;
use headwater_protocol::message::Reveal;
use headwater_protocol::segment::{Overflow, Segment};
use headwater_protocol::word::Counting;
use tokio::sync::Notify;

/// How long the reader sleeps when there was nothing to read.
const NAP: Duration = Duration::from_millis(1);

/// What a chunk was filled with, and where a decoder begins to read it.
pub type Chunk = (ChunkCursor, Vec<u64>);

/// What a root of a JVM and the methods below it write: so many words, from the beginning of the recording, and the rest of the chunks that
/// they are in. Panics at whatever goes wrong.
pub fn record(pid: u32, root: &str, words: usize) -> Vec<Chunk> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(record_words(pid, root, words))
}

async fn record_words(pid: u32, root: &str, words: usize) -> Vec<Chunk> {
    let jvm = headwater::jvm::resolve(&pid.to_string()).expect("a JVM");
    let settings = settings(root);
    let mut attached = profiling::connect(&jvm, &settings).await.expect("the agent connects");
    let segment = Arc::clone(attached.segment());
    let session = attached.session();
    session.graph_mut().set_options(settings.subgraph);
    let (enough, ended) = (Arc::new(Notify::new()), Arc::new(AtomicBool::new(false)));
    let reader = {
        let (enough, ended) = (Arc::clone(&enough), Arc::clone(&ended));
        std::thread::spawn(move || read(segment, words, &enough, &ended))
    };
    session.calibrate().await.expect("it calibrates");
    session.list_classes(settings.reveal).await.expect("it lists its classes");
    let first = session.select_roots(|_| {}).await.expect("it selects the root");
    session.instrument(first, None).await.expect("it instruments the root");
    loop {
        let event = tokio::select! {
            event = session.next_event() => event,
            () = enough.notified() => break,
        };
        session.serve(event.expect("it lives")).await.expect("it goes on");
    }
    session.stop().await.expect("it stops");
    ended.store(true, Ordering::Release);
    session.detach().await.expect("it has its classes back");
    reader.join().expect("it has been read")
}

/// Empties the buffer until the recording has ended, and keeps so many words.
fn read(segment: Arc<Segment>, wanted: usize, enough: &Notify, ended: &AtomicBool) -> Vec<Chunk> {
    let mut reader = ChunkReader::new(segment);
    let mut chunks: Vec<Chunk> = Vec::new();
    let mut of_claims: HashMap<u64, usize> = HashMap::new();
    let mut kept = 0;
    loop {
        let last = ended.load(Ordering::Acquire);
        let found = reader.pass(
            |chunk| (chunk.claim, ChunkCursor::new(chunk.thread, chunk.base_ns)),
            |(claim, cursor), words| {
                let known = of_claims.get(claim).copied();
                if known.is_none() && kept >= wanted {
                    return;
                }
                let index = known.unwrap_or(chunks.len());
                if known.is_none() {
                    of_claims.insert(*claim, index);
                    chunks.push((cursor.clone(), Vec::new()));
                }
                chunks[index].1.extend_from_slice(words);
                kept += words.len();
            },
        );
        if kept >= wanted {
            enough.notify_one();
        }
        if last {
            return chunks;
        }
        if !found {
            std::thread::sleep(NAP);
        }
    }
}

fn settings(root: &str) -> Settings {
    Settings {
        subgraph: Options {
            roots: vec![root.parse().expect("a root")],
            jdk: JdkMethods::None,
            scheme: Scheme::Lazy,
            look_ahead: true,
            ..Options::default()
        },
        reveal: Reveal::Blocking,
        gentle: Gentle::Off,
        duration: None,
        calls: None,
        clock: ClockMode::Exact,
        clock_source: ClockChoice::Auto,
        control: None,
        statistics: Statistics::Off,
        counting: Counting::default(),
        budget: Keeping::Off,
        bare: BareTiming::Off,
        buffer_bytes: 64 << 20,
        overflow: Overflow::Wait,
        await_roots: false,
        live: None,
    }
}
