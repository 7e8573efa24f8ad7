//! What was seen of a JVM becomes a profile: all that its threads took lies somewhere on one tree.
//!
//! A thread's time between two readings is divided three times: what it ran lies where it was seen running, what it stood in line for too, and the
//! rest where it was seen waiting.

use std::collections::BTreeMap;
use std::time::Duration;

use headwater_jfr::{EventKind, LockIndex, Recorded};
use headwater_profile::build::{Builder, ThreadIndex, jvms_own};
use headwater_profile::import::recording;

use super::looks::{Looks, SeenThread};
use super::metrics::Metrics;
use super::notes;
use super::paths::{PathIndex, Paths};
use super::places::{Placed, Places, What};
use super::{Classes, Lines, Sampled};
use crate::decode::Scheduled;
use crate::jvm::Jvm;
use crate::pattern::class_name;
use crate::profile::Profile;
use crate::threads::activity::Activity;

/// The number of threads that are no platform threads.
const VIRTUAL: u32 = 0;
/// What threads took that nobody has seen alive.
const ENDED: &str = "[threads that have ended]";
/// What a Java thread took that was seen nowhere.
const UNSEEN: &str = "[no Java code seen]";
/// What a thread took beyond what its samples can stand for.
const UNKNOWN: &str = "[place not known]";

/// A sample stands for so many times the CPU time that one stands for in the mean, at most: by chance alone few threads have so few.
const FEW: u64 = 4;
/// For so many periods of sampling at most, however few samples there are.
const MOST_PERIODS: u64 = 16;
/// The recorder looks at so many threads in Java code in each period.
const AT_ONCE: u64 = 5;

/// What a thread did between two readings.
#[derive(Default)]
struct Part {
    used: Scheduled,
    /// For how long it was there.
    alive_ns: u64,
    /// Where it ran.
    ran: Vec<PathIndex>,
    /// What else it was seen doing.
    waited: Vec<(Activity, PathIndex)>,
    /// It was seen running at a look; so often, be it also where the recorder saw it.
    looked: Vec<PathIndex>,
}

/// A sample of what a thread allocated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Allocation {
    path: PathIndex,
    /// For so many bytes it stands.
    weight: u64,
    class: Option<LockIndex>,
}

/// All of a thread's.
struct Course {
    parts: Vec<Part>,
    allocations: Vec<Allocation>,
    allocated: u64,
}

impl Course {
    /// Whether it was seen in Java code.
    fn has_run(&self) -> bool {
        self.parts.iter().any(|part| !part.ran.is_empty())
    }
}

/// The profile of what was seen.
pub(super) fn profile(sampled: &Sampled, jvm: &Jvm) -> Profile {
    let Sampled { recorded, looks, .. } = sampled;
    let mut builder = Builder::default();
    let mut paths = Paths::of(&mut builder, recorded, looks, sampled.lines == Lines::Known);
    let mut courses = courses(sampled, &paths);
    let has_virtual = join_carriers(&mut courses, looks);
    let limits = Limits::of(sampled, &courses);
    let mut places = Places::default();
    for (number, course) in &courses {
        let known = looks.threads.get(number);
        let name = match known {
            _ if *number == VIRTUAL => "virtual threads".to_owned(),
            Some(known) => known.name.clone(),
            None => format!("tid={number}"),
        };
        let thread = builder.thread(Some(&name));
        // Virtual threads are not the JVM's own, though nobody knows them by a number.
        let known = known.filter(|_| *number != VIRTUAL);
        let own = match known {
            _ if *number == VIRTUAL => UNSEEN.to_owned(),
            Some(SeenThread { is_jvms: false, .. }) => UNSEEN.to_owned(),
            // It had no stack when it was looked at, as it began or ended.
            Some(_) if course.has_run() => UNSEEN.to_owned(),
            Some(_) => jvms_own(&name),
            None => ENDED.to_owned(),
        };
        let mut other = |seen: Seen| {
            let name = if seen == Seen::Rarely { UNKNOWN } else { &own };
            paths.other(&mut builder, name)
        };
        put_waits_and_work(&mut places, thread, course, known, limits, &mut other);
        let allocated = allocated_at(course, &mut || other(Seen::Never));
        let mut below = |path: PathIndex, class: LockIndex| {
            let class = class_name(&recorded.locks[class.0 as usize].class);
            paths.below(&mut builder, path, &format!("[{class}]"))
        };
        match sampled.classes {
            Classes::Apart => put_allocated(&mut places, thread, course, allocated, &mut below),
            Classes::Together => put_allocated(&mut places, thread, course, allocated, &mut |path, _| path),
        }
    }
    // What threads took that began and ended between two readings, and what those took that have ended since their last.
    let rest_ns = sampled.process_ns().saturating_sub(places.threads_ns);
    if rest_ns > 0 {
        let (path, thread) = (paths.other(&mut builder, ENDED), builder.thread(Some("threads that have ended")));
        places.put(thread, path, What::Cpu, rest_ns);
    }
    let metrics = Metrics::of(&mut builder, &places.all, sampled);
    for Placed { thread, path, what, value } in &places.all {
        let methods: Vec<_> = paths.methods(*path).collect();
        builder.add_stack(*thread, methods, metrics.of_what(*what).map(|metric| (metric, *value)));
    }
    builder.recorded = (sampled.began_s, sampled.duration);
    if let (None, Some(first)) = (&sampled.unrecorded, sampled.readings.first()) {
        builder.tracks.push(recording::collections(recorded, first.at_ns));
    }
    let mut profile = builder.finish(&jvm.main, "samples of all threads");
    profile.target.pid = jvm.pid;
    profile.target.jdk = jvm.java_version.clone().unwrap_or_default();
    profile.notes.extend(notes::all(sampled, &places, &paths, has_virtual));
    profile
}

