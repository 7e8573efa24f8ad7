//! Traces in a file, `run.hwr`: their lines, in gzip members that are written one behind the other, so that `zcat` shows them.
//!
//! A member has the lines of one moment, and is on the disk when the next one begins. A file whose last member is cut, because the machine lost
//! its power say, has all members before it; so has one that is still being written. Plain lines, without compression, are read as well.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::TraceEvent;
use crate::whole_file;

/// How the names of such files end.
pub const EXTENSION: &str = "hwr";
/// How a gzip member begins.
const GZIP: [u8; 2] = [0x1F, 0x8B];
/// What a member, or a plain line, may hold at most.
const LARGEST_RECORD: u64 = 256 << 20;

/// Writes a recording.
#[derive(Debug)]
pub struct Writer {
    file: File,
}

impl Writer {
    /// Begins a recording in a new file, or in the place of an old one.
    ///
    /// # Errors
    ///
    /// The operating system's.
    pub fn create(path: &Path) -> io::Result<Writer> {
        Ok(Writer { file: whole_file::create(path)? })
    }

    /// Adds lines as one record, and returns when it is on the disk.
    ///
    /// # Errors
    ///
    /// The operating system's. What was written before stays readable.
    pub fn write<'a>(&mut self, lines: impl IntoIterator<Item = &'a str>) -> io::Result<()> {
        let mut member = GzEncoder::new(Vec::new(), Compression::fast());
        for line in lines {
            member.write_all(line.as_bytes())?;
            member.write_all(b"\n")?;
        }
        self.file.write_all(&member.finish()?)?;
        match self.file.sync_data() {
            // A pipe or a device has nothing to be synchronised.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synchronised => synchronised,
        }
    }
}

/// Why a recording cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// The operating system's reason.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// What is wrong: a clause.
    #[error("{0}")]
    Malformed(String),
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As it should.
    Whole,
    /// In the middle of its last record, which is left out.
    Cut,
}

/// Whether a file begins as a recording does, packed or not.
pub fn is_recording(begins: &[u8]) -> bool {
    let mut first = [0; 512];
    let length = if begins.starts_with(&GZIP) {
        fill(&mut GzDecoder::new(begins), &mut first)
    } else {
        fill(&mut &begins[..], &mut first)
    };
    TraceEvent::is_begun_by(&String::from_utf8_lossy(&first[..length]))
}

/// As much as there is, up to what has room.
fn fill(from: &mut impl Read, room: &mut [u8]) -> usize {
    let mut length = 0;
    while length < room.len() {
        match from.read(&mut room[length..]) {
            Ok(0) | Err(_) => break,
            Ok(more) => length += more,
        }
    }
    length
}

/// Reads all events of a recording, or of plain lines, one after the other.
///
/// # Errors
///
/// If there is something else in it, or it cannot be read. That it is cut at its end is none.
pub fn read(input: &mut impl BufRead, each: impl FnMut(TraceEvent)) -> Result<End, Unread> {
    let mut lines = Lines { each, number: 0 };
    if input.fill_buf()?.starts_with(&GZIP) { members(input, &mut lines) } else { plain(input, &mut lines) }
}

fn plain(input: &mut impl BufRead, lines: &mut Lines<impl FnMut(TraceEvent)>) -> Result<End, Unread> {
    let mut line = Vec::new();
    loop {
        line.clear();
        input.by_ref().take(LARGEST_RECORD).read_until(b'\n', &mut line)?;
        match line.strip_suffix(b"\n") {
            Some(line) => lines.take(line)?,
            None if line.is_empty() => return Ok(End::Whole),
            // A line without its end is one that was being written.
            None => return Ok(if lines.take(&line).is_ok() { End::Whole } else { End::Cut }),
        }
    }
}

