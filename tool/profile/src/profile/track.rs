//! What happened to the whole JVM, and when: a track for each kind of it. What threads did is in trees.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use super::Unit;

/// Id of the track of garbage collections.
pub const COLLECTIONS: &str = "collections";

/// What of one kind happened.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Track {
    /// Its name for machines, of lower-case letters, digits and hyphens: `collections`.
    pub id: Cow<'static, str>,
    /// Its name for people: `gc`.
    pub title: Cow<'static, str>,
    /// What one slice is, and several are: `pause`, `pauses`.
    pub nouns: [Cow<'static, str>; 2],
    /// What it tells, in one sentence.
    pub about: Cow<'static, str>,
    /// Whether it was done by the profile itself: its sum is among what was taken out of the times.
    #[serde(default)]
    pub is_ours: bool,
    /// What is known of each slice, in the order of [`Slice::amounts`].
    #[serde(default)]
    pub amounts: Vec<SliceAmount>,
    /// Those that are known, the earliest first.
    pub slices: Vec<Slice>,
    /// How many more there were.
    #[serde(default)]
    pub lost: u64,
}

/// Something that is known of the slices of a track.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceAmount {
    /// Its name for machines: `heap-before`.
    pub id: Cow<'static, str>,
    /// Its name for people: `heap before`.
    pub title: Cow<'static, str>,
    /// In what it is.
    pub unit: Unit,
    /// Whether those of several slices add up.
    #[serde(default)]
    pub is_additive: bool,
}

impl SliceAmount {
    fn additive(id: &'static str, title: &'static str, unit: Unit) -> SliceAmount {
        SliceAmount { is_additive: true, ..SliceAmount::of_each(id, title, unit) }
    }

    /// What adds up to nothing.
    fn of_each(id: &'static str, title: &'static str, unit: Unit) -> SliceAmount {
        SliceAmount { id: Cow::Borrowed(id), title: Cow::Borrowed(title), unit, is_additive: false }
    }
}

