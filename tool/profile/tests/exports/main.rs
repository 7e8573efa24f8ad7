//! Exports, read by the programs that they are made for: what these understand must be what the profile says.
//!
//! `cargo xtask test` installs the readers.

use std::collections::{BTreeMap, BTreeSet};

use headwater_profile::export::{self, Format};
use headwater_profile::profile::{Profile, Tree};
use headwater_profile::report::units::time;
use headwater_profile::report::{Options, Trees};
use serde_json::Value;

mod consumers;
mod firefox;
mod made_up;

use consumers::{Written, callgrind_annotate, go_pprof, graphviz, python, speedscope, validate_by_schema};
use made_up::{Sums, by_stack, flat, profile, threads};

fn write(profile: &Profile, format: Format, trees: Trees) -> Vec<u8> {
    let mut out = Vec::new();
    export::write(format, profile, &Options { trees, ..Options::default() }, &mut out).expect("memory takes it");
    out
}

/// Self and total time by stack.
type Times = BTreeMap<Vec<String>, (u64, u64)>;

fn times(sums: BTreeMap<Vec<String>, Sums>) -> Times {
    sums.into_iter().map(|(stack, sums)| (stack, (sums.self_ns, sums.total_ns))).collect()
}

/// Only what has any time: of lists of samples, speedscope skips those without weight.
fn nonzero(mut times: Times) -> Times {
    times.retain(|_, (_, total_ns)| *total_ns > 0);
    times
}

/// What speedscope has understood of a profile.
fn times_of(profile: &Value) -> Times {
    let nodes = profile["nodes"].as_array().expect("nodes");
    let time = |value: &Value| value.as_f64().expect("a number") as u64;
    let times: Times =
        nodes.iter().map(|node| (strings(&node["stack"]), (time(&node["self"]), time(&node["total"])))).collect();
    assert_eq!(times.len(), nodes.len(), "every stack is there once");
    times
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().expect("an array").iter().map(|text| text.as_str().expect("a string").to_owned()).collect()
}

/// The names that formats of lines have for frames.
fn collapsed_name(name: &str) -> String {
    name.replace(';', ":")
}

#[test]
fn speedscope_reads_its_own_format() {
    let profile = profile();
    for (trees, expected) in
        [(Trees::Merged, vec![("[all threads]".to_owned(), &profile.merged)]), (Trees::PerThread, threads(&profile))]
    {
        let written = Written::new("x.speedscope.json", &write(&profile, Format::Speedscope, trees));
        validate_by_schema(&written);
        let read = speedscope(&written, "x.speedscope.json");
        let profiles = read["profiles"].as_array().expect("profiles");
        // By time, and then by CPU time.
        let (by_time, by_cpu) = profiles.split_at(expected.len());
        assert_eq!(by_cpu.len(), expected.len());
        for (read, (name, tree)) in by_cpu.iter().zip(&expected) {
            assert_eq!(read["name"].as_str(), Some(&*format!("{name}: CPU time")));
            assert!(read["total"].as_f64().expect("a number") <= tree.total_ns() as f64);
        }
        for (read, (name, tree)) in by_time.iter().zip(expected) {
            assert_eq!(read["name"], name);
            assert_eq!(read["unit"], "nanoseconds");
            assert_eq!(read["total"].as_f64(), Some(tree.total_ns() as f64));
            assert_eq!(times_of(read), times(by_stack(tree, made_up::label)));
        }
    }
}

