//! Where in this process the event buffer is.
//!
//! A range of addresses that a buffer was at stays reserved when its session is over: a thread that was in the middle of a probe then writes there
//! once more. The next session's buffer goes to the same place, so that a JVM which is profiled again and again does not run out of addresses; but not
//! as long as a thread is seen in a probe, which may be that one.
//!
//! There is one buffer at a time in a JVM, whichever build's agent has mapped it: the runtime's classes know of one.

use std::collections::HashMap;
use std::fs::File;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use headwater_protocol::layout;
use headwater_protocol::segment::{Range, Segment, SegmentError};
use jni::sys::jmethodID;

use crate::jni_env::Jni;
use crate::jvmti::{Error, Jvmti};
use crate::runtime::is_own;

/// Calls on a stack that are looked at: a probe is among the innermost.
const DEPTH: usize = 32;

static RESERVED: Mutex<Vec<Range>> = Mutex::new(Vec::new());
/// Segments that this agent has mapped.
static OWN: AtomicUsize = AtomicUsize::new(0);

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
    let segment = Segment::open_in(file, range)?;
    OWN.fetch_add(1, Ordering::AcqRel);
    Ok(segment)
}

/// Cuts a segment off from the tool; the runtime may go on to write into it.
pub fn give_up(segment: Segment) {
    // When even this fails the pages stay shared with a tool that no longer reads them.
    if let Ok(range) = segment.abandon() {
        OWN.fetch_sub(1, Ordering::AcqRel);
        reserved().push(range);
    }
}

/// Whether no other build's agent has a segment here, or none any more within `patience`. For whoever opens the next: nobody else opens one meanwhile.
pub fn are_free_of_others(patience: Duration) -> bool {
    const NAP: Duration = Duration::from_millis(5);
    let deadline = Instant::now() + patience;
    loop {
        // One that goes in between is among those that are counted here.
        let own = OWN.load(Ordering::Acquire);
        // What the kernel does not tell is no reason to refuse anybody.
        if std::fs::read_to_string("/proc/self/maps").map_or(0, |maps| segments_in(&maps)) <= own {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(NAP);
    }
}

/// How many segments are mapped, by the kernel's list. What is no longer than [their first page](headwater_protocol::pulse::Pulse) is none.
fn segments_in(maps: &str) -> usize {
    let is_segment = |line: &&str| {
        let mut fields = line.splitn(6, ' ');
        let range = fields.next().and_then(|range| range.split_once('-'));
        let name = fields.last().unwrap_or_default().trim_start();
        let address = |text| usize::from_str_radix(text, 16).ok();
        let len = range.and_then(|(from, to)| address(to)?.checked_sub(address(from)?));
        name.starts_with(layout::MAPPED_AS) && len.is_some_and(|len| len > layout::FLAGS)
    };
    maps.lines().filter(is_segment).count()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_found_in_the_kernels_list() {
        let maps = "\
7f8a38c00000-7f8a3cc01000 rw-s 00000000 00:01 2049                       /memfd:headwater (deleted)
7f8a40000000-7f8a40001000 rw-s 00000000 00:01 2049                       /memfd:headwater (deleted)
7f8a41000000-7f8a42000000 rw-s 00000000 00:01 2050                       /memfd:other (deleted)
7f8a43000000-7f8a44000000 rw-p 00000000 00:00 0
";
        assert_eq!(segments_in(maps), 1, "the second is the pulse, the last one was given up");
    }
}
