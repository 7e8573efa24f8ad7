//! Hotswap: retransforming classes in batches.
//!
//! `RetransformClasses` rather than `RedefineClasses`: its class file hook is handed the class's original bytes (so that no
//! class path is needed, and every instrumentation starts from the original), other agents' transformations stay in
//! place below ours, and a retransformation in which we change nothing gives exactly the original back.
//!
//! Why so, and at what cost: docs/decisions/retransformation.md.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use headwater_protocol::message::HotswapResult;
use headwater_protocol::{ClassId, LoaderId};
use jni::sys::jclass;

use crate::classes::Classes;
use crate::hotspot::stopped;
use crate::initiating::{Asked, Initiating};
use crate::jni_env::Jni;
use crate::jvmti::Jvmti;
use crate::retransformation;

thread_local! {
    /// When this thread's latest class file hook of a retransformation returned.
    static LAST_HOOK: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Classes for which this thread's hooks got no answer.
    static UNANSWERED: RefCell<Vec<ClassId>> = const { RefCell::new(Vec::new()) };
    /// Classes that this thread's hooks have given other code, and that had none before.
    static GIVEN: RefCell<Vec<(LoaderId, String)>> = const { RefCell::new(Vec::new()) };
    /// Those of this thread's retransformation that have had other code, and are given their own back.
    static RESTORED: RefCell<Vec<ClassId>> = const { RefCell::new(Vec::new()) };
    /// Classes that this thread's hooks have the JVM refuse, and why.
    static LEFT_ALONE: RefCell<Vec<(ClassId, String)>> = const { RefCell::new(Vec::new()) };
    /// Instrumented classes that this thread's retransformation, if there is one, gives their own bytes back.
    static GIVEN_BACK: RefCell<Option<Vec<(LoaderId, String)>>> = const { RefCell::new(None) };
}

/// The tool did not say in time what a class that is being retransformed is to become.
pub fn hook_unanswered(class: ClassId) {
    UNANSWERED.with_borrow_mut(|unanswered| unanswered.push(class));
}

/// Whether the current thread is retransforming on our account.
pub fn is_ours() -> bool {
    GIVEN_BACK.with_borrow(Option::is_some)
}

/// Whether a class that the current thread is retransforming has had other code, and is given its own back.
pub fn is_restored(class: ClassId) -> bool {
    RESTORED.with_borrow(|restored| restored.contains(&class))
}

/// A class that is being retransformed on our account is to stay what it is, for this reason: the JVM is about to refuse it.
pub fn hook_leaves_alone(class: ClassId, reason: String) {
    LEFT_ALONE.with_borrow_mut(|left_alone| left_alone.push((class, reason)));
}

/// A class that is being retransformed keeps its own bytes: if the JVM accepts that, nothing is left to be restored in it.
pub fn hook_gave_back(classes: &Classes, loader: LoaderId, name: &str) {
    GIVEN_BACK.with_borrow_mut(|given_back| {
        // Of a retransformation by another agent we would not hear that the JVM refuses it.
        if let Some(given_back) = given_back
            && classes.unmark_instrumented(loader, name)
        {
            given_back.push((loader, name.to_owned()));
        }
    });
}

/// A class that has its own bytes is given other ones: if the JVM refuses them, nothing has to be restored in it.
pub fn hook_gave(loader: LoaderId, name: &str) {
    GIVEN.with_borrow_mut(|given| given.push((loader, name.to_owned())));
}

/// A class file hook of a retransformation returns now.
pub fn hook_done() {
    LAST_HOOK.set(Some(Instant::now()));
    retransformation::progresses();
}