#[test]
fn collapsed_stacks_are_read_by_speedscope() {
    let profile = profile();
    let label = |method| collapsed_name(&made_up::label(method));
    let written = Written::new("x.collapsed", &write(&profile, Format::Collapsed, Trees::Merged));
    let read = speedscope(&written, "x.collapsedstack.txt");
    assert_eq!(times_of(&read["profiles"][0]), nonzero(times(by_stack(&profile.merged, label))));

    let written = Written::new("x.collapsed", &write(&profile, Format::Collapsed, Trees::PerThread));
    let read = times_of(&speedscope(&written, "x.collapsedstack.txt")["profiles"][0]);
    let mut expected = Times::new();
    for (name, tree) in threads(&profile) {
        let name = collapsed_name(&made_up::one_line(&name));
        expected.insert(vec![name.clone()], (0, tree.total_ns()));
        for (stack, sums) in by_stack(tree, label) {
            expected.insert([vec![name.clone()], stack].concat(), (sums.self_ns, sums.total_ns));
        }
    }
    assert_eq!(read, nonzero(expected));
}

#[test]
fn collapsed_stacks_draw_a_flame_graph() {
    let profile = profile();
    let text = String::from_utf8(write(&profile, Format::Collapsed, Trees::Merged)).expect("text");
    assert_eq!(text.lines().count(), profile.merged.nodes.len(), "a line a node, also without time");
    let mut svg = Vec::new();
    let mut options = inferno::flamegraph::Options::default();
    inferno::flamegraph::from_reader(&mut options, text.as_bytes(), &mut svg).expect("inferno draws it");
    let drawn = String::from_utf8(svg).expect("text");
    let total = format!("total_samples=\"{}\"", profile.merged.total_ns());
    assert!(drawn.contains(&total), "{drawn}");
}

#[test]
fn the_flame_graph_is_xml_and_its_frames_are_as_wide_as_their_times() {
    let profile = profile();
    for (trees, parts) in
        [(Trees::Merged, vec![(String::new(), &profile.merged)]), (Trees::PerThread, threads(&profile))]
    {
        let written = Written::new("x.svg", &write(&profile, Format::Svg, trees));
        let read = python(&["svg"], &written);
        // What a frame is told by: how high it is, and its title, which begins with its name and width.
        let mut drawn: Vec<(u64, String, u64)> = Vec::new();
        for frame in read["frames"].as_array().expect("frames") {
            let (title, width) = (frame["title"].as_str().expect("a title"), frame["width"].as_u64().expect("a width"));
            drawn.push((frame["y"].as_f64().expect("a place") as u64, title.to_owned(), width));
        }
        let bottom = drawn.iter().map(|(y, ..)| *y).max().expect("frames");
        let mut drawn: Vec<(u64, String, u64)> = drawn
            .into_iter()
            .map(|(y, title, width)| {
                let name = title.rsplit_once(" (").expect("name (width)").0;
                ((bottom - y) / 16, name.to_owned(), width)
            })
            .collect();
        drawn.sort();
        let mut expected = vec![(0, "all".to_owned(), profile.merged.total_ns())];
        for (thread, tree) in parts {
            let below = if thread.is_empty() { 0 } else { 1 };
            if below == 1 {
                expected.push((1, collapsed_name(&made_up::one_line(&thread)), tree.total_ns()));
            }
            let sums = by_stack(tree, |method| collapsed_name(&made_up::label(method)));
            expected.extend(sums.into_iter().filter(|(_, sums)| sums.total_ns >= 401).map(|(stack, sums)| {
                (stack.len() as u64 + below, stack.last().expect("a method").clone(), sums.total_ns)
            }));
        }
        expected.sort();
        assert_eq!(drawn, expected);
    }
}

