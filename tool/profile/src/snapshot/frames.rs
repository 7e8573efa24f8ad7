//! The file's outer form: magic, version, and frames that are compressed and checked.

use std::io::{self, Read, Write};

use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::error::Damage;
use super::{MAGIC, VERSION};

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Tag {
    Facts = 1,
    Nodes = 2,
    End = 3,
}

impl Tag {
    /// No frame of the kind is larger, uncompressed: a damaged length must not make us ask for all memory.
    fn limit(self) -> usize {
        match self {
            Tag::Facts => 1 << 30,
            Tag::Nodes => super::columns::MAX_NODE_BYTES * super::BLOCK,
            Tag::End => 0,
        }
    }
}

const HEAD_BYTES: usize = 9;
const CRC_BYTES: usize = 4;

pub(super) struct FrameWriter<'a, W> {
    out: &'a mut W,
    crc: crc32fast::Hasher,
    /// Of nodes: they are many.
    fast: Compress,
    /// Of facts: they are names, for the most part.
    thorough: Compress,
    packed: Vec<u8>,
}

impl<'a, W: Write> FrameWriter<'a, W> {
    /// Writes what comes before the frames.
    pub(super) fn start(out: &'a mut W) -> io::Result<FrameWriter<'a, W>> {
        let writer = env!("CARGO_PKG_VERSION").as_bytes();
        let mut head = MAGIC.to_vec();
        head.extend(VERSION.to_le_bytes());
        head.push(u8::try_from(writer.len()).map_err(io::Error::other)?);
        head.extend(writer);
        let mut crc = crc32fast::Hasher::new();
        crc.update(&head);
        out.write_all(&head)?;
        let [fast, thorough] = [Compression::fast(), Compression::default()].map(|level| Compress::new(level, false));
        Ok(FrameWriter { out, crc, fast, thorough, packed: Vec::new() })
    }

    pub(super) fn write(&mut self, tag: Tag, content: &[u8]) -> io::Result<()> {
        if content.len() > tag.limit() {
            return Err(io::Error::other(format!("{} bytes are too many for a snapshot's frame", content.len())));
        }
        let compress = if tag == Tag::Facts { &mut self.thorough } else { &mut self.fast };
        compress.reset();
        self.packed.clear();
        self.packed.resize(HEAD_BYTES, 0);
        // Deflate stores what it cannot compress: five bytes a block of at most 65,535, and some at the end.
        self.packed.reserve(content.len() + content.len() / 1_000 + 128);
        let start = compress.total_in();
        loop {
            let taken = (compress.total_in() - start) as usize;
            let status = compress
                .compress_vec(&content[taken..], &mut self.packed, FlushCompress::Finish)
                .map_err(io::Error::other)?;
            if status == Status::StreamEnd {
                break;
            }
            self.packed.reserve(self.packed.len());
        }
        let sizes = [content.len(), self.packed.len() - HEAD_BYTES];
        self.packed[0] = tag as u8;
        for (place, size) in self.packed[1..HEAD_BYTES].chunks_exact_mut(4).zip(sizes) {
            place.copy_from_slice(&u32::try_from(size).map_err(io::Error::other)?.to_le_bytes());
        }
        self.crc.update(&self.packed);
        self.out.write_all(&self.packed)?;
        self.out.write_all(&self.crc.clone().finalize().to_le_bytes())
    }
}

pub(super) struct FrameReader<'a, R> {
    input: &'a mut R,
    crc: crc32fast::Hasher,
    /// Bytes read so far.
    at: u64,
    /// The version that wrote the file.
    writer: String,
    decompress: Decompress,
    packed: Vec<u8>,
    content: Vec<u8>,
}

