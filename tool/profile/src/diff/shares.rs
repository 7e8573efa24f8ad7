//! Profiles of different kinds, of which none counts what the others do: each as shares of what it counts first.
//!
//! A recording of a whole JVM and one below roots have another whole: where one says which roots it has, of the others that have these on their stacks counts what is
//! below them, in methods that it knows: what those call besides, the JDK's methods and classes made at run time, is theirs. So a flight recording and a profile of
//! the same program can be laid side by side.

use rustc_hash::FxHashSet;

use super::names::Signatures;
use crate::profile::{Amount, Column, Extent, MethodIndex, Metric, Node, NodeAmounts, NodeIndex, Profile, Tree, Unit};
use crate::report::belief::Shares;

/// The metric that they have then.
const SHARE: &str = "share";

/// The same profiles, each with [`SHARE`] as its only metric.
pub fn shares(profiles: &[&Profile]) -> Vec<Profile> {
    let signatures = Signatures::of(profiles.iter().copied());
    let (mut roots, mut known): (FxHashSet<&str>, FxHashSet<&str>) = Default::default();
    for profile in profiles.iter().filter(|profile| !profile.roots.is_empty()) {
        roots.extend(profile.roots.iter().flat_map(|root| profile.root_names(root)));
        known.extend(profile.methods.iter().map(|method| &*method.machine));
    }
    let of = |profile: &&Profile| {
        let names: Vec<&str> = profile.methods.iter().map(|method| &*signatures.full(method).machine).collect();
        let is_among = |these: &FxHashSet<&str>, method: MethodIndex| these.contains(names[method.0]);
        Below::of(profile, |method| is_among(&roots, method), |method| is_among(&known, method)).shares(profile)
    };
    profiles.iter().map(of).collect()
}

/// The nodes of a profile's tree that count, callers before callees.
struct Below {
    nodes: Vec<NodeIndex>,
    /// By a node's index in the profile: the one that has what it has itself.
    places: Vec<Option<NodeIndex>>,
    /// Whether that is not all of them.
    is_part: bool,
}

impl Below {
    /// The outermost roots, and what is known below them; everything, where there are none.
    fn of(profile: &Profile, is_root: impl Fn(MethodIndex) -> bool, is_known: impl Fn(MethodIndex) -> bool) -> Below {
        let all = &profile.merged.nodes;
        let mut nodes = Vec::new();
        let mut places: Vec<Option<NodeIndex>> = Vec::with_capacity(all.len());
        for (index, node) in all.iter().enumerate() {
            let above = node.parent.and_then(|NodeIndex(parent)| places[parent]);
            let counts = if above.is_some() { is_known(node.method) } else { is_root(node.method) };
            places.push(if counts { Some(NodeIndex(nodes.len())) } else { above });
            nodes.extend(counts.then_some(NodeIndex(index)));
        }
        if nodes.is_empty() {
            nodes = (0..all.len()).map(NodeIndex).collect();
            places = nodes.iter().copied().map(Some).collect();
        }
        Below { is_part: nodes.len() < all.len(), nodes, places }
    }

