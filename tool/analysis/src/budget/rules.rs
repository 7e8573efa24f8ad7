//! How a limit is kept to: the constants that differ from one kind of limit to the other, and why.

use std::time::Duration;

use headwater_profile::profile::{Clock, Limit};

use crate::decode::Scheduled;

/// However long the line for a processor is, a pair counts so many times at most.
const MOST_TIMES_IN_LINE: f64 = 20.0;

/// What a limit's kind asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Who must drop at all aims lower than the limit, by this factor, so that scatter does not make him drop again and again;
    pub(super) aim: f64,
    /// and lower still when no call has been seen as a whole, for what comes in the rest of it is not known.
    pub(super) aim_of_open_calls: f64,
    /// So many whole calls must have been seen since the last drop.
    pub(super) whole_calls: f64,
    /// The pauses of hotswaps that are made to keep to it take such a part of the time at most,
    pub(super) paused: f64,
    /// of this time even where less has passed: a drop takes least from the target while the code is not compiled yet that it discards.
    pub(super) paused_at_once: Duration,
    /// or such a part of the time that calls were longer for probes already: where pauses are long, so is what they end.
    pub(super) paused_of_lengthening: f64,
    /// A method whose probes take less than this part of the limit brings nothing.
    pub(super) least_cost: f64,
    /// A drop that brings less than this part of it is not worth the code that is discarded for it.
    pub(super) least_gain: f64,
    /// Calls that take so many times what they took before, without their probes, are of code that is not compiled again yet:
    pub(super) slow: f64,
    /// so many times as much is allowed then, for every drop discards more of it.
    pub(super) times_of_slow_code: f64,
    /// for so long since recording began, or the last drop: what is slow for longer is so for its probes.
    pub(super) slow_for: Duration,
    /// However little time a method takes, it tells as much as such a part of the limit: what costs most goes first, unless it takes much itself, and what
    /// costs little stays, such as all that only calls others.
    pub(super) least_told: f64,
    /// A pair counts so many times what it was calibrated to,
    times: f64,
    /// and so much at least;
    least_pair_ns: f64,
    /// where threads stand in line for processors, a call becomes longer by more than what its probes run.
    waits_in_line: bool,
}

impl Rules {
    /// Those of a limit.
    pub(super) fn of(limit: Limit) -> Rules {
        match limit {
            // Half of what is allowed may be pauses.
            Limit::Part(part) => Rules {
                aim: 0.8,
                aim_of_open_calls: 0.8,
                whole_calls: 0.0,
                paused: 0.5 * part,
                paused_at_once: Duration::ZERO,
                paused_of_lengthening: 0.0,
                least_cost: 0.01,
                least_gain: 0.0,
                slow: f64::INFINITY,
                times_of_slow_code: 1.0,
                slow_for: Duration::ZERO,
                least_told: 0.0,
                times: 1.0,
                least_pair_ns: 0.0,
                waits_in_line: false,
            },
            // Nobody asked for it, and it is about dense code: much is no longer inlined there, so that calls of real programs took 70 to 160 ns longer for
            // each pair, whatever that was calibrated to. Hundreds of methods may have each a little of the pairs, and each part of a call has its own.
            Limit::Call { .. } => Rules {
                aim: 0.5,
                aim_of_open_calls: 0.2,
                whole_calls: 2.0,
                paused: 0.05,
                paused_at_once: Duration::from_secs(4),
                paused_of_lengthening: 0.25,
                least_cost: 0.001,
                least_gain: 0.25,
                slow: 2.0,
                times_of_slow_code: 4.0,
                slow_for: Duration::from_secs(5),
                least_told: 0.05,
                times: 2.0,
                least_pair_ns: 100.0,
                waits_in_line: true,
            },
        }
    }

    /// What a pair is taken to make a call longer by, where threads had processors in this way.
    pub(super) fn in_place(&self, clock: Clock, scheduled: Scheduled) -> Clock {
        let calibrated = self.times.max(self.least_pair_ns / (clock.inner_ns + clock.outer_ns).max(1.0));
        let in_line = match scheduled.queued() {
            Some(queued) if self.waits_in_line => (1.0 / (1.0 - queued)).min(MOST_TIMES_IN_LINE),
            _ => 1.0,
        };
        let times = calibrated * in_line;
        Clock { inner_ns: times * clock.inner_ns, outer_ns: times * clock.outer_ns, ..clock }
    }
}
