//! What is counted beside calls, as metrics.

use headwater_protocol::word::{Counter, Counting};

use crate::cct::Cct;
use crate::profile::{Column, Extent, Metric, Tree, Unit};

/// A counter's metric.
fn metric(counter: Counter) -> Metric {
    let time = |id, title, about| Metric::counted(id, title, Unit::Nanoseconds, Extent::OwnAndTotal, about);
    let times = |id, title, about| Metric::counted(id, title, Unit::Count, Extent::OwnAndTotal, about);
    match counter {
        Counter::Classes => times(
            "classes",
            "classes loaded",
            "Classes that were linked while the method, or what it calls that is not instrumented, ran.",
        ),
        Counter::BlockedNs => time(
            "blocked",
            "time blocked",
            "Time in which threads waited to enter monitors that others had, as measured; it is a part of wall time.",
        ),
        Counter::Blocked => {
            times("blocks", "monitors waited for", "How often a monitor was entered after waiting for it.")
        }
        Counter::WaitedNs => time(
            "waited",
            "time in wait",
            "Time that threads spent in Object.wait, as measured; it is a part of wall time.",
        ),
        Counter::Waited => times("waits", "waits", "How often Object.wait waited."),
        Counter::Bytecodes => Metric::counted(
            "bytecodes",
            "bytecodes executed",
            Unit::Bytecodes,
            Extent::OwnAndTotal,
            "Instructions of the instrumented methods' class files that were executed, in calls that have ended. What is not instrumented \
             counts nowhere.",
        ),
    }
}

fn counted(what: Counting) -> impl Iterator<Item = Counter> {
    Counter::ALL.into_iter().filter(move |counter| what.has(*counter))
}

/// The metrics of what is counted.
pub(super) fn metrics(what: Counting) -> Vec<Metric> {
    counted(what).map(metric).collect()
}

/// Gives a tree the columns of what was counted in it. Its nodes are those of `cct` but for the top, in the same order.
pub(super) fn count(tree: &mut Tree, cct: &Cct, what: Counting) {
    let column = |counter| Column::of(&tree.nodes, cct.nodes().skip(1).map(|(id, _)| (cct.count(id, counter), 0)));
    tree.counted = counted(what).map(column).collect();
}
