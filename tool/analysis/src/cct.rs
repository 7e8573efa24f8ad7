//! The calling context tree: one node for each chain of calls from a root down to a method (JFluid 5).
//!
//! Recursion is not folded: every level is a node of its own.
//!
//! Why so, and at what cost: docs/decisions/calling-context-tree.md.

use std::ops::AddAssign;

use headwater_protocol::MethodId;
use headwater_protocol::word::Counter;
use rustc_hash::FxHashMap;

use headwater_profile::profile::CpuSamples;

mod counts;

pub use counts::Named;
use counts::NamedCounts;

/// A node of a tree, numbered from 0, which is the tree's own root and stands for no method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

impl NodeId {
    /// Above all roots.
    pub const TOP: NodeId = NodeId(0);

    /// Its index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Nodes with more children than this are looked up by hash.
const WIDE: u32 = 16;

/// What is known of a method in one calling context, as far as every event needs it: two of these fill a line of the cache, and none
/// is in two lines.
#[derive(Clone, Debug)]
#[repr(align(32))]
pub struct Node {
    /// The method, and what makes a return from it something out of the ordinary.
    key: u32,
    parent: u32,
    /// Called last of all children; the top, if there are none.
    latest_child: u32,
    /// The children of a node are a ring, in the order in which they were first called after one another: so what comes next in it
    /// is likely to be called next.
    next_sibling: u32,
    /// How often it was entered.
    pub calls: u64,
    /// Time between its own and its callees' events, as measured, probes included.
    pub self_measured_ns: u64,
}

/// What else is known of a node.
#[derive(Clone, Debug, Default)]
struct Rest {
    thrown: u64,
    children: u32,
}

/// In a node's key: it was not called by the node above, but run for it by this thread or another.
const HANDED: u32 = 1 << 31;
/// In a node's key: it is a root, or was handed over. Not all of what happens when such a call returns happens here.
const OUTERMOST: u32 = 1 << 30;
/// No method's.
const TOP_KEY: u32 = OUTERMOST | 1 << 29;

/// What is known of a node and everything below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Below {
    /// Time as measured, probes included.
    pub measured_ns: u64,
    /// All calls.
    pub calls: u64,
}

impl AddAssign for Below {
    fn add_assign(&mut self, other: Below) {
        self.measured_ns += other.measured_ns;
        self.calls += other.calls;
    }
}

impl Below {
    /// What is not part of what was known earlier.
    pub fn since(self, earlier: Below) -> Below {
        Below { measured_ns: self.measured_ns - earlier.measured_ns, calls: self.calls - earlier.calls }
    }
}

/// A calling context tree.
#[derive(Clone, Debug)]
pub struct Cct {
    nodes: Vec<Node>,
    /// At the same indices.
    rest: Vec<Rest>,
    /// Children of wide nodes.
    wide: FxHashMap<(u32, u32), u32>,
    /// Of nodes that were ever seen on top: few of all.
    cpu: FxHashMap<u32, CpuSamples>,
    /// What was counted beside calls, by counter: as far as the last node that has any.
    counts: [Vec<u64>; Counter::ALL.len()],
    named: NamedCounts,
}

impl Default for Cct {
    fn default() -> Self {
        Cct::new()
    }
}

impl Cct {
    /// Only the top.
    pub fn new() -> Cct {
        Cct {
            nodes: vec![Node::new(TOP_KEY)],
            rest: vec![Rest::default()],
            wide: FxHashMap::default(),
            cpu: FxHashMap::default(),
            counts: Default::default(),
            named: NamedCounts::default(),
        }
    }

