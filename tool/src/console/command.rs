//! The commands of a session: the same at the prompt and in a script.

use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use super::condition::{Expectation, WaitCommand};
use super::line::{LineError, Variables, Word, split};
use crate::pattern::{ClassPattern, MethodPattern};
use crate::report::select::MethodSelector;
use crate::request::ProfileArgs;
use crate::request::count::Switching;
use crate::request::events::Telling;
use crate::request::explain::Explaining;
use crate::request::locks::Waiting;
use crate::request::output::Output;
use crate::request::sample::Sampling;
use crate::request::threads::Showing;
use crate::request::timing::Timing;
use crate::roots::choosing::Choosing;
use crate::watch::watching::Watching;

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}";
const OVERVIEW: &str = "{subcommands}{after-help}";

#[derive(Debug, Parser)]
#[command(
    no_binary_name = true,
    name = "",
    help_template = OVERVIEW,
    subcommand_required = true,
    disable_help_flag = true,
    after_help = "`help COMMAND` explains one. A report goes into a file by `tree > FILE`, in the format of its extension."
)]
struct Input {
    #[command(subcommand)]
    command: Command,
}

/// A command.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Attach to a JVM
    #[command(help_template = TEMPLATE, after_help = "Example: attach shop.jar")]
    Attach {
        /// A pid, or a unique part of the main class or jar name
        target: String,
    },
    /// Profile what these methods call, from now on; a profile that is under way ends
    #[command(
        help_template = TEMPLATE,
        args_override_self = true,
        after_help = "Examples:\n  profile com.acme.Shop::checkout\n  profile com.acme.*.Service::handle --clock tick --calls 1000"
    )]
    Profile {
        /// The roots: a.b.C::m, wildcards *, an optional parameter list
        #[arg(required = true, value_name = "METHOD")]
        roots: Vec<MethodPattern>,
        /// Wait for classes of roots that are not loaded yet, rather than fail
        #[arg(long)]
        await_root: bool,
        #[command(flatten)]
        options: Box<ProfileArgs>,
    },
    /// Time single methods or lines, and nothing else, then show the times; a profile that is under way ends
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  region com.acme.Shop::checkout -d 30s\n  region com.acme.Shop:120-148 com.acme.Cart::total --calls 1000\n  \
                      region com.acme.Shop::checkout -d 30s > times.json\n\nWithout -d or --calls it ends with Ctrl-C. \
                      The results of the profile before it stay."
    )]
    Region(Timing),
    /// Show the roots: entered, or waiting for entry
    #[command(help_template = TEMPLATE)]
    Roots,
    /// Show how the profile goes: calls, overhead, losses
    #[command(help_template = TEMPLATE)]
    Status,
    /// Show the calling context tree up to now
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  tree --min 2 --depth 5\n  tree --threads\n  tree > shop.json"
    )]
    Tree(Output),
    /// Show each method up to now, whoever calls it
    #[command(help_template = TEMPLATE, after_help = "Examples:\n  flat --sort calls\n  flat --min 1 > flat.txt")]
    Flat(Output),
    /// Show a method up to now, with its callers and callees; or all of them
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  callers com.acme.Cart.total\n  callers com.acme.Cart > cart.txt"
    )]
    Callers {
        /// com.acme.Cart.total, com.acme.Cart, com.acme.*
        method: Option<MethodSelector>,
        #[command(flatten)]
        output: Box<Output>,
    },
    /// Say why a method has probes, or none: how it was reached from the root, when, and what to do about it
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  explain com.acme.Cart::total\n  explain com.acme.Cart > why.json"
    )]
    Explain(Explaining),
    /// Show the threads that were inside a root
    #[command(help_template = TEMPLATE)]
    Threads,
    /// Show all threads of the target at one moment: what each does, who waits for whom, deadlocks
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  thread-dump --depth 10\n  thread-dump > threads.json"
    )]
    ThreadDump(Showing),
    /// Sample all threads of the target, beside a profile: where its CPU time, waits and allocations are
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  sample -d 30s --view flat\n  sample --metric wall,blocked,socket\n  sample -d 1m > samples.hw\n  \
                      expect sample.cpu.total(com.acme.Shop::checkout) > 20%\n\nWhat it shows is sampled, and of all threads; `tree`, `flat` and `callers` \
                      show the profile below the roots. Beside one, its probes are among the samples."
    )]
    Sample(Box<Sampling>),
    /// Find methods that could be named as roots: entered again and again, with much of the CPU time, waits or allocations; a profile that is under way ends
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  candidates\n  candidates -d 30s --by wait\n  candidates > candidates.json\n\nThe results of the profile before it stay."
    )]
    Candidates(Choosing),
    /// Show contended locks of the whole JVM: who waited for which, where and how long, and who held them
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  locks -d 30s\n  locks --over 1ms > locks.json"
    )]
    Locks(Box<Waiting>),
    /// Look at the stacks of many JVMs at an interval, the target's if none is named, beside a profile
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  watch -d 30s --find Order.save\n  watch --all -d 1m > night.hwr\n  watch shop -d 1m --analysis 'headwater analyse still'\n\n\
                      Without -d it ends with Ctrl-C."
    )]
    Watch {
        /// Pids, or parts of main classes or jar names: all JVMs that are called so, also those that come later
        #[arg(value_name = "TARGET")]
        targets: Vec<String>,
        /// All JVMs
        #[arg(long, conflicts_with = "targets")]
        all: bool,
        #[command(flatten)]
        watching: Box<Watching>,
    },
    /// Tell of what happens in the target, beside a profile: collections, classes, threads, monitors, compile
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  events gc threads on\n  events monitors on > waits.jsonl\n  events gc off\n  events          (what has happened)\n  events off"
    )]
    Events(Box<Telling>),
    /// Switch what the profile counts beside calls, while it is recorded; alone: what is counted, and since when
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  count alloc gc on\n  count waits off\n  count off        (nothing but calls)\n  count            (what was counted when)\n\n\
                      What is switched on later has been counted since then: reports say so, and no figure a call follows from it. \
                      `clear` begins anew, with all that is on."
    )]
    Count(Switching),
    /// Show the target's methods that match, or those of the profile
    #[command(help_template = TEMPLATE, after_help = "Examples:\n  methods com.acme.Shop\n  methods 'com.acme.*::handle*'")]
    Methods {
        /// A class (com.acme.Shop, com.acme.*) or methods of one (com.acme.Shop::check*)
        pattern: Option<ClassPattern>,
        /// Show at most so many
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
    /// Show what the next profile instruments, or change it
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  filter include com.acme.**\n  filter exclude com.acme.util.* com.acme.Money::add\n  filter clear"
    )]
    Filter {
        #[command(subcommand)]
        change: Option<FilterChange>,
    },
    /// Forget what was recorded, and go on
    #[command(help_template = TEMPLATE)]
    Clear,
    /// Interrupt recording; the methods stay instrumented
    #[command(help_template = TEMPLATE)]
    Pause,
    /// Go on recording
    #[command(help_template = TEMPLATE)]
    Resume,
    /// Write the profile up to now to a file, in the format of its extension
    #[command(help_template = TEMPLATE, after_help = "Examples:\n  snapshot before.hw\n  snapshot before.pb.gz")]
    Snapshot {
        /// The file
        file: PathBuf,
    },
    /// End the profile and give the target its original code back; the results stay
    #[command(help_template = TEMPLATE)]
    Stop,
    /// Wait for a time, for root calls, or for the profile to end by itself
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  wait 30s\n  wait calls 1000\n  wait root-entered 60s    (fails after 60 s)\n  wait done"
    )]
    Wait {
        /// A time; or `calls N`, `root-entered` or `done`, and a time after which that is an error
        #[arg(trailing_var_arg = true, value_name = "WHAT")]
        what: Vec<String>,
    },
    /// Fail unless something holds for the profile up to now, or for the target's threads
    #[command(
        help_template = TEMPLATE,
        after_help = "Examples:\n  expect root-calls > 0\n  expect lost == 0\n  expect deadlocks == 0\n  expect total(com.acme.Shop::checkout) < 2s"
    )]
    Expect {
        /// A quantity, one of < <= == != >= >, and a number or time. Quantities: root-calls, calls, events, lost, healed,
        /// instrumented, called, skipped, threads, warnings; duration; calls(METHOD), self(METHOD), total(METHOD);
        /// deadlocks, which needs no profile; sample.METRIC, sample.METRIC(METHOD) and sample.METRIC.total(METHOD), of the last
        /// `sample`, a value or a share (20%) of all that was sampled; contended-locks, lock-waits and lock-blocked, of the last `locks`;
        /// collections, gc-total, gc-longest, classes-loaded and threads-started, of `events`
        #[arg(trailing_var_arg = true, value_name = "EXPECTATION")]
        expectation: Vec<String>,
    },
    /// Print its arguments
    #[command(help_template = TEMPLATE)]
    Echo {
        /// What to print
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// End the profile and leave the target
    #[command(help_template = TEMPLATE)]
    Detach,
    /// Detach and end the session
    #[command(help_template = TEMPLATE, visible_alias = "exit")]
    Quit,
}

