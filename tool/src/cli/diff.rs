//! `headwater diff`: saved profiles, compared: two, or several a side.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::slice;

use clap::{Args, ValueEnum};

use super::fail;
use crate::diff::condition::{Condition, ConditionError, Judgement, Judgements};
use crate::diff::text::Selection;
use crate::diff::{self, Comparison, Per, Run};
use crate::import;
use crate::page;
use crate::profile::{Part, Profile, Quantity};
use crate::report::Options;
use crate::report::select::MethodSelector;
use crate::report::text::Style;
use crate::request::output::{TEXT_MIN_SHARE, parent_exists, terminal_width, wants_color};
use crate::request::view::percentage;
use crate::whole_file::write_whole;

pub(super) const USAGE: &str = "\
headwater diff [OPTIONS] <BEFORE> <AFTER>
       headwater diff [OPTIONS] <BEFORE>... -- <AFTER>...";

pub(super) const EXAMPLES: &str = "\
Examples:
  headwater diff before.hw after.hw
  headwater diff a1.hw a2.hw a3.hw -- b1.hw b2.hw b3.hw
  headwater diff before.hw after.hw --by total --focus com.acme.*
  headwater diff before.hw after.hw --format json -o diff.json
  headwater diff before.hw after.hw -o diff.html
  headwater diff app.jfr run.hw          # of different kinds: shares below the roots of one
  headwater diff before.hw after.hw --fail-if 'self(com.acme.*) > +5%' --fail-if 'total(com.acme.Shop.checkout) > +2ms'

Of several files a side the means are compared; on either side there may be any number. Runs of one program differ, and how far, only
several can tell: three a side are a good beginning. Options come before the --.

Times come with the uncertainty of their difference, ±, by what the profiles state and by how far the files of a side differ: of 100
comparisons of a program with itself, 95 show no change that is larger. One that is not larger is marked (within ±), or left out.

A condition is QUANTITY(METHODS) OPERATOR CHANGE. QUANTITY is self, total, calls, or another metric, with .total for it with what is
called; METHODS as in --focus, counted together; OPERATOR
is >, >=, < or <=; CHANGE is relative with %, else in ns, us, ms or s, and of calls a number. Changes of times that are not larger than
their uncertainty meet no condition; calls are exact, and any change of theirs may.

Exit codes: 0 done, 1 a condition was met or a file cannot be read, 2 usage.";

/// Which snapshots, and what of them.
#[derive(Debug, Args)]
pub(super) struct DiffArgs {
    /// Snapshots (.hw): the first and the second, or, before --, those of the first side; one of all may be -, standard input
    #[arg(required = true, value_name = "BEFORE")]
    files: Vec<PathBuf>,
    /// Those of the second side
    #[arg(last = true, value_name = "AFTER")]
    after: Vec<PathBuf>,
    /// Exit with 1 if this is so: 'self(com.acme.*) > +5%'. May be repeated
    #[arg(long, value_name = "CONDITION")]
    fail_if: Vec<String>,
    /// Compare one root call with one root call, or whole runs [default: root-call, if all have root calls]
    #[arg(long, value_enum)]
    per: Option<PerName>,
    /// Show changes of this: self, total, calls, or another metric, with .total for it with what is called (text)
    /// [default: self for methods, total for calling contexts]
    #[arg(long, value_name = "QUANTITY")]
    by: Option<String>,
    /// Show changes of this metric instead of time: cpu, thrown, alloc-per-call, or another; those of more beside it (text)
    #[arg(long, value_name = "METRIC", value_delimiter = ',')]
    metric: Vec<String>,
    /// Leave out changes below this share of the whole, in per cent (text) [default: 0.5]
    #[arg(long, value_name = "PERCENT", value_parser = percentage)]
    min: Option<f64>,
    /// Show only these methods: com.acme.Shop.checkout, com.acme.Shop, com.acme.* (text)
    #[arg(long, value_name = "PATTERN")]
    focus: Option<MethodSelector>,
    /// Write to a file, in the format of its extension (.json, .html, .txt)
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// The format [default: of the file's extension, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PerName {
    /// One root call, on average
    RootCall,
    /// All that was recorded
    Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Tables to be read
    Text,
    /// One object to be processed
    Json,
    /// A page to be explored in a browser
    Html,
}