/// How many classes the JVM is given at once when original code is given back, at first.
pub const RESTORE_BATCH: usize = 50;
/// However short the pauses are, and however long.
const LARGEST_RESTORE_BATCH: usize = 200;
const SMALLEST_RESTORE_BATCH: usize = 10;
/// After a longer pause batches are halved; after one of less than half of it, doubled.
const LONG_RESTORE_PAUSE_NS: u64 = 30_000_000;
/// Smaller batches do not help against what each takes, however small: so no pause counts as long that is longer than the shortest by less
/// than a fourth, nor as anything but short by less than an eighth.
const FOURTH: u64 = 4;
const EIGHTH: u64 = 8;

/// Retransforms the classes with these ids in one batch, on the current thread. When HotSpot refuses the batch, it is
/// halved until the culprits stand alone.
pub fn retransform(
    jvmti: Jvmti,
    jni: Jni,
    classes: &Classes,
    initiating: &Initiating,
    ids: &[ClassId],
) -> HotswapResult {
    match classes.find(jni, ids) {
        Ok(found) => {
            let Asked { can: found, cannot } = initiating.ask((jvmti, jni), classes, found);
            let batch: Vec<_> = found
                .into_iter()
                .map(|(class, id)| Retransformed { class, id, counts: true, is_instrumented: false })
                .collect();
            let mut result = run(jvmti, classes, &batch);
            batch.iter().for_each(|it| jni.delete_local(it.class));
            result.refused.extend(cannot);
            result
        }
        Err(error) => HotswapResult {
            refused: ids.iter().map(|id| (*id, error.of_class())).collect(),
            ..HotswapResult::default()
        },
    }
}

/// Retransforms classes by reference, in batches, and with the last of them `same`, which have had no other bytes, and count for nothing. The
/// hooks must change nothing meanwhile.
pub fn restore(jvmti: Jvmti, jni: Jni, classes: &Classes, instrumented: &[jclass], same: &[jclass]) -> HotswapResult {
    let mut total = HotswapResult::default();
    let all: Vec<_> = [(instrumented, true), (same, false)]
        .into_iter()
        .flat_map(|(classes, counts)| classes.iter().map(move |class| (*class, counts)))
        .map(|(class, counts)| Retransformed {
            class,
            id: classes.id(class).unwrap_or(ClassId(0)),
            counts,
            is_instrumented: counts,
        })
        .collect();
    let (mut left, mut size, mut shortest_ns) = (&all[..], RESTORE_BATCH, u64::MAX);
    while !left.is_empty() {
        let (batch, others) = left.split_at(size.min(left.len()));
        left = others;
        let result = run(jvmti, classes, batch);
        batch.iter().for_each(|it| jni.delete_local(it.class));
        shortest_ns = shortest_ns.min(result.pause_ns);
        size = next_restore_batch(size, result.pause_ns, shortest_ns);
        total.add(result);
    }
    total
}

/// How many classes are given back next, after a pause that so many took; `shortest_ns` of all so far.
fn next_restore_batch(size: usize, pause_ns: u64, shortest_ns: u64) -> usize {
    let long_ns = LONG_RESTORE_PAUSE_NS.max(shortest_ns + shortest_ns / FOURTH);
    let short_ns = (LONG_RESTORE_PAUSE_NS / 2).max(shortest_ns + shortest_ns / EIGHTH);
    let size = if pause_ns >= long_ns {
        size / 2
    } else if pause_ns < short_ns {
        size * 2
    } else {
        size
    };
    size.clamp(SMALLEST_RESTORE_BATCH, LARGEST_RESTORE_BATCH)
}

/// A class in a batch.
#[derive(Clone, Copy, Debug)]
struct Retransformed {
    class: jclass,
    id: ClassId,
    /// It is one of those that are given code, or their own back.
    counts: bool,
    /// It has other code than its own for sure.
    is_instrumented: bool,
}

fn run(jvmti: Jvmti, classes: &Classes, batch: &[Retransformed]) -> HotswapResult {
    let mut result = HotswapResult::default();
    let start = Instant::now();
    UNANSWERED.take();
    attempt(jvmti, classes, batch, &mut result);
    result.unanswered = UNANSWERED.take();
    result.total_ns = nanos(start);
    result
}

