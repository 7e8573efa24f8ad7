//! Where results go and in which form.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use clap::builder::PossibleValue;
use clap::{Args, ValueEnum};
use serde::Serialize;

use crate::export;
use crate::jvm::Jvm;
use crate::profile::Profile;
use crate::report::text::TextOptions;
use crate::report::{Trees, json, text};

/// How a report looks, and where it goes.
#[derive(Clone, Debug, Args)]
pub struct Output {
    /// Write the report to a file, in the format of its extension (.txt, .json, .collapsed, .svg, .pb.gz, .speedscope.json,
    /// .firefox.json, .callgrind, .csv, .om)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The report's format [default: of the file's extension, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// One tree a thread instead of one for all
    #[arg(long)]
    threads: bool,
    /// Hide nodes below this share of the roots' total time, in per cent (text)
    #[arg(long, value_name = "PERCENT", default_value_t = 0.5)]
    min: f64,
    /// Hide nodes deeper than this (text)
    #[arg(long, value_name = "LEVELS")]
    depth: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// A tree to be read
    Text,
    /// One object to be processed
    Json,
    /// For another tool
    Export(export::Format),
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        use export::Format::{Callgrind, Collapsed, Csv, Firefox, OpenMetrics, Pprof, Speedscope, Svg};
        &[
            Format::Text,
            Format::Json,
            Format::Export(Collapsed),
            Format::Export(Svg),
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
            Format::Text => PossibleValue::new("text").help("A tree to be read"),
            Format::Json => PossibleValue::new("json").help("One object to be processed"),
            Format::Export(format) => PossibleValue::new(format.name()).help(format.consumer()),
        })
    }
}

impl Output {
    /// The report as it is by default, in a file.
    pub(crate) fn to_file(file: PathBuf) -> Output {
        Output { output: Some(file), format: None, threads: false, min: 0.5, depth: None }
    }

    /// Finds out before the work what would be found out after it.
    pub(crate) fn check(&self) -> Result<(), String> {
        let format = self.format_of()?;
        if format == Format::Export(export::Format::Pprof) && self.output.is_none() && io::stdout().is_terminal() {
            return Err("pprof is a binary format, not for terminals: add -o FILE".to_owned());
        }
        let Some(path) = &self.output else { return Ok(()) };
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if directory.is_dir() {
            Ok(())
        } else {
            Err(format!("{}: there is no directory {}", path.display(), directory.display()))
        }
    }

    fn trees(&self) -> Trees {
        if self.threads { Trees::PerThread } else { Trees::Merged }
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
            Some((path, _)) => Err(format!(
                "{}: its extension names no format; .txt, .json, .collapsed, .svg, .pb.gz, .speedscope.json, .firefox.json, \
                 .callgrind, .csv and .om do, or say --format",
                path.display()
            )),
        }
    }

    /// Writes the report: to the file, whole or not at all, or to standard output.
    pub(crate) fn write(&self, profile: &Profile) -> io::Result<()> {
        let format = self.format_of().map_err(io::Error::other)?;
        match &self.output {
            None => {
                let stdout = io::stdout();
                let terminal = stdout.is_terminal();
                let color = terminal && std::env::var_os("NO_COLOR").is_none();
                let width = if terminal { terminal_width() } else { None };
                let mut out = io::BufWriter::new(stdout.lock());
                self.write_as(format, profile, width, color, &mut out)?;
                out.flush()
            }
            Some(path) => {
                let mut bytes = Vec::new();
                self.write_as(format, profile, None, false, &mut bytes)?;
                write_whole(path, &bytes)
                    .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
            }
        }
    }

    /// Writes the report of a profile that is still being recorded: over the one before, where that can be done.
    pub(crate) fn write_so_far(&self, profile: &Profile) -> io::Result<()> {
        if self.output.is_some() {
            return self.write(profile);
        }
        let format = self.format_of().map_err(io::Error::other)?;
        let mut report = Vec::new();
        let stdout = io::stdout();
        if !stdout.is_terminal() {
            self.write_as(format, profile, None, false, &mut report)?;
            if format == Format::Text {
                writeln!(report, "\n{}\n", "=".repeat(80))?;
            }
            let mut out = stdout.lock();
            return out.write_all(&report).and_then(|()| out.flush());
        }
        let color = std::env::var_os("NO_COLOR").is_none();
        self.write_as(format, profile, terminal_width(), color, &mut report)?;
        // What does not fit would push the beginning out; two lines are left for the progress.
        let rows = rustix::termios::tcgetwinsize(&stdout).map_or(24, |size| usize::from(size.ws_row)).max(4) - 2;
        let mut out = stdout.lock();
        out.write_all(b"\x1b[H\x1b[2J")?;
        for line in report.split_inclusive(|byte| *byte == b'\n').take(rows) {
            out.write_all(line)?;
        }
        out.flush()
    }

    fn write_as(
        &self,
        format: Format,
        profile: &Profile,
        width: Option<usize>,
        color: bool,
        out: &mut impl Write,
    ) -> io::Result<()> {
        match format {
            Format::Json => json::write(profile, self.trees(), out),
            Format::Text => {
                let options = TextOptions {
                    width,
                    color,
                    min_share: self.min / 100.0,
                    max_depth: self.depth,
                    trees: self.trees(),
                };
                text::write(profile, &options, out)
            }
            Format::Export(format) => {
                // Exports are written right after the recording.
                let started = SystemTime::now().checked_sub(profile.duration);
                export::write(format, profile, &export::Options { trees: self.trees(), started }, out)
            }
        }
    }
}

fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
    (size.ws_col >= 40).then_some(size.ws_col.into())
}

/// Writes beside the file and renames: a full disk leaves the old file as it was.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let metadata = std::fs::symlink_metadata(path);
    if metadata.is_ok_and(|metadata| !metadata.is_file()) {
        // A device or a pipe (/dev/stdout, say) cannot be replaced.
        return std::fs::write(path, bytes);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let unfinished = path.with_file_name(name);
    let written = std::fs::write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, path));
    if written.is_err() {
        // What could not be written completely is of no use.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// `headwater list`.
pub(crate) fn list_text(jvms: &[Jvm], out: &mut impl Write) -> io::Result<()> {
    if jvms.is_empty() {
        return writeln!(out, "no JVM is running that this user may see");
    }
    let widths = jvms.iter().fold((3, 4, 4), |(pid, java, main), jvm| {
        (pid.max(jvm.pid.to_string().len()), java.max(version(jvm).len()), main.max(jvm.main.chars().count()))
    });
    writeln!(
        out,
        "{:>pid$}  {:java$}  {:main$}  ARGUMENTS",
        "PID",
        "JAVA",
        "MAIN",
        pid = widths.0,
        java = widths.1,
        main = widths.2
    )?;
    for jvm in jvms {
        let arguments: String = jvm.arguments.chars().take(80).collect();
        let line = format!(
            "{:>pid$}  {:java$}  {:main$}  {arguments}",
            jvm.pid,
            version(jvm),
            jvm.main,
            pid = widths.0,
            java = widths.1,
            main = widths.2
        );
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}

fn version(jvm: &Jvm) -> &str {
    jvm.java_version.as_deref().unwrap_or("?")
}

/// `headwater list --format json`: an array of objects.
pub(crate) fn list_json(jvms: &[Jvm], out: &mut impl Write) -> io::Result<()> {
    #[derive(Serialize)]
    struct Row<'a> {
        pid: u32,
        main: &'a str,
        arguments: &'a str,
        java: Option<&'a str>,
        uid: u32,
    }
    let rows: Vec<Row<'_>> = jvms
        .iter()
        .map(|jvm| Row {
            pid: jvm.pid,
            main: &jvm.main,
            arguments: &jvm.arguments,
            java: jvm.java_version.as_deref(),
            uid: jvm.uid,
        })
        .collect();
    serde_json::to_writer_pretty(&mut *out, &rows)?;
    writeln!(out)
}
