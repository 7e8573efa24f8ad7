//! Single invocations: how long each one took, kept by method (JaViz, "Run-time statistics generation").
//!
//! What is kept of an invocation is its duration as measured and the number of probe pairs inside it: what a pair costs is known only
//! when the profile is over. The duration is measured from its entry to its exit, on the thread's clock without the pauses.
//! An invocation whose entry or exit is missing (frames that are healed, and those that are still open at the end) has none.
//!
//! Mean and deviation are exact for any cost of the probes, because they are made of the variances of the durations and of the numbers of pairs, and of
//! their covariance. Quantiles come from a log-linear histogram of the durations as measured, to two significant digits; each
//! of its buckets is corrected by the mean number of pairs of the invocations in it.

use hdrhistogram::Histogram;
use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

/// Of the histograms: a method's take at most 75 kB each, for an hour, and 12 kB for a millisecond.
const SIGNIFICANT_DIGITS: u8 = 2;

/// Which invocations are recorded singly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistics {
    /// None: decoding is faster.
    #[default]
    Off,
    /// All, the inner ones of a recursion too, as JaViz has it.
    Every,
    /// All but those of methods that are open on the thread already.
    Outermost,
}

/// What a pair of probes costs, in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairCost {
    /// In the method itself.
    pub inner_ns: f64,
    /// In its caller.
    pub outer_ns: f64,
    /// However many pairs there are: at least this part of what was measured was none of them.
    pub least: f64,
}

/// How long invocations took, without the probes inside them. In ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// How many.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// The shortest.
    pub min_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Their standard deviation.
    pub sd_ns: f64,
    /// Their median.
    pub p50_ns: u64,
    /// Nine of ten are not longer.
    pub p90_ns: u64,
    /// 99 of 100 are not longer.
    pub p99_ns: u64,
}

/// The invocations of a method.
#[derive(Clone, Debug)]
pub struct Invocations {
    count: u64,
    min_ns: u64,
    max_ns: u64,
    mean_ns: f64,
    mean_pairs: f64,
    /// Sums of squares and products of what differs from the means (Welford's method).
    ns_squared: f64,
    pairs_squared: f64,
    ns_times_pairs: f64,
    durations: Histogram<u64>,
    /// Pairs inside the invocations, by these' durations.
    pairs: Histogram<u64>,
}

impl Default for Invocations {
    fn default() -> Self {
        Invocations::new()
    }
}

impl Invocations {
    /// None yet.
    pub fn new() -> Invocations {
        let histogram = || Histogram::new(SIGNIFICANT_DIGITS).expect("so many digits are allowed");
        Invocations {
            count: 0,
            min_ns: u64::MAX,
            max_ns: 0,
            mean_ns: 0.0,
            mean_pairs: 0.0,
            ns_squared: 0.0,
            pairs_squared: 0.0,
            ns_times_pairs: 0.0,
            durations: histogram(),
            pairs: histogram(),
        }
    }

    /// One that took so long, with so many probe pairs of callees inside.
    pub fn record(&mut self, duration_ns: u64, pairs: u64) {
        self.count += 1;
        self.min_ns = self.min_ns.min(duration_ns);
        self.max_ns = self.max_ns.max(duration_ns);
        let count = self.count as f64;
        let (from_mean_ns, from_mean_pairs) = (duration_ns as f64 - self.mean_ns, pairs as f64 - self.mean_pairs);
        self.mean_ns += from_mean_ns / count;
        self.mean_pairs += from_mean_pairs / count;
        self.ns_squared += from_mean_ns * (duration_ns as f64 - self.mean_ns);
        self.pairs_squared += from_mean_pairs * (pairs as f64 - self.mean_pairs);
        self.ns_times_pairs += from_mean_ns * (pairs as f64 - self.mean_pairs);
        // They grow as needed; only where an address has less than 64 bits could that fail.
        let _ = self.durations.record(duration_ns);
        if pairs > 0 {
            let _ = self.pairs.record_n(duration_ns, pairs);
        }
    }

