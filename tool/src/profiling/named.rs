//! What was counted by its names: below the node where it happened a node for each name, without calls and time.

use std::sync::Arc;

use headwater_protocol::word::Counter;
use rustc_hash::FxHashMap;

use crate::cct::{Cct, Named, NodeId};
use crate::pattern::stable_name;
use crate::profile::{MethodIndex, MethodName, Node, NodeIndex, Tree, tell_apart};

/// A class that was loaded, and nothing more.
const UNLINKED: &str = "(unlinked classes)";
/// Made in a place that nobody knows.
const NOWHERE: &str = "(objects)";
/// A class that nobody knows any more.
const GONE: &str = "(unloaded classes)";

/// Names that stand among a profile's methods, behind those that were selected.
#[derive(Debug)]
pub(super) struct Things<'a> {
    methods: &'a [MethodName],
    /// Names of classes by their numbers, as the JVM has them.
    classes: &'a FxHashMap<u64, Arc<str>>,
    /// Objects by the numbers of the sites that make them.
    sites: &'a [Arc<str>],
    names: Vec<MethodName>,
    known: FxHashMap<String, MethodIndex>,
}

/// How often something happened at a node that stands for its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Times {
    pub(super) node: usize,
    pub(super) counter: Counter,
    pub(super) times: u64,
}

impl<'a> Things<'a> {
    /// None yet.
    pub(super) fn new(
        methods: &'a [MethodName],
        classes: &'a FxHashMap<u64, Arc<str>>,
        sites: &'a [Arc<str>],
    ) -> Things<'a> {
        Things { methods, classes, sites, names: Vec::new(), known: FxHashMap::default() }
    }

    /// The names, in the order of their numbers.
    pub(super) fn into_names(mut self) -> Vec<MethodName> {
        tell_apart(&mut self.names);
        self.names
    }

    /// Whether a method initialises its class.
    pub(super) fn is_initialiser(&self, method: MethodIndex) -> bool {
        self.methods.get(method.0).is_some_and(|method| method.machine.contains(".<clinit>("))
    }

    /// Gives a tree nodes for what was counted by names. Its nodes are those of `cct` but for the top, in the same order.
    pub(super) fn hang(&mut self, tree: &mut Tree, cct: &Cct) -> Vec<Times> {
        let mut nodes: FxHashMap<(usize, MethodIndex), usize> = FxHashMap::default();
        let mut all = Vec::new();
        for (id, what, times) in cct.named() {
            let name = self.name(what);
            let at = if what.counter == Counter::Exceptions { self.thrower(cct, id, &name) } else { id };
            let Some(parent) = at.index().checked_sub(1) else { continue };
            let method = self.index(name);
            let node = *nodes.entry((parent, method)).or_insert_with(|| {
                tree.nodes.push(Node { parent: Some(NodeIndex(parent)), ..Node::empty(method) });
                tree.nodes.len() - 1
            });
            all.push(Times { node, counter: what.counter, times });
        }
        all
    }

    fn name(&self, what: Named) -> String {
        if !what.counter.names_classes() {
            return self.sites.get(what.number as usize).map_or(NOWHERE, |made| &**made).to_owned();
        }
        match self.classes.get(&what.number) {
            Some(name) => stable_name(&name.replace('/', ".")).into_owned(),
            None if what.counter == Counter::Loaded => UNLINKED.to_owned(),
            None => GONE.to_owned(),
        }
    }

    fn index(&mut self, name: String) -> MethodIndex {
        let next = MethodIndex(self.methods.len() + self.names.len());
        *self.known.entry(name).or_insert_with_key(|name| {
            self.names.push(MethodName { machine: name.clone(), display: name.clone() });
            next
        })
    }

    /// Who makes an exception: not its constructors, nor those of its superclasses, where these are nodes.
    fn thrower(&self, cct: &Cct, made: NodeId, class: &str) -> NodeId {
        let constructed = |method: &'a MethodName| Some(method.machine.split_once(".<init>(")?.0);
        let (mut at, mut thrower) = (made, made);
        while let Some(caller) = cct.parent(at)
            && let Some(owner) =
                self.methods.get((cct.node(at).method().0 as usize).wrapping_sub(1)).and_then(constructed)
        {
            // As a root it is called by nobody.
            if owner == class && caller != NodeId::TOP {
                thrower = caller;
            }
            at = caller;
        }
        thrower
    }
}

