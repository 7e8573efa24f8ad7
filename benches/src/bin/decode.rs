//! How many events a second the tool turns into a calling context tree, on one core, from memory: streams of a call-dense
//! program and of one with a large tree, like javac's. How many with each invocation recorded singly (`--stats`). And how long
//! decoding stands still when the tree so far is wanted.

use headwater::decode::{ChunkCursor, DecodeOptions, Decoder, Statistics};
use headwater_benches::{Random, fastest};
use headwater_protocol::layout::CHUNK_WORDS;
use headwater_protocol::word::Event;
use headwater_protocol::{MethodId, ThreadId};

const ROUNDS: usize = 15;

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
    println!("| stream | events | nodes | events a second | with --stats | copied for a live report in |");
    println!("|---|---|---|---|---|---|");
    for (name, methods, fan_out, depth) in [("call-dense", 12, 4, 3), ("large tree", 4_000, 4, 8)] {
        let words = Stream::words(methods, fan_out, depth, 4_000_000);
        let decoded = |statistics| {
            let mut decoder = Decoder::new(DecodeOptions { statistics, ..DecodeOptions::default() });
            let mut cursor = ChunkCursor::new(ThreadId(1), 0);
            let time = fastest(ROUNDS, || {
                for words in words.chunks(CHUNK_WORDS) {
                    decoder.words(&mut cursor, words);
                }
            });
            (words.len() as f64 / time.as_secs_f64() / 1e6, decoder)
        };
        let ((rate, decoder), (singly, _)) = (decoded(Statistics::Off), decoded(Statistics::Every));
        let nodes: usize = decoder.threads().map(|(_, tree)| tree.len()).sum();
        let copying_ms = fastest(ROUNDS, || drop(decoder.clone())).as_secs_f64() * 1e3;
        let events = words.len();
        println!("| {name} | {events} | {nodes} | {rate:.0} million | {singly:.0} million | {copying_ms:.3} ms |");
    }
}
