//! The readers, each with its samples.

use std::path::Path;

use headwater_tests::random::Random;

mod classes;
mod events;
mod messages;
mod played_agent;
mod session;
mod snapshot;
mod text;

/// All of them.
pub(crate) const NAMES: [&str; 11] = [
    "messages",
    "session",
    "events",
    "snapshot",
    "import",
    "script",
    "recording",
    "threads",
    "answers",
    "perf-data",
    "classes",
];

/// One of them.
pub(crate) trait Reader {
    /// An input.
    fn input(&mut self, random: &mut Random) -> Vec<u8>;
    /// Reads it; whether it was understood.
    fn read(&mut self, input: &[u8]) -> bool;
    /// What it may allocate in all, for an input of so many bytes.
    fn most_bytes(&self, input_bytes: usize) -> usize;
}

/// The one of this name, with samples of that place.
pub(crate) fn named(name: &str, samples: &Path) -> Option<Box<dyn Reader>> {
    Some(match name {
        "messages" => Box::new(messages::Messages::new()),
        "session" => Box::new(session::Sessions::new(&files(&samples.join("classes")))),
        "events" => Box::new(events::Events::new()),
        "snapshot" => Box::new(snapshot::Snapshots::new(&files(&samples.join("snapshots")))),
        "import" => Box::new(text::Bytes::of_imports()),
        "script" => Box::new(text::Bytes::of_scripts()),
        "recording" => Box::new(text::Bytes::of_recordings(files(&samples.join("recordings")))),
        "threads" => Box::new(text::Threads::new()),
        "answers" => Box::new(text::Bytes::of_answers()),
        "perf-data" => Box::new(text::Bytes::of_perf_data(files(&samples.join("perf-data")))),
        "classes" => Box::new(classes::Classes::new(files(&samples.join("classes")))),
        _ => return None,
    })
}

/// What is in a directory's files, in the order of their names.
fn files(directory: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("a file")).collect()
}