/// What each thread did, by its number.
fn courses(sampled: &Sampled, paths: &Paths) -> BTreeMap<u32, Course> {
    let Sampled { recorded, looks, readings, .. } = sampled;
    let windows = readings.len().saturating_sub(1);
    let new =
        || Course { parts: (0..windows).map(|_| Part::default()).collect(), allocations: Vec::new(), allocated: 0 };
    // Readings are in the order of time.
    let window_of = |at_ns: i64| {
        let later = readings.get(1..).unwrap_or_default();
        later.partition_point(|reading| reading.at_ns <= at_ns).min(windows.saturating_sub(1))
    };
    let mut courses: BTreeMap<u32, Course> = BTreeMap::new();
    for (window, pair) in readings.windows(2).enumerate() {
        let span_ns = u64::try_from(pair[1].at_ns - pair[0].at_ns).unwrap_or(0);
        for (thread, after) in &pair[1].threads {
            let part = &mut courses.entry(*thread).or_insert_with(new).parts[window];
            let before = pair[0].threads.get(thread);
            part.used = after.since(before.copied().unwrap_or_default());
            part.alive_ns = if before.is_some() { span_ns } else { 0 };
        }
    }
    let number_of = |thread: headwater_jfr::ThreadIndex| {
        let thread = &recorded.threads[thread.0 as usize];
        if thread.is_virtual { VIRTUAL } else { thread.number }
    };
    if windows == 0 {
        return courses;
    }
    for event in &recorded.events {
        let course = courses.entry(number_of(event.thread)).or_insert_with(new);
        let path = paths.recorded(event.stack);
        match event.kind {
            EventKind::ExecutionSample | EventKind::NativeMethodSample => {
                course.parts[window_of(event.at_ns)].ran.push(path)
            }
            EventKind::AllocationSample => {
                course.allocations.push(Allocation { path, weight: event.amount, class: event.lock });
            }
            _ => {}
        }
    }
    for (thread, bytes) in allocated(recorded) {
        courses.entry(number_of(thread)).or_insert_with(new).allocated += bytes;
    }
    let mut looks_in = vec![0_u64; windows];
    looks.at_ns.iter().for_each(|at_ns| looks_in[window_of(*at_ns)] += 1);
    for glimpse in &looks.glimpses {
        let part = &mut courses.entry(glimpse.thread).or_insert_with(new).parts[window_of(glimpse.at_ns)];
        let path = paths.seen(glimpse.stack);
        match glimpse.activity {
            Activity::Running => part.looked.push(path),
            activity => part.waited.push((activity, path)),
        }
    }
    give_to_ended(&mut courses, sampled);
    // A thread that was not there all the time waited for as many looks as have seen it wait.
    for course in courses.values_mut() {
        for (window, part) in course.parts.iter_mut().enumerate().filter(|(_, part)| part.alive_ns == 0) {
            let span_ns = u64::try_from(readings[window + 1].at_ns - readings[window].at_ns).unwrap_or(0);
            let waited_ns = (span_ns * part.waited.len() as u64).checked_div(looks_in[window]).unwrap_or(0);
            part.alive_ns = part.used.ran_ns + part.used.queued_ns + waited_ns;
        }
    }
    courses
}

