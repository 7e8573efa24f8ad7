//! Taking the instrumentation's own cost out of measured times (JFluid 5.3).
//!
//! Of each of a node's n calls, the inner time t_I of its probe pair lies between its own two timestamps; of each of the m calls that
//! it makes, the outer time t_O lies between its timestamps and its callee's. So
//! `t_exact = t_meas - n * t_I - m * t_O`, and its uncertainty is `n * s_I + m * s_O` with the spreads of both: the calibration errs in one
//! direction for all calls alike, so errors add up.
//!
//! The cost of a probe differs from place to place, so some nodes come out below zero, and others too high by as much. A subtree's
//! time is the sum of its nodes' as they came out, which evens that out. How far nodes are below zero says how far places
//! differ, and a subtree's time is divided among its root and its callees with regard to how well each is known ([`parts`]):
//! what makes up for those below zero comes from those that are uncertain, and of what is not known at all everybody gets
//! as much as he has probes. An uncertainty is at least what was moved.
//!
//! Where calls of the roots were timed as wholes, after the profile or as control invocations, the cost of a probe pair is
//! fitted to these ([`in_place`]), and divided between callee and caller with regard to what there is ([`divided`]). What the one has
//! too much by that division, the other has too little: that part of the uncertainty grows with the difference of n and m, and
//! of a subtree with its own n alone.
//!
//! Times by a coarse clock are samples: of a time t with steps of p, `sqrt(t * p)` is one standard deviation, but that of a stretch
//! of time that the clock is read before and after is never more than half a step.
//!
//! Where processors are scarce, a thread loses its own now and then, for a slice, and whoever is on top of its stack then has that in
//! its time. Of a time t in which the thread wanted a processor, and of which it stood in line for a part q, the deviation is
//! `sqrt(t * q * slice)`.

mod division;
mod in_place;
mod parts;

pub use division::divided;
pub use in_place::{MIN_CONTROLS, MOST_OF_A_PAIR_NS, Reference, RootCalls, in_place, root_calls};

use parts::{Part, divide};

use crate::cct::{Cct, NodeId};
use crate::profile::{Clock, Link, MethodIndex, Node, NodeIndex, Tree};

/// What is known of a node, or of a subtree, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    /// Corrected; may be below zero.
    exact: f64,
    measured: f64,
    /// Of what was measured, how long the thread wanted no processor.
    waited: f64,
    spread: f64,
    /// How far nodes are below zero.
    missing: f64,
    /// Halves of probe pairs in it: of its own calls, and of those that it makes.
    halves: f64,
    /// The sum of their squares: how much matters that places differ, which evens out.
    squared_halves: f64,
}

impl Sum {
    fn add(&mut self, other: Sum) {
        self.exact += other.exact;
        self.measured += other.measured;
        self.waited += other.waited;
        self.spread += other.spread;
        self.missing += other.missing;
        self.halves += other.halves;
        self.squared_halves += other.squared_halves;
    }

    /// Where less was sampled than probes take, it is for want of samples.
    fn expected_ns(&self) -> f64 {
        self.measured.max(self.measured - self.exact).max(0.0)
    }

    /// The variance, in ns², of a time that a coarse clock measured in so many stretches.
    fn sampled(&self, step_ns: f64, stretches: f64) -> f64 {
        (self.expected_ns() * step_ns).min(stretches * step_ns * step_ns / 4.0)
    }

    /// The variance, in ns², of standing in line for a processor.
    fn queued(&self, queue_ns: f64) -> f64 {
        (self.expected_ns() - self.waited).max(0.0) * queue_ns
    }
}

/// Where a probe pair's cost is known from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Known {
    /// From an empty method.
    Calibrated,
    /// From the roots' own calls: how costs differ below a root says nothing of the root's total.
    InPlace {
        /// How uncertain the division between callee and caller is, in ns: what the one has too much, the other has too little.
        division_ns: f64,
    },
}

