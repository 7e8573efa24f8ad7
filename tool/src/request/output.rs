//! Where results go and in which form.

use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::PossibleValue;
use clap::{Args, Parser, ValueEnum};

use super::values::live_period;
use super::view::ViewArgs;
use crate::export;
use crate::page;
use crate::profile::Profile;
use crate::report::select::MethodSelector;
use crate::report::text::Style;
use crate::report::{NothingSelected, Options, View, json, text};
use crate::snapshot;
use crate::whole_file::write_whole;

/// How a report looks, and where it goes.
#[derive(Clone, Debug, Args)]
pub struct Output {
    /// Write the report to a file, in the format of its extension (.txt, .json, .html, .hw, .collapsed, .svg, .graph.svg,
    /// .dot, .pb.gz, .speedscope.json, .firefox.json, .callgrind, .csv, .om)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The report's format [default: of the file's extension, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Show all warnings, dropped methods and the like, not only the most important ones; while attaching, say what took how long
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    view: ViewArgs,
}

/// Whether the report is shown before it is whole.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Meanwhile {
    /// Show the report meanwhile, once a period (2s): on a terminal in place, else one after another, with -o in the file
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = live_period
    )]
    pub(crate) live: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A tree to be read
    Text,
    /// One object to be processed
    Json,
    /// A page to be explored
    Html,
    /// A snapshot: everything, for `headwater report` and `headwater diff`
    Hw,
    /// For another tool
    Export(export::Format),
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        use export::Format::{Callgrind, Collapsed, Csv, Dot, Firefox, Graph, OpenMetrics, Pprof, Speedscope, Svg};
        &[
            Format::Text,
            Format::Json,
            Format::Html,
            Format::Hw,
            Format::Export(Collapsed),
            Format::Export(Svg),
            Format::Export(Dot),
            Format::Export(Graph),
            Format::Export(Pprof),
            Format::Export(Speedscope),
            Format::Export(Firefox),
            Format::Export(Callgrind),
            Format::Export(Csv),
            Format::Export(OpenMetrics),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(match self {
            Format::Text => PossibleValue::new("text").help("To be read"),
            Format::Json => PossibleValue::new("json").help("One object to be processed"),
            Format::Html => PossibleValue::new("html").help("A page to be explored in a browser"),
            Format::Hw => PossibleValue::new("hw").help("Everything, for headwater report and headwater diff"),
            Format::Export(format) => PossibleValue::new(format.name()).help(format.consumer()),
        })
    }
}

