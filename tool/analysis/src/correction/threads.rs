//! Each thread's part of the times that all threads have together.

use std::borrow::Cow;

use rustc_hash::FxHashMap;

use super::lost::Lost;
use super::recorded::{Measured, Moved, Recorded};
use super::{add_totals, counted};
use crate::cct::{Cct, NodeId};
use headwater_profile::profile::{Clock, Node, Tree};

/// The threads' trees, each with the places of its nodes in the tree of all: a node's own time is divided in proportion to what the threads were
/// measured to have of it, so that the parts add up to it to the nanosecond; that of a method that lost its probes to what they have of its caller's.
pub fn divided(all: &Tree, clock: &Clock, lost: &Lost, threads: &[(&Cct, Vec<NodeId>)]) -> Vec<Tree> {
    let weights: Vec<Vec<f64>> = threads.iter().map(|(cct, places)| weights(cct, clock, lost, places)).collect();
    let mut shares = vec![Shares::default(); all.nodes.len() + 1];
    for ((cct, places), weights) in threads.iter().zip(&weights) {
        for (id, _) in cct.nodes().skip(1) {
            let share = &mut shares[places[id.index()].index()];
            share.all += weights[id.index()];
            share.threads += 1;
        }
    }
    let divide = |((cct, places), weights): (&(&Cct, Vec<NodeId>), &Vec<f64>)| {
        let node = |(id, _): (NodeId, &crate::cct::Node)| {
            let place = places[id.index()].index();
            let whole = &all.nodes[place - 1];
            let (self_ns, part) = shares[place].next(whole.self_ns, weights[id.index()]);
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
    threads.iter().zip(&weights).map(divide).collect()
}

/// What a thread has of each node, to be compared with others.
fn weights(cct: &Cct, clock: &Clock, lost: &Lost, places: &[NodeId]) -> Vec<f64> {
    let recorded = Recorded::of(cct, clock);
    if lost.moved.is_empty() && lost.homes.is_empty() {
        return recorded.own.iter().map(Measured::sum).collect();
    }
    let own = by_place(cct, places);
    let moved = |moved: &Moved| {
        let [from, to] = [moved.from, moved.to].map(|place| own.get(&place).copied());
        Some(Moved { from: from?, to: to?, part: moved.part })
    };
    let recorded = recorded.with(lost.moved.iter().filter_map(moved));
    let weight = |(id, _): (NodeId, &crate::cct::Node)| {
        let home = lost.homes.get(&places[id.index()]).and_then(|home| own.get(home));
        home.map_or_else(|| recorded.own[id.index()].sum(), |home| recorded.below[home.index()].sum())
    };
    cct.nodes().map(weight).collect()
}

fn by_place(cct: &Cct, places: &[NodeId]) -> FxHashMap<NodeId, NodeId> {
    cct.nodes().map(|(id, _)| (places[id.index()], id)).collect()
}

/// A thread's tree with the nodes that were added to the tree of all behind its first `known`, below nodes that the thread has, and with those of methods that lost
/// their probes, and of what these call.
pub fn grown<'t>(all: &Cct, known: usize, lost: &Lost, tree: &'t Cct, places: &mut Vec<NodeId>) -> Cow<'t, Cct> {
    let mut tree = Cow::Borrowed(tree);
    if all.len() == known && lost.wanted.is_empty() {
        return tree;
    }
    let mut own = by_place(&tree, places);
    let mut add = |own: &mut FxHashMap<NodeId, NodeId>, above: NodeId, place: NodeId| {
        let id = tree.to_mut().child(above, all.node(place).method());
        own.insert(place, id);
        places.push(place);
        id
    };
    for (place, _) in all.nodes().skip(known) {
        if let Some(above) = own.get(&all.parent(place).unwrap_or(NodeId::TOP)).copied() {
            add(&mut own, above, place);
        }
    }
    for (place, has) in &lost.wanted {
        if own.contains_key(has) {
            let above = std::iter::successors(Some(*place), |place| all.parent(*place));
            let way: Vec<NodeId> = above.take_while(|place| !own.contains_key(place)).collect();
            for place in way.into_iter().rev() {
                let above = own[&all.parent(place).unwrap_or(NodeId::TOP)];
                add(&mut own, above, place);
            }
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
