//! Methods that lost their probes while it was recorded, or were never given any.
//!
//! Without them what they take is measured as their callers' own, and what they call below these. Samples have it where it is. So what was measured of such callees is
//! moved to where they had been called by way of the lost ones, as far as samples say that it belongs there: what waits is then in the same place as what runs. And threads
//! have nodes where they had no probes: of a lost method's time as much as of its caller's.

use headwater_protocol::MethodId;
use rustc_hash::FxHashMap;

use super::place::Placed;
use super::recorded::{Moved, add_up, callers};
use crate::cct::{Cct, NodeId};

/// What became of what they took, in a tree of all threads.
#[derive(Clone, Debug, Default)]
pub struct Lost {
    pub(super) moved: Vec<Moved>,
    /// Of each node of a lost method, the next caller that has its probes.
    pub(super) homes: FxHashMap<NodeId, NodeId>,
    /// Nodes that a thread has which has the other.
    pub(super) wanted: Vec<(NodeId, NodeId)>,
}

impl Lost {
    /// So much is moved at most: of a deep recursion each call's callees may be in many places. The rest stays where it was measured.
    const MOST: usize = 1_000_000;

    /// By the samples that were placed on it.
    pub fn of(cct: &Cct, placed: Option<&Placed>) -> Lost {
        let mut lost = Lost::default();
        let Some(placed) = placed.filter(|placed| !placed.lost.is_empty()) else { return lost };
        let is_lost = |id: NodeId| id != NodeId::TOP && placed.lost.contains(&cct.node(id).method());
        let callers = callers(cct);
        let own = |id: NodeId| placed.own()[id.index()].iter().sum::<u32>();
        let mut samples: Vec<u32> = cct.nodes().map(|(id, _)| own(id)).collect();
        add_up(&callers, &mut samples, |sum, more| *sum += more);
        let samples = |of: NodeId| f64::from(samples[of.index()]);
        let called = || cct.nodes().skip(1).filter(|(_, node)| !node.is_handed());
        let caller = |id: NodeId| cct.parent(id).unwrap_or(NodeId::TOP);
        let mut callees: Vec<Vec<NodeId>> = vec![Vec::new(); cct.len()];
        // What was called by way of lost ones: by who has probes.
        let mut beyond: FxHashMap<(NodeId, MethodId), Vec<NodeId>> = FxHashMap::default();
        for (id, node) in called() {
            let by = caller(id);
            callees[by.index()].push(id);
            let home = lost.homes.get(&by).copied();
            if is_lost(id) && by != NodeId::TOP {
                lost.homes.insert(id, home.unwrap_or(by));
            }
            if let Some(home) = home.filter(|_| samples(id) > 0.0) {
                beyond.entry((home, node.method())).or_default().push(id);
            }
        }
        let beyond = |home: NodeId, method| beyond.get(&(home, method)).map_or(&[][..], Vec::as_slice);
        // Of what nothing is left.
        let mut is_gone = vec![false; cct.len()];
        for (id, node) in called().filter(|(id, _)| !is_lost(*id)) {
            if is_gone[id.index()] || lost.moved.len() > Lost::MOST {
                continue;
            }
            let before = beyond(caller(id), node.method());
            let all = samples(id) + before.iter().map(|before| samples(*before)).sum::<f64>();
            let mut gone = 0.0;
            for before in before {
                // Of what the others have left.
                let part = samples(*before) / (all - gone);
                gone += samples(*before);
                let mut moved = vec![(id, *before)];
                while let Some((from, to)) = moved.pop() {
                    lost.moved.push(Moved { from, to, part });
                    is_gone[from.index()] |= part == 1.0;
                    let there = |callee: &NodeId| {
                        let method = cct.node(*callee).method();
                        let ways = cct.callee(to, method).into_iter().chain(beyond(to, method).iter().copied());
                        let best = ways.max_by(|one, other| samples(*one).total_cmp(&samples(*other)));
                        // What had not been called there is the caller's.
                        (*callee, best.unwrap_or(to))
                    };
                    moved.extend(callees[from.index()].iter().map(there));
                }
            }
        }
        let has_time = |id: &NodeId| own(*id) > 0;
        let of_moved = lost.moved.iter().map(|moved| (moved.to, moved.from));
        let of_lost = lost.homes.iter().map(|(id, home)| (*id, *home));
        lost.wanted = of_moved.chain(of_lost).filter(|(id, _)| has_time(id)).collect();
        lost.wanted.sort_unstable();
        lost.wanted.dedup();
        lost
    }
}

