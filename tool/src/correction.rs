//! From what was recorded with all probes, and what was seen of the same code without them, to times (JFluid 5.3, and beyond).
//!
//! Of each of a node's n calls, the inner time t_I of its probe pair lies between its own two timestamps; of each of the m calls that
//! it makes, the outer time t_O lies between its timestamps and its callee's. JFluid takes `n * t_I + m * t_O` out of what was measured.
//! But a probe does not cost the same everywhere: in dense code it costs less than in code that it keeps from being inlined, or more, and what is
//! left of millions of calls is then anything. So here the recording with all probes says who calls whom and how often, and how long calls
//! *wait*; how long they *run* is divided by samples of the undisturbed code:
//!
//! 1. A root's time ([`wholes`]) is what its calls take without probes, timed as wholes, times their number.
//! 2. Of that, what waits is given to whoever was seen waiting while it was recorded: waiting does not grow with probes. How much it is altogether is what
//!    threads did not want a processor for, in the undisturbed calls; where that is not known, what was seen.
//! 3. The rest is divided from the root down, at each node among itself and its callees, by samples ([`placed`]). Where there are few of these, what the
//!    recording says decides more and more ([`PRIOR`]): measured times without the calibrated cost of their probes, but never less than
//!    a part of what was measured ([`LEAST`]).
//!
//! Times are never negative, and add up, over callees and over threads.
//!
//! An error is one standard deviation, of independent doubts: of the whole, of samples (binomial, and how far the two halves of the sampled phase
//! differ), of what the recording says where it decided (all of the probes' calibrated cost may be wrong), of a coarse clock's steps, of
//! standing in line for a processor, and of what two runs of one program differ by anyway ([`UNSTEADY`]).

mod place;
mod root_calls;
mod threads;
mod whole;

pub use place::{Placed, placed};
pub use root_calls::{MIN_CONTROLS, MOST_OF_A_PAIR_NS, Reference, RootCalls, root_calls};
pub use threads::divided;
pub use whole::{Whole, Wholes, wholes};

use crate::cct::{Cct, NodeId};
use crate::profile::{Clock, Link, MethodIndex, Node, NodeIndex, Tree};

/// What the recording says of how a time divides counts as much as so many samples.
const PRIOR: f64 = 2.0;
/// Of what was measured, at least this part was no probe's.
const LEAST: f64 = 0.2;
/// The standard deviation of what one program's parts take in two runs, as a part of it.
const UNSTEADY: f64 = 0.03;
/// Threads are seen waiting about once in this time, in ns ([`cpu_share`](crate::cpu_share)).
const LOOKED_AT_NS: f64 = 10e6;
/// However much was seen to wait, this part of a root's time was not, if any was recorded that was not.
const RUNNING: f64 = 0.05;

/// What the recording with all probes says of a node, or of a subtree, in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    /// Without the probes, as far as they are known, and without what waited.
    run: f64,
    wait: f64,
    /// The probes' calibrated cost: so much may be wrong.
    doubt: f64,
    /// The variance of what chance gave to one node and not to another, in ns².
    chance: f64,
}

impl Measured {
    fn add(&mut self, other: Measured) {
        self.run += other.run;
        self.wait += other.wait;
        self.doubt += other.doubt;
        self.chance += other.chance;
    }

    /// What is left of it without a part of it.
    fn without(&self, part: &Measured) -> Measured {
        Measured {
            run: self.run - part.run,
            wait: self.wait - part.wait,
            doubt: (self.doubt - part.doubt).max(0.0),
            chance: (self.chance - part.chance).max(0.0),
        }
    }

    fn sum(&self) -> f64 {
        self.run + self.wait
    }

    fn error(&self) -> f64 {
        self.doubt.hypot(self.chance.sqrt())
    }
}

/// A tree's shape and what was measured of it.
pub(crate) struct Recorded {
    /// Of each node, the one whose time its own is part of; the top's index for roots and what was handed over.
    callers: Vec<usize>,
    own: Vec<Measured>,
    below: Vec<Measured>,
}

