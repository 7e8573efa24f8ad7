//! HotSpot's performance data in this process: numbers and texts that `jcmd PerfCounter.print` shows. There is none with `-XX:-UsePerfData`.

use std::collections::BTreeMap;

use super::vm_structs::{Description, Memory};

/// What performance data begins with.
const MAGIC: [u8; 4] = [0xca, 0xfe, 0xc0, 0xc0];
/// The header: where the counters begin, and how many there are.
const ENTRY_OFFSET: usize = 24;
const ENTRY_COUNT: usize = 28;
const HEADER: usize = 32;
/// A counter: its length and, from its start, where its name and its value are.
const ENTRY_LENGTH: usize = 0;
const NAME_OFFSET: usize = 4;
const VALUE_OFFSET: usize = 16;

/// Where in memory the values of these counters are; those that this JVM has not are missing.
pub(super) fn find<const N: usize>(
    memory: &Memory,
    described: &Description,
    wanted: [&str; N],
) -> Option<[Option<u64>; N]> {
    let (start, data) = all(memory, described)?;
    Some(counters(&data, wanted)?.map(|place| place.map(|place| start + place as u64)))
}

/// Where in memory the values of the counters are whose names begin so, by their names.
pub(super) fn below(memory: &Memory, described: &Description, beginning: &str) -> Option<BTreeMap<String, u64>> {
    let (start, data) = all(memory, described)?;
    let mut found = BTreeMap::new();
    each(&data, |name, place| {
        if name.starts_with(beginning.as_bytes()) {
            found.insert(String::from_utf8_lossy(name).into_owned(), start + place as u64);
        }
    })?;
    Some(found)
}

/// Where the data is, and what.
fn all(memory: &Memory, described: &Description) -> Option<(u64, Vec<u8>)> {
    let start = memory.word(described.field("PerfMemory", "_start")?.address)?;
    let length = memory.word(described.field("PerfMemory", "_top")?.address)?.checked_sub(start)?;
    Some((start, memory.bytes(start, usize::try_from(length).ok()?)?))
}

/// Where the values of the counters are.
fn counters<const N: usize>(data: &[u8], wanted: [&str; N]) -> Option<[Option<usize>; N]> {
    let mut found = [None; N];
    each(data, |name, place| {
        if let Some(index) = wanted.iter().position(|wanted| wanted.as_bytes() == name) {
            found[index] = Some(place);
        }
    })?;
    Some(found)
}

/// Each counter's name, and where its value is; `None` if they are garbled.
fn each(data: &[u8], mut counter: impl FnMut(&[u8], usize)) -> Option<()> {
    let number = |at: usize| Some(u32::from_ne_bytes(data.get(at..at + 4)?.try_into().ok()?) as usize);
    if data.len() < HEADER || data[..4] != MAGIC {
        return None;
    }
    let mut entry = number(ENTRY_OFFSET)?;
    for _ in 0..number(ENTRY_COUNT)? {
        // One without a length is garbled, and would be the next one too.
        let length = number(entry + ENTRY_LENGTH).filter(|length| *length > 0)?;
        let name = data.get(entry..entry.checked_add(length)?)?.get(number(entry + NAME_OFFSET)?..)?;
        let name = name.split(|byte| *byte == 0).next()?;
        counter(name, entry + number(entry + VALUE_OFFSET)?);
        entry += length;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: [&str; 2] = ["sun.rt.safepointTime", "sun.os.hrt.frequency"];

    /// Performance data with these counters, each with its place in it.
    fn data(names: &[&str]) -> Vec<u8> {
        let mut data = MAGIC.to_vec();
        data.resize(HEADER, 0);
        data[ENTRY_OFFSET..ENTRY_OFFSET + 4].copy_from_slice(&(HEADER as u32).to_ne_bytes());
        data[ENTRY_COUNT..ENTRY_COUNT + 4].copy_from_slice(&(names.len() as u32).to_ne_bytes());
        for name in names {
            let mut entry = vec![0; 20];
            entry.extend_from_slice(name.as_bytes());
            entry.resize(64, 0);
            entry[ENTRY_LENGTH..ENTRY_LENGTH + 4].copy_from_slice(&64_u32.to_ne_bytes());
            entry[NAME_OFFSET..NAME_OFFSET + 4].copy_from_slice(&20_u32.to_ne_bytes());
            entry[VALUE_OFFSET..VALUE_OFFSET + 4].copy_from_slice(&56_u32.to_ne_bytes());
            data.extend(entry);
        }
        data
    }

    #[test]
    fn counters_are_found_by_name() {
        let all = data(&["sun.os.hrt.frequency", "sun.rt.safepointTimes", "sun.rt.safepointTime"]);
        assert_eq!(counters(&all, WANTED), Some([Some(HEADER + 2 * 64 + 56), Some(HEADER + 56)]));
        assert_eq!(counters(&data(&["sun.rt.safepoints"]), WANTED), Some([None, None]));
    }

    #[test]
    fn garbled_data_has_no_counters() {
        let whole = data(&["sun.os.hrt.frequency", "sun.rt.safepointTime"]);
        for length in 0..whole.len() {
            assert_eq!(counters(&whole[..length], WANTED), None, "cut at {length}");
        }
        let mut endless = whole.clone();
        endless[ENTRY_COUNT..HEADER].copy_from_slice(&u32::MAX.to_ne_bytes());
        endless[HEADER..HEADER + 4].copy_from_slice(&0_u32.to_ne_bytes());
        assert_eq!(counters(&endless, WANTED), None);
        for at in 0..whole.len() {
            let mut garbled = whole.clone();
            garbled[at] = 0xff;
            // Whatever it finds, it does not look beyond.
            let _ = counters(&garbled, WANTED);
        }
    }
}
