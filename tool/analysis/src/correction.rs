//! From what was recorded with all probes, and what was seen of the same code without them, to times (JFluid 5.3, and beyond).
//!
//! Of each of a node's n calls, the inner time t_I of its probe pair lies between its own two timestamps; of each of the m calls that
//! it makes, the outer time t_O lies between its timestamps and its callee's. JFluid takes `n * t_I + m * t_O` out of what was measured.
//! So is what telling of an object takes, where these are counted.
//! But a probe does not cost the same everywhere: in dense code it costs less than in code that it keeps from being inlined, or more, and what is
//! left of millions of calls is then anything. So here the recording with all probes says who calls whom and how often, and how long calls
//! *wait*; how long they *run* is divided by samples of the undisturbed code:
//!
//! 1. A root's time ([`wholes`]) is what its calls take without probes, timed as wholes, times their number.
//! 2. Of that, what waits is given to whoever was seen waiting while it was recorded: waiting does not grow with probes. How much it is altogether is what
//!    threads did not want a processor for, in the undisturbed calls; where that is not known, what was seen. If it was seen for far longer than that, it was
//!    mostly the recording's ([`GROWN`]), and nobody knows where the rest is: it divides as what runs. What
//!    was measured of what a method calls that had lost its probes is below it, as far as samples are ([`Lost`]).
//! 3. The rest is divided from the root down, at each node among itself and its callees, by samples ([`placed`]) alone, however few of them a node has: what
//!    was measured would decide a little at each level, and in the end all. It counts where its calls took hardly longer than without probes ([`DECISIVE`]), of
//!    roots with next to no samples ([`FEW`]), and where none were: measured times without the calibrated cost of their probes, but never less than a part of
//!    what was measured ([`LEAST`]).
//!
//! Threads that wait stand in line where they wake up, and no sample sees that. Where roots wait and processors are scarce, what was measured divides better than
//! samples if probes are few ([`Whole::disturbed`]), and else how much that may be is in the errors ([`woken`]).
//!
//! Times are never negative, and add up, over callees and over threads.
//!
//! An error is one standard deviation, of independent doubts: of the whole, of samples (binomial, by how many are [`alike`], and how far the two halves of the
//! sampled phase differ), of code that was not settled when it was timed, of what the recording says where it decided (all of the probes' calibrated cost may be wrong), of a coarse clock's steps, of
//! standing in line for a processor, and of what two runs of one program differ by anyway ([`UNSTEADY`]).
//!
//! Why so, and at what cost: docs/decisions/times.md.

mod alike;
mod coverage;
mod lost;
mod place;
mod recorded;
mod root_calls;
#[cfg(test)]
pub(crate) mod tests;
mod threads;
mod whole;

pub use coverage::{coverage, looks};
pub use lost::Lost;
pub use place::{ALL_VIRTUAL, Names, Placed, Waiting, grow, placed, placed_on_all};
pub use root_calls::{MIN_CONTROLS, MOST_OF_A_PAIR_NS, Reference, RootCalls, root_calls};
pub use threads::{divided, grown};
pub use whole::{QUEUED, Whole, Wholes, untimed, wholes};

use recorded::{Measured, Recorded, add_up};

use crate::cct::{Cct, NodeId};
use headwater_profile::profile::{Clock, Link, MethodIndex, Node, NodeIndex, Sampled, SampledRoot, Tree, by_halves};