impl<'a, R: Read> FrameReader<'a, R> {
    /// Reads what comes before the frames.
    pub(super) fn start(input: &'a mut R) -> Result<FrameReader<'a, R>, Damage> {
        let mut reader = FrameReader {
            input,
            crc: crc32fast::Hasher::new(),
            at: 0,
            writer: String::new(),
            decompress: Decompress::new(false),
            packed: Vec::new(),
            content: Vec::new(),
        };
        reader.fill(MAGIC.len(), 0).or_else(|damage| match damage {
            // Too short to be of any kind.
            Damage::Truncated { .. } => Ok(()),
            other => Err(other),
        })?;
        if reader.packed.len() < MAGIC.len() && MAGIC.starts_with(&reader.packed) && !reader.packed.is_empty() {
            return Err(Damage::Truncated { at: reader.at });
        }
        if reader.packed != MAGIC {
            if reader.packed.starts_with(&MAGIC[..4]) {
                return Err(reader.damaged("line feeds have been changed, as in a transfer as text"));
            }
            return Err(Damage::Foreign { begins: reader.packed });
        }
        reader.crc.update(&MAGIC);
        reader.fill(3, 0)?;
        reader.crc.update(&reader.packed);
        let version = u16::from_le_bytes([reader.packed[0], reader.packed[1]]);
        reader.fill(usize::from(reader.packed[2]), 0)?;
        reader.crc.update(&reader.packed);
        reader.writer = String::from_utf8_lossy(&reader.packed).into_owned();
        match version {
            1..=VERSION => Ok(reader),
            0 => Err(reader.damaged("the version is zero")),
            version => Err(Damage::Newer { version, writer: reader.writer }),
        }
    }

    /// The content of the next frame, which must be of this kind.
    pub(super) fn read(&mut self, tag: Tag) -> Result<&[u8], Damage> {
        self.fill(HEAD_BYTES, 0)?;
        let [found, a, b, c, d, e, f, g, h] = self.packed[..] else { return Err(self.damaged("a frame has no head")) };
        let [size, packed] = [[a, b, c, d], [e, f, g, h]].map(|bytes| u32::from_le_bytes(bytes) as usize);
        if found != tag as u8 {
            return Err(self.damaged("a part is not the one that must be here"));
        }
        if size > tag.limit() || packed > size + size / 1_000 + 128 {
            return Err(self.damaged("a part has an impossible size"));
        }
        self.fill(packed, HEAD_BYTES)?;
        self.crc.update(&self.packed);
        let mut crc = [0; CRC_BYTES];
        self.read_exact(&mut crc)?;
        if self.crc.clone().finalize().to_le_bytes() != crc {
            return Err(self.damaged("its checksum is wrong"));
        }
        self.decompress.reset(false);
        self.content.clear();
        // One more than needed: the stream's end is only seen with room left.
        self.content.reserve(size + 1);
        let unpacked =
            self.decompress.decompress_vec(&self.packed[HEAD_BYTES..], &mut self.content, FlushDecompress::Finish);
        let whole = unpacked.is_ok_and(|status| status == Status::StreamEnd) && self.content.len() == size;
        if !whole {
            return Err(self.damaged("a part cannot be unpacked"));
        }
        Ok(&self.content)
    }

    /// There must be no more.
    pub(super) fn end(&mut self) -> Result<(), Damage> {
        let mut byte = [0];
        match self.input.read(&mut byte) {
            Ok(0) => Ok(()),
            Ok(_) => Err(self.damaged("something follows its end")),
            Err(error) => Err(error.into()),
        }
    }

    /// What was read last is as it was written, and makes no sense.
    pub(super) fn misunderstood(&self, what: &str) -> Damage {
        Damage::Misunderstood { writer: self.writer.clone(), what: what.to_owned() }
    }

    /// What was read last is not as it was written.
    fn damaged(&self, what: &str) -> Damage {
        Damage::Changed { at: self.at, what: what.to_owned() }
    }

    /// Reads `bytes` more into `packed`, behind its first `keep`.
    fn fill(&mut self, bytes: usize, keep: usize) -> Result<(), Damage> {
        self.packed.truncate(keep);
        let read = (&mut *self.input).take(bytes as u64).read_to_end(&mut self.packed)?;
        self.at += read as u64;
        if read < bytes { Err(Damage::Truncated { at: self.at }) } else { Ok(()) }
    }

    fn read_exact(&mut self, bytes: &mut [u8; CRC_BYTES]) -> Result<(), Damage> {
        let mut read = Vec::with_capacity(CRC_BYTES);
        (&mut *self.input).take(CRC_BYTES as u64).read_to_end(&mut read)?;
        self.at += read.len() as u64;
        *bytes = read.try_into().map_err(|_| Damage::Truncated { at: self.at })?;
        Ok(())
    }
}