/// A tree's corrected times.
pub fn correct(cct: &Cct, clock: &Clock, known: Known) -> Tree {
    let calls_made = calls_made(cct);
    let own = |(id, node): (NodeId, &crate::cct::Node)| {
        let (n, m) = (node.calls as f64, calls_made[id.index()] as f64);
        let measured = node.self_measured_ns as f64;
        let exact = measured - n * clock.inner_ns - m * clock.outer_ns;
        let spread = n * clock.inner_spread_ns + m * clock.outer_spread_ns;
        let halves = n + m;
        let waited = measured * cct.cpu(id).share().map_or(0.0, |running| 1.0 - running);
        Sum { exact, measured, waited, spread, missing: (-exact).max(0.0), halves, squared_halves: halves * halves }
    };
    let selfs: Vec<Sum> = cct.nodes().map(own).collect();
    // Above what was handed over nothing takes part in its time.
    let caller = |(id, node): (NodeId, &crate::cct::Node)| cct.parent(id).filter(|_| !node.is_handed());
    let parents: Vec<usize> = cct.nodes().map(|node| caller(node).map_or(0, NodeId::index)).collect();
    // Children come after their parents.
    let mut totals = selfs.clone();
    totals[0] = Sum::default();
    for index in (1..totals.len()).rev() {
        let total = totals[index];
        totals[parents[index]].add(total);
    }

    let (is_in_place, division_ns) = match known {
        Known::Calibrated => (false, 0.0),
        Known::InPlace { division_ns } => (true, division_ns),
    };
    let (step_ns, queue_ns) = (clock.step_or_period_ns(), clock.queue_ns());
    let places_ns = between_places(&selfs[1..], step_ns, queue_ns);
    // Below a node, what callees have too much their callers have too little.
    let own_deviation = |node: &crate::cct::Node, id: NodeId| {
        let own = selfs[id.index()];
        let undivided = node.calls.abs_diff(calls_made[id.index()]) as f64;
        let by_chance = own.sampled(step_ns, own.halves) + own.queued(queue_ns);
        own.spread + undivided * division_ns + by_chance.sqrt() + own.halves * places_ns
    };
    // How costs differ below a root of which they are known, and who lost the processor there, says nothing of its total.
    let is_fitted = |id: NodeId| is_in_place && cct.parent(id) == Some(NodeId::TOP);
    let total_deviation = |node: &crate::cct::Node, id: NodeId| {
        let total = totals[id.index()];
        let calls = node.calls as f64;
        let (places, queued) = match is_fitted(id) {
            true => (0.0, 0.0),
            false => (total.squared_halves.sqrt() * places_ns, total.queued(queue_ns)),
        };
        total.spread + calls * division_ns + (total.sampled(step_ns, calls) + queued).sqrt() + places
    };
    let deviations: Vec<Deviation> = cct
        .nodes()
        .map(|(id, node)| Deviation { own: own_deviation(node, id), total: total_deviation(node, id) })
        .collect();
    let given = give(&selfs, &totals, &deviations, &parents);

    let mut nodes: Vec<Node> = Vec::with_capacity(cct.len() - 1);
    for (id, node) in cct.nodes().skip(1) {
        let index = id.index();
        let (own, total, deviation, given) = (selfs[index], totals[index], deviations[index], given[index]);
        let moved = (given.total - total.exact).abs();
        let missing = if is_fitted(id) { 0.0 } else { total.missing };
        let self_ns = given.own.round() as u64;
        nodes.push(Node {
            parent: cct.parent(id).filter(|parent| *parent != NodeId::TOP).map(|parent| NodeIndex(parent.index() - 1)),
            link: node.is_handed().then_some(Link::Thread),
            method: MethodIndex(node.method().0 as usize - 1),
            calls: node.calls,
            thrown: cct.thrown(id),
            self_ns,
            total_ns: self_ns,
            error_ns: deviation.own.max((given.own - own.exact).abs()).round() as u64,
            total_error_ns: deviation.total.max(moved).max(missing).round() as u64,
            cpu: cct.cpu(id),
        });
    }
    for index in (0..nodes.len()).rev() {
        let node = nodes[index];
        if let Some(caller) = node.caller() {
            nodes[caller.0].total_ns += node.total_ns;
        }
    }
    Tree { nodes }
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

/// How far half a probe pair's cost differs from place to place, in ns, as a standard deviation: at least as far as the nodes show that
/// come out below zero. Others are too high by as much, and nobody can tell which.
fn between_places(selfs: &[Sum], step_ns: f64, queue_ns: f64) -> f64 {
    let (mut squares, mut halves) = (0.0, 0.0);
    for own in selfs.iter().filter(|own| own.halves > 0.0) {
        let by_chance = own.sampled(step_ns, own.halves) + own.queued(queue_ns);
        let unexplained = own.missing * own.missing - by_chance;
        squares += 2.0 * unexplained.max(0.0) / own.halves;
        halves += own.halves;
    }
    if halves > 0.0 { (squares / halves).sqrt() } else { 0.0 }
}

/// How uncertain a node's own time is, and its subtree's, in ns.
#[derive(Clone, Copy, Debug)]
struct Deviation {
    own: f64,
    total: f64,
}

/// What a node gets, and its subtree, in ns.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    own: f64,
    total: f64,
}

