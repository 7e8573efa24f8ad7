//! The trees of a profile as the live view walks them, and nodes that are recognised from one profile to the next.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{DefaultHasher, Hash, Hasher};

use rustc_hash::FxHashSet;

use super::column::{Lead, Measured, Sort};
use crate::profile::walk::Children;
use crate::profile::{Amounts, Column, CpuSamples, MethodIndex, Metric, Node, NodeIndex, Profile, ThreadProfile, Tree};
use crate::report::Trees;

/// Who a row is: the chain of names that leads to it. Numbers of nodes and methods change from one profile to the next, this does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u64);

impl Key {
    /// Of what lies below another, or of what lies below nothing.
    pub(super) fn of(above: Option<Key>, own: impl Hash) -> Key {
        let mut hasher = DefaultHasher::new();
        (above.map(|key| key.0), own).hash(&mut hasher);
        Key(hasher.finish())
    }
}

/// What a node stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    Method(MethodIndex),
    /// An index into the profile's threads.
    Thread(usize),
}

/// One tree of all threads, or each thread's tree below its thread.
pub(super) struct Forest {
    /// With threads; without, the profile's own tree is it.
    own: Option<Tree>,
    /// So many of the first nodes are threads.
    threads: usize,
    children: Children,
    keys: Vec<Key>,
    cpu: Vec<CpuSamples>,
    /// Which nodes' calls may be missing.
    incomplete: Vec<bool>,
    /// Stands in the place of time, everywhere here.
    metric: Metric,
    /// Its values, if they are in a column.
    column: Option<Column>,
    whole: u64,
}

impl Forest {
    /// With a metric of the profile in the place of time.
    pub(super) fn of(profile: &Profile, trees: Trees, metric: Metric) -> Forest {
        let (own, threads) = match trees {
            Trees::Merged => (None, 0),
            Trees::PerThread => (Some(below_threads(profile)), profile.threads.len()),
        };
        let tree = own.as_ref().unwrap_or(&profile.merged);
        let (children, keys) = (Children::of(tree), keys(profile, tree, threads));
        let cpu = tree.total_cpu();
        let columns = profile.columns(tree);
        let whole = metric.whole(tree, &columns);
        let column = metric.column().and_then(|at| columns.into_iter().nth(at)).map(Cow::into_owned);
        let incomplete = match trees {
            Trees::Merged => profile.incomplete_nodes(tree),
            Trees::PerThread => incomplete_below_threads(profile),
        };
        Forest { children, keys, cpu, incomplete, metric, column, whole, own, threads }
    }

    pub(super) fn tree<'a>(&'a self, profile: &'a Profile) -> &'a Tree {
        self.own.as_ref().unwrap_or(&profile.merged)
    }

    /// What stands in the place of time.
    pub(super) fn metric(&self) -> &Metric {
        &self.metric
    }

    /// The same of all roots.
    pub(super) fn lead(&self) -> Lead {
        Lead { unit: self.metric.unit, whole: self.whole }
    }

    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    pub(super) fn key(&self, node: NodeIndex) -> Key {
        self.keys[node.0]
    }

    pub(super) fn parent(&self, profile: &Profile, node: NodeIndex) -> Option<NodeIndex> {
        self.tree(profile).nodes[node.0].parent
    }

    /// Whether another thread ran it for the one above.
    pub(super) fn is_started(&self, profile: &Profile, node: NodeIndex) -> bool {
        self.tree(profile).nodes[node.0].link.is_some()
    }

    pub fn has_children(&self, node: NodeIndex) -> bool {
        !self.children.below(Some(node)).is_empty()
    }

    pub(super) fn subject(&self, profile: &Profile, node: NodeIndex) -> Subject {
        if node.0 < self.threads {
            Subject::Thread(node.0)
        } else {
            Subject::Method(self.tree(profile).nodes[node.0].method)
        }
    }

    /// Its numbers; `cpu` is of the total time.
    pub fn amounts(&self, profile: &Profile, node: NodeIndex) -> Amounts {
        // Without columns: rows are sorted by this, and there may be very many.
        let amounts = Amounts::of(&self.tree(profile).nodes[node.0], self.incomplete[node.0]);
        let amounts = Amounts { cpu: self.cpu[node.0], ..amounts };
        match &self.column {
            Some(column) => amounts.led(column.at(node)),
            None => amounts.led_by(&self.metric),
        }
    }

