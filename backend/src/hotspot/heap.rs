//! How much of the heap is in use, pool by pool, by the JVM's [performance data](super::perf_data). May be asked while it collects.
//!
//! HotSpot brings these numbers up to date when a collection ends, and that of G1's eden when a region is taken into use. The other collectors' eden
//! is looked at itself.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use super::perf_data;
use super::vm_structs::{Description, Memory};

const GENERATIONS: &str = "sun.gc.generation.";
const METASPACE_USED: &str = "sun.gc.metaspace.used";
/// What is not a part of the heap.
pub const METASPACE: &str = "metaspace";
/// Which collectors there are.
const POLICY: &str = "sun.gc.policy.name";
/// ... the serial ones.
const SERIAL: &str = "Copy:MSC";
/// Where threads allocate, of the collectors that clear it as a whole.
const EDEN: &str = "eden";
/// What HotSpot calls the only space of a generation.
const THE_SPACE: &str = "space";
/// More than any name has.
const LONGEST_NAME: usize = 32;

static HEAP: OnceLock<Option<Heap>> = OnceLock::new();

/// Where the numbers are.
#[derive(Debug)]
struct Heap {
    memory: Memory,
    names: Vec<String>,
    places: Vec<u64>,
    eden: Option<Eden>,
}

/// A space that is filled from its bottom to its top.
#[derive(Clone, Copy, Debug)]
struct Eden {
    /// Among the pools.
    pool: usize,
    bottom: u64,
    top: u64,
}

/// Finds them, once for all. Whether there are any.
pub(super) fn find(memory: &Memory, described: &Description) -> bool {
    HEAP.get_or_init(|| Heap::find(memory, described)).is_some()
}

/// What the pools are called.
pub fn names() -> &'static [String] {
    HEAP.get().and_then(Option::as_ref).map_or(&[], |heap| &heap.names)
}

/// How many bytes of each are in use.
pub fn used() -> Vec<u64> {
    let heap = HEAP.get().and_then(Option::as_ref);
    heap.map_or(Vec::new(), Heap::used)
}

/// How many bytes of all of them are, without what is not a part of the heap; `None` where the JVM does not say, as before its first collection it may not.
pub fn all_used() -> Option<u64> {
    let heap = HEAP.get()?.as_ref()?;
    let pools = heap.names.iter().zip(heap.used()).filter(|(name, _)| *name != METASPACE);
    let all = pools.fold(0_u64, |sum, (_, used)| sum.saturating_add(used));
    (all > 0).then_some(all)
}

impl Heap {
    fn find(memory: &Memory, described: &Description) -> Option<Heap> {
        let counters = perf_data::below(memory, described, GENERATIONS)?;
        let text = |place: u64| {
            let bytes = memory.read::<LONGEST_NAME>(place)?;
            Some(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next()?).into_owned())
        };
        let mut pools = pools(&counters, text);
        let [metaspace, policy] = perf_data::find(memory, described, [METASPACE_USED, POLICY])?;
        pools.extend(metaspace.map(|place| (METASPACE.to_owned(), place)));
        let (names, places): (Vec<String>, Vec<u64>) = pools.into_iter().unzip();
        let is_serial = policy.and_then(text).is_some_and(|policy| policy == SERIAL);
        let eden = names.iter().position(|name| name == EDEN).and_then(|pool| {
            let eden = eden(memory, described, is_serial, pool)?;
            let capacity = *counters.get("sun.gc.generation.0.space.0.capacity")?;
            // No more is in use than there is.
            (eden.used(memory)? <= memory.word(capacity)?).then_some(eden)
        });
        (!names.is_empty()).then(|| Heap { memory: memory.clone(), names, places, eden })
    }

    fn used(&self) -> Vec<u64> {
        let mut used: Vec<u64> = self.memory.words(&self.places).into_iter().map(Option::unwrap_or_default).collect();
        if let Some(eden) = self.eden
            && let Some(now) = eden.used(&self.memory)
        {
            used[eden.pool] = now;
        }
        used
    }
}

impl Eden {
    fn used(self, memory: &Memory) -> Option<u64> {
        memory.word(self.top)?.checked_sub(memory.word(self.bottom)?)
    }
}

/// Where the serial and the parallel collectors have it: what newer JDKs' performance data says of it is of the end of the last collection.
fn eden(memory: &Memory, described: &Description, is_serial: bool, pool: usize) -> Option<Eden> {
    let offset = |classes: [&str; 2], field| classes.into_iter().find_map(|class| described.offset(class, field));
    let pointer = |at: u64| memory.word(at).filter(|word| *word != 0);
    let (space, classes) = if is_serial {
        let heap = pointer(described.field("Universe", "_collectedHeap")?.address)?;
        let young = pointer(heap + offset(["SerialHeap", "GenCollectedHeap"], "_young_gen")?)?;
        (pointer(young + described.offset("DefNewGeneration", "_eden_space")?)?, ["ContiguousSpace", "Space"])
    } else {
        // There is one only if that collector is in use.
        let young = pointer(described.field("ParallelScavengeHeap", "_young_gen")?.address)?;
        (pointer(young + described.offset("PSYoungGen", "_eden_space")?)?, ["MutableSpace", "ImmutableSpace"])
    };
    Some(Eden { pool, bottom: space + offset(classes, "_bottom")?, top: space + offset(classes, "_top")? })
}

/// The pools among counters, and where it is said how much of each is in use.
fn pools(counters: &BTreeMap<String, u64>, text: impl Fn(u64) -> Option<String>) -> Vec<(String, u64)> {
    let pool = |(name, place): (&String, &u64)| {
        // sun.gc.generation.1.space.0.used
        let (generation, space) = name.strip_suffix(".used")?.rsplit_once(".space.")?;
        let text_of = |name: String| text(*counters.get(&name)?);
        let own = text_of(format!("{generation}.space.{space}.name"))?;
        let shown = if own == THE_SPACE { text_of(format!("{generation}.name"))? } else { own };
        Some((shown, *place))
    };
    counters.iter().filter_map(pool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_is_called_as_its_space_or_the_generation_that_has_but_one() {
        let texts = ["new", "eden", "s0", "old", "space"];
        let counters = [
            ("sun.gc.generation.0.name", 0),
            ("sun.gc.generation.0.spaces", 90),
            ("sun.gc.generation.0.space.0.name", 1),
            ("sun.gc.generation.0.space.0.used", 101),
            ("sun.gc.generation.0.space.0.capacity", 102),
            ("sun.gc.generation.0.space.1.name", 2),
            ("sun.gc.generation.0.space.1.used", 103),
            ("sun.gc.generation.1.name", 3),
            ("sun.gc.generation.1.space.0.name", 4),
            ("sun.gc.generation.1.space.0.used", 104),
            ("sun.gc.generation.2.space.0.used", 105),
        ];
        let counters = counters.into_iter().map(|(name, place)| (name.to_owned(), place)).collect();
        let found = pools(&counters, |place| texts.get(place as usize).map(|text| (*text).to_owned()));
        let found: Vec<(&str, u64)> = found.iter().map(|(name, place)| (&**name, *place)).collect();
        assert_eq!(found, [("eden", 101), ("s0", 103), ("old", 104)]);
    }
}
