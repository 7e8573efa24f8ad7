//! Samples of the undisturbed code on the tree that was recorded.
//!
//! A sample's stack is followed from the outermost root on it: each frame whose method is called by the node that was come to leads on to that callee; others are
//! methods that have no probes, whose time is their caller's. A method that has probes, and that was never recorded where it was sampled, is where the way ends: what
//! the recording has not seen of the program has no node, and its time stays with the node above.

use headwater_protocol::MethodId;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::cct::{Cct, NodeId};
use crate::decode::Scheduled;
use headwater_jfr::{FrameIndex, Samples};

/// Samples, by the nodes that were on top.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    own: Vec<[u32; 2]>,
    /// Those on whose stack a root was.
    pub inside: u64,
    /// Those of them that were in calls of which the recording has none.
    pub unseen: u64,
    /// By the operating system's numbers of threads: how many had a root, and how many there were.
    pub threads: FxHashMap<u32, (u32, u32)>,
    /// Those whose outer frames are missing, and with them perhaps a root.
    pub cut: u64,
}

impl Placed {
    #[cfg(test)]
    pub(crate) fn of(own: Vec<[u32; 2]>) -> Placed {
        Placed { own, ..Placed::default() }
    }

    /// By a node's index, how often it was on top: in the first half of the phase, and in the second.
    pub fn own(&self) -> &[[u32; 2]] {
        &self.own
    }
}

impl Placed {
    /// Which part of the roots' time their threads wanted no processor, where these had so much of one (by their numbers) while calls of roots
    /// took so many ns; `None` where too little is known.
    pub fn waiting(&self, wanted: &FxHashMap<u32, Scheduled>, in_roots_ns: f64) -> Option<f64> {
        let running = |(thread, (inside, all)): (&u32, &(u32, u32))| {
            let part = f64::from(*inside) / f64::from(*all).max(1.0);
            wanted.get(thread).map(|of| part * (of.ran_ns + of.queued_ns) as f64)
        };
        let found: Vec<f64> = self.threads.iter().filter(|(_, (inside, _))| *inside > 0).filter_map(running).collect();
        let is_known = !found.is_empty() && in_roots_ns > 0.0;
        is_known.then(|| (1.0 - found.iter().sum::<f64>() / in_roots_ns).clamp(0.0, 1.0))
    }
}

/// Places those samples that were taken from `from_ns` (since 1970) on, until `to_ns`. `names` are the methods' machine names, by their number less one.
pub fn placed<'a>(
    cct: &Cct,
    names: impl Iterator<Item = &'a str>,
    samples: &Samples,
    (from_ns, to_ns): (i64, i64),
) -> Placed {
    let mut by_name: FxHashMap<&str, Vec<MethodId>> = FxHashMap::default();
    for (index, name) in names.enumerate() {
        by_name.entry(name).or_default().push(MethodId(index as u32 + 1));
    }
    // Classes of one name, of several loaders, are told apart by who calls them.
    let methods: Vec<&[MethodId]> =
        samples.methods.iter().map(|name| by_name.get(name.as_str()).map_or(&[][..], Vec::as_slice)).collect();
    let called: FxHashSet<MethodId> = cct.nodes().skip(1).map(|(_, node)| node.method()).collect();
    let find = |caller: NodeId, frame: &FrameIndex| {
        methods[frame.0 as usize].iter().find_map(|method| cct.callee(caller, *method))
    };
    let has_probes = |frame: &FrameIndex| methods[frame.0 as usize].iter().any(|method| called.contains(method));
    let mut placed = Placed { own: vec![[0; 2]; cct.len()], ..Placed::default() };
    let middle = from_ns + (to_ns - from_ns) / 2;
    for sample in samples.stacks.iter().filter(|sample| (from_ns..=to_ns).contains(&sample.at_ns)) {
        let (mut at, mut is_seen) = (NodeId::TOP, true);
        for frame in sample.frames.iter() {
            match find(at, frame) {
                Some(callee) => at = callee,
                None if at != NodeId::TOP && has_probes(frame) => {
                    is_seen = false;
                    break;
                }
                None => {}
            }
        }
        let (inside, all) = placed.threads.entry(sample.thread).or_default();
        *all += 1;
        if at == NodeId::TOP {
            placed.cut += u64::from(sample.is_cut);
            continue;
        }
        *inside += 1;
        placed.inside += 1;
        placed.unseen += u64::from(!is_seen);
        placed.own[at.index()][usize::from(sample.at_ns > middle)] += 1;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use headwater_jfr::Sample;

    #[test]
    fn a_stack_is_followed_from_its_root_through_what_has_no_probes() {
        let mut cct = Cct::new();
        let root = cct.child(NodeId::TOP, MethodId(1));
        let callee = cct.child(root, MethodId(2));
        let again = cct.child(callee, MethodId(1));
        let methods = ["a.B.root()V", "a.B.callee()V", "java.util.List.forEach()V", "a.Main.main()V"];
        let sample = |at_ns, frames: &[u32], is_cut| Sample {
            at_ns,
            thread: 77,
            frames: frames.iter().copied().map(FrameIndex).collect(),
            is_cut,
        };
        let samples = Samples {
            methods: methods.map(str::to_owned).to_vec(),
            stacks: vec![
                sample(10, &[3, 0], false),
                sample(11, &[3, 0, 2, 1, 2], false),
                sample(20, &[3, 0, 2, 1, 0], false),
                sample(19, &[2, 1], true),
                sample(19, &[3, 1], false),
                sample(21, &[3, 0], false),
                sample(9, &[3, 0], false),
                // A way that was not recorded ends at what was.
                sample(12, &[3, 0, 0, 1], false),
            ],
        };
        let placed = placed(&cct, methods[..2].iter().copied(), &samples, (10, 20));
        assert_eq!((placed.inside, placed.unseen, placed.cut), (4, 1, 1));
        assert_eq!(placed.threads, FxHashMap::from_iter([(77, (4, 6))]));
        assert_eq!([root, callee, again].map(|node| placed.own()[node.index()]), [[2, 0], [1, 0], [0, 1]]);
    }

    #[test]
    fn threads_wait_in_roots_for_what_they_do_not_run() {
        let placed = Placed { threads: FxHashMap::from_iter([(1, (50, 100)), (2, (0, 100))]), ..Placed::default() };
        // The first runs for 8 s, half of it in roots, whose calls take 5.
        let wanted = FxHashMap::from_iter(
            [(1, 6_000_000_000, 2_000_000_000), (2, 1_000_000_000, 0)]
                .map(|(thread, ran_ns, queued_ns)| (thread, Scheduled { ran_ns, queued_ns })),
        );
        assert!((placed.waiting(&wanted, 5e9).expect("it is known") - 0.2).abs() < 1e-9);
        assert_eq!(placed.waiting(&wanted, 3e9), Some(0.0));
        assert_eq!((placed.waiting(&wanted, 0.0), placed.waiting(&FxHashMap::default(), 5e9)), (None, None));
    }
}
