//! What is counted beside calls, as metrics.

use std::time::Duration;

use headwater_protocol::word::{Counter, Counting, PauseReason};

use super::history::History;
use super::named::Things;
use crate::cct::{Cct, NodeId};
use crate::decode::Decoder;
use crate::profile::{
    ALLOCATED, Column, CpuSamples, Extent, MethodIndex, Metric, Node, OPEN_CALLS, OTHER_WAITS, READY, RUNNING, STOPPED,
    Tree, Unit, Wait,
};

// Ids of metrics.
pub(super) const OBJECTS: &str = "objects";
pub(super) const OBJECT_BYTES: &str = "object-bytes";

/// Whether a profile may have a metric of this id.
pub(crate) fn is_known(id: &str) -> bool {
    const OTHERS: [&str; 6] = ["wall", "cpu", "thrown", RUNNING, READY, OTHER_WAITS];
    OTHERS.contains(&id) || Counter::ALL.iter().any(|counter| metric(*counter).id == id)
}

/// A counter's metric.
fn metric(counter: Counter) -> Metric {
    let time = |id, title, about| Metric::counted(id, title, Unit::Nanoseconds, Extent::OwnAndTotal, about);
    let times = |id, title, about| Metric::counted(id, title, Unit::Count, Extent::OwnAndTotal, about);
    match counter {
        Counter::Classes => times(
            "classes",
            "classes linked",
            "Classes that were linked while the method, or what it calls that is not instrumented, ran: each is a line of its own below it.",
        ),
        Counter::Loaded => times(
            "loads",
            "classes loaded",
            "Classes that were loaded while the method, or what it calls that is not instrumented, ran: each is a line of its own below it.",
        ),
        Counter::LoadingNs => time(
            "loading",
            "time in class loaders",
            "Time in ClassLoader.loadClass, as the JVM and programs call it, as measured; what the boot loader takes by itself is not in it.",
        ),
        Counter::Exceptions => times(
            "exceptions",
            "exceptions made or thrown",
            "Exceptions that the method, or what it calls that is not instrumented, made, or threw though they were made elsewhere or ahead; \
             also those that were caught below. Each class is a line of its own below the method.",
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
        Counter::ParkedNs => time(
            "parked",
            "time parked",
            "Time in which threads were parked, as what java.util.concurrent waits with does (locks, queues, futures); it is a part of wall time.",
        ),
        Counter::Parked => times("parks", "parks", "How often threads parked."),
        Counter::SleptNs => {
            time("slept", "time asleep", "Time that threads spent in Thread.sleep; it is a part of wall time.")
        }
        Counter::Slept => times("sleeps", "sleeps", "How often threads slept."),
        Counter::SocketNs => time(
            "socket",
            "time in sockets",
            "Time in the JDK's methods that read from sockets, write to them, accept, connect and select; it is a part of wall time.",
        ),
        Counter::Socket => times("socket-calls", "calls of sockets", "How often such a method was called."),
        Counter::FileNs => time(
            "file",
            "time in files",
            "Time in the JDK's methods that read and write files and pipes; it is a part of wall time.",
        ),
        Counter::File => times("file-calls", "calls of files", "How often such a method was called."),
        Counter::Bytecodes => Metric::counted(
            "bytecodes",
            "bytecodes executed",
            Unit::Bytecodes,
            Extent::OwnAndTotal,
            "Instructions of the instrumented methods' class files that were executed, in calls that have ended. What is not instrumented \
             counts nowhere.",
        ),
        Counter::Allocated => Metric::counted(
            ALLOCATED,
            "allocated",
            Unit::Bytes,
            Extent::OwnAndTotal,
            "Bytes of the heap that the method, or what it calls that is not instrumented, has allocated, as the JVM accounts for them: with \
             what the JVM allocates for itself on the thread (string constants, some KB a class), without what the profile does.",
        ),
        Counter::Objects => times(
            OBJECTS,
            "objects made",
            "Objects and arrays that the code of instrumented methods makes, whether the JIT compiler has them allocated or not: those of a class and line \
             are a line of their own below the method.",
        ),
        Counter::ObjectBytes => Metric::counted(
            OBJECT_BYTES,
            "bytes of objects made",
            Unit::Bytes,
            Extent::OwnAndTotal,
            "How large these objects are, by the JVM's own account, headers and alignment included.",
        ),
        Counter::Instructions => times(
            "instructions",
            "instructions",
            "Instructions that the processor executed in user mode while the method, or what it calls that is not instrumented, ran, by the kernel's \
             counters: with what the JVM does on the thread, less what reading the counters takes.",
        ),
        Counter::Cycles => times(
            "cycles",
            "cycles",
            "The processor's cycles in user mode while the method, or what it calls that is not instrumented, ran, by the kernel's counters, less what \
             reading the counters takes.",
        ),
        Counter::PageFaults => times(
            "page-faults",
            "page faults",
            "Page faults while the method, or what it calls that is not instrumented, ran, and in the kernel on its behalf, by the kernel's account.",
        ),
        Counter::ContextSwitches => times(
            "context-switches",
            "context switches",
            "How often the thread left its processor while the method, or what it calls that is not instrumented, was on top, by the kernel's counters: \
             because it waited, or for another thread.",
        ),
        Counter::CollectedNs => time(
            "gc",
            "time in gc",
            "Time in which the JVM was stopped for garbage collections while the method was on top of its thread's stack, whether \
             that ran or waited; it is a part of wall time.",
        ),
        Counter::StoppedNs => time(
            STOPPED,
            "time stopped by gc",
            "Time in which the JVM was stopped for garbage collections while the method was on top and waited for nothing that is told of; it is a part of \
             wall time.",
        ),
        Counter::Collected => times(
            "collections",
            "collections",
            "How often the JVM was stopped for a garbage collection, or a part of one, while the method was on top of its thread's stack.",
        ),
    }
}

fn counted(what: Counting) -> impl Iterator<Item = Counter> {
    Counter::ALL.into_iter().filter(move |counter| what.has(*counter))
}

/// The metrics of what was counted in a recording of that length, and of what follows from it.
pub(super) fn metrics(history: &History, duration: Duration, queued: Option<f64>) -> Vec<Metric> {
    let what = history.ever();
    let counted = counted(what).map(|counter| {
        let spans = history.spans(duration, |what| what.has(counter));
        metric(counter).during(spans.unwrap_or_default())
    });
    let initialising = what.classes.then(initialising);
    let unwaited = are_rests_known(history).then(|| unwaited(queued));
    counted.chain(initialising).chain(unwaited.into_iter().flatten()).collect()
}

/// Whether it is known what waits leave of self times: they were counted all the time.
fn are_rests_known(history: &History) -> bool {
    history.always().probed_waits
}

/// Time in static initialisers.
fn initialising() -> Metric {
    let about = "Time in static initialisers (<clinit>) and what they call, as far as these are instrumented; it is a part of wall time.";
    Metric::counted("initialising", "time initialising classes", Unit::Nanoseconds, Extent::OwnAndTotal, about)
        .uncertain()
}

/// What is left of self times when all waits are known that something tells of, and how much of that the operating system says threads stood in line.
fn unwaited(queued: Option<f64>) -> impl Iterator<Item = Metric> {
    let time = |id, title, about| Metric::counted(id, title, Unit::Nanoseconds, Extent::OwnAndTotal, about).uncertain();
    let ready = time(
        READY,
        "time ready",
        "Self time in which the thread could have run, and had no processor: as much of what was no wait as the operating system says of all threads in the \
         roots, the same part in each method.",
    );
    let [running, others] = [
        time(
            RUNNING,
            "time running",
            "Self time that was no wait, as far as is known: what events, samples of waiting and the operating system leave of it.",
        ),
        time(
            OTHER_WAITS,
            "time in other waits",
            "Self time in which threads were seen waiting, by samples of their states, and nothing tells in what: native code, locks of the JVM's \
             own, page faults.",
        ),
    ];
    std::iter::once(running).chain(queued.map(|_| ready)).chain([others])
}

/// Gives a tree the columns of what was counted in it, and nodes for what was counted by names. Its nodes are those of `cct` but for the top, in the
/// same order.
pub(super) fn count(tree: &mut Tree, cct: &Cct, history: &History, queued: Option<f64>, things: &mut Things<'_>) {
    let what = history.ever();
    let named = things.hang(tree, cct);
    let column = |counter| {
        let count = |id| if counter == Counter::StoppedNs { stopped_ns(cct, id) } else { cct.count(id, counter) };
        let mut own: Vec<(u64, u64)> = cct.nodes().skip(1).map(|(id, _)| (count(id), 0)).collect();
        own.resize(tree.nodes.len(), (0, 0));
        named.iter().filter(|it| it.counter == counter).for_each(|it| own[it.node].0 += it.times);
        Column::of(&tree.nodes, own)
    };
    let mut columns: Vec<Column> = counted(what).map(column).collect();
    if what.classes {
        columns.push(initialisers(tree, |method| things.is_initialiser(method)));
    }
    if are_rests_known(history) {
        let rests = cct.nodes().skip(1).zip(&tree.nodes).map(|((id, _), node)| Rest::of(node, waited_ns(cct, id)));
        let (unwaited, others) = rests.map(|rest| (rest.running, rest.others)).unzip::<_, _, Vec<_>, Vec<_>>();
        let (running, ready): (Vec<_>, Vec<_>) =
            unwaited.into_iter().map(|unwaited| in_line(unwaited, queued.unwrap_or(0.0))).unzip();
        let ready = queued.map(|_| Column::of_time(&tree.nodes, ready));
        columns.push(Column::of_time(&tree.nodes, running));
        columns.extend(ready.into_iter().chain([Column::of_time(&tree.nodes, others)]));
    }
    tree.counted = columns;
}

/// What a time that was no wait has of running and of standing in line, each with its uncertainty, if such a part of all of it was standing in line: a method may
/// have had another part.
fn in_line((ns, error_ns): (u64, u64), queued: f64) -> ((u64, u64), (u64, u64)) {
    let queued = queued.clamp(0.0, 1.0);
    let ready_ns = ((queued * ns as f64).round() as u64).min(ns);
    let of_another = queued * (1.0 - queued) * ns as f64;
    let error = |part: f64| (part * error_ns as f64).hypot(of_another).round() as u64;
    ((ns - ready_ns, error(1.0 - queued)), (ready_ns, error(queued)))
}

/// The self times in static initialisers, and in what they call.
fn initialisers(tree: &Tree, is_initialiser: impl Fn(MethodIndex) -> bool) -> Column {
    let mut is_inside: Vec<bool> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        // Parents come before their children.
        is_inside.push(is_initialiser(node.method) || node.caller().is_some_and(|caller| is_inside[caller.0]));
    }
    let own = |(node, is_inside): (&Node, bool)| if is_inside { (node.self_ns, node.error_ns) } else { (0, 0) };
    Column::of_time(&tree.nodes, tree.nodes.iter().zip(is_inside).map(own))
}

