//! The command line: arguments, progress, exit codes. What the commands do is elsewhere.

use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use headwater_protocol::message::Reveal;

use headwater_protocol::segment::Overflow;

use crate::callgraph::{JdkMethods, Scheme};
use crate::clock_source::ClockChoice;
use crate::console::line::split;
use crate::console::{Console, prompt};
use crate::decode::Statistics;
use crate::doctor;
use crate::jvm;
use crate::pattern::{ClassPattern, MethodPattern};
use crate::profile::ClockMode;
use crate::profiling::{self, BareTiming, Ending, Outcome, ProfileError, Settings, Stage};
use crate::script::{self, Script, Setting};

mod diff;
pub(crate) mod output;
pub(crate) mod progress;
mod region;
mod report;
mod view;

use output::{Origin, Output};
use progress::Shown;

const EXAMPLES: &str = "\
Examples:
  headwater list
  headwater profile 4711 --root com.acme.Shop::checkout -d 30s
  headwater run --root com.acme.Main::main -o run.hw -- java -jar shop.jar
  headwater report run.hw --view callers --focus com.acme.Cart
  headwater diff before.hw after.hw --fail-if 'self(com.acme.*) > +5%'
  headwater attach shop.jar
  headwater doctor shop.jar

`headwater COMMAND --help` has more. HEADWATER_OPTIONS holds options that `profile` and `run` begin with.

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (results are still written).";

const PROFILE_EXAMPLES: &str = "\
Examples:
  headwater profile 4711 --root com.acme.Shop::checkout -d 30s
  headwater profile tomcat --root 'org.apache.catalina.core.ApplicationFilterChain::doFilter' --calls 1000
  headwater profile 4711 --root 'com.acme.*.Service::handle' --format json -o profile.json
  headwater profile 4711 --root com.acme.Shop::checkout --live=5s
  HEADWATER_OPTIONS='--clock tick --min 1' headwater profile 4711 --root com.acme.Shop::checkout

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (results are still written).";

const RUN_EXAMPLES: &str = "\
Examples:
  headwater run --root com.acme.Main::main -- java -jar shop.jar
  headwater run --root 'com.acme.**::handle' -o profile.json -- ./start-shop.sh";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  headwater completions bash > ~/.local/share/bash-completion/completions/headwater
  headwater completions zsh > ~/.zfunc/_headwater
  headwater completions fish > ~/.config/fish/completions/headwater.fish";

const ATTACH_EXAMPLES: &str = "\
Example:
  $ headwater attach shop.jar
  headwater> profile com.acme.Shop::checkout
  headwater> status
  headwater> tree --min 2
  headwater> tree > checkout.json
  headwater> quit

`help` lists the commands, Tab completes them and the target's class and method names. Ctrl-C stops a command, Ctrl-D
detaches. Commands are also read from a pipe.";

const SESSION_EXAMPLES: &str = "\
Example: headwater session checkout.hws shop.jar --set OUT=/tmp/checkout.json
  # checkout.hws: a hundred checkouts, written to a file
  profile com.acme.Shop::checkout --calls 100
  wait root-entered 60s
  wait done 10m
  expect lost == 0
  tree --min 2
  tree > ${OUT}

A script is checked as a whole before it begins. It ends with the first command that fails, whose exit code is that of the
session: 1 failed (an expectation that does not hold too), 2 a mistake in the script, 3 no such target or no permission, 4
the root matched nothing, 5 the target ended.";