    /// Adds another method's.
    pub fn add(&mut self, other: &Invocations) {
        let (count, others) = (self.count as f64, other.count as f64);
        let all = count + others;
        if all == 0.0 {
            return;
        }
        let (ns, pairs) = (other.mean_ns - self.mean_ns, other.mean_pairs - self.mean_pairs);
        let weight = count * others / all;
        self.ns_squared += other.ns_squared + ns * ns * weight;
        self.pairs_squared += other.pairs_squared + pairs * pairs * weight;
        self.ns_times_pairs += other.ns_times_pairs + ns * pairs * weight;
        self.mean_ns += ns * others / all;
        self.mean_pairs += pairs * others / all;
        self.count += other.count;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        // As above.
        let _ = self.durations.add(&other.durations);
        let _ = self.pairs.add(&other.pairs);
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// What pairs must have cost here, in the proportion of those that were calibrated, if an invocation took `mean_ns` in the mean without them.
    pub fn cost_in_place(&self, calibrated: PairCost, mean_ns: f64) -> PairCost {
        let PairCost { inner_ns, outer_ns, least } = calibrated;
        let probes = inner_ns + self.mean_pairs * (inner_ns + outer_ns);
        let times = if probes > 0.0 { ((self.mean_ns - mean_ns) / probes).max(0.0) } else { 0.0 };
        let left = if self.mean_ns > 0.0 { (mean_ns / self.mean_ns).clamp(0.0, 1.0) } else { 1.0 };
        PairCost { inner_ns: inner_ns * times, outer_ns: outer_ns * times, least: least * left }
    }

    /// Without what the probes cost; `None` without an invocation.
    pub fn summary(&self, cost: PairCost) -> Option<Summary> {
        let corrected = self.corrected(cost);
        let (first, last) = (corrected.first()?, corrected.last()?);
        let count = self.count as f64;
        let pair_ns = cost.inner_ns + cost.outer_ns;
        let squares = self.ns_squared - 2.0 * pair_ns * self.ns_times_pairs + pair_ns * pair_ns * self.pairs_squared;
        // Single ones that come out below zero count as zero: then so may their mean.
        let mean_ns =
            (self.mean_ns - cost.inner_ns - self.mean_pairs * pair_ns).max(first.0.round()).min(last.0.round());
        let quantile = |part: f64| {
            let wanted = (part * count).ceil() as u64;
            let mut seen = 0;
            let found = corrected.iter().find(|(_, count)| {
                seen += count;
                seen >= wanted
            });
            found.unwrap_or(last).0.round() as u64
        };
        Some(Summary {
            count: self.count,
            total_ns: (mean_ns * count).round() as u64,
            min_ns: first.0.round() as u64,
            max_ns: last.0.round() as u64,
            mean_ns,
            sd_ns: (squares / count).max(0.0).sqrt(),
            p50_ns: quantile(0.5),
            p90_ns: quantile(0.9),
            p99_ns: quantile(0.99),
        })
    }

    /// The histogram's buckets with their corrected durations, the shortest first.
    fn corrected(&self, cost: PairCost) -> Vec<(f64, u64)> {
        let (shortest, longest) = (self.min_ns, self.max_ns);
        let mut buckets: Vec<(f64, u64)> = self
            .durations
            .iter_recorded()
            .map(|bucket| {
                let (value, count) = (bucket.value_iterated_to(), bucket.count_at_value());
                // Beyond its range, a histogram answers with its last bucket.
                let pairs = if value <= self.pairs.max() { self.pairs.count_at(value) } else { 0 };
                let measured = match self.durations.equivalent(value, shortest) {
                    true => shortest,
                    false if self.durations.equivalent(value, longest) => longest,
                    false => self.durations.median_equivalent(value),
                };
                let inside = pairs as f64 / count as f64 * (cost.inner_ns + cost.outer_ns);
                ((measured as f64 - cost.inner_ns - inside).max(cost.least * measured as f64), count)
            })
            .collect();
        buckets.sort_by(|one, other| one.0.total_cmp(&other.0));
        buckets
    }
}

/// The invocations of all methods.
#[derive(Clone, Debug, Default)]
pub(super) struct Recorder {
    by_method: Vec<Option<Box<Invocations>>>,
}

impl Recorder {
    #[inline]
    pub(super) fn record(&mut self, method: MethodId, invocation: Invocation) {
        let index = method.0 as usize;
        if index >= self.by_method.len() {
            self.by_method.resize_with(index + 1, || None);
        }
        self.by_method[index].get_or_insert_default().record(invocation.duration_ns, invocation.pairs);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(MethodId) -> bool) {
        let others = self.by_method.iter_mut().enumerate().filter(|(index, _)| !keep(MethodId(*index as u32)));
        others.for_each(|(_, invocations)| *invocations = None);
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (MethodId, &Invocations)> {
        let known = self.by_method.iter().enumerate();
        known.filter_map(|(index, invocations)| Some((MethodId(index as u32), invocations.as_deref()?)))
    }
}

/// One that is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Invocation {
    duration_ns: u64,
    pairs: u64,
}

/// A thread's open invocations, as deep as its simulated stack.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenInvocations {
    /// Time that has passed on this thread inside the roots, without pauses.
    clock_ns: u64,
    /// Entries so far.
    entries: u64,
    stack: Vec<Open>,
    /// How many of a method are open, if that matters.
    of_method: FxHashMap<MethodId, u64>,
}