impl DiffArgs {
    fn format(&self) -> Result<Format, String> {
        let extension = self.output.as_deref().and_then(Path::extension).and_then(|extension| extension.to_str());
        match (self.format, &self.output, extension) {
            (Some(format), ..) => Ok(format),
            (None, None, _) | (None, _, Some("txt")) => Ok(Format::Text),
            (None, _, Some("json")) => Ok(Format::Json),
            (None, _, Some("html" | "htm")) => Ok(Format::Html),
            (None, Some(path), _) => Err(format!(
                "{}: its extension names no format; .json, .html and .txt do, or say --format json|html|text",
                path.display()
            )),
        }
    }

    fn selection(&self) -> Selection {
        Selection {
            by: self.by.as_deref().map(Quantity::from),
            metrics: self.metric.clone(),
            min_share: self.min.map_or(TEXT_MIN_SHARE, |percent| percent / 100.0),
            focus: self.focus.clone(),
        }
    }

    /// The files of each side.
    fn sides(&self) -> Result<[&[PathBuf]; 2], String> {
        match (&self.files[..], &self.after[..]) {
            ([before, after], []) => Ok([slice::from_ref(before), slice::from_ref(after)]),
            ([_], []) => {
                Err("there is nothing to compare it with: give two snapshots, or several a side with -- between"
                    .to_owned())
            }
            (_, []) => Err(
                "which are before, and which after? Write -- between them: headwater diff a1.hw a2.hw -- b1.hw b2.hw"
                    .to_owned(),
            ),
            (before, after) => Ok([before, after]),
        }
    }

    /// Finds out before the work what is wrong with the command.
    fn check(&self) -> Result<(Format, Vec<Condition>), String> {
        let format = self.format()?;
        let sides = self.sides()?;
        let is_option = |path: &&PathBuf| path.as_os_str().len() > 1 && path.as_os_str().as_encoded_bytes()[0] == b'-';
        if let Some(option) = self.after.iter().find(is_option) {
            return Err(format!("{}: options come before the --, behind it are files", option.display()));
        }
        if format == Format::Html && sides.iter().any(|files| files.len() > 1) {
            return Err(page::SEVERAL_RUNS.to_owned());
        }
        if let Some(path) = &self.output {
            parent_exists(path)?;
        }
        if sides.iter().copied().flatten().filter(|path| *path == Path::new("-")).count() > 1 {
            return Err("standard input can be one of the snapshots, not more".to_owned());
        }
        let parse = |text: &String| text.parse().map_err(|error| misread(text, &error));
        Ok((format, self.fail_if.iter().map(parse).collect::<Result<_, _>>()?))
    }
}

/// The condition with a mark under the place.
fn misread(text: &str, error: &ConditionError) -> String {
    format!("--fail-if: {error}\n  {text}\n  {}^", " ".repeat(error.column - 1))
}

pub(super) fn run(arguments: &DiffArgs) -> ExitCode {
    let (sides, format, conditions) = match (arguments.sides(), arguments.check()) {
        (Ok(sides), Ok((format, conditions))) => (sides, format, conditions),
        (Err(error), _) | (_, Err(error)) => return fail(2, &error),
    };
    let loaded = match sides.map(load) {
        [Ok(before), Ok(after)] => [before, after],
        [Err(error), _] | [_, Err(error)] => return fail(1, &error.to_string()),
    };
    if let Err(nothing) = focus_is_called(arguments, loaded.iter().flatten().map(|(_, profile)| profile)) {
        return fail(1, &nothing);
    }
    let per = arguments.per.map(|per| match per {
        PerName::RootCall => Per::RootCall,
        PerName::Run => Per::Run,
    });
    let [before, after] = loaded.each_ref().map(|side| runs(side));
    let comparison = diff::compare(&before, &after, per);
    let of_shares: Vec<Vec<(String, Profile)>>;
    let sides: Vec<Vec<Run<'_>>>;
    let shown = arguments.metric.iter().map(|id| Quantity::of(id, Part::Own));
    let asked_for: Vec<Quantity> = shown.chain(arguments.by.as_deref().map(Quantity::from)).collect();
    let comparison = match are_shares_meant(&comparison, &asked_for, &conditions) {
        false => comparison,
        true => {
            of_shares = as_shares(&loaded);
            sides = of_shares.iter().map(|side| runs(side)).collect();
            diff::compare(&sides[0], &sides[1], per)
        }
    };
    if let Some(absent) = asked_for.iter().find(|quantity| comparison.metric(quantity).is_none()) {
        let ids: Vec<&str> = comparison.all_metrics().map(|metric| &*metric.id).collect();
        let id = if absent.part == Part::Total { format!("{}.total", absent.id) } else { absent.id.to_string() };
        return fail(1, &format!("not all profiles have a metric {id}. They have {}", ids.join(", ")));
    }
    let judge = |condition: Condition| {
        let judgement = condition.judge(&comparison);
        (condition, judgement)
    };
    let judgements: Vec<(Condition, Judgement)> = conditions.into_iter().map(judge).collect();
    match write(arguments, format, &comparison, &judgements) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => return fail(1, &format!("the comparison could not be written: {error}")),
    }
    let mut code = ExitCode::SUCCESS;
    for (condition, judgement) in &judgements {
        if judgement.verdict.is_failure() {
            code = fail(1, &diff::text::judged(&comparison, condition, judgement));
        }
    }
    code
}