/// A program is not as fast at all times, and a whole that is known from elsewhere than its parts is from another time: how far that may go, as a part.
const UNSTEADY: f64 = 0.01;

/// Times, none below zero, that add up to each root's total.
fn give(selfs: &[Sum], totals: &[Sum], deviations: &[Deviation], parents: &[usize]) -> Vec<Given> {
    let (first, children) = children(parents);
    let mut given = vec![Given::default(); selfs.len()];
    let (mut parts, mut times) = (Vec::new(), Vec::new());
    for index in 1..selfs.len() {
        if parents[index] == 0 {
            given[index].total = totals[index].exact.max(0.0);
        }
        let whole = given[index].total;
        let called = &children[first[index]..first[index + 1]];
        let part = |sum: &Sum, deviation: f64| Part {
            found: sum.exact,
            deviation: deviation.hypot(UNSTEADY * sum.exact),
            halves: sum.halves,
        };
        parts.clear();
        parts.push(part(&selfs[index], deviations[index].own));
        parts.extend(called.iter().map(|&child| part(&totals[child], deviations[child].total)));
        divide(whole, &parts, &mut times);
        given[index].own = times[0];
        for (&child, &time) in called.iter().zip(&times[1..]) {
            given[child].total = time;
        }
    }
    given
}

/// Each node's children: where they begin, with an end behind the last, and all of them.
fn children(parents: &[usize]) -> (Vec<usize>, Vec<usize>) {
    let has_parent = |index: &usize| parents[*index] != 0;
    let mut first = vec![0; parents.len() + 1];
    for index in (0..parents.len()).filter(has_parent) {
        first[parents[index] + 1] += 1;
    }
    for index in 1..first.len() {
        first[index] += first[index - 1];
    }
    let mut next = first.clone();
    let mut children = vec![0; first[parents.len()]];
    for index in (0..parents.len()).filter(has_parent) {
        children[next[parents[index]]] = index;
        next[parents[index]] += 1;
    }
    (first, children)
}

#[cfg(test)]
mod tests {
    use headwater_protocol::MethodId;

    use super::*;
    use crate::profile::{ClockMode, ClockSource, CpuSamples};

