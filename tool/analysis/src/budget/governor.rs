//! The governor: what the probes cost just now, and which methods are dropped to keep that within the budget.
//!
//! A method is dropped for what its probes cost, and kept for what it tells: its own time. So the methods with the most cost for
//! the least time go first, and no more of them than needed. Where all together would not be enough, only those go whose probes cost more than
//! they take themselves: nothing else is given up in vain. Roots are never dropped: without them there is no profile.
//!
//! What a drop brings is known beforehand, because the time without probes stays the same. It is still looked at what came of it
//! before the next one: not at once, since code that was given back is compiled anew. Nothing that was dropped comes back: a method
//! with a gap in its counts would tell nothing.

use std::time::Duration;

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::{Limit, RootTally, Tally, in_place};
use crate::correction::{Reference, RootCalls};
use headwater_profile::profile::Clock;

/// A root that has run for less than this is not judged, in measured ns of all threads.
const EVIDENCE_NS: f64 = 50e6;
/// ... where a call may be longer by some time: unless one has been seen as a whole since the last drop, for each part of it has dense methods of its
/// own, and each drop is a hotswap.
const EVIDENCE_OF_CALLS_NS: f64 = 3e9;
const WHOLE_CALLS: f64 = 2.0;
/// What is older than so much of a root's time counts half, if that leaves whole calls.
const WINDOW_NS: f64 = 500e6;
/// For so long after a drop nothing is judged.
const SETTLING: Duration = Duration::from_millis(300);
/// Who must drop at all aims lower than the limit, so that scatter does not make him drop again and again; much lower where a call may be
/// longer by some time, since how long one takes is known only when it has ended.
const AIM: f64 = 0.8;
const AIM_OF_CALLS: f64 = 0.5;
/// ... and further below it when a call has not ended by then, for what comes in the rest of it is not known.
const AIM_OF_OPEN_CALLS: f64 = 0.2;
/// Where nobody asked for it, a pair counts so many times what it was calibrated to, and so much at least: in dense code, which this is about, much is
/// no longer inlined, and what a call of nine real programs took longer for was 70 to 160 ns for each pair, whatever that was calibrated to.
const IN_DENSE_CODE: f64 = 2.0;
const LEAST_IN_DENSE_CODE_NS: f64 = 100.0;
/// So much of the limit the pauses of hotswaps may take that are made to keep to it; and such a part of the time, where nobody asked for them.
const HOTSWAPS: f64 = 0.5;
const HOTSWAPS_UNASKED: f64 = 0.05;
/// ... of this time even where less has passed: a drop takes least from the target while the code is not compiled yet that it discards.
const HOTSWAPS_AT_ONCE: Duration = Duration::from_secs(4);
/// A method whose probes take less than this part of the limit brings nothing; unasked a call may have so many pairs that hundreds of methods
/// have each a little of them.
const LEAST_COST: f64 = 0.01;
const LEAST_COST_UNASKED: f64 = 0.001;
/// ... and a drop that brings less than this part of it is not worth the code that is discarded for it.
const LEAST_GAIN_UNASKED: f64 = 0.25;
/// However little time a method takes, it tells as much as this part of its root's.
const LEAST_TOLD: f64 = 1e-3;
/// The root's time without probes is taken for at least this part of the measured time: probes may cost less in their place than they
/// were calibrated to.
const LEAST_BARE: f64 = 0.05;

/// What a probe pair costs, and what is needed to correct that by control invocations.
#[derive(Clone, Copy, Debug)]
pub struct Probes {
    /// As calibrated.
    pub clock: Clock,
    /// Of a pair while nothing is recorded, in ns.
    pub idle_ns: f64,
    /// What timing a call adds to it, in ns.
    pub timing_ns: f64,
}

/// What is known of a root's latest calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RootSum {
    /// The root.
    pub root: MethodId,
    /// Its calls from outside.
    pub calls: f64,
    /// Its own calls and all below.
    pub pairs: f64,
    /// Of these, calls of the root itself.
    pub own_pairs: f64,
    /// Time as measured, probes included.
    pub measured_ns: f64,
    /// What its threads waited for room for their events.
    pub waited_ns: f64,
    /// What a call has taken since recording began, probes included; one that goes on, so far.
    pub call_ns: f64,
    /// What one took before anything below the root was changed, if that is known and counts.
    pub undisturbed_ns: Option<f64>,
    /// Nothing that is left below it could be dropped.
    pub exhausted: bool,
}

