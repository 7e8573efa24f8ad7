//! The profile, the comparison of two, and what has no calls, as a page for a browser: one file that needs nothing else, neither other
//! files nor a network.
//!
//! The page itself is `web/dist/page.html`, which `cargo xtask web` makes from `web/src`. Here it is filled: with a title, and
//! with the data, a raw deflate stream (RFC 1951) in base64. In the stream:
//!
//! | | |
//! |---|---|
//! | length | u32, little-endian, of what follows it |
//! | facts | a JSON object: what [`json`](crate::report::json) has but for the calls, and which blocks follow |
//! | blocks | the nodes of trees, in a snapshot's [`columns`]: the usual ones, then those of the metrics that have none among them |
//!
//! No name from the target is in the page but inside that stream, where no browser takes it for markup, and escaped in the title.
//!
//! Why so, and at what cost: docs/decisions/page.md.

use std::io::{self, Write};

use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderWriter;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use serde::Serialize;

use crate::diff::condition::Judgements;
use crate::diff::{self, Comparison, Pair, Presence};
use crate::profile::column::Errors;
use crate::profile::{
    Amounts, Column, How, MethodIndex, MethodName, Metric, Node, NodeIndex, Profile, Quantity, Ratio, Sampled, Tree,
};
use crate::report::{json, text};
use crate::snapshot::columns::{self, Other};
use headwater_terms::printable::printable;

const PAGE: &str = include_str!("../web/dist/page.html");
/// Where the title goes.
const TITLE: &str = "{{title}}";
/// Where the data go.
const DATA: &str = "{{data}}";

/// What a page cannot show.
pub const SEVERAL_RUNS: &str = "a page compares one profile with one; of several on a side there are text and JSON";

/// A tree among the blocks.
#[derive(Serialize)]
struct Block {
    nodes: usize,
    bytes: usize,
    /// The nodes that their parents did not call, but handed over.
    handed: Vec<usize>,
    /// Those whose calls may be missing.
    at_least: Vec<usize>,
    #[serde(skip_serializing_if = "Sampled::is_empty")]
    sampled: Sampled,
    /// Of metrics that are in columns, how uncertain values are together.
    errors: Vec<Errors>,
}

/// A method's names, for machines and for people.
type Names<'a> = [&'a str; 2];

#[derive(Serialize)]
struct ProfileFacts<'a, R> {
    kind: &'static str,
    title: &'a str,
    /// The beginning and the end of the report as text.
    head: String,
    foot: String,
    report: R,
    methods: Vec<Names<'a>>,
    /// The tree of all threads first, unless it equals the first thread's.
    blocks: Vec<Block>,
    merged_is_first_thread: bool,
    has_cpu: bool,
    #[serde(flatten)]
    metrics: Metrics,
}

/// What nodes have: what adds up, so that frames can be as wide as it, and what follows from it.
#[derive(Serialize)]
struct Metrics {
    metrics: Vec<Shown>,
    derived: Vec<Shown>,
}

impl Metrics {
    fn of(metrics: Vec<Metric>, derived: Vec<Metric>) -> Metrics {
        let metrics = metrics.into_iter().filter(|metric| metric.is_additive).map(Shown::of).collect();
        Metrics { metrics, derived: derived.into_iter().map(Shown::of).collect() }
    }
}

/// A metric.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    metric: Metric,
    /// Where its values are: `time`, `calls`, `thrown`, `column`, in the order of those, or in those of the two that it is the `ratio` of.
    place: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ratio: Option<Quotient>,
}

/// Which metrics are divided.
#[derive(Serialize)]
struct Quotient {
    of: String,
    by: String,
    /// How the first is to be taken.
    how: How,
    /// What a quotient of one is.
    one: u64,
}

impl Shown {
    fn of(metric: Metric) -> Shown {
        let quotient = |ratio: &Ratio| Quotient {
            of: ratio.of.id.clone().into_owned(),
            by: ratio.by.id.clone().into_owned(),
            how: ratio.how,
            one: ratio.one,
        };
        let ratio = metric.quotient().map(quotient);
        let place = match (metric.is_time(), metric.is_calls(), metric.is_column(), &ratio) {
            (true, ..) => "time",
            (_, true, ..) => "calls",
            (_, _, true, _) => "column",
            (.., Some(_)) => "ratio",
            _ => "thrown",
        };
        Shown { metric, place, ratio }
    }
}

#[derive(Serialize)]
struct DiffFacts<'a, R> {
    kind: &'static str,
    title: &'a str,
    head: String,
    foot: String,
    report: R,
    methods: Vec<Names<'a>>,
    /// Before and after: two trees of the same shape, with nothing where a node is only in the other.
    blocks: Vec<Block>,
    /// In which of the two each node is: 1 before, 2 after, 3 both.
    presence: String,
    divisors: Vec<f64>,
    /// No time is known better than to this part, before and after; null where times are not known.
    doubts: Vec<f64>,
    /// An uncertainty is so many standard deviations.
    deviations: f64,
    #[serde(flatten)]
    metrics: Metrics,
}