/// A profiler for running JVMs: name one method, see every call below it.
#[derive(Debug, Parser)]
#[command(name = "headwater", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the JVMs that can be attached to
    #[command(after_help = "Examples:\n  headwater list\n  headwater list --format json")]
    List {
        /// How to show them
        #[arg(long, value_enum, default_value_t = ListFormat::Text)]
        format: ListFormat,
    },
    /// Attach to a running JVM, profile what one method calls, detach, report
    #[command(after_help = PROFILE_EXAMPLES, args_override_self = true)]
    Profile {
        /// A pid, or a unique part of the main class or jar name
        target: String,
        #[command(flatten)]
        profile: OneProfile,
        /// Wait for classes of roots that are not loaded yet, rather than fail
        #[arg(long)]
        await_root: bool,
    },
    /// Start a program and profile it from its first instruction
    #[command(after_help = RUN_EXAMPLES, args_override_self = true)]
    Run {
        #[command(flatten)]
        profile: OneProfile,
        /// The program: `java` with its arguments, or a script that starts one
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Attach to a running JVM and take commands: profile, look, change, at any moment
    #[command(after_help = ATTACH_EXAMPLES)]
    Attach {
        /// A pid, or a unique part of the main class or jar name
        target: String,
    },
    /// Execute the commands of a file: those of `headwater attach`, one a line
    #[command(after_help = SESSION_EXAMPLES)]
    Session {
        /// The script; `-` is standard input
        script: PathBuf,
        /// A pid, or a unique part of the main class or jar name; without one, the script attaches by itself
        target: Option<String>,
        /// A variable of the script: ${NAME}. The environment's are there too. May be repeated
        #[arg(long, value_name = "NAME=VALUE")]
        set: Vec<Setting>,
        /// Only check the script
        #[arg(long)]
        dry_run: bool,
    },
    /// Say whether a JVM can be attached to, and what to do if not; changes nothing in it
    #[command(after_help = "Examples:\n  headwater doctor shop.jar\n  headwater doctor 4711 --format json\n\n\
                            Exit codes: 0 nothing is in the way, 3 something is.")]
    Doctor {
        /// A pid, or a unique part of the main class or jar name
        target: String,
        /// How to show it
        #[arg(long, value_enum, default_value_t = ListFormat::Text)]
        format: ListFormat,
    },
    /// Time single methods or lines, and nothing else: count, mean, deviation and quantiles, at next to no cost
    #[command(after_help = region::EXAMPLES)]
    Region(region::RegionArgs),
    /// Look at a saved profile again, in any view and format
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Compare two saved profiles
    #[command(after_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
    /// Remove whatever a lost tool left behind in a JVM
    #[command(after_help = "Example: headwater detach 4711")]
    Detach {
        /// A pid, or a unique part of the main class or jar name
        target: String,
    },
    /// Print the completions of a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// Which shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man {
        /// The directory; it must exist
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ListFormat {
    Text,
    Json,
}

/// How callees are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SchemeName {
    /// Everything reachable among the loaded classes is instrumented at once (JFluid's scheme A)
    A,
    /// A method's callees are instrumented when it is entered for the first time (JFluid's scheme B)
    B,
    /// Every method that the filters admit is instrumented, called or not
    Total,
}

/// Whether the program waits for instrumentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RevealName {
    /// It does: no call is missed
    Blocking,
    /// It does not: a method's first calls may be missed, and the report says for how many methods
    Background,
}

/// Where time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// A timestamp at each event
    Exact,
    /// A coarse clock: exact counts, sampled times, a fraction of the cost
    Tick,
    /// The thread's CPU time at each entry and exit: waiting takes none. Several times as dear as exact
    Cpu,
}

/// What is read for an exact time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClockSource {
    /// The time stamp counter where the kernel trusts it and the JVM can read it, System.nanoTime() elsewhere
    Auto,
    /// The time stamp counter, or fail
    Tsc,
    /// System.nanoTime()
    Nanotime,
}

