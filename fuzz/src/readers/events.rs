//! The event buffer, as a hostile or broken target writes it: heads of chunks and words that are anything, at any time, read by the one who
//! reads them in the tool, and decoded.

use std::fs::File;
use std::num::NonZeroU64;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use headwater::decode::{ChunkCursor, DecodeOptions, Decoder, Returned, Statistics, TimeBase};
use headwater_protocol::chunks::ChunkReader;
use headwater_protocol::layout::{
    CHUNK_HEAD_BYTES, CHUNK_HEADS, HEAD_BASE_NS, HEAD_CLAIM, HEAD_STATE, HEAD_THREAD, LEAST_CHUNK_BYTES, OFFSET_CLAIMS,
    Shape, chunk_data,
};
use headwater_protocol::segment::{Recording, Segment};
use headwater_protocol::word::{Counter, Event, Handover, PauseReason, ProbedWait};
use headwater_protocol::{MethodId, ThreadId};
use headwater_tests::random::Random;

use super::Reader;
use crate::mutation::{change, edge};

const CHUNKS: usize = 4;
const CHUNK_BYTES: usize = LEAST_CHUNK_BYTES;
/// What one writing has of a chunk: which it is, its head, where its words begin, and how many there are.
const HEAD_BYTES: usize = 1 + 1 + 8 + 8 + 8 + 2 + 2;

/// The buffer's reader, and the decoder.
pub(crate) struct Events {
    segment: Arc<Segment>,
    file: File,
}

impl Events {
    pub(crate) fn new() -> Events {
        let shape = Shape { chunks: CHUNKS, chunk_bytes: CHUNK_BYTES };
        let (segment, file) = Segment::create(shape, Recording::default()).expect("memory");
        Events { segment: Arc::new(segment), file }
    }

    fn write(&self, at: usize, bytes: &[u8]) {
        self.file.write_all_at(bytes, at as u64).expect("a file in memory");
    }

    /// As if nobody had written yet.
    fn forget(&self) {
        let heads = [0; CHUNKS * CHUNK_HEAD_BYTES];
        self.write(CHUNK_HEADS, &heads);
        let words = [0; CHUNK_BYTES];
        (0..CHUNKS).for_each(|chunk| self.write(chunk_data(CHUNKS) + chunk * CHUNK_BYTES, &words));
    }

    /// Does what an input says of one chunk; what is left of it.
    fn put<'a>(&self, input: &'a [u8]) -> Option<&'a [u8]> {
        let (head, rest) = input.split_at_checked(HEAD_BYTES)?;
        let chunk = usize::from(head[0]) % CHUNKS;
        let at = CHUNK_HEADS + chunk * CHUNK_HEAD_BYTES;
        let short = |at: usize| usize::from(u16::from_le_bytes([head[at], head[at + 1]]));
        let first = short(26) % (CHUNK_BYTES / 8);
        let count = short(28).min(CHUNK_BYTES / 8 - first).min(rest.len() / 8);
        let (words, rest) = rest.split_at(count * 8);
        self.write(chunk_data(CHUNKS) + chunk * CHUNK_BYTES + first * 8, words);
        self.write(at + HEAD_CLAIM, &head[2..10]);
        self.write(at + HEAD_THREAD, &head[10..18]);
        self.write(at + HEAD_BASE_NS, &head[18..26]);
        self.write(at + HEAD_STATE, &u32::from(head[1]).to_le_bytes());
        self.write(OFFSET_CLAIMS, &head[2..10]);
        Some(rest)
    }
}

