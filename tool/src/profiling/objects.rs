//! What is to be said of the objects that were counted where they are made: of which the size is not known, and which were never allocated.

use super::counters::{OBJECT_BYTES, OBJECTS};
use crate::profile::{ALLOCATED, Amount, Profile};
use crate::report::units::{bytes, plural};

/// What a comparison of two counts may be wrong by, as a part: what threads had made last, and not yet told of as allocated.
const UNTOLD: f64 = 0.01;

/// Says it in the profile.
pub(super) fn describe(profile: &mut Profile) {
    let place = |id: &str| profile.counted.iter().position(|metric| metric.id == id);
    let column = |id: &str| Some(profile.merged.counted.get(place(id)?)?.amounts().to_vec());
    // What was made while nobody counted what is allocated may have been allocated then.
    let spans = |id: &str| place(id).map(|at| &profile.counted[at].spans);
    let is_comparable = spans(OBJECT_BYTES) == spans(ALLOCATED);
    let (Some(objects), Some(sizes)) = (column(OBJECTS), column(OBJECT_BYTES)) else { return };
    let note = column(ALLOCATED).filter(|_| is_comparable).and_then(|allocated| left_out(profile, &sizes, &allocated));
    profile.notes.extend(note);
    let has_no_size = |(objects, size): &(&Amount, &Amount)| objects.own > 0 && size.own == 0;
    let unsized_objects: u64 = objects.iter().zip(&sizes).filter(has_no_size).map(|(objects, _)| objects.own).sum();
    if unsized_objects > 0 {
        let objects = plural(unsized_objects, "object", "objects");
        profile.warnings.push(format!(
            "how large {objects} were is not known: object-bytes is too low. Class files older than Java 5 do not say it"
        ));
    }
}

/// What methods made, and the JVM did not allocate while they ran; what else it allocated then only hides some of that.
fn left_out(profile: &Profile, sizes: &[Amount], allocated: &[Amount]) -> Option<String> {
    let mut made = vec![0_u64; sizes.len()];
    for (node, size) in profile.merged.nodes.iter().zip(sizes) {
        if let Some(maker) = node.parent {
            made[maker.0] = made[maker.0].saturating_add(size.own);
        }
    }
    let all = made.iter().fold(0_u64, |all, made| all.saturating_add(*made));
    let of_nodes = made.iter().zip(allocated).map(|(made, allocated)| made.saturating_sub(allocated.own));
    let left_out = of_nodes.fold(0_u64, u64::saturating_add);
    (left_out as f64 > UNTOLD * all as f64).then(|| {
        format!(
            "of the {} of objects that instrumented methods made, {} at least were never allocated: the JIT compiler found that they do not escape",
            bytes(all),
            bytes(left_out)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::profile_of;
    use crate::profile::{Column, Extent, MethodIndex, Metric, Node, NodeIndex, Span, Tree, Unit};

    /// What is said of a root and a callee that have allocated so much, and have made an object of each of these sizes.
    fn said(allocated: [u64; 2], sizes: [u64; 2]) -> (Vec<String>, Vec<String>) {
        said_of_spans(allocated, sizes, [&[], &[]])
    }

    /// The same where allocated bytes and objects were counted for a part of the time.
    fn said_of_spans(allocated: [u64; 2], sizes: [u64; 2], spans: [&[Span]; 2]) -> (Vec<String>, Vec<String>) {
        let node =
            |method, parent: Option<usize>| Node { parent: parent.map(NodeIndex), ..Node::empty(MethodIndex(method)) };
        let nodes = vec![node(0, None), node(1, Some(0)), node(2, Some(0)), node(3, Some(1))];
        let mut tree = Tree::of(nodes);
        let columns = [[allocated[0], allocated[1], 0, 0], [0, 0, 1, 1], [0, 0, sizes[0], sizes[1]]];
        tree.counted = columns.map(|own| Column::of(&tree.nodes, own.map(|own| (own, 0)))).to_vec();
        let mut profile = profile_of(tree, Vec::new(), 4);
        let metric = |id| Metric::counted(id, "", Unit::Bytes, Extent::OwnAndTotal, "");
        let spans = [spans[0], spans[1], spans[1]].into_iter();
        profile.counted = [ALLOCATED, OBJECTS, OBJECT_BYTES].map(metric).to_vec();
        profile.counted.iter_mut().zip(spans).for_each(|(metric, spans)| metric.spans = spans.to_vec());
        (profile.notes, profile.warnings) = (Vec::new(), Vec::new());
        describe(&mut profile);
        (profile.notes, profile.warnings)
    }

    #[test]
    fn what_a_method_made_beyond_what_was_allocated_never_was() {
        assert_eq!(said([64, 32], [64, 32]), (Vec::new(), Vec::new()));
        assert_eq!(said([9_000, 31], [64, 31]).0, [""; 0], "what the JDK allocates is not told apart");
        let (notes, _) = said([9_000, 1_024], [1_024, 3_072]);
        let expected =
            "of the 4.000 KiB of objects that instrumented methods made, 2.000 KiB at least were never allocated";
        assert!(notes.len() == 1 && notes[0].starts_with(expected), "{notes:?}");
        assert_eq!(said([10_000, 0], [10_000, 50]).0, [""; 0], "it may have been told of no more");
    }

    #[test]
    fn what_was_counted_at_other_times_says_nothing_of_what_was_allocated() {
        let [early, late] = [(0, 5), (5, 9)].map(|(from_ns, to_ns)| [Span { from_ns, to_ns }]);
        let told = |spans| said_of_spans([9_000, 1_024], [1_024, 3_072], spans).0.len();
        for spans in [[&[][..], &late], [&early, &[]], [&early, &late]] {
            assert_eq!(told(spans), 0, "{spans:?}");
        }
        assert_eq!(told([&late, &late]), 1);
    }

    #[test]
    fn objects_without_a_size_are_told_of() {
        let (_, warnings) = said([64, 32], [64, 0]);
        assert!(warnings.len() == 1 && warnings[0].starts_with("how large 1 object were"), "{warnings:?}");
    }
}