#[derive(Clone, Copy, Debug)]
struct Open {
    method: MethodId,
    entered_ns: u64,
    /// Its own among them.
    entries: u64,
    /// What was recorded then has been cleared since.
    forgotten: bool,
}

impl OpenInvocations {
    /// Time has passed.
    #[inline]
    pub(super) fn advance(&mut self, elapsed_ns: u64) {
        self.clock_ns = self.clock_ns.saturating_add(elapsed_ns);
    }

    /// A method is entered.
    #[inline]
    pub(super) fn enter(&mut self, method: MethodId, statistics: Statistics) {
        self.entries += 1;
        self.stack.push(Open { method, entered_ns: self.clock_ns, entries: self.entries, forgotten: false });
        if statistics == Statistics::Outermost {
            *self.of_method.entry(method).or_default() += 1;
        }
    }

    /// The innermost invocation is over; it, if it is to be recorded.
    #[inline]
    pub(super) fn leave(&mut self, statistics: Statistics) -> Option<Invocation> {
        let open = self.stack.pop()?;
        let is_inner = statistics == Statistics::Outermost && self.is_inner(open.method);
        if is_inner || open.forgotten {
            return None;
        }
        Some(Invocation { duration_ns: self.clock_ns - open.entered_ns, pairs: self.entries - open.entries })
    }

    /// One invocation of a method is closed; whether others of it are open.
    fn is_inner(&mut self, method: MethodId) -> bool {
        let Some(open) = self.of_method.get_mut(&method) else { return false };
        *open -= 1;
        *open > 0
    }

    /// What was recorded is cleared: those that are open now are not to be recorded.
    pub(super) fn forget(&mut self) {
        self.stack.iter_mut().for_each(|open| open.forgotten = true);
    }

