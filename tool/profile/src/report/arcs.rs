//! The callers view: each method in a stanza with its callers, its parents, and its callees, its children (arcflow's xarc).
//!
//! Arcflow's invariants hold in every stanza, with base for self time and cum for total time:
//!
//! - the parents' calls, base and cum each add up to the method's own;
//! - the children's cum adds up to the method's cum less its base.
//!
//! The paper leaves recursion out. Here a method's cum is that of its outermost calls, so that no time counts twice, and so:
//!
//! - A parent's cum is that of the outermost calls that it makes. A parent whose calls are all inner ones has none.
//! - A child's cum is what passes in it, and below it, before the method is entered again: from there on the inner call's own
//!   children, and its base, have it. So a method that calls itself is among its own parents and children, with its calls, but
//!   without cum.
//!
//! Where methods call each other in a circle, the same arc therefore has one cum in the caller's stanza and another in the
//! callee's, and must have: in A → B → A, B is all that A calls, and took A's cum less A's base; and A is all that calls B, and
//! caused B's cum, in which the inner A's base is contained.

use rustc_hash::FxHashMap;

use super::names::Names;
use crate::profile::walk::{Children, Step};
use crate::profile::{Amounts, MethodIndex, NodeAmounts, NodeIndex, Profile, Sum, Tree};

/// A caller or callee, and what passed on its account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arc {
    /// Of a caller: `None` where the method was entered from outside the call graph, or handed over.
    pub method: Option<MethodIndex>,
    /// Its part of the method's amounts.
    pub amounts: Amounts,
}

/// A method between its callers and its callees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stanza {
    /// The first method of its name.
    pub method: MethodIndex,
    /// What it took altogether.
    pub own: Amounts,
    /// Who called it.
    pub parents: Vec<Arc>,
    /// What it called.
    pub children: Vec<Arc>,
}

/// Calls of one method by another.
#[derive(Clone, Default)]
struct Call {
    /// As the caller's stanza has it.
    child: Sum,
    /// As the callee's stanza has it.
    parent: Sum,
}

/// A stanza for every method of a tree of this profile, in the order of their numbers; arcs in no particular order.
pub fn stanzas(profile: &Profile, tree: &Tree) -> Vec<Stanza> {
    let nodes = NodeAmounts::of(profile, tree);
    grouped(calls(&Names::of(profile), tree, &nodes), &nodes)
}

fn calls(names: &Names, tree: &Tree, nodes: &NodeAmounts<'_>) -> FxHashMap<(Option<MethodIndex>, MethodIndex), Call> {
    let children = Children::called(tree);
    let mut calls: FxHashMap<(Option<MethodIndex>, MethodIndex), Call> = FxHashMap::default();
    let method_of = |node: NodeIndex| names.first(tree.nodes[node.0].method);
    // Nodes from the root down to here; and where on the path the innermost call of each method is.
    let mut path: Vec<NodeIndex> = Vec::new();
    let mut innermost: Vec<Option<usize>> = vec![None; names.len()];
    let mut shadowed: Vec<Option<usize>> = Vec::new();
    for step in children.depth_first() {
        let index = match step {
            Step::Enter(index) => index,
            Step::Leave(index) => {
                path.pop();
                innermost[method_of(index).0] = shadowed.pop().flatten();
                continue;
            }
        };
        let node = &tree.nodes[index.0];
        let (method, caller) = (method_of(index), node.caller().map(method_of));
        let enclosing = innermost[method.0];
        let call = calls.entry((caller, method)).or_default();
        for side in [&mut call.child, &mut call.parent] {
            nodes.add_own(index, side);
        }
        if enclosing.is_none() {
            nodes.add_total(index, &mut call.parent);
        }
        if caller != Some(method) {
            nodes.add_total(index, &mut call.child);
        }
        // The enclosing call's child on the way here has been given this time too.
        if let Some(child) = enclosing.and_then(|at| path.get(at + 1)) {
            nodes.take_total(index, &mut calls.entry((Some(method), method_of(*child))).or_default().child);
        }
        shadowed.push(enclosing);
        innermost[method.0] = Some(path.len());
        path.push(index);
    }
    calls
}

fn grouped(calls: FxHashMap<(Option<MethodIndex>, MethodIndex), Call>, nodes: &NodeAmounts<'_>) -> Vec<Stanza> {
    let mut stanzas: FxHashMap<MethodIndex, (Stanza, Sum)> = FxHashMap::default();
    let empty = |method| {
        let (own, parents, children) = (Amounts::default(), Vec::new(), Vec::new());
        (Stanza { method, own, parents, children }, Sum::default())
    };
    for ((caller, method), call) in calls {
        let (stanza, own) = stanzas.entry(method).or_insert_with(|| empty(method));
        own.add(&call.parent);
        stanza.parents.push(Arc { method: caller, amounts: nodes.row(call.parent) });
        if let Some(caller) = caller {
            let (stanza, _) = stanzas.entry(caller).or_insert_with(|| empty(caller));
            stanza.children.push(Arc { method: Some(method), amounts: nodes.row(call.child) });
        }
    }
    let stanzas = stanzas.into_values().map(|(stanza, own)| Stanza { own: nodes.row(own), ..stanza });
    let mut stanzas: Vec<Stanza> = stanzas.collect();
    stanzas.sort_by_key(|stanza| stanza.method);
    stanzas
}

#[cfg(test)]
mod tests;