impl Recorded {
    pub(crate) fn of(cct: &Cct, clock: &Clock) -> Recorded {
        let calls_made = calls_made(cct);
        let (step_ns, queue_ns) = (clock.step_or_period_ns(), clock.queue_ns());
        let own = |(id, node): (NodeId, &crate::cct::Node)| {
            let measured = node.self_measured_ns as f64;
            let probes = node.calls as f64 * clock.inner_ns + calls_made[id.index()] as f64 * clock.outer_ns;
            let without = (measured - probes).max(LEAST * measured);
            let cpu = cct.cpu(id);
            let waiting = f64::from(cpu.samples - cpu.running) / f64::from(cpu.samples + 1);
            let wait = (measured * waiting).min(without);
            let run = without - wait;
            Measured { run, wait, doubt: probes.min(measured), chance: measured * step_ns + run * queue_ns }
        };
        let own: Vec<Measured> = cct.nodes().map(own).collect();
        // Above what was handed over nobody takes part in its time.
        let caller = |(id, node): (NodeId, &crate::cct::Node)| cct.parent(id).filter(|_| !node.is_handed());
        let callers: Vec<usize> = cct.nodes().map(|node| caller(node).map_or(0, NodeId::index)).collect();
        let mut below = own.clone();
        below[0] = Measured::default();
        add_up(&callers, &mut below, Measured::add);
        Recorded { callers, own, below }
    }

    fn is_outermost(&self, index: usize) -> bool {
        self.callers[index] == NodeId::TOP.index()
    }
}

/// Adds what each node has to its caller's, so that all have that of what they call: callees come after their callers.
fn add_up<T: Copy>(callers: &[usize], of: &mut [T], add: impl Fn(&mut T, T)) {
    for index in (1..of.len()).rev() {
        let callee = of[index];
        add(&mut of[callers[index]], callee);
    }
}

/// How many calls each node makes.
fn calls_made(cct: &Cct) -> Vec<u64> {
    let mut made = vec![0; cct.len()];
    for (id, node) in cct.nodes() {
        // What was handed over is entered beside everybody's clock.
        if let Some(parent) = cct.parent(id).filter(|_| !node.is_handed()) {
            made[parent.index()] += node.calls;
        }
    }
    made
}

/// What a subtree gets.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    run: f64,
    wait: f64,
    /// Standard deviation of what the recording decided, in ns.
    by_prior: f64,
    /// The outermost node above.
    outermost: usize,
}

/// A part of what a node and its callees have together.
struct Part {
    samples: f64,
    measured: Measured,
    /// Its share where nothing was measured or sampled.
    otherwise: f64,
}

/// Divides the run time of a node, of which there are so many samples and so much measured: what a part gets, and the deviation of that as far as
/// the recording decided.
fn part_of(whole: &Given, samples: f64, all: &Measured, part: &Part) -> (f64, f64) {
    let prior_weight = PRIOR / (samples + PRIOR);
    // Of what was never measured to run, all is the caller's.
    let prior = if all.run > 0.0 { part.measured.run / all.run } else { part.otherwise };
    let share = (part.samples + PRIOR * prior) / (samples + PRIOR);
    let rest = all.without(&part.measured);
    let doubt_ns = ((1.0 - prior) * part.measured.error()).hypot(prior * rest.error());
    let doubt = if all.run > 0.0 { (doubt_ns / all.run).min(1.0) } else { 1.0 };
    let deviation = (whole.by_prior * share).hypot(prior_weight * doubt * whole.run);
    (whole.run * share, deviation)
}