/// `filter ...`.
#[derive(Debug, Subcommand)]
pub enum FilterChange {
    /// Only these classes or methods
    Include {
        /// com.acme.**, com.acme.Foo::bar
        #[arg(required = true)]
        patterns: Vec<ClassPattern>,
    },
    /// Not these classes or methods
    Exclude {
        /// com.acme.**, com.acme.Foo::bar
        #[arg(required = true)]
        patterns: Vec<ClassPattern>,
    },
    /// No filters
    Clear,
}

/// What a line says.
#[derive(Debug)]
pub enum Statement {
    /// Nothing: blank, or a comment.
    Nothing,
    /// Help was asked for: this text.
    Help(String),
    /// `wait`.
    Wait(WaitCommand),
    /// `expect`.
    Expect(Expectation),
    /// Any other command.
    Command(Box<Command>),
}

/// The commands whose report can be redirected.
const REPORTS: [&str; 11] =
    ["tree", "flat", "callers", "explain", "region", "thread-dump", "sample", "candidates", "locks", "watch", "events"];

/// Reads lines. The grammar is built once: a line of its own would take thousands of times its length in memory.
#[derive(Debug)]
pub struct Reader(clap::Command);

impl Default for Reader {
    fn default() -> Reader {
        Reader(Input::command())
    }
}