/// What is no tree of calls, and all that its JSON has.
#[derive(Serialize)]
struct OtherFacts<'a, R> {
    kind: &'static str,
    title: &'a str,
    report: R,
    blocks: [Block; 0],
    metrics: [Shown; 0],
}

/// Writes the page of what has no calls: the page's script knows by its kind what the report is. The caller buffers.
///
/// # Errors
///
/// Those of the writer.
pub fn write_other(kind: &'static str, title: &str, report: &impl Serialize, out: &mut impl Write) -> io::Result<()> {
    let title = printable(title);
    fill(&title, &OtherFacts { kind, title: &title, report, blocks: [], metrics: [] }, &[], out)
}

/// Writes a profile's page. The caller buffers.
///
/// # Errors
///
/// Those of the writer.
pub fn write_profile(profile: &Profile, out: &mut impl Write) -> io::Result<()> {
    let mut head = Vec::new();
    text::header(profile, &text::Style { provenance: true, ..text::Style::default() }, &mut head)?;
    let mut foot = Vec::new();
    text::footer(profile, &text::Style { verbose: true, ..text::Style::default() }, &mut foot)?;
    let roots: Vec<&str> = profile.roots.iter().map(|root| root.pattern.as_str()).collect();
    let title = match profile.imported {
        Some(_) => profile.target.main.clone(),
        None => format!("{} (pid {}): {}", profile.target.main, profile.target.pid, roots.join(", ")),
    };
    let title = printable(&title);
    let merged_is_first_thread = profile.threads.first().is_some_and(|first| first.tree.has_the_same(&profile.merged));
    let merged = (!merged_is_first_thread).then_some(&profile.merged);
    let mut data = Vec::new();
    let trees = merged.into_iter().chain(profile.threads.iter().map(|thread| &thread.tree));
    let metrics = profile.metrics();
    let is_uncertain: Vec<bool> =
        metrics.iter().filter(|metric| metric.is_column()).map(|metric| metric.is_uncertain).collect();
    let mut block_of = |tree: &Tree| {
        let columns = profile.columns(tree);
        let others: Vec<Other<'_>> =
            columns.iter().zip(&is_uncertain).map(|(column, uncertain)| (Some(&**column), *uncertain)).collect();
        block(tree, &others, &profile.incomplete_nodes(tree), &mut data)
    };
    let mut blocks: Vec<Block> = trees.map(&mut block_of).collect();
    if let Some(of_all) = blocks.first_mut() {
        of_all.sampled = profile.merged.sampled.clone();
    }
    let facts = ProfileFacts {
        kind: "profile",
        title: &title,
        head: lossy(head),
        foot: lossy(foot),
        report: json::facts(profile),
        methods: profile.methods.iter().map(names).collect(),
        blocks,
        merged_is_first_thread,
        has_cpu: profile.merged.has_cpu_samples(),
        metrics: Metrics::of(metrics, profile.derived()),
    };
    fill(&title, &facts, &data, out)
}

/// Writes the page of a comparison of one run with one. The caller buffers.
///
/// # Errors
///
/// Those of the writer, and [`io::ErrorKind::Unsupported`] if there are more runs: the page has no place for how far they differ.
pub fn write_diff(comparison: &Comparison<'_>, judgements: Judgements<'_>, out: &mut impl Write) -> io::Result<()> {
    let ([before], [after]) = (&comparison.before[..], &comparison.after[..]) else {
        return Err(io::Error::new(io::ErrorKind::Unsupported, SEVERAL_RUNS));
    };
    let mut head = Vec::new();
    diff::text::introduction(comparison, &Quantity::TOTAL, &mut head)?;
    let mut foot = Vec::new();
    diff::text::conditions(comparison, judgements, &mut foot)?;
    let title = format!("{} → {}", before.file, after.file);
    let mut data = Vec::new();
    let sides: [fn(Pair<'_>) -> Option<Amounts>; 2] = [|pair| pair.before[0].clone(), |pair| pair.after[0].clone()];
    let blocks = sides
        .into_iter()
        .enumerate()
        .map(|(run, side)| {
            let (tree, incomplete) = one_side(comparison, run, side);
            let columns = columns_of(comparison, run, side, &tree);
            let others: Vec<Other<'_>> =
                columns.iter().map(|(column, is_uncertain)| (Some(column), *is_uncertain)).collect();
            block(&tree, &others, &incomplete, &mut data)
        })
        .collect();
    let presence = (0..comparison.nodes.len()).map(|node| match comparison.node(node).presence() {
        Presence::Removed => '1',
        Presence::Added => '2',
        Presence::Both | Presence::Never => '3',
    });
    let facts = DiffFacts {
        kind: "diff",
        title: &title,
        head: lossy(head),
        foot: lossy(foot),
        report: diff::json::facts(comparison, judgements),
        methods: comparison.names.iter().map(|name| names(name)).collect(),
        blocks,
        presence: presence.collect(),
        divisors: comparison.divisors(),
        doubts: comparison.doubts(),
        deviations: diff::NORMAL,
        metrics: Metrics::of(comparison.metrics.clone(), comparison.derived.clone()),
    };
    fill(&title, &facts, &data, out)
}

fn names(name: &MethodName) -> Names<'_> {
    [&name.machine, &name.display]
}

/// Our own texts are UTF-8.
fn lossy(text: Vec<u8>) -> String {
    String::from_utf8_lossy(&text).into_owned()
}

/// What one of the profiles has of a comparison's nodes.
fn one_side(comparison: &Comparison<'_>, run: usize, side: fn(Pair<'_>) -> Option<Amounts>) -> (Tree, Vec<bool>) {
    let nodes = comparison.nodes.iter().enumerate().map(|(index, node)| {
        let Amounts { calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu, at_least, .. } =
            side(comparison.node(index)).unwrap_or_default();
        let (parent, method) = (node.parent.map(NodeIndex), MethodIndex(node.name));
        let link = node.link;
        (Node { parent, link, method, calls, thrown, self_ns, total_ns, error_ns, total_error_ns, cpu }, at_least)
    });
    let (nodes, incomplete) = nodes.unzip();
    (Tree { sampled: comparison.sampled[run].clone(), ..Tree::of(nodes) }, incomplete)
}

