//! Work that is handed from thread to thread (`--follow threads`).
//!
//! The JDK has a few places at which a task passes from the thread that wants it done to the one that does it. These are
//! probed: where it is handed over, the task tells the runtime that it was, and where it is run, that it is. What the task
//! itself calls is found as for any call back from the JDK (see [`callbacks`](super::callbacks)).
//!
//! Why so, and at what cost: docs/decisions/work-for-other-threads.md.

use headwater_protocol::{ClassId, LoaderId};
use headwater_rewriter::{ClassFile, Method, ProbeSite, call_sites};
use headwater_runtime_java::handover::{ANYWHERE, NEXT, OWN, RAN, REJECTED, STAGE, START, TASK};

use super::known::{Known, Rewritten};
use super::methods::Methods;
use super::mirror::ClassKey;
use super::plan::Plan;

/// What happens in a method.
#[derive(Clone, Copy, Debug)]
enum Passing {
    /// Its receiver is handed over in this way.
    Receiver(u32),
    /// The parameter of this type is handed over in this way.
    Parameter(&'static str, u32),
    /// Its receiver is run in this way.
    Run(u32),
    /// Its receiver is a thread, which runs what is in a `Runnable` parameter: its own work.
    Own,
    /// What it calls `Runnable.run` on is run.
    RunCall,
}

const POOL: &str = "java/util/concurrent/ThreadPoolExecutor";
const SCHEDULED: &str = "java/util/concurrent/ScheduledThreadPoolExecutor";
const FORK_JOIN_POOL: &str = "java/util/concurrent/ForkJoinPool";
const FORK_JOIN_TASK: &str = "java/util/concurrent/ForkJoinTask";
const FUTURE: &str = "java/util/concurrent/CompletableFuture";
const VIRTUAL: &str = "java/lang/VirtualThread";
const RUNNABLE: &str = "Ljava/lang/Runnable;";
const LATER: &str = "Ljava/util/concurrent/RunnableScheduledFuture;";
const FORKED: &str = "Ljava/util/concurrent/ForkJoinTask;";
const DELAYED: &str = "Ljava/util/concurrent/DelayScheduler$ScheduledForkJoinTask;";
const AFTER_ONE: &str = "Ljava/util/concurrent/CompletableFuture$Completion;";
const AFTER_TWO: &str = "Ljava/util/concurrent/CompletableFuture$BiCompletion;";

/// Class, method, and what happens there. Of several methods the first that the class has counts: the next is what leads there, or what
/// an older JDK has instead.
const PLACES: [(&str, &[&str], Passing); 18] = [
    ("java/lang/Thread", &["start"], Passing::Receiver(START)),
    (VIRTUAL, &["start"], Passing::Receiver(START)),
    (VIRTUAL, &["run"], Passing::Own),
    (POOL, &["execute"], Passing::Parameter(RUNNABLE, TASK)),
    (POOL, &["reject"], Passing::Parameter(RUNNABLE, REJECTED)),
    // Threads of a pool may be in its loop already, whose code on their stacks stays as it is; so what the loop calls is probed as well.
    // That may be overridden, the loop is not.
    (POOL, &["runWorker"], Passing::RunCall),
    (POOL, &["beforeExecute"], Passing::Parameter(RUNNABLE, NEXT)),
    (POOL, &["afterExecute"], Passing::Parameter(RUNNABLE, RAN)),
    (SCHEDULED, &["delayedExecute"], Passing::Parameter(LATER, TASK)),
    (SCHEDULED, &["reExecutePeriodic"], Passing::Parameter(LATER, TASK)),
    (FORK_JOIN_TASK, &["fork"], Passing::Receiver(TASK)),
    (FORK_JOIN_TASK, &["doExec"], Passing::Run(0)),
    (FORK_JOIN_POOL, &["poolSubmit", "externalSubmit"], Passing::Parameter(FORKED, TASK)),
    (FORK_JOIN_POOL, &["scheduleDelayedTask"], Passing::Parameter(DELAYED, STAGE)),
    ("java/util/concurrent/CompletableFuture$Completion", &["run"], Passing::Run(ANYWHERE)),
    (FUTURE, &["unipush"], Passing::Parameter(AFTER_ONE, STAGE)),
    (FUTURE, &["bipush"], Passing::Parameter(AFTER_TWO, STAGE)),
    (FUTURE, &["orpush"], Passing::Parameter(AFTER_TWO, STAGE)),
];

/// A place at which work passes from thread to thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Passage {
    /// Of the method, in the class file's order.
    pub method_index: usize,
    /// An argument, or what is around the work.
    pub place: ProbeSite,
    /// How the argument is handed over, as the probe wants it.
    pub kind: u32,
}