    /// The innermost invocations, so many of them, are closed without an exit.
    pub(super) fn heal(&mut self, frames: u64) {
        for _ in 0..frames {
            let Some(open) = self.stack.pop() else { return };
            self.is_inner(open.method);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FREE: PairCost = PairCost { inner_ns: 0.0, outer_ns: 0.0, least: 0.0 };

    fn of(invocations: &[(u64, u64)]) -> Invocations {
        let mut all = Invocations::new();
        invocations.iter().for_each(|(duration_ns, pairs)| all.record(*duration_ns, *pairs));
        all
    }

    #[test]
    fn nothing_has_no_summary() {
        assert_eq!(Invocations::new().summary(FREE), None);
    }

    #[test]
    fn one_invocation_is_exact() {
        let summary = of(&[(1_234_567, 3)]).summary(PairCost { inner_ns: 10.0, outer_ns: 20.0, ..FREE }).expect("one");
        let exact = 1_234_567 - 10 - 3 * 30;
        assert_eq!((summary.count, summary.total_ns, summary.sd_ns), (1, exact, 0.0));
        let of_one = [summary.min_ns, summary.p50_ns, summary.p90_ns, summary.p99_ns, summary.max_ns];
        assert_eq!(of_one, [exact; 5]);
    }

    #[test]
    fn the_probes_inside_are_taken_out_of_each() {
        // What one takes is 100 ns, and 30 more for each of its callees' pairs.
        let invocations: Vec<(u64, u64)> = (0..1000).map(|pairs| (110 + 30 * pairs, pairs)).collect();
        let summary = of(&invocations).summary(PairCost { inner_ns: 10.0, outer_ns: 20.0, ..FREE }).expect("some");
        assert!((summary.mean_ns - 100.0).abs() < 1e-6 && summary.sd_ns < 1e-3, "{summary:?}");
        let short = of(&invocations[..8]).summary(PairCost { inner_ns: 10.0, outer_ns: 20.0, ..FREE }).expect("some");
        // A bucket stands for its middle.
        assert!([short.min_ns, short.p50_ns, short.max_ns].iter().all(|ns| ns.abs_diff(100) <= 1), "{short:?}");
    }

    #[test]
    fn quantiles_are_true_to_two_digits() {
        let invocations: Vec<(u64, u64)> = (1..=100_000).map(|ns| (ns, 0)).collect();
        let summary = of(&invocations).summary(FREE).expect("some");
        for (found, exact) in [(summary.p50_ns, 50_000.0), (summary.p90_ns, 90_000.0), (summary.p99_ns, 99_000.0)] {
            assert!((found as f64 - exact).abs() <= exact / 100.0, "{found} for {exact}");
        }
        assert_eq!((summary.min_ns, summary.max_ns, summary.total_ns), (1, 100_000, 5_000_050_000));
    }

    #[test]
    fn no_time_is_negative() {
        let summary = of(&[(5, 0), (7, 1)]).summary(PairCost { inner_ns: 10.0, outer_ns: 20.0, ..FREE }).expect("some");
        assert_eq!((summary.min_ns, summary.max_ns, summary.total_ns), (0, 0, 0));
    }

    #[test]
    fn where_the_mean_is_known_pairs_cost_what_is_left_and_nothing_becomes_nothing() {
        let all = of(&[(100, 1), (300, 3), (1_000_000, 2)]);
        let cost = all.cost_in_place(PairCost { inner_ns: 10.0, outer_ns: 20.0, least: 0.25 }, 333_400.0);
        let summary = all.summary(cost).expect("some");
        assert!((summary.mean_ns - 333_400.0).abs() < 1.0, "{summary:?}");
        assert!(
            summary.min_ns >= 20 && summary.max_ns > 999_000,
            "a short one keeps a part, one that waited nearly all: {summary:?}"
        );
    }

    #[test]
    fn leaves_that_take_longer_than_those_with_callees_stay_as_they_are() {
        let summary = of(&[(1_000, 10), (1_000_000, 0)]).summary(PairCost { outer_ns: 20.0, ..FREE });
        assert_eq!(summary.map(|summary| (summary.min_ns, summary.max_ns)), Some((800, 1_000_000)));
    }

    #[test]
    fn adding_is_recording_all() {
        let all: Vec<(u64, u64)> = (0..500_u64).map(|n| (n * n % 977 + 40, n % 7)).collect();
        let cost = PairCost { inner_ns: 1.0, outer_ns: 2.0, ..FREE };
        let mut sum = of(&all[..123]);
        sum.add(&of(&all[123..]));
        sum.add(&Invocations::new());
        let (sum, whole) = (sum.summary(cost).expect("some"), of(&all).summary(cost).expect("some"));
        assert!((sum.mean_ns - whole.mean_ns).abs() < 1e-9 && (sum.sd_ns - whole.sd_ns).abs() < 1e-9);
        assert_eq!((sum.count, sum.min_ns, sum.p50_ns, sum.p99_ns, sum.max_ns), {
            (whole.count, whole.min_ns, whole.p50_ns, whole.p99_ns, whole.max_ns)
        });
    }
}