/// What it has of the metrics that are in columns, and whether that is uncertain.
fn columns_of(
    comparison: &Comparison<'_>,
    run: usize,
    side: fn(Pair<'_>) -> Option<Amounts>,
    tree: &Tree,
) -> Vec<(Column, bool)> {
    let columns = comparison.metrics.iter().enumerate().filter(|(_, metric)| metric.is_additive && metric.is_column());
    let column = |(at, metric): (usize, &Metric)| {
        let own = (0..tree.nodes.len()).map(|node| {
            let amount = comparison.amount(run, at, &side(comparison.node(node)).unwrap_or_default());
            (amount.own, amount.own_error)
        });
        (comparison.metric_of(run, at).column_of(&tree.nodes, own), metric.is_uncertain)
    };
    columns.map(column).collect()
}

fn block(tree: &Tree, others: &[Other<'_>], incomplete: &[bool], data: &mut Vec<u8>) -> Block {
    let before = data.len();
    columns::encode(tree, &columns::rests(tree), others, 0..tree.nodes.len(), data);
    let handed = tree.nodes.iter().enumerate().filter(|(_, node)| node.link.is_some()).map(|(index, _)| index);
    let at_least = incomplete.iter().enumerate().filter(|(_, incomplete)| **incomplete).map(|(index, _)| index);
    let bytes = data.len() - before;
    Block {
        nodes: tree.nodes.len(),
        bytes,
        handed: handed.collect(),
        at_least: at_least.collect(),
        sampled: tree.sampled.clone(),
        errors: others.iter().map(|(column, _)| column.map_or(Errors::Added, Column::errors)).collect(),
    }
}

fn fill(title: &str, facts: &impl Serialize, data: &[u8], out: &mut impl Write) -> io::Result<()> {
    let facts = serde_json::to_vec(facts)?;
    let length = u32::try_from(facts.len()).map_err(|_| io::Error::other("more names than a page can hold"))?;
    let places = PAGE.split_once(TITLE).and_then(|(start, rest)| Some((start, rest.split_once(DATA)?)));
    let (start, (middle, end)) = places.ok_or_else(|| io::Error::other("the page has no place for data"))?;
    out.write_all(start.as_bytes())?;
    out.write_all(escaped(title).as_bytes())?;
    out.write_all(middle.as_bytes())?;
    let mut stream = DeflateEncoder::new(EncoderWriter::new(&mut *out, &STANDARD), Compression::default());
    stream.write_all(&length.to_le_bytes())?;
    stream.write_all(&facts)?;
    stream.write_all(data)?;
    stream.finish()?.finish()?;
    out.write_all(end.as_bytes())
}

/// As the text of an element.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // HTML forbids them, even as references.
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::testing::{profile_of, random_tree};

    #[test]
    fn the_page_has_one_place_for_the_title_and_one_for_the_data() {
        for place in [TITLE, DATA] {
            assert_eq!(PAGE.matches(place).count(), 1, "{place}");
        }
    }

    #[test]
    fn no_name_from_the_target_becomes_markup() {
        const HOSTILE: &str = "</script><img src=x onerror=alert(1)>\u{0}";
        let tree = random_tree(1, 50, 3);
        let mut profile = profile_of(tree.clone(), vec![tree], 3);
        profile.target.main = HOSTILE.into();
        profile.threads[0].name = HOSTILE.into();
        profile.roots[0].pattern = HOSTILE.into();
        profile.methods.iter_mut().for_each(|name| name.machine = HOSTILE.into());
        let mut page = Vec::new();
        write_profile(&profile, &mut page).expect("memory takes it");
        let page = String::from_utf8(page).expect("text");
        assert!(!page.contains("<img") && !page.contains('\u{0}'));
        let length = PAGE.matches("</script>").count();
        assert_eq!(page.matches("</script>").count(), length);
    }
}
