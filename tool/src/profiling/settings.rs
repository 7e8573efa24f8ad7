//! What is to be profiled, and how.

use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use headwater_protocol::message::Reveal;
use headwater_protocol::segment::{Overflow, Recording, TimeSource};
use headwater_protocol::word::Counting;

use super::Start;
use crate::budget::{Limit, LimitError};
use crate::callgraph::{Lines, Options, PatternIndex};
use crate::clock_source::{self, ClockChoice, ClockSourceError};
use crate::decode::{DecodeOptions, Statistics, TimeBase};
use crate::pattern::MethodPattern;
use crate::profile::ClockMode;
use crate::session::Gentle;

/// What is to be profiled, and for how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The roots, and what is instrumented below them.
    pub subgraph: Options,
    /// Whether threads of the target wait until callees are instrumented.
    pub reveal: Reveal,
    /// Whether what this takes of the target's time is limited.
    pub gentle: Gentle,
    /// End after this time.
    pub duration: Option<Duration>,
    /// End when so many root invocations are complete; no others are counted.
    pub calls: Option<u64>,
    /// Where times come from.
    pub clock: ClockMode,
    /// What is read for an exact time.
    pub clock_source: ClockChoice,
    /// Every so many calls of a root by a thread, one is not recorded but timed as a whole.
    pub control: Option<NonZeroU32>,
    /// Which invocations are recorded singly.
    pub statistics: Statistics,
    /// What is counted beside calls.
    pub counting: Counting,
    /// How much longer the roots' calls may take for being profiled.
    pub budget: Keeping,
    /// Whether the roots' calls are timed without a profile, after it, and how long at most.
    pub bare: BareTiming,
    /// Size of the shared event buffer.
    pub buffer_bytes: usize,
    /// What happens when this process falls behind.
    pub overflow: Overflow,
    /// Wait for classes of roots that are not loaded yet, rather than fail.
    pub await_roots: bool,
    /// Tell the profile so far once in this time.
    pub live: Option<Duration>,
}

/// Two events a call fit in here for as long as the tool may be away.
const REGIONS_BUFFER_BYTES: usize = 16 << 20;

impl Settings {
    /// Whether the target's time is spared: one that is held at its start waits for everything anyway.
    pub(crate) fn gentle(&self, start: Start) -> Gentle {
        if start == Start::Held { Gentle::Off } else { self.gentle }
    }

    /// Calls of these methods, or of lines of a class, are timed as wholes, and nothing below them.
    pub fn of_regions(roots: Vec<MethodPattern>, lines: Vec<Option<Lines>>) -> Settings {
        Settings {
            subgraph: Options { roots, lines, only_roots: true, ..Options::default() },
            reveal: Reveal::Blocking,
            gentle: Gentle::On,
            duration: None,
            calls: None,
            clock: ClockMode::Exact,
            clock_source: ClockChoice::Auto,
            control: None,
            statistics: Statistics::Outermost,
            counting: Counting::default(),
            budget: Keeping::Off,
            bare: BareTiming::Off,
            buffer_bytes: REGIONS_BUFFER_BYTES,
            overflow: Overflow::Wait,
            await_roots: false,
            live: None,
        }
    }

    /// The roots as the user gave them.
    pub fn root_names(&self) -> impl Iterator<Item = String> {
        self.subgraph.roots.iter().enumerate().map(|(index, pattern)| {
            match self.subgraph.lines_of(PatternIndex(index)) {
                Some(lines) => format!("{}:{lines}", pattern.class_text()),
                None => pattern.to_string(),
            }
        })
    }
}

/// To which limit a profile keeps of how much longer it makes the roots' calls.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Keeping {
    /// To [`Limit::UNASKED`], if it is to be gentle.
    #[default]
    Unasked,
    /// To none.
    Off,
    /// To this.
    To(Limit),
}

impl Keeping {
    /// The limit, if there is one. Bytecodes are counted where there are probes only, so none is lost unasked.
    pub(crate) fn limit(self, gentle: Gentle, counting: Counting) -> Option<Limit> {
        match self {
            Keeping::Unasked => (gentle == Gentle::On && !counting.bytecodes).then_some(Limit::UNASKED),
            Keeping::Off => None,
            Keeping::To(limit) => Some(limit),
        }
    }
}

impl FromStr for Keeping {
    type Err = LimitError;

    fn from_str(text: &str) -> Result<Keeping, LimitError> {
        if text.trim() == "off" { Ok(Keeping::Off) } else { text.parse().map(Keeping::To) }
    }
}

/// Whether the roots' calls are timed and sampled without probes, after the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BareTiming {
    /// When there is enough of them: until code is settled and sampled, for as long as was recorded at most, two seconds at least and a
    /// minute at most.
    #[default]
    Auto,
    /// No.
    Off,
    /// The same, for so long at most.
    For(Duration),
}

/// What is settled with the agent when it is welcomed: the buffer's size in bytes, and how it is to record.
pub(crate) fn agreed(settings: &Settings, java_version: &str) -> Result<(usize, Recording), ClockSourceError> {
    if settings.counting.gc && settings.clock == ClockMode::Cpu {
        return Err(ClockSourceError::NoCommonTime);
    }
    let recording = Recording {
        clock_period: settings.clock.period(),
        source: if settings.clock == ClockMode::Cpu {
            TimeSource::ThreadCpu
        } else if clock_source::tsc(settings.clock_source, settings.clock, settings.subgraph.jdk, java_version)? {
            TimeSource::Tsc
        } else {
            TimeSource::NanoTime
        },
        control_every: settings.control,
        overflow: settings.overflow,
    };
    Ok((settings.buffer_bytes, recording))
}

/// How events are decoded.
pub(crate) fn decoding(settings: &Settings) -> DecodeOptions {
    let time_base = if settings.clock == ClockMode::Cpu { TimeBase::Carrier } else { TimeBase::System };
    DecodeOptions { root_limit: settings.calls, statistics: settings.statistics, time_base }
}
