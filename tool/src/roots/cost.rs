//! What an exact profile of a candidate is likely to cost.
//!
//! How often code calls is in no sample, and counting it would be the profile itself. So it is estimated by how often other programs' code does,
//! for the CPU time that this one takes in code that would have probes; what was timed below the candidate is a bound. Where these figures are from:
//! docs/ZOO.md.

use super::seen::Method;
use super::timed::Timed;
use crate::profile::Limit;

/// CPU time of code with probes for each call in it: of the densest programs, of most, of the least dense.
const NS_A_CALL: [f64; 3] = [2.0, 5.0, 25.0];
/// What a pair of probes takes where it is, against what it was calibrated to take: nothing beside it, and where code is no longer inlined, and the
/// tool reads events on the same processors.
const IN_PLACE: [f64; 2] = [1.0, 3.0];
/// Of a method that was seen less often nothing is said.
const LEAST_SAMPLES: u64 = 20;
/// Nor of one that runs less than this part of its CPU time in code that would have probes.
const LEAST_PROBED: f64 = 0.1;

/// What an exact profile of a method is likely to cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Calls below it a second: hardly fewer, likely, hardly more.
    pub calls_a_second: [f64; 3],
    /// What a pair of probes takes in this JVM.
    pub pair_ns: f64,
    /// How many times as long its calls are likely to take while they are recorded: at least, at most.
    pub times_as_long: [f64; 2],
    /// How that is known.
    pub basis: Basis,
}

/// Where a cost comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Basis {
    /// What other programs' code calls.
    Estimated,
    /// A short exact profile.
    Tried,
}

impl Basis {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Estimated => "estimated",
            Basis::Tried => "tried",
        }
    }
}

/// Where the costs of exact profiles come from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Looked {
    /// What a pair of probes takes.
    pub(super) pair_ns: f64,
    /// How long was sampled.
    pub(super) seconds: f64,
    /// Whether the program's code was compiled by then.
    pub(super) is_compiled: bool,
    /// How many processors there are.
    pub(super) processors: usize,
}

/// Why that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// It was hardly seen running.
    FewSamples,
    /// It runs in the JDK's code and native code, which has no probes; how often that calls back is not known.
    NotProbed,
    /// The JIT compilers were at work on the program: soon it will call more in the same time.
    NotCompiled,
}

impl Unknown {
    /// For people.
    pub fn why(self) -> &'static str {
        match self {
            Unknown::FewSamples => "it was hardly seen running",
            Unknown::NotProbed => "it runs in code of the JDK's, and nothing tells how often that calls back",
            Unknown::NotCompiled => "the JIT compilers were at work on the program",
        }
    }
}

/// `below` are the calls a second of methods that were timed within it.
pub(super) fn cost(method: &Method, timed: &Timed, below: f64, looked: Looked) -> Result<Cost, Unknown> {
    let Looked { pair_ns, seconds, is_compiled, processors } = looked;
    if !is_compiled {
        return Err(Unknown::NotCompiled);
    }
    if method.held.samples < LEAST_SAMPLES {
        return Err(Unknown::FewSamples);
    }
    if (method.probed_ns as f64) < LEAST_PROBED * method.held.cpu_ns as f64 {
        return Err(Unknown::NotProbed);
    }
    let probed = method.probed_ns as f64 / seconds.max(1e-3);
    let [dense, usual, sparse] = NS_A_CALL;
    let calls_a_second = [sparse, usual, dense].map(|ns| (probed / ns).max(below));
    // In the same time as they were seen in, running or waiting.
    let taken = (timed.per_second * timed.mean_ns).max(method.held.cpu_ns as f64 / seconds.max(1e-3));
    // Nobody has asked for more than that.
    let limit = Limit::UNASKED.at(timed.per_second, processors as f64).part_of(timed.mean_ns);
    let longer = |calls: f64, in_place: f64| 1.0 + (calls * pair_ns * in_place / taken.max(1.0)).min(limit);
    let times_as_long = [longer(calls_a_second[0], IN_PLACE[0]), longer(calls_a_second[2], IN_PLACE[1])];
    Ok(Cost { calls_a_second, pair_ns, times_as_long, basis: Basis::Estimated })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::MethodName;
    use crate::roots::held::Held;

    /// A method that is entered a hundred times a second, takes 5 ms each time, and was seen for two seconds.
    fn seen(cpu_ns: u64, probed_ns: u64, samples: u64, below: f64, is_compiled: bool) -> Result<Cost, Unknown> {
        let name = MethodName { machine: "a.B.m()V".to_owned(), display: "a.B.m()".to_owned() };
        let held = Held { cpu_ns, samples, ..Held::default() };
        let method = Method { name, held, own_ns: 0, probed_ns, share: 1.0, depth: 1.0 };
        let timed = Timed { method: 0, calls: 200, per_second: 100.0, mean_ns: 5e6, p99_ns: 6_000_000 };
        cost(&method, &timed, below, Looked { pair_ns: 40.0, seconds: 2.0, is_compiled, processors: 100 })
    }

    fn of(cpu_ns: u64, probed_ns: u64, samples: u64, below: f64) -> Result<Cost, Unknown> {
        seen(cpu_ns, probed_ns, samples, below, true)
    }

    #[test]
    fn what_runs_more_calls_more_and_who_waits_notices_it_less() {
        let busy = of(1_000_000_000, 1_000_000_000, 100, 0.0).expect("a cost");
        let waiting = of(100_000_000, 100_000_000, 100, 0.0).expect("a cost");
        assert!(busy.calls_a_second[0] < busy.calls_a_second[1] && busy.calls_a_second[1] < busy.calls_a_second[2]);
        assert!((busy.calls_a_second[1] / waiting.calls_a_second[1] - 10.0).abs() < 1e-6);
        assert!(1.0 < waiting.times_as_long[0] && waiting.times_as_long[1] < busy.times_as_long[1]);
    }

    #[test]
    fn what_was_timed_below_is_a_bound() {
        let cost = of(1_000_000_000, 1_000_000_000, 100, 1e9).expect("a cost");
        assert_eq!(cost.calls_a_second, [1e9; 3]);
    }

    #[test]
    fn what_was_hardly_seen_and_what_has_no_probes_is_not_known() {
        assert_eq!(of(1_000_000_000, 1_000_000_000, 3, 0.0), Err(Unknown::FewSamples));
        assert_eq!(of(1_000_000_000, 10_000_000, 100, 0.0), Err(Unknown::NotProbed));
        assert_eq!(seen(1_000_000_000, 1_000_000_000, 100, 0.0, false), Err(Unknown::NotCompiled));
    }
}