/// A tree's times; of roots that are not in `wholes` as much as was measured. `waiting` is which part of the roots' time waits, if that is known.
pub fn correct(cct: &Cct, clock: &Clock, wholes: &Wholes, placed: Option<&Placed>, waiting: Option<f64>) -> Tree {
    let recorded = Recorded::of(cct, clock);
    let waits = waits(&recorded, wholes, waiting);
    let Recorded { callers, own, below } = &recorded;
    let own_samples = placed.map_or_else(|| vec![[0; 2]; cct.len()], |placed| placed.own().to_vec());
    let mut samples = own_samples.clone();
    add_up(callers, &mut samples, |sum, more: [u32; 2]| {
        sum[0] += more[0];
        sum[1] += more[1];
    });
    let in_all = |samples: [u32; 2]| f64::from(samples[0] + samples[1]);

    let mut given = vec![Given::default(); cct.len()];
    let mut whole_errors = vec![0.0; cct.len()];
    let mut nodes: Vec<Node> = Vec::with_capacity(cct.len() - 1);
    for (id, _) in cct.nodes().skip(1) {
        let index = id.index();
        if recorded.is_outermost(index) {
            let whole = match wholes.get(&id) {
                Some(whole) => *whole,
                None => Whole { total_ns: below[index].sum(), error_ns: below[index].error() },
            };
            let most = if below[index].run > 0.0 { (1.0 - RUNNING) * whole.total_ns } else { whole.total_ns };
            let wait = (waits * below[index].wait).min(most);
            given[index] = Given { run: whole.total_ns - wait, wait, by_prior: 0.0, outermost: index };
            whole_errors[index] = whole.error_ns;
        } else {
            let caller = callers[index];
            let part = Part { samples: in_all(samples[index]), measured: below[index], otherwise: 0.0 };
            let (run, by_prior) = part_of(&given[caller], in_all(samples[caller]), &below[caller], &part);
            let seen = below[caller].wait;
            let wait = if seen > 0.0 { given[caller].wait * below[index].wait / seen } else { 0.0 };
            given[index] = Given { run, wait, by_prior, outermost: given[caller].outermost };
        }
        let total = given[index];
        let outermost = given[total.outermost];
        let error = |of: Given, of_samples: [u32; 2], is_whole: bool| {
            let sum = of.run + of.wait;
            let all = outermost.run + outermost.wait;
            let whole_error = whole_errors[total.outermost] * if all > 0.0 { sum / all } else { 0.0 };
            if is_whole {
                return whole_error;
            }
            let by_samples = outermost.run * by_samples(of_samples, samples[total.outermost]);
            let scale =
                if below[total.outermost].wait > 0.0 { outermost.wait / below[total.outermost].wait } else { 0.0 };
            let by_looks = (of.wait * LOOKED_AT_NS * scale.min(1.0)).sqrt();
            let doubts = [whole_error, of.by_prior, by_samples, by_looks, UNSTEADY * sum];
            doubts.iter().map(|doubt| doubt * doubt).sum::<f64>().sqrt()
        };
        let (own_run, own_by_prior) = part_of(
            &total,
            in_all(samples[index]),
            &below[index],
            &Part { samples: in_all(own_samples[index]), measured: own[index], otherwise: 1.0 },
        );
        let own_wait = if below[index].wait > 0.0 { total.wait * own[index].wait / below[index].wait } else { 0.0 };
        let own_given = Given { run: own_run, wait: own_wait, by_prior: own_by_prior, ..total };
        let self_ns = (own_run + own_wait).round() as u64;
        nodes.push(Node {
            self_ns,
            total_ns: self_ns,
            error_ns: error(own_given, own_samples[index], false).round() as u64,
            total_error_ns: error(total, samples[index], recorded.is_outermost(index)).round() as u64,
            ..counted(cct, id)
        });
    }
    let mut tree = Tree { nodes };
    add_totals(&mut tree);
    tree
}

/// A node with its counts, and without times.
fn counted(cct: &Cct, id: NodeId) -> Node {
    let node = cct.node(id);
    Node {
        parent: cct.parent(id).filter(|parent| *parent != NodeId::TOP).map(|parent| NodeIndex(parent.index() - 1)),
        link: node.is_handed().then_some(Link::Thread),
        calls: node.calls,
        thrown: cct.thrown(id),
        cpu: cct.cpu(id),
        ..Node::empty(MethodIndex(node.method().0 as usize - 1))
    }
}

