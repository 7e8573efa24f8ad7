//! Where a single result goes: standard output or a file, as text or as JSON.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::output::{parent_exists, terminal_width, wants_color};
use crate::report::text::Style;
use crate::whole_file::write_whole;

#[derive(Clone, Debug, Args)]
pub(crate) struct Destination {
    /// Write the result to a file, in the format of its extension (.json, .txt)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The result's format [default: of the file's extension, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// To be read
    Text,
    /// One object to be processed
    Json,
}

/// How a result is written.
pub(crate) enum Shape {
    Json,
    Text(Style),
}

impl Destination {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Some(path) = &self.output else { return Ok(()) };
        let is_named = path.extension().is_none_or(|extension| extension == "json" || extension == "txt");
        if self.format.is_none() && !is_named {
            return Err(format!(
                "{}: its extension names no format; .json and .txt do, or say --format json|text",
                path.display()
            ));
        }
        parent_exists(path)
    }

    pub(crate) fn is_file(&self) -> bool {
        self.output.is_some()
    }

    /// Has a result written: to the file, whole or not at all, or to standard output.
    pub(crate) fn write(&self, result: &mut dyn FnMut(Shape, &mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let Some(path) = &self.output else {
            let stdout = io::stdout();
            let terminal = stdout.is_terminal();
            let width = if terminal { terminal_width(&stdout) } else { None };
            let mut out = BufWriter::new(stdout.lock());
            result(self.shape(width, terminal && wants_color()), &mut out)?;
            return out.flush();
        };
        write_whole(path, |out| result(self.shape(None, false), out))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    }

    fn shape(&self, width: Option<usize>, color: bool) -> Shape {
        let extension = self.output.as_ref().and_then(|path| path.extension());
        let format =
            self.format.unwrap_or(if extension.is_some_and(|it| it == "json") { Format::Json } else { Format::Text });
        match format {
            Format::Json => Shape::Json,
            Format::Text => Shape::Text(Style { width, color, percent: false, provenance: false, verbose: false }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_format_is_of_is_refused_before_the_work() {
        let check = |output: &str, format| Destination { output: Some(PathBuf::from(output)), format }.check();
        for written in ["./result.json", "./result.txt", "./result"] {
            assert_eq!(check(written, None), Ok(()), "{written}");
        }
        assert_eq!(check("./result.html", Some(Format::Text)), Ok(()));
        let refused = check("./result.html", None).expect_err("it would be text");
        assert!(refused.contains("names no format; .json and .txt do"), "{refused}");
    }
}