impl Plan {
    /// Has the JDK's classes probed in which work passes from thread to thread, and those that tell of more, if the user wants to know.
    pub(super) fn probe_passages(&mut self, known: &Known) {
        let passages = PLACES.iter().map(|(class, ..)| *class).filter(|_| known.options.follow_threads);
        for class in passages.chain(known.telling()) {
            for key in known.mirrors.visible(class, LoaderId::BOOT) {
                if known.mirrors.get(key).linked && self.passed.insert(key) {
                    self.to_hotswap.insert(key);
                }
            }
        }
    }

    /// Whether such a class is being loaded, or has its turn: one that is being retransformed on somebody else's account stays as it was until then.
    pub(super) fn is_passing(&self, known: &Known, class: Option<ClassId>) -> bool {
        class.is_none_or(|class| known.mirrors.by_id(class).is_some_and(|key| self.passed.contains(&key)))
    }

    /// The classes that were probed so.
    pub(super) fn passed(&self) -> impl Iterator<Item = ClassKey> {
        self.passed.iter().copied()
    }

    /// The passages in a class file that are to be probed.
    pub(super) fn passages(&self, known: &Known, rewritten: Rewritten<'_>) -> Vec<Passage> {
        let Rewritten { class, loader, name, file } = rewritten;
        let wanted = known.options.follow_threads && !known.roots_only && loader == LoaderId::BOOT;
        if !wanted || !PLACES.iter().any(|(owner, ..)| *owner == name) || !self.is_passing(known, class) {
            return Vec::new();
        }
        let places = PLACES.iter().filter(|(owner, ..)| *owner == name);
        places.flat_map(|(_, methods, passing)| passages_in(file, methods, *passing)).collect()
    }
}

impl Methods {
    /// A passage cannot be probed.
    pub(super) fn passage_refused(&mut self, class: &str, reason: &str) {
        let reason = format!("what it hands to other threads is not followed: {reason}");
        self.skip(class.replace('/', "."), reason);
    }
}

fn passages_in(file: &ClassFile<'_>, names: &[&str], passing: Passing) -> Vec<Passage> {
    let named = |name: &str| -> Vec<Passage> {
        let methods = file.methods().iter().filter(|method| method.has_code() && *method.name() == *name);
        methods.flat_map(|method| passages_of(file, method, passing)).collect()
    };
    names.iter().map(|name| named(name)).find(|passages| !passages.is_empty()).unwrap_or_default()
}

fn passages_of(file: &ClassFile<'_>, method: &Method<'_>, passing: Passing) -> Vec<Passage> {
    let method_index = method.index;
    let passage = |place, kind| Passage { method_index, place, kind };
    match passing {
        Passing::Receiver(kind) => vec![passage(ProbeSite::Argument { local: 0 }, kind)],
        Passing::Run(kind) => vec![passage(ProbeSite::Around { call: None, local: 0 }, kind)],
        Passing::Own => {
            let own = parameter(&method.descriptor(), RUNNABLE);
            own.map(|_| passage(ProbeSite::Around { call: None, local: 0 }, OWN)).into_iter().collect()
        }
        Passing::Parameter(wanted, kind) => {
            let local = parameter(&method.descriptor(), wanted);
            local.map(|local| passage(ProbeSite::Argument { local }, kind)).into_iter().collect()
        }
        Passing::RunCall => {
            let Ok(sites) = call_sites(file, method_index) else { return Vec::new() };
            let Ok(Some(code)) = file.code(method) else { return Vec::new() };
            let runs = sites.calls.iter().filter(|call| &*call.owner == "java/lang/Runnable" && &*call.name == "run");
            let places = runs.filter_map(|call| {
                let local = code.loaded_before(call.offset)?;
                Some(ProbeSite::Around { call: Some(call.offset), local })
            });
            places.map(|place| passage(place, 0)).collect()
        }
    }
}

/// The local variable in which an instance method gets the parameter of a type.
fn parameter(descriptor: &str, wanted: &str) -> Option<u16> {
    let mut rest = descriptor.strip_prefix('(')?;
    let mut local = 1;
    while !rest.starts_with(')') {
        let dimensions = rest.find(|c| c != '[')?;
        let element = &rest[dimensions..];
        let length = dimensions + if element.starts_with('L') { element.find(';')? + 1 } else { 1 };
        let (parameter, behind) = rest.split_at_checked(length)?;
        if parameter == wanted {
            return Some(local);
        }
        local += if matches!(parameter, "J" | "D") { 2 } else { 1 };
        rest = behind;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_counted_in_words() {
        assert_eq!(parameter("(ZJ[Ljava/lang/Runnable;[[DLjava/lang/Runnable;I)V", RUNNABLE), Some(6));
        assert_eq!(parameter("(Ljava/lang/Runnable;)V", RUNNABLE), Some(1));
        assert_eq!(parameter("(I)Ljava/lang/Runnable;", RUNNABLE), None);
    }
}
