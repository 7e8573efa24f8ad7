//! The governor: what the probes cost just now, and which methods are dropped to keep that within the budget.
//!
//! A method is dropped for what its probes cost, and kept for what it tells: its own time. So the methods with the most cost for the least time go
//! first, and no more than needed. Where all together would not be enough, only those go whose probes cost more than they take themselves. Roots are
//! never dropped: without them there is no profile.
//!
//! What a drop brings is known beforehand, because the time without probes stays the same. It is still looked at what came of it before the next one:
//! not at once, since code that was given back is compiled anew. Nothing that was dropped comes back: a gap in its counts would tell nothing.

use std::time::Duration;

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::rules::Rules;
use super::{Limit, RootTally, Tally, in_place};
use crate::correction::{Reference, RootCalls};
use crate::decode::Scheduled;
use headwater_profile::profile::Clock;

/// A root that has run for less than this is not judged, in measured ns of all threads.
const EVIDENCE_NS: f64 = 50e6;
/// One whose calls must have been seen as wholes is judged after this time, however few they are.
const EVIDENCE_OF_CALLS_NS: f64 = 3e9;
/// Of so many calls a thread the ends of those that began before are a small part.
const LEAST_WHOLE: f64 = 2.0;
/// What is older than so much of a root's time counts half, if that leaves whole calls.
const WINDOW_NS: f64 = 500e6;
/// For so long after a drop nothing is judged.
const SETTLING: Duration = Duration::from_millis(300);
/// What is dropped is gone for so many times the pause that it costs, at least: near the end it would save less than that takes.
const LEAST_OF_A_DROP: u32 = 10;
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
    /// What one took before anything below the root was changed, if that is known.
    undisturbed_ns: Option<f64>,
    /// So many come in a second: of those before, and of the latest, the larger number.
    per_second: f64,
    /// How many whole calls there may have been in all: each thread may have been in one before.
    spanned: f64,
    /// Nothing that is left below it could be dropped.
    pub exhausted: bool,
}

impl RootSum {
    /// What the root's calls take without probes, in ns.
    fn bare_ns(&self, clock: &Clock) -> f64 {
        self.undisturbed_ns.map_or_else(|| self.without_probes_ns(clock), |call_ns| self.spanned * call_ns)
    }

    /// What is left of the measured time.
    fn without_probes_ns(&self, clock: &Clock) -> f64 {
        let pair_ns = clock.inner_ns + clock.outer_ns;
        let inside_ns = self.pairs * pair_ns - self.calls * clock.outer_ns;
        (self.measured_ns - inside_ns).max(LEAST_BARE * self.measured_ns)
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
pub(super) struct Due {
    method: MethodId,
    pub(super) overhead: f64,
}

/// A root's calls before anything below it was changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Undisturbed {
    /// What one took, in ns.
    pub call_ns: f64,
    /// How many there were in a second.
    pub per_second: f64,
}

/// About the latest second of a root.
#[derive(Clone, Debug, Default)]
struct Window {
    tally: RootTally,
    /// The time that is from, as far as it was recorded: none passes while that is prepared,
    seconds: f64,
    /// and the calls in that time.
    calls: f64,
}

/// The state machine. Times are how long has been recorded.
#[derive(Clone, Debug)]
pub struct Governor {
    pub(super) limit: Limit,
    rules: Rules,
    probes: Probes,
    undisturbed: FxHashMap<MethodId, Undisturbed>,
    /// How many processors there are.
    processors: f64,
    /// How long is recorded, if that is known.
    pub(super) ends: Option<Duration>,
    /// The least that calls may be longer by, of those that were longer by more.
    kept_ns: Option<u64>,
    /// As far as it was added to the windows, and when.
    seen: Tally,
    seen_at: Duration,
    windows: FxHashMap<MethodId, Window>,
    /// How threads had processors before anything was changed: compilers take them away later, as long as they have to, which is no reason to drop anything.
    scheduled: Scheduled,
    /// So many processors ran all of it then.
    used: f64,
    exhausted: Vec<MethodId>,
    pub(super) due: Vec<Due>,
    dropped: Vec<Dropped>,
    pub(super) settled: Duration,
    batches: u64,
    paused_ns: u64,
}

impl Governor {
    /// Nothing recorded yet; of some roots it is known how their calls were before anything below them was changed.
    pub fn new(limit: Limit, probes: Probes, undisturbed: FxHashMap<MethodId, Undisturbed>) -> Governor {
        Governor {
            limit,
            rules: Rules::of(limit),
            probes,
            undisturbed,
            processors: f64::INFINITY,
            ends: None,
            kept_ns: None,
            seen: Tally::default(),
            seen_at: Duration::ZERO,
            windows: FxHashMap::default(),
            scheduled: Scheduled::default(),
            used: f64::INFINITY,
            exhausted: Vec::new(),
            due: Vec::new(),
            dropped: Vec::new(),
            settled: Duration::ZERO,
            batches: 0,
            paused_ns: 0,
        }
    }