impl ClockSource {
    fn choice(self) -> ClockChoice {
        match self {
            ClockSource::Auto => ClockChoice::Auto,
            ClockSource::Tsc => ClockChoice::Tsc,
            ClockSource::Nanotime => ClockChoice::NanoTime,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Jdk {
    /// No methods of the JDK; their time counts into their callers
    None,
    /// Those that are called directly by the application
    Edge,
    /// All
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnOverflow {
    /// It waits, for three seconds at most; the wait is taken out of all times
    Wait,
    /// It goes on: calls are missing, and the profile says how many events were lost
    Drop,
}

/// What `profile` and `run` have in common.
#[derive(Debug, Args)]
struct OneProfile {
    /// The method whose calls are profiled: a.b.C::m, wildcards *, an optional parameter list. May be repeated
    #[arg(long = "root", required = true, value_name = "METHOD")]
    roots: Vec<MethodPattern>,
    #[command(flatten)]
    options: ProfileArgs,
    /// Show the report while the profile is recorded, once a period (2s): on a terminal in place, else one after another,
    /// with -o in the file
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = live_period
    )]
    live: Option<Duration>,
    #[command(flatten)]
    output: Output,
}

impl OneProfile {
    fn settings(&self, await_roots: bool) -> Settings {
        Settings { await_roots, live: self.live, ..self.options.settings(self.roots.clone()) }
    }
}

/// How to profile: for `profile` and `run`, and for `profile` in a session.
#[derive(Clone, Debug, Args)]
pub struct ProfileArgs {
    /// End after this time (30s, 2m, 500ms) [default: until Ctrl-C]
    #[arg(short, long, value_parser = duration)]
    duration: Option<Duration>,
    /// End after this many invocations of the root, and count no others
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    calls: Option<u64>,
    /// How callees are found
    #[arg(long, value_enum, default_value_t = SchemeName::B)]
    scheme: SchemeName,
    /// Whether a thread that enters a method for the first time waits until what that calls is instrumented
    #[arg(long, value_enum, default_value_t = RevealName::Blocking)]
    reveal: RevealName,
    /// Where time comes from
    #[arg(long, value_enum, default_value_t = Clock::Exact)]
    clock: Clock,
    /// What --clock exact reads. The time stamp counter takes less than half as long, and needs JDK 17, or 22 or later
    #[arg(long, value_enum, default_value_t = ClockSource::Auto)]
    clock_source: ClockSource,
    /// How often the coarse clock of --clock tick moves
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = tick_period)]
    tick_period: Duration,
    /// Of every N calls of a root, time one as a whole without recording it, and fit the probes' cost to that: truer
    /// times. Counts leave those calls out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    control: Option<u32>,
    /// After the profile, time the root's calls without it, so that the probes' cost can be fitted to that: truer times.
    /// auto: when the root is called often enough, up to a third of the profile's time and 10s at most; off; or for how long
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = bare_timing)]
    bare: BareTiming,
    /// Instrument only classes or methods that match (com.acme.**, com.acme.Foo::bar). May be repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<ClassPattern>,
    /// Do not instrument classes or methods that match. May be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<ClassPattern>,
    /// Do not instrument getters, setters and methods that do nothing; their time counts into their callers
    #[arg(long)]
    skip_trivial: bool,
    /// Record how the durations of each method's invocations spread: shortest, longest, mean, deviation, quantiles. The flat view
    /// and JSON show them. The tool needs more time and memory for that, the program does not
    #[arg(long)]
    stats: bool,
    /// Which methods of the JDK are instrumented
    #[arg(long, value_enum, default_value_t = Jdk::None)]
    jdk: Jdk,
    /// Size of the shared event buffer in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    buffer: u32,
    /// What a thread of the target does when that buffer is full
    #[arg(long, value_enum, default_value_t = OnOverflow::Wait)]
    on_overflow: OnOverflow,
}

impl ProfileArgs {
    /// What holds when nothing is said.
    pub(crate) fn defaults() -> ProfileArgs {
        #[derive(Parser)]
        struct Defaults {
            #[command(flatten)]
            options: ProfileArgs,
        }
        Defaults::parse_from([""]).options
    }

    /// The profile of these roots.
    pub(crate) fn settings(&self, roots: Vec<MethodPattern>) -> Settings {
        Settings {
            roots,
            lines: Vec::new(),
            only_roots: false,
            include: self.include.clone(),
            exclude: self.exclude.clone(),
            jdk: match self.jdk {
                Jdk::None => JdkMethods::None,
                Jdk::Edge => JdkMethods::Edge,
                Jdk::All => JdkMethods::All,
            },
            scheme: match self.scheme {
                SchemeName::A => Scheme::Eager,
                SchemeName::B => Scheme::Lazy,
                SchemeName::Total => Scheme::Total,
            },
            reveal: match self.reveal {
                RevealName::Blocking => Reveal::Blocking,
                RevealName::Background => Reveal::Background,
            },
            skip_trivial: self.skip_trivial,
            statistics: if self.stats { Statistics::Every } else { Statistics::Off },
            duration: self.duration,
            calls: self.calls,
            clock: match self.clock {
                Clock::Exact => ClockMode::Exact,
                Clock::Tick => ClockMode::Tick(self.tick_period),
                Clock::Cpu => ClockMode::Cpu,
            },
            clock_source: self.clock_source.choice(),
            control: self.control.and_then(NonZeroU32::new),
            bare: self.bare,
            buffer_bytes: self.buffer as usize * (1 << 20),
            overflow: match self.on_overflow {
                OnOverflow::Wait => Overflow::Wait,
                OnOverflow::Drop => Overflow::Drop,
            },
            await_roots: false,
            live: None,
        }
    }
}

