//! What can be wrong with a file that should be a snapshot.

use std::io;

/// Why a profile cannot be had from a file.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// There is no such file, or no permission.
    #[error("cannot open {name}: {error}")]
    Open {
        /// The file.
        name: String,
        /// The operating system's reason.
        error: io::Error,
    },
    /// It is no snapshot, or none that can be read.
    #[error("{name} {damage}")]
    Unreadable {
        /// The file.
        name: String,
        /// Why.
        damage: Damage,
    },
}

impl SnapshotError {
    pub(crate) fn unreadable(name: &str, damage: Damage) -> SnapshotError {
        SnapshotError::Unreadable { name: name.to_owned(), damage }
    }
}

/// Why an input is no snapshot. The message goes on after the file's name.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    /// It does not begin as a snapshot does.
    #[error("is no snapshot{}. Snapshots are written by `headwater profile ... -o run.hw`", looks_like(begins))]
    Foreign {
        /// Its first bytes, at most eight.
        begins: Vec<u8>,
    },
    /// It was written by a later version.
    #[error(
        "was written by Headwater {writer}, in snapshot layout {version}; this is Headwater {}, which reads layouts up to {}. Use Headwater {writer} or later",
        env!("CARGO_PKG_VERSION"),
        super::VERSION
    )]
    Newer {
        /// The layout's version.
        version: u16,
        /// The writer's version.
        writer: String,
    },
    /// It ends before its end.
    #[error(
        "is incomplete: it ends at byte {at}, in the middle of the profile. Was it cut off by a full disk, or while it was copied? Copy it again from where it was written"
    )]
    Truncated {
        /// How many bytes there are.
        at: u64,
    },
    /// It is not as it was written.
    #[error("is damaged: before byte {at}, {what}. Copy it again from where it was written, as a binary file")]
    Changed {
        /// Where that was found.
        at: u64,
        /// What is wrong.
        what: String,
    },
    /// It is as it was written, and makes no sense.
    #[error(
        "is intact, but cannot be understood: {what}. Headwater {writer} wrote it, this is Headwater {}; report it with the version that wrote it",
        env!("CARGO_PKG_VERSION")
    )]
    Misunderstood {
        /// The writer's version.
        writer: String,
        /// What makes no sense.
        what: String,
    },
    /// Reading failed.
    #[error("cannot be read: {0}")]
    Read(#[from] io::Error),
}

fn looks_like(begins: &[u8]) -> &'static str {
    match begins {
        [] => ": it is empty",
        [b'{' | b'[', ..] => ": it looks like JSON, and a report cannot be turned back into a profile",
        [0x1F, 0x8B, ..] => ": it looks like a gzip file; unpack it first, if that is what it is",
        [b'F', b'L', b'R', 0, ..] => ": it is a recording of the JDK's Flight Recorder",
        // The first byte of ours, as it is where only seven bits of it came through.
        [b'\x09', b'H', b'W', b'P', ..] | [0xC2, 0x89, b'H', b'W', ..] | [0xEF, 0xBF, 0xBD, b'H', b'W', ..] => {
            ": it was one, and was damaged where it was transferred as text"
        }
        _ => "",
    }
}
