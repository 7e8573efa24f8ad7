use super::*;
use crate::profile::Node;
use crate::profile::testing::{profile_of, random_tree, with_links};
use crate::report::flat::flat;

const METHODS: usize = 6;

fn stanzas_of(tree: &Tree) -> Vec<Stanza> {
    stanzas(&profile_of(tree.clone(), Vec::new(), METHODS), tree)
}

fn sum(arcs: &[Arc], of: fn(&Amounts) -> u64) -> u64 {
    arcs.iter().map(|arc| of(&arc.amounts)).sum()
}

#[test]
fn arcflows_invariants_hold_in_every_stanza_recursion_or_not() {
    for seed in 0..500 {
        let tree = with_links(random_tree(seed, 150, METHODS), 2 + seed as usize);
        for stanza in stanzas_of(&tree) {
            let Stanza { own, parents, children, .. } = &stanza;
            assert_eq!(sum(parents, |parent| parent.calls), own.calls, "seed {seed}");
            assert_eq!(sum(parents, |parent| parent.thrown), own.thrown, "seed {seed}");
            assert_eq!(sum(parents, |parent| parent.self_ns), own.self_ns, "seed {seed}");
            assert_eq!(sum(parents, |parent| parent.total_ns), own.total_ns, "seed {seed}");
            assert_eq!(sum(children, |child| child.total_ns), own.total_ns - own.self_ns, "seed {seed}: {stanza:?}");
        }
    }
}

#[test]
fn a_stanzas_self_is_the_methods_line_in_the_flat_view() {
    for seed in 0..200 {
        let tree = with_links(random_tree(seed, 150, METHODS), 2 + seed as usize);
        let rows: Vec<_> = stanzas_of(&tree).into_iter().map(|stanza| (stanza.method, stanza.own)).collect();
        let flat: Vec<_> = flat(&profile_of(tree.clone(), Vec::new(), METHODS), &tree)
            .into_iter()
            .map(|row| (row.method, row.amounts))
            .collect();
        assert_eq!(rows, flat, "seed {seed}");
    }
}

#[test]
fn an_arc_has_the_same_calls_and_base_on_both_sides() {
    for seed in 0..200 {
        let all = stanzas_of(&random_tree(seed, 150, METHODS));
        for callee in &all {
            for arc in callee.parents.iter().filter(|arc| arc.method.is_some()) {
                let caller = all.iter().find(|stanza| Some(stanza.method) == arc.method).expect("has a stanza");
                let same = caller.children.iter().find(|child| child.method == Some(callee.method)).expect("is there");
                assert_eq!((same.amounts.calls, same.amounts.self_ns), (arc.amounts.calls, arc.amounts.self_ns));
            }
        }
    }
}

/// From (parent, method, calls, self time).
fn tree(rows: &[(Option<usize>, usize, u64, u64)]) -> Tree {
    let node = |&(parent, method, calls, self_ns): &(Option<usize>, usize, u64, u64)| Node {
        parent: parent.map(NodeIndex),
        calls,
        self_ns,
        total_ns: self_ns,
        ..Node::empty(MethodIndex(method))
    };
    let mut tree = Tree::of(rows.iter().map(node).collect());
    for index in (0..tree.nodes.len()).rev() {
        let Node { parent, total_ns, .. } = tree.nodes[index];
        if let Some(parent) = parent {
            tree.nodes[parent.0].total_ns += total_ns;
        }
    }
    tree
}

/// (method, calls, base, cum), sorted.
fn rows(arcs: &[Arc]) -> Vec<(Option<usize>, u64, u64, u64)> {
    let row = |arc: &Arc| {
        let Amounts { calls, self_ns, total_ns, .. } = arc.amounts;
        (arc.method.map(|method| method.0), calls, self_ns, total_ns)
    };
    let mut rows: Vec<_> = arcs.iter().map(row).collect();
    rows.sort_unstable();
    rows
}

#[test]
fn the_papers_example() {
    // Table 3. 0 Main, 1 A, 2 B, 3 C, 4 X; its E, F and G are one method here, 5.
    let tree = tree(&[
        (None, 0, 1, 0),
        (Some(0), 1, 1, 1),
        (Some(1), 2, 2, 2),
        (Some(2), 3, 1, 1),
        (Some(0), 2, 1, 1),
        (Some(4), 1, 1, 1),
        (Some(5), 3, 1, 1),
        (Some(5), 4, 1, 0),
        (Some(7), 5, 3, 3),
    ]);
    let stanzas = stanzas_of(&tree);
    // B is responsible for 60 per cent of the consumption, A for 40.
    assert_eq!(rows(&stanzas[0].children), [(Some(1), 1, 1, 4), (Some(2), 1, 1, 6)]);
    assert_eq!(rows(&stanzas[0].parents), [(None, 1, 0, 10)]);
    // A: called by Main and by B; calls B, C and X.
    assert_eq!(rows(&stanzas[1].parents), [(Some(0), 1, 1, 4), (Some(2), 1, 1, 5)]);
    assert_eq!(rows(&stanzas[1].children), [(Some(2), 2, 2, 3), (Some(3), 1, 1, 1), (Some(4), 1, 0, 3)]);
    // X does nothing itself and stands for 30 per cent.
    assert_eq!((stanzas[4].own.self_ns, stanzas[4].own.total_ns), (0, 3));
}

#[test]
fn a_method_that_calls_itself_has_its_time_once() {
    // 0 calls itself twice; at the bottom it calls 1.
    let tree = tree(&[(None, 0, 1, 10), (Some(0), 0, 1, 20), (Some(1), 0, 1, 30), (Some(2), 1, 5, 40)]);
    let stanzas = stanzas_of(&tree);
    assert_eq!((stanzas[0].own.calls, stanzas[0].own.self_ns, stanzas[0].own.total_ns), (3, 60, 100));
    assert_eq!(rows(&stanzas[0].parents), [(None, 1, 10, 100), (Some(0), 2, 50, 0)]);
    assert_eq!(rows(&stanzas[0].children), [(Some(0), 2, 50, 0), (Some(1), 5, 40, 40)]);
}

#[test]
fn in_a_circle_a_child_has_what_passed_before_the_method_was_entered_again() {
    // 0 → 1 → 0 → 1
    let tree = tree(&[(None, 0, 1, 1), (Some(0), 1, 1, 10), (Some(1), 0, 1, 100), (Some(2), 1, 1, 1_000)]);
    let stanzas = stanzas_of(&tree);
    assert_eq!(rows(&stanzas[0].children), [(Some(1), 2, 1_010, 1_010)], "cum less base is 1,111 - 101");
    assert_eq!(rows(&stanzas[1].parents), [(Some(0), 2, 1_010, 1_110)], "cum is that of the outer call of 1");
    assert_eq!(rows(&stanzas[1].children), [(Some(0), 1, 100, 100)]);
}

#[test]
fn methods_of_the_same_name_are_one() {
    let tree = tree(&[(None, 0, 1, 1), (Some(0), 1, 1, 10)]);
    let mut profile = profile_of(tree.clone(), Vec::new(), 2);
    profile.methods[1] = profile.methods[0].clone();
    let stanzas = stanzas(&profile, &tree);
    assert_eq!(stanzas.len(), 1);
    assert_eq!((stanzas[0].own.calls, stanzas[0].own.self_ns, stanzas[0].own.total_ns), (2, 11, 11));
}