impl Reader {
    /// Reads a line.
    pub fn read(&mut self, line: &str, variables: Variables<'_>) -> Result<Statement, LineError> {
        let words = split(line, variables)?;
        let end = line.trim_end().chars().count() + 1;
        let Some(name) = words.first() else { return Ok(Statement::Nothing) };
        let words = if name.text == "expect" { words } else { redirected(words)? };
        let input = match self.input(&words) {
            Ok(input) => input,
            Err(error) if error.kind() == ErrorKind::DisplayHelp => {
                return Ok(Statement::Help(error.render().to_string()));
            }
            Err(error) => return Err(explained(&error, &words, end)),
        };
        Ok(match input.command {
            Command::Wait { .. } => Statement::Wait(WaitCommand::parse(&words[1..], end)?),
            Command::Expect { .. } => Statement::Expect(Expectation::parse(&words[1..], end)?),
            command => {
                let output = match &command {
                    Command::Tree(output) | Command::Flat(output) => Some(output),
                    Command::Callers { output, .. } => Some(&**output),
                    _ => None,
                };
                let checked = match &command {
                    Command::Region(timing) => Some(timing.check()),
                    Command::ThreadDump(showing) => Some(showing.check()),
                    Command::Sample(sampling) => Some(sampling.output().check()),
                    Command::Candidates(choosing) => Some(choosing.check()),
                    Command::Explain(explaining) => Some(explaining.check()),
                    Command::Locks(waiting) => Some(waiting.output().check()),
                    Command::Watch { watching, .. } => Some(watching.check()),
                    Command::Events(telling) => Some(telling.check()),
                    Command::Count(switching) => Some(switching.switch().map(drop)),
                    _ => output.map(Output::check),
                };
                if let Some(Err(message)) = checked {
                    return Err(LineError::new(words.last().map_or(end, |word| word.column), message));
                }
                if let Command::Snapshot { file } = &command {
                    let checked = Output::to_file(file.clone()).check();
                    checked.map_err(|message| LineError::new(words[1].column, message))?;
                }
                Statement::Command(Box::new(command))
            }
        })
    }

    fn input(&mut self, words: &[Word]) -> Result<Input, clap::Error> {
        let matches = self.0.try_get_matches_from_mut(words.iter().map(|word| &word.text))?;
        Input::from_arg_matches(&matches).map_err(|error| error.format(&mut self.0))
    }
}

/// Reads one line.
pub fn parse(line: &str, variables: Variables<'_>) -> Result<Statement, LineError> {
    Reader::default().read(line, variables)
}

/// The words with `> FILE` written as the option that it stands for.
fn redirected(mut words: Vec<Word>) -> Result<Vec<Word>, LineError> {
    let Some(at) = words.iter().position(|word| word.is_operator(">") || word.is_operator(">>")) else {
        return Ok(words);
    };
    let operator = &words[at];
    let bad = |message: &str| Err(LineError::new(operator.column, message));
    if operator.is_operator(">>") {
        return bad("reports are not appended; give each a file of its own by `> FILE`");
    }
    if at == 0 || !REPORTS.contains(&words[0].text.as_str()) {
        return bad(
            "only a report (`tree`, `flat`, `callers`, `explain`, `region`, `thread-dump`, `sample`, `candidates`, `locks`, `watch`) or `events` can be written to a file",
        );
    }
    if words.len() != at + 2 {
        return bad("one file name must follow, and nothing else");
    }
    words[at].text = "--output".to_owned();
    Ok(words)
}