/// What may be in a chunk, most of it as a sound target writes it.
pub(crate) fn words(random: &mut Random, methods: u32) -> Vec<u64> {
    let mut now_ns = random.below(1000) as u64;
    let mut stack: Vec<MethodId> = Vec::new();
    let mut words = Vec::new();
    for _ in 0..random.below(64) {
        now_ns += random.below(1 << 12) as u64;
        let method = MethodId(1 + random.below(methods.max(1) as usize) as u32);
        words.push(match random.below(14) {
            0..=4 => {
                let root = stack.is_empty();
                stack.push(method);
                Event::Enter { method, time_ns: now_ns, root }.encode()
            }
            5..=8 => {
                let method = stack.pop().unwrap_or(method);
                Event::Exit { method, time_ns: now_ns, thrown: random.once_in(8) }.encode()
            }
            9 => {
                let reason = Some(random.choose(&PauseReason::ALL));
                Event::Pause { reason, duration_ns: random.below(1 << 20) as u64 }.encode()
            }
            10 => Event::Handover { what: random.choose(&Handover::ALL), link: random.below(4) as u64 }.encode(),
            11 => Event::Wait { wait: random.choose(&ProbedWait::ALL), begins: random.once_in(2), time_ns: now_ns }
                .encode(),
            12 => Event::Count { counter: random.choose(&Counter::ALL), value: random.below(1 << 9) as u64 }.encode(),
            _ => edge(random) << random.below(64) | (random.below(8) as u64) << 61 | u64::from(method.0) << 41,
        });
    }
    words
}

/// Options of all kinds.
pub(crate) fn options(draw: u8) -> DecodeOptions {
    DecodeOptions {
        root_limit: (draw & 1 != 0).then_some(u64::from(draw >> 5)),
        statistics: match draw >> 1 & 3 {
            0 => Statistics::Off,
            1 => Statistics::Every,
            _ => Statistics::Outermost,
        },
        time_base: if draw & 8 == 0 { TimeBase::System } else { TimeBase::Carrier },
    }
}

impl Reader for Events {
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        let mut input = vec![random.below(256) as u8];
        for _ in 0..=random.below(6) {
            let words = words(random, 6);
            let state = random.choose(&[2, 2, 2, 3, 3, 0, 1, 4]);
            input.extend([random.below(CHUNKS) as u8, state]);
            let claim = if random.once_in(16) { edge(random) } else { random.below(8) as u64 };
            let thread = if random.once_in(16) { edge(random) } else { 1 + random.below(3) as u64 };
            let base_ns = if random.once_in(16) { edge(random) } else { random.below(1 << 20) as u64 };
            [claim, thread, base_ns].iter().for_each(|field| input.extend(field.to_le_bytes()));
            let first = if random.once_in(4) { random.below(CHUNK_BYTES / 8) } else { 0 };
            input.extend((first as u16).to_le_bytes());
            input.extend((words.len() as u16).to_le_bytes());
            words.iter().for_each(|word| input.extend(word.to_le_bytes()));
        }
        for _ in 0..random.below(4) {
            let other = input.clone();
            change(&mut input, &other, random);
        }
        input
    }

    fn read(&mut self, input: &[u8]) -> bool {
        let Some((&draw, mut rest)) = input.split_first() else { return false };
        self.forget();
        let mut reader = ChunkReader::new(Arc::clone(&self.segment));
        let mut decoder = Decoder::new(options(draw));
        let mut number = draw;
        loop {
            let written = self.put(rest);
            reader.pass(
                |chunk| ChunkCursor::new(chunk.thread, chunk.base_ns),
                |cursor, words| decoder.words(cursor, words),
            );
            decoder.pass_done();
            number = number.wrapping_mul(5).wrapping_add(1);
            let now_ns = i64::from(number) << (number % 56);
            match number >> 4 {
                0 => decoder.clear(now_ns),
                1 => {
                    decoder.interrupt(now_ns);
                    reader.interrupted();
                }
                2 => decoder.open(ThreadId(u64::from(number & 3)), &[MethodId(1), MethodId(2)], now_ns),
                3 => decoder.returned(Returned {
                    thread: ThreadId(u64::from(number & 3)),
                    open: usize::from(number & 1),
                    time_ns: now_ns,
                    error_ns: 1 << (number % 64),
                }),
                _ => {}
            }
            match written {
                Some(behind) => rest = behind,
                None => break,
            }
        }
        decoder.finish(i64::from(draw) << (draw % 56));
        let nodes: usize = decoder.threads().map(|(_, tree)| tree.len()).sum();
        let counted = decoder.controls().len() + decoder.invocations().count() + nodes;
        counted > 0 && NonZeroU64::new(decoder.events()).is_some()
    }

    fn most_bytes(&self, input_bytes: usize) -> usize {
        // With statistics, a method has two histograms of some sixty kilobytes at most, and takes two words.
        (8 << 20) + 20_000 * input_bytes
    }
}