#[test]
fn the_call_graph_is_read_by_graphviz_and_the_picture_has_the_same_methods_and_calls() {
    let profile = profile();
    let read = graphviz(&Written::new("x.dot", &write(&profile, Format::Dot, Trees::Merged)));
    let objects = read["objects"].as_array().expect("nodes");
    // A method's name and total time: its label has lines, its tooltip is one.
    let tooltip = |object: &Value| object["tooltip"].as_str().expect("a tooltip").replace("\\\\", "\\");
    let name = |at: &Value| tooltip(&objects[at.as_u64().expect("a number") as usize]);
    let name = |at: &Value| name(at).rsplit_once(": ").expect("name: time").0.to_owned();
    let mut methods: Vec<String> = objects.iter().map(tooltip).collect();
    let edges = read["edges"].as_array().expect("edges");
    let called = |edge: &Value| {
        let share = edge["label"].as_str().expect("a share");
        format!("{} calls {}: {share}", name(&edge["tail"]), name(&edge["head"]))
    };
    let mut calls: Vec<String> = edges.iter().map(called).collect();

    // All that took more than what is left out, with what it took.
    let mut expected: Vec<String> = flat(&profile.merged)
        .into_iter()
        .filter(|(_, sums)| sums.total_ns as f64 >= 0.005 * profile.merged.total_ns() as f64)
        .map(|(machine, sums)| {
            let label = (0..).map(|method| (made_up::machine(method), method)).find(|(name, _)| *name == machine);
            format!("{}: {}", made_up::label(label.expect("a method").1), time(sums.total_ns))
        })
        .collect();
    expected.sort();
    methods.sort();
    assert_eq!(methods, expected);

    let drawn = python(&["graph"], &Written::new("x.graph.svg", &write(&profile, Format::Graph, Trees::Merged)));
    let mut boxes: Vec<String> =
        strings(&drawn["boxes"]).iter().map(|it| it.rsplit_once(", ").expect("a share").0.to_owned()).collect();
    let mut lines = strings(&drawn["calls"]);
    boxes.sort();
    lines.sort();
    calls.sort();
    assert_eq!((boxes, lines), (methods, calls));
}

#[test]
fn a_flame_graph_without_any_time_says_so() {
    let mut empty = profile();
    empty.merged = Tree::default();
    let written = Written::new("x.svg", &write(&empty, Format::Svg, Trees::Merged));
    let read = python(&["svg"], &written);
    assert!(read["texts"].to_string().contains("No valid input"), "{read}");
}

#[test]
fn pprof_is_read_by_go() {
    let profile = profile();
    let written = Written::new("x.pb.gz", &write(&profile, Format::Pprof, Trees::PerThread));
    let read = go_pprof(&written);
    assert_eq!(read.sample_types, ["calls/count", "wall/nanoseconds[dflt]", "thrown/count", "cpu/nanoseconds"]);
    let mut expected = BTreeMap::new();
    for thread in &profile.threads {
        for (stack, sums) in by_stack(&thread.tree, made_up::label) {
            let label = made_up::one_line(&format!("thread:[{}] thread_id:[{}]", thread.name, thread.id.0));
            expected.insert((stack, label), (sums.calls as i64, sums.self_ns));
        }
    }
    // Of what is not known better, a bound is told beside its thread.
    let known = |label: String| label.split("time_at_most:").next().unwrap_or_default().trim_end().to_owned();
    let samples: BTreeMap<_, _> =
        read.samples.into_iter().map(|((stack, label), sums)| ((stack, known(label)), sums)).collect();
    assert_eq!(samples, expected);
    // Names for machines tell apart what names for people do not.
    let machine: BTreeSet<String> = made_up::used_methods(&profile).into_iter().map(made_up::machine).collect();
    assert_eq!(read.system_names, machine);
    assert!(read.header.contains("Time: 2023-11-14 22:13:20"), "{}", read.header);
    assert!(read.header.contains("Duration: 2.5"), "{}", read.header);
    assert!(read.comments.contains("com.acme.Shop (pid 4711): com.acme.Shop::checkout"), "{}", read.comments);

    // Without threads there are no labels; and wall time is what is shown unless calls are asked for.
    let written = Written::new("x.pb.gz", &write(&profile, Format::Pprof, Trees::Merged));
    assert!(go_pprof(&written).samples.keys().all(|(_, labels)| known(labels.clone()).is_empty()));
    let top = consumers::go_pprof_top(&written, &[]);
    assert!(top.contains("Type: wall") && top.contains("com.acme.Shop.checkout(Cart)"), "{top}");
    let calls = consumers::go_pprof_top(&written, &["-sample_index=calls"]);
    assert!(calls.contains("Type: calls"), "{calls}");
    let cpu = consumers::go_pprof_top(&written, &["-sample_index=cpu"]);
    assert!(cpu.contains("Type: cpu"), "{cpu}");
}

