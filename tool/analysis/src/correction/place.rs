//! Samples of the undisturbed code on the tree that was recorded.
//!
//! A sample's stack is followed from the outermost root on it: each frame whose method is called by the node that was come to leads on to that callee; others are
//! methods that have no probes, whose time is their caller's. Methods that were instrumented too late, or never, though they may run, get a node where they were
//! sampled, and so does what was sampled below them ([`grow`]): the program runs them, whatever the recording has seen. Another method that has probes, and that was
//! never recorded where it was sampled, is where the way ends: its time stays with the node above.

use std::ops::Add;
use std::time::Duration;

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use super::alike::alike;
use crate::cct::{Cct, NodeId};
use crate::decode::Scheduled;
use crate::timing::Timed;
use headwater_jfr::{FrameIndex, Sample, Samples};

/// Where threads stand in line for a processor for a larger part of the time than this, so does the one that samples;
pub(super) const MOST_QUEUED: f64 = 0.2;
/// and so many samples count as one at least: a thread is seen where it has lost its processor, and it loses that as regularly as it is looked for. In seven runs of jOOQ on a
/// busy machine samples of one method were 11 to 22 %, where it has 12 (190 by themselves are good to 2.4).
const BUNCHED: f64 = 2.0;
/// The sum of the calls that ended in a time is not the time that was spent in them: some began before, and some go on. By so many squares of a call they differ, for each that
/// goes on at any moment, a variance: where threads are in calls all the time,
const ENDS_OF_ALL: f64 = 1.0 / 6.0;
/// and where calls come as they like.
const ENDS_OF_ANY: f64 = 2.0 / 3.0;
/// Threads that are in roots for so much of the time are there all the time.
const ALL_THE_TIME: f64 = 0.8;
/// What virtual threads are all numbered by: the recorder has no number for any.
pub const ALL_VIRTUAL: u32 = 0;
/// What is longer is waiting, in standard deviations.
pub(super) const CLEARLY: f64 = 2.0;

/// What the names of the probes' methods begin with.
const PROBES: &str = "java.lang.HeadwaterV1";

/// Samples, by the nodes that were on top.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    pub(super) own: Vec<[u32; 2]>,
    /// Those of them that were in native code, where their threads may have waited.
    pub(super) native: Vec<[u32; 2]>,
    /// By a node's index, whether samples were in callees of it that were missed: if not by all, by some of their calls.
    pub(super) passed: Vec<bool>,
    /// So many of them say together what one by itself would say: see [`alike`].
    pub(super) alike: f64,
    /// Which part of the roots' running time they do not tell of.
    pub(super) untold: f64,
    /// Methods that lost their probes, or never had any.
    pub(super) lost: FxHashSet<MethodId>,
    /// Those on whose stack a root was.
    pub inside: u64,
    /// Those of them that were in calls of which the recording has none.
    pub unseen: u64,
    /// Those whose innermost method was missed, and has no calls anywhere.
    pub absent: u64,
    /// By the operating system's numbers of threads.
    pub threads: FxHashMap<u32, OfThread>,
}

/// A thread's samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OfThread {
    /// All.
    pub all: u32,
    /// Those that had a root.
    pub inside: u32,
    /// Those whose outer frames are missing, and with them perhaps a root.
    pub cut: u32,
}

impl OfThread {
    /// Which part of its time it was in a root.
    fn part(self) -> f64 {
        f64::from(self.inside) / f64::from(self.all - self.cut).max(1.0)
    }

    /// The variance of that.
    fn variance(self) -> f64 {
        self.part() * (1.0 - self.part()) / f64::from(self.all - self.cut).max(1.0)
    }
}

/// For how much of the roots' time their threads waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waiting {
    /// The part.
    pub part: f64,
    /// For such a part it is not known whether they did.
    pub unclear: f64,
}

impl Placed {
    #[cfg(test)]
    pub(crate) fn of(own: Vec<[u32; 2]>) -> Placed {
        Placed { native: vec![[0; 2]; own.len()], own, alike: 1.0, ..Placed::default() }
    }

    /// By a node's index, how often it was on top: in the first half of the phase, and in the second.
    pub fn own(&self) -> &[[u32; 2]] {
        &self.own
    }

    /// The same of threads that ran, if of each node's own time such a part waits: samples in native code may be of either.
    pub(crate) fn running(&self, waiting: impl Fn(usize) -> f64) -> Vec<[u32; 2]> {
        let running = |(index, (own, native)): (usize, (&[u32; 2], &[u32; 2]))| {
            let part = waiting(index);
            [0, 1].map(|half| own[half].saturating_sub((f64::from(native[half]) * part).round() as u32))
        };
        self.own.iter().zip(&self.native).enumerate().map(running).collect()
    }

