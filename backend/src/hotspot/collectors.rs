//! Who collects garbage, by the JVM's [performance data](super::perf_data): of each of its collectors a name, and when it began last. May be asked while
//! one does.

use std::sync::OnceLock;

use headwater_protocol::layout::COLLECTOR_BYTES;

use super::perf_data;
use super::vm_structs::{Description, Memory};

const COLLECTORS: &str = "sun.gc.collector.";
const NAME: &str = ".name";
const BEGAN: &str = ".lastEntryTime";
/// What HotSpot calls what each of them does.
const PAUSES: &str = " pauses";
/// All of Shenandoah's pauses are counted as those of a full collection.
const SHENANDOAH: &str = "Shenandoah";

static ALL: OnceLock<Option<Collectors>> = OnceLock::new();

/// Where the JVM says it.
#[derive(Debug)]
struct Collectors {
    memory: Memory,
    names: Vec<String>,
    /// Of each: when it began, in ticks.
    began: Vec<u64>,
}

/// Finds it, once for all sessions. Whether it is there.
pub(super) fn find(memory: &Memory, described: &Description) -> bool {
    let find = || {
        let counters = perf_data::below(memory, described, COLLECTORS)?;
        let mut all = Collectors { memory: memory.clone(), names: Vec::new(), began: Vec::new() };
        for (counter, place) in &counters {
            let Some(collector) = counter.strip_suffix(NAME) else { continue };
            let began = counters.get(&format!("{collector}{BEGAN}"));
            if let Some((began, name)) = began.zip(memory.bytes(*place, COLLECTOR_BYTES + PAUSES.len())) {
                let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
                all.names.push(called(&String::from_utf8_lossy(name)).to_owned());
                all.began.push(*began);
            }
        }
        (!all.names.is_empty()).then_some(all)
    };
    ALL.get_or_init(find).is_some()
}

/// Who collects, or did last; `None` where the JVM does not say.
pub fn latest() -> Option<&'static str> {
    let all = ALL.get()?.as_ref()?;
    let began = all.memory.words(&all.began).into_iter().zip(&all.names);
    let (_, name) = began.filter_map(|(began, name)| Some((began.filter(|began| *began > 0)?, name))).max()?;
    Some(name)
}

/// A collector's name without what says nothing more, or what is not so.
fn called(name: &str) -> &str {
    if name.starts_with(SHENANDOAH) { SHENANDOAH } else { name.strip_suffix(PAUSES).unwrap_or(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collectors_are_called_by_what_they_do() {
        assert_eq!(called("G1 young collection pauses"), "G1 young collection");
        assert_eq!(called("PCopy"), "PCopy");
        assert_eq!(called("Shenandoah full"), "Shenandoah");
    }
}