    /// All nodes, in the order of their numbers; parents come before their children.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        self.nodes.iter().enumerate().map(|(index, node)| (NodeId(index as u32), node))
    }

    /// The roots, each with what is known of it and everything below.
    pub fn roots(&self) -> Vec<(NodeId, Below)> {
        let mut below: Vec<Below> =
            self.nodes.iter().map(|node| Below { measured_ns: node.self_measured_ns, calls: node.calls }).collect();
        // Children come after their parents.
        for index in (1..below.len()).rev() {
            let (callee, parent) = (below[index], self.nodes[index].parent as usize);
            if parent != NodeId::TOP.index() && !self.nodes[index].is_handed() {
                below[parent].measured_ns += callee.measured_ns;
                below[parent].calls += callee.calls;
            }
        }
        let roots = self.nodes().filter(|(id, _)| self.parent(*id) == Some(NodeId::TOP));
        roots.map(|(id, _)| (id, below[id.index()])).collect()
    }

    /// What is known of a root and everything below it.
    pub fn below(&self, root: NodeId) -> Below {
        self.roots().into_iter().find(|(id, _)| *id == root).map(|(_, below)| below).unwrap_or_default()
    }

    /// How many nodes there are, the top included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether nothing was ever entered.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1
    }

    /// A node.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// A node, to be counted into.
    pub fn node_mut(&mut self, id: NodeId) -> &mut Node {
        &mut self.nodes[id.index()]
    }

    /// How often the node's method was seen on top of its stack, running or waiting.
    pub fn cpu(&self, id: NodeId) -> CpuSamples {
        self.cpu.get(&id.0).copied().unwrap_or_default()
    }

    /// Samples of a node's method on top of its stack.
    pub fn add_cpu(&mut self, id: NodeId, samples: CpuSamples) {
        self.cpu.entry(id.0).or_default().add(samples);
    }

    /// How often an exception left a node's method.
    pub fn thrown(&self, id: NodeId) -> u64 {
        self.rest[id.index()].thrown
    }

    /// An exception has left a node's method.
    pub fn add_thrown(&mut self, id: NodeId) {
        self.rest[id.index()].thrown += 1;
    }

    /// The node above; `None` at the top.
    pub fn parent(&self, id: NodeId) -> Option<NodeId> {
        (id != NodeId::TOP).then(|| NodeId(self.nodes[id.index()].parent))
    }

    /// A call from a node to a method, after the node has had some more time; the callee's node. For nodes that stand for methods.
    ///
    /// Loops call what they called last, and other code calls what comes next in the ring: in javac that is so in 12 of 13 calls.
    #[inline]
    pub fn call(&mut self, caller: NodeId, method: MethodId, elapsed_ns: u64) -> NodeId {
        let node = &mut self.nodes[caller.index()];
        node.self_measured_ns += elapsed_ns;
        let mut callee = node.latest_child;
        if self.nodes[callee as usize].key != method.0 {
            callee = self.nodes[callee as usize].next_sibling;
            if self.nodes[callee as usize].key != method.0 {
                callee = self.find_child(caller, method.0).0;
            }
            self.nodes[caller.index()].latest_child = callee;
        }
        self.nodes[callee as usize].calls += 1;
        NodeId(callee)
    }

    /// A return from a node's method, after it has had some more time; the caller's node. `None`, and nothing done, if the
    /// node is another method's, or a root's, or its method was not called by the node above.
    #[inline]
    pub fn leave(&mut self, callee: NodeId, method: MethodId, elapsed_ns: u64) -> Option<NodeId> {
        let node = &mut self.nodes[callee.index()];
        if node.key != method.0 {
            return None;
        }
        node.self_measured_ns += elapsed_ns;
        Some(NodeId(node.parent))
    }

    /// How many calls lead to a node.
    pub fn depth(&self, id: NodeId) -> u64 {
        let mut depth = 0;
        let mut at = id;
        while let Some(parent) = self.parent(at) {
            depth += 1;
            at = parent;
        }
        depth
    }

    /// How many calls lead to the node that most lead to.
    pub fn deepest(&self) -> usize {
        let mut depths = vec![0_usize; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            depths[index] = depths[node.parent as usize] + 1;
        }
        depths.into_iter().max().unwrap_or(0)
    }

    /// The node's child for a method; made when there is none.
    pub fn child(&mut self, parent: NodeId, method: MethodId) -> NodeId {
        let key = method.0 | if parent == NodeId::TOP { OUTERMOST } else { 0 };
        self.find_child(parent, key)
    }

    /// The node's child for a method, if it was ever called by it.
    pub fn callee(&self, caller: NodeId, method: MethodId) -> Option<NodeId> {
        self.search(caller.0, method.0 | if caller == NodeId::TOP { OUTERMOST } else { 0 }).map(NodeId)
    }

    /// The node's child for a method that was not called by it, but run for it; made when there is none.
    pub fn handed_child(&mut self, parent: NodeId, method: MethodId) -> NodeId {
        self.find_child(parent, method.0 | HANDED | OUTERMOST)
    }

    /// The steps from the top to a node: each a method, and whether it was run for the one above.
    pub fn path(&self, id: NodeId) -> Vec<(MethodId, bool)> {
        let mut path = Vec::new();
        let mut at = id;
        while let Some(parent) = self.parent(at) {
            let node = self.node(at);
            path.push((node.method(), node.is_handed()));
            at = parent;
        }
        path.reverse();
        path
    }

    /// The node to which steps lead; made when there is none.
    pub fn follow(&mut self, path: &[(MethodId, bool)]) -> NodeId {
        path.iter().fold(NodeId::TOP, |at, &(method, is_handed)| match is_handed {
            true => self.handed_child(at, method),
            false => self.child(at, method),
        })
    }

    /// A node's child; made when there is none. It is the latest then.
    #[inline(never)]
    fn find_child(&mut self, parent: NodeId, key: u32) -> NodeId {
        let Some(found) = self.search(parent.0, key) else { return self.add_child(parent, key) };
        self.nodes[parent.index()].latest_child = found;
        NodeId(found)
    }

    fn search(&self, parent: u32, key: u32) -> Option<u32> {
        let children = self.rest[parent as usize].children;
        if children > WIDE {
            return self.wide.get(&(parent, key)).copied();
        }
        let mut at = self.nodes[parent as usize].latest_child;
        for _ in 0..children {
            at = self.nodes[at as usize].next_sibling;
            if self.nodes[at as usize].key == key {
                return Some(at);
            }
        }
        None
    }

    fn add_child(&mut self, parent: NodeId, key: u32) -> NodeId {
        let id = self.nodes.len() as u32;
        let mut node = Node::new(key);
        node.parent = parent.0;
        let children = &mut self.rest[parent.index()].children;
        *children += 1;
        let children = *children;
        node.next_sibling = match self.nodes[parent.index()].latest_child {
            _ if children == 1 => id,
            latest => std::mem::replace(&mut self.nodes[latest as usize].next_sibling, id),
        };
        self.nodes[parent.index()].latest_child = id;
        self.nodes.push(node);
        self.rest.push(Rest::default());
        if children == WIDE + 1 {
            let mut at = id;
            for _ in 0..children {
                let child = &self.nodes[at as usize];
                self.wide.insert((parent.0, child.key), at);
                at = child.next_sibling;
            }
        } else if children > WIDE {
            self.wide.insert((parent.0, key), id);
        }
        NodeId(id)
    }

    /// The tree without the nodes of some methods and what is below them, where each node is in it, and how many calls those had; `None` if there
    /// are no such nodes.
    pub fn only(&self, keep: impl Fn(MethodId) -> bool) -> Option<(Cct, Vec<Option<NodeId>>, u64)> {
        if self.nodes.iter().skip(1).all(|node| keep(node.method())) {
            return None;
        }
        let (mut kept, mut calls) = (Cct::new(), 0_u64);
        let mut places = vec![None; self.nodes.len()];
        places[0] = Some(NodeId::TOP);
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let Some(parent) = places[node.parent as usize] else { continue };
            if !keep(node.method()) {
                calls = calls.saturating_add(node.calls);
                continue;
            }
            let place = kept.find_child(parent, node.key);
            let same = kept.node_mut(place);
            (same.calls, same.self_measured_ns) = (node.calls, node.self_measured_ns);
            kept.rest[place.index()].thrown = self.rest[index].thrown;
            places[index] = Some(place);
        }
        for (index, samples) in &self.cpu {
            if let Some(place) = places[*index as usize] {
                kept.add_cpu(place, *samples);
            }
        }
        for (index, counter, value) in self.counts() {
            if let Some(place) = places[index] {
                kept.add_count(place, counter, value);
            }
        }
        self.named.add_to(&mut kept.named, |node| places[node.index()]);
        Some((kept, places, calls))
    }

    /// Adds this tree's counts and times to another; where in that each of the nodes is, by its index.
    pub fn merge_into(&self, other: &mut Cct) -> Vec<NodeId> {
        let mut places = vec![NodeId::TOP; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let place = other.find_child(places[node.parent as usize], node.key);
            places[index] = place;
            let sum = other.node_mut(place);
            sum.calls += node.calls;
            sum.self_measured_ns += node.self_measured_ns;
            other.rest[place.index()].thrown += self.rest[index].thrown;
        }
        for (index, samples) in &self.cpu {
            other.add_cpu(places[*index as usize], *samples);
        }
        for (index, counter, value) in self.counts() {
            other.add_count(places[index], counter, value);
        }
        self.named.add_to(&mut other.named, |node| Some(places[node.index()]));
        places
    }
}

