//! The call graph of a profile: methods, and who called whom, each once; what weighs little is left out.

use std::cmp::Reverse;

use rustc_hash::{FxHashMap, FxHashSet};

use super::one_line;
use crate::profile::{MethodIndex, MethodName, Metric, Profile};
use crate::report::arcs::stanzas;
use crate::report::units::value;

/// Unless the user says how little is too little.
const USUAL_SHARE: f64 = 0.005;
/// More than these can be drawn, but not read.
const MOST_NODES: usize = 80;
/// Calls that weigh less than this share of a callee are left out, the heaviest excepted.
const FAINT: f64 = 0.01;

/// A method.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) name: String,
    /// Of the whole, with what it calls.
    pub(super) total: f64,
    /// Of the whole, itself.
    pub(super) own: f64,
    /// The same for people: `1.2 s`.
    pub(super) amount: String,
}

/// Calls of one method by another, by their places among the nodes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Of the whole.
    pub(super) share: f64,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Graph {
    /// The heaviest first.
    pub(super) nodes: Vec<Node>,
    pub(super) edges: Vec<Edge>,
    /// How many methods were left out.
    pub(super) left_out: usize,
}

impl Graph {
    /// Of all threads of a profile, by a metric, without methods below this share of the whole.
    pub(super) fn of(profile: &Profile, metric: &Metric, min_share: f64) -> Graph {
        let min_share = if min_share > 0.0 { min_share } else { USUAL_SHARE };
        let tree = &profile.merged;
        let whole = metric.whole(tree, &profile.columns(tree)).max(1) as f64;
        let mut stanzas = stanzas(profile, tree);
        let mut namesakes: FxHashMap<&str, usize> = FxHashMap::default();
        for stanza in &stanzas {
            *namesakes.entry(&profile.methods[stanza.method.0].display).or_default() += 1;
        }
        // Overloads may differ only in the packages of their parameters' types.
        let name = |method: MethodIndex| {
            let MethodName { machine, display } = &profile.methods[method.0];
            if namesakes[display.as_str()] > 1 { machine.as_str() } else { display.as_str() }
        };
        stanzas.sort_by_cached_key(|stanza| (Reverse(metric.of(&stanza.own).total), name(stanza.method).to_owned()));
        let methods = stanzas.len();
        stanzas.retain(|stanza| metric.of(&stanza.own).total as f64 >= min_share * whole);
        stanzas.truncate(MOST_NODES);
        let places: FxHashMap<MethodIndex, usize> =
            stanzas.iter().enumerate().map(|(place, stanza)| (stanza.method, place)).collect();
        let mut nodes = Vec::with_capacity(stanzas.len());
        let mut edges = Vec::new();
        for (to, stanza) in stanzas.iter().enumerate() {
            let amount = metric.of(&stanza.own);
            nodes.push(Node {
                name: one_line(name(stanza.method)),
                total: amount.total as f64 / whole,
                own: amount.own as f64 / whole,
                amount: value(metric.unit, amount.total),
            });
            let mut calls: Vec<Edge> = stanza
                .parents
                .iter()
                .filter_map(|arc| {
                    let from = *places.get(&arc.method?)?;
                    Some(Edge { from, to, share: metric.of(&arc.amounts).total as f64 / whole })
                })
                .collect();
            calls.sort_by(|one, other| other.share.total_cmp(&one.share).then(one.from.cmp(&other.from)));
            let least = FAINT * nodes[to].total;
            let kept = calls.iter().take_while(|edge| edge.share >= least && edge.share > 0.0).count();
            calls.truncate(kept.max(1));
            edges.append(&mut calls);
        }
        let left_out = methods - nodes.len();
        Graph { nodes, edges, left_out }
    }