#[test]
fn pprof_is_read_by_speedscope() {
    let profile = profile();
    let written = Written::new("x.pb.gz", &write(&profile, Format::Pprof, Trees::Merged));
    let read = speedscope(&written, "x.pb.gz");
    assert_eq!(times_of(&read["profiles"][0]), nonzero(times(by_stack(&profile.merged, made_up::label))));
}

#[test]
fn callgrind_annotate_finds_all_costs_and_calls() {
    let profile = profile();
    for trees in [Trees::Merged, Trees::PerThread] {
        let written = Written::new("callgrind.out.1", &write(&profile, Format::Callgrind, trees));
        let parts = match trees {
            Trees::Merged => vec![("[all threads]".to_owned(), &profile.merged)],
            Trees::PerThread => threads(&profile),
        };
        let read = callgrind_annotate(&written);
        assert_eq!(read.total, profile.merged.total_ns());
        let mut expected = made_up::callgrind(&parts);
        // What costs nothing is not listed.
        expected.self_ns.retain(|_, ns| *ns > 0);
        expected.inclusive_ns.retain(|_, ns| *ns > 0);
        expected.arcs.retain(|_, (_, ns)| *ns > 0);
        assert_eq!(read.self_ns, expected.self_ns);
        assert_eq!(read.inclusive_ns, expected.inclusive_ns);
        assert_eq!(read.arcs, expected.arcs);
    }
}

#[test]
fn csv_is_read_by_python() {
    let profile = profile();
    for trees in [Trees::Merged, Trees::PerThread] {
        let written = Written::new("x.csv", &write(&profile, Format::Csv, trees));
        let read = python(&["csv"], &written);
        let mut expected = Vec::new();
        let mut add = |thread: Option<(u64, &str)>, tree: &Tree| {
            let first = expected.len();
            for (index, node) in tree.nodes.iter().enumerate() {
                let names = profile.method_of(node);
                let mut level = 1;
                let mut above = node.parent;
                while let Some(parent) = above {
                    (level, above) = (level + 1, tree.nodes[parent.0].parent);
                }
                expected.push(serde_json::json!({
                    "id": (first + index).to_string(),
                    "parent": node.parent.map_or(String::new(), |parent| (first + parent.0).to_string()),
                    "thread_id": thread.map_or(String::new(), |(id, _)| id.to_string()),
                    "thread": thread.map_or("", |(_, name)| name),
                    "level": level.to_string(),
                    "name": names.display,
                    "method": names.machine,
                    "calls": node.calls.to_string(),
                    "thrown": node.thrown.to_string(),
                    "self_ns": node.self_ns.to_string(),
                    "total_ns": node.total_ns.to_string(),
                    "error_ns": node.error_ns.to_string(),
                    "total_error_ns": node.total_error_ns.to_string(),
                    "cpu_samples": node.cpu.samples.to_string(),
                    "cpu_share": node.cpu.share().map_or(String::new(), |share| serde_json::json!(share).to_string()),
                    "at_least": "false",
                    "unseen_callees": "0",
                }));
            }
        };
        match trees {
            Trees::Merged => add(None, &profile.merged),
            Trees::PerThread => {
                profile.threads.iter().for_each(|thread| add(Some((thread.id.0, &thread.name)), &thread.tree));
            }
        }
        let rows = read.as_array().expect("rows");
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(expected) {
            let mut row = row.as_object().expect("fields").clone();
            let number = |value: Option<Value>| value.and_then(|value| value.as_str()?.parse::<u64>().ok());
            let cpu = ["self", "total", "error", "total_error"].map(|part| row.remove(&format!("cpu_{part}_ns")));
            let [own, total, ..] = cpu.map(number);
            assert!(own.expect("a time") <= total.expect("a time"));
            assert_eq!(Value::Object(row), expected);
        }
    }
}

