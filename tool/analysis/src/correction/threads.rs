//! Each thread's part of the times that all threads have together.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::{Recorded, add_totals, counted};
use crate::cct::{Cct, NodeId};
use headwater_profile::profile::{Clock, Node, Tree};

/// The threads' trees, each with the places of its nodes in the tree of all: a node's own time is divided in proportion to what the threads were
/// measured to have of it, so that the parts add up to it to the nanosecond.
pub fn divided(all: &Tree, clock: &Clock, threads: &[(&Cct, Vec<NodeId>)]) -> Vec<Tree> {
    let recorded: Vec<Recorded> = threads.iter().map(|(cct, _)| Recorded::of(cct, clock)).collect();
    let mut shares = vec![Shares::default(); all.nodes.len() + 1];
    for ((cct, places), recorded) in threads.iter().zip(&recorded) {
        for (id, _) in cct.nodes().skip(1) {
            let share = &mut shares[places[id.index()].index()];
            share.all += recorded.own[id.index()].sum();
            share.threads += 1;
        }
    }
    let divide = |((cct, places), recorded): (&(&Cct, Vec<NodeId>), &Recorded)| {
        let node = |(id, _): (NodeId, &crate::cct::Node)| {
            let place = places[id.index()].index();
            let whole = &all.nodes[place - 1];
            let (self_ns, part) = shares[place].next(whole.self_ns, recorded.own[id.index()].sum());
            Node {
                self_ns,
                total_ns: self_ns,
                error_ns: (whole.error_ns as f64 * part).round() as u64,
                ..counted(cct, id)
            }
        };
        let mut tree = Tree::of(cct.nodes().skip(1).map(node).collect());
        add_totals(&mut tree);
        for (node, place) in tree.nodes.iter_mut().zip(&places[1..]) {
            let whole = &all.nodes[place.index() - 1];
            let part = node.total_ns as f64 / whole.total_ns.max(1) as f64;
            node.total_error_ns = (whole.total_error_ns as f64 * part).round() as u64;
        }
        tree
    };
    threads.iter().zip(&recorded).map(divide).collect()
}

/// A thread's tree with the nodes that were added to the tree of all behind its first `known`, below nodes that the thread has.
pub fn grown<'t>(all: &Cct, known: usize, tree: &'t Cct, places: &mut Vec<NodeId>) -> Cow<'t, Cct> {
    let mut tree = Cow::Borrowed(tree);
    let mut own: FxHashMap<NodeId, NodeId> = FxHashMap::default();
    for (place, node) in all.nodes().skip(known) {
        let above = all.parent(place).unwrap_or(NodeId::TOP);
        if own.is_empty() {
            own = tree.nodes().map(|(id, _)| (places[id.index()], id)).collect();
        }
        if let Some(above) = own.get(&above) {
            let id = tree.to_mut().child(*above, node.method());
            own.insert(place, id);
            places.push(place);
        }
    }
    tree
}

/// How a node's own time is divided among its threads, one after the other.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// What all of them were measured to have.
    all: f64,
    threads: u32,
    /// Of that, what those had whose turn is over; how many, and what they were given.
    so_far: f64,
    turns: u32,
    given: u64,
}

impl Shares {
    /// What the next thread gets of a time, which was measured to have so much of it; and which part that is.
    fn next(&mut self, whole_ns: u64, measured: f64) -> (u64, f64) {
        self.so_far += measured;
        self.turns += 1;
        let (before, part) = match self.all > 0.0 {
            true => (self.so_far / self.all, measured / self.all),
            false => (f64::from(self.turns) / f64::from(self.threads), 1.0 / f64::from(self.threads)),
        };
        let until =
            if self.turns == self.threads { whole_ns } else { (whole_ns as f64 * before.min(1.0)).round() as u64 };
        let until = until.clamp(self.given, whole_ns);
        let own = until - self.given;
        self.given = until;
        (own, part)
    }
}