    /// So many samples in a row say together what one by itself would say; at least one.
    pub fn alike(&self) -> f64 {
        self.alike
    }

    /// They tell of such a [part](super::coverage()) of the roots' running time. Of the rest nothing is known: it divides as samples do, give or take as much as there
    /// is of it, or as it was measured.
    pub fn covering(self, part: f64) -> Placed {
        Placed { untold: 1.0 - part, ..self }
    }

    /// Their threads stood in line for a processor for such a part of the time that they wanted one.
    pub fn queued(self, part: f64) -> Placed {
        let alike = if part > MOST_QUEUED { self.alike.max(BUNCHED) } else { self.alike };
        Placed { alike, ..self }
    }

    /// While it was recorded these methods lost their probes, or had none.
    pub fn without_probes_of(self, lost: FxHashSet<MethodId>) -> Placed {
        Placed { lost, ..self }
    }

    /// The same as [`alike`](Placed::alike), where what they do not tell of is counted in.
    pub(super) fn worth_one(&self) -> f64 {
        let untold = self.untold / 2.0;
        self.alike + self.inside as f64 * untold * untold
    }

    /// Methods that were on top in one sample alone, anywhere in the tree.
    pub fn once(&self, cct: &Cct) -> impl Iterator<Item = MethodId> {
        let mut times: FxHashMap<MethodId, u32> = FxHashMap::default();
        for ((_, node), own) in cct.nodes().zip(&self.own).skip(1) {
            *times.entry(node.method()).or_default() += own[0] + own[1];
        }
        times.into_iter().filter(|(_, times)| *times == 1).map(|(method, _)| method)
    }

    /// Whether samples say that a node called what the recording has missed, if only for a time: what that called was recorded below the node itself.
    pub fn is_passed(&self, index: usize) -> bool {
        self.passed.get(index).is_some_and(|passed| *passed)
    }
}

impl Placed {
    /// Samples whose outer frames are missing, and with them perhaps a root.
    pub fn cut(&self) -> u64 {
        self.threads.values().map(|samples| u64::from(samples.cut)).sum()
    }

    /// For which part of the roots' time their threads wanted no processor, where these had so much of one (by their numbers) while these calls of roots
    /// ended, in such a time; `None` where too little is known.
    pub fn waiting(
        &self,
        wanted: &FxHashMap<u32, Scheduled>,
        timed: &Timed,
        over: Option<Duration>,
    ) -> Option<Waiting> {
        let (threads, over_ns) = (wanted.len() as f64, over.map_or(0.0, |over| over.as_nanos() as f64));
        let running = |(thread, samples): (&u32, &OfThread)| {
            let wanted_ns = wanted.get(thread).map(|of| (of.ran_ns + of.queued_ns) as f64)?;
            Some((samples.part() * wanted_ns, samples.variance() * wanted_ns * wanted_ns))
        };
        let inside = self.threads.iter().filter(|(_, samples)| samples.inside > 0);
        let found: Vec<(f64, f64)> = inside.filter_map(running).collect();
        let counted_ns: f64 = timed.all().map(|times| times.total_ns() as f64).sum();
        if found.is_empty() || counted_ns <= 0.0 || over_ns <= 0.0 {
            return None;
        }
        // No thread is in a root for longer than it is watched. How many virtual ones there are nobody knows.
        let threads = if wanted.contains_key(&ALL_VIRTUAL) { f64::INFINITY } else { threads };
        let in_roots_ns = counted_ns.min(threads * over_ns);
        let ends = if in_roots_ns > ALL_THE_TIME * threads * over_ns { ENDS_OF_ALL } else { ENDS_OF_ANY };
        let by_ends: f64 =
            timed.all().map(|times| ends * times.total_ns() as f64 / over_ns * times.mean_square()).sum();
        let deviation = found.iter().map(|(_, variance)| variance).sum::<f64>().add(by_ends).sqrt();
        let waited_ns = in_roots_ns - found.iter().map(|(ran_ns, _)| ran_ns).sum::<f64>();
        let [waited, unclear] = match waited_ns > CLEARLY * deviation {
            true => [waited_ns, deviation],
            false => [0.0, waited_ns.max(0.0)],
        };
        Some(Waiting { part: (waited / in_roots_ns).min(1.0), unclear: (unclear / in_roots_ns).min(1.0) })
    }
}

/// The samples of a window of time, and which methods of the call graph their frames are.
#[derive(Debug)]
pub struct Names<'s> {
    /// Of the samples' methods.
    methods: Vec<Vec<MethodId>>,
    /// Which of these are of the probes' classes.
    ours: Vec<bool>,
    samples: &'s Samples,
    window: (i64, i64),
    /// When the second half begins.
    middle: i64,
    /// The halves are two phases.
    is_parted: bool,
}