fn members(input: &mut impl BufRead, lines: &mut Lines<impl FnMut(TraceEvent)>) -> Result<End, Unread> {
    while !input.fill_buf()?.is_empty() {
        let mut member = Vec::new();
        let read = GzDecoder::new(&mut *input).take(LARGEST_RECORD + 1).read_to_end(&mut member);
        if member.len() as u64 > LARGEST_RECORD {
            return Err(Unread::Malformed(format!("a record of it has more than {} MiB", LARGEST_RECORD >> 20)));
        }
        match read {
            Ok(_) => member.split(|byte| *byte == b'\n').try_for_each(|line| lines.take(line))?,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(End::Cut),
            Err(error) => {
                let is_damage = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData);
                let what = || Unread::Malformed(format!("behind line {} it is damaged ({error})", lines.number));
                return Err(if is_damage { what() } else { error.into() });
            }
        }
    }
    Ok(End::Whole)
}

struct Lines<F> {
    each: F,
    number: usize,
}

impl<F: FnMut(TraceEvent)> Lines<F> {
    fn take(&mut self, line: &[u8]) -> Result<(), Unread> {
        if line.trim_ascii().is_empty() {
            return Ok(());
        }
        self.number += 1;
        let number = self.number;
        let event = TraceEvent::of_line(&String::from_utf8_lossy(line))
            .map_err(|what| Unread::Malformed(format!("line {number} is no event: {what}")))?;
        (self.each)(event);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use headwater_tests::Scratch;

    use super::super::{Disconnected, Reason, Schema};
    use super::*;

    fn event(pid: u32) -> TraceEvent {
        let reason = Reason::Ended;
        TraceEvent::Disconnected(Disconnected { schema: Schema, time_ms: 1, host: "h".into(), pid, reason })
    }

    /// The pids of what was read, and how it ended.
    fn pids(mut bytes: &[u8]) -> Result<(Vec<u32>, End), String> {
        let mut pids = Vec::new();
        let end = read(&mut bytes, |event| pids.extend(event.process().map(|process| process.pid)));
        end.map(|end| (pids, end)).map_err(|error| error.to_string())
    }

    fn written() -> Vec<u8> {
        let scratch = Scratch::new("recording");
        let file = scratch.file("a.hwr");
        let mut writer = Writer::create(&file).expect("a file");
        writer.write([event(1).line().as_str(), &event(2).line()]).expect("written");
        writer.write([event(3).line().as_str()]).expect("written");
        std::fs::read(&file).expect("there")
    }

    #[test]
    fn what_was_written_is_read_wherever_it_is_cut() {
        let whole = written();
        assert!(is_recording(&whole));
        assert_eq!(pids(&whole), Ok((vec![1, 2, 3], End::Whole)));
        let mut ends = Vec::new();
        for length in 1..whole.len() {
            let (pids, end) = pids(&whole[..length]).expect("a cut recording is one");
            assert!(pids.is_empty() || pids == [1, 2], "at {length}: {pids:?}");
            if end == End::Whole {
                ends.push(pids);
            }
        }
        assert_eq!(ends, [[1, 2]], "it may end behind its first record, and nowhere else");
    }

    #[test]
    fn plain_lines_are_read_too_and_a_last_one_may_be_cut() {
        let text = format!("{}\n\n{}\n", event(1).line(), event(2).line());
        assert!(is_recording(text.as_bytes()));
        assert_eq!(pids(text.as_bytes()), Ok((vec![1, 2], End::Whole)));
        assert_eq!(pids(&text.as_bytes()[..text.len() - 1]), Ok((vec![1, 2], End::Whole)));
        assert_eq!(pids(&text.as_bytes()[..text.len() - 5]), Ok((vec![1], End::Cut)));
        let wrong = text.replacen("}\n", "\n", 1);
        let error = pids(wrong.as_bytes()).expect_err("a line in the middle is not cut");
        assert!(error.starts_with("line 1 is no event: "), "{error}");
    }

    #[test]
    fn damage_is_named_and_is_no_end() {
        let mut bytes = written();
        let middle = bytes.len() / 4;
        bytes[middle] ^= 0x55;
        let error = pids(&bytes).expect_err("damaged");
        assert!(error.starts_with("behind line 0 it is damaged ("), "{error}");
        assert!(!is_recording(b"a;b;c 3\n") && !is_recording(&[0x1F, 0x8B, 8]));
    }
}