    fn shares(&self, profile: &Profile) -> Profile {
        let (leading, tree) = (profile.time_metric(), &profile.merged);
        let rows = NodeAmounts::of(profile, tree);
        let mut amounts: Vec<Amount> = self.nodes.iter().map(|node| leading.of(&rows.at(*node))).collect();
        for (index, place) in self.places.iter().enumerate() {
            if let Some(NodeIndex(place)) = *place
                && self.nodes[place].0 != index
            {
                amounts[place].add_own(leading.of(&rows.at(NodeIndex(index))));
            }
        }
        let whole = amounts.iter().map(|amount| amount.own).sum::<u64>().max(1) as f64;
        let millionths = |value: u64| (value as f64 / whole * Unit::Share.one()).round() as u64;
        let known = Shares::of(tree);
        // How wrong all of a root's time is, its parts are no more for that.
        let error = |value: u64, error: u64| match leading.is_time() {
            true => (known.deviation(value, error) * Unit::Share.one()).round() as u64,
            false => millionths(error),
        };
        let share = |amount: &Amount| Amount {
            own: millionths(amount.own),
            total: millionths(amount.total),
            own_error: error(amount.own, amount.own_error),
            total_error: error(amount.total, amount.total_error),
        };
        let of_node = |index: &NodeIndex| {
            let node = tree.nodes[index.0];
            let parent = node.parent.and_then(|NodeIndex(parent)| self.places[parent]);
            Node { parent, link: node.link.filter(|_| parent.is_some()), ..Node::empty(node.method) }
        };
        let nodes = self.nodes.iter().map(of_node).collect();
        let counted = vec![Column::told(amounts.iter().map(share).collect())];
        let about = "The part that it has of what the profile counts first.";
        let metric = Metric::counted(SHARE, "share", Unit::Share, Extent::OwnAndTotal, about);
        let kind = profile.imported.clone().unwrap_or_else(|| profile.target.main.clone());
        let part = if self.is_part { " below the roots, in methods that a profile has" } else { "" };
        let named = format!("{kind}, shares of {}{part}", leading.title);
        Profile {
            imported: Some(named),
            methods: profile.methods.clone(),
            counted: vec![if leading.is_uncertain { metric.uncertain() } else { metric }],
            merged: Tree { counted, ..Tree::of(nodes) },
            ..Profile::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{Run, compare};
    use crate::import;
    use crate::profile::testing::profile_of;
    use crate::profile::{OpenCalls, Part, Quantity, Root};

    fn node(parent: Option<usize>, method: usize, self_ns: u64, total_ns: u64) -> Node {
        Node { parent: parent.map(NodeIndex), calls: 1, self_ns, total_ns, ..Node::empty(MethodIndex(method)) }
    }

    #[test]
    fn samples_of_a_whole_jvm_are_compared_with_times_below_a_root() {
        let tree = Tree::of(vec![node(None, 0, 10, 100), node(Some(0), 1, 30, 90), node(Some(1), 2, 60, 60)]);
        let mut profile = profile_of(tree, Vec::new(), 3);
        for (name, method) in ["shop.Api.totals", "shop.Api.add", "shop.Sums.of"].iter().zip(&mut profile.methods) {
            method.machine = format!("{name}(Ljava/lang/Object;)V");
            method.display = format!("{name}(Object)");
        }
        let methods = vec![MethodIndex(0)];
        profile.roots =
            vec![Root { pattern: "shop.Api::totals".to_owned(), methods, calls: 1, open: OpenCalls::default() }];
        // Names without a signature, frames outside of the root, and below it some that the profile does not have.
        let stacks = b"Thread.run;shop.Api.totals;java.util.List.forEach;shop.Api.add;shop.Sums.of;libc.so 12\n\
                       Thread.run;shop.Api.totals;shop.Api.add 6\nThread.run;shop.Api.totals 2\nThread.run;shop.Other.work 80\n";
        let imported = import::read("stacks.txt", &mut &stacks[..]).expect("collapsed stacks");
        let shares = shares(&[&imported, &profile]);
        let [before, after] =
            ["stacks.txt", "run.hw"].map(|file| Run { file, profile: &shares[usize::from(file == "run.hw")] });
        let comparison = compare(&[before], &[after], None);
        let total = Quantity::of(SHARE, Part::Total);
        let of = |name: &str| {
            let method = comparison.names.iter().position(|method| method.display == name).expect("a name of both");
            let change = comparison.change(comparison.method(method), &total);
            [change.before, change.after].map(|value| (value / 1e4).round())
        };
        let found = ["shop.Api.totals(Object)", "shop.Api.add(Object)", "shop.Sums.of(Object)"].map(of);
        assert_eq!(found, [[100.0, 100.0], [90.0, 90.0], [60.0, 60.0]]);
        let nodes = comparison.nodes.len();
        assert_eq!(nodes, 3, "one tree, without what the profile does not have");
    }
}
