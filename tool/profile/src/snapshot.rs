//! Snapshots: a profile in a file, `run.hw`, with everything that is known of it.
//!
//! The file, integers little-endian:
//!
//! | | |
//! |---|---|
//! | magic | `89 48 57 50 0D 0A 1A 0A` (as in PNG: a transfer as text damages it) |
//! | version | u16, of this layout |
//! | writer | u8 length, then the version of Headwater that wrote the file, UTF-8 |
//! | frames | one with the facts, some with the nodes, one at the end |
//!
//! The first three will never change, so that every version can say of a later one's file what it is. A frame is a tag (u8), the
//! sizes of its content as it is and compressed (u32 each), the content as a raw deflate stream (RFC 1951), and the CRC-32 of all
//! the file up to there, other CRCs left out: what was cut, changed or swapped anywhere is found.
//!
//! The facts are [`Profile`] in MessagePack, but for its trees, fields by name: the small part, the one that grows, and one that later
//! and earlier versions can read as far as they know it. The trees are the large part, in blocks of columns: see [`columns`].
//!
//! Why so, and at what cost: docs/decisions/snapshots.md.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::profile::{ALLOCATED, Metric, Profile, Sampled, Track, Tree, tell_apart};
use crate::whole_file::write_whole;
use headwater_terms::printable::printable;

pub(crate) mod columns;
mod error;
mod frames;
mod links;

pub use error::{Damage, SnapshotError};

use columns::{Kind, Other, OwnValues, Reading};
use frames::{FrameReader, FrameWriter, Tag};

/// How the names of such files end.
pub const EXTENSION: &str = "hw";
/// The layout that is written. Every layout so far is read: 1 had the usual columns and did not name them.
const VERSION: u16 = 2;
const MAGIC: [u8; 8] = *b"\x89HWP\r\n\x1a\n";
/// Nodes in a block.
const BLOCK: usize = 1 << 16;

/// What a snapshot knows besides its trees' nodes.
#[derive(Serialize)]
struct FactsRef<'a> {
    profile: &'a Profile,
    layout: Layout,
}

#[derive(Deserialize)]
struct Facts {
    profile: Profile,
    layout: Layout,
}

/// Which trees follow, in this order.
#[derive(Serialize, Deserialize)]
struct Layout {
    /// The columns of all blocks, in their order. What a reader does not know it passes over.
    #[serde(default = "usual_columns")]
    columns: Vec<String>,
    /// Nodes of the tree of all threads; `None` where it equals the first thread's, and is not stored.
    merged_nodes: Option<u64>,
    /// Of each thread.
    thread_nodes: Vec<u64>,
    /// Of these trees, the nodes that were handed over, by their numbers: each as how far it is behind the one before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    handed: Vec<Vec<u64>>,
    /// Of the tree of all threads.
    #[serde(default, skip_serializing_if = "Sampled::is_empty")]
    sampled: Sampled,
}

fn usual_columns() -> Vec<String> {
    columns::names(&[])
}

/// Writes a profile to a file, whole or not at all.
pub fn save(profile: &Profile, path: &Path) -> io::Result<()> {
    write_whole(path, |out| write(profile, out))
}

/// Reads a profile from a file; `-` is standard input.
pub fn load(path: &Path) -> Result<Profile, SnapshotError> {
    let name = path.display().to_string();
    if path == Path::new("-") {
        return read(&mut io::stdin().lock()).map_err(|damage| SnapshotError::unreadable("standard input", damage));
    }
    let open = || {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
    };
    let file = open().map_err(|error| SnapshotError::Open { name: name.clone(), error })?;
    read(&mut BufReader::with_capacity(1 << 18, file)).map_err(|damage| SnapshotError::unreadable(&name, damage))
}

/// Writes a profile. The caller buffers.
pub fn write(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let layout = Layout {
        columns: columns::names(&profile.counted),
        merged_nodes: (!is_derived(profile)).then_some(profile.merged.nodes.len() as u64),
        thread_nodes: profile.threads.iter().map(|thread| thread.tree.nodes.len() as u64).collect(),
        handed: {
            let handed: Vec<Vec<u64>> = stored(profile).map(links::differences).collect();
            if handed.iter().all(Vec::is_empty) { Vec::new() } else { handed }
        },
        sampled: profile.merged.sampled.clone(),
    };
    let mut frames = FrameWriter::start(out)?;
    let facts = rmp_serde::to_vec_named(&FactsRef { profile, layout }).map_err(io::Error::other)?;
    frames.write(Tag::Facts, &facts)?;
    for tree in stored(profile) {
        let rests = columns::rests(tree);
        let counted = profile.counted.iter().enumerate();
        let others: Vec<Other<'_>> = counted.map(|(at, metric)| (tree.counted.get(at), metric.is_uncertain)).collect();
        let mut bytes = Vec::new();
        for first in (0..tree.nodes.len()).step_by(BLOCK) {
            let block = first..(first + BLOCK).min(tree.nodes.len());
            bytes.clear();
            columns::encode(tree, &rests, &others, block, &mut bytes);
            frames.write(Tag::Nodes, &bytes)?;
        }
    }
    frames.write(Tag::End, &[])
}