impl<'s> Names<'s> {
    /// Those samples that were taken from a time (in ns since 1970) on, until another. `names` are the methods' machine names, by their number less one.
    pub fn of<'a>(names: impl Iterator<Item = &'a str>, samples: &'s Samples, window: (i64, i64)) -> Names<'s> {
        let mut by_name: FxHashMap<&str, Vec<MethodId>> = FxHashMap::default();
        for (index, name) in names.enumerate() {
            by_name.entry(name).or_default().push(MethodId(index as u32 + 1));
        }
        // Classes of one name, of several loaders, are told apart by who calls them.
        let methods = samples.methods.iter().map(|name| by_name.get(name.as_str()).cloned().unwrap_or_default());
        let ours = samples.methods.iter().map(|name| name.starts_with(PROBES)).collect();
        let (from_ns, to_ns) = window;
        let middle = from_ns + (to_ns - from_ns) / 2;
        Names { methods: methods.collect(), ours, samples, window, middle, is_parted: false }
    }

    /// Those until then and those afterwards are of two phases: what they differ by is what halves differ by.
    pub fn parted_at(self, at_ns: Option<i64>) -> Names<'s> {
        Names { middle: at_ns.unwrap_or(self.middle), is_parted: at_ns.is_some(), ..self }
    }

    /// Those of the program: what a thread does for us, who have it change classes and run others' transformers, is none of it.
    fn stacks(&self) -> impl Iterator<Item = &'s Sample> {
        let (from_ns, to_ns) = self.window;
        let is_ours = |frame: &FrameIndex| self.ours[frame.0 as usize];
        let in_window = self.samples.stacks.iter().filter(move |sample| (from_ns..=to_ns).contains(&sample.at_ns));
        in_window.filter(move |sample| !sample.frames.iter().any(is_ours))
    }

    /// When samples were taken, of threads in native code, or of others: these are looked for at times of their own.
    pub(super) fn times(&self, in_native: bool) -> impl Iterator<Item = i64> {
        self.stacks().filter(move |sample| sample.is_native == in_native).map(|sample| sample.at_ns)
    }

    fn methods(&self, frame: FrameIndex) -> &[MethodId] {
        &self.methods[frame.0 as usize]
    }

    fn callee(&self, cct: &Cct, caller: NodeId, frame: FrameIndex) -> Option<NodeId> {
        self.methods(frame).iter().find_map(|method| cct.callee(caller, *method))
    }
}

/// Adds nodes, without calls, for what was sampled below methods that were `missed`, because they were instrumented too late or never, or have lost their
/// probes: what these call was recorded below their callers. How many there were before.
pub fn grow(cct: &mut Cct, names: &Names<'_>, missed: &FxHashSet<MethodId>) -> usize {
    /// What was sampled is there however seldom it was in each place: a method that is called in many would lose what it takes in all of them. If that makes
    /// more nodes than this, only who has lost its probes himself keeps his.
    const MOST: usize = 200_000;
    let before = cct.len();
    if missed.is_empty() {
        return before;
    }
    let called: FxHashSet<MethodId> = cct.nodes().skip(1).map(|(_, node)| node.method()).collect();
    let is_known = |method: &MethodId| called.contains(method) || missed.contains(method);
    // The way of a sample beyond the nodes that are there.
    let beyond = |cct: &Cct, sample: &Sample| {
        let (mut at, mut way, mut is_below_missed) = (NodeId::TOP, Vec::new(), false);
        for frame in sample.frames.iter() {
            let methods = names.methods(*frame);
            match names.callee(cct, at, *frame).filter(|_| way.is_empty()) {
                Some(callee) => {
                    at = callee;
                    is_below_missed |= missed.contains(&cct.node(at).method());
                }
                None if at == NodeId::TOP => {}
                None if is_below_missed || !way.is_empty() => {
                    way.extend(methods.iter().find(|method| is_known(method)))
                }
                None => match methods.iter().find(|method| missed.contains(method)) {
                    Some(missed) => way.push(*missed),
                    None if methods.iter().any(|method| called.contains(method)) => break,
                    None => {}
                },
            }
        }
        (at, way)
    };
    let ways: Vec<(NodeId, Vec<MethodId>)> =
        names.stacks().map(|sample| beyond(cct, sample)).filter(|(_, way)| !way.is_empty()).collect();
    // Steps are numbered behind the nodes.
    let mut steps: FxHashMap<(usize, MethodId), usize> = FxHashMap::default();
    for (at, way) in &ways {
        let mut from = at.index();
        for method in way {
            let next = cct.len() + steps.len();
            from = *steps.entry((from, *method)).or_insert(next);
        }
    }
    let is_small = steps.len() <= MOST;
    for (at, way) in &ways {
        let kept = if is_small { way.len() } else { usize::from(called.contains(&way[0]) && missed.contains(&way[0])) };
        way[..kept].iter().fold(*at, |node, method| cct.child(node, *method));
    }
    before
}

