//! How large a snapshot of ten million nodes is, and how long it takes to write it, to read it, and to make each report of it; JSON
//! for comparison. Numbers are spread as in profiles: many small ones, few large ones.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use headwater::profile::{CpuSamples, MethodIndex, Node, NodeIndex, Profile, ThreadProfile, Tree};
use headwater::report::text::Style;
use headwater::report::{Options, View, json, text};
use headwater::{diff, snapshot};
use headwater_benches::{Random, processor_time, profile_of};
use headwater_protocol::ThreadId;

const METHODS: usize = 20_000;
/// The tree of all threads, and theirs.
const MERGED: usize = 4_000_000;
const THREADS: usize = 3;
const OF_A_THREAD: usize = 2_000_000;

fn main() {
    let directory = std::env::temp_dir().join(format!("headwater-bench-{}", std::process::id()));
    std::fs::create_dir(&directory).expect("a directory for the benchmark");
    measure(&directory.join("bench.hw"), &directory.join("bench.json"));
    std::fs::remove_dir_all(&directory).expect("removed again");
}

fn measure(file: &PathBuf, json_file: &PathBuf) {
    let profile = profile();
    let nodes: usize = profile.merged.nodes.len() + profile.threads.iter().map(|t| t.tree.nodes.len()).sum::<usize>();
    println!("{nodes} nodes in {} trees, {METHODS} methods\n", 1 + THREADS);
    println!("| | seconds | of a processor | bytes a node |");
    println!("|---|---|---|---|");
    let row = |what: &str, time: Time, bytes: Option<(u64, usize)>| {
        let size = bytes.map_or_else(String::new, |(bytes, nodes)| format!("{:.1}", bytes as f64 / nodes as f64));
        println!("| {what} | {:.2} | {:.2} | {size} |", time.wall.as_secs_f64(), time.processor.as_secs_f64());
    };
    let size = |file: &PathBuf| std::fs::metadata(file).expect("written").len();
    let (time, ()) = timed(|| snapshot::save(&profile, file).expect("written"));
    row("snapshot written", time, Some((size(file), nodes)));
    let (time, read) = timed(|| snapshot::load(file).expect("readable"));
    row("snapshot read", time, Some((size(file), nodes)));
    assert!(read == profile, "it came back as it was");

    let (time, ()) = timed(|| {
        headwater::whole_file::write_whole(json_file, |out| json::write(&profile, &Options::default(), out))
            .expect("written");
    });
    row("JSON of the tree of all threads written", time, Some((size(json_file), MERGED)));
    for (name, view) in [("tree", View::Tree), ("callers", View::Callers), ("flat", View::Flat)] {
        let options = Options { view, min_share: 0.005, ..Options::default() };
        let (time, ()) = timed(|| {
            text::write(&profile, &options, &Style::default(), &mut std::io::sink()).expect("written");
        });
        row(&format!("text, {name} view"), time, None);
    }
    let run = |file, profile| diff::Run { file, profile };
    let (time, comparison) = timed(|| diff::compare(&[run("before", &profile)], &[run("after", &read)], None));
    row("diff", time, None);
    assert!(comparison.nodes.len() > MERGED / 2, "most chains of calls are distinct");
}

/// What something took: the second is the truer one where others use the machine too.
struct Time {
    wall: Duration,
    processor: Duration,
}

fn timed<T>(run: impl FnOnce() -> T) -> (Time, T) {
    let (start, processor) = (Instant::now(), processor_time());
    let result = run();
    (Time { wall: start.elapsed(), processor: processor_time() - processor }, result)
}

fn profile() -> Profile {
    let mut random = Random::default();
    let merged = tree(MERGED, &mut random);
    let threads = (1..=THREADS as u64).map(|id| ThreadProfile {
        id: ThreadId(id),
        name: format!("worker-{id}"),
        tree: tree(OF_A_THREAD, &mut random),
    });
    let threads = threads.collect();
    profile_of(METHODS, merged, threads)
}

/// In the order in which contexts are met: mostly below one of the last.
fn tree(size: usize, random: &mut Random) -> Tree {
    let mut tree = Tree::of(Vec::with_capacity(size));
    for index in 0..size {
        let parent = index.checked_sub(1).map(|last| NodeIndex(last - (random.below(40) as usize).min(last)));
        let above = parent.map_or(0, |parent| tree.nodes[parent.0].method.0);
        let method = MethodIndex((above * 31 + index % 40 * 7 + 1) % METHODS);
        let calls = 1 + (random.number() >> (44 + random.below(20)));
        let self_ns = calls * (10 + (random.number() >> (50 + random.below(10))));
        let error_ns = calls / 2;
        tree.nodes.push(Node {
            parent,
            link: None,
            method,
            calls,
            thrown: 0,
            self_ns,
            total_ns: self_ns,
            error_ns,
            total_error_ns: error_ns,
            cpu: CpuSamples::default(),
        });
    }
    for index in (0..size).rev() {
        let Node { parent, total_ns, total_error_ns, .. } = tree.nodes[index];
        if let Some(parent) = parent {
            tree.nodes[parent.0].total_ns += total_ns;
            tree.nodes[parent.0].total_error_ns += total_error_ns;
        }
    }
    tree
}
