//! What the kernel counts of threads: instructions, cycles, page faults, context switches. Each thread that tells of them has [its own counters](perf), which
//! are opened at its first event inside the call graph, and closed when it ends or counting does. Probes ask here at each event.
//!
//! Why so, and at what cost: docs/decisions/kernel-counters.md.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::carriers::{self, Mounts};
use crate::hotspot::allocation::Unknown;
use crate::jni_env::Jni;
use crate::jvmti::Jvmti;
use crate::runtime::Runtime;

mod perf;

use perf::{Group, KINDS, Linux, Reading, Refused};

/// Such a part of the files that the target may open is the counters' at most: the others are its own.
const PART: usize = 8;

/// A thread's counters: none once they have been closed. Whoever closes them waits for a reading: the number may be another file's then.
type Shared = Arc<OwnGroup>;
type OwnGroup = Mutex<Option<Group<OwnedFd>>>;

/// What is counted, as a bit for each kind; 0 if nothing is.
static WANTED: AtomicU32 = AtomicU32::new(0);
/// How often counting has begun.
static BEGINNINGS: AtomicU64 = AtomicU64::new(0);
/// What a reading moves each of them by, at least: taken off at each event.
static TAKEN: [AtomicU64; KINDS] = [const { AtomicU64::new(0) }; KINDS];
/// All threads' counters.
static ALL: Mutex<Vec<Weak<OwnGroup>>> = Mutex::new(Vec::new());

thread_local! {
    static MINE: RefCell<Option<Mine>> = const { RefCell::new(None) };
    /// By how much the current thread's have moved: probes read it here.
    static MOVED: [Cell<u64>; KINDS] = const { [const { Cell::new(0) }; KINDS] };
}

/// The current thread's counters, since a beginning.
struct Mine {
    beginning: u64,
    group: Shared,
    latest: Option<Reading>,
    mark: Option<Reading>,
}

/// Whether the kernel lets the agent's thread count these.
pub fn tried(kinds: u32) -> Result<(), String> {
    Group::open(&Linux, kinds).map(drop).map_err(|refused| refused.to_string())
}

/// From now on these, which were [tried], are counted.
pub fn begin((jvmti, jni): (Jvmti, Jni), runtime: &Runtime, mounts: Mounts, kinds: u32) -> Result<(), String> {
    carriers::begin(jvmti, mounts).map_err(|error| Unknown::Mounts(error).to_string())?;
    // What reading takes is not known yet.
    TAKEN.iter().for_each(|taken| taken.store(u64::MAX, Ordering::Relaxed));
    BEGINNINGS.fetch_add(1, Ordering::Relaxed);
    // Release, with the load in `act`: who sees that it is counted sees which beginning that is.
    WANTED.store(kinds, Ordering::Release);
    runtime.count_by_kernel(jni).map_err(|thrown| thrown.to_string())
}

/// They no longer are: all are closed.
pub fn end() {
    WANTED.store(0, Ordering::Release);
    let all = std::mem::take(&mut *ALL.lock().unwrap_or_else(PoisonError::into_inner));
    for group in all.iter().filter_map(Weak::upgrade) {
        *group.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Does what the runtime asks for (`HeadwaterV1Counters` has the numbers), with the current thread's counters. The address of what they have moved by, if that
/// is asked for and anything has. `uncounted` is told why they cannot be had, once a thread and beginning.
pub fn act(what: i32, uncounted: impl FnOnce(String)) -> i64 {
    let wanted = WANTED.load(Ordering::Acquire);
    if wanted == 0 {
        return 0;
    }
    // A thread that is being taken down has none.
    MINE.try_with(|mine| mine.try_borrow_mut().map_or(0, |mut mine| acted(&mut mine, wanted, what, uncounted)))
        .unwrap_or(0)
}

fn acted(mine: &mut Option<Mine>, wanted: u32, what: i32, uncounted: impl FnOnce(String)) -> i64 {
    let beginning = BEGINNINGS.load(Ordering::Relaxed);
    let mine = match mine {
        Some(mine) if mine.beginning == beginning => mine,
        _ => mine.insert(opened(wanted, beginning, uncounted)),
    };
    let group = mine.group.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(Ok(now)) = group.as_ref().map(|group| group.read(&Linux)) else {
        (mine.latest, mine.mark) = (None, None);
        return 0;
    };
    drop(group);
    let what = What::of(what);
    match what {
        What::Moved | What::Calibrate => {
            let Some(before) = mine.latest.replace(now) else { return 0 };
            let moved = now.since(&before);
            if what == What::Calibrate {
                TAKEN.iter().zip(moved).for_each(|(taken, moved)| {
                    taken.fetch_min(moved, Ordering::Relaxed);
                });
                return 0;
            }
            told(moved)
        }
        What::GoOn => {
            (mine.latest, mine.mark) = (Some(now), None);
            0
        }
        What::Mark => {
            mine.mark = Some(now);
            0
        }
        What::Skip => {
            if let Some((latest, mark)) = mine.latest.as_mut().zip(mine.mark.take()) {
                *latest = latest.without(&mark, &now);
            }
            0
        }
    }
}

/// Leaves what they have moved by, less what reading takes, where the thread's probe finds it.
fn told(moved: [u64; KINDS]) -> i64 {
    MOVED.with(|places| {
        let mut is_any = false;
        for ((place, moved), taken) in places.iter().zip(moved).zip(&TAKEN) {
            let taken = taken.load(Ordering::Relaxed);
            let moved = moved.saturating_sub(if taken == u64::MAX { 0 } else { taken });
            place.set(moved);
            is_any |= moved > 0;
        }
        if is_any { places.as_ptr() as i64 } else { 0 }
    })
}

/// The current thread's counters. Where they cannot be had the tool is told, once a thread and beginning.
fn opened(wanted: u32, beginning: u64, uncounted: impl FnOnce(String)) -> Mine {
    let group = if has_room(wanted) { Group::open(&Linux, wanted) } else { Err(Refused::Files) };
    let refused = group.as_ref().err().map(Refused::to_string);
    let group = Arc::new(Mutex::new(group.ok()));
    {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        if WANTED.load(Ordering::Acquire) == wanted && BEGINNINGS.load(Ordering::Relaxed) == beginning {
            all.push(Arc::downgrade(&group));
        } else {
            // It has ended meanwhile: nobody would close them.
            *group.lock().unwrap_or_else(PoisonError::into_inner) = None;
        }
    }
    if let Some(reason) = refused {
        uncounted(reason);
    }
    Mine { beginning, group, latest: None, mark: None }
}

/// Whether one more thread may have its counters.
fn has_room(wanted: u32) -> bool {
    let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX) / PART;
    let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    all.retain(|group| group.strong_count() > 0);
    (all.len() + 1).saturating_mul(perf::in_files(wanted).count()) <= most
}

/// What is done with a thread's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Moved,
    GoOn,
    Mark,
    Skip,
    Calibrate,
}

impl What {
    /// By the runtime's numbers.
    fn of(number: i32) -> What {
        match number {
            0 => What::Moved,
            2 => What::Mark,
            3 => What::Skip,
            4 => What::Calibrate,
            _ => What::GoOn,
        }
    }
}