fn tick_period(text: &str) -> Result<Duration, String> {
    let range = Duration::from_micros(10)..=Duration::from_secs(1);
    let period = duration(text)?;
    if range.contains(&period) { Ok(period) } else { Err("give a time from 10us to 1s".to_owned()) }
}

fn bare_timing(text: &str) -> Result<BareTiming, String> {
    match text {
        "auto" => Ok(BareTiming::Auto),
        "off" => Ok(BareTiming::Off),
        time => match duration(time) {
            Ok(time) => Ok(BareTiming::For(time)),
            Err(_) => Err("give auto, off, or a time such as 5s".to_owned()),
        },
    }
}

fn live_period(text: &str) -> Result<Duration, String> {
    let period = duration(text)?;
    if period >= Duration::from_millis(100) { Ok(period) } else { Err("give a time of 100ms or more".to_owned()) }
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    humantime::parse_duration(text).map_err(|_| format!("`{text}` is no time; give one such as 500ms, 30s or 2m"))
}

/// The name of the variable with options that `profile` and `run` begin with.
const OPTIONS: &str = "HEADWATER_OPTIONS";

/// The arguments, with the options of the environment behind `profile` or `run`: what is given on the command line comes
/// later and overrides them.
fn arguments(given: Vec<OsString>, options: Option<&str>) -> Result<Vec<OsString>, String> {
    let takes_them = given.get(1).is_some_and(|command| command == "profile" || command == "run");
    let Some(options) = options.filter(|_| takes_them) else { return Ok(given) };
    let words = split(options, &|name| std::env::var(name).ok())
        .map_err(|error| format!("{OPTIONS}, column {}: {error}", error.column))?;
    let (program, rest) = given.split_at(2);
    Ok(program
        .iter()
        .cloned()
        .chain(words.into_iter().map(|word| word.text.into()))
        .chain(rest.iter().cloned())
        .collect())
}

/// The whole program.
pub fn main() -> ExitCode {
    let options = std::env::var(OPTIONS).ok().filter(|options| !options.trim().is_empty());
    let cli = match arguments(std::env::args_os().collect(), options.as_deref()) {
        Ok(arguments) => Cli::try_parse_from(arguments),
        Err(error) => return fail(2, &error),
    };
    let cli = match cli {
        Ok(cli) => cli,
        Err(error) => {
            if let Some(options) = options.filter(|_| error.use_stderr()) {
                // It may be there that the mistake is.
                let _ = writeln!(io::stderr(), "headwater: {OPTIONS} is set to `{options}`");
            }
            error.exit()
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("cannot start: {error}")),
    };
    let code = runtime.block_on(async {
        match cli.command {
            Command::List { format } => list(format),
            Command::Profile { target, profile, await_root } => profile_command(&target, &profile, await_root).await,
            Command::Run { profile, command } => run_command(&profile, &command).await,
            Command::Attach { target } => attach_command(&target).await,
            Command::Session { script, target, set, dry_run } => {
                let run = if dry_run { Run::Dry } else { Run::Real };
                session_command(&script, target.as_deref(), &set, run).await
            }
            Command::Completions { shell } => completions(shell),
            Command::Man { directory } => match clap_mangen::generate_to(Cli::command(), &directory) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(1, &format!("cannot write the manual pages to {}: {error}", directory.display())),
            },
            Command::Doctor { target, format } => doctor_command(&target, format),
            Command::Region(arguments) => region::run(&arguments).await,
            Command::Report(arguments) => report::run(&arguments),
            Command::Diff(arguments) => diff::run(&arguments),
            Command::Detach { target } => detach_command(&target).await,
        }
    });
    // A load request that a stopped target never answers must not keep this process.
    runtime.shutdown_background();
    code
}