/// The tree of all threads equals the first's.
fn is_derived(profile: &Profile) -> bool {
    profile.threads.first().is_some_and(|only| only.tree.has_the_same(&profile.merged))
}

/// The trees that are stored, in their order.
fn stored(profile: &Profile) -> impl Iterator<Item = &Tree> {
    let merged = (!is_derived(profile)).then_some(&profile.merged);
    merged.into_iter().chain(profile.threads.iter().map(|thread| &thread.tree))
}

/// Reads a profile, up to the end of the input.
pub fn read(input: &mut impl Read) -> Result<Profile, Damage> {
    let mut frames = FrameReader::start(input)?;
    let bytes = frames.read(Tag::Facts)?;
    let Facts { mut profile, layout } = rmp_serde::from_slice(bytes)
        .map_err(|error| frames.misunderstood(&format!("its facts are malformed ({error})")))?;
    if layout.thread_nodes.len() != profile.threads.len() || layout.merged_nodes.is_none() && profile.threads.is_empty()
    {
        return Err(frames.misunderstood("its threads and trees differ in number"));
    }
    tell_apart(&mut profile.methods);
    let methods = profile.methods.len();
    if !indices_hold(&profile) {
        return Err(frames.misunderstood("it speaks of methods that it does not name"));
    }
    if profile.imported.is_some() && profile.counted.is_empty() {
        return Err(frames.misunderstood("it counts nothing"));
    }
    if let Err(what) = check_metrics(&mut profile.counted, &layout).and_then(|()| check_tracks(&mut profile.tracks)) {
        return Err(frames.misunderstood(what));
    }
    let kinds: Vec<Kind> = layout.columns.iter().map(|name| Kind::of(name, &profile.counted)).collect();
    rename(&mut profile.counted);
    let mut counted = Vec::new();
    let mut read = |frames: &mut FrameReader<'_, _>, nodes| -> Result<Tree, Damage> {
        let (tree, of_tree) = tree(frames, nodes, methods, &kinds)?;
        counted.push(of_tree);
        Ok(tree)
    };
    let mut merged = layout.merged_nodes.map(|nodes| read(&mut frames, nodes)).transpose()?;
    for (thread, nodes) in profile.threads.iter_mut().zip(layout.thread_nodes) {
        thread.tree = read(&mut frames, nodes)?;
    }
    let mut handed = layout.handed.iter().map(Vec::as_slice).chain(std::iter::repeat(&[][..]));
    let trees = merged.iter_mut().chain(profile.threads.iter_mut().map(|thread| &mut thread.tree));
    for (tree, counted) in trees.zip(counted) {
        if !links::mark(tree, handed.next().unwrap_or_default()) {
            return Err(frames.misunderstood("it links nodes that are not there"));
        }
        let column = |(metric, own): (&Metric, _)| metric.column_of(&tree.nodes, own);
        tree.counted = profile.counted.iter().zip(counted).map(column).collect();
    }
    profile.merged = match merged {
        Some(merged) => merged,
        None => profile.threads[0].tree.clone(),
    };
    if !layout.sampled.holds(profile.merged.nodes.len()) {
        return Err(frames.misunderstood("its samples are in nodes that are not there"));
    }
    profile.merged.sampled = layout.sampled;
    if profile.contention.as_ref().is_some_and(|contention| !contention.holds(&profile.merged)) {
        return Err(frames.misunderstood("its locks speak of methods or nodes that are not there"));
    }
    frames.read(Tag::End)?;
    frames.end()?;
    Ok(profile)
}

/// Gives metrics the names that they have now.
fn rename(metrics: &mut [Metric]) {
    const FORMER: &str = "allocated";
    if !metrics.iter().any(|metric| metric.id == ALLOCATED) {
        metrics.iter_mut().filter(|metric| metric.id == FORMER).for_each(|metric| metric.id = ALLOCATED.into());
    }
}

