//! What is read for an exact time: the processor's time stamp counter, where that can be trusted and the JVM can read it, else
//! `System.nanoTime()`.
//!
//! The kernel has the better judgement of the counter: it compares it with other clocks, and over the processors, as long as it
//! runs. So the counter is read where the kernel itself reads it. The JVM can read it as fast as that from JDK 21 on, by a
//! critical downcall (`java.lang.foreign.Linker.Option.critical`, in 21 a preview named `isTrivial`), and in JDK 17 by what became
//! that; the conversion to `System.nanoTime()` is the runtime's.
//!
//! Why so, and at what cost: docs/decisions/clocks.md.

use crate::callgraph::JdkMethods;
use crate::profile::ClockMode;

/// The first JDK with critical downcalls.
const FIRST_JDK: u32 = 21;
/// This one has them in its internals.
const EARLIER_JDK: u32 = 17;
/// What the kernel says of a counter that runs at one speed, and in all idle states.
const STEADY: [&str; 2] = ["constant_tsc", "nonstop_tsc"];

/// What the user wants to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChoice {
    /// The time stamp counter if that is possible.
    #[default]
    Auto,
    /// The time stamp counter, or nothing.
    Tsc,
    /// `System.nanoTime()`.
    NanoTime,
}

/// Why the time stamp counter cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClockSourceError {
    /// Threads' clocks do not tell when something else was.
    #[error("--count gc needs to know when methods ran, which --clock cpu does not tell: leave one of them out")]
    NoCommonTime,
    /// The mode has a clock of its own.
    #[error("--clock {0} reads a clock of its own: --clock-source is for --clock exact")]
    OwnClock(&'static str),
    /// Critical downcalls are too new.
    #[error(
        "JDK {0} cannot read the time stamp counter fast enough; JDK {EARLIER_JDK} can, and {FIRST_JDK} and later. Leave --clock-source \
         tsc out to have System.nanoTime() read"
    )]
    Jdk(String),
    /// The processor's counter may stop, or change its speed.
    #[error(
        "this machine's time stamp counter is not steady: /proc/cpuinfo does not say {0}. Leave --clock-source tsc out to have \
         System.nanoTime() read"
    )]
    Unsteady(&'static str),
    /// The kernel does not use the counter.
    #[error(
        "the kernel does not trust the time stamp counter: its clock source is {0:?}, not \"tsc\" \
         (/sys/devices/system/clocksource/clocksource0/current_clocksource). Leave --clock-source tsc out to have \
         System.nanoTime() read"
    )]
    Distrusted(String),
    /// In the interpreter, reading the counter runs methods that would be instrumented.
    #[error(
        "with --jdk edge or all, the JDK's methods that read the time stamp counter may be instrumented themselves. Leave \
         --clock-source tsc out to have System.nanoTime() read"
    )]
    JdkMethods,
    /// The JVM has no linker for native functions, or refuses to use it.
    #[error(
        "this JVM cannot call the function that reads the time stamp counter. Leave --clock-source tsc out to have \
         System.nanoTime() read"
    )]
    Linker,
}

/// What the kernel says of the counter.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kernel {
    /// `/proc/cpuinfo`.
    processors: String,
    /// The clock source in use.
    clock_source: String,
}

impl Kernel {
    fn running() -> Kernel {
        // What cannot be read says nothing in the counter's favour.
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        Kernel {
            processors: read("/proc/cpuinfo"),
            clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource").trim().to_owned(),
        }
    }
}

/// Whether a JVM of this version is to read the time stamp counter.
///
/// # Errors
/// It was asked for, and is not to be had.
pub fn tsc(
    choice: ClockChoice,
    mode: ClockMode,
    jdk: JdkMethods,
    java_version: &str,
) -> Result<bool, ClockSourceError> {
    decide(choice, mode, jdk, java_version, Kernel::running)
}

fn decide(
    choice: ClockChoice,
    mode: ClockMode,
    jdk: JdkMethods,
    java_version: &str,
    kernel: impl FnOnce() -> Kernel,
) -> Result<bool, ClockSourceError> {
    if choice == ClockChoice::NanoTime {
        return Ok(false);
    }
    let possible = match mode {
        ClockMode::Exact => possible(jdk, java_version, kernel),
        ClockMode::Tick(_) | ClockMode::Cpu => Err(ClockSourceError::OwnClock(mode.name())),
    };
    match (possible, choice) {
        (Ok(()), _) => Ok(true),
        (Err(reason), ClockChoice::Tsc) => Err(reason),
        (Err(_), _) => Ok(false),
    }
}

