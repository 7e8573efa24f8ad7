//! How many events a second the tool turns into a calling context tree, on one core, from memory: what a javac of each JDK has written,
//! made-up streams of a call-dense program, and of one with a large tree. How many with each invocation recorded singly (`--stats`). How long decoding
//! stands still when the tree so far is wanted, and how much memory a tree of a million nodes takes; and what it costs to sample
//! threads' states beside.

use std::sync::{Arc, Barrier};
use std::time::Instant;

use headwater::cpu_share::{CpuSampler, OsThread};
use headwater::decode::{ChunkCursor, DecodeOptions, Decoder, Statistics};
use headwater_benches::recording::{Chunk, record};
use headwater_benches::workload::Target;
use headwater_benches::{Random, compile, fastest, median};
use headwater_protocol::layout::CHUNK_WORDS;
use headwater_protocol::word::Event;
use headwater_protocol::{MethodId, ThreadId};
use headwater_tests::jdks;

const ROUNDS: usize = 15;
/// Words of a made-up stream, at least.
const MADE_UP: usize = 4_000_000;
/// Words that a javac writes, at least: two compilations.
const RECORDED: usize = 24_000_000;
/// Half-second rounds before that.
const WARM_UP: usize = 16;

/// A thread's events: calls of a root, below which every method calls some of its own callees.
struct Stream {
    words: Vec<u64>,
    now: u64,
    random: Random,
    methods: u64,
    fan_out: u64,
}

impl Stream {
    fn words(methods: u64, fan_out: u64, depth: u32, events: usize) -> Vec<u64> {
        let mut stream = Stream { words: Vec::new(), now: 0, random: Random::default(), methods, fan_out };
        while stream.words.len() < events {
            stream.call(MethodId(1), depth, true);
        }
        stream.words
    }

    fn tick(&mut self) -> u64 {
        self.now = (self.now + 20 + self.random.below(60)) & 0xFF_FFFF_FFFF;
        self.now
    }

    fn call(&mut self, method: MethodId, depth: u32, root: bool) {
        let time_ns = self.tick();
        self.words.push(Event::Enter { method, time_ns, root }.encode());
        if depth > 0 {
            for _ in 0..self.random.below(2 * self.fan_out) {
                // Some callees are called far more often than others, and loops call the same one again.
                let which = self.random.below(self.fan_out).min(self.random.below(self.fan_out));
                let callee = MethodId((2 + (u64::from(method.0) * 31 + which * 7) % self.methods) as u32);
                for _ in 0..=self.random.below(3) {
                    self.call(callee, depth - 1, false);
                }
            }
        }
        let time_ns = self.tick();
        self.words.push(Event::Exit { method, time_ns, thrown: false }.encode());
    }
}

fn main() {
    resident();
    println!("\n| stream | events | nodes | events a second | with --stats | copied for a live report in |");
    println!("|---|---|---|---|---|---|");
    for (name, methods, fan_out, depth) in [("call-dense", 12, 4, 3), ("large tree", 4_000, 4, 8)] {
        let words = Stream::words(methods, fan_out, depth, MADE_UP);
        let cursor = ChunkCursor::new(ThreadId(1), 0);
        let chunks: Vec<Chunk> = words.chunks(CHUNK_WORDS).map(|words| (cursor.clone(), words.to_vec())).collect();
        measure(name, &chunks);
    }
    for jdk in jdks() {
        let classes = compile(&jdk, "Workload.java");
        let mut javac = Target::start(&jdk, &classes, "javac");
        javac.rounds(WARM_UP);
        let chunks = record(javac.process.pid(), "Workload::javac", RECORDED);
        // It would go on using a processor.
        drop(javac);
        measure(&format!("javac of JDK {}", jdk.version), &chunks);
    }
    println!("\nstates of 64 waiting threads sampled meanwhile: {:.3} of the events a second", sampled());
}