    pub(super) const CLOCK: Clock = Clock {
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

    /// A clock whose probes cost the same wherever they are.
    const CERTAIN: Clock = Clock { inner_spread_ns: 0.0, outer_spread_ns: 0.0, ..CLOCK };

    /// A root that calls one method; calls and measured self time of each.
    fn called(root: (u64, u64), callee: (u64, u64)) -> Cct {
        let mut cct = Cct::new();
        let outer = cct.child(NodeId::TOP, MethodId(1));
        let inner = cct.child(outer, MethodId(2));
        for (id, (calls, measured)) in [(outer, root), (inner, callee)] {
            cct.node_mut(id).calls = calls;
            cct.node_mut(id).self_measured_ns = measured;
        }
        cct
    }

    #[test]
    fn inner_time_is_the_callees_outer_time_the_callers() {
        let tree = correct(&called((1, 1_000), (5, 500)), &CERTAIN, Known::Calibrated);
        let [root, callee] = tree.nodes[..] else { panic!("two nodes") };
        assert_eq!((root.self_ns, callee.self_ns), (1_000 - 10 - 5 * 20, 500 - 5 * 10));
        assert_eq!(root.total_ns, root.self_ns + callee.self_ns);
        assert_eq!((root.parent, callee.parent), (None, Some(NodeIndex(0))));
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
        let tree = correct(&cct, &CERTAIN, Known::Calibrated);
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
    fn uncertainty_grows_with_the_calls() {
        let cct = called((1, 9_000), (100, 5_000));
        let errors = |known| {
            let nodes = correct(&cct, &CLOCK, known).nodes;
            (nodes[0].total_error_ns, nodes[1].total_error_ns, nodes[1].error_ns)
        };
        // Times are moved a little, because the callee is less certain.
        let near = |error: u64, expected: u64| (expected..expected + 5).contains(&error);
        let (root, callee, own) = errors(Known::Calibrated);
        assert!(near(root, 1 + 50 + 100) && near(callee, 100) && near(own, 100), "{root} {callee} {own}");
        let (root, callee, own) = errors(Known::InPlace { division_ns: 0.5 });
        assert!(near(callee, 100 + 50) && near(own, 100 + 50), "each of its calls: {callee} {own}");
        assert!(near(root, 1 + 50 + 100 + 1), "between them it is no matter: {root}");
    }

    #[test]
    fn a_time_is_never_negative_and_what_is_missing_is_uncertain() {
        let tree = correct(&called((1, 10_000), (10, 30)), &CLOCK, Known::Calibrated);
        let [root, callee] = tree.nodes[..] else { panic!("two nodes") };
        assert_eq!(root.total_ns, 9_790 - 70);
        assert!(callee.self_ns > 0 && callee.error_ns >= 70 + callee.self_ns, "{callee:?}");
        let tree = correct(&called((1, 1_000), (100, 5_000)), &CLOCK, Known::InPlace { division_ns: 0.0 });
        assert_eq!(tree.nodes[0].total_error_ns, 1 + 50 + 100, "the root's total is what was fitted: {tree:?}");
    }

    #[test]
    fn a_method_without_a_sample_may_take_as_long_as_one_with_one() {
        // Two methods are called as often, and one of them was seen by the clock, once.
        let clock = Clock { mode: ClockMode::Tick(std::time::Duration::from_micros(100)), ..CERTAIN };
        let mut cct = called((100, 10_000_000), (100, 100_000));
        let other = cct.child(cct.roots()[0].0, MethodId(3));
        cct.node_mut(other).calls = 100;
        let tree = correct(&cct, &clock, Known::InPlace { division_ns: 0.0 });
        let [root, one, other] = tree.nodes[..] else { panic!("three nodes") };
        assert!(other.self_ns > 5_000 && one.self_ns < 200_000, "{one:?} {other:?}");
        assert!(other.error_ns > 10_000 && root.error_ns < 1_100_000, "places are all alike: {root:?} {other:?}");
    }

    #[test]
    fn long_steps_of_the_clock_make_times_less_certain() {
        let mode = ClockMode::Tick(std::time::Duration::from_micros(100));
        let cct = called((100, 10_000_000), (100, 8_000_000));
        let error_ns = |step_ns| {
            let tree = correct(&cct, &Clock { mode, step_ns, ..CERTAIN }, Known::InPlace { division_ns: 0.0 });
            tree.nodes[0].error_ns
        };
        assert_eq!(error_ns(None), error_ns(Some(100_000.0)));
        assert!(error_ns(Some(400_000.0)) > error_ns(None) * 3 / 2);
    }

    #[test]
    fn who_lost_the_processor_does_not_have_the_time_of_all() {
        // Two methods are called as often, and take next to nothing; in one of them the thread lost its processor.
        const CALLS: u64 = 1_000_000;
        let given = |queued| {
            let mut cct = called((1, 1_000 + 40 * CALLS), (CALLS, 11 * CALLS));
            let other = cct.child(cct.roots()[0].0, MethodId(3));
            cct.node_mut(other).calls = CALLS;
            cct.node_mut(other).self_measured_ns = 11 * CALLS + 4_000_000;
            correct(&cct, &Clock { queued, ..CERTAIN }, Known::InPlace { division_ns: 0.0 }).nodes
        };
        let (alone, scarce) = (given(None), given(Some(0.2)));
        assert!(alone[2].self_ns > 4 * alone[1].self_ns, "{alone:?}");
        assert!(scarce[2].self_ns < 2 * scarce[1].self_ns, "{scarce:?}");
        assert!(scarce[2].error_ns > 2_000_000, "it is said: {scarce:?}");
        assert_eq!((alone[0].total_ns, alone[0].total_error_ns), (scarce[0].total_ns, scarce[0].total_error_ns));
    }

    #[test]
    fn who_waits_for_something_else_does_not_wait_for_a_processor() {
        let cct = |running| {
            let mut cct = called((1, 10_000_000), (1, 1_000_000_000));
            let waits = cct.nodes().last().expect("the callee").0;
            cct.add_cpu(waits, CpuSamples { samples: 100, running });
            cct
        };
        let error_ns = |running| {
            correct(&cct(running), &Clock { queued: Some(0.1), ..CERTAIN }, Known::Calibrated).nodes[1].error_ns
        };
        assert_eq!(error_ns(100), 20_000_000, "a second, of which a tenth in line, 4 ms each time");
        assert!(error_ns(0) < 1_000_000);
    }

    #[test]
    fn one_long_call_beside_many_short_ones_takes_as_long_as_it_was_found_to() {
        const WAIT_NS: u64 = 2_014_000_000;
        for mode in [ClockMode::Exact, ClockMode::Tick(std::time::Duration::from_micros(100))] {
            let mut cct = called((1, 900_000), (1, WAIT_NS));
            let computes = cct.child(cct.roots()[0].0, MethodId(3));
            cct.node_mut(computes).calls = 1;
            cct.node_mut(computes).self_measured_ns = 200_000_000;
            let step = cct.child(computes, MethodId(4));
            cct.node_mut(step).calls = 60_000;
            cct.node_mut(step).self_measured_ns = 1_000_000_000;
            let tree = correct(&cct, &Clock { mode, ..CLOCK }, Known::Calibrated);
            let waits = tree.nodes[1];
            assert!(waits.self_ns.abs_diff(WAIT_NS) < 200_000 && waits.error_ns < 200_000, "{mode:?}: {tree:?}");
        }
    }

    #[test]
    fn what_is_too_much_for_a_whole_of_another_time_is_taken_from_the_longest() {
        // A root's own time and one callee's are known well, and are together more than all was at another time; of another callee nothing is known.
        let sum = |exact, halves| Sum { exact, halves, ..Sum::default() };
        let selfs = [Sum::default(), sum(5e5, 2e5), sum(855e5, 1e5), sum(-2e6, 2e7)];
        let totals = [Sum::default(), sum(84e6, 203e5), selfs[2], selfs[3]];
        let deviation = |own| Deviation { own, total: own };
        let deviations = [deviation(0.0), deviation(1.3e5), deviation(6.5e4), deviation(1.4e7)];
        let given = give(&selfs, &totals, &deviations, &[0, 0, 1, 1]);
        assert!((given[1].own - 5e5).abs() < 1.3e5, "{given:?}");
        assert!((given[2].total - 840e5).abs() < 10e5, "{given:?}");
    }

    #[test]
    fn where_some_are_below_zero_others_are_as_uncertain() {
        // A root that calls two methods 100 times each, which came out as 5 ns a call, and 4 below zero.
        let mut cct = called((1, 10_000), (100, 1_500));
        let other = cct.child(cct.roots()[0].0, MethodId(3));
        cct.node_mut(other).calls = 100;
        cct.node_mut(other).self_measured_ns = 600;
        let tree = correct(&cct, &CERTAIN, Known::InPlace { division_ns: 0.0 });
        let [root, one, other] = tree.nodes[..] else { panic!("three nodes") };
        assert!(other.self_ns > 50 && one.self_ns.abs_diff(500) < 100, "{one:?} {other:?}");
        assert!(one.error_ns > 250 && other.error_ns >= 400 + other.self_ns, "{one:?} {other:?}");
        assert!(root.self_ns.abs_diff(5_990) < root.error_ns, "{root:?}");
        let rounded = root.total_ns.abs_diff(10_000 - 10 - 4_000 + 500 - 400);
        assert!(rounded <= 1 && root.total_error_ns == 0, "{root:?}");
    }
}