#[test]
fn csv_of_an_empty_profile_has_the_usual_header() {
    let full = profile();
    let mut empty = full.clone();
    empty.merged = Tree::default();
    let first_line = |profile| {
        let text = String::from_utf8(write(profile, Format::Csv, Trees::Merged)).expect("text");
        text.lines().next().expect("a header").to_owned()
    };
    // Of a profile without samples nothing is known of CPU time.
    assert_eq!(
        first_line(&full).strip_prefix(&first_line(&empty)),
        Some(",cpu_self_ns,cpu_total_ns,cpu_error_ns,cpu_total_error_ns")
    );
}

#[test]
fn openmetrics_is_read_by_the_prometheus_client() {
    let profile = profile();
    for trees in [Trees::Merged, Trees::PerThread] {
        let written = Written::new("x.om", &write(&profile, Format::OpenMetrics, trees));
        let mut expected: BTreeMap<(String, BTreeMap<String, String>), f64> = BTreeMap::new();
        let mut add = |thread: Option<(u64, &str)>, tree: &Tree| {
            for (method, sums) in flat(tree) {
                let mut labels = BTreeMap::from([("method".to_owned(), method)]);
                if let Some((id, name)) = thread {
                    labels.insert("thread_id".to_owned(), id.to_string());
                    labels.insert("thread".to_owned(), name.to_owned());
                }
                for (name, value) in [
                    ("calls_total", sums.calls as f64),
                    ("thrown_total", sums.thrown as f64),
                    ("self_seconds_total", sums.self_ns as f64 / 1e9),
                    ("inclusive_seconds_total", sums.total_ns as f64 / 1e9),
                    ("self_error_seconds", sums.error_ns as f64 / 1e9),
                    ("inclusive_error_seconds", sums.total_error_ns as f64 / 1e9),
                    ("calls_incomplete", 0.0),
                ] {
                    expected.insert((format!("headwater_method_{name}"), labels.clone()), value);
                }
            }
        };
        match trees {
            Trees::Merged => add(None, &profile.merged),
            Trees::PerThread => {
                profile
                    .threads
                    .iter()
                    .for_each(|thread| add(Some((thread.id.0, &made_up::one_line(&thread.name))), &thread.tree));
            }
        }
        for reader in ["openmetrics", "prometheus"] {
            let families = python(&[reader], &written);
            let mut read = BTreeMap::new();
            for sample in families.as_array().expect("families").iter().flat_map(|family| {
                let counter = family["type"] == "counter";
                assert!(counter || family["type"] == "gauge" || reader == "prometheus", "{family}");
                family["samples"].as_array().expect("samples")
            }) {
                let name = sample["name"].as_str().expect("a name").to_owned();
                let labels = sample["labels"].as_object().expect("labels").iter();
                let labels = labels.map(|(key, value)| (key.clone(), value.as_str().expect("text").to_owned()));
                let value = sample["value"].as_f64().expect("a value");
                assert_eq!(read.insert((name, labels.collect::<BTreeMap<_, _>>()), value), None, "{sample}");
            }
            let is_cpu = |(name, _): &(String, _), _: &mut f64| name.starts_with("headwater_method_cpu_");
            let cpu: BTreeMap<_, _> = read.extract_if(.., is_cpu).collect();
            assert_eq!(cpu.len() * 7, 4 * expected.len(), "four of each method");
            let recorded = read.remove(&(
                "headwater_recording_seconds".to_owned(),
                [("pid", "4711"), ("main", "com.acme.Shop"), ("jdk", "25.0.1")]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ));
            assert_eq!(recorded, Some(2.5));
            assert_eq!(read, expected, "{reader}");
        }
    }
}