/// What the process took between two readings, and none of the threads that were there at the second: those have it that were seen running and have ended,
/// as often as each was seen.
fn give_to_ended(courses: &mut BTreeMap<u32, Course>, sampled: &Sampled) {
    let Some(first) = sampled.readings.first() else { return };
    let mut given_ns = 0;
    for (window, pair) in sampled.readings.windows(2).enumerate() {
        let is_ended = |number: &u32| *number != VIRTUAL && !pair[1].threads.contains_key(number);
        given_ns += courses.values().map(|course| course.parts[window].used.ran_ns).sum::<u64>();
        let ended = courses.iter_mut().filter(|(number, _)| is_ended(number));
        let ended: Vec<&mut Part> = ended.map(|(_, course)| &mut course.parts[window]).collect();
        let seen = |part: &Part| if part.ran.is_empty() { part.looked.len() } else { part.ran.len() } as u64;
        let samples: u64 = ended.iter().map(|part| seen(part)).sum();
        // The process's time is counted in ticks.
        let rest_ns = (pair[1].process_ns.saturating_sub(first.process_ns)).saturating_sub(given_ns);
        // What nobody was seen doing is no later thread's.
        given_ns += rest_ns;
        if samples == 0 {
            continue;
        }
        let (mut so_far, mut ended_ns) = (0, 0);
        for part in ended {
            so_far += seen(part);
            let until = (u128::from(rest_ns) * u128::from(so_far) / u128::from(samples)) as u64;
            part.used.ran_ns = until - ended_ns;
            ended_ns = until;
        }
    }
}

/// What each thread has allocated from the recording's beginning to its end, as far as it was there at its end.
fn allocated(recorded: &Recorded) -> BTreeMap<headwater_jfr::ThreadIndex, u64> {
    let began_ns = recorded.allocated.iter().map(|told| told.at_ns).min().unwrap_or(0);
    // All threads are told of one after the other.
    const AT_ONCE_NS: i64 = 500_000_000;
    let mut threads: BTreeMap<headwater_jfr::ThreadIndex, [u64; 2]> = BTreeMap::new();
    // One that has changed its name meanwhile is told of as two.
    let mut named: BTreeMap<u32, headwater_jfr::ThreadIndex> = BTreeMap::new();
    for told in &recorded.allocated {
        let is_first = told.at_ns - began_ns < AT_ONCE_NS;
        let thread = &recorded.threads[told.thread.0 as usize];
        let has_own = !thread.is_virtual && thread.number != 0;
        let thread = if has_own { *named.entry(thread.number).or_insert(told.thread) } else { told.thread };
        let [first, last] = threads.entry(thread).or_insert([if is_first { told.bytes } else { 0 }, 0]);
        *first = (*first).min(told.bytes);
        *last = (*last).max(told.bytes);
    }
    threads.into_iter().map(|(thread, [first, last])| (thread, last - first)).collect()
}

/// What carriers took belongs to the virtual threads that they carried, which have no time of their own: the samples of both are of one whole, for the
/// recorder does not say who carried whom. Whether there are any.
fn join_carriers(courses: &mut BTreeMap<u32, Course>, looks: &Looks) -> bool {
    if !courses.contains_key(&VIRTUAL) {
        return false;
    }
    let carriers: Vec<u32> = courses.keys().copied().filter(|number| looks.is_carrier(*number)).collect();
    for carrier in carriers {
        let Some(taken) = courses.remove(&carrier) else { continue };
        let Some(all) = courses.get_mut(&VIRTUAL) else { continue };
        all.allocated += taken.allocated;
        all.allocations.extend(taken.allocations);
        for (all, part) in all.parts.iter_mut().zip(taken.parts) {
            all.used.add(part.used);
            all.alive_ns += part.alive_ns;
            all.ran.extend(part.ran);
            all.looked.extend(part.looked);
            all.waited.extend(part.waited);
        }
    }
    true
}

