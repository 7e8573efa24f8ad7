//! Where a single result goes: standard output or a file, as text, as JSON, or as a page.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::output::{parent_exists, terminal_width, wants_color};
use crate::report::text::Style;
use crate::whole_file::write_whole;

#[derive(Clone, Debug, Args)]
pub(crate) struct Destination {
    /// Write the result to a file, in the format of its extension (.txt, .json; of threads .html)
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
    /// Of threads: a page to be explored in a browser
    Html,
}

/// How a result is written.
pub(crate) enum Shape {
    Json,
    Text(Style),
}

impl Destination {
    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.is_page() && self.format.is_some() {
            true => Err("of this there is no page: say --format json or text".to_owned()),
            false => self.check_among(&["txt", "json"]),
        }
    }

    /// The same of what can be a page.
    pub(crate) fn check_with_page(&self) -> Result<(), String> {
        self.check_among(&["txt", "json", "html"])
    }

    fn check_among(&self, named: &[&str]) -> Result<(), String> {
        let Some(path) = &self.output else { return Ok(()) };
        let is_named = path.extension().is_none_or(|extension| named.iter().any(|it| extension == *it));
        if self.format.is_none() && !is_named {
            let named: Vec<String> = named.iter().map(|it| format!(".{it}")).collect();
            let path = path.display();
            return Err(format!("{path}: its extension names no format ({} do); or say --format", named.join(", ")));
        }
        parent_exists(path)
    }

    /// Whether it is to be a page.
    pub(crate) fn is_page(&self) -> bool {
        self.format() == Format::Html
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

    fn format(&self) -> Format {
        let extension = self.output.as_ref().and_then(|path| path.extension()?.to_str());
        self.format.unwrap_or(match extension {
            Some("json") => Format::Json,
            Some("html") => Format::Html,
            _ => Format::Text,
        })
    }

    fn shape(&self, width: Option<usize>, color: bool) -> Shape {
        match self.format() {
            Format::Json => Shape::Json,
            Format::Text | Format::Html => {
                Shape::Text(Style { width, color, percent: false, provenance: false, verbose: false })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_format_is_of_is_refused_before_the_work() {
        let to = |output: &str, format| Destination { output: Some(PathBuf::from(output)), format };
        for written in ["./result.json", "./result.txt", "./result"] {
            assert_eq!(to(written, None).check(), Ok(()), "{written}");
        }
        assert_eq!(to("./result.html", None).check_with_page(), Ok(()));
        assert!(to("./result.html", None).is_page() && !to("./result.html", Some(Format::Text)).is_page());
        assert_eq!(to("./result.html", Some(Format::Text)).check(), Ok(()));
        let refused = to("./result.html", None).check().expect_err("it would be text");
        assert!(refused.contains("names no format (.txt, .json do)"), "{refused}");
        assert!(to("./result", Some(Format::Html)).check().is_err());
    }
}