#[test]
fn the_firefox_profilers_tables_hold_the_trees() {
    let profile = profile();
    for (trees, parts) in [
        (Trees::Merged, vec![("all threads".to_owned(), &profile.merged)]),
        (Trees::PerThread, firefox::parts(&profile)),
    ] {
        let read: Value = serde_json::from_slice(&write(&profile, Format::Firefox, trees)).expect("JSON");
        let threads = read["threads"].as_array().expect("threads");
        // By time, and then by CPU time.
        let (by_time, by_cpu) = threads.split_at(parts.len());
        assert_eq!(by_cpu.len(), parts.len());
        for (thread, (name, _)) in by_cpu.iter().zip(&parts) {
            assert_eq!(thread["name"].as_str(), Some(&*format!("{name}: CPU time")));
            firefox::read(&read, thread);
        }
        for (thread, (name, tree)) in by_time.iter().zip(parts) {
            assert_eq!(thread["name"], name);
            assert_eq!(
                firefox::read(&read, thread),
                by_stack(tree, made_up::label).into_iter().map(|(stack, sums)| (stack, sums.self_ns)).collect()
            );
        }
        firefox::compare_with_reference(&read);
    }
}

#[test]
fn very_large_values_are_kept_or_limited() {
    const LONG_NS: u64 = 3_600_000_000_000_000;
    let mut large = profile();
    large.merged.nodes.truncate(1);
    let node = &mut large.merged.nodes[0];
    (node.calls, node.self_ns, node.total_ns) = (u64::MAX, LONG_NS, LONG_NS);
    let written = Written::new("x.pb.gz", &write(&large, Format::Pprof, Trees::Merged));
    let samples = go_pprof(&written).samples;
    assert_eq!(samples.values().collect::<Vec<_>>(), [&(i64::MAX, LONG_NS)]);
    let written = Written::new("x.csv", &write(&large, Format::Csv, Trees::Merged));
    assert_eq!(python(&["csv"], &written)[0]["calls"], u64::MAX.to_string());
    let written = Written::new("x.speedscope.json", &write(&large, Format::Speedscope, Trees::Merged));
    assert_eq!(speedscope(&written, "x.speedscope.json")["profiles"][0]["total"].as_f64(), Some(LONG_NS as f64));
    let written = Written::new("callgrind.out.1", &write(&large, Format::Callgrind, Trees::Merged));
    assert_eq!(callgrind_annotate(&written).total, LONG_NS);
}

#[test]
fn a_deep_recursion_can_be_written_in_every_format() {
    const LEVELS: usize = 1_500;
    let mut deep = profile();
    let mut node = deep.merged.nodes[0];
    deep.merged.nodes = (0..LEVELS)
        .map(|level| {
            node.parent = level.checked_sub(1).map(headwater_profile::profile::NodeIndex);
            (node.calls, node.self_ns, node.total_ns) = (1, 10, 10 * (LEVELS - level) as u64);
            node
        })
        .collect();
    let whole = 10 * LEVELS as u64;
    let size = |format| write(&deep, format, Trees::Merged).len();
    for format in [Format::Pprof, Format::Speedscope, Format::Firefox, Format::Csv, Format::OpenMetrics, Format::Svg] {
        assert!(size(format) > 0, "{format:?}");
    }
    let written = Written::new("callgrind.out.1", &write(&deep, Format::Callgrind, Trees::Merged));
    assert_eq!(callgrind_annotate(&written).total, whole);
    let collapsed = String::from_utf8(write(&deep, Format::Collapsed, Trees::Merged)).expect("text");
    let times = collapsed.lines().map(|line| line.rsplit_once(' ').expect("a time").1.parse::<u64>().expect("ns"));
    assert_eq!(times.sum::<u64>(), whole);
}