    /// This is how all threads had processors in so long a time before anything was changed.
    #[must_use]
    pub fn with_scheduled(self, scheduled: Scheduled, over: Duration) -> Governor {
        let used = if over.is_zero() { f64::INFINITY } else { scheduled.ran_ns as f64 / over.as_nanos() as f64 };
        Governor { scheduled, used, ..self }
    }

    /// There are so many processors.
    #[must_use]
    pub fn with_processors(self, processors: usize) -> Governor {
        Governor { processors: processors as f64, ..self }
    }

    /// Takes in what has been decoded since the last tally.
    pub fn observe(&mut self, tally: Tally, now: Duration) {
        if now >= self.settled {
            self.add_to_windows(&tally, now.saturating_sub(self.seen_at).as_secs_f64());
        }
        (self.seen, self.seen_at) = (tally, now);
    }

    fn add_to_windows(&mut self, tally: &Tally, seconds: f64) {
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
            window.tally.add(&latest, 1.0);
            if seconds > 0.0 {
                window.seconds += seconds;
                window.calls += latest.calls;
            }
            let leaves_whole_calls = window.tally.calls >= 2.0 * self.rules.whole_calls * latest.threads;
            if leaves_whole_calls && window.tally.measured_ns > 2.0 * WINDOW_NS {
                window.tally.scale(0.5);
                window.seconds *= 0.5;
                window.calls *= 0.5;
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
        self.rules.in_place(self.clock(), self.scheduled)
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
        let is_enough = sum.calls >= self.rules.whole_calls
            || sum.measured_ns >= EVIDENCE_OF_CALLS_NS
            || self.is_over_already(sum, clock);
        is_enough && sum.measured_ns >= EVIDENCE_NS
    }

    /// Whether a call is too long by its probes whatever is still to come of it.
    fn is_over_already(&self, sum: &RootSum, clock: &Clock) -> bool {
        sum.undisturbed_ns.is_some() && sum.overhead(clock) > self.limit_of(sum, clock).1
    }

    /// What it is to keep to, and that as a part of what its calls take without probes.
    fn limit_of(&self, sum: &RootSum, clock: &Clock) -> (Limit, f64) {
        let limit = self.limit.at(sum.per_second, self.processors);
        let bare_ns = sum.bare_call_ns(clock);
        // All that ran together is what calls ran then, at most.
        let is_known = sum.undisturbed_ns.is_some() && sum.per_second > 0.0;
        let run_ns = if is_known { self.used * 1e9 / sum.per_second } else { f64::INFINITY };
        let part = limit.part_of_running(bare_ns, run_ns);
        let may_be_slow = self.seen_at < self.rules.slow_for + self.dropped.last().map_or(Duration::ZERO, |it| it.at);
        let times = sum.without_probes_ns(clock) / (sum.spanned.max(1.0) * bare_ns);
        let allowed = if may_be_slow && times > self.rules.slow { self.rules.times_of_slow_code } else { 1.0 };
        (limit, part.max((allowed * part).min(self.limit.part_of(bare_ns))))
    }

    fn sum(&self, root: MethodId, Window { tally: window, seconds, calls }: &Window) -> RootSum {
        let all = self.seen.roots.get(&root);
        let undisturbed = self.undisturbed.get(&root);
        let per_second = if *seconds > 0.0 { calls / seconds } else { 0.0 };
        let threads = all.map_or(1.0, |all| all.threads);
        let is_whole = window.calls >= LEAST_WHOLE * threads;
        // A call that goes on may be longer than those before. It is compared with them all the same where the limit is a time.
        let undisturbed_ns = undisturbed.map(|calls| calls.call_ns);
        let undisturbed_ns = undisturbed_ns.filter(|_| is_whole || matches!(self.limit, Limit::Call { .. }));
        RootSum {
            root,
            calls: window.calls,
            pairs: window.pairs,
            own_pairs: window.methods.get(&root).map_or(0.0, |method| method.calls),
            measured_ns: window.measured_ns,
            waited_ns: window.waited_ns,
            call_ns: all.map_or(0.0, |all| all.measured_ns / all.calls.max(1.0)),
            undisturbed_ns,
            per_second: undisturbed.map_or(0.0, |calls| calls.per_second).max(per_second),
            spanned: if is_whole { window.calls } else { window.calls + threads },
            exhausted: self.exhausted.contains(&root),
        }
    }

    /// What probes have made a thread's calls longer by, of the root where that is most.
    fn lengthened_ns(&self, clock: &Clock) -> f64 {
        let pair_ns = clock.inner_ns + clock.outer_ns;
        let roots = self.seen.roots.values();
        roots.map(|root| root.pairs * pair_ns / root.threads.max(1.0)).fold(0.0, f64::max)
    }

    /// The methods to be dropped now, if any; `batch` is what the hotswap for it is expected to stop the program.
    pub fn decide(&mut self, now: Duration, batch: Duration, can_go: impl Fn(MethodId) -> bool) -> Vec<MethodId> {
        let is_in_vain = self.ends.is_some_and(|ends| ends < now + LEAST_OF_A_DROP * batch);
        if !self.due.is_empty() || now < self.settled || is_in_vain {
            return Vec::new();
        }
        let rules = self.rules;
        let clock = self.clock_of_decisions();
        let part_of_now = |ns: f64| ns / now.max(rules.paused_at_once).as_nanos().max(1) as f64;
        let hotswaps = part_of_now(self.paused_ns as f64);
        let paused_ns = self.paused_ns as f64 + batch.as_nanos() as f64;
        let with_another = part_of_now(paused_ns);
        if with_another > rules.paused && paused_ns > rules.paused_of_lengthening * self.lengthened_ns(&clock) {
            return Vec::new();
        }
        let mut due: Vec<Due> = Vec::new();
        for root in self.roots() {
            let bare_ns = root.bare_call_ns(&clock);
            let (limit_of_calls, limit) = self.limit_of(&root, &clock);
            if root.overhead(&clock) + hotswaps <= limit {
                continue;
            }
            let is_open = root.calls < rules.whole_calls;
            let aim = if is_open { rules.aim_of_open_calls } else { rules.aim };
            let aimed = aim * limit - with_another;
            let (chosen, excess) = self.choose(root, (aimed, limit), &clock, &due, &can_go);
            if chosen.is_empty() && excess > 0.0 && due.is_empty() && !root.exhausted {
                self.exhausted.push(root.root);
            }
            if let (Limit::Call { longer_ns }, false) = (limit_of_calls, chosen.is_empty()) {
                let longer_ns = longer_ns.max((limit * bare_ns) as u64);
                self.kept_ns = Some(self.kept_ns.map_or(longer_ns, |kept_ns| kept_ns.min(longer_ns)));
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
            told: f64,
        }
        let Some(window) = self.windows.get(&root.root) else { return (Vec::new(), 0.0) };
        // Of code that is not compiled yet, all parts take longer.
        let told_ns = root.bare_ns(clock).max(root.without_probes_ns(clock));
        let Rules { least_cost, least_gain, least_told, .. } = self.rules;
        let goes = |method: MethodId| going.iter().any(|due| due.method == method);
        let mut excess = root.overhead(clock) - aim;
        let mut candidates: Vec<Candidate> = Vec::new();
        for (method, tally) in &window.tally.methods {
            let overhead = root.overhead_of(tally.calls, clock);
            if goes(*method) {
                excess -= overhead;
            } else if *method != root.root && overhead >= least_cost * limit && can_go(*method) {
                let own_ns = tally.self_ns - tally.calls * clock.inner_ns - tally.calls_made * clock.outer_ns;
                let told = own_ns.max(0.0) / told_ns;
                candidates.push(Candidate { due: Due { method: *method, overhead }, told });
            }
        }
        // What can never be enough is done as far as it takes nothing away: whose probes cost more than its time.
        if candidates.iter().map(|candidate| candidate.due.overhead).sum::<f64>() < excess {
            candidates.retain(|Candidate { due, told }| due.overhead >= told + LEAST_TOLD);
        }
        let told_at_least = LEAST_TOLD.max(least_told * limit);
        let score = |Candidate { due, told }: &Candidate| due.overhead / (told + told_at_least);
        candidates.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.due.method.cmp(&b.due.method)));
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

    /// Recording ends after so long.
    pub fn ends_after(&mut self, duration: Duration) {
        self.ends = Some(duration);
    }

    /// All that was recorded is forgotten; what was dropped stays so.
    pub fn clear(&mut self) {
        (self.seen, self.seen_at) = (Tally::default(), Duration::ZERO);
        self.windows.clear();
        self.exhausted.clear();
        self.settled = Duration::ZERO;
        (self.batches, self.paused_ns) = (0, 0);
        self.dropped.iter_mut().for_each(|dropped| dropped.at = Duration::ZERO);
    }

    /// What it is to keep to; what that was for the calls that were longer by more.
    pub fn limit(&self) -> Limit {
        match (self.limit, self.kept_ns) {
            (Limit::Call { .. }, Some(longer_ns)) => Limit::Call { longer_ns },
            (limit, _) => limit,
        }
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
