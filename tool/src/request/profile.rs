//! How to profile: the options of `profile` and `run`, and of `profile` at the prompt and in scripts, and the settings that
//! they mean.

use std::num::NonZeroU32;
use std::time::Duration;

use clap::{Args, Parser, ValueEnum};
use headwater_protocol::message::Reveal;
use headwater_protocol::segment::Overflow;

use super::count::{Count, counting};
use super::output::{Meanwhile, Output};
use super::values::{bare_timing, duration, tick_period};
use crate::callgraph::{JdkMethods, Options};
use crate::clock_source::ClockChoice;
use crate::decode::Statistics;
use crate::pattern::{ClassPattern, MethodPattern};
use crate::profile::ClockMode;
use crate::profiling::{BareTiming, Keeping, Settings};
use crate::session::Gentle;
use headwater_terms::Scheme;

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

/// Whether what the profile takes of the program's time is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GentleName {
    /// It is: the program is paused for 2% of the time at most, and each of its threads waits for 5%, and half a second in any one call. Beyond
    /// that, methods are instrumented in the background; calls that this misses are marked in the report
    On,
    /// It is not: in a large program, calls may take many seconds
    Off,
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
pub(crate) enum ClockSource {
    /// The time stamp counter where the kernel trusts it and the JVM can read it, System.nanoTime() elsewhere
    Auto,
    /// The time stamp counter, or fail
    Tsc,
    /// System.nanoTime()
    Nanotime,
}

impl ClockSource {
    pub(crate) fn choice(self) -> ClockChoice {
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

/// What of the program's is followed beyond calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Follow {
    /// Threads that are started, and tasks that are handed to executors, fork/join pools, CompletableFuture and virtual threads
    Threads,
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
pub(crate) struct OneProfile {
    /// The method whose calls are profiled: a.b.C::m, wildcards *, an optional parameter list. May be repeated
    #[arg(long = "root", required = true, value_name = "METHOD")]
    roots: Vec<MethodPattern>,
    #[command(flatten)]
    options: ProfileArgs,
    #[command(flatten)]
    meanwhile: Meanwhile,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl OneProfile {
    pub(crate) fn settings(&self, await_roots: bool) -> Settings {
        Settings { await_roots, live: self.meanwhile.live, ..self.options.settings(self.roots.clone()) }
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
    /// Whether what the profile takes of a running program's time is limited, at the cost of counts that are complete. A program that `run` starts is
    /// held up as long as it takes
    #[arg(long, value_enum, default_value_t = GentleName::On)]
    gentle: GentleName,
    /// Where time comes from
    #[arg(long, value_enum, default_value_t = Clock::Exact)]
    clock: Clock,
    /// What --clock exact reads. The time stamp counter takes less than half as long, and needs JDK 17, or 21 or later
    #[arg(long, value_enum, default_value_t = ClockSource::Auto)]
    clock_source: ClockSource,
    /// How often the coarse clock of --clock tick moves
    #[arg(long, value_name = "TIME", default_value = "100us", value_parser = tick_period)]
    tick_period: Duration,
    /// Of every N calls of a root, time one as a whole without recording it: truer totals where calls cannot be timed
    /// afterwards. Counts leave those calls out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    control: Option<u32>,
    /// After the recording, time the root's calls without probes, and have the JVM's flight recorder sample them: times
    /// are made of that. auto: until code is settled and sampled, for as long as was recorded at most (2s to 60s); off:
    /// times as measured beside the probes; or for how long at most
    #[arg(long, value_name = "TIME", default_value = "auto", value_parser = bare_timing)]
    bare: BareTiming,
    /// How much longer the root's calls may take for being profiled (5%), or off. Methods whose probes cost more than they tell
    /// lose their probes until that holds; the report lists them with what was recorded until then. Unless given: by 0.1 s
    /// each, less if probes would have more than a tenth of the processors so, or by as much as they run without, if that is
    /// more (four times that until code is compiled again); with --gentle off or --count bytecodes, none
    #[arg(long, value_name = "PERCENT")]
    budget: Option<Keeping>,
    /// Instrument only classes or methods that match (com.acme.**, com.acme.Foo::bar). Of the JDK, those that --jdk says, unless a pattern can mean
    /// classes of it (java.util.**). May be repeated
    #[arg(long, value_name = "PATTERN")]
    include: Vec<ClassPattern>,
    /// Do not instrument classes or methods that match. May be repeated
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<ClassPattern>,
    /// Do not instrument getters, setters and methods that do nothing; their time counts into their callers
    #[arg(long)]
    skip_trivial: bool,
    /// Show native methods, by probes around the calls of them: the application's; with --jdk edge or all, those of the JDK that
    /// are called from what is instrumented
    #[arg(long)]
    natives: bool,
    /// What is begun inside the root's calls and done elsewhere belongs to the profile, too: below the call that handed it over,
    /// beside that call's own time
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    follow: Vec<Follow>,
    /// Record how the durations of each method's invocations spread: shortest, longest, mean, deviation, quantiles. The flat view
    /// and JSON show them. The tool needs more time and memory for that, the program does not
    #[arg(long)]
    stats: bool,
    /// What is counted beside calls, where it happens: see --metric for what is shown
    #[arg(long, value_name = "WHAT", value_enum, value_delimiter = ',')]
    count: Vec<Count>,
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
        let clock = match self.clock {
            Clock::Exact => ClockMode::Exact,
            Clock::Tick => ClockMode::Tick(self.tick_period),
            Clock::Cpu => ClockMode::Cpu,
        };
        let counting = counting(&self.count, clock);
        Settings {
            subgraph: Options {
                roots,
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
                skip_trivial: self.skip_trivial,
                natives: self.natives,
                follow_threads: self.follow.contains(&Follow::Threads),
                waits: counting.probed_waits,
                loading: counting.classes,
                exceptions: counting.exceptions,
                objects: counting.objects,
                ..Options::default()
            },
            reveal: match self.reveal {
                RevealName::Blocking => Reveal::Blocking,
                RevealName::Background => Reveal::Background,
            },
            gentle: match self.gentle {
                GentleName::On => Gentle::On,
                GentleName::Off => Gentle::Off,
            },
            statistics: if self.stats { Statistics::Every } else { Statistics::Off },
            counting,
            duration: self.duration,
            calls: self.calls,
            clock,
            clock_source: self.clock_source.choice(),
            control: self.control.and_then(NonZeroU32::new),
            bare: self.bare,
            budget: self.budget.unwrap_or_default(),
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