/// What the recording says of how a time divides counts where it is known as well as by so many samples: within a fifth;
const DECISIVE: f64 = 6.0;
/// as so many at most, where its calls took what they take without probes, and these cost next to nothing;
const MOST_PRIOR: f64 = 2_000.0;
/// and as so many otherwise, of a root that has few.
const PRIOR: f64 = 2.0;
/// So many samples of a root say by themselves how its time divides.
const FEW: f64 = 10.0;
/// More samples than this count as so many against it: none are of a thread inside the JVM, where exceptions are filled in and classes are loaded, nor, on some
/// JDKs, in code that compilers have ready, for sines, sums of bytes, copies of arrays.
const UNBIASED: f64 = 25.0;
/// The standard deviation of what one program's parts take in two runs, as a part of it.
const UNSTEADY: f64 = 0.03;
/// Threads are seen waiting about once in this time, in ns ([`cpu_share`](crate::cpu_share)).
const LOOKED_AT_NS: f64 = 10e6;
/// So many times what undisturbed calls wait was seen while they were recorded: of more, more than half may lie elsewhere.
const GROWN: f64 = 2.0;
/// Of a root of whose time a larger part may be elsewhere for another reason than chance, samples do not say how uncertain rows are.
const DOUBTED: f64 = 0.05;
/// However much was seen to wait, this part of a root's time was not, if as much was recorded that was not.
const RUNNING: f64 = 0.05;

/// What a subtree gets.
#[derive(Clone, Copy, Debug, Default)]
struct Given {
    run: f64,
    wait: f64,
    /// Standard deviation of what the recording decided, in ns.
    by_prior: f64,
    /// The outermost node above, and how many samples that has.
    outermost: usize,
    samples: f64,
    /// By which part the outermost node's calls took longer, or shorter, while they were recorded.
    disturbed: f64,
    /// Which part of that samples do not tell of.
    untold: f64,
    /// What the outermost node's calls wait, or run where they have waited, and nobody knows where, in ns.
    unplaced: f64,
}

impl Given {
    /// As how many samples they count at most against what was measured: what they do not tell of may be anywhere.
    fn worth(&self) -> f64 {
        UNBIASED.min(1.0 / (self.untold * self.untold))
    }
}

/// A part of what a node and its callees have together.
struct Part {
    samples: f64,
    measured: Measured,
    /// Its share where nothing was measured or sampled.
    otherwise: f64,
    /// Of the whole, samples were in callees that had no probes, for all the time or a part of it: what these called was measured below the node itself.
    is_passed: bool,
    /// Of the whole, callees lost their probes: what they took from then on was measured as the node's own.
    has_lost: bool,
}

/// As how many samples it counts what the recording says of how a node's time divides, of which so much was measured, if it counts. A share that has a standard
/// deviation of d is known as well as by 1 / (4 d^2) samples.
fn decisive(disturbed: f64, all: &Measured) -> Option<f64> {
    let deviation = if all.run > 0.0 { disturbed + all.error() / all.run } else { 1.0 };
    let weight = 0.25 / (deviation * deviation);
    (weight > DECISIVE).then_some(weight.min(MOST_PRIOR))
}

/// How far samples decide how a root's time divides, of which there are so many; wholly, where methods below it lost their probes.
fn by_their_part(whole: &Given, samples: f64, all: &Measured, has_lost: bool) -> f64 {
    let worth = samples.min(whole.worth());
    match decisive(whole.disturbed, all) {
        Some(weight) if !has_lost => worth / (worth + weight),
        _ => 1.0,
    }
}