/// By how much what was seen to wait, while it was recorded, is to be multiplied, so that roots wait for such a part of their time.
fn waits(recorded: &Recorded, wholes: &Wholes, waiting: Option<f64>) -> f64 {
    let seen: f64 = wholes.keys().map(|root| recorded.below[root.index()].wait).sum();
    let all: f64 = wholes.values().map(|whole| whole.total_ns).sum();
    match waiting {
        Some(part) if seen > 0.0 => part * all / seen,
        _ => 1.0,
    }
}

/// Totals from own times.
fn add_totals(tree: &mut Tree) {
    for index in (0..tree.nodes.len()).rev() {
        let node = tree.nodes[index];
        if let Some(caller) = node.caller() {
            tree.nodes[caller.0].total_ns += node.total_ns;
        }
    }
}

/// The standard deviation of a share that samples say, those of each half of the sampled phase counted apart: by chance, and by what halves differ.
fn by_samples(of: [u32; 2], all: [u32; 2]) -> f64 {
    /// Of half of the phase; fewer say nothing of how it differs from the other one.
    const ENOUGH: u32 = 30;
    let (n, k) = (f64::from(all[0] + all[1]), f64::from(of[0] + of[1]));
    if n == 0.0 {
        return 0.0;
    }
    // As if one sample more were there and one not, so that what was never seen is not known to be nothing.
    let share = (k + 0.5) / (n + 1.0);
    let by_chance = (share * (1.0 - share) / (n + 1.0)).max(0.0).sqrt();
    let between = match all.iter().all(|all| *all >= ENOUGH) {
        true => (f64::from(of[0]) / f64::from(all[0]) - f64::from(of[1]) / f64::from(all[1])).abs() / 2.0,
        false => 0.0,
    };
    by_chance.max(between)
}

#[cfg(test)]
pub(crate) mod tests {
    use headwater_protocol::MethodId;

    use super::*;
    use crate::profile::{ClockMode, ClockSource, CpuSamples};

    pub(crate) const CLOCK: Clock = Clock {
        mode: ClockMode::Exact,
        source: ClockSource::NanoTime,
        inner_ns: 10.0,
        inner_spread_ns: 1.0,
        outer_ns: 20.0,
        outer_spread_ns: 0.5,
        step_ns: None,
        queued: None,
        drift: None,
    };

    /// A root and what it calls: calls and measured self time of each.
    fn called(root: (u64, u64), callees: &[(u64, u64)]) -> Cct {
        let mut cct = Cct::new();
        let outer = cct.child(NodeId::TOP, MethodId(1));
        let add = |id: NodeId, cct: &mut Cct, (calls, measured): (u64, u64)| {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        };
        add(outer, &mut cct, root);
        for (index, callee) in callees.iter().enumerate() {
            let id = cct.child(outer, MethodId(index as u32 + 2));
            add(id, &mut cct, *callee);
        }
        cct
    }

    fn measured(cct: &Cct) -> Tree {
        correct(cct, &CLOCK, &Wholes::default(), None, None)
    }

    /// By so many samples of each node in each half of the phase.
    fn sampled(cct: &Cct, total_ns: f64, own: &[[u32; 2]]) -> Tree {
        let whole = Whole { total_ns, error_ns: 0.01 * total_ns };
        let wholes = Wholes::from_iter([(cct.roots()[0].0, whole)]);
        correct(cct, &CLOCK, &wholes, Some(&Placed::of([&[[0; 2]], own].concat())), None)
    }

    fn selfs(tree: &Tree) -> Vec<u64> {
        tree.nodes.iter().map(|node| node.self_ns).collect()
    }

    #[test]
    fn without_samples_the_inner_time_is_the_callees_and_the_outer_time_the_callers() {
        let tree = measured(&called((1, 1_000), &[(5, 500)]));
        assert_eq!(selfs(&tree), [1_000 - 10 - 5 * 20, 500 - 5 * 10]);
        assert_eq!(tree.nodes[0].total_ns, 890 + 450);
        assert_eq!((tree.nodes[0].parent, tree.nodes[1].parent), (None, Some(NodeIndex(0))));
    }

