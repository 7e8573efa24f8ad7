//! End-to-end tests as trials: of each test one for each JVM, so that a failure is of one test on one JVM.

use std::process::ExitCode;
use std::thread::available_parallelism;

use libtest_mimic::Arguments;
pub use libtest_mimic::Trial;

use crate::watchdog::{self, Watched};
use crate::{Jdk, jdks};

/// Lists the tests of a module, each of which takes a `&Jdk`, or nothing below `once`:
///
/// ```
/// # use headwater_tests::Jdk;
/// # fn main() {}
/// # mod some {
/// # use super::Jdk;
/// headwater_tests::trials! {
///     each_jdk {
///         what_all_jvms_do,
///     }
///     since(21) {
///         what_virtual_threads_do,
///     }
///     first_jdk {
///         what_the_tool_does_whatever_the_jvm,
///     }
///     once {
///         what_needs_no_jvm,
///     }
/// }
///
/// fn what_all_jvms_do(jdk: &Jdk) {}
/// fn what_virtual_threads_do(jdk: &Jdk) {}
/// fn what_the_tool_does_whatever_the_jvm(jdk: &Jdk) {}
/// fn what_needs_no_jvm() {}
/// # }
/// ```
#[macro_export]
macro_rules! trials {
    ($($which:ident $(($since:literal))? { $($test:ident,)+ })+) => {
        /// The tests of this module.
        pub(crate) fn trials() -> Vec<$crate::trials::Trial> {
            let groups = [
                $($crate::trials::$which(module_path!(), &[$((stringify!($test), $test)),+] $(, $since)?)),+
            ];
            groups.into_iter().flatten().collect()
        }
    };
}

/// A test's name, and what it does on a JVM.
type OnJvm = (&'static str, fn(&Jdk));

/// Tests that are to hold on every JVM.
pub fn each_jdk(module: &str, tests: &[OnJvm]) -> Vec<Trial> {
    since(module, tests, 0)
}

/// Those that need a JVM of this feature version at least.
pub fn since(module: &str, tests: &[OnJvm], version: u32) -> Vec<Trial> {
    on(module, tests, jdks().into_iter().filter(|jdk| jdk.version >= version))
}

/// Those to which it is the same on which JVM they are run.
pub fn first_jdk(module: &str, tests: &[OnJvm]) -> Vec<Trial> {
    on(module, tests, jdks().into_iter().take(1))
}

/// Those that need no JVM.
pub fn once(module: &str, tests: &[(&'static str, fn())]) -> Vec<Trial> {
    tests.iter().map(|(test, run)| trial(module, test, *run)).collect()
}

fn on(module: &str, tests: &[OnJvm], jdks: impl Iterator<Item = Jdk> + Clone) -> Vec<Trial> {
    let each = tests.iter().flat_map(|test| jdks.clone().map(move |jdk| (test, jdk)));
    each.map(|(&(test, run), jdk)| trial(module, &format!("{test}::jdk{}", jdk.version), move || run(&jdk))).collect()
}

fn trial(module: &str, test: &str, run: impl FnOnce() + Send + 'static) -> Trial {
    // The name of the binary is the same for all.
    let module = module.split_once("::").map_or(module, |(_, module)| module);
    let name = format!("{module}::{test}");
    let watched = name.clone();
    Trial::test(name, move || {
        let _watched = Watched::begin(watched);
        run();
        Ok(())
    })
}

/// Runs those that the command line picks, by a part of their names or several with commas between.
pub fn run(trials: impl IntoIterator<Item = Vec<Trial>>) -> ExitCode {
    let mut arguments = Arguments::from_args();
    let mut trials: Vec<Trial> = trials.into_iter().flatten().collect();
    if let Some(filter) = arguments.filter.take_if(|filter| filter.contains(',')) {
        trials.retain(|trial| filter.split(',').any(|part| trial.name().contains(part)));
    }
    // They wait for what takes its time, for a third of theirs.
    let one_more = || available_parallelism().map(|processors| processors.get() + 1).ok();
    arguments.test_threads = arguments.test_threads.or_else(one_more);
    watchdog::start();
    let conclusion = libtest_mimic::run(&arguments, trials);
    if !arguments.list {
        watchdog::tell_longest();
    }
    conclusion.exit_code()
}