#[cfg(test)]
mod tests {
    use headwater_profile::profile::{Node, Tree};
    use headwater_protocol::word::Counter;

    use super::*;
    use crate::correction::tests::CLOCK;
    use crate::correction::{Whole, Wholes, correct, divided, grown};

    /// Calls of a method, which waited for so long and ran for as long, and a little more.
    fn calls(cct: &mut Cct, caller: NodeId, method: u32, calls: u64, waited_ns: u64) -> NodeId {
        let id = cct.child(caller, MethodId(method));
        cct.node_mut(id).calls = calls;
        cct.node_mut(id).self_measured_ns = 2 * waited_ns + 100;
        cct.add_counted(id, Counter::WaitedNs, waited_ns);
        id
    }

    const ROOT: u32 = 1;
    const DROPPED: u32 = 2;
    const QUERY: u32 = 3;
    const WAIT: u32 = 4;
    const OTHER: u32 = 5;

    /// A thread that calls all of it, the dropped method by one call that is told.
    fn early() -> Cct {
        let mut cct = Cct::new();
        let root = calls(&mut cct, NodeId::TOP, ROOT, 100, 0);
        let dropped = calls(&mut cct, root, DROPPED, 1, 0);
        let before = calls(&mut cct, dropped, QUERY, 1, 10);
        calls(&mut cct, before, WAIT, 1, 1_000);
        let since = calls(&mut cct, root, QUERY, 99, 990);
        calls(&mut cct, since, WAIT, 99, 99_000);
        calls(&mut cct, root, OTHER, 100, 50_000);
        cct
    }

    /// One that came when it had been dropped.
    fn late() -> Cct {
        let mut cct = Cct::new();
        let root = calls(&mut cct, NodeId::TOP, ROOT, 300, 0);
        let since = calls(&mut cct, root, QUERY, 300, 3_000);
        calls(&mut cct, since, WAIT, 300, 300_000);
        calls(&mut cct, root, OTHER, 300, 150_000);
        cct
    }

    /// Samples of root, dropped, query, wait; none since; and other.
    fn sampled() -> Placed {
        let own = [0, 0, 10, 10, 20, 0, 0, 10].map(|samples| [samples, samples]).to_vec();
        Placed::of(own).without_probes_of([MethodId(DROPPED)].into_iter().collect())
    }

    fn corrected(cct: &Cct, placed: &Placed, total_ns: f64) -> Tree {
        let whole = Whole { total_ns, error_ns: 1.0, unsettled: 0.0, is_timed: false };
        correct(cct, &CLOCK, &Wholes::from_iter([(cct.roots()[0].0, whole)]), Some(placed), None)
    }

    fn total_of(tree: &Tree, methods: &[u32]) -> f64 {
        let callee = |at: Option<usize>, method: &u32| {
            let is_it = |node: &Node| node.parent.map(|parent| parent.0) == at && node.method.0 + 1 == *method as usize;
            tree.nodes.iter().position(is_it)
        };
        let node = methods.iter().try_fold(None, |at, method| callee(at, method).map(Some));
        node.flatten().map_or(-1.0, |node| tree.nodes[node].total_ns as f64 / 1e3)
    }

    fn is(found: f64, expected: f64) {
        assert!((found - expected).abs() < 2.0, "{found}, not {expected}");
    }