/// Places samples on a tree, of which so many nodes were there before it was [grown](grow).
pub fn placed(cct: &Cct, names: &Names<'_>, recorded: usize, missed: &FxHashSet<MethodId>) -> Placed {
    let recorded_nodes = cct.nodes().take(recorded).skip(1);
    let called: FxHashSet<MethodId> = recorded_nodes.map(|(_, node)| node.method()).collect();
    let has_probes = |frame: &FrameIndex| names.methods(*frame).iter().any(|method| called.contains(method));
    // Whether it has a node or not.
    let is_absent = |sample: &Sample| {
        let methods = sample.frames.iter().rev().map(|frame| names.methods(*frame)).find(|methods| !methods.is_empty());
        methods.is_some_and(|of| of.iter().all(|method| missed.contains(method) && !called.contains(method)))
    };
    let none = vec![[0; 2]; cct.len()];
    let mut placed = Placed { own: none.clone(), native: none, ..Placed::default() };
    let mut phases = [const { Vec::new() }; 2];
    for sample in names.stacks() {
        let (mut at, mut is_seen, mut is_below_missed) = (NodeId::TOP, true, false);
        for frame in sample.frames.iter() {
            match names.callee(cct, at, *frame) {
                Some(callee) => {
                    at = callee;
                    is_below_missed |= missed.contains(&cct.node(at).method());
                }
                // Of what has no calls nothing is known but what was sampled often.
                None if at != NodeId::TOP && at.index() < recorded && !is_below_missed && has_probes(frame) => {
                    is_seen = false;
                    break;
                }
                None => {}
            }
        }
        let of_thread = placed.threads.entry(sample.thread).or_default();
        of_thread.all += 1;
        if at == NodeId::TOP {
            of_thread.cut += u32::from(sample.is_cut);
            continue;
        }
        of_thread.inside += 1;
        placed.inside += 1;
        placed.unseen += u64::from(!is_seen);
        placed.absent += u64::from(is_absent(sample));
        let half = usize::from(sample.at_ns > names.middle);
        placed.own[at.index()][half] += 1;
        placed.native[at.index()][half] += u32::from(sample.is_native);
        phases[if names.is_parted { half } else { 0 }].push((sample.at_ns, at));
    }
    placed.alike = alike(cct, phases);
    placed.passed = passed(cct, &placed.own, missed);
    placed
}

/// Samples on a tree, with what they need: below methods that were `missed`, and if many were in other calls of which the recording has none, there as well. What
/// the undisturbed program is seen to do it does, though the recording was too short for it. Which part of the samples that was; 0 if it was not many.
pub fn placed_on_all(cct: &mut Cct, names: &Names<'_>, missed: &FxHashSet<MethodId>) -> (Placed, f64) {
    /// If no more than that are, their time is their callers'.
    const TOLERATED: f64 = 0.05;
    let recorded = grow(cct, names, missed);
    let seen = placed(cct, names, recorded, missed);
    let uncalled = seen.unseen as f64 / seen.inside.max(1) as f64;
    if uncalled <= TOLERATED {
        return (seen, 0.0);
    }
    let any = names.methods.iter().flatten().copied().collect();
    grow(cct, names, &any);
    (placed(cct, names, recorded, &any), uncalled)
}

/// By a node's index, whether samples were in missed callees of it.
fn passed(cct: &Cct, own: &[[u32; 2]], missed: &FxHashSet<MethodId>) -> Vec<bool> {
    let above = |(id, node): (NodeId, &crate::cct::Node)| {
        (cct.parent(id).unwrap_or(NodeId::TOP).index(), missed.contains(&node.method()))
    };
    let above: Vec<(usize, bool)> = cct.nodes().skip(1).map(above).collect();
    let mut is_sampled: Vec<bool> = own.iter().map(|halves| *halves != [0; 2]).collect();
    let mut passed = vec![false; own.len()];
    // Callees come after their callers.
    for (index, (caller, is_missed)) in above.iter().enumerate().rev() {
        if is_sampled[index + 1] {
            is_sampled[*caller] = true;
            passed[*caller] |= is_missed;
        }
    }
    passed
}

#[cfg(test)]
mod tests;