/// An error of the argument parser, with its place.
fn explained(error: &clap::Error, words: &[Word], end: usize) -> LineError {
    let rendered = error.render().to_string();
    let rendered = rendered.replace("unrecognized subcommand", "there is no command").replace("subcommand", "command");
    let mut message = String::new();
    for line in rendered.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")) {
        let line = line.trim().trim_start_matches("error: ");
        if !line.is_empty() {
            message.push_str(if message.is_empty() { "" } else { "; " });
            message.push_str(line);
        }
    }
    let kinds = [ContextKind::InvalidValue, ContextKind::InvalidSubcommand, ContextKind::InvalidArg];
    let column = kinds.iter().find_map(|kind| match error.get(*kind) {
        Some(ContextValue::String(value)) => {
            let value = value.split([' ', '=']).next().unwrap_or(value);
            words.iter().find(|word| !value.is_empty() && word.text.starts_with(value)).map(|word| word.column)
        }
        _ => None,
    });
    LineError::new(column.unwrap_or(end), message)
}

/// The names of all commands, for completion.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> =
        Input::command().get_subcommands().map(|command| command.get_name().to_owned()).collect();
    names.push("help".to_owned());
    names
}

/// The options of a command and the words that may follow it, for completion.
pub fn options(command: &str) -> Vec<String> {
    let input = Input::command();
    let Some(command) = input.find_subcommand(command) else { return Vec::new() };
    let options = command.get_arguments().filter_map(|argument| argument.get_long()).map(|long| format!("--{long}"));
    options.chain(command.get_subcommands().map(|command| command.get_name().to_owned())).collect()
}

/// What may follow an option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// One of these.
    OneOf(Vec<String>),
    /// Anything of the kind that the option of this long name takes.
    Of(String),
}

/// What may follow an option of a command; `None` if nothing does.
pub fn value(command: &str, option: &str) -> Option<Value> {
    let input = Input::command();
    let command = input.find_subcommand(command)?;
    let is_meant = |argument: &&clap::Arg| {
        let long = argument.get_long().map(|long| format!("--{long}"));
        let short = argument.get_short().map(|short| format!("-{short}"));
        [long, short].into_iter().flatten().any(|name| name == option)
    };
    let argument = command.get_arguments().find(is_meant).filter(|argument| argument.get_action().takes_values())?;
    let values: Vec<String> = argument.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    Some(if values.is_empty() { Value::Of(argument.get_long()?.to_owned()) } else { Value::OneOf(values) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_error(line: &str, column: usize, part: &str) {
        let error = parse(line, &|_| None).expect_err(line);
        assert!(error.column == column && error.message.contains(part), "{line}: {error:?}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        check_error(
            "tre",
            1,
            "there is no command 'tre'; tip: some similar commands exist: 'thread-dump', 'threads', 'tree'",
        );
        check_error("profile", 8, "<METHOD>");
        check_error("profile Shop", 9, "invalid value 'Shop' for '<METHOD>...'");
        check_error(
            "  tree --dept 3",
            8,
            "unexpected argument '--dept' found; tip: a similar argument exists: '--depth'",
        );
        check_error("tree --min much", 12, "invalid value 'much'");
        check_error("tree > a.b.txt c", 6, "one file name must follow");
        check_error("tree > report.xyz", 8, "names no format");
        check_error("status > a.txt", 8, "only a report");
        check_error("tree >> a.txt", 6, "not appended");
        check_error("expect lost >", 14, "a number is missing");
        check_error("filter include", 15, "<PATTERNS>");
        check_error("region a.B:3-9 a.B:5-12", 16, "overlap, and neither lies in the other");
        check_error("stop now", 6, "unexpected argument 'now'");
    }

    #[test]
    fn a_redirected_report_is_written_to_a_file() {
        let Ok(Statement::Command(command)) = parse("tree --depth 3 > a.json", &|_| None) else { panic!("a command") };
        let Command::Tree(output) = *command else { panic!("a tree") };
        let long = Input::try_parse_from(["tree", "--depth", "3", "--output", "a.json"]).unwrap();
        let Command::Tree(long) = long.command else { panic!("a tree") };
        assert_eq!(format!("{output:?}"), format!("{long:?}"));
    }

    #[test]
    fn every_command_has_help() {
        for name in names() {
            let Ok(Statement::Help(text)) = parse(&format!("help {name}"), &|_| None) else { panic!("{name}") };
            assert!(text.len() > 20, "{name}: {text}");
        }
    }
}
