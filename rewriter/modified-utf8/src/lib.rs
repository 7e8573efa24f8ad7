//! Modified UTF-8 (JVMS 4.4.7), in which class files, JNI and JVMTI have names, as Rust's strings and back, byte for byte.
//!
//! It has U+0000 in two bytes, characters beyond U+FFFF as two surrogates of three bytes each, and surrogates that stand alone. Strings of
//! Rust's cannot have these: a lone surrogate is a character of a private range here, and so is each byte that is part of nothing. A
//! character that is of that range itself is two lone surrogates. So any bytes make a string, and this string makes these bytes.
#![forbid(unsafe_code)]

use std::borrow::Cow;

/// What stands for the lone surrogate U+D800; the others follow.
const LONE: u32 = 0x10_d800;
/// What stands for a byte 0 that is part of nothing; the others follow.
const BYTE: u32 = 0x10_e000;
/// The last of these.
const LAST: u32 = BYTE + 0xff;

/// Whether a character in UTF-8's own four bytes is one, or four bytes that are part of nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FourBytes {
    Character,
    Nothing,
}

/// A name as a string; [`encode`] makes the same bytes of it. Borrowed where both are spelled alike.
pub fn decode(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if bytes.iter().all(|byte| matches!(byte, 0x01..0xf0)) => Cow::Borrowed(text),
        _ => Cow::Owned(decoded(bytes, FourBytes::Nothing)),
    }
}

/// A text with names in it, parts of which may be in UTF-8 itself.
pub fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => Cow::Owned(decoded(bytes, FourBytes::Character)),
    }
}

/// A string of Java's, by its UTF-16 units, as [`decode`] has it.
pub fn decode_units(units: &[u16]) -> String {
    let mut text = String::with_capacity(units.len());
    for unit in char::decode_utf16(units.iter().copied()) {
        match unit {
            Ok(character) => push(&mut text, character),
            Err(lone) => text.push(lone_surrogate(lone.unpaired_surrogate())),
        }
    }
    text
}

