//! What is said beside the numbers.

use std::cmp::Reverse;
use std::time::Duration;

use rustc_hash::FxHashMap;

use super::Sampled;
use super::metrics::named;
use super::paths::Paths;
use super::places::{Places, What};
use crate::pattern::class_name;
use crate::report::units::{bytes, count, plural, time};
use crate::threads::activity::Activity;

/// A place of waiting is named if it is so much of all waiting,
const WORTH_NAMING: f64 = 0.05;
/// and so many at most.
const NAMED: usize = 3;
/// Nobody cares about less of a recording's beginning.
const MUCH_NS: u64 = 1_000_000_000;

pub(super) fn all(sampled: &Sampled, places: &Places, paths: &Paths, has_virtual: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let seconds = sampled.duration.as_secs_f64().max(1e-9);
    let whole = sampled.process_ns().max(places.threads_ns);
    let sum = |what: What| places.all.iter().filter(|one| one.what == what).fold(0_u64, |sum, one| sum + one.value);
    let samples = plural(sum(What::Samples), "sample", "samples");
    notes.push(format!(
        "CPU time of the process: {} in {seconds:.1} s, {:.2} processors; {} of it placed in Java code by {samples}",
        time(whole),
        whole as f64 / 1e9 / seconds,
        percent(places.recorded_ns + places.looked_ns, whole),
    ));
    let unkept = sampled.recorded.begins_ns.zip(sampled.readings.first()).map(|(begins, first)| begins - first.at_ns);
    if let Some(ns) = unkept.and_then(|ns| u64::try_from(ns).ok()).filter(|ns| *ns > MUCH_NS) {
        notes.push(format!(
            "of the first {} the flight recorder has kept no samples and no collections: it had no more room",
            time(ns)
        ));
    }
    if let Some(why) = &sampled.unrecorded {
        notes.push(format!(
            "places were seen at safepoints alone, which are rare in some loops: the flight recorder was not used ({why})"
        ));
    } else if places.looked_ns > whole / 100 {
        notes.push(format!(
            "{} of it is of threads that were never seen in Java code: it lies where they were seen at safepoints, most of it in native code",
            percent(places.looked_ns, whole)
        ));
    }
    if places.unseen_ns > whole / 100 {
        notes.push(format!(
            "{} of it is of Java threads in which no Java code was seen: they are in native code, or the recorder did not come to them",
            percent(places.unseen_ns, whole)
        ));
    }
    if places.unknown_ns > whole / 100 {
        notes.push(format!(
            "{} of it is of threads that were seen running far too rarely for it: where they took it is not known",
            percent(places.unknown_ns, whole)
        ));
    }
    if sampled.has_looks() {
        notes.extend(waits(&sum, seconds));
        notes.extend(largest(places, paths));
        notes.extend(looks(sampled));
    } else {
        notes.push("waiting takes no CPU time and was not looked at".to_owned());
    }
    notes.extend(classes(sampled, places));
    if let Some(failed) = sampled.looks.failed.as_ref().filter(|_| !sampled.target_ended) {
        notes.push(format!("threads could be looked at up to a moment only: {failed}"));
    }
    if sampled.others > 0 {
        let others = plural(sampled.others as u64, "other recording", "other recordings");
        notes.push(format!("{others} of the flight recorder went on meanwhile, and got these samples too"));
    }
    if has_virtual {
        let of_virtual = sampled.samples_of_virtual_threads();
        let seen = count(of_virtual) + " samples";
        notes.push(format!(
            "virtual threads are one here ({seen}): what their carriers took is theirs; those without a carrier are not seen"
        ));
    }
    if sampled.target_ended {
        notes.push(format!("the target ended after {seconds:.1} s: this is what it did until then"));
    }
    notes
}

/// What threads did, added up.
fn waits(sum: &dyn Fn(What) -> u64, seconds: f64) -> Option<String> {
    let parts = [("running", sum(What::Cpu)), ("ready", sum(What::Ready))];
    let waits = Activity::WAITS.map(|activity| (words(activity), sum(What::Wait(activity))));
    let parts: Vec<_> = parts.into_iter().chain(waits).filter(|(_, ns)| *ns > 0).collect();
    let whole: u64 = parts.iter().map(|(_, ns)| ns).sum();
    let told: Vec<String> = parts.iter().map(|(name, ns)| format!("{name} {}", time(*ns))).collect();
    (whole > 0).then(|| {
        format!(
            "{:.1} threads at work on average: {}; and {} of waiting for work",
            whole as f64 / 1e9 / seconds,
            told.join(", "),
            time(sum(What::Wait(Activity::Idle)))
        )
    })
}

/// A word or two for what a thread does.
fn words(activity: Activity) -> &'static str {
    match activity {
        Activity::Running => "running",
        Activity::Blocked => "blocked",
        Activity::Waiting => "in wait",
        Activity::Parked => "parked",
        Activity::Asleep => "asleep",
        Activity::Socket => "in sockets",
        Activity::File => "in files",
        Activity::Outside => "in other waits",
        Activity::Idle => "idle",
    }
}

/// Where threads waited longest.
fn largest(places: &Places, paths: &Paths) -> Option<String> {
    let mut sums: FxHashMap<(Activity, &str), u64> = FxHashMap::default();
    for one in &places.all {
        if let What::Wait(activity) = one.what
            && activity != Activity::Idle
        {
            *sums.entry((activity, paths.place(one.path))).or_default() += one.value;
        }
    }
    let whole: u64 = sums.values().sum();
    let mut sums: Vec<_> = sums.into_iter().filter(|(_, ns)| *ns as f64 >= WORTH_NAMING * whole as f64).collect();
    sums.sort_unstable_by_key(|((activity, place), ns)| (Reverse(*ns), *activity, *place));
    let told: Vec<String> = sums
        .iter()
        .take(NAMED)
        .map(|((activity, place), ns)| format!("{} {} in {place}", words(*activity), time(*ns)))
        .collect();
    sums.first().map(|((activity, _), _)| {
        format!("longest waits: {} (--metric {} shows where)", told.join("; "), named(*activity).0)
    })
}

/// Of which classes most is allocated.
fn classes(sampled: &Sampled, places: &Places) -> Option<String> {
    let whole: u64 = places.classes.values().sum();
    let mut sums: Vec<_> =
        places.classes.iter().filter(|(_, sum)| **sum as f64 >= WORTH_NAMING * whole as f64).collect();
    sums.sort_unstable_by_key(|(class, sum)| (Reverse(**sum), class.0));
    let name = |class: headwater_jfr::LockIndex| class_name(&sampled.recorded.locks[class.0 as usize].class);
    let told: Vec<String> =
        sums.iter().take(NAMED).map(|(class, sum)| format!("{} {}", name(**class), bytes(**sum))).collect();
    (!told.is_empty()).then(|| format!("most is allocated of {} (--alloc shows where)", told.join(", ")))
}

fn looks(sampled: &Sampled) -> Option<String> {
    let ns = |pause: Duration| time(u64::try_from(pause.as_nanos()).unwrap_or(u64::MAX));
    let looks = plural(sampled.looks.pauses.len() as u64, "look", "looks");
    sampled.looks.pauses().map(|[median, longest]| {
        format!(
            "waits are by {looks} at all threads, at safepoints; for each the JVM was stopped for {} at most in the median, {} at the longest",
            ns(median),
            ns(longest)
        )
    })
}

fn percent(part: u64, whole: u64) -> String {
    format!("{:.0} %", 100.0 * part as f64 / whole.max(1) as f64)
}