    /// A node's children, or the roots, in the order that they are shown in.
    pub fn below(&self, profile: &Profile, above: Option<NodeIndex>, sort: Sort) -> Vec<NodeIndex> {
        let mut below = self.children.below(above).to_vec();
        below.sort_unstable_by(|a, b| self.compare(profile, *a, *b, sort));
        below
    }

    fn compare(&self, profile: &Profile, a: NodeIndex, b: NodeIndex, sort: Sort) -> Ordering {
        let (left, right) = (self.amounts(profile, a), self.amounts(profile, b));
        let measured = |amounts, node| Measured { amounts, name: name(profile, self.subject(profile, node)) };
        sort.compare(&measured(&left, a), &measured(&right, b)).then(a.cmp(&b))
    }

    /// A node and all below it, in no particular order.
    pub(super) fn subtree(&self, node: NodeIndex) -> Vec<NodeIndex> {
        let mut found = vec![node];
        let mut looked_at = 0;
        while let Some(next) = found.get(looked_at).copied() {
            found.extend_from_slice(self.children.below(Some(next)));
            looked_at += 1;
        }
        found
    }
}

/// What people call it.
pub(super) fn name(profile: &Profile, subject: Subject) -> &str {
    match subject {
        Subject::Method(method) => &profile.methods[method.0].display,
        Subject::Thread(thread) => &profile.threads[thread].name,
    }
}

/// Of the nodes of [`below_threads`]: a thread has its roots' calls.
fn incomplete_below_threads(profile: &Profile) -> Vec<bool> {
    let trees: Vec<Vec<bool>> = profile.threads.iter().map(|thread| profile.incomplete_nodes(&thread.tree)).collect();
    let is_root_incomplete = |(thread, nodes): (&ThreadProfile, &Vec<bool>)| {
        thread.tree.nodes.iter().zip(nodes).any(|(node, incomplete)| node.caller().is_none() && *incomplete)
    };
    let threads = profile.threads.iter().zip(&trees).map(is_root_incomplete);
    threads.chain(trees.iter().flatten().copied()).collect()
}

fn below_threads(profile: &Profile) -> Tree {
    let threads = profile.threads.len();
    let mut all = Tree::of(vec![Node::empty(MethodIndex(0)); threads]);
    for (index, thread) in profile.threads.iter().enumerate() {
        let first = all.nodes.len();
        for node in &thread.tree.nodes {
            if node.caller().is_none() {
                let above = &mut all.nodes[index];
                above.add(&Node { self_ns: 0, error_ns: 0, cpu: CpuSamples::default(), ..*node });
            }
            let parent = node.parent.map_or(index, |parent| parent.0 + first);
            all.nodes.push(Node { parent: Some(NodeIndex(parent)), ..*node });
        }
    }
    let counted = (0..profile.counted.len()).map(|at| {
        let own = profile.threads.iter().flat_map(|thread| {
            let column = thread.tree.counted.get(at);
            let own = move |node| column.map(|column: &Column| column.at(NodeIndex(node))).unwrap_or_default();
            (0..thread.tree.nodes.len()).map(move |node| (own(node).own, own(node).own_error))
        });
        Column::of(&all.nodes, std::iter::repeat_n((0, 0), threads).chain(own))
    });
    all.counted = counted.collect();
    all
}

fn keys(profile: &Profile, tree: &Tree, threads: usize) -> Vec<Key> {
    let names: Vec<Key> = profile.methods.iter().map(|method| Key::of(None, &method.machine)).collect();
    let mut keys: Vec<Key> = Vec::with_capacity(tree.nodes.len());
    let mut taken: FxHashSet<Key> = FxHashSet::default();
    for (index, node) in tree.nodes.iter().enumerate() {
        let mut key = match node.parent {
            _ if index < threads => Key::of(None, profile.threads[index].id.0),
            parent => Key::of(parent.map(|parent| keys[parent.0]), (names[node.method.0], node.link)),
        };
        // Classes of the same name, of different loaders, have methods of the same name.
        while !taken.insert(key) {
            key = Key::of(Some(key), "another");
        }
        keys.push(key);
    }
    keys
}