/// How much memory trees take whose nodes have so many callees. Of a process that has freed none before.
fn resident() {
    println!("| callees of each node | nodes | bytes a node (resident) |");
    println!("|---|---|---|");
    // The latter are looked up by hash.
    for (fan_out, levels) in [(10, 6), (32, 4)] {
        let mut words = Vec::new();
        complete(MethodId(1), true, fan_out, levels, &mut words);
        let before = resident_bytes();
        let mut decoder = Decoder::new(DecodeOptions::default());
        decoder.words(&mut ChunkCursor::new(ThreadId(1), 0), &words);
        let bytes = resident_bytes() - before;
        let nodes: usize = decoder.threads().map(|(_, tree)| tree.len()).sum();
        println!("| {fan_out} | {nodes} | {:.0} |", bytes as f64 / nodes as f64);
    }
}

fn measure(name: &str, chunks: &[Chunk]) {
    let events: usize = chunks.iter().map(|(_, words)| words.len()).sum();
    let decoded = |statistics| {
        let mut decoder = Decoder::new(DecodeOptions { statistics, ..DecodeOptions::default() });
        let time = fastest(ROUNDS, || {
            for (cursor, words) in chunks {
                decoder.words(&mut cursor.clone(), words);
            }
        });
        (events as f64 / time.as_secs_f64() / 1e6, decoder)
    };
    let ((rate, decoder), (singly, _)) = (decoded(Statistics::Off), decoded(Statistics::Every));
    let nodes: usize = decoder.threads().map(|(_, tree)| tree.len()).sum();
    let copying_ms = fastest(ROUNDS, || drop(decoder.clone())).as_secs_f64() * 1e3;
    println!("| {name} | {events} | {nodes} | {rate:.0} million | {singly:.0} million | {copying_ms:.3} ms |");
}

/// How fast events are decoded while the states of as many threads are sampled as ever are, as a part of how fast they are
/// decoded without.
fn sampled() -> f64 {
    const THREADS: usize = 64;
    let words = Stream::words(4_000, 4, 8, MADE_UP);
    let (done, wait) = (Arc::new(Barrier::new(THREADS + 1)), Arc::new(Barrier::new(THREADS + 1)));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (done, wait) = (Arc::clone(&done), Arc::clone(&wait));
            std::thread::spawn(move || (wait.wait(), done.wait()))
        })
        .collect();
    wait.wait();
    let (mut sampler, told) = CpuSampler::new(std::process::id());
    let mut decoder = Decoder::new(DecodeOptions::default());
    let tasks = std::fs::read_dir("/proc/self/task").expect("our own threads").flatten();
    for (task, thread) in tasks.zip(2..) {
        let number = task.file_name().to_string_lossy().parse().expect("a number");
        told.send(OsThread { thread: ThreadId(thread), number }).expect("it listens");
        let root = Event::Enter { method: MethodId(1), time_ns: 0, root: true }.encode();
        decoder.words(&mut ChunkCursor::new(ThreadId(thread), 0), &[root]);
    }
    let mut cursor = ChunkCursor::new(ThreadId(1), 0);
    let mut decode = |sampler: Option<&mut CpuSampler>| {
        let start = Instant::now();
        let mut sampler = sampler;
        for _ in 0..ROUNDS {
            for words in words.chunks(CHUNK_WORDS) {
                decoder.words(&mut cursor, words);
                if let Some(sampler) = &mut sampler {
                    sampler.sample(&mut decoder);
                }
            }
        }
        start.elapsed().as_secs_f64()
    };
    let ratio = median((0..5).map(|_| decode(None) / decode(Some(&mut sampler))).collect());
    done.wait();
    threads.into_iter().for_each(|thread| drop(thread.join()));
    ratio
}

/// A call of each context of a tree in which every node has so many callees, down to so many levels below this one.
fn complete(method: MethodId, root: bool, fan_out: u32, levels: u32, words: &mut Vec<u64>) {
    words.push(Event::Enter { method, time_ns: words.len() as u64, root }.encode());
    if levels > 0 {
        (0..fan_out).for_each(|callee| complete(MethodId(2 + callee), false, fan_out, levels - 1, words));
    }
    words.push(Event::Exit { method, time_ns: words.len() as u64, thrown: false }.encode());
}

/// Of this process, on x86-64, whose pages have 4096 bytes.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("a number of pages");
    pages * 4096
}