/// The bytes of a name.
pub fn encode(text: &str) -> Cow<'_, [u8]> {
    if text.bytes().all(|byte| matches!(byte, 0x01..0xf0)) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut bytes = Vec::with_capacity(text.len() + 2);
    for character in text.chars() {
        match u32::from(character) {
            0 => bytes.extend([0xc0, 0x80]),
            LONE..BYTE => bytes.extend(unit_bytes(character as u16)),
            code @ BYTE..=LAST => bytes.push((code - BYTE) as u8),
            0x1_0000.. => {
                character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| bytes.extend(unit_bytes(*unit)));
            }
            _ => bytes.extend(character.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    Cow::Owned(bytes)
}

/// The surrogate that a character stands for.
pub fn lone(character: char) -> Option<u16> {
    (LONE..BYTE).contains(&u32::from(character)).then_some(character as u16)
}

fn decoded(mut bytes: &[u8], four_bytes: FourBytes) -> String {
    let mut text = String::with_capacity(bytes.len());
    while let [first, rest @ ..] = bytes {
        if let Some((character, length)) = in_four(bytes).filter(|_| four_bytes == FourBytes::Character) {
            push(&mut text, character);
            bytes = &bytes[length..];
            continue;
        }
        let Some((unit, length)) = unit(bytes) else {
            text.extend(char::from_u32(BYTE + u32::from(*first)));
            bytes = rest;
            continue;
        };
        bytes = &bytes[length..];
        let pair = unit_of_pair(unit, bytes);
        match pair.and_then(|(low, _)| char::decode_utf16([unit, low]).next()?.ok()) {
            Some(character) => {
                push(&mut text, character);
                bytes = &bytes[pair.map_or(0, |(_, length)| length)..];
            }
            None => match char::from_u32(u32::from(unit)) {
                Some(character) => text.push(character),
                None => text.push(lone_surrogate(unit)),
            },
        }
    }
    text
}

fn push(text: &mut String, character: char) {
    if (LONE..=LAST).contains(&u32::from(character)) {
        text.extend(character.encode_utf16(&mut [0; 2]).iter().map(|unit| lone_surrogate(*unit)));
    } else {
        text.push(character);
    }
}

fn lone_surrogate(unit: u16) -> char {
    // All of plane 16 are characters.
    char::from_u32(0x10_0000 | u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// A unit of a surrogate pair whose first is given, if it is such.
fn unit_of_pair(high: u16, bytes: &[u8]) -> Option<(u16, usize)> {
    unit(bytes).filter(|(low, _)| (0xd800..0xdc00).contains(&high) && (0xdc00..0xe000).contains(low))
}

/// The UTF-16 unit in front, in its shortest form, and how many bytes it takes.
fn unit(bytes: &[u8]) -> Option<(u16, usize)> {
    let low = |byte: u8| (byte & 0xc0 == 0x80).then_some(u16::from(byte & 0x3f));
    match *bytes {
        [first @ 0x01..=0x7f, ..] => Some((u16::from(first), 1)),
        [0xc0, 0x80, ..] => Some((0, 2)),
        [first @ 0xc2..=0xdf, second, ..] => Some((u16::from(first & 0x1f) << 6 | low(second)?, 2)),
        [first @ 0xe0..=0xef, second, third, ..] => {
            let unit = u16::from(first & 0x0f) << 12 | low(second)? << 6 | low(third)?;
            (unit >= 0x800).then_some((unit, 3))
        }
        _ => None,
    }
}

/// The character of four bytes in front, in UTF-8.
fn in_four(bytes: &[u8]) -> Option<(char, usize)> {
    let four = bytes.first_chunk::<4>().filter(|four| four[0] >= 0xf0)?;
    Some((std::str::from_utf8(four).ok()?.chars().next()?, four.len()))
}

/// The three bytes of a surrogate.
fn unit_bytes(unit: u16) -> [u8; 3] {
    [0xe0 | (unit >> 12) as u8, 0x80 | (unit >> 6 & 0x3f) as u8, 0x80 | (unit & 0x3f) as u8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_java_shows() {
        for (bytes, text) in [
            (&b"a/b/C$1"[..], "a/b/C$1"),
            ("商店é".as_bytes(), "商店é"),
            (b"a\xc0\x80b", "a\0b"),
            (b"\xed\xa0\xb5\xed\xb2\xb3", "𝒳"),
            (b"[L\xed\xa0\xb5\xed\xb2\xb3;", "[L𝒳;"),
        ] {
            assert_eq!(decode(bytes), text);
            assert_eq!(*encode(text), *bytes);
        }
    }

    #[test]
    fn lone_surrogates_are_told_apart() {
        let [high, low] = [decode(b"\xed\xa0\xb5"), decode(b"\xed\xb2\xb3")];
        let of = |text: &str| text.chars().map(lone).collect::<Vec<_>>();
        assert_eq!((of(&high), of(&low)), (vec![Some(0xd835)], vec![Some(0xdcb3)]));
        assert_eq!(decode_units(&[0xdcb3, 0xd835]), format!("{low}{high}"));
        // Together they are no pair.
        assert_eq!(*encode(&format!("{low}{high}")), *b"\xed\xb2\xb3\xed\xa0\xb5");
    }

    #[test]
    fn every_code_unit_and_every_pair_of_bytes_comes_back() {
        for unit in 0..=u16::MAX {
            let text = decode_units(&[unit]);
            assert_eq!(decode(&encode(&text)), text, "{unit:x}");
            let bytes = unit.to_be_bytes();
            assert_eq!(*encode(&decode(&bytes)), bytes);
        }
    }

    #[test]
    fn any_bytes_come_back() {
        // Pieces of one, two, three and four bytes, right and wrong; what stands for others, as a pair.
        const PIECES: [&[u8]; 14] = [
            b"a",
            b"\0",
            b"\xc0\x80",
            b"\xc1\x81",
            b"\xc3\xa9",
            b"\xe0\x80\x81",
            b"\xe5\x95\x86",
            b"\xed\xa0\xb5",
            b"\xed\xb2\xb3",
            b"\xed\xaf\xb6\xed\xb0\x80",
            b"\xf0\x9d\x92\xb3",
            b"\x80",
            b"\xe5\x95",
            b"\xff",
        ];
        let of = |number: usize| -> Vec<u8> {
            (0..4).flat_map(|place| PIECES[number / PIECES.len().pow(place) % PIECES.len()]).copied().collect()
        };
        let mut seen = std::collections::HashMap::new();
        for bytes in (0..PIECES.len().pow(4)).map(of) {
            let text = decode(&bytes).into_owned();
            assert_eq!(*encode(&text), bytes, "{text:?}");
            let before = seen.insert(text, bytes.clone()).unwrap_or_else(|| bytes.clone());
            assert_eq!(before, bytes, "two names are one");
        }
    }

    #[test]
    fn texts_may_have_both_spellings() {
        assert_eq!(decode_text("𝒳".as_bytes()), "𝒳");
        assert_eq!(decode_text(b"\xf0\x9d\x92\xb3 is \xed\xa0\xb5\xed\xb2\xb3"), "𝒳 is 𝒳");
        assert_eq!(decode(b"\xf0\x9d\x92\xb3").chars().count(), 4, "no name's spelling");
    }

    #[test]
    fn characters_of_the_private_range_are_two_units_each() {
        let text = decode_units(&[0xdbf6, 0xdc00]);
        assert_eq!(text.chars().map(lone).collect::<Vec<_>>(), [Some(0xdbf6), Some(0xdc00)]);
        assert_eq!(decode(&encode(&text)), text);
    }
}
