//! How time was measured.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Where times come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockMode {
    /// A timestamp at each event.
    #[default]
    Exact,
    /// A coarse clock, moved once a period: exact counts, sampled times.
    Tick(Duration),
    /// The CPU time of the thread itself at each event: a method that waits takes none.
    Cpu,
}

impl ClockMode {
    /// Of the coarse clock, if it is one.
    pub fn period(self) -> Option<Duration> {
        match self {
            ClockMode::Exact | ClockMode::Cpu => None,
            ClockMode::Tick(period) => Some(period),
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ClockMode::Exact => "exact",
            ClockMode::Tick(_) => "tick",
            ClockMode::Cpu => "cpu",
        }
    }
}

/// What is read for a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClockSource {
    /// `System.nanoTime()`.
    #[default]
    NanoTime,
    /// The processor's time stamp counter.
    Tsc,
    /// The coarse clock.
    Coarse,
    /// The thread's own CPU time.
    ThreadCpu,
}

impl ClockSource {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ClockSource::NanoTime => "nanoTime",
            ClockSource::Tsc => "tsc",
            ClockSource::Coarse => "coarse",
            ClockSource::ThreadCpu => "threadCpu",
        }
    }
}

/// How time was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clock {
    /// Where times come from.
    pub mode: ClockMode,
    /// What is read.
    pub source: ClockSource,
    /// What a probe pair adds between its own two timestamps.
    pub inner_ns: f64,
    /// Its standard deviation.
    pub inner_spread_ns: f64,
    /// What a probe pair adds to its caller.
    pub outer_ns: f64,
    /// Its standard deviation.
    pub outer_spread_ns: f64,
    /// What it takes to tell of an object, where these are counted as they are made; else 0.
    #[serde(default)]
    pub object_ns: f64,
    /// Of a coarse clock: how long the step took, in the mean of all moments, that a moment fell into.
    #[serde(default)]
    pub step_ns: Option<f64>,
    /// The part of the time in which threads that could have run stood in line for a processor instead, where the kernel counts that.
    #[serde(default)]
    pub queued: Option<f64>,
    /// How far the probes' cost drifted while recording, if it did.
    #[serde(default)]
    pub drift: Option<Drift>,
}

impl Clock {
    /// How long a step of a coarse clock took, as far as is known; 0 of another.
    pub fn step_or_period_ns(&self) -> f64 {
        let period_ns = || self.mode.period().map_or(0.0, |period| period.as_nanos() as f64);
        self.step_ns.unwrap_or_else(period_ns)
    }

    /// How long, in ns and in the mean of all moments in which a thread wanted a processor, it had to stand in line that lost its own at
    /// that moment: to whom that happens is chance, as it is who is on top at a coarse clock's step.
    pub fn queue_ns(&self) -> f64 {
        /// For which Linux takes a processor away, as a rule: the least slice of 3 ms, up to the next interrupt.
        const SLICE_NS: f64 = 4e6;
        self.queued.unwrap_or(0.0) * SLICE_NS
    }
}

/// What a probe pair cost, timed before and after recording, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// Before.
    pub before_ns: f64,
    /// After.
    pub after_ns: f64,
}