fn attempt(jvmti: Jvmti, classes: &Classes, batch: &[Retransformed], result: &mut HotswapResult) {
    if batch.is_empty() {
        return;
    }
    let references: Vec<jclass> = batch.iter().map(|it| it.class).collect();
    let (start, stopped) = (Instant::now(), stopped::nanos());
    LAST_HOOK.set(None);
    LEFT_ALONE.take();
    GIVEN.take();
    RESTORED.set(batch.iter().filter(|it| it.is_instrumented).map(|it| it.id).collect());
    GIVEN_BACK.set(Some(Vec::new()));
    let retransformed = retransformation::run(jvmti, &references);
    let given_back = GIVEN_BACK.take().unwrap_or_default();
    RESTORED.take();
    let given = GIVEN.take();
    let left_alone = LEFT_ALONE.take();
    if retransformed.is_err() {
        for (loader, name) in &given_back {
            classes.mark_instrumented(*loader, name, false);
        }
        for (loader, name) in &given {
            classes.unmark_instrumented(*loader, name);
        }
    }
    match retransformed {
        Ok(()) => {
            result.classes += batch.iter().filter(|it| it.counts).count() as u32;
            let since_hook = nanos(LAST_HOOK.get().unwrap_or(start));
            let stopped = stopped.zip(stopped::nanos()).map(|(before, after)| after.saturating_sub(before));
            result.pause_ns = result.pause_ns.max(stopped.map_or(since_hook, |stopped| stopped.min(since_hook)));
        }
        // The JVM asks no further hook once one has returned no class file: there may be more of these.
        Err(_) if !left_alone.is_empty() => {
            let stays = |it: &Retransformed| left_alone.iter().any(|(id, _)| *id == it.id);
            let (staying, others): (Vec<_>, Vec<_>) = batch.iter().copied().partition(stays);
            let reason = |it: &Retransformed| left_alone.iter().find(|(id, _)| *id == it.id).cloned();
            result.refused.extend(staying.iter().filter(|it| it.counts).filter_map(reason));
            // If no class of the batch was meant, this would never end.
            if staying.is_empty() {
                result.refused.extend(others.iter().filter(|it| it.counts).map(|it| (it.id, left_alone[0].1.clone())));
            } else {
                attempt(jvmti, classes, &others, result);
            }
        }
        Err(error) if batch.len() == 1 => {
            result.refused.extend(batch.iter().filter(|it| it.counts).map(|it| (it.id, error.of_class())));
        }
        Err(_) => {
            let (left, right) = batch.split_at(batch.len() / 2);
            attempt(jvmti, classes, left, result);
            attempt(jvmti, classes, right, result);
        }
    }
}

fn nanos(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_pauses_make_smaller_batches_and_short_ones_larger() {
        const MILLISECOND: u64 = 1_000_000;
        assert_eq!(next_restore_batch(50, 35 * MILLISECOND, MILLISECOND), 25);
        assert_eq!(next_restore_batch(50, 20 * MILLISECOND, MILLISECOND), 50);
        assert_eq!(next_restore_batch(50, MILLISECOND, MILLISECOND), 100);
        assert_eq!(next_restore_batch(SMALLEST_RESTORE_BATCH, 500 * MILLISECOND, MILLISECOND), SMALLEST_RESTORE_BATCH);
        assert_eq!(next_restore_batch(LARGEST_RESTORE_BATCH, 0, 0), LARGEST_RESTORE_BATCH);
        assert_eq!(next_restore_batch(50, 60 * MILLISECOND, 55 * MILLISECOND), 100, "any batch takes that here");
        assert_eq!(next_restore_batch(100, 65 * MILLISECOND, 55 * MILLISECOND), 100);
        assert_eq!(next_restore_batch(200, 75 * MILLISECOND, 55 * MILLISECOND), 100);
    }
}