/// Fails if the metrics or columns are none that a profile can have.
fn check_metrics(counted: &mut [Metric], layout: &Layout) -> Result<(), &'static str> {
    if layout.columns.len() > columns::MOST_COLUMNS {
        return Err("it has too many columns");
    }
    if columns::USUAL.iter().any(|name| layout.columns.iter().filter(|column| column == name).count() != 1) {
        return Err("it lacks a column, or has it twice");
    }
    if !are_ids(counted.iter().map(|metric| &*metric.id)) {
        return Err("an id of its metrics is none, or two have the same");
    }
    for metric in counted {
        metric.title = printable(&metric.title).into_owned().into();
        metric.about = printable(&metric.about).into_owned().into();
    }
    Ok(())
}

/// Fails if the tracks are none that a profile can have.
fn check_tracks(tracks: &mut [Track]) -> Result<(), &'static str> {
    let printed = |text: &mut Cow<'static, str>| *text = printable(text).into_owned().into();
    if !are_ids(tracks.iter().map(|track| &*track.id)) {
        return Err("an id of its tracks is none, or two have the same");
    }
    for track in tracks {
        let of_amounts = track.amounts.iter().map(|amount| &*amount.id);
        if !are_ids(of_amounts) || track.slices.iter().any(|slice| slice.amounts.len() > track.amounts.len()) {
            return Err("a track has other amounts than it names");
        }
        printed(&mut track.title);
        printed(&mut track.about);
        track.nouns.iter_mut().for_each(printed);
        track.amounts.iter_mut().for_each(|amount| printed(&mut amount.title));
    }
    Ok(())
}

/// Whether these are names for machines, each another.
fn are_ids<'a>(ids: impl Iterator<Item = &'a str>) -> bool {
    const MOST_BYTES: usize = 40;
    let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    let are_fit = ids.iter().all(|id| !id.is_empty() && id.len() <= MOST_BYTES && id.chars().all(is_fit));
    are_fit && ids.windows(2).all(|two| two[0] != two[1])
}

/// Whether every method that is spoken of is there.
fn indices_hold(profile: &Profile) -> bool {
    let of_roots = profile.roots.iter().flat_map(|root| &root.methods);
    let of_controls = profile.controls.iter().map(|control| &control.root);
    let of_statistics = profile.statistics.iter().map(|statistics| &statistics.method);
    let of_budget = profile.budget.iter().flat_map(|budget| {
        let of_dropped = budget.dropped.iter().map(|dropped| &dropped.method);
        of_dropped.chain(budget.roots.iter().map(|root| &root.root))
    });
    let of_missed = profile.at_least.iter().map(|at_least| &at_least.method);
    let of_unseen = profile
        .unseen
        .iter()
        .flat_map(|unseen| std::iter::once(&unseen.method).chain(unseen.callers.iter().map(|(caller, _)| caller)));
    let of_lengthened = profile.lengthened.iter().map(|lengthened| &lengthened.root);
    let of_completeness = of_missed.chain(of_unseen).chain(of_lengthened);
    if profile.reach.as_ref().is_some_and(|reach| !reach.holds(profile.methods.len())) {
        return false;
    }
    let mut all = of_roots.chain(of_controls).chain(of_statistics).chain(of_budget).chain(of_completeness);
    all.all(|method| method.0 < profile.methods.len())
}

/// A tree whose links are not known yet, and what its nodes have themselves of other metrics.
fn tree<R: Read>(
    frames: &mut FrameReader<'_, R>,
    nodes: u64,
    methods: usize,
    kinds: &[Kind],
) -> Result<(Tree, Vec<OwnValues>), Damage> {
    let too_many =
        |frames: &FrameReader<'_, R>| frames.misunderstood("it has more nodes than this machine has memory for");
    let count = usize::try_from(nodes).map_err(|_| too_many(frames))?;
    let mut reading = Reading::default();
    reading.nodes.try_reserve_exact(count).map_err(|_| too_many(frames))?;
    while reading.nodes.len() < count {
        let length = BLOCK.min(count - reading.nodes.len());
        let bytes = frames.read(Tag::Nodes)?;
        if let Err(what) = reading.append(bytes, length, methods, kinds) {
            return Err(frames.misunderstood(what));
        }
    }
    let counted = reading.take_counted();
    let mut tree = Tree::of(reading.nodes);
    columns::add_rests(&mut tree);
    Ok((tree, counted))
}

#[cfg(test)]
mod tests;
