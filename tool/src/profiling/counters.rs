//! What is counted beside calls, as metrics.

use headwater_protocol::collections::Collection;
use headwater_protocol::word::{Counter, Counting, PauseReason};

use crate::cct::Cct;
use crate::decode::Decoder;
use crate::profile::{Collections, Column, Extent, Metric, Pause, Tree, Unit, Wait};

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
        Counter::Allocated => Metric::counted(
            "alloc",
            "allocated",
            Unit::Bytes,
            Extent::OwnAndTotal,
            "Bytes of the heap that the method, or what it calls that is not instrumented, has allocated, as the JVM accounts for them: with \
             what the JVM allocates for itself on the thread (string constants, some KB a class), without what the profile does.",
        ),
        Counter::CollectedNs => time(
            "gc",
            "time in gc",
            "Time in which the JVM stood still for garbage collections while the method was on top of its thread's stack, whether \
             that ran or waited; it is a part of wall time.",
        ),
        Counter::Collected => times(
            "collections",
            "collections",
            "How often the JVM stood still for a garbage collection, or a part of one, while the method was on top of its thread's stack.",
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

/// The collections since recording began.
pub(super) fn collections(decoder: &Decoder, began_ns: i64) -> Collections {
    let (all, lost) = decoder.collections();
    let since = all.iter().filter(|collection| collection.end_ns() > began_ns);
    let pause = |collection: &Collection| Pause {
        start_ns: u64::try_from(collection.start_ns - began_ns).unwrap_or_default(),
        duration_ns: collection.duration_ns,
        cause: collection.cause.clone(),
    };
    Collections { pauses: since.map(pause).collect(), lost }
}

/// What threads were held up for on our account.
pub(super) fn waits(decoder: &Decoder) -> Vec<Wait> {
    let described = |reason| match reason {
        PauseReason::Hotswap => "hotswap",
        PauseReason::Buffer => "buffer",
        PauseReason::ClassLoad => "class load",
        PauseReason::OpenCalls => "open calls",
    };
    PauseReason::ALL
        .into_iter()
        .map(|reason| {
            let total = decoder.pauses(reason);
            Wait { reason: described(reason).into(), count: total.count, duration_ns: total.duration_ns }
        })
        .filter(|wait| wait.count > 0)
        .collect()
}