fn fail(code: u8, message: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "headwater: {message}");
    ExitCode::from(code)
}

fn list(format: ListFormat) -> ExitCode {
    let jvms = jvm::list();
    let written = match format {
        ListFormat::Text => output::list_text(&jvms, &mut io::stdout().lock()),
        ListFormat::Json => output::list_json(&jvms, &mut io::stdout().lock()),
    };
    match written {
        Ok(()) => ExitCode::SUCCESS,
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(1, &format!("cannot write the list: {error}")),
    }
}

async fn profile_command(target: &str, arguments: &OneProfile, await_root: bool) -> ExitCode {
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    let progress = progress::Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let settings = arguments.settings(await_root);
    let observer = |stage| observe(stage, &progress, &arguments.output);
    let result = profiling::attach(&jvm, &settings, interrupted(), &observer).await;
    progress.clear();
    conclude(result, arguments)
}

async fn run_command(arguments: &OneProfile, command: &[String]) -> ExitCode {
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    // The program writes to the same terminal: no live line there.
    let progress = progress::Progress::new(Shown::Milestones);
    let settings = arguments.settings(true);
    let observer = |stage| observe(stage, &progress, &arguments.output);
    match profiling::run(command, &settings, interrupted(), &observer).await {
        Ok((mut outcome, status)) => {
            if !status.success() {
                outcome.profile.warnings.push(format!("the program ended with {status}"));
            }
            conclude(Ok(outcome), arguments)
        }
        Err(error) => conclude(Err(error), arguments),
    }
}

/// Shows what goes on. A report that cannot be shown now is tried again at the end, where it is an error.
fn observe(stage: Stage, progress: &progress::Progress, output: &Output) {
    match stage {
        Stage::SoFar(profile) => {
            progress.clear();
            let _ = output.write_so_far(&profile);
        }
        other => progress.show(other),
    }
}

fn conclude(result: Result<Outcome, ProfileError>, arguments: &OneProfile) -> ExitCode {
    let outcome = match result {
        Ok(outcome) => outcome,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(nothing) = arguments.output.check_selection(&outcome.profile) {
        // What was recorded must not be lost to a wrong name.
        let _ = writeln!(io::stderr(), "headwater: {nothing}");
    }
    match arguments.output.write(&outcome.profile, Origin::Recording) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        Err(error) => {
            let code = fail(1, &format!("the report could not be written: {error}"));
            // What was recorded cannot be had a second time.
            if arguments.output.is_file() {
                let _ = writeln!(io::stderr(), "headwater: so that it is not lost, here it is as text");
                let _ = arguments.output.write_as_text(&outcome.profile);
            }
            return code;
        }
    }
    let nothing_matched = outcome.profile.roots.iter().all(|root| root.methods.is_empty());
    match outcome.ending {
        Ending::TargetEnded => fail(5, profiling::TARGET_ENDED),
        Ending::Broken => fail(1, outcome.profile.warnings.last().map_or("the profile ended early", String::as_str)),
        _ if nothing_matched => fail(4, "no method that matches the root was loaded while the profile ran"),
        Ending::Complete | Ending::Interrupted => ExitCode::SUCCESS,
    }
}

async fn attach_command(target: &str) -> ExitCode {
    let mut console = Console::new(progress::Progress::at_prompt());
    if let Err(failure) = console.attach(target).await.and_then(|()| console.announce()) {
        return fail(failure.code, &failure.message);
    }
    ExitCode::from(prompt::run(console).await)
}

/// Whether a script is only checked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Run {
    Dry,
    Real,
}