impl Output {
    /// The report as it is by default, in a file: without an extension a snapshot.
    pub(crate) fn to_file(file: PathBuf) -> Output {
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            output: Output,
        }
        let format = file.extension().is_none().then_some(Format::Hw);
        Output { output: Some(file), format, ..Defaults::parse_from([""]).output }
    }

    /// The call graph in a file, as a picture or for Graphviz.
    pub(crate) fn call_graph(file: PathBuf) -> Output {
        let is_picture = file.extension().is_some_and(|extension| extension == "svg");
        let format = Format::Export(if is_picture { export::Format::Graph } else { export::Format::Dot });
        Output { format: Some(format), ..Output::to_file(file) }
    }

    /// The same in a certain view, of certain methods only.
    pub(crate) fn showing(mut self, view: View, focus: Option<MethodSelector>) -> Output {
        self.view.set(view, focus);
        self
    }

    /// The same in a certain view, unless the user has said another.
    pub(crate) fn preferring(mut self, view: View) -> Output {
        self.view.prefer(view);
        self
    }

    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let format = self.format_of()?;
        let binary = match format {
            Format::Hw => Some("a snapshot"),
            Format::Export(export::Format::Pprof) => Some("pprof"),
            _ => None,
        };
        if let Some(what) = binary
            && self.output.is_none()
            && io::stdout().is_terminal()
        {
            return Err(format!("{what} is binary and nothing for a terminal: add -o FILE"));
        }
        self.output.as_deref().map_or(Ok(()), parent_exists)
    }

    /// Whether the threads and methods that were asked for are in the profile.
    pub(crate) fn check_selection(&self, profile: &Profile) -> Result<(), NothingSelected> {
        let options = self.view.options(0.0);
        options.check(profile)?;
        match self.format_of() {
            Ok(Format::Export(format)) => format.check(profile, &options),
            _ => Ok(()),
        }
    }

    fn format_of(&self) -> Result<Format, String> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let name = self.output.as_ref().and_then(|path| path.file_name()?.to_str());
        if let Some(format) = name.and_then(export::Format::of_file_name) {
            return Ok(Format::Export(format));
        }
        match self.output.as_ref().map(|path| (path, path.extension().and_then(|extension| extension.to_str()))) {
            None | Some((_, Some("txt"))) => Ok(Format::Text),
            Some((_, Some("json"))) => Ok(Format::Json),
            Some((_, Some("html" | "htm"))) => Ok(Format::Html),
            Some((_, Some(snapshot::EXTENSION))) => Ok(Format::Hw),
            Some((path, _)) => Err(format!(
                "{}: its extension names no format; .txt, .json, .html, .hw, .collapsed, .svg, .graph.svg, .dot, .pb.gz, \
                 .speedscope.json, .firefox.json, .callgrind, .csv and .om do, or say --format",
                path.display()
            )),
        }
    }

    /// Writes the report: to the file, whole or not at all, or to standard output.
    pub(crate) fn write(&self, profile: &Profile, origin: Origin) -> io::Result<()> {
        let format = self.format_of().map_err(io::Error::other)?;
        match &self.output {
            None => {
                let stdout = io::stdout();
                let terminal = stdout.is_terminal();
                let style = self.style(origin, if terminal { Screen::Terminal } else { Screen::None });
                let mut out = io::BufWriter::new(stdout.lock());
                self.write_as(format, profile, &style, &mut out)?;
                out.flush()
            }
            Some(path) => {
                let style = self.style(origin, Screen::None);
                write_whole(path, |out| self.write_as(format, profile, &style, out))
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
            }
        }
    }

    /// Whether a report is asked for, and not only what it would look like.
    pub(crate) fn is_asked_for(&self) -> bool {
        self.output.is_some() || self.format.is_some()
    }

    /// What is to be shown, nothing left out that the user does not say.
    pub(crate) fn options(&self) -> Options {
        self.view.options(0.0)
    }

    /// Whether all is to be told, not only what is most important.
    pub(crate) fn is_verbose(&self) -> bool {
        self.verbose
    }

    /// Whether it goes into a file.
    pub(crate) fn is_file(&self) -> bool {
        self.output.is_some()
    }

    /// What to say to somebody who has not read the report, because it is in a file.
    pub(crate) fn gist(&self, profile: &Profile) -> Option<String> {
        let path = self.output.as_deref()?;
        let mut text = format!("{} is written\n", path.display()).into_bytes();
        text::gist::write(profile, &self.style(Origin::Recording, Screen::None), &mut text).ok()?;
        Some(String::from_utf8_lossy(text.trim_ascii_end()).into_owned())
    }

    /// Whether a person has the report before them when it is written.
    pub(crate) fn is_read_at_once(&self) -> bool {
        self.output.is_none() && matches!(self.format_of(), Ok(Format::Text))
    }

    /// Writes the report as text to standard output, whatever was asked for.
    pub(crate) fn write_as_text(&self, profile: &Profile) -> io::Result<()> {
        Output { output: None, format: Some(Format::Text), verbose: self.verbose, view: self.view.clone() }
            .write(profile, Origin::Recording)
    }

    /// Writes the report of a profile that is still being recorded: over the one before, where that can be done.
    pub(crate) fn write_so_far(&self, profile: &Profile) -> io::Result<()> {
        if self.output.is_some() {
            return self.write(profile, Origin::Recording);
        }
        let format = self.format_of().map_err(io::Error::other)?;
        let mut report = Vec::new();
        let stdout = io::stdout();
        let screen = if stdout.is_terminal() { Screen::Terminal } else { Screen::None };
        self.write_as(format, profile, &self.style(Origin::Recording, screen), &mut report)?;
        let mut out = stdout.lock();
        if screen == Screen::None {
            if format == Format::Text {
                writeln!(report, "\n{}\n", "=".repeat(80))?;
            }
            return out.write_all(&report).and_then(|()| out.flush());
        }
        // What does not fit would push the beginning out; two lines are left for the progress.
        let rows = rustix::termios::tcgetwinsize(&out).map_or(24, |size| usize::from(size.ws_row)).max(4) - 2;
        out.write_all(b"\x1b[H\x1b[2J")?;
        for line in report.split_inclusive(|byte| *byte == b'\n').take(rows) {
            out.write_all(line)?;
        }
        out.flush()
    }

    fn style(&self, origin: Origin, screen: Screen) -> Style {
        Style {
            width: if screen == Screen::Terminal { terminal_width(io::stdout()) } else { None },
            color: screen == Screen::Terminal && wants_color(),
            percent: self.view.percent,
            provenance: origin == Origin::File,
            verbose: self.verbose,
        }
    }

    fn write_as(&self, format: Format, profile: &Profile, style: &Style, out: &mut impl Write) -> io::Result<()> {
        match format {
            Format::Json => json::write(profile, &self.view.options(0.0), out),
            Format::Text => text::write(profile, &self.view.options(TEXT_MIN_SHARE), style, out),
            Format::Html => page::write_profile(&self.view.options(0.0).narrowed(profile), out),
            Format::Hw => snapshot::write(profile, out),
            Format::Export(format) => {
                let options = self.view.options(0.0);
                export::write(format, &options.narrowed(profile), &options, out)
            }
        }
    }
}

/// Whether a file can be made there.
pub(crate) fn parent_exists(path: &Path) -> Result<(), String> {
    if path.is_dir() {
        return Err(format!("{} is a directory; give a file in it", path.display()));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory.is_dir() {
        Ok(())
    } else {
        Err(format!("{}: there is no directory {}", path.display(), directory.display()))
    }
}

/// What a text leaves out unless the user says how much: what does not matter beside the rest. Programs are given everything.
pub(crate) const TEXT_MIN_SHARE: f64 = 0.005;

/// Where a profile comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// From a target, just now.
    Recording,
    /// From a file.
    File,
}

/// Where a text goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Screen {
    /// To be seen.
    Terminal,
    /// To a file or another program.
    None,
}

/// Unless the user wants none anywhere (no-color.org).
pub(crate) fn wants_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Of the terminal behind a stream, if it is one and wide enough to be heeded.
pub(crate) fn terminal_width(stream: impl AsFd) -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(stream).ok()?;
    (size.ws_col >= 40).then_some(size.ws_col.into())
}