fn possible(jdk: JdkMethods, java_version: &str, kernel: impl FnOnce() -> Kernel) -> Result<(), ClockSourceError> {
    if feature(java_version).is_none_or(|feature| feature < FIRST_JDK && feature != EARLIER_JDK) {
        return Err(ClockSourceError::Jdk(java_version.to_owned()));
    }
    if jdk != JdkMethods::None {
        return Err(ClockSourceError::JdkMethods);
    }
    let Kernel { processors, clock_source } = kernel();
    let flags = processors.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    if let Some(missing) = STEADY.into_iter().find(|flag| !flags.split_whitespace().any(|word| word == *flag)) {
        return Err(ClockSourceError::Unsteady(missing));
    }
    if clock_source != "tsc" {
        return Err(ClockSourceError::Distrusted(clock_source));
    }
    Ok(())
}

/// The feature release of a Java version: 17 of `17.0.15+6`.
pub(crate) fn feature(java_version: &str) -> Option<u32> {
    let end = java_version.find(|c: char| !c.is_ascii_digit()).unwrap_or(java_version.len());
    java_version[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel(flags: &str, clock_source: &str) -> Kernel {
        Kernel {
            processors: format!("processor\t: 0\nflags\t\t: fpu {flags} lm\n\nprocessor\t: 1\n"),
            clock_source: clock_source.to_owned(),
        }
    }

    fn check(
        java_version: &str,
        jdk: JdkMethods,
        flags: &str,
        clock_source: &str,
        expect: Result<(), ClockSourceError>,
    ) {
        let decided = |choice| decide(choice, ClockMode::Exact, jdk, java_version, || kernel(flags, clock_source));
        assert_eq!(decided(ClockChoice::Auto), Ok(expect.is_ok()));
        assert_eq!(decided(ClockChoice::Tsc), expect.map(|()| true));
        assert_eq!(decided(ClockChoice::NanoTime), Ok(false));
    }

    #[test]
    fn the_counter_is_read_where_kernel_and_jvm_allow_it() {
        const STEADY: &str = "constant_tsc nonstop_tsc";
        check("25.0.1", JdkMethods::None, STEADY, "tsc", Ok(()));
        check("22", JdkMethods::None, STEADY, "tsc", Ok(()));
        check("23-ea+3", JdkMethods::None, STEADY, "tsc", Ok(()));
        check("17.0.15", JdkMethods::None, STEADY, "tsc", Ok(()));
        check("21.0.8", JdkMethods::None, STEADY, "tsc", Ok(()));
        check("20.0.2", JdkMethods::None, STEADY, "tsc", Err(ClockSourceError::Jdk("20.0.2".to_owned())));
        check("11.0.2", JdkMethods::None, STEADY, "tsc", Err(ClockSourceError::Jdk("11.0.2".to_owned())));
        check("", JdkMethods::None, STEADY, "tsc", Err(ClockSourceError::Jdk(String::new())));
        let tick = ClockMode::Tick(std::time::Duration::from_micros(100));
        for mode in [tick, ClockMode::Cpu] {
            let in_that_mode = |choice| decide(choice, mode, JdkMethods::None, "25", || kernel(STEADY, "tsc"));
            assert_eq!(in_that_mode(ClockChoice::Auto), Ok(false));
            assert_eq!(in_that_mode(ClockChoice::Tsc), Err(ClockSourceError::OwnClock(mode.name())));
        }
        check("25", JdkMethods::Edge, STEADY, "tsc", Err(ClockSourceError::JdkMethods));
        check("25", JdkMethods::All, STEADY, "tsc", Err(ClockSourceError::JdkMethods));
        check("25", JdkMethods::None, "constant_tsc", "tsc", Err(ClockSourceError::Unsteady("nonstop_tsc")));
        check("25", JdkMethods::None, "nonstop_tsc_s3", "tsc", Err(ClockSourceError::Unsteady("constant_tsc")));
        check("25", JdkMethods::None, STEADY, "kvm-clock", Err(ClockSourceError::Distrusted("kvm-clock".to_owned())));
    }
}
