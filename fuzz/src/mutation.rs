//! Bytes changed at random, where it hurts in most formats: in single bits, in numbers, in lengths, in order.

use headwater_tests::random::Random;

/// No input grows beyond it.
const MOST_BYTES: usize = 1 << 20;
/// Numbers at whose edges mistakes are made.
const EDGES: [u64; 20] = [
    0,
    1,
    2,
    0x7F,
    0x80,
    0xFF,
    0x100,
    0x7FFF,
    0x8000,
    0xFFFF,
    0x1_0000,
    0xF_FFFF,
    0x7FFF_FFFF,
    0x8000_0000,
    0xFFFF_FFFF,
    0x1_0000_0000,
    0x7FFF_FFFF_FFFF_FFFF,
    0x8000_0000_0000_0000,
    0xFFFF_FFFF_FFFF_FFFE,
    0xFFFF_FFFF_FFFF_FFFF,
];

/// A number at an edge, or beside it.
pub(crate) fn edge(random: &mut Random) -> u64 {
    random.choose(&EDGES).wrapping_add(random.below(3) as u64).wrapping_sub(1)
}

/// One of the samples, with a few changes; sometimes with none.
pub(crate) fn changed(samples: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut bytes = samples[random.below(samples.len())].clone();
    let other = &samples[random.below(samples.len())];
    for _ in 0..random.below(5) {
        change(&mut bytes, other, random);
        bytes.truncate(MOST_BYTES);
    }
    bytes
}

/// Changes one thing.
pub(crate) fn change(bytes: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    if bytes.is_empty() {
        bytes.extend((0..1 + random.below(16)).map(|_| random.below(256) as u8));
        return;
    }
    let at = random.below(bytes.len());
    let rest = bytes.len() - at;
    match random.below(14) {
        0 | 1 => bytes[at] ^= 1 << random.below(8),
        2 => bytes[at] = random.below(256) as u8,
        3 => bytes[at] = edge(random) as u8,
        4 => bytes[at] = bytes[at].wrapping_add(random.below(9) as u8).wrapping_sub(4),
        5 | 6 => {
            let width = random.choose(&[2, 4, 8]);
            let value = edge(random).to_le_bytes();
            let mut value = value[..width].to_vec();
            if random.once_in(2) {
                value.reverse();
            }
            put(bytes, at, &value, random);
        }
        7 => {
            let value = varint(edge(random));
            put(bytes, at, &value, random);
        }
        8 if random.once_in(4) => bytes.truncate(at),
        8 => drop(bytes.drain(at..at + random.below(16).min(rest))),
        9 => {
            // A piece of itself, once or many times.
            let from = random.below(bytes.len());
            let piece = bytes[from..from + random.below(64).min(bytes.len() - from)].to_vec();
            let times = if random.once_in(8) { random.below(200) } else { 1 };
            bytes.splice(at..at, piece.repeat(times));
        }
        10 if !other.is_empty() => {
            // A piece of another, instead or in between.
            let from = random.below(other.len());
            let piece = &other[from..from + random.below(128).min(other.len() - from)];
            let over = if random.once_in(2) { piece.len().min(rest) } else { 0 };
            bytes.splice(at..at + over, piece.iter().copied());
        }
        11 => bytes[at..at + random.below(32).min(rest)].fill(random.choose(&[0, 0xFF, b' ', b'\n'])),
        12 => {
            let to = random.below(bytes.len());
            bytes.swap(at, to);
        }
        _ => drop(bytes.splice(at..at, (0..random.below(8)).map(|_| edge(random) as u8).collect::<Vec<u8>>())),
    }
}

/// Instead of what is there, or in between.
fn put(bytes: &mut Vec<u8>, at: usize, value: &[u8], random: &mut Random) {
    let over = if random.once_in(4) { 0 } else { value.len().min(bytes.len() - at) };
    bytes.splice(at..at + over, value.iter().copied());
}

/// As LEB128.
fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_changes_the_same() {
        let samples = [b"one sample".to_vec(), vec![7; 100]];
        let all = |seed| {
            let mut random = Random(seed);
            (0..500).map(|_| changed(&samples, &mut random)).collect::<Vec<_>>()
        };
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
        assert!(all(3).iter().any(|bytes| *bytes == samples[0]), "some are left as they are");
    }
}
