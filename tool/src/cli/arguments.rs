//! What may be said on the command line: the commands, their arguments and examples. What `profile` and `run` take is in
//! [`profile_options`](crate::request::profile).

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use clap_complete::Shell;

use super::{analyse, diff, events, explain, locks, region, report, roots, sample, threads, top, watch};
use crate::request::profile::OneProfile;
use crate::script::Setting;

const EXAMPLES: &str = "\
Examples:
  headwater list
  headwater profile 4711 --root com.acme.Shop::checkout -d 30s
  headwater top 4711 --root com.acme.Shop::checkout
  headwater run --root com.acme.Main::main -o run.hw -- java -jar shop.jar
  headwater report run.hw --view callers --focus com.acme.Cart
  headwater diff before.hw after.hw --fail-if 'self(com.acme.*) > +5%'
  headwater explain run.hw com.acme.Cart::total
  headwater attach shop.jar
  headwater sample shop.jar -d 30s
  headwater threads shop.jar
  headwater events shop.jar --gc --threads
  headwater watch --all
  headwater doctor shop.jar

`headwater COMMAND --help` has more. HEADWATER_OPTIONS holds options that `profile` and `run` begin with.

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (results are still written), 6 `threads` found a deadlock, 130 Ctrl-C before anything was
recorded.";

const PROFILE_EXAMPLES: &str = "\
Examples:
  headwater profile 4711 --root com.acme.Shop::checkout -d 30s
  headwater profile tomcat --root 'org.apache.catalina.core.ApplicationFilterChain::doFilter' --calls 1000
  headwater profile 4711 --root 'com.acme.*.Service::handle' --format json -o profile.json
  headwater profile 4711 --root com.acme.Shop::checkout --live=5s
  HEADWATER_OPTIONS='--clock tick --min 1' headwater profile 4711 --root com.acme.Shop::checkout

Exit codes: 0 done, 1 failed, 2 usage, 3 no such target or no permission, 4 the root matched nothing,
5 the target ended first (results are still written), 130 Ctrl-C before anything was recorded.";

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
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Debug, Subcommand)]
pub(super) enum Command {
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
    /// Watch a profile on the whole screen while it is recorded: unfold, sort, search, freeze
    #[command(after_help = top::EXAMPLES)]
    Top(top::TopArgs),
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
    /// Show all threads at one moment: what each does, who waits for whom, deadlocks; loads nothing into the JVM
    #[command(after_help = threads::EXAMPLES)]
    Threads(threads::ThreadsArgs),
    /// Sample all threads: where the time and the memory of the whole JVM go, without a root; loads nothing into the JVM
    #[command(after_help = sample::EXAMPLES)]
    Sample(sample::SampleArgs),
    /// Show contended locks: who waited for which, where and how long, and who held them; loads nothing into the JVM
    #[command(after_help = locks::EXAMPLES)]
    Locks(locks::LocksArgs),
    /// Tell of collections, classes, threads, waits for monitors and compilations as they happen
    #[command(after_help = events::EXAMPLES)]
    Events(events::EventsArgs),
    /// Watch many JVMs: stack traces at an interval, recorded, searched, given to programs; loads nothing into them
    #[command(after_help = watch::EXAMPLES)]
    Watch(watch::WatchArgs),
    /// Analyse stack traces that `headwater watch` has recorded, or gives to programs
    #[command(after_help = analyse::EXAMPLES)]
    Analyse(analyse::AnalyseArgs),
    /// Say which methods are worth naming as roots: entered again and again, with much of the CPU time
    #[command(after_help = roots::EXAMPLES)]
    Roots(roots::RootsArgs),
    /// Look at a saved profile again, in any view and format
    #[command(after_help = report::EXAMPLES)]
    Report(report::ReportArgs),
    /// Say why a method has probes, or none: how it was reached from the root, when, and what to do about it
    #[command(after_help = explain::EXAMPLES)]
    Explain(explain::ExplainArgs),
    /// Compare two saved profiles, or several a side
    #[command(override_usage = diff::USAGE, after_help = diff::EXAMPLES)]
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
    #[command(after_help = "Example: headwater man ~/.local/share/man/man1")]
    Man {
        /// The directory; it must exist
        directory: PathBuf,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ListFormat {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

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
}