/// For how much CPU time a sample stands at most.
#[derive(Clone, Copy)]
struct Limits {
    /// One of the recorder's.
    ran_ns: u64,
    /// A look that saw a thread run.
    looked_ns: u64,
}

impl Limits {
    fn of(sampled: &Sampled, courses: &BTreeMap<u32, Course>) -> Limits {
        let parts = || {
            // Compilers and collectors are never sampled.
            let is_javas = |number: &u32| sampled.looks.threads.get(number).is_none_or(|known| !known.is_jvms);
            courses.iter().filter(move |(number, _)| is_javas(number)).flat_map(|(_, course)| &course.parts)
        };
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let used_ns: u64 = parts().map(|part| part.used.ran_ns).sum();
        let at_once = used_ns / ns(sampled.duration).max(1);
        let limit = |samples: usize, period_ns: u64| {
            let mean_ns = used_ns / samples.max(1) as u64;
            let period_ns = period_ns.max(1);
            mean_ns.saturating_mul(FEW).clamp(period_ns.saturating_mul(FEW), period_ns.saturating_mul(MOST_PERIODS))
        };
        let recorder_ns = ns(sampled.every).saturating_mul((at_once / AT_ONCE).max(1));
        let look_ns = ns(sampled.duration) / sampled.looks.at_ns.len().max(1) as u64;
        Limits {
            ran_ns: limit(parts().map(|part| part.ran.len()).sum(), recorder_ns),
            looked_ns: limit(parts().map(|part| part.looked.len()).sum(), look_ns),
        }
    }
}

/// How often a thread was seen for what it took.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    Never,
    Rarely,
}

/// So much of it as this CPU time, and the rest.
fn split(used: Scheduled, most_ns: u64) -> (Scheduled, Scheduled) {
    let ran_ns = used.ran_ns.min(most_ns);
    let queued_ns = u128::from(used.queued_ns) * u128::from(ran_ns);
    let queued_ns = queued_ns.checked_div(u128::from(used.ran_ns)).map_or(used.queued_ns, |ns| ns as u64);
    let here = Scheduled { ran_ns, queued_ns };
    (here, used.since(here))
}

fn put_waits_and_work(
    places: &mut Places,
    thread: ThreadIndex,
    course: &Course,
    known: Option<&SeenThread>,
    limits: Limits,
    other: &mut dyn FnMut(Seen) -> PathIndex,
) {
    let all = |of: fn(&Part) -> &[PathIndex]| -> Vec<PathIndex> {
        course.parts.iter().flat_map(|part| of(part).iter().copied()).collect()
    };
    let [ran, looked] = [all(|part| &part.ran), all(|part| &part.looked)];
    let waited: Vec<(Activity, PathIndex)> = course.parts.iter().flat_map(|part| part.waited.iter().copied()).collect();
    let is_recorded = !ran.is_empty();
    let each_ns = if is_recorded { limits.ran_ns } else { limits.looked_ns };
    let most_ns = |samples: usize| each_ns.saturating_mul(samples as u64);
    // Who was never seen running did so for moments, where it waits.
    let is_seen = is_recorded || !looked.is_empty();
    // Of a second in which it was not seen, or too rarely, the places are those of the whole time: such seconds together.
    let mut elsewhere = Elsewhere::default();
    let mut placed_ns = 0;
    for part in &course.parts {
        let used = part.used;
        places.threads_ns += used.ran_ns;
        let seen = if is_recorded { &part.ran } else { &part.looked };
        let (here, rest) = split(used, most_ns(seen.len()));
        if !seen.is_empty() {
            places.put_work(thread, here, seen);
            placed_ns += here.ran_ns;
            elsewhere.ran.add(rest);
        } else {
            elsewhere.ran.add(used);
        }
        let rest_ns = part.alive_ns.saturating_sub(used.ran_ns + used.queued_ns);
        if !part.waited.is_empty() {
            places.divide(thread, rest_ns, &waits(&part.waited));
        } else if waited.is_empty() && !part.looked.is_empty() {
            places.divide(thread, rest_ns, &outside(&part.looked));
        } else {
            elsewhere.rest_ns += rest_ns;
        }
        let samples = if ran.is_empty() { &part.looked } else { &part.ran };
        samples.iter().for_each(|path| places.put(thread, *path, What::Samples, 1));
    }
    let mut running = if is_recorded { ran } else { looked.clone() };
    let mut left_ns = most_ns(running.len()).saturating_sub(placed_ns);
    if !is_seen {
        running.extend(waited.iter().map(|(_, path)| *path));
        left_ns = each_ns;
    }
    if running.is_empty() {
        if known.is_some_and(|known| !known.is_jvms) {
            places.unseen_ns += elsewhere.ran.ran_ns;
        }
        if elsewhere.ran.ran_ns + elsewhere.ran.queued_ns > 0 {
            running.push(other(Seen::Never));
        }
        places.put_work(thread, elsewhere.ran, &running);
    } else {
        let (here, unknown) = split(elsewhere.ran, left_ns);
        places.put_work(thread, here, &running);
        if unknown.ran_ns + unknown.queued_ns > 0 {
            places.put_work(thread, unknown, &[other(Seen::Rarely)]);
        }
        places.unknown_ns += unknown.ran_ns;
        *(if is_recorded { &mut places.recorded_ns } else { &mut places.looked_ns }) += placed_ns + here.ran_ns;
    }
    let waiting = if waited.is_empty() { outside(&looked) } else { waits(&waited) };
    places.divide(thread, elsewhere.rest_ns, &waiting);
}