/// How much of a node's time is known to have been waited, or stopped.
fn waited_ns(cct: &Cct, id: NodeId) -> u64 {
    let waited = |sum: u64, counter| sum.saturating_add(cct.count(id, counter));
    Counter::WAITS.into_iter().fold(stopped_ns(cct, id), waited)
}

/// How long it was stopped and did not wait. Of waits for monitors it is known only when they have ended: as far as there are any, it was in one.
fn stopped_ns(cct: &Cct, id: NodeId) -> u64 {
    let monitors = [Counter::BlockedNs, Counter::WaitedNs].map(|counter| cct.count(id, counter));
    monitors.into_iter().fold(cct.count(id, Counter::StoppedNs), u64::saturating_sub)
}

/// What is left of a node's self time, with its uncertainty.
struct Rest {
    running: (u64, u64),
    others: (u64, u64),
}

impl Rest {
    /// Where threads were seen waiting for clearly longer than is told, the difference is other waits.
    fn of(node: &Node, waited_ns: u64) -> Rest {
        /// What samples say counts from so many standard deviations on.
        const CLEARLY: f64 = 2.0;
        let rest_ns = node.self_ns.saturating_sub(waited_ns);
        let unseen = Rest { running: (rest_ns, node.error_ns.min(rest_ns)), others: (0, 0) };
        if node.cpu.samples < CpuSamples::ENOUGH {
            return unseen;
        }
        // As if it had been seen once more, half running: what was never seen may be.
        let samples = f64::from(node.cpu.samples) + 1.0;
        let share = (f64::from(node.cpu.running) + 0.5) / samples;
        let self_ns = node.self_ns as f64;
        let deviation = self_ns * (share * (1.0 - share) / samples).sqrt();
        let others = (1.0 - share) * self_ns - waited_ns as f64;
        if others <= CLEARLY * deviation {
            return unseen;
        }
        let others_ns = (others.round() as u64).min(rest_ns);
        let error_ns = deviation.round() as u64;
        Rest { running: (rest_ns - others_ns, node.error_ns.saturating_add(error_ns)), others: (others_ns, error_ns) }
    }
}

/// What threads were held up for on our account.
pub(super) fn waits(decoder: &Decoder) -> Vec<Wait> {
    let described = |reason| match reason {
        PauseReason::Hotswap => "hotswap",
        PauseReason::Buffer => "buffer",
        PauseReason::ClassLoad => "class load",
        PauseReason::OpenCalls => OPEN_CALLS,
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