    #[test]
    fn of_what_was_measured_a_part_is_left_however_many_probes_there_were() {
        let tree = measured(&called((1, 100), &[(1_000_000, 9_000_000)]));
        assert_eq!(selfs(&tree), [20, 1_800_000]);
        assert!(tree.nodes[1].total_error_ns > tree.nodes[1].total_ns, "and is not known: {tree:?}");
    }

    /// Two callees that take the same. In one of them probes cost 30 ns, as calibrated; in the other, which is not inlined any more, 90.
    #[test]
    fn uneven_probes_do_not_matter_where_undisturbed_code_was_sampled() {
        let cct = called((100, 10_000), &[(100_000, 100_000 * 20), (100_000, 100_000 * 80)]);
        let tree = sampled(&cct, 2_000_000.0, &[[10, 10], [245, 245], [245, 245]]);
        let [_, one, other] = tree.nodes[..] else { panic!("three nodes") };
        for node in [one, other] {
            assert!((node.self_ns as f64 - 980_000.0).abs() < 15_000.0, "{tree:?}");
            assert!((30_000..80_000).contains(&node.total_error_ns), "{tree:?}");
        }
        assert_eq!(tree.nodes[0].total_ns, 2_000_000);
    }

    #[test]
    fn where_few_samples_are_the_recording_decides() {
        let cct = called((1, 0), &[(10, 90_000), (10, 10_000)]);
        let none = sampled(&cct, 100_000.0, &[[0; 2], [0; 2], [0; 2]]);
        let few = sampled(&cct, 100_000.0, &[[0; 2], [0; 2], [1, 1]]);
        let many = sampled(&cct, 100_000.0, &[[0; 2], [100, 100], [100, 100]]);
        let second = |tree: &Tree| tree.nodes[2].self_ns as f64 / 1_000.0;
        assert!((second(&none) - 10.0).abs() < 1.0, "{none:?}");
        assert!((second(&few) - 55.0).abs() < 2.0, "{few:?}");
        assert!((second(&many) - 50.0).abs() < 1.0, "{many:?}");
        assert!(few.nodes[2].error_ns > 5 * many.nodes[2].error_ns, "{few:?} {many:?}");
    }

    #[test]
    fn halves_of_the_phase_that_differ_are_in_the_error() {
        let cct = called((1, 0), &[(10, 50_000), (10, 50_000)]);
        let error = |own: &[[u32; 2]]| sampled(&cct, 100_000.0, own).nodes[1].total_error_ns;
        let (alike, apart) = (error(&[[0; 2], [500, 500], [500, 500]]), error(&[[0; 2], [800, 200], [200, 800]]));
        assert!(alike < 4_000 && apart > 25_000, "{alike} {apart}");
    }

    #[test]
    fn who_waited_keeps_it_though_no_sample_was_taken_of_it() {
        let mut cct = called((1, 1_000_000), &[(1, 800_000_000), (1_000_000, 60_000_000)]);
        let sleeper = cct.callee(cct.roots()[0].0, MethodId(2)).expect("it was called");
        cct.add_cpu(sleeper, CpuSamples { samples: 80, running: 0 });
        // Undisturbed, all of it takes 805 ms.
        let tree = sampled(&cct, 805e6, &[[1, 1], [0, 0], [50, 50]]);
        let part = |node: usize| tree.nodes[node].self_ns as f64 / 805e6;
        assert!(part(1) > 0.93 && part(1) < 0.99, "{tree:?}");
        assert!(part(2) > 0.01, "what runs has the rest: {tree:?}");
    }

    #[test]
    fn waiting_that_only_the_recording_had_is_nobodys() {
        let mut cct = called((1, 1_000), &[(1, 50_000_000), (1, 50_000_000)]);
        let stalled = cct.callee(cct.roots()[0].0, MethodId(2)).expect("it was called");
        cct.add_cpu(stalled, CpuSamples { samples: 100, running: 10 });
        let wholes = Wholes::from_iter([(cct.roots()[0].0, Whole { total_ns: 100e6, error_ns: 0.0 })]);
        let placed = Placed::of(vec![[0; 2], [0; 2], [100, 100], [300, 300]]);
        let part = |waiting| correct(&cct, &CLOCK, &wholes, Some(&placed), waiting).nodes[1].self_ns as f64 / 100e6;
        assert!((part(Some(0.0)) - 0.25).abs() < 0.01, "{}", part(Some(0.0)));
        assert!((part(Some(0.2)) - 0.4).abs() < 0.01, "{}", part(Some(0.2)));
        assert!(part(None) > 0.5);
    }