async fn session_command(path: &Path, target: Option<&str>, settings: &[Setting], run: Run) -> ExitCode {
    let name = path.display().to_string();
    let text = if name == "-" { io::read_to_string(io::stdin()) } else { std::fs::read_to_string(path) };
    let text = match text {
        Ok(text) => text,
        Err(error) => return fail(2, &format!("the script {name} cannot be read: {error}")),
    };
    // The same script may be checked without the target that it will be given.
    let given = if target.is_some() || run == Run::Dry { script::Target::Given } else { script::Target::Awaited };
    let script = match Script::parse(&name, &text, settings, given) {
        Ok(script) => script,
        Err(errors) => {
            for error in errors {
                fail(2, &error.to_string());
            }
            return ExitCode::from(2);
        }
    };
    if run == Run::Dry {
        let _ = writeln!(io::stderr(), "headwater: {name}: {} commands, no mistake found", script.len());
        return ExitCode::SUCCESS;
    }
    let mut console = Console::new(progress::Progress::new(Shown::Milestones));
    if let Some(target) = target
        && let Err(failure) = console.attach(target).await.and_then(|()| console.announce())
    {
        return fail(failure.code, &failure.message);
    }
    match script.run(&mut console, interrupted()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(error.code, &error.to_string()),
    }
}

fn completions(shell: Shell) -> ExitCode {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "headwater", &mut script);
    match io::stdout().write_all(&script) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(1, &format!("cannot write: {error}")),
        _ => ExitCode::SUCCESS,
    }
}

fn doctor_command(target: &str, format: ListFormat) -> ExitCode {
    let diagnosis = doctor::examine(target);
    let mut out = io::stdout().lock();
    let written = match format {
        ListFormat::Text => diagnosis.write_text(&mut out),
        ListFormat::Json => diagnosis.write_json(&mut out),
    };
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => fail(1, &format!("cannot write: {error}")),
        _ if diagnosis.is_hopeless() => ExitCode::from(3),
        _ => ExitCode::SUCCESS,
    }
}

async fn detach_command(target: &str) -> ExitCode {
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    match profiling::detach(&jvm).await {
        Ok(report) => {
            let _ = writeln!(io::stdout(), "{}: {report}", jvm.pid);
            if report.contains("not ended") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
        }
        Err(error) => fail(error.exit_code(), &error.to_string()),
    }
}

/// Returns when the user wants an end: Ctrl-C, or a request to terminate.
pub(crate) async fn interrupted() {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut terminate), Ok(mut hangup)) = (signal(SignalKind::terminate()), signal(SignalKind::hangup())) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
        _ = hangup.recv() => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_of_the_environment_come_first_and_are_overridden() {
        let given = || words("headwater profile 4711 --root a.B::c --clock exact --exclude x.Y");
        let all = arguments(given(), Some("--clock tick --min 3 --exclude 'a.B'")).unwrap();
        assert_eq!(all[2..7], words("--clock tick --min 3 --exclude"));
        let Command::Profile { profile, .. } = Cli::try_parse_from(all).unwrap().command else { panic!("profile") };
        assert_eq!(profile.options.clock, Clock::Exact);
        assert_eq!(profile.options.exclude.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a.B", "x.Y"]);
        assert_eq!(arguments(given(), None), Ok(given()));
        assert_eq!(arguments(words("headwater list"), Some("--clock tick")), Ok(words("headwater list")));
        let error = arguments(given(), Some("--root 'x")).unwrap_err();
        assert_eq!(error, "HEADWATER_OPTIONS, column 8: this quote is never closed");
    }

    #[test]
    fn a_time_that_is_none_is_refused_with_one_that_is() {
        assert_eq!(duration("1.5"), Ok(Duration::from_millis(1_500)));
        assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(duration("soon").unwrap_err(), "`soon` is no time; give one such as 500ms, 30s or 2m");
    }

    #[test]
    fn the_command_line_is_well_formed_and_every_command_has_an_example() {
        let mut command = Cli::command();
        command.build();
        command.clone().debug_assert();
        for command in
            command.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help")
        {
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example") && help.contains("headwater"), "{}", command.get_name());
        }
    }

    #[test]
    fn completions_and_manual_pages_name_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "headwater", &mut script);
            let script = String::from_utf8_lossy(&script).into_owned();
            assert!(["profile", "attach", "session", "doctor"].iter().all(|name| script.contains(name)), "{shell}");
        }
        let scratch = headwater_tests::Scratch::new("man");
        clap_mangen::generate_to(Cli::command(), scratch.path()).unwrap();
        for page in ["headwater.1", "headwater-profile.1", "headwater-session.1"] {
            assert!(scratch.file(page).exists(), "{page}");
        }
    }
}
