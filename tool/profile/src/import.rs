//! Profiles of other tools, and stack traces of many JVMs: collapsed stacks, pprof, speedscope's JSON and recordings of the JDK's flight recorder become a [`Profile`], with the views, exports, comparisons and the
//! page of one. A file is known by what is in it, not by its name.
//!
//! What such a file counts are the profile's metrics; of calls, times and a JVM it knows nothing, unless that is what it counts.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::GzDecoder;

use crate::build::Builder;
use crate::profile::Profile;
use crate::snapshot::{self, SnapshotError};
use crate::traces::recording::{self as traces, End, Unread};
use crate::traces::seen::Seen;
use names::{apart, method_names};

mod collapsed;
mod names;
mod pprof;
pub mod recording;
mod speedscope;

/// No file of another tool is larger, unpacked: what it says must not make us ask for all memory.
const LARGEST: u64 = 1 << 30;
/// So much of a file's beginning is looked at.
const BEGINNING: usize = 1 << 16;

/// Why there is no profile in a file.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// It is none of another tool's.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// It cannot be read.
    #[error("cannot read {name}: {error}")]
    Read {
        /// The file.
        name: String,
        /// The operating system's reason.
        error: io::Error,
    },
    /// It is another tool's, and makes no sense.
    #[error("{name} looks like {format}, but {what}. Write it again with the tool that made it")]
    Malformed {
        /// The file.
        name: String,
        /// What it seems to be.
        format: &'static str,
        /// What is wrong: a clause.
        what: String,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Collapsed,
    Pprof,
    Recording,
    Speedscope,
}

impl Format {
    fn name(self) -> &'static str {
        match self {
            Format::Collapsed => "collapsed stacks",
            Format::Pprof => "pprof",
            Format::Recording => "a recording of the flight recorder",
            Format::Speedscope => "speedscope's JSON",
        }
    }

    /// By how a file begins, unpacked, be that all of it or not; `None` if it is no other tool's that can be read.
    fn of(begins: &[u8]) -> Option<Format> {
        // A message's first field: the first kind of samples, which begins with a number itself.
        if let [0x0A, length @ 1..=16, 0x08 | 0x10, ..] = begins
            && begins.len() > usize::from(*length)
        {
            return Some(Format::Pprof);
        }
        if begins.starts_with(b"FLR\0") {
            return Some(Format::Recording);
        }
        let text = match str::from_utf8(begins) {
            Ok(text) => text,
            // A character may be cut at the end.
            Err(error) if error.error_len().is_none() => str::from_utf8(&begins[..error.valid_up_to()]).ok()?,
            Err(_) => return None,
        };
        if text.trim_start().starts_with('{') {
            return text.contains("speedscope").then_some(Format::Speedscope);
        }
        collapsed::begins_with(text, begins.len() >= BEGINNING).then_some(Format::Collapsed)
    }
}

/// Reads a profile from a file, a snapshot or another tool's; `-` is standard input.
///
/// # Errors
///
/// If there is none in it.
pub fn load(path: &Path) -> Result<Profile, ImportError> {
    if path == Path::new("-") {
        return read("standard input", &mut BufReader::with_capacity(BEGINNING, io::stdin().lock()));
    }
    let name = path.display().to_string();
    // What is no file is the snapshot's to complain of.
    match File::open(path) {
        Ok(file) if file.metadata().is_ok_and(|metadata| !metadata.is_dir()) => {
            read(&name, &mut BufReader::with_capacity(BEGINNING, file))
        }
        _ => Ok(snapshot::load(path)?),
    }
}

/// Reads a profile of this name.
///
/// # Errors
///
/// If there is none.
pub fn read(name: &str, input: &mut impl BufRead) -> Result<Profile, ImportError> {
    let failed = |error: io::Error| ImportError::Read { name: name.to_owned(), error };
    // A pipe gives a part of that at a time.
    let mut begins = Vec::new();
    input.by_ref().take(BEGINNING as u64).read_to_end(&mut begins).map_err(failed)?;
    let mut input = Cursor::new(&begins).chain(input);
    if traces::is_recording(&begins) {
        return read_traces(name, &mut input);
    }
    if begins.starts_with(&[0x1F, 0x8B]) {
        let mut unpacked = Vec::new();
        let read = GzDecoder::new(input).take(LARGEST + 1).read_to_end(&mut unpacked);
        let malformed = |what: String| ImportError::Malformed { name: name.to_owned(), format: "a gzip file", what };
        read.map_err(|error| malformed(format!("it cannot be unpacked ({error})")))?;
        let Some(format) = Format::of(&unpacked[..unpacked.len().min(BEGINNING)]) else {
            return Err(malformed("what is in it is no profile that can be read".to_owned()));
        };
        return parse(name, format, &unpacked);
    }
    let Some(format) = Format::of(&begins) else {
        return snapshot::read(&mut input).map_err(|damage| SnapshotError::unreadable(name, damage).into());
    };
    let mut bytes = Vec::new();
    input.take(LARGEST + 1).read_to_end(&mut bytes).map_err(failed)?;
    parse(name, format, &bytes)
}

/// Stack traces of many JVMs, one after the other: they may be more than there is memory for.
fn read_traces(name: &str, input: &mut impl BufRead) -> Result<Profile, ImportError> {
    let mut seen = Seen::default();
    let end = traces::read(input, |event| seen.add(&event)).map_err(|unread| match unread {
        Unread::Io(error) => ImportError::Read { name: name.to_owned(), error },
        Unread::Malformed(what) => {
            ImportError::Malformed { name: name.to_owned(), format: "stack traces of `headwater watch`", what }
        }
    })?;
    let mut profile = seen.finish(&file_name(name));
    if end == End::Cut {
        profile.notes.push("the last record is cut, and left out: it was being written".to_owned());
    }
    Ok(profile)
}

fn file_name(name: &str) -> String {
    Path::new(name).file_name().map_or_else(|| name.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn parse(name: &str, format: Format, bytes: &[u8]) -> Result<Profile, ImportError> {
    let malformed = |what: String| ImportError::Malformed { name: name.to_owned(), format: format.name(), what };
    if bytes.len() as u64 > LARGEST {
        return Err(malformed(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    let builder = match format {
        Format::Collapsed => collapsed::read(bytes),
        Format::Pprof => pprof::read(bytes),
        Format::Recording => recording::read(bytes),
        Format::Speedscope => speedscope::read(bytes),
    };
    Ok(builder.map_err(malformed)?.finish(&file_name(name), format.name()))
}

#[cfg(test)]
mod tests;
