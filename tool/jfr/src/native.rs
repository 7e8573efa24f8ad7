//! Samples of threads in native code, beside those of threads in Java code.
//!
//! In each period the recorder looks at up to five threads in Java code, and at one in native code: at the next one each time. Of n threads there each is seen
//! in every n-th period, so each of its samples stands for n. How many there are is seen from the thread that was seen most often, once in each round.
//!
//! Most of them wait there for a socket or a process: these samples say nothing of where threads run.

use headwater_terms::waiting;
use rustc_hash::FxHashMap;

use crate::{EventKind, Recorded, RecordedEvent, ThreadIndex};

/// Of more threads, each has less than its part.
const MOST: usize = 16;

/// Has samples in native code stand for as much as others do, and leaves out those of threads that wait.
pub(super) fn weigh(recorded: &mut Recorded) {
    let is_native = |event: &RecordedEvent| event.kind == EventKind::NativeMethodSample;
    let mut seen: FxHashMap<ThreadIndex, usize> = FxHashMap::default();
    recorded
        .events
        .iter()
        .filter(|event| is_native(event))
        .for_each(|event| *seen.entry(event.thread).or_default() += 1);
    let (all, most) = (seen.values().sum::<usize>(), seen.values().max().copied().unwrap_or(1));
    let stands_for = ((all + most / 2) / most).clamp(1, MOST);
    let Recorded { events, methods, stacks, .. } = recorded;
    let waits = |event: &RecordedEvent| {
        let innermost = stacks[event.stack.0 as usize].frames.last().map(|frame| methods[frame.0 as usize].as_str());
        let name = innermost.and_then(|method| method.split('(').next());
        name.is_none_or(waiting::waits)
    };
    let each = |event: RecordedEvent| match is_native(&event) {
        true => std::iter::repeat_n(event, if waits(&event) { 0 } else { stands_for }),
        false => std::iter::repeat_n(event, 1),
    };
    *events = std::mem::take(events).into_iter().flat_map(each).collect();
}