/// What a thread took in seconds in which it was not seen.
#[derive(Default)]
struct Elsewhere {
    ran: Scheduled,
    rest_ns: u64,
}

fn waits(waited: &[(Activity, PathIndex)]) -> Vec<(What, PathIndex)> {
    waited.iter().map(|(activity, path)| (What::Wait(*activity), *path)).collect()
}

/// It seemed to run, in native code that waits.
fn outside(looked: &[PathIndex]) -> Vec<(What, PathIndex)> {
    looked.iter().map(|path| (What::Wait(Activity::Outside), *path)).collect()
}

/// Where a thread allocated of which nobody has seen an allocation: where it ran.
fn allocated_at(course: &Course, other: &mut dyn FnMut() -> PathIndex) -> Vec<(What, PathIndex)> {
    if !course.allocations.is_empty() || course.allocated == 0 {
        return Vec::new();
    }
    let of = |of: fn(&Part) -> &[PathIndex]| -> Vec<PathIndex> {
        course.parts.iter().flat_map(|part| of(part).iter().copied()).collect()
    };
    let mut paths = of(|part| &part.ran);
    if paths.is_empty() {
        paths = of(|part| &part.looked);
    }
    if paths.is_empty() {
        paths.push(other());
    }
    paths.into_iter().map(|path| (What::Allocated, path)).collect()
}

/// What a thread has allocated, where its samples say, or else `at`. Of each class it lies where `of_class` says.
fn put_allocated(
    places: &mut Places,
    thread: ThreadIndex,
    course: &Course,
    at: Vec<(What, PathIndex)>,
    of_class: &mut dyn FnMut(PathIndex, LockIndex) -> PathIndex,
) {
    places.divide(thread, course.allocated, &at);
    let weights = weights(&course.allocations);
    let whole: u128 = weights.iter().map(|one| u128::from(one.weight)).sum();
    // Without a total of the thread's, samples stand for all.
    let bytes = if course.allocated > 0 { u128::from(course.allocated) } else { whole };
    let (mut so_far, mut given) = (0_u128, 0_u128);
    for Allocation { path, weight, class } in weights {
        so_far += u128::from(weight);
        let until = bytes * so_far / whole.max(1);
        let share = u64::try_from(until - given).unwrap_or(u64::MAX);
        let path = match class {
            Some(class) => {
                *places.classes.entry(class).or_default() += share;
                of_class(path, class)
            }
            None => path,
        };
        places.put(thread, path, What::Allocated, share);
        given = until;
    }
}

/// What each sample of an allocation stands for. The first one of a thread stands for all that it has ever allocated, so it is given what the others have in
/// the mean.
fn weights(allocations: &[Allocation]) -> Vec<Allocation> {
    let Some((first, others)) = allocations.split_first() else { return Vec::new() };
    let sum: u64 = others.iter().fold(0, |sum, one| sum.saturating_add(one.weight));
    let weight = sum.checked_div(others.len() as u64).unwrap_or(first.weight).max(1);
    std::iter::once(Allocation { weight, ..first.clone() }).chain(others.iter().cloned()).collect()
}
