//! What was counted at nodes beside calls: numbers in columns, and, beside these, what has names, of which few nodes have any.

use headwater_protocol::word::Counter;
use rustc_hash::FxHashMap;

use super::{Cct, NodeId};

/// Something that was counted by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Named {
    /// What counts it.
    pub counter: Counter,
    /// Its name's number: what a word of that counter has.
    pub number: u64,
}

/// How often something happened, and how many bytes that was, if it has some.
#[derive(Clone, Copy, Debug, Default)]
struct Times {
    times: u64,
    bytes: u64,
}

/// How often what happened where.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedCounts(FxHashMap<(NodeId, Named), Times>);

impl NamedCounts {
    fn add(&mut self, node: NodeId, what: Named, more: Times) {
        let sum = self.0.entry((node, what)).or_default();
        sum.times = sum.times.saturating_add(more.times);
        sum.bytes = sum.bytes.saturating_add(more.bytes);
    }

    /// Adds all of it to another tree's, in which nodes are elsewhere, if they are there.
    pub(super) fn add_to(&self, others: &mut NamedCounts, place: impl Fn(NodeId) -> Option<NodeId>) {
        for ((node, what), times) in &self.0 {
            if let Some(place) = place(*node) {
                others.add(place, *what, *times);
            }
        }
    }

    /// How many objects were made at each node, of so many nodes.
    pub(super) fn objects(&self, nodes: usize) -> Vec<u64> {
        let mut objects = vec![0_u64; nodes];
        for ((node, _), sum) in self.0.iter().filter(|((_, what), _)| what.counter == Counter::Objects) {
            objects[node.index()] = objects[node.index()].saturating_add(sum.times);
        }
        objects
    }
}

impl Cct {
    /// How much of something was counted in a node's method.
    pub fn count(&self, id: NodeId, counter: Counter) -> u64 {
        self.counts[counter as usize].get(id.index()).copied().unwrap_or_default()
    }

    /// Something was counted in a node's method.
    #[inline]
    pub fn add_count(&mut self, id: NodeId, counter: Counter, value: u64) {
        let counts = &mut self.counts[counter as usize];
        if counts.len() <= id.index() {
            counts.resize(self.nodes.len(), 0);
        }
        let sum = &mut counts[id.index()];
        *sum = sum.saturating_add(value);
    }

    /// What was counted in any node, by nodes' indices.
    pub(super) fn counts(&self) -> impl Iterator<Item = (usize, Counter, u64)> {
        let of = |(counter, counts): (Counter, &[u64])| {
            let some = counts.iter().enumerate().filter(|(_, value)| **value > 0);
            some.map(|(index, value)| (index, counter, *value)).collect::<Vec<_>>()
        };
        Counter::ALL.into_iter().flat_map(move |counter| of((counter, &self.counts[counter as usize])))
    }

    /// A word tells of something that was counted in a node's method.
    #[inline]
    pub fn add_counted(&mut self, id: NodeId, counter: Counter, payload: u64) {
        if let Some(made) = counter.made(payload) {
            let what = Named { counter: Counter::Objects, number: made.site };
            self.named.add(id, what, Times { times: made.objects, bytes: made.bytes });
        } else if counter.names_classes() {
            self.named.add(id, Named { counter, number: payload }, Times { times: 1, bytes: 0 });
        } else {
            self.add_count(id, counter, payload);
        }
    }

    /// All that was counted by names: where, what, how often; by nodes, in the order of their numbers. Bytes of objects are something counted, too.
    pub fn named(&self) -> Vec<(NodeId, Named, u64)> {
        let mut all = Vec::with_capacity(self.named.0.len());
        for ((node, what), sum) in &self.named.0 {
            all.push((*node, *what, sum.times));
            if what.counter == Counter::Objects {
                all.push((*node, Named { counter: Counter::ObjectBytes, ..*what }, sum.bytes));
            }
        }
        all.sort_unstable();
        all
    }

    /// How many objects were made at each node, by nodes' indices.
    pub fn objects(&self) -> Vec<u64> {
        self.named.objects(self.nodes.len())
    }
}
