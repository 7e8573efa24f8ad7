//! Snapshots: changed as they are, which their checksums show; and changed inside, with checksums that are right.

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use headwater::foreign;
use headwater_tests::random::Random;

use super::Reader;
use crate::mutation::{change, edge};

/// Before the frames: magic, layout, length of the writer's version.
const HEAD_BYTES: usize = 11;
/// A frame's tag and sizes; its checksum.
const FRAME_HEAD_BYTES: usize = 9;
const CRC_BYTES: usize = 4;

/// A snapshot, taken apart.
#[derive(Clone, Debug)]
struct Parts {
    head: Vec<u8>,
    /// Each with its tag.
    frames: Vec<(u8, Vec<u8>)>,
}

impl Parts {
    fn of(file: &[u8]) -> Parts {
        let head = HEAD_BYTES + usize::from(file[HEAD_BYTES - 1]);
        let mut parts = Parts { head: file[..head].to_vec(), frames: Vec::new() };
        let mut rest = &file[head..];
        while !rest.is_empty() {
            let size = |at: usize| u32::from_le_bytes([rest[at], rest[at + 1], rest[at + 2], rest[at + 3]]) as usize;
            let (size, packed) = (size(1), size(5));
            let mut content = Vec::with_capacity(size + 1);
            let stream = &rest[FRAME_HEAD_BYTES..FRAME_HEAD_BYTES + packed];
            let unpacked = Decompress::new(false).decompress_vec(stream, &mut content, FlushDecompress::Finish);
            unpacked.expect("a sound sample");
            parts.frames.push((rest[0], content));
            rest = &rest[FRAME_HEAD_BYTES + packed + CRC_BYTES..];
        }
        parts
    }

    fn file(&self, lie: Option<(usize, u32)>) -> Vec<u8> {
        let mut file = self.head.clone();
        let mut crc = crc32fast::Hasher::new();
        crc.update(&file);
        for (number, (tag, content)) in self.frames.iter().enumerate() {
            let mut packed = Vec::with_capacity(content.len() + content.len() / 100 + 128);
            let compressed =
                Compress::new(Compression::fast(), false).compress_vec(content, &mut packed, FlushCompress::Finish);
            compressed.expect("memory");
            let size = lie.filter(|(at, _)| *at == number).map_or(content.len() as u32, |(_, size)| size);
            let frame = [&[*tag][..], &size.to_le_bytes(), &(packed.len() as u32).to_le_bytes(), &packed].concat();
            crc.update(&frame);
            file.extend(frame);
            file.extend(crc.clone().finalize().to_le_bytes());
        }
        file
    }
}

/// The reader of snapshots.
pub(crate) struct Snapshots {
    files: Vec<Vec<u8>>,
    parts: Vec<Parts>,
}

impl Snapshots {
    pub(crate) fn new(files: &[Vec<u8>]) -> Snapshots {
        Snapshots { files: files.to_vec(), parts: files.iter().map(|file| Parts::of(file)).collect() }
    }
}

impl Reader for Snapshots {
    fn input(&mut self, random: &mut Random) -> Vec<u8> {
        if random.once_in(8) {
            return crate::mutation::changed(&self.files, random);
        }
        let mut parts = self.parts[random.below(self.parts.len())].clone();
        let other = &self.parts[random.below(self.parts.len())];
        for _ in 0..=random.below(4) {
            let at = random.below(parts.frames.len());
            let (_, like) = &other.frames[random.below(other.frames.len())];
            match random.below(16) {
                0 => drop(parts.frames.remove(at)),
                1 => parts.frames.insert(at, other.frames[random.below(other.frames.len())].clone()),
                2 => parts.frames[at].0 = random.below(5) as u8,
                _ => change(&mut parts.frames[at].1, like, random),
            }
            if parts.frames.is_empty() {
                break;
            }
        }
        let lie = random.once_in(16).then(|| (random.below(parts.frames.len().max(1)), edge(random) as u32));
        parts.file(lie)
    }

    fn read(&mut self, input: &[u8]) -> bool {
        foreign::snapshot(input)
    }

    fn most_bytes(&self, input_bytes: usize) -> usize {
        // The page alone has some hundred kilobytes; a byte of deflate is a thousand at most, ten of them are a node.
        (8 << 20) + 20_000 * input_bytes
    }
}
