//! Where events go, on the command line and in a session.

use std::io;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use headwater_protocol::message::events::{Kind, Kinds};

use super::output::parent_exists;
use crate::events::teller::{Shape, Teller};
use crate::outlet::{Lines, Sink};
use crate::whole_file;

/// A file or standard output, and how.
#[derive(Clone, Debug, Args)]
pub struct Destination {
    /// Write the events to a file; as JSON, one object a line, if its name ends in .json or .jsonl
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A line to be read or an object for each event [default: of the file's extension, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A line each
    Text,
    /// One JSON object a line
    Json,
}

impl Destination {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.output.as_deref().map_or(Ok(()), parent_exists)
    }

    /// Whether anything is said.
    pub(crate) fn is_given(&self) -> bool {
        self.output.is_some() || self.format.is_some()
    }

    /// Who writes there the events of a process; `stdout` is where there is no file.
    pub(crate) fn teller(&self, pid: u32, stdout: Box<dyn Sink>) -> io::Result<Teller> {
        let extension = self.output.as_ref().and_then(|path| path.extension());
        let is_json = extension.is_some_and(|extension| extension == "json" || extension == "jsonl");
        let shape = match self.format {
            Some(Format::Json) => Shape::Json,
            None if is_json => Shape::Json,
            Some(Format::Text) | None => Shape::Text,
        };
        let Some(path) = &self.output else { return Teller::to(stdout, shape, pid) };
        let file = whole_file::create(path)
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))?;
        Teller::to(Lines(file), shape, pid)
    }
}

/// A word of the command `events`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Word {
    /// Collections of garbage
    Gc,
    /// Classes loaded and unloaded
    Classes,
    /// Threads started and ended
    Threads,
    /// Waits for monitors
    Monitors,
    /// Methods compiled, and compiled code discarded
    Compile,
    /// Tell of these, or of all
    On,
    /// No longer tell of these, or of any
    Off,
}

impl Word {
    fn kind(self) -> Option<Kind> {
        match self {
            Word::Gc => Some(Kind::Gc),
            Word::Classes => Some(Kind::Classes),
            Word::Threads => Some(Kind::Threads),
            Word::Monitors => Some(Kind::Monitors),
            Word::Compile => Some(Kind::Compile),
            Word::On | Word::Off => None,
        }
    }
}

/// What the command `events` is to do.
#[derive(Clone, Debug, Args)]
pub struct Telling {
    /// Kinds of events, then `on` or `off`; without a kind all of them
    #[arg(value_enum, value_name = "KIND... on|off")]
    words: Vec<Word>,
    #[command(flatten)]
    destination: Destination,
}

/// A change of what is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// These too.
    On(Kinds),
    /// These no longer.
    Off(Kinds),
}

impl Change {
    /// What is told of then.
    pub(crate) fn of(self, before: Kinds) -> Kinds {
        match self {
            Change::On(kinds) => kinds.each().fold(before, Kinds::with),
            Change::Off(kinds) => kinds.each().fold(before, Kinds::without),
        }
    }
}

impl Telling {
    /// What is to change; nothing, where it is only asked what there is.
    pub(crate) fn change(&self) -> Result<Option<Change>, String> {
        const SHAPE: &str = "name kinds of events, then `on` or `off`: events gc threads on";
        let Some((last, kinds)) = self.words.split_last() else { return Ok(None) };
        let kinds: Option<Kinds> = kinds.iter().map(|word| word.kind()).collect();
        let kinds = kinds.ok_or(SHAPE)?;
        let kinds = if kinds.is_empty() { Kinds::all() } else { kinds };
        match last {
            Word::On => Ok(Some(Change::On(kinds))),
            Word::Off => Ok(Some(Change::Off(kinds))),
            _ => Err(SHAPE.to_owned()),
        }
    }

    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.change()? {
            Some(Change::On(_)) => self.destination.check(),
            _ if self.destination.is_given() => Err("only what is switched on can be written to a file".to_owned()),
            _ => Ok(()),
        }
    }

    /// Where it is to go.
    pub(crate) fn destination(&self) -> &Destination {
        &self.destination
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn telling(words: &[Word]) -> Telling {
        Telling { words: words.to_vec(), destination: Destination { output: None, format: None } }
    }

    #[test]
    fn kinds_are_switched_by_what_stands_behind_them() {
        let gc = Kinds::default().with(Kind::Gc);
        assert_eq!(telling(&[]).change(), Ok(None));
        assert_eq!(telling(&[Word::Gc, Word::On]).change(), Ok(Some(Change::On(gc))));
        assert_eq!(telling(&[Word::Off]).change(), Ok(Some(Change::Off(Kinds::all()))));
        for wrong in [&[Word::Gc][..], &[Word::On, Word::Gc], &[Word::On, Word::Off]] {
            assert!(telling(wrong).change().is_err(), "{wrong:?}");
        }
        let both = Change::On(gc.with(Kind::Threads)).of(Kinds::default());
        assert_eq!(Change::Off(gc).of(both), Kinds::default().with(Kind::Threads));
    }

    #[test]
    fn only_what_is_switched_on_goes_anywhere() {
        let to_file = |words: &[Word]| Telling {
            destination: Destination { output: Some("/nowhere/at/all.json".into()), format: None },
            ..telling(words)
        };
        assert!(to_file(&[Word::Gc, Word::On]).check().unwrap_err().contains("no directory"));
        assert!(to_file(&[Word::Gc, Word::Off]).check().is_err() && to_file(&[]).check().is_err());
        assert_eq!(telling(&[Word::Gc, Word::Off]).check(), Ok(()));
    }
}