#[cfg(test)]
mod tests {
    use headwater_protocol::MethodId;
    use headwater_protocol::word::SITE_BITS;

    use super::*;

    fn hung(methods: &[&str], path: &[u32], counted: &[(Counter, u64)]) -> Vec<String> {
        let name = |name: &&str| MethodName { machine: (*name).to_owned(), display: (*name).to_owned() };
        let methods: Vec<MethodName> = methods.iter().map(name).collect();
        let classes = [(7, Arc::from("a/Bad")), (8, Arc::from("a/Good"))].into_iter().collect();
        let mut cct = Cct::new();
        let mut at = NodeId::TOP;
        let mut tree = Tree::default();
        for method in path {
            at = cct.child(at, MethodId(*method));
            let parent = tree.nodes.len().checked_sub(1).map(NodeIndex);
            tree.nodes.push(Node { parent, ..Node::empty(MethodIndex(*method as usize - 1)) });
        }
        for (counter, number) in counted {
            cct.add_counted(at, *counter, *number);
        }
        let sites = [Arc::from("int[]@C:12")];
        let mut things = Things::new(&methods, &classes, &sites);
        let times = things.hang(&mut tree, &cct);
        let names: Vec<String> = methods.iter().map(|method| method.machine.clone()).collect();
        let names = [names, things.into_names().into_iter().map(|name| name.display).collect()].concat();
        let line = |it: &Times| {
            let node = &tree.nodes[it.node];
            let parent = &tree.nodes[node.parent.expect("below another").0];
            format!("{} {} {:?} {}", names[parent.method.0], names[node.method.0], it.counter, it.times)
        };
        times.iter().map(line).collect()
    }

    #[test]
    fn a_name_is_a_node_for_all_that_is_counted_by_it() {
        let counted = [(Counter::Loaded, 7), (Counter::Classes, 7), (Counter::Classes, 8), (Counter::Classes, 7)];
        let expected = ["a.C.m()V a.Bad Classes 2", "a.C.m()V a.Good Classes 1", "a.C.m()V a.Bad Loaded 1"];
        assert_eq!(hung(&["a.C.m()V"], &[1], &counted), expected);
    }

    #[test]
    fn objects_are_nodes_by_class_and_line_with_their_bytes() {
        let word = |units: u64, site: u64| units << SITE_BITS | site;
        let counted = [(Counter::Objects, word(3, 0)), (Counter::Objects, word(9, 0)), (Counter::Objects, word(1, 1))];
        let expected = [
            "a.C.m()V int[]@C:12 Objects 2",
            "a.C.m()V (objects) Objects 1",
            "a.C.m()V int[]@C:12 ObjectBytes 96",
            "a.C.m()V (objects) ObjectBytes 8",
        ];
        assert_eq!(hung(&["a.C.m()V"], &[1], &counted), expected);
    }

    #[test]
    fn what_has_no_name_any_more_is_told_all_the_same() {
        let counted = [(Counter::Loaded, 99), (Counter::Exceptions, 0)];
        let expected = ["a.C.m()V (unlinked classes) Loaded 1", "a.C.m()V (unloaded classes) Exceptions 1"];
        let mut hung = hung(&["a.C.m()V"], &[1], &counted);
        hung.sort_unstable_by_key(|line| line.contains("unloaded"));
        assert_eq!(hung, expected);
    }

    #[test]
    fn exceptions_are_made_by_who_calls_their_constructors() {
        let methods = ["a.C.m()V", "a.Bad.<init>()V", "a.Base.<init>()V", "a.Other.<init>()V"];
        let made = [(Counter::Exceptions, 7)];
        assert_eq!(hung(&methods, &[1, 2, 3], &made), ["a.C.m()V a.Bad Exceptions 1"]);
        assert_eq!(hung(&methods, &[1, 2, 2, 3], &made), ["a.C.m()V a.Bad Exceptions 1"], "one calls another");
        assert_eq!(hung(&methods, &[1, 4, 2], &made), ["a.Other.<init>()V a.Bad Exceptions 1"]);
        assert_eq!(hung(&methods, &[1, 4], &made), ["a.Other.<init>()V a.Bad Exceptions 1"], "it makes one itself");
        assert_eq!(hung(&methods, &[2], &made), ["a.Bad.<init>()V a.Bad Exceptions 1"], "it is a root");
        assert_eq!(hung(&methods, &[2], &[(Counter::Classes, 8)]), ["a.Bad.<init>()V a.Good Classes 1"]);
    }
}