impl RootSum {
    /// What the root's calls take without probes, in ns.
    fn bare_ns(&self, clock: &Clock) -> f64 {
        if let Some(call_ns) = self.undisturbed_ns {
            return self.spanned() * call_ns;
        }
        let pair_ns = clock.inner_ns + clock.outer_ns;
        let inside_ns = self.pairs * pair_ns - self.calls * clock.outer_ns;
        (self.measured_ns - inside_ns).max(LEAST_BARE * self.measured_ns)
    }

    /// How many whole calls there may have been in all: one may have begun before.
    fn spanned(&self) -> f64 {
        if self.calls < WHOLE_CALLS { self.calls + 1.0 } else { self.calls }
    }

    /// What a call takes without probes, in ns.
    pub fn bare_call_ns(&self, clock: &Clock) -> f64 {
        if let Some(call_ns) = self.undisturbed_ns {
            return call_ns;
        }
        if self.measured_ns > 0.0 { self.call_ns * self.bare_ns(clock) / self.measured_ns } else { 0.0 }
    }

    /// What so many of its pairs cost, as a part of the time without any: probes, and waiting for room for events.
    fn overhead_of(&self, pairs: f64, clock: &Clock) -> f64 {
        let waited_ns = if self.pairs > 0.0 { self.waited_ns / self.pairs } else { 0.0 };
        pairs * (clock.inner_ns + clock.outer_ns + waited_ns) / self.bare_ns(clock)
    }

    /// What the probes cost, as a part of the time without them.
    pub fn overhead(&self, clock: &Clock) -> f64 {
        self.overhead_of(self.pairs, clock)
    }

    /// The part of that which is the root's own.
    pub fn own_overhead(&self, clock: &Clock) -> f64 {
        self.overhead_of(self.own_pairs, clock)
    }
}

/// A method that was dropped.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropped {
    /// The method.
    pub method: MethodId,
    /// What its probes cost then, as a part of its root's time without probes.
    pub overhead: f64,
    /// When it was restored: how long had been recorded. Zero when that was forgotten since.
    pub at: Duration,
}

/// A method whose class has not been hotswapped yet.
#[derive(Clone, Copy, Debug)]
struct Due {
    method: MethodId,
    overhead: f64,
}

/// The state machine. Times are how long has been recorded.
#[derive(Clone, Debug)]
pub struct Governor {
    limit: Limit,
    probes: Probes,
    /// What calls of the roots took before anything below them was changed.
    undisturbed_ns: FxHashMap<MethodId, f64>,
    /// As far as it was added to the windows.
    seen: Tally,
    windows: FxHashMap<MethodId, RootTally>,
    exhausted: Vec<MethodId>,
    due: Vec<Due>,
    dropped: Vec<Dropped>,
    settled: Duration,
    batches: u64,
    paused_ns: u64,
}

impl Governor {
    /// Nothing recorded yet; calls of some roots took so many ns before anything below them was changed.
    pub fn new(limit: Limit, probes: Probes, undisturbed_ns: FxHashMap<MethodId, f64>) -> Governor {
        Governor {
            limit,
            probes,
            undisturbed_ns,
            seen: Tally::default(),
            windows: FxHashMap::default(),
            exhausted: Vec::new(),
            due: Vec::new(),
            dropped: Vec::new(),
            settled: Duration::ZERO,
            batches: 0,
            paused_ns: 0,
        }
    }

    /// Takes in what has been decoded since the last tally.
    pub fn observe(&mut self, tally: Tally, now: Duration) {
        if now >= self.settled {
            self.add_to_windows(&tally);
        }
        self.seen = tally;
    }

    fn add_to_windows(&mut self, tally: &Tally) {
        let mut latest = tally.roots.clone();
        for (root, latest) in &mut latest {
            // Fewer than before: they were cleared.
            if let Some(seen) = self.seen.roots.get(root).filter(|seen| seen.pairs <= latest.pairs) {
                latest.add(seen, -1.0);
            }
        }
        let waited_ns = match tally.waited_ns - self.seen.waited_ns {
            cleared if cleared < 0.0 => tally.waited_ns,
            latest => latest,
        };
        // Every event fills the buffer, whosever it is.
        let pairs: f64 = latest.values().map(|root| root.pairs).sum();
        for (root, mut latest) in latest {
            latest.waited_ns = if pairs > 0.0 { waited_ns * latest.pairs / pairs } else { 0.0 };
            let window = self.windows.entry(root).or_default();
            window.add(&latest, 1.0);
            let is_whole = match self.limit {
                Limit::Part(_) => true,
                Limit::Call { .. } => window.calls >= 2.0 * WHOLE_CALLS,
            };
            if is_whole && window.measured_ns > 2.0 * WINDOW_NS {
                window.scale(0.5);
            }
        }
    }

