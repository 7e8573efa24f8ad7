//! Class files changed at random, where it hurts: in the constant pool, in code, in stack maps, in lengths.

use std::ops::Range;

use crate::random::Random;

/// A class file, and where its parts are.
pub struct Sample {
    bytes: Vec<u8>,
    /// What is worth changing; some of it within some other.
    areas: Vec<Range<usize>>,
    code: Vec<Range<usize>>,
    /// Attributes, each from its length field on.
    attributes: Vec<Range<usize>>,
}

impl Sample {
    /// Takes a sound class file.
    pub fn new(bytes: Vec<u8>) -> Sample {
        let mut sample = Sample { bytes: Vec::new(), areas: Vec::new(), code: Vec::new(), attributes: Vec::new() };
        let mut walk = Walk { bytes: &bytes, at: 8 };
        let pool = walk.pool();
        sample.areas.push(8..walk.at);
        walk.at += 6;
        walk.at += 2 * walk.u2();
        for _ in 0..2 {
            for _ in 0..walk.u2() {
                walk.at += 6;
                walk.attributes(&pool, &mut sample);
            }
        }
        walk.attributes(&pool, &mut sample);
        assert_eq!(walk.at, bytes.len());
        sample.areas.retain(|area| !area.is_empty());
        sample.bytes = bytes;
        sample
    }

    /// The class file with a few changes.
    pub fn changed(&self, other: &Sample, random: &mut Random) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        for _ in 0..=random.below(3) {
            if !bytes.is_empty() {
                self.change(&mut bytes, other, random);
            }
        }
        bytes
    }

    fn place(&self, length: usize, random: &mut Random) -> usize {
        let area = &self.areas[random.below(self.areas.len())];
        let place = if random.once_in(8) { random.below(length) } else { area.start + random.below(area.len()) };
        place.min(length - 1)
    }

    fn change(&self, bytes: &mut Vec<u8>, other: &Sample, random: &mut Random) {
        const EDGES: [u32; 12] = [0, 1, 2, 0x7f, 0x80, 0xff, 0x7fff, 0x8000, 0xfffe, 0xffff, 0x7fff_ffff, 0xffff_ffff];
        /// Switches, wide, jsr, ret, branches, returns, calls.
        const OPCODES: [u8; 16] =
            [0xaa, 0xab, 0xc4, 0xa8, 0xa9, 0xc9, 0xc8, 0xa7, 0x99, 0xc7, 0xb1, 0xac, 0xbb, 0xb7, 0xbf, 0x4b];
        let at = self.place(bytes.len(), random);
        let rest = bytes.len() - at;
        match random.below(13) {
            0 | 1 => bytes[at] ^= 1 << random.below(8),
            2 => bytes[at] = random.below(256) as u8,
            3 => bytes[at] = random.choose(&EDGES) as u8,
            4 | 5 if rest >= 2 => {
                let edge = random.choose(&EDGES) as u16;
                let old = u16::from_be_bytes([bytes[at], bytes[at + 1]]);
                let near = old.wrapping_add(random.below(9) as u16).wrapping_sub(4);
                let value = if random.once_in(2) { edge } else { near };
                bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
            }
            6 if rest >= 4 => {
                let edge = random.choose(&EDGES).wrapping_sub(random.below(3) as u32);
                bytes[at..at + 4].copy_from_slice(&edge.to_be_bytes());
            }
            7 => self.change_length(bytes, random),
            8 => {
                // A piece of another class.
                let from = random.below(other.bytes.len());
                let length = random.below(64).min(other.bytes.len() - from).min(rest);
                bytes[at..at + length].copy_from_slice(&other.bytes[from..from + length]);
            }
            9 if random.once_in(4) => bytes.truncate(at),
            9 => drop(bytes.drain(at..at + random.below(8).min(rest))),
            10 => {
                // A piece of itself.
                let from = self.place(bytes.len(), random);
                let piece = bytes[from..from + random.below(32).min(bytes.len() - from)].to_vec();
                bytes.splice(at..at, piece);
            }
            11 => self.swap(bytes, random),
            _ if !self.code.is_empty() => {
                let code = &self.code[random.below(self.code.len())];
                let at = code.start + random.below(code.len());
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.choose(&OPCODES);
                }
            }
            _ => {}
        }
    }

    /// An attribute that says it is longer or shorter, and sometimes is.
    fn change_length(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let attribute = &self.attributes[random.below(self.attributes.len())];
        let Some(field) = bytes.get_mut(attribute.start..attribute.start + 4) else { return };
        let length = u32::from_be_bytes([field[0], field[1], field[2], field[3]]);
        let growth = random.below(9) as u32;
        field.copy_from_slice(&length.wrapping_add(growth).wrapping_sub(4).to_be_bytes());
        if growth > 4 && random.once_in(2) && attribute.end <= bytes.len() {
            bytes.splice(attribute.end..attribute.end, vec![0; growth as usize - 4]);
        }
    }

    /// Two attributes' contents, with their lengths: all else stays sound.
    fn swap(&self, bytes: &mut Vec<u8>, random: &mut Random) {
        let one = &self.attributes[random.below(self.attributes.len())];
        let two = &self.attributes[random.below(self.attributes.len())];
        let (one, two) = if one.start < two.start { (one, two) } else { (two, one) };
        if one.end > two.start || bytes.len() < two.end {
            return;
        }
        let swapped = [&bytes[two.clone()], &bytes[one.end..two.start], &bytes[one.clone()]].concat();
        bytes.splice(one.start..two.end, swapped);
    }
}

struct Walk<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Walk<'b> {
    fn u2(&mut self) -> usize {
        self.at += 2;
        usize::from(u16::from_be_bytes([self.bytes[self.at - 2], self.bytes[self.at - 1]]))
    }

    fn u4(&mut self) -> usize {
        self.u2() << 16 | self.u2()
    }

    /// The texts of its Utf8 entries.
    fn pool(&mut self) -> Vec<&'b [u8]> {
        let count = self.u2();
        let mut texts = vec![&[][..]; count];
        let mut index = 1;
        while index < count {
            self.at += 1;
            match self.bytes[self.at - 1] {
                1 => {
                    let length = self.u2();
                    texts[index] = &self.bytes[self.at..self.at + length];
                    self.at += length;
                }
                5 | 6 => {
                    self.at += 8;
                    index += 1;
                }
                7 | 8 | 16 | 19 | 20 => self.at += 2,
                15 => self.at += 3,
                _ => self.at += 4,
            }
            index += 1;
        }
        texts
    }

    fn attributes(&mut self, pool: &[&[u8]], sample: &mut Sample) {
        for _ in 0..self.u2() {
            let name = self.u2();
            let start = self.at;
            let length = self.u4();
            let end = self.at + length;
            sample.attributes.push(start..end);
            sample.areas.push(start..end);
            if pool[name] == b"Code" {
                sample.areas.push(self.at..self.at + 8);
                self.at += 4;
                let length = self.u4();
                sample.code.push(self.at..self.at + length);
                sample.areas.push(self.at..self.at + length);
                self.at += length;
                let exceptions = self.at;
                self.at += 8 * self.u2();
                sample.areas.push(exceptions..self.at);
                self.attributes(pool, sample);
            }
            self.at = end;
        }
    }
}
