//! Where in this process the event buffer is.
//!
//! A range of addresses that a buffer was at stays reserved when its session is over: a thread that was in the middle of a probe then writes there
//! once more. The next session's buffer goes to the same place, so that a JVM which is profiled again and again does not run out of addresses; but not
//! as long as a thread is seen in a probe, which may be that one.

use std::collections::HashMap;
use std::fs::File;
use std::sync::{Mutex, MutexGuard, PoisonError};

use headwater_protocol::segment::{Range, Segment, SegmentError};
use jni::sys::jmethodID;

use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};
use crate::runtime::is_own;

/// Calls on a stack that are looked at: a probe is among the innermost.
const DEPTH: usize = 32;

static RESERVED: Mutex<Vec<Range>> = Mutex::new(Vec::new());

fn reserved() -> MutexGuard<'static, Vec<Range>> {
    RESERVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Maps the segment that the tool has created, where an earlier one was if that can be.
pub fn open(jvmti: Jvmti, jni: Jni, file: &File) -> Result<Segment, SegmentError> {
    let len = Segment::len_of(file)?;
    let has_room = |range: &Range| range.len() >= len;
    let may_be_reused = reserved().iter().any(has_room) && !is_in_probe(jvmti, jni).unwrap_or(true);
    let mut ranges = reserved();
    let at = if may_be_reused { ranges.iter().position(has_room) } else { None };
    let range = at.map(|at| ranges.swap_remove(at));
    drop(ranges);
    Segment::open_in(file, range)
}

/// Cuts a segment off from the tool; the runtime may go on to write into it.
pub fn give_up(segment: Segment) {
    // When even this fails the pages stay shared with a tool that no longer reads them.
    if let Ok(range) = segment.abandon() {
        reserved().push(range);
    }
}

/// Whether any platform thread is in a probe. Of virtual ones the JVM does not tell: one that has been in the same probe since the session before writes
/// a word that does not belong there, which the tool takes for one that was lost.
fn is_in_probe(jvmti: Jvmti, jni: Jni) -> Result<bool, Error> {
    let mut known: HashMap<jmethodID, bool> = HashMap::new();
    let mut is_in_probe = false;
    for (thread, stack) in jvmti.all_stacks(DEPTH)? {
        jni.delete_local(thread);
        is_in_probe |= stack.iter().any(|method| *known.entry(*method).or_insert_with(|| is_own(jvmti, jni, *method)));
    }
    Ok(is_in_probe)
}