    /// What a probe pair costs, as far as is known: as calibrated, corrected by control invocations if there are some.
    pub fn clock(&self) -> Clock {
        let Probes { clock, idle_ns, timing_ns } = self.probes;
        let reference = Reference { times: &self.seen.controls, idle_ns, timing_ns };
        let called = self.seen.roots.iter().filter(|(_, all)| all.calls > 0.0);
        let roots = called.map(|(method, all)| RootCalls {
            method: *method,
            calls: all.calls,
            calls_variance: 0.0,
            pairs: all.pairs,
            measured_ns: all.measured_ns,
        });
        in_place(roots, &clock, reference).unwrap_or(clock)
    }

    fn clock_of_decisions(&self) -> Clock {
        let clock = self.clock();
        let times = match self.limit {
            Limit::Part(_) => 1.0,
            Limit::Call { .. } => {
                IN_DENSE_CODE.max(LEAST_IN_DENSE_CODE_NS / (clock.inner_ns + clock.outer_ns).max(1.0))
            }
        };
        Clock { inner_ns: times * clock.inner_ns, outer_ns: times * clock.outer_ns, ..clock }
    }

    /// The roots that have run for long enough since the last drop, the dearest first.
    pub fn roots(&self) -> Vec<RootSum> {
        let clock = self.clock_of_decisions();
        let sums = self.windows.iter().map(|(root, window)| self.sum(*root, window));
        let mut roots: Vec<RootSum> = sums.filter(|sum| self.is_evidence(sum, &clock)).collect();
        roots.sort_by(|a, b| b.overhead(&clock).total_cmp(&a.overhead(&clock)).then(a.root.cmp(&b.root)));
        roots
    }

    fn is_evidence(&self, sum: &RootSum, clock: &Clock) -> bool {
        let is_enough = match self.limit {
            Limit::Part(_) => true,
            Limit::Call { .. } => {
                sum.calls >= WHOLE_CALLS || sum.measured_ns >= EVIDENCE_OF_CALLS_NS || self.is_over_already(sum, clock)
            }
        };
        is_enough && sum.measured_ns >= EVIDENCE_NS
    }

    /// Whether a call is too long by its probes whatever is still to come of it.
    fn is_over_already(&self, sum: &RootSum, clock: &Clock) -> bool {
        sum.undisturbed_ns.is_some_and(|call_ns| sum.overhead(clock) > self.limit.part_of(call_ns))
    }

    fn sum(&self, root: MethodId, window: &RootTally) -> RootSum {
        let all = self.seen.roots.get(&root);
        RootSum {
            root,
            calls: window.calls,
            pairs: window.pairs,
            own_pairs: window.methods.get(&root).map_or(0.0, |method| method.calls),
            measured_ns: window.measured_ns,
            waited_ns: window.waited_ns,
            call_ns: all.map_or(0.0, |all| all.measured_ns / all.calls.max(1.0)),
            undisturbed_ns: self
                .undisturbed_ns
                .get(&root)
                .copied()
                .filter(|_| matches!(self.limit, Limit::Call { .. })),
            exhausted: self.exhausted.contains(&root),
        }
    }

    /// The methods to be dropped now, if any; `batch` is what the hotswap for it is expected to stop the program.
    pub fn decide(&mut self, now: Duration, batch: Duration, can_go: impl Fn(MethodId) -> bool) -> Vec<MethodId> {
        if !self.due.is_empty() || now < self.settled {
            return Vec::new();
        }
        let (most, at_once) = match self.limit {
            Limit::Part(part) => (HOTSWAPS * part, Duration::ZERO),
            Limit::Call { .. } => (HOTSWAPS_UNASKED, HOTSWAPS_AT_ONCE),
        };
        let part_of_now = |ns: f64| ns / now.max(at_once).as_nanos().max(1) as f64;
        let hotswaps = part_of_now(self.paused_ns as f64);
        let with_another = part_of_now(self.paused_ns as f64 + batch.as_nanos() as f64);
        if with_another > most {
            return Vec::new();
        }
        let clock = self.clock_of_decisions();
        let mut due: Vec<Due> = Vec::new();
        for root in self.roots() {
            let limit = self.limit.part_of(root.bare_call_ns(&clock));
            if root.overhead(&clock) + hotswaps <= limit {
                continue;
            }
            let aim = match self.limit {
                Limit::Part(_) => AIM,
                Limit::Call { .. } if root.calls < WHOLE_CALLS => AIM_OF_OPEN_CALLS,
                Limit::Call { .. } => AIM_OF_CALLS,
            };
            let aimed = aim * limit - with_another;
            let (chosen, excess) = self.choose(root, (aimed, limit), &clock, &due, &can_go);
            if chosen.is_empty() && excess > 0.0 && due.is_empty() && !root.exhausted {
                self.exhausted.push(root.root);
            }
            due.extend(chosen);
        }
        self.due = due;
        self.due.iter().map(|due| due.method).collect()
    }