impl Slice {
    /// Who did it, and what is said of it.
    pub fn said(&self) -> String {
        [&*self.by, &*self.label].into_iter().filter(|said| !said.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// It happened once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Slice {
    /// When it began, in ns since recording did; less than nothing if that was before.
    pub start_ns: i64,
    /// For how long it went on.
    pub duration_ns: u64,
    /// What is said of it, as the cause of a collection; empty where nothing is.
    #[serde(default)]
    pub label: String,
    /// Who did it, as the collector; empty where nobody is named.
    #[serde(default)]
    pub by: String,
    /// How much it was of each of [`Track::amounts`], where that is known.
    #[serde(default)]
    pub amounts: Vec<Option<u64>>,
}

impl Track {
    /// How long all of them took.
    pub fn total_ns(&self) -> u64 {
        self.slices.iter().map(|slice| slice.duration_ns).fold(0, u64::saturating_add)
    }

    /// How long the longest took.
    pub fn longest_ns(&self) -> u64 {
        self.slices.iter().map(|slice| slice.duration_ns).max().unwrap_or_default()
    }

    /// What amounts add up to, of those that do and are known.
    pub fn sums(&self) -> impl Iterator<Item = (&SliceAmount, u64)> {
        let sum = |place: usize| {
            let known = self.slices.iter().filter_map(move |slice| slice.amounts.get(place).copied().flatten());
            known.reduce(u64::saturating_add)
        };
        let additive = self.amounts.iter().enumerate().filter(|(_, amount)| amount.is_additive);
        additive.filter_map(move |(place, amount)| Some((amount, sum(place)?)))
    }

    /// What is said of them, and of how many, the most frequent first.
    pub fn labels(&self) -> Vec<(String, u64)> {
        let mut labels: BTreeMap<String, u64> = BTreeMap::new();
        for said in self.slices.iter().map(Slice::said).filter(|said| !said.is_empty()) {
            *labels.entry(said).or_default() += 1;
        }
        let mut labels: Vec<(String, u64)> = labels.into_iter().collect();
        labels.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
        labels
    }

    /// Garbage collections, each a stop of the JVM. Their amounts are the heap before and after.
    pub fn of_collections(slices: Vec<Slice>, lost: u64) -> Track {
        Track {
            id: COLLECTIONS.into(),
            title: "gc".into(),
            nouns: ["pause".into(), "pauses".into()],
            about: "The JVM was stopped for a garbage collection, or for one of its parts".into(),
            is_ours: false,
            amounts: vec![
                SliceAmount::of_each("heap-before", "heap before", Unit::Bytes),
                SliceAmount::of_each("heap-after", "heap after", Unit::Bytes),
            ],
            slices,
            lost,
        }
    }

    /// Whole collections, which stopped the JVM for a part of their time. Their amounts are for how long that was, altogether and at most, and the
    /// heap before and after.
    pub fn of_whole_collections(slices: Vec<Slice>) -> Track {
        Track {
            id: "whole-collections".into(),
            title: "gc".into(),
            nouns: ["collection".into(), "collections".into()],
            about: "Garbage was collected; the JVM was stopped for a part of that time, or for all of it".into(),
            is_ours: false,
            amounts: vec![
                SliceAmount::additive("stopped", "stopped", Unit::Nanoseconds),
                SliceAmount::of_each("longest-stop", "at most", Unit::Nanoseconds),
                SliceAmount::of_each("heap-before", "heap before", Unit::Bytes),
                SliceAmount::of_each("heap-after", "heap after", Unit::Bytes),
            ],
            slices,
            lost: 0,
        }
    }

    /// Classes that were loaded, each at a moment.
    pub fn of_class_loads(slices: Vec<Slice>, lost: u64) -> Track {
        Track {
            id: "class-loads".into(),
            title: "classes".into(),
            nouns: ["class".into(), "classes".into()],
            about: "A class was loaded by a thread below a root, then or a little later: its latest event was then"
                .into(),
            is_ours: false,
            amounts: Vec::new(),
            slices,
            lost,
        }
    }

    /// Hotswaps, each a retransformation. Their amounts are for how long the JVM was stopped, and how many classes there were.
    pub fn of_hotswaps(slices: Vec<Slice>, lost: u64) -> Track {
        Track {
            id: "hotswaps".into(),
            title: "hotswaps".into(),
            nouns: ["batch".into(), "batches".into()],
            about: "Classes were hotswapped; the JVM was stopped for a part of that time".into(),
            is_ours: true,
            amounts: vec![
                SliceAmount::additive("pause", "stopped", Unit::Nanoseconds),
                SliceAmount::additive("classes", "classes", Unit::Count),
            ],
            slices,
            lost,
        }
    }
}

/// What snapshots have: tracks, or what they had for the only one there was.
pub(super) fn tracks<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Track>, D::Error> {
    #[derive(Deserialize)]
    struct Pause {
        start_ns: i64,
        duration_ns: u64,
        cause: String,
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Told {
        Tracks(Vec<Track>),
        Collections { pauses: Vec<Pause>, lost: u64 },
        Nothing(()),
    }
    let slice = |pause: Pause| Slice {
        start_ns: pause.start_ns,
        duration_ns: pause.duration_ns,
        label: pause.cause,
        ..Slice::default()
    };
    Ok(match Told::deserialize(from)? {
        Told::Tracks(tracks) => tracks,
        Told::Collections { pauses, lost } => {
            vec![Track::of_collections(pauses.into_iter().map(slice).collect(), lost)]
        }
        Told::Nothing(()) => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Facts {
        #[serde(default, alias = "collections", deserialize_with = "tracks")]
        tracks: Vec<Track>,
    }

    fn read(facts: &impl Serialize) -> Vec<Track> {
        let bytes = rmp_serde::to_vec_named(facts).expect("it is written");
        rmp_serde::from_slice::<Facts>(&bytes).expect("it is read").tracks
    }

    #[test]
    fn collections_of_older_snapshots_are_a_track() {
        let pause = json!({ "start_ns": 5, "duration_ns": 7, "cause": "System.gc()" });
        let older = json!({ "collections": { "pauses": [pause], "lost": 2 } });
        let slice = Slice { start_ns: 5, duration_ns: 7, label: "System.gc()".into(), ..Slice::default() };
        assert_eq!(read(&older), [Track::of_collections(vec![slice], 2)]);
        assert_eq!(read(&json!({ "collections": null })), []);
        assert_eq!(read(&json!({})), []);
    }

    #[test]
    fn tracks_are_read_as_they_are_written() {
        let slice =
            |start_ns, amounts| Slice { start_ns, duration_ns: 7, by: "G1New".into(), amounts, ..Slice::default() };
        let slices = vec![slice(-5, vec![Some(3), None]), slice(5, Vec::new())];
        let tracks = vec![Track::of_hotswaps(slices, 1), Track::of_class_loads(Vec::new(), 0)];
        assert_eq!(read(&Facts { tracks: tracks.clone() }), tracks);
        let sums: Vec<(&str, u64)> = tracks[0].sums().map(|(amount, sum)| (&*amount.id, sum)).collect();
        assert_eq!(sums, [("pause", 3)], "what is not known is no sum");
    }
}