    #[test]
    fn what_waits_below_it_is_below_it_as_what_runs_is() {
        let tree = corrected(&early(), &sampled(), 400_000.0);
        // They wait for 151 us, of which the other has 50; what runs divides as four and one.
        is(total_of(&tree, &[ROOT, DROPPED]), 101.0 + 0.8 * 249.0);
        is(total_of(&tree, &[ROOT, DROPPED, QUERY]), 101.0 + 0.6 * 249.0);
        is(total_of(&tree, &[ROOT, DROPPED, QUERY, WAIT]), 100.0 + 0.4 * 249.0);
        is(total_of(&tree, &[ROOT, QUERY]), 0.0);
        is(total_of(&tree, &[ROOT, OTHER]), 50.0 + 0.2 * 249.0);
    }

    #[test]
    fn what_waits_below_a_method_that_never_had_probes_is_where_it_was_sampled() {
        let mut cct = late();
        let never = cct.child(cct.roots()[0].0, MethodId(DROPPED));
        let query = cct.child(never, MethodId(QUERY));
        cct.child(query, MethodId(WAIT));
        let own = [0, 0, 0, 0, 10, 10, 10, 20].map(|samples| [samples, samples]).to_vec();
        let placed = Placed::of(own).without_probes_of([MethodId(DROPPED)].into_iter().collect());
        let tree = corrected(&cct, &placed, 1_000_000.0);
        // They wait for 453 us, of which the other has 150; what runs divides as four and one.
        is(total_of(&tree, &[ROOT, DROPPED]), 303.0 + 0.8 * 547.0);
        is(total_of(&tree, &[ROOT, DROPPED, QUERY, WAIT]), 300.0 + 0.4 * 547.0);
        is(total_of(&tree, &[ROOT, QUERY]), 0.0);
        is(total_of(&tree, &[ROOT, OTHER]), 150.0 + 0.2 * 547.0);
    }

    #[test]
    fn what_its_caller_was_seen_to_wait_may_be_what_it_does() {
        let share = |is_lost: bool| {
            let mut cct = Cct::new();
            let root = calls(&mut cct, NodeId::TOP, ROOT, 10_000, 40_000_000_000);
            cct.child(root, MethodId(DROPPED));
            calls(&mut cct, root, OTHER, 10_000, 0);
            let placed = Placed::of([0, 100, 300, 200].map(|samples| [samples, samples]).to_vec());
            let lost = is_lost.then_some(MethodId(DROPPED)).into_iter().collect();
            let tree = corrected(&cct, &placed.without_probes_of(lost), 100_000_000_000.0);
            let root = &tree.nodes[0];
            (root.self_ns as f64 / 1e11, root.error_ns as f64 / 1e11)
        };
        let [(waits, known), (same, not_known)] = [false, true].map(share);
        assert!(waits > 0.4 && (waits - same).abs() < 0.01, "{waits}, {same}");
        assert!(known < 0.05 && not_known > 0.15, "{known}, {not_known}");
    }

    #[test]
    fn a_thread_that_came_later_has_its_part_of_it() {
        let (early, late, mut all) = (early(), late(), Cct::new());
        let mut places = [&early, &late].map(|thread| thread.merge_into(&mut all));
        let (known, lost) = (all.len(), Lost::of(&all, Some(&sampled())));
        let trees = [&early, &late].into_iter().zip(&mut places).map(|(thread, places)| {
            let tree = grown(&all, known, &lost, thread, places).into_owned();
            (tree, std::mem::take(places))
        });
        let trees: Vec<(Cct, Vec<NodeId>)> = trees.collect();
        let trees: Vec<(&Cct, Vec<NodeId>)> = trees.iter().map(|(tree, places)| (tree, places.clone())).collect();
        let threads = divided(&corrected(&all, &sampled(), 1_600_000.0), &CLOCK, &lost, &trees);
        for way in [&[ROOT][..], &[ROOT, DROPPED], &[ROOT, DROPPED, QUERY, WAIT], &[ROOT, OTHER]] {
            let [one, three] = [0, 1].map(|thread| total_of(&threads[thread], way));
            assert!((three / one - 3.0).abs() < 0.15, "{way:?}: {one}, {three}");
        }
        assert_eq!(threads[1].nodes.iter().map(|node| node.calls).sum::<u64>(), 1_200);
    }
}