impl Node {
    fn new(key: u32) -> Node {
        Node { key, parent: 0, latest_child: 0, next_sibling: 0, calls: 0, self_measured_ns: 0 }
    }

    /// The method; meaningless at the top.
    pub fn method(&self) -> MethodId {
        MethodId(self.key & MethodId::MAX.0)
    }

    /// It was not called by the node above, but run for it by this thread or another: see `--follow threads`.
    pub fn is_handed(&self) -> bool {
        self.key & HANDED != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_are_found_again_also_among_many() {
        let mut tree = Cct::new();
        let mut first = Vec::new();
        for round in 0..3 {
            for method in 1..100 {
                let id = tree.child(NodeId::TOP, MethodId(method));
                tree.node_mut(id).calls += 1;
                if round == 0 { first.push(id) } else { assert_eq!(first[method as usize - 1], id) }
            }
        }
        assert_eq!(tree.len(), 100);
        assert!(tree.nodes().skip(1).all(|(_, node)| node.calls == 3));
    }

    #[test]
    fn calls_are_counted_whatever_follows_on_what() {
        for width in 1..=WIDE + 3 {
            let mut tree = Cct::new();
            let root = tree.child(NodeId::TOP, MethodId(1));
            let mut expected = vec![0; width as usize];
            let mut random = 1_u32;
            for _ in 0..1_000 {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let which = (random >> 16) % width;
                expected[which as usize] += 1;
                let callee = tree.call(root, MethodId(2 + which), 1);
                assert_eq!(tree.leave(callee, MethodId(2 + which), 1), Some(root));
            }
            assert_eq!((tree.len(), tree.node(root).self_measured_ns), (2 + width as usize, 1_000));
            for (_, node) in tree.nodes().skip(2) {
                let calls = expected[node.method().0 as usize - 2];
                assert_eq!((node.calls, node.self_measured_ns), (calls, calls), "{width}");
            }
        }
    }

    /// What a tree has allocated: a hash table has a byte a bucket beside its entries, and is full at seven eighths.
    fn heap_bytes(tree: &Cct) -> usize {
        let buckets = (tree.wide.capacity() * 8).div_ceil(7);
        tree.nodes.capacity() * (size_of::<Node>() + size_of::<Rest>()) + buckets * (size_of::<((u32, u32), u32)>() + 1)
    }

    #[test]
    fn a_node_takes_at_most_128_bytes_however_the_tree_grows() {
        const NODES: usize = 70_000;
        // Parents with so many children each: a chain, narrow and wide nodes, one node with all of them.
        for fan_out in [1, 3, WIDE as usize, WIDE as usize + 1, 100, NODES] {
            let mut tree = Cct::new();
            while tree.len() < NODES {
                let parent = NodeId(((tree.len() - 1) / fan_out) as u32);
                tree.child(parent, MethodId(tree.len() as u32));
                let (bytes, few) = (heap_bytes(&tree), 4096);
                assert!(bytes <= 128 * tree.len() + few, "{bytes} bytes for {} nodes by {fan_out}", tree.len());
            }
        }
    }

    #[test]
    fn merging_adds() {
        let mut one = Cct::new();
        let a = one.child(NodeId::TOP, MethodId(1));
        let b = one.child(a, MethodId(1));
        one.node_mut(a).calls = 2;
        one.node_mut(b).self_measured_ns = 5;
        let mut sum = one.clone();
        one.merge_into(&mut sum);
        assert_eq!(sum.len(), 3);
        assert_eq!((sum.node(a).calls, sum.node(b).self_measured_ns), (4, 10));
        assert_eq!(sum.parent(b), Some(a));
    }
}