/// Divides the run time of a node, of which there are so many samples and so much measured: what a part gets, and the deviation of that as far as
/// the recording decided.
fn part_of(whole: &Given, samples: f64, all: &Measured, part: &Part) -> (f64, f64) {
    let decisive = decisive(whole.disturbed, all).filter(|_| !(part.is_passed || part.has_lost));
    let worth = if decisive.is_some() { samples.min(whole.worth()) } else { samples };
    let part_samples = if samples > 0.0 { part.samples * worth / samples } else { 0.0 };
    // Of what was never measured to run, all is the caller's, unless samples say where it was: of many such calls, one below the other, each would keep
    // a part that nobody has seen.
    let prior = if all.run > 0.0 { part.measured.run / all.run } else { part.otherwise };
    let counts = match decisive {
        Some(weight) => weight,
        None if samples == 0.0 => PRIOR,
        None if whole.samples >= FEW || part.is_passed || all.run == 0.0 => 0.0,
        None => PRIOR,
    };
    let share = (part_samples + counts * prior) / (worth + counts);
    let rest = all.without(&part.measured);
    let doubt_ns = ((1.0 - prior) * part.measured.error()).hypot(prior * rest.error());
    let disturbed_ns = whole.disturbed.min(1.0) * (prior * (1.0 - prior)).max(0.0).sqrt() * all.run;
    let disturbed_ns = if decisive.is_some() { disturbed_ns } else { 0.0 };
    let doubt = if all.run > 0.0 { (doubt_ns.hypot(disturbed_ns) / all.run).min(1.0) } else { 1.0 };
    let prior_weight = counts / (worth + counts);
    // Of two witnesses that say different things either may be right; and what samples do not tell of may be where it was measured.
    let apart = match decisive {
        _ if worth == 0.0 => 0.0,
        Some(weight) => (part_samples / worth - prior).abs() * (worth * weight).sqrt() / (worth + weight),
        None => untold(part_samples / worth, prior, whole.untold),
    };
    let deviation = (whole.by_prior * share).hypot(prior_weight * doubt * whole.run).hypot(apart * whole.run);
    (whole.run * share, deviation)
}

/// The standard deviation of a share that samples say, where they do not tell of such a part of the time and it was measured otherwise: as far as they allow for
/// that, either may be right.
fn untold(sampled: f64, measured: f64, untold: f64) -> f64 {
    let least = sampled * (1.0 - untold);
    (measured.clamp(least, least + untold) - sampled).abs() * std::f64::consts::FRAC_1_SQRT_2
}