    #[test]
    fn what_was_handed_over_takes_a_time_of_its_own() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let handed = cct.handed_child(root, MethodId(2));
        let called = cct.child(handed, MethodId(3));
        for (id, (calls, measured)) in [(root, (1, 1_000)), (handed, (5, 5_000)), (called, (5, 500))] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        let tree = measured(&cct);
        let totals: Vec<u64> = tree.nodes.iter().map(|node| node.total_ns).collect();
        assert_eq!(
            totals,
            [990, 5_000 - 5 * 10 - 5 * 20 + 450, 450],
            "probes of what it hands over cost the root nothing"
        );
        assert_eq!(tree.nodes[1].link, Some(Link::Thread));
        assert_eq!(tree.total_ns(), 990 + totals[1]);
    }

    #[test]
    fn times_by_a_coarse_clock_are_as_uncertain_as_samples() {
        let coarse = Clock { step_ns: Some(100_000.0), inner_ns: 0.0, outer_ns: 0.0, ..CLOCK };
        let tree = correct(&called((1, 0), &[(10, 10_000_000)]), &coarse, &Wholes::default(), None, None);
        let expected = (10e6_f64 * 1e5).sqrt();
        assert!((tree.nodes[1].total_error_ns as f64 - expected).abs() < 0.1 * expected, "{tree:?}");
    }

    #[test]
    fn totals_are_sums_and_threads_add_up_to_them() {
        for seed in 0..40 {
            let (mut all, mut random) = (Cct::new(), crate::profile::testing::Random::new(seed));
            let threads: Vec<Cct> = (0..1 + seed as usize % 4)
                .map(|_| {
                    let mut cct = Cct::new();
                    for _ in 0..60 {
                        let parent = random.below(cct.len() as u64);
                        let parent = cct.nodes().nth(parent as usize).expect("it is there").0;
                        let node = cct.child(parent, MethodId(1 + random.below(5) as u32));
                        cct.node_mut(node).calls += random.below(1_000);
                        cct.node_mut(node).self_measured_ns += random.below(3) * random.below(100_000);
                        cct.add_cpu(node, CpuSamples { samples: 3, running: random.below(4) as u32 });
                    }
                    cct
                })
                .collect();
            let places: Vec<_> = threads.iter().map(|thread| (thread, thread.merge_into(&mut all))).collect();
            let own: Vec<[u32; 2]> = all.nodes().map(|_| [random.below(3) as u32, random.below(3) as u32]).collect();
            let whole = |(root, _)| (root, Whole { total_ns: random.below(1 << 30) as f64, error_ns: 0.0 });
            let wholes: Wholes = all.roots().into_iter().map(whole).collect();
            let tree = correct(&all, &CLOCK, &wholes, Some(&Placed::of(own)), None);
            for (root, whole) in &wholes {
                let rounding = tree.nodes.len() as f64;
                assert!((tree.nodes[root.index() - 1].total_ns as f64 - whole.total_ns).abs() <= rounding);
            }
            let mut sums = vec![(0, 0); tree.nodes.len()];
            let places_of: Vec<Vec<NodeId>> = places.iter().map(|(_, places)| places.clone()).collect();
            for (thread, places) in divided(&tree, &CLOCK, &places).iter().zip(places_of) {
                for (node, place) in thread.nodes.iter().zip(&places[1..]) {
                    let (self_ns, total_ns) = &mut sums[place.index() - 1];
                    *self_ns += node.self_ns;
                    *total_ns += node.total_ns;
                }
            }
            let expected: Vec<(u64, u64)> = tree.nodes.iter().map(|node| (node.self_ns, node.total_ns)).collect();
            assert_eq!(sums, expected, "seed {seed}");
        }
    }
}