    /// What is to go so that a root's overhead, which may be `limit`, is no more than `aim`, beside what goes already; and what is then still too much.
    fn choose(
        &self,
        root: RootSum,
        (aim, limit): (f64, f64),
        clock: &Clock,
        going: &[Due],
        can_go: &impl Fn(MethodId) -> bool,
    ) -> (Vec<Due>, f64) {
        struct Candidate {
            due: Due,
            score: f64,
        }
        let Some(window) = self.windows.get(&root.root) else { return (Vec::new(), 0.0) };
        // Of code that is not compiled yet, all parts take longer.
        let told_ns = root.bare_ns(clock).max(RootSum { undisturbed_ns: None, ..root }.bare_ns(clock));
        let (least_cost, least_gain) = match self.limit {
            Limit::Part(_) => (LEAST_COST, 0.0),
            Limit::Call { .. } => (LEAST_COST_UNASKED, LEAST_GAIN_UNASKED),
        };
        let goes = |method: MethodId| going.iter().any(|due| due.method == method);
        let mut excess = root.overhead(clock) - aim;
        let mut candidates: Vec<Candidate> = Vec::new();
        for (method, tally) in &window.methods {
            let overhead = root.overhead_of(tally.calls, clock);
            if goes(*method) {
                excess -= overhead;
            } else if *method != root.root && overhead >= least_cost * limit && can_go(*method) {
                let own_ns = tally.self_ns - tally.calls * clock.inner_ns - tally.calls_made * clock.outer_ns;
                let told = own_ns.max(0.0) / told_ns + LEAST_TOLD;
                candidates.push(Candidate { due: Due { method: *method, overhead }, score: overhead / told });
            }
        }
        // What can never be enough is done as far as it takes nothing away: whose probes cost more than its time.
        if candidates.iter().map(|candidate| candidate.due.overhead).sum::<f64>() < excess {
            candidates.retain(|candidate| candidate.score >= 1.0);
        }
        candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.due.method.cmp(&b.due.method)));
        let mut chosen = Vec::new();
        for candidate in candidates {
            if excess <= 0.0 {
                break;
            }
            excess -= candidate.due.overhead;
            chosen.push(candidate.due);
        }
        // What was chosen early may not be needed beside what was chosen late; the one that tells most is kept first.
        for index in (0..chosen.len()).rev() {
            if excess + chosen[index].overhead <= 0.0 {
                excess += chosen[index].overhead;
                chosen.remove(index);
            }
        }
        if chosen.iter().map(|due| due.overhead).sum::<f64>() < least_gain * limit {
            chosen.clear();
        }
        (chosen, excess)
    }

    /// A method was restored.
    pub fn dropped(&mut self, method: MethodId, now: Duration) {
        let Some(index) = self.due.iter().position(|due| due.method == method) else { return };
        let Due { method, overhead } = self.due.remove(index);
        // Its calls until then are there, also where recording has not begun.
        self.dropped.push(Dropped { method, overhead, at: now.max(Duration::from_nanos(1)) });
        // What was measured with it says nothing any more.
        self.windows.clear();
        self.exhausted.clear();
        self.settled = now + SETTLING;
    }

    /// A method keeps its probes after all.
    pub fn stays(&mut self, method: MethodId) {
        self.due.retain(|due| due.method != method);
    }

    /// A hotswap for a drop has stopped the program.
    pub fn paused(&mut self, pause_ns: u64) {
        self.batches += 1;
        self.paused_ns += pause_ns;
    }

    /// All that was recorded is forgotten; what was dropped stays so.
    pub fn clear(&mut self) {
        self.seen = Tally::default();
        self.windows.clear();
        self.exhausted.clear();
        self.settled = Duration::ZERO;
        (self.batches, self.paused_ns) = (0, 0);
        self.dropped.iter_mut().for_each(|dropped| dropped.at = Duration::ZERO);
    }

    /// What it is to keep to.
    pub fn limit(&self) -> Limit {
        self.limit
    }

    /// What was dropped, in that order.
    pub fn all_dropped(&self) -> &[Dropped] {
        &self.dropped
    }

    /// Hotswaps by which methods were dropped, since recording began or was cleared.
    pub fn batches(&self) -> u64 {
        self.batches
    }

    /// How long they stopped the program.
    pub fn paused_ns(&self) -> u64 {
        self.paused_ns
    }
}