/// The profiles of a side, each with its file's name.
fn load(files: &[PathBuf]) -> Result<Vec<(String, Profile)>, import::ImportError> {
    files.iter().map(|file| Ok((file.display().to_string(), import::load(file)?))).collect()
}

/// Whether files have to be compared by shares: where none counts what all others do, and of different kinds, unless a metric is asked for by name
/// that all have.
fn are_shares_meant(comparison: &Comparison<'_>, asked_for: &[Quantity], conditions: &[Condition]) -> bool {
    let mut quantities = asked_for.iter().chain(conditions.iter().map(Condition::quantity));
    let is_named = |quantity: &Quantity| !quantity.is_time() && comparison.metric(quantity).is_some();
    comparison.metrics.is_empty() || comparison.is_of_different_kinds() && !quantities.any(is_named)
}

/// The same files, by shares.
fn as_shares(sides: &[Vec<(String, Profile)>; 2]) -> Vec<Vec<(String, Profile)>> {
    let all: Vec<&Profile> = sides.iter().flatten().map(|(_, profile)| profile).collect();
    let mut shares = diff::shares(&all).into_iter();
    let side = |side: &Vec<(String, Profile)>| side.iter().map(|(file, _)| file.clone()).zip(shares.by_ref()).collect();
    sides.iter().map(side).collect()
}

fn runs(side: &[(String, Profile)]) -> Vec<Run<'_>> {
    side.iter().map(|(file, profile)| Run { file, profile }).collect()
}

/// A focus on nothing is a mistake, unless one of the profiles has it.
fn focus_is_called<'a>(arguments: &DiffArgs, profiles: impl Iterator<Item = &'a Profile>) -> Result<(), String> {
    let options = Options { focus: arguments.focus.clone(), ..Options::default() };
    let mut wrong = None;
    for profile in profiles {
        match options.check(profile) {
            Ok(()) => return Ok(()),
            Err(nothing) => wrong = Some(nothing),
        }
    }
    wrong.map_or(Ok(()), |nothing| Err(nothing.to_string()))
}

fn write(
    arguments: &DiffArgs,
    format: Format,
    comparison: &Comparison<'_>,
    judgements: Judgements<'_>,
) -> io::Result<()> {
    let as_told = |style: &Style, out: &mut dyn Write| {
        let mut out = out;
        match format {
            Format::Json => diff::json::write(comparison, judgements, &mut out),
            Format::Html => page::write_diff(comparison, judgements, &mut out),
            Format::Text => diff::text::write(comparison, judgements, &arguments.selection(), style, &mut out),
        }
    };
    match &arguments.output {
        Some(path) => write_whole(path, |out| as_told(&Style::default(), out))
            .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display()))),
        None => {
            let stdout = io::stdout();
            let terminal = stdout.is_terminal();
            let style = Style {
                width: if terminal { terminal_width(io::stdout()) } else { None },
                color: terminal && wants_color(),
                ..Style::default()
            };
            let mut out = io::BufWriter::new(stdout.lock());
            as_told(&style, &mut out)?;
            out.flush()
        }
    }
}
