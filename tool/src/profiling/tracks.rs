//! What happened to the whole JVM while it was profiled.

use headwater_protocol::collections::Collection;

use super::facts::Facts;
use crate::decode::{Decoder, Load};
use crate::pattern::stable_name;
use crate::profile::{ClockMode, Slice, Track};
use crate::session::Hotswapped;

/// Hotswaps, and collections and classes where they were counted.
pub(super) fn of(facts: &Facts, decoder: &Decoder, mode: ClockMode) -> Vec<Track> {
    let since = |ns: i64| ns.saturating_sub(facts.began_ns);
    let collection = |it: &Collection| Slice {
        start_ns: since(it.start_ns),
        duration_ns: it.duration_ns,
        label: it.cause.clone(),
        by: it.collector.clone(),
        amounts: vec![it.heap_before, it.heap_after],
    };
    let hotswap = |it: &Hotswapped| Slice {
        start_ns: since(it.ended_ns).saturating_sub_unsigned(it.total_ns),
        duration_ns: it.total_ns,
        amounts: vec![Some(it.pause_ns), Some(it.classes)],
        ..Slice::default()
    };
    let collections = facts.history.ever().gc.then(|| {
        let (all, lost) = decoder.collections();
        let recorded = all.iter().filter(|collection| collection.end_ns() > facts.began_ns);
        Track::of_collections(recorded.map(collection).collect(), lost)
    });
    let unknown = facts.hotswap.batches.saturating_sub(facts.hotswaps.len() as u64);
    let hotswaps = Track::of_hotswaps(facts.hotswaps.iter().map(hotswap).collect(), unknown);
    // Of CPU times nobody knows when they were.
    let loads = (facts.history.ever().classes && mode != ClockMode::Cpu).then(|| {
        let (first, others) = decoder.loads();
        let load = |it: &Load| Slice {
            start_ns: since(it.after_ns),
            label: facts
                .classes
                .get(&it.class)
                .map_or(String::new(), |name| stable_name(&name.replace('/', ".")).into_owned()),
            ..Slice::default()
        };
        let mut loads: Vec<Slice> = first.iter().map(load).collect();
        loads.sort_by_key(|load| load.start_ns);
        Track::of_class_loads(loads, others)
    });
    collections.into_iter().chain(loads).chain([hotswaps]).collect()
}