/// A tree's times; of roots that are not in `wholes` as much as was measured. `waiting` is which part of the roots' time waits, if that is known.
pub fn correct(cct: &Cct, clock: &Clock, wholes: &Wholes, placed: Option<&Placed>, waiting: Option<Waiting>) -> Tree {
    let is_lost = |node: NodeId| placed.is_some_and(|placed| placed.lost.contains(&cct.node(node).method()));
    let recorded = Recorded::of(cct, clock).with(Lost::of(cct, placed).moved.into_iter());
    let waits = waits(&recorded, wholes, waiting.map(|waiting| waiting.part));
    let unclear = waiting.map_or(0.0, |waiting| waiting.unclear);
    let woken = woken(clock, waiting);
    let Recorded { callers, own, below } = &recorded;
    let alike = placed.map_or(1.0, Placed::worth_one);
    let waited = |index: usize| if own[index].sum() > 0.0 { own[index].wait / own[index].sum() } else { 0.0 };
    let own_samples = placed.map_or_else(|| vec![[0; 2]; cct.len()], |placed| placed.running(waited));
    let is_passed = |index: usize| placed.is_some_and(|placed| placed.is_passed(index));
    let mut has_lost = vec![false; cct.len()];
    let lost = cct.nodes().skip(1).filter(|(id, _)| is_lost(*id));
    lost.for_each(|(id, _)| has_lost[callers[id.index()]] = true);
    let mut lost_below = has_lost.clone();
    add_up(callers, &mut lost_below, |any, more| *any |= more);
    // Who waits in a method without probes was seen in its caller.
    let of_callees = |index: usize| if has_lost[index] { own[index].wait } else { 0.0 };
    let mut of_callees: Vec<f64> = (0..cct.len()).map(of_callees).collect();
    add_up(callers, &mut of_callees, |sum, more| *sum += more);
    let mut samples = own_samples.clone();
    add_up(callers, &mut samples, |sum, more: [u32; 2]| {
        sum[0] += more[0];
        sum[1] += more[1];
    });
    let in_all = |samples: [u32; 2]| f64::from(samples[0] + samples[1]);

    let mut given = vec![Given::default(); cct.len()];
    let mut whole_errors = vec![0.0; cct.len()];
    let mut unsettled = vec![0.0; cct.len()];
    let mut nodes: Vec<Node> = Vec::with_capacity(cct.len() - 1);
    for (id, _) in cct.nodes().skip(1) {
        let index = id.index();
        if recorded.is_outermost(index) {
            let whole = match wholes.get(&id) {
                Some(whole) => *whole,
                None => Whole::measured(&below[index]),
            };
            let seen = &below[index];
            let running = if seen.run > 0.0 { RUNNING.min(seen.run / seen.sum()) } else { 0.0 };
            // Of what is as it was measured, waits are too.
            let waits = if wholes.contains_key(&id) { waits } else { 1.0 };
            let wait = (waits * seen.wait).min((1.0 - running) * whole.total_ns);
            let disturbed = whole.disturbed(&below[index], woken);
            let (run, untold) = (whole.total_ns - wait, placed.map_or(0.0, |placed| placed.untold));
            let of_callees = if seen.wait > 0.0 { wait * of_callees[index] / seen.wait } else { 0.0 };
            // One call waits here, and the next one elsewhere.
            let calls = if wholes.contains_key(&id) { cct.node(id).calls.max(1) as f64 } else { f64::INFINITY };
            let by_calls = wait / calls.sqrt();
            given[index] = Given {
                run,
                wait,
                by_prior: 0.0,
                outermost: index,
                samples: in_all(samples[index]),
                disturbed,
                untold,
                unplaced: (wait * elsewhere(waits))
                    .hypot(unclear * whole.total_ns)
                    .hypot(woken * run)
                    .hypot(by_calls)
                    .hypot(of_callees),
            };
            (whole_errors[index], unsettled[index]) = (whole.error_ns, whole.unsettled);
        } else {
            let caller = callers[index];
            let part = Part {
                samples: in_all(samples[index]),
                measured: below[index],
                otherwise: 0.0,
                is_passed: is_passed(caller),
                has_lost: has_lost[caller],
            };
            let (run, by_prior) = part_of(&given[caller], in_all(samples[caller]), &below[caller], &part);
            let seen = below[caller].wait;
            let wait = if seen > 0.0 { given[caller].wait * below[index].wait / seen } else { 0.0 };
            given[index] = Given { run, wait, by_prior, ..given[caller] };
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
            let decided = by_their_part(
                &outermost,
                in_all(samples[total.outermost]),
                &below[total.outermost],
                lost_below[total.outermost],
            );
            let by_samples = decided * outermost.run * by_samples(of_samples, samples[total.outermost], alike);
            let by_untold = decided * outermost.run * by_untold(of_samples, samples[total.outermost], outermost.untold);
            let scale =
                if below[total.outermost].wait > 0.0 { outermost.wait / below[total.outermost].wait } else { 0.0 };
            let by_looks = (of.wait * LOOKED_AT_NS * scale.min(1.0)).sqrt();
            // Some code is compiled before other code: a part may be as far from settled as the whole is, and the rest not.
            let by_settling = unsettled[total.outermost] * sum * (1.0 - sum / all.max(1.0)).max(0.0);
            let share = (sum / all.max(1.0)).min(1.0);
            let by_unplaced = outermost.unplaced * (share * (1.0 - share)).sqrt();
            let doubts =
                [whole_error, of.by_prior, by_samples, by_untold, by_looks, by_unplaced, by_settling, UNSTEADY * sum];
            doubts.iter().map(|doubt| doubt * doubt).sum::<f64>().sqrt()
        };
        let (own_run, own_by_prior) = part_of(
            &total,
            in_all(samples[index]),
            &below[index],
            &Part {
                samples: in_all(own_samples[index]),
                measured: own[index],
                otherwise: 1.0,
                is_passed: is_passed(index),
                has_lost: has_lost[index],
            },
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
    let chance = |(id, _): (NodeId, _)| {
        let (given, samples) = (&given[id.index()], in_all(samples[id.index()]));
        let run_ns = by_their_part(given, samples, &below[id.index()], lost_below[id.index()]) * given.run;
        SampledRoot {
            node: NodeIndex(id.index() - 1),
            samples: samples as u64,
            chance_ns: (run_ns * alike.sqrt() / (samples + 1.0)).round() as u64,
            unsettled_ns: (unsettled[id.index()] * (given.run + given.wait)).round() as u64,
            unplaced_ns: given.unplaced.round() as u64,
        }
    };
    let roots = cct.nodes().skip(1).filter(|(id, _)| recorded.is_outermost(id.index())).map(chance);
    let roots = roots.filter(|root| root.samples > 0).collect();
    let of_nodes = |count: fn(&[u32; 2]) -> u32| {
        own_samples.iter().enumerate().skip(1).map(move |(index, of)| (NodeIndex(index - 1), count(of)))
    };
    let is_decided = |(id, _): (NodeId, _)| {
        let index = id.index();
        by_their_part(&given[index], in_all(samples[index]), &below[index], lost_below[index]) < 1.0
    };
    let mut outermost = cct.nodes().skip(1).filter(|(id, _)| recorded.is_outermost(id.index()));
    // What else is not known of a root is so of all nodes of a method together.
    let is_doubted = |id: NodeId| {
        let Given { run, wait, unplaced, .. } = given[id.index()];
        unplaced > DOUBTED * (run + wait) || unsettled[id.index()] > DOUBTED
    };
    let is_more = |node: (NodeId, _)| is_doubted(node.0) || is_decided(node);
    let are_alone = placed.is_some_and(|placed| placed.untold == 0.0) && !outermost.any(is_more);
    let sampled = Sampled::of(roots, of_nodes(|of| of[0] + of[1]));
    let sampled = if are_alone { sampled.alone(of_nodes(|of| of[1])) } else { sampled };
    let mut tree = Tree { sampled, ..Tree::of(nodes) };
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

/// Which part of what calls wait may lie elsewhere than where it was seen, if it is such a part of what was seen: half of what it has grown by, and nearly all of it where it
/// has grown much.
fn elsewhere(waits: f64) -> f64 {
    (1.0 - GROWN * waits).max(0.5 * (1.0 - waits)).max(0.0)
}

/// For which part of the time in which their threads ran, or could have, they may have stood in line where they had waited, as if they did so as often as they wait.
fn woken(clock: &Clock, waiting: Option<Waiting>) -> f64 {
    let queued = clock.queued.filter(|queued| *queued > place::MOST_QUEUED).unwrap_or(0.0);
    queued * waiting.map_or(0.0, |waiting| waiting.part)
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

/// The standard deviation of a share that samples say, those of each half of the sampled phase counted apart: by chance, where so many count as one, and by what
/// halves differ.
fn by_samples(of: [u32; 2], all: [u32; 2], alike: f64) -> f64 {
    let (n, k) = (f64::from(all[0] + all[1]), f64::from(of[0] + of[1]));
    if n == 0.0 {
        return 0.0;
    }
    // As if one sample more were there and one not, so that what was never seen is not known to be nothing.
    let share = (k + 0.5) / (n + 1.0);
    let by_chance = (alike * share * (1.0 - share) / (n + 1.0)).max(0.0).sqrt();
    let part = |half: usize| f64::from(of[half]) / f64::from(all[half]).max(1.0);
    by_halves(by_chance, (part(0) - part(1)).abs() / 2.0, all.map(u64::from))
}

/// The standard deviation of a share of more than half of the samples, if these do not tell of such a part of the time: nearly all samples are not nearly all of that.
fn by_untold(of: [u32; 2], all: [u32; 2], untold: f64) -> f64 {
    let share = f64::from(of[0] + of[1]) / f64::from(all[0] + all[1]).max(1.0);
    let with_untold = share * (1.0 - untold) + untold / 2.0;
    if share > 0.5 { untold / 2.0 * (with_untold * (1.0 - with_untold)).sqrt() } else { 0.0 }
}
