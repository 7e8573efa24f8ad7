//! The command line: arguments, progress, exit codes. What the commands do is elsewhere.

use std::io::{self, IsTerminal, Write};
use std::num::NonZeroU32;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use headwater_protocol::message::Reveal;

use headwater_protocol::segment::Overflow;

use crate::callgraph::{JdkMethods, Scheme};
use crate::clock_source::ClockChoice;
use crate::jvm;
use crate::pattern::{ClassPattern, MethodPattern};
use crate::profile::ClockMode;
use crate::profiling::{self, BareTiming, Ending, Outcome, ProfileError, Settings};

mod diff;
mod output;
mod progress;
mod report;
mod view;

use output::{Origin, Output};
use progress::Shown;

const EXAMPLES: &str = "\
Examples:
  headwater list
  headwater profile 4711 --root com.acme.Shop::checkout -d 30s
  headwater profile tomcat --root 'org.apache.catalina.core.ApplicationFilterChain::doFilter' --calls 1000
  headwater profile 4711 --root 'com.acme.*.Service::handle' --format json -o profile.json
  headwater run --root com.acme.Main::main -o run.hw -- java -jar shop.jar
  headwater report run.hw --view callers --focus com.acme.Cart
  headwater diff before.hw after.hw --fail-if 'self(com.acme.*) > +5%'

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (results are still written).";

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
    List {
        /// How to show them
        #[arg(long, value_enum, default_value_t = ListFormat::Text)]
        format: ListFormat,
    },
    /// Attach to a running JVM, profile what one method calls, detach, report
    #[command(after_help = EXAMPLES)]
    Profile {
        /// A pid, or a unique part of the main class or jar name
        target: String,
        #[command(flatten)]
        profile: ProfileArgs,
        /// Wait for classes of roots that are not loaded yet, rather than fail
        #[arg(long)]
        await_root: bool,
    },
    /// Start a program and profile it from its first instruction
    Run {
        #[command(flatten)]
        profile: ProfileArgs,
        /// The program: `java` with its arguments, or a script that starts one
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<String>,
    },
    /// Look at a saved profile again, in any view and format
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Compare two saved profiles
    #[command(after_help = diff::EXAMPLES)]
    Diff(diff::DiffArgs),
    /// Remove whatever a lost tool left behind in a JVM
    Detach {
        /// A pid, or a unique part of the main class or jar name
        target: String,
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

#[derive(Debug, Args)]
struct ProfileArgs {
    /// The method whose calls are profiled: a.b.C::m, wildcards *, an optional parameter list. May be repeated
    #[arg(long = "root", required = true, value_name = "METHOD")]
    roots: Vec<MethodPattern>,
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
    /// What --clock exact reads. The time stamp counter takes less than half as long, and needs JDK 22 or later
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
    /// Which methods of the JDK are instrumented
    #[arg(long, value_enum, default_value_t = Jdk::None)]
    jdk: Jdk,
    /// Size of the shared event buffer in MiB
    #[arg(long, value_name = "MIB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    buffer: u32,
    /// What a thread of the target does when that buffer is full
    #[arg(long, value_enum, default_value_t = OnOverflow::Wait)]
    on_overflow: OnOverflow,
    #[command(flatten)]
    output: Output,
}

impl ProfileArgs {
    fn settings(&self, await_roots: bool) -> Settings {
        Settings {
            roots: self.roots.clone(),
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
            duration: self.duration,
            calls: self.calls,
            clock: match self.clock {
                Clock::Exact => ClockMode::Exact,
                Clock::Tick => ClockMode::Tick(self.tick_period),
            },
            clock_source: match self.clock_source {
                ClockSource::Auto => ClockChoice::Auto,
                ClockSource::Tsc => ClockChoice::Tsc,
                ClockSource::Nanotime => ClockChoice::NanoTime,
            },
            control: self.control.and_then(NonZeroU32::new),
            bare: self.bare,
            buffer_bytes: self.buffer as usize * (1 << 20),
            overflow: match self.on_overflow {
                OnOverflow::Wait => Overflow::Wait,
                OnOverflow::Drop => Overflow::Drop,
            },
            await_roots,
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
            Err(error) => Err(format!("give auto, off, or a time such as 5s: {error}")),
        },
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string());
    }
    humantime::parse_duration(text).map_err(|error| error.to_string())
}

/// The whole program.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(1, &format!("cannot start: {error}")),
    };
    let code = runtime.block_on(async {
        match cli.command {
            Command::List { format } => list(format),
            Command::Profile { target, profile, await_root } => profile_command(&target, &profile, await_root).await,
            Command::Run { profile, command } => run_command(&profile, &command).await,
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

async fn profile_command(target: &str, arguments: &ProfileArgs, await_root: bool) -> ExitCode {
    let jvm = match jvm::resolve(target) {
        Ok(jvm) => jvm,
        Err(error) => return fail(error.exit_code(), &error.to_string()),
    };
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    let progress = progress::Progress::new(if io::stderr().is_terminal() { Shown::Live } else { Shown::Milestones });
    let settings = arguments.settings(await_root);
    let observer = |stage| progress.show(stage);
    let result = profiling::attach(&jvm, &settings, interrupted(), &observer).await;
    progress.clear();
    conclude(result, arguments)
}

async fn run_command(arguments: &ProfileArgs, command: &[String]) -> ExitCode {
    if let Err(error) = arguments.output.check() {
        return fail(2, &error);
    }
    // The program writes to the same terminal: no live line there.
    let progress = progress::Progress::new(Shown::Milestones);
    let settings = arguments.settings(true);
    let observer = |stage| progress.show(stage);
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

fn conclude(result: Result<Outcome, ProfileError>, arguments: &ProfileArgs) -> ExitCode {
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
        Err(error) => return fail(1, &format!("the report could not be written: {error}")),
    }
    let nothing_matched = outcome.profile.roots.iter().all(|root| root.methods.is_empty());
    match outcome.ending {
        Ending::TargetEnded => ExitCode::from(5),
        Ending::Broken => fail(1, outcome.profile.warnings.last().map_or("the profile ended early", String::as_str)),
        _ if nothing_matched => fail(4, "no method that matches the root was loaded while the profile ran"),
        Ending::Complete | Ending::Interrupted => ExitCode::SUCCESS,
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
async fn interrupted() {
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