    /// For each edge, whether it closes a circle, when one goes from the heaviest nodes on.
    pub(super) fn closes_circle(&self) -> Vec<bool> {
        let mut of_node: Vec<Vec<usize>> = vec![Vec::new(); self.nodes.len()];
        self.edges.iter().enumerate().for_each(|(at, edge)| of_node[edge.from].push(at));
        let mut closes = vec![false; self.edges.len()];
        let (mut done, mut open) = (FxHashSet::default(), FxHashSet::default());
        for root in 0..self.nodes.len() {
            if done.contains(&root) {
                continue;
            }
            // Which of its edges is next.
            let mut path = vec![(root, 0)];
            open.insert(root);
            while let Some((node, next)) = path.last_mut() {
                let Some(&at) = of_node[*node].get(*next) else {
                    open.remove(node);
                    done.insert(*node);
                    path.pop();
                    continue;
                };
                *next += 1;
                let to = self.edges[at].to;
                if open.contains(&to) {
                    closes[at] = true;
                } else if !done.contains(&to) {
                    open.insert(to);
                    path.push((to, 0));
                }
            }
        }
        closes
    }
}

/// Red for much, through yellow, to a light grey for little: hue, saturation and value from 0 to 1.
pub(super) fn color(share: f64) -> (f64, f64, f64) {
    let heat = share.clamp(0.0, 1.0).sqrt();
    (0.16 * (1.0 - heat), 0.08 + 0.55 * heat, 1.0 - 0.04 * heat)
}

/// `12.3 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// A method's name as lines: its package above class and method.
pub(super) fn lines(name: &str) -> Vec<&str> {
    let head = &name[..name.find('(').unwrap_or(name.len())];
    let mut dots = head.rmatch_indices('.').map(|(at, _)| at);
    match (name.starts_with('['), dots.next(), dots.next()) {
        (false, Some(_), Some(class)) => vec![&name[..class], &name[class + 1..]],
        _ => vec![name],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import;

    fn graph(stacks: &str, min_share: f64) -> Graph {
        let profile = import::read("stacks", &mut stacks.as_bytes()).expect("collapsed stacks");
        Graph::of(&profile, &profile.time_metric(), min_share)
    }

    fn edges(graph: &Graph) -> Vec<String> {
        let name = |at: usize| graph.nodes[at].name.as_str();
        let mut edges: Vec<String> =
            graph.edges.iter().map(|it| format!("{} {} {}", name(it.from), name(it.to), percent(it.share))).collect();
        edges.sort();
        edges
    }

    #[test]
    fn methods_are_joined_and_what_weighs_little_is_left_out() {
        let graph = graph("main;work;save 60\nmain;rest;save 39\nmain;tiny 1\n", 0.02);
        let nodes: Vec<(&str, String, String)> =
            graph.nodes.iter().map(|node| (node.name.as_str(), percent(node.total), percent(node.own))).collect();
        let expected = [
            ("main", "100.0 %", "0.0 %"),
            ("save", "99.0 %", "99.0 %"),
            ("work", "60.0 %", "0.0 %"),
            ("rest", "39.0 %", "0.0 %"),
        ];
        assert_eq!(nodes, expected.map(|(name, total, own)| (name, total.to_owned(), own.to_owned())));
        assert_eq!(graph.left_out, 1);
        assert_eq!(edges(&graph), ["main rest 39.0 %", "main work 60.0 %", "rest save 39.0 %", "work save 60.0 %"]);
    }

    #[test]
    fn a_method_that_calls_itself_counts_once_and_circles_are_found() {
        let graph = graph("main;a;b;a;b 10\n", 0.0);
        assert!(graph.nodes.iter().all(|node| node.total <= 1.0), "{graph:?}");
        let circles: Vec<(usize, usize)> = std::iter::zip(&graph.edges, graph.closes_circle())
            .filter(|(_, closes)| *closes)
            .map(|(edge, _)| (edge.from, edge.to))
            .collect();
        assert!(circles.len() <= 1, "{circles:?}");
    }

    #[test]
    fn a_name_has_its_package_apart() {
        assert_eq!(lines("com.acme.Order.save(int, a.B)"), ["com.acme", "Order.save(int, a.B)"]);
        assert_eq!(lines("Order.save"), ["Order.save"]);
        assert_eq!(lines("[4711 com.acme.Shop]"), ["[4711 com.acme.Shop]"]);
    }
}
